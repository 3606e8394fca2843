package remote

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/internal/backuptar"
	"github.com/stele-id/stele/registrar"
)

// TestNew refuses wrong settings, and those that would reveal the token.
func TestNew(t *testing.T) {
	list := schemes(t)
	for _, tt := range []struct {
		server, token string
		plain         bool
		want          string // of the error; "" for none
	}{
		{"https://id.example.org", "secret", false, ""},
		{"https://id.example.org/below/", "secret", false, ""},
		{"http://127.0.0.1:8080", "secret", false, ""},
		{"http://[::1]:8080", "secret", false, ""},
		{"http://localhost:8080", "secret", false, ""},
		{"http://id.example.org", "", false, ""},
		{"http://id.example.org", "secret", true, ""},
		{"http://id.example.org", "secret", false, "could read the token"},
		{"http://127.0.0.1.example.org", "secret", false, "could read the token"},
		{"http://10.0.0.1:8080", "secret", false, "could read the token"},
		{"ftp://id.example.org", "", false, "not an http or https URL"},
		{"id.example.org", "", false, "not an http or https URL"},
		{"https://ann:pw@id.example.org", "", false, "not an http or https URL"},
		{"https://id.example.org?x=y", "", false, "a query or a fragment"},
		{"https://id.example.org", "se\r\ncret", false, "characters that tokens do not have"},
		{"https://id.example.org", strings.Repeat("x", 2000), false, "characters that tokens do not have"},
	} {
		r, err := New(tt.server, tt.token, Options{Schemes: list, PlainHTTP: tt.plain})
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.server, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret")):
			t.Errorf("%s: %v, %v", tt.server, r, err)
		}
	}
	if r, err := New("https://id.example.org", "", Options{}); err == nil {
		t.Error(r)
	}
}

// answering is a server that gives one answer to everything.
func answering(t *testing.T, status int, media, body string) *Registry {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	r := openRegistry(t, schemes(t), server.URL, "secret")
	r.o.Patience = -1
	return r
}

// TestStrangeAnswers wants an error of ours for whatever a server says.
func TestStrangeAnswers(t *testing.T) {
	for _, tt := range []struct {
		status            int
		media, body, want string
		kind              stele.Kind
	}{
		{200, apijson.JSON, "", "can't be read", stele.Internal},
		{200, apijson.JSON, "{", "can't be read", stele.Internal},
		{200, apijson.JSON, `{"id":"nonsense"}`, "can't be read", stele.Internal},
		{200, apijson.JSON, strings.Repeat("[", 1_000_000), "can't be read", stele.Internal},
		{200, apijson.JSON, strings.Repeat(" ", maxAnswer+1), "more than", stele.Internal},
		{404, "text/html", "<h1>404</h1>", "no API of a registry", stele.Invalid},
		{500, "text/html", "", "does not answer as a registry does", stele.Internal},
		{502, "text/html", "", "by its proxy", stele.Unavailable},
		{401, "text/plain", "", "(status 401)", stele.Unauthenticated},
		{403, problemMedia, "nonsense", "(status 403)", stele.Forbidden},
		{404, problemMedia, `{"type":"/api/v1#not-found","detail":"nothing\u001b[31m here","operation":"get","identifier":"urn:x1:a"}`, "get urn:x1:a: nothing [31m here", stele.NotFound},
		{409, problemMedia, `{"type":"about:blank","title":"Conflict"}`, "Conflict", stele.Conflict},
		{418, problemMedia, `{}`, "invalid", stele.Invalid},
		{400, problemMedia, `{"type":"/api/v1#invalid","operation":"get","identifier":"no name","problems":[{"path":"a","detail":"b"},{"path":"","detail":"c"}]}`, "get no name: a: b; c", stele.Invalid},
		{200, apijson.JSON, `{"id":"urn:x1:b","color":"red"}`, "can't be read", stele.Internal},
	} {
		r := answering(t, tt.status, tt.media, tt.body)
		id, err := r.o.Schemes.Parse("urn:x1:a")
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Get(t.Context(), id)
		if stele.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 1000 {
			t.Errorf("%d %.60q: %v: %.300v", tt.status, tt.body, stele.KindOf(err), err)
		}
	}
}

const problemMedia = "application/problem+json"

// TestRedirects are not followed: the server at the other address gets no token.
func TestRedirects(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s, %v", r.Method, r.URL, r.Header)
	}))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.RedirectHandler(other.URL, status))
		r := openRegistry(t, schemes(t), server.URL, "secret")
		_, err := r.Me(t.Context())
		if stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), `sends on to "`+other.URL+`"`) {
			t.Error(err)
		}
		_, _, err = r.CreateToken(t.Context(), auth.TokenRequest{User: "ann", Never: true})
		if stele.KindOf(err) != stele.Invalid {
			t.Error(err)
		}
		server.Close()
	}
}

