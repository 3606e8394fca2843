package test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"
)

// acmeDomain is a name that leads to this machine, for the CA of a test.
const acmeDomain = "id.stele.test"

// acmeCA is a CA that speaks ACME, and validates as public ones do: Let's Encrypt's
// own Pebble.
type acmeCA struct {
	directory string         // URL
	root      string         // file of the root by which its web server is known
	pool      *x509.CertPool // of the root by which its certificates are known
}

// startCA runs a CA whose certificates are good for some seconds. It validates at the
// ports given, of whatever host.
func startCA(t *testing.T, httpPort, tlsPort, seconds int) *acmeCA {
	t.Helper()
	t.Setenv("PEBBLE_VA_NOSLEEP", "1")
	t.Setenv("PEBBLE_WFE_NONCEREJECT", "0")
	quiet := log.New(io.Discard, "", 0)
	store := db.NewMemoryStore()
	authority := ca.New(quiet, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {ValidityPeriod: uint64(seconds)}})
	validation := va.New(quiet, httpPort, tlsPort, false, startLoopbackDNS(t), store)
	front := wfe.New(quiet, store, validation, authority, []string{"ca.stele.test"}, false, false, 1, 1)
	server := httptest.NewTLSServer(front.Handler())
	t.Cleanup(server.Close)
	c := &acmeCA{directory: server.URL + wfe.DirectoryPath, root: filepath.Join(t.TempDir(), "root.pem"), pool: x509.NewCertPool()}
	writeFile(t, c.root, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})), 0o600)
	root, err := x509.ParseCertificate(authority.GetRootCert(0).DER)
	if err != nil {
		t.Fatal(err)
	}
	c.pool.AddCert(root)
	return c
}

// startLoopbackDNS runs a name server for which all names are this machine's.
func startLoopbackDNS(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{Listener: l, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		answer := new(dns.Msg).SetReply(q)
		if q.Question[0].Qtype == dns.TypeA {
			answer.Answer = append(answer.Answer, &dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.IPv4(127, 0, 0, 1)})
		}
		_ = w.WriteMsg(answer) // a client that does not get it asks again
	})}
	done := make(chan struct{})
	go func() {
		_ = server.ActivateAndServe() // until the test ends
		close(done)
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

// acmeSite is a server that gets its certificate from a CA.
type acmeSite struct {
	*acmeCA
	cmd     *exec.Cmd
	said    *lockedBuffer
	storage string
	https   string // address
}

func startACMESite(t *testing.T, c *acmeCA, httpPort, tlsPort int) *acmeSite {
	t.Helper()
	data := filepath.Join(t.TempDir(), "registry")
	if out, err := runStele(t, "register", "ark:12345/x1", "--to", "https://example.org/x1", "--data", data); err != nil {
		t.Fatal(err, out)
	}
	s := &acmeSite{acmeCA: c, storage: data + "-acme", https: net.JoinHostPort("127.0.0.1", strconv.Itoa(tlsPort))}
	s.cmd = exec.Command(stele(t), "serve", "--data", data, "--http", "127.0.0.1:"+strconv.Itoa(httpPort), "--https", s.https, "--redirect-https", "--log-level", "debug",
		"--acme-domain", acmeDomain, "--acme-email", "hostmaster@stele.test", "--acme-ca", c.directory, "--acme-root", c.root)
	s.cmd.Env = []string{"HOME=" + t.TempDir()}
	var err error
	if s.said, _, err = runBeside(t, s.cmd); err != nil {
		t.Fatal(err)
	}
	return s
}

// certificate returns the certificate that the server shows, if it is good.
func (s *acmeSite) certificate() (*x509.Certificate, error) {
	c, err := tls.Dial("tcp", s.https, &tls.Config{RootCAs: s.pool, ServerName: acmeDomain, MinVersion: tls.VersionTLS12})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0], nil
}

// await returns the certificate once the server shows a good one with another serial number
// than other. Meanwhile it calls meanwhile.
func (s *acmeSite) await(t *testing.T, other string, meanwhile func()) *x509.Certificate {
	t.Helper()
	deadline := time.Now().Add(90 * time.Second)
	for {
		cert, err := s.certificate()
		if err == nil && cert.SerialNumber.String() != other {
			return cert
		}
		if time.Now().After(deadline) {
			t.Fatalf("there is no new certificate: %v\n%s", err, s.said)
		}
		meanwhile()
		time.Sleep(100 * time.Millisecond)
	}
}

// TestACME: a server gets its certificate by either challenge, serves HTTP/2 with it,
// and renews it before it ends.
func TestACME(t *testing.T) {
	for _, challenge := range []string{"http-01", "tls-alpn-01"} {
		t.Run(challenge, func(t *testing.T) {
			httpPort, tlsPort := freePort(t), freePort(t)
			validHTTP, validTLS, seconds := httpPort, tlsPort, 3600
			if challenge == "http-01" {
				validTLS = freePort(t) // where no server listens
				seconds = 300          // so short that it is to be renewed at once
			} else {
				validHTTP = freePort(t)
			}
			s := startACMESite(t, startCA(t, validHTTP, validTLS, seconds), httpPort, tlsPort)
			first := s.await(t, "", func() {})
			if !strings.Contains(s.said.String(), challenge) {
				t.Errorf("the log says nothing of %s:\n%s", challenge, s.said)
			}
			checkACMESite(t, s)
			if challenge != "http-01" {
				return
			}
			second := s.await(t, first.SerialNumber.String(), func() {
				// Without the signal it would check later: certificates of CAs last longer.
				if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
					t.Fatal(err)
				}
			})
			if !second.NotAfter.After(first.NotAfter) {
				t.Errorf("the new certificate ends %s, the old one %s", second.NotAfter, first.NotAfter)
			}
		})
	}
}

// checkACMESite checks that the site answers, and that only its user can read its keys.
func checkACMESite(t *testing.T, s *acmeSite) {
	t.Helper()
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: s.pool, ServerName: acmeDomain, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequest("GET", "https://"+s.https+"/ark:12345/x1", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.ProtoMajor != 2 || res.StatusCode != http.StatusFound || res.Header.Get("Location") != "https://example.org/x1" {
		t.Errorf("%s %s to %q", res.Proto, res.Status, res.Header.Get("Location"))
	}
	if strings.Contains(s.said.String(), "remote") {
		t.Errorf("the log tells of visitors:\n%s", s.said)
	}
	keys := 0
	err = filepath.WalkDir(s.storage, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a lock that is no longer held
		}
		if info.Mode().Perm()&0o077 != 0 {
			return fmt.Errorf("others may read %s: %s", path, info.Mode())
		}
		if strings.HasSuffix(path, ".key") {
			keys++
		}
		return err
	})
	if err != nil || keys < 2 { // of the account, and of the certificate
		t.Errorf("%d keys, %v", keys, err)
	}
	if _, err := os.Stat(strings.TrimSuffix(s.storage, "-acme")); err != nil {
		t.Error(err)
	}
}
