package minting_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/store/storetest"
)

// process is one of several on a store: a registrar that dies and begins again, whose
// clock is its own, and whose commits get lost.
type process struct {
	*registrar.Registrar
	name   string
	offset time.Duration // of its clock
	fails  []lost        // what becomes of its next commits
}

// lost is a commit that failed.
type lost struct{ made bool }

func (p *process) fault(*stele.Commit) (bool, error) {
	if len(p.fails) == 0 {
		return true, nil
	}
	next := p.fails[0]
	p.fails = p.fails[1:]
	return next.made, storetest.Unavailable("the connection is lost")
}

// begin makes it a process that has just begun.
func (p *process) begin(f *fixture) {
	o := f.options
	o.Now = func() time.Time { return f.clock().Add(p.offset) }
	p.Registrar = registrar.New(&storetest.Faulty{Store: f.store, Fault: p.fault}, f.schemes, o)
}

// several is the model: all names that ever left, and the processes.
type several struct {
	*fixture
	processes []*process
	keys      []stele.NamespaceKey
	given     map[stele.ID]string
	steps     int
}

// TestSeveralModel lets processes with clocks of their own mint, register, die, lose
// commits, change templates and add namespaces, in any order, and never tells one of
// what another did. No name is given twice.
func TestSeveralModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) { // which has no deadline, as nothing has in here
			m := &several{fixture: newFixture(t, func(o *registrar.Options) { o.BlockSize = 3; o.Wait = 20 * time.Second }), given: make(map[stele.ID]string)}
			m.keys = []stele.NamespaceKey{
				m.space("sid.inpe.br/mtc-m18", minter(ibi("1ms"))),
				m.space("example.org/b", minter(rep("b.example.org", "1s"))),
				m.space("102.100.272/", minter(stele.Minter{Kind: stele.MinterPILIN})),
				m.space("urn:example", minter(noid(".zd"))),
				m.space("ark:12345", minter(noid("x.zd"))),
			}
			for i := range 3 {
				p := &process{name: fmt.Sprint("process ", i)}
				p.begin(m.fixture)
				m.processes = append(m.processes, p)
			}
			rt.Repeat(map[string]func(*rapid.T){
				"mint":     m.mint,
				"register": m.mintAndRegister,
				"once":     m.mintIdempotent,
				"die":      func(t *rapid.T) { m.some(t).begin(m.fixture) },
				"lose":     m.lose,
				"clock": func(t *rapid.T) {
					m.some(t).offset = time.Duration(rapid.IntRange(-3000, 3000).Draw(t, "ms")) * time.Millisecond
				},
				"time":      func(t *rapid.T) { time.Sleep(time.Duration(rapid.IntRange(1, 2000).Draw(t, "ms")) * time.Millisecond) },
				"template":  m.template,
				"below":     m.below,
				"granulate": m.granulate,
				"reload":    func(t *rapid.T) { _ = m.some(t).Reload(m.admin) },
			})
		})
	})
}

func (m *several) some(t *rapid.T) *process { return rapid.SampledFrom(m.processes).Draw(t, "process") }

func (m *several) key(t *rapid.T) stele.NamespaceKey {
	return rapid.SampledFrom(m.keys).Draw(t, "namespace")
}

// give notes names that left.
func (m *several) give(t *rapid.T, who string, names ...stele.ID) {
	m.steps++
	who = fmt.Sprintf("%s in step %d", who, m.steps)
	for _, name := range names {
		if before, ok := m.given[name]; ok {
			t.Fatalf("%s was given by %s, and before by %s", name, who, before)
		}
		m.given[name] = who
	}
}

// brief is a context for one call, which may wait for clocks that are slow.
func (m *several) brief() (context.Context, context.CancelFunc) {
	return context.WithTimeout(m.admin, 30*time.Second)
}

// tolerate fails on errors that no caller should get.
func tolerate(t *rapid.T, err error) {
	switch stele.KindOf(err) {
	case stele.Unavailable, stele.Exhausted: // lost commits, and templates that are used up
	case stele.NotFound: // the process was not told of the namespace
	default:
		t.Fatal(err)
	}
}

