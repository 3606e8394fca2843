package lsid_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/serve/httpd/lsid"
)

// What the public must not know of is unknown here, by all operations, and what was withdrawn says so.
func TestHidden(t *testing.T) {
	a := newAuthority(t)
	a.put("urn:lsid:example.org:ns:reserved", stele.Record{State: stele.Reserved, Metadata: stele.Metadata{"what": "Secret"}})
	a.put("urn:lsid:example.org:ns:restricted", stele.Record{Readers: []string{"user:ann"}, Metadata: stele.Metadata{"what": "Secret"}, Targets: []stele.Target{data("https://example.org/secret")}})
	a.put("urn:lsid:example.org:ns:gone", stele.Record{Metadata: stele.Metadata{"what": "Gone"}, Targets: []stele.Target{data("https://example.org/gone")}})
	if _, err := a.registrar.Withdraw(a.ctx, a.id("urn:lsid:example.org:ns:gone"), 0, "A mistake", stele.ID{}); err != nil {
		t.Fatal(err)
	}
	var unknown []string
	for _, name := range []string{"reserved", "restricted", "missing"} {
		id := "urn:lsid:example.org:ns:" + name
		for _, target := range []string{"/authority/?lsid=", "/authority/metadata?lsid=", "/authority/data?lsid="} {
			w := a.get(target + id)
			w.fails(t, "201")
			unknown = append(unknown, strings.ReplaceAll(w.body, id, "ID"))
		}
		for _, operation := range []string{"getAvailableServices", "getMetadata", "getData"} {
			w := a.soap("/authority/", operation, "<lsid>"+id+"</lsid>")
			w.fails(t, "201")
			if strings.Contains(w.body, "Secret") {
				t.Error(w.body)
			}
		}
	}
	for _, text := range unknown {
		if text != unknown[0] {
			t.Errorf("%q tells of a name that %q does not", text, unknown[0])
		}
	}
	// A principal who may see the record does, and no cache keeps it.
	w := a.get("/authority/metadata?lsid=urn:lsid:example.org:ns:restricted", "Authorization", "Bearer "+editorToken)
	if w.StatusCode != http.StatusOK || !strings.Contains(w.body, "Secret") || w.Header.Get("Expires") != "" || !strings.Contains(w.Header.Get("Cache-Control"), "no-store") {
		t.Errorf("%s %v %s", w.Status, w.Header, w.body)
	}
	w = a.get("/authority/metadata?lsid=urn:lsid:example.org:ns:gone")
	if w.StatusCode != http.StatusOK || !strings.Contains(w.body, "A mistake") || !strings.Contains(w.body, "Withdrawn") || strings.Contains(w.body, "example.org/gone") {
		t.Errorf("%s %s", w.Status, w.body)
	}
	if w := a.get("/authority/?lsid=urn:lsid:example.org:ns:gone"); w.StatusCode != http.StatusOK || strings.Contains(w.body, "LSIDDataHTTPBinding") || !strings.Contains(w.body, "LSIDMetadataHTTPBinding") {
		t.Errorf("%s %s", w.Status, w.body)
	}
	a.get("/authority/data?lsid=urn:lsid:example.org:ns:gone").fails(t, "300")
}

