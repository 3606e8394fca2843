package test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// nginx is the real one, with deploy/nginx-stele.conf, in front of a server of ours.
type nginx struct {
	plain, secure string // addresses
	said          *lockedBuffer
	behind        *lockedBuffer // what our server says
}

// startNginx runs both until the test ends. Our server has the settings that the comment in
// nginx's configuration asks for.
func startNginx(t *testing.T, data string) *nginx {
	t.Helper()
	folder := t.TempDir()
	inner, plain, secure := freePort(t), freePort(t), freePort(t)
	config := filepath.Join(folder, "stele.toml")
	writeFile(t, config, strings.ReplaceAll(commented(t, "nginx-stele.conf"), ":8080", ":"+strconv.Itoa(inner)), 0o600)
	n := &nginx{plain: net.JoinHostPort("127.0.0.1", strconv.Itoa(plain)), secure: net.JoinHostPort("127.0.0.1", strconv.Itoa(secure))}
	ours := exec.Command(stele(t), "serve", "--config", config, "--data", data, "--log-addresses",
		"--trace", "http://127.0.0.1:9/v1/traces", "--trace-sample", "0") // a trace is seen in the log; no collector is needed
	ours.Env = []string{"HOME=" + folder}
	var err error
	if n.behind, _, err = runBeside(t, ours); err != nil {
		t.Fatal(err)
	}
	writePair(t, folder)
	site := deployed(t, "nginx-stele.conf", "127.0.0.1:8080", "127.0.0.1:"+strconv.Itoa(inner),
		"listen 80", "listen "+n.plain, "listen 443", "listen "+n.secure, "/etc/nginx/tls", folder)
	writeFile(t, filepath.Join(folder, "nginx.conf"), `daemon off;
pid `+folder+`/pid;
error_log stderr;
events {}
http {
	access_log off;
	client_body_temp_path `+folder+`/body;
	proxy_temp_path `+folder+`/proxy;
	fastcgi_temp_path `+folder+`/fastcgi;
	uwsgi_temp_path `+folder+`/uwsgi;
	scgi_temp_path `+folder+`/scgi;
`+site+"}\n", 0o600)
	theirs := exec.Command(serverProgram("nginx"), "-p", folder, "-c", filepath.Join(folder, "nginx.conf"))
	if n.said, _, err = runBeside(t, theirs); err != nil {
		t.Fatal(err)
	}
	n.await(t)
	return n
}

