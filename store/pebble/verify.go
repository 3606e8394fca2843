package pebble

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"os"
	"slices"
	"sync/atomic"

	pebbledb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/stele-id/stele"
)

// Verify implements [stele.Store]. It reads every block of every table, and then one
// state of the store, from the first key to the last:
//
//   - each record stands under its identifier, and its history has every version;
//   - of erased versions nothing but an entry is left, and a history of a namespace has
//     no gaps;
//   - each cell has a name and a size that a cell may have;
//   - the audit trail has no gaps, and says what was trimmed;
//   - the index of each zone ends with the change that its state names;
//   - the change feed has each version once, and no number is left out;
//   - what the records say makes exactly the aliases, reverse look-ups, times of
//     versions, marks and counts that there are.
//
// The last is found out by sums over what must be there and what is there, which
// takes no look-ups; only if they differ is everything looked up, to name what is
// wrong.
func (s *Store) Verify(ctx context.Context, report func(problem *stele.Message)) error {
	return s.VerifyProgress(ctx, report, func(float64) {})
}

// VerifyProgress is Verify for a caller that shows progress: progress is called now and
// then with the part of the work that is done, from 0 to 1, which is estimated.
func (s *Store) VerifyProgress(ctx context.Context, report func(problem *stele.Message), progress func(done float64)) error {
	return s.verify(ctx, &told{report: report, progress: progress}, (*checker).nameRanges)
}

