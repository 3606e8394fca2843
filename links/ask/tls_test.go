package ask

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stele-id/stele/links"
)

// TestOldTLS: a host with old TLS is there, and one that agrees on no TLS with this server, or wants a certificate of it, is not one that does not answer.
func TestOldTLS(t *testing.T) {
	a := asker(t)
	for name, test := range map[string]struct {
		config *tls.Config
		state  links.State
		cause  links.Cause
	}{
		"TLS 1.0 only":          {&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10}, links.Unsure, links.BadCertificate},
		"RSA key exchange only": {&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA}}, links.Unsure, links.BadCertificate},
		"3DES only":             {&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA}}, links.Unsure, links.BadCertificate},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/robots.txt" {
					http.NotFound(w, r)
				}
			}))
			server.TLS = test.config
			server.StartTLS()
			defer server.Close()
			answer, _ := a.Check(t.Context(), server.URL+"/x", Known{})
			if e := judge(t, answer); answer.Status != 200 || e.State != test.state || e.Cause != test.cause { // the certificate is that of a test
				t.Errorf("%s (%s): status %d, failure %d", e.State, e.Cause, answer.Status, answer.Failure)
			}
		})
	}
	for name, config := range map[string]*tls.Config{
		"client certificate, TLS 1.2": {MaxVersion: tls.VersionTLS12, ClientAuth: tls.RequireAnyClientCert},
		"client certificate, TLS 1.3": {MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAnyClientCert},
		"no common version": {GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return nil, http.ErrNotSupported // sent as an alert
		}},
	} {
		t.Run(name, func(t *testing.T) {
			at := shakeHands(t, config)
			answer, _ := a.Check(t.Context(), "https://"+at+"/x", Known{})
			e := judge(t, answer)
			if e.State != links.Unsure || e.Cause != links.BadCertificate || e.Weight != links.Weak {
				t.Errorf("%s (%s), failure %d", e.State, e.Cause, answer.Failure)
			}
			var h links.Host
			if h.Add(&e, a.o.Now()); h.Streak > 0 || h.Answered.IsZero() {
				t.Errorf("the host counts as one that does not answer: %+v", h)
			}
		})
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	if answer, _ := a.Check(t.Context(), "https://"+plain.Listener.Addr().String()+"/x", Known{}); answer.Failure != links.FailReset {
		t.Errorf("a host without TLS: failure %d", answer.Failure)
	}
}

// shakeHands returns the address of a server that makes handshakes, and closes a connection when the client has closed its side.
func shakeHands(t *testing.T, config *tls.Config) string {
	t.Helper()
	of := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate
	t.Cleanup(of.Close)
	config.Certificates = of.TLS.Certificates
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = tls.Server(conn, config).Handshake()
				buffer := make([]byte, 4096)
				for err == nil { // a connection that is closed with data unread resets, and the alert may be lost
					_, err = conn.Read(buffer)
				}
			}()
		}
	}()
	return listener.Addr().String()
}
