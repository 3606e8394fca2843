package logverifier

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/transparency"
)

// registry is a registry with a log, as the program has it.
type registry struct {
	*testing.T
	ctx     context.Context
	mu      sync.Mutex
	now     time.Time
	rnd     *mathrand.Rand
	schemes *stele.Schemes
	r       *registrar.Registrar
	log     *transparency.Log
	keys    *transparency.Keys
	known   []Key
}

func (g *registry) clock() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now = g.now.Add(1_234_567 * time.Microsecond)
	return g.now
}

func newRegistry(t *testing.T, seed uint64) *registry {
	t.Helper()
	g := &registry{T: t, ctx: auth.With(t.Context(), auth.Local()), now: time.Date(2031, 5, 2, 10, 0, 0, 0, time.UTC), rnd: mathrand.New(mathrand.NewPCG(seed, 1))}
	store := mem.New(g.clock)
	var err error
	if g.schemes, err = all.New(all.Config{Now: g.clock}); err != nil {
		t.Fatal(err)
	}
	g.r = registrar.New(store, g.schemes, registrar.Options{Now: g.clock, OnErase: func(ctx context.Context, id stele.ID, upTo uint64) ([]stele.CellChange, error) {
		return g.log.Erase(ctx, id, upTo)
	}})
	g.log = transparency.New(transparency.Options{
		Source: store, Cells: g.r, Random: rand.Reader, Now: g.clock, Log: slog.New(slog.DiscardHandler),
		Listed: func(ctx context.Context) (transparency.Listed, error) { return g.r.Public(ctx) },
	})
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(seed)}, ed25519.SeedSize))
	g.keys = &transparency.Keys{Origin: "names.example.org/.log", List: []transparency.SigningKey{{Private: private, Created: g.now}}}
	for _, k := range g.keys.Public() {
		key, err := ParseKey(k.String())
		g.must(err)
		g.known = append(g.known, key)
	}
	for _, prefix := range []string{"ark:12345", "ark:99999"} {
		_, err := g.r.AddNamespace(g.ctx, &stele.Namespace{Scheme: "ark", Prefix: prefix, Owner: "anna", Listed: prefix == "ark:12345"})
		g.must(err)
	}
	return g
}

func (g *registry) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// live makes a change of a random kind; the registry may refuse it.
func (g *registry) live() {
	g.Helper()
	id, err := g.schemes.Parse(fmt.Sprintf("ark:%s/n%d", []string{"12345", "99999"}[g.rnd.IntN(2)], g.rnd.IntN(120)))
	g.must(err)
	switch g.rnd.IntN(20) {
	case 0:
		_, err = g.r.Withdraw(g.ctx, id, 0, "it is over", stele.ID{})
	case 1:
		_, err = g.r.Redact(g.ctx, id, 0, "a court order")
	case 2:
		key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}
		_, err = g.r.SetNamespace(g.ctx, key, 0, func(n *stele.Namespace) error { n.Title = fmt.Sprint("Namen ", g.rnd.Uint32()); return nil })
	case 3, 4, 5, 6, 7:
		_, err = g.r.Update(g.ctx, id, 0, func(r *stele.Record) error {
			r.Metadata = stele.Metadata{"what": fmt.Sprintf("Ä \"%d\" \u2028", g.rnd.Uint32())}
			if g.rnd.IntN(4) == 0 {
				r.Readers = []string{"anna"}
			}
			return nil
		})
	default:
		_, err = g.r.Register(g.ctx, &stele.Record{ID: id, State: stele.Active, Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/1", Order: 100, Preference: 10}}})
	}
	if err != nil && stele.KindOf(err) == stele.Internal {
		g.Fatal(err)
	}
}

// signed lets the log follow, and returns the checkpoint, checked by this package.
func (g *registry) signed() Checkpoint {
	g.Helper()
	g.must(g.log.CatchUp(g.ctx, nil))
	p, err := g.log.Sign(g.ctx, g.keys)
	g.must(err)
	text, _, err := Open(p.Note, g.known)
	g.must(err)
	c, err := ParseCheckpoint(text)
	g.must(err)
	return c
}

// entries reads all entries of the log.
func (g *registry) entries(size uint64) (list [][]byte) {
	g.Helper()
	for n := uint64(0); n*256 < size; n++ {
		data, err := g.log.Entries(g.ctx, n, int(min(size-n*256, 256)))
		g.must(err)
		for len(data) > 0 {
			length := int(data[0])<<8 + int(data[1])
			list = append(list, data[2:2+length])
			data = data[2+length:]
		}
	}
	return list
}

// What the program logs, signs and proves of random histories is what this package says.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(3) {
		g := newRegistry(t, seed+1)
		stops := map[uint64]bool{2: true, 3: true, 4: true, 5: true, 7: true, 8: true, 9: true, 127: true, 128: true, 129: true, 255: true, 256: true, 257: true, 258: true, 511: true, 512: true, 513: true, 600: true}
		var seen []Checkpoint
		for size := uint64(0); size < 600; {
			status, err := g.log.Status(g.ctx)
			g.must(err)
			if size = status.Changes; stops[size] && (len(seen) == 0 || seen[len(seen)-1].Size != size) {
				c := g.signed()
				seen = append(seen, c)
				g.compare(c, seen)
			}
			g.live()
		}
		last := g.signed()
		seen = append(seen, last)
		g.compare(last, seen)
		if len(seen) < 15 {
			t.Errorf("only %d sizes", len(seen))
		}
		g.compareProofs(last)
	}
}

