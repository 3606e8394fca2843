package harvest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash/maphash"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/registrar"
)

// Registry is the registry that a harvest writes to: one that this process has open, or one at a server.
type Registry interface {
	bulk.Destination

	// Get returns the record that has a name. NotFound if there is none for the caller.
	Get(ctx context.Context, name stele.ID) (*stele.Record, error)

	// Count returns how many names count for a namespace.
	Count(ctx context.Context, key stele.NamespaceKey) (uint64, error)

	// Export yields the records that begin so.
	Export(ctx context.Context, key stele.NamespaceKey, history bool) iter.Seq2[*stele.Record, error]
}

// UsualLimit is the part of the names of a namespace that a harvest withdraws without being told to.
const UsualLimit = 0.05

// Options say what is harvested, and how.
type Options struct {
	To      Registry
	Schemes *stele.Schemes
	Client  *Client
	Source  Source
	Into    stele.NamespaceKey // all names that are written are in it

	Limit  float64 // part of the names of the namespace that may be withdrawn; UsualLimit is usual
	Yes    bool    // withdraw more than that
	Again  bool    // start over, whatever an earlier harvest did
	DryRun bool    // write nothing

	Rejected func(item *Item, err error)      // is told of each record of which nothing is written; may be nil
	Outside  func(item *Item)                 // is told of each record whose date is not one that was asked for; may be nil
	Told     func(c Counts)                   // is told after each page; may be nil
	Deleted  func(id stele.ID)                // in a dry run: is told of each name that would be withdrawn; may be nil
	Resumed  func(pages int, since time.Time) // is told that an earlier harvest goes on, or from when on changes are asked for; may be nil
}

// Counts are what became of the records.
type Counts struct {
	bulk.Counts
	Withdrawn int `json:"withdrawn"`
	Unknown   int `json:"unknownDeleted,omitempty"`   // records that are deleted there and are not known here
	Outside   int `json:"outsideOfDates,omitempty"`   // records whose dates are not those that were asked for
	Pages     int `json:"pages"`                      // that were read
	Waiting   int `json:"waitingForAnswer,omitempty"` // names that are to be withdrawn, if the user agrees
}

// mark is the bookmark of a harvest. It is committed with the records of a page. It has at most 4096 bytes, since a server keeps no
// larger ones: names that are to be withdrawn are in further ones.
type mark struct {
	Counts
	Import uint64 `json:"import,omitempty"`
	Token  string `json:"token,omitempty"` // of the next page
	Begun  bool   `json:"begun,omitempty"`
	Read   bool   `json:"read,omitempty"` // all pages are read
	Done   bool   `json:"done,omitempty"` // and deleted records are withdrawn
	First  string `json:"first,omitempty"`
	Days   bool   `json:"days,omitempty"`
	From   string `json:"from,omitempty"`  // that was asked for, if the user did not say it
	Since  string `json:"since,omitempty"` // from when on changes are read once more, before names are withdrawn
	Claim  int    `json:"claim,omitempty"` // how many runs have gone on with it
	Chunks int    `json:"chunks,omitempty"`
	Next   string `json:"next,omitempty"` // from where the next harvest begins
	Lost   int    `json:"lost,omitempty"` // records that were not written since other users wrote them meanwhile, twice
}

// Harvest is a harvest under way.
type Harvest struct {
	Options
	key  string
	held []byte // the bookmark as the registry has it
	mark mark
	kept mark // what the bookmark says, with what became of the last records, which it does not say yet

	token   string          // of the next page; the bookmark has the last one that is short enough
	resumed bool            // an earlier run has begun it
	claimed bool            // no other run of the same harvest goes on
	tokens  map[uint64]bool // hashes of those that came in this run
	seed    maphash.Seed
	empty   int
	pending pending
	byOAI   map[string]stele.ID // names by the identifiers of the repository; nil if they were not read
}

// Overlap is how much earlier than the last harvest the next one begins: a repository may show a record later than its datestamp.
const overlap = 10 * time.Minute