// TestAuthorities: the client trusts only a server whose certificate a named authority has
// signed.
func TestAuthorities(t *testing.T) {
	o := newTestServer(t)
	server := httptest.NewUnstartedServer(o.handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	for _, pool := range []*x509.CertPool{roots, nil, x509.NewCertPool()} {
		r, err := New(server.URL, o.token, Options{Schemes: o.schemes, Roots: pool})
		if err != nil {
			t.Fatal(err)
		}
		me, err := r.Me(t.Context())
		switch {
		case pool == roots && (err != nil || me.Name != "root" || !me.Admin):
			t.Error(me, err)
		case pool != roots && (stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), "no authority that this machine trusts")):
			t.Error(err)
		}
		r.Close()
	}
}

// TestStandsStill: the client ends a stream that is idle.
func TestStandsStill(t *testing.T) {
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", apijson.Lines)
		_, _ = io.WriteString(w, `{"id":"urn:x1:a"}`+"\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-done:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(done)
	r := openRegistry(t, schemes(t), server.URL, "")
	r.o.Timeout = 200 * time.Millisecond
	count := 0
	for _, err := range r.Export(t.Context(), stele.NamespaceKey{Scheme: "urn"}, false) {
		if count++; count == 1 {
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		if stele.KindOf(err) != stele.Unavailable || !strings.Contains(err.Error(), "nothing came for too long") {
			t.Error(err)
		}
	}
	if count != 2 {
		t.Errorf("%d lines", count)
	}
}

// TestCutOff: the client recognises an answer that was cut off.
func TestCutOff(t *testing.T) {
	for _, body := range []string{"", "{}\n", `{"line":1,"status":"created"}` + "\n", `{"line":1`, `{"done":true}`} {
		r := answering(t, 200, apijson.Lines, body)
		rec := &stele.Record{}
		if _, err := r.Ingest(t.Context(), []*stele.Record{rec}, registrar.ImportOptions{}); err == nil {
			t.Errorf("import of %q", body)
		}
		if _, err := r.Check(t.Context(), Inspection{}); err == nil {
			t.Errorf("verify of %q", body)
		}
	}
	for _, body := range []string{
		`{"problem":{"type":"/api/v1#unavailable","status":503,"detail":"the disk is full"}}` + "\n",
		`{"line":1,"status":"created"}` + "\n" + `{"problem":{"type":"/api/v1#unavailable","status":503,"detail":"the disk is full"}}` + "\n",
	} {
		r := answering(t, 200, apijson.Lines, body)
		_, err := r.Ingest(t.Context(), nil, registrar.ImportOptions{})
		if stele.KindOf(err) != stele.Unavailable || !strings.Contains(err.Error(), "the disk is full") {
			t.Error(err)
		}
	}
}

// tarOf makes a tar of names and contents, in turn; a name that ends in @ is a link.
func tarOf(entries ...string) string {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i+1 < len(entries); i += 2 {
		name, link := strings.CutSuffix(entries[i], "@")
		head := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(entries[i+1])), Mode: 0o600}
		if link {
			head.Typeflag, head.Linkname, head.Size = tar.TypeSymlink, entries[i+1], 0
		}
		_ = w.WriteHeader(head)
		if !link {
			_, _ = io.WriteString(w, entries[i+1])
		}
	}
	_ = w.Close()
	return b.String()
}

// TestBackups: a complete backup becomes a folder; an incomplete one leaves nothing.
func TestBackups(t *testing.T) {
	for _, tt := range []struct {
		name, body, want string
	}{
		{"whole", tarOf("MANIFEST-000001", "abc", "sub/x", "defg", backuptar.EndEntry, `{"files":2,"bytes":7,"changes":42}`), ""},
		{"without its end", tarOf("MANIFEST-000001", "abc"), "cut off"},
		{"cut off", tarOf("MANIFEST-000001", strings.Repeat("abc", 1000), backuptar.EndEntry, `{"files":1,"bytes":3000}`)[:1500], "cut off"},
		{"another number", tarOf("MANIFEST-000001", "abc", backuptar.EndEntry, `{"files":2,"bytes":3}`), "cut off"},
		{"other bytes", tarOf("MANIFEST-000001", "abc", backuptar.EndEntry, `{"files":1,"bytes":4}`), "cut off"},
		{"no JSON", tarOf(backuptar.EndEntry, `x`), "cut off"},
		{"out of it", tarOf("../evil", "abc", backuptar.EndEntry, `{"files":1,"bytes":3}`), "is not a file of a backup"},
		{"absolute", tarOf("/tmp/evil", "abc", backuptar.EndEntry, `{"files":1,"bytes":3}`), "is not a file of a backup"},
		{"link", tarOf("link@", "/etc", backuptar.EndEntry, `{"files":1,"bytes":0}`), "is not a file of a backup"},
		{"twice", tarOf("a", "abc", "a", "abc", backuptar.EndEntry, `{"files":2,"bytes":6}`), "comes twice"},
		{"no tar", strings.Repeat("nonsense", 1000), "invalid tar"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := answering(t, 200, apijson.Tar, tt.body)
			folder := filepath.Join(t.TempDir(), "saved")
			changes, err := r.Backup(t.Context(), folder)
			if tt.want == "" {
				text, readErr := os.ReadFile(filepath.Join(folder, "sub", "x"))
				if err != nil || changes != 42 || readErr != nil || string(text) != "defg" {
					t.Error(changes, err, readErr, string(text))
				}
				if _, err := r.Backup(t.Context(), folder); err == nil || !strings.Contains(err.Error(), "is there already; name a new one") {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Error(err)
			}
			left, err := os.ReadDir(filepath.Dir(folder))
			if err != nil || len(left) > 0 {
				t.Error("something is left behind: ", left, err)
			}
		})
	}
}

