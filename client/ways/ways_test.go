package ways

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
)

func TestChoice(t *testing.T) {
	via := func(words string) (list []client.Via) {
		for word := range strings.FieldsSeq(words) {
			list = append(list, client.Via(word))
		}
		return list
	}
	for _, tt := range []struct {
		name string
		c    Choice
		want string
	}{
		{"named", Choice{Named: via("http dns http"), Local: true}, "http dns"},
		{"nothing there", Choice{}, "dns"},
		{"a registry, and a name that is not in the DNS", Choice{Registered: true}, "local"},
		{"a registry", Choice{Registered: true, InDNS: true}, "local dns"},
		{"a registry, the DNS first", Choice{Registered: true, InDNS: true, DNSFirst: true}, "dns local"},
		{"flags of the DNS", Choice{DNS: true, Registered: true, InDNS: true}, "dns"},
		{"a server", Choice{Server: true, Registered: true, InDNS: true}, "http"},
		{"a server for everything, the DNS first", Choice{Server: true, ServerImplied: true, InDNS: true, DNSFirst: true}, "dns http"},
		{"a server that is named, the DNS first", Choice{Server: true, InDNS: true, DNSFirst: true}, "http"},
		{"a server for everything, and a folder", Choice{Server: true, ServerImplied: true, Local: true, InDNS: true, DNSFirst: true}, "http local"},
		{"flags of the Handle protocol", Choice{Handle: true, Registered: true, InDNS: true}, "hdl"},
		{"flags of the Handle protocol, and a server for everything", Choice{Handle: true, Server: true, ServerImplied: true, Registered: true}, "hdl"},
		{"flags of the Handle protocol, and a server", Choice{Handle: true, Server: true}, "http hdl"},
		{"one to compare", Choice{Server: true, Registered: true, InDNS: true, Compare: true}, "http local dns"},
		{"two to compare", Choice{Server: true, DNS: true, Registered: true, InDNS: true, Compare: true}, "dns http"},
	} {
		if got := strings.Trim(fmt.Sprint(tt.c.Ways()), "[]"); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestParseAccept(t *testing.T) {
	for _, tt := range []struct {
		text    string
		service stele.Service
		want    string
	}{
		{"", stele.N2L, "[]"},
		{"audio/mpeg, audio/*;q=0.5", stele.N2L, "[{audio/mpeg 1000} {audio/* 500}]"},
		{"ed25519, rsa;q=0.5", stele.N2S, "[{ED25519 1000} {RSA 500}]"},
	} {
		list, err := ParseAccept(tt.text, tt.service)
		if got := fmt.Sprint(list); err != nil || got != tt.want {
			t.Errorf("%q for %s: %s, %v", tt.text, tt.service, got, err)
		}
	}
	if _, err := ParseAccept("audio", stele.N2L); err == nil {
		t.Error("a word is a media type")
	}
}

// answer is a way that always says the same.
type answer struct {
	res    client.Result
	err    error
	closed *int
}

func (a answer) Resolve(context.Context, client.Request) (client.Result, error) { return a.res, a.err }

func (a answer) Close() {
	if a.closed != nil {
		*a.closed++
	}
}

func schemes(t *testing.T) *stele.Schemes {
	t.Helper()
	list, err := all.New(all.Config{Now: time.Now, PURLHosts: []string{"purl.org"}})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestCompare(t *testing.T) {
	at := func(location string, equals ...string) answer {
		return answer{res: client.Result{Found: client.FoundLocation, Location: location, Equals: equals}}
	}
	fails := func(kind stele.Kind) answer { return answer{err: &stele.Error{Kind: kind}} }
	for _, tt := range []struct {
		name       string
		a, b       answer
		agree      bool
		unanswered bool
	}{
		{"the same", at("https://a/"), at("https://a/"), true, false},
		{"two places", at("https://a/"), at("https://b/"), false, false},
		{"one as good", at("https://a/", "https://b/"), at("https://b/"), true, false},
		{"one as good, the other way round", at("https://b/"), at("https://a/", "https://b/"), true, false},
		{"a location and a server", at("https://a/"), answer{res: client.Result{Found: client.FoundServer, Location: "https://a/"}}, false, false},
		{"one question in two spellings", at("http://h/uri-res/N2L?ark:12345/x1"), at("http://h/uri-res/N2L?ark:/12345/x1"), true, false},
		{"two questions", at("http://h/uri-res/N2L?ark:12345/x1"), at("http://h/uri-res/N2L?ark:12345/x2"), false, false},
		{"two servers", at("http://h/uri-res/N2L?ark:12345/x1"), at("http://g/uri-res/N2L?ark:12345/x1"), false, false},
		{"gone for both", fails(stele.Gone), fails(stele.Gone), true, false},
		{"gone for one", fails(stele.Gone), at("https://a/"), false, false},
		{"two reasons", fails(stele.Gone), fails(stele.NotFound), false, false},
		{"no answer", fails(stele.Unavailable), at("https://a/"), false, true},
	} {
		c := Compare(t.Context(), schemes(t), stele.ID{}, client.Request{}, List{{client.ViaDNS, tt.a}, {client.ViaHTTP, tt.b}})
		if c.Agree != tt.agree || (c.Unanswered != nil) != tt.unanswered || len(c.Outcomes) != 2 || c.Outcomes[1].Via != client.ViaHTTP {
			t.Errorf("%s: %+v", tt.name, c)
		}
		if tt.unanswered && stele.KindOf(c.Unanswered) != stele.Unavailable {
			t.Errorf("%s: %v", tt.name, c.Unanswered)
		}
	}
}

func TestList(t *testing.T) {
	closed := 0
	l := List{{client.ViaLocal, &Local{}}, {client.ViaDNS, answer{closed: &closed}}}
	if !l.Has(client.ViaDNS) || l.Has(client.ViaHTTP) || len(l.Ways()) != 2 || len(l.Ways(client.ViaLocal)) != 1 {
		t.Errorf("%v", l)
	}
	if l.Close(); closed != 1 {
		t.Errorf("closed %d times", closed)
	}
}

// local is the way by a registry in memory with some records.
func local(t *testing.T) (w *Local, open *int) {
	t.Helper()
	list := schemes(t)
	store := mem.New(time.Now)
	t.Cleanup(func() { store.Close() })
	r := registrar.New(store, list, registrar.Options{Now: time.Now})
	ctx := auth.With(t.Context(), auth.Local())
	id := func(text string) stele.ID {
		id, err := list.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	target := func(service stele.Service, url string, preference uint16) stele.Target {
		return stele.Target{Service: service, URL: url, Order: stele.DefaultOrder, Preference: preference}
	}
	for _, rec := range []*stele.Record{
		{ID: id("urn:example:1"), Aliases: []stele.ID{id("ark:12345/x1")}, Targets: []stele.Target{target(stele.N2L, "https://a/", 10), target(stele.N2L, "https://b/", 10), target(stele.N2L, "ftp://c/", 20)}},
		{ID: id("ark:12345/x2"), Metadata: stele.Metadata{"what": "no target"}},
		{ID: id("ark:12345/x3"), Targets: []stele.Target{target(stele.N2L, "https://a/", 10)}},
	} {
		rec.State = stele.Active
		if _, err := r.Register(ctx, rec); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Withdraw(ctx, id("ark:12345/x3"), 0, "lost", id("ark:12345/x2")); err != nil {
		t.Fatal(err)
	}
	reads := resolver.New(store, list, resolver.Options{Now: time.Now, Random: func(int) int { return 0 }})
	open = new(int)
	return &Local{Schemes: list, Place: "here", Open: func(context.Context) (*Opened, error) {
		*open++
		return &Opened{Resolver: reads, Records: store, Close: func() error { *open--; return nil }}, nil
	}}, open
}

func TestLocal(t *testing.T) {
	w, open := local(t)
	for _, tt := range []struct {
		name    string
		service stele.Service
		want    string // location, and others after it; or a part of the error
		kind    stele.Kind
	}{
		{"ark:/12345/x1", stele.N2L, "https://a/ https://b/ ftp://c/", 0},
		{"ark:/12345/x1", "N2Ls", "https://a/ https://b/ ftp://c/", 0},
		{"ark:12345/x1", "N2N", "urn:example:1", 0},
		{"urn:example:1", "N2Ns", "urn:example:1 ark:12345/x1", 0},
		{"ark:12345/x2", "N2N", "there is nothing for N2N", stele.NotFound},
		{"ark:12345/x2", stele.N2L, "there is nothing for N2L (the thing itself)", stele.NotFound},
		{"ark:12345/x3", stele.N2L, "it was withdrawn: lost; use ark:12345/x2", stele.Gone},
		{"ark:12345/x9", stele.N2L, "", stele.NotFound},
		{"not a name", stele.N2L, "", stele.Invalid},
	} {
		res, err := w.Resolve(t.Context(), client.Request{Name: tt.name, Service: tt.service, Trace: true})
		if tt.kind != 0 {
			if stele.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) || res.Location != "" || res.Trace.Error != err.Error() {
				t.Errorf("%s %s: %+v, %v", tt.name, tt.service, res, err)
			}
			continue
		}
		if got := strings.Join(append([]string{res.Location}, res.Others...), " "); err != nil || got != tt.want || res.Via != client.ViaLocal || res.Trace.Outcome == "" {
			t.Errorf("%s %s: %s, %v", tt.name, tt.service, got, err)
		}
		if len(res.Trace.Steps) == 0 || !strings.HasPrefix(res.Trace.Steps[0].Note, "in here, ") {
			t.Errorf("%s: the trace is %+v", tt.name, res.Trace.Steps)
		}
	}
	res, err := w.Resolve(t.Context(), client.Request{Name: "urn:example:1", Service: stele.N2L, Accept: []ddds.Preference{{Range: "text/html", Q: 1000}}})
	if err != nil || len(res.Equals) != 1 || res.Equals[0] != "https://b/" || res.Trace != nil {
		t.Errorf("%+v, %v", res, err)
	}
	if *open != 0 {
		t.Errorf("the registry is open %d times", *open)
	}
	w.Open = func(context.Context) (*Opened, error) { return nil, stele.Unavailable }
	if _, err := w.Resolve(t.Context(), client.Request{Name: "urn:example:1", Service: stele.N2L}); !errors.Is(err, stele.Unavailable) {
		t.Errorf("the registry can't be opened: %v", err)
	}
}

func TestSigned(t *testing.T) {
	w, open := local(t)
	id, err := w.Schemes.Parse("urn:example:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Signed(t.Context(), id); !errors.Is(err, ErrUnsigned) || *open != 0 {
		t.Errorf("%v, open %d times", err, *open)
	}
}