// New returns a harvest, after a look at what an earlier one did.
func New(ctx context.Context, o Options) (*Harvest, error) {
	if err := o.Source.Check(); err != nil {
		return nil, err
	}
	if o.Limit < 0 || o.Limit > 1 {
		return nil, refuse(stele.Invalid, "harvest.limit-invalid", "the limit is a part of all names, from 0 to 100 %")
	}
	s := &o.Source
	sum := sha256.Sum256([]byte(strings.Join([]string{s.URL, string(s.Format), s.Set, s.From, s.Until, o.Into.Scheme, o.Into.Prefix}, "\n")))
	h := &Harvest{Options: o, key: "harvest " + hex.EncodeToString(sum[:16]), tokens: make(map[uint64]bool), seed: maphash.MakeSeed(), pending: newPending()}
	var err error
	if h.held, err = o.To.Bookmark(ctx, h.key); err != nil {
		return nil, err
	}
	if h.held != nil && !o.Again {
		if err := json.Unmarshal(h.held, &h.mark); err != nil {
			return nil, refuse(stele.Internal, "harvest.bookmark-damaged", "the bookmark of the harvest is damaged ({cause}); start over with --again", err)
		}
	}
	return h, nil
}

// Counts returns what became of the records so far, and the number of the import; 0 if nothing was written.
func (h *Harvest) Counts() (Counts, uint64) { return h.mark.Counts, h.mark.Import }

// Run harvests: from the beginning, from where an earlier run was interrupted, or what changed since an earlier one was complete. A
// harvest between two dates that is complete has nothing left to do.
func (h *Harvest) Run(ctx context.Context) (err error) {
	if h.mark.Done {
		if h.mark.Lost == 0 && (h.Source.From != "" || h.Source.Until != "") {
			return nil
		}
		h.mark = mark{From: h.mark.Next}
	}
	noted := h.mark.Counts
	h.kept = h.mark
	h.token, h.resumed = h.mark.Token, h.mark.Begun
	h.Client.begin()
	defer func() {
		if err != nil {
			err = errors.Join(err, h.leave(context.WithoutCancel(ctx)))
		}
		if c := h.mark.Counts; h.mark.Import != 0 && !h.DryRun {
			err = errors.Join(err, h.To.NoteImport(context.WithoutCancel(ctx), h.mark.Import, registrar.ImportCounts{Created: c.New - noted.New,
				Updated: c.Updated + c.Withdrawn - noted.Updated - noted.Withdrawn, Unchanged: c.Unchanged - noted.Unchanged, Refused: c.Rejected - noted.Rejected}))
		}
	}()
	source := h.Source
	if source.From == "" {
		source.From = h.mark.From
	}
	if h.Resumed != nil && (h.mark.Begun || source.From != "") {
		since, _ := parseDate(source.From)
		h.Resumed(h.mark.Pages, since)
	}
	if !h.mark.Begun {
		if err := h.begin(ctx, source); err != nil {
			return err
		}
	} else {
		if err := h.readPending(ctx); err != nil {
			return err
		}
		h.readAgain()
	}
	if h.mark.Since != "" {
		source.From = h.mark.Since
	}
	for !h.mark.Read {
		if err := h.page(ctx, source); err != nil {
			return err
		}
	}
	return h.end(ctx)
}

// readAgain makes a harvest that stopped before it withdrew names read what changed since: the answer of the user may have taken long,
// and records may be there again.
func (h *Harvest) readAgain() {
	if !h.mark.Read || h.DryRun || len(h.pending.names()) == 0 {
		return
	}
	first, ok := parseDate(h.mark.First)
	if !ok {
		return
	}
	first = first.Add(-overlap)
	if from, ok := parseDate(h.Source.From); ok && from.After(first) {
		first = from
	}
	form := secondForm
	if h.mark.Days || len(h.Source.From) == len(dayForm) || len(h.Source.Until) == len(dayForm) {
		form = dayForm
	}
	since := first.Format(form)
	if h.Source.Until != "" && since > h.Source.Until { // all that was asked for was read
		return
	}
	h.mark.Read, h.mark.Token, h.mark.First, h.mark.Since = false, "", "", since
	h.token = ""
}

