package server

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele/config"
)

// TestTry tries configurations that can't be served, each for its own reason.
func TestTry(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, []byte("not a certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	good := map[string]any{"data": filepath.Join(folder, "new", "data"), "http": "127.0.0.1:0", "dns": "127.0.0.1:0"}
	for _, tt := range []struct {
		name   string
		change map[string]any
		want   string // a part of the problem; "": there is none
	}{
		{"all is well", nil, ""},
		{"a port that is taken", map[string]any{"http": taken.Addr().String()}, "a program listens on " + taken.Addr().String()},
		{"an address of another machine", map[string]any{"http": "192.0.2.1:8080"}, "listening on 192.0.2.1:8080 fails"},
		{"a file where the folder should be", map[string]any{"data": filepath.Join(file, "data")}, "can't write to"},
		{"files that are not certificates", map[string]any{"tls-cert": file, "tls-key": file, "https": "127.0.0.1:0"}, "the certificate and its key can't be used"},
		{"a database that is not there", map[string]any{"store": "postgres://stele@127.0.0.1:1/stele?connect_timeout=1"}, "127.0.0.1"},
	} {
		flags := map[string]any{}
		for _, list := range []map[string]any{good, tt.change} {
			for name, value := range list {
				flags[name] = value
			}
		}
		if tt.change["store"] != nil {
			delete(flags, "data")
		}
		c := config.Load("", nil, flags)
		if len(c.Problems) > 0 {
			t.Fatalf("%s: %v", tt.name, c.Problems)
		}
		Try(t.Context(), c, time.Now, slog.New(slog.DiscardHandler))
		var texts []string
		for _, p := range c.Problems {
			texts = append(texts, p.String())
		}
		if got := strings.Join(texts, "\n"); (got != "") != (tt.want != "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %q", tt.name, got, tt.want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) != 1 {
		t.Errorf("%q are left", left)
	}
}
