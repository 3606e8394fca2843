package desk

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

const members = "/.desk/members?namespace=ark%3A12345%2Fx5"

func TestMembers(t *testing.T) {
	s := newSite(t)
	olga, ed, sam := s.as("olga"), s.as("ed"), s.as("sam")
	form := func(pairs ...string) url.Values {
		v := url.Values{"namespace": {"ark:12345/x5"}}
		for i := 0; i < len(pairs); i += 2 {
			v.Set(pairs[i], pairs[i+1])
		}
		return v
	}
	olga.get(members).has(200, "Who may do what here", "ed", "ruth", "named as the owner", "Hand over", "Give a role", "What happened here")
	if p := ed.get(members).has(200, "olga", "Leave"); strings.Contains(p.text, "Give a role") || strings.Contains(p.text, "Hand over") {
		t.Error("an editor is offered what an owner may do")
	}
	sam.get(members).has(404)
	olga.follow(olga.post("/.desk/members/give", form("kind", "user", "name", "sam", "role", "reader"))).has(200, "The role is given.", "sam")
	sam.get(members).has(200, "reader")
	olga.post("/.desk/members/give", form("kind", "user", "name", "nothing", "role", "editor")).has(422, `href="#name"`, `value="nothing"`, "there is no user")
	olga.get(members+"&user=ruth").has(200, "What ruth may do here", "reader", "lists and searches")
	olga.get(members+"&user=nothing").has(422, `href="#user"`)
	olga.post("/.desk/members/leave", form()).has(422, "hand it over to another user first")
	olga.follow(olga.post("/.desk/members/take", form("grantee", "user:sam"))).has(200, "The role is removed.")
	sam.get(members).has(404)
	ed.follow(ed.post("/.desk/members/leave", form())).has(200, "You have left the namespace.")
	ed.get(members).has(404)
	olga.post("/.desk/members/hand-over", form("to", "nothing")).has(422, `href="#to"`)
	olga.follow(olga.post("/.desk/members/hand-over", form("to", "sam", "keep", "yes"))).has(200, "The namespace has a new owner.")
	sam.get(members).has(200, "named as the owner", "olga")
	sam.lang = "pt-BR"
	sam.post("/.desk/members/leave", form()).has(422, "transfira-o primeiro")

	admin := s.as("admin")
	admin.get(members).has(200, "Name another owner", "/.desk/person?name=sam")
	admin.post("/.desk/members/hand-over", form("to", "ruth")).leads(members)
	admin.get("/.desk/audit?operation=take+over+namespace").has(200, "as an administrator, named another owner of")
	s.now = s.now.Add(auth.FreshProof + time.Minute)
	admin.post("/.desk/members/give", form("kind", "user", "name", "ed", "role", "owner")).has(403, `value="ed"`)
}

// TestMembersRights walks the forms of a namespace's people with every role.
func TestMembersRights(t *testing.T) {
	for user, may := range map[string]bool{"admin": true, "olga": true, "ed": false, "ruth": false, "sam": false} {
		s := newSite(t)
		b, other := s.as(user), "user:ruth"
		if user == "ruth" { // to leave is another question
			other = "user:ed"
		}
		for path, form := range map[string]url.Values{
			"give":      {"kind": {"group"}, "name": {"press"}, "role": {"owner"}},
			"take":      {"grantee": {other}},
			"hand-over": {"to": {"sam"}, "keep": {"yes"}},
		} {
			form.Set("namespace", "ark:12345/x5")
			p := b.post("/.desk/members/"+path, form)
			if done := p.StatusCode == http.StatusSeeOther && strings.Contains(p.Header.Get("Location"), "done="); done != may {
				t.Errorf("%s, %s: %s\n%s", user, path, p.Status, p.main())
			}
		}
		if may {
			continue
		}
		ns := must(s.r.Namespace(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}))(t)
		if ns.Owner != "olga" || len(ns.Grants) != 2 {
			t.Errorf("%s changed %+v", user, ns)
		}
	}
}
