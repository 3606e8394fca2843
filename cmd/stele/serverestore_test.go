package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// apiUser is a server and a user who has a token for it.
type apiUser struct {
	t     *testing.T
	at    string
	token string
}

var shownToken = regexp.MustCompile(`stele_[0-9a-z]+_[0-9A-Za-z_-]{43}`)

// startAPIUser starts a server on a new registry, and makes a token by the link that it shows.
func startAPIUser(t *testing.T, data string, args ...string) (*process, *apiUser) {
	t.Helper()
	p := startServe(t, append([]string{"--data", data, "--http", "127.0.0.1:0", "--api-rate", "0"}, args...)...)
	return p, &apiUser{t, p.http + "/api/v1/", firstToken(t, p)}
}

// try sends a request, and returns status and body.
func (o *apiUser) try(method, path string, body []byte, media string) (int, []byte, error) {
	r, err := http.NewRequest(method, o.at+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+o.token)
	if body != nil {
		r.Header.Set("Content-Type", media)
	} else {
		r.Body, r.ContentLength = nil, 0
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	return a.StatusCode, text, err
}

// ask sends a document, and fails unless the answer has that status.
func (o *apiUser) ask(method, path, body string, status int) []byte {
	o.t.Helper()
	var data []byte
	media := "application/json"
	if body != "" {
		data = []byte(body)
	}
	if method == http.MethodPatch {
		media = "application/merge-patch+json"
	}
	got, text, err := o.try(method, path, data, media)
	if err != nil || got != status {
		o.t.Errorf("%s %s: %d %s, %v; want %d", method, path, got, text, err, status)
	}
	return text
}

// mint makes names.
func (o *apiUser) mint(space string, n int) (names []string) {
	o.t.Helper()
	var made struct{ Items []struct{ ID string } }
	if err := json.Unmarshal(o.ask("POST", "mint", fmt.Sprintf(`{"namespace":%q,"count":%d}`, space, n), 201), &made); err != nil {
		o.t.Error(err)
	}
	for _, item := range made.Items {
		names = append(names, item.ID)
	}
	return names
}

// restore sends a backup, and returns the last line of the answer.
func (o *apiUser) restore(confirm string, backup []byte) (status int, last struct {
	Done    bool
	Kept    string
	Changes uint64
	Shut    []string
	Problem *struct{ Detail string }
}) {
	o.t.Helper()
	status, text, _ := o.try("POST", "restore?confirm="+confirm, backup, "application/x-tar") // a failure cuts the answer off
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if status == 200 {
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
			o.t.Errorf("%s: %v", text, err)
		}
	}
	return status, last
}

