package test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/stele-id/stele"

// room is a folder of the house and everything below it. A * stands for one
// path element; the first room that matches a package is the package's room. The
// packages of a room (of each folder that * stands for) may import each other.
type room struct {
	folder string
	may    string // which rooms its packages import
	tests  string // which others their tests import
	pure   bool   // neither sockets nor files: it computes
}

// rooms says which way imports go (docs/architecture.md). A package in no room
// is an error, so a new folder needs a line here. "." is package stele.
var rooms = []room{
	{folder: ".", pure: true, tests: "document internal/recordtest scheme/all"},
	{folder: "document/apijson", may: ".", pure: true}, // the API's objects, for its server and its client
	{folder: "document/handlejson", may: ". document wire/hdl", pure: true},
	{folder: "document", may: ".", pure: true, tests: "internal/recordtest scheme/all"},

	{folder: "mint", may: ".", pure: true},
	{folder: "ddds", may: ".", pure: true},
	{folder: "proof", may: ". document", tests: "scheme/all"},                          // it computes too, but crypto/x509 knows sockets
	{folder: "rules", may: ". ddds internal/urltext", pure: true, tests: "scheme/all"}, // it matches names by patterns, and makes URLs of templates
	{folder: "namespaces", may: ". mint rules", pure: true, tests: "scheme/all"},
	{folder: "publish/publishtest", may: ". auth ddds proof publish registrar secret scheme/all store/mem"},
	{folder: "publish", may: ". internal/dnsrr ddds namespaces rules proof secret", tests: "auth registrar scheme/all store/mem"}, // it computes, but the DNS library knows sockets
	{folder: "auth/issuer/issuertest"},                                                                                            // a provider for tests
	{folder: "auth/issuer", may: ". outbound"},                                                                                    // it asks OpenID providers who a person is
	{folder: "auth/password", may: ". internal/limit secret"},                                                                     // it hashes passwords and checks codes, and reads no store
	{folder: "auth", may: ".", tests: "store/mem"},
	{folder: "secret", may: "."},            // it encrypts what others store, and does not know what that is
	{folder: "outbound", may: "."},          // the way out of the server, with the rule where to
	{folder: "audit", may: ". outbound"},    // forms of the audit trail, and where it is sent
	{folder: "trace/otlp", may: ". trace"},  // sends spans to a collector
	{folder: "trace", may: ".", pure: true}, // ids of requests, for logs and answers; spans
	{folder: "wire/hdl", pure: true},        // bytes only: it does not know the vocabulary

	{folder: "internal/backuptar", may: "."}, // a folder as a tar; it does not know what is in the files
	{folder: "internal/certtest"},
	{folder: "internal/desktest"},
	{folder: "internal/servertest"},
	{folder: "internal/destination", may: ".", pure: true},
	{folder: "internal/disk", may: "."},
	{folder: "internal/dnsrr"},
	{folder: "internal/edit", may: ".", pure: true, tests: "scheme/all"},
	{folder: "internal/fault", may: ".", pure: true}, // errors of panics
	{folder: "internal/lease"},                       // which of several servers does a work
	{folder: "internal/limit", may: ".", pure: true},
	{folder: "internal/offered", may: ".", pure: true},
	{folder: "internal/plainxml", may: ".", pure: true},
	{folder: "internal/recordtest", may: "."},
	{folder: "internal/progress", may: "internal/terminal"},
	{folder: "internal/slab"},     // bytes only; the memory comes from the system
	{folder: "internal/datagram"}, // sockets, and bytes
	{folder: "internal/screen"},   // size and keys of a terminal
	{folder: "internal/spelling", pure: true},
	{folder: "internal/urltext", may: ".", pure: true}, // texts in URLs, encoded, that lead nowhere else
	{folder: "internal/terminal", may: ".", pure: true},
	{folder: "internal/wording", may: ".", pure: true},

	{folder: "scheme/internal", may: ".", pure: true},
	{folder: "scheme/schemetest", may: "."},
	{folder: "scheme/all", may: ". scheme/*"},
	{folder: "scheme/*", may: ". mint ddds scheme/internal", pure: true},

	{folder: "store/refusal", may: ".", pure: true}, // the errors of the contract
	{folder: "store/storetest", may: ". store/binary"},
	{folder: "store/postgres/postgrestest"},
	{folder: "store/binary", may: ".", pure: true, tests: "document internal/recordtest"},
	{folder: "store/copy", may: ".", tests: "store/mem store/pebble store/postgres"},
	{folder: "store/*", may: ". internal/fault store/binary store/refusal"},

	{folder: "resolver", may: ". trace internal/slab internal/urltext rules auth ddds mint namespaces proof", tests: "store/mem scheme/all"},
	{folder: "registrar/minting", may: ". mint namespaces", tests: "auth registrar store/mem scheme/all"}, // it reads the store, and commits through its caller
	{folder: "registrar", may: ". trace document registrar/minting rules internal/destination auth auth/password ddds mint namespaces outbound proof publish/zonekey publish/zonemap secret", tests: "store/mem scheme/all"},

	{folder: "giver", may: ". document/apijson internal/lease registrar transparency", tests: "auth registry resolver scheme/all store/mem outbound"},              // it watches the registries whose heir this one is
	{folder: "heir", may: ". document/apijson internal/urltext registrar transparency", tests: "auth outbound registry resolver scheme/all serve/* store/mem web"}, // it asks the registries that take over namespaces

	{folder: "links/ask", may: ". client links outbound", tests: "internal/certtest internal/servertest"},
	{folder: "links/check", may: ". auth document internal/lease links registrar", tests: "proof store/mem store/pebble store/postgres outbound scheme/all internal/disk internal/servertest"},
	{folder: "links", may: "."}, // it judges answers; others ask and keep. It computes, but the list of public suffixes knows net/http
	{folder: "search", may: ". internal/offered", tests: "store/mem store/pebble store/postgres scheme/all"}, // it reads a store, and knows none

	{folder: "registry/access", may: ". document giver heir links internal/disk internal/terminal audit auth bulk client/remote namespaces outbound proof publish registrar registry resolver search transparency usage", tests: "scheme/all secret serve/api serve/httpd store/mem web web/language"},
	{folder: "registry/drill", may: ". document internal/disk registry registry/access store/postgres", tests: "auth registrar resolver scheme/all store/copy store/mem store/pebble"}, // a restore that is tried
	{folder: "registry/frozen", may: ". bulk/bundle internal/disk namespaces registry transparency", tests: "auth registrar scheme/all store/mem store/pebble"},                        // a registry of a bundle
	{folder: "registry", may: ". document/apijson internal/disk auth client outbound publish registrar resolver search secret store/* transparency", tests: "store/mem scheme/all"},
	{folder: "bulk/job", may: ". auth bulk bulk/foreign document registrar", tests: "store/mem scheme/all"},
	{folder: "mail/digest", may: ". document/apijson auth bulk mail publish/zonekey registrar web", tests: "secret store/mem store/postgres scheme/all"},
	{folder: "transparency/witness", may: ". internal/disk transparency", tests: "auth outbound registry scheme/all store/mem"},
	{folder: "mail/mailtest"}, // a mail server for tests
	{folder: "mail", may: ". auth outbound registrar secret web", tests: "store/mem scheme/all"},
	{folder: "usage", may: ". auth document/apijson namespaces registrar", tests: "store/mem scheme/all store/pebble store/postgres"},                                         // it counts what servers hand to it
	{folder: "transparency", may: ". auth document internal/fault internal/offered", tests: "internal/recordtest registrar scheme/all store/mem store/pebble store/postgres"}, // it reads a store, and writes by cells that it is handed
	{folder: "harvest", may: ". auth bulk internal/lease internal/plainxml registrar", tests: "outbound resolver scheme/all serve/httpd store/mem web internal/servertest"},
	{folder: "bulk/sheet", may: ". bulk internal/disk registrar", tests: "auth store/mem scheme/all"},
	{folder: "bulk/foreign/webrules", may: ". rules", tests: "scheme/all"}, // what lists of redirects say, as records and rules
	{folder: "bulk/foreign", may: ". bulk ddds document internal/destination internal/disk internal/dnsrr internal/plainxml mint rules wire/hdl", tests: "internal/recordtest auth registrar resolver secret store/mem scheme/all"},
	{folder: "bulk/deposit", may: ". auth bulk/bundle internal/disk internal/lease internal/plainxml internal/terminal registrar transparency", tests: "outbound scheme/all store/mem"},
	{folder: "bulk/bundle", may: ". document internal/disk proof registrar transparency", tests: "auth giver scheme/all secret store/copy store/mem store/pebble store/postgres"}, // the reader needs no store
	{folder: "bulk", may: ". document internal/disk internal/fault internal/terminal registrar", tests: "auth store/mem scheme/all"},

	{folder: "handles/elsewhere", may: ". client/hdl handles internal/limit wire/hdl", tests: "auth document registrar resolver secret store/mem scheme/all serve/hdld"},  // asks other servers about identities
	{folder: "handles", may: ". document/handlejson internal/destination internal/limit auth registrar resolver wire/hdl", tests: "document secret store/mem scheme/all"}, // what the registry is to the Handle System

	// It judges values as the servers do that they are for.
	{folder: "config", may: ". internal/lease internal/spelling internal/terminal audit auth bulk/deposit giver mail registrar resolver scheme/* serve/* store/postgres transparency"},

	// A server is handed a store and the schemes; it never picks them.
	{folder: "serve/httpd", may: ". trace document rules internal/destination internal/limit internal/plainxml auth ddds handles mint namespaces proof publish resolver registrar transparency wire/hdl web", tests: "outbound registry secret usage store/mem scheme/all"},
	{folder: "serve/api", may: ". trace document rules internal/backuptar internal/limit audit auth bulk ddds mint proof publish resolver registrar search transparency wire/hdl web", tests: "giver heir links outbound registry secret usage store/mem scheme/all"},
	{folder: "serve/desk", may: ". trace document rules internal/limit internal/wording auth bulk mint namespaces registrar resolver search serve/httpd/describe web auth/issuer auth/password mail publish client", tests: "links secret store/mem scheme/all outbound usage transparency"},
	{folder: "serve/hdld", may: ". trace internal/datagram internal/limit internal/slab auth handles wire/hdl", tests: "document registrar resolver secret store/mem scheme/all"},
	{folder: "serve/*", may: ". trace internal/datagram internal/dnsrr internal/slab auth ddds mint namespaces outbound proof publish secret resolver registrar wire/hdl", tests: "store/mem scheme/all"},
	{folder: "docs"}, // the documents themselves
	{folder: "web/chart", pure: true},
	{folder: "web", may: ". document/apijson web/chart internal/wording auth ddds mint proof publish resolver registrar", tests: "docs store/mem scheme/all"},
	{folder: "client/internal", may: "."},
	{folder: "client/remote", may: ". trace document internal/backuptar internal/disk client/internal audit auth bulk namespaces publish/zonekey registrar transparency", tests: "registry resolver store/mem scheme/all serve/*"},
	{folder: "client/hdl", may: ". document client/internal wire/hdl", tests: "auth handles registrar resolver secret store/mem scheme/all serve/*"},
	{folder: "client/ways", may: ". client ddds internal/wording resolver", tests: "auth registrar scheme/all store/mem"},
	{folder: "client/get", may: ". client client/ways ddds internal/disk internal/terminal outbound", tests: "scheme/all"},
	{folder: "client", may: ". document client/hdl client/internal internal/destination ddds mint outbound proof publish/zonemap wire/hdl", tests: "auth handles registrar resolver internal/servertest store/mem scheme/all serve/*"},

	{folder: "server", may: ". trace docs giver harvest heir transparency usage client document links internal/disk internal/limit internal/terminal audit auth bulk config mail outbound publish registrar registry resolver search serve/* web store/* auth/issuer handles wire/hdl", tests: "scheme/all secret"},
	{folder: "doctor", may: ". handles wire/hdl document/apijson internal/disk auth client config mail registry secret server store/pebble auth/issuer outbound", tests: "serve/hdld registrar resolver secret scheme/all store/mem"},
	{folder: "cmd/stele", may: ". giver harvest heir transparency usage rules document handles links internal/destination internal/disk internal/edit internal/limit internal/progress internal/screen internal/spelling internal/terminal internal/wording config doctor mail registry search server audit outbound bulk auth ddds mint namespaces proof publish secret resolver registrar wire/hdl serve/* web client scheme/* store/*"},

	{folder: "bench", may: ". usage transparency document search links links/check internal/disk audit bulk auth ddds mint namespaces proof publish secret resolver registrar wire/hdl serve/* web client scheme/* store/*"},
	{folder: "test/logverifier", tests: ". auth registrar scheme/all store/mem transparency"}, // a second implementation: no code of ours
	{folder: "test", may: ". document mail audit bulk auth ddds mint namespaces proof publish secret resolver registrar wire/hdl serve/* web client scheme/* store/*"},
}

