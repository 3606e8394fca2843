package resolver

import (
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// somebody returns a principal with these names, as records name their readers; none:
// the public.
func reader(names ...string) (p auth.Principal) {
	for _, name := range names {
		p.Name = "zoe"
		if group, ok := strings.CutPrefix(name, "group:"); ok {
			p.Groups = append(p.Groups, group)
		}
	}
	for _, name := range names {
		if user, ok := strings.CutPrefix(name, "user:"); ok {
			p.Name = user
		}
	}
	return p
}

// A principal with a role in a namespace sees what is reserved or restricted there and
// in all below it; for all others nothing is there.
func TestRoles(t *testing.T) {
	withAndWithout(t, func(t *testing.T, r *registry) {
		r.namespace(stele.Namespace{Scheme: "ark", Owner: "root", Grants: []stele.Grant{{To: "user:rose", Role: stele.RoleOwner}}})
		r.namespace(stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Owner: "olga", Grants: []stele.Grant{{To: "group:staff", Role: stele.RoleReader}}})
		r.namespace(stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x5", Grants: []stele.Grant{{To: "user:ed", Role: stele.RoleEditor}}})
		target := []stele.Target{page("https://example.org/1")}
		r.put(stele.Record{ID: r.id("ark:12345/x5reserved"), State: stele.Reserved, Targets: target})
		r.put(stele.Record{ID: r.id("ark:12345/x5restricted"), Readers: []string{"user:ada"}, Targets: target})
		r.put(stele.Record{ID: r.id("ark:12345/y1"), Readers: []string{"user:ada"}, Targets: target})
		r.put(stele.Record{ID: r.id("ark:99999/z"), Readers: []string{"user:ada"}, Targets: target})
		for _, tt := range []struct {
			who  string
			sees string
		}{
			{"", ""},
			{"user:zoe", ""},
			{"user:olga", "x5reserved x5restricted y1"},
			{"group:staff", "x5reserved x5restricted y1"},
			{"user:ed", "x5reserved x5restricted"},
			{"user:ada", "x5restricted y1 z"},
			{"user:root", ""},
			{"user:rose", ""},
			{"user:staff", ""},
		} {
			var who auth.Principal
			if tt.who != "" {
				who = reader(tt.who)
			}
			var sees []string
			for _, name := range []string{"ark:12345/x5reserved", "ark:12345/x5restricted", "ark:12345/y1", "ark:99999/z"} {
				res, err := r.Resolve(t.Context(), Request{ID: r.id(name), Who: who})
				switch {
				case err == nil:
					if !res.Private {
						t.Errorf("%s, for %s: others may keep the answer", name, tt.who)
					}
					sees = append(sees, name[strings.IndexByte(name, '/')+1:])
				case stele.KindOf(err) != stele.NotFound:
					t.Errorf("%s, for %s: %v", name, tt.who, err)
				}
			}
			if got := strings.Join(sees, " "); got != tt.sees {
				t.Errorf("%q sees %q, want %q", tt.who, got, tt.sees)
			}
		}
	})
}
