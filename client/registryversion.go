package client

import (
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
)

// noteVersion remembers of which state an answer tells, in its head or in its trailer:
// from then on that state is asked for. What can't be read is passed over.
func (r *Registry) noteVersion(header http.Header) {
	told, err := stele.ParseVersionHeader(header[stele.VersionHeader])
	if err != nil {
		return
	}
	if told == (stele.Position{}) {
		return
	}
	for {
		have := r.version.Load()
		// One of another generation takes the place of what is known: the registry was
		// restored since.
		if have != nil && have.Generation == told.Generation && told.Change <= have.Change || r.version.CompareAndSwap(have, &told) {
			return
		}
	}
}

// noteTag remembers how entity tags name the generation of the registry: what stands
// behind the number of the version.
func (r *Registry) noteTag(header http.Header) {
	if inside, ok := strings.CutPrefix(header.Get("ETag"), `"v`); ok {
		inside = strings.TrimSuffix(inside, `"`)
		number, mark, _ := strings.Cut(inside, ".")
		if _, err := strconv.ParseUint(number, 10, 64); err == nil {
			r.mark.Store(&mark)
		}
	}
}

// tagOf returns the entity tag of a version of something.
func (r *Registry) tagOf(version uint64) string {
	tag := `"v` + strconv.FormatUint(version, 10)
	if mark := r.mark.Load(); mark != nil && *mark != "" {
		tag += "." + *mark
	}
	return tag + `"`
}

// ending is a body that says when all of it was read: its trailer is there then.
type ending struct {
	io.ReadCloser
	ended func()
}

func (b *ending) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.ended()
	}
	return n, err
}
