package desk

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

func TestPeople(t *testing.T) {
	s := newSite(t)
	b := s.as("admin")
	b.get("/.desk/people").has(200, "olga", "ruth", "administrator", "Invite a person")
	if p := b.get("/.desk/people?q=ol").has(200, "olga"); strings.Contains(p.main(), "ruth") {
		t.Error("ruth is among those with ol in their names")
	}
	b.get("/.desk/people?kind=disabled").has(200, "No user was found.")

	// An invitation: a user, a role, and a link that works once.
	b.get("/.desk/invite").has(200, "Maps of Pará", `<a href="/.desk/people" aria-current="page">`) // with the navigation of the administrator who invites
	form := url.Values{"do": {"invite"}, "name": {"nora"}, "groups": {"staff, press"}, "namespace": {"ark:12345/x5"}, "role": {"editor"}, "life": {"week"}}
	p := b.post("/.desk/invite", form).has(200, "Give this link to nora", "shown this once")
	link := regexp.MustCompile(`/\.desk/link/[^<"]+`).FindString(p.text)
	nora := s.browser()
	nora.post(link, nil).leads("/.desk/")
	nora.get("/.desk/").has(200, "Welcome, nora", "Maps of Pará")
	nora.make(url.Values{"target.0.url": {"https://example.org/1"}})
	b.post("/.desk/invite", form).has(422, "there is a user nora already", `value="nora"`, `href="#name"`)
	b.post("/.desk/invite", url.Values{"do": {"invite"}, "name": {"N O"}, "groups": {"A"}}).has(422, `href="#name"`, `href="#groups"`)
	b.post("/.desk/invite", url.Values{"do": {"invite"}, "name": {"lost"}, "namespace": {"ark:99999"}, "role": {"editor"}}).has(422)
	if _, err := s.r.User(s.admin, "lost"); stele.KindOf(err) != stele.NotFound {
		t.Errorf("half of an invitation is there: %v", err)
	}
	if p := b.post("/.desk/invite", url.Values{"do": {"add"}, "name": {"harvester"}}).has(200, "without a link"); strings.Contains(p.text, "stele-link_") {
		t.Error("a link was made")
	}

	// The page of a user.
	b.get("/.desk/person?name=nora").has(200, "Maps of Pará", "editor", "press", "staff")
	b.follow(b.post("/.desk/person", url.Values{"name": {"nora"}, "groups": {"staff"}, "disabled": {"yes"}})).has(200, "The user is saved.", "disabled")
	nora.get("/.desk/").leads("/.desk/sign-in")
	b.post("/.desk/person/link", url.Values{"name": {"nora"}}).has(409, "enable it first")
	b.post("/.desk/person", url.Values{"name": {"nora"}, "groups": {"staff"}}).leads("/.desk/person?name=nora")
	b.post("/.desk/person", url.Values{"name": {"nora"}, "groups": {"Not a group!"}}).has(422, `href="#groups"`, "Not a group!")
	b.post("/.desk/person", url.Values{"name": {"admin"}, "disabled": {"yes"}}).has(422, "the last administrator")
	b.post("/.desk/person/link", url.Values{"name": {"nora"}, "life": {"hour"}}).has(200, "stele-link_")
	for session, err := range s.r.Sessions(s.admin, "ed") {
		t.Errorf("%v %v", session, err)
	}
	ed := s.as("ed")
	for session := range s.r.Sessions(s.admin, "ed") {
		b.get("/.desk/person?name=ed").has(200, session.ID)
		b.post("/.desk/person/end", url.Values{"name": {"ed"}, "id": {session.ID}}).leads("/.desk/person?name=ed")
	}
	ed.get("/.desk/").leads("/.desk/sign-in")
	_, token, err := s.r.CreateToken(s.admin, auth.TokenRequest{User: "ed", Label: "nightly"})
	if err != nil {
		t.Fatal(err)
	}
	b.get("/.desk/person?name=ed").has(200, "nightly")
	b.post("/.desk/person/revoke", url.Values{"name": {"ed"}, "id": {token.ID}}).leads("/.desk/person?name=ed")
	b.get("/.desk/person?name=ed").has(200, "ended")
	b.get("/.desk/person?name=nothing").has(404)
	_, unused, err := s.r.CreateLink(s.admin, "ed", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	b.get("/.desk/person?name=ed").has(200, "One-time link that was not used", unused.ID)
	b.post("/.desk/person/endlink", url.Values{"name": {"ed"}, "id": {unused.ID}}).leads("/.desk/person?name=ed&done=link-ended")
	if p := b.get("/.desk/person?name=ed&done=link-ended").has(200, "The link does not work any more."); strings.Contains(p.text, unused.ID) {
		t.Error("a link that was ended is shown")
	}

	// Many users come in pages.
	for i := range pageRows + 5 {
		must(s.r.AddUser(s.admin, auth.User{Name: fmt.Sprintf("many%03d", i)}))(t)
	}
	p = b.get("/.desk/people?q=many").has(200, "many000", "Next page")
	next := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(p.text)
	b.get(html.UnescapeString(next[1])).has(200, "many050", "many054")
}

// TestPeopleRights: none but administrators see or change users.
func TestPeopleRights(t *testing.T) {
	for _, user := range []string{"olga", "ed", "ruth", "sam"} {
		s := newSite(t)
		b := s.as(user)
		for _, path := range []string{"people", "invite", "person?name=ed", "person?name=nothing", "person?name=" + user} {
			if p := b.get("/.desk/" + path); p.StatusCode != 403 {
				t.Errorf("%s, %s: %s", user, path, p.Status)
			}
		}
		for path, form := range map[string]url.Values{
			"invite":         {"do": {"invite"}, "name": {"evil"}, "admin": {"yes"}},
			"person":         {"name": {user}, "admin": {"yes"}},
			"person/link":    {"name": {"admin"}},
			"person/revoke":  {"name": {"admin"}, "id": {"000000000000"}},
			"person/unlink":  {"name": {"admin"}, "id": {"000000000000"}},
			"person/endlink": {"name": {"admin"}, "id": {"000000000000"}},
		} {
			if p := b.post("/.desk/"+path, form); p.StatusCode/100 != 4 {
				t.Errorf("%s, %s: %s %s", user, path, p.Status, p.Header.Get("Location"))
			}
		}
		if u := must(s.r.User(s.admin, user))(t); u.Admin {
			t.Errorf("%s is an administrator", user)
		}
		if p := b.get("/.desk/").has(200); strings.Contains(p.text, "/.desk/people") {
			t.Errorf("%s is led to the list of people", user)
		}
		admin := s.as("admin")
		for session := range s.r.Sessions(s.admin, "admin") {
			b.post("/.desk/person/end", url.Values{"name": {"admin"}, "id": {session.ID}}).has(403)
		}
		admin.get("/.desk/").has(200)
	}
}

// TestInviteProof: an invitation needs a fresh proof, and keeps what was typed.
func TestInviteProof(t *testing.T) {
	s := newSite(t)
	b := s.as("admin")
	s.now = s.now.Add(auth.FreshProof + time.Minute)
	b.post("/.desk/invite", url.Values{"do": {"invite"}, "name": {"nora"}}).has(403, `value="nora"`)
	if _, err := s.r.User(s.admin, "nora"); stele.KindOf(err) != stele.NotFound {
		t.Errorf("nora was added: %v", err)
	}
}

func TestAuditPage(t *testing.T) {
	s := newSite(t)
	ed, admin, olga := s.as("ed"), s.as("admin"), s.as("olga")
	path := ed.make(url.Values{"target.0.url": {"https://example.org/1"}})
	id := must(url.Parse(path))(t).Query().Get("id")
	admin.post("/.desk/person", url.Values{"name": {"sam"}, "groups": {"=staff"}}).has(422)
	admin.post("/.desk/person", url.Values{"name": {"sam"}, "groups": {"staff"}}).leads("/.desk/person")
	p := admin.get("/.desk/audit").has(200, "Audit trail", "ed", html.EscapeString(id), "the user sam", "groups: staff", "the desk", "added")
	if a, b := strings.Index(p.main(), "groups: staff"), strings.Index(p.main(), "the user olga"); a < 0 || b < 0 || a > b {
		t.Error("the newest entry is not the first")
	}
	if p := admin.get("/.desk/audit?by=ed").has(200, id); strings.Contains(p.main(), "the user sam") {
		t.Error("entries of another user are shown")
	}
	if p := admin.get("/.desk/audit?operation=set+user").has(200, "the user sam", "stele audit --operation &#39;set user&#39;"); strings.Contains(p.main(), ">"+id) {
		t.Error("entries of other operations are shown")
	}
	admin.get("/.desk/audit?via=api").has(200, "There is no such entry.")
	admin.get("/.desk/audit?since=2026-11-16&until=2026-11-16").has(200, id)
	admin.get("/.desk/audit?until=2026-11-15").has(200, "There is no such entry.")
	admin.get("/.desk/audit?since=soon").has(400, "is not a date")
	admin.get("/.desk/audit?before=x").has(400)
	csv := admin.get("/.desk/audit.csv?by=ed").has(200, "number,at,by", id)
	if !strings.HasPrefix(csv.Header.Get("Content-Type"), "text/csv") {
		t.Errorf("got %v", csv.Header)
	}

	// An owner sees what concerns the namespace, and no more; others see nothing.
	if p := olga.get("/.desk/audit").has(200, id); strings.Contains(p.main(), "the user sam") {
		t.Error("olga sees what concerns the whole registry")
	}
	olga.get("/.desk/audit?namespace=ark:99999").has(403)
	for _, user := range []string{"ed", "ruth", "sam"} {
		for _, path := range []string{"audit", "audit.csv"} {
			if p := s.as(user).get("/.desk/" + path); p.StatusCode != http.StatusForbidden {
				t.Errorf("%s: %s", user, p.Status)
			}
		}
	}

	// Pages go back to the first entry, without gaps.
	for i := range 2*pageRows + 3 {
		must(s.r.AddUser(s.admin, auth.User{Name: fmt.Sprintf("many%03d", i)}))(t)
	}
	seen, at := make(map[string]bool), "/.desk/audit?operation=add+user"
	for at != "" {
		p := admin.get(at).has(200)
		for _, m := range regexp.MustCompile(`the user (\w+)`).FindAllStringSubmatch(p.main(), -1) {
			if seen[m[1]] {
				t.Errorf("%s is there twice", m[1])
			}
			seen[m[1]] = true
		}
		at = ""
		if next := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(p.text); next != nil {
			at = html.UnescapeString(next[1])
		}
	}
	if len(seen) != 2*pageRows+3+5 {
		t.Errorf("%d users were added by the trail", len(seen))
	}
	admin.lang = "pt-BR"
	admin.get("/.desk/audit?operation=set+user").has(200, "Trilha de auditoria", "alterou", "o usuário sam", "grupos: staff", "a mesa de trabalho")
}
