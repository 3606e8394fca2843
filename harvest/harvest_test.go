package harvest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/harvest"
	"github.com/stele-id/stele/outbound"
)

var x5 = stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}

// TestProvider: a registry is harvested from another one, in pages; then what changed since; deleted records are withdrawn, and
// reinstated when they are there again.
func TestProvider(t *testing.T) {
	from, to := newRegistry(t), newRegistry(t)
	from.space(x5, true)
	to.space(x5, false)
	from.now = from.now.Add(time.Hour)
	for i := range 45 {
		from.register(fmt.Sprintf("ark:12345/x5a%02d", i), fmt.Sprintf("https://data.example.org/%02d", i))
	}
	var asked []url.Values
	at := from.provide(10, func(q url.Values) { asked = append(asked, q) })
	to.now = from.now.Add(time.Hour)
	from.now = to.now
	j := newJob(to, at, x5, harvest.Dublin)
	if c := j.must(); c.New != 45 || c.Pages != 5 || c.Rejected != 0 {
		t.Fatalf("%+v %q", c, j.rejected)
	}
	if got := to.leads("ark:12345/x5a07"); got != "active https://data.example.org/07 10" {
		t.Error(got)
	}
	rec, err := to.Get(to.ctx, to.id("ark:12345/x5a07"))
	if err != nil || rec.Metadata["what"] != "Of ark:12345/x5a07" || rec.Import == 0 {
		t.Errorf("%+v %v", rec, err)
	}

	// The next harvest asks for changes only, and withdraws what is deleted.
	from.now = from.now.Add(24 * time.Hour)
	to.now = from.now
	if _, err := from.Withdraw(from.ctx, from.id("ark:12345/x5a03"), 0, "lost", stele.ID{}); err != nil {
		t.Fatal(err)
	}
	if _, err := from.Update(from.ctx, from.id("ark:12345/x5a04"), 0, func(r *stele.Record) error {
		r.Targets[0].URL = "https://new.example.org/04"
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	asked = nil
	if c := j.must(); c.Updated != 1 || c.Withdrawn != 1 || c.New != 0 || c.Pages != 1 {
		t.Fatalf("%+v", c)
	}
	if asked[1].Get("from") == "" {
		t.Errorf("%v", asked)
	}
	if got := to.leads("ark:12345/x5a04"); got != "active https://new.example.org/04 10" {
		t.Error(got)
	}
	if got := to.leads("ark:12345/x5a03"); !strings.HasPrefix(got, "withdrawn") {
		t.Error(got)
	}
	if _, err := to.Withdraw(to.ctx, to.id("ark:12345/x5a05"), 0, "by a curator", stele.ID{}); err != nil {
		t.Fatal(err)
	}
	from.now = from.now.Add(24 * time.Hour)
	to.now = from.now
	if _, err := from.Reinstate(from.ctx, from.id("ark:12345/x5a03"), 0); err != nil {
		t.Fatal(err)
	}
	j.o.Again = true
	if c := j.must(); c.Updated != 1 || c.Rejected != 1 || c.Unchanged != 43 {
		t.Errorf("%+v", c)
	}
	if got := to.leads("ark:12345/x5a03"); !strings.HasPrefix(got, "active") || !slices.Equal(j.rejected, []string{"ark:12345/x5a05 harvest.withdrawn-here"}) {
		t.Errorf("%s %q", got, j.rejected)
	}
}

// TestLimit: a harvest that would withdraw more than 5 % withdraws nothing and says so, until it is told to; a dry run writes nothing.
func TestLimit(t *testing.T) {
	from, to := newRegistry(t), newRegistry(t)
	from.space(x5, true)
	to.space(x5, false)
	for i := range 40 {
		from.register(fmt.Sprintf("ark:12345/x5a%02d", i), "https://data.example.org/")
	}
	requests := 0
	at := from.provide(7, func(url.Values) { requests++ })
	j := newJob(to, at, x5, harvest.Dublin)
	j.o.DryRun = true
	if c := j.must(); c.New != 40 || to.leads("ark:12345/x5a00") != "nothing" {
		t.Fatalf("%+v", c)
	}
	j.o.DryRun = false
	j.must()
	from.now = from.now.Add(24 * time.Hour)
	to.now = from.now
	withdraw := func(n int) {
		t.Helper()
		if _, err := from.Withdraw(from.ctx, from.id(fmt.Sprintf("ark:12345/x5a%02d", n)), 0, "lost", stele.ID{}); err != nil {
			t.Fatal(err)
		}
	}
	withdraw(0)
	withdraw(1)
	if c := j.must(); c.Withdrawn != 2 { // 5 % of 40
		t.Fatalf("%+v", c)
	}
	from.now = from.now.Add(32 * 24 * time.Hour)
	to.now = from.now
	for i := 10; i < 13; i++ {
		withdraw(i)
	}
	c, err := j.run(to.ctx)
	tooMany, ok := errors.AsType[*harvest.TooManyError](err)
	if !ok || tooMany.Deleted != 3 || tooMany.All != 40 || c.Withdrawn != 0 || stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), "--yes") {
		t.Fatalf("%+v %v", c, err)
	}
	if got := to.leads("ark:12345/x5a10"); !strings.HasPrefix(got, "active") {
		t.Error(got)
	}
	if _, err := j.run(to.ctx); err == nil { // it asks again
		t.Fatal("it went on by itself")
	}
	// One of them is there again before the user agrees.
	from.now = from.now.Add(24 * time.Hour)
	to.now = from.now
	if _, err := from.Reinstate(from.ctx, from.id("ark:12345/x5a11"), 0); err != nil {
		t.Fatal(err)
	}
	requests = 0
	j.o.Yes = true
	if c := j.must(); c.Withdrawn != 2 || requests != 1 {
		t.Errorf("%+v, %d requests", c, requests)
	}
	if got := to.leads("ark:12345/x5a11"); !strings.HasPrefix(got, "active") {
		t.Error(got)
	}
	if got := to.leads("ark:12345/x5a10"); !strings.HasPrefix(got, "withdrawn") {
		t.Error(got)
	}
}

