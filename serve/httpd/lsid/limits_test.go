package lsid_test

import (
	"fmt"
	"io"
	"net"
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

// reading is a client in the middle of reading an answer.
type reading struct {
	*httptest.ResponseRecorder
	meanwhile func()
}

func (w *reading) Write(b []byte) (int, error) {
	if f := w.meanwhile; f != nil {
		w.meanwhile = nil
		f()
	}
	return w.ResponseRecorder.Write(b)
}

// busied is what fetches data from a server whose turns are all taken as soon as it has them.
type busied struct {
	turns *limit.Turns
	leave func()
}

func (b *busied) Do(r *http.Request) (*http.Response, error) {
	a, err := http.DefaultClient.Do(r)
	if err == nil {
		b.leave, err = b.turns.Enter(r.Context())
	}
	return a, err
}

// To hash the data of a name takes a turn: while others have all of them, no digest is made, or stored.
func TestHashTakesATurn(t *testing.T) {
	f := newFiles(t)
	f.put("/1", "a,b\n")
	turns := limit.NewTurns(1, 0, time.Minute)
	busy := &busied{turns: turns}
	a := newAuthority(t, func(o *httpd.Options, l *lsid.Options) { o.Turns, l.Fetch = turns, busy })
	a.put(one, stele.Record{Targets: []stele.Target{data(f.URL + "/1")}})
	if got := a.get("/authority/data?lsid=" + one); got.StatusCode != http.StatusTooManyRequests {
		t.Errorf("%s %s", got.Status, got.body)
	}
	if d, err := a.registrar.FixedData(a.ctx, a.id(one)); err != nil || d != nil {
		t.Errorf("a digest was stored: %+v, %v", d, err)
	}
	busy.leave()
}

// A client that reads slowly holds up no other: the turn to make an answer ends before the answer is written.
func TestSlowReader(t *testing.T) {
	f := newFiles(t)
	f.put("/1", "a,b\n")
	a := newAuthority(t, func(o *httpd.Options, _ *lsid.Options) { o.Turns = limit.NewTurns(1, 0, time.Minute) })
	a.put(one, stele.Record{Targets: []stele.Target{data(f.URL + "/1")}})
	const envelope = `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body><%[1]s><lsid>` + one + `</lsid></%[1]s></e:Body></e:Envelope>`
	ask := func(method, target, body string) {
		t.Helper()
		r := httptest.NewRequest(method, "http://id.example.org"+target, strings.NewReader(body))
		r.RequestURI = target
		r.Header.Set("Content-Type", "text/xml")
		asked := false
		w := &reading{httptest.NewRecorder(), func() {
			asked = true
			if other := a.get("/authority/metadata?lsid=" + one); other.StatusCode != http.StatusOK {
				t.Errorf("%s %s: while it is read, another client gets %s %s", target, body, other.Status, other.body)
			}
		}}
		a.handler.ServeHTTP(w, r)
		if !asked || w.Code != http.StatusOK {
			t.Errorf("%s %s: %d %s", target, body, w.Code, w.Body)
		}
	}
	for _, target := range []string{"/authority/?lsid=", "/authority/metadata?lsid=", "/authority/data?lsid="} {
		ask(http.MethodGet, target+one, "")
	}
	for _, operation := range []string{"getAvailableServices", "getMetadata", "getData"} {
		ask(http.MethodPost, "/authority/", fmt.Sprintf(envelope, operation))
	}
}

// Bytes that were fetched by a version of the record that was replaced meanwhile are not stored for ever.
func TestRecordChangesMeanwhile(t *testing.T) {
	f := newFiles(t)
	f.put("/right", "right")
	a := newAuthority(t)
	spare := data(f.URL + "/right")
	spare.Order++
	wrong := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := a.registrar.Update(a.ctx, a.id(one), 0, func(r *stele.Record) error {
			r.Targets = []stele.Target{data(f.URL + "/right")}
			return nil
		}); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, "wrong")
	}))
	defer wrong.Close()
	a.put(one, stele.Record{Targets: []stele.Target{data(wrong.URL), spare}})
	w := a.get("/authority/data?lsid=" + one)
	w.fails(t, "500")
	if !strings.Contains(w.body, "try again") || f.asked.Load() != 0 {
		t.Errorf("%s; the next location was asked %d times", w.body, f.asked.Load())
	}
	if d, err := a.registrar.FixedData(a.ctx, a.id(one)); err != nil || d != nil {
		t.Errorf("stored %+v, %v", d, err)
	}
	if w := a.get("/authority/data?lsid=" + one); w.body != "right" {
		t.Errorf("%s %s", w.Status, w.body)
	}
}

// An answer whose end is that of the connection may be a part of the data, so it does not become the data for ever. Once
// their digest is known, it can be compared.
func TestDataWithoutLength(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	answers := make(chan string, 1)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 4096) // the request fits
			_, _ = conn.Read(buf)
			_, _ = io.WriteString(conn, <-answers)
			conn.Close()
		}
	}()
	a := newAuthority(t)
	a.put(one, stele.Record{Targets: []stele.Target{data("http://" + listener.Addr().String())}})
	const open = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
	for _, head := range []string{open, "HTTP/1.0 200 OK\r\n\r\n"} {
		answers <- head + "who"
		w := a.get("/authority/data?lsid=" + one)
		w.fails(t, "500")
		if !strings.Contains(w.body, "how long the data are") {
			t.Error(w.body)
		}
		if d, err := a.registrar.FixedData(a.ctx, a.id(one)); err != nil || d != nil {
			t.Fatalf("stored %+v, %v", d, err)
		}
	}
	answers <- "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n"
	if w := a.get("/authority/data?lsid=" + one); w.body != "whole" {
		t.Errorf("%s %s", w.Status, w.body)
	}
	answers <- open + "who"
	a.again(t).get("/authority/data?lsid="+one).fails(t, "500")
	answers <- open + "whole"
	if w := a.again(t).get("/authority/data?lsid=" + one); w.body != "whole" {
		t.Errorf("%s %s", w.Status, w.body)
	}
}

// A location that does not answer leaves time for the next one.
func TestSilentLocation(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	f := newFiles(t)
	f.put("/1", "a")
	a := newAuthority(t, func(_ *httpd.Options, o *lsid.Options) { o.Patience = 4 * time.Second })
	spare := data(f.URL + "/1")
	spare.Order++
	a.put(one, stele.Record{Targets: []stele.Target{data(silent.URL), spare}})
	if w := a.get("/authority/data?lsid=" + one); w.body != "a" {
		t.Errorf("%s %s", w.Status, w.body)
	}
}
