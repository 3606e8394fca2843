package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/web/chart"
	"github.com/stele-id/stele/web/figures"
	"github.com/stele-id/stele/web/language"
)

// reporter is a test, or rapid's idea of one.
type reporter interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func pages(t testing.TB) *Pages {
	t.Helper()
	languages, err := language.New()
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(languages, Face{Name: "Archive of Rivers"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var then = time.Date(2024, 5, 17, 10, 0, 0, 0, time.UTC)

// views are the pages that the golden files show. All their texts go through say,
// so that a test can say something worse.
func views(t reporter, say func(string) string) map[string]any {
	t.Helper()
	const url = "https://resolver.example/ark:12345/x5rivers"
	code, err := NewQR(url)
	if err != nil {
		t.Fatal(err)
	}
	frame := Frame{Query: say("ark:/12345/x5-rivers"), Here: "/.info/ark:12345/x5rivers"}
	named := func(text, url string) Name { return Name{say(text), say(url)} }
	targets := []Target{
		{stele.N2L, say("https://example.org/rivers.html"), say("text/html"), say("en"), say("the first choice")},
		{stele.N2L, say("ftp://ftp.example.org/rivers.zip"), "", "", ""},
		{stele.N2L, say("rsync://example.org/rivers"), say("application/zip"), say("pt-BR"), ""},
		{stele.N2C, say("https://example.org/rivers.xml?a=1&b=2"), say("application/xml"), "", ""},
		{stele.N2S, say("javascript:alert(1)"), "", "", ""},
		{stele.N2P, say("https://example.org/promise"), "", "", ""},
		{stele.Service(say("X2Y")), say("https://example.org/x"), "", "", ""},
	}
	metadata := []Row{
		{say("who"), say("Lima, A.; Ortiz, R."), ""},
		{say("what"), say("Rivers of Pará"), ""},
		{say("description"), say("Two\nlines."), ""},
	}
	formats := []Format{
		{say("jsonld"), say("JSON-LD (schema.org)"), say("application/ld+json"), say("/.info/ark:12345/x5rivers?format=jsonld")},
		{say("bibtex"), say("BibTeX"), say("application/x-bibtex"), say("/.info/ark:12345/x5rivers?format=bibtex")},
	}
	tomb := Tombstone{Reason: say("The measurements were wrong.\nSee the new edition."), At: then, Replacement: named("ark:12345/x5rivers2", "/.info/ark:12345/x5rivers2")}
	citation := say("Lima, A. (2024). Rivers of Pará. " + url)
	info := &Info{
		Frame: frame, ID: say("ark:12345/x5rivers"), Spelling: say("ark:/12345/x5-rivers"), Title: say("Rivers of Pará"), URL: say(url),
		Scheme: say("ark"), Form: say("qualified"),
		Parts:     []Row{{say("naan"), say("12345"), say("for examples")}, {say("name"), say("x5rivers"), ""}},
		Spellings: []stele.Spelling{{Name: say("N2T URL"), Text: say("https://n2t.net/ark:12345/x5rivers")}},
		Warnings:  []string{say("Hyphens were dropped.")},
		State:     stele.Active,
		Aliases:   []Name{named("10.5072/RIVERS", "/.info/10.5072/RIVERS"), named("urn:example:1", "")},
		Targets:   targets, Metadata: metadata,
		Namespace:   named("Archive of Rivers (ark:12345)", ""),
		Persistence: stele.Persistence{Level: stele.Stable, Until: say("2040-01-01"), Statement: say("Corrections only.")},
		Promised:    say("ark:12345"),
		Signatures: []Signature{
			{Date: then, Key: say("kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"), Algorithm: say("ED25519"), SHA256: []byte(say("0123456789abcdef0123456789abcdef")), Size: 5, Type: say("text/html")},
			{Date: then, Key: say("key"), SHA256: []byte{1}},
		},
		History: []Change{
			{2, then.Add(time.Hour), "", []string{say("now leads to https://example.org/rivers.html"), say("what changed")}, say("/.info/ark:12345/x5rivers?version=2")},
			{1, then, say("ann"), []string{say("registered")}, ""},
		},
		Citation: citation, Formats: formats, QR: code,
	}
	drawing, err := (&chart.Chart{Label: "Resolutions", Number: func(n any) string { return fmt.Sprint(n) }, Columns: []chart.Column{{Short: "May", Long: "2024", Title: "May 2024: 3 by people", Parts: [2]uint64{3, 1}}}}).HTML()
	if err != nil {
		t.Fatal(err)
	}
	info.Proof = say("/api/v1/proof/ark:12345/x5rivers?version=2")
	info.Use = &UseLine{Total: say("4 resolutions in 13 months"), Chart: drawing, URL: say("/.usage/ark:12345/x5rivers?of=record")}
	use := &Use{
		Frame: frame, Title: say("Rivers of Pará"), ID: say("ark:12345/x5rivers"), Record: true, Info: say("/.info/ark:12345/x5rivers"), Space: named("ark:12345", "/.usage/ark:12345"), Began: then, Damaged: 1,
		Periods: []Period{{say("13 months"), say("/.usage/ark:12345/x5rivers"), true}, {say("Year 2024"), say("/.usage/ark:12345/x5rivers?from=2024-01"), false}},
		Facts:   []figures.Fact{{Number: 4, Text: say("resolutions"), Note: say("all of them")}}, Chart: drawing,
		Table: figures.Table{Caption: say("Figures by period"), First: say("Month"), Heads: []string{say("People"), say("Programs")}, CSV: say("/api/v1/statistics?prefix=ark:12345/x5rivers"),
			Rows: []figures.Row{{Text: say("May 2024"), Note: say("so far"), Values: []uint64{3, 1}}}, Total: &figures.Row{Text: say("Together"), Values: []uint64{3, 1}}},
	}
	space := *use
	space.Title, space.Record, space.Info, space.Space, space.ID, space.Table.Folded = "", false, "", Name{}, say("ark:12345"), true
	old := *info
	old.State, old.Tombstone, old.Targets, old.QR = stele.Withdrawn, &tomb, nil, QR{}
	old.Old = &Old{Number: 2, At: then, Current: "/.info/ark:12345/x5rivers", Follow: "/.memento/20240517100000/ark:12345/x5rivers"}
	return map[string]any{
		"info":           info,
		"info-withdrawn": &old,
		"info-bare":      &Info{ID: say("102.100.272/Y35XYS0QH"), URL: say("https://resolver.example/102.100.272/Y35XYS0QH"), Scheme: say("hdl"), State: stele.Active},
		"usage":          use,
		"usage-space":    &space,
		"usage-none":     &Use{Frame: frame, ID: say("ark:12345")},
		"gone": &Gone{Frame: frame, ID: say("ark:12345/x5rivers"), Spelling: say("ark:/12345/x5-rivers"), Title: say("Rivers of Pará"), Tombstone: tomb,
			Metadata: metadata, Citation: citation, Info: say("/.info/ark:12345/x5rivers"), Formats: formats},
		"gone-redacted": &Gone{Frame: frame, ID: say("ark:12345/x5rivers"), Tombstone: Tombstone{Reason: say("Court order 7."), At: then, Redacted: true}},
		"missing": &Missing{Frame: frame, Looked: say("ark:/12345/x5rivres"), Canonical: say("ark:12345/x5rivres"), Scheme: say("ark"), Mistyped: true,
			Nearest: []Name{named("ark:12345/x5rivers", "/.info/ark:12345/x5rivers")}, Namespace: named("ark:12345", "")},
		"missing-invalid": &Missing{Frame: frame, Looked: say("ark:/12/x"), Reason: say("ark: at byte 5: a NAAN has at least 5 characters")},
		"problem":         &Problem{Frame: frame, Status: 503, Title: say("The registry does not answer"), Detail: say("It is being restarted."), Available: []string{say("text/html")}},
		"choices":         &Choices{Frame: frame, ID: say("ark:12345/x5rivers"), Title: say("Rivers of Pará"), Service: stele.N2L, Targets: targets, Info: say("/.info/ark:12345/x5rivers")},
		"choices-none":    &Choices{Frame: frame, ID: say("ark:12345/x5rivers"), Service: stele.N2C},
		"home": &Home{Frame: Frame{Section: "home"}, About: []Span{{Text: say("What has a name in the archive")}, {Text: say("is found here"), URL: "https://example.org/"}, {Kind: "strong", Text: say("!")}},
			Examples: []Example{{named("urn:paradisec:AB1:001:A", "/.info/urn:paradisec:AB1:001:A"), say("a tape of the PARADISEC archive")}},
			Schemes:  []Row{{say("ark"), say("Archival Resource Key"), say("ark:12345/x1")}}},
		"home-bare": &Home{},
		"protocol":  &Protocol{Frame: frame, Template: say("https://resolver.example/.urn?uri=%s"), Example: say("urn:paradisec:AB1:001:A")},
		"log": &Log{Frame: frame, Site: say("https://resolver.example"), Origin: say("resolver.example/.log/g2-20320109T083000Z"), Size: 1041, At: then, Behind: 2, Witnesses: []string{say("witness.example/w1")},
			Keys: []LogKey{{Key: say("resolver.example/.log+0123abcd+AQ"), Retired: then}, {Key: say("resolver.example/.log+4567abcd+AQ")}}, Restore: []LogRestore{{At: then, Size: 900}}},
		"log-none": &Log{Frame: frame},
		"api": &API{Frame: frame, Document: say("/api/v1/openapi.json"),
			Groups: []APIGroup{{say("Records"), []APIOperation{{
				Name: say("getRecord"), Method: say("GET"), Path: say("/api/v1/records/{id}"), Summary: say("Show a record"), About: say("As far as you may see it."), Role: say("For everybody."),
				Parameters: []APIField{{say("id"), say("path"), say("text"), "", say("The identifier."), true}, {say("version"), say("query"), say("number"), "", "", false}},
				Body:       []APIBody{{say("application/json"), say("Record"), say("Record")}}, BodyAbout: say("The record."),
				Answers: []APIAnswer{{200, say("The record."), []APIBody{{say("application/json"), say("Record"), say("Record")}, {say("text/html"), "", ""}}, ""}, {404, say("There is none."), nil, say("not-found")}},
				Example: say("curl 'https://id.example.org/api/v1/records/ark:12345/x1'"),
			}}}},
			Schemas:  []APISchema{{say("Record"), []APIField{{say("id"), "", say("text"), "", say("The identifier."), true}, {say("like"), "", say("list of Record"), say("Record"), "", false}}}},
			Problems: []APIProblem{{say("not-found"), 404, say("There is no such thing")}},
		},
		"about": &About{Frame: Frame{Section: "about"}, Text: ParseText("# Rivers\n\nOf *all* **kinds**, `by` [name](https://example.org/).\n\n- one\n- two\n"), Levels: []stele.Level{stele.Stable, stele.Unstated}, States: []stele.State{stele.Active}, Schemes: []string{say("ark")}},
		"docs": &Docs{Frame: Frame{Section: "docs"}, Title: say("The registry"), Body: "<h1>The registry</h1>\n<h2 id=\"registering\">Registering</h2>\n<p>Text.</p>",
			Groups: []DocsGroup{{Title: say("Names"), Pages: []DocsPage{{Name: Name{say("Identifiers"), "/.docs/identifiers"}}, {Name: Name{say("The registry"), "/.docs/registry"}, Current: true, Contents: []Name{{say("Registering"), "#registering"}}}}}}},
		"imprint": &About{Frame: frame, Page: say("Imprint"), Text: []Block{{Kind: "h2", Spans: []Span{{Text: say("Us")}}}, {Kind: "h3", Spans: []Span{{Kind: "em", Text: say("Where")}}}, {Kind: "p", Spans: []Span{{Kind: "code", Text: say("here")}}}, {Kind: "ul", Items: [][]Span{{{Text: say("item")}}}}}},
		"explain": &Explanation{Frame: frame, Given: say("ark:/12345/x5-rivers/1"), ID: say("ark:12345/x5rivers/1"), Answer: say("redirect to https://example.org/rivers.html/1"),
			URL: say("https://example.org/rivers.html/1"), Status: 302, Targets: targets, Info: say("/.info/ark:12345/x5rivers"),
			Steps: []Step{{Name: say("name"), Result: say("ark:12345/x5rivers/1")}, {Name: say("record"), Result: say("none")}, {Name: say("prefix"), Result: say("ark:12345/x5rivers passes on /1")}}},
	}
}

// write writes the page of a view.
func write(t reporter, p *Pages, view any) string {
	t.Helper()
	var b strings.Builder
	var err error
	switch v := view.(type) {
	case *Info:
		err = p.Info(&b, v)
	case *Gone:
		err = p.Gone(&b, v)
	case *Missing:
		err = p.Missing(&b, v)
	case *Problem:
		err = p.Problem(&b, v)
	case *Choices:
		err = p.Choices(&b, v)
	case *Home:
		err = p.Home(&b, v)
	case *Explanation:
		err = p.Explain(&b, v)
	case *API:
		err = p.API(&b, v)
	case *About:
		err = p.About(&b, v)
	case *Use:
		err = p.Usage(&b, v)
	case *Docs:
		err = p.Docs(&b, v)
	case *Log:
		err = p.Log(&b, v)
	case *Protocol:
		err = p.Protocol(&b, v)
	default:
		t.Fatalf("no page for %T", view)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
