package httpd

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/web/webtest"
)

var handleNoon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// handleFixture is a server over a store in memory, with what other systems'
// clients ask for.
type handleFixture struct {
	t       testing.TB
	store   stele.Store
	schemes *stele.Schemes
	handler *Handler
	drawn   func(n int) int // what the handler draws by; the first if nil
}

func newHandleFixture(t testing.TB, change func(*Options)) *handleFixture {
	t.Helper()
	clock := func() time.Time { return handleNoon }
	schemes, err := all.New(all.Config{Now: clock, PURLHosts: []string{"purl.org"}})
	if err != nil {
		t.Fatal(err)
	}
	f := &handleFixture{t: t, store: mem.New(clock), schemes: schemes}
	t.Cleanup(func() { f.store.Close() })
	o := Options{OwnName: named("id.example.org", "example.com"),
		Resolver: resolver.New(f.store, schemes, resolver.Options{Now: clock, DefaultTTL: 3600}),
		Registry: registrar.New(f.store, schemes, registrar.Options{Now: clock}),
		Schemes:  schemes,
		Pages:    webtest.Pages(t),
		Now:      clock,
		Random: func(n int) int {
			if f.drawn == nil {
				return 0
			}
			return f.drawn(n)
		},
	}
	if change != nil {
		change(&o)
	}
	f.handler = New(o)
	for _, prefix := range []string{"20.500.99999/", "20.500.88888/"} {
		ns := stele.Namespace{Scheme: "hdl", Prefix: prefix, Version: 1}
		if prefix == "20.500.88888/" {
			ns.Delegate = "https://hdl.example.net/{id}"
		}
		f.commit(&stele.Commit{Namespaces: []*stele.Namespace{&ns}})
	}
	return f
}

func (f *handleFixture) commit(c *stele.Commit) {
	f.t.Helper()
	if err := f.store.Apply(f.t.Context(), c); err != nil {
		f.t.Fatal(err)
	}
}

func (f *handleFixture) id(text string) stele.ID {
	f.t.Helper()
	id, err := f.schemes.Parse(text)
	if err != nil {
		f.t.Fatal(err)
	}
	return id
}

// put registers a record under a name.
func (f *handleFixture) put(name string, record stele.Record) {
	f.t.Helper()
	record.ID, record.Version, record.Created, record.Modified = f.id(name), 1, handleNoon, handleNoon
	if record.State == "" {
		record.State = stele.Active
	}
	f.commit(&stele.Commit{Records: []*stele.Record{&record}})
}

// values registers a handle with values.
func (f *handleFixture) values(name string, values ...stele.HandleValue) {
	f.t.Helper()
	f.put(name, stele.Record{Values: values})
}

// to registers a name with locations.
func (f *handleFixture) to(name string, targets ...stele.Target) {
	f.t.Helper()
	f.put(name, stele.Record{Targets: targets})
}

// at is a location.
func at(url string, order uint16) stele.Target {
	return stele.Target{Service: stele.N2L, URL: url, Order: order, Preference: stele.DefaultPreference}
}

// text is a value with a text, as the reference server's were.
func text(index uint32, kind, data string) stele.HandleValue {
	return stele.HandleValue{Index: index, Type: kind, Data: []byte(data), TTL: 86400, Timestamp: 1700000000, Permissions: stele.DefaultPermissions}
}

// adminBytes is the data of an HS_ADMIN with all rights.
func adminBytes(handle string, index uint32, extra ...byte) []byte {
	b := binary.BigEndian.AppendUint32([]byte{0x0f, 0xff}, uint32(len(handle)))
	return append(binary.BigEndian.AppendUint32(append(b, handle...), index), extra...)
}

// ask sends a request and returns the answer with its body. A target with a space
// or control character in it is sent as it is.
func (f *handleFixture) ask(method, target string, head ...string) (*http.Response, string) {
	f.t.Helper()
	r := httptest.NewRequest(method, "http://id.example.org/", nil)
	r.RequestURI = target
	for i := 0; i+1 < len(head); i += 2 {
		r.Header.Set(head[i], head[i+1])
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	res := w.Result()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	for name, values := range res.Header {
		for _, value := range values {
			if strings.ContainsAny(name+value, "\r\n\x00") {
				f.t.Errorf("%s %q: the header %q is %q", method, target, name, value)
			}
		}
	}
	return res, string(body)
}

// told is an answer in short: the status and where it leads, or its body.
func told(res *http.Response, body string) string {
	if location := res.Header.Get("Location"); location != "" {
		return fmt.Sprintf("%d %s", res.StatusCode, location)
	}
	return fmt.Sprintf("%d %s", res.StatusCode, body)
}

// fill registers the names that several tests ask for.
func (f *handleFixture) fill() {
	f.t.Helper()
	f.values("20.500.99999/ABC-1",
		text(1, "URL", "https://example.org/1"),
		text(2, "EMAIL", "a@example.org"),
		text(3, "DESC", "héllo 世界"),
		text(100, "HS_ADMIN", string(adminBytes("0.NA/20.500.99999", 300))))
	p1 := []stele.HandleValue{text(1, "URL", "http://x/"), text(2, "BIN", "\x00\xff"), text(3, "HEX", "\x00\xff"), text(7, "URL", "http://y/")}
	for i := range p1 {
		p1[i].Timestamp = uint32(time.Date(2026, 11, 15, 1, 55, 9, 0, time.UTC).Unix())
	}
	f.values("20.500.99999/P1", p1...)
	f.to("20.500.99999/T-1", at("https://second.example.org/t?x=1", 200), at("https://example.org/t", 100),
		stele.Target{Service: stele.N2C, URL: "https://example.org/t.json", Type: "application/json", Order: 100})
	f.put("20.500.99999/W-1", stele.Record{State: stele.Withdrawn, Targets: []stele.Target{at("https://example.org/w", 100)},
		Tombstone: &stele.Tombstone{Reason: "It was\na copy", At: handleNoon, Replacement: f.id("20.500.99999/ABC-1")}})
	f.put("20.500.99999/R-1", stele.Record{State: stele.Reserved, Targets: []stele.Target{at("https://example.org/r", 100)}})
	f.put("20.500.99999/H-1", stele.Record{Readers: []string{"user:ann"}, Targets: []stele.Target{at("https://example.org/h", 100)}})
	partial := at("https://example.org/p/", 100)
	partial.Partial = true
	f.to("20.500.99999/PART", partial)
	f.values("20.500.99999/ALIAS", text(1, "HS_ALIAS", "20.500.99999/t-1"))
	f.values("20.500.99999/LOOP-A", text(1, "HS_ALIAS", "20.500.99999/LOOP-B"))
	f.values("20.500.99999/LOOP-B", text(1, "HS_ALIAS", "hdl:20.500.99999/LOOP-A"))
	for i := range 12 {
		f.values(fmt.Sprintf("20.500.99999/CHAIN-%d", i), text(1, "HS_ALIAS", fmt.Sprintf("20.500.99999/CHAIN-%d", i+1)))
	}
	f.values("20.500.99999/CHAIN-12", text(1, "URL", "https://example.org/end"))
	f.values("20.500.99999/BAD", text(1, "URL", "javascript:alert(1)"), text(2, "URL", "https://x/\r\nSet-Cookie: a=b"), text(3, "URL", "data:text/html,x"))
	f.put("ark:12345/x1", stele.Record{Aliases: []stele.ID{f.id("20.500.99999/ARK"), f.id("urn:isbn:9780140449136")},
		Targets: []stele.Target{at("https://example.org/ark", 100)}})
}
