package api

import (
	"context"
	"encoding/base64"
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
)

// versionParameter is the version token, which every operation takes, and versionAnswer
// what the answer to every write has.
var (
	versionParameter = parameter{name: stele.VersionHeader, max: maxToken, about: "answer only from a state that has this change: the token that a write was answered with, by any server of the registry; one from before a restore is refused, with the code restored", example: exampleToken}
	versionAnswer    = parameter{name: stele.VersionHeader, about: "A generation of the registry, and a change in it that is no earlier than what was written; send it along to see that on every server at once", example: exampleToken}
)

// exampleToken is a version token, and maxToken how long one is at most.
const (
	exampleToken = "3f0e1d2c4b5a69788796a5b4c3d2e1f0.1042"
	maxToken     = 64
)

// await makes sure that the answer is from a state that the request asks for.
func (c *call) await() error {
	version, err := stele.ParseVersionHeader(c.r.Header[stele.VersionHeader])
	if err != nil || version == (stele.Position{}) || c.h.o.Await == nil {
		return err
	}
	return c.h.o.Await(c.ctx, version)
}

// tellVersion writes the version of a state that includes the write into the head of an
// answer, or into its trailer. If the version can't be read the write is done all the same.
func (c *call) tellVersion() {
	if c.isRead() || c.h.o.Version == nil {
		return
	}
	// The operation may have ended the request's context.
	if n, err := c.h.o.Version(context.WithoutCancel(c.ctx)); err == nil {
		c.w.Header()[stele.VersionHeader] = []string{n.String()}
	}
}

// promiseVersion says in the head of a stream that its trailer has the version: a stream
// writes to the registry after its head was sent.
func (c *call) promiseVersion() {
	if !c.isRead() && c.h.o.Version != nil {
		c.w.Header()["Trailer"] = versionTrailer
	}
}

var versionTrailer = []string{http.CanonicalHeaderKey(stele.VersionHeader)}

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
	if err != nil || text == "" || len(text) > stele.MaxText || apijson.Legible(text) != text {
		return "", invalidf("page.cursor-invalid", `"{cursor}" is not a cursor; use next of the page before as it is`, cursor)
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

// tagOf returns the entity tag of a version.
func (h *Handler) tagOf(version uint64) string { return apijson.EntityTag(h.generations(), version) }
