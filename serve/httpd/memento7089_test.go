package httpd

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// timeLink is a link of a Link header, or of a TimeMap.
type timeLink struct {
	url        string
	rels       []string
	attributes map[string]string
}

var (
	linkForm      = regexp.MustCompile(`<([^>]*)>((?:\s*;\s*[a-z]+="[^"]*")*)`)
	attributeForm = regexp.MustCompile(`;\s*([a-z]+)="([^"]*)"`)
)

// readLinks reads links as RFC 8288 writes them.
func readLinks(text string) (links []timeLink) {
	for _, found := range linkForm.FindAllStringSubmatch(text, -1) {
		l := timeLink{url: found[1], attributes: map[string]string{}}
		for _, a := range attributeForm.FindAllStringSubmatch(found[2], -1) {
			l.attributes[a[1]] = a[2]
		}
		l.rels = strings.Fields(l.attributes["rel"])
		links = append(links, l)
	}
	return links
}

// linked returns the links of a relation.
func linked(text, rel string) (some []timeLink) {
	for _, l := range readLinks(text) {
		if slices.Contains(l.rels, rel) {
			some = append(some, l)
		}
	}
	return some
}

// role is what a resource is in RFC 7089.
type role int

const (
	outside role = iota // the framework
	timeGate
	memento
	intermediate
)

// wantRole fails if an answer does not have the headers of table 5 of RFC 7089, pattern 1.1.
func wantRole(t *testing.T, a answer, want role, original, what string) {
	t.Helper()
	negotiates := strings.Contains(strings.ToLower(a.get("Vary")), "accept-datetime")
	links := strings.Join(a.Header["Link"], ", ")
	originals := linked(links, "original")
	if negotiates != (want == timeGate) {
		t.Errorf("%s: Vary is %q", what, a.get("Vary"))
	}
	if has := a.get("Memento-Datetime") != ""; has != (want == memento) {
		t.Errorf("%s: Memento-Datetime is %q", what, a.get("Memento-Datetime"))
	}
	if want == outside {
		return
	}
	if len(originals) != 1 || originals[0].url != original {
		t.Errorf("%s: the original is not %s: %s", what, original, links)
	}
	if gates := linked(links, "timegate"); want != intermediate && (len(gates) != 1 || gates[0].url != original) {
		t.Errorf("%s: the TimeGate is not %s: %s", what, original, links)
	}
	if len(linked(links, "timemap")) != 1 {
		t.Errorf("%s: there is no link to a TimeMap: %s", what, links)
	}
}

