package registrar

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar/minting"
)

// ImportOptions say how a chunk of records is imported.
type ImportOptions struct {
	// Update makes records that are registered already take over what the chunk
	// says. Without it they are refused.
	Update bool

	// Lines are the lines that the records were read from, in their order, for an
	// update: a record that is registered takes over what its line has, as [Patch]
	// says, and keeps the rest. Without them the chunk's record says everything, and
	// what it leaves out is removed, except names and signatures.
	Lines [][]byte

	// Versions are the versions that registered records must have, in the order of the records: one that another
	// user changed meanwhile is refused. A record with a version here is changed, whether or not Update is
	// set; 0 asks for nothing, and [MustBeNew] that none is registered. Nil: any version. A record may come once only then. A record to which the
	// same import has given the next version, with the same content, is unchanged: the chunk came before.
	Versions []uint64

	// Earlier are the versions that new records had in another registry before the ones in the
	// chunk, by the records' places: the oldest first, each with its Modified, By and State. Nil,
	// or nil for a record, for none. They become the record's history, each as a change, in the
	// commit that writes the record. Earlier versions of a record that is registered already, or
	// without Keep, are left out: Ingest sets the place of every history to nil that it did not
	// write.
	Earlier [][]*stele.Record

	// Fixed says which bytes records stand for, by the records' places; nil, or nil for a record, if
	// nothing is said. It is committed before the record, which is refused if other bytes are kept here. Only an
	// administrator may.
	Fixed []*FixedData

	// Import is the number of the import that the chunk is a part of; see
	// [Registrar.BeginImport]. 0 for none.
	Import uint64

	// Changed is called with each record that an update changes, or would change, by
	// its place in the chunk, and with the fields that change. It may be nil.
	Changed func(i int, fields []FieldChange)

	// Progress is how far the minter of a namespace is that comes from another registry or program.
	Progress minting.Progress

	// DryRun finds every error that the import would find, and writes nothing. It
	// does not see what an earlier chunk would have written.
	DryRun bool

	// Keep keeps what another registry's system kept of new records: when they
	// were made and changed, by whom, and whether they are redacted. Only an
	// administrator may.
	Keep bool

	// Secrets lets records have handle values of type HS_SECKEY in clear. They are encrypted before
	// the records are written, which have references to them. Only an administrator may. Without it
	// a record with such a value is refused.
	Secrets bool

	// KeepTypes are the types of handle values that the chunk leaves out, such as HS_ADMIN. A registered
	// record keeps its values of these types.
	KeepTypes []string

	// Name names the import, and Bookmark says how far it is with this chunk. They
	// are committed together with it, or after all of it: an import that continues from
	// its bookmark writes nothing twice. No bookmark is kept if Name is empty.
	Name     string
	Bookmark []byte

	// OnlyAfter makes sure that the bookmark is Held until now: a Conflict if another run of the same
	// import has moved it.
	OnlyAfter bool
	Held      []byte
}

// Bookmark returns how far the import of that name is; nil if it never began. Each user
// has names of their own; administrators share theirs.
func (r *Registrar) Bookmark(ctx context.Context, name string) ([]byte, error) {
	if err := identify(ctx, "import"); err != nil {
		return nil, err
	}
	if strings.Contains(name, ownBookmark) {
		return nil, refuse("import", stele.ID{}, stele.Invalid, "import.name-not-allowed", `an import can't have the name "{name}"; choose another`, name)
	}
	data, err := r.store.MinterState(ctx, bookmarkOf(ctx, name))
	return data, tell("import", err)
}

// ownBookmark stands between a user's name and that of their import. No name contains
// it, so that users never share a bookmark.
const ownBookmark = "\x00"

// bookmarkOf returns the name under which the caller's bookmark is kept.
func bookmarkOf(ctx context.Context, name string) string {
	if who := auth.From(ctx); !who.Admin {
		name = who.Name + ownBookmark + name
	}
	return minting.BookmarkName(name)
}

