package usage

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
)

// TestMaskLog takes readers out of log files.
func TestMaskLog(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`192.0.2.1 - - [17/Nov/2026:12:00:00 +0000] "GET /ark:12345/x1?mail=ann@example.org HTTP/1.1" 302 0 "https://www.example.org/page?q=ann" "curl/8"`,
			`r******** - - [17/Nov/2026:12:00:00 +0000] "GET /ark:12345/x1?xxxxxxxxxxxxxxxxxxxx HTTP/1.1" 302 0 "https://www.example.org/xxxxxxxxxx" "curl/8"`},
		{`2001:db8::1 id ann lee [17/Nov/2026:12:00:00 +0000] "GET /a HTTP/1.1" 200 12 "https://ann@example.org" "a \"b\" \\ \x22" "10.0.0.1" 0.003`,
			`r********** xx xxx xxx [17/Nov/2026:12:00:00 +0000] "GET /a HTTP/1.1" 200 12 "https://xxx@example.org" "a \"b\" \\ \x22"xxxxxxxxxxxxxxxxx`},
		{`h - - [17/Nov/2026:12:00:00 +0000] "GET /a HTTP/1.1" 302 - "-" "-"`, `* - - [17/Nov/2026:12:00:00 +0000] "GET /a HTTP/1.1" 302 - "-" "-"`},
		{`192.0.2.1 - - [17/Nov/2026:12:00:00 +0000] "GET /a HTTP/1.1" 302 5 10.0.0.1 "x"`, `r******** - - [17/Nov/2026:12:00:00 +0000] "GET /a HTTP/1.1" 302 5 xxxxxxxxxxxx`},
		{`192.0.2.1 - - [17/Nov/2026:12:00:00 +0000] "GET /a HTTP/1.1" 302 5`, `r******** - - [17/Nov/2026:12:00:00 +0000] "GET /a HTTP/1.1" 302 5`},
		{`192.0.2.1 - - [17/Nov/2026:12:00:00 +0000] "GET /a HTTP/1.1" 302 5 "ann" "cut off by 10.0.0.1`, `r******** - - [17/Nov/2026:12:00:00 +0000] "GET /a HTTP/1.1" 302 5 xxxxxxxxxxxxxxxxxxxxxxxxxx`},
		{`192.0.2.1 - - [17/Nov/2026:12:00:00 +0000] "GET /a?b c\"d?e HTTP/1.1" 302 5`, `r******** - - [17/Nov/2026:12:00:00 +0000] "GET /a?xxxxxxxx HTTP/1.1" 302 5`},
		{`192.0.2.1 - - [17/Nov/2026:12:00:00 +0000] "GET /r/uri-res/N2L?urn:x:1 HTTP/1.1" 302 5`, `r******** - - [17/Nov/2026:12:00:00 +0000] "GET /r/uri-res/N2L?urn:x:1 HTTP/1.1" 302 5`},
		{`192.0.2.1 - - [17/Nov/2026:12:00:00 +0000] "GET /a?ann" 400 5`, `r******** - - [17/Nov/2026:12:00:00 +0000] "xxxxxxxxxx" 400 5`},
		{`192.0.2.1 - - [17/Nov/2026:12:00:00 +0000] "GET /a HTTP/ann@example.org" 400 5`, `r******** - - [17/Nov/2026:12:00:00 +0000] "xxxxxxxxxxxxxxxxxxxxxxxxxxx" 400 5`},
		{`192.0.2.1 - - [17/Nov/2026:12:00:00 +0000] "GET /a HTTP/2" 302 5`, `r******** - - [17/Nov/2026:12:00:00 +0000] "GET /a HTTP/2" 302 5`},
		{`192.0.2.1 what is this?`, `xxxxxxxxx xxxx xx xxxxx`},
		{``, ``},
	} {
		out, err := io.ReadAll(iotest.HalfReader(MaskLog(strings.NewReader(c.line+"\r\n"+c.line+"\n"), false)))
		lines := strings.Split(string(out), "\n")
		if err != nil || len(lines) != 3 || lines[0] != lines[1]+"\r" || len(lines[1]) != len(c.line) {
			t.Fatalf("%q, %v", out, err)
		}
		have := []byte(lines[1])
		for i := range c.want {
			if c.want[i] == '*' && (have[i] != c.line[i] || i > 0) {
				have[i] = '*'
			}
		}
		if string(have) != c.want && c.line[:1] != "h" || strings.Contains(lines[1], "192.0.2.1") || strings.Contains(lines[1], "10.0.0.1") {
			t.Errorf("%s\n%s", have, c.want)
		}
	}
	long := strings.Repeat("192.0.2.1 ", maxLogLine/4)
	out, err := io.ReadAll(MaskLog(strings.NewReader(long+"\n"+long), false))
	if err != nil || len(out) != 2*len(long)+1 || bytes.Contains(out, []byte("1")) {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}