func TestMementoRoles(t *testing.T) {
	s := newPast(t)
	s.space("20.500.88888/", func(ns *stele.Namespace) { ns.Delegate = "https://hdl.example.net/{id}" })
	s.add(`{"id":"ark:12345/gone","url":"https://example.org/gone"}`,
		`{"id":"ark:12345/other","targets":[{"url":"https://example.org/o","status":410}]}`,
		`{"id":"ark:12345/csv","targets":[{"url":"https://example.org/o","type":"text/csv"}]}`,
		`{"id":"20.500.12345/V","values":[{"index":1,"type":"URL","data":"aHR0cHM6Ly9leGFtcGxlLm9yZy9vbGQ="}]}`,
		`{"id":"20.500.12345/L","values":[{"index":1,"type":"HS_ALIAS","data":"MjAuNTAwLjEyMzQ1L1Y="}]}`)
	s.pass(time.Hour)
	if _, err := s.registry.Withdraw(s.admin, s.id("ark:12345/gone"), 0, "wrong", stele.ID{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.registry.Disavow(s.admin, s.id("ark:12345/x1"), 0, 2, 2, "stolen"); err != nil {
		t.Fatal(err)
	}
	const base = "https://id.example.org/"
	const then = "Fri, 02 Jan 2026 12:00:00 GMT"
	for _, tt := range []struct {
		path     string
		head     []string
		status   int
		want     role
		original string // follows base
	}{
		// The URL of a record, whatever is answered there.
		{"/ark:12345/x1", nil, 302, timeGate, "ark:12345/x1"},
		{"/ark:12345/x1", []string{"Accept", firefox}, 302, timeGate, "ark:12345/x1"},
		{"/ark:12345/x1", []string{"Accept", "application/json"}, 200, timeGate, "ark:12345/x1"},
		{"/ark:/12345/x1/page", nil, 302, timeGate, "ark:12345/x1/page"},
		{"/ark:/12345/x1/page", []string{"Accept", "application/json"}, 200, timeGate, "ark:12345/x1/page"},
		{"/ark:12345/x1", []string{"Accept-Datetime", then}, 302, timeGate, "ark:12345/x1"},
		{"/ark:12345/x1", []string{"Accept-Datetime", "yesterday"}, 400, timeGate, "ark:12345/x1"},
		{"/ark:12345/x1?noredirect", []string{"Accept", firefox}, 200, timeGate, "ark:12345/x1"},
		{"/ark:12345/x1?info", nil, 200, timeGate, "ark:12345/x1"},
		{"/ark:12345/gone", nil, 410, timeGate, "ark:12345/gone"},
		{"/ark:12345/gone", []string{"Accept", firefox}, 410, timeGate, "ark:12345/gone"},
		{"/ark:12345/gone", []string{"Accept", "application/json"}, 410, timeGate, "ark:12345/gone"},
		{"/ark:12345/gone", []string{"Accept", "application/x-bibtex"}, 410, timeGate, "ark:12345/gone"},
		{"/ark:12345/gone?info", nil, 410, timeGate, "ark:12345/gone"},
		{"/ark:12345/other", nil, 410, timeGate, "ark:12345/other"},
		{"/ark:12345/csv", []string{"Accept", "application/pdf"}, 406, timeGate, "ark:12345/csv"},
		{"/20.500.12345/v", nil, 302, timeGate, "20.500.12345/V"},
		{"/20.500.12345/l?locatt=x:y", nil, 302, timeGate, "20.500.12345/L"},
		{"/20.500.12345/v?noredirect", nil, 200, timeGate, "20.500.12345/V"},
		{"/20.500.12345/v?noredirect", []string{"Accept", firefox}, 200, timeGate, "20.500.12345/V"},
		{"/20.500.12345/v?noredirect", []string{"Accept", "application/json"}, 200, timeGate, "20.500.12345/V"},

		{"/.memento/20260101000000/ark:12345/x1", nil, 302, memento, "ark:12345/x1"},
		{"/.memento/20260101000000/ark:12345/x1", []string{"Accept-Datetime", then}, 302, memento, "ark:12345/x1"},
		{"/.memento/20260101000000/ark:12345/x1", []string{"Accept", "application/json"}, 200, memento, "ark:12345/x1"},
		{"/.memento/20260101000000/ark:12345/x1/page", nil, 302, memento, "ark:12345/x1/page"},
		{"/.memento/20260101000000/ark:12345/x1", []string{"Accept", "application/pdf;q=0.1, */*;q=0"}, 406, memento, "ark:12345/x1"},
		{"/.memento/20260102000000/ark:12345/x1", nil, 410, memento, "ark:12345/x1"},
		{"/.memento/20260104010000/ark:12345/gone", nil, 410, memento, "ark:12345/gone"},
		{"/.memento/20260104000000/ark:12345/other", nil, 410, memento, "ark:12345/other"},
		{"/.memento/20260104000000/20.500.12345/v", nil, 302, memento, "20.500.12345/V"},

		{"/.memento/20260101120000/ark:12345/x1", nil, 302, intermediate, "ark:12345/x1"},
		{"/.memento/20260101120000/ark:12345/x1", []string{"Accept-Datetime", then}, 302, intermediate, "ark:12345/x1"},

		{"/.timemap/ark:12345/x1", nil, 200, outside, ""},
		{"/.info/ark:12345/x1", nil, 200, outside, ""},
		{"/.memento/20200101000000/ark:12345/x1", nil, 404, outside, ""},
		{"/ark:12345/nothing", nil, 404, outside, ""},
		{"/ark:12345/x1?explain", nil, 200, outside, ""},
		{"/20.500.88888/x", nil, 302, outside, ""},
		{"/uri-res/N2C?ark:12345/x1", nil, 200, outside, ""},
		{"/", nil, 200, outside, ""},
	} {
		a := s.get(tt.path, tt.head...)
		what := fmt.Sprint(tt.path, " ", tt.head)
		if a.StatusCode != tt.status {
			t.Errorf("%s: %d, want %d\n%s", what, a.StatusCode, tt.status, a.body)
		}
		wantRole(t, a, tt.want, base+tt.original, what)
	}
	// The REST interface of handles is not a TimeGate, and leads to it from what is gone.
	s.add(`{"id":"20.500.12345/W","url":"https://example.org/w"}`)
	if _, err := s.registry.Withdraw(s.admin, s.id("20.500.12345/W"), 0, "wrong", stele.ID{}); err != nil {
		t.Fatal(err)
	}
	if a := s.get("/api/handles/20.500.12345/W"); a.StatusCode != http.StatusGone || len(linked(a.get("Link"), "timegate")) != 1 {
		t.Errorf("%d %s", a.StatusCode, a.get("Link"))
	}
}

// Accept-Datetime has one form, though HTTP knows three (RFC 7089, sections 2.1.1 and 4.5.3).
func TestAcceptDatetime(t *testing.T) {
	s := newPast(t)
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for _, good := range []string{at.Format(http.TimeFormat), "Sun, 02 Jan 2026 12:00:00 GMT"} {
		s.leads("/ark:12345/x1", "https://id.example.org/.memento/20260102000000/ark:12345/x1", http.StatusFound, "Accept-Datetime", good)
	}
	for _, bad := range []string{at.Format(time.RFC850), at.Format(time.ANSIC), at.Format(time.RFC1123), at.Format(time.RFC1123Z), at.Format(time.RFC3339),
		"fri, 02 Jan 2026 12:00:00 GMT", "Fri, 02 JAN 2026 12:00:00 GMT", "Fri, 02 Jan 2026 12:00:00 gmt", "Fri, 2 Jan 2026 12:00:00 GMT", "Fri, 02 Jan 2026 12:00:00.5 GMT",
		"Fri, 02 Jan 2026 12:00:00 GMT ", " Fri, 02 Jan 2026 12:00:00 GMT", "Fri,02 Jan 2026 12:00:00 GMT", "Fri, 02 Jan 26 12:00:00 GMT", "Fri, 32 Jan 2026 12:00:00 GMT",
		"Fri, 02 Jan 2026 12:00 GMT", "Fri, 02 Jan 2026 24:00:00 GMT", "Foo, 02 Jan 2026 12:00:00 GMT", "n T, 02 Jan 2026 12:00:00 GMT", "", "Fri, 02 Jan 2026 12:00:00 GMT, Fri, 02 Jan 2026 12:00:00 GMT"} {
		if a := s.get("/ark:12345/x1", "Accept-Datetime", bad); a.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: %d %s", bad, a.StatusCode, a.get("Location"))
		}
	}
	if a := s.get("/ark:12345/x1", "Accept-Datetime", at.Format(http.TimeFormat), "Accept-Datetime", at.Format(http.TimeFormat)); a.StatusCode != http.StatusBadRequest {
		t.Errorf("two of them: %d", a.StatusCode)
	}
}
