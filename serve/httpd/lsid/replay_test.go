package lsid_test

import (
	"bufio"
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/plainxml"
)

// exchange is a recorded request of a client with an answer that the client accepts.
type exchange struct {
	title    string
	request  []string // head and body, in lines
	answered *http.Response
	body     []byte
}

// readExchanges reads the recording. The lines of heads and multipart bodies ended with CR LF.
func readExchanges(t *testing.T) (list []*exchange) {
	t.Helper()
	text, err := os.ReadFile("testdata/lsid.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(text), "\n### ")[1:] {
		title, rest, _ := strings.Cut(part, "\n")
		x := &exchange{title: title}
		var answer []string
		for line := range strings.SplitSeq(rest, "\n") {
			if text, ok := strings.CutPrefix(line, "> "); ok {
				x.request = append(x.request, text)
			} else if text, ok := strings.CutPrefix(line, "< "); ok {
				answer = append(answer, text)
			}
		}
		head := true
		var b strings.Builder
		for _, line := range answer {
			if head = head && line != ""; head && (strings.HasPrefix(line, "Content-Length:") || strings.HasPrefix(line, "Transfer-Encoding:")) {
				continue
			}
			b.WriteString(line + "\r\n")
		}
		if x.answered, err = http.ReadResponse(bufio.NewReader(strings.NewReader(b.String())), nil); err != nil {
			t.Fatalf("%s: %v", title, err)
		}
		if x.body, err = io.ReadAll(x.answered.Body); err != nil {
			t.Fatal(err)
		}
		x.body = bytes.TrimSuffix(x.body, []byte("\r\n"))
		list = append(list, x)
	}
	return list
}

// authorised are the operations that need a token here, and did not in the recording.
var authorised = regexp.MustCompile("notifyForeign|revokeNotification|/assigning")

// play sends the request of an exchange, as the client sent it.
func (x *exchange) play(t *testing.T, server string) (*http.Response, []byte) {
	t.Helper()
	at := slices.Index(x.request, "")
	head, body := x.request, ""
	if at >= 0 {
		head, body = x.request[:at], strings.Join(x.request[at+1:], "\r\n")
	}
	u, _ := url.Parse(server)
	var b strings.Builder
	for i, line := range head {
		switch name, _, _ := strings.Cut(line, ":"); {
		case i == 0:
			line = strings.Replace(strings.Replace(line, " /soap/", " /", 1), " /http/", " /", 1)
		case name == "Host":
			line = "Host: " + u.Host
		case name == "Content-Length":
			line = "Content-Length: " + strconv.Itoa(len(body))
		case name == "Connection":
			line = "Connection: close"
		}
		b.WriteString(line + "\r\n")
	}
	if authorised.MatchString(strings.Join(x.request, "\n")) {
		b.WriteString("Authorization: Basic " + basic("ann", editorToken) + "\r\n")
	}
	conn, err := net.DialTimeout("tcp", u.Host, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, b.String()+"\r\n"+body); err != nil {
		t.Fatal(err)
	}
	a, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	got, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a, got
}

// tree is XML as it is compared: without prefixes, attributes of namespaces and white space between elements.
func tree(t testing.TB, text []byte, mask map[string]bool) string {
	t.Helper()
	root, err := plainxml.Parse(bytes.NewReader(text), plainxml.Limits{})
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	var b strings.Builder
	var write func(e *plainxml.Element, indent string)
	write = func(e *plainxml.Element, indent string) {
		b.WriteString(indent + "{" + e.Name.Space + "}" + e.Name.Local)
		for _, a := range e.Attr {
			if a.Name.Space != "xmlns" && a.Name.Local != "xmlns" {
				b.WriteString(" " + a.Name.Local + "=" + a.Value)
			}
		}
		if text := strings.TrimSpace(e.Text); text != "" && !mask[e.Name.Local] {
			b.WriteString(" " + text)
		}
		b.WriteByte('\n')
		for _, c := range e.Children {
			write(c, indent+" ")
		}
	}
	write(root, "")
	return b.String()
}

