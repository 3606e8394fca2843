package demo

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"

	"github.com/stele-id/stele/internal/terminal"

	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele/serve/httpd"
)

// Step is something to try in the demo. What is printed for curl and what
// --once does are made of the same step.
type Step struct {
	What   string
	Method string // HEAD shows the head of the answer, others its body
	Path   string // at the resolver
	Header string // of the request, "Accept: audio/wav", {token} as in place; may be empty
	Status int    // of the answer
	Shows  string // a part of the answer, {site} and {here} as in examples
	Sends  string // with the request, in JSON; may be empty
}

// steps are in the order in which they are shown.
var steps = []Step{
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
	{"Proof of what the registry says of it today, to keep: anyone can check it years later, without the registry", "GET", proved, "", 200, "stele proof 1", ""},
	{"How an answer comes about", "GET", "/8JMKD3MGP3W34T/47AF772?explain", "Accept: text/plain", 200, "sid.inpe.br", ""},
}

// proved is where the proof of a name is.
const proved = "/api/v1/proof/urn:paradisec:AB1:001:A"

// Page is something to open in a browser.
type Page struct{ What, Path string }

// pages are for a browser.
var pages = []Page{
	{"the home page", "/"},
	{"all about a recording", "/.info/urn:paradisec:AB1:001:A"},
	{"the recording itself", "/urn:paradisec:AB1:001:A"},
	{"a tombstone", "/doi:10.5072/rivers-draft"},
	{"a mistyped name", "/ark:12345/x5mx4dd26"},
	{"the log of all changes, which can't be rewritten unnoticed", "/.log/"},
	{"the desk, where curators keep names", "/.desk/"},
}

