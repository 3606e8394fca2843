package bulk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/registrar"
)

// Replacer gives targets of many records another beginning, in the registry that this process has
// open. It changes no more records than the caller agreed to, and refuses a record that another user
// changes meanwhile.
//
// A run is an import: its versions have a number, by which they can be reverted. A run that is cut
// off goes on when the same replacement is run again by the same user. It never changes a record
// twice, not even where the new beginning begins with the old one, and not if the same replacement
// is run again after it has ended.
type Replacer struct {
	Replacement
	Registrar *registrar.Registrar
	Schemes   *stele.Schemes

	// Pace is called before so many records are judged or written, and returns the context for it,
	// with the rights that the caller has then. It may be nil.
	Pace func(records int) (context.Context, error)

	// Scanned is called after so many records at the host were read. It may be nil.
	Scanned func(records int) error

	// Judged is called with how many records a run has looked at before it writes any. It may be nil.
	Judged func(records int) error
}

// Replaced is what became of a record, or what would become of it.
type Replaced struct {
	ID       stele.ID
	Title    string
	Old, New string // the first URL that changes
	Err      error  // why the record is not changed, or ErrUnchanged
}

// IsRefused reports whether the record can't be changed.
func (r *Replaced) IsRefused() bool {
	return r.Err != nil && !errors.Is(r.Err, registrar.ErrUnchanged)
}

// ReplaceCounts is what became of all records.
type ReplaceCounts struct {
	Import  uint64 // the number of the run; 0 if nothing was written
	Changed int
	Refused int
	Digest  string // of what a Mover was given; see [Digest]
}

// replacePart is how many records are judged or written together, and replaceBytes how large they
// are together, about, as a store has them.
const (
	replacePart  = 1000
	replaceBytes = 16 << 20
)

// replaceRun is a replacement under way.
type replaceRun struct {
	*Replacer
	held    []byte // the mark as it is kept
	mark    replaceMark
	resumes bool     // an earlier run was cut off
	earlier []uint64 // the runs of the same replacement that are not reverted
	most    int      // records that may change
	counts  ReplaceCounts
}

// replaceMark is what is kept of a run, as the bookmark of an import.
type replaceMark struct {
	Import uint64 `json:"import"`
	Expect int    `json:"expect"` // records that the caller agreed to
	Done   bool   `json:"done,omitempty"`

	// Earlier are the runs before, the last ones, of a replacement whose new beginning has the old one.
	Earlier []uint64 `json:"earlier,omitempty"`
}

// maxEarlier is how many earlier runs are known.
const maxEarlier = 50

// Judge finds out what the replacement would do, and tells of each record.
func (r *Replacer) Judge(ctx context.Context, told func(Replaced) error) (ReplaceCounts, error) {
	run, err := r.begin(ctx)
	if err != nil {
		return ReplaceCounts{}, err
	}
	err = run.each(ctx, 0, told)
	return run.counts, err
}

// Run changes the records, and tells what became of each. Expect is how many records the caller
// agrees to change: if there are more or fewer, nothing is written, and the error is a Conflict.
func (r *Replacer) Run(ctx context.Context, expect int, told func(Replaced) error) (ReplaceCounts, error) {
	run, err := r.begin(ctx)
	if err != nil {
		return ReplaceCounts{}, err
	}
	if err := run.each(ctx, 0, func(Replaced) error { return nil }); err != nil {
		return ReplaceCounts{}, err
	}
	n := run.counts.Changed
	if n != expect && !(run.resumes && expect == run.mark.Expect && n <= expect) {
		return ReplaceCounts{}, stele.Errorf("replace", stele.ID{}, stele.Conflict, "replace.count-not-expected",
			"{count} records would change now, not {expected}; nothing was written; look at them again", n, expect)
	}
	run.counts, run.most = ReplaceCounts{}, n
	if n == 0 && !run.resumes {
		if err := r.Registrar.MayImport(ctx); err != nil {
			return ReplaceCounts{}, err
		}
		err := run.each(ctx, 0, told)
		return run.counts, err
	}
	return run.write(ctx, expect, told)
}