// leave keeps the counts of a harvest that ends before its end. What was read of a page that was not written counts for nothing.
func (h *Harvest) leave(ctx context.Context) error {
	if h.mark = h.kept; h.DryRun || h.held == nil || !h.kept.Begun {
		return nil
	}
	return h.write(ctx, new(work))
}

// begin asks the repository who it is.
func (h *Harvest) begin(ctx context.Context, source Source) error {
	r, err := h.Client.Identify(ctx, source)
	if err != nil {
		return err
	}
	h.mark.Begun, h.mark.Days = true, r.Days
	return nil
}

// page reads a page, and writes what is in it.
func (h *Harvest) page(ctx context.Context, source Source) error {
	asked := h.Client.Now()
	p, err := h.Client.Page(ctx, source, h.token)
	if err != nil {
		return err
	}
	if h.mark.Pages++; h.mark.Pages > maxPages {
		return refuse(stele.Invalid, "harvest.too-many-pages", "the repository has more than {most} pages; harvest its sets, or parts of the time, one by one", maxPages)
	}
	if h.mark.First == "" {
		h.mark.First = h.first(p.Date, asked).Format(secondForm)
	}
	if err := h.follow(p); err != nil {
		return err
	}
	work, err := h.judgePage(ctx, p, source)
	if err != nil {
		return err
	}
	if err := h.writePending(ctx); err != nil {
		return err
	}
	kept := h.mark.Token
	h.mark.Token, h.mark.Read = p.Token, p.Token == ""
	text, err := h.mark.encode()
	if err != nil {
		return err
	}
	if len(text) > mostBookmark {
		h.mark.Token = kept // a harvest that is interrupted goes back to that page
	}
	if err := h.write(ctx, work); err != nil {
		return err
	}
	h.token = p.Token
	if h.Told != nil {
		h.Told(h.mark.Counts)
	}
	return nil
}

// mostBookmark is how many bytes a bookmark has with its token. A server keeps 4096; the rest is for the number of the import, and for
// counts that grow while the token stays.
const mostBookmark = 3800

// encode returns the bookmark. Tokens often have &, which needs no escape.
func (m *mark) encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(m)
	return bytes.TrimSpace(b.Bytes()), err
}

// first returns when the first page was made. The clock of a repository that is ahead would make the next harvest leave records
// out; that of one that is far behind costs a second look at many.
func (h *Harvest) first(said, asked time.Time) time.Time {
	if said.IsZero() || said.After(asked) {
		return asked.UTC()
	}
	return said.UTC()
}

// follow makes sure that the list comes to an end.
func (h *Harvest) follow(p *Page) error {
	if len(p.Items) > 0 || p.Token == "" {
		h.empty = 0
	} else if h.empty++; h.empty > maxEmpty {
		return refuse(stele.Invalid, "harvest.only-empty-pages", "the repository sent {count} pages without a record, one after the other, and the harvest stops; tell its operator", maxEmpty)
	}
	if p.Token == "" {
		return nil
	}
	sum := maphash.String(h.seed, p.Token)
	if h.tokens[sum] || p.Token == h.token {
		return refuse(stele.Invalid, "harvest.token-repeated", "the repository gave the same resumption token twice, so that its list would never end; after {pages} pages the harvest stops; tell its operator", h.mark.Pages)
	}
	h.tokens[sum] = true
	return nil
}

// work is what is to be written of a page.
type work struct {
	items    []*Item
	records  []*stele.Record
	versions []uint64
}

// write writes records and the bookmark, all or none of them. A record that another user changed meanwhile is judged once more. If it is
// lost again, the next harvest begins where this one did: the repository would not show the record again otherwise.
func (h *Harvest) write(ctx context.Context, w *work) error {
	changed, err := h.ingest(ctx, w, nil)
	if err != nil || len(changed) == 0 {
		return err
	}
	h.mark.Lost += len(changed)
	h.kept = h.mark
	again := new(work)
	for _, item := range changed {
		rec, version, err := h.judgeAgain(ctx, item, w)
		switch kind := stele.KindOf(err); {
		case err == nil && rec == nil: // it is withdrawn already
			h.mark.Unchanged++
			h.mark.Lost--
		case err == nil:
			again.items, again.records, again.versions = append(again.items, item), append(again.records, rec), append(again.versions, version)
		case ctx.Err() != nil, kind == stele.Unavailable, kind == stele.Internal, kind == stele.Unauthenticated:
			return err
		default:
			h.reject(item, err)
			h.mark.Lost--
		}
	}
	lost := 0
	if _, err := h.ingest(ctx, again, &lost); err != nil {
		return err
	}
	h.mark.Lost -= len(again.items) - lost
	h.kept = h.mark
	return nil
}

