package bundle

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/proof"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/transparency"
)

// house is a registry with a log.
type house struct {
	*testing.T
	ctx     context.Context
	now     time.Time
	ticking *sync.Mutex
	store   stele.Store
	schemes *stele.Schemes
	r       *registrar.Registrar
	log     *transparency.Log
	keys    *transparency.Keys
	signer  crypto.Signer // of the namespace ark:12345
}

func newSchemes(t testing.TB) *stele.Schemes {
	t.Helper()
	s, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (h *house) clock() time.Time {
	h.ticking.Lock()
	defer h.ticking.Unlock()
	h.now = h.now.Add(time.Millisecond)
	return h.now
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{T: t, ticking: new(sync.Mutex), now: time.Date(2021, 5, 2, 10, 0, 0, 0, time.UTC), ctx: auth.With(t.Context(), auth.Local()), schemes: newSchemes(t)}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	h.must(err)
	h.keys = &transparency.Keys{Origin: "names.example.org/.log", List: []transparency.SigningKey{{Private: private, Created: h.now}}}
	h.over(mem.New(h.clock))
	return h
}

// over lets the house have another store.
func (h *house) over(store stele.Store) {
	h.store = store
	h.r = registrar.New(store, h.schemes, registrar.Options{Now: h.clock, OnErase: func(ctx context.Context, id stele.ID, upTo uint64) ([]stele.CellChange, error) {
		return h.log.Erase(ctx, id, upTo)
	}})
	h.log = transparency.New(transparency.Options{
		Source: store, Cells: h.r, Random: rand.Reader, Now: h.clock, Log: slog.New(slog.DiscardHandler),
		Listed: func(ctx context.Context) (transparency.Listed, error) { return h.r.Public(ctx) },
	})
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *house) id(text string) stele.ID {
	h.Helper()
	id, err := h.schemes.Parse(text)
	h.must(err)
	return id
}

// put registers a name, or makes a new version of it.
func (h *house) put(name string, change ...func(*stele.Record)) {
	h.Helper()
	rec := &stele.Record{ID: h.id(name), State: stele.Active, Metadata: stele.Metadata{"what": "Ein Titel"},
		Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/" + strconv.Itoa(len(name)), Order: 100, Preference: 10}}}
	for _, c := range change {
		c(rec)
	}
	_, err := h.r.Register(h.ctx, rec)
	if stele.KindOf(err) == stele.Conflict {
		_, err = h.r.Update(h.ctx, rec.ID, 0, func(r *stele.Record) error {
			r.Metadata = stele.Metadata{"what": "Version " + strconv.FormatUint(r.Version+1, 10)}
			for _, c := range change {
				c(r)
			}
			return nil
		})
	}
	h.must(err)
}

// fill fills a registry with something of all.
func (h *house) fill(records int) {
	h.Helper()
	signer, public, err := proof.NewKey(stele.KeyED25519, rand.Reader, h.now)
	h.must(err)
	h.signer = signer
	for _, n := range []*stele.Namespace{
		{Scheme: "ark", Prefix: "ark:12345", Owner: "anna", Title: "Archive of Rivers", Listed: true, Keys: []stele.SigningKey{public},
			Persistence: stele.Persistence{Level: stele.Permanent, Statement: "For as long as there are <rivers> & banks."}},
		{Scheme: "ark", Prefix: "ark:99999", Owner: "bruno"},
		{Scheme: "hdl", Prefix: "20.500.1/", Owner: "carla"},
	} {
		_, err := h.r.AddNamespace(h.ctx, n)
		h.must(err)
	}
	for i := range records {
		h.put(fmt.Sprintf("ark:12345/x%d", i*7919%records))
		h.put(fmt.Sprintf("ark:99999/x%d", i%(records/3+1)))
	}
	_, err = h.r.SetNamespace(h.ctx, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:99999"}, 0, func(n *stele.Namespace) error {
		n.Minter = stele.Minter{Kind: stele.MinterNOID, Template: "m.reedk"}
		n.Listed = true
		return nil
	})
	h.must(err)
	_, err = h.r.Mint(h.ctx, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:99999"}, 3)
	h.must(err)
	h.put("ark:99999/x0")
	h.put("ark:12345/alias", func(r *stele.Record) { r.Aliases = []stele.ID{h.id("ark:12345/also"), h.id("20.500.1/also")} })
	h.put("ark:12345/hidden", func(r *stele.Record) { r.Readers = []string{"user:anna"} })
	for range 3 {
		h.put("ark:99999/erased", func(r *stele.Record) { r.Metadata["who"] = "Erasmus Erased" })
	}
	_, err = h.r.Redact(h.ctx, h.id("ark:99999/erased"), 0, "a court order")
	h.must(err)
	h.put("20.500.1/secret", func(r *stele.Record) {
		r.Values = []stele.HandleValue{{Index: 300, Type: "URL", Data: []byte("https://example.org/"), TTL: 86400, Permissions: stele.DefaultPermissions}}
	})
	_, err = h.r.Withdraw(h.ctx, h.id("ark:12345/x1"), 0, "it was wrong", h.id("ark:12345/x2"))
	h.must(err)
}

func (h *house) job(prefixes ...string) *Job {
	h.Helper()
	var keys []stele.NamespaceKey
	for _, p := range prefixes {
		prefix, _, err := h.schemes.ParsePrefix(p)
		h.must(err)
		keys = append(keys, stele.NamespaceKey{Scheme: prefix.Scheme(), Prefix: prefix.String()})
	}
	from, err := h.r.Bundling(h.ctx, keys...)
	h.must(err)
	return &Job{From: from, Log: h.log, Keys: h.keys, Now: h.now}
}

func (h *house) bundle(j *Job) []byte {
	h.Helper()
	var b bytes.Buffer
	_, err := j.Write(h.ctx, &b)
	h.must(err)
	return b.Bytes()
}

func (h *house) options() Options {
	return Options{Schemes: h.schemes, Keys: h.keys.Public(), Now: h.now}
}

func (h *house) check(data []byte) *Report {
	h.Helper()
	report, err := Read(h.ctx, bytes.NewReader(data), h.options())
	h.must(err)
	return report
}