// TestRestore sends the files of a folder, so that they can be unpacked again.
func TestRestore(t *testing.T) {
	folder, again := t.TempDir(), filepath.Join(t.TempDir(), "again")
	for name, text := range map[string]string{"MANIFEST-1": "abc", "x.sst": strings.Repeat("x", 3<<20)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := make(chan []byte, 1) // what came whole
	var answer atomic.Value
	answer.Store(`{"step":"unpack"}` + "\n{}\n" + `{"done":true,"changes":3,"kept":"/srv/old","shut":["ark:12345/x5"]}` + "\n")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("confirm") != "stele-data" {
			w.Header().Set("Content-Type", problemMedia)
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"type":"/api/v1#conflict","detail":"it is another registry"}`)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		select {
		case got <- body:
		default:
		}
		_, _ = io.WriteString(w, answer.Load().(string))
	}))
	defer server.Close()
	r := openRegistry(t, schemes(t), server.URL, "secret")
	sent := int64(0)
	done, err := r.Restore(t.Context(), folder, "stele-data", func(n int64) { sent += n })
	if err != nil || done.Changes != 3 || done.Kept != "/srv/old" || len(done.Shut) != 1 || sent != 3<<20+3 {
		t.Error(done, err, sent)
	}
	if err := os.Mkdir(again, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := unpack(t.Context(), bytes.NewReader(<-got), again); err != nil {
		t.Error(err)
	}
	if _, err := r.Restore(t.Context(), folder, "another", nil); stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), "restore: it is another registry") {
		t.Error(err)
	}
	if _, err := r.Restore(t.Context(), filepath.Join(folder, "nothing"), "stele-data", nil); err == nil || !strings.Contains(err.Error(), "can't be read") {
		t.Error(err)
	}
	answer.Store("{}\n")
	if _, err := r.Restore(t.Context(), folder, "stele-data", nil); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Error(err)
	}
}

// oneAnswer is a transport that gives one answer.
type oneAnswer struct {
	status int
	media  string
	body   []byte
}

func (a oneAnswer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	return &http.Response{
		StatusCode: a.status, Header: http.Header{"Content-Type": {a.media}, "Retry-After": {"7"}},
		Body: io.NopCloser(bytes.NewReader(a.body)), Request: r,
	}, nil
}

// FuzzAnswers wants a value or an error of ours, whatever a server says.
func FuzzAnswers(f *testing.F) {
	list := schemes(f)
	for _, body := range []string{
		`{"id":"urn:x1:a","url":"https://example.org/"}`,
		`{"items":[{"id":"urn:x1:a"}],"next":"x"}`,
		`{"scheme":"urn","prefix":"urn:x1"}`,
		`{"line":1,"status":"refused","problem":{"detail":"x"}}` + "\n" + `{"done":true}` + "\n",
		`{"type":"/api/v1#gone","detail":"x","problems":[{"path":"a","detail":"b"}]}`,
		`{"items":[{"id":"urn:x1:a","record":{"id":"urn:x1:a"}}]}`,
		tarOf("a", "b", backuptar.EndEntry, `{"files":1,"bytes":1}`),
	} {
		f.Add(uint16(200), apijson.JSON, []byte(body))
		f.Add(uint16(404), problemMedia, []byte(body))
	}
	id, err := list.Parse("urn:x1:a")
	if err != nil {
		f.Fatal(err)
	}
	key := stele.NamespaceKey{Scheme: "urn", Prefix: "urn:x1"}
	f.Fuzz(func(t *testing.T, status uint16, media string, body []byte) {
		r, err := New("http://localhost", "secret", Options{
			Schemes: list, Patience: -1, Transport: oneAnswer{int(status%900) + 100, media, body},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		check := func(err error) {
			if err == nil {
				return
			}
			if _, ok := errors.AsType[*stele.Error](err); !ok {
				t.Errorf("%T: %v", err, err)
			}
			if strings.Contains(err.Error(), "secret") && !bytes.Contains(body, []byte("secret")) {
				t.Errorf("the token is in %v", err)
			}
		}
		_, err = r.Get(ctx, id)
		check(err)
		count := 0
		for _, err := range r.List(ctx, Listing{Key: key}) {
			check(err)
			if count++; count > 100 { // it may say for ever that there is another page
				break
			}
		}
		_, err = r.Namespace(ctx, key)
		check(err)
		_, err = r.Mint(ctx, key, 1)
		check(err)
		_, err = r.Ingest(ctx, []*stele.Record{{ID: id, State: stele.Active}}, registrar.ImportOptions{})
		check(err)
		_, err = r.Check(ctx, Inspection{})
		check(err)
		_, err = unpack(t.Context(), bytes.NewReader(body), t.TempDir())
		_ = err // of the disk, perhaps
	})
}
