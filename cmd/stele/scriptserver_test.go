package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/heir"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/links/check"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/scheme/purl"
	"github.com/stele-id/stele/serve/api"
	"github.com/stele-id/stele/server"
)

// notRemote are the sessions of testdata that do not run with servers, and why.
var notRemote = map[string]string{
	"logmonitor":     "it follows another registry, and needs none",
	"log":            "a folder makes the key of its log and signs it; a server does so by itself",
	"logmove":        "it restores and moves folders",
	"logkeylost":     "it gives a folder another secret key",
	"logpostgres":    "it is about databases",
	"mail":           "it reads the settings, and needs no registry",
	"logwitness":     "a witness asks no registry",
	"purlhost":       "a flag that is stored by who works on the folder; remotepurlhost has a server",
	"remotepurlhost": "has a server of its own",
	"remotehandover": "it starts servers itself",
	"escrowdeposit":  "it makes deposits of the folder",
	"remoteescrow":   "it starts servers itself",
	"escrowadopt":    "it reads files where the registry is",
	"erase":          "it looks into the files of the folder",
	"audit":          "it shows the user of the operating system; TestAuditRemote reads through a server",
	"backup":         "it damages files of registries between two commands; remotebackup does so with a server",
	"restoreaccess":  "it restores folders",
	"restoreserial":  "it restores folders",
	"completion":     "it asks no registry",
	"adopt":          "it reads files where the registry is",
	"adoptpublish":   "it reads files where the registry is",
	"bundle":         "it writes and signs files where the registry is",
	"config":         "it asks no registry",
	"doctor":         "it says how the folder and the server are, which differ",
	"explain":        "it asks no registry",
	"findindex":      "it damages files of the search index",
	"harvest":        "scheduled harvests are kept by who works on the folder",
	"get":            "get looks where resolve does",
	"getverify":      "the same; and it starts servers itself",
	"invalid":        "it asks no registry",
	"importobo":      "the servers of sessions have no resolver, which its tests ask; remoteobo has one",
	"remoteobo":      "has a server of its own",
	"proposal":       "it starts servers itself",
	"linksigned":     "the server of the test asks no address of this machine",
	"linkrules":      "the rules are those of the settings of the server; TestLinkRules of package server reads them again",
	"drill":          "servers of sessions make no backups; remotedrill has one that does",
	"remoteadopt":    "it starts servers itself",
	"remotebackup":   "it starts servers itself",
	"remotedrill":    "it starts servers itself",
	"remoterate":     "it starts servers itself",
	"remotesession":  "it starts servers itself",
	"remotetls":      "it starts servers itself",
	"ruleresolve":    "resolve asks the folder",
	"resolve":        "resolve looks into the folder itself; over HTTP it has a protocol of its own",
	"resolvedns":     "the same",
	"resolvednssec":  "the same",
	"resolvehdl":     "the same",
	"resolveorigins": "it resolves in the folder itself",
	"resolveprivate": "the same",
	"remotesecret":   "it starts servers itself",
	"secret":         "it changes the key file between commands; remotesecret asks a server",
	"secretpostgres": "it is about databases",
	"serve":          "it starts servers itself",
	"stdin":          "it asks no registry",
	"store":          "it moves folders",
	"storepostgres":  "it is about databases",
	"tokentree":      "it starts servers itself",
	"usage":          "it asks no registry",
	"usagelog":       "log files are counted where the registry is",
	"usagerestore":   "the same",
	"verify":         "it damages files; remotebackup verifies with a server",
}

// TestScriptsRemote runs the sessions of testdata again, each data folder served by a
// server of its own: what the program prints is the same. Two things are made equal,
// both in [startScriptServer]: the owner of the token is the administrator of the folder,
// as a user who works on it directly is, and no more names of a template are reserved than
// are asked for.
func TestScriptsRemote(t *testing.T) {
	all, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	params := scriptParams(t)
	for _, file := range all {
		if name := strings.TrimSuffix(filepath.Base(file), ".txtar"); notRemote[name] == "" {
			params.Files = append(params.Files, file)
		}
	}
	if len(params.Files)+len(notRemote) != len(all) {
		t.Errorf("%d of %d sessions are held, and %d are said not to be", len(params.Files), len(all), len(notRemote))
	}
	remotely(&params)
	testscript.Run(t, params)
}

// serversVariable names the address at which the test tells which server has a folder.
const serversVariable = "STELE_SCRIPT_SERVERS"

// remotely makes sessions run with servers.
func remotely(params *testscript.Params) {
	setup := params.Setup
	params.Setup = func(env *testscript.Env) error {
		servers := &scriptServers{byFolder: make(map[string]*scriptServer)}
		finder := httptest.NewServer(servers)
		env.Defer(func() {
			finder.Close()
			servers.close()
		})
		env.Setenv(serversVariable, finder.URL)
		return setup(env)
	}
}

// remoteVerbs are those that ask the server instead of the folder.
var remoteVerbs = strings.Fields("register update withdraw reinstate redact disavow revert replace show history ls find mint ns handover escrow rule proposal links usage zone handle key sign user token import export backup verify")