// begin looks for an earlier run that was cut off.
func (r *Replacer) begin(ctx context.Context) (*replaceRun, error) {
	run := &replaceRun{Replacer: r}
	data, err := r.Registrar.Bookmark(ctx, r.name())
	if err != nil || data == nil {
		return run, err
	}
	if err := json.Unmarshal(data, &run.mark); err != nil {
		return nil, stele.Errorf("replace", stele.ID{}, stele.Internal, "replace.bookmark-damaged", "what is kept of an earlier replacement is damaged: {cause}", err)
	}
	run.held = data
	for _, number := range append(run.mark.Earlier, run.mark.Import) {
		i, err := r.Registrar.Import(ctx, number)
		if err != nil && !errors.Is(err, stele.NotFound) {
			return nil, err
		}
		if err == nil && i.Reverted == 0 {
			run.earlier = append(run.earlier, number)
			run.resumes = number == run.mark.Import && !run.mark.Done
		}
	}
	return run, nil
}

// name is the name of the bookmark.
func (r *Replacer) name() string {
	sum := sha256.Sum256([]byte(r.From + "\n" + r.To + "\n" + r.Namespace))
	return "replace " + hex.EncodeToString(sum[:16])
}

// Label is what the import of the run is called.
func (r Replacement) Label() string {
	label := r.From + " → " + r.To
	return strings.ToValidUTF8(label[:min(len(label), registrar.MaxLabel)], "")
}

// write changes the records.
func (run *replaceRun) write(ctx context.Context, expect int, told func(Replaced) error) (_ ReplaceCounts, err error) {
	if !run.resumes {
		run.mark = replaceMark{Expect: expect}
		if run.isNested() {
			run.mark.Earlier = run.earlier[max(0, len(run.earlier)-maxEarlier):]
		}
		if run.mark.Import, err = run.Registrar.BeginImport(ctx, run.Label()); err != nil {
			return run.counts, err
		}
		// The bookmark is there before the first record is written: from now on this run goes on.
		if err := run.keep(ctx); err != nil {
			return run.counts, err
		}
	}
	run.counts.Import = run.mark.Import
	err = run.each(ctx, run.mark.Import, told)
	noted := run.Registrar.NoteImport(context.WithoutCancel(ctx), run.mark.Import, registrar.ImportCounts{Updated: run.counts.Changed, Refused: run.counts.Refused})
	if err != nil {
		return run.counts, err
	}
	run.mark.Done = true
	return run.counts, errors.Join(noted, run.keep(ctx))
}

func (run *replaceRun) keep(ctx context.Context) error {
	data, err := json.Marshal(run.mark)
	if err != nil {
		return err
	}
	if _, err := run.Registrar.Ingest(ctx, nil, registrar.ImportOptions{Name: run.name(), Bookmark: data, OnlyAfter: true, Held: run.held}); err != nil {
		return err
	}
	run.held = data
	return nil
}

// each judges the records that match, or writes them as a part of an import, and tells of each.
func (run *replaceRun) each(ctx context.Context, number uint64, told func(Replaced) error) error {
	after, seen := stele.ID{}, 0
	for {
		list, err := run.Part(ctx, after, replacePart)
		if err != nil || len(list) == 0 {
			return err
		}
		after, seen = list[len(list)-1].ID, seen+len(list)
		if run.Pace != nil {
			if ctx, err = run.Pace(len(list)); err != nil {
				return err
			}
		}
		if list, err = run.left(ctx, list); err != nil {
			return err
		}
		var late []*stele.Record
		if room := run.most - run.counts.Changed; number != 0 && len(list) > room {
			list, late = list[:room], list[room:]
		}
		done, err := run.Write(ctx, list, number)
		if err != nil {
			return err
		}
		for _, rec := range late {
			one := run.replaced(rec)
			one.Err = stele.Errorf("replace", rec.ID, stele.Conflict, "replace.not-counted", "more records match by now than were counted; give the same command again for this one")
			done = append(done, one)
		}
		for i := range done { // all are counted, even if the caller is gone
			if done[i].IsRefused() {
				run.counts.Refused++
			} else {
				run.counts.Changed++
			}
		}
		for i := range done {
			if err := told(done[i]); err != nil {
				return err
			}
		}
		if number == 0 && run.Judged != nil {
			if err := run.Judged(seen); err != nil {
				return err
			}
		}
	}
}

// left leaves out records that an earlier run has changed and that match still. One that has been put back
// since is not left out, as far as its URL tells.
func (run *replaceRun) left(ctx context.Context, list []*stele.Record) (todo []*stele.Record, err error) {
	if len(run.earlier) == 0 || !run.isNested() {
		return list, nil
	}
	for _, rec := range list {
		done := slices.Contains(run.earlier, rec.Import)
		if !done {
			if done, err = run.Changed(ctx, rec.ID, run.earlier...); err != nil {
				return nil, err
			}
		}
		if !done || !run.hasNew(rec) {
			todo = append(todo, rec)
		}
	}
	return todo, nil
}

