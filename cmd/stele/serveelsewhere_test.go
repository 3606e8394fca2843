package main

import (
	"archive/zip"
	"crypto/rand"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	hdlclient "github.com/stele-id/stele/client/hdl"
	"github.com/stele-id/stele/internal/certtest"
	"github.com/stele-id/stele/wire/hdl"
)

// TestServeElsewhere changes handles at one server as identities whose keys and secrets another server has: by a key, by a secret
// in a list, and over REST. Without a root in the settings they prove nothing, nor if their home is at an address that
// the settings do not allow.
func TestServeElsewhere(t *testing.T) {
	home, out := startHome(t)
	data := filepath.Join(t.TempDir(), "data")
	runStele(t, "import", "--from", "handle", "--with-admins", "--create-namespaces", writeFile(t, "batch.txt", []byte(`HOME 127.0.0.1:2641:TCP
0.NA/20.500.1

CREATE 20.500.1/KEY
100 HS_ADMIN 86400 1110 ADMIN 300:111111111111:0.NA/20.500.99999
1 URL 86400 1110 UTF8 https://example.org/1

CREATE 20.500.1/LIST
100 HS_ADMIN 86400 1110 ADMIN 200:111111111111:0.NA/20.500.99999
1 URL 86400 1110 UTF8 https://example.org/1
`)), "--data", data)
	runStele(t, "handle", "setup", "20.500.1", "--address", "127.0.0.1", "--out", t.TempDir(), "--data", data)
	file, err := os.ReadFile(handleVector(t, "privkey_file_rsa"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := hdl.ParseKeyFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	byKey := hdlclient.Identity{Reference: hdl.Reference{Handle: "0.NA/" + seedPrefix, Index: 300}, Key: &key}
	secret := seedSecretOf(t, seedPrefix+"/USER01")
	bySecret := hdlclient.Identity{Reference: hdl.Reference{Handle: seedPrefix + "/USER01", Index: 300}, Secret: []byte(secret)}
	wrong := bySecret
	wrong.Secret = []byte("open barley")
	a := certtest.New(t, time.Now)
	cert, private := a.Issue(t, t.TempDir(), time.Hour, 1, "id.example.org")
	basic := func(secret string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte("300%3A"+seedPrefix+"/USER01:"+secret))
	}
	value := `{"index":1,"type":"URL","data":"https://example.org/rest"}`

	for _, c := range []struct {
		name  string
		flags []string
		root  bool // what the root itself has is read: the settings name its address
		good  bool
	}{
		{"off", nil, false, false},
		{"refused address", []string{"--hdl-root", out}, true, false},
		{"on", []string{"--hdl-root", out, "--hdl-allow", "127.0.0.1"}, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := startServe(t, append([]string{"--data", data, "--http", "127.0.0.1:0", "--https", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", private, "--hdl", "127.0.0.1:0"}, c.flags...)...)
			defer server.end(t, os.Interrupt)
			place, err := hdlclient.ParsePlace(server.hdl)
			if err != nil {
				t.Fatal(err)
			}
			client, err := hdlclient.New(hdlclient.Options{Server: &place, Now: time.Now, Rand: rand.Reader, Transports: []hdl.Transport{hdl.TCP}})
			if err != nil {
				t.Fatal(err)
			}
			modify := func(who hdlclient.Identity, handle string, good bool) {
				t.Helper()
				admin, err := client.As(who, hdlclient.AdministratorOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for _, url := range []string{"https://example.org/2", "https://example.org/3"} { // the second one in a session that is known, or not
					err := admin.Modify(t.Context(), handle, []hdl.Value{{Index: 1, Type: []byte("URL"), Data: []byte(url), TTL: 60, Permissions: 14}})
					if good != (err == nil) || !good && stele.KindOf(err) != stele.Unauthenticated && stele.KindOf(err) != stele.Forbidden {
						t.Errorf("%s by %s: %v", handle, who.Handle, err)
					}
				}
			}
			modify(byKey, "20.500.1/KEY", c.root)
			modify(byKey, "20.500.1/LIST", c.root)
			modify(bySecret, "20.500.1/LIST", c.good)
			modify(bySecret, "20.500.1/KEY", false) // which does not name it
			modify(wrong, "20.500.1/LIST", false)
			want := map[bool]int{true: http.StatusOK, false: http.StatusUnauthorized}[c.good]
			putHandle(t, a.Client(t), server.https, "20.500.1/LIST?index=1", value, basic(secret), want)
			putHandle(t, a.Client(t), server.https, "20.500.1/LIST?index=1", value, basic("open barley"), http.StatusUnauthorized)
		})
	}
	home.end(t, os.Interrupt)
	if text := runStele(t, "history", "hdl:20.500.1/LIST", "--data", data); !strings.Contains(text, "300:20.500.99999/USER01") {
		t.Errorf("history does not name who wrote:\n%s", text)
	}
}

// startHome starts the server of the seeds at a port that its record names, and returns the file of its site.
func startHome(t *testing.T) (*process, string) {
	t.Helper()
	seeds, err := filepath.Abs(seedFile)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	_ = l.Close()
	_, port, _ := net.SplitHostPort(at)
	data, out := filepath.Join(t.TempDir(), "home"), t.TempDir()
	runStele(t, "import", "--from", "handle", "--with-admins", "--with-secrets", "--create-namespaces", "--rejects", filepath.Join(out, "rejects"), seeds, "--data", data)
	runStele(t, "handle", "setup", seedPrefix, "--address", "127.0.0.1", "--port", port, "--out", out, "--data", data)
	bundle, err := zip.OpenReader(filepath.Join(out, "sitebndl.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer bundle.Close()
	in, err := bundle.Open("siteinfo.bin")
	if err != nil {
		t.Fatal(err)
	}
	site, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return startServe(t, "--data", data, "--http", "127.0.0.1:0", "--hdl", at), writeFile(t, "siteinfo.bin", site)
}
