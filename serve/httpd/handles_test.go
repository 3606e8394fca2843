package httpd

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// recorded is a request to the reference server, and its answer.
type recorded struct {
	command string // curl's arguments
	status  int
	head    http.Header
	body    string
}

// readRecorded reads the file of requests that were made with curl.
func readRecorded(t testing.TB) (all []recorded) {
	t.Helper()
	file, err := os.ReadFile("testdata/handle-rest-9.2.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split("\n"+string(file), "\n### curl ")[1:] {
		command, rest, _ := strings.Cut(part, "\n")
		one := recorded{command: command, head: http.Header{}}
		head, body, _ := strings.Cut(rest, "\n\n")
		for i, line := range strings.Split(strings.TrimSpace(head), "\n") {
			if i == 0 && line != "" {
				if one.status, err = strconv.Atoi(strings.Fields(line)[1]); err != nil {
					t.Fatal(err)
				}
			} else if name, value, ok := strings.Cut(line, ": "); ok {
				one.head.Add(name, value)
			}
		}
		one.body = strings.TrimRight(body, "\n")
		all = append(all, one)
	}
	return all
}

// Of the recorded requests these are answered alike, byte for byte. The others are:
//
//   - writes, listings and sessions that begin with -u or POST /api/sessions: they
//     need a client that authenticates by a handle's key, and come with the Handle
//     protocol;
//   - /api/site, which describes a server of the Handle protocol;
//   - the proxy's redirect and its pages for people, which look otherwise here; see
//     TestHandleProxy;
//   - the last, of which nothing was kept.
var answeredAlike = []string{
	"http://127.0.0.1:28000/api/handles/20.500.99999/ABC-1",
	"http://127.0.0.1:28000/api/handles/20.500.99999/ABC-1?type=URL",
	"http://127.0.0.1:28000/api/handles/20.500.99999/ABC-1?index=2&index=3",
	"http://127.0.0.1:28000/api/handles/20.500.99999/ABC-1?type=NOPE",
	"http://127.0.0.1:28000/api/handles/20.500.99999/ABC-1?callback=cb",
	"http://127.0.0.1:28000/api/handles/20.500.99999/ABC-1?pretty=true&type=URL",
	"http://127.0.0.1:28000/api/handles/20.500.99999/nope",
	"http://127.0.0.1:28000/api/handles/99.9/notmine",
	"-I http://127.0.0.1:28000/api/handles/20.500.99999/ABC-1",
	"-X OPTIONS http://127.0.0.1:28000/api/handles/20.500.99999/ABC-1",
	"-X POST http://127.0.0.1:28000/api/handles/20.500.99999/ABC-1",
	"https://127.0.0.1:28000/api/handles/20.500.99999/P1",

	// Unauthenticated writes, which are refused.
	"-X DELETE http://127.0.0.1:28000/api/handles/20.500.99999/ABC-1",
	`-X PUT -H Content-Type: application/json -d [{"index":1,"type":"URL","data":"http://x/"}] http://127.0.0.1:28000/api/handles/20.500.99999/P1`,
	`-u USER -X PUT -H Content-Type: application/json -d [{"index":1,"type":"URL","data":"http://x/"}] http://127.0.0.1:28000/api/handles/20.500.99999/P1`,
}

func TestHandlesRecorded(t *testing.T) {
	f := newHandleFixture(t, nil)
	f.fill()
	server := httptest.NewServer(f.handler)
	defer server.Close()
	asked := 0
	for _, want := range readRecorded(t) {
		if !slices.Contains(answeredAlike, want.command) {
			continue
		}
		asked++
		t.Run(want.command, func(t *testing.T) {
			r := curl(t, server.URL, want.command)
			got, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer got.Body.Close()
			body, err := io.ReadAll(got.Body)
			if err != nil {
				t.Fatal(err)
			}
			if got.StatusCode != want.status || string(body) != want.body {
				t.Errorf("got  %d %s\nwant %d %s", got.StatusCode, body, want.status, want.body)
			}
			for _, name := range []string{"Content-Type", "Content-Length", "Allow"} {
				if have := got.Header.Get(name); have != want.head.Get(name) {
					t.Errorf("%s: got %q, want %q", name, have, want.head.Get(name))
				}
			}
		})
	}
	if asked != len(answeredAlike) {
		t.Errorf("%d of %d requests are in the file", asked, len(answeredAlike))
	}
}

