package httpd

import (
	"net/http"

	"github.com/stele-id/stele"
)

// await makes sure that the answer is from a state that the request asks for, with a
// version token. It returns false if the request is answered.
func (h *Handler) await(w http.ResponseWriter, r *http.Request) bool {
	values := r.Header[stele.VersionHeader]
	if len(values) == 0 {
		return true
	}
	version, err := stele.ParseVersionHeader(values)
	if err == nil && h.o.Await != nil {
		err = h.o.Await(r.Context(), version)
	}
	if err != nil {
		h.fail(w, r, err)
	}
	return err == nil
}
