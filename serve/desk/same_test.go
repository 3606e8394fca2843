package desk

import (
	"html"
	"net/url"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// TestSame: each page that changes a record says which command and which request do the same, as the form is filled in and quoted for a shell.
func TestSame(t *testing.T) {
	s := newSite(t)
	olga := s.as("olga")
	path := olga.make(url.Values{"target.0.url": {"https://example.org/1"}, "own": {"ark:12345/x5a"}, "what": {"Map"}})
	same := func(p page, want ...string) {
		t.Helper()
		_, said, _ := strings.Cut(p.has(p.StatusCode).text, `class="same"`)
		said = html.UnescapeString(said)
		for _, text := range want {
			if !strings.Contains(said, text+"</code>") {
				t.Errorf("%s does not say %s:\n%s", p.Request.URL, text, said)
			}
		}
	}
	const curl = `curl -X POST -H "Authorization: Bearer $STELE_TOKEN"`
	body := func(text string) string {
		return ` -H 'Content-Type: application/json' -d '` + text + `' ` + s.url + "/api/v1/"
	}
	same(olga.get(path), "stele update ark:12345/x5a --to https://example.org/1 --if-version 1",
		`curl -X PATCH -H "Authorization: Bearer $STELE_TOKEN" -H 'If-Match: "v1"' -H 'Content-Type: application/merge-patch+json' -d '{"metadata":{"what":"..."}}' `+s.url+"/api/v1/records/ark:12345/x5a")
	olga.post("/.desk/record", url.Values{"id": {"ark:12345/x5a"}, "version": {"1"}, "do": {"save"}, "target.0.url": {"https://example.org/2"}})
	same(olga.get("/.desk/history?id=ark:12345/x5a"), "stele history ark:12345/x5a", "stele revert ark:12345/x5a --to 1", curl+body(`{"to":1}`)+"revert/ark:12345/x5a")
	same(olga.get("/.desk/disavow?id=ark:12345/x5a&number=1"), "stele disavow ark:12345/x5a --version 1 --reason ...", curl+body(`{"first":1,"reason":"..."}`)+"disavow/ark:12345/x5a")
	same(olga.get("/.desk/withdraw?id=ark:12345/x5a"), "stele withdraw ark:12345/x5a --reason ...", curl+body(`{"reason":"..."}`)+"withdraw/ark:12345/x5a")
	sent := url.Values{"id": {"ark:12345/x5a"}, "version": {"2"}, "reason": {"Lima's mistake; rm -rf /"}, "replacement": {"ark:12345/x5b"}, "do": {"preview"}}
	same(olga.post("/.desk/withdraw", sent), `stele withdraw ark:12345/x5a --reason 'Lima'\''s mistake; rm -rf /' --replacement ark:12345/x5b`)
	sent.Set("do", "withdraw")
	same(olga.follow(olga.post("/.desk/withdraw", sent)), "stele reinstate ark:12345/x5a", curl+" "+s.url+"/api/v1/reinstate/ark:12345/x5a")

	must(s.r.Register(s.admin, &stele.Record{ID: must(s.names.Parse("ark:12345/x5r"))(t), State: stele.Reserved}))(t)
	same(olga.get("/.desk/record?id=ark:12345/x5r"), "stele update ark:12345/x5r --activate --if-version 1", `-d '{"state":"active"}' `+s.url+"/api/v1/records/ark:12345/x5r")
	same(olga.get("/.desk/new?namespace=ark:12345/x5"), "stele mint ark --help", body(`{"namespace":"ark:12345/x5","record":{"url":"https://example.org/1"}}`)+"mint")
	same(olga.post("/.desk/new", url.Values{"namespace": {"ark:12345/x5"}, "own": {"ark:12345/x5 new"}, "what": {"A map"}, "reserve": {"yes"}, "target.0.url": {"https://example.org/3"}, "do": {"add-target"}}),
		"stele register 'ark:12345/x5 new' --to https://example.org/3 --title 'A map' --reserve")

	// A list says what finds the same, and a registry that was restored names its generation.
	const get = `curl -H "Authorization: Bearer $STELE_TOKEN" `
	same(olga.get("/.desk/names?namespace=ark:12345/x5&state=active&host=Example.org&by=olga&since=2026-11-01&until=2026-11-16&q=map"),
		"stele find --namespace ark:12345/x5 --state active --host example.org --by olga --since 2026-11-01T00:00:00Z --until 2026-11-17T00:00:00Z map",
		get+"'"+s.url+"/api/v1/search?after=2026-11-01T00%3A00%3A00Z&before=2026-11-17T00%3A00%3A00Z&by=olga&host=example.org&namespace=ark%3A12345%2Fx5&q=map&state=active'")
	same(olga.get("/.desk/names?q="+url.QueryEscape("-x 'map'")), `stele find -- '-x '\''map'\'''`)
	same(olga.get("/.desk/names"), "stele find", get+s.url+"/api/v1/search")
	same(olga.get("/.desk/namespaces"), "stele ns ls", get+s.url+"/api/v1/namespaces")
	list := stele.FirstGeneration(s.now)
	list = list.Next(s.now, 3, list, 3)
	s.handler.o.Generations = func() stele.Generations { return list }
	same(olga.get("/.desk/record?id=ark:12345/x5r"), `-H 'If-Match: "v1.`+list.Last().ID.String()[:8]+`"' -H 'Content-Type: application/merge-patch+json' -d '{"state":"active"}' `+s.url+"/api/v1/records/ark:12345/x5r")

	must(s.r.SetNamespace(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, 0, func(ns *stele.Namespace) error { ns.Reviewed = true; return nil }))(t)
	ed := s.as("ed")
	sent = ed.get("/.desk/new?namespace=ark:12345/x5").fields("new")
	sent.Set("target.0.url", "https://example.org/1")
	sent.Set("do", "propose")
	at := ed.post("/.desk/new", sent).leads("/.desk/proposal?id=").Header.Get("Location")
	id := must(url.Parse(at))(t).Query().Get("id")
	same(ed.get("/.desk/proposals"), "stele proposal ls", get+s.url+"/api/v1/proposals")
	same(ed.get(at), "stele proposal show "+id, "stele proposal decline "+id, curl+body("{}")+"decline/"+id)
	same(olga.get(at), "stele proposal approve "+id, curl+" "+s.url+"/api/v1/approve/"+id, "stele proposal decline "+id+" --reason ...", curl+body(`{"reason":"..."}`)+"decline/"+id)
}