// curl makes the request of a command line.
func curl(t *testing.T, server, command string) *http.Request {
	t.Helper()
	at := strings.LastIndex(command, " ") + 1
	_, target, _ := strings.Cut(strings.Replace(command[at:], "://", "", 1), "/")
	method, body := http.MethodGet, io.Reader(nil)
	switch {
	case strings.HasPrefix(command, "-I "):
		method = http.MethodHead
	case strings.Contains(command, "-X "):
		_, rest, _ := strings.Cut(command, "-X ")
		method, _, _ = strings.Cut(rest, " ")
	}
	if _, data, ok := strings.Cut(command, "-d "); ok {
		data, _, _ = strings.Cut(data, " ")
		body = strings.NewReader(data)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, server+"/"+target, body)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(command, "application/json") {
		r.Header.Set("Content-Type", "application/json")
	}
	if strings.Contains(command, "-u ") {
		r.SetBasicAuth("USER", "secret")
	}
	return r
}

func TestHandles(t *testing.T) {
	f := newHandleFixture(t, nil)
	f.fill()
	value := func(index int, kind, url string, ttl int) string {
		return fmt.Sprintf(`{"index":%d,"type":"%s","data":{"format":"string","value":"%s"},"ttl":%d,"timestamp":"2026-06-01T12:00:00Z"}`, index, kind, url, ttl)
	}
	hidden := text(1, "SECRET", "hush")
	hidden.Permissions = stele.AdminRead
	odd := text(2, "NOTE", "a\"b<&>\u2028\n")
	odd.Permissions |= stele.PublicWrite
	odd.TTL, odd.TTLAbsolute, odd.Timestamp = 1700000000, true, 0
	odd.References = []stele.HandleReference{{Handle: "20.500.99999/ABC-1", Index: 1}}
	f.values("20.500.99999/ODD", hidden, odd)
	f.put("20.500.99999/MIX", stele.Record{Values: []stele.HandleValue{text(1, "EMAIL", "a@example.org")},
		Targets: []stele.Target{at("https://b.example.org/", 100), at("https://a.example.org/", 100)}})

	for _, tt := range []struct{ method, target, want string }{
		// The handle is spelled as the client spells it.
		{"GET", "/api/handles/20.500.99999/abc-1?type=url", `200 {"responseCode":1,"handle":"20.500.99999/abc-1","values":[{"index":1,"type":"URL","data":{"format":"string","value":"https://example.org/1"},"ttl":86400,"timestamp":"2023-11-14T22:13:20Z"}]}`},
		{"GET", "/api/handles/hdl:20.500.99999%2fnope", `404 {"responseCode":100,"handle":"20.500.99999/nope"}`},
		{"GET", "/api/handles/info:hdl/20.500.99999/nope", `404 {"responseCode":100,"handle":"20.500.99999/nope"}`},
		{"GET", "/api/handles/20.500.99999/a%20b%3Fc%23d%25+e//f", `404 {"responseCode":100,"handle":"20.500.99999/a b?c#d%+e//f"}`},
		{"GET", "/api/handles/0.NA/20.500.99999", `404 {"responseCode":100,"handle":"0.NA/20.500.99999"}`},

		// Records without values are handles too.
		{"GET", "/api/handles/20.500.99999/T-1", `200 {"responseCode":1,"handle":"20.500.99999/T-1","values":[` + value(1, "URL", "https://example.org/t", 3600) + "," + value(2, "URL", "https://second.example.org/t?x=1", 3600) + "]}"},
		{"GET", "/api/handles/20.500.99999/PART", `200 {"responseCode":1,"handle":"20.500.99999/PART","values":[` + value(1, "URL", "https://example.org/p/", 3600) + "]}"},
		{"GET", "/api/handles/20.500.99999/PART/a/b", `200 {"responseCode":1,"handle":"20.500.99999/PART/a/b","values":[` + value(1, "URL", "https://example.org/p//A/B", 3600) + "]}"},
		{"GET", "/api/handles/20.500.99999/ARK", `200 {"responseCode":1,"handle":"20.500.99999/ARK","values":[` + value(1, "URL", "https://example.org/ark", 3600) + "]}"},
		{"GET", "/api/handles/20.500.99999/MIX?type=URL", `200 {"responseCode":1,"handle":"20.500.99999/MIX","values":[` + value(2, "URL", "https://a.example.org/", 3600) + "," + value(3, "URL", "https://b.example.org/", 3600) + "]}"},

		// Handles that do not exist, or are not public.
		{"GET", "/api/handles/20.500.99999/W-1", `410 {"responseCode":100,"message":"This handle was withdrawn on 2026-06-01: It was a copy; use 20.500.99999/ABC-1 instead","handle":"20.500.99999/W-1"}`},
		{"GET", "/api/handles/20.500.99999/R-1", `404 {"responseCode":100,"handle":"20.500.99999/R-1"}`},
		{"GET", "/api/handles/20.500.99999/H-1", `404 {"responseCode":100,"handle":"20.500.99999/H-1"}`},
		{"GET", "/api/handles/20.500.88888/x", `400 {"responseCode":301,"message":"That prefix doesn't live here; ask https://hdl.example.net/20.500.88888/X","handle":"20.500.88888/x"}`},
		{"GET", "/api/handles/ark:12345/x1", `404 {"responseCode":100,"handle":"ark:12345/x1"}`},
		{"GET", "/api/handles/urn:isbn:9780140449136", `404 {"responseCode":100,"handle":"urn:isbn:9780140449136"}`},
		{"GET", "/api/handles/20.500.99999/ODD", `200 {"responseCode":1,"handle":"20.500.99999/ODD","values":[{"index":2,"type":"NOTE","data":{"format":"string","value":"a\"b<&>\u2028\n"},"permissions":"1111","ttl":"2023-11-14T22:13:20Z","references":[{"handle":"20.500.99999/ABC-1","index":1}]}]}`},
		{"GET", "/api/handles/20.500.99999/ODD?type=SECRET", `200 {"responseCode":200,"values":[],"handle":"20.500.99999/ODD"}`},
		{"GET", "/api/handles/20.500.99999/ODD?type=SECRET&publicOnly=false", `403 {"responseCode":402,"handle":"20.500.99999/ODD"}`},
		{"GET", "/api/handles/20.500.99999/ODD?index=1&publicOnly=true", `200 {"responseCode":200,"values":[],"handle":"20.500.99999/ODD"}`},

		// What is not a handle, and what is not a request.
		{"GET", "/api/handles/nothing", `400 {"responseCode":102,"message":"hdl: at byte 7: there is no \"/\" between prefix and local name, as in 10.1000/182","handle":"nothing"}`},
		{"GET", "/api/handles/20.500.99999/a%0d%0aX:%20y", `400 {"responseCode":102,"message":"hdl: at byte 14: control character U+000D; remove it","handle":"20.500.99999/a\r\nX: y"}`},
		{"GET", "/api/handles/20.500.99999/%ff", `400 {"responseCode":102,"message":"hdl: at byte 13: byte 0xFF is not UTF-8","handle":"20.500.99999/\ufffd"}`},
		{"GET", "/api/handles", `400 {"responseCode":102,"message":"Empty handle invalid"}`},
		{"GET", "/api/handles/", `400 {"responseCode":102,"message":"Empty handle invalid"}`},
		{"GET", "/api/handles?prefix=20.500.99999&page=0&pageSize=2", `403 {"responseCode":402,"handle":"20.500.99999"}`},
		{"GET", "/api/handles/20.500.99999/ABC-1?index=x", `400 {"responseCode":4,"message":"index is not a number from 0 to 4294967295: \"x\""}`},
		{"GET", "/api/handles/20.500.99999/nope?callback=alert(1)//", `400 {"responseCode":4,"message":"callback is not a name of a function; use letters, digits, _ and $"}`},
		{"GET", "/api/handles/20.500.99999/nope?callback=", `400 {"responseCode":4,"message":"callback is not a name of a function; use letters, digits, _ and $"}`},
		{"GET", "/api/handles/20.500.99999/nope?callback=a1_$", `404 a1_$({"responseCode":100,"handle":"20.500.99999/nope"});`},
		{"GET", "/api/handles/20.500.99999/nope?pretty", "404 {\n  \"responseCode\": 100,\n  \"handle\": \"20.500.99999/nope\"\n}"},
		{"GET", "/api/handles/20.500.99999/ABC-1?type=NOPE&pretty=yes", "200 {\n  \"responseCode\": 200,\n  \"values\": [],\n  \"handle\": \"20.500.99999/ABC-1\"\n}"},
		{"PATCH", "/api/handles/20.500.99999/ABC-1", `501 {"responseCode":4,"message":"Unknown method PATCH"}`},
		{"PUT", "/api/handles/20.500.99999/%E4%B8%96?overwrite=true", `403 {"responseCode":402,"handle":"20.500.99999/世"}`},
	} {
		if got := told(f.ask(tt.method, tt.target)); got != tt.want {
			t.Errorf("%s %s:\ngot  %s\nwant %s", tt.method, tt.target, got, tt.want)
		}
	}
}

