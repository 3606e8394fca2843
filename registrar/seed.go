package registrar

import (
	"encoding/binary"
	"io"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
)

// maxSeed is the greatest seed that is drawn: programs that read JSON numbers as floating
// point keep it exactly.
const maxSeed = 1<<53 - 1

// seedTemplate gives the template of a namespace a seed, if it has none. One that the
// namespace had before keeps its seed, whatever that is; a new one that shuffles its names
// gets a random seed, so that its names can't be foretold.
func (r *Registrar) seedTemplate(before, next *stele.Namespace) error {
	m := &next.Minter
	if m.Kind != stele.MinterNOID || m.Seed != 0 {
		return nil
	}
	if before != nil && before.Minter.Kind == m.Kind && before.Minter.Template == m.Template {
		m.Seed = before.Minter.Seed
		return nil
	}
	if t, err := mint.ParseTemplate(m.Template); err != nil || !t.IsShuffled() {
		return nil // what is wrong with it is told when it is judged
	}
	for m.Seed == 0 {
		var random [8]byte
		if _, err := io.ReadFull(r.o.Rand, random[:]); err != nil {
			return refuse("seed template", stele.ID{}, stele.Unavailable, "no random bits: %w", err)
		}
		m.Seed = binary.BigEndian.Uint64(random[:]) & maxSeed
	}
	return nil
}

// keepSeed leaves a namespace as it is: one that comes from another registry keeps the
// order of its names, also if its seed is 0.
func keepSeed(_, _ *stele.Namespace) error { return nil }
