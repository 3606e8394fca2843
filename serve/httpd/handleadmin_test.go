package httpd

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/handlejson"
	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/secret"
	"github.com/stele-id/stele/serve/httpd/handle"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/web/webtest"
	"github.com/stele-id/stele/wire/hdl"
)

// nonceScript is a source of random octets that gives the nonces of a recording.
type nonceScript struct {
	mu     sync.Mutex
	nonces [][]byte
}

func (s *nonceScript) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(b) == 16 && len(s.nonces) > 0 {
		copy(b, s.nonces[0])
		s.nonces = s.nonces[1:]
		return len(b), nil
	}
	return rand.Read(b)
}

// adminFixture is a server over the records of the recordings, in clear and over TLS.
type adminFixture struct {
	t         testing.TB
	registrar *registrar.Registrar
	schemes   *stele.Schemes
	admin     context.Context
	script    *nonceScript
	uuid      string
	site      handle.Site
	adminKey  *rsa.PrivateKey // of 300:0.NA/20.500.99999

	mu    sync.Mutex
	ahead time.Duration // of the clock

	clear, secure *httptest.Server
	client        *http.Client // without a certificate
}

// now is the time at the server.
func (f *adminFixture) now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Now().Add(f.ahead)
}

// pass lets time pass.
func (f *adminFixture) pass(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ahead += d
}

const handleVectors = "../hdld/testdata"

func newAdminFixture(t testing.TB, change ...func(*handle.Options)) *adminFixture {
	t.Helper()
	return newAdminFixtureFor(t, []handles.Identity{{Handle: "0.NA/20.500.99999", Index: 300}}, change...)
}

// newAdminFixtureFor is newAdminFixture for other administrators of the server.
func newAdminFixtureFor(t testing.TB, administrators []handles.Identity, change ...func(*handle.Options)) *adminFixture {
	t.Helper()
	f := &adminFixture{t: t, script: &nonceScript{}, admin: auth.With(t.Context(), auth.Local()), uuid: "97fc0b6f-d62d-4e17-bbe6-cf36bf52e5f6"}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	schemes, err := all.New(all.Config{Now: f.now})
	must(err)
	f.schemes = schemes
	store := mem.New(f.now)
	r := resolver.New(store, schemes, resolver.Options{Now: f.now})
	key, err := secret.NewKey(rand.Reader)
	must(err)
	f.registrar = registrar.New(store, schemes, registrar.Options{Now: f.now, OnCommit: r.Invalidate, OnNamespaces: r.InvalidateNamespaces,
		Secrets: secret.NewRing(secret.Text{Keep: key.Text(), Name: "the test's key"})})
	f.seed()
	service := handles.New(handles.Options{Registrar: f.registrar, Resolver: r, Schemes: schemes, Now: f.now,
		Administrators: administrators,
		UUID:           func() (string, error) { return f.uuid, nil }})
	private, err := hdl.ParseKeyFile(handleVector(t, filepath.Join(handleVectors, "keys.txt"), "srv_privkey_file"), nil)
	must(err)
	rec, err := f.registrar.Get(f.admin, f.id("0.NA/20.500.99999"))
	must(err)
	f.site = handle.Site{Octets: rec.Values[0].Data, Key: &private}
	administrator, err := hdl.ParseKeyFile(handleVector(t, "../../wire/hdl/testdata/encodings.txt", "privkey_file_rsa"), nil)
	must(err)
	f.adminKey = administrator.RSA

	o := handle.Options{Handles: service, Now: f.now, Rand: f.script, Client: ClientAddr, Proxied: IsFromProxy, Site: func() handle.Site { return f.site },
		Costs: limit.NewRate(1000, 1000), Turns: limit.NewTurns(2, 10, time.Second)}
	for _, c := range change {
		c(&o)
	}
	administration, err := handle.New(o)
	must(err)
	handler := New(Options{Resolver: r, Registry: f.registrar, Schemes: schemes, Pages: webtest.Pages(t), Now: f.now, Handles: administration})
	f.clear = httptest.NewServer(handler)
	t.Cleanup(f.clear.Close)
	f.secure = httptest.NewUnstartedServer(handler)
	f.secure.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	f.secure.StartTLS()
	t.Cleanup(f.secure.Close)
	f.client = f.secure.Client()
	return f
}

