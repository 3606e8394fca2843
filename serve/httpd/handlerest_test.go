package httpd

import (
	"crypto"
	"crypto/hmac"
	"crypto/md5"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/serve/httpd/handle"
)

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll(user, ":", "%3A")+":"+password))
}

const (
	handleUser   = "300:20.500.99999/USER01"
	handleSecret = "s3cret pass"
	oneValue     = `{"index":1,"type":"URL","data":"https://example.org/x"}`
)

// is compares an answer.
func (a handleReply) is(t *testing.T, status int, body string) {
	t.Helper()
	if a.status != status || a.body != body {
		t.Errorf("got  %d %s\nwant %d %s", a.status, a.body, status, body)
	}
}

func (a handleReply) challenged(t *testing.T, text string) {
	t.Helper()
	if said := strings.Join(a.head["Www-Authenticate"], "\n"); a.status != http.StatusUnauthorized || !strings.Contains(said, text) {
		t.Errorf("got %d %s %s, want 401 with %s", a.status, said, a.body, text)
	}
}

// Who has guessed too often is not answered, not even with the right secret, until time has passed. Others are.
func TestHandleGuessing(t *testing.T) {
	f := newAdminFixture(t)
	for range 20 {
		f.https("GET", "/api/handles/20.500.99999/ABC-1", "", basic(handleUser, "no")).challenged(t, "Identity not verified")
	}
	for _, secret := range []string{"no", handleSecret} {
		a := f.https("GET", "/api/handles/20.500.99999/ABC-1", "", basic(handleUser, secret))
		if a.status != http.StatusTooManyRequests || !strings.HasPrefix(a.body, `{"responseCode":3,`) || a.head.Get("Retry-After") == "" {
			t.Errorf("with %q: %d %s", secret, a.status, a.body)
		}
	}
	if a := f.https("GET", "/api/verifications/"+handleUser+"?nonce=AAAA&cnonce=AAAA&alg=SHA1&signature=AAAA", "", ""); a.status != http.StatusTooManyRequests {
		t.Errorf("a verification: %d %s", a.status, a.body)
	}
	if a := f.https("GET", "/api/handles/20.500.99999/ABC-1", "", ""); a.status != http.StatusOK {
		t.Errorf("the public: %d %s", a.status, a.body)
	}
	f.pass(2 * time.Second)
	if a := f.https("GET", "/api/handles/20.500.99999/ABC-1", "", basic(handleUser, handleSecret)); a.status != http.StatusOK {
		t.Errorf("after a while: %d %s", a.status, a.body)
	}
}

// What a client without an index proves is the identity of the value that fits, and history names it.
func TestHandleWithoutIndex(t *testing.T) {
	f := newAdminFixture(t)
	f.https("PUT", "/api/handles/20.500.99999/n1", "["+oneValue+"]", basic("20.500.99999/USER01", handleSecret)).is(t, 201, `{"responseCode":1,"handle":"20.500.99999/n1"}`)
	rec, err := f.registrar.Get(f.admin, f.id("20.500.99999/N1"))
	if err != nil || rec.By != handleUser {
		t.Errorf("it is by %v, %v", rec, err)
	}
}