// message splits an answer into the message and its attachment.
func message(t testing.TB, contentType string, body []byte) (text, attached []byte) {
	t.Helper()
	kind, parameters, err := mime.ParseMediaType(contentType)
	if err != nil {
		t.Fatal(err)
	}
	if kind != "multipart/related" {
		return body, nil
	}
	if parameters["type"] != "text/xml" {
		t.Errorf("the type is %q", contentType)
	}
	parts := multipart.NewReader(bytes.NewReader(body), parameters["boundary"])
	for i := range 2 {
		p, err := parts.NextPart()
		if err != nil {
			t.Fatalf("%v in %q", err, body)
		}
		content, err := io.ReadAll(p)
		if err != nil {
			t.Fatal(err)
		}
		switch kind := p.Header.Get("Content-Type"); {
		case i == 0 && (!strings.HasPrefix(kind, "text/xml") || p.Header.Get("Content-Id") != parameters["start"]):
			t.Errorf("the message has %v, and the start is %s", p.Header, parameters["start"])
		case i == 1 && kind != "application/octet-stream":
			t.Errorf("the attachment is %s", kind)
		case i == 0:
			text = content
		default:
			attached = content
		}
	}
	return text, attached
}

// services is what a WSDL document offers: its target namespace, what it imports, and where which binding is.
func services(t *testing.T, text []byte) (target string, list []string) {
	t.Helper()
	root, err := plainxml.Parse(bytes.NewReader(text), plainxml.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	spaces := map[string]string{}
	for _, a := range root.Attr {
		if a.Name.Space == "xmlns" {
			spaces[a.Name.Local] = a.Value
		}
	}
	for _, e := range root.Children {
		if e.Name.Local == "import" {
			list = append(list, "import "+e.Get("namespace")+" "+e.Get("location"))
			continue
		}
		for _, port := range e.Children {
			prefix, binding, _ := strings.Cut(port.Get("binding"), ":")
			at, _ := url.Parse(port.Children[0].Get("location"))
			path := strings.TrimPrefix(strings.TrimPrefix(at.Path, "/soap"), "/http")
			if binding != "LSIDAuthoritySOAPBinding" {
				path = strings.TrimSuffix(path, "/")
			}
			list = append(list, spaces[prefix]+" "+binding+" "+port.Children[0].Name.Space+" "+path)
		}
	}
	slices.Sort(list)
	return root.Get("targetNamespace"), list
}

// sameServices makes sure that a document offers what a recorded one does. The recorded authority offers data of names
// that have none, and one of two bindings at a time.
func sameServices(t *testing.T, want, got []byte) {
	t.Helper()
	wantTarget, wanted := services(t, want)
	gotTarget, offered := services(t, got)
	if strings.Contains(wantTarget, "?") && gotTarget != wantTarget {
		t.Errorf("the target namespace is %s, not %s", gotTarget, wantTarget)
	}
	for _, line := range wanted {
		if without := strings.Contains(wantTarget, "nodata") && strings.Contains(line, "/authority/data"); slices.Contains(offered, line) == without {
			t.Errorf("of %q it offers %q", line, offered)
		}
	}
}

// Recorded clients get answers equivalent to those that they accepted.
func TestReplay(t *testing.T) {
	file := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "0123456789") }))
	defer file.Close()
	a := newAuthority(t)
	a.put("urn:lsid:example.org:ns:one", stele.Record{Targets: []stele.Target{data(file.URL)}, Metadata: stele.Metadata{"what": "One"}})
	a.put("urn:lsid:example.org:ns:nodata", stele.Record{Metadata: stele.Metadata{"what": "A thing"}})
	a.put("urn:lsid:example.org:ns:a:1", stele.Record{Metadata: stele.Metadata{"what": "A"}})
	a.space("urn:lsid:example.org:birds", func(ns *stele.Namespace) { ns.Minter = stele.Minter{Kind: stele.MinterUUID} })
	list := readExchanges(t)
	if len(list) < 50 {
		t.Fatalf("only %d exchanges", len(list))
	}
	for _, x := range list {
		t.Run(x.title, func(t *testing.T) {
			got, body := x.play(t, a.url)
			if got.StatusCode < 400 != (x.answered.StatusCode < 400) || got.Header.Get("LSID-Error-Code") != x.answered.Header.Get("LSID-Error-Code") {
				t.Fatalf("%s %s, not %s %s: %s", got.Status, got.Header.Get("LSID-Error-Code"), x.answered.Status, x.answered.Header.Get("LSID-Error-Code"), body)
			}
			if strings.HasPrefix(x.request[0], "POST") {
				if got.StatusCode != x.answered.StatusCode {
					t.Errorf("the status is %d", got.StatusCode)
				}
				x.sameMessage(t, got, body)
				return
			}
			switch {
			case x.answered.StatusCode >= 400:
			case strings.Contains(string(x.body), "definitions"):
				sameServices(t, x.body, body)
				if ours := got.Header.Get("Content-Type"); !strings.HasPrefix(ours, "text/xml") {
					t.Errorf("the type is %s", ours)
				}
			default:
				if want, ours := x.answered.Header.Get("Content-Type"), got.Header.Get("Content-Type"); want != ours {
					t.Errorf("the type is %s, not %s", ours, want)
				}
				sameContent(t, x.body, body)
			}
			if x.answered.Header.Get("Expires") != "" {
				if at, err := http.ParseTime(got.Header.Get("Expires")); err != nil || !at.Equal(noon.Add(time.Hour)) {
					t.Errorf("it expires at %v, %v", at, err)
				}
			}
		})
	}
}