// TestResume: a harvest that is cut off at any page goes on there, also with names that are to be withdrawn, and ends with the same.
func TestResume(t *testing.T) {
	from, to := newRegistry(t), newRegistry(t)
	from.space(x5, true)
	to.space(x5, false)
	for i := range 60 {
		from.register(fmt.Sprintf("ark:12345/x5a%02d", i), "https://data.example.org/1")
	}
	var cut context.CancelFunc
	left, asked := 0, 0
	at := from.provide(10, func(url.Values) {
		asked++
		if left--; left == 0 {
			cut()
		}
	})
	j := newJob(to, at, x5, harvest.Dublin)
	j.must()
	for i := range 60 {
		from.now = from.now.Add(time.Second)
		name := from.id(fmt.Sprintf("ark:12345/x5a%02d", i))
		var err error
		if i%30 == 5 { // on the first page, and on a later one
			_, err = from.Withdraw(from.ctx, name, 0, "lost", stele.ID{})
		} else {
			_, err = from.Update(from.ctx, name, 0, func(r *stele.Record) error { r.Targets[0].URL = "https://data.example.org/2"; return nil })
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	to.now = from.now.Add(time.Minute)
	j.o.Again = true
	asked = 0
	for runs := 0; ; runs++ {
		ctx, cancel := context.WithCancel(to.ctx)
		cut, left = cancel, 3
		c, err := j.run(ctx)
		cancel()
		j.o.Again = false
		if err == nil {
			if c.Updated != 58 || c.Withdrawn != 2 || c.Pages != 6 || runs < 2 {
				t.Errorf("%+v after %d runs", c, runs)
			}
			break
		}
		if !errors.Is(err, context.Canceled) || runs > 10 {
			t.Fatalf("%d: %v", runs, err)
		}
	}
	if asked > 12 {
		t.Errorf("it asked %d times for 6 pages", asked)
	}
	if got := to.leads("ark:12345/x5a35"); !strings.HasPrefix(got, "withdrawn") {
		t.Error(got)
	}
	// Two runs of the same harvest do not mix.
	first, err := harvest.New(to.ctx, j.o)
	if err != nil {
		t.Fatal(err)
	}
	j.must()
	if err := first.Run(to.ctx); !errors.Is(err, stele.Conflict) {
		t.Errorf("a second run: %v", err)
	}
}

// page makes an answer to ListRecords.
func page(token string, records ...string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><?xml-stylesheet type="text/xsl" href="oai.xsl"?><OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><responseDate>2026-06-01T12:00:00Z</responseDate><request>x</request>` +
		"<ListRecords>" + strings.Join(records, "") + "<resumptionToken>" + token + "</resumptionToken></ListRecords></OAI-PMH>"
}

const identify = `<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><Identify><repositoryName>x</repositoryName><granularity>YYYY-MM-DD</granularity></Identify></OAI-PMH>`

// record makes a record.
func record(id, date, metadata string) string {
	if metadata == "" {
		return `<record><header status="deleted"><identifier>` + id + "</identifier><datestamp>" + date + "</datestamp></header></record>"
	}
	return "<record><header><identifier>" + id + "</identifier><datestamp>" + date + "</datestamp></header><metadata>" + metadata + "</metadata></record>"
}

// epicur makes a document in the shape of the Deutsche Nationalbibliothek's.
func epicur(update, urn string, resources ...string) string {
	return `<epicur xmlns="urn:nbn:de:1111-2004033116"><administrative_data><delivery><update_status type="` + update + `"/><transfer type="oai"/></delivery></administrative_data>` +
		`<record><identifier scheme="urn:nbn:de">` + urn + "</identifier>" + strings.Join(resources, "") + "</record></epicur>"
}

func resource(role, url, format string) string {
	return `<resource><identifier scheme="url" type="frontpage" role="` + role + `" origin="original">` + url + `</identifier><format scheme="imt">` + format + "</format></resource>"
}

// script serves answers to ListRecords, one after the other.
func script(t *testing.T, answers ...string) string {
	n := 0
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		if r.URL.Query().Get("verb") == "Identify" {
			fmt.Fprint(w, identify)
			return
		}
		fmt.Fprint(w, answers[min(n, len(answers)-1)])
		n++
	})
}

var gbv = stele.NamespaceKey{Scheme: "urn", Prefix: "urn:nbn:de:gbv"}

// TestEpicur: URN:NBN and their URLs, with their roles and all kinds of updates; names of others are rejected.
func TestEpicur(t *testing.T) {
	to := newRegistry(t)
	to.space(gbv, false)
	const urn = "urn:nbn:de:gbv:7-3"
	html := func(role, url string) string { return resource(role, url, "text/html") }
	for i, tt := range []struct{ record, want, rejected string }{
		{epicur("urn_new", urn, html("secondary", "https://b.example/1"), resource("primary", "https://a.example/1.pdf", "application/pdf")), "active https://b.example/1 20, https://a.example/1.pdf 10", ""},
		{epicur("url_insert", urn, html("primary", "https://c.example/1")), "active https://b.example/1 20, https://a.example/1.pdf 10, https://c.example/1 20", ""},
		{epicur("url_delete", urn, html("primary", "https://b.example/1")), "active https://a.example/1.pdf 10, https://c.example/1 20", ""},
		{epicur("url_update_general", urn, html("primary", "https://d.example/1")), "active https://d.example/1 10", ""},
		{epicur("url_explode", urn, html("primary", "https://e.example/1")), "active https://d.example/1 10", "harvest.update-unknown"},
		{epicur("urn_new", "urn:nbn:de:bvb:7-8", html("primary", "https://e.example/1")), "active https://d.example/1 10", "harvest.no-name"},
		{epicur("urn_new", "urn:nbn:de:gbv:7-4", html("primary", "https://e.example/1")), "active https://d.example/1 10", "harvest.no-name"}, // the check digit
		{epicur("url_update_general", urn, html("primary", "javascript:alert(1)")), "active https://d.example/1 10", "record.invalid"},
		{"<other/>", "active https://d.example/1 10", "harvest.metadata-of-another-format"},
	} {
		j := newJob(to, script(t, page("", record("oai:x:1", "2026-06-01", tt.record))), gbv, harvest.Epicur)
		c := j.must()
		if got := to.leads(urn); got != tt.want {
			t.Errorf("%d: %s, want %s", i, got, tt.want)
		}
		switch {
		case tt.rejected == "" && c.Rejected != 0, tt.rejected != "" && c.Rejected != 1:
			t.Errorf("%d: %+v %q", i, c, j.rejected)
		case tt.rejected != "" && tt.rejected != "record.invalid" && j.rejected[0] != "oai:x:1 "+tt.rejected:
			t.Errorf("%d: %q", i, j.rejected)
		}
	}
	// A deleted record has only the identifier of the repository.
	j := newJob(to, script(t, page("", record("oai:x:1", "2026-06-02", ""), record("oai:x:2", "2026-06-02", ""))), gbv, harvest.Epicur)
	j.o.Limit = 1
	if c := j.must(); c.Withdrawn != 1 || c.Unknown != 1 || !strings.HasPrefix(to.leads(urn), "withdrawn") {
		t.Errorf("%+v %s", c, to.leads(urn))
	}
}

// TestDataCite: a DOI with the URL that the repository writes beside it.
func TestDataCite(t *testing.T) {
	to := newRegistry(t)
	doi := stele.NamespaceKey{Scheme: "hdl", Prefix: "10.1234/"}
	to.space(doi, false)
	resource := func(name, url string) string {
		return `<oai_datacite xmlns="http://schema.datacite.org/oai/oai-1.1/"><payload><resource xmlns="http://datacite.org/schema/kernel-4"><identifier identifierType="DOI">` + name + `</identifier>
<creators><creator><creatorName>Lima, Ana</creatorName></creator><creator><creatorName>Souza, Bia</creatorName></creator></creators><titles><title>Rain</title></titles><publisher>(:unav)</publisher><publicationYear>2024</publicationYear>` + url + `</resource></payload></oai_datacite>`
	}
	at := `<alternateIdentifiers><alternateIdentifier alternateIdentifierType="URL">https://repo.example/1</alternateIdentifier></alternateIdentifiers>`
	j := newJob(to, script(t, page("", record("1", "2026-06-01", resource("10.1234/ab", at)), record("2", "2026-06-01", resource("10.1234/cd", "")), record("3", "2026-06-01", resource("10.9999/cd", at)))), doi, harvest.DataCite)
	if c := j.must(); c.New != 1 || !slices.Equal(j.rejected, []string{"2 harvest.no-url", "3 harvest.no-name"}) {
		t.Errorf("%+v %q", c, j.rejected)
	}
	rec, err := to.Get(to.ctx, to.id("10.1234/ab"))
	if err != nil || rec.Metadata["who"] != "Lima, Ana; Souza, Bia" || rec.Metadata["what"] != "Rain" || rec.Metadata["when"] != "2024" || rec.Metadata["publisher"] != "" || rec.Targets[0].URL != "https://repo.example/1" {
		t.Errorf("%+v %v", rec, err)
	}
}

// TestBadRepositories: each bad answer ends the harvest with its reason, after bounded work, and what was complete stays written.
func TestBadRepositories(t *testing.T) {
	good := record("oai:x:1", "2026-06-01", epicur("urn_new", "urn:nbn:de:gbv:7-3", resource("primary", "https://a.example/1", "text/html")))
	laughs := `<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><OAI-PMH>&b;</OAI-PMH>`
	for name, tt := range map[string]struct {
		answers []string
		code    string
		kept    bool
	}{
		"the same token twice": {[]string{page("t", good)}, "harvest.token-repeated", true},
		"two tokens in turn":   {[]string{page("t", good), page("u", good), page("t", good)}, "harvest.token-repeated", true},
		"billion laughs":       {[]string{laughs}, "harvest.answer-unreadable", false},
		"half an answer":       {[]string{page("", good)[:300]}, "harvest.answer-unreadable", false},
		"half a second page":   {[]string{page("t", good), page("", good)[:300]}, "harvest.answer-unreadable", true},
		"another encoding":     {[]string{`<?xml version="1.0" encoding="ISO-8859-1"?><OAI-PMH/>`}, "harvest.answer-unreadable", false},
		"not UTF-8":            {[]string{strings.Replace(page("", good), "a.example", "a\xff.example", 1)}, "harvest.answer-unreadable", false},
		"another document":     {[]string{"<html/>"}, "harvest.not-oai", false},
		"no list":              {[]string{"<OAI-PMH/>"}, "harvest.not-oai", false},
		"an error":             {[]string{`<OAI-PMH><error code="badArgument">no</error></OAI-PMH>`}, "harvest.refused", false},
		"a token that is lost": {[]string{page("t", good), `<OAI-PMH><error code="badResumptionToken"/></OAI-PMH>`}, "harvest.token-refused", true},
		"a huge token":         {[]string{page(strings.Repeat("x", 70_000), good)}, "harvest.token-too-long", false},
		"too deep":             {[]string{"<OAI-PMH>" + strings.Repeat("<a>", 100_000)}, "harvest.answer-unreadable", false},
		"many elements":        {[]string{"<OAI-PMH>" + strings.Repeat("<a/>", 300_000) + "</OAI-PMH>"}, "harvest.answer-unreadable", false},
		"many attributes":      {[]string{"<OAI-PMH>" + strings.Repeat(`<a b="" c="" d="" e="" f="" g=""/>`, 100_001) + "</OAI-PMH>"}, "harvest.answer-unreadable", false},
		"a long answer":        {[]string{page("", good, "<!--"+strings.Repeat(strings.Repeat("x", 1<<20)+"--><!--", 16)+"-->")}, "harvest.answer-unreadable", false},
	} {
		t.Run(name, func(t *testing.T) {
			to := newRegistry(t)
			to.space(gbv, false)
			_, err := newJob(to, script(t, tt.answers...), gbv, harvest.Epicur).run(to.ctx)
			if code, _ := stele.CodeOf(err); string(code) != tt.code {
				t.Errorf("%s: %v", code, err)
			}
			if got := to.leads("urn:nbn:de:gbv:7-3"); (got != "nothing") != tt.kept {
				t.Errorf("%s", got)
			}
		})
	}
	t.Run("empty pages", func(t *testing.T) {
		n := 0
		at := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if n++; r.URL.Query().Get("verb") == "Identify" {
				fmt.Fprint(w, identify)
				return
			}
			fmt.Fprint(w, page(fmt.Sprint(n)))
		})
		to := newRegistry(t)
		to.space(gbv, false)
		_, err := newJob(to, at, gbv, harvest.Epicur).run(to.ctx)
		if code, _ := stele.CodeOf(err); code != "harvest.only-empty-pages" || n > 110 {
			t.Errorf("%d: %v", n, err)
		}
	})
	t.Run("wrong dates", func(t *testing.T) {
		to := newRegistry(t)
		to.space(gbv, false)
		j := newJob(to, script(t, page("", strings.Replace(good, "2026-06-01", "1999-01-01", 1))), gbv, harvest.Epicur)
		j.o.Source.From = "2026-05-01"
		if c := j.must(); c.Outside != 1 || j.outside != 1 || c.New != 1 {
			t.Errorf("%+v", c)
		}
		if c := j.must(); c.Pages != 1 { // a harvest between dates that is complete
			t.Errorf("%+v", c)
		}
	})
	t.Run("private network", func(t *testing.T) {
		to := newRegistry(t)
		to.space(gbv, false)
		j := newJob(to, script(t, page("", good)), gbv, harvest.Epicur)
		j.o.Client.HTTP = outbound.NewFetcher(&outbound.Dialer{Timeout: time.Second}, time.Second)
		if _, err := j.run(to.ctx); !errors.Is(err, stele.Forbidden) {
			t.Errorf("%v", err)
		}
	})
}

