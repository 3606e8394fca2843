package lsid_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/serve/httpd/lsid"
)

// files is a site with files that change.
type files struct {
	*httptest.Server
	mu    sync.Mutex
	bytes map[string]string
	kind  string
	asked atomic.Int64
}

func newFiles(t *testing.T) *files {
	f := &files{bytes: map[string]string{}, kind: "text/csv"}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.asked.Add(1)
		f.mu.Lock()
		text, ok := f.bytes[r.URL.Path]
		kind := f.kind
		f.mu.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *files) put(path, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bytes[path] = text
}

// again is another server over the same registry, which has nothing in memory.
func (a *authority) again(t *testing.T) *authority {
	return newAuthority(t, func(o *httpd.Options, l *lsid.Options) {
		o.Resolver, o.Registry = a.resolver, a.registrar
		l.Resolver, l.Data, l.Foreign, l.Names = a.resolver, a.registrar, a.registrar, a.registrar
	})
}

const one = "urn:lsid:example.org:ns:one"

// The first bytes are those of a name for ever: for all servers of a registry, after a restart, and whatever the record
// says later.
func TestDataNeverChange(t *testing.T) {
	f := newFiles(t)
	f.put("/1", "a,b\n")
	a := newAuthority(t)
	a.put(one, stele.Record{Targets: []stele.Target{data(f.URL + "/1")}})
	get := func(a *authority) answer { return a.get("/authority/data?lsid=" + one) }
	w := get(a)
	if w.body != "a,b\n" || w.Header.Get("Content-Type") != "application/octet-stream" || w.Header.Get("Content-Disposition") != "attachment" || !strings.Contains(w.Header.Get("Content-Security-Policy"), "sandbox") {
		t.Fatalf("%s %v %q", w.Status, w.Header, w.body)
	}
	asked := f.asked.Load()
	f.put("/1", "a,c\n")
	if w := get(a); w.body != "a,b\n" || f.asked.Load() != asked {
		t.Errorf("%s %q, asked %d times", w.Status, w.body, f.asked.Load())
	}
	b := a.again(t)
	w = get(b)
	w.fails(t, "500")
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte("a,b\n"))); !strings.Contains(w.body, "never change") || !strings.Contains(w.body, want) || strings.Contains(w.body, "a,c") {
		t.Error(w.body)
	}
	b.soap("/authority/data", "getData", "<lsid>"+one+"</lsid>").fails(t, "500")
	// Another location with other bytes is refused too, and one with the right bytes is not.
	f.put("/2", "x")
	move := func(targets ...stele.Target) {
		t.Helper()
		if _, err := a.registrar.Update(a.ctx, a.id(one), 0, func(r *stele.Record) error { r.Targets = targets; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	move(data(f.URL + "/2"))
	get(b).fails(t, "500")
	f.put("/3", "a,b\n")
	spare := data(f.URL + "/3")
	spare.Order++
	move(data(f.URL+"/2"), spare)
	if w := get(b); w.body != "a,b\n" {
		t.Errorf("%s %q", w.Status, w.body)
	}
	// A record without a location has data all the same, and none to give.
	move()
	get(a.again(t)).fails(t, "500")
	gone := data(f.URL + "/1")
	gone.Status = http.StatusGone
	move(gone)
	get(a.again(t)).fails(t, "500")
	if d, err := a.registrar.FixedData(a.ctx, a.id(one)); err != nil || d.Absent || d.Size != 4 {
		t.Errorf("%+v, %v", d, err)
	}
}

// An owner can declare that there are no data, for ever.
func TestNoData(t *testing.T) {
	f := newFiles(t)
	f.put("/1", "a")
	a := newAuthority(t)
	gone := data(f.URL + "/1")
	gone.Status = http.StatusGone
	a.put(one, stele.Record{Targets: []stele.Target{gone}})
	a.get("/authority/data?lsid="+one).fails(t, "300")
	if _, err := a.registrar.Update(a.ctx, a.id(one), 0, func(r *stele.Record) error { r.Targets[0].Status = 0; return nil }); err != nil {
		t.Fatal(err)
	}
	w := a.get("/authority/data?lsid=" + one)
	w.fails(t, "300")
	if !strings.Contains(w.body, "will have none") || f.asked.Load() != 0 {
		t.Error(w.body)
	}
	if w := a.get("/authority/?lsid=" + one); strings.Contains(w.body, "/authority/data") {
		t.Error(w.body)
	}
	// Without that, data can be added once they are there.
	a.put("urn:lsid:example.org:ns:two", stele.Record{})
	a.get("/authority/data?lsid=urn:lsid:example.org:ns:two").fails(t, "300")
	if _, err := a.registrar.Update(a.ctx, a.id("urn:lsid:example.org:ns:two"), 0, func(r *stele.Record) error {
		r.Targets = []stele.Target{data(f.URL + "/1")}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if w := a.get("/authority/data?lsid=urn:lsid:example.org:ns:two"); w.body != "a" {
		t.Error(w.body)
	}
	// A page is not data.
	a.put("urn:lsid:example.org:ns:page", stele.Record{Targets: []stele.Target{{Service: stele.N2L, URL: f.URL + "/1"}}})
	a.get("/authority/data?lsid=urn:lsid:example.org:ns:page").fails(t, "300")
}

// What can't be the data is not stored as them.
func TestWrongData(t *testing.T) {
	f := newFiles(t)
	rule, err := outbound.ParseRule([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	fetch := outbound.NewFetcher(&outbound.Dialer{Rule: rule, Timeout: time.Minute}, time.Minute)
	a := newAuthority(t, func(_ *httpd.Options, o *lsid.Options) { o.MaxData, o.Fetch = 10, fetch })
	f.put("/long", "12345678901")
	f.put("/page", "<p>not found</p>")
	typed := data(f.URL + "/page")
	typed.Type = "application/pdf"
	for name, test := range map[string]struct {
		rec  stele.Record
		says string
	}{
		"missing": {stele.Record{Targets: []stele.Target{data(f.URL + "/missing")}}, "status 404"},
		"long":    {stele.Record{Targets: []stele.Target{data(f.URL + "/long")}}, "at most 10"},
		"typed":   {stele.Record{Targets: []stele.Target{typed}}, "text/csv"},
		"ftp":     {stele.Record{Targets: []stele.Target{data("ftp://example.org/x")}}, "only http and https"},
		"private": {stele.Record{Targets: []stele.Target{data("http://127.0.0.2:1/x")}}, "do not allow"},
	} {
		id := "urn:lsid:example.org:ns:" + name
		a.put(id, test.rec)
		w := a.get("/authority/data?lsid=" + id)
		w.fails(t, "500")
		if !strings.Contains(w.body, test.says) {
			t.Errorf("%s: %s", name, w.body)
		}
		if d, err := a.registrar.FixedData(a.ctx, a.id(id)); err != nil || d != nil {
			t.Errorf("%s: stored %+v, %v", name, d, err)
		}
	}
}

// The first bytes are those that the owner signed, if the record has signatures.
func TestSignedData(t *testing.T) {
	f := newFiles(t)
	f.put("/1", "other")
	a := newAuthority(t)
	rec := &stele.Record{ID: a.id(one), State: stele.Active, Version: 1, Created: noon, Modified: noon, Targets: []stele.Target{data(f.URL + "/1")},
		Signatures: []stele.Signature{{SHA256: sha256.Sum256([]byte("right")), Size: 5, Date: noon, Key: "k", JWS: "a..b"}}}
	if err := a.store.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{rec}}); err != nil {
		t.Fatal(err)
	}
	w := a.get("/authority/data?lsid=" + one)
	w.fails(t, "500")
	if !strings.Contains(w.body, "signed") {
		t.Error(w.body)
	}
	f.put("/1", "right")
	if w := a.get("/authority/data?lsid=" + one); w.body != "right" {
		t.Error(w.body)
	}
}

func TestRange(t *testing.T) {
	f := newFiles(t)
	f.put("/1", "0123456789")
	a := newAuthority(t)
	a.put(one, stele.Record{Targets: []stele.Target{data(f.URL + "/1")}})
	for query, want := range map[string]string{
		"": "0123456789", "&start=2&length=3": "234", "&length=3": "012", "&start=7": "789", "&start=10&length=0": "", "&start=0&length=10": "0123456789",
		"&start=8&length=3": "!301", "&start=11": "!301", "&start=-1&length=2": "!301", "&start=9223372036854775807&length=9223372036854775807": "!301", "&start=x": "!712", "&start=99999999999999999999": "!712",
	} {
		w := a.get("/authority/data?lsid=" + one + query)
		if code, fails := strings.CutPrefix(want, "!"); fails {
			w.fails(t, code)
			if strings.Contains(w.body, "and -1") {
				t.Errorf("%s: %s", query, w.body)
			}
		} else if w.body != want || w.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %q", query, w.Status, w.body)
		}
	}
	// By SOAP under both names: clients send the first, and programs made from the WSDL the second.
	for _, operation := range []string{"getData", "getDataByRange"} {
		w := a.soap("/authority/data", operation, "<lsid>"+one+"</lsid><start>2</start><length>3</length>")
		text, got := message(t, w.Header.Get("Content-Type"), []byte(w.body))
		if string(got) != "234" || !strings.Contains(string(text), operation+"Response") {
			t.Errorf("%s: %s %q", operation, w.Status, w.body)
		}
		a.soap("/authority/data", operation, "<lsid>"+one+"</lsid><start>9</start><length>3</length>").fails(t, "301")
	}
	// Whatever the bytes are, they arrive in an attachment.
	for i, text := range []string{"", "\r\n--=_stele_1\r\n", "\x00\xff", strings.Repeat("--=_stele_", 100)} {
		id := fmt.Sprintf("urn:lsid:example.org:ns:%d", i)
		f.put("/x", text)
		a.put(id, stele.Record{Targets: []stele.Target{data(f.URL + "/x")}})
		w := a.soap("/authority/data", "getData", "<lsid>"+id+"</lsid>")
		if _, got := message(t, w.Header.Get("Content-Type"), []byte(w.body)); string(got) != text {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := a.counted.take(); !strings.Contains(got, "data "+one) {
		t.Error(got)
	}
}

// Many readers who ask first at the same time get the same bytes, though the file changes with each request.
func TestFirstReaders(t *testing.T) {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "%d", n.Add(1)) }))
	defer s.Close()
	a := newAuthority(t)
	a.put(one, stele.Record{Targets: []stele.Target{data(s.URL)}})
	var got sync.Map
	var work sync.WaitGroup
	for range 16 {
		work.Go(func() {
			w := a.get("/authority/data?lsid=" + one)
			if w.StatusCode == http.StatusOK {
				got.Store(w.body, true)
			}
		})
	}
	work.Wait()
	count := 0
	got.Range(func(any, any) bool { count++; return true })
	if count != 1 {
		t.Errorf("readers got %d different data", count)
	}
}

// A site that does not answer keeps neither other data nor metadata waiting.
func TestSlowSite(t *testing.T) {
	asked, release := make(chan struct{}, 100), make(chan struct{})
	site := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-release
		_, _ = io.WriteString(w, "slow")
	})
	var slow [2]*httptest.Server // on one host
	for i := range slow {
		slow[i] = httptest.NewServer(site)
		defer slow[i].Close()
	}
	f := newFiles(t)
	f.put("/1", "a")
	a := newAuthority(t, func(o *httpd.Options, _ *lsid.Options) { o.Turns = limit.NewTurns(1, 100, time.Minute) })
	a.put(one, stele.Record{Targets: []stele.Target{data(strings.Replace(f.URL, "127.0.0.1", "localhost", 1) + "/1")}}) // another host
	var work sync.WaitGroup
	for i := range 8 {
		id := fmt.Sprintf("urn:lsid:example.org:slow:%d", i)
		a.put(id, stele.Record{Targets: []stele.Target{data(slow[i%2].URL)}})
		work.Go(func() {
			if w := a.get("/authority/data?lsid=" + id); w.body != "slow" {
				t.Errorf("%s %s", w.Status, w.body)
			}
		})
	}
	<-asked
	<-asked
	if w := a.get("/authority/data?lsid=" + one); w.body != "a" {
		t.Errorf("%s %s", w.Status, w.body)
	}
	if w := a.get("/authority/metadata?lsid=" + one); w.StatusCode != http.StatusOK {
		t.Errorf("%s %s", w.Status, w.body)
	}
	if len(asked) != 0 {
		t.Errorf("%d more requests to the slow site at the same time", len(asked))
	}
	close(release)
	work.Wait()
}
