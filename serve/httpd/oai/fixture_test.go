package oai_test

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/serve/httpd/oai"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/web/webtest"
)

// repository is a server whose registry is harvested.
type repository struct {
	t         testing.TB
	now       time.Time
	stopped   atomic.Pointer[time.Time] // the clock stands still here, for requests of other processes; nil: it shows now
	store     *mem.Store
	schemes   *stele.Schemes
	registrar *registrar.Registrar
	handler   http.Handler
	url       string
	ctx       context.Context
}

// newRepository starts a server with pages of so many records. Its clock goes on by a second at each look.
func newRepository(t testing.TB, page int, change ...func(*httpd.Options)) *repository {
	t.Helper()
	s := &repository{t: t, now: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), ctx: auth.With(t.Context(), auth.Local())}
	clock := func() time.Time {
		if at := s.stopped.Load(); at != nil {
			return *at
		}
		return s.now
	}
	var err error
	if s.schemes, err = all.New(all.Config{Now: clock}); err != nil {
		t.Fatal(err)
	}
	s.store = mem.New(clock)
	t.Cleanup(func() { s.store.Close() })
	s.registrar = registrar.New(s.store, s.schemes, registrar.Options{Now: clock})
	h := oai.New(oai.Options{Registrar: s.registrar, Store: s.store, Schemes: s.schemes, Now: clock, Name: "Names & numbers", Mail: "ids@example.org", Page: page})
	o := httpd.Options{Resolver: resolver.New(s.store, s.schemes, resolver.Options{Now: clock}), Registry: s.registrar, Schemes: s.schemes, Pages: webtest.Pages(t), Now: clock, OAI: h,
		Base: "https://id.example.org"}
	for _, f := range change {
		f(&o)
	}
	s.handler = httpd.New(o)
	server := httptest.NewServer(s.handler)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// space adds a namespace.
func (s *repository) space(scheme, prefix string, listed bool) {
	s.t.Helper()
	if _, err := s.registrar.AddNamespace(s.ctx, &stele.Namespace{Scheme: scheme, Prefix: prefix, Listed: listed, Title: "Of " + prefix}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *repository) id(name string) stele.ID {
	s.t.Helper()
	id, err := s.schemes.Parse(name)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// register registers a name.
func (s *repository) register(name string, change ...func(*stele.Record)) {
	s.t.Helper()
	rec := &stele.Record{ID: s.id(name), State: stele.Active, Targets: []stele.Target{{Service: stele.N2L, URL: "https://data.example.org/" + url.PathEscape(name), Order: 100, Preference: 10}},
		Metadata: stele.Metadata{"what": "Rain & <snow> of " + name, "who": "Lima, Ana; Souza, Bia", "when": "2024-05-17", "subject": "rain; snow"}}
	for _, f := range change {
		f(rec)
	}
	if _, err := s.registrar.Register(s.ctx, rec); err != nil {
		s.t.Fatal(err)
	}
}

// answer is an answer of the provider.
type answer struct {
	XMLName      xml.Name `xml:"http://www.openarchives.org/OAI/2.0/ OAI-PMH"`
	ResponseDate string   `xml:"responseDate"`
	Request      struct {
		URL   string     `xml:",chardata"`
		Attrs []xml.Attr `xml:",any,attr"`
	} `xml:"request"`
	Error struct {
		Code string `xml:"code,attr"`
		Text string `xml:",chardata"`
	} `xml:"error"`
	Identify struct {
		Base     string `xml:"baseURL"`
		Earliest string `xml:"earliestDatestamp"`
		Deleted  string `xml:"deletedRecord"`
		Mail     string `xml:"adminEmail"`
		Name     string `xml:"repositoryName"`
	}
	Formats []string `xml:"ListMetadataFormats>metadataFormat>metadataPrefix"`
	Sets    []string `xml:"ListSets>set>setSpec"`
	Get     []record `xml:"GetRecord>record"`
	Records []record `xml:"ListRecords>record"`
	Headers []header `xml:"ListIdentifiers>header"`
	Token   *string  `xml:"ListRecords>resumptionToken"`
	Token2  *string  `xml:"ListIdentifiers>resumptionToken"`
}

type record struct {
	Header      header   `xml:"header"`
	Identifiers []string `xml:"metadata>dc>identifier"`
	Titles      []string `xml:"metadata>dc>title"`
	Creators    []string `xml:"metadata>dc>creator"`
	DataCite    string   `xml:"metadata>oai_datacite>payload>resource>titles>title"`
}

type header struct {
	Status     string `xml:"status,attr"`
	Identifier string `xml:"identifier"`
	Date       string `xml:"datestamp"`
	Set        string `xml:"setSpec"`
}

// ask asks by GET, with arguments in pairs.
func (s *repository) ask(args ...string) *answer {
	s.t.Helper()
	q := url.Values{}
	for i := 0; i < len(args); i += 2 {
		q.Add(args[i], args[i+1])
	}
	return s.get(q.Encode())
}

func (s *repository) get(query string) *answer {
	s.t.Helper()
	response, err := http.Get(s.url + oai.Root + "?" + query)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.read(response)
}

func (s *repository) read(response *http.Response) *answer {
	s.t.Helper()
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	a := new(answer)
	if err := xml.Unmarshal(body, a); err != nil || response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/xml; charset=utf-8" {
		s.t.Fatalf("%s %v: %v\n%s", response.Status, response.Header, err, body)
	}
	if a.Token == nil {
		a.Token = a.Token2
	}
	return a
}

// all lists all pages, and how many there were.
func (s *repository) all(args ...string) (list []header, pages int) {
	s.t.Helper()
	verb := "ListRecords"
	a := s.ask(append([]string{"verb", verb, "metadataPrefix", "oai_dc"}, args...)...)
	for pages = 1; ; pages++ {
		if a.Error.Code != "" && a.Error.Code != "noRecordsMatch" {
			s.t.Fatal(a.Error)
		}
		for _, r := range a.Records {
			list = append(list, r.Header)
		}
		if a.Token == nil || *a.Token == "" {
			return list, pages
		}
		if len(a.Records) == 0 || pages > 1000 {
			s.t.Fatal("an empty page with a token")
		}
		a = s.ask("verb", verb, "resumptionToken", *a.Token)
	}
}

func names(list []header) string {
	text := ""
	for _, h := range list {
		text += fmt.Sprintf(" %s%s", h.Status, h.Identifier)
	}
	return text
}
