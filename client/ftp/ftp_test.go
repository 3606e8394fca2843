package ftp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// actor is a server with scripted replies. Commands are answered by the first
// word; %PORT% is where its data waits, %P1% and %P2% the port's bytes.
type actor struct {
	t       *testing.T
	addr    string
	greets  string
	says    map[string]string
	data    string
	after   string // what it says when the data is sent; "" is silence
	mu      sync.Mutex
	heard   []string
	running sync.WaitGroup
	started sync.Once
}

func newActor(t *testing.T, data string, says map[string]string) *actor {
	t.Helper()
	a := &actor{t: t, greets: "220 here\r\n", data: data, after: "226 done\r\n", says: map[string]string{
		"USER": "331 who?\r\n", "PASS": "230 you\r\n", "TYPE": "200 ok\r\n", "CWD": "250 ok\r\n", "SIZE": fmt.Sprintf("213 %d\r\n", len(data)),
		"MDTM": "213 20261115140300\r\n", "EPSV": "229 ok (|||%PORT%|)\r\n", "REST": "350 ok\r\n", "RETR": "150 here it comes\r\n",
	}}
	for k, v := range says {
		a.says[k] = v
	}
	return a
}

// start starts the server, when all that it will say is known.
func (a *actor) start() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		a.t.Fatal(err)
	}
	a.addr = l.Addr().String()
	a.running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			a.running.Go(func() { a.serve(conn) })
		}
	})
	a.t.Cleanup(func() {
		_ = l.Close()
		a.running.Wait()
	})
}

func (a *actor) serve(conn net.Conn) {
	defer conn.Close()
	wait, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return
	}
	defer wait.Close()
	port := wait.Addr().(*net.TCPAddr).Port
	fill := strings.NewReplacer("%PORT%", fmt.Sprint(port), "%P1%", fmt.Sprint(port>>8), "%P2%", fmt.Sprint(port&255))
	_, _ = io.WriteString(conn, a.greets)
	r := bufio.NewScanner(conn)
	from := 0
	for r.Scan() {
		line := strings.TrimRight(r.Text(), "\r")
		a.mu.Lock()
		a.heard = append(a.heard, line)
		a.mu.Unlock()
		word, rest, _ := strings.Cut(line, " ")
		if word == "REST" {
			_, _ = fmt.Sscan(rest, &from)
		}
		if _, err := io.WriteString(conn, fill.Replace(a.says[word])); err != nil || a.says[word] == "" {
			continue
		}
		if word == "RETR" && strings.HasPrefix(a.says[word], "1") {
			data, err := wait.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(data, a.data[from:])
			_ = data.Close()
			_, _ = io.WriteString(conn, a.after)
		}
	}
}

// told returns the commands so far.
func (a *actor) told() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.heard, "; ")
}

