// Package demo is the small registry of examples that 'stele serve --demo' answers from, the
// web site of the publishers that its names lead to, and what to try there.
package demo

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/proof"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/secret"
	"github.com/stele-id/stele/server"
)

// Demo is a running demo.
type Demo struct {
	Now    func() time.Time
	Stdout io.Writer

	// Stele runs a command of the program, and returns its exit code.
	Stele func(ctx context.Context, out io.Writer, args ...string) int

	at   place
	site *http.Server
}

// Prepare opens the web site of the publishers, and fills an empty registry.
func (d *Demo) Prepare(ctx context.Context, r *registry.Registry, at server.Addresses) error {
	listener, err := listenSite(ctx, at)
	if err != nil {
		return err
	}
	here, err := url.Parse(at.HTTP)
	if err != nil {
		return err
	}
	d.at.here, d.at.site = at.HTTP, "http://"+localhost(listener.Addr().(*net.TCPAddr).Port)
	d.site = &http.Server{Handler: site{resolver: at.HTTP, begun: d.Now()}, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = d.site.Serve(listener) }() // until Close
	port, err := strconv.Atoi(here.Port())
	if err != nil {
		return err
	}
	if err := d.addUser(ctx, r); err != nil {
		return err
	}
	return fill(ctx, r, d.at.site, localhost(port))
}

// listenSite opens the socket of the site: at the port that the documents show if the demo
// itself is at the one that they show, and if that port is free.
func listenSite(ctx context.Context, at server.Addresses) (net.Listener, error) {
	var c net.ListenConfig
	if at.HTTP == "http://"+httpAddress {
		if l, err := c.Listen(ctx, "tcp", siteAddress); err == nil {
			return l, nil
		}
	}
	return c.Listen(ctx, "tcp", anyPort)
}

// localhost returns a port of this machine, by the name that every machine has for itself.
func localhost(port int) string { return net.JoinHostPort("localhost", strconv.Itoa(port)) }

// User is the administrator of the demo: visitors of the desk look around as this user, and
// Print shows a token of the user.
const User = "admin"

// addUser makes the administrator and a token, unless the registry has users.
func (d *Demo) addUser(ctx context.Context, r *registry.Registry) error {
	ctx = auth.With(ctx, auth.Local())
	for _, err := range r.Registrar.Users(ctx) {
		return err
	}
	if _, err := r.Registrar.AddUser(ctx, auth.User{Name: User, Admin: true}); err != nil {
		return err
	}
	credential, _, err := r.Registrar.CreateToken(ctx, auth.TokenRequest{User: User, Label: "demo", Expires: d.Now().Add(auth.TokenLife)})
	d.at.token = credential
	return err
}

// Ready takes the addresses at which the server answers.
func (d *Demo) Ready(at server.Addresses) error {
	if len(at.DNS) == 0 {
		return nil
	}
	dns, err := netip.ParseAddrPort(at.DNS[0])
	if err != nil {
		return err
	}
	if dns.Addr().IsUnspecified() {
		dns = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), dns.Port())
	}
	d.at.dns, d.at.ip, d.at.port = dns.String(), dns.Addr().String(), strconv.Itoa(int(dns.Port()))
	return nil
}

// Close closes the web site.
func (d *Demo) Close() {
	if d.site != nil {
		_ = d.site.Close() // no client depends on it
	}
}

// examples is what the demo registers: namespaces and records in JSON, one a
// line, each at the time that it says it was created. A record that comes again is
// its next version. {site} stands for the address of the site whose things are
// named, {resolver} for the host and port of the resolver, and a text: before a handle
// value's data says that it is not in base64.
//
//go:embed registry.jsonl
var examples string

// Host is the host of the demo's PURLs.
const Host = "purl.example.org"

// logOrigin is the name of the demo's log.
const logOrigin = "demo.example.org/.log"

// Where the demo answers if no setting says where: on this machine alone.
const (
	httpAddress = "127.0.0.1:8080"
	DNSAddress  = "127.0.0.1:8053"

	siteAddress = "127.0.0.1:8081"
	anyPort     = "127.0.0.1:0"
)

// Configure makes the configuration one for the demo, where no source says otherwise. It
// returns the settings whose address may be replaced by a free port.
func Configure(c *config.Config) (anyPorts []string) {
	c.Store = "" // a database that the environment names for all verbs does not count
	if c.Origin("http") == config.Default {
		c.HTTP = httpAddress
		anyPorts = append(anyPorts, "http")
	}
	if c.Origin("dns") == config.Default {
		c.DNS = []string{DNSAddress}
		anyPorts = append(anyPorts, "dns")
	}
	if c.Origin("metrics") == config.Default {
		c.Metrics = anyPort
	}
	if c.Origin("log-level") == config.Default {
		c.LogLevel = "warn" // the terminal is for Print
	}
	if c.LogOrigin == "" {
		c.LogOrigin = logOrigin
	}
	if c.Origin("log-interval") == config.Default {
		c.LogInterval = time.Second // a visitor who changes a name wants its proof now
	}
	if c.Host == "" {
		c.Host = Host
	}
	if !slices.Contains(c.PURLHosts, Host) {
		c.PURLHosts = append(slices.Clone(c.PURLHosts), Host)
	}
	// Secondaries of a demo are on this machine.
	c.NotifyAllow, c.TransferAllow = append(c.NotifyAllow, "127.0.0.1", "::1"), append(c.TransferAllow, "127.0.0.1", "::1")
	return anyPorts
}