// Ingest imports a chunk of records, which the registrar may change and keep. They may
// be in any state: a withdrawn one brings its tombstone. The list has an error for each
// record, in their order, nil for those that were written, and [ErrUnchanged] for those
// that are registered so already, perhaps with more aliases; both have the version that
// is registered now. In an update a record may come again: then it is changed again.
// The second result says that the chunk as a whole failed; records may have been
// written then, but not the bookmark, and importing the chunk again with Update writes
// nothing twice. Forbidden if a bookmark is to be kept for a caller that may write in
// no namespace.
func (r *Registrar) Ingest(ctx context.Context, records []*stele.Record, o ImportOptions) ([]error, error) {
	const op = "import"
	if err := identify(ctx, op); err != nil {
		return nil, err
	}
	if o.Keep || o.Secrets {
		if err := administrate(ctx, op, stele.ID{}); err != nil {
			return nil, err
		}
	}
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	if who := auth.From(ctx); o.Name != "" && !s.mayWriteSomewhere(who) {
		return nil, refuse(op, stele.ID{}, stele.Forbidden, "import.no-namespace-for-bookmark", `"{user}" may write in no namespace, so no bookmark is kept; ask the owner of one, or an administrator, for the role editor`, who.Name)
	}
	if o.Import != 0 && !o.DryRun {
		if err := r.mayContinue(ctx, o.Import); err != nil {
			return nil, err
		}
	}
	if first, again := waves(records, o); again != nil {
		return r.ingestAgain(ctx, records, first, again, o)
	}
	in := &intake{Registrar: r, namespaceTree: s, o: o, errs: make([]error, len(records)), records: records}
	if err := in.find(ctx); err != nil {
		return nil, err
	}
	in.prepare(ctx)
	if err := in.fixData(ctx); err != nil {
		return nil, err
	}
	defer in.tellChanges()
	if o.DryRun {
		err = in.rehearse(ctx)
	} else {
		err = in.write(ctx)
	}
	if err == nil {
		err = in.recognise(ctx)
	}
	if err != nil {
		return nil, err
	}
	for i, err := range in.unfixed { // even if the record is registered so already
		in.errs[i] = err
	}
	in.dropEarlier()
	return in.errs, nil
}

// mayWriteSomewhere reports whether there is a namespace in which a principal may
// write. Bookmarks are never removed, so a caller that can't import leaves none.
func (s *namespaceTree) mayWriteSomewhere(who auth.Principal) bool {
	for _, sp := range s.All() {
		if auth.MayWrite(who, s.Ancestors(sp)...) {
			return true
		}
	}
	return false
}

// intake is one chunk under way.
type intake struct {
	*Registrar
	namespaceTree *namespaceTree
	o             ImportOptions
	records       []*stele.Record
	errs          []error
	unfixed       map[int]error   // why records were refused that stand for other bytes here
	before        []*stele.Record // what is registered; nil if nothing is, or the store was not asked
}

// find looks up what is registered, if that is to be updated.
func (in *intake) find(ctx context.Context) error {
	in.before = make([]*stele.Record, len(in.records))
	if !in.o.Update {
		if err := in.findSecrets(ctx); err != nil || in.o.Versions == nil {
			return err
		}
	}
	return in.lookUpAll(ctx, func(i int) bool { return in.o.Update || in.expects(i) != 0 }, func(i int, before *stele.Record) {
		if rec := in.records[i]; before.ID != rec.ID {
			in.errs[i] = in.aliased(ctx, rec, before)
		} else {
			in.before[i] = before
		}
	})
}

// lookUps is how many records are looked up at once: each is a query to the database,
// and most of its time is the network's.
const lookUps = 8