func TestNames(t *testing.T) {
	a := newAuthority(t)
	a.put("urn:lsid:example.org:ns:one", stele.Record{Metadata: stele.Metadata{"what": "One"}, Aliases: []stele.ID{a.id("urn:lsid:example.org:ns:other")}})
	a.put("urn:lsid:example.org:ns:a%3Ab", stele.Record{Metadata: stele.Metadata{"what": "Encoded"}})
	a.put("urn:lsid:example.org:ns:c+d", stele.Record{Metadata: stele.Metadata{"what": "Plus"}})
	for text, want := range map[string]string{
		"urn:lsid:example.org:ns:one":                       "One",
		"URN:LSID:EXAMPLE.org:ns:one":                       "One",
		"urn%3Alsid%3Aexample.org%3Ans%3Aone":               "One",
		"urn:lsid:example.org:ns:other":                     "One",
		"urn:lsid:example.org:ns:a%3Ab":                     "Encoded", // as IBM's client sends it
		"urn%3Alsid%3Aexample.org%3Ans%3Aa%253Ab":           "Encoded", // as lsid-perl does
		"urn:lsid:example.org:ns:c+d":                       "Plus",
		"urn:lsid:example.org:ns:ONE":                       "201", // case counts
		"urn:lsid:example.org:ns:one:2":                     "201", // a revision is another name
		"urn:lsid:example.net:ns:one":                       "201",
		"urn:lsid:example.org:ns":                           "200",
		"urn:isbn:9780140449136":                            "200",
		"https://lsid.tdwg.org/urn:lsid:example.org:ns:one": "200",
		"": "712",
	} {
		w := a.get("/authority/metadata/?lsid=" + text)
		if len(want) == 3 && want[0] <= '9' {
			w.fails(t, want)
		} else if !strings.Contains(w.body, "<schema:name>"+want+"<") {
			t.Errorf("%s: %s", text, w.body)
		}
	}
	// The statements are about the name that was asked for, in the form of a URN.
	w := a.get("/authority/metadata?lsid=urn:lsid:example.org:ns:other")
	if !strings.Contains(w.body, `rdf:about="urn:lsid:example.org:ns:other"`) || !strings.Contains(w.body, `<owl:sameAs rdf:resource="`+a.url+`/urn:lsid:example.org:ns:one"/>`) {
		t.Error(w.body)
	}
	a.get("/authority/metadata?lsid=urn:lsid:example.org:ns:one&lsid=urn:lsid:example.org:ns:two").fails(t, "712")
	a.get("/authority/metadata?acceptedFormats=x").fails(t, "712")
	a.get("/authority/other?lsid=urn:lsid:example.org:ns:one").fails(t, "711")
	a.get("/authority/wsdl/LSIDPortTypes.wsdl").fails(t, "711")
	a.get("/authority/../lsid.go").fails(t, "711")
}

func TestFormats(t *testing.T) {
	a := newAuthority(t)
	a.put("urn:lsid:example.org:ns:one", stele.Record{Metadata: stele.Metadata{"what": "One"}})
	for accepted, want := range map[string]string{
		"":                                    "application/rdf+xml",
		"application%2Fxml%2Brdf":             "application/xml+rdf",
		"application/xml+rdf":                 "application/xml+rdf",
		"text/n3,%20application/rdf+xml":      "application/rdf+xml",
		"TEXT/Turtle;q=1,application/rdf+xml": "text/turtle; charset=utf-8",
		"application/ld+json":                 "application/ld+json",
		"*/*":                                 "application/rdf+xml",
		"application/vnd.schemaorg.ld+json":   "application/vnd.schemaorg.ld+json",
		"text/html":                           "401",
		"nothing":                             "401",
		strings.Repeat("x/y,", 32) + "text/turtle": "401",
	} {
		w := a.get("/authority/metadata?lsid=urn:lsid:example.org:ns:one&acceptedFormats=" + accepted)
		if want == "401" {
			w.fails(t, want)
		} else if got := w.Header.Get("Content-Type"); got != want || w.StatusCode != http.StatusOK {
			t.Errorf("%q: %s, %s", accepted, w.Status, got)
		}
	}
}

// Answers are counted as those of other protocols, and clients that ask too much are refused.
func TestCounted(t *testing.T) {
	clock := noon
	a := newAuthority(t, func(o *httpd.Options, _ *lsid.Options) {
		o.Costs = limit.NewRate(1, 6)
		o.Now = func() time.Time { return clock }
	})
	a.put("urn:lsid:example.org:ns:one", stele.Record{Metadata: stele.Metadata{"what": "One"}})
	one := "/authority/metadata?lsid=urn:lsid:example.org:ns:one"
	a.get(one)
	a.soap("/authority/metadata", "getMetadata", "<lsid>urn:lsid:example.org:ns:one</lsid>")
	a.get("/authority/metadata?lsid=urn:lsid:example.org:ns:two")
	a.get(one, "Authorization", "Bearer "+editorToken)
	if got := a.counted.take(); got != "metadata urn:lsid:example.org:ns:one, metadata urn:lsid:example.org:ns:one, unknown urn:lsid:example.org:ns:two" {
		t.Error(got)
	}
	a.get(one)
	a.get(one)
	a.get(one)
	w := a.get(one)
	w.fails(t, "500")
	if w.StatusCode != http.StatusTooManyRequests || w.Header.Get("Retry-After") == "" {
		t.Errorf("%s %v", w.Status, w.Header)
	}
	a.soap("/authority/", "getMetadata", "<lsid>urn:lsid:example.org:ns:one</lsid>").fails(t, "500")
	clock = clock.Add(time.Minute)
	if w := a.get(one); w.StatusCode != http.StatusOK {
		t.Error(w.Status)
	}
}