// read reads a file from the actor.
func (a *actor) read(ctx context.Context, path string, from int64, o Options) (string, error) {
	a.started.Do(a.start)
	u, err := url.Parse("ftp://host" + path)
	if err != nil {
		a.t.Fatal(err)
	}
	p, err := ParsePath(u)
	if err != nil {
		return "", err
	}
	host, port, _ := net.SplitHostPort(a.addr)
	c, err := Open(ctx, host, port, o)
	if err != nil {
		return "", err
	}
	defer c.Close()
	f, err := c.File(p)
	if err != nil {
		return "", err
	}
	r, err := f.Open(from)
	if err != nil {
		return "", err
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	return string(text), err
}

func TestRead(t *testing.T) {
	a := newActor(t, "hello", nil)
	got, err := a.read(t.Context(), "/pub/deep/a%20b.txt;type=i", 2, Options{})
	if err != nil || got != "llo" {
		t.Errorf("%q, %v", got, err)
	}
	want := "USER anonymous; PASS anonymous@; TYPE I; CWD pub; CWD deep; SIZE a b.txt; MDTM a b.txt; EPSV; REST 2; RETR a b.txt"
	if a.told() != want {
		t.Errorf("said %s, want %s", a.told(), want)
	}
}

// TestManners: variants of replies, and refusals.
func TestManners(t *testing.T) {
	long := strings.Repeat("220-welcome\r\n", maxLines+2)
	for _, tt := range []struct {
		about string
		says  map[string]string
		greet string
		after string
		kind  stele.Kind
		want  string // of the error; "" if there is none
	}{
		{about: "no password", says: map[string]string{"USER": "230 come in\r\n"}},
		{about: "a long greeting", greet: "220-hello\n220-220 is our code\n 220 not yet\n221 nor now\n220 now\n"},
		{about: "a while", greet: strings.Repeat("120 soon\r\n", maxDelays) + "220 now\r\n"},
		{about: "PASV", says: map[string]string{"EPSV": "500 what?\r\n", "PASV": "227 Entering (127,0,0,1,%P1%,%P2%).\r\n"}},
		{about: "PASV to somebody else", says: map[string]string{"EPSV": "500 what?\r\n", "PASV": "227 192,0,2,1,%P1%,%P2%\r\n"}},
		{about: "no SIZE", says: map[string]string{"SIZE": "502 no\r\n", "MDTM": "213 tomorrow\r\n"}},
		{about: "full", greet: "421 too many\r\n", kind: stele.Unavailable, want: "421"},
		{about: "not for everybody", says: map[string]string{"PASS": "530 no\r\n"}, kind: stele.Unauthenticated, want: "login"},
		{about: "an account", says: map[string]string{"PASS": "332 account?\r\n"}, kind: stele.Unauthenticated, want: "login"},
		{about: "no folder", says: map[string]string{"CWD": "550 no\r\n"}, kind: stele.NotFound, want: "its folder"},
		{about: "no file", says: map[string]string{"RETR": "550 no\r\n"}, kind: stele.NotFound, want: "the file"},
		{about: "busy", says: map[string]string{"RETR": "450 later\r\n"}, kind: stele.Unavailable, want: "the file"},
		{about: "no passive mode", says: map[string]string{"EPSV": "500 no\r\n", "PASV": "500 no\r\n"}, kind: stele.Conflict, want: "passive mode"},
		{about: "a port of others", says: map[string]string{"EPSV": "229 (|||25|)\r\n"}, kind: stele.Conflict, want: "another service"},
		{about: "a port of others by PASV", says: map[string]string{"EPSV": "500 no\r\n", "PASV": "227 (127,0,0,1,0,25)\r\n"}, kind: stele.Conflict, want: "another service"},
		{about: "a broken transfer", after: "426 aborted\r\n", kind: stele.Unavailable, want: "broke off"},
		{about: "a transfer without end", after: "200 fine\r\n", kind: stele.Unavailable, want: "broke off"},
		{about: "no FTP", greet: "SSH-2.0-OpenSSH_9.2\r\n", kind: stele.Unavailable, want: errReply.Error()},
		{about: "a long line", greet: "220 " + strings.Repeat("x", 2*maxLine) + "\r\n", kind: stele.Unavailable, want: "too long"},
		{about: "an endless greeting", greet: long, kind: stele.Unavailable, want: "has no end"},
		{about: "a while without end", greet: strings.Repeat("120 soon\r\n", maxDelays+1) + "220 now\r\n", kind: stele.Unavailable, want: "120"},
		{about: "escapes", greet: "500 \x1b[2J\r\n", kind: stele.Conflict, want: `\x1b`},
	} {
		t.Run(tt.about, func(t *testing.T) {
			a := newActor(t, "hello", tt.says)
			if tt.greet != "" {
				a.greets = tt.greet
			}
			if tt.after != "" {
				a.after = tt.after
			}
			got, err := a.read(t.Context(), "/pub/a", 0, Options{})
			if tt.want == "" {
				if err != nil || got != "hello" {
					t.Errorf("%q, %v", got, err)
				}
				return
			}
			if err == nil || stele.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v of kind %v, want %q of %v", err, stele.KindOf(err), tt.want, tt.kind)
			}
		})
	}
}

// TestBounce: the client connects to the server that was asked only, whatever it says.
func TestBounce(t *testing.T) {
	a := newActor(t, "hello", map[string]string{"EPSV": "500 no\r\n", "PASV": "227 (192,0,2,7,%P1%,%P2%)\r\n"})
	var dialled []string
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled = append(dialled, address)
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	if got, err := a.read(t.Context(), "/a", 0, Options{Dial: dial}); err != nil || got != "hello" {
		t.Errorf("%q, %v", got, err)
	}
	for _, address := range dialled {
		if host, _, _ := net.SplitHostPort(address); host != "127.0.0.1" {
			t.Errorf("it connected to %s", address)
		}
	}
	if len(dialled) != 2 {
		t.Errorf("it connected to %q", dialled)
	}
}

// TestNoRest: the error of a server that can't resume says so, and nothing is read.
func TestNoRest(t *testing.T) {
	a := newActor(t, "hello", map[string]string{"REST": "502 no\r\n"})
	if _, err := a.read(t.Context(), "/a", 3, Options{}); !errors.Is(err, ErrNoRest) {
		t.Error(err)
	}
}

