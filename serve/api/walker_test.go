package api

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/apijson"
)

// walker sends requests that it makes of the OpenAPI document alone, and holds each
// answer against it.
type walker struct {
	t     *testing.T
	d     *openAPI
	base  string
	token string
	sent  int
}

// wish is a request in the making.
type wish struct {
	op     *apiOperation
	path   map[string]string
	query  url.Values
	extra  string // appended to the query
	head   http.Header
	media  string
	body   []byte
	about  string // what is wrong with it
	nobody bool   // without a token
}

// TestWalk walks the OpenAPI document against a running server: for each operation
// requests that are right by the document's examples, then the same with each part of
// them wrong in turn. Each answer must be declared, with its body; none may be a fault
// of the server.
func TestWalk(t *testing.T) {
	s := newSite(t)
	s.signsIn(theOwner, true) // the passkey of the examples
	base := s.serve()
	w := &walker{t: t, d: readOpenAPI(t, s.ask("", "GET", Root+"/openapi.json", "").want(t, 200).body), base: base, token: s.tokens[theAdmin]}
	good := 0
	for _, op := range w.d.operations() {
		// An operation before it may have withdrawn what the examples are about.
		s.ask(theAdmin, "POST", Root+"/reinstate/ark:12345/x1", "")
		s.signLog()
		x := w.right(op)
		status := w.send(x)
		if status < 400 {
			good++
		}
		x.nobody = true
		w.send(x)
		x.nobody = false
		w.parameters(x)
		if op.RequestBody != nil {
			w.bodies(x)
		} else {
			y := x
			y.about, y.media, y.body = "a body where none is taken", apijson.JSON, []byte("{}")
			w.send(y)
		}
	}
	// Examples lead to things that are there, for the most part.
	if all := len(w.d.operations()); good < all*2/3 {
		t.Errorf("only %d of %d operations were granted as their examples have them", good, all)
	}
	t.Logf("%d requests", w.sent)
	if log := s.log.String(); strings.Contains(log, "fault") {
		t.Errorf("the server failed: %s", log)
	}
}

// right makes the request that the examples show.
func (w *walker) right(op *apiOperation) wish {
	x := wish{op: op, path: make(map[string]string), query: make(url.Values), head: make(http.Header)}
	for _, p := range op.Parameters {
		switch {
		case p.In == "path":
			x.path[p.Name] = fmt.Sprint(p.Example)
		case p.In == "query" && p.Required:
			x.query.Set(p.Name, fmt.Sprint(p.Example))
		}
	}
	if op.method == http.MethodPut {
		x.head.Set("If-Match", "*")
	}
	if op.RequestBody == nil {
		return x
	}
	x.media = slices.Sorted(maps.Keys(op.RequestBody.Content))[0]
	m := op.RequestBody.Content[x.media]
	if m.Example != nil {
		x.body, _ = json.Marshal(m.Example)
	} else {
		x.body, _ = json.Marshal(w.make(m.Schema))
	}
	return x
}

// make makes a value of a schema.
func (w *walker) make(s map[string]any) any {
	if ref, ok := s["$ref"].(string); ok {
		return w.make(w.d.Components.Schemas[ref[strings.LastIndexByte(ref, '/')+1:]])
	}
	if examples, ok := s["examples"].([]any); ok {
		return examples[0]
	}
	if enum, ok := s["enum"].([]any); ok {
		return enum[0]
	}
	switch s["type"] {
	case "object":
		object := make(map[string]any)
		required, _ := s["required"].([]any)
		for name, p := range s["properties"].(map[string]any) {
			if p := p.(map[string]any); slices.Contains(required, any(name)) || p["examples"] != nil {
				object[name] = w.make(p)
			}
		}
		return object
	case "array":
		return []any{}
	case "integer", "number":
		return 1
	case "boolean":
		return true
	}
	return "x"
}

