package hdl

import (
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/scheme/internal/lex"
)

// NameDate returns the date of a handle whose local name is a PILIN suffix.
func (*Scheme) NameDate(id stele.ID) (mint.Date, bool) {
	_, local, _ := lex.Cut(strings.TrimPrefix(id.String(), mark), '/')
	t, ok := DecodePILIN(local)
	if !ok {
		return mint.Date{}, false
	}
	d, err := mint.DateOf(t)
	return d, err == nil
}