// suites are tests that several packages share: tests alone import them.
var suites = []string{"internal/recordtest", "publish/publishtest", "publish/publishtest", "scheme/schemetest", "store/storetest", "store/postgres/postgrestest", "internal/certtest", "internal/desktest", "internal/servertest", "auth/issuer/issuertest", "mail/mailtest", "web/webtest"}

// guest is a third-party module and the packages that may import it. Every module
// that we import has a line; docs/decisions says why it is there.
type guest struct {
	module string
	lives  string // the rooms whose packages, with their tests, import it
}

// anyTest, as a place, is every test, the suites and bench.
const anyTest = "tests"

var guests = []guest{
	{"github.com/miekg/dns", "serve/dnsd client internal/dnsrr publish test bench"},
	{"github.com/jackc/pgx/v5", "store/postgres test bench"},
	{"github.com/go-jose/go-jose/v4", "proof auth/issuer"},            // in auth/issuer, for its tests
	{"github.com/cockroachdb/pebble/v2", "store/pebble search bench"}, // in bench it is the peer
	{"github.com/spf13/cobra", "cmd/stele"},
	{"github.com/spf13/pflag", "cmd/stele"},
	{"github.com/knadh/koanf", "config"},
	{"github.com/pelletier/go-toml/v2", "config web/language"}, // koanf's own TOML: it tells lines
	{"github.com/prometheus/client_golang", "server"},
	{"github.com/caddyserver/certmagic", "server"},
	{"go.uber.org/zap", "server"}, // the log of certmagic, which is led into ours
	{"github.com/vbauerster/mpb/v8", "internal/progress"},
	{"github.com/klauspost/compress", "bulk serve/dnsd"},
	{"golang.org/x/sys", "doctor internal/datagram internal/disk internal/screen server"}, // to swap two folders in one step; sockets
	{"golang.org/x/text", "search web/language auth/password"},                            // to compare words whatever their diacritics; to prepare passwords
	{"golang.org/x/net", "links registrar usage"},                                         // public suffixes, and the text of HTML
	{"golang.org/x/crypto", "auth/password bulk/deposit"},                                 // argon2id; SSH
	{"github.com/pkg/sftp", "bulk/deposit"},
	{"github.com/maypok86/otter/v2", "resolver client"},
	{"rsc.io/qr", "web"},
	{"github.com/nicksnyder/go-i18n/v2", "web/language"}, // plural forms
	{"github.com/yuin/goldmark", "web/documents"},
	{"github.com/go-webauthn/webauthn", "serve/desk"},
	{"github.com/danielgtaylor/huma/v2", "serve/api"}, // makes schemas of types; it answers no request

	{"github.com/coreos/go-oidc/v3", "auth/issuer"},
	{"golang.org/x/oauth2", "auth/issuer"},
	{"github.com/wneessen/go-mail", "mail"},
	{"github.com/axiomhq/hyperloglog", "usage"},
	{"golang.org/x/mod", "transparency test"},            // Merkle trees and signed notes; modules as they are published
	{"go.yaml.in/yaml/v3", "bulk/foreign"},               // files of the OBO Foundry; decision 73
	{"github.com/oschwald/maxminddb-golang/v2", "usage"}, // countries of addresses

	{"github.com/google/go-cmp", anyTest},
	{"github.com/letsencrypt/pebble/v2", anyTest},   // a CA
	{"github.com/descope/virtualwebauthn", anyTest}, // an authenticator
	{"github.com/google/uuid", anyTest},             // a peer to measure against
	{"github.com/rogpeppe/go-internal", anyTest},
	{"pgregory.net/rapid", anyTest},
	{"go.uber.org/goleak", anyTest},
	{"github.com/anishathalye/porcupine", anyTest},
	{"github.com/chromedp/chromedp", anyTest},
}

