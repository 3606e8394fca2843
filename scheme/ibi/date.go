package ibi

import (
	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
)

// NameDate returns the date of which a label was made.
func (*Scheme) NameDate(id stele.ID) (mint.Date, bool) {
	text := id.String()
	from, ok := find(text)
	if !ok {
		return mint.Date{}, false
	}
	var l label
	if err := from.read(text, &l); err != nil {
		return mint.Date{}, false
	}
	return l.date, true
}