func TestMessages(t *testing.T) {
	a := newAuthority(t)
	a.put("urn:lsid:example.org:ns:one", stele.Record{Metadata: stele.Metadata{"what": "One"}})
	const envelope = `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>`
	good := envelope + "<getMetadata><lsid>urn:lsid:example.org:ns:one</lsid></getMetadata></e:Body></e:Envelope>"
	parts := func(n int) string {
		b := "--b\r\nContent-Type: text/xml\r\n\r\n" + good + "\r\n"
		for i := range n {
			b += fmt.Sprintf("--b\r\nContent-Type: application/octet-stream\r\nContent-Id: <%d>\r\n\r\nx\r\n", i)
		}
		return b + "--b--\r\n"
	}
	const related = `multipart/related; boundary="b"`
	for _, test := range []struct{ kind, body, code string }{
		{"text/xml", good, ""},
		{"application/soap+xml", good, ""},
		{related, parts(0), ""},
		{related, parts(15), ""},
		{related, parts(1000), "710"},
		{related, "--b\r\nContent-Type: image/png\r\n\r\nx\r\n--b--\r\n", "710"},
		{related, "--b--", "710"},
		{related, "", "710"},
		{"multipart/related", parts(0), "710"},
		{"application/json", "{}", "710"},
		{"", good, "710"},
		{"text/xml", "", "710"},
		{"text/xml", good[:80], "710"},
		{"text/xml", `<!DOCTYPE a [<!ENTITY b "c">]>` + good, "710"},
		{"text/xml", `<?xml version="1.0" encoding="utf-16"?>` + good, "710"},
		{"text/xml", strings.ReplaceAll(good, "schemas.xmlsoap.org/soap/envelope/", "www.w3.org/2003/05/soap-envelope"), "710"},
		{"text/xml", envelope + "</e:Body></e:Envelope>", "710"},
		{"text/xml", envelope + "<a/><b/></e:Body></e:Envelope>", "710"},
		{"text/xml", envelope + strings.Repeat("<a>", 100), "710"},
		{"text/xml", envelope + "<a>" + strings.Repeat("x", 70_000), "710"},
		{"text/xml", strings.Repeat(" ", 2<<20), "710"},
		{"text/xml", envelope + "<destroy/></e:Body></e:Envelope>", "711"},
		{"text/xml", envelope + "<getMetadataSubset/></e:Body></e:Envelope>", "501"},
		{"text/xml", envelope + "<getMetadata/></e:Body></e:Envelope>", "712"},
		{"text/xml", envelope + "<getMetadata><lsid>urn:lsid:&lt;&amp;</lsid></getMetadata></e:Body></e:Envelope>", "200"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.url+"/authority/metadata", strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		if test.kind != "" {
			r.Header.Set("Content-Type", test.kind)
		}
		w := a.send(r)
		if test.code == "" {
			if w.StatusCode != http.StatusOK || !strings.Contains(w.body, "<schema:name>One<") {
				t.Errorf("%.60q: %s %s", test.body, w.Status, w.body)
			}
			continue
		}
		w.fails(t, test.code)
		if w.StatusCode != http.StatusInternalServerError || !strings.HasPrefix(w.Header.Get("Content-Type"), "text/xml") {
			t.Errorf("%.60q: %s %s", test.body, w.Status, w.Header.Get("Content-Type"))
		}
		tree(t, []byte(w.body), nil) // it is XML, whatever the message has in it
	}
	a.soap("/authority/other", "getMetadata", "").fails(t, "711")
	// The answer has the namespace of the request, escaped.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.url+"/authority/", strings.NewReader(strings.NewReplacer("<getMetadata>", `<o:getMetadata xmlns:o="a&amp;&quot;&gt;b">`, "</getMetadata>", "</o:getMetadata>").Replace(good)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "text/xml")
	w := a.send(r)
	text, _ := message(t, w.Header.Get("Content-Type"), []byte(w.body))
	if got := tree(t, text, nil); !strings.Contains(got, `{a&">b}getMetadataResponse`) {
		t.Error(got)
	}
}

// Without an address of the server there are no documents that could name it.
func TestUnknownAddress(t *testing.T) {
	a := newAuthority(t)
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, a.url+"/authority/", nil)
	r.Host = "evil.example"
	a.send(r).fails(t, "521")
	b := newAuthority(t, func(o *httpd.Options, _ *lsid.Options) { o.Base = "https://id.example.org" })
	r, _ = http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/authority/", nil)
	r.Host = "evil.example"
	if w := b.send(r); !strings.Contains(w.body, `<http:address location="https://id.example.org"/>`) || !strings.Contains(w.body, `<soap:address location="https://id.example.org/authority/"/>`) {
		t.Error(w.body)
	}
	if w := b.get("/authority/"); !strings.Contains(w.body, `<http:address location="`+b.url+`"/>`) {
		t.Error(w.body)
	}
}

