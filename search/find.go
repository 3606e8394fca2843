package search

import (
	"context"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
)

// Sight is what a caller may find.
type Sight interface {
	// Everything reports whether the caller may find all records.
	Everything() bool

	// Prefixes returns what the identifiers begin with that the caller may find, if that is not
	// everything.
	Prefixes() []stele.NamespaceKey

	// Lists reports whether the caller may find the record with an identifier.
	Lists(id stele.ID) bool
}

// Page is a page of what was found, the last changed first.
type Page struct {
	Records []*stele.Record // which the caller must not change

	// Documents has the cursor with which a search goes on after each of the records, for
	// callers that want no more of them.
	Documents []uint64

	// Next is the Cursor of the next page; 0 if this is the last one. A page may have fewer
	// records than its limit, even none, and another one follow: the search of a page ends
	// after some work. Records that are added or changed between two pages are not on those
	// that follow, and no record is on two pages.
	Next uint64

	At   stele.Position // all changes up to this one are in the index
	Last uint64         // the last change of the registry when the search began

	// Looked is how many documents were looked at: those that have all words and are in a
	// namespace of the caller.
	Looked int
}

// Behind returns how many changes of the registry were not searched.
func (p *Page) Behind() uint64 { return p.Last - min(p.Last, p.At.Change) }

// Bounds of the work for one page.
const (
	maxReads    = 5000    // records
	maxKeys     = 500_000 // words that begin with a prefix, and identifiers; a block is searched whole
	maxBlocks   = 20_000
	maxPrefixes = 200 // of namespaces, for which the index is asked; for more, identifiers tell
	pageTime    = 5 * time.Second
)

// Patience is how long Find waits for changes to be indexed that were committed before it
// began.
const Patience = 2 * time.Second

// Find returns a page of the records that a query asks for and that the caller may find. It
// waits for changes that are not indexed yet, for as long as [Patience]; the page says whether
// some are left out. Invalid if the query has too many words.
func (x *Index) Find(ctx context.Context, q *Query, sight Sight) (Page, error) {
	clauses, err := q.parse()
	if err != nil {
		return Page{}, err
	}
	now, err := x.await(ctx)
	if err != nil {
		return Page{}, err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	at := x.at.Load()
	if x.db == nil || at == nil || x.broken.Load() != nil {
		return Page{}, refuse(stele.Unavailable, "search.index-being-made", "the search index is being made; try again in a moment")
	}
	s := &seeking{index: x, q: q, clauses: clauses, sight: sight, match: newMatcher(q, clauses), now: now, limit: min(max(q.Limit, 1), MaxLimit)}
	if err := s.run(ctx); err != nil {
		if errors.Is(err, errDamaged) || pebble.IsCorruptionError(err) {
			x.breakOff(err)
			return Page{}, refuse(stele.Unavailable, "search.index-being-made", "the search index is being made; try again in a moment")
		}
		return Page{}, stele.AsError("search", err)
	}
	s.page.At, s.page.Last = stele.Position{Generation: s.at.generation, Change: s.at.mark.Seq}, max(now.Change, s.at.mark.Seq)
	return s.page, nil
}

// await waits for what was committed before it was called, and returns the position of the registry
// when it was.
func (x *Index) await(ctx context.Context) (now stele.Position, err error) {
	if now, err = x.o.Source.Position(ctx); err != nil {
		return now, err
	}
	if at := x.at.Load(); at != nil && at.generation == now.Generation && at.mark.Seq >= now.Change && x.broken.Load() == nil {
		return now, nil
	}
	waiting, cancel := context.WithTimeout(ctx, x.patience)
	defer cancel()
	if err := x.CatchUp(waiting); err != nil && waiting.Err() == nil {
		return now, err
	}
	return now, ctx.Err()
}

// seeking is a search for a page.
type seeking struct {
	index   *Index
	q       *Query
	clauses []clause
	sight   Sight
	match   *matcher
	limit   int
	now     stele.Position // of the registry when the search began

	at      position
	current bool      // the index has all changes that were committed before the search began, and the source does not lag
	lagged  time.Time // when the source lagged last, as the search began

	it     *pebble.Iterator // with filters, for single keys
	terms  [][]byte         // that a document must have, without prefixes
	begins [][]byte         // beginnings of terms of which it must have one each
	dates  [][][]byte       // terms of which it must have one each
	within [][]byte         // terms of which it must have one; nil: see sight and names
	names  func(scheme, text string) bool

	key     []byte
	keys    int // that were read for prefixes, and identifiers
	reads   int // records
	page    Page
	looked  []candidate // that are read together
	names8  [256]string // of the present page of identifiers
	paged   uint64      // which one it is, plus 1
	members set
	other   set
	more    set
}

// run searches.
func (s *seeking) run(ctx context.Context) (err error) {
	// An iterator sees one state of the index.
	if s.it, err = s.index.db.NewIter(&pebble.IterOptions{UseL6Filters: true}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.it.Close()) }()
	text, err := s.get(keyPosition)
	if err != nil {
		return err
	}
	var ok bool
	if s.at, ok = readPosition(text); !ok {
		return errDamaged
	}
	var lags bool
	s.lagged, lags = s.index.lagging()
	s.current = !lags && s.at.generation == s.now.Generation && s.at.mark.Seq >= s.now.Change
	if !s.prepare() {
		return nil
	}
	working, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	below := s.at.mark.Seq + 1 // documents before this one are searched
	if s.q.Cursor > 0 {
		below = min(below, s.q.Cursor)
	}
	begin := below
	for blocks := 0; below > 0; blocks++ {
		block := uint32((below - 1) >> blockBits) // which nearly always has documents
		if blocks > 0 {
			var found bool
			if block, found, err = s.blockBefore(below); err != nil || !found {
				return err
			}
		}
		if below < begin && (blocks == maxBlocks || s.keys >= maxKeys || working.Err() != nil) {
			s.page.Next = below
			return ctx.Err()
		}
		end := blockSize
		if uint64(block) == below>>blockBits {
			end = int(below % blockSize)
		}
		full, err := s.searchBlock(working, block, end)
		if err != nil && ctx.Err() == nil && working.Err() != nil && s.page.Next < begin {
			return nil // the next page goes on
		}
		if err != nil || full {
			return err
		}
		below = uint64(block) << blockBits
	}
	return nil
}