// plainData finds handle values that are written as text.
var plainData = regexp.MustCompile(`"text:(?:[^"\\]|\\.)*"`)

// lines returns the lines of the registry, for a site and a resolver.
func lines(site, resolver string) []string {
	text := strings.NewReplacer("{site}", site, "{resolver}", resolver).Replace(examples)
	text = plainData.ReplaceAllStringFunc(text, func(quoted string) string {
		var plain string
		if err := json.Unmarshal([]byte(quoted), &plain); err != nil {
			return quoted // the reader of the line reports the fault
		}
		return `"` + base64.StdEncoding.EncodeToString([]byte(strings.TrimPrefix(plain, "text:"))) + `"`
	})
	return strings.Split(strings.TrimSpace(text), "\n")
}

// fill fills an empty registry.
func fill(ctx context.Context, r *registry.Registry, site, resolver string) error {
	seed := &seeder{Registry: r}
	seed.registrar = registrar.New(r.Store, r.Schemes, registrar.Options{
		Now:          func() time.Time { return seed.now },
		OnCommit:     r.Committed,
		OnNamespaces: r.NamespacesCommitted,
		Secrets:      r.Secrets,
	})
	for i, line := range lines(site, resolver) {
		if err := seed.line(ctx, []byte(line)); err != nil {
			return fmt.Errorf("line %d of the demo's registry: %w", i+1, err)
		}
	}
	return seed.sign(ctx, signed, tone())
}

// signed is the name of what is signed in the demo.
const signed = "urn:paradisec:AB1:005:A"

// sign signs what is at a name's location, as the archive would: with a key of its
// namespace. All demos have the same, so that they answer the same.
func (s *seeder) sign(ctx context.Context, name string, body []byte) error {
	s.now = time.Date(2026, 1, 15, 9, 0, 0, 0, time.UTC)
	seed := sha256.Sum256([]byte("the key of the demo, which everybody may know"))
	key := ed25519.NewKeyFromSeed(seed[:])
	id, err := s.Schemes.Parse(name)
	if err != nil {
		return err
	}
	public, err := proof.PublicKey(key, s.now)
	if err != nil {
		return err
	}
	_, err = s.registrar.SetNamespace(ctx, stele.NamespaceKey{Scheme: "urn", Prefix: "urn:paradisec"}, 0, func(ns *stele.Namespace) error {
		ns.Keys = append(ns.Keys, public)
		return nil
	})
	if err != nil {
		return err
	}
	signature, err := proof.Sign(key, id, stele.Signature{SHA256: sha256.Sum256(body), Size: uint64(len(body)), Type: "audio/wav", Date: s.now})
	if err != nil {
		return err
	}
	_, err = s.registrar.Update(ctx, id, 0, func(rec *stele.Record) error {
		rec.Signatures = append(rec.Signatures, signature)
		return nil
	})
	return err
}

// seeder writes records with times in the past.
type seeder struct {
	*registry.Registry
	registrar *registrar.Registrar
	now       time.Time
}

func (s *seeder) line(ctx context.Context, line []byte) error {
	if bytes.HasPrefix(line, []byte(`{"scheme"`)) {
		ns, err := document.DecodeNamespace(s.Schemes, line)
		if err != nil {
			return err
		}
		s.now = ns.Created
		if ns.Prefix == "" { // every scheme has its root already
			_, err = s.registrar.SetNamespace(ctx, ns.Key(), 0, func(root *stele.Namespace) error {
				root.Title, root.Publication = ns.Title, ns.Publication
				return nil
			})
			return err
		}
		_, err = s.registrar.AddNamespace(ctx, ns)
		return err
	}
	rec, err := document.DecodeRecord(s.Schemes, line)
	if err != nil {
		return err
	}
	s.now = rec.Created
	if rec.State == stele.Withdrawn {
		_, err = s.registrar.Withdraw(ctx, rec.ID, 0, rec.Tombstone.Reason, rec.Tombstone.Replacement)
		return err
	}
	if _, err = s.registrar.Register(ctx, rec); !errors.Is(err, stele.Conflict) {
		return err
	}
	_, err = s.registrar.Update(ctx, rec.ID, 0, func(next *stele.Record) error {
		next.Targets, next.Metadata, next.Persistence = rec.Targets, rec.Metadata, rec.Persistence
		return nil
	})
	return err
}

// Folder returns an empty folder for the demo's registry, and a function that removes it: a
// new one, or the one that is named if it is empty.
func Folder(named string) (folder string, remove func(), err error) {
	if named == "" {
		folder, err := os.MkdirTemp("", "stele-demo-")
		if err != nil {
			return "", nil, err
		}
		return folder, func() { _ = os.RemoveAll(folder) }, nil // it is a temporary folder
	}
	entries, err := os.ReadDir(named)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, err
	}
	if len(entries) > 0 {
		return "", nil, &stele.Error{Op: "serve", Kind: stele.Conflict, Err: fmt.Errorf("the demo fills a registry of its own, and %.200q is not empty; name a new folder with --data, or none for a temporary one", named)}
	}
	return named, func() {}, nil
}

// Secrets returns a secret key in memory, which is lost when the demo ends.
func Secrets() (*secret.Ring, error) {
	k, err := secret.NewKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return secret.NewRing(secret.Text{Keep: k.Text(), Name: "the memory of the demo"}), nil
}