// sameMessage compares an answer in SOAP with a recorded one.
func (x *exchange) sameMessage(t *testing.T, got *http.Response, body []byte) {
	t.Helper()
	wantText, wantAttached := message(t, x.answered.Header.Get("Content-Type"), x.body)
	gotText, gotAttached := message(t, got.Header.Get("Content-Type"), body)
	mask := map[string]bool{"faultstring": true, "description": true, "expiration": true, "lsid": true, "authority": true, "namespace": true}
	want, ours := tree(t, wantText, mask), tree(t, gotText, mask)
	if strings.Contains(want, "getAllowedPropertyNames") || strings.Contains(want, "getAuthorities") { // the lists are ours
		want, ours = shape(want), shape(ours)
	}
	if diff := cmp.Diff(want, ours); diff != "" {
		t.Errorf("the messages differ (-want +got):\n%s", diff)
	}
	if at := regexp.MustCompile("<expiration>(.*)</expiration>").FindSubmatch(gotText); at != nil && string(at[1]) != "2026-06-01T13:00:00Z" {
		t.Errorf("it expires at %s", at[1])
	}
	switch {
	case wantAttached == nil && gotAttached != nil, wantAttached != nil && gotAttached == nil:
		t.Errorf("the attachment is %q", gotAttached)
	case strings.Contains(string(wantAttached), "definitions"):
		sameServices(t, wantAttached, gotAttached)
	default:
		sameContent(t, wantAttached, gotAttached)
	}
	if strings.Contains(x.title, "assignLSIDForNewRevision") && !strings.Contains(string(gotText), "<lsid>urn:lsid:example.org:ns:a:2</lsid>") {
		t.Errorf("the revision is in %s", gotText)
	}
}

// shape returns the lines of a tree once each, without texts.
func shape(tree string) string {
	var list []string
	for line := range strings.Lines(tree) {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if line = strings.Repeat(" ", indent) + name; !slices.Contains(list, line) {
			list = append(list, line)
		}
	}
	return strings.Join(list, "\n")
}

// sameContent compares data and metadata. Those that were recorded have no statements.
func sameContent(t *testing.T, want, got []byte) {
	t.Helper()
	if !strings.Contains(string(want), "rdf:RDF") {
		if string(want) != string(got) {
			t.Errorf("got %q, not %q", got, want)
		}
		return
	}
	root, err := plainxml.Parse(bytes.NewReader(got), plainxml.Limits{})
	if err != nil || root.Name.Space != "http://www.w3.org/1999/02/22-rdf-syntax-ns#" || root.Name.Local != "RDF" || len(root.Children) == 0 || !strings.HasPrefix(root.Children[0].Get("about"), "urn:lsid:example.org:ns:") {
		t.Errorf("it is %s, %v", got, err)
	}
}