// impure are the packages of the standard library that reach outside of the process.
// (net/url and net/netip do not.)
var impure = []string{"net", "net/http", "os", "os/exec", "os/signal", "syscall", "log", "log/slog"}

// edge is an import: by a package, and by its tests or not.
type edge struct {
	from, to string // import paths
	test     bool
}

// wrong says why an import is not allowed, or "".
func (e edge) wrong() string {
	from, ours := within(e.from)
	if !ours {
		return fmt.Sprintf("%s is not a package of this module", e.from)
	}
	home, at := findRoom(from)
	if home == nil {
		return fmt.Sprintf("%s is in no room of the table in test/arrows_test.go; give it a line", from)
	}
	if to, ours := within(e.to); ours {
		return e.wrongInside(home, from, at, to)
	}
	if first, _, _ := strings.Cut(e.to, "/"); strings.Contains(first, ".") {
		return e.wrongGuest(from)
	}
	if home.pure && !e.test && slices.Contains(impure, e.to) {
		return fmt.Sprintf("%s computes and opens nothing, but imports %s", from, e.to)
	}
	return ""
}

// wrongInside judges an import of our own package to, by from, whose room is
// home and whose folder there is at.
func (e edge) wrongInside(home *room, from, at, to string) string {
	_, toAt := findRoom(to)
	switch {
	case toAt == "":
		return fmt.Sprintf("%s imports %s, which is in no room of the table in test/arrows_test.go", from, to)
	case toAt == at:
		return ""
	case slices.Contains(suites, toAt):
		if e.test || at == "bench" || at == "test" {
			return ""
		}
		return fmt.Sprintf("%s imports %s, which is for tests only", from, to)
	case inAny(home.may, to), e.test && inAny(home.tests, to):
		return ""
	}
	return fmt.Sprintf("%s must not import %s (it may: %s)", from, to, cmp.Or(home.may, "nothing of ours"))
}

