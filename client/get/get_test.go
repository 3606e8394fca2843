package get

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/client/fetch"
	"github.com/stele-id/stele/client/ways"
	"github.com/stele-id/stele/scheme/all"
)

// way always gives the same answer.
type way struct {
	res client.Result
	err error
}

func (w way) Resolve(context.Context, client.Request) (client.Result, error) { return w.res, w.err }

// run gets urn:example:a, which the way leads to, into a file of a new folder.
func run(t *testing.T, via client.Via, res client.Result, change func(*Options)) (got Result, file string, notes []string, err error) {
	t.Helper()
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	id, err := schemes.Parse("urn:example:a")
	if err != nil {
		t.Fatal(err)
	}
	res.ID, res.Via = id, via
	if res.Found == "" {
		res.Found = client.FoundLocation
	}
	o := Options{
		ID: id, Request: client.Request{Name: id.String(), Service: stele.N2L}, Schemes: schemes, Ways: ways.List{{Via: via, Way: way{res: res}}},
		Now: time.Now, Timeout: time.Minute, MaxTime: time.Minute, Fetch: fetch.Options{Idle: time.Minute},
		Output: filepath.Join(t.TempDir(), "file"), Note: func(text string) { notes = append(notes, text) },
	}
	if change != nil {
		change(&o)
	}
	got, err = Run(t.Context(), o)
	text, _ := os.ReadFile(o.Output)
	return got, string(text), notes, err
}

func TestRun(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/a" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		w.Write([]byte("hello"))
	}))
	defer site.Close()
	here, missing := site.URL+"/a", site.URL+"/b"

	got, file, notes, err := run(t, client.ViaHTTP, client.Result{Location: here}, nil)
	if err != nil || file != "hello" || got.Info.Size != 5 || got.Info.Type != "text/plain" || got.Via != client.ViaHTTP || len(notes) > 0 || got.Proof != nil ||
		got.SHA256 != "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" {
		t.Errorf("%+v, %q, %q, %v", got, file, notes, err)
	}

	// The next location that is as good is tried.
	got, file, notes, err = run(t, client.ViaHTTP, client.Result{Location: missing, Equals: []string{here}}, nil)
	if err != nil || file != "hello" || got.Location != here || len(notes) != 1 || !strings.HasSuffix(notes[0], "; trying another location") {
		t.Errorf("%+v, %q, %q, %v", got, file, notes, err)
	}

	// One that can't be fetched from is passed over, and said so; alone, it is the result.
	got, file, notes, err = run(t, client.ViaHTTP, client.Result{Location: "rtsp://a/", Others: []string{here}}, nil)
	if err != nil || file != "hello" || len(notes) != 1 || notes[0] != "rtsp://a/ is not fetched from; this is from another location" {
		t.Errorf("%+v, %q, %q, %v", got, file, notes, err)
	}
	got, file, _, err = run(t, client.ViaHTTP, client.Result{Location: "rtsp://a/", Protocol: "rtsp"}, nil)
	if err != nil || file != "" || got.File != "" || got.Location != "rtsp://a/" || got.Protocol != "rtsp" {
		t.Errorf("%+v, %q, %v", got, file, err)
	}
	_, _, _, err = run(t, client.ViaHTTP, client.Result{Found: client.FoundServer, Location: "https://r/", Note: "it speaks RWhois"}, nil)
	if !errors.Is(err, stele.NotFound) || !strings.Contains(err.Error(), "leads to the resolver") {
		t.Error(err)
	}

	// Standard output gets the whole of it, and no file is made.
	var out bytes.Buffer
	got, _, _, err = run(t, client.ViaHTTP, client.Result{Location: here}, func(o *Options) { o.Output, o.Stdout = StandardOutput, &out })
	if err != nil || out.String() != "hello" || got.File != StandardOutput {
		t.Errorf("%+v, %q, %v", got, out.String(), err)
	}
}

// TestPrivate fetches from this machine, which only names that were not resolved in the DNS
// may lead to, unless the user says otherwise.
func TestPrivate(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("secret")) }))
	defer site.Close()
	for _, tt := range []struct {
		via     client.Via
		private PrivateAddresses
		allowed bool
	}{
		{client.ViaDNS, PrivateByWay, false}, {client.ViaHandle, PrivateByWay, false}, {client.ViaHTTP, PrivateByWay, true}, {client.ViaLocal, PrivateByWay, true},
		{client.ViaDNS, PrivateAllow, true}, {client.ViaHTTP, PrivateRefuse, false},
	} {
		_, file, _, err := run(t, tt.via, client.Result{Location: site.URL}, func(o *Options) { o.Private = tt.private })
		if tt.allowed != (err == nil) || tt.allowed != (file == "secret") || err != nil && (!errors.Is(err, fetch.ErrAddress) || stele.KindOf(err) != stele.Forbidden) {
			t.Errorf("%s, %q: %q, %v", tt.via, tt.private, file, err)
		}
	}
	if err := PermitPublic(netip.MustParseAddrPort("10.0.0.1:53")); !errors.Is(err, fetch.ErrAddress) {
		t.Error(err)
	}
	if err := PermitPublic(netip.MustParseAddrPort("9.9.9.9:53")); err != nil {
		t.Error(err)
	}
}

// What can't be verified is not fetched.
func TestUnverified(t *testing.T) {
	asked := 0
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked++ }))
	defer site.Close()
	verify := func(o *Options) { o.Verify = true }
	_, file, _, err := run(t, client.ViaLocal, client.Result{Location: site.URL}, func(o *Options) {
		verify(o)
		o.Local = &ways.Local{Schemes: o.Schemes, Open: func(context.Context) (*ways.Opened, error) {
			return &ways.Opened{Records: unsignedRecords{}, Close: func() error { return nil }}, nil
		}}
	})
	if stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), "it has no signature, so nothing can be proven") || file != "" || asked > 0 {
		t.Errorf("%v, %q, asked %d times", err, file, asked)
	}
	advised := false
	_, _, _, err = run(t, client.ViaDNS, client.Result{Location: site.URL}, func(o *Options) {
		verify(o)
		o.Ways[0].Way = way{err: stele.Unavailable}
		o.Advise = func(err error) error { advised = true; return err }
	})
	if !errors.Is(err, stele.Unavailable) || !advised || asked > 0 {
		t.Errorf("%v, advised %t, asked %d times", err, advised, asked)
	}
}

// unsignedRecords has one record for every name, without signatures.
type unsignedRecords struct{}

func (unsignedRecords) Record(_ context.Context, name stele.ID) (*stele.Record, error) {
	return &stele.Record{ID: name}, nil
}
