package api

import (
	"context"
	"io"
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// ZoneWriter is what a [KeyManager] may be beside: it writes zones as files.
type ZoneWriter interface {
	// WriteZone writes the zone of a namespace as a master file (RFC 1035, section 5). It
	// checks no rights: the handler has.
	WriteZone(ctx context.Context, w io.Writer, ns stele.NamespaceKey, want ZoneFile) error
}

// ZoneFile says what is written of a zone.
type ZoneFile struct {
	Signed bool   // with signatures
	Parent bool   // the records that other zones must have instead
	Root   string // under which the keys of the scheme stand, for Parent; "" for the usual one
}

// zoneType is the media type of a master file (RFC 4027).
const zoneType = "text/dns"

func (h *Handler) zoneFileOperations() []operation {
	return []operation{{
		name: "exportZone", method: http.MethodGet, path: "zonefiles/{prefix}", group: "Zones of the DNS", tail: prefixInPath,
		summary: "Write a namespace's zone as a master file",
		about: "The zone at one moment, whatever is written meanwhile, as other name servers load it. It lists the public names, so the caller needs the role reader there. " +
			"An answer whose connection breaks is not whole.",
		asks: reader, scope: auth.ScopeRead,
		query: []parameter{
			{name: "signed", kind: flagKind, usual: "false", about: "with all signatures, of a zone that is signed in the mode transfer"},
			{name: "parent", kind: flagKind, usual: "false", about: "the records that others must have, so that the zone is found: its name servers, the DS records of its keys, and its rules"},
			{name: "root", about: "with parent: the zone under which the keys of the scheme stand", example: "urn.example."},
		},
		answers: []answer{{status: 200, about: "The file.", media: zoneType}},
		fails:   []int{404, 409},
		serve:   h.exportZone,
	}}
}

// exportZone writes a zone.
func (h *Handler) exportZone(c *call) error {
	key, err := c.prefix()
	if err != nil {
		return err
	}
	for _, err := range h.o.Registrar.Scan(c.ctx, key, "") { // a caller that may not list gets an error
		if err != nil {
			return err
		}
		break
	}
	writer, ok := h.o.Upkeep.Keys.(ZoneWriter)
	if !ok {
		return &stele.Error{Op: c.op.name, Kind: stele.NotFound, Err: stele.Messagef("zone.export-unsupported", "this server writes no zones")}
	}
	release, err := c.hold(exportHeld)
	if err != nil {
		return err
	}
	defer release()
	ctx, stop := c.running()
	defer stop()
	out := &lateStream{c: c, media: zoneType}
	if c.r.Method != http.MethodHead {
		if err := writer.WriteZone(ctx, out, key, ZoneFile{Signed: c.flag("signed"), Parent: c.flag("parent"), Root: c.text("root")}); err != nil {
			return err
		}
	}
	return out.flush()
}

// lateStream is a stream that begins with the first byte, so that an error before that is
// answered as a problem.
type lateStream struct {
	c     *call
	media string
	out   *stream
}

func (s *lateStream) begin() {
	if s.out == nil {
		s.out = s.c.stream(s.media)
	}
}

// Write implements [io.Writer].
func (s *lateStream) Write(b []byte) (int, error) {
	s.begin()
	return s.out.Write(b)
}

// flush sends all.
func (s *lateStream) flush() error {
	s.begin()
	return s.out.flush()
}