// wrongGuest judges an import of a third-party package.
func (e edge) wrongGuest(from string) string {
	for _, g := range guests {
		if e.to != g.module && !strings.HasPrefix(e.to, g.module+"/") {
			continue
		}
		if g.lives == anyTest {
			if e.test || inAny(strings.Join(suites, " ")+" bench test", from) {
				return ""
			}
			return fmt.Sprintf("%s imports %s, which is for tests and bench only", from, e.to)
		}
		if inAny(g.lives, from) {
			return ""
		}
		return fmt.Sprintf("%s imports %s, which lives in %s only", from, e.to, g.lives)
	}
	return fmt.Sprintf("%s imports %s, a module without a line in test/arrows_test.go; say where it lives", from, e.to)
}

// within returns the folder of an import path in this module, "." for the root.
func within(path string) (folder string, ours bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

// findRoom returns the room of a folder, and which folder it is there: of
// serve/httpd/static, the room serve/* and serve/httpd.
func findRoom(folder string) (*room, string) {
	for i := range rooms {
		if at := under(rooms[i].folder, folder); at != "" {
			return &rooms[i], at
		}
	}
	return nil, ""
}

// under returns the beginning of folder that pattern stands for, or "".
func under(pattern, folder string) string {
	want, have := strings.Split(pattern, "/"), strings.Split(folder, "/")
	if len(have) < len(want) {
		return ""
	}
	for i, w := range want {
		if w != have[i] && w != "*" {
			return ""
		}
	}
	return strings.Join(have[:len(want)], "/")
}

// inAny reports whether folder is in one of the rooms, a list of words.
func inAny(list, folder string) bool {
	return slices.ContainsFunc(strings.Fields(list), func(p string) bool { return under(p, folder) != "" })
}

// TestArrows fails on an import that goes the wrong way.
func TestArrows(t *testing.T) {
	edges := imports(t)
	if len(edges) < 20 {
		t.Fatalf("only %d imports found; the walk is broken", len(edges))
	}
	for _, e := range edges {
		if why := e.wrong(); why != "" {
			t.Error(why)
		}
	}
}

// TestPureDependencies follows the imports: what computes must not reach a socket or
// another process through a third-party package either.
func TestPureDependencies(t *testing.T) {
	out, err := runIn(root, "go", "list", "-json=ImportPath,Deps", "./...")
	if err != nil {
		t.Fatal(err)
	}
	pure := 0
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Deps       []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		folder, _ := within(p.ImportPath)
		if home, _ := findRoom(folder); home == nil || !home.pure {
			continue
		}
		pure++
		for _, dep := range p.Deps {
			if slices.Contains([]string{"net", "net/http", "os/exec", "crypto/tls"}, dep) {
				t.Errorf("%s computes, but depends on %s", folder, dep)
			}
		}
	}
	if pure < 5 {
		t.Errorf("only %d packages that compute; the walk is broken", pure)
	}
}

