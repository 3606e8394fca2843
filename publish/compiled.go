package publish

import (
	"context"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/publish/naptr"
)

// Compiling is memory in which a zone compiles what stands at one name after another. One
// goroutine at a time uses it. The zero Compiling can be used.
type Compiling struct {
	zone     *Zone // for which the compiler is
	compiler *naptr.Compiler
	out      naptr.Compiled
}

// Compiled returns what stands at a name, like Lookup, without making records of it. Where nothing
// of an identifier stands there, or something else does as well, it returns nil and what Lookup
// returns. The result is good until m is used again.
func (z *Zone) Compiled(ctx context.Context, name string, m *Compiling) (*naptr.Compiled, Node, error) {
	if z.mapping == nil || name == z.Name || len(z.static[name]) > 0 {
		n, err := z.Lookup(ctx, name)
		return nil, n, err
	}
	list, err := z.at(ctx, name)
	if err != nil {
		return nil, Node{}, err
	}
	if len(list) == 0 {
		exists := z.empty[name]
		if !exists {
			exists, err = z.below(ctx, name)
		}
		return nil, Node{Exists: exists}, err
	}
	if m.zone != z {
		m.zone, m.compiler = z, z.compiler()
		m.compiler.KeepHeads()
	}
	m.compiler.CompileTo(&m.out, list)
	return &m.out, Node{Exists: true}, nil
}

// Zone returns the name of the zone that compiled last.
func (m *Compiling) Zone() string { return m.zone.Name }

// Records returns what was compiled last for a name as records.
func (m *Compiling) Records(name string) []dns.RR { return m.out.Records(name) }
