package registrar

import (
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/namespaces"
)

// series is the names of a NOID template behind a prefix, by their numbers.
type series struct {
	schemes *stele.Schemes
	scheme  stele.Scheme
	prefix  string        // of the namespace, with what joins a name to it
	plain   mint.Template // without check character
	check   bool          // the name ends in one
	seed    uint64
}

// newSeries returns the names that the namespace's settings make.
func newSeries(schemes *stele.Schemes, ns *stele.Namespace) (*series, error) {
	return seriesOf(schemes, ns, ns.Minter.Template, ns.Minter.Seed)
}

func seriesOf(schemes *stele.Schemes, ns *stele.Namespace, template string, seed uint64) (*series, error) {
	if _, err := mint.ParseTemplate(template); err != nil {
		return nil, err
	}
	// The check character is that of the whole name, by the scheme's rule. The
	// template knows the end of it only.
	text, check := strings.CutSuffix(template, "k")
	plain, err := mint.ParseTemplate(text)
	if err != nil {
		return nil, err
	}
	s := &series{schemes: schemes, scheme: schemes.Lookup(ns.Scheme), plain: plain, check: check, seed: seed}
	for _, link := range namespaces.Joints(schemes, ns.Key()) {
		s.prefix = ns.Prefix + link
		var text string
		if text, err = s.text(0); err == nil && joins(schemes, ns, text) {
			return s, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return nil, stele.Invalidf("", 0, "no name of the template %s can stand right below %s", template, ns.Key())
}

// joint returns what stands between the namespace's prefix and a name such as
// this: ":" behind urn:example, "/" behind ark:12345, nothing behind 102.100.272/.
func joint(schemes *stele.Schemes, ns *stele.Namespace, name string) (string, error) {
	for _, link := range namespaces.Joints(schemes, ns.Key()) {
		if joins(schemes, ns, ns.Prefix+link+name) {
			return link, nil
		}
	}
	return "", stele.Invalidf("", 0, "%q can't stand right below %s", name, ns.Key())
}

// joins reports whether a text is a name that the namespace can have.
func joins(schemes *stele.Schemes, ns *stele.Namespace, text string) bool {
	id, err := schemes.Parse(text)
	if err != nil || id.Scheme() != ns.Scheme || len(id.String()) != len(text) {
		return false
	}
	return schemes.IsWithin(id, ns.Prefix)
}

// text returns the text of a name: that of the identifier, but perhaps for the
// case of letters.
func (s *series) text(number uint64) (string, error) {
	name, err := s.plain.Name("", number, s.seed)
	if err != nil || !s.check {
		return s.prefix + name, err
	}
	text := s.prefix + name
	zone, ok := strings.CutSuffix(checkZone(s.scheme, text+"0"), "0")
	if !ok {
		return "", stele.Invalidf(s.scheme.Name(), len(text), "a check character can't stand here; use a template without k")
	}
	return text + string(rune(mint.CheckChar(zone))), nil
}

// number returns which name of the series an identifier is; ok is false if none.
func (s *series) number(id stele.ID) (n uint64, ok bool) {
	text := id.String()
	if len(text) < len(s.prefix) || !strings.EqualFold(text[:len(s.prefix)], s.prefix) {
		return 0, false
	}
	name := strings.ToLower(text[len(s.prefix):])
	if s.check {
		name = name[:max(0, len(name)-1)]
	}
	n, ok = s.plain.Index("", name, s.seed)
	if !ok || !s.check {
		return n, ok
	}
	full, err := s.text(n)
	return n, err == nil && strings.EqualFold(full, text)
}

// block returns how many names are reserved at a time, size at most. Of a small
// template fewer are, so that a crash does not use it up.
func (s *series) block(size int) uint64 {
	total, bounded := s.plain.Total()
	if !bounded {
		return uint64(size)
	}
	return max(1, min(uint64(size), total/1000))
}

// id returns a name as an identifier.
func (s *series) id(number uint64) (stele.ID, error) {
	text, err := s.text(number)
	if err != nil {
		return stele.ID{}, err
	}
	return s.schemes.Parse(text)
}

// given is a series and how many of its names were given: by an earlier template
// of the namespace, or by one of a namespace above it.
type given struct {
	*series
	count uint64
}

// givenBefore reports whether one of the series has given the name.
func givenBefore(list []given, id stele.ID) bool {
	return slices.ContainsFunc(list, func(g given) bool {
		n, ok := g.number(id)
		return ok && n < g.count
	})
}
