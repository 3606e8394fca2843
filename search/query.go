package search

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// Limits of a query.
const (
	MaxText   = 1000 // bytes of Text
	MaxTerms  = 32   // words in Text
	MaxLimit  = 1000 // records on a page
	MaxFilter = 1000 // bytes of Host, and of By
)

// Visibility says whether a record is restricted to some readers.
type Visibility string

// The values of Visibility.
const (
	Public     Visibility = "public"
	Restricted Visibility = "restricted"
)

// Query asks for records. The zero Query asks for all.
type Query struct {
	// Text has words, all of which a record must have, in its names, its metadata or the URLs
	// of its targets, in upper or lower case and with or without diacritics. With a * at its
	// end a word stands for all that begin with it. Words in double quotes must follow each
	// other in one field, and so must the words of a URL, a host or a name, which has no
	// spaces.
	Text string

	Namespace  stele.NamespaceKey // what the identifier begins with; a scheme without a prefix; zero: any
	State      stele.State        // "": any
	Visibility Visibility         // "": any
	Host       string             // that a target is on, in lower case; "": any
	By         string             // the principal of the last change; "": any

	// Times of the last change, and of the first one: from the first time on, and before the
	// second one; zero: without limit.
	ModifiedFrom, ModifiedBefore time.Time
	CreatedFrom, CreatedBefore   time.Time

	Limit  int    // records on a page, at most
	Cursor uint64 // Next of the page before; 0 for the first page
}

// term is a word that a record must have.
type term struct {
	word   string
	prefix bool // any word that begins with it
}

// clause is terms that must follow each other in one field.
type clause []term

// parse reads the text of a query. Invalid if it is too long.
func (q *Query) parse() ([]clause, error) {
	switch {
	case len(q.Text) > MaxText:
		return nil, refuse(stele.Invalid, "search.text-too-long", "the text has {size} bytes; {most} are the most: leave words out", len(q.Text), MaxText)
	case len(q.Host) > MaxFilter || len(q.By) > MaxFilter || len(q.Namespace.Scheme) > MaxFilter || len(q.Namespace.Prefix) > stele.MaxText:
		return nil, refuse(stele.Invalid, "search.filter-too-long", "a filter has more than {most} bytes", MaxFilter)
	}
	var list []clause
	count := 0
	for rest := q.Text; rest != ""; {
		var part string
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			part, rest, _ = strings.Cut(quoted, `"`)
		} else if n := strings.IndexAny(rest, " \t\r\n\""); n < 0 {
			part, rest = rest, ""
		} else if part = rest[:n]; rest[n] != '"' {
			rest = rest[n+1:]
		} else {
			rest = rest[n:]
		}
		if c := newClause(part); len(c) > 0 {
			list = append(list, c)
			count += len(c)
		}
	}
	if count > MaxTerms {
		return nil, refuse(stele.Invalid, "search.too-many-words", "the text has {count} words; {most} are the most: leave some out", count, MaxTerms)
	}
	return list, nil
}

// newClause returns the terms of a part of a text.
func newClause(part string) (c clause) {
	s := splitter{add: func(word []byte, tail bool, run int) {
		if tail && run > 1 {
			return // the character before has it
		}
		c = append(c, term{word: string(word), prefix: tail})
	}}
	if i := strings.Index(part, "://"); i >= 0 {
		part = urlText(part)
	}
	s.text(part)
	if r := strings.TrimRight(part, " \t\r\n"); len(c) > 0 && strings.HasSuffix(r, "*") {
		c[len(c)-1].prefix = true
	}
	return c
}

// fits reports whether a word is one that the term asks for.
func (t *term) fits(word []byte) bool {
	if t.prefix {
		return len(word) >= len(t.word) && string(word[:len(t.word)]) == t.word
	}
	return string(word) == t.word
}

// kernel are the metadata that every description should have.
var kernel = [...]string{stele.What, stele.Who, stele.When, stele.Where}

// fields yields the texts of a record whose words count, in the same order each time.
func fields(r *stele.Record, yield func(text string) bool) {
	if !yield(r.ID.String()) || r.Spelling != "" && !yield(r.Spelling) {
		return
	}
	for _, alias := range r.Aliases {
		if !yield(alias.String()) {
			return
		}
	}
	// Those that every description should have come first: of a very long one not all counts.
	rest := len(r.Metadata)
	for _, key := range kernel {
		text, ok := r.Metadata[key]
		if ok {
			rest--
		}
		if text != "" && !yield(text) {
			return
		}
	}
	if rest > 0 {
		for _, key := range slices.Sorted(maps.Keys(r.Metadata)) {
			if !slices.Contains(kernel[:], key) && !yield(r.Metadata[key]) {
				return
			}
		}
	}
	for i := range r.Targets {
		if !yield(urlText(r.Targets[i].URL)) {
			return
		}
	}
}

// matcher holds a record against a query.
type matcher struct {
	q       *Query
	clauses []clause
	left    []bool // clauses that no field had yet
	words   []byte // of a field, each with its length before it
	starts  []int
	tails   []bool
	count   int
	split   splitter
}

func newMatcher(q *Query, clauses []clause) *matcher {
	m := &matcher{q: q, clauses: clauses, left: make([]bool, len(clauses))}
	m.split.add = func(word []byte, tail bool, _ int) {
		if m.count++; m.count > maxWords {
			return
		}
		m.starts, m.tails = append(m.starts, len(m.words)), append(m.tails, tail)
		m.words = append(m.words, word...)
	}
	return m
}

