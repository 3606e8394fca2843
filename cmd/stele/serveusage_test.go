package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stele-id/stele/document/apijson"
)

// TestUsageKilled counts on a real server that is killed: what it had written is there, it goes on from there, and no file of the
// registry nor the log has the address of a reader.
func TestUsageKilled(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	runStele(t, "ns", "add", "ark:12345", "--data", data)
	runStele(t, "register", "ark:12345/x1", "--to", "https://example.org/1", "--data", data)
	part := 70 + len("1234567")
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, byte(part), 88, 99)}}).DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	log := filepath.Join(t.TempDir(), "log")
	visits := 0
	visit := func(server *process) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.http+"/ark:12345/x1", nil)
		if err != nil {
			t.Fatal(err)
		}
		visits++
		r.Header.Set("User-Agent", fmt.Sprintf("Mozilla/5.0 (X11; Linux x86_64; rv:%d.0) Gecko/20100101 Firefox/%d.0", visits, visits))
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusFound {
			t.Fatal(answer.Status)
		}
	}
	counted := func() uint64 {
		var r apijson.Usage
		if err := json.Unmarshal([]byte(runStele(t, "usage", "ark:12345/x1", "--json", "--data", data)), &r); err != nil {
			t.Fatal(err)
		}
		return r.Total.Regular
	}
	serve := func() *process {
		return startServe(t, "--data", data, "--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--usage-interval", "1s", "--log-requests", "--log-file", log)
	}

	server := serve()
	for range 3 {
		visit(server)
	}
	server.waitForMetric(t, "stele_usage_kept_total 3")
	server.end(t, syscall.SIGKILL)
	if n := counted(); n != 3 {
		t.Errorf("%d uses are there after the server was killed; 3 were written", n)
	}
	server = serve()
	for range 2 {
		visit(server)
	}
	server.end(t, syscall.SIGTERM) // it writes what is left
	if n := counted(); n != 5 {
		t.Errorf("%d uses are there after the server ended; should be 5", n)
	}
	server = serve()
	visit(server)
	server.end(t, syscall.SIGKILL) // within the interval, or after it
	if n := counted(); n != 5 && n != 6 {
		t.Errorf("%d uses are there after the server was killed again; should be 5 or 6", n)
	}

	// Four bytes alone may be there by chance.
	sixteen := net.IPv4(127, byte(part), 88, 99).To16()
	patterns := [][]byte{[]byte(fmt.Sprintf("127.%d.88.99", part)), sixteen}
	files := 0
	for _, folder := range []string{data, filepath.Dir(log)} {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			files++
			for _, pattern := range patterns {
				if bytes.Contains(content, pattern) {
					t.Errorf("%s has the address of a reader", path)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(log); err != nil || files < 5 || !strings.Contains(string(text), "/ark:12345/x1") {
		t.Errorf("%d files, %v: the log does not name the requests", files, err)
	}
}
