package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele/serve/httpd"
)

// demoStep is something to try in the demo. What is printed for curl and what
// --once does are made of the same step.
type demoStep struct {
	what   string
	method string // HEAD shows the head of the answer, others its body
	path   string // at the resolver
	header string // of the request, "Accept: audio/wav", {token} as in demoPlace; may be empty
	status int    // of the answer
	shows  string // a part of the answer, {site} and {here} as in demoRegistry
	sends  string // with the request, in JSON; may be empty
}

// demoSteps are in the order in which they tell a story.
var demoSteps = []demoStep{
	{"A name leads to the page of the thing", "HEAD", "/urn:paradisec:AB1:001:A", "", 302, "Location: {site}/paradisec/AB1/001/A\r\n", ""},
	{"and to the sound itself, if you ask for sound", "HEAD", "/urn:paradisec:AB1:001:A", "Accept: audio/wav", 302, "/A.wav", ""},
	{"in the language that you read", "HEAD", "/urn:paradisec:AB1:002:A", "Accept-Language: fr", 302, "/A.fr", ""},
	{"What is known of it, for programs (JSON-LD)", "GET", "/urn:paradisec:AB1:001:B", "Accept: application/ld+json", 200, "Songs of the reef, side B", ""},
	{"Where it pointed in 2015 (Memento)", "HEAD", "/urn:paradisec:AB1:001:A", "Accept-Datetime: Thu, 01 Jan 2015 00:00:00 GMT", 302, "Location: ", ""},
	{"All its locations (RFC 2169)", "GET", "/uri-res/N2Ls?urn:paradisec:AB1:001:A", "", 200, "{site}/paradisec/AB1/001/A.wav", ""},
	{"Where its signature is, on paper that no program reads", "HEAD", "/uri-res/N2S?urn:paradisec:AB1:001:A", "", 302, "/A.sig", ""},
	{"and one for programs: digest, date and the key that signed", "GET", "/uri-res/N2S?urn:paradisec:AB1:005:A", "", 200, `"sha256":"`, ""},
	{"Two names of one thing (IBI): its repository name", "HEAD", "/sid.inpe.br/mtc-m21d/2022/07.20.15.45", "", 302, "{site}/inpe/2022/07.20.15.45\r\n", ""},
	{"and its opaque name", "HEAD", "/8JMKD3MGP3W34T/47AF772", "", 302, "{site}/inpe/2022/07.20.15.45\r\n", ""},
	{"An ARK, in an old spelling with hyphens", "HEAD", "/ark:/12345/x5-xm4d-d26", "", 303, "{site}/maps/atlas\r\n", ""},
	{"what is promised of it", "GET", "/ark:12345/x5xm4dd26?info", "", 200, "erc-support:", ""},
	{"and two letters swapped: the check character tells", "GET", "/ark:12345/x5mx4dd26", "Accept: text/plain", 404, "ark:12345/x5xm4dd26", ""},
	{"What follows an ARK is passed on", "HEAD", "/ark:12345/b2book/chapter3?page=7", "", 302, "{site}/books/b2book/chapter3?page=7\r\n", ""},
	{"A handle, as the Handle System's own interface shows it", "GET", "/api/handles/20.500.12345/Atlas", "", 200, `"responseCode":1`, ""},
	{"one of its places, chosen by its country", "HEAD", "/20.500.12345/Mirrors?locatt=country:br", "", 302, "{site}/mirrors/belem\r\n", ""},
	{"A DOI, as a citation for BibTeX", "GET", "/doi:10.5072/rivers", "Accept: application/x-bibtex", 200, "Rivers of Par", ""},
	{"A PURL", "HEAD", "/demo/page", "", 302, "{site}/pages/page\r\n", ""},
	{"a PURL of something that is no page itself", "HEAD", "/demo/vocabulary", "", 303, "{site}/pages/vocabulary\r\n", ""},
	{"a PURL with all that is below it", "HEAD", "/demo/tree/leaf", "", 302, "{site}/tree/leaf\r\n", ""},
	{"a PURL that leads to another one", "HEAD", "/demo/chain", "", 302, "{site}/pages/page\r\n", ""},
	{"and one that is gone", "HEAD", "/demo/gone", "", 410, "410 Gone", ""},
	{"An LSID", "HEAD", "/urn:lsid:example.org:specimens:4711", "", 302, "{site}/specimens/4711\r\n", ""},
	{"A book, by its ISBN in either length", "HEAD", "/urn:isbn:0-306-40615-2", "", 302, "{site}/books/9780306406157\r\n", ""},
	{"A tombstone: why, since when, what to use instead", "GET", "/doi:10.5072/rivers-draft", "Accept: text/plain", 410, "10.5072/rivers", ""},
	{"Names that another resolver answers for", "HEAD", "/urn:nbn:de:gbv:089-3321752945", "", 302, "https://nbn-resolving.org/urn:nbn:de:gbv:089-3321752945\r\n", ""},
	{"A name that is reserved: the public sees nothing", "HEAD", "/urn:paradisec:AB1:003:A", "", 404, "404 Not Found", ""},
	{"as of one that only some may see", "HEAD", "/urn:paradisec:AB1:001:C", "", 404, "404 Not Found", ""},
	{"which an administrator is shown, by a token that holds while this demo runs", "HEAD", "/urn:paradisec:AB1:001:C", "Authorization: Bearer {token}", 302, "Location: ", ""},
	{"and by which names are registered", "PUT", "/api/v1/records/ark:12345/b2new", "Authorization: Bearer {token}", 201, `"version":1`, `{"url":"https://example.org/new"}`},
	{"that lead somewhere from then on", "HEAD", "/ark:12345/b2new", "", 302, "Location: https://example.org/new\r\n", ""},
	{"All about a name, for people and, as JSON, for programs", "GET", "/.info/urn:paradisec:AB1:001:A", "Accept: application/json", 200, "byte for byte", ""},
	{"How an answer comes about", "GET", "/8JMKD3MGP3W34T/47AF772?explain", "Accept: text/plain", 200, "sid.inpe.br", ""},
}

