package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stele-id/stele/internal/desktest"
)

// firstToken makes a token by the link of the first administrator, which a server prints.
func firstToken(t *testing.T, p *process) string {
	t.Helper()
	p.waitFor(t, "stele user link") // it may come later than what is printed elsewhere
	token, err := desktest.Token(t.Context(), http.DefaultClient, p.http, p.stderr.String())
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// askAPI sends a request to the API of a server.
func askAPI(t *testing.T, p *process, token, method, path, body string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, p.http+"/api/v1/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	a, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a, string(text)
}

// TestServeAPI: the server passes requests of programs to the API, with its limits.
func TestServeAPI(t *testing.T) {
	p := startServe(t, "--data", newRegistry(t), "--http", "127.0.0.1:0", "--read-timeout", "500ms", "--api-rate", "1", "--api-burst", "20")
	token := firstToken(t, p)
	a, text := askAPI(t, p, token, "PUT", "records/ark:99999/fromapi", `{"url":"https://example.org/fromapi"}`)
	if a.StatusCode != http.StatusCreated || a.Header.Get("ETag") != `"v1"` {
		t.Fatalf("%d %s", a.StatusCode, text)
	}
	// What is written resolves at once, and changes at once.
	for i, url := range []string{"https://example.org/fromapi", "https://example.org/changed"} {
		if answer, _ := httpGet(t, p.http+"/ark:99999/fromapi"); answer.Header.Get("Location") != url {
			t.Errorf("the name leads to %q", answer.Header.Get("Location"))
		}
		if i == 0 {
			r, err := http.NewRequest("PUT", p.http+"/api/v1/records/ark:99999/fromapi", strings.NewReader(`{"url":"https://example.org/changed"}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}, "If-Match": {`"v1"`}}
			a, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			a.Body.Close()
		}
	}
	if a, text := askAPI(t, p, "", "GET", "openapi.json", ""); a.StatusCode != http.StatusOK || !strings.Contains(text, `"openapi":"3.1.0"`) {
		t.Errorf("%d %.200s", a.StatusCode, text)
	}
	// The server waits for a body no longer than the settings say.
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.http, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "PUT /api/v1/records/ark:99999/never HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", token)
	late, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Body.Close()
	if late.StatusCode != http.StatusRequestTimeout {
		t.Errorf("a body that does not come is answered with %d", late.StatusCode)
	}
	// A client that exceeds the rate limit is told when to go on.
	for range 30 {
		if a, text = askAPI(t, p, "", "GET", "records/ark:99999/fromapi", ""); a.StatusCode != http.StatusOK {
			break
		}
	}
	if a.StatusCode != http.StatusTooManyRequests || a.Header.Get("Retry-After") != "1" {
		t.Errorf("after 30 requests: %d %v %s", a.StatusCode, a.Header, text)
	}
	if a, _ := askAPI(t, p, token, "GET", "me", ""); a.StatusCode != http.StatusOK {
		t.Errorf("who has a token pays for the public: %d", a.StatusCode)
	}
}