// lookUpAll calls found with each record of the chunk that is good and registered, and with
// what is registered under its identifier, for several at once.
func (in *intake) lookUpAll(ctx context.Context, good func(i int) bool, found func(i int, have *stele.Record)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(lookUps, 1+len(in.records)/lookUps) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1) - 1)
				if i >= len(in.records) {
					return
				}
				if !good(i) {
					continue
				}
				have, err := in.lookUp(ctx, "import", in.records[i].ID)
				switch {
				case err == nil:
					found(i, have)
				case !errors.Is(err, stele.NotFound):
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return tell("import", context.Cause(ctx))
}

// aliased refuses a record whose identifier is an alias of another one. Only a caller
// that may write there is told.
func (in *intake) aliased(ctx context.Context, rec, other *stele.Record) error {
	if err := mayWrite(ctx, "import", in.namespaceTree.lookup(), nil, rec); err != nil {
		return err
	}
	if !in.namespaceTree.maySee(ctx, other) {
		return takenName("import", rec.ID, rec.ID)
	}
	return refuse("import", rec.ID, stele.Conflict, "import.name-is-alias", "it is an alias of {id}; import it under that name", other.ID)
}

// prepare makes of each record the version to be written, and validates it. Records do
// not depend on each other here, so all processors help.
func (in *intake) prepare(ctx context.Context) {
	const many = 256
	workers := runtime.GOMAXPROCS(0)
	if len(in.records) < many {
		workers = 1
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(in.records); i += workers {
				if in.errs[i] == nil {
					in.errs[i] = in.ready(ctx, i)
				}
			}
		})
	}
	wg.Wait()
}

// ready judges one record.
func (in *intake) ready(ctx context.Context, i int) error {
	rec, before, at := in.records[i], in.before[i], in.namespaceTree.lookup()
	again, err := in.expected(ctx, i, at)
	if err != nil {
		return err
	}
	if before != nil && in.o.Lines != nil {
		patched, err := Patch(in.schemes, before, in.o.Lines[i])
		if err != nil {
			return err
		}
		*rec = *patched
	}
	if rec.State == "" {
		rec.State = stele.Active
	}
	earlier := in.earlier(i)
	if before == nil {
		in.firstEarlier(rec, earlier)
		in.first(ctx, rec)
	} else {
		if err := authorise(ctx, "import", rec.ID, at.ancestorsOf(rec.ID)); err != nil {
			return err // a caller that may not write is not told what is there
		}
		if err := in.keepValues(before, rec); err != nil {
			return err
		}
		if rec.State == stele.Reserved && before.State != stele.Reserved {
			return refuse("import", rec.ID, stele.Invalid, "import.record-not-reservable", "a record that is {state} does not become reserved", before.State)
		}
		rec.Redacted = false
		if rec.Withheld = in.withheld(before, rec); before.Redacted && !isBlank(rec) {
			return refuse("import", rec.ID, stele.Conflict, "import.content-redacted", "its content was removed by a legal order; an import does not bring it back")
		}
		for _, alias := range before.Aliases { // no name is detached
			if !slices.Contains(rec.Aliases, alias) {
				rec.Aliases = append(rec.Aliases, alias)
			}
		}
		rec.Signatures = withSignatures(rec.Signatures, before.Signatures)
		in.stamp(ctx, before, rec)
	}
	rec.Import = in.o.Import
	if t := rec.Tombstone; t != nil && t.At.IsZero() {
		t.At = rec.Modified
		if before != nil && before.Tombstone != nil {
			t.At = before.Tombstone.At
		}
	}
	if in.o.Secrets && before != nil {
		if err := in.keepSecrets(ctx, before, rec); err != nil {
			return err
		}
	}
	if !in.o.Secrets && hasClearSecret(rec) {
		return refuse("import", rec.ID, stele.Invalid, "import.secret-in-clear", "it has a handle value of type HS_SECKEY, and an import would keep that secret in clear; leave the value out, and write it with a Handle client, or let an administrator import it with --with-secrets")
	}
	if len(earlier) > 0 {
		if err := in.readyEarlier(ctx, at, rec, earlier); err != nil {
			return err
		}
	}
	if err := in.admitKept(ctx, "import", at, before, rec, in.o.Keep); err != nil {
		return err
	}
	if before != nil && sameRecord(before, rec) {
		rec.Version = before.Version
		return ErrUnchanged
	}
	if again {
		return in.outdated(i)
	}
	return nil
}