// The documents that others import are there, and each that a document imports.
func TestFiles(t *testing.T) {
	a := newAuthority(t)
	seen := map[string]bool{}
	list := []string{""}
	for len(list) > 0 {
		at := list[0]
		list = list[1:]
		if seen[at] {
			continue
		}
		seen[at] = true
		w := a.get("/authority/" + at)
		if w.StatusCode != http.StatusOK || !strings.HasPrefix(w.Header.Get("Content-Type"), "text/xml") {
			t.Fatalf("%s: %s", at, w.Status)
		}
		for _, line := range strings.Split(tree(t, []byte(w.body), nil), "\n") {
			if _, location, ok := strings.Cut(line, " location="); ok && strings.Contains(line, "}import") {
				list = append(list, location)
			}
		}
	}
	if got := a.get("/authority/").Header.Get("Expires"); got != noon.Add(time.Hour).Format(http.TimeFormat) {
		t.Errorf("the document of the authority expires at %q", got)
	}
	if len(seen) != 4 { // two of bindings, and the types of ports
		t.Errorf("seen: %v", seen)
	}
	for _, name := range []string{"LSIDDataServiceHTTPBindings.wsdl", "LSIDDataServiceSOAPBindings.wsdl"} {
		if w := a.get("/authority/" + name); w.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", name, w.Status)
		}
	}
}

// Crawlers read names, and not the forms of the same records for other clients.
func TestRobots(t *testing.T) {
	if w := newAuthority(t).get("/robots.txt"); !strings.Contains(w.body, "Disallow: /authority/\n") {
		t.Error(w.body)
	}
}

