package httpd

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/resolver"
)

// newPast is a site with a record that has led to three places, a day after the
// other, before it was withdrawn; and others with secrets in their past.
func newPast(t testing.TB) *site {
	s := newSite(t)
	s.space("ark:12345")
	s.space("20.500.12345/")
	s.add(`{"id":"ark:12345/x1","targets":[{"service":"N2L","url":"https://example.org/day1","partial":true}]}`,
		`{"id":"20.500.12345/A?B","url":"https://example.org/odd"}`,
		`{"id":"ark:12345/secret","url":"https://example.org/secret","readers":["user:ann"]}`,
		`{"id":"ark:12345/reserved","state":"reserved"}`,
		`{"id":"ark:12345/redacted","url":"https://example.org/libel","metadata":{"what":"libel"}}`)
	change := func(name string, f func(*stele.Record)) {
		t.Helper()
		if _, err := s.registry.Update(s.admin, s.id(name), 0, func(r *stele.Record) error { f(r); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	for _, day := range []string{"day2", "day3"} {
		s.pass(24 * time.Hour)
		change("ark:12345/x1", func(r *stele.Record) { r.Targets[0].URL = "https://example.org/" + day })
	}
	change("ark:12345/secret", func(r *stele.Record) { r.Readers = nil; r.Targets[0].URL = "https://example.org/open" })
	change("ark:12345/reserved", func(r *stele.Record) {
		r.State = stele.Active
		r.Targets = []stele.Target{{Service: stele.N2L, URL: "https://example.org/public", Order: stele.DefaultOrder, Preference: stele.DefaultPreference}}
	})
	if _, err := s.registry.Redact(s.admin, s.id("ark:12345/redacted"), 0, "a court said so"); err != nil {
		t.Fatal(err)
	}
	s.pass(24 * time.Hour)
	return s
}

func TestTimeGate(t *testing.T) {
	s := newPast(t)
	for date, digits := range map[string]string{
		"Thu, 01 Jan 2026 00:00:00 GMT": "20260101000000",
		"Fri, 02 Jan 2026 12:00:00 GMT": "20260102000000",
		"Mon, 01 Jan 2035 00:00:00 GMT": "20260103000000",
		"Sun, 01 Jan 1995 00:00:00 GMT": "20260101000000", // the nearest there is
	} {
		a := s.leads("/ark:12345/x1", "https://id.example.org/.memento/"+digits+"/ark:12345/x1", http.StatusFound, "Accept-Datetime", date)
		if !strings.Contains(a.get("Vary"), "Accept-Datetime") {
			t.Errorf("Vary is %q", a.get("Vary"))
		}
		for _, rel := range []string{`<https://id.example.org/ark:12345/x1>; rel="original timegate"`, `<https://id.example.org/.timemap/ark:12345/x1>; rel="timemap"`,
			`<https://id.example.org/.memento/20260101000000/ark:12345/x1>; rel="first`, `<https://id.example.org/.memento/20260103000000/ark:12345/x1>; rel="last`} {
			if !strings.Contains(a.get("Link"), rel) {
				t.Errorf("%s: %s is not in %s", date, rel, a.get("Link"))
			}
		}
	}
	for _, date := range []string{"", "yesterday", "2026-01-01", "Thu, 01 Jan 2026 00:00:00 +0200"} {
		if a := s.get("/ark:12345/x1", "Accept-Datetime", date); a.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: %d", date, a.StatusCode)
		}
	}
	s.leads("/20.500.12345/a%3Fb", "https://id.example.org/.memento/20260101000000/20.500.12345/A%3FB", http.StatusFound, "Accept-Datetime", "Thu, 01 Jan 2026 00:00:00 GMT")
}

func TestMemento(t *testing.T) {
	s := newPast(t)
	a := s.leads("/.memento/20260102000000/ark:12345/x1", "https://example.org/day2", http.StatusFound)
	if got := a.get("Memento-Datetime"); got != "Fri, 02 Jan 2026 00:00:00 GMT" {
		t.Errorf("Memento-Datetime is %q", got)
	}
	for _, rel := range []string{`rel="original timegate"`, `rel="first prev memento"; datetime="Thu, 01 Jan 2026 00:00:00 GMT"`, `rel="memento"`, `rel="last next memento"`} {
		if !strings.Contains(a.get("Link"), rel) {
			t.Errorf("%s is not in %s", rel, a.get("Link"))
		}
	}
	s.leads("/.memento/20260101000000/ark:/12345/x1/page?q=1", "https://example.org/day1/page?q=1", http.StatusFound)
	s.leads("/.memento/20260102120000/ark:12345/x1", "https://id.example.org/.memento/20260102000000/ark:12345/x1", http.StatusFound)
	s.fails("/.memento/20251231235959/ark:12345/x1", http.StatusNotFound)
	s.leads("/.memento/20260101000000/20.500.12345/A%3FB", "https://example.org/odd", http.StatusFound)
	if a := s.get("/.memento/20260101000000/ark:12345/x1", "Accept", "application/json"); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "day1") || a.get("Memento-Datetime") == "" {
		t.Errorf("described: %d\n%s", a.StatusCode, a.body)
	}
	for _, date := range []string{"", "2026", "20261332000000", "20260102000000x", "-", "20260101000000/"} {
		if a := s.get("/.memento/" + date); a.StatusCode != http.StatusBadRequest && a.StatusCode != http.StatusNotFound {
			t.Errorf("%q: %d", date, a.StatusCode)
		}
	}
	if _, err := s.registry.Withdraw(s.admin, s.id("ark:12345/x1"), 0, "wrong", stele.ID{}); err != nil {
		t.Fatal(err)
	}
	s.leads("/.memento/20260102000000/ark:12345/x1", "https://example.org/day2", http.StatusFound)
	s.leads("/ark:12345/x1", "https://id.example.org/.memento/20260104000000/ark:12345/x1", http.StatusFound, "Accept-Datetime", "Mon, 01 Jan 2035 00:00:00 GMT")
	if a := s.fails("/.memento/20260104000000/ark:12345/x1", http.StatusGone, "wrong"); a.get("Memento-Datetime") == "" {
		t.Error("the memento of a tombstone has no date")
	}
}

// A past that was imported is found by its dates.
func TestImportedPast(t *testing.T) {
	s := newPast(t)
	number, err := s.registry.BeginImport(s.admin, "purl.org")
	if err != nil {
		t.Fatal(err)
	}
	line, err := registrar.ParseLine(s.schemes, []byte(`{"id":"ark:12345/old","url":"https://example.org/2019","modified":"2019-05-06T07:08:09Z",`+
		`"earlier":[{"url":"https://example.org/2003","modified":"2003-04-05T06:07:08Z","by":"ann"},{"state":"withdrawn","tombstone":{"reason":"off"},"modified":"2011-01-01T00:00:00Z"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	errs, err := s.registry.Ingest(s.admin, []*stele.Record{line.Record}, registrar.ImportOptions{Keep: true, Import: number, Earlier: [][]*stele.Record{line.Earlier}})
	if err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
	s.leads("/ark:12345/old", "https://id.example.org/.memento/20030405060708/ark:12345/old", http.StatusFound, "Accept-Datetime", "Fri, 01 Jan 2010 00:00:00 GMT")
	s.leads("/.memento/20030405060708/ark:12345/old", "https://example.org/2003", http.StatusFound)
	s.fails("/.memento/20110101000000/ark:12345/old", http.StatusGone, "off")
	s.leads("/.memento/20190506070809/ark:12345/old", "https://example.org/2019", http.StatusFound)
}

func TestHiddenPast(t *testing.T) {
	s := newPast(t)
	for _, target := range []string{"/.memento/20260101000000/ark:12345/secret", "/.memento/20260101000000/ark:12345/reserved", "/.memento/20260101000000/ark:12345/redacted"} {
		s.fails(target, http.StatusNotFound)
	}
	s.leads("/.memento/20260103000000/ark:12345/secret", "https://example.org/open", http.StatusFound)
	s.leads("/.memento/20260103000000/ark:12345/reserved", "https://example.org/public", http.StatusFound)
	for _, name := range []string{"secret", "reserved", "redacted"} {
		for _, target := range []string{"/.timemap/ark:12345/" + name, "/.info/ark:12345/" + name} {
			for _, accept := range []string{"", "application/json", firefox} {
				a := s.get(target, "Accept", accept)
				if strings.Contains(a.body, "20260101000000") || strings.Contains(a.body, "libel") || strings.Contains(a.body, "org/secret") {
					t.Errorf("%s shows what it should not:\n%s", target, a.body)
				}
			}
		}
	}
}

// A handle that leads somewhere by its values has a past like others.
func TestPastOfValues(t *testing.T) {
	s := newPast(t)
	s.add(`{"id":"20.500.12345/VALUES","values":[{"index":1,"type":"URL","data":"aHR0cHM6Ly9leGFtcGxlLm9yZy9vbGQ=","ttl":60}]}`,
		`{"id":"20.500.12345/ALIAS","values":[{"index":1,"type":"HS_ALIAS","data":"MjAuNTAwLjEyMzQ1L1ZBTFVFUw==","ttl":60}]}`)
	s.pass(24 * time.Hour)
	if _, err := s.registry.Update(s.admin, s.id("20.500.12345/VALUES"), 0, func(r *stele.Record) error {
		r.Values[0].Data = []byte("https://example.org/new")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s.leads("/20.500.12345/VALUES", "https://example.org/new", http.StatusFound)
	if a := s.leads("/.memento/20260104000000/20.500.12345/VALUES", "https://example.org/old", http.StatusFound); a.get("Memento-Datetime") == "" {
		t.Error("the memento has no date")
	}
	if a := s.get("/.memento/20260104000000/20.500.12345/ALIAS"); a.StatusCode != http.StatusOK {
		t.Errorf("the alias leads today: %d %s", a.StatusCode, a.get("Location"))
	}
}

// A thousand versions of a megabyte are not kept in memory for one answer.
func TestVersionsAreSmall(t *testing.T) {
	s := newPast(t)
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	res, err := s.handler.find(r, "ark:12345/x1", resolver.Request{})
	if err != nil {
		t.Fatal(err)
	}
	versions, _, err := s.handler.versions(r, &res, math.MaxUint64)
	if err != nil || len(versions) != 3 {
		t.Fatal(versions, err)
	}
	for _, v := range versions {
		if v.Modified.IsZero() || v.Targets != nil || v.Metadata != nil || v.Values != nil {
			t.Errorf("%+v", v)
		}
	}
}

func TestTimeMap(t *testing.T) {
	s := newPast(t)
	a := s.get("/.timemap/ark:/12345/x1")
	const want = `<https://id.example.org/ark:12345/x1>; rel="original timegate",
<https://id.example.org/.timemap/ark:12345/x1>; rel="self"; type="application/link-format"; from="Thu, 01 Jan 2026 00:00:00 GMT"; until="Sat, 03 Jan 2026 00:00:00 GMT",
<https://id.example.org/.memento/20260101000000/ark:12345/x1>; rel="first memento"; datetime="Thu, 01 Jan 2026 00:00:00 GMT",
<https://id.example.org/.memento/20260102000000/ark:12345/x1>; rel="memento"; datetime="Fri, 02 Jan 2026 00:00:00 GMT",
<https://id.example.org/.memento/20260103000000/ark:12345/x1>; rel="last memento"; datetime="Sat, 03 Jan 2026 00:00:00 GMT"
`
	if a.StatusCode != http.StatusOK || a.get("Content-Type") != "application/link-format" || a.body != want {
		t.Errorf("%d %s\n%s", a.StatusCode, a.get("Content-Type"), a.body)
	}
	a = s.get("/.timemap/ark:12345/x1", "Accept", "application/json")
	var all struct {
		Mementos struct {
			List []struct{ Datetime, URI string }
		}
	}
	if err := json.Unmarshal([]byte(a.body), &all); err != nil || len(all.Mementos.List) != 3 || all.Mementos.List[0].Datetime != "2026-01-01T00:00:00Z" {
		t.Errorf("%v: %s", err, a.body)
	}
	s.fails("/.timemap/ark:12345/unknown", http.StatusNotFound)
	s.fails("/.timemap/", http.StatusNotFound)
}

// The server does not show where a disavowed version led: its memento answers 410 with the
// reason, and the lists of versions have the fact without the target.
func TestDisavowed(t *testing.T) {
	s := newPast(t)
	if _, err := s.registry.Disavow(s.admin, s.id("ark:12345/x1"), 0, 2, 2, "The account <b>was stolen</b>."); err != nil {
		t.Fatal(err)
	}
	a := s.get("/.memento/20260102000000/ark:12345/x1")
	if a.StatusCode != http.StatusGone || a.get("Location") != "" || !strings.Contains(a.body, "was stolen") || strings.Contains(a.body, "day2") {
		t.Errorf("the memento: %d %q\n%s", a.StatusCode, a.get("Location"), a.body)
	}
	if page := s.get("/.memento/20260102000000/ark:12345/x1", "Accept", "text/html"); page.StatusCode != http.StatusGone || strings.Contains(page.body, "<b>was") || !strings.Contains(page.body, "was stolen") {
		t.Errorf("the page of the memento: %d\n%s", page.StatusCode, page.body)
	}
	if link := a.get("Link"); !strings.Contains(link, "/.memento/20260101000000/") || strings.Contains(link, "/.memento/20260102000000/") {
		t.Errorf("links: %s", link)
	}
	s.leads("/ark:12345/x1", "https://id.example.org/.memento/20260102000000/ark:12345/x1", http.StatusFound, "Accept-Datetime", "Fri, 02 Jan 2026 12:00:00 GMT")
	s.leads("/.memento/20260101000000/ark:12345/x1", "https://example.org/day1", http.StatusFound)
	s.leads("/.memento/20260103000000/ark:12345/x1", "https://example.org/day3", http.StatusFound)
	if a := s.get("/.timemap/ark:12345/x1"); strings.Contains(a.body, "20260102000000") || !strings.Contains(a.body, "20260103000000") {
		t.Errorf("the TimeMap: %s", a.body)
	}
	a = s.get("/.info/ark:12345/x1", "Accept", "application/json")
	if strings.Contains(a.body, "day2") || !strings.Contains(a.body, `"disavowed":"The account`) {
		t.Errorf("/.info/: %s", a.body)
	}
	if a := s.get("/.info/ark:12345/x1", "Accept", "text/html"); strings.Contains(a.body, "day2") ||
		!strings.Contains(a.body, "disavowed: The account &lt;b&gt;was stolen&lt;/b&gt;.") {
		t.Errorf("the page: %s", a.body)
	}
}

// A long past is a TimeMap of several pages. From any of them all are found by links, and
// together they have every memento once, also where many versions are of one second. What a
// page says of the time that another covers is true.
func TestTimeMapPages(t *testing.T) {
	s := newPast(t)
	const versions = 2500
	times := map[string]bool{"20260101000000": true, "20260102000000": true, "20260103000000": true}
	for i := range versions {
		if i%4 != 0 { // versions in one second are one memento, and pages end between them
			s.pass(time.Second / 3)
		} else {
			s.pass(time.Second)
		}
		if _, err := s.registry.Update(s.admin, s.id("ark:12345/x1"), 0, func(r *stele.Record) error {
			r.Targets[0].URL = fmt.Sprint("https://example.org/v", i)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		times[s.now().UTC().Format(digits)] = true
	}
	const first = "https://id.example.org/.timemap/ark:12345/x1"
	pages := map[string]answer{}
	from := map[string][2]string{} // what other pages say that a page covers
	for queue := []string{first}; len(queue) > 0; queue = queue[1:] {
		url := queue[0]
		if _, ok := pages[url]; ok {
			continue
		}
		a := s.get(strings.TrimPrefix(url, "https://id.example.org"))
		if a.StatusCode != http.StatusOK || len(a.body) > 2*maxMementos*200 {
			t.Fatalf("%s: %d, %d bytes", url, a.StatusCode, len(a.body))
		}
		pages[url] = a
		for _, l := range linked(a.body, "timemap") {
			queue = append(queue, l.url)
			if l.attributes["until"] != "" {
				from[l.url] = [2]string{l.attributes["from"], l.attributes["until"]}
			}
		}
	}
	seen := make(map[string]bool)
	for url, a := range pages {
		self := linked(a.body, "self")
		if len(self) != 1 || self[0].url != url || len(linked(a.body, "original")) != 1 || len(linked(a.body, "timegate")) != 1 {
			t.Errorf("%s: %.300s", url, a.body)
		}
		if url != first && (len(linked(a.body, "timemap")) == 0 || linked(a.body, "timemap")[0].url != first) {
			t.Errorf("%s does not lead to the first page", url)
		}
		for _, m := range linked(a.body, "memento") {
			if seen[m.url] {
				t.Errorf("%s is there twice", m.url)
			}
			seen[m.url] = true
			at, err := http.ParseTime(m.attributes["datetime"])
			if err != nil || !strings.Contains(m.url, "/"+at.Format(digits)+"/") || !times[at.Format(digits)] {
				t.Errorf("%s has the date %s", m.url, m.attributes["datetime"])
			}
			for _, span := range [][2]string{{self[0].attributes["from"], self[0].attributes["until"]}, from[url]} {
				begin, _ := http.ParseTime(span[0])
				if end, err := http.ParseTime(span[1]); err == nil && (at.Before(begin) || at.After(end)) {
					t.Errorf("%s: %s is not within %v", url, m.url, span)
				}
			}
		}
		if first := strings.Contains(a.body, `rel="first memento"`); first != (url == oldestPage(pages)) {
			t.Errorf("%s: the first memento is marked: %v", url, first)
		}
		if last := strings.Contains(a.body, `rel="last memento"`); last != (url == first) {
			t.Errorf("%s: the last memento is marked: %v", url, last)
		}
	}
	if len(pages) != 3 || len(seen) != len(times) || len(from) != 2 {
		t.Errorf("%d pages have %d mementos, want 3 and %d", len(pages), len(seen), len(times))
	}
	if a := s.get("/.timemap/ark:12345/x1?before=x"); a.StatusCode != http.StatusBadRequest {
		t.Errorf("before=x: %d", a.StatusCode)
	}
	var page struct {
		TimeMap struct {
			Next string `json:"next"`
		} `json:"timemap_uri"`
	}
	if a := s.get("/.timemap/ark:12345/x1", "Accept", "application/json"); json.Unmarshal([]byte(a.body), &page) != nil || pages[page.TimeMap.Next].Response == nil {
		t.Errorf("the next page in JSON is %q", page.TimeMap.Next)
	}
}

// oldestPage returns the page of a TimeMap from which no other leads on.
func oldestPage(pages map[string]answer) string {
	for url, a := range pages {
		if !strings.Contains(a.body, "?before=") || !slices.ContainsFunc(linked(a.body, "timemap"), func(l timeLink) bool { return strings.Contains(l.url, "?before=") }) {
			return url
		}
	}
	return ""
}
