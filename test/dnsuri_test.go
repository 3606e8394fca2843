package test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	vocabulary "github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/scheme/all"
)

// uriNames are handles, a DOI and PURLs that are published in the DNS, and where they lead.
var uriNames = []wanted{
	{name: "hdl:20.500.12345/abc", at: "/handle"},
	{name: "20.500.12345/ABC", at: "/handle"},
	{name: "doi:10.5555/x.1", at: "/doi"},
	{name: "hdl:10.5555/X.1", at: "/doi"},
	{name: "https://doi.org/10.5555/x.1", at: "/doi"},
	{name: "https://purl.example.org/net/a/B", at: "/purl"},
	{name: "http://purl.example.org/net/a/B", at: "/purl"},
	{name: "HTTP://PURL.example.org/net/a/B", at: "/purl"},
	{name: "https://purl.example.org/net/a/b", at: "/other"}, // case counts
	// No labels of the DNS: the last step is made over HTTP.
	{name: "hdl:20.500.12345/with space+more", at: "/space"},
	{name: "https://purl.example.org/net/a/%C3%A9~", at: "/encoded"},
	// Withdrawn; never registered; another host.
	{name: "hdl:20.500.12345/gone", kind: vocabulary.Gone},
	{name: "hdl:20.500.12345/none", kind: vocabulary.NotFound},
	{name: "doi:10.5556/none", kind: vocabulary.NotFound},
	{name: "https://purl.example/none", kind: vocabulary.NotFound},
}

// The records that other administrators publish lead from the roots of the DNS to the names:
// BIND has the zones above, made of nothing but what `zone export --parent` prints, our
// server has the zones below, and unbound asks both for the client (RFC 3404, section 4;
// RFC 3405, section 4).
func TestDelegatingRecords(t *testing.T) {
	a := newArchive(t)
	a.stele("purl-host", "add", "purl.example.org")
	var records strings.Builder
	for id, at := range map[string]string{
		"20.500.12345/abc": "/handle", "20.500.12345/with space+more": "/space", "20.500.12345/gone": "/gone", "10.5555/x.1": "/doi",
		"https://purl.example.org/net/a/B": "/purl", "https://purl.example.org/net/a/b": "/other", "https://purl.example.org/net/a/%C3%A9~": "/encoded",
	} {
		fmt.Fprintf(&records, `{"id":%q,"targets":[{"url":%q}],"metadata":{"title":"A thing"}}`+"\n", id, archiveSite+at)
	}
	file := filepath.Join(t.TempDir(), "names.jsonl")
	writeFile(t, file, records.String(), 0o644)
	a.stele("import", file)
	a.stele("withdraw", "20.500.12345/gone", "--reason", "The tape is lost.")
	children := []zoneFile{{zone: archiveZone}}
	for _, z := range []struct{ prefix, zone, parts string }{
		{"20.500.12345/", "handles.example.", "1"},
		{"10.5555/", "dois.example.", "1"},
		{"https://purl.example.org/net/", "purls.example.", "2"},
	} {
		a.stele("zone", "add", z.prefix, "--zone", z.zone, "--parts", z.parts, "--ns", "ns1."+z.zone+"=127.0.0.1",
			"--mailbox", "hostmaster@example.org", "--resolver", "ns1.paradisec.example:"+strconv.Itoa(a.http))
		file := filepath.Join(t.TempDir(), "zone")
		a.stele("zone", "export", z.zone, "-o", file)
		checkZone(t, zoneFile{z.zone, file})
		children = append(children, zoneFile{zone: z.zone})
	}

	parents := a.parents(children)
	above := bind.start(t, parents...)
	for name, want := range map[string]string{
		"paradisec.urn.arpa": `100 10 "" "" "" paradisec.example.`,
		"hdl.uri.arpa": `99 10 "" "" "!^(doi|hdl):10[.]5555/.*$!dois.example.!i" .` + "\n" +
			`99 10 "" "" "!^hdl:20[.]500[.]12345/.*$!handles.example.!i" .`,
		"doi.uri.arpa":     `99 10 "" "" "!^(doi|hdl):10[.]5555/.*$!dois.example.!i" .`,
		"http.uri.arpa":    `100 10 "" "" "!^http://([^:/?#]+).*$!\\1!i" .`,
		"https.uri.arpa":   `100 10 "" "" "!^https://([^:/?#]+).*$!\\1!i" .`,
		"purl.example.org": `99 10 "" "" "!^https?://purl[.]example[.]org/net/.*$!purls.example.!" .`,
	} {
		out, err := exec.CommandContext(t.Context(), "dig", "@127.0.0.1", "-p", strconv.Itoa(above.port), "+short", name, "NAPTR").CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		slices.Sort(lines)
		if got := strings.Join(lines, "\n"); err != nil || got != want {
			t.Errorf("dig %s: %v\n%s\nwant\n%s", name, err, got, want)
		}
	}

	below := a.serve()
	resolving := unboundFor(above)
	for _, z := range children {
		resolving.config = strings.Replace(resolving.config, "{zones}", fmt.Sprintf("stub-zone:\n  name: %q\n  stub-addr: 127.0.0.1@%d\n{zones}", z.zone, below.port), 1)
	}
	way := uriClient(t, resolving.start(t, parents...), nil)
	resolvesAll(t, "unbound, BIND and Stele", way)
	resolvesURIs(t, way)
}