func TestHandleCertificate(t *testing.T) {
	f := newAdminFixture(t)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	const who = "300:0.NA/20.500.99999"
	asked := map[string]string{"Content-Type": "application/json", "Authorization": `Handle clientCert="true"`}
	plain := map[string]string{"Content-Type": "application/json"}
	put := func(client *http.Client, head map[string]string) handleReply {
		t.Helper()
		return f.send(client, "PUT", f.secure.URL+"/api/handles/20.500.99999/C1", oneValue, head)
	}
	for name, subject := range map[string]pkix.Name{"UID": userID(who, "x"), "CN": {CommonName: who, Organization: []string{"x"}}, "O": {Organization: []string{who}}} {
		client := f.certified(f.adminKey, subject)
		for _, head := range []map[string]string{asked, plain} {
			if a := put(client, head); a.status/100 != 2 {
				t.Errorf("%s: %d %s", name, a.status, a.body)
			}
		}
	}
	forged := f.certified(other, userID(who, "x"))
	put(forged, asked).challenged(t, "Identity not verified")
	put(forged, plain).challenged(t, "sessionId=")
	put(f.client, asked).challenged(t, "Identity not verified")
	nobody := f.certified(other, pkix.Name{CommonName: "Maria"})
	for range 30 { // a certificate for another purpose is not a guess
		if a := f.send(nobody, "GET", f.secure.URL+"/api/handles/20.500.99999/SEC-1", "", nil); a.status != 200 || strings.Contains(a.body, "NOTE") {
			t.Fatalf("a stranger's certificate: %d %s", a.status, a.body)
		}
	}
	behind := newAdminFixture(t, func(o *handle.Options) { o.Proxied = func(*http.Request) bool { return true } })
	a := behind.send(behind.certified(f.adminKey, userID(who, "x")), "PUT", behind.secure.URL+"/api/handles/20.500.99999/C1", oneValue, asked)
	a.challenged(t, "Identity not verified") // it is the certificate of the proxy
}

// session begins a session, and returns its name and nonce.
func (f *adminFixture) session() (id string, nonce []byte) {
	f.t.Helper()
	var begun struct{ SessionID, Nonce string }
	a := f.https("POST", "/api/sessions", "", "")
	if err := json.Unmarshal([]byte(a.body), &begun); err != nil || a.status != http.StatusCreated {
		f.t.Fatal(a.status, a.body, err)
	}
	nonce, err := base64.StdEncoding.DecodeString(begun.Nonce)
	if err != nil {
		f.t.Fatal(err)
	}
	return begun.SessionID, nonce
}

// proofJSON returns the fields of a proof.
func proofJSON(session, id, kind, alg string, signature []byte, more string) string {
	return fmt.Sprintf(`{"sessionId":%q,"id":%q,"type":%q,"alg":%q,"cnonce":"AAEC","signature":%q%s}`, session, id, kind, alg, base64.StdEncoding.EncodeToString(signature), more)
}

