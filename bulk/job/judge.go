package job

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/registrar"
)

// Kind is what becomes of a row.
type Kind string

const (
	New       Kind = "new"
	Changed   Kind = "changed"
	Unchanged Kind = "unchanged"
	Refused   Kind = "refused"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{New, Changed, Unchanged, Refused} }

// Counts is how many rows there are of each kind.
type Counts struct {
	New       int `json:"new"`
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	Refused   int `json:"refused"`
}

// Of returns how many rows of a kind there are.
func (c Counts) Of(k Kind) int {
	switch k {
	case New:
		return c.New
	case Changed:
		return c.Changed
	case Unchanged:
		return c.Unchanged
	case Refused:
		return c.Refused
	}
	return c.All()
}

// All returns how many rows there are.
func (c Counts) All() int { return c.New + c.Changed + c.Unchanged + c.Refused }

// Good returns how many rows would change something.
func (c Counts) Good() int { return c.New + c.Changed }

func (c *Counts) add(k Kind) {
	switch k {
	case New:
		c.New++
	case Changed:
		c.Changed++
	case Unchanged:
		c.Unchanged++
	case Refused:
		c.Refused++
	}
}

// Row is a row of an upload and what would become of it.
type Row struct {
	Line    int
	Kind    Kind
	Text    []byte // as it stands there
	Name    string // "" if a name will be made, or if the row can't be read; the prefix of a namespace
	Space   bool   // the row is the rules of a namespace
	Rules   int    // that the namespace gets
	Title   string
	URL     string
	Changes []registrar.FieldChange // of a record that exists
	Err     error                   // why it is refused
}

// Judgement is what would become of the rows of an upload.
type Judgement struct {
	Counts
	Survey   bulk.Survey
	Encoding bulk.Encoding // of the whole text
	Foreign  int           // lines with characters that are not UTF-8
	Nameless int           // rows that get a name
	Notes    []error       // what else is to be told of a file of another system
	Rows     []Row

	key string
	at  time.Time
}

// fresh is how long a judgement is shown before the registry is asked again.
const fresh = time.Minute

// Judge judges all rows of an upload of the caller, as 'stele import --dry-run' does, and writes
// nothing. The same upload is not judged again for a minute.
func (b *Board) Judge(ctx context.Context, u *Upload, s bulk.Survey) (*Judgement, error) {
	key, err := json.Marshal(u)
	if err != nil {
		return nil, err
	}
	if j := b.known(string(key)); j != nil {
		return j, nil
	}
	select {
	case b.turns <- struct{}{}:
		defer func() { <-b.turns }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	j := &Judgement{Survey: s, key: string(key), at: b.now()}
	if err := b.judge(ctx, u, j); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.judged = append(b.judged, j)
	if len(b.judged) > judgements {
		b.judged = slices.Delete(b.judged, 0, 1)
	}
	return j, nil
}

// known returns a judgement that is fresh; nil if there is none.
func (b *Board) known(key string) *Judgement {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.judged = slices.DeleteFunc(b.judged, func(j *Judgement) bool { return b.now().Sub(j.at) > fresh })
	for _, j := range b.judged {
		if j.key == key {
			return j
		}
	}
	return nil
}

// forget forgets judgements: a job has changed what they were about.
func (b *Board) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.judged = nil
}

var errTooManyRows = stele.Messagef("upload.too-many-rows", "there are more than {most} rows; divide the file, or import it with 'stele import'", MaxRows)

// judge fills in a judgement.
func (b *Board) judge(ctx context.Context, u *Upload, j *Judgement) error {
	ctx, stop := context.WithCancelCause(ctx) // ends reading too
	defer stop(nil)
	file, err := b.rows(ctx, u, &j.Survey)
	if err != nil {
		return err
	}
	minting := b.mayMint(ctx, file.pool)
	_, err = bulk.Judge(ctx, b.o.Registrar, file.rows, file.explain, bulk.JudgeOptions{Update: u.Update, Keep: file.keep, KeepTypes: file.leftOut, Each: func(rows []bulk.Row) {
		for i := range rows {
			if rows[i].Namespace != nil && file.hasRules() {
				j.addSpace(&rows[i], b.rulesOf(ctx, rows[i].Namespace.Key()))
				continue
			}
			j.add(&rows[i], minting)
		}
		if len(j.Rows) > MaxRows {
			stop(errTooManyRows)
		}
	}})
	if err == nil && context.Cause(ctx) == nil {
		j.Notes, err = file.told()
	}
	err = errors.Join(err, file.close())
	if cause := context.Cause(ctx); errors.Is(cause, errTooManyRows) || len(j.Rows) > MaxRows {
		return &stele.Error{Op: "bulk change", Kind: stele.Invalid, Err: errTooManyRows}
	}
	if err != nil {
		return err
	}
	j.Encoding = bulk.UTF8
	if file.text != nil && file.text.Unended() {
		j.Notes = append(j.Notes, bulk.Unended(u.Name))
	}
	if file.text != nil && file.text.Decoder() != nil {
		j.Encoding, j.Foreign = file.text.Decoder().Found()
	}
	return nil
}

// mayMint returns why the caller can't have names made; nil if they can, or if there is no
// namespace for them.
func (b *Board) mayMint(ctx context.Context, pool []stele.NamespaceKey) error {
	for _, key := range pool {
		ns, err := b.o.Registrar.Namespace(ctx, key)
		if err != nil {
			return err
		}
		if ns.Minter.Kind == stele.NoMinter {
			return refuse(stele.Invalid, "namespace.no-minter", "the namespace {namespace} has no minter; set one", key)
		}
	}
	return nil
}

// add adds a row.
func (j *Judgement) add(row *bulk.Row, minting error) {
	if row.Nameless && row.Err == nil && minting != nil {
		row.Err = minting
	}
	r := Row{Line: row.Line, Text: textOf(row), Changes: row.Changes, Kind: kindOf(row)}
	if r.Kind == Refused {
		r.Err = row.Err
	}
	switch {
	case row.Namespace != nil:
		r.Kind, r.Err = Refused, errNamespaceRow
	case row.Record != nil:
		r.Title = row.Record.Metadata[stele.What]
		if len(row.Record.Targets) > 0 {
			r.URL = row.Record.Targets[0].URL
		}
		if !row.Nameless {
			r.Name = row.Record.ID.String()
		}
	}
	if row.Nameless && r.Kind != Refused {
		j.Nameless++
	}
	j.Counts.add(r.Kind)
	j.Rows = append(j.Rows, r)
}

var errNamespaceRow = stele.Messagef("upload.row-is-namespace", "this is a namespace, not a name; make it on the page of namespaces, or import the file with 'stele import'")

// kindOf returns what becomes of a row.
func kindOf(row *bulk.Row) Kind {
	switch {
	case row.Unchanged():
		return Unchanged
	case row.Err != nil:
		return Refused
	case row.RulesOnly: // of a namespace that is there
		return Changed
	case row.Record != nil && row.Record.Version > 1 && row.Earlier == nil: // with earlier versions it is a new record, too
		return Changed
	}
	return New
}

// Page returns the rows of a kind, or of all, without the first ones of the upload, and how many are before the next
// page; 0 if there is none. Rows of other systems are not in the order of lines, so lines do not divide pages.
func (j *Judgement) Page(kind Kind, before, most int) (rows []Row, next int) {
	for i := max(0, before); i < len(j.Rows); i++ {
		if row := &j.Rows[i]; kind == "" || row.Kind == kind {
			if len(rows) == most {
				return rows, i
			}
			rows = append(rows, *row)
		}
	}
	return rows, 0
}