// TestSilence: the client does not wait for a server that goes silent, at any moment.
func TestSilence(t *testing.T) {
	for _, word := range []string{"greeting", "USER", "EPSV", "RETR", "end"} {
		t.Run(word, func(t *testing.T) {
			a := newActor(t, "hello", nil)
			switch word {
			case "greeting":
				a.greets = ""
			case "end":
				a.after = ""
			default:
				a.says[word] = ""
			}
			_, err := a.read(t.Context(), "/a", 0, Options{Idle: 100 * time.Millisecond})
			if !errors.Is(err, errSilence) || stele.KindOf(err) != stele.Unavailable {
				t.Errorf("%v", err)
			}
		})
	}
	a := newActor(t, "hello", map[string]string{"RETR": ""})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := a.read(ctx, "/a", 0, Options{Idle: time.Hour}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestParsePath(t *testing.T) {
	for text, want := range map[string]string{
		"ftp://h/a":               "a",
		"ftp://h/a/b/c.txt":       "a|b|c.txt",
		"ftp://h/%2Fetc/motd":     "/etc|motd",
		"ftp://h//a":              "a",
		"ftp://h/a;type=a":        "a",
		"ftp://h/a%20b/%C3%BC":    "a b|ü",
		"ftp://h/%E9":             "\xe9",
		"ftp://h/":                "",
		"ftp://h":                 "",
		"ftp://h/a/":              "",
		"ftp://h/a;type=d":        "",
		"ftp://h/a%0D%0ADELE%20x": "",
		"ftp://h/a%0Ab/c":         "",
		"ftp://h/%00":             "",
		"ftp://h/%FF%F4":          "",
		"ftp://h" + strings.Repeat("/a", maxFolders+2): "",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := ParsePath(u)
		if got := strings.Join(append(p.folders, p.name), "|"); got != want || (err == nil) != (want != "") {
			t.Errorf("%.80q: %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestParseReplies(t *testing.T) {
	for text, want := range map[string]uint16{
		"Entering Extended Passive Mode (|||6446|)": 6446, "(!!!1!)": 1, "(|||65535|)": 65535, "(|||65536|)": 0, "(|||0|)": 0, "|||6446|": 0,
		"(||||)": 0, "(|1|192.0.2.1|6446|)": 0, "(|||-5|)": 0, "(11111)": 0, "(|||6446": 0, "": 0,
	} {
		if got, ok := parseExtended(text); got != want && ok || ok != (want > 0) {
			t.Errorf("%q: %d, %v, want %d", text, got, ok, want)
		}
	}
	for text, want := range map[string]string{
		"Entering Passive Mode (192,0,2,1,25,46).": "192.0.2.1:6446", "=127,0,0,1,4,0": "127.0.0.1:1024", "(1,2,3,4,5)": "", "(1,2,3,4,5,6,7)": "",
		"(256,2,3,4,5,6)": "", "(1,2,3,4,0,0)": "", "no": "", "(1,,3,4,5,6)": "",
	} {
		got, ok := parsePassive(text)
		if ok != (want != "") || ok && got != netip.MustParseAddrPort(want) {
			t.Errorf("%q: %v, %v, want %q", text, got, ok, want)
		}
	}
	if at, ok := parseTime("20261115140300.123"); !ok || !at.Equal(time.Date(2026, 11, 15, 14, 3, 0, 0, time.UTC)) {
		t.Errorf("%v, %v", at, ok)
	}
	for _, text := range []string{"", "-1", "99999999999999999999", "5 bytes"} {
		if n, ok := parseSize(text); ok {
			t.Errorf("%q is the size %d", text, n)
		}
	}
}

// FuzzReply: whatever a server says, it is a reply or an error, and the client reads a
// bounded amount for it.
func FuzzReply(f *testing.F) {
	for _, seed := range []string{
		"220 hello\r\n", "220-a\r\n220-b\r\n220 c\r\n", "220-a\r\nb\n221 c\r\n220\n", "229 ok (|||6446|)\r\n", "227 (127,0,0,1,4,1)\r\n", "213 5\r\n",
		"213 20261115140300\r\n", "99 x\r\n", "6\r\n", "220", "220x\r\n", strings.Repeat("220-a\r\n", 600), "220 " + strings.Repeat("x", 3000), "\xff\xf4\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in := strings.NewReader(string(b))
		r := bufio.NewReaderSize(in, maxLine)
		reply, err := readReply(r)
		if read := len(b) - in.Len(); read > maxLine*(maxLines+2) {
			t.Errorf("%d bytes were read for one reply", read)
		}
		if err != nil {
			return
		}
		if reply.Code < 100 || reply.Code > 599 || strings.ContainsAny(reply.Text, "\n") || len(reply.Text) > maxLine {
			t.Errorf("%+v", reply)
		}
		if !strings.HasPrefix(string(b), fmt.Sprint(reply.Code)) {
			t.Errorf("%+v of %q", reply, b)
		}
		if port, ok := parseExtended(reply.Text); ok && port == 0 {
			t.Errorf("port 0 of %q", reply.Text)
		}
		if at, ok := parsePassive(reply.Text); ok && (at.Port() == 0 || !at.Addr().Is4()) {
			t.Errorf("%v of %q", at, reply.Text)
		}
		if n, ok := parseSize(reply.Text); ok && n < 0 {
			t.Errorf("size %d of %q", n, reply.Text)
		}
		_, _ = parseTime(reply.Text)
		_ = reply.String()
	})
}
