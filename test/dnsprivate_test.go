package test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/scheme/all"
)

// pair is the certificate of a name server on this machine, which is its own authority,
// and its key.
type pair struct {
	cert, key string // files
	pool      *x509.CertPool
}

func newPair(t *testing.T) *pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	p := &pair{cert: filepath.Join(folder, "cert.pem"), key: filepath.Join(folder, "key.pem"), pool: x509.NewCertPool()}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	p.pool.AppendCertsFromPEM(text)
	writeFile(t, p.cert, string(text), 0o644)
	writeFile(t, p.key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})), 0o600)
	return p
}

// privatePorts are the ports of a name server.
type privatePorts struct{ tls, https int }

func (d privatePorts) servers() []string {
	return []string{
		"tls://127.0.0.1:" + strconv.Itoa(d.tls), "tls://127.0.0.1:" + strconv.Itoa(d.tls) + "#localhost",
		"https://localhost:" + strconv.Itoa(d.https) + "/dns-query",
	}
}

// Real clients ask our server by TLS and HTTPS, and our client asks real servers: the
// answers are those that come in clear, and the names lead to the same places.
func TestPrivateDNS(t *testing.T) {
	a := newArchive(t)
	zones := a.export()
	p := newPair(t)
	at := privatePorts{freePort(t), freePort(t)}
	ours := a.serve("--https", "127.0.0.1:"+strconv.Itoa(at.https), "--tls-cert", p.cert, "--tls-key", p.key, "--dns-tls", "127.0.0.1:"+strconv.Itoa(at.tls))
	want := askDig(t, ours, archiveQuestions)
	t.Run("kdig", func(t *testing.T) { kdigPrivately(t, p, at, want) })
	t.Run("dig", func(t *testing.T) { digPrivately(t, p, at, want) })
	t.Run("Stele", func(t *testing.T) { resolvesPrivately(t, p, at) })
	t.Run("unbound", func(t *testing.T) {
		at := privatePorts{freePort(t), freePort(t)}
		privateUnbound(ours, p, at).start(t, zones...)
		resolvesPrivately(t, p, at)
	})
	t.Run("BIND", func(t *testing.T) {
		at := privatePorts{freePort(t), freePort(t)}
		privateBIND(p, at).start(t, zones...)
		resolvesPrivately(t, p, at)
	})
}

// received is what kdig says of the length of an answer.
var received = regexp.MustCompile(`;; Received (\d+) B`)

// kdigPrivately asks with kdig, which checks the certificate, and pads.
func kdigPrivately(t *testing.T, p *pair, at privatePorts, want []reply) {
	tls := []string{"@127.0.0.1", "-p", strconv.Itoa(at.tls), "+tls-ca=" + p.cert, "+tls-hostname=localhost", "+generic", "+timeout=10", "+padding"}
	https := []string{"@127.0.0.1", "-p", strconv.Itoa(at.https), "+tls-ca=" + p.cert, "+tls-hostname=localhost", "+generic", "+timeout=10", "+padding"}
	for _, args := range [][]string{tls, append(https, "+https=/dns-query"), append(slices.Clone(https), "+https=/dns-query", "+https-get")} {
		sameReplies(t, strings.Join(args, " "), askProgram(t, archiveQuestions, "kdig", args), want)
	}
	text, err := runIn(".", "kdig", append(tls, "a.001.ab1.paradisec.example.", "NAPTR")...)
	if err != nil {
		t.Fatal(err)
	}
	out := string(text)
	for _, want := range []string{"TLS session (TLS1.3)", ";; PADDING:"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	// RFC 8467, section 4.1: answers have a multiple of this length.
	if got := received.FindStringSubmatch(out); got == nil {
		t.Errorf("nothing was received:\n%s", out)
	} else if n, err := strconv.Atoi(got[1]); err != nil || n == 0 || n%468 != 0 {
		t.Errorf("an answer of %s bytes is not padded:\n%s", got[1], out)
	}
}

// digPrivately asks with dig.
func digPrivately(t *testing.T, p *pair, at privatePorts, want []reply) {
	usual := []string{"-r", "@127.0.0.1", "+unknownformat", "+nosplit", "+time=10", "+nostats", "+tls-ca=" + p.cert}
	for _, args := range [][]string{
		append(slices.Clone(usual), "-p", strconv.Itoa(at.tls), "+tls"),
		append(slices.Clone(usual), "-p", strconv.Itoa(at.https), "+https"),
		append(slices.Clone(usual), "-p", strconv.Itoa(at.https), "+https-get"),
	} {
		sameReplies(t, strings.Join(args, " "), askProgram(t, archiveQuestions, "dig", args), want)
	}
}

// resolvesPrivately finds everything by TLS and by HTTPS, with the program and with the
// package, and nothing if the certificate is another server's.
func resolvesPrivately(t *testing.T, p *pair, at privatePorts) {
	t.Helper()
	schemes, err := all.New(all.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range at.servers() {
		server, err := client.ParseServer(text)
		if err != nil {
			t.Fatal(err)
		}
		way, err := client.NewDNS(client.DNSOptions{
			Schemes: schemes, Servers: []client.NameServer{server}, RootCAs: p.pool, Roots: map[string]string{"urn": archiveRoot}, TryTimeout: 10 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		resolvesAll(t, text, way)
		way.Close()
		out, code := resolveWith(t, archiveWanted[0], "--dns", text, "--root", archiveRoot, "--ca", p.cert)
		if code != 0 || out != archiveSite+archiveWanted[0].at+"\n" {
			t.Errorf("stele resolve --dns %s: exit %d, %s", text, code, out)
		}
		out, code = resolveWith(t, archiveWanted[0], "--dns", text, "--root", archiveRoot)
		if code != 5 || !strings.Contains(out, "this is not the server that was meant") {
			t.Errorf("stele resolve --dns %s, without its authority: exit %d, %s", text, code, out)
		}
	}
}

// privateUnbound is a resolver that is asked by TLS and HTTPS.
func privateUnbound(authority *nameServer, p *pair, at privatePorts) stockServer {
	s := unboundFor(authority)
	s.config = privately(s.config, p, at)
	return s
}

// privately adds to a configuration of unbound that it is asked by TLS and HTTPS.
func privately(config string, p *pair, at privatePorts) string {
	return strings.Replace(config, "server:\n", `server:
  interface: 127.0.0.1@`+strconv.Itoa(at.tls)+`
  interface: 127.0.0.1@`+strconv.Itoa(at.https)+`
  tls-port: `+strconv.Itoa(at.tls)+`
  https-port: `+strconv.Itoa(at.https)+`
  http-endpoint: "/dns-query"
  tls-service-pem: "`+p.cert+`"
  tls-service-key: "`+p.key+`"
`, 1)
}

// privateBIND is an authoritative server that is asked by TLS and HTTPS.
func privateBIND(p *pair, at privatePorts) stockServer {
	s := bind
	s.config = `tls own { cert-file "` + p.cert + `"; key-file "` + p.key + `"; };
` + strings.Replace(s.config, "listen-on-v6", `listen-on port `+strconv.Itoa(at.tls)+` tls own { 127.0.0.1; };
	listen-on port `+strconv.Itoa(at.https)+` tls own http default { 127.0.0.1; };
	listen-on-v6`, 1)
	return s
}