// verify is VerifyProgress with names that are cut into ranges.
func (s *Store) verify(ctx context.Context, to *told, ranges func(c *checker) (ends [][]byte)) error {
	v, err := s.look(ctx, "verify")
	if err != nil {
		return err
	}
	defer v.unpin()
	c := &checker{ctx: ctx, s: s, v: v, told: to, seed: maphash.MakeSeed()}
	for _, part := range []func() error{c.tables, func() error { return c.families(ranges(c)) }, c.rest, c.compare} {
		if err := part(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// families looks at what the tables have, on all processors, at the names in ranges with these ends. What takes longest comes first.
func (c *checker) families(ends [][]byte) error {
	parts := []func(c *checker) error{(*checker).feed, (*checker).places}
	begin := []byte{familyName}
	for _, end := range ends {
		from := begin
		parts = append(parts, func(c *checker) error { return c.names(from, end) })
		begin = end
	}
	return c.beside(append(parts, (*checker).marks, (*checker).namespaces, (*checker).cells, (*checker).audit, (*checker).zones)...)
}

// checker is a Verify under way.
type checker struct {
	ctx  context.Context
	s    *Store
	v    *view
	told *told
	seed maphash.Seed

	// Damage keeps parts from being read, so that sums can't agree.
	damaged bool

	aliases, pointers, versions, marked balance

	namespaceVersions map[stele.NamespaceKey]uint64 // of the namespaces that there are
	counts            map[stele.NamespaceKey]uint64 // by the change feed
}

// balance is the sum of what must be there, less what is. The order of what is added
// does not matter.
type balance struct {
	must, have uint64 // sums of hashes
	n          int64
}

func (b *balance) isEven() bool { return b.must == b.have && b.n == 0 }

func (c *checker) must(b *balance, item []byte) {
	b.must += maphash.Bytes(c.seed, item)
	b.n++
}

func (c *checker) have(b *balance, item []byte) {
	b.have += maphash.Bytes(c.seed, item)
	b.n--
}

// problem reports a problem, unless the context has ended: what was not read seems to be missing then.
func (c *checker) problem(code, text string, args ...any) {
	if c.ctx.Err() != nil {
		return
	}
	c.told.problem(stele.Messagef(code, text, args...))
}

// tables checks that every table is there, has its size, and has its checksums.
func (c *checker) tables() error {
	if !c.v.begin() {
		return c.s.stopped("verify")
	}
	defer c.v.end()
	for _, problem := range c.s.tableProblems(c.v.opening) {
		c.damaged = true
		c.problem("", "{problem}.", problem)
	}
	levels, err := c.v.opening.db.SSTables()
	if err != nil {
		return nil // a table is missing: said above, and named when it is to be read
	}
	list := slices.Concat(levels...)
	var size uint64
	var done atomic.Uint64
	for _, t := range list {
		size += t.Size
	}
	parts := make([]func(c *checker) error, len(list))
	for i, t := range list {
		parts[i] = func(c *checker) error {
			if err := c.ctx.Err(); err != nil {
				return err
			}
			c.told.advance(part(done.Add(t.Size), size) / 2) // the other half is to look at what they have
			name := c.s.tablePath(&t)
			err := c.table(name)
			if err != nil && !errors.Is(err, os.ErrNotExist) { // merged with others meanwhile, or named above
				c.damaged = true
				c.problem("verify.file-damaged", `the file "{file}" is damaged: {cause}.`, name, err)
			}
			return nil
		}
	}
	return c.beside(parts...)
}

// part returns which part of a whole is done.
func part(done, whole uint64) float64 { return float64(min(done, whole)) / float64(max(1, whole)) }

func (c *checker) table(name string) error {
	f, err := c.s.fs.Open(name)
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r, err := sstable.NewReader(c.ctx, readable, c.v.opening.options.MakeReaderOptions())
	if err != nil {
		return errors.Join(err, readable.Close())
	}
	if all, err := r.ReadPropertiesBlock(c.ctx, nil); err == nil { // it is for the estimate only
		c.told.entries.Add(all.NumEntries)
	}
	return errors.Join(r.ValidateBlockChecksums(), r.Close())
}

// walk calls f for all that is kept from one key to before another. It continues after
// a damaged table. No read is under way while f is called, so it may read.
func (c *checker) walk(from, end []byte, f func(key, value []byte)) error {
	for from != nil {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		page, next, err := c.page(from, end)
		if err != nil {
			return err
		}
		for _, e := range page {
			f(e.key, e.value)
		}
		from = next
	}
	return nil
}

// page returns a part of what is kept, and where the next one begins, nil at the end.
func (c *checker) page(from, end []byte) (page []keyValue, next []byte, err error) {
	var a arena
	defer func() {
		c.told.advance(0.5 + part(c.told.walked.Add(uint64(len(page))), c.told.entries.Load())/2)
	}()
	last := from
	next, err = readPage(c.ctx, c.s, c.v, "verify", from, end, 4096, func(key, value []byte) error {
		last = a.keep(key)
		page = append(page, keyValue{last, a.keep(value)})
		return nil
	})
	if err == nil || stele.KindOf(err) != stele.Internal {
		return page, next, err
	}
	c.damaged = true
	c.problem("verify.unreadable-after-key", "after {key}: {cause}.", describeKey(last), err)
	if next = c.afterDamage(err, last); next != nil && bytes.Compare(next, end) >= 0 {
		next = nil
	}
	return page, next, nil
}

// afterDamage returns the first key after the damaged table that the error names, nil if it
// names none.
func (c *checker) afterDamage(err error, last []byte) []byte {
	info, ok := errors.AsType[*tableError](err)
	if !ok || bytes.Compare(info.end, last) < 0 {
		return nil
	}
	return after(info.end)
}

// names checks the records from one key to before another, each with its history, which stands in the same order.
func (c *checker) names(from, end []byte) error {
	h := &historyReader{c: c, next: []byte{familyHistory}, end: historyEnd(end)}
	if len(from) > 1 {
		h.next = historyEnd(from)
	}
	err := c.walk(from, end, func(key, value []byte) {
		if h.err != nil {
			return
		}
		if len(value) > 0 && value[0] == isAlias {
			c.have(&c.aliases, append(bytes.Clone(key), value...))
			return
		}
		r, err := decodeNamed(key, value)
		if err != nil {
			c.problem("", "{cause}.", err)
			return
		}
		if !bytes.Equal(key, nameKey(r.ID)) {
			c.problem("verify.key-has-other-record", `{key} has the record of another name, "{id}".`, describeKey(key), r.ID)
			return
		}
		if r.Version == 0 || r.Version > c.v.seq {
			c.problem("verify.record-version-too-high", `the record "{id}" has the version {version}; there were {changes} changes in all.`, r.ID, r.Version, c.v.seq)
			return
		}
		c.record(r)
		h.check(r)
	})
	if err == nil {
		err = h.err
	}
	if err == nil {
		h.rest()
		err = h.err
	}
	return err
}

// record adds what must be there because of a record.
func (c *checker) record(r *stele.Record) {
	key := nameKey(r.ID)
	for _, alias := range r.Aliases {
		c.must(&c.aliases, append(nameKey(alias), aliasValue(key)...))
	}
	var e encoder
	for _, place := range e.locate(r) {
		c.must(&c.pointers, place)
	}
	for version := range r.Version {
		c.must(&c.versions, versionItem(key, version+1))
	}
	if !r.Withheld.IsZero() {
		c.must(&c.marked, withheldKey(r.ID))
	}
}

// versionItem stands for a version of what has the key.
func versionItem(key []byte, version uint64) []byte {
	return appendChangeKey(bytes.Clone(key), version)
}

// places adds the reverse look-ups that are there.
func (c *checker) places() error {
	return c.walk([]byte{familyURL}, []byte{familyHost + 1}, func(key, value []byte) {
		c.have(&c.pointers, key)
		if len(value) > 0 {
			c.problem("verify.key-has-value", "{key} has a value; it should have none.", describeKey(key))
		}
	})
}

// marks adds the times of versions and the marks of records that withhold something.
func (c *checker) marks() error {
	return c.walk([]byte{familyMark}, []byte{familyMark + 1}, func(key, value []byte) {
		c.have(&c.marked, key)
		if len(value) > 0 {
			c.problem("verify.key-has-value", "{key} has a value; it should have none.", describeKey(key))
		}
	})
}

// namespaces checks the namespaces with their history, and adds the versions that they had.
func (c *checker) namespaces() error {
	c.namespaceVersions = make(map[stele.NamespaceKey]uint64)
	err := c.walk([]byte{familyNamespace}, []byte{familyNamespace + 1}, func(key, value []byte) {
		n, err := decodeNamespace(value)
		if err != nil {
			c.problem("verify.key-unreadable", "{key} can't be read: {cause}.", describeKey(key), err)
			return
		}
		if !bytes.Equal(key, namespaceKey(n.Key())) {
			c.problem("verify.key-has-other-namespace", `{key} has the namespace of another name, "{namespace}".`, describeKey(key), n.Key())
			return
		}
		if n.Version == 0 || n.Version > c.v.seq {
			c.problem("verify.namespace-version-too-high", `the namespace "{namespace}" has the version {version}; there were {changes} changes in all.`, n.Key(), n.Version, c.v.seq)
			return
		}
		c.namespaceVersions[n.Key()] = n.Version
		for version := range n.Version {
			c.must(&c.versions, versionItem(key, version+1))
		}
	})
	if err != nil {
		return err
	}
	return c.namespaceHistory()
}

// namespaceHistory checks the superseded versions of namespaces: each stands under its own
// key, and from the first that is kept none is missing.
func (c *checker) namespaceHistory() error {
	var last stele.NamespaceKey
	var want uint64
	return c.walk([]byte{familyNamespaceHistory}, []byte{familyNamespaceHistory + 1}, func(key, value []byte) {
		n, err := decodeNamespace(value)
		if err != nil {
			c.problem("verify.key-unreadable", "{key} can't be read: {cause}.", describeKey(key), err)
			return
		}
		if !bytes.Equal(key, namespaceHistoryKey(n.Key(), n.Version)) {
			c.problem("verify.key-has-other-namespace-version", `{key} has version {version} of the namespace "{namespace}".`, describeKey(key), n.Version, n.Key())
			return
		}
		if last != n.Key() {
			last, want = n.Key(), c.namespaceVersions[n.Key()]-1
		}
		if n.Version != want && !c.damaged {
			c.problem("verify.namespace-history-gap", `the history of the namespace "{namespace}" has version {version} where {expected} should be.`, n.Key(), n.Version, want)
		}
		want = n.Version - 1
	})
}

// feed checks the change feed, and adds the versions that it has.
func (c *checker) feed() error {
	c.counts = make(map[stele.NamespaceKey]uint64)
	seq := uint64(0)
	err := c.walk([]byte{familyChange}, []byte{familyChange + 1}, func(key, value []byte) {
		entries, err := parseChunk(key, value)
		if err != nil {
			c.problem("verify.key-unreadable", "{key} can't be read: {cause}.", describeKey(key), err)
			return
		}
		for _, e := range entries {
			if e.Seq != seq+1 {
				c.problem("verify.feed-gap", "the change feed has number {change} after {before}; changes are missing, or there twice.", e.Seq, seq)
			}
			seq = e.Seq
			c.have(&c.versions, versionItem(e.key(), e.Version))
			if e.Counted != (stele.NamespaceKey{}) && e.Version == 1 {
				c.counts[e.Counted]++
			}
			for _, space := range e.CountedAliases {
				c.counts[space]++
			}
		}
	})
	if err == nil && seq != c.v.seq && !c.damaged {
		c.problem("verify.feed-end-differs", "the change feed ends with number {change}; the last change has {last}.", seq, c.v.seq)
	}
	return err
}

// key is the key of what changed.
func (e *feedEntry) key() []byte {
	if e.ID.IsValid() {
		return nameKey(e.ID)
	}
	return namespaceKey(e.Namespace)
}

// rest checks what is left: counts, minters, and that there is nothing else.
func (c *checker) rest() error {
	err := c.walk([]byte{familyCount}, []byte{familyCount + 1}, func(key, value []byte) {
		scheme, prefix, err1 := cutSchemed(key[1:])
		n, err2 := parseCount(value)
		if err := errors.Join(err1, err2); err != nil {
			c.problem("verify.key-unreadable", "{key} can't be read: {cause}.", describeKey(key), err)
			return
		}
		space := stele.NamespaceKey{Scheme: scheme, Prefix: prefix}
		if want := c.counts[space]; n != want && !c.damaged {
			c.problem("verify.count-differs", `the namespace "{namespace}" counts {count} names, and the change feed has {expected} that count for it.`, space, n, want)
		}
		delete(c.counts, space)
	})
	if err != nil {
		return err
	}
	for space, n := range c.counts {
		if !c.damaged {
			c.problem("verify.count-missing", `the namespace "{namespace}" has no count, and the change feed has {expected} names that count for it.`, space, n)
		}
	}
	if list, err := readGenerations(c.v.snap); err != nil {
		c.problem("verify.generations-unreadable", "the generations can't be read: {cause}.", err)
	} else if list.Last().ID != c.v.generation {
		c.problem("verify.generation-differs", "the present generation is {generation}, and the list of generations ends with {last}.", c.v.generation, list.Last().ID)
	}
	for _, gap := range [][2]byte{{0, familyMeta}, {familyMeta, familyChange}, {familyMark + 1, familyName}, {familyHost + 1, 0xff}} {
		err := c.walk([]byte{gap[0]}, []byte{gap[1]}, func(key, _ []byte) {
			known := slices.ContainsFunc(metaKeys, func(k []byte) bool { return bytes.Equal(k, key) })
			if !known && !c.v.opening.later {
				c.problem("verify.key-unknown", "{key} is none that the store writes.", describeKey(key))
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// compare says what does not agree.
func (c *checker) compare() error {
	if c.damaged {
		c.problem("verify.not-compared-for-damage", "because of the damage it is not known whether indexes, change feed and counts agree with the records.")
		return nil
	}
	if !c.aliases.isEven() || !c.pointers.isEven() || !c.versions.isEven() || !c.marked.isEven() {
		return c.compareSlowly()
	}
	return nil
}

// tableError is an error about a damaged table, with the last key of it.
type tableError struct {
	end []byte
	err error
}

func (e *tableError) Error() string { return e.err.Error() }
func (e *tableError) Unwrap() error { return e.err }

func newTableError(info *pebbledb.DataCorruptionInfo) error {
	return &tableError{bytes.Clone(info.Bounds.End.Key), info.Details}
}
