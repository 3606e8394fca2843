package api

import (
	"encoding/base64"
	"strconv"

	"github.com/stele-id/stele"
)

// generations returns the generations of the registry; nil if they are not known.
func (h *Handler) generations() stele.Generations {
	if h == nil || h.o.Generations == nil {
		return nil
	}
	return h.o.Generations()
}

// cursorMark begins a cursor; the ID of its generation follows, then the text after which the
// list goes on. Cursors from before generations have the text alone, and no text begins with
// this byte.
const cursorMark = 0x01

// cursor makes the cursor of a list that goes on after a text.
func (h *Handler) cursor(after string) string {
	var b []byte
	if last := h.generations().Last().ID; !last.IsZero() {
		b = append(append(b, cursorMark), last[:]...)
	}
	return base64.RawURLEncoding.EncodeToString(append(b, after...))
}

// readCursor returns after which text a list goes on. It refuses a cursor of another
// generation: the pages before it had other contents than the registry has now.
func (h *Handler) readCursor(cursor string) (string, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	var of stele.GenerationID
	if err == nil && len(b) > len(of) && b[0] == cursorMark {
		copy(of[:], b[1:])
		b = b[1+len(of):]
	}
	text := string(b)
	if err != nil || text == "" || len(text) > stele.MaxText || legible(text) != text {
		return "", invalidf("%.60q is not a cursor; use next of the page before as it is", cursor)
	}
	if list := h.generations(); list != nil {
		// The number of the change does not matter: a cursor without a generation belongs to
		// the first one.
		if err := list.Judge("the cursor", stele.Position{Generation: of, Change: 1}); err != nil {
			return "", err
		}
	}
	return text, nil
}

// tagOf returns the entity tag of a version. After a restore the same number of a version
// may come again with other contents, so from then on the tag names the generation, too.
func (h *Handler) tagOf(version uint64) string {
	tag := `"v` + strconv.FormatUint(version, 10)
	if last := h.generations().Last(); last.Number > 1 {
		tag += "." + last.ID.String()[:8]
	}
	return tag + `"`
}
