package main

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
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/proof"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/secret"
)

// demoRegistry is what the demo registers: namespaces and records in JSON, one a
// line, each at the time that it says it was created. A record that comes again is
// its next version. {site} stands for the address of the site whose things are
// named, {resolver} for the host and port of the resolver, and a text: before a handle
// value's data says that it is not in base64.
//
//go:embed demo/registry.jsonl
var demoRegistry string

// demoHost is the host of the demo's PURLs.
const demoHost = "purl.example.org"

// Where the demo answers if nobody says where: on this machine alone.
const (
	demoAddress = "127.0.0.1:8080"
	demoDNS     = "127.0.0.1:8053"

	demoSiteAddress = "127.0.0.1:8081"
	demoAnyPort     = "127.0.0.1:0"
)

// forDemo makes the configuration one for the demo, where no source says otherwise.
func forDemo(c *config.Config) {
	c.Store = "" // a database that the environment names for every day is not meant
	if c.Origin("http") == config.Default {
		c.HTTP = demoAddress
	}
	if c.Origin("dns") == config.Default {
		c.DNS = []string{demoDNS}
	}
	if c.Origin("metrics") == config.Default {
		c.Metrics = demoAnyPort
	}
	if c.Origin("log-level") == config.Default {
		c.LogLevel = "warn" // the terminal is for what to try
	}
	if c.Host == "" {
		c.Host = demoHost
	}
	if !slices.Contains(c.PURLHosts, demoHost) {
		c.PURLHosts = append(slices.Clone(c.PURLHosts), demoHost)
	}
}

// demoText finds handle values that are written as text.
var demoText = regexp.MustCompile(`"text:(?:[^"\\]|\\.)*"`)

// demoLines returns the lines of the registry, for a site and a resolver.
func demoLines(site, resolver string) []string {
	text := strings.NewReplacer("{site}", site, "{resolver}", resolver).Replace(demoRegistry)
	text = demoText.ReplaceAllStringFunc(text, func(quoted string) string {
		var plain string
		if err := json.Unmarshal([]byte(quoted), &plain); err != nil {
			return quoted // what reads the line will say what is wrong
		}
		return `"` + base64.StdEncoding.EncodeToString([]byte(strings.TrimPrefix(plain, "text:"))) + `"`
	})
	return strings.Split(strings.TrimSpace(text), "\n")
}

// seedDemo fills an empty registry.
func seedDemo(ctx context.Context, r *registry.Registry, site, resolver string) error {
	seed := &seeder{Registry: r}
	seed.registrar = registrar.New(r.Store, r.Schemes, registrar.Options{
		Now:          func() time.Time { return seed.now },
		OnCommit:     r.Committed,
		OnNamespaces: r.NamespacesCommitted,
		Secrets:      r.Secrets,
	})
	for i, line := range demoLines(site, resolver) {
		if err := seed.line(ctx, []byte(line)); err != nil {
			return fmt.Errorf("line %d of the demo's registry: %w", i+1, err)
		}
	}
	return seed.sign(ctx, demoSigned, demoTone())
}

// demoSigned is the name of what is signed in the demo.
const demoSigned = "urn:paradisec:AB1:005:A"

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
	signed, err := proof.Sign(key, id, stele.Signature{SHA256: sha256.Sum256(body), Size: uint64(len(body)), Type: "audio/wav", Date: s.now})
	if err != nil {
		return err
	}
	_, err = s.registrar.Update(ctx, id, 0, func(rec *stele.Record) error {
		rec.Signatures = append(rec.Signatures, signed)
		return nil
	})
	return err
}

// seeder writes at times long past.
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

// demoFolder makes sure that the demo's registry has a folder of its own: a new one,
// which remove deletes, or the one that was named if nothing is in it.
func (p *program) demoFolder(named bool) (remove func(), err error) {
	if !named {
		folder, err := os.MkdirTemp("", "stele-demo-")
		if err != nil {
			return nil, err
		}
		p.data = folder
		return func() { _ = os.RemoveAll(folder) }, nil // it is in a folder for what nobody needs
	}
	entries, err := os.ReadDir(p.data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(entries) > 0 {
		return nil, refuse("serve", stele.Conflict, "the demo fills a registry of its own, and %.200q is not empty; name a new folder with --data, or none for a temporary one", p.data)
	}
	return func() {}, nil
}

// demoSecrets gives the demo a secret key in memory, which ends with it.
func (p *program) demoSecrets() error {
	k, err := secret.NewKey(rand.Reader)
	if err != nil {
		return err
	}
	p.secrets = secret.NewRing(secret.Text{Keep: k.Text(), Name: "the memory of the demo"})
	return nil
}