// judgeAgain judges an item of w whose record was changed meanwhile. The record is nil if it was to be withdrawn, and is.
func (h *Harvest) judgeAgain(ctx context.Context, item *Item, w *work) (*stele.Record, uint64, error) {
	if !item.Deleted {
		return h.judge(ctx, item)
	}
	rec, err := h.To.Get(ctx, w.records[slices.Index(w.items, item)].ID)
	if err != nil || rec.State == stele.Withdrawn {
		return nil, 0, err
	}
	return h.withdrawn(rec), rec.Version, nil
}

// ingest writes records and the bookmark, and counts what became of them. It returns the items whose records another user changed
// meanwhile; if lost is not nil, it rejects them, and counts them there.
func (h *Harvest) ingest(ctx context.Context, w *work, lost *int) (changed []*Item, _ error) {
	o := registrar.ImportOptions{Update: true, DryRun: h.DryRun, Versions: w.versions}
	if !h.DryRun {
		if h.mark.Import == 0 && len(w.records) > 0 {
			label := "harvest of " + h.Source.place()
			number, err := h.To.BeginImport(ctx, strings.ToValidUTF8(label[:min(len(label), registrar.MaxLabel)], ""))
			if err != nil {
				return nil, err
			}
			h.mark.Import = number
		}
		o.Import, o.Name, o.OnlyAfter, o.Held = h.mark.Import, h.key, true, h.held
		var err error
		if o.Bookmark, err = h.mark.encode(); err != nil {
			return nil, err
		}
	}
	errs, err := h.To.Ingest(ctx, w.records, o)
	if err != nil {
		return nil, err
	}
	if !h.DryRun {
		h.held = o.Bookmark
	}
	for i, err := range errs {
		rec := w.records[i]
		if one := rec.Metadata[oaiField]; h.byOAI != nil && one != "" && len(h.byOAI) < maxByOAI && (err == nil || errors.Is(err, registrar.ErrUnchanged)) {
			h.byOAI[one] = rec.ID // a later page may say that it is deleted
		}
		switch {
		case errors.Is(err, registrar.ErrUnchanged):
			h.mark.Unchanged++
		case isChanged(err) && lost == nil:
			changed = append(changed, w.items[i])
		case err != nil:
			if isChanged(err) {
				*lost++
			}
			h.reject(w.items[i], err)
		case rec.State == stele.Withdrawn:
			h.mark.Withdrawn++
		case w.versions[i] != registrar.MustBeNew:
			h.mark.Updated++
		default:
			h.mark.New++
		}
	}
	h.kept = h.mark
	return changed, nil
}

// isChanged reports whether a record was not written since another user has changed it.
func isChanged(err error) bool {
	code, _ := stele.CodeOf(err)
	return code == "record.version-not-expected"
}

// reject counts a record of which nothing is written.
func (h *Harvest) reject(item *Item, err error) {
	h.mark.Rejected++
	if h.Rejected != nil {
		h.Rejected(item, err)
	}
}

// end withdraws what is deleted, and makes the harvest complete.
func (h *Harvest) end(ctx context.Context) error {
	if err := h.withdraw(ctx); err != nil {
		return err
	}
	first, ok := parseDate(h.mark.First)
	if ok {
		first = first.Add(-overlap)
		if h.mark.Next = first.Format(secondForm); h.mark.Days {
			h.mark.Next = first.Format(dayForm)
		}
	}
	if h.mark.Lost > 0 {
		h.mark.Next = h.mark.From
	}
	h.mark.Done, h.mark.Waiting = true, 0
	return h.write(ctx, new(work))
}

// chunkName names the bookmark of some names that are to be withdrawn.
func (h *Harvest) chunkName(n int) string { return h.key + " deleted " + strconv.Itoa(n) }
