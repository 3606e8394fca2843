package resolver

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
)

// unknown resolves a name that leads nowhere and returns why.
func (r *registry) unknown(name string, who ...string) *UnknownError {
	r.t.Helper()
	_, err := r.Resolve(r.t.Context(), Request{ID: r.id(name), Who: reader(who...)})
	e, ok := errors.AsType[*UnknownError](err)
	if !ok || !errors.Is(err, stele.NotFound) {
		r.t.Fatalf("%s: %v", name, err)
	}
	return e
}

func TestNearest(t *testing.T) {
	withAndWithout(t, func(t *testing.T, r *registry) {
		r.namespace(stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Checked: true})
		r.namespace(stele.Namespace{Scheme: "ark", Prefix: "ark:67890"})
		r.namespace(stele.Namespace{Scheme: "hdl", Prefix: "20.500.12345/", Checked: true})
		r.namespace(stele.Namespace{Scheme: "urn", Prefix: "urn:example", Checked: true})
		checked := func(text string) string { return text + string(rune(mint.CheckChar(text))) }
		good := "ark:" + checked("12345/x5bcdf9")
		other := "ark:" + checked("12345/x5bcdf8")
		hidden := "ark:" + checked("12345/x5kmn23")
		qualified := "ark:" + checked("12345/x5vwx45") + "/page/3"
		handle := checked("20.500.12345/bcd123")
		urn := strings.Replace(checked("urn:example:bcd123"), "bcd", "BCD", 1) // the case of a URN counts
		r.to(good, partial("https://example.org/"))
		r.to(other, page("https://example.org/"))
		r.to(qualified, page("https://example.org/"))
		r.to(handle, page("https://example.org/"))
		r.to(urn, page("https://example.org/"))
		r.to("ark:67890/x5bcdf9k", page("https://example.org/"))
		r.to("urn:other:plain", page("https://example.org/"))
		r.put(stele.Record{ID: r.id("urn:other:secret"), Readers: []string{"user:ada"}, Targets: []stele.Target{page("https://example.org/")}})
		r.put(stele.Record{ID: r.id(hidden), Readers: []string{"user:ada"}, Targets: []stele.Target{page("https://example.org/")}})

		wrong := func(name string, i int) string { // with another character at i
			c := byte('z')
			if name[i] == c {
				c = 'w'
			}
			return name[:i] + string(rune(c)) + name[i+1:]
		}
		for _, tt := range []struct {
			name, who string
			mistyped  bool
			nearest   []string
		}{
			{wrong(good, len(good)-1), "", true, []string{good}},
			{wrong(good, 14), "", true, []string{good}},
			{strings.Replace(good, "bc", "cb", 1), "", true, []string{good}},
			{wrong(good, 14) + "/page/2", "", true, []string{good}},
			{wrong(qualified, 14), "", true, []string{qualified}},
			{wrong(urn, len(urn)-1), "", true, []string{urn}},
			{wrong(urn, len(urn)-2), "", true, []string{urn}},
			{wrong(hidden, 14), "", true, nil},
			{wrong(hidden, 14), "user:ada", true, []string{hidden}},
			{wrong(handle, len(handle)-1), "", true, []string{strings.ToUpper(handle)}},
			{strings.ToUpper(wrong(handle, 14)), "", true, []string{strings.ToUpper(handle)}},
			{"ark:" + checked("12345/x5qqqqq"), "", false, nil},
			{urn + ":part", "", false, []string{urn}}, // the name is right, the part is not there
			{"urn:other:PLAIN", "", false, []string{"urn:other:plain"}},
			{"urn:other:plain).", "", false, []string{"urn:other:plain"}},
			{"urn:other:SECRET", "", false, nil},
			{"urn:other:SECRET", "user:ada", false, []string{"urn:other:secret"}},
			{"urn:other:secret:part", "", false, nil},
			{"ark:67890/x5bcdf9w", "", false, nil},
			{"ark:12345/" + strings.Repeat("z", 2000), "", false, nil},
			{"urn:other:a", "", false, nil},
		} {
			for range 2 {
				e := r.unknown(tt.name, tt.who)
				var nearest []string
				for _, id := range e.Nearest {
					nearest = append(nearest, id.String())
				}
				if e.Mistyped != tt.mistyped || !slices.Equal(nearest, tt.nearest) {
					t.Errorf("%.40s: %t %q, want %t %q", tt.name, e.Mistyped, nearest, tt.mistyped, tt.nearest)
				}
				for _, name := range nearest {
					if !strings.Contains(e.Error(), name) {
						t.Errorf("%q does not name %s", e, name)
					}
				}
			}
		}
	})
}

// Many names may be near, and many have to be looked up; both have a bound.
func TestNearestBounds(t *testing.T) {
	r := newRegistry(t, Options{})
	counted := &counting{Store: r.store}
	r.Resolver = New(counted, r.schemes, Options{})
	r.namespace(stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Checked: true})
	zone := "12345/x5bcdfghjkm23456"
	zone = zone[:len(zone)-1] + map[bool]string{true: "7", false: "6"}[mint.CheckChar(zone[:len(zone)-1]) == '6']
	repairs := mint.Repairs(zone, len("12345"))
	if len(repairs) < 2*maxNearest {
		t.Fatalf("only %d repairs of %s; the test is blunt", len(repairs), zone)
	}
	asked := func() uint64 {
		before := counted.records.Load()
		r.unknown("ark:" + zone)
		return counted.records.Load() - before
	}
	if n := asked(); n == 0 || n > maxLookups+1 {
		t.Errorf("%d look-ups", n)
	}
	for _, text := range repairs {
		if id, err := r.schemes.Parse("ark:" + text); err == nil {
			r.to(id.String(), page("https://example.org/"))
		}
	}
	if e := r.unknown("ark:" + zone); len(e.Nearest) != maxNearest {
		t.Errorf("%d are near: %v", len(e.Nearest), e)
	}
	before := counted.records.Load()
	r.unknown("ark:" + strings.Join(slices.Repeat([]string{zone}, 20), "/"))
	if n := counted.records.Load() - before; n > maxLookups+1 {
		t.Errorf("%d look-ups for a long name", n)
	}
}

func TestRegistered(t *testing.T) {
	r := newRegistry(t, Options{})
	r.to("ark:12148/cb11928669t", page("https://example.org/"))
	_, err := r.schemes.Parse("ark:12148/cb11928696t") // swapped
	syntax, ok := errors.AsType[*stele.SyntaxError](err)
	if !ok || len(syntax.Suggestions) < 2 {
		t.Fatal(err)
	}
	texts := append([]string{"no name", "ark:/12148/cb11928669t"}, syntax.Suggestions...)
	got, err := r.Registered(t.Context(), texts, reader())
	if err != nil || !slices.Equal(got, []stele.ID{r.id("ark:12148/cb11928669t")}) {
		t.Errorf("%v, %v", got, err)
	}
}
