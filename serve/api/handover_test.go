package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/outbound"
)

// offer names an heir, at whose address nothing listens.
const offer = `{"do":"offer","heir":"heir.example.org/.log","address":"http://127.0.0.1:1/"}`

// loopbackOnly is a client that asks no name server: addresses of this machine are all that tests ask.
type loopbackOnly struct{ *outbound.Client }

func (c loopbackOnly) Do(r *http.Request) (*http.Response, error) {
	if r.URL.Hostname() != "127.0.0.1" {
		return nil, errors.New("it is not on this machine")
	}
	return c.Client.Do(r)
}

// handOver goes a step further, and returns the states of the namespaces.
func (s *site) handOver(who, step string) (a reply, states string) {
	s.t.Helper()
	a = s.ask(who, "POST", Root+"/handover/ark:12345", step)
	var got apijson.HandOverResult
	if a.StatusCode == http.StatusOK {
		a.read(s.t, &got)
	}
	for _, ns := range got.Namespaces {
		states += ns.Prefix + " " + ns.State + ";"
	}
	return a, states
}

// An administrator goes from state to state, and each dangerous step needs what makes it safe.
func TestHandOverSteps(t *testing.T) {
	s := newSite(t)
	s.signLog()
	for _, c := range []struct {
		step   string
		status int
		says   string // of the states, or of the problem
	}{
		{`{"do":"seal"}`, 409, "offered to no registry"},
		{`{"do":"offer"}`, 400, "not the name of a registry"},
		{`{"do":"offer","heir":"id.example.org/.log","address":"https://id.example.org/"}`, 400, "this registry itself"},
		{`{"do":"offer","heir":"heir.example.org/.log","address":"ftp://heir.example.org/"}`, 400, "handOver.address"},
		{`{"do":"adopt"}`, 400, "not a step of a hand-over"},
		{`{"do":"seal","heir":"heir.example.org/.log"}`, 400, "belong to an offer"},
		{`{"do":"cancel"}`, 200, "ark:12345 ;ark:12345/x5 ;"},
		{offer, 200, "ark:12345 offered;ark:12345/x5 offered;"},
		{`{"do":"forward"}`, 409, "not sealed"},
		{`{"do":"cancel"}`, 200, "ark:12345 ;ark:12345/x5 ;"},
		{offer, 200, "ark:12345 offered;ark:12345/x5 offered;"},
		{`{"do":"seal"}`, 200, "ark:12345 sealed;ark:12345/x5 sealed;"},
		{`{"do":"seal"}`, 200, "ark:12345 sealed;ark:12345/x5 sealed;"},
		{offer, 409, "sealed for heir.example.org/.log already"},
		{`{"do":"cancel"}`, 409, "--i-know"},
		{`{"do":"forward"}`, 409, "the heir does not answer at http://127.0.0.1:1"},
		{`{"do":"forward","iKnow":true}`, 200, "ark:12345 forwarded;ark:12345/x5 forwarded;"},
		{`{"do":"forward"}`, 200, "ark:12345 forwarded;ark:12345/x5 forwarded;"},
		{`{"do":"cancel"}`, 409, "two registries could make the same names"},
		{`{"do":"cancel","iKnow":true}`, 200, "ark:12345 ;ark:12345/x5 ;"},
	} {
		a, states := s.handOver(theAdmin, c.step)
		if a.StatusCode != c.status || a.StatusCode == 200 && states != c.says || a.StatusCode != 200 && !strings.Contains(a.body, c.says) {
			t.Errorf("%s: %d, %q, %s; want %d, %q", c.step, a.StatusCode, states, a.body, c.status, c.says)
		}
	}
	s.ask(theAdmin, "POST", Root+"/handover/ark:88888", `{"do":"cancel"}`).want(t, 404)
	s.ask(theAdmin, "POST", Root+"/handover/ark:", offer).want(t, 400)
}

// Roles below that of an administrator do none of it, and change nothing.
func TestHandOverRoles(t *testing.T) {
	s := newSite(t)
	for who, status := range map[string]int{"": 401, theOutsider: 403, theStranger: 403, theReader: 403, theEditor: 403, theOwner: 403} {
		for _, step := range []string{offer, `{"do":"seal"}`, `{"do":"forward","iKnow":true}`, `{"do":"cancel","iKnow":true}`} {
			a, _ := s.handOver(who, step)
			a.want(t, status)
		}
		s.ask(who, "POST", Root+"/heir/ark:12345", "").want(t, status)
		s.ask(who, "POST", Root+"/sealplan/ark:12345", "").want(t, status)
		s.ask(who, "GET", Root+"/handover", "").want(t, status)
	}
	var page apijson.HandOverPage
	s.ask("", "GET", Root+"/handover/ark:12345", "").want(t, 200).read(t, &page)
	if len(page.Items) != 0 {
		t.Errorf("the public sees %+v", page.Items)
	}
}