// compare holds tree, tiles, leaves and proofs of growth against the entries.
func (g *registry) compare(c Checkpoint, seen []Checkpoint) {
	g.Helper()
	var leaves []Hash
	for i, text := range g.entries(c.Size) {
		leaves = append(leaves, LeafHash(text))
		if _, err := ParseLeaf(text); err != nil {
			g.Errorf("entry %d, %s: %v", i, text, err)
		}
	}
	if Root(leaves) != c.Root {
		g.Fatalf("the entries do not give the root of %d leaves", c.Size)
	}
	for level, width := 0, 1; width <= len(leaves); level, width = level+1, width*256 {
		for n := range (len(leaves)/width + 255) / 256 {
			count := min(len(leaves)/width-n*256, 256)
			tile, err := g.log.Tile(g.ctx, level, uint64(n), count)
			g.must(err)
			for i := range count {
				at := (n*256 + i) * width
				if Root(leaves[at:at+width]) != Hash(tile[i*32:]) {
					g.Errorf("hash %d of tile %d of level %d is another one", i, n, level)
				}
			}
		}
	}
	for _, before := range seen {
		proof, err := g.log.ProveGrowth(g.ctx, before.Size, c.Size)
		g.must(err)
		var hashes []Hash
		for _, h := range proof {
			hashes = append(hashes, Hash(h))
		}
		if err := CheckGrowth(before.Size, c.Size, hashes, before.Root, c.Root); err != nil {
			g.Errorf("from %d to %d: %v", before.Size, c.Size, err)
		}
	}
}

// compareProofs has all proofs checked by both, and what is made of them by damage.
func (g *registry) compareProofs(c Checkpoint) {
	g.Helper()
	proved, entries, refused := 0, 0, 0
	for n := range 240 {
		id, err := g.schemes.Parse(fmt.Sprintf("ark:%s/n%d", []string{"12345", "99999"}[n%2], n/2))
		g.must(err)
		for version := uint64(1); ; version++ {
			proof, err := g.log.Prove(g.ctx, transparency.Wanted{ID: id, Version: version, Full: version%2 == 0})
			if stele.KindOf(err) == stele.Unavailable {
				break
			}
			g.must(err)
			text, err := proof.MarshalText()
			g.must(err)
			shown, err := CheckProof(string(text), g.known)
			if err != nil || shown.Name != id.String() || shown.Leaf.Digits() != fmt.Sprint(version) || shown.Checkpoint != c {
				g.Errorf("version %d of %s: %+v (%v)\n%s", version, id, shown, err, text)
				continue
			}
			if proved++; shown.Document == "" {
				entries++
			} else if !strings.Contains(shown.Document, id.String()) {
				g.Errorf("version %d of %s: the document is %s", version, id, shown.Document)
			}
			refused += g.damage(text, shown)
		}
	}
	if proved < 100 || entries == 0 || refused < proved {
		g.Errorf("%d proofs, %d of them of entries alone; %d damaged ones are refused", proved, entries, refused)
	}
}

// damage changes octets of a proof: if the program accepts it, so does this package, and it shows the same. It returns how many are refused
// by both.
func (g *registry) damage(text []byte, shown Shown) (refused int) {
	g.Helper()
	for range 4 {
		other := bytes.Clone(text)
		other[g.rnd.IntN(len(other))] ^= 1 << g.rnd.IntN(8)
		var p transparency.Proof
		err := p.UnmarshalText(other)
		if err == nil {
			_, err = p.Check(g.keys.Public())
		}
		again, ours := CheckProof(string(other), g.known)
		switch {
		case err == nil && (ours != nil || again.Name != shown.Name || again.Document != shown.Document):
			g.Errorf("the program accepts what this package does not (%v):\n%s", ours, other)
		case err != nil && ours != nil:
			refused++
		case ours == nil && (again.Name != shown.Name || again.Document != shown.Document || again.Leaf.At != shown.Leaf.At):
			g.Errorf("another statement is proved:\n%s", other)
		}
	}
	return refused
}
