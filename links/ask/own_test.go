package ask

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/outbound"
)

// The server does not ask itself: neither at an address of its own, nor by another spelling of its name, nor because
// robots.txt leads there.
func TestOwn(t *testing.T) {
	asked := false
	own := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer own.Close()
	_, port, _ := net.SplitHostPort(own.Listener.Addr().String())
	other := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.Redirect(w, r, "http://own.test/", http.StatusFound)
		}
	}))
	other.Start()
	defer other.Close()
	_, otherPort, _ := net.SplitHostPort(other.Listener.Addr().String())
	dns := startNSD(t, "own A 127.0.0.1\nother A 127.0.0.1\n")
	names := 0
	a := asker(t, func(o *Options) {
		o.Resolver = outbound.NewResolver(dns, 20*time.Second)
		o.Own = func(host string) bool {
			if host == "own.test" {
				names++
			}
			return host == "own.test"
		}
		o.Addresses = func() ([]net.Addr, error) { return []net.Addr{&net.IPAddr{IP: net.ParseIP("203.0.113.7")}}, nil }
	})
	for url, want := range map[string]links.Failure{
		"http://own.test:" + port + "/":    links.FailNotAskable,
		"http://own.test.:" + port + "/":   links.FailNotAskable,
		"http://OWN.test:" + port + "/":    links.FailNotAskable,
		"ftp://own.test.:" + port + "/x":   links.FailNotAskable,
		"http://203.0.113.7:" + port + "/": links.FailPrivate,
	} {
		if got, _ := a.Check(t.Context(), url, Known{}); got.Failure != want {
			t.Errorf("%s: failure %d, want %d", url, got.Failure, want)
		}
	}
	names = 0
	if got, _ := a.Check(t.Context(), "http://other.test:"+otherPort+"/x", Known{}); got.Status != 200 || names == 0 {
		t.Errorf("status %d, failure %d; robots.txt led to the server itself: %t", got.Status, got.Failure, names > 0)
	}
	if asked {
		t.Error("the server was asked")
	}
}

// A robots.txt that says too much is not kept whole.
func TestRobotsSize(t *testing.T) {
	long := "Disallow: /" + strings.Repeat("a", 3000) + "\n"
	r := parseRobots([]byte("User-agent: *\n"+long+strings.Repeat("Disallow: /"+strings.Repeat("b", 1999)+"\n", 200)), "stele")
	if r.size > robotsSize || len(r.rules) == 0 || len(r.rules[0].path) > robotsRule {
		t.Errorf("%d rules with %d bytes are kept", len(r.rules), r.size)
	}
}
