package recordtest

import (
	"iter"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// Spellers are the schemes of the documents below.
func Spellers(t testing.TB) *stele.Schemes {
	t.Helper()
	s, err := stele.NewSchemes(Toy("ab"), Toy("cd"), Toy("ark"), Toy("ibi"), Toy("hdl"), Toy("urn"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Toy is a scheme of texts "NAME:letters", in which case does not count.
type Toy string

func (s Toy) Name() string { return string(s) }

func (s Toy) Parse(text string) (stele.ID, error) {
	rest, ok := strings.CutPrefix(text, string(s)+":")
	if !ok {
		return stele.ID{}, stele.ErrForeign
	}
	if rest == "" {
		return stele.ID{}, stele.Invalidf(string(s), len(text), "toy.empty", "nothing follows")
	}
	return stele.NewID(string(s), strings.ToLower(text))
}

func (s Toy) Explain(text string) (stele.Explanation, error) {
	id, err := s.Parse(text)
	return stele.Explanation{ID: id, Form: "toy"}, err
}

func (s Toy) Spellings(id stele.ID) []stele.Spelling {
	return []stele.Spelling{{Name: "loud", Text: string(s) + ":" + strings.ToUpper(id.String()[len(s)+1:])}}
}

func (s Toy) Parents(id stele.ID) iter.Seq[stele.Prefix] {
	return func(yield func(stele.Prefix) bool) { yield(id.Prefix(len(s) + 1)) }
}

func (s Toy) Cuts(_ stele.ID, n int) bool { return n == len(s)+1 }

func (s Toy) ParsePrefix(text string) (stele.Prefix, stele.ID, error) {
	if text != string(s)+":" {
		return stele.Prefix{}, stele.ID{}, stele.ErrForeign
	}
	below, err := s.Parse(text + "x")
	return below.Prefix(len(text)), below, err
}

func Toys(t *testing.T, names ...string) *stele.Schemes {
	t.Helper()
	var list []stele.Scheme
	for _, name := range names {
		list = append(list, Toy(name))
	}
	s, err := stele.NewSchemes(list...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