// The public sees how far namespaces are and where requests go, and not which principals did it.
func TestHandOverShown(t *testing.T) {
	s := newSite(t)
	s.signLog()
	s.handOver(theAdmin, offer)
	s.handOver(theAdmin, `{"do":"seal"}`)
	for _, who := range []string{"", theOwner, theAdmin} {
		a := s.ask(who, "GET", Root+"/handover/ark:12345?limit=1", "").want(t, 200)
		var first, second apijson.HandOverPage
		a.read(t, &first)
		s.ask(who, "GET", Root+"/handover/ark:12345?limit=1&cursor="+first.Next, "").want(t, 200).read(t, &second)
		if len(first.Items) != 1 || len(second.Items) != 1 || second.Next != "" {
			t.Fatalf("as %q, the pages are %+v and %+v", who, first, second)
		}
		x := first.Items[0]
		if x.Registry != "id.example.org/.log" || x.Prefix != "ark:12345" || second.Items[0].Prefix != "ark:12345/x5" || x.State != "sealed" || x.Heir != "heir.example.org/.log" || x.Address != "http://127.0.0.1:1/" || x.Since == nil {
			t.Errorf("as %q: %+v", who, x)
		}
		if (x.By == theAdmin) != (who == theAdmin) || x.By != "" && who != theAdmin {
			t.Errorf("as %q, it was done by %q", who, x.By)
		}
	}
	for _, none := range []string{"ark:99999", "ark:77777"} { // it does not matter whether it exists
		if a := s.ask("", "GET", Root+"/handover/"+none, "").want(t, 200); strings.TrimSpace(a.body) != `{"items":[]}` {
			t.Errorf("%s: %s", none, a.body)
		}
	}
	var all apijson.HandOverPage
	s.ask(theAdmin, "GET", Root+"/handover", "").want(t, 200).read(t, &all)
	if len(all.Items) != 2 {
		t.Errorf("all are %+v", all.Items)
	}
	var check apijson.HeirCheck
	s.ask(theAdmin, "POST", Root+"/heir/ark:12345", "").want(t, 200).read(t, &check)
	if check.Ready || check.Code != "hand-over.heir-unreachable" || !strings.Contains(check.Reason, "does not answer at http://127.0.0.1:1") {
		t.Errorf("the heir is %+v", check)
	}
}

// A plan tells what a seal would do, and what the seal would refuse before the answer begins.
func TestPlanSealLines(t *testing.T) {
	s := newSite(t)
	s.ask(theAdmin, "POST", Root+"/sealplan/ark:12345", "").want(t, 409)
	s.ask(theAdmin, "POST", Root+"/sealplan/ark:88888", "").want(t, 404)
	s.handOver(theAdmin, offer)
	a := s.ask(theAdmin, "POST", Root+"/sealplan/ark:12345", "").want(t, 200)
	lines := strings.Split(strings.TrimSpace(a.body), "\n")
	var plan apijson.SealPlan
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &plan); err != nil {
		t.Fatal(err)
	}
	if !plan.Done || plan.Records != 5 || plan.Reserved != 1 || plan.Read != 6 || len(plan.Namespaces) != 2 || plan.Namespaces[1].Minter != "noid" || plan.Outward.Count != 1 || plan.Outward.Some[0].Alias != "urn:example:x1" || plan.Inward.Count != 0 {
		t.Errorf("the plan is %s", a.body)
	}
	if ns, err := s.registry.Namespace(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}); err != nil || ns.IsSealed() {
		t.Errorf("%+v, %v", ns, err)
	}
}

// After a seal each operation that writes names is refused with the heir's name, and reading goes on.
func TestSealedOperations(t *testing.T) {
	s := newSite(t)
	s.ask(theEditor, "PATCH", Root+"/records/ark:12345/x1", `{"metadata":{"who":"Eve"}}`).want(t, 200)
	s.handOver(theAdmin, offer)
	s.handOver(theAdmin, `{"do":"seal"}`)
	for _, c := range []struct{ method, target, body string }{
		{"POST", "/mint", `{"namespace":"ark:12345/x5"}`},
		{"POST", "/mint", `{"namespace":"ark:12345/x5","record":{"url":"https://example.org/n"}}`},
		{"PUT", "/records/ark:12345/new", `{"url":"https://example.org/new"}`},
		{"PATCH", "/records/ark:12345/x1", `{"metadata":{"who":"Ann"}}`},
		{"DELETE", "/records/ark:12345/x1?reason=Wrong", ""},
		{"POST", "/withdraw/ark:12345/x1", `{"reason":"Wrong"}`},
		{"POST", "/reinstate/ark:12345/gone", ""},
		{"POST", "/revert/ark:12345/x1", `{"to":1}`},
		{"POST", "/skip/ark:12345/x5", `{"ahead":10}`},
		{"POST", "/proposals", `{"record":{"id":"ark:12345/proposed","url":"https://example.org/1"},"note":"It is new"}`},
		{"PATCH", "/namespaces/ark:12345/x5", `{"minter":{"kind":"noid","template":".zd"}}`},
	} {
		var head []string
		if c.method == "PUT" {
			head = []string{"If-None-Match", "*"}
		}
		a := s.ask(theAdmin, c.method, Root+c.target, c.body, head...).want(t, 409)
		if !strings.Contains(a.body, "heir.example.org/.log") {
			t.Errorf("%s %s says %s", c.method, c.target, a.body)
		}
	}
	for _, c := range []struct{ target, body, media string }{
		{"/records", `[{"id":"ark:12345/b1","url":"https://example.org/1"}]`, apijson.JSON},
		{"/import", `{"id":"ark:12345/b1","url":"https://example.org/1"}` + "\n", apijson.Lines},
		{"/replace", `{"from":"https://example.org/1","to":"https://new.example.org/1","expect":0}`, apijson.JSON},
	} {
		if a := s.ask(theAdmin, "POST", Root+c.target, c.body, "Content-Type", c.media); !strings.Contains(a.body, "heir.example.org/.log") {
			t.Errorf("%s says %d %s", c.target, a.StatusCode, a.body)
		}
	}
	var rec struct{ Version int }
	s.ask("", "GET", Root+"/records/ark:12345/x1", "").want(t, 200).read(t, &rec)
	if rec.Version != 2 {
		t.Errorf("the record has version %d", rec.Version)
	}
	s.ask("", "GET", Root+"/records/ark:12345/b1", "").want(t, 404)
}