// Examples are what the home page offers to try.
func Examples() []httpd.Example {
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

// command returns the command line for curl.
func (s Step) command(here string) string {
	words := []string{"curl", "-s"}
	if s.Method == http.MethodHead {
		words[1] = "-sI"
	}
	if s.Header != "" {
		words = append(words, "-H", "'"+s.Header+"'")
	}
	if s.Sends != "" {
		words = append(words, "-X", s.Method, "-H", "'Content-Type: application/json'", "-d", "'"+s.Sends+"'")
	}
	return strings.Join(append(words, "'"+here+s.Path+"'"), " ")
}

// Print prints what to try. Data is the folder of the registry.
func (d *Demo) Print(data string) {
	w, at, here := d.Stdout, d.at, d.at.here
	fmt.Fprintf(w, "\nA small registry is at %s. Open in a browser:\n", here)
	for _, page := range pages {
		fmt.Fprintf(w, "  %-60s %s\n", here+page.Path, page.What)
	}
	fmt.Fprintln(w, "\nOr try in another terminal:")
	if at.token != "" {
		fmt.Fprintf(w, "\n# Commands with --server need the token of an administrator, which holds while this demo runs\nexport STELE_TOKEN=%s\n", at.token)
	}
	for _, s := range at.steps() {
		fmt.Fprintf(w, "\n# %s\n%s\n", s.What, s.command(here))
	}
	for _, q := range at.queries() {
		fmt.Fprintf(w, "\n# %s\n%s\n", q.What, at.fill(q.Command))
	}
	fmt.Fprintf(w, "\nIts records are in %s while it runs. Ctrl-C ends it.\n", terminal.Printable(data))
}

// How much of an answer --once shows.
const (
	linesShown = 14
	traceShown = 60
	columns    = 160
)

// Try takes all steps, and shows commands and answers. It fails if an answer is not the
// one that the step should show.
func (d *Demo) Try(ctx context.Context) error {
	here, site, w := d.at.here, d.at.site, d.Stdout
	client := &http.Client{
		Timeout:       10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	if err := awaitProof(ctx, client, here); err != nil {
		return err
	}
	for _, s := range d.at.steps() {
		fmt.Fprintf(w, "\n# %s\n$ %s\n", s.What, s.command(here))
		answer, err := s.try(ctx, client, here)
		if err != nil {
			return err
		}
		s.show(w, answer)
		if want := s.expects(here, site); !strings.Contains(answer, want) {
			return fmt.Errorf("the demo is broken: there is no %q in this answer", want)
		}
	}
	return d.ask(ctx)
}

// awaitProof waits until the log is signed, which follows the registry in the background.
func awaitProof(ctx context.Context, client *http.Client, here string) error {
	s := Step{Method: http.MethodGet, Path: proved, Status: http.StatusOK}
	for tries := 0; ; tries++ {
		_, err := s.try(ctx, client, here)
		if err == nil || tries == proofTries {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(proofPause):
		}
	}
}

const (
	proofTries = 300
	proofPause = 100 * time.Millisecond
)

// show prints the relevant part of an answer: of a header the status and the location.
func (s Step) show(w io.Writer, answer string) {
	lines := strings.Split(strings.TrimRight(answer, "\r\n"), "\n")
	if s.Method == http.MethodHead {
		lines = slices.DeleteFunc(lines, func(line string) bool {
			return !strings.HasPrefix(line, "HTTP/") && !strings.HasPrefix(line, "Location: ")
		})
	}
	showLines(w, lines, linesShown)
}

// showLines prints the first lines.
func showLines(w io.Writer, lines []string, most int) {
	for i, line := range lines {
		if i == most {
			fmt.Fprintf(w, "... and %d more lines\n", len(lines)-i)
			return
		}
		line = terminal.Printable(strings.TrimSuffix(line, "\r"))
		if runes := []rune(line); len(runes) > columns {
			line = string(runes[:columns]) + "..."
		}
		fmt.Fprintln(w, line)
	}
}

// expects returns what must be in the answer to a step.
func (s Step) expects(here, site string) string {
	return strings.NewReplacer("{site}", site, "{here}", here).Replace(s.Shows)
}

// try takes a step and returns what curl would print.
func (s Step) try(ctx context.Context, client *http.Client, here string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, s.Method, here+s.Path, strings.NewReader(s.Sends))
	if err != nil {
		return "", err
	}
	if s.Sends != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	// As curl does.
	request.Header.Set("Accept", "*/*")
	if name, value, ok := strings.Cut(s.Header, ": "); ok {
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
	if response.StatusCode != s.Status {
		return "", fmt.Errorf("the demo is broken: %s gives %s where it should give %d", s.command(here), response.Status, s.Status)
	}
	if s.Method != http.MethodHead {
		return string(body), nil
	}
	var head strings.Builder
	fmt.Fprintf(&head, "%s %s\r\n", response.Proto, response.Status)
	if err := response.Header.Write(&head); err != nil {
		return "", err
	}
	return head.String(), nil
}

// Query is something to try in the demo with the DNS.
type Query struct {
	What    string
	Command string // {stele}, {ip}, {port}, {dns} and {here}: see place
	Shows   string // a part of what it prints, {site} as in examples
}

// queries go on where steps end. The first few are for dig, which not every
// machine has.
var queries = []Query{
	{"The DNS leads there too. At its root stands how to go on with names of urn:paradisec",
		"dig @{ip} -p {port} +short paradisec.urn.example NAPTR", `\\3.\\2.\\1.paradisec.example.`},
	{"and each name has rules of its own: where what is",
		"dig @{ip} -p {port} +short a.001.ab1.paradisec.example NAPTR", "{site}/paradisec/AB1/001/A.wav!i"},
	{"and what is promised of it",
		"dig @{ip} -p {port} +short a.001.ab1.paradisec.example TXT", "byte for byte"},
	{"The whole way from the name to the sound, through the DNS alone",
		"{stele} resolve urn:paradisec:AB1:001:A --accept audio/wav --dns {dns} --root urn.example. --trace", "=> {site}/paradisec/AB1/001/A.wav, N2L, audio/wav"},
	{"A name with one part too many for the DNS: the last step is made over HTTP",
		"{stele} resolve urn:paradisec:AB1:001:A:notes --dns {dns} --root urn.example. --trace", "=> {site}/paradisec/AB1/001/A-notes"},
	{"The sound itself, and whether it is what the archive signed. The zones of this demo are not signed, so the key is not authenticated",
		"{stele} get urn:paradisec:AB1:005:A --dns {dns} --root urn.example. --private-addresses allow --dnssec=off --verify --allow-unauthenticated-key --accept audio/wav -o " + fetched, "SHA-256 and size match"},
	{"Do the DNS and the web say the same?",
		"{stele} resolve urn:paradisec:AB1:001:A --compare --dns {dns} --root urn.example. --server {here}", "they agree"},
}

// fetched is what a query writes.
const fetched = "reef.wav"

// place is where the demo answers.
type place struct {
	here string // URL of the resolver
	site string // URL of the publisher's site
	dns  string // address and port of the name server; "" if there is none
	ip   string // the address alone
	port string // the port alone

	token string // of an administrator
}

// steps returns what can be tried there over the web.
func (d place) steps() []Step {
	list := slices.Clone(steps)
	for i := range list {
		list[i].Header = strings.ReplaceAll(list[i].Header, "{token}", d.token)
	}
	return list
}

// queries returns what can be tried there in the DNS.
func (d place) queries() []Query {
	if d.dns == "" {
		return nil
	}
	return queries
}

// plainWord is a word without characters that are special to a shell.
var plainWord = regexp.MustCompile(`^[-+./_A-Za-z0-9]+$`)

// fill puts the place into a command, or into what it shows.
func (d place) fill(text string) string {
	name := os.Args[0] // as this one was called, so that it is found
	if !plainWord.MatchString(name) {
		name = "stele"
	}
	return strings.NewReplacer("{here}", d.here, "{site}", d.site, "{dns}", d.dns, "{ip}", d.ip, "{port}", d.port, "{stele}", name).Replace(text)
}

// ask resolves names through the DNS, as the commands do that are printed, and shows how. It
// leaves out commands for dig.
func (d *Demo) ask(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "stele-demo-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }() // it is a temporary folder
	for _, q := range d.at.queries() {
		rest, ours := strings.CutPrefix(q.Command, "{stele} ")
		if !ours {
			continue
		}
		fmt.Fprintf(d.Stdout, "\n# %s\n$ %s\n", q.What, d.at.fill(q.Command))
		var out bytes.Buffer
		words := strings.Fields(d.at.fill(rest))
		for i, word := range words {
			if word == fetched {
				words[i] = filepath.Join(folder, fetched)
			}
		}
		code := d.Stele(ctx, &out, words...)
		answer := strings.ReplaceAll(out.String(), folder+string(filepath.Separator), "")
		showLines(d.Stdout, strings.Split(strings.TrimRight(answer, "\n"), "\n"), traceShown)
		if want := d.at.fill(q.Shows); code != 0 || !strings.Contains(answer, want) {
			return fmt.Errorf("the demo is broken: there is no %q in this answer, and its exit code is %d", want, code)
		}
	}
	return nil
}

// Steps returns what can be tried over the web, in the order in which it is printed.
func Steps() []Step { return slices.Clone(steps) }

// Queries returns what can be tried in the DNS.
func Queries() []Query { return slices.Clone(queries) }

// Pages returns what can be opened in a browser.
func Pages() []Page { return slices.Clone(pages) }