// TestFolders fails on a folder at the top that is not planned.
func TestFolders(t *testing.T) {
	known := []string{"deploy", "docs", "tools", "testdata", "bin", "stele-data"}
	for _, r := range rooms {
		first, _, _ := strings.Cut(r.folder, "/")
		known = append(known, first)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(known, e.Name()) {
			t.Errorf("%s/ is not in the plan of the house; give it a line in test/arrows_test.go", e.Name())
		}
	}
}

// TestWrong tries the checker on imports that are not allowed, and on some
// that are right.
func TestWrong(t *testing.T) {
	for _, tt := range []struct {
		from, to string // folders of ours; "" is the root; a dot in the first word: not ours
		test     bool
		want     string // a part of the complaint; "" for none
	}{
		{".", "strings", false, ""},
		{".", "net/netip", false, ""},
		{".", "mint", false, ". must not import mint"},
		{".", "os", false, "opens nothing"},
		{".", "os", true, ""},
		{".", "golang.org/x/text/unicode/norm", false, "lives in search web/language auth/password only"},
		{".", "pgregory.net/rapid", false, "for tests and bench only"},
		{".", "pgregory.net/rapid", true, ""},
		{"mint", ".", false, ""},
		{"mint", "ddds", false, "mint must not import ddds"},
		{"mint", "github.com/google/uuid", false, "for tests and bench only"},
		{"mint", "github.com/google/uuid", true, ""},
		{"bench", "github.com/google/uuid", false, ""},
		{"mint", "net/http", false, "opens nothing"},
		{"scheme/urn", "mint", false, ""},
		{"scheme/urn", "scheme/internal/lex", false, ""},
		{"scheme/urn", "scheme/lsid", false, "scheme/urn must not import scheme/lsid"},
		{"scheme/urn", "scheme/lsid", true, "scheme/urn must not import scheme/lsid"},
		{"scheme/urn", "scheme/all", false, "scheme/urn must not import scheme/all"},
		{"scheme/urn", "scheme/urn/isbn", false, ""},
		{"scheme/urn", "scheme/schemetest", false, "for tests only"},
		{"scheme/urn", "scheme/schemetest", true, ""},
		{"scheme/urn", "resolver", false, "scheme/urn must not import resolver"},
		{"scheme/all", "scheme/urn", false, ""},
		{"scheme/all", "scheme/schemetest", false, "for tests only"},
		{"scheme/internal/lex", ".", false, ""},
		{"scheme/internal/lex", "mint", false, "must not import mint"},
		{"scheme/internal/lex", "scheme/urn", false, "must not import scheme/urn"},
		{"mint", "scheme/internal/lex", false, "must not import scheme/internal/lex"},
		{"scheme/schemetest", "pgregory.net/rapid", false, ""},
		{"scheme/schemetest", "testing", false, ""},
		{"store/pebble", ".", false, ""},
		{"store/pebble", "store/mem", false, "store/pebble must not import store/mem"},
		{"store/pebble", "store/storetest", true, ""},
		{"store/pebble", "scheme/all", false, "must not import scheme/all"},
		{"store/pebble", "github.com/cockroachdb/pebble/v2/sstable", false, ""},
		{"store/postgres", "github.com/cockroachdb/pebble/v2", false, "lives in store/pebble search bench only"},
		{"store/postgres", "github.com/jackc/pgx/v5/pgxpool", false, ""},
		{"registrar", "github.com/jackc/pgx/v5", true, "lives in store/postgres test bench only"},
		{"resolver", "registrar", false, "must not import registrar"},
		{"registrar", "registrar/minting", false, ""},
		{"registrar/minting", "registrar", false, "must not import registrar"},
		{"registrar/minting", "auth", false, "must not import auth"},
		{"registrar", "publish/zonemap", false, ""},
		{"registrar", "publish", false, "registrar must not import publish"},
		{"publish", "publish/naptr", false, ""},
		{"publish", "serve/dnsd", true, "publish must not import serve/dnsd"},
		{"publish", "publish/publishtest", false, "for tests only"},
		{"serve/dnsd", "publish/publishtest", true, ""},
		{"resolver", "store/mem", false, "must not import store/mem"},
		{"resolver", "store/mem", true, ""},
		{"serve/httpd", "resolver", false, ""},
		{"serve/httpd", "serve/httpd/static", false, ""},
		{"serve/httpd", "serve/dnsd", false, "serve/httpd must not import serve/dnsd"},
		{"serve/httpd", "store/pebble", false, "must not import store/pebble"},
		{"serve/httpd", "scheme/ark", false, "must not import scheme/ark"},
		{"serve/httpd", "scheme/all", false, "must not import scheme/all"},
		{"serve/httpd", "github.com/miekg/dns", false, "lives in serve/dnsd client"},
		{"serve/dnsd", "github.com/miekg/dns", false, ""},
		{"serve/dnsd", "github.com/miekg/dnsx", false, "a module without a line"},
		{"serve/hdld", "wire/hdl", false, ""},
		{"wire/hdl", ".", false, "wire/hdl must not import ."},
		{"wire/hdl", "net", false, "opens nothing"},
		{"wire/dns", "net", false, "wire/dns is in no room"},
		{"client", "github.com/spf13/cobra", false, "lives in cmd/stele only"},
		{"client", "serve/httpd", false, "client must not import serve/httpd"},
		{"client", "store/sqlite", false, "client must not import store/sqlite"},
		{"cmd/stele", "github.com/spf13/cobra/doc", false, ""},
		{"cmd/stele", "scheme/all", false, ""},
		{"cmd/stele", "store/pebble", false, ""},
		{"cmd/stele", "os", false, ""},
		{"cmd/stele", "test", false, "must not import test"},
		{"cmd/stele", "gadget", false, "gadget, which is in no room"},
		{"cmd/other", "scheme/all", false, "cmd/other is in no room"},
		{"gadget", ".", false, "gadget is in no room"},
		{"gadget", "gadget", false, "gadget is in no room"},
		{"scheme", ".", false, "scheme is in no room"},
	} {
		e := edge{ourPath(tt.from), ourPath(tt.to), tt.test}
		got := e.wrong()
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%+v: complaint %q, want %q", tt, got, tt.want)
		}
	}
	if why := (edge{"example.org/x", "strings", false}).wrong(); why == "" {
		t.Error("a package of another module is none of ours")
	}
}