func (f *adminFixture) id(handle string) stele.ID {
	f.t.Helper()
	id, err := f.schemes.Parse("hdl:" + handle)
	if err != nil {
		f.t.Fatal(err)
	}
	return id
}

// seed registers the records of the recordings.
func (f *adminFixture) seed() {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(handleVectors, "seed-records.json"))
	if err != nil {
		f.t.Fatal(err)
	}
	var seeds struct {
		Homed   []string                   `json:"homedPrefixes"`
		Records map[string]json.RawMessage `json:"handleRecords"`
	}
	if err := json.Unmarshal(data, &seeds); err != nil {
		f.t.Fatal(err)
	}
	for _, name := range seeds.Homed {
		if name == "0.NA/21.T14999" {
			continue // it came after these recordings
		}
		key, err := f.registrar.ParsePrefix("hdl:" + strings.TrimPrefix(name, "0.NA/") + "/")
		if err != nil {
			f.t.Fatal(err)
		}
		if _, err := f.registrar.AddNamespace(f.admin, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}); err != nil {
			f.t.Fatal(err)
		}
	}
	for name, text := range seeds.Records {
		if strings.Contains(name, "21.T14999") {
			continue
		}
		_, values, err := handlejson.DecodeRecord(text)
		if err != nil {
			f.t.Fatal(name, err)
		}
		f.register(name, values...)
	}
}

// register registers a handle.
func (f *adminFixture) register(name string, values ...stele.HandleValue) {
	f.t.Helper()
	if len(values) == 0 {
		values = []stele.HandleValue{{Index: 1, Type: "URL", Data: []byte("https://example.org/"), TTL: 86400, Permissions: stele.DefaultPermissions}}
	}
	if _, err := f.registrar.Register(f.admin, &stele.Record{ID: f.id(name), Values: values}); err != nil {
		f.t.Fatal(name, err)
	}
}

// handleVector reads a value of a file of lines "name = hex".
func handleVector(t testing.TB, file, name string) []byte {
	t.Helper()
	open, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	s := bufio.NewScanner(open)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if key, value, ok := strings.Cut(s.Text(), " = "); ok && key == name {
			b, err := hex.DecodeString(value)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
	}
	t.Fatalf("%s has no %s", file, name)
	return nil
}

// certified returns a client with a certificate whose subject has these names, of a key.
func (f *adminFixture) certified(key *rsa.PrivateKey, subject pkix.Name) *http.Client {
	f.t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: subject, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		f.t.Fatal(err)
	}
	config := f.client.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	transport := &http.Transport{TLSClientConfig: config}
	f.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// userID is a name of a subject by UID.
func userID(uid, cn string) pkix.Name {
	return pkix.Name{CommonName: cn, ExtraNames: []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 1}, Value: uid}}}
}

// handleReply is an answer of the server.
type handleReply struct {
	status int
	head   http.Header
	body   string
}

// send sends a request and reads the answer.
func (f *adminFixture) send(client *http.Client, method, url, body string, head map[string]string) handleReply {
	f.t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(f.t.Context(), method, url, reader)
	if err != nil {
		f.t.Fatal(err)
	}
	for name, value := range head {
		r.Header.Set(name, value)
	}
	answer, err := client.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return handleReply{answer.StatusCode, answer.Header, string(text)}
}

// https sends a request over TLS, with JSON in its body.
func (f *adminFixture) https(method, path, body, authorization string) handleReply {
	f.t.Helper()
	head := map[string]string{"Content-Type": "application/json"}
	if authorization != "" {
		head["Authorization"] = authorization
	}
	return f.send(f.client, method, f.secure.URL+path, body, head)
}
