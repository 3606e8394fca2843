package main

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/internal/certtest"
	"github.com/stele-id/stele/wire/hdl"
)

// An administrator of a prefix that was set up in one step writes a handle over REST with the key that the command made,
// and gives another user a secret, by which that user writes; the web leads to what they wrote. The server does not
// listen for the Handle protocol.
func TestServeHandleREST(t *testing.T) {
	data, out := filepath.Join(t.TempDir(), "data"), t.TempDir()
	runStele(t, "ns", "add", "20.500.12345/", "--handle-server", "--handle-address", "192.0.2.7", "--handle-out", out, "--data", data)
	file, err := os.ReadFile(filepath.Join(out, "admpriv.bin"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := hdl.ParseKeyFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := certtest.New(t, time.Now)
	cert, private := a.Issue(t, t.TempDir(), time.Hour, 1, "id.example.org")
	p := startServe(t, "--data", data, "--http", "127.0.0.1:0", "--https", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", private, "--hdl-client-certificates")

	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "300:0.NA/20.500.12345"}, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1, 0)}
	own, err := x509.CreateCertificate(rand.Reader, template, template, key.RSA.Public(), key.RSA)
	if err != nil {
		t.Fatal(err)
	}
	certified := a.Client(t)
	certified.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{{Certificate: [][]byte{own}, PrivateKey: key.RSA}}
	plain := a.Client(t)

	const admin = `{"index":100,"type":"HS_ADMIN","data":{"format":"admin","value":{"handle":"20.500.12345/ANN","index":300,"permissions":"111111111111"}}}`
	putHandle(t, certified, p.https, "20.500.12345/ANN", `[`+admin+`,{"index":300,"type":"HS_SECKEY","data":"sesame","permissions":"1100"}]`, `Handle clientCert="true"`, http.StatusCreated)
	putHandle(t, certified, p.https, "20.500.12345/x", `[`+admin+`,{"index":1,"type":"URL","data":"https://example.org/1"}]`, "", http.StatusCreated)
	ann := "Basic " + base64.StdEncoding.EncodeToString([]byte("300%3A20.500.12345/ANN:sesame"))
	putHandle(t, plain, p.https, "20.500.12345/x?index=1", `{"index":1,"type":"URL","data":"https://example.org/2"}`, ann, http.StatusOK)
	putHandle(t, plain, p.https, "20.500.12345/y", `{"index":1,"type":"URL","data":"https://example.org/3"}`, ann, http.StatusForbidden) // only the prefix's own may
	putHandle(t, plain, p.http, "20.500.12345/x", `{"index":1,"type":"URL","data":"https://example.org/3"}`, ann, http.StatusForbidden)
	if response, _ := httpGet(t, p.http+"/20.500.12345/x"); response.Header.Get("Location") != "https://example.org/2" {
		t.Errorf("the handle leads to %s, %s", response.Status, response.Header.Get("Location"))
	}
	if _, body := httpGet(t, p.http+"/api/site"); !strings.Contains(body, "192.0.2.7") {
		t.Errorf("the site is %s", body)
	}
	if code := p.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("it ended with %d:\n%s", code, p.stderr)
	}
	if text := runStele(t, "history", "hdl:20.500.12345/x", "--data", data); !strings.Contains(text, "300:20.500.12345/ANN") || !strings.Contains(text, "300:0.NA/20.500.12345") {
		t.Errorf("history does not name who wrote:\n%s", text)
	}
}

// putHandle writes a handle.
func putHandle(t *testing.T, client *http.Client, base, handle, body, authorization string, want int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, base+"/api/handles/"+handle, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != want {
		t.Errorf("PUT %s: %s %s, %v; want %d", handle, response.Status, text, err, want)
	}
}

// An administrator sets a prefix up through a server. The private keys stay where they are made: that of the site at the server, that
// of the prefix's administrator with the command. The audit trail names the user, and other users are refused.
func TestServeHandleSetup(t *testing.T) {
	p := startServe(t, "--data", newRegistry(t), "--http", "127.0.0.1:0")
	token, out := firstToken(t, p), t.TempDir()
	for _, made := range []struct{ path, body string }{{"users", `{"name":"zoe"}`}, {"namespaces/hdl:20.500.12345/", `{"owner":"zoe"}`}} {
		method := map[bool]string{true: "POST", false: "PUT"}[made.path == "users"]
		if a, text := askAPI(t, p, token, method, made.path, made.body); a.StatusCode != http.StatusCreated {
			t.Fatalf("%s: %d %s", made.path, a.StatusCode, text)
		}
	}
	a, text := askAPI(t, p, token, "POST", "tokens", `{"user":"zoe"}`)
	var made struct{ Credential string }
	if err := json.Unmarshal([]byte(text), &made); err != nil || made.Credential == "" {
		t.Fatalf("%d %s", a.StatusCode, text)
	}
	private, public, err := handles.NewAdminKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	body := `{"addresses":["192.0.2.7"],"adminKey":"` + base64.StdEncoding.EncodeToString(public) + `"}`
	for _, other := range []string{made.Credential, ""} { // the owner of the namespace, and the public
		for _, step := range []struct{ method, path, body string }{{"POST", "handleprefixes/20.500.12345", body}, {"POST", "handlesite", ""}, {"GET", "handlesite", ""}} {
			if a, text := askAPI(t, p, other, step.method, step.path, step.body); a.StatusCode != http.StatusForbidden && a.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s %s is answered: %d %s", step.method, step.path, a.StatusCode, text)
			}
		}
	}
	if a, text := askAPI(t, p, token, "POST", "handleprefixes/20.500.12345", `{"addresses":["192.0.2.7"]}`); a.StatusCode/100 != 4 || !strings.Contains(text, handles.NeedsAdminKey) {
		t.Errorf("without a key: %d %s", a.StatusCode, text)
	}
	if a, text := askAPI(t, p, token, "GET", "handlesite", ""); a.StatusCode != http.StatusNotFound {
		t.Errorf("a refused set-up made a site: %d %s", a.StatusCode, text)
	}
	credentials := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(credentials, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	said := runStele(t, "handle", "setup", "20.500.12345", "--address", "192.0.2.7", "--out", out, "--server", p.http, "--token-file", credentials)
	key, err := os.ReadFile(filepath.Join(out, "admpriv.bin"))
	if err != nil || !strings.Contains(said, "admpriv.bin") {
		t.Fatalf("%v, %s", err, said)
	}
	if _, err := hdl.ParseKeyFile(key, nil); err != nil || len(key) < len(private)/2 {
		t.Errorf("the key of the administrator: %v", err)
	}
	// Another key than the record's is not taken, and the answer says which one holds.
	a, text = askAPI(t, p, token, "POST", "handleprefixes/20.500.12345", body)
	if a.StatusCode != http.StatusOK || strings.Contains(text, base64.StdEncoding.EncodeToString(public)) {
		t.Errorf("%d %s", a.StatusCode, text)
	}
	if text := runStele(t, "handle", "roll", "--server", p.http, "--token-file", credentials); !strings.Contains(text, "serial 2") {
		t.Errorf("after a roll: %s", text)
	}
	if a, text := askAPI(t, p, token, "GET", "audit", ""); strings.Count(text, `"set handle site"`) < 2 {
		t.Errorf("the audit trail: %d %s", a.StatusCode, text)
	}
}