// parents makes zone files of the records for the administrators of other zones.
func (a *archive) parents(children []zoneFile) (list []zoneFile) {
	a.t.Helper()
	files := map[string]string{"example.": "", "urn.arpa.": "", "uri.arpa.": "", "purl.example.org.": ""}
	for _, child := range children {
		root := "uri.arpa."
		if child.zone == archiveZone {
			root = "urn.arpa."
		}
		for line := range strings.Lines(a.stele("zone", "export", child.zone, "--parent", "--root", root)) {
			if owner, _, ok := strings.Cut(line, " "); ok && !strings.HasPrefix(line, ";") {
				for zone := range files {
					if owner == zone || strings.HasSuffix(owner, "."+zone) {
						if !strings.Contains(files[zone], line) {
							files[zone] += line
						}
					}
				}
			}
		}
	}
	for zone, text := range files {
		z := zoneFile{zone, filepath.Join(a.t.TempDir(), "zone")}
		writeFile(a.t, z.file, zone+" 3600 IN SOA ns.example.net. root.example.net. 1 3600 600 86400 300\n"+zone+" 3600 IN NS ns.example.net.\n"+text, 0o644)
		checkZone(a.t, z)
		list = append(list, z)
	}
	return list
}

// uriClient returns a client that asks a name server, and knows the host of our PURLs.
func uriClient(t *testing.T, server *nameServer, roots map[string]string) *client.DNS {
	t.Helper()
	schemes, err := all.New(all.Config{Now: time.Now, PURLHosts: []string{"purl.example", "purl.example.org"}})
	if err != nil {
		t.Fatal(err)
	}
	way, err := client.NewDNS(client.DNSOptions{
		Schemes: schemes, Servers: []client.NameServer{client.PlainServer(netip.MustParseAddrPort(server.addr))}, Roots: roots,
		Now: time.Now, Random: rand.IntN, TryTimeout: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(way.Close)
	return way
}

// resolvesURIs finds names by their URIs.
func resolvesURIs(t *testing.T, way client.Way) {
	t.Helper()
	for _, w := range uriNames {
		res, err := way.Resolve(t.Context(), client.Request{Name: w.name, Trace: true})
		switch {
		case w.at == "" && err != nil && vocabulary.KindOf(err) == w.kind:
		case w.at == "" || err != nil || res.Found != client.FoundLocation || res.Location != archiveSite+w.at:
			t.Errorf("%+v: %v, %v\n%s", w, &res, err, res.Trace)
		}
	}
}
