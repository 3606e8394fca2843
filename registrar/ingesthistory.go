package registrar

import (
	"context"
	"slices"

	"github.com/stele-id/stele"
)

// Limits on what is written of a record that comes with its history.
const (
	maxHistory    = 8 << 20 // bytes of all versions of a record, as they are stored
	historyCommit = 4 << 20 // bytes of a commit, unless one record has more
)

// earlier returns the versions of a new record that come before the one in records; nil if
// there are none, or if they are not written.
func (in *intake) earlier(i int) []*stele.Record {
	if in.o.Earlier == nil || !in.o.Keep || in.before[i] != nil {
		return nil
	}
	return in.o.Earlier[i]
}

// firstEarlier fills in the dates of a new record that its history knows.
func (in *intake) firstEarlier(rec *stele.Record, list []*stele.Record) {
	if len(list) == 0 {
		return
	}
	if rec.Created.IsZero() && list[0] != nil {
		rec.Created = list[0].Modified
	}
	if rec.Modified.IsZero() {
		rec.Modified = in.now()
	}
}

// readyEarlier makes of the history of a new record the versions to be written before it, and
// validates them. What another registry's versions said is kept; what only this one knows, such
// as the number of a version, is set.
func (in *intake) readyEarlier(ctx context.Context, at *lookup, rec *stele.Record, list []*stele.Record) error {
	switch {
	case len(list) > stele.MaxEarlier:
		return refuse(opImport, rec.ID, stele.Invalid, "import.too-many-earlier", "it has {count} earlier versions; {most} are the most", len(list), stele.MaxEarlier)
	case in.o.Import == 0 && !in.o.DryRun: // the number marks them as imported
		return refuse(opImport, rec.ID, stele.Invalid, "import.earlier-without-number", "it has earlier versions, and only an import with a number may bring those; begin an import first")
	case rec.Redacted:
		return refuse(opImport, rec.ID, stele.Invalid, "import.earlier-of-redacted", "its content was removed by a legal order, so its earlier versions are not imported; leave them out")
	}
	var before *stele.Record
	size := 0
	for k, v := range list {
		if err := in.readyVersion(ctx, at, before, rec, v, uint64(k)+1); err != nil {
			return refuse(opImport, rec.ID, stele.KindOf(err), "import.earlier-invalid", "version {version} of its history: {cause}", k+1, stele.Reason(err))
		}
		if size += v.StoredSize(); size > maxHistory {
			return refuse(opImport, rec.ID, stele.Invalid, "import.history-too-large", "its earlier versions have more than {most} bytes; leave some out", maxHistory)
		}
		before = v
	}
	if err := follows(before, rec); err != nil {
		return err
	}
	rec.Version = uint64(len(list)) + 1
	return nil
}

// readyVersion judges one version of a history.
func (in *intake) readyVersion(ctx context.Context, at *lookup, before, rec, v *stele.Record, number uint64) error {
	if v == nil || v.Modified.IsZero() {
		return refuse(opImport, rec.ID, stele.Invalid, "import.earlier-without-date", "it does not say when it was made; give the date in modified")
	}
	v.ID, v.Spelling, v.Version, v.Created = rec.ID, rec.Spelling, number, rec.Created
	v.Import, v.Redacted, v.Withheld = in.o.Import, false, stele.Withheld{}
	if v.State == "" {
		v.State = stele.Active
	}
	if before != nil {
		if err := follows(before, v); err != nil {
			return err
		}
	}
	if v.Modified.Before(rec.Created) {
		return refuse(opImport, rec.ID, stele.Invalid, "import.earlier-before-creation", "its date is before that of the record's creation; correct one of them")
	}
	if t := v.Tombstone; t != nil && t.At.IsZero() {
		t.At = v.Modified
	}
	if hasClearSecret(v) {
		return refuse(opImport, rec.ID, stele.Invalid, "import.earlier-secret", "it has a handle value of type HS_SECKEY; leave the value out")
	}
	return in.admitKept(ctx, opImport, at, before, v, true)
}

// follows makes sure that a version can come after another one. It keeps the names of that one:
// no name is detached.
func follows(before, next *stele.Record) error {
	if next.Modified.Before(before.Modified) {
		return refuse(opImport, next.ID, stele.Invalid, "import.earlier-out-of-order", "its date is before that of the version before it; give versions with the oldest first")
	}
	if next.State == stele.Reserved && before.State != stele.Reserved {
		return refuse(opImport, next.ID, stele.Invalid, "import.record-not-reservable", "a record that is {state} does not become reserved", before.State)
	}
	for _, alias := range before.Aliases {
		if !slices.Contains(next.Aliases, alias) {
			next.Aliases = append(next.Aliases, alias)
		}
	}
	return nil
}

// addHistories commits new records with their histories: each record with all of its versions,
// or with none.
func (in *intake) addHistories(ctx context.Context, list []int, bookmark *stele.MinterState) error {
	for len(list) > 0 {
		n := in.historyPart(list)
		part, last := list[:n], n == len(list)
		list = list[n:]
		c := in.historyCommit(part)
		if last && bookmark != nil {
			c.Minters = []stele.MinterState{*bookmark}
		}
		err := in.commit(ctx, opImport, c)
		if err == nil {
			continue
		}
		if unsure(err) {
			return err
		}
		for _, i := range part { // to find out which
			err := in.apply(ctx, opImport, in.historyCommit([]int{i}))
			if err != nil && unsure(err) {
				return err
			}
			in.errs[i] = err
		}
		if c.Minters != nil {
			return in.apply(ctx, opImport, &stele.Commit{Minters: c.Minters})
		}
	}
	return nil
}

// historyPart returns how many of the records are committed together, at least one.
func (in *intake) historyPart(list []int) int {
	versions, size := 0, 0
	for n, i := range list {
		for _, v := range in.earlier(i) {
			size += v.StoredSize()
		}
		size += in.records[i].StoredSize()
		versions += len(in.earlier(i)) + 1
		if n > 0 && (versions > few || size > historyCommit) {
			return n
		}
	}
	return len(list)
}

func (in *intake) historyCommit(list []int) *stele.Commit {
	c := &stele.Commit{Counter: in.namespaceTree.counter}
	for _, i := range list {
		c.Records = append(append(c.Records, in.earlier(i)...), in.records[i])
	}
	return c
}

// dropEarlier removes from the options the histories that are not written, so that the caller
// knows which are.
func (in *intake) dropEarlier() {
	for i := range in.o.Earlier {
		if in.errs[i] != nil || in.earlier(i) == nil {
			in.o.Earlier[i] = nil
		}
	}
}