// TestRestoreWhileServing: a backup that was taken through the API takes the place of
// the registry while clients go on, none of which sees more than a pause; no name is
// given again, and users and tokens are as before.
func TestRestoreWhileServing(t *testing.T) {
	data := filepath.Join(t.TempDir(), "registry")
	p, o := startAPIUser(t, data, "--dns", "127.0.0.1:0")
	o.ask("PUT", "namespaces/ark:12345/x5", `{"minter":{"kind":"noid","template":".sdddd"}}`, 201)
	o.ask("PUT", "namespaces/example.org/a", `{"minter":{"kind":"ibi","host":"a.example.org","port":80,"granularity":"1us"}}`, 201)
	o.ask("PUT", "records/ark:12345/r1", `{"url":"https://example.org/1"}`, 201)
	given := make(map[string]bool)
	note := func(names []string) {
		t.Helper()
		for _, name := range names {
			if given[name] {
				t.Errorf("%s was given twice", name)
			}
			given[name] = true
		}
	}
	note(o.mint("ark:12345/x5", 10))
	note(o.mint("example.org/a", 10))
	status, backup, err := o.try("GET", "backup", nil, "")
	if err != nil || status != 200 {
		t.Fatalf("%d %v", status, err)
	}

	// The restore removes what comes after the backup, except users and tokens.
	o.ask("PUT", "records/ark:12345/later", `{"url":"https://example.org/later"}`, 201)
	note(o.mint("ark:12345/x5", 10))
	note(o.mint("example.org/a", 10))
	o.ask("POST", "users", `{"name":"ann"}`, 201)
	text := o.ask("POST", "tokens", `{"user":"ann","label":"later"}`, 201)
	ann := &apiUser{t, o.at, shownToken.FindString(string(text))}
	ann.ask("GET", "me", "", 200)

	for name, bad := range map[string]struct {
		confirm string
		tar     []byte
		status  int
	}{
		"another registry": {"other", backup, 409},
		"no tar":           {"registry", []byte("nonsense"), 400},
		"cut off":          {"registry", backup[:len(backup)/2], 400},
		"no store":         {"registry", repack(t, backup, func(h *tar.Header, _ []byte) { h.Name = "x" + h.Name }), 200},
		"damaged":          {"registry", repack(t, backup, spoil), 200},
	} {
		status, last := o.restore(bad.confirm, bad.tar)
		if status != bad.status || last.Done || status == 200 && last.Problem == nil {
			t.Errorf("%s: %d %+v", name, status, last)
		}
	}
	o.ask("GET", "records/ark:12345/later", "", 200)

	stop, clients := make(chan struct{}), sync.WaitGroup{}
	for i := range 4 {
		clients.Go(func() { o.keepAsking(stop, fmt.Sprint("load", i)) })
	}
	time.Sleep(50 * time.Millisecond)
	status, last := o.restore("registry", backup)
	if status != 200 || !last.Done || len(last.Shut) != 1 || last.Shut[0] != "ark:12345/x5" {
		t.Fatalf("%d %+v\n%s", status, last, p.stderr)
	}
	time.Sleep(50 * time.Millisecond)
	close(stop)
	clients.Wait()

	o.ask("GET", "records/ark:12345/r1", "", 200)
	o.ask("GET", "records/ark:12345/later", "", 404)
	ann.ask("GET", "me", "", 200)
	note(o.mint("example.org/a", 10))
	o.ask("POST", "mint", `{"namespace":"ark:12345/x5"}`, 409)
	o.ask("POST", "skip/ark:12345/x5", `{"ahead":1}`, 200)
	note(o.mint("ark:12345/x5", 10))
	o.ask("PUT", "records/ark:12345/after", `{"url":"https://example.org/after"}`, 201)
	if code := p.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d\n%s", code, p.stderr)
	}
	for _, folder := range []string{data, last.Kept} {
		runStele(t, "verify", "--data", folder)
	}
	runStele(t, "show", "--data", last.Kept, "ark:12345/later")
	runStele(t, "show", "--data", data, "ark:12345/after")
	left, err := os.ReadDir(filepath.Dir(data))
	if err != nil || len(left) != 4 { // the registry, its search index, what was there before, and the key of its secrets
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// keepAsking reads and writes, each time on another connection, and is never refused.
func (o *apiUser) keepAsking(stop chan struct{}, name string) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		r, err := http.NewRequest("GET", o.at+"records/ark:12345/r1", nil)
		if i%2 == 0 {
			r, err = http.NewRequest("PUT", fmt.Sprintf("%srecords/ark:12345/%s-%d", o.at, name, i), strings.NewReader(`{"url":"https://example.org/"}`))
		}
		if err != nil {
			o.t.Error(err)
			return
		}
		r.Header.Set("Authorization", "Bearer "+o.token)
		r.Header.Set("Content-Type", "application/json")
		if i%2 != 0 {
			r.Header.Del("Content-Type")
		}
		a, err := client.Do(r)
		if err != nil {
			o.t.Errorf("%s %d: %v", name, i, err)
			return
		}
		text, _ := io.ReadAll(a.Body)
		_ = a.Body.Close()
		if a.StatusCode > 201 {
			o.t.Errorf("%s %d: %d %s", name, i, a.StatusCode, text)
			return
		}
	}
}

// repack makes another tar of one, whose entries change alters, except the last.
func repack(t *testing.T, text []byte, change func(head *tar.Header, content []byte)) []byte {
	t.Helper()
	in := tar.NewReader(bytes.NewReader(text))
	var b bytes.Buffer
	out := tar.NewWriter(&b)
	for {
		head, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if head.Name != "stele-backup-complete" {
			change(head, content)
		}
		if err := out.WriteHeader(head); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// spoil damages the tables of a store, or its log.
func spoil(head *tar.Header, content []byte) {
	if strings.HasSuffix(head.Name, ".sst") || strings.HasSuffix(head.Name, ".log") {
		for i := len(content) / 3; i < len(content)/3+64 && i < len(content); i++ {
			content[i] ^= 0x55
		}
	}
}

// TestLeftFoldersAreRemoved: what a server that was killed left beside the registry is
// removed, and nothing else.
func TestLeftFoldersAreRemoved(t *testing.T) {
	data := filepath.Join(t.TempDir(), "registry")
	mark := time.Now().UTC().Format("20060102T150405.000000000Z")
	gone := []string{data + ".sending-" + mark, data + ".staging-" + mark}
	stay := []string{data + ".before-" + mark, data + ".restored-" + mark, data + ".sending-" + "mine", data + "x" + ".sending-" + mark}
	for _, folder := range append(gone, stay...) {
		if err := os.Mkdir(folder, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	p, _ := startAPIUser(t, data)
	if code := p.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d", code)
	}
	for _, folder := range gone {
		if _, err := os.Stat(folder); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", folder, err)
		}
	}
	for _, folder := range stay {
		if _, err := os.Stat(folder); err != nil {
			t.Error(err)
		}
	}
}
