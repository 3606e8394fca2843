package oai_test

import (
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/serve/httpd/oai"
)

// TestList: all public records of listed namespaces come once, over several pages, in both ways to make a list; others never do.
func TestList(t *testing.T) {
	s := newRepository(t, 3)
	s.space("ark", "ark:12345/x5", true)
	s.space("ark", "ark:12345/x5p", false) // below a listed one, and not listed itself
	s.space("ark", "ark:12345/h", false)
	s.space("hdl", "20.500.1/", true)
	s.space("urn", "urn:nbn:de:gbv", true)
	s.now = s.now.Add(time.Hour)
	var want []string
	for i := range 7 {
		name := fmt.Sprintf("ark:12345/x5a%d", i)
		s.register(name)
		want = append(want, name)
	}
	s.register("ark:12345/x5p1")
	s.register("ark:12345/h1")
	s.register("20.500.1/AB")
	s.register("urn:nbn:de:gbv:7-3")
	want = append(want, "hdl:"+s.id("20.500.1/AB").String(), s.id("urn:nbn:de:gbv:7-3").String())
	s.register("ark:12345/x5reserved", func(r *stele.Record) { r.State, r.Targets = stele.Reserved, nil })
	s.register("ark:12345/x5secret", func(r *stele.Record) { r.Readers = []string{"user:bia"} })

	list, pages := s.all()
	if got := names(list); got != " "+strings.Join(want, " ") || pages != 3 {
		t.Errorf("%d pages:%s", pages, got)
	}
	// The change feed, since all is newer than the namespaces.
	from := s.now.Format("2006-01-02T15:04:05Z")
	list, pages = s.all("from", from)
	got := strings.Fields(names(list))
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || pages != 3 {
		t.Errorf("%d pages: %q", pages, got)
	}
	for _, h := range list {
		if a := s.ask("verb", "GetRecord", "metadataPrefix", "oai_datacite", "identifier", h.Identifier); a.Error.Code != "" || a.Get[0].Header != h || !strings.HasPrefix(a.Get[0].DataCite, "Rain & <snow> of ") {
			t.Errorf("%s: %+v", h.Identifier, a)
		}
	}
	for _, name := range []string{"ark:12345/x5p1", "ark:12345/h1", "ark:12345/x5reserved", "ark:12345/x5secret", "ark:12345/x5none", "http://[", "", "%zz"} {
		if a := s.ask("verb", "GetRecord", "metadataPrefix", "oai_dc", "identifier", name); a.Error.Code != "idDoesNotExist" {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if a := s.ask("verb", "ListSets"); !slices.Equal(a.Sets, []string{"ark.12345~2Fx5", "hdl.20.500.1~2F", "urn.nbn~3Ade~3Agbv"}) {
		t.Errorf("%q", a.Sets)
	}
	if list, _ := s.all("set", "hdl.20.500.1~2F"); len(list) != 1 || list[0].Set != "hdl.20.500.1~2F" {
		t.Errorf("%v", list)
	}
	for _, set := range []string{"ark.12345~2Fh", "nothing", "a:b"} {
		if a := s.ask("verb", "ListRecords", "metadataPrefix", "oai_dc", "set", set); a.Error.Code != "noRecordsMatch" {
			t.Errorf("%s: %+v", set, a.Error)
		}
	}
	a := s.ask("verb", "GetRecord", "metadataPrefix", "oai_dc", "identifier", "ark:12345/x5a1")
	one := a.Get[0]
	if !slices.Equal(one.Identifiers, []string{"ark:12345/x5a1", "https://id.example.org/ark:12345/x5a1", "https://data.example.org/ark:12345%2Fx5a1"}) || one.Titles[0] != "Rain & <snow> of ark:12345/x5a1" || len(one.Creators) != 2 {
		t.Errorf("%+v", one)
	}
}

// TestDates: dates select records, a withdrawn one is deleted for ever, and what is listed later counts as changed then.
func TestDates(t *testing.T) {
	s := newRepository(t, 100)
	began := s.now
	s.space("ark", "ark:12345/x5", true)
	s.space("ark", "ark:12345/y5", false)
	for i := range 5 {
		s.now = began.Add(time.Duration(i+1) * 24 * time.Hour)
		s.register(fmt.Sprintf("ark:12345/x5a%d", i))
		s.register(fmt.Sprintf("ark:12345/y5a%d", i))
	}
	for _, tt := range []struct{ from, until, want string }{
		{"", "", "01234"}, {"2026-06-02", "", "01234"}, {"2026-06-03", "", "1234"}, {"2026-06-03T12:00:00Z", "", "1234"}, {"2026-06-03T12:00:01Z", "", "234"}, {"", "2026-06-03", "01"},
		{"2026-06-03", "2026-06-04", "12"}, {"2026-06-04T12:00:00Z", "2026-06-04T12:00:00Z", "2"}, {"2026-06-07", "", ""}, {"", "2026-06-01T11:59:59Z", ""}, {"1970-01-01", "2030-01-01", "01234"},
	} {
		var args []string
		if tt.from != "" {
			args = append(args, "from", tt.from)
		}
		if tt.until != "" {
			args = append(args, "until", tt.until)
		}
		list, _ := s.all(args...)
		got := strings.ReplaceAll(strings.ReplaceAll(names(list), "ark:12345/x5a", ""), " ", "")
		if got != tt.want {
			t.Errorf("from %s until %s: %q, want %q", tt.from, tt.until, got, tt.want)
		}
	}

	s.now = began.Add(10 * 24 * time.Hour)
	if _, err := s.registrar.Withdraw(s.ctx, s.id("ark:12345/x5a1"), 0, "lost", stele.ID{}); err != nil {
		t.Fatal(err)
	}
	if list, _ := s.all("from", "2026-06-11"); names(list) != " deletedark:12345/x5a1" {
		t.Errorf("%s", names(list))
	}
	if list, _ := s.all(); len(list) != 5 || !strings.Contains(names(list), " deletedark:12345/x5a1") {
		t.Errorf("%s", names(list))
	}
	if a := s.ask("verb", "GetRecord", "metadataPrefix", "oai_dc", "identifier", "ark:12345/x5a1"); a.Get[0].Header.Status != "deleted" || len(a.Get[0].Titles) > 0 {
		t.Errorf("%+v", a)
	}

	s.now = began.Add(20 * 24 * time.Hour)
	if _, err := s.registrar.SetNamespace(s.ctx, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/y5"}, 0, func(ns *stele.Namespace) error { ns.Listed = true; return nil }); err != nil {
		t.Fatal(err)
	}
	list, _ := s.all("from", "2026-06-21T12:00:00Z")
	if len(list) != 5 || list[0].Identifier != "ark:12345/y5a0" || list[0].Date != "2026-06-21T12:00:00Z" {
		t.Errorf("%+v", list)
	}
	if a := s.ask("verb", "Identify"); a.Identify.Earliest != "2026-06-01T12:00:00Z" || a.Identify.Deleted != "persistent" || a.Identify.Mail != "ids@example.org" || a.Identify.Name != "Names & numbers" || a.Identify.Base != "https://id.example.org/.oai" {
		t.Errorf("%+v", a.Identify)
	}
}

// TestImported: a record that was imported with dates of long ago is new to harvesters, whatever its own dates are, and its
// datestamp stays when the import has ended.
func TestImported(t *testing.T) {
	s := newRepository(t, 100)
	began := s.now
	s.space("ark", "ark:12345/x5", true)
	s.register("ark:12345/x5a0")
	s.now = began.Add(48 * time.Hour)
	number, err := s.registrar.BeginImport(s.ctx, "old.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	old := time.Date(2010, 1, 2, 3, 4, 5, 0, time.UTC)
	rec := &stele.Record{ID: s.id("ark:12345/x5old"), State: stele.Active, Created: old, Modified: old, Metadata: stele.Metadata{"what": "Old"}}
	if errs, err := s.registrar.Ingest(s.ctx, []*stele.Record{rec}, registrar.ImportOptions{Import: number, Keep: true}); err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
	for _, end := range []bool{false, true} {
		if end {
			s.now = began.Add(50 * time.Hour)
			if err := s.registrar.NoteImport(s.ctx, number, registrar.ImportCounts{Created: 1}); err != nil {
				t.Fatal(err)
			}
			s.now = began.Add(100 * time.Hour)
		}
		for _, from := range []string{"2026-06-02", "2026-06-03T12:00:00Z"} {
			if list, _ := s.all("from", from); names(list) != " ark:12345/x5old" {
				t.Errorf("from %s: %s", from, names(list))
			}
		}
	}
	if list, _ := s.all(); len(list) != 2 || list[1].Date != "2026-06-03T14:00:00Z" {
		t.Errorf("%+v", list)
	}
}

// TestGeneration: after a restore a token of before is refused, and all records count as changed.
func TestGeneration(t *testing.T) {
	s := newRepository(t, 2)
	s.space("ark", "ark:12345/x5", true)
	s.now = s.now.Add(time.Hour)
	for i := range 5 {
		s.register(fmt.Sprintf("ark:12345/x5a%d", i))
	}
	first := s.ask("verb", "ListIdentifiers", "metadataPrefix", "oai_dc")
	if len(first.Headers) != 2 {
		t.Fatal(names(first.Headers))
	}
	list, err := s.store.Generations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(time.Hour)
	if err := s.store.SetGenerations(t.Context(), list.Last().ID, list.Next(s.now, 1, nil, 0)); err != nil {
		t.Fatal(err)
	}
	if a := s.ask("verb", "ListIdentifiers", "resumptionToken", *first.Token); a.Error.Code != "badResumptionToken" {
		t.Errorf("%+v", a.Error)
	}
	if list, _ := s.all("from", s.now.Format("2006-01-02T15:04:05Z")); len(list) != 5 {
		t.Errorf("%s", names(list))
	}
}

// TestFaults: each wrong request is refused with its code, and a request that is not one is not repeated.
func TestFaults(t *testing.T) {
	s := newRepository(t, 1)
	if a := s.ask("verb", "ListSets"); a.Error.Code != "noSetHierarchy" {
		t.Errorf("%+v", a.Error)
	}
	s.space("ark", "ark:12345/x5", true)
	s.register("ark:12345/x5a1")
	s.register("ark:12345/x5a2")
	token := *s.ask("verb", "ListRecords", "metadataPrefix", "oai_dc").Token
	for _, tt := range []struct{ query, code string }{
		{"", "badVerb"}, {"verb=identify", "badVerb"}, {"verb=Identify&verb=Identify", "badVerb"}, {"verb=Identify&x=1", "badArgument"}, {"verb=Identify&%zz=1", "badArgument"},
		{"verb=ListRecords", "badArgument"}, {"verb=ListRecords&metadataPrefix=marc", "cannotDisseminateFormat"}, {"verb=GetRecord&identifier=ark:12345/x5a1&metadataPrefix=marc", "cannotDisseminateFormat"},
		{"verb=GetRecord&metadataPrefix=oai_dc", "badArgument"}, {"verb=ListRecords&metadataPrefix=oai_dc&metadataPrefix=oai_dc", "badArgument"},
		{"verb=ListRecords&metadataPrefix=oai_dc&from=2026", "badArgument"}, {"verb=ListRecords&metadataPrefix=oai_dc&from=", "badArgument"}, {"verb=ListRecords&metadataPrefix=oai_dc&from=2026-02-30", "badArgument"},
		{"verb=ListRecords&metadataPrefix=oai_dc&from=2026-06-02&until=2026-06-01", "badArgument"}, {"verb=ListRecords&metadataPrefix=oai_dc&from=2026-06-02&until=2026-06-03T00:00:00Z", "badArgument"},
		{"verb=ListRecords&metadataPrefix=oai_dc&set=a%20b", "badArgument"}, {"verb=ListRecords&metadataPrefix=oai_dc&set=", "badArgument"},
		{"verb=ListRecords&resumptionToken=x", "badResumptionToken"}, {"verb=ListRecords&resumptionToken=", "badResumptionToken"}, {"verb=ListRecords&resumptionToken=" + token + "A", "badResumptionToken"},
		{"verb=ListRecords&metadataPrefix=oai_dc&resumptionToken=" + token, "badArgument"}, {"verb=ListSets&resumptionToken=" + token, "badResumptionToken"},
		{"verb=ListMetadataFormats&identifier=ark:12345/x5b", "idDoesNotExist"}, {"verb=ListMetadataFormats&identifier=ark:12345/x5a1", ""}, {"verb=ListRecords&resumptionToken=" + token, ""},
		{"verb=Identify&" + strings.Repeat("x", 7000), "badArgument"},
	} {
		a := s.get(tt.query)
		repeated := tt.code != "badVerb" && tt.code != "badArgument"
		if a.Error.Code != tt.code || (len(a.Request.Attrs) > 0) != repeated || a.Request.URL != "https://id.example.org/.oai" || a.ResponseDate == "" {
			t.Errorf("%s: %+v", tt.query, a)
		}
	}
	response, err := http.Post(s.url+oai.Root, "application/x-www-form-urlencoded", strings.NewReader("verb=GetRecord&metadataPrefix=oai_dc&identifier=ark%3A12345%2Fx5a1"))
	if err != nil {
		t.Fatal(err)
	}
	if a := s.read(response); len(a.Get) != 1 {
		t.Errorf("by POST: %+v", a)
	}
	for kind, body := range map[string]string{"text/plain": "verb=Identify", "application/x-www-form-urlencoded": strings.Repeat("x", 20_000)} {
		response, err := http.Post(s.url+oai.Root, kind, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if response.Body.Close(); response.StatusCode < 400 || response.StatusCode >= 500 {
			t.Errorf("%s: %s", kind, response.Status)
		}
	}
	if response, err := http.Get(s.url + oai.Root + "/x"); err != nil || response.StatusCode != http.StatusNotFound {
		t.Errorf("%v %v", response, err)
	}
}

// TestBudget: a harvester that asks too fast is told when to come back, by the status that it knows.
func TestBudget(t *testing.T) {
	s := newRepository(t, 10, func(o *httpd.Options) { o.Costs = limit.NewRate(1, 6) })
	for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusServiceUnavailable} {
		response, err := http.Get(s.url + oai.Root + "?verb=Identify")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want || (response.Header.Get("Retry-After") != "") != (i == 2) {
			t.Errorf("%d: %s %v", i, response.Status, response.Header)
		}
	}
}

// harvestAll is a program that harvests with Debian's libhttp-oai-perl.
const harvestAll = `
use strict; use warnings; use HTTP::OAI;
binmode STDOUT, ':utf8';
my ($url, $prefix) = @ARGV;
my $h = HTTP::OAI::Harvester->new(baseURL => $url, resume => 1);
my $i = $h->Identify;
die $i->message if $i->is_error;
my $sets = $h->ListSets;
die $sets->message if $sets->is_error;
while (my $s = $sets->next) { print 'set ', $s->setSpec, "\n"; }
my $list = $h->ListRecords(metadataPrefix => $prefix, onRecord => sub {
	my $r = shift;
	my $title = '';
	$title = join '|', map { $_->textContent } $r->metadata->dom->findnodes('.//*[local-name()="title"]') if $r->metadata;
	print join(' ', $r->identifier, $r->datestamp, $r->status || 'there', $title), "\n";
});
die $list->message if $list->is_error;
my $one = $h->GetRecord(identifier => 'ark:12345/x5a00', metadataPrefix => $prefix);
die $one->message if $one->is_error;
print 'one ', $one->next->identifier, "\n";
`

// TestRealHarvester: the harvester of Debian, libhttp-oai-perl, gets all records over several pages.
func TestRealHarvester(t *testing.T) {
	s := newRepository(t, 10)
	s.space("ark", "ark:12345/x5", true)
	s.now = s.now.Add(time.Hour)
	want := "set ark.12345~2Fx5\n"
	for i := range 37 {
		s.now = s.now.Add(time.Second)
		name := fmt.Sprintf("ark:12345/x5a%02d", i)
		s.register(name)
		if i == 11 {
			if _, err := s.registrar.Withdraw(s.ctx, s.id(name), 0, "lost", stele.ID{}); err != nil {
				t.Fatal(err)
			}
			want += fmt.Sprintf("%s %s deleted \n", name, s.now.Format("2006-01-02T15:04:05Z"))
			continue
		}
		want += fmt.Sprintf("%s %s there Rain & <snow> of %s\n", name, s.now.Format("2006-01-02T15:04:05Z"), name)
	}
	want += "one ark:12345/x5a00\n"
	now := s.now
	s.stopped.Store(&now)
	for _, format := range []string{"oai_dc", "oai_datacite"} {
		out, err := exec.CommandContext(t.Context(), "perl", "-e", harvestAll, s.url+oai.Root, format).CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", format, err, out, want)
		}
	}
}
