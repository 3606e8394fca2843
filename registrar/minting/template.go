package minting

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/namespaces"
)

// template is the names of a NOID template after a prefix, by their numbers.
type template struct {
	schemes *stele.Schemes
	scheme  stele.Scheme
	prefix  string        // of the namespace, with what joins a name to it
	plain   mint.Template // without check character
	check   bool          // the name ends in one
	seed    uint64

	original *mint.Subcounters // the beginning of the original order; nil for our own. It never changes
}

// templateOf returns the names that the namespace's settings make.
func templateOf(schemes *stele.Schemes, ns *stele.Namespace) (*template, error) {
	return newTemplate(schemes, ns, templateState(ns.Minter))
}

// Sample returns the name with a number of a namespace's template, to show how names look. It
// gives no name: another caller may get this one.
func Sample(schemes *stele.Schemes, ns *stele.Namespace, number uint64) (string, error) {
	t, err := templateOf(schemes, ns)
	if err != nil {
		return "", err
	}
	for name, err := range t.sample(number, 1) {
		return name, err
	}
	return "", nil
}

// newTemplate returns the names of a template that a namespace has, or had.
func newTemplate(schemes *stele.Schemes, ns *stele.Namespace, of TemplateState) (*template, error) {
	noid := of.Template
	if _, err := mint.ParseTemplate(noid); err != nil {
		return nil, err
	}
	// The check character is that of the whole name, by the scheme's rule. The
	// template knows the end of it only.
	text, check := strings.CutSuffix(noid, "k")
	plain, err := mint.ParseTemplate(text)
	if err != nil {
		return nil, err
	}
	s := &template{schemes: schemes, scheme: schemes.Lookup(ns.Scheme), plain: plain, check: check, seed: of.Seed}
	if of.Order == stele.OrderNOID {
		if s.original, err = plain.Subcounters(of.Seed, int(of.Expand)); err != nil {
			return nil, err
		}
	}
	for _, link := range namespaces.Joints(schemes, ns.Key()) {
		s.prefix = ns.Prefix + link
		var text string
		if text, err = s.first(); err == nil && joins(schemes, ns, text) {
			return s, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return nil, stele.Invalidf("", 0, "template.names-do-not-fit", "no name of the template {template} can stand right below {namespace}", noid, ns.Key())
}

// joint returns what stands between the namespace's prefix and a name such as
// this: ":" after urn:example, "/" after ark:12345, nothing after 102.100.272/.
func joint(schemes *stele.Schemes, ns *stele.Namespace, name string) (string, error) {
	for _, link := range namespaces.Joints(schemes, ns.Key()) {
		if joins(schemes, ns, ns.Prefix+link+name) {
			return link, nil
		}
	}
	return "", stele.Invalidf("", 0, "template.name-does-not-fit", `"{name}" can't stand right below {namespace}`, name, ns.Key())
}

// joins reports whether a text is a name that the namespace can have.
func joins(schemes *stele.Schemes, ns *stele.Namespace, text string) bool {
	id, err := schemes.Parse(text)
	if err != nil || id.Scheme() != ns.Scheme || len(id.String()) != len(text) {
		return false
	}
	return schemes.IsWithin(id, ns.Prefix)
}

// first returns the text of the first name.
func (s *template) first() (string, error) { return s.text(draw{}) }

// text returns the text of a name. It is that of the identifier, except perhaps for the
// case of letters.
func (s *template) text(d draw) (string, error) {
	if s.original != nil {
		return s.finish(s.original.Template(d.step.Growth).Write("", d.step.Number))
	}
	name, err := s.plain.Name("", d.number, s.seed)
	if err != nil {
		return "", err
	}
	return s.finish(name)
}

// finish puts the prefix before a name, and the check character after it.
func (s *template) finish(name string) (string, error) {
	if !s.check {
		return s.prefix + name, nil
	}
	text := s.prefix + name
	zone, ok := strings.CutSuffix(CheckZone(s.scheme, text+"0"), "0")
	if !ok {
		return "", stele.Invalidf(s.scheme.Name(), len(text), "template.check-character-not-possible", "a check character can't stand here; use a template without k")
	}
	return text + string(rune(mint.CheckChar(zone))), nil
}

// find returns which name of the template an identifier is; ok is false if none. In the original order
// the number of the draw is not known.
func (s *template) find(id stele.ID) (d draw, ok bool) {
	text := id.String()
	if len(text) < len(s.prefix) || !strings.EqualFold(text[:len(s.prefix)], s.prefix) {
		return d, false
	}
	name := strings.ToLower(text[len(s.prefix):])
	if s.check {
		name = name[:max(0, len(name)-1)]
	}
	if s.original != nil {
		d.step, ok = s.original.Find("", name)
	} else {
		d.number, ok = s.plain.Index("", name, s.seed)
	}
	if !ok || !s.check {
		return d, ok
	}
	full, err := s.text(d)
	return d, err == nil && strings.EqualFold(full, text)
}

// total returns how many names there are; bounded is false if they don't end.
func (s *template) total() (n uint64, bounded bool) {
	if s.original != nil {
		return s.original.Total(), true
	}
	return s.plain.Total()
}

// block returns how many names are reserved in one commit, size at most. It is less for a
// small template, so that a crash does not use it up.
func (s *template) block(size int) uint64 {
	total, bounded := s.total()
	if !bounded {
		return uint64(size)
	}
	return max(1, min(uint64(size), total/1000))
}

// id returns a name as an identifier.
func (s *template) id(d draw) (stele.ID, error) {
	text, err := s.text(d)
	if err != nil {
		return stele.ID{}, err
	}
	return s.schemes.Parse(text)
}

// issued is which names of a template were issued: an earlier template of the namespace,
// or one of a namespace above it.
type issued struct {
	*template
	count uint64
	walk  *mint.Subcounters // in the original order
}

// issuedBefore reports whether one of the templates has issued the name.
func issuedBefore(list []issued, id stele.ID) bool {
	return slices.ContainsFunc(list, func(g issued) bool {
		d, ok := g.find(id)
		if ok && g.walk != nil {
			return g.walk.Issued(d.step)
		}
		return ok && d.number < g.count
	})
}

// Zoner is a [stele.Scheme] whose check characters are not those of the whole
// name.
type Zoner interface {
	// CheckZone returns the part of a canonical text that a NOID check character
	// ends: of an ARK, what is between "ark:" and the first qualifier. Letters are
	// in lower case. The text need not hold the right check character.
	CheckZone(text string) string
}

// CheckZone returns the part of a name that a check character ends. It is the whole text in
// lower case, the case of NOID, for a scheme that is not a [Zoner].
func CheckZone(scheme stele.Scheme, text string) string {
	if z, ok := scheme.(Zoner); ok {
		return z.CheckZone(text)
	}
	return strings.ToLower(text)
}

// maxSeed is the greatest seed that is drawn: programs that read JSON numbers as floating
// point keep it exactly.
const maxSeed = 1<<53 - 1

// Seed gives the template of next, a new version of a namespace, a seed if it has none;
// before is nil for a new namespace. A template that the namespace had before keeps its
// seed, whatever that is; a new one that shuffles its names gets a random seed, so that its
// names can't be predicted.
func Seed(random io.Reader, before, next *stele.Namespace) error {
	m := &next.Minter
	if m.Kind != stele.MinterNOID || m.Seed != 0 || m.Order == stele.OrderNOID {
		return nil
	}
	if before != nil && before.Minter.Kind == m.Kind && before.Minter.Template == m.Template && before.Minter.Order == m.Order {
		m.Seed = before.Minter.Seed
		return nil
	}
	if t, err := mint.ParseTemplate(m.Template); err != nil || !t.IsShuffled() {
		return nil // CheckSettings tells what is wrong with it
	}
	for m.Seed == 0 {
		var bits [8]byte
		if _, err := io.ReadFull(random, bits[:]); err != nil {
			return stele.Errorf("seed template", stele.ID{}, stele.Unavailable, "token.no-random-bits", "no random bits: {cause}", err)
		}
		m.Seed = binary.BigEndian.Uint64(bits[:]) & maxSeed
	}
	return nil
}

// CheckSettings makes a name as the namespace's minter would, and looks whether it is one of
// the namespace. It returns an error with the setting that is wrong, such as
// "minter.template", nil if all is well.
func CheckSettings(schemes *stele.Schemes, ns *stele.Namespace) (setting string, err error) {
	switch ns.Minter.Kind {
	case stele.MinterIBI, stele.MinterPILIN:
		made, err := dateNamesOf(schemes, ns)
		if err != nil {
			return "minter", err
		}
		if !slices.ContainsFunc(made.prefixes, func(p string) bool { return namespaces.IsBelow(schemes, p, ns.Prefix) }) {
			return "minter", stele.Errorf("", stele.ID{}, stele.Invalid,
				"minter.prefix-outside-namespace", "it makes names below {prefixes}, which is not in the namespace {namespace}", fmt.Sprintf("%q", made.prefixes), ns.Key())
		}
	case stele.MinterNOID:
		t, err := templateOf(schemes, ns)
		if err == nil && ns.Minter.Expand > 0 && t.original == nil {
			return "minter.expand", stele.Errorf("", stele.ID{}, stele.Invalid, "minter.expand-needs-random", "only a mask that begins with r grows; leave expand out, or use a mask that begins with z")
		}
		return "minter.template", err
	case stele.MinterUUID:
		_, err := joint(schemes, ns, uuid{}.String())
		return "minter.kind", err
	}
	return "", nil
}