// ourPath makes an import path of a folder in the table above.
func ourPath(folder string) string {
	first, _, _ := strings.Cut(folder, "/")
	switch {
	case folder == ".":
		return module
	case slices.ContainsFunc(rooms, func(r room) bool { return strings.HasPrefix(r.folder+"/", first+"/") }),
		first == "gadget":
		return module + "/" + folder
	}
	return folder
}

// imports returns all imports of the module's packages and tests, by all files
// whatever their build constraints.
func imports(t *testing.T) []edge {
	t.Helper()
	out, err := runIn(root, "go", "list", "-json=ImportPath,Dir,Imports,TestImports,XTestImports,IgnoredGoFiles", "./...")
	if err != nil {
		t.Fatal(err)
	}
	var edges []edge
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir                    string
			Imports, TestImports, XTestImports []string
			IgnoredGoFiles                     []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return edges
		} else if err != nil {
			t.Fatal(err)
		}
		// By importing itself, as it were, a package that imports nothing is judged too.
		edges = append(edges, edge{p.ImportPath, p.ImportPath, false})
		for _, to := range p.Imports {
			edges = append(edges, edge{p.ImportPath, to, false})
		}
		for _, to := range slices.Concat(p.TestImports, p.XTestImports) {
			if to != p.ImportPath {
				edges = append(edges, edge{p.ImportPath, to, true})
			}
		}
		for _, name := range p.IgnoredGoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range file.Imports {
				to, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				edges = append(edges, edge{p.ImportPath, to, strings.HasSuffix(name, "_test.go")})
			}
		}
	}
}