func TestForeign(t *testing.T) {
	off := newAuthority(t, func(_ *httpd.Options, o *lsid.Options) { o.Foreign, o.Names = nil, nil })
	off.put("urn:lsid:example.org:ns:one", stele.Record{})
	arguments := "<lsid>urn:lsid:example.org:ns:one</lsid><authorityName>Example.NET</authorityName>"
	off.soap("/authority/", "notifyForeignAuthority", arguments, "Authorization", "Bearer "+editorToken).fails(t, "501")
	off.soap("/authority/assigning", "getAllowedPropertyNames", "", "Authorization", "Bearer "+editorToken).fails(t, "501")

	a := newAuthority(t)
	a.put("urn:lsid:example.org:ns:one", stele.Record{Metadata: stele.Metadata{"what": "One"}})
	says := func(want bool) {
		t.Helper()
		w := a.get("/authority/metadata?lsid=urn:lsid:example.org:ns:one")
		if got := strings.Contains(w.body, `xmlns:foreign="urn:lsid:i3c.org:predicates:"`) && strings.Contains(w.body, "<foreign:foreignauthority>example.net</foreign:foreignauthority>"); got != want {
			t.Errorf("it says so: %t: %s", got, w.body)
		}
	}
	for _, credentials := range []string{"", "Bearer " + guestToken, "Bearer wrong", "Basic " + basic("bob", editorToken), "Basic x"} {
		head := []string{"Authorization", credentials}
		if credentials == "" {
			head = nil
		}
		a.soap("/authority/", "notifyForeignAuthority", arguments, head...).fails(t, "700")
	}
	// A browser would send a password of itself.
	a.get("/authority/notify/?lsid=urn:lsid:example.org:ns:one&authorityName=example.net", "Authorization", "Basic "+basic("ann", editorToken)).fails(t, "700")
	says(false)
	if w := a.soap("/authority/", "notifyForeignAuthority", arguments, "Authorization", "Basic "+basic("ann", editorToken)); w.StatusCode != http.StatusOK {
		t.Error(w.body)
	}
	says(true)
	// From another machine a token is accepted only if it can't be read on its way.
	for base, accepted := range map[string]bool{"": false, "http://id.example.org": false, "https://id.example.org": true} {
		far := newAuthority(t, func(o *httpd.Options, _ *lsid.Options) { o.Base = base })
		far.put("urn:lsid:example.org:ns:one", stele.Record{})
		r := httptest.NewRequest(http.MethodGet, "http://id.example.org/authority/notify/?lsid=urn:lsid:example.org:ns:one&authorityName=example.net", nil)
		r.RequestURI, r.RemoteAddr = r.URL.RequestURI(), "192.0.2.1:1234"
		r.Header.Set("Authorization", "Bearer "+editorToken)
		w := httptest.NewRecorder()
		far.handler.ServeHTTP(w, r)
		if refused := strings.Contains(w.Body.String(), "over https only"); refused == accepted || accepted != (w.Code == http.StatusOK) {
			t.Errorf("%q: %d %s", base, w.Code, w.Body)
		}
	}
	if w := a.get("/authority/revoke/?lsid=urn:lsid:example.org:ns:one&authorityName=example.net", "Authorization", "Bearer "+editorToken); w.StatusCode != http.StatusOK {
		t.Error(w.body)
	}
	says(false)
	a.soap("/authority/", "notifyForeignAuthority", "<lsid>urn:lsid:example.org:ns:one</lsid><authorityName>a b</authorityName>", "Authorization", "Bearer "+editorToken).fails(t, "712")
	a.soap("/authority/", "notifyForeignAuthority", "<lsid>urn:lsid:example.org:ns:one</lsid>", "Authorization", "Bearer "+editorToken).fails(t, "712")
	for i := range 33 {
		w := a.soap("/authority/", "notifyForeignAuthority", fmt.Sprintf("<lsid>urn:lsid:example.org:ns:one</lsid><authorityName>a%d.example</authorityName>", i), "Authorization", "Bearer "+editorToken)
		if i < 32 && w.StatusCode != http.StatusOK || i == 32 && w.StatusCode == http.StatusOK {
			t.Errorf("%d: %s", i, w.body)
		}
		if i == 32 {
			w.fails(t, "712")
			if !strings.Contains(w.body, "revoke one first") {
				t.Error(w.body)
			}
		}
	}
	// A client that has the metadata with an authority that was revoked since does not hear that nothing has changed: the
	// record has not.
	of := "/authority/metadata?lsid=urn:lsid:example.org:ns:one"
	w := a.get(of)
	if w.Header.Get("Last-Modified") != "" {
		t.Error(w.Header)
	}
	a.get("/authority/revoke/?lsid=urn:lsid:example.org:ns:one&authorityName=a1.example", "Authorization", "Bearer "+editorToken)
	if w := a.get(of, "If-Modified-Since", noon.Add(time.Hour).Format(http.TimeFormat)); w.StatusCode != http.StatusOK || strings.Contains(w.body, "a1.example") {
		t.Errorf("%s %s", w.Status, w.body)
	}
	if w := a.get(of, "If-None-Match", w.Header.Get("Etag")); w.StatusCode != http.StatusOK {
		t.Error(w.Status)
	}
}

