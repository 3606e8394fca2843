package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele/document/apijson"
)

// importLine is a line of an answer, as its reader sees it.
type importLine struct {
	Lines, Created, Updated, Unchanged, Refused, Namespaces int
	Done                                                    bool
	Line                                                    int
	ID, Status                                              string
	Version                                                 int
	Problem                                                 *apijson.Problem
}

func readImport(t testing.TB, body string) (lines []importLine) {
	t.Helper()
	for text := range strings.Lines(body) {
		var l importLine
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v in %q", err, body)
		}
		lines = append(lines, l)
	}
	return lines
}

// imports asks for an import, and returns what became of lines, and the last line.
func (s *site) imports(who, query, body string, status int) (told []importLine, last importLine) {
	s.t.Helper()
	a := s.ask(who, "POST", Root+"/import"+query, body, "Content-Type", apijson.Lines).want(s.t, status)
	if status != 200 {
		return nil, importLine{}
	}
	for _, l := range readImport(s.t, a.body) {
		if l.Line > 0 {
			told = append(told, l)
		}
		last = l
	}
	return told, last
}

func TestImport(t *testing.T) {
	s := newSite(t)
	text := strings.Join([]string{
		`# a remark`,
		`{"id":"ark:12345/i1","url":"https://example.org/i1"}`,
		``,
		`{"id":"ark:12345/x1","url":"https://example.org/other"}`,
		`{"id":"ark:12345/x2","url":"https://example.org/2"}`,
		`nonsense`,
		`{"id":"ark:99999/z","url":"https://example.org/z"}`,
		`{"namespace":{"scheme":"ark","prefix":"ark:12345/q"}}`,
		`{"id":"ark:12345/q1","url":"https://example.org/q1"}`,
		`{"id":"ark:12345/long","metadata":{"what":"` + strings.Repeat("x", maxLine) + `"}}`,
		`{"id":"ark:12345/last","url":"https://example.org/last"}`,
	}, "\n") // the last line has no end
	told, last := s.imports(theOwner, "?name=a/b%20c", text, 200)
	if last.Lines != 11 || last.Created != 3 || last.Unchanged != 1 || last.Refused != 4 || last.Namespaces != 1 || !last.Done {
		t.Errorf("got %+v", last)
	}
	wrong := map[int]int{4: 409, 6: 400, 7: 403, 10: 400}
	for _, l := range told {
		if l.Status != apijson.StatusRefused || l.Problem.Status != wrong[l.Line] {
			t.Errorf("line %d: %+v", l.Line, l.Problem)
		}
		delete(wrong, l.Line)
	}
	if len(wrong) > 0 {
		t.Errorf("nothing is told of %v", wrong)
	}
	var mark apijson.Import
	s.ask(theOwner, "GET", Root+"/import/a/b%20c", "").want(t, 200).read(t, &mark)
	if mark.Lines != 11 || !mark.Done || mark.Created != 3 {
		t.Errorf("got %+v", mark)
	}
	mark = apijson.Import{}
	s.ask(theEditor, "GET", Root+"/import/a/b%20c", "").want(t, 200).read(t, &mark)
	if mark.Lines != 0 {
		t.Errorf("somebody else's import is %+v", mark)
	}

	// It goes on where it was, or starts over.
	_, last = s.imports(theOwner, "?name=a/b%20c&from=11", `{"id":"ark:12345/more","url":"https://example.org/more"}`, 200)
	if last.Lines != 12 || last.Created != 4 || !last.Done {
		t.Errorf("got %+v", last)
	}
	s.imports(theOwner, "?name=a/b%20c&from=11", `{}`, 409)
	s.imports(theOwner, "?from=11", `{}`, 400)
	told, last = s.imports(theOwner, "?name=a/b%20c&update=true&each=true", text, 200)
	if last.Lines != 11 || last.Updated != 1 || last.Unchanged != 5 || len(told) != 9 {
		t.Errorf("got %+v", last)
	}
	for _, l := range told {
		if l.Line == 4 && (l.Status != apijson.StatusUpdated || l.Version != 2 || l.ID != "ark:12345/x1") {
			t.Errorf("got %+v", l)
		}
	}

	// A client's own bookmark is kept as it is.
	s.imports(theOwner, "?name=own&bookmark=%7Bx", `{"id":"ark:12345/own","url":"https://example.org/own"}`, 200)
	mark = apijson.Import{}
	s.ask(theOwner, "GET", Root+"/import/own", "").want(t, 200).read(t, &mark)
	if mark.Bookmark != "{x" || mark.Lines != 0 {
		t.Errorf("got %+v", mark)
	}
	s.imports(theOwner, "?bookmark=x", `{}`, 400)

	before, err := s.store.LastChange(s.admin)
	if err != nil {
		t.Fatal(err)
	}
	_, last = s.imports(theOwner, "?dry-run=true&name=dry", `{"id":"ark:12345/dry","url":"https://example.org/dry"}`, 200)
	if after, err := s.store.LastChange(s.admin); err != nil || after != before || last.Created != 1 {
		t.Errorf("a dry run made %d changes, %+v, %v", after-before, last, err)
	}
	s.ask(theOwner, "GET", Root+"/import/dry", "").want(t, 200).read(t, &mark)
	if mark.Lines != 0 {
		t.Errorf("a dry run has a bookmark, %+v", mark)
	}
	s.imports(theOwner, "?keep=true", `{}`, 403)
	_, last = s.imports(theAdmin, "?keep=true", `{"id":"ark:12345/kept","url":"https://example.org/kept","created":"2001-02-03T04:05:06Z","by":"eve"}`, 200)
	var rec struct{ Created, By string }
	if s.ask(theReader, "GET", records+"ark:12345/kept", "").want(t, 200).read(t, &rec); rec.By != "eve" || rec.Created != "2001-02-03T04:05:06Z" || last.Created != 1 {
		t.Errorf("got %+v, %+v", rec, last)
	}
	s.imports("", "", `{}`, 401)
	_, last = s.imports(theReader, "", `{"id":"ark:12345/r","url":"https://example.org/r"}`, 200)
	if last.Refused != 1 {
		t.Errorf("got %+v", last)
	}
}

