package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/pebble"
)

// mostMemory is how much memory the server of TestSlowReaders may ever take: what it
// keeps of records and of unread answers (128 MB), what it needs to make eight large answers
// at once, and half as much again that is not collected yet: about 1 GB, and more on a busy machine, where the
// collector comes late. Without limits it takes several gigabytes.
const mostMemory = 3 << 29

// largeRecord returns a version of a record that is as large as one may be. A quotation
// mark takes two bytes in JSON, and five in HTML.
func largeRecord(t *testing.T, name string, version uint64) *stele.Record {
	t.Helper()
	schemes, err := all.New(all.Config{})
	if err != nil {
		t.Fatal(err)
	}
	id, err := schemes.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := &stele.Record{ID: id, State: stele.Active, Version: version, Metadata: stele.Metadata{}, By: "ana", Created: at, Modified: at.Add(time.Duration(version) * time.Minute),
		Targets: []stele.Target{{Service: stele.N2L, URL: fmt.Sprintf("https://example.org/%d", version), Order: 100}}}
	for i := range 100 {
		r.Metadata[fmt.Sprintf("note%d", i)] = strings.Repeat(`"x"`, stele.MaxProse/3)
	}
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	return r
}

// fillLarge makes a registry with a record of 1000 versions, the newest of which are large,
// and some large ones of one version.
func fillLarge(t *testing.T, folder string) {
	t.Helper()
	s, err := pebble.Open(t.Context(), folder, pebble.Options{Now: time.Now, Brief: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	commit := func(r *stele.Record) {
		if err := s.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{r}}); err != nil {
			t.Fatal(err)
		}
	}
	r := largeRecord(t, "ark:12345/large", 1)
	large := r.Metadata
	for version := range uint64(1000) {
		r.Version, r.Metadata = version+1, large
		if version < 930 { // a page of the history has fewer versions than the rest
			r.Metadata = nil
		}
		r.Modified = r.Created.Add(time.Duration(version) * time.Minute)
		commit(r)
	}
	for i := range 4 {
		commit(largeRecord(t, fmt.Sprintf("ark:12345/large%d", i), 1))
	}
}

var limitCode = regexp.MustCompile(`limit\.[a-z-]+`)

// slowReader is a client that asks and then hardly reads.
type slowReader struct {
	conn    net.Conn
	status  int
	head    http.Header
	refusal string // what a refusal says
}

// sit asks from an address, and reads no more than the head of the answer.
func sit(ctx context.Context, server string, from byte, head string) (*slowReader, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, from)}, Control: func(_, _ string, raw syscall.RawConn) error {
		var set error
		err := raw.Control(func(fd uintptr) { set = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
		return errors.Join(err, set)
	}}
	conn, err := d.DialContext(ctx, "tcp", server)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, head); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	res, err := http.ReadResponse(bufio.NewReaderSize(conn, 512), nil)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	s := &slowReader{conn: conn, status: res.StatusCode, head: res.Header}
	if s.status != http.StatusOK {
		text, err := io.ReadAll(res.Body)
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		s.refusal = string(text)
	}
	return s, nil
}

// peak returns the most memory that a process ever had.
func peak(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kilobytes, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}

// TestSlowReaders has 500 clients sit on the largest answers that there are and not read
// them. The server keeps its memory within mostMemory, refuses what is too much with a
// status that says so, and answers others meanwhile. When the clients have gone, it
// holds nothing for them.
func TestSlowReaders(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("the memory of a process, and the addresses of the loopback network, are known on Linux only")
		return
	}
	data := newRegistry(t)
	fillLarge(t, data)
	runStele(t, "user", "add", "admin", "--admin", "--data", data)
	credential := credentialText.FindString(runStele(t, "token", "create", "admin", "--data", data))
	// The race detector takes several times the memory, so this is the program as it is
	// installed. The flags are those of other tests, so that the compiler works once for all.
	program := filepath.Join(t.TempDir(), "stele")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := steleCommand(t, "serve", "--json", "--data", data, "--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--write-timeout", "10m", "--api-rate", "0", "--cost-rate", "0")
	cmd.Path = program
	p := startCommand(t, cmd)
	server := strings.TrimPrefix(p.http, "http://")
	const own = "Authorization: Bearer "
	requests := []string{
		"/api/v1/history/ark:12345/large?limit=1000 \r\n",
		"/.info/ark:12345/large \r\nAccept: text/html\r\n",
		"/.info/ark:12345/large \r\nAccept: application/json\r\n",
		"/api/v1/export \r\n" + own,
		"/api/v1/export?history=true \r\n" + own,
		"/api/v1/records?prefix=ark:12345&limit=1000 \r\n" + own,
		"/api/v1/changes?limit=1000 \r\n" + own,
		"/api/v1/records/ark:12345/large \r\n",
		"/ark:12345/large \r\nAccept: application/ld+json\r\n",
		"/.timemap/ark:12345/large \r\n",
	}
	const readers = 500
	sitting := make([]*slowReader, readers)
	var wg sync.WaitGroup
	for i := range readers {
		wg.Go(func() {
			path, head, _ := strings.Cut(requests[i%len(requests)], " \r\n")
			if head == own {
				head += credential + "\r\n"
			}
			var err error
			sitting[i], err = sit(t.Context(), server, byte(1+i/len(requests)%16), "GET "+path+" HTTP/1.1\r\nHost: "+server+"\r\n"+head+"\r\n")
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
		})
	}
	for range 20 { // while they come
		if r, _ := httpGet(t, p.http+"/ark:12345/x1"); r.StatusCode != http.StatusFound {
			t.Errorf("an ordinary client gets %s", r.Status)
		}
	}
	wg.Wait()
	statuses := map[int]int{}
	codes := map[string]int{}
	for i, s := range sitting {
		if s == nil {
			continue
		}
		defer s.conn.Close()
		statuses[s.status]++
		switch s.status {
		case http.StatusOK:
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			code := limitCode.FindString(s.refusal)
			if codes[code]++; s.head.Get("Retry-After") == "" || code == "" {
				t.Errorf("%d, Retry-After %q: %s", s.status, s.head.Get("Retry-After"), s.refusal)
			}
		default:
			t.Errorf("%s: status %d", requests[i%len(requests)], s.status)
		}
	}
	for range 20 { // while they sit
		if r, _ := httpGet(t, p.http+"/ark:12345/x1"); r.StatusCode != http.StatusFound {
			t.Errorf("beside those who sit an ordinary client gets %s", r.Status)
		}
	}
	if statuses[http.StatusOK] == 0 || statuses[http.StatusTooManyRequests]+statuses[http.StatusServiceUnavailable] == 0 {
		t.Errorf("got %v; some should be answered and some refused", statuses)
	}
	got := peak(t, p.cmd.Process.Pid)
	t.Logf("%v, %v, at most %d MB", statuses, codes, got>>20)
	if got > mostMemory {
		t.Errorf("the server took %d MB; %d are the most", got>>20, mostMemory>>20)
	}
	for _, s := range sitting {
		if s != nil {
			_ = s.conn.Close()
		}
	}
	for { // the server learns of it when it next writes
		if _, text := httpGet(t, p.metrics+"/metrics"); strings.Contains(text, "stele_http_held_bytes 0\n") {
			break
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the server holds answers for clients that are gone")
		case <-time.After(10 * time.Millisecond):
		}
	}
	if r, _ := httpGet(t, p.http+"/.info/ark:12345/large"); r.StatusCode != http.StatusOK {
		t.Errorf("when they have gone: %s", r.Status)
	}
}