func TestAssign(t *testing.T) {
	a := newAuthority(t)
	a.space("urn:lsid:example.org:birds", func(ns *stele.Namespace) { ns.Minter = stele.Minter{Kind: stele.MinterNOID, Template: ".zd"} })
	ann := []string{"Authorization", "Basic " + basic("ann", editorToken)}
	property := func(name, value string) string {
		return "<property><name>" + name + "</name><value>" + value + "</value></property>"
	}
	birds := "<authority>example.org</authority><namespace>birds</namespace>"
	for _, head := range [][]string{nil, {"Authorization", "Bearer " + guestToken}, {"Authorization", "Bearer wrong"}} {
		a.soap("/authority/assigning", "assignLSID", birds, head...).fails(t, "700")
	}
	assigned := func(w answer) string {
		t.Helper()
		_, rest, _ := strings.Cut(w.body, "<lsid>")
		name, _, ok := strings.Cut(rest, "</lsid>")
		if !ok {
			t.Fatal(w.body)
		}
		return name
	}
	first := assigned(a.soap("/authority/assigning", "assignLSID", birds+"<propertyList>"+property("what", "A robin")+"</propertyList>", ann...))
	second := assigned(a.soap("/authority/assigning", "assignLSID", birds, ann...))
	if first == second || !strings.HasPrefix(first, "urn:lsid:example.org:birds:") {
		t.Errorf("assigned %s and %s", first, second)
	}
	rec, err := a.registrar.Get(a.ctx, a.id(first))
	if err != nil || rec.State != stele.Reserved || rec.Metadata["what"] != "A robin" || rec.By != "ann" {
		t.Errorf("%+v, %v", rec, err)
	}
	a.get("/authority/metadata?lsid="+first).fails(t, "201")
	for _, arguments := range []string{
		"", birds + "<propertyList>" + property("colour", "red") + "</propertyList>",
		birds + "<propertyList>" + property("what", "a") + property("what", "b") + "</propertyList>",
		"<authority>example.org</authority><namespace>fish</namespace>", "<authority>example.org</authority><namespace>a:b:c:d</namespace>",
		"<authority>example.net</authority><namespace>birds</namespace>",
	} {
		a.soap("/authority/assigning", "assignLSID", arguments, ann...).fails(t, "712")
	}
	if got := assigned(a.soap("/authority/assigning", "assignLSIDFromList", "<suggestedLSIDs><LSID>"+first+"</LSID><LSID>urn:lsid:example.org:birds:mine</LSID></suggestedLSIDs>", ann...)); got != "urn:lsid:example.org:birds:mine" {
		t.Error(got)
	}
	a.soap("/authority/assigning", "assignLSIDFromList", "<suggestedLSIDs><LSID>"+first+"</LSID></suggestedLSIDs>", ann...).fails(t, "712")
	a.soap("/authority/assigning", "assignLSIDFromList", "<suggestedLSIDs>"+strings.Repeat("<LSID>"+first+"</LSID>", 101)+"</suggestedLSIDs>", ann...).fails(t, "712")
	a.soap("/authority/assigning", "assignLSIDFromList", "<suggestedLSIDs><LSID>urn:lsid:example.net:a:b</LSID></suggestedLSIDs>", ann...).fails(t, "700")
	if got := assigned(a.soap("/authority/assigning", "assignLSIDForNewRevision", "<previousLSID>"+first+"</previousLSID>", ann...)); got != first+":2" {
		t.Error(got)
	}
	// Nothing is assigned twice, from whichever revision the client begins.
	if got := assigned(a.soap("/authority/assigning", "assignLSIDForNewRevision", "<previousLSID>"+first+"</previousLSID>", ann...)); got != first+":3" {
		t.Error(got)
	}
	if got := assigned(a.soap("/authority/assigning", "assignLSIDForNewRevision", "<previousLSID>"+first+":3</previousLSID>", ann...)); got != first+":4" {
		t.Error(got)
	}
	a.put("urn:lsid:example.org:birds:x:beta", stele.Record{})
	a.soap("/authority/assigning", "assignLSIDForNewRevision", "<previousLSID>urn:lsid:example.org:birds:x:beta</previousLSID>", ann...).fails(t, "712")
	a.soap("/authority/assigning", "assignLSIDForNewRevision", "<previousLSID>urn:lsid:example.org:birds:unknown</previousLSID>", ann...).fails(t, "201")
	a.soap("/authority/assigning", "getLSIDPattern", birds, ann...).fails(t, "501")
	a.soap("/authority/assigning", "getMetadata", birds, ann...).fails(t, "711")
	if w := a.soap("/authority/assigning", "getAuthoritiesAndNamespaces", "", ann...); !strings.Contains(w.body, "<t:authority>example.org</t:authority><t:namespace>birds</t:namespace>") {
		t.Error(w.body)
	}
	if w := a.soap("/authority/assigning", "getAuthoritiesAndNamespaces", "", "Authorization", "Bearer "+guestToken); strings.Contains(w.body, "birds") {
		t.Error(w.body)
	}
}
