package hdld

import (
	"io"
	"mime"
	"net/http"
	"net/netip"
	"strconv"

	"github.com/stele-id/stele/wire/hdl"
)

// MediaType is that of messages in HTTP.
const MediaType = "application/x-hdl-message"

// maxTunnel bounds an answer in HTTP, which must be known whole before its length can be told: clients can't
// read it in pieces (section 1).
const maxTunnel = 64 << 20

// IsTunnel reports whether a request is one of the Handle protocol in HTTP.
func IsTunnel(r *http.Request) bool {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return r.Method == http.MethodPost && err == nil && media == MediaType
}

// ServeTunnel answers a request of the protocol that came in HTTP, from an address that the web server has found
// out.
func (s *Server) ServeTunnel(w http.ResponseWriter, r *http.Request, from netip.Addr) {
	s.stats.http.Add(1)
	message, err := io.ReadAll(http.MaxBytesReader(w, r.Body, hdl.EnvelopeSize+hdl.MaxMessage))
	if err != nil {
		http.Error(w, "The message ended too early, or is too long.", http.StatusBadRequest)
		return
	}
	s.notice(message, from, s.o.Now())
	var answer []byte
	s.answer(r.Context(), &call{raw: message, from: netip.AddrPortFrom(from, 0), via: viaHTTP, send: func(b []byte) error {
		if len(answer)+len(b) > maxTunnel {
			return io.ErrShortWrite
		}
		answer = append(answer, b...)
		return nil
	}})
	w.Header().Set("Content-Type", MediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(answer)
}
