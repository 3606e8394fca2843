package deposit

import (
	"encoding/xml"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/servertest"
	"github.com/stele-id/stele/outbound"
)

// buildStore builds test/s3store. Its source is kept as a text, since it belongs to another module than the rest: tools that go through
// the folders of this one do not trip over it.
func buildStore(t *testing.T, folder string) (program string) {
	t.Helper()
	source := filepath.Join(folder, "source")
	if err := os.Mkdir(source, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, as := range map[string]string{"go.mod": "go.mod", "go.sum": "go.sum", "main.go.txt": "main.go"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "test", "s3store", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(source, as), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	program = filepath.Join(folder, "s3store")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = source
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("'make needs' fetches its modules: %v\n%s", err, out)
	}
	return program
}

const testSecret = "a-very-secret-word"

// newStore starts a store with a bucket.
func newStore(t *testing.T) (place string, a Access) {
	t.Helper()
	folder := t.TempDir()
	program := buildStore(t, folder)
	address := net.JoinHostPort("127.0.0.1", servertest.FreePort(t))
	for _, name := range []string{"buckets/vault", "metadata"} {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "-listen", address, "-folder", filepath.Join(folder, "buckets"), "-metadata", filepath.Join(folder, "metadata"), "-access", "tester", "-secret", testSecret, "-region", "eu-test-1")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for n := 0; ; n++ {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			break
		}
		if n == 2400 { // two minutes
			t.Fatal("the store does not listen")
		}
		time.Sleep(50 * time.Millisecond)
	}
	keys := filepath.Join(folder, "keys")
	if err := os.WriteFile(keys, []byte("[default]\naws_access_key_id = tester\naws_secret_access_key = "+testSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "s3://vault/stele/FOLDER?region=eu-test-1&endpoint=" + url.QueryEscape("http://"+address), loopback(t, Access{Credentials: keys, Now: time.Now, Wait: waitShortly})
}

// loopback lets connections to this machine be made.
func loopback(t *testing.T, a Access) Access {
	t.Helper()
	rule, err := outbound.ParseRule([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	a.HTTP = outbound.NewClient(rule, time.Minute, MaxAnswer)
	return a
}

func open(t *testing.T, text string, a Access) (Destination, error) {
	t.Helper()
	p, err := ParsePlace(text)
	if err != nil {
		t.Fatal(err)
	}
	d, err := p.Open(a)
	if err == nil {
		t.Cleanup(func() { _ = d.Close() })
	}
	return d, err
}

func TestS3(t *testing.T) {
	h := newHouse(t)
	place, a := newStore(t)
	d, err := open(t, strings.Replace(place, "FOLDER", "conformance", 1), a)
	h.must(err)
	testDestination(t, d)

	d, err = open(t, strings.Replace(place, "FOLDER", "deposits%20of%20names+$", 1), a)
	h.must(err)
	h.fill(300)
	h.deposit(d)
	h.must(h.check(d))
	h.put("ark:12345/x7")
	if made := h.deposit(d); made.Sent > 11 {
		t.Errorf("%d objects were new", made.Sent)
	}
	h.must(h.check(d))
	name := filepath.Join(t.TempDir(), "got.tar")
	_, _, err = (&Rebuild{From: d, List: h.last(d)}).Fetch(h.ctx, name, false, h.options())
	h.must(err)
	if got, err := os.ReadFile(name); err != nil || string(got) != string(h.bundle(false)) {
		t.Errorf("the bundle is another one: %v", err)
	}

	// More objects than a page of a list has.
	many, err := open(t, strings.Replace(place, "FOLDER", "many", 1), a)
	h.must(err)
	for i := range 1100 {
		h.must(many.Put(h.ctx, fmt.Sprintf("objects/aa/%d", i), []byte("x")))
	}
	n := 0
	h.must(many.List(h.ctx, "objects", func(string, int64) error { n++; return nil }))
	if n != 1100 {
		t.Errorf("%d objects are listed", n)
	}

	wrong := filepath.Join(t.TempDir(), "wrong")
	h.must(os.WriteFile(wrong, []byte("aws_access_key_id = tester\naws_secret_access_key = other-"+testSecret+"\n"), 0o600))
	for what, c := range map[string]struct {
		place  string
		change func(a *Access)
		kind   stele.Kind
	}{
		"another secret":    {place, func(a *Access) { a.Credentials = wrong }, stele.Forbidden},
		"no keys":           {place, func(a *Access) { a.Credentials = "" }, stele.Invalid},
		"another bucket":    {strings.Replace(place, "s3://vault", "s3://other", 1), func(*Access) {}, stele.Invalid},
		"a private address": {place, func(a *Access) { a.HTTP = outbound.NewClient(outbound.Rule{}, time.Minute, MaxAnswer) }, stele.Forbidden},
	} {
		a := a
		c.change(&a)
		d, err := open(t, strings.Replace(c.place, "FOLDER", "x", 1), a)
		if err == nil {
			_, err = All(h.ctx, d)
		}
		if stele.KindOf(err) != c.kind || strings.Contains(fmt.Sprint(err), testSecret) {
			t.Errorf("%s: %v", what, err)
		}
	}
	a.Credentials = ""
	a.Environment = func(name string) string {
		return map[string]string{"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": testSecret}[name]
	}
	d, err = open(t, strings.Replace(place, "FOLDER", "conformance", 1), a)
	h.must(err)
	if data, err := d.Get(h.ctx, "objects/aa/one", 10); err != nil || string(data) != "one" {
		t.Errorf("with keys of the environment: %q, %v", data, err)
	}
}

// A store that does not know conditions is asked first; a store that answers nonsense is left.
func TestS3Answers(t *testing.T) {
	var handler atomic.Pointer[http.HandlerFunc]
	answer := func(f http.HandlerFunc) { handler.Store(&f) }
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		(*handler.Load())(w, r)
	}))
	defer s.Close()
	a := loopback(t, Access{Now: time.Now, Wait: noWait, Environment: func(name string) string {
		return map[string]string{"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": testSecret, "AWS_SESSION_TOKEN": "a-token", "AWS_ENDPOINT_URL": s.URL}[name]
	}})
	d, err := open(t, "s3://vault", a)
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]bool{}
	answer(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Authorization"), "x-amz-security-token") || strings.Contains(fmt.Sprint(r.Header), testSecret) {
			t.Errorf("headers: %v", r.Header)
		}
		switch {
		case r.Header.Get("If-None-Match") != "":
			w.WriteHeader(http.StatusNotImplemented)
		case r.Method == http.MethodHead && !stored[r.URL.Path]:
			w.WriteHeader(http.StatusNotFound)
		case r.Method == http.MethodPut:
			if stored[r.URL.Path] {
				t.Errorf("%s is overwritten", r.URL.Path)
			}
			stored[r.URL.Path] = true
		}
	})
	for range 2 {
		if err := d.Put(t.Context(), "objects/aa/one", []byte("one")); err != nil {
			t.Fatal(err)
		}
	}
	if !stored["/vault/objects/aa/one"] {
		t.Errorf("stored: %v", stored)
	}
	list := func() error { return d.List(t.Context(), "objects", func(string, int64) error { return nil }) }
	page := func(text string) func(w http.ResponseWriter, r *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "%s<ListBucketResult>%s</ListBucketResult>", xml.Header, text)
		}
	}
	for what, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		kind   stele.Kind
		asks   int64
	}{
		"not a list": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, stele.Invalid, 1},
		"an entity bomb": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>`)
		}, stele.Invalid, 1},
		"another folder": {page("<Contents><Key>other/x</Key><Size>1</Size></Contents>"), stele.Invalid, 1},
		"no size":        {page("<Contents><Key>objects/x</Key></Contents>"), stele.Invalid, 1},
		"in circles":     {page("<IsTruncated>true</IsTruncated><NextContinuationToken>a</NextContinuationToken>"), stele.Invalid, 2},
		"without an end": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "<ListBucketResult>"+strings.Repeat(" ", maxAnswer)+"</ListBucketResult>")
		}, stele.Invalid, 1},
		"busy": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, stele.Unavailable, attempts},
		"a slow request": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, "<Error><Code>RequestTimeout</Code><Message>Your socket connection to the server was not read from.</Message></Error>")
		}, stele.Unavailable, attempts},
		"too fast": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, "<Error><Code>SlowDown</Code></Error>")
		}, stele.Unavailable, attempts},
		"forbidden": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, stele.Forbidden, 1},
		"led astray": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, stele.Invalid, 1},
		"a broken answer": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, stele.Unavailable, attempts},
	} {
		answer(c.answer)
		asked.Store(0)
		if err := list(); stele.KindOf(err) != c.kind || asked.Load() < c.asks || asked.Load() > 2*c.asks {
			t.Errorf("%s: asked %d times: %v", what, asked.Load(), err)
		}
	}
	answer(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 100)) })
	if _, err := d.Get(t.Context(), "objects/aa/one", 99); stele.KindOf(err) != stele.Invalid {
		t.Errorf("too long: %v", err)
	}
	answer(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, "<Error><Code>Odd\x1b[31m</Code><Message>"+strings.Repeat("long ", 1000)+"</Message></Error>")
	})
	if _, err := d.Get(t.Context(), "objects/aa/one", 99); err == nil || len(err.Error()) > 500 || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("a long message: %v", err)
	}
}
