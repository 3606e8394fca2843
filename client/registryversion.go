package client

import (
	"io"
	"net/http"

	"github.com/stele-id/stele"
)

// noteVersion remembers of which state an answer tells, in its head or in its trailer:
// from then on that state is asked for. What is no number is passed over.
func (r *Registry) noteVersion(header http.Header) {
	told, err := stele.ParseVersionHeader(header[stele.VersionHeader])
	if err != nil {
		return
	}
	for {
		have := r.version.Load()
		if told <= have || r.version.CompareAndSwap(have, told) {
			return
		}
	}
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
