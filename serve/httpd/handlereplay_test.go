package httpd

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/wire/hdl"
)

// restExchange is a request to the reference implementation, and its answer.
type restExchange struct {
	title, method, path, body string
	secure, certified         bool
	head                      map[string]string

	status   int
	wantHead http.Header
	want     string
}

// restRecording reads handle-rest-auth-9.2.0.txt.
func restRecording(t *testing.T) (list []*restExchange) {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "handle-rest-auth-9.2.0.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var x *restExchange
	certified := false
	s := bufio.NewScanner(file)
	for s.Scan() {
		line := s.Text()
		switch mark, rest, _ := strings.Cut(line, " "); mark {
		case "#":
			certified = certified || strings.Contains(line, "certificate of the next requests")
		case "###":
			x = &restExchange{title: rest, certified: certified, head: make(map[string]string), wantHead: make(http.Header)}
			list = append(list, x)
		case ">":
			name, value, isHead := strings.Cut(rest, ": ")
			switch {
			case x.method == "":
				f := strings.Fields(rest)
				x.method, x.path, x.secure = f[0], f[1], f[2] == "(https)"
			case isHead && !strings.ContainsAny(name, `{["`):
				x.head[name] = value
			default:
				x.body = rest
			}
		case "<":
			name, value, isHead := strings.Cut(rest, ": ")
			switch {
			case x.status == 0:
				if x.status, err = strconv.Atoi(strings.Fields(rest)[1]); err != nil {
					t.Fatal(err)
				}
			case isHead && !strings.ContainsAny(name, `{["`):
				x.wantHead.Add(name, value)
			default:
				x.want = rest
			}
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// restEdits are exchanges that are not as recorded here, and why. An edit changes the request and what is expected;
// nil: the exchange is not sent.
var restEdits = map[string]struct {
	why  string
	edit func(x *restExchange)
}{
	"PUT, Basic, no index (0): any HS_SECKEY of that handle": {"the reference accepts the proof and then forgets which value it was of (section 10); here it is that value's identity", nil},
	"PUT value without type": {"the message is an exception of the reference's language", func(x *restExchange) {
		x.want = `{"responseCode":4,"message":"Invalid JSON in PUT request: values[0] has no type"}`
	}},
	"PUT permissions and ttl forms": {"permissions of five digits are refused", func(x *restExchange) {
		x.body = strings.Replace(x.body, `"01100"`, `"1100"`, 1)
	}},
	`GET it with authentication: restricted values too (note what "0000" became)`: {"the reference can't take away the right of administrators to read (section 8, quirks); here they do not see such a value", func(x *restExchange) {
		begin, end := strings.Index(x.want, `{"index":1,`), strings.Index(x.want, `{"index":2,`)
		x.want = x.want[:begin] + x.want[end:]
	}},
	"PUT /api/sessions/this, wrong MAC (401)": {"the reference says 200 if somebody was known in the session before (section 8, not to be copied)", func(x *restExchange) {
		x.status = http.StatusUnauthorized
	}},
	"certificate whose key is not the handle's: the TLS handshake fails: SSLError": {"Go's handshake does not ask for rights; the answer is 401 (TestHandleCertificate)", nil},
}

// TestHandleReplay: the recorded requests, on the recorded records, give the recorded answers. The nonces of the server
// are those of the recording, so that the client's proofs hold; names of sessions are the server's own.
func TestHandleReplay(t *testing.T) {
	f := newAdminFixture(t)
	list := restRecording(t)
	leftovers(f, list)
	client := f.certified(f.adminKey, userID("300:0.NA/20.500.99999", "x"))
	ours := make(map[string]string) // names of sessions, by those of the recording
	sent := 0
	for _, x := range list {
		edit, edited := restEdits[x.title]
		if edited && edit.edit == nil {
			continue
		} else if edited {
			edit.edit(x)
		}
		t.Run(x.title, func(t *testing.T) {
			f.replay(t, x, client, ours)
		})
		sent++
	}
	if sent < 70 {
		t.Errorf("only %d requests were sent", sent)
	}
}

// leftovers registers the handles that other recordings had left at the server.
func leftovers(f *adminFixture, list []*restExchange) {
	f.t.Helper()
	for _, x := range list {
		if x.title != "list without pages" {
			continue
		}
		var answer struct{ Handles []string }
		if err := json.Unmarshal([]byte(x.want), &answer); err != nil {
			f.t.Fatal(err)
		}
		for _, name := range answer.Handles {
			if _, err := f.registrar.Get(f.admin, f.id(name)); err != nil && !strings.HasSuffix(name, "/X2") && !strings.Contains(name, "/97FC") {
				f.register(name)
			}
		}
	}
}

var (
	sessionName = regexp.MustCompile(`"?sessionId"?[=:]"([^"]+)"`)
	nonceText   = regexp.MustCompile(`"?nonce"?[=:]"([^"]+)"`)
	newTime     = regexp.MustCompile(`"timestamp":"202[4-9][^"]*"`)
	signature   = regexp.MustCompile(`"serverSignature":"([^"]+)"`)
)

// replay sends one request and compares the answer.
func (f *adminFixture) replay(t *testing.T, x *restExchange, certified *http.Client, ours map[string]string) {
	t.Helper()
	said := strings.Join(x.wantHead["Www-Authenticate"], "\n") + x.want
	f.script.mu.Lock()
	f.script.nonces = nil
	f.script.mu.Unlock()
	if m := nonceText.FindStringSubmatch(said); m != nil {
		nonce, err := base64.StdEncoding.DecodeString(m[1])
		if err != nil {
			t.Fatal(err)
		}
		f.script.mu.Lock()
		f.script.nonces = [][]byte{nonce}
		f.script.mu.Unlock()
	}
	translate := func(text string) string {
		for recorded, own := range ours {
			text = strings.ReplaceAll(text, recorded, own)
		}
		return text
	}
	head := maps.Clone(x.head)
	for name := range head {
		head[name] = translate(head[name])
	}
	client, base := f.client, f.secure.URL
	if x.certified {
		client = certified
	}
	if !x.secure {
		base = f.clear.URL
	}
	got := f.send(client, x.method, base+x.path, translate(x.body), head)
	have := strings.Join(got.head["Www-Authenticate"], "\n") + got.body
	if recorded, own := sessionName.FindStringSubmatch(said), sessionName.FindStringSubmatch(have); recorded != nil && own != nil {
		if known := ours[recorded[1]]; known != "" && known != own[1] {
			t.Errorf("the session is %s, want %s", own[1], known)
		}
		ours[recorded[1]] = own[1]
	}
	f.compare(t, x, got, translate)
}

// compare compares an answer with the recorded one, without what must differ: names of sessions, times of what was
// written now, and the name of an exception before a message.
func (f *adminFixture) compare(t *testing.T, x *restExchange, got handleReply, translate func(string) string) {
	t.Helper()
	if got.status != x.status {
		t.Errorf("status %d, want %d", got.status, x.status)
	}
	for _, name := range []string{"Www-Authenticate", "Content-Type", "Location", "Allow"} {
		if name == "Content-Type" && x.wantHead.Get(name) == "" || name == "Www-Authenticate" && restEdits[x.title].edit != nil {
			continue
		}
		want := slices.Clone(x.wantHead[name])
		for i := range want {
			want[i] = translate(want[i])
		}
		if have := got.head[name]; !slices.Equal(have, want) {
			t.Errorf("%s %q, want %q", name, have, want)
		}
	}
	have, want := newTime.ReplaceAllString(got.body, ""), newTime.ReplaceAllString(translate(x.want), "")
	want = strings.Replace(want, `"message":"java.lang.Exception: `, `"message":"`, 1)
	if m := signature.FindStringSubmatch(have); m != nil {
		f.signed(t, m[1], have)
	}
	if begin, ok := strings.CutSuffix(want, `"}`); ok && strings.Contains(want, "Invalid JSON in PUT") && strings.HasPrefix(have, begin+": ") {
		return // here the message goes on, and says what is wrong
	}
	if have != want {
		t.Errorf("the answer is\n%s\nwant\n%s", have, want)
	}
}

// signed verifies the server's signature. It is the recorded one anyhow, since the key is.
func (f *adminFixture) signed(t *testing.T, text, body string) {
	t.Helper()
	signature, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	nonce, err := base64.StdEncoding.DecodeString(nonceText.FindStringSubmatch(body)[1])
	if err != nil {
		t.Fatal(err)
	}
	public := f.site.Key.Public()
	if err := hdl.VerifyKeyAnswer(&public, hdl.KeyAnswer("SHA-256", signature), nonce, []byte("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f")); err != nil {
		t.Error(err)
	}
}

// curlDiffers are requests of handle-rest-9.2.0.txt that are answered otherwise, and why.
func curlDiffers(line string) string {
	switch {
	case !strings.Contains(line, "/api/"):
		return "pages and redirects are tested in handleproxy_test.go"
	case strings.HasSuffix(line, "/api/site"):
		return "it is the site of another server than that of the records"
	case strings.Contains(line, "gzip"):
		return "nothing of the answer is recorded"
	}
	return ""
}

// TestHandleReplayCurl is TestHandleReplay for handle-rest-9.2.0.txt.
func TestHandleReplayCurl(t *testing.T) {
	f := newAdminFixtureFor(t, []handles.Identity{{Handle: "20.500.99999/USER01", Index: 300}})
	for _, name := range []string{"LOC-1", "Z-1", "Z-2"} {
		f.register("20.500.99999/" + name) // there were seven, and LOC-1 was the second
	}
	data, err := os.ReadFile(filepath.Join("testdata", "handle-rest-9.2.0.txt"))
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	for block := range strings.SplitSeq(string(data), "### curl ") {
		line, answer, _ := strings.Cut(block, "\n")
		if line == "" || curlDiffers(line) != "" {
			continue
		}
		t.Run(line, func(t *testing.T) {
			f.replayCurl(t, line, answer)
		})
		sent++
	}
	if sent < 20 {
		t.Errorf("only %d requests were sent", sent)
	}
}

// replayCurl sends the request of a command line, and compares the answer.
func (f *adminFixture) replayCurl(t *testing.T, line, answer string) {
	t.Helper()
	x := &restExchange{title: line, method: "GET", head: make(map[string]string), wantHead: make(http.Header)}
	at := strings.LastIndexByte(line, ' ')
	url, line := line[at+1:], line[:max(at, 0)]
	base := f.clear.URL
	if rest, ok := strings.CutPrefix(url, "https://127.0.0.1:28000"); ok {
		base, url = f.secure.URL, rest
	} else {
		url = strings.TrimPrefix(url, "http://127.0.0.1:28000")
	}
	line, x.body, _ = strings.Cut(line, "-d ")
	words := strings.Fields(line)
	for i, word := range words {
		switch word {
		case "-X":
			x.method = words[i+1]
		case "-I":
			x.method = "HEAD"
		case "-u":
			user := words[i+1]
			if user == "USER" {
				user = "300%3A20.500.99999/USER01:s3cret pass"
			}
			x.head["Authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(user))
		case "-H":
			x.head["Content-Type"] = "application/json"
		}
	}
	got := f.send(f.client, x.method, base+url, x.body, x.head)
	head, body, _ := strings.Cut(answer, "\n\n")
	if _, err := fmt.Sscanf(head, "HTTP/1.1 %d", &x.status); err != nil {
		t.Fatal(err)
	}
	want := strings.TrimRight(body, "\n")
	if got.status != x.status {
		t.Errorf("status %d, want %d", got.status, x.status)
	}
	mask := func(text string) string {
		text = newTime.ReplaceAllString(strings.TrimRight(text, "\n"), "")
		return nonceText.ReplaceAllString(sessionName.ReplaceAllString(text, "sessionId"), "nonce")
	}
	if strings.Contains(want, "gson") { // the message is the reference's language's
		if !strings.HasPrefix(got.body, `{"responseCode":4,"message":"Invalid JSON in PUT request: `) {
			t.Errorf("the answer is %s", got.body)
		}
		return
	}
	if mask(got.body) != mask(want) {
		t.Errorf("the answer is\n%s\nwant\n%s", mask(got.body), mask(want))
	}
}