// tellChanges tells what changes in the records that an update changes.
func (in *intake) tellChanges() {
	if in.o.Changed == nil {
		return
	}
	for i, rec := range in.records {
		if in.errs[i] == nil && in.before[i] != nil {
			in.o.Changed(i, FieldChanges(in.before[i], rec))
		}
	}
}

// withheld returns what an imported version withholds, before what the version before it
// does is carried forward. Only an import with Keep may set it, and only for versions
// that there are.
func (in *intake) withheld(before, rec *stele.Record) (w stele.Withheld) {
	if !in.o.Keep {
		return w
	}
	for _, d := range rec.Withheld.Disavowed {
		if d.Last <= before.Version && !slices.ContainsFunc(before.Withheld.Disavowed, d.Equal) {
			w.Disavowed = append(w.Disavowed, d)
		}
	}
	return w
}

// first sets what the system keeps of a new record.
func (in *intake) first(ctx context.Context, rec *stele.Record) {
	now := in.now()
	rec.Version = 1
	rec.Withheld = stele.Withheld{} // there is no earlier version
	if !in.o.Keep {
		rec.Created, rec.Modified, rec.By, rec.Redacted = now, now, auth.From(ctx).Name, false
		return
	}
	if rec.Created.IsZero() {
		rec.Created = now
	}
	if rec.Modified.Before(rec.Created) {
		rec.Modified = rec.Created
	}
	if rec.By == "" {
		rec.By = auth.From(ctx).Name
	}
}

// rehearse looks for names that are taken, in the registry or earlier in the
// chunk.
func (in *intake) rehearse(ctx context.Context) error {
	seen := make(map[stele.ID]bool)
	for i, rec := range in.records {
		if in.errs[i] != nil {
			continue
		}
		for _, name := range rec.Names() {
			have, err := in.lookUp(ctx, "import", name)
			switch {
			case err == nil && (in.before[i] == nil || have.ID != rec.ID):
				in.errs[i] = in.hush(ctx, "import", refuse("import", rec.ID, stele.Conflict, "import.name-taken", "the name {name} is taken by {id}", name, have.ID), rec)
			case err != nil && !errors.Is(err, stele.NotFound):
				return err
			case seen[name]:
				in.errs[i] = refuse("import", rec.ID, stele.Conflict, "import.name-repeated", "the name {name} is in the import twice", name)
			}
		}
		if in.errs[i] == nil {
			for _, name := range rec.Names() {
				seen[name] = true
			}
		}
	}
	return nil
}

// write commits the chunk: new records first, then those with histories, then changes. The
// bookmark comes with the last of them.
func (in *intake) write(ctx context.Context) error {
	bookmark, err := in.bookmark(ctx)
	if err != nil {
		return err
	}
	if err := in.sealSecrets(ctx); err != nil {
		return err
	}
	var fresh, histories, changed []int
	for i := range in.records {
		switch {
		case in.errs[i] != nil:
		case len(in.earlier(i)) > 0:
			histories = append(histories, i)
		case in.before[i] == nil:
			fresh = append(fresh, i)
		default:
			changed = append(changed, i)
		}
	}
	early, later := bookmark, bookmark
	if len(changed) > 0 {
		early, later = nil, nil
	}
	if len(histories) > 0 {
		early = nil
	}
	if err := in.add(ctx, fresh, early); err != nil {
		return err
	}
	if err := in.addHistories(ctx, histories, later); err != nil {
		return err
	}
	return in.change(ctx, changed, bookmark)
}