// A user who may see a record sees its values.
func TestHandlesReaders(t *testing.T) {
	f := newHandleFixture(t, nil)
	f.fill()
	r := httptest.NewRequest(http.MethodGet, "/api/handles/20.500.99999/H-1", nil)
	r = r.WithContext(auth.With(context.Background(), auth.Principal{Name: "ann"}))
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "https://example.org/h") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// The parameters of a read may stand in the body of a POST.
func TestHandlesPost(t *testing.T) {
	f := newHandleFixture(t, nil)
	f.fill()
	const (
		form   = "application/x-www-form-urlencoded"
		object = "application/json; charset=utf-8"
		email  = `{"index":2,"type":"EMAIL"`
		desc   = `{"index":3,"type":"DESC"`
	)
	for _, tt := range []struct {
		media, body string
		status      int
		want        []string
		not         string
	}{
		{form, "type=EMAIL&index=3", 200, []string{email, desc}, `"URL"`},
		{object, `{"type":["email"],"index":[3]}`, 200, []string{email, desc}, `"URL"`},
		{object, `{"index":2,"pretty":true}`, 200, []string{`"index": 2`}, `"URL"`},
		{"text/plain", "type=EMAIL", 200, []string{email, `"URL"`}, "NOPE"},
		{form, "type=%zz", 400, []string{"the body is not a form"}, "EMAIL"},
		{object, `{"index":{}}`, 400, []string{"neither a text"}, "EMAIL"},
		{object, `{bad`, 400, []string{`"responseCode":4`, "not a JSON object"}, "EMAIL"},
		{form, "type=" + strings.Repeat("x", maxParameters), 400, []string{"more than 8192 bytes"}, "EMAIL"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/api/handles/20.500.99999/ABC-1", strings.NewReader(tt.body))
		r.Header.Set("Content-Type", tt.media)
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(w, r)
		body := w.Body.String()
		if w.Code != tt.status || strings.Contains(body, tt.not) || slices.ContainsFunc(tt.want, func(s string) bool { return !strings.Contains(body, s) }) {
			t.Errorf("POST %.60s: got %d %s; want %d with %q, without %q", tt.body, w.Code, body, tt.status, tt.want, tt.not)
		}
	}
}

// If the store fails, the answer has the code and nothing else.
func TestHandlesFailing(t *testing.T) {
	f := newHandleFixture(t, nil)
	f.fill()
	f.store.Close()
	res, body := f.ask("GET", "/api/handles/20.500.99999/ABC-1")
	want := map[int]string{
		http.StatusInternalServerError: `{"responseCode":2,"handle":"20.500.99999/ABC-1"}`,
		http.StatusServiceUnavailable:  `{"responseCode":3,"handle":"20.500.99999/ABC-1"}`,
	}[res.StatusCode]
	if want == "" || body != want {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
}

// Caches keep an answer no longer than its values hold, and never one that is not public.
func TestHandlesKept(t *testing.T) {
	s := newSite(t)
	s.space("20.500.12345/")
	s.add(`{"id":"20.500.12345/OPEN","values":[{"index":1,"type":"URL","data":"aHR0cHM6Ly9leGFtcGxlLm9yZy8=","ttl":77},{"index":2,"type":"EMAIL","data":"YUBi","ttl":5}]}`,
		`{"id":"20.500.12345/TARGET","targets":[{"service":"N2L","url":"https://example.org/","ttl":88}]}`,
		`{"id":"20.500.12345/SECRET","url":"https://example.org/secret","readers":["user:ann"]}`)
	for name, want := range map[string]string{"OPEN": "max-age=77", "TARGET": "max-age=88", "SECRET": "no-store", "UNKNOWN": "no-store"} {
		if got := s.get("/api/handles/20.500.12345/" + name).get("Cache-Control"); got != want {
			t.Errorf("%s: Cache-Control is %q", name, got)
		}
	}
	if a := s.askAs("ann", "", "/api/handles/20.500.12345/SECRET"); a.StatusCode != http.StatusOK || a.get("Cache-Control") != "private, no-store" {
		t.Errorf("%d, Cache-Control is %q", a.StatusCode, a.get("Cache-Control"))
	}
}
