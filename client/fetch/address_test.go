package fetch

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/servertest"
)

// onlySecond allows one loopback address, as if it were the public Internet.
func onlySecond(at netip.Addr) bool { return at == netip.MustParseAddr("127.0.0.2") }

// TestAddresses: an address that is not allowed is not reached, whatever name, redirect or
// protocol leads there, and is not tried again.
func TestAddresses(t *testing.T) {
	folder := t.TempDir()
	writeFile(t, filepath.Join(folder, "a"), []byte("here"))
	inside := startNginx(t, folder, "")
	ftp := servertest.FTP(t, folder)
	_, port, _ := strings.Cut(inside, ":")
	outside := strings.TrimPrefix(serveAt(t, "127.0.0.2:0", func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "there")
	}), "http://")
	f := newFetcher(t, Options{May: onlySecond})
	for _, location := range []string{
		"http://" + inside + "/a",
		"http://localhost:" + port + "/a",
		"http://[::ffff:127.0.0.1]:" + port + "/a",
		"http://[::1]:" + port + "/a",
		"ftp://" + ftp + "/a",
		"http://" + outside + "/?to=" + url.QueryEscape("http://"+inside+"/a"),
		"http://" + outside + "/?to=" + url.QueryEscape("ftp://"+ftp+"/a"),
	} {
		p := newPart(t)
		if _, err := f.File(t.Context(), Request{Location: location}, p); !errors.Is(err, ErrAddress) || stele.KindOf(err) != stele.Forbidden || p.Size() != 0 {
			t.Errorf("%s: %v, %d bytes", location, err, p.Size())
		}
	}
	if text, _, err := f.Read(t.Context(), Request{Location: "http://" + outside + "/"}, 100); err != nil || string(text) != "there" {
		t.Errorf("%q, %v", text, err)
	}
	if text, _, err := newFetcher(t, Options{}).Read(t.Context(), Request{Location: "http://" + inside + "/a"}, 100); err != nil || string(text) != "here" {
		t.Errorf("without a rule: %q, %v", text, err)
	}
}

// serveAt answers HTTP at an address.
func serveAt(t *testing.T, address string, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

// TestProxyAddresses: the user's own proxy is reached at any address, and does not lead to
// addresses that are not allowed. A process reads the environment once, so another one
// fetches.
func TestProxyAddresses(t *testing.T) {
	if os.Getenv("HTTP_PROXY") != "" {
		f := newFetcher(t, Options{May: onlySecond, Tries: 1})
		for location, want := range map[string]string{"http://somewhere.example/a": "by proxy", "http://127.0.0.2:1/a": "refused", "http://127.0.0.1:1/a": ErrAddress.Error(), "http://10.0.0.1/a": ErrAddress.Error()} {
			text, _, err := f.Read(t.Context(), Request{Location: location}, 100)
			if err != nil {
				text = []byte(err.Error())
			}
			if !bytes.Contains(text, []byte(want)) {
				t.Errorf("%s: %q, not %q", location, text, want)
			}
		}
		return
	}
	proxy := serveAt(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "by proxy") })
	cmd := exec.Command(os.Args[0], "-test.run=^TestProxyAddresses$", "-test.v")
	cmd.Env = append(os.Environ(), "HTTP_PROXY="+proxy, "NO_PROXY=")
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: TestProxyAddresses")) {
		t.Errorf("%v\n%s", err, out)
	}
}
