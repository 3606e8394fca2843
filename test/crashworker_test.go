package test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	vocabulary "github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/pebble"
)

// crashEnv makes the test's binary a process that works on the folder it names until
// it is killed.
const crashEnv = "STELE_CRASH_FOLDER"

// registry is a store in a folder and the registrar that works on it.
type registry struct {
	ctx       context.Context
	schemes   *vocabulary.Schemes
	store     vocabulary.Store
	registrar *registrar.Registrar
	resolver  *resolver.Resolver
}

func openRegistry(ctx context.Context, folder string) (*registry, error) {
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		return nil, err
	}
	store, err := pebble.Open(ctx, folder, pebble.Options{Now: time.Now, Reserve: 1 << 20})
	if err != nil {
		return nil, err
	}
	reads := resolver.New(store, schemes, resolver.Options{Now: time.Now, Random: rand.IntN})
	return &registry{
		ctx:      auth.With(ctx, auth.Local()),
		schemes:  schemes,
		store:    store,
		resolver: reads,
		registrar: registrar.New(store, schemes, registrar.Options{
			Now: time.Now, OnCommit: reads.Invalidate, OnNamespaces: reads.InvalidateNamespaces, BlockSize: 50,
		}),
	}, nil
}

// The namespaces of the crash tests, and how their names are made.
var crashSpaces = []vocabulary.Namespace{
	{Scheme: "ibi", Prefix: "sid.inpe.br/mtc-m18", Minter: vocabulary.Minter{Kind: vocabulary.MinterIBI, Host: "mtc-m18.sid.inpe.br", Port: 80, IP: "150.163.34.243", IPPort: 800, Granularity: "1us"}},
	{Scheme: "hdl", Prefix: "102.100.272/", Minter: vocabulary.Minter{Kind: vocabulary.MinterPILIN}},
	{Scheme: "ark", Prefix: "ark:12345/x5", Minter: vocabulary.Minter{Kind: vocabulary.MinterNOID, Template: ".reedeedk", Seed: 7}},
	{Scheme: "urn", Prefix: "urn:x1"},
}

// addSpaces makes the namespaces, unless they are there.
func (r *registry) addSpaces() error {
	for _, ns := range crashSpaces {
		if _, err := r.registrar.AddNamespace(r.ctx, &ns); err != nil && !errors.Is(err, vocabulary.Conflict) {
			return err
		}
	}
	return nil
}

// crashWorker does everything at once: it makes names, registers, changes, imports. It
// writes a line when something is acknowledged, and works until the parent process kills
// it; it returns only if something goes wrong.
func crashWorker(folder string) error {
	r, err := openRegistry(context.Background(), folder)
	if err != nil {
		return err
	}
	if err := r.addSpaces(); err != nil {
		return err
	}
	w := &worker{registry: r, run: strconv.FormatInt(time.Now().UnixNano(), 36), failed: make(chan error, 1)}
	for i := range 3 {
		ns := crashSpaces[i].Key()
		w.loop(func(int) error { return w.mint(ns) })
		w.loop(func(n int) error { return w.mintAndRegister(ns, n) })
	}
	for i := range 2 {
		w.loop(func(n int) error { return w.register(fmt.Sprintf("%s-%d-%d", w.run, i, n)) })
		w.loop(w.update)
	}
	w.loop(w.ingest)
	w.loop(w.rename)
	return <-w.failed
}

type worker struct {
	*registry
	run    string // unlike that of every other process
	mu     sync.Mutex
	failed chan error
}

// loop does something again and again.
func (w *worker) loop(do func(n int) error) {
	go func() {
		for n := 0; ; n++ {
			if err := do(n); err != nil {
				select {
				case w.failed <- err:
				default:
				}
				return
			}
		}
	}()
}

// tell writes a line in one piece.
func (w *worker) tell(words ...string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := os.Stdout.WriteString(strings.Join(words, " ") + "\n")
	return err
}

func (w *worker) mint(key vocabulary.NamespaceKey) error {
	labels, err := w.registrar.Mint(w.ctx, key, 1+rand.IntN(20))
	if err != nil {
		return err
	}
	words := []string{"mint"}
	for _, l := range labels {
		words = append(words, l.ID.String())
		for _, alias := range l.Aliases {
			words = append(words, alias.String())
		}
	}
	return w.tell(words...)
}

func target(url string) []vocabulary.Target {
	return []vocabulary.Target{{Service: vocabulary.N2L, URL: url, Order: vocabulary.DefaultOrder, Preference: vocabulary.DefaultPreference}}
}

func (w *worker) mintAndRegister(key vocabulary.NamespaceKey, n int) error {
	url := fmt.Sprintf("https://example.org/%s/%d", w.run, n)
	rec, err := w.registrar.MintAndRegister(w.ctx, &vocabulary.Record{Targets: target(url)}, key)
	if err != nil {
		return err
	}
	words := []string{"made", url}
	for _, name := range rec.Names() {
		words = append(words, name.String())
	}
	return w.tell(words...)
}

func (w *worker) register(name string) error {
	id, err := w.schemes.Parse("urn:x1:" + name)
	if err != nil {
		return err
	}
	url := "https://example.org/" + name
	if _, err := w.registrar.Register(w.ctx, &vocabulary.Record{ID: id, Targets: target(url)}); err != nil {
		return err
	}
	return w.tell("put", id.String(), "1", url)
}

// update changes one of a few records, which other goroutines change too.
func (w *worker) update(n int) error {
	id, err := w.schemes.Parse(fmt.Sprintf("urn:x1:shared-%d", rand.IntN(8)))
	if err != nil {
		return err
	}
	url := fmt.Sprintf("https://example.org/%s/%d/%d", w.run, n, rand.Uint64())
	rec, err := w.registrar.Update(w.ctx, id, 0, func(rec *vocabulary.Record) error {
		rec.Targets = target(url)
		return nil
	})
	if errors.Is(err, vocabulary.NotFound) {
		rec, err = w.registrar.Register(w.ctx, &vocabulary.Record{ID: id, Targets: target(url)})
	}
	if errors.Is(err, vocabulary.Conflict) {
		return nil // the other one registered it
	}
	if err != nil {
		return err
	}
	return w.tell("put", id.String(), strconv.FormatUint(rec.Version, 10), url)
}

// ingest imports a chunk with its bookmark.
func (w *worker) ingest(n int) error {
	const size = 300
	records := make([]*vocabulary.Record, size)
	for i := range records {
		id, err := w.schemes.Parse(fmt.Sprintf("urn:x1:chunk-%s-%d-%d", w.run, n, i))
		if err != nil {
			return err
		}
		records[i] = &vocabulary.Record{ID: id, Targets: target("https://example.org/" + id.String())}
	}
	errs, err := w.registrar.Ingest(w.ctx, records, registrar.ImportOptions{Name: w.run, Bookmark: []byte(strconv.Itoa(n))})
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	return w.tell("chunk", w.run, strconv.Itoa(n), strconv.Itoa(size))
}

// rename changes a namespace.
func (w *worker) rename(n int) error {
	time.Sleep(20 * time.Millisecond) // all goroutines that make names wait meanwhile
	ns, err := w.registrar.SetNamespace(w.ctx, crashSpaces[n%len(crashSpaces)].Key(), 0, func(ns *vocabulary.Namespace) error {
		ns.Title = fmt.Sprintf("%s %d", w.run, n)
		return nil
	})
	if err != nil {
		return err
	}
	return w.tell("space", strconv.Itoa(n%len(crashSpaces)), strconv.FormatUint(ns.Version, 10))
}