// All algorithms prove an identity, and none does with one bit changed.
func TestHandleProofs(t *testing.T) {
	f := newAdminFixture(t)
	cnonce := []byte{0, 1, 2}
	key := func(h crypto.Hash) func(nonce []byte) []byte {
		return func(nonce []byte) []byte {
			sum := h.New()
			sum.Write(nonce)
			sum.Write(cnonce)
			signature, err := rsa.SignPKCS1v15(nil, f.adminKey, h, sum.Sum(nil))
			if err != nil {
				t.Fatal(err)
			}
			return signature
		}
	}
	twice := func(make func() hash.Hash) func(nonce []byte) []byte {
		return func(nonce []byte) []byte {
			h := make()
			h.Write([]byte(handleSecret + string(nonce) + string(cnonce) + handleSecret))
			return h.Sum(nil)
		}
	}
	mac := func(make func() hash.Hash, key []byte) func(nonce []byte) []byte {
		return func(nonce []byte) []byte {
			h := hmac.New(make, key)
			h.Write(append(nonce, cnonce...))
			return h.Sum(nil)
		}
	}
	derived, err := pbkdf2.Key(sha1.New, handleSecret, []byte("salt"), 1000, 20)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		kind, alg, more string
		of              func(nonce []byte) []byte
	}{
		{"HS_PUBKEY", "SHA1", "", key(crypto.SHA1)},
		{"HS_PUBKEY", "SHA-1", "", key(crypto.SHA1)},
		{"HS_PUBKEY", "SHA256", "", key(crypto.SHA256)},
		{"HS_PUBKEY", "SHA-256", "", key(crypto.SHA256)},
		{"HS_PUBKEY", "MD5", "", key(crypto.MD5)},
		{"HS_SECKEY", "MD5", "", twice(md5.New)},
		{"HS_SECKEY", "SHA1", "", twice(sha1.New)},
		{"HS_SECKEY", "SHA-1", "", twice(sha1.New)},
		{"HS_SECKEY", "SHA256", "", twice(sha256.New)},
		{"HS_SECKEY", "sha-256", "", twice(sha256.New)},
		{"HS_SECKEY", "HMAC-SHA1", "", mac(sha1.New, []byte(handleSecret))},
		{"HS_SECKEY", "HMAC-SHA256", "", mac(sha256.New, []byte(handleSecret))},
		{"HS_SECKEY", "PBKDF2-HMAC-SHA1", `,"salt":"c2FsdA==","iterations":"1000","length":160`, mac(sha1.New, derived)},
	} {
		t.Run(tt.kind+" "+tt.alg, func(t *testing.T) {
			who := "300:0.NA/20.500.99999"
			if tt.kind == "HS_SECKEY" {
				who = handleUser
			}
			session, nonce := f.session()
			signature := tt.of(nonce)
			signature[len(signature)-1] ^= 1
			f.https("PUT", "/api/sessions/this", proofJSON(session, who, tt.kind, tt.alg, signature, tt.more), "").challenged(t, "Identity not verified")
			f.pass(10 * time.Second)
			signature[len(signature)-1] ^= 1
			if a := f.https("PUT", "/api/sessions/this", proofJSON(session, who, tt.kind, tt.alg, signature, tt.more), ""); a.status != 200 || !strings.Contains(a.body, `"authenticated":true,"id":"`+who+`"`) {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
}

// Proofs that can't be right are refused, at once and without work.
func TestHandleProofsRefused(t *testing.T) {
	f := newAdminFixture(t)
	session, _ := f.session()
	for name, body := range map[string]string{
		"many iterations":   proofJSON(session, handleUser, "HS_SECKEY", "PBKDF2-HMAC-SHA1", []byte("x"), `,"salt":"c2FsdA==","iterations":2147483648,"length":160`),
		"a long key":        proofJSON(session, handleUser, "HS_SECKEY", "PBKDF2-HMAC-SHA1", []byte("x"), `,"salt":"c2FsdA==","iterations":1,"length":4294967288`),
		"no salt":           proofJSON(session, handleUser, "HS_SECKEY", "PBKDF2-HMAC-SHA1", []byte("x"), ""),
		"unknown algorithm": proofJSON(session, handleUser, "HS_SECKEY", "SHA3", []byte("x"), ""),
		"unknown type":      proofJSON(session, handleUser, "HS_CERT", "SHA1", []byte("x"), ""),
		"not a handle":      proofJSON(session, "300:", "HS_SECKEY", "SHA1", []byte("x"), ""),
		"not here":          proofJSON(session, "300:11.1/x", "HS_SECKEY", "SHA1", []byte("x"), ""),
		"a key's value":     proofJSON(session, "300:0.NA/20.500.99999", "HS_SECKEY", "SHA1", []byte("x"), ""),
	} {
		f.pass(20 * time.Second)
		begin := time.Now()
		f.https("PUT", "/api/sessions/this", body, "").challenged(t, "Identity not verified")
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
	for _, body := range []string{"[", "[]", `{"id":{}}`, `{"cnonce":"!"}`, `{"iterations":-1}`, `{"cnonce":"` + strings.Repeat("A", 100) + `"}`, "{} {}", `{"id":"` + strings.Repeat("x", 20000) + `"}`} {
		f.https("PUT", "/api/sessions/this", body, "").is(t, 400, `{"responseCode":4,"message":"Malformed authentication data"}`)
	}
	changed := map[bool]string{true: "B", false: "A"}[session[0] == 'A'] + session[1:]
	f.https("GET", "/api/sessions/this", "", `Handle sessionId="`+changed+`"`).challenged(t, "sessionId=")
	f.https("GET", "/api/sessions/this", "", `Handle sessionId="`+strings.ToUpper(session)+`"`).challenged(t, "sessionId=")
	f.https("GET", "/api/sessions/this", "", `Handle sessionId="`).challenged(t, "Malformed authentication data")
	f.https("GET", "/api/sessions/this", "", `Basic !!`).challenged(t, "Identity not verified")
}

// An answer to a challenge of the native protocol does not prove anything in a session, even if the challenge had the nonce of the session: the digest
// of a request is longer than a client's nonce may be.
func TestHandleRelayedChallenge(t *testing.T) {
	f := newAdminFixture(t)
	for size, status := range map[int]int{16: http.StatusOK, 17: http.StatusUnauthorized, 20: http.StatusUnauthorized, 32: http.StatusUnauthorized} {
		session, nonce := f.session()
		digest := make([]byte, size)
		sum := sha256.Sum256(slices.Concat(nonce, digest))
		signature, err := rsa.SignPKCS1v15(nil, f.adminKey, crypto.SHA256, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		text := base64.StdEncoding.EncodeToString
		fields := fmt.Sprintf(`"id":"300:0.NA/20.500.99999","type":"HS_PUBKEY","alg":"SHA256","cnonce":%q,"signature":%q`, text(digest), text(signature))
		if a := f.https("PUT", "/api/sessions/this", `{"sessionId":"`+session+`",`+fields+"}", ""); a.status != status {
			t.Errorf("%d octets: %d %s, want %d", size, a.status, a.body, status)
		}
		head := fmt.Sprintf(`Handle sessionId="%s", id="300:0.NA/20.500.99999", type="HS_PUBKEY", alg="SHA256", cnonce="%s", signature="%s"`, session, text(digest), text(signature))
		if a := f.https("GET", "/api/sessions/this", "", head); a.status != status {
			t.Errorf("%d octets, in the header: %d %s, want %d", size, a.status, a.body, status)
		}
	}
}

// A session ends after half an hour without a request, and after a day in any case.
func TestHandleSessionEnds(t *testing.T) {
	f := newAdminFixture(t)
	begin := func() string {
		a := f.https("POST", "/api/sessions", "", basic(handleUser, handleSecret))
		id := sessionName.FindStringSubmatch(a.body)
		if a.status != http.StatusCreated || id == nil {
			t.Fatal(a.status, a.body)
		}
		return `Handle sessionId="` + id[1] + `"`
	}
	idle := begin()
	f.pass(29 * time.Minute)
	if a := f.https("GET", "/api/sessions/this", "", idle); a.status != 200 || !strings.Contains(a.body, `"authenticated":true`) {
		t.Errorf("after 29 minutes: %d %s", a.status, a.body)
	}
	f.pass(29 * time.Minute)
	if a := f.https("GET", "/api/sessions/this", "", idle); a.status != 200 {
		t.Errorf("after 29 minutes more: %d %s", a.status, a.body)
	}
	f.pass(30 * time.Minute)
	f.https("GET", "/api/sessions/this", "", idle).challenged(t, "sessionId=")
	long := begin()
	for range 60 {
		f.pass(24 * time.Minute)
		f.https("GET", "/api/sessions/this", "", long)
	}
	f.https("GET", "/api/sessions/this", "", long).challenged(t, "sessionId=")
	unproved, _ := f.session()
	f.pass(31 * time.Minute)
	f.https("GET", "/api/sessions/this", "", `Handle sessionId="`+unproved+`"`).challenged(t, "sessionId=")
}

// A session ends when the key or the secret that proved its identity is replaced or removed, however it was proved.
func TestHandleSessionEndsWithKey(t *testing.T) {
	const other = "20.500.99999/OTHER"
	sha := func(secret, nonce, cnonce []byte) []byte {
		sum := sha256.Sum256(slices.Concat(secret, nonce, cnonce, secret))
		return sum[:]
	}
	for how, begin := range map[string]func(f *adminFixture) string{
		"a password": func(f *adminFixture) string {
			a := f.https("POST", "/api/sessions", "", basic("300:"+other, "old"))
			return sessionName.FindStringSubmatch(a.body)[1]
		},
		"a password in a session": func(f *adminFixture) string {
			session, _ := f.session()
			f.https("PUT", "/api/sessions/this", `{"sessionId":"`+session+`"}`, basic("300:"+other, "old"))
			return session
		},
		"a proof": func(f *adminFixture) string {
			session, nonce := f.session()
			f.https("PUT", "/api/sessions/this", proofJSON(session, "300:"+other, "HS_SECKEY", "SHA256", sha([]byte("old"), nonce, []byte{0, 1, 2}), ""), "")
			return session
		},
		"a proof without an index": func(f *adminFixture) string {
			session, nonce := f.session()
			f.https("PUT", "/api/sessions/this", proofJSON(session, other, "HS_SECKEY", "SHA256", sha([]byte("old"), nonce, []byte{0, 1, 2}), ""), "")
			return session
		},
	} {
		for what, change := range map[string]func(values []stele.HandleValue) []stele.HandleValue{
			"replaced": func(values []stele.HandleValue) []stele.HandleValue {
				values[1].Data = []byte("new")
				return values
			},
			"removed": func(values []stele.HandleValue) []stele.HandleValue { return values[:1] },
		} {
			t.Run(how+" "+what, func(t *testing.T) {
				f := newAdminFixture(t)
				f.register(other, stele.HandleValue{Index: 1, Type: "URL", Data: []byte("https://example.org/"), TTL: 86400, Permissions: stele.DefaultPermissions},
					stele.HandleValue{Index: 300, Type: "HS_SECKEY", Data: []byte("old"), TTL: 86400, Permissions: stele.AdminRead | stele.AdminWrite})
				session := `Handle sessionId="` + begin(f) + `"`
				for range 2 {
					if a := f.https("GET", "/api/sessions/this", "", session); a.status != http.StatusOK || !strings.Contains(a.body, `"authenticated":true,"id":"300:`+other+`"`) {
						t.Fatalf("before: %d %s", a.status, a.body)
					}
				}
				rec, err := f.registrar.Get(f.admin, f.id(other))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.registrar.Update(f.admin, rec.ID, rec.Version, func(next *stele.Record) error {
					next.Values = change(next.Values)
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				f.https("GET", "/api/sessions/this", "", session).challenged(t, "sessionId=")
				f.https("DELETE", "/api/handles/"+other, "", session).challenged(t, "sessionId=")
			})
		}
	}
}

// Pages of other sites can't make a browser write, nor read what is not for the public.
func TestHandleOtherSites(t *testing.T) {
	f := newAdminFixture(t)
	user := basic(handleUser, handleSecret)
	for _, path := range []string{"/api/prefixes?prefix=20.500.44444", "/api/sessions"} {
		a := f.send(f.client, "POST", f.secure.URL+path, "", map[string]string{"Authorization": user, "Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"})
		a.is(t, 403, map[bool]string{true: `{"responseCode":401,"message":"A page of another site sent this request"}`, false: `{"responseCode":401,"message":"A page of another site sent this request","handle":"20.500.44444"}`}[path == "/api/sessions"])
	}
	a := f.https("GET", "/api/handles/20.500.99999/SEC-1?callback=cb", "", user)
	if a.status != 400 || strings.Contains(a.body, "for admins") || strings.HasPrefix(a.body, "cb(") {
		t.Errorf("callback: %d %s", a.status, a.body)
	}
}

// An identity reads what its rights allow, and no cache keeps that.
func TestHandleReads(t *testing.T) {
	f := newAdminFixture(t)
	f.register("20.500.99999/OTHER",
		stele.HandleValue{Index: 1, Type: "URL", Data: []byte("https://example.org/"), TTL: 86400, Permissions: stele.DefaultPermissions},
		stele.HandleValue{Index: 2, Type: "NOTE", Data: []byte("hidden"), TTL: 86400, Permissions: stele.AdminRead | stele.AdminWrite})
	user := basic(handleUser, handleSecret)
	a := f.https("GET", "/api/handles/20.500.99999/SEC-1", "", user)
	if a.status != 200 || !strings.Contains(a.body, "for admins") || !strings.Contains(a.head.Get("Cache-Control"), "private") {
		t.Errorf("%d %v %s", a.status, a.head, a.body)
	}
	if a := f.https("GET", "/api/handles/20.500.99999/SEC-1?publicOnly=true", "", user); a.status != 200 || strings.Contains(a.body, "for admins") {
		t.Errorf("publicOnly: %d %s", a.status, a.body)
	}
	if a := f.https("GET", "/api/handles/20.500.99999/OTHER", "", user); a.status != 200 || strings.Contains(a.body, "hidden") {
		t.Errorf("without rights: %d %s", a.status, a.body)
	}
	f.https("GET", "/api/handles/20.500.99999/OTHER?publicOnly=false", "", user).is(t, 403, `{"responseCode":400,"handle":"20.500.99999/OTHER"}`)
	f.https("GET", "/api/handles/20.500.99999/OTHER?publicOnly=false", "", "").challenged(t, `Basic realm="handle"`)
	f.send(f.client, "GET", f.clear.URL+"/api/handles/20.500.99999/OTHER?publicOnly=false", "", map[string]string{"Authorization": user}).is(t, 403, `{"responseCode":402,"handle":"20.500.99999/OTHER"}`)
	if a := f.https("GET", "/api/handles/20.500.99999/USER01", "", basic("300:0.NA/20.500.99999", "x")); a.status != 401 || a.body != "" {
		t.Errorf("a wrong proof: %d %s", a.status, a.body)
	}
}

// A secret that is written proves its identity, and nobody reads it.
func TestHandleSecretWritten(t *testing.T) {
	f := newAdminFixture(t)
	user := basic(handleUser, handleSecret)
	const admin = `{"index":100,"type":"HS_ADMIN","data":{"format":"admin","value":{"handle":"20.500.99999/U2","index":300,"permissions":"111111111111"}}}`
	f.https("PUT", "/api/handles/20.500.99999/U2", `{"values":[`+admin+`,{"index":300,"type":"HS_SECKEY","data":"open sesame","permissions":"1100"}]}`, user).is(t, 201, `{"responseCode":1,"handle":"20.500.99999/U2"}`)
	own := basic("300:20.500.99999/U2", "open sesame")
	a := f.https("GET", "/api/handles/20.500.99999/U2", "", own)
	if a.status != 200 || !strings.Contains(a.body, "HS_SECKEY") || strings.Contains(a.body, "sesame") {
		t.Errorf("%d %s", a.status, a.body)
	}
	var read struct{ Values json.RawMessage }
	if err := json.Unmarshal([]byte(a.body), &read); err != nil {
		t.Fatal(err)
	}
	f.https("PUT", "/api/handles/20.500.99999/U2", string(read.Values), own).is(t, 200, `{"responseCode":1,"handle":"20.500.99999/U2"}`)
	f.https("DELETE", "/api/handles/20.500.99999/U2", "", own).is(t, 200, `{"responseCode":1,"handle":"20.500.99999/U2"}`)
	f.https("GET", "/api/sessions/this", "", own).challenged(t, "Identity not verified")
}

// The audit trail says that a change came in by this interface.
func TestHandleAudited(t *testing.T) {
	f := newAdminFixture(t, func(o *handle.Options) { o.Addresses = true })
	const admin = `{"index":100,"type":"HS_ADMIN","data":{"format":"admin","value":{"handle":"20.500.99999/U2","index":300,"permissions":"111111111111"}}}`
	f.https("PUT", "/api/handles/20.500.99999/U2", `{"values":[`+admin+`]}`, basic(handleUser, handleSecret)).is(t, 201, `{"responseCode":1,"handle":"20.500.99999/U2"}`)
	var got []string
	for item, err := range f.registrar.Audit(f.admin, registrar.AuditQuery{Via: "handle"}) {
		if err != nil {
			t.Fatal(err)
		}
		if e := item.Entry; e != nil {
			got = append(got, e.Operation+" "+e.Object+" "+e.Address)
		}
	}
	if want := []string{"register 20.500.99999/U2 127.0.0.1"}; !slices.Equal(got, want) {
		t.Errorf("the audit trail has %q", got)
	}
}

// What is wrong with a PUT is said, and nothing is written.
func TestHandlePutRefused(t *testing.T) {
	f := newAdminFixture(t)
	user := basic(handleUser, handleSecret)
	for _, tt := range []struct{ path, body, want string }{
		{"X", "", "Invalid JSON in PUT request"},
		{"X", `"x"`, "Invalid JSON in PUT request"},
		{"X", `[{"index":1,"type":"URL","data":"x","more":1}]`, "more"},
		{"X", `[{"index":1,"type":"URL","data":"x"},{"index":1,"type":"URL","data":"y"}]`, `"responseCode":201,"message":"Index conflict for 1"`},
		{"X", `[{"index":1,"type":"URL","data":{"format":"admin","value":{"permissions":"2"}}}]`, "permissions"},
		{"X?index=a", oneValue, "index is not a number: a"},
		{"X?index=1&index=2", oneValue, "Mismatched indexes in PUT request"},
		{"X?index=1&mintNewSuffix", oneValue, "leave index out"},
		{"X", `{"handle":"20.500.99999/Y","values":[` + oneValue + `]}`, "Mismatched handle in PUT request"},
		{"X", "[" + strings.Repeat(" ", stele.MaxDocument) + "]", "The body has more than"},
		{"", oneValue, ""},
	} {
		a := f.https("PUT", "/api/handles/20.500.99999/"+tt.path, tt.body, user)
		if a.status < 400 || a.status >= 500 || !strings.Contains(a.body, tt.want) {
			t.Errorf("PUT %s %.80s: %d %s, want %s", tt.path, tt.body, a.status, a.body, tt.want)
		}
	}
	f.https("PUT", "/api/handles/", oneValue, user).is(t, 400, `{"responseCode":102,"message":"Empty handle invalid"}`)
	f.https("PUT", "/api/handles/20.500.99999/X", "not JSON", "").challenged(t, "nonce=") // who sends it must be known first
	f.https("PUT", "/api/handles/99.9/X", oneValue, basic(handleUser, "no")).challenged(t, "Identity not verified")
	if _, err := f.registrar.Get(f.admin, f.id("20.500.99999/X")); stele.KindOf(err) != stele.NotFound {
		t.Errorf("it was written: %v", err)
	}
	f.https("DELETE", "/api/handles/20.500.99999/ABC-1?index=various", "", user).is(t, 400, `{"responseCode":4,"message":"index is not a number: various"}`)
	f.https("GET", "/api/handles?prefix=20.500.99999&page=-1&pageSize=2", "", user).is(t, 400, `{"responseCode":4,"message":"page is not a number: -1"}`)
	f.https("GET", "/api/prefixes/x", "", user).is(t, 404, `{"responseCode":4,"message":"Unknown HTTP API endpoint GET /api/prefixes/x"}`)
	f.https("PUT", "/api/prefixes", "", user).is(t, 501, `{"responseCode":4,"message":"Unknown method PUT"}`)
	f.https("POST", "/api/prefixes?prefix=20.500.44444", "", user).is(t, 403, `{"responseCode":400,"handle":"20.500.44444"}`)
}

// A query with a part that cannot be read changes nothing: what it was to restrict would be done to the whole handle.
func TestHandleBrokenQuery(t *testing.T) {
	f := newAdminFixture(t)
	user := basic(handleUser, handleSecret)
	f.https("PUT", "/api/handles/20.500.99999/BROKEN", `[{"index":1,"type":"URL","data":"https://example.org/1"},{"index":2,"type":"URL","data":"https://example.org/2"}]`, user).
		is(t, 201, `{"responseCode":1,"handle":"20.500.99999/BROKEN"}`)
	before, err := f.registrar.Get(f.admin, f.id("20.500.99999/BROKEN"))
	if err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"index=1;index=2", "index=1%", "index=1&index=2%zz", "overwrite=false%", "index=1;"} {
		for method, path := range map[string]string{"PUT": "handles/20.500.99999/BROKEN?", "DELETE": "handles/20.500.99999/BROKEN?", "POST": "prefixes/20.500.55555?"} {
			f.https(method, "/api/"+path+query, oneValue, user).refusedQuery(t)
		}
		f.https("DELETE", "/api/prefixes/20.500.99999?"+query, "", "").refusedQuery(t)
	}
	after, err := f.registrar.Get(f.admin, f.id("20.500.99999/BROKEN"))
	if err != nil || after.Version != before.Version || after.State != before.State {
		t.Errorf("it was changed: %+v, %v", after, err)
	}
	if a := f.https("GET", "/api/handles/20.500.99999/BROKEN?index=1;index=2", "", ""); a.status != http.StatusOK {
		t.Errorf("it cannot be read: %d %s", a.status, a.body)
	}
}

// refusedQuery makes sure that the query was refused.
func (a handleReply) refusedQuery(t *testing.T) {
	t.Helper()
	if a.status != http.StatusBadRequest || !strings.HasPrefix(a.body, `{"responseCode":4,"message":"The query cannot be read (`) {
		t.Errorf("got %d %s, want 400 for the query", a.status, a.body)
	}
}

// In clear nothing is written, listed or signed, whoever asks.
func TestHandleInClear(t *testing.T) {
	f := newAdminFixture(t)
	head := map[string]string{"Authorization": basic(handleUser, handleSecret), "Content-Type": "application/json"}
	for _, tt := range []struct {
		method, path string
		want         string
	}{
		{"PUT", "/api/handles/20.500.99999/ABC-1", `{"responseCode":402,"handle":"20.500.99999/ABC-1"}`},
		{"DELETE", "/api/handles/20.500.99999/ABC-1", `{"responseCode":402,"handle":"20.500.99999/ABC-1"}`},
		{"GET", "/api/handles?prefix=20.500.99999", `{"responseCode":402,"handle":"20.500.99999"}`},
		{"GET", "/api/prefixes", `{"responseCode":402}`},
		{"POST", "/api/prefixes?prefix=20.500.44444", `{"responseCode":402,"handle":"20.500.44444"}`},
		{"PUT", "/api/sessions/this", ""},
	} {
		a := f.send(f.client, tt.method, f.clear.URL+tt.path, "", head)
		a.is(t, 403, tt.want)
		if a.head.Get("WWW-Authenticate") != "" {
			t.Errorf("%s %s asks for credentials", tt.method, tt.path)
		}
	}
}

// A server without a site says so, and signs nothing.
func TestHandleWithoutSite(t *testing.T) {
	f := newAdminFixture(t, func(o *handle.Options) { o.Site = nil })
	f.https("GET", "/api/site", "", "").is(t, 501, `{"responseCode":5,"message":"This server has no site of the Handle System yet"}`)
	session, _ := f.session()
	if a := f.https("GET", "/api/sessions/this", "", `Handle sessionId="`+session+`", cnonce="AAEC"`); a.status != 200 || strings.Contains(a.body, "serverSignature") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// Handles of a prefix that was sealed for another registry are neither made nor changed.
func TestHandleHandedOver(t *testing.T) {
	f := newAdminFixture(t)
	user := basic(handleUser, handleSecret)
	key, err := f.registrar.ParsePrefix("hdl:20.500.99999/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.registrar.OfferNamespace(f.admin, key, "heir.example.org/.log", "https://heir.example.org/"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.registrar.SealNamespace(f.admin, key); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ method, path, body string }{
		{"PUT", "X", oneValue}, {"PUT", "ABC-1", oneValue}, {"PUT", "?mintNewSuffix=true", oneValue}, {"DELETE", "ABC-1", ""},
	} {
		if a := f.https(c.method, "/api/handles/20.500.99999/"+c.path, c.body, user); a.status < 400 {
			t.Errorf("%s %s: %d %s", c.method, c.path, a.status, a.body)
		}
	}
	if _, err := f.registrar.Get(f.admin, f.id("20.500.99999/X")); stele.KindOf(err) != stele.NotFound {
		t.Errorf("it was written: %v", err)
	}
	if a := f.https("GET", "/api/handles/20.500.99999/ABC-1", "", ""); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}