func (m *several) mint(t *rapid.T) {
	p := m.some(t)
	ctx, cancel := m.brief()
	defer cancel()
	labels, err := p.Mint(ctx, m.key(t), rapid.IntRange(1, 12).Draw(t, "n"))
	for _, l := range labels {
		m.give(t, p.name, names(l)...)
	}
	if err != nil {
		tolerate(t, err)
	}
}

func (m *several) mintAndRegister(t *rapid.T) {
	p := m.some(t)
	ctx, cancel := m.brief()
	defer cancel()
	rec, err := p.MintAndRegister(ctx, m.record("", "https://example.org/1"), m.key(t))
	if err != nil {
		tolerate(t, err)
		return
	}
	m.give(t, p.name, rec.Names()...)
}

// mintIdempotent sends a request to two processes, the second time perhaps to the same one.
func (m *several) mintIdempotent(t *rapid.T) {
	ask := idempotencyKey(fmt.Sprint("k", m.steps), "")
	pool := []stele.NamespaceKey{m.key(t)}
	ctx, cancel := m.brief()
	defer cancel()
	p, q := m.some(t), m.some(t)
	first, err := p.MintBatch(ctx, ask, pool, 2, nil)
	if err != nil {
		tolerate(t, err)
	}
	second, again := q.MintBatch(ctx, ask, pool, 2, nil)
	if again != nil {
		tolerate(t, again)
	}
	if err == nil && again == nil && fmt.Sprint(first.Labels) != fmt.Sprint(second.Labels) {
		t.Fatalf("one request has two answers: %v, %v", first, second)
	}
	if again == nil {
		first = second
	}
	for _, l := range first.Labels {
		if err == nil || again == nil {
			m.give(t, p.name, names(l)...)
		}
	}
	m.steps++ // another key next time
}

func (m *several) lose(t *rapid.T) {
	p := m.some(t)
	for range rapid.IntRange(1, 3).Draw(t, "commits") {
		p.fails = append(p.fails, lost{rapid.Bool().Draw(t, "made")})
	}
}

// template changes a template, by a process that may have old settings in memory.
func (m *several) template(t *rapid.T) {
	which := rapid.IntRange(0, 1).Draw(t, "which")
	m.set(t, m.keys[3+which], func(ns *stele.Namespace) {
		ns.Minter.Template = []string{"", "x"}[which] + rapid.SampledFrom([]string{".zd", ".zdd", ".rdddd", ".sdddd", ".zddd"}).Draw(t, "template")
	})
}

func (m *several) granulate(t *rapid.T) {
	m.set(t, m.keys[rapid.IntRange(0, 1).Draw(t, "which")], func(ns *stele.Namespace) {
		ns.Minter.Granularity = rapid.SampledFrom([]string{"1ms", "1s", "1us", "100ms"}).Draw(t, "granularity")
	})
}

func (m *several) set(t *rapid.T, key stele.NamespaceKey, change func(*stele.Namespace)) {
	p := m.some(t)
	_, err := p.SetNamespace(m.admin, key, 0, func(ns *stele.Namespace) error {
		change(ns)
		return nil
	})
	if err != nil {
		tolerate(t, err)
	}
}

// below adds a namespace whose template makes names that the one above it makes too.
func (m *several) below(t *rapid.T) {
	digit := rapid.IntRange(1, 4).Draw(t, "digit") // some names are left to the one above
	key := stele.NamespaceKey{Scheme: "ark", Prefix: fmt.Sprint("ark:12345/x", digit)}
	ns := &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Minter: noid(rapid.SampledFrom([]string{".zd", ".sddd", ".zdd"}).Draw(t, "template"))}
	switch _, err := m.some(t).AddNamespace(m.admin, ns); {
	case err == nil:
		m.keys = append(m.keys, key)
	case stele.KindOf(err) == stele.Conflict: // it is there
	default:
		tolerate(t, err)
	}
}
