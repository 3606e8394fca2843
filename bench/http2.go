package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

const (
	sessions = 16      // connections of HTTP/2
	streams  = 4       // requests at once on each
	listed   = 100_000 // URLs in the list of h2load
)

// redirectsSecure is redirects over HTTP/2 with TLS. Both servers have the same certificate, of ECDSA P-256, and TLS 1.3 with
// AES-128-GCM; h2load asks for names at random.
func (r *registryBench) redirectsSecure(ctx context.Context, w *tabwriter.Writer, cores [2]int) (err error) {
	cert, key, err := writeCertificate(r.work)
	if err != nil {
		return err
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	ours, _, err := r.startStele(ctx, cores[0], "--https", address, "--tls-cert", cert, "--tls-key", key)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.stop()) }()
	ours.settle(ctx)
	ours.url = "https://" + address
	peer, err := r.startSecureNginx(ctx, cores[0], cert, key)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, peer.stop()) }()
	l := secureLoad{core: cores[1], list: filepath.Join(r.work, "urls")}
	var speeds [2][]float64
	var ratios []float64
	for i := range rounds + 1 {
		var seen [2]float64
		for j, s := range []*server{ours, peer} {
			if err := writeURLs(l.list, s.url, r.records); err != nil {
				return err
			}
			if seen[j], err = l.run(ctx, s); err != nil {
				return err
			}
			if i > 0 { // the first warms up
				speeds[j] = append(speeds[j], seen[j])
			}
		}
		if i > 0 {
			ratios = append(ratios, seen[0]/seen[1])
		}
		progress("redirects over HTTP/2, round %d of %d: %.1f us of CPU each, and nginx's %.1f us", i, rounds, 1e6/seen[0], 1e6/seen[1])
	}
	fmt.Fprintf(w, "  over HTTP/2 with TLS : nginx's return 302, the same way\t%.0f\t%.0f\t%.2f\t\tat least 0.5\n", median(speeds[0]), median(speeds[1]), median(ratios))
	return nil
}

// secureLoad is h2load.
type secureLoad struct {
	core int
	list string // file with URLs
}

var (
	loadSucceeded = regexp.MustCompile(`requests: \d+ total, \d+ started, (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored`)
	loadStatuses  = regexp.MustCompile(`status codes: 0 2xx, (\d+) 3xx, 0 4xx, 0 5xx`)
)

// run asks a server for a while, and returns how many answers a second of its CPU time gave. An answer that is not a redirect makes it fail.
func (l *secureLoad) run(ctx context.Context, s *server) (perCPU float64, err error) {
	before := usedBy(s.pid())
	out, err := pinned(ctx, l.core, "h2load", "--threads=1", fmt.Sprintf("--clients=%d", sessions), fmt.Sprintf("--max-concurrent-streams=%d", streams),
		fmt.Sprintf("--duration=%.0f", loadFor.Seconds()), "--tls13-ciphers=TLS_AES_128_GCM_SHA256", "--input-file="+l.list).CombinedOutput()
	used := usedBy(s.pid()) - before
	if err != nil {
		return 0, fmt.Errorf("h2load: %w: %s", err, bytes.TrimSpace(out))
	}
	counts, redirects := loadSucceeded.FindSubmatch(out), loadStatuses.FindSubmatch(out)
	if counts == nil || redirects == nil || string(counts[3]) != "0" || string(counts[4]) != "0" || !bytes.Contains(out, []byte("Application protocol: h2\n")) || !bytes.Contains(out, []byte("TLSv1.3")) {
		return 0, fmt.Errorf("h2load says something else than it should: %s", bytes.TrimSpace(out))
	}
	n, err := strconv.Atoi(string(redirects[1]))
	if err == nil && n == 0 {
		err = errors.New("h2load got no answer")
	}
	return float64(n) / used.Seconds(), err
}

// writeURLs writes URLs of names at random.
func writeURLs(path, base string, records int) error {
	var b strings.Builder
	for range listed {
		fmt.Fprintf(&b, "%s/ark:12345/%s\n", base, benchName(mathrand.IntN(records)))
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// writeCertificate writes a certificate for 127.0.0.1 and its key.
func writeCertificate(folder string) (cert, key string, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), DNSNames: []string{"localhost"}}
	public, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return "", "", err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", "", err
	}
	cert, key = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	return cert, key, errors.Join(
		os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: public}), 0o644),
		os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}

// startSecureNginx starts Debian's nginx on a core, with HTTP/2 and TLS.
func (r *registryBench) startSecureNginx(ctx context.Context, core int, cert, key string) (*server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(r.work, "nginx-secure.conf")
	text := fmt.Sprintf(nginxConfig, r.work, address+" ssl http2")
	text = strings.Replace(text, "access_log off;", fmt.Sprintf("access_log off;\n\tssl_certificate %s;\n\tssl_certificate_key %s;\n\tssl_protocols TLSv1.3;", cert, key), 1)
	text = strings.Replace(text, "nginx.pid", "nginx-secure.pid", 1)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return nil, err
	}
	s, err := startServer(ctx, core, address, findServer("nginx"), "-c", config, "-e", "stderr")
	if err != nil {
		return nil, err
	}
	s.url = "https://" + address
	// The certificate is one that no client knows.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	if err := s.awaitAnswer(ctx, func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
		if err != nil {
			return err
		}
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		return res.Body.Close()
	}); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}
