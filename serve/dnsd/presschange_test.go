package dnsd

import (
	"fmt"
	"math/rand/v2"
	mathrand "math/rand/v2"
	"strings"

	"github.com/stele-id/stele"
)

// anyChange adds a record, or changes, hides or shows one.
func (p *press) anyChange(chance *rand.Rand, prefix string) {
	p.t.Helper()
	part := []string{"a", "B", "c", "x.y", "x.z"}
	text := fmt.Sprintf("%s:%s:%s", prefix, strings.ReplaceAll(part[chance.IntN(5)], ".", ""), part[chance.IntN(5)])
	if chance.IntN(2) == 0 {
		text = strings.ToUpper(text)
	}
	id := p.id(text)
	if _, err := p.registrar.Get(p.ctx, id); err != nil {
		r := &stele.Record{ID: id, Targets: []stele.Target{target("N2L http://example.org/" + fmt.Sprint(chance.IntN(9)))}}
		if alias := p.id(text + "alias"); chance.IntN(3) == 0 {
			r.Aliases = []stele.ID{alias}
		}
		if _, err := p.registrar.Register(p.ctx, r); err != nil {
			p.t.Fatal(err)
		}
		return
	}
	_, err := p.registrar.Update(p.ctx, id, 0, func(r *stele.Record) error {
		switch chance.IntN(4) {
		case 0:
			r.Readers = []string{"user:ann"}
		case 1:
			r.Readers = nil
		case 2:
			r.Persistence.Level = stele.Permanent
		default:
			r.Targets = []stele.Target{target("N2L http://example.org/" + fmt.Sprint(chance.IntN(9)))}
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// deepChange adds a record of its own, or shows or hides one.
func (p *press) deepChange(chance *mathrand.Rand, prefix string) {
	id := p.id(fmt.Sprintf("%s:n%d", prefix, chance.IntN(60)))
	if _, err := p.registrar.Get(p.ctx, id); err != nil {
		r := &stele.Record{ID: id, Targets: []stele.Target{target("N2L http://example.org/")}}
		if _, err := p.registrar.Register(p.ctx, r); err != nil {
			p.t.Error(err)
		}
		return
	}
	_, err := p.registrar.Update(p.ctx, id, 0, func(r *stele.Record) error {
		if r.Readers == nil {
			r.Readers = []string{"user:ann"}
		} else {
			r.Readers = nil
		}
		return nil
	})
	if err != nil {
		p.t.Error(err)
	}
}