// parameters sends the request with each parameter wrong in turn.
func (w *walker) parameters(x wish) {
	long := strings.Repeat("x", 5000)
	for _, p := range x.op.Parameters {
		for _, value := range []string{"", "x", "-1", "1e3", "99999999999999999999", "\x00", "\xff", "é漢", "' or 1=1", "../..", "a\r\nb: c", long, "null", "true", "0", `"v1"`, "*", `W/"`} {
			y := x
			y.path, y.query, y.head = maps.Clone(x.path), maps.Clone(x.query), x.head.Clone()
			y.about = fmt.Sprintf("%s %s is %.40q", p.In, p.Name, value)
			switch p.In {
			case "path":
				y.path[p.Name] = value
			case "query":
				y.query.Set(p.Name, value)
			case "header":
				if strings.ContainsAny(value, "\r\n\x00") {
					continue // no client sends it
				}
				y.head.Set(p.Name, value)
			}
			w.send(y)
		}
		if p.In == "query" {
			y := x
			y.query = maps.Clone(x.query)
			y.about = p.Name + " is given twice"
			y.query[p.Name] = []string{"1", "2"}
			w.send(y)
			if y.query.Del(p.Name); p.Required {
				y.about = p.Name + " is missing"
				w.mustFail(y, 400)
			}
			w.typed(x, p)
		}
	}
	y := x
	y.extra, y.about = "no-such-parameter=1", "a parameter that there is not"
	w.mustFail(y, 400)
	y.extra, y.about = "%", "a query that is not encoded"
	w.mustFail(y, 400)
}

// typed sends a value of another type than the schema of a parameter says.
func (w *walker) typed(x wish, p apiParameter) {
	wrong := ""
	switch {
	case p.Schema["type"] == "integer", p.Schema["type"] == "boolean", p.Schema["format"] == "date-time", p.Schema["enum"] != nil:
		wrong = "wrong"
	case p.Schema["maxLength"] != nil:
		wrong = strings.Repeat("x", int(p.Schema["maxLength"].(float64))+1)
	default:
		return
	}
	if len(wrong) > 7000 { // then the address is too long already
		return
	}
	y := x
	y.query = maps.Clone(x.query)
	y.query.Set(p.Name, wrong)
	y.about = fmt.Sprintf("query %s is %.20q", p.Name, wrong)
	w.mustFail(y, 400)
}

// bodies sends the request with its body wrong in every way.
func (w *walker) bodies(x wish) {
	y := x
	y.about, y.body = "no body", nil
	if x.op.RequestBody.Required {
		w.mustFail(y, 400)
	}
	y.about, y.media, y.body = "a body of another type", "text/plain", x.body
	w.mustFail(y, 415)
	for media, m := range x.op.RequestBody.Content {
		y = x
		y.media = media
		for _, text := range []string{"", "{", "null", "[]", "{}", "1", `"x"`, "\x00", "\xff\xfe", `{"a":1}{"b":2}`, `{"a":1,"a":2}`, "\ufeff{}", strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 10_000), `{"a":"\ud800"}`} {
			if y.body = []byte(text); text == "" {
				continue
			}
			y.about = fmt.Sprintf("%s: the body is %.20q", media, text)
			w.send(y)
		}
		if m.Schema["$ref"] == nil || m.Lines {
			continue
		}
		w.fields(y, m)
	}
}

// fields sends the request with each field of its body wrong in turn: of every other
// type, too long, missing, and one that there is not.
func (w *walker) fields(x wish, m apiMedia) {
	ref := m.Schema["$ref"].(string)
	schema := w.d.Components.Schemas[ref[strings.LastIndexByte(ref, '/')+1:]]
	var good map[string]any
	if err := json.Unmarshal(x.body, &good); err != nil {
		w.t.Fatal(err)
	}
	send := func(about string, body map[string]any, wrong bool) {
		y := x
		y.about = about
		y.body, _ = json.Marshal(body)
		if wrong {
			w.mustFail(y, 400)
		} else {
			w.send(y)
		}
	}
	unknown := maps.Clone(good)
	unknown["noSuchField"] = 1
	send("a field that there is not", unknown, true)
	for name, p := range schema["properties"].(map[string]any) {
		for _, value := range []any{nil, true, 1, -1, 1.5, "x", strings.Repeat("x", 20_000), []any{}, []any{1}, []any{nil}, map[string]any{}, map[string]any{"a": 1}} {
			body := maps.Clone(good)
			body[name] = value
			text, _ := json.Marshal(body)
			tree, err := document.ReadTree(text)
			if err != nil {
				w.t.Fatal(err)
			}
			// What the schema refuses, the server refuses too.
			err = w.d.judge("", schema, tree)
			readOnly, _ := p.(map[string]any)["readOnly"].(bool)
			send(fmt.Sprintf("%s is %.20v", name, value), body, err != nil && !readOnly)
		}
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		body := maps.Clone(good)
		delete(body, name.(string))
		send(fmt.Sprintf("%s is missing", name), body, true)
	}
}