// bookmark returns the state that the store is to have for the import.
func (in *intake) bookmark(ctx context.Context) (*stele.MinterState, error) {
	if in.o.Name == "" {
		return nil, nil
	}
	before, err := in.Bookmark(ctx, in.o.Name)
	if err != nil {
		return nil, err
	}
	if in.o.OnlyAfter && !bytes.Equal(before, in.o.Held) {
		return nil, refuse(opImport, stele.ID{}, stele.Conflict, "import.runs-twice", "the same was begun at another place meanwhile; wait until that has ended, and look again")
	}
	return &stele.MinterState{Name: bookmarkOf(ctx, in.o.Name), Before: before, After: in.o.Bookmark}, nil
}

// add ingests new records. A list without one is ingested too, for the bookmark.
func (in *intake) add(ctx context.Context, list []int, bookmark *stele.MinterState) error {
	if len(list) == 0 && bookmark == nil {
		return nil
	}
	records := make([]*stele.Record, len(list))
	for k, i := range list {
		records[k] = in.records[i]
	}
	if len(list) > 0 && len(list) <= few {
		if err := in.addFew(ctx, records, bookmark); err == nil || unsure(err) {
			return err
		}
	}
	model := entry(ctx, opImport, "")
	if in.o.Name != "" {
		model.Object = "import:" + in.o.Name
	}
	model.Bound()
	errs, err := in.store.Ingest(ctx, records, in.namespaceTree.counter, in.namespaceTree.touch(), bookmark, model)
	if err == nil {
		in.offer(records, errs)
	}
	in.Registrar.o.OnCommit(records...)
	if in.fenced(ctx, err) {
		return refuse("import", stele.ID{}, stele.Unavailable, "", "{cause}", stele.ErrFenced)
	}
	if err != nil {
		return tell("import", err)
	}
	for k, i := range list {
		in.errs[i] = in.hush(ctx, "import", errs[k], in.records[i])
	}
	return nil
}

// offer tells of the records that were certainly written.
func (in *intake) offer(records []*stele.Record, errs []error) {
	if in.Registrar.o.OnIngest == nil {
		return
	}
	written := make([]*stele.Record, 0, len(records))
	for k, r := range records {
		if errs[k] == nil {
			written = append(written, r)
		}
	}
	in.Registrar.o.OnIngest(written)
}

const opImport = "import"

// few is how many new records are committed like any others: to build tables for them
// takes longer than it saves.
const few = 3000

// addFew commits new records, all or none. If one can't be committed the store's Ingest
// finds out which.
func (in *intake) addFew(ctx context.Context, records []*stele.Record, bookmark *stele.MinterState) error {
	c := &stele.Commit{Records: records, Counter: in.namespaceTree.counter}
	if bookmark != nil {
		c.Minters = []stele.MinterState{*bookmark}
	}
	return in.commit(ctx, "import", c)
}

// change commits new versions, all together. If one can't be committed each is
// tried by itself, to find out which.
func (in *intake) change(ctx context.Context, list []int, bookmark *stele.MinterState) error {
	if len(list) == 0 {
		return nil
	}
	c := &stele.Commit{Counter: in.namespaceTree.counter}
	for _, i := range list {
		c.Records = append(c.Records, in.records[i])
	}
	if bookmark != nil {
		c.Minters = []stele.MinterState{*bookmark}
	}
	err := in.commit(ctx, "import", c)
	if err == nil || unsure(err) {
		return err
	}
	for _, i := range list {
		err := in.apply(ctx, "import", &stele.Commit{Records: []*stele.Record{in.records[i]}, Counter: in.namespaceTree.counter})
		if err != nil && unsure(err) {
			return err
		}
		in.errs[i] = err
	}
	if bookmark == nil {
		return nil
	}
	return in.apply(ctx, "import", &stele.Commit{Minters: c.Minters})
}