// TestImportStreams: chunks are committed and reported while the client goes on sending, and
// what was sent before the connection broke is imported.
func TestImportStreams(t *testing.T) {
	s := newSite(t)
	in, out := io.Pipe()
	r, err := http.NewRequest("POST", s.serve()+Root+"/import?name=slow", in)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", apijson.Lines)
	r.Header.Set("Authorization", "Bearer "+s.tokens[theEditor])
	go fmt.Fprintf(out, `{"id":"ark:12345/s1","url":"https://example.org/1"}`+"\n")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	answers := bufio.NewReader(a.Body)
	for i := 1; i < 4; i++ {
		line, err := answers.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if l := readImport(t, line)[0]; l.Lines != i || l.Created != i || l.Done {
			t.Errorf("got %+v", l)
		}
		s.ask("", "GET", fmt.Sprintf("%sark:12345/s%d", records, i), "").want(t, 200)
		fmt.Fprintf(out, `{"id":"ark:12345/s%d","url":"https://example.org/1"}`+"\n", i+1)
	}
	fmt.Fprint(out, `{"id":"ark:12345/half"`)
	if err := out.CloseWithError(io.ErrClosedPipe); err != nil {
		t.Fatal(err)
	}
	// Whether the client sees the end of the answer or not, the server commits.
	_, _ = io.ReadAll(answers)
	var mark apijson.Import
	for range 3000 {
		s.ask(theEditor, "GET", Root+"/import/slow", "").want(t, 200).read(t, &mark)
		if mark.Lines == 4 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if mark.Lines != 4 || mark.Done {
		t.Errorf("got %+v", mark)
	}
}

// TestOwnBookmarkComesLast: a client's own bookmark is written only when all that the client
// sent is imported.
func TestOwnBookmarkComesLast(t *testing.T) {
	s := newSite(t)
	in, out := io.Pipe()
	r, err := http.NewRequest("POST", s.serve()+Root+"/import?name=own&bookmark=all", in)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", apijson.Lines)
	r.Header.Set("Authorization", "Bearer "+s.tokens[theEditor])
	go fmt.Fprintln(out, `{"id":"ark:12345/first","url":"https://example.org/1"}`)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(a.Body)
	lines.Scan() // the first line is imported
	_ = out.CloseWithError(io.ErrUnexpectedEOF)
	for lines.Scan() {
		continue
	}
	a.Body.Close()
	bookmark := func() string {
		var mark apijson.Import
		s.ask(theEditor, "GET", Root+"/import/own", "").want(t, 200).read(t, &mark)
		return mark.Bookmark
	}
	if got := bookmark(); got != "" {
		t.Errorf("the bookmark is %q, and what follows the first line would be left out", got)
	}
	s.imports(theEditor, "?name=own&bookmark=all", `{"id":"ark:12345/first","url":"https://example.org/1"}`, 200)
	if got := bookmark(); got != "all" {
		t.Errorf("the bookmark is %q", got)
	}
}

// TestImportMany: an import of several chunks, sent in pieces of any size, has all lines
// with their numbers.
func TestImportMany(t *testing.T) {
	s := newSite(t)
	var text bytes.Buffer
	for i := range 25_000 {
		if i%1000 == 7 {
			fmt.Fprintln(&text, "nonsense")
			continue
		}
		fmt.Fprintf(&text, `{"id":"ark:12345/n%d","url":"https://example.org/%d"}`+"\n", i, i)
	}
	r, err := http.NewRequest("POST", s.serve()+Root+"/import", pieces{&text})
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", apijson.Lines)
	r.Header.Set("Authorization", "Bearer "+s.tokens[theEditor])
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	seen, chunks, last := 0, 0, importLine{}
	for _, l := range readImport(t, string(body)) {
		if l.Line > 0 {
			if l.Line%1000 != 8 {
				t.Errorf("line %d: %+v", l.Line, l.Problem)
			}
			seen++
			continue
		}
		chunks, last = chunks+1, l
	}
	if seen != 25 || chunks < 3 || last.Created != 24_975 || last.Refused != 25 || last.Lines != 25_000 || !last.Done {
		t.Errorf("%d refused in %d chunks, %+v", seen, chunks, last)
	}
}

// pieces reads at random sizes.
type pieces struct{ r io.Reader }

func (p pieces) Read(b []byte) (int, error) { return p.r.Read(b[:1+rand.N(len(b))]) }

// TestSlowImport: the server does not wait for a client that sends next to nothing.
func TestSlowImport(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Patience = 50 * time.Millisecond })
	in, out := io.Pipe()
	defer out.Close()
	r, err := http.NewRequest("POST", s.serve()+Root+"/import?name=slow", in)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", apijson.Lines)
	r.Header.Set("Authorization", "Bearer "+s.tokens[theEditor])
	go func() {
		for range 1000 {
			if _, err := fmt.Fprintln(out); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	// The answer ends after the reason.
	if body, err := io.ReadAll(a.Body); !strings.Contains(string(body), "/api/v1#too-slow") || strings.Contains(string(body), "done") {
		t.Errorf("got %d %s, %v", a.StatusCode, body, err)
	}
}

// Secrets of handles are imported for administrators only, and not in clear from another machine. No answer has them.
func TestImportSecrets(t *testing.T) {
	s := newSiteWith(t, nil, func(o *Options) {
		o.ClientAddr = func(r *http.Request) netip.Addr { return netip.MustParseAddr(r.Header.Get("X-Test")) }
	})
	const line = `{"id":"hdl:20.500.1/USER","values":[{"index":300,"type":"HS_SECKEY","data":"b3BlbiBzZXNhbWU=","permissions":["admin-write","admin-read"]}]}`
	ask := func(who, from, query string, head ...string) reply {
		t.Helper()
		return s.ask(who, "POST", Root+"/import"+query, line, append(head, "Content-Type", apijson.Lines, "X-Test", from)...)
	}
	for _, tt := range []struct {
		who, from, query, want string
		status                 int
	}{
		{"ann", "127.0.0.1", "?secrets=true", "only an administrator may import secrets", 403},
		{"root", "192.0.2.7", "?secrets=true", "not imported over http", 403},
		{"root", "192.0.2.7", "", "would keep that secret in clear", 200},
	} {
		a := ask(tt.who, tt.from, tt.query).want(t, tt.status)
		if !strings.Contains(a.body, tt.want) || strings.Contains(a.body, "b3BlbiBzZXNhbWU") {
			t.Errorf("%s from %s: %s", tt.who, tt.from, a.body)
		}
	}
	// A proxy on the machine of the server, which the server does not trust, passes on what came in clear.
	for _, head := range []string{"X-Forwarded-For", "Forwarded", "Via"} {
		if a := ask("root", "127.0.0.1", "?secrets=true", head, "x").want(t, 403); !strings.Contains(a.body, "not imported over http") {
			t.Errorf("by a proxy, with %s: %s", head, a.body)
		}
	}
	// From the machine of the server it is accepted; without a key to encrypt the secret nothing is written.
	if a := ask("root", "127.0.0.1", "?secrets=true"); strings.Contains(a.body, "b3BlbiBzZXNhbWU") || strings.Contains(a.body, `"created":1`) || strings.Contains(a.body, "not imported over http") {
		t.Errorf("without a key: %s %s", a.Status, a.body)
	}
}

// TestImportOnlyAfter: of two clients that continue the same import, the second is refused.
func TestImportOnlyAfter(t *testing.T) {
	s := newSite(t)
	send := func(id, bookmark, held string) reply {
		t.Helper()
		return s.ask("root", "POST", Root+"/import?name=harvest&bookmark="+bookmark+"&if-bookmark="+held, `{"id":"`+id+`","url":"https://example.org/"}`, "Content-Type", apijson.Lines)
	}
	send("ark:12345/h1", "one", "none").want(t, http.StatusOK)
	one := apijson.BookmarkDigest([]byte("one"))
	for _, held := range []string{"none", apijson.BookmarkDigest([]byte("two"))} {
		if a := send("ark:12345/h2", "two", held).want(t, http.StatusConflict); !strings.Contains(a.body, "import.runs-twice") {
			t.Error(a.body)
		}
	}
	s.ask("root", "GET", Root+"/records/ark:12345/h2", "").want(t, http.StatusNotFound)
	send("ark:12345/h2", "two", one).want(t, http.StatusOK)
	send("ark:12345/h3", "three", one).want(t, http.StatusConflict)
}