// prepare makes terms of the query and of what the caller may find. It returns false if that is
// nothing.
func (s *seeking) prepare() bool {
	filter := func(kind byte, value string) []byte { return appendFilter(nil, kind, value) }
	add := func(kind byte, value string) {
		if value != "" {
			s.terms = append(s.terms, filter(kind, value))
		}
	}
	for _, c := range s.clauses {
		for _, t := range c {
			key := append([]byte{kindWord}, t.word...)
			if t.prefix {
				s.begins = append(s.begins, key)
			} else {
				s.terms = append(s.terms, key)
			}
		}
	}
	add(filterBy, s.q.By)
	add(filterHost, s.q.Host)
	add(filterState, string(s.q.State))
	add(filterVisibility, string(s.q.Visibility))
	for kind, span := range map[byte][2]time.Time{
		filterModified: {s.q.ModifiedFrom, s.q.ModifiedBefore},
		filterCreated:  {s.q.CreatedFrom, s.q.CreatedBefore},
	} {
		if list, ok := datesWithin(span[0], span[1]); ok {
			var terms [][]byte
			for _, date := range list {
				terms = append(terms, filter(kind, date))
			}
			s.dates = append(s.dates, terms)
		}
	}
	spaces := s.index.spaces.Load()
	space := func(key stele.NamespaceKey) []byte { return filter(filterPrefix, key.Scheme+"\x00"+key.Prefix) }
	wanted := s.q.Namespace
	switch {
	case wanted.Scheme == "":
	case wanted.Prefix == "":
		add(filterScheme, wanted.Scheme)
	case spaces.known[wanted]:
		s.terms = append(s.terms, space(wanted))
	default:
		s.names = func(scheme, text string) bool { return isBelow(scheme, text, wanted) }
	}
	if s.sight.Everything() {
		return true
	}
	list := s.sight.Prefixes()
	for _, key := range list {
		if key.Prefix == "" || !spaces.known[key] || len(list) > maxPrefixes {
			s.within = nil
			s.names = alsoBelow(s.names, list)
			break
		}
		s.within = append(s.within, space(key))
	}
	return len(list) > 0
}