// mustFail sends a request that must be refused with this status.
func (w *walker) mustFail(x wish, status int) {
	w.t.Helper()
	if got := w.send(x); got != status {
		w.t.Errorf("%s, %s: %d, want %d: %.200s", x.op.OperationID, x.about, got, status, x.body)
	}
}

// send sends a request, and judges the answer by the document.
func (w *walker) send(x wish) int {
	w.t.Helper()
	w.sent++
	path := x.op.path
	for name, value := range x.path {
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
	}
	target := w.base + Root + path
	if query := x.query.Encode(); query != "" || x.extra != "" {
		target += "?" + strings.Trim(query+"&"+x.extra, "&")
	}
	r, err := http.NewRequest(x.op.method, w.base, strings.NewReader(string(x.body)))
	if err != nil {
		w.t.Fatal(err)
	}
	r.URL.Opaque = strings.TrimPrefix(target, "http:")
	r.Header = x.head.Clone()
	if len(x.body) > 0 {
		r.Header.Set("Content-Type", x.media)
	} else {
		r.Body, r.ContentLength = nil, 0
	}
	if !x.nobody {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	a, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		w.t.Fatalf("%s, %s: %v", x.op.OperationID, x.about, err)
	}
	defer a.Body.Close()
	if err := w.judge(x, a); err != nil {
		w.t.Errorf("%s, %s: %v", x.op.OperationID, x.about, err)
	}
	return a.StatusCode
}

// judge holds an answer against the document.
func (w *walker) judge(x wish, a *http.Response) error {
	body, err := io.ReadAll(a.Body)
	if err != nil {
		return err
	}
	if a.StatusCode >= 500 {
		return fmt.Errorf("%d: %.500s", a.StatusCode, body)
	}
	if a.StatusCode == http.StatusNotFound && x.path != nil && slices.Contains(slices.Collect(maps.Values(x.path)), "") {
		return nil // another address
	}
	declared, ok := x.op.Responses[fmt.Sprint(a.StatusCode)]
	if !ok {
		return fmt.Errorf("%d is not declared: %.500s", a.StatusCode, body)
	}
	if name, ok := strings.CutPrefix(declared.Ref, "#/components/responses/"); ok {
		if declared, ok = w.d.Components.Responses[name]; !ok {
			return fmt.Errorf("there is no response %s", name)
		}
	}
	for name := range declared.Headers {
		if (name == "ETag" || name == "Location" || name == "Retry-After" || name == "WWW-Authenticate") && a.Header.Get(name) == "" {
			return fmt.Errorf("%d has no %s", a.StatusCode, name)
		}
	}
	if len(declared.Content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("%d has a body: %.200s", a.StatusCode, body)
		}
		return nil
	}
	media, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	m, ok := declared.Content[media]
	if !ok {
		return fmt.Errorf("%d of the type %s is not declared", a.StatusCode, media)
	}
	return w.judgeBody(m, media, body)
}

func (w *walker) judgeBody(m apiMedia, media string, body []byte) error {
	if !m.Lines {
		if !strings.HasSuffix(media, "json") {
			return nil
		}
		tree, err := document.ReadTree(body)
		if err != nil {
			return fmt.Errorf("%w: %.200s", err, body)
		}
		return w.d.judge("", m.Schema, tree)
	}
	lines := bufio.NewScanner(strings.NewReader(string(body)))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		tree, err := document.ReadTree(lines.Bytes())
		if err != nil {
			return fmt.Errorf("%w: %.200s", err, lines.Bytes())
		}
		if err := w.d.judge("", m.Schema, tree); err != nil {
			return err
		}
	}
	return lines.Err()
}