// FuzzMaskLog checks that what is counted of a line, and what is known of a file by it, stays the same, and that its length does.
func FuzzMaskLog(f *testing.F) {
	for _, line := range []string{
		`192.0.2.1 - - [17/Nov/2026:12:00:00 +0000] "GET /ark:12345/x1 HTTP/1.1" 302 0 "https://example.org/" "Mozilla/5.0"`,
		`2001:db8::1 - ann [17/Nov/2026:12:00:00 +0000] "HEAD /\x22 HTTP/2.0" 200 - "http://a@b?c" "\"\\" more`,
		`a b c [17/Nov/2026:12:00:00 +0000] "-" 400 0 "" ""`, `- - - [] "" 200 0 "\x`, "\x00", `"\`, "a\rb",
	} {
		f.Add(line)
	}
	f.Add(`192.0.2.1 - - [17/Nov/2026:12:00:00 +0000] "GET /ark:12345/x1?a\"?b c HTTP/1.1" 302 0 "-" "Mozilla/5.0"`)
	f.Add(`192.0.2.1 - - [17/Nov/2026:12:00:00 +0000] "GET /uri-res/N2L?urn:a:b HTTP/1.1" 302 0 "-" "Mozilla/5.0"`)
	f.Fuzz(func(t *testing.T, line string) {
		if strings.Contains(line, "\n") || strings.HasSuffix(line, "\r") || len(line) >= maxLogLine || hasOddEscape(line) {
			return
		}
		out, err := io.ReadAll(MaskLog(strings.NewReader(line+"\n"), true))
		if err != nil || len(out) != len(line)+1 {
			t.Fatalf("%q, %v", out, err)
		}
		for _, combined := range []bool{false, true} {
			was, ok := parseLogLine(line, combined)
			is, still := parseLogLine(string(out[:len(line)]), combined)
			if ok != still || was.at != is.at || was.method != is.method || beforeQuery(was.target) != beforeQuery(is.target) || strings.Contains(beforeQuery(was.target), nameInQuery) && was.target != is.target || was.status != is.status || was.agent != is.agent || (was.user == "") != (is.user == "") {
				t.Fatalf("%+v became %+v: %q", was, is, out)
			}
			if a, b := refererHost(was.referrer), refererHost(is.referrer); !strings.Contains(line, `\`) && registrable(a) != registrable(b) {
				t.Fatalf("%q became %q", was.referrer, is.referrer)
			}
		}
	})
}

func beforeQuery(target string) string {
	path, _, _ := strings.Cut(target, "?")
	return path
}

// TestMaskNetworks checks that readers of one network are one reader in a masked file if only networks are told apart.
func TestMaskNetworks(t *testing.T) {
	line := ` - - [17/Nov/2026:12:00:00 +0000] "GET /ark:12345/x1 HTTP/1.1" 302 0` + "\n"
	for networks, want := range map[bool]int{true: 4, false: 7} {
		out, err := io.ReadAll(MaskLog(strings.NewReader("192.0.2.1"+line+"192.0.2.9"+line+"192.0.3.1"+line+"192.0.2.200"+line+"2001:db8::1"+line+"2001:db8::2:345"+line+"a.example"+line), networks))
		readers := make(map[string]bool)
		for text := range strings.Lines(string(out)) {
			reader, _, _ := strings.Cut(text, " ")
			readers[reader] = true
		}
		if err != nil || len(readers) != want {
			t.Errorf("networks %t: %d readers, want %d (%v):\n%s", networks, len(readers), want, err, out)
		}
	}
}

// TestUploads counts a file that comes in pieces, masked: the figures are those of the file itself, which is known then.
func TestUploads(t *testing.T) {
	h := newHouse(t)
	h.now = noon.Add(50 * time.Hour)
	var l logger
	for n := range 3000 {
		l.add(time.Duration(n)*50*time.Second, fmt.Sprint("192.0.2.", n%40), fmt.Sprint("GET /ark:12345/x", n%7), 302, firefox)
		if n%9 == 0 {
			l.add(time.Duration(n)*50*time.Second+10*time.Second, fmt.Sprint("192.0.2.", n%40), fmt.Sprint("GET /ark:12345/x", n%7), 302, firefox)
		}
	}
	masked, err := io.ReadAll(MaskLog(strings.NewReader(l.String()), false))
	if err != nil {
		t.Fatal(err)
	}
	u := &Uploads{Now: h.clock, Importer: func() *LogImporter { return h.importer(h.r) }}
	id, err := u.Begin()
	if err != nil {
		t.Fatal(err)
	}
	const piece = 50_000
	for at := 0; at < len(masked); at += piece {
		for range 2 { // the answer to the first got lost
			if size, err := u.Add(id, int64(at), masked[at:min(at+piece, len(masked))]); err != nil || size != int64(min(at+piece, len(masked))) {
				t.Fatal(size, err)
			}
		}
	}
	if _, err := u.Add(id, 1, []byte("x")); stele.KindOf(err) != stele.Conflict {
		t.Errorf("a piece at another place: %v", err)
	}
	o := apijson.UsageLogOptions{Name: "access.log", Size: int64(len(masked)), Masked: true}
	sum, err := u.Count(t.Context(), id, o, nil)
	if err != nil || sum.Counted == 0 || sum.Doubles == 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	if _, err := u.Add(id, 0, nil); stele.KindOf(err) != stele.NotFound {
		t.Errorf("after it was counted: %v", err)
	}
	again, err := h.importer(h.r).Import(t.Context(), "access.log", opener(l.String())) // the file itself
	if err != nil || again.Lines != 0 {
		t.Errorf("%+v, %v", again, err)
	}
	other := newHouse(t)
	other.now = h.now
	want, err := other.importer(other.r).Import(t.Context(), "access.log", opener(l.String()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(other.cells(), h.cells()); diff != "" {
		t.Error(diff)
	}

	// There are a few at a time, and those that nobody sends any more are forgotten.
	var ids []string
	for range maxUploads {
		id, err := u.Begin()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if _, err := u.Begin(); stele.KindOf(err) != stele.Exhausted {
		t.Errorf("one too many: %v", err)
	}
	if err := u.Drop(ids[0]); err != nil {
		t.Error(err)
	}
	h.now = h.now.Add(uploadIdle + time.Second)
	if _, err := u.Begin(); err != nil || len(u.files) != 1 {
		t.Errorf("%v, %d are there", err, len(u.files))
	}
	if _, err := u.Count(t.Context(), ids[1], o, nil); stele.KindOf(err) != stele.NotFound {
		t.Errorf("of one that is forgotten: %v", err)
	}
	id, err = u.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Count(t.Context(), id, o, nil); stele.KindOf(err) != stele.Conflict {
		t.Errorf("of one that is not there whole: %v", err)
	}
}

// TestForgetUploads: what a client left behind is forgotten without another client coming.
func TestForgetUploads(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	u := &Uploads{Now: func() time.Time { return now }}
	id, err := u.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Forget(); err != nil || len(u.files) != 1 {
		t.Errorf("a file that is being sent is forgotten (%v)", err)
	}
	now = now.Add(uploadIdle + time.Second)
	if err := u.Forget(); err != nil || len(u.files) != 0 {
		t.Errorf("there are %d files (%v)", len(u.files), err)
	}
	if _, err := u.Add(id, 0, []byte("x")); stele.KindOf(err) != stele.NotFound {
		t.Errorf("it is written: %v", err)
	}
}