// TestPolite: the client waits between requests, and as long as the repository wants; it tries again, but not for ever.
func TestPolite(t *testing.T) {
	to := newRegistry(t)
	to.space(gbv, false)
	good := page("", record("oai:x:1", "2026-06-01", epicur("urn_new", "urn:nbn:de:gbv:7-3", resource("primary", "https://a.example/1", "text/html"))))
	var waited time.Duration
	n := 0
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch n++; {
		case r.URL.Query().Get("verb") == "Identify":
			fmt.Fprint(w, identify)
		case n == 2:
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusServiceUnavailable)
		case n == 3:
			w.Header().Set("Content-Length", "100000") // and then less
			fmt.Fprint(w, good[:200])
		default:
			fmt.Fprint(w, good)
		}
	})
	j := newJob(to, at, gbv, harvest.Epicur)
	j.o.Client = client(to, &waited)
	if c := j.must(); c.New != 1 || waited < 2*time.Minute || waited > 3*time.Minute || n != 4 {
		t.Errorf("%+v: %s, %d requests", c, waited, n)
	}
	for status, most := range map[int]int{500: 6, 503: 110, 404: 2} {
		n := 0
		at := serve(t, func(w http.ResponseWriter, r *http.Request) { n++; w.WriteHeader(status) })
		if _, err := newJob(to, at, gbv, harvest.Epicur).run(to.ctx); err == nil || n > most {
			t.Errorf("%d: %d requests, %v", status, n, err)
		}
	}
}