// matches reports whether the record is one that the query asks for.
func (m *matcher) matches(r *stele.Record) bool {
	if !m.q.filters(r) {
		return false
	}
	missing := len(m.clauses)
	if missing == 0 {
		return true
	}
	for i := range m.left {
		m.left[i] = true
	}
	m.count = 0
	fields(r, func(text string) bool {
		m.words, m.starts, m.tails = m.words[:0], m.starts[:0], m.tails[:0]
		m.split.text(text)
		for i, left := range m.left {
			if left && m.has(m.clauses[i]) {
				m.left[i] = false
				missing--
			}
		}
		return missing > 0 && m.count < maxWords
	})
	return missing == 0
}

// word returns a word of the field.
func (m *matcher) word(i int) []byte {
	end := len(m.words)
	if i+1 < len(m.starts) {
		end = m.starts[i+1]
	}
	return m.words[m.starts[i]:end]
}

// has reports whether the field has the terms of a clause, one after the other.
func (m *matcher) has(c clause) bool {
	for from := range m.starts {
		at, n := from, 0
		for at < len(m.starts) && n < len(c) {
			if c[n].fits(m.word(at)) {
				n++
			} else if n == 0 || !m.tails[at] {
				break
			}
			at++
		}
		if n == len(c) {
			return true
		}
	}
	return false
}

// filters reports whether the record is one that all but the text of the query asks for.
func (q *Query) filters(r *stele.Record) bool {
	switch {
	case q.Namespace.Scheme != "" && !isBelow(r.ID.Scheme(), r.ID.String(), q.Namespace),
		q.State != "" && r.State != q.State,
		q.Visibility != "" && (q.Visibility == Public) != r.IsPublic(),
		q.By != "" && r.By != q.By,
		!isWithin(r.Modified, q.ModifiedFrom, q.ModifiedBefore),
		!isWithin(r.Created, q.CreatedFrom, q.CreatedBefore):
		return false
	}
	return q.Host == "" || slices.ContainsFunc(r.Targets, func(t stele.Target) bool { return t.Host() == q.Host })
}

func isWithin(t, from, before time.Time) bool {
	return (from.IsZero() || !t.Before(from)) && (before.IsZero() || t.Before(before))
}

// isBelow reports whether a name begins so.
func isBelow(scheme, text string, key stele.NamespaceKey) bool {
	return scheme == key.Scheme && strings.HasPrefix(text, key.Prefix)
}

// datesOf returns the day, the month and the year of a time, as terms.
func datesOf(t time.Time) [3]string {
	text := t.UTC().Format("20060102")
	n := len(text) // years beyond 9999 are longer
	return [3]string{text, text[:n-2], text[:n-4]}
}

// maxYears is how many years a range of time may have for which the index is asked. What a
// longer one leaves out, the records tell.
const maxYears = 200

// datesWithin returns terms that every time in a range has one of; ok is false if they would be
// too many, or if there is no limit on one side.
func datesWithin(from, before time.Time) (list []string, ok bool) {
	from, before = from.UTC(), before.UTC()
	if from.IsZero() || before.IsZero() || before.Year()-from.Year() > maxYears || from.Year() < 1000 || before.Year() > 9999 {
		return nil, false
	}
	day := time.Date(from.Year(), from.Month(), from.Day(), 0, 0, 0, 0, time.UTC)
	for day.Before(before) {
		dates := datesOf(day)
		year, month := day.AddDate(1, 0, 0), day.AddDate(0, 1, 0)
		switch {
		case day.YearDay() == 1 && !year.After(before):
			list, day = append(list, dates[2]), year
		case day.Day() == 1 && !month.After(before):
			list, day = append(list, dates[1]), month
		default:
			list, day = append(list, dates[0]), day.AddDate(0, 0, 1)
		}
	}
	return list, true
}

// prefixes are the prefixes of namespaces that are indexed.
type prefixes struct {
	known   map[stele.NamespaceKey]bool
	lengths map[string][]int // by scheme, in order
}

func newPrefixes() *prefixes {
	return &prefixes{known: make(map[stele.NamespaceKey]bool), lengths: make(map[string][]int)}
}

// add adds a prefix. The root of a scheme is not one: the term of the scheme stands for it.
func (p *prefixes) add(key stele.NamespaceKey) {
	if key.Prefix == "" || p.known[key] {
		return
	}
	p.known[key] = true
	lengths := p.lengths[key.Scheme]
	if i, found := slices.BinarySearch(lengths, len(key.Prefix)); !found {
		p.lengths[key.Scheme] = slices.Insert(slices.Clone(lengths), i, len(key.Prefix))
	}
}

// clone returns a copy.
func (p *prefixes) clone() *prefixes {
	return &prefixes{known: maps.Clone(p.known), lengths: maps.Clone(p.lengths)}
}

// of yields the prefixes with which a name begins.
func (p *prefixes) of(scheme, text string) func(yield func(stele.NamespaceKey) bool) {
	return func(yield func(stele.NamespaceKey) bool) {
		for _, n := range p.lengths[scheme] {
			if n > len(text) {
				return
			}
			if key := (stele.NamespaceKey{Scheme: scheme, Prefix: text[:n]}); p.known[key] && !yield(key) {
				return
			}
		}
	}
}