// alsoBelow returns a function that asks for names that begin with one of the prefixes, too.
func alsoBelow(names func(scheme, text string) bool, list []stele.NamespaceKey) func(scheme, text string) bool {
	return func(scheme, text string) bool {
		if names != nil && !names(scheme, text) {
			return false
		}
		for _, key := range list {
			if isBelow(scheme, text, key) {
				return true
			}
		}
		return false
	}
}

// get returns what is kept under a key; nil if nothing is. It is valid until the next call.
func (s *seeking) get(key []byte) ([]byte, error) {
	if !s.it.SeekPrefixGE(key) {
		return nil, s.it.Error()
	}
	value, err := s.it.ValueAndErr()
	if err == nil && value == nil {
		value = []byte{}
	}
	return value, err
}

// blockBefore returns the last block that has documents before one.
func (s *seeking) blockBefore(below uint64) (block uint32, found bool, err error) {
	last := below - 1
	s.key = append(appendBlock(s.key[:0], familyBlock, uint32(last>>blockBits)), 0xff)
	if !s.it.SeekLT(s.key) {
		return 0, false, s.it.Error()
	}
	key := s.it.Key()
	if key[0] != familyBlock { // it is of another family, before all blocks
		return 0, false, nil
	}
	if len(key) <= blockHead {
		return 0, false, errDamaged
	}
	return uint32(key[1])<<24 | uint32(key[2])<<16 | uint32(key[3])<<8 | uint32(key[4]), true, nil
}

// addTerm adds the documents of a term of a block to a set, and reports whether there are any.
func (s *seeking) addTerm(to *set, block uint32, term []byte) (bool, error) {
	s.key = append(appendBlock(s.key[:0], familyBlock, block), term...)
	value, err := s.get(s.key)
	if err != nil {
		return false, err
	}
	if value != nil && !to.addStored(value) {
		return false, errDamaged
	}
	if term[0] != kindWord {
		return value != nil, nil
	}
	packed, err := s.addPacked(to, block, term[1:])
	return packed || value != nil, err
}

// candidates finds the documents of a block that have all terms, and that the caller may find.
// What the caller may find comes first: of a block without such documents nothing is read that
// depends on others.
func (s *seeking) candidates(block uint32) (found bool, err error) {
	begun := false
	keep := func(some *set) bool {
		if !begun {
			s.members, begun = *some, true
			return !s.members.isEmpty()
		}
		return s.members.retain(some)
	}
	groups := s.dates
	if s.within != nil {
		groups = append([][][]byte{s.within}, groups...)
	}
	for _, group := range groups {
		s.other = set{}
		for _, term := range group {
			if _, err := s.addTerm(&s.other, block, term); err != nil {
				return false, err
			}
		}
		if !keep(&s.other) {
			return false, nil
		}
	}
	for _, term := range s.terms {
		s.other = set{}
		if some, err := s.addTerm(&s.other, block, term); err != nil || !some || !keep(&s.other) {
			return false, err
		}
	}
	for _, beginning := range s.begins {
		s.other = set{}
		if err := s.addBeginning(block, beginning); err != nil || !keep(&s.other) {
			return false, err
		}
	}
	if !begun {
		s.other = set{}
		if some, err := s.addTerm(&s.other, block, []byte{kindAll}); err != nil || !some || !keep(&s.other) {
			return false, err
		}
	}
	dead, err := s.get(appendBlock(s.key[:0], familyDead, block))
	if err != nil || dead == nil {
		return true, err
	}
	s.more = set{}
	if !s.more.addStored(dead) {
		return false, errDamaged
	}
	s.members.remove(&s.more)
	return true, nil
}

// addBeginning adds the documents of all words of a block that begin so.
func (s *seeking) addBeginning(block uint32, beginning []byte) error {
	from := append(appendBlock(nil, familyBlock, block), beginning...)
	end := upper(from)
	for ok := s.it.SeekGE(from); ok && string(s.it.Key()) < string(end); ok = s.it.Next() {
		value, err := s.it.ValueAndErr()
		if err != nil {
			return err
		}
		if !s.other.addStored(value) {
			return errDamaged
		}
		s.keys++
	}
	if err := s.it.Error(); err != nil {
		return err
	}
	return s.addPackedBeginning(&s.other, block, beginning[1:])
}