// await returns when both answer.
func (n *nginx) await(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		res, _, err := n.ask(n.plain, "127.0.0.1", "GET", "/readyz")
		if err == nil && res.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no answer: %v\n%s\n%s", err, n.said, n.behind)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// ask sends a request as it is, in clear or with TLS, from an address of this machine.
func (n *nginx) ask(to, from, method, target string, head ...string) (*http.Response, string, error) {
	d := net.Dialer{Timeout: 10 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.Dial("tcp", to)
	if err != nil {
		return nil, "", err
	}
	if to == n.secure {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) // nginx has a certificate of its own making
	}
	defer conn.Close()
	lines := append([]string{method + " " + target + " HTTP/1.1", "Host: id.example.org", "Connection: close"}, head...)
	if _, err := io.WriteString(conn, strings.Join(lines, "\r\n")+"\r\n\r\n"); err != nil {
		return nil, "", err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res, string(body), err
}

// writePair writes a certificate and its key into a folder.
func writePair(t *testing.T, folder string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"id.example.org"}, NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(folder, "fullchain.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})), 0o600)
	writeFile(t, filepath.Join(folder, "privkey.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})), 0o600)
}

// TestNginx: through nginx names arrive as they were written, and the server believes what
// nginx says of the client's address and protocol, and believes no other client.
func TestNginx(t *testing.T) {
	folder := t.TempDir()
	data, file := filepath.Join(folder, "data"), filepath.Join(folder, "records.jsonl")
	writeFile(t, file, `{"id":"20.500.12345/a//b/../c","url":"https://example.org/slashes"}
{"id":"20.500.12345/a/b%2Fc","url":"https://example.org/encoded"}
{"id":"20.500.12345/a/b/c","url":"https://example.org/clean"}
`, 0o600)
	for _, args := range [][]string{{"ns", "add", "20.500.12345/", "--data", data}, {"import", file, "--data", data}} {
		if out, err := runStele(t, args...); err != nil {
			t.Fatal(err, out)
		}
	}
	n := startNginx(t, data)
	for _, tt := range []struct {
		to, target string
		head       []string
		status     int
		location   string
	}{
		{n.secure, "/20.500.12345/a//b/../c", nil, 302, "https://example.org/slashes"},
		{n.secure, "/20.500.12345/a/%2Fb/../c", nil, 302, "https://example.org/slashes"},
		{n.secure, "/20.500.12345/a/b%252Fc", nil, 302, "https://example.org/encoded"},
		{n.secure, "/20.500.12345/a/b%2Fc", nil, 302, "https://example.org/clean"},
		{n.secure, "/20.500.12345/a%2F%2Fb/../c", nil, 302, "https://example.org/slashes"},
		{n.plain, "/20.500.12345/a//b/../c?x=%2F", nil, 308, "https://id.example.org/20.500.12345/a//b/../c?x=%2F"},
		{n.plain, "/20.500.12345/a/b/c", []string{"X-Forwarded-Proto: https", "Forwarded: proto=https"}, 308, "https://id.example.org/20.500.12345/a/b/c"},
		{n.secure, "/20.500.12345/a/b/c", []string{"X-Forwarded-For: 198.51.100.1", "Forwarded: for=198.51.100.1;proto=http", "X-Forwarded-Host: evil.example"}, 302, "https://example.org/clean"},
		{n.secure, "/20.500.12345/a/b/c", []string{"X-Request-Id: chosen-by-the-client", "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate: a=b"}, 302, "https://example.org/clean"},
	} {
		res, body, err := n.ask(tt.to, "127.0.0.5", "GET", tt.target, tt.head...)
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Header.Get("Location"); res.StatusCode != tt.status || got != tt.location {
			t.Errorf("%s: %s to %q, want %d to %q\n%s", tt.target, res.Status, got, tt.status, tt.location, body)
		}
	}
	// A request is logged when it is answered, and the client may have the answer before.
	for range 6000 {
		if strings.Count(n.behind.String(), "address=127.0.0.5") >= 9 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	log := n.behind.String()
	if strings.Count(log, "address=127.0.0.5") != 9 || strings.Contains(log, "198.51.100.1") {
		t.Errorf("the log is\n%s", log)
	}
	// The ids are those of nginx, and no client has its request traced.
	if n := len(regexp.MustCompile(`request=[0-9a-f]{32} .*address=127\.0\.0\.5|address=127\.0\.0\.5.* request=[0-9a-f]{32}`).FindAllString(log, -1)); n != 9 ||
		strings.Contains(log, "chosen-by-the-client") || strings.Contains(log, "4bf92f3577b34da6") {
		t.Errorf("%d requests have an id of nginx's; the log is\n%s", n, log)
	}
	checkNginxHTTP2(t, n)
}

// checkNginxHTTP2 asks nginx by HTTP/2.
func checkNginxHTTP2(t *testing.T, n *nginx) {
	t.Helper()
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequest("GET", "https://"+n.secure+"/.info/20.500.12345/a//b/../c", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "id.example.org"
	r.Header.Set("Accept", "application/json")
	res, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.ProtoMajor != 2 || res.StatusCode != http.StatusOK || !strings.Contains(string(body), "20.500.12345/a//b/../c") {
		t.Error(errors.Join(err, fmt.Errorf("%s %s\n%s", res.Proto, res.Status, body)))
	}
}