// scripted is the program as sessions run it. If the test says so, it works on the server
// that has a folder instead of the folder.
func scripted() {
	finder := os.Getenv(serversVariable)
	verb, data, rest := folderOf(os.Args[1:])
	if finder == "" || !slices.Contains(remoteVerbs, verb) || os.Getenv("STELE_SERVER") != "" {
		main()
		return
	}
	if _, err := os.Stat(data); errors.Is(err, os.ErrNotExist) && !writes(rest) {
		main() // it says that there is none: a server has always one
		return
	}
	server, err := askFinder(finder, data)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
	_ = os.Setenv("STELE_SERVER", server.URL)
	_ = os.Setenv("STELE_TOKEN", server.Token)
	os.Args = append(os.Args[:1], rest...)
	main()
}

// folderOf finds the verb of a command line and its folder, and returns the line
// without the folder.
func folderOf(args []string) (verb, data string, rest []string) {
	data = os.Getenv("STELE_DATA")
	if data == "" {
		data = config.DefaultData
	}
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--data" && i+1 < len(args):
			data = args[i+1]
			i++
			continue
		case verb == "" && args[i] != "__complete" && !strings.HasPrefix(args[i], "-"):
			verb = args[i]
		}
		rest = append(rest, args[i])
	}
	return verb, data, rest
}

// writes reports whether a verb makes a registry where there is none.
func writes(args []string) bool {
	line := strings.Join(slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--json" }), " ")
	for _, verb := range strings.Fields("register update withdraw reinstate redact mint import") {
		if strings.HasPrefix(line, verb) {
			return true
		}
	}
	return strings.HasPrefix(line, "ns add") || strings.HasPrefix(line, "zone add") || strings.HasPrefix(line, "user add")
}

// scriptServer is a server of a folder.
type scriptServer struct {
	URL   string
	Token string
	close func()
}

// scriptServers has the servers of one session.
type scriptServers struct {
	mu       sync.Mutex
	byFolder map[string]*scriptServer
}

// askFinder finds out which server has a folder.
func askFinder(finder, data string) (s scriptServer, err error) {
	full, err := filepath.Abs(data)
	if err != nil {
		return s, err
	}
	resp, err := http.Get(finder + "?data=" + url.QueryEscape(full))
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return s, fmt.Errorf("no server for %s: %s%w", data, bytes.TrimSpace(body), err)
	}
	return s, json.Unmarshal(body, &s)
}

// ServeHTTP tells which server has a folder, and starts one if none does.
func (s *scriptServers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data := r.URL.Query().Get("data")
	server := s.byFolder[data]
	if server == nil {
		var err error
		if server, err = startScriptServer(data); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		s.byFolder[data] = server
	}
	_ = json.NewEncoder(w).Encode(server)
}

func (s *scriptServers) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range s.byFolder {
		server.close()
	}
}

// startScriptServer starts a server for a folder.
func startScriptServer(data string) (*scriptServer, error) {
	p := program{stderr: io.Discard, now: time.Now, data: data, create: true, block: 1}
	p.settleSecrets()
	schemes, err := all.New(all.Config{Now: time.Now, PURLHosts: purl.DefaultHosts()})
	if err != nil {
		return nil, err
	}
	r, err := p.openRegistry(context.Background(), schemes, slog.New(slog.DiscardHandler), resolver.Options{CacheBytes: 1 << 20})
	if err != nil {
		return nil, err
	}
	// A temporary index, so that the session does not find one that it did not make.
	if err := r.OpenSearch(context.Background(), "", nil); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	rules, err := links.UsualRules()
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	o := server.LinkOptions(rules, outbound.Rule{}, "", "", "Stele", nil, time.Now)
	o.Registrar, o.Store = r.Registrar, r.Store
	checker := check.New(o)
	running, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { checker.Run(running) })
	heirs := &heir.Checker{Registrar: r.Registrar, Schemes: schemes, HTTP: outbound.NewClient(outbound.Rule{Any: true}, heir.Patience, heir.MaxAnswer)}
	front := httptest.NewServer(api.New(api.Options{
		Heirs: heirs, Givers: server.GiverWatcher(r.Registrar, outbound.Rule{}, "Stele", time.Now, nil), Links: checker, Registrar: r.Registrar, Store: r.Store, Resolver: r.Resolver, Schemes: schemes, Directory: scriptDirectory{r.Directory}, Now: time.Now, Search: r.Search,
		Upkeep: api.Upkeep{Keys: server.NewKeys(r, time.Now), Handles: server.NewHandleSites(r, time.Now)},
	}))
	return &scriptServer{URL: front.URL, Token: scriptToken, close: func() {
		front.Close()
		stop()
		work.Wait()
		_ = r.Close() // the folder is removed next
	}}, nil
}

// scriptToken is the token of a user who acts as if on the folder itself.
const scriptToken = "script"

// scriptDirectory knows that token beside those of the registry.
type scriptDirectory struct{ *auth.Directory }

func (d scriptDirectory) Authenticate(ctx context.Context, credential string) (auth.Principal, error) {
	if credential == scriptToken {
		return auth.Local(), nil
	}
	return d.Directory.Authenticate(ctx, credential)
}
