package storetest

import (
	"strings"

	"github.com/stele-id/stele"
)

// anywhere says that names may be cut after any byte.
func anywhere(int) bool { return true }

// checkLongest: the longest registered prefix at which a name may be cut is found, be it
// an identifier or an alias, whatever stands beside it in the order of names.
func checkLongest(s *session) {
	long := "ark:12345/" + strings.Repeat("long/", 700)
	names := []string{"ark:12345/s", "ark:12345/shop", "ark:12345/shop/shelf", "ark:12345/shop-", "ark:12345/shop/", "ark:12345/shop/shelf/a",
		"ark:12345/shop/shelf/box!", "ark:12345/t", "ark:1234", long[:1030], long[:1020], long[:2000], long[:3000] + "x", long[:2500] + "!"}
	for _, name := range names {
		s.put(first(s.id("ark", name)))
	}
	// One chain of nested names, one of names beside which each prefix stands, and both.
	deep := strings.Repeat("n", 300)
	for i := 1; i < 300; i += 7 {
		s.put(first(s.id("nest", deep[:i])), first(s.id("side", deep[:i]+"a")), first(s.id("both", deep[:i])), first(s.id("both", deep[:i]+"a")))
	}
	s.put(first(s.id("side", "nn")))
	s.put(first(s.ark("other"), s.id("hdl", "10.1000/shop"), s.id("alias", "a"+long)))
	slash := func(text string) func(int) bool { return func(n int) bool { return text[n] == '/' } }
	for _, c := range []struct {
		scheme, text string
		cuts         func(text string) func(int) bool
		want         string
	}{
		{"ark", "ark:12345/shop/shelf/box", nil, "ark:12345/shop/shelf"},
		{"ark", "ark:12345/shop/shelf", nil, "ark:12345/shop/"},
		{"ark", "ark:12345/shop/shelves", nil, "ark:12345/shop/"},
		{"ark", "ark:12345/shopping", nil, "ark:12345/shop"},
		{"ark", "ark:12345/shopping", slash, ""},
		{"ark", "ark:12345/shop/shelf/b", slash, "ark:12345/shop/shelf"},
		{"ark", "ark:12345/shop/shelf/b/c/d/e/f", slash, "ark:12345/shop/shelf"},
		{"ark", "ark:12345/sz", nil, "ark:12345/s"},
		{"ark", "ark:12345/a", nil, "ark:1234"},
		{"ark", "ark:123", nil, ""},
		{"ark", "a", nil, ""},
		{"ark", "zzz", nil, ""},
		{"ark", long, nil, long[:2000]},
		{"ark", long[:3000] + "xy", nil, long[:3000] + "x"},
		{"ark", long[:2000], nil, long[:1030]},
		{"ark", long[:1030], nil, long[:1020]},
		{"ark", long[:1025] + "!", nil, long[:1020]},
		{"ark", "ark:12345/shop" + strings.Repeat("/q", 1000), nil, "ark:12345/shop/"},
		{"hdl", "10.1000/shop/2", nil, "10.1000/shop"},
		{"hdl", "ark:12345/shop/2", nil, ""},
		{"alias", "a" + long + "x", nil, "a" + long},
		{"nest", deep, nil, deep[:295]},
		{"nest", deep[:150] + "z", nil, deep[:148]},
		{"nest", deep[:150] + "!", nil, deep[:148]},
		{"side", deep, nil, "nn"},
		{"side", deep[:200] + "aa", nil, "nn"},
		{"side", deep[:197] + "aa", nil, deep[:197] + "a"},
		{"both", deep, nil, deep[:295]},
		{"both", deep[:4] + "z", nil, "n"},
	} {
		cuts := anywhere
		if c.cuts != nil {
			cuts = c.cuts(c.text)
		}
		r, p, err := s.Longest(s.ctx, s.id(c.scheme, c.text), cuts)
		if c.want == "" {
			s.wantKind("Longest of "+c.text, err, stele.NotFound)
			continue
		}
		if err != nil || p.String() != c.want || p.Scheme() != c.scheme {
			s.Errorf("Longest(%.60q) in %s is %.60q (%d), %v; want %.60q (%d)", c.text, c.scheme, p, len(p.String()), err, c.want, len(c.want))
			continue
		}
		s.want(s.id(c.scheme, p.String()), r)
	}
	_, _, err := s.Longest(s.ctx, stele.ID{}, anywhere)
	s.wantKind("Longest of nothing", err, stele.NotFound)
	_, _, err = s.Longest(s.ctx, s.ark("shop/shelf"), func(int) bool { return false })
	s.wantKind("Longest of what may not be cut", err, stele.NotFound)
}