// demoPages are for a browser.
var demoPages = []struct{ what, path string }{
	{"the home page", "/"},
	{"all about a recording", "/.info/urn:paradisec:AB1:001:A"},
	{"the recording itself", "/urn:paradisec:AB1:001:A"},
	{"a tombstone", "/doi:10.5072/rivers-draft"},
	{"a mistyped name", "/ark:12345/x5mx4dd26"},
}

// demoExamples are what the home page offers to try.
func demoExamples() []httpd.Example {
	return []httpd.Example{
		{ID: "urn:paradisec:AB1:001:A", What: "a recording, which you can hear"},
		{ID: "8JMKD3MGP3W34T/47AF772", What: "a report of Brazil's space agency, by its opaque name"},
		{ID: "ark:12345/x5xm4dd26", What: "an atlas"},
		{ID: "20.500.12345/Atlas", What: "a handle"},
		{ID: "10.5072/rivers", What: "an article"},
		{ID: "10.5072/rivers-draft", What: "a draft that was withdrawn"},
		{ID: "https://purl.example.org/demo/vocabulary", What: "a PURL"},
		{ID: "urn:lsid:example.org:specimens:4711", What: "a beetle"},
	}
}

// command returns what to type.
func (s demoStep) command(here string) string {
	words := []string{"curl", "-s"}
	if s.method == http.MethodHead {
		words[1] = "-sI"
	}
	if s.header != "" {
		words = append(words, "-H", "'"+s.header+"'")
	}
	if s.sends != "" {
		words = append(words, "-X", s.method, "-H", "'Content-Type: application/json'", "-d", "'"+s.sends+"'")
	}
	return strings.Join(append(words, "'"+here+s.path+"'"), " ")
}

// printDemo tells what to try.
func printDemo(w io.Writer, at demoPlace, data string) {
	here := at.here
	fmt.Fprintf(w, "\nA small registry is at %s. Open in a browser:\n", here)
	for _, page := range demoPages {
		fmt.Fprintf(w, "  %-60s %s\n", here+page.path, page.what)
	}
	fmt.Fprintln(w, "\nOr try in another terminal:")
	for _, s := range at.steps() {
		fmt.Fprintf(w, "\n# %s\n%s\n", s.what, s.command(here))
	}
	for _, q := range at.queries() {
		fmt.Fprintf(w, "\n# %s\n%s\n", q.what, at.fill(q.command))
	}
	fmt.Fprintf(w, "\nIts records are in %s while it runs. Ctrl-C ends it.\n", printable(data))
}

// How much of an answer --once shows.
const (
	demoLinesShown = 14
	demoTraceShown = 60
	demoColumns    = 160
)

// tryDemo takes all steps, and shows commands and answers. It fails if an answer is
// not the one that the step should show.
func (s *server) tryDemo(ctx context.Context) error {
	here, site, w := s.http.url(), "http://"+s.site.local(), s.stdout
	client := &http.Client{
		Timeout:       10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	for _, s := range s.demoPlace().steps() {
		fmt.Fprintf(w, "\n# %s\n$ %s\n", s.what, s.command(here))
		answer, err := s.try(ctx, client, here)
		if err != nil {
			return err
		}
		s.show(w, answer)
		if want := s.expects(here, site); !strings.Contains(answer, want) {
			return fmt.Errorf("the demo is broken: there is no %q in this answer", want)
		}
	}
	return s.askDemo(ctx)
}

// show prints what matters of an answer: of a head the status and where to go.
func (s demoStep) show(w io.Writer, answer string) {
	lines := strings.Split(strings.TrimRight(answer, "\r\n"), "\n")
	if s.method == http.MethodHead {
		lines = slices.DeleteFunc(lines, func(line string) bool {
			return !strings.HasPrefix(line, "HTTP/") && !strings.HasPrefix(line, "Location: ")
		})
	}
	showLines(w, lines, demoLinesShown)
}

// showLines prints the first lines.
func showLines(w io.Writer, lines []string, most int) {
	for i, line := range lines {
		if i == most {
			fmt.Fprintf(w, "... and %d more lines\n", len(lines)-i)
			return
		}
		line = printable(strings.TrimSuffix(line, "\r"))
		if runes := []rune(line); len(runes) > demoColumns {
			line = string(runes[:demoColumns]) + "..."
		}
		fmt.Fprintln(w, line)
	}
}

// expects returns what must be in the answer to a step.
func (s demoStep) expects(here, site string) string {
	return strings.NewReplacer("{site}", site, "{here}", here).Replace(s.shows)
}

// try takes a step and returns what curl would print.
func (s demoStep) try(ctx context.Context, client *http.Client, here string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, s.method, here+s.path, strings.NewReader(s.sends))
	if err != nil {
		return "", err
	}
	if s.sends != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	// As curl does.
	request.Header.Set("Accept", "*/*")
	if name, value, ok := strings.Cut(s.header, ": "); ok {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return "", err
	}
	if response.StatusCode != s.status {
		return "", fmt.Errorf("the demo is broken: %s gives %s where it should give %d", s.command(here), response.Status, s.status)
	}
	if s.method != http.MethodHead {
		return string(body), nil
	}
	var head strings.Builder
	fmt.Fprintf(&head, "%s %s\r\n", response.Proto, response.Status)
	if err := response.Header.Write(&head); err != nil {
		return "", err
	}
	return head.String(), nil
}