// hasNew reports whether a target of a record has the new beginning.
func (run *replaceRun) hasNew(rec *stele.Record) bool {
	return slices.ContainsFunc(rec.Targets, func(t stele.Target) bool { return run.isHost() || strings.HasPrefix(t.URL, run.To) })
}

// Changed reports whether one of some imports has written a version of a record.
func (r *Replacer) Changed(ctx context.Context, id stele.ID, numbers ...uint64) (bool, error) {
	for rec, err := range r.Registrar.History(ctx, id) {
		switch {
		case errors.Is(err, stele.NotFound), errors.Is(err, stele.Forbidden):
			return false, nil
		case err != nil:
			return false, err
		case rec.ID == id && slices.Contains(numbers, rec.Import):
			return true, nil
		}
	}
	return false, nil
}

// Part returns the next records after an identifier that the replacement changes, at most as many as
// it is asked for, in the namespaces that the caller may list. A withdrawn record leads nowhere, and is
// left out.
func (r *Replacer) Part(ctx context.Context, after stele.ID, most int) (list []*stele.Record, err error) {
	in, err := r.inside(ctx)
	if err != nil {
		return nil, err
	}
	scanned, size := 0, 0
	for rec, err := range r.Registrar.Pointing(ctx, stele.Location{Host: r.Host()}, after) {
		if err == nil {
			err = ctx.Err()
		}
		if scanned++; err == nil && scanned%replacePart == 0 && r.Scanned != nil {
			err = r.Scanned(replacePart)
		}
		if err != nil {
			return nil, err
		}
		if rec.State == stele.Withdrawn || !in(rec.ID) {
			continue
		}
		if _, ok := r.Apply(rec); ok {
			list, size = append(list, rec), size+rec.StoredSize()
			if len(list) == most || size >= replaceBytes {
				return list, nil
			}
		}
	}
	return list, nil
}

// inside returns what tells whether a name is in the namespace of the replacement.
func (r *Replacer) inside(ctx context.Context) (func(stele.ID) bool, error) {
	if r.Namespace == "" {
		return func(stele.ID) bool { return true }, nil
	}
	p, _, err := r.Schemes.ParsePrefix(r.Namespace)
	if err != nil {
		return nil, err
	}
	ns, err := r.Registrar.Namespace(ctx, stele.NamespaceKey{Scheme: p.Scheme(), Prefix: p.String()})
	if err != nil {
		return nil, err
	}
	return func(id stele.ID) bool {
		return id.Scheme() == ns.Scheme && r.Schemes.IsWithin(id, ns.Prefix)
	}, nil
}

// Write changes records as a part of the import of that number, or only judges them if it is 0. A
// record that has another version by now is refused.
func (r *Replacer) Write(ctx context.Context, list []*stele.Record, number uint64) ([]Replaced, error) {
	if len(list) == 0 {
		return nil, nil
	}
	o := registrar.ImportOptions{Update: true, Import: number, DryRun: number == 0}
	var rows []*Row
	done := make([]Replaced, len(list))
	for i, rec := range list {
		row, err := r.row(rec)
		if err != nil {
			return nil, err
		}
		rows, o.Versions = append(rows, row), append(o.Versions, rec.Version)
		done[i] = r.replaced(rec)
	}
	if err := Ingest(ctx, r.Registrar, rows, o); err != nil {
		return nil, err
	}
	for i, row := range rows {
		done[i].Err = row.Err
	}
	return done, nil
}

// replaced tells what becomes of a record.
func (r *Replacer) replaced(rec *stele.Record) Replaced {
	one := Replaced{ID: rec.ID, Title: rec.Metadata[stele.What]}
	for _, t := range rec.Targets {
		if next, ok := r.URL(t.URL); ok {
			one.Old, one.New = t.URL, next
			break
		}
	}
	return one
}

// row returns a record as a row of an import that changes its targets.
func (r *Replacer) row(rec *stele.Record) (*Row, error) {
	next := stele.Record{ID: rec.ID} // what else it has may be a megabyte
	next.Targets, _ = r.Apply(rec)
	var said map[string]json.RawMessage
	if err := json.Unmarshal(document.AppendRecord(nil, &next), &said); err != nil {
		return nil, err
	}
	patch, err := json.Marshal(map[string]any{"id": rec.ID.String(), "targets": said["targets"]})
	if err != nil {
		return nil, err
	}
	row := &Row{Patch: patch}
	row.Record, err = registrar.Patch(r.Schemes, nil, patch)
	return row, err
}
