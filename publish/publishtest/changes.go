package publishtest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/stele-id/stele"
)

// AnyChange adds a record, or changes, hides or shows one.
func (p *Registry) AnyChange(chance *rand.Rand, prefix string) {
	p.T.Helper()
	part := []string{"a", "B", "c", "x.y", "x.z"}
	text := fmt.Sprintf("%s:%s:%s", prefix, strings.ReplaceAll(part[chance.IntN(5)], ".", ""), part[chance.IntN(5)])
	if chance.IntN(2) == 0 {
		text = strings.ToUpper(text)
	}
	id := p.ID(text)
	if _, err := p.Registrar.Get(p.Ctx, id); err != nil {
		r := &stele.Record{ID: id, Targets: []stele.Target{Target("N2L http://example.org/" + fmt.Sprint(chance.IntN(9)))}}
		if alias := p.ID(text + "alias"); chance.IntN(3) == 0 {
			r.Aliases = []stele.ID{alias}
		}
		if _, err := p.Registrar.Register(p.Ctx, r); err != nil {
			p.T.Fatal(err)
		}
		return
	}
	_, err := p.Registrar.Update(p.Ctx, id, 0, func(r *stele.Record) error {
		switch chance.IntN(4) {
		case 0:
			r.Readers = []string{"user:ann"}
		case 1:
			r.Readers = nil
		case 2:
			r.Persistence.Level = stele.Permanent
		default:
			r.Targets = []stele.Target{Target("N2L http://example.org/" + fmt.Sprint(chance.IntN(9)))}
		}
		return nil
	})
	if err != nil {
		p.T.Fatal(err)
	}
}

// AddOrHide adds a record of its own, or shows or hides one.
func (p *Registry) AddOrHide(chance *rand.Rand, prefix string) {
	id := p.ID(fmt.Sprintf("%s:n%d", prefix, chance.IntN(60)))
	if _, err := p.Registrar.Get(p.Ctx, id); err != nil {
		r := &stele.Record{ID: id, Targets: []stele.Target{Target("N2L http://example.org/")}}
		if _, err := p.Registrar.Register(p.Ctx, r); err != nil {
			p.T.Error(err)
		}
		return
	}
	_, err := p.Registrar.Update(p.Ctx, id, 0, func(r *stele.Record) error {
		if r.Readers == nil {
			r.Readers = []string{"user:ann"}
		} else {
			r.Readers = nil
		}
		return nil
	})
	if err != nil {
		p.T.Error(err)
	}
}
