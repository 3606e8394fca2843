package handle

import (
	"net/http"

	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/wire/hdl"
)

// A client without credentials may send so many bodies that the server reads: 20 at once, and then one a second.
const (
	publicRate  = 1
	publicBurst = 20
)

// putPublic changes values that everybody may change (publicWrite), in a namespace that lets them be changed, for a client without credentials. It
// returns true if the request is answered. In all other cases nothing was written, and the client is to be challenged as
// if there were no such value: so it learns nothing of the handle, not even whether it has a value of that index.
func (h *Handler) putPublic(w http.ResponseWriter, r *http.Request, q Request, handle string) bool {
	if len(q.Query["index"]) == 0 || IsTrue(q.Query, "mintNewSuffix") || len(r.Header["Authorization"]) > 0 || r.TLS != nil && len(r.TLS.PeerCertificates) > 0 || h.cross.Check(r) != nil {
		return false
	}
	id, err := h.o.Handles.Parse(handle)
	if err != nil {
		return false
	}
	ns, err := h.o.Handles.Namespace(r.Context(), id)
	if err != nil || ns == nil || !ns.Handles.PublicWrite || h.public.Take(limit.Client(h.o.Client(r)), 1, h.o.Now()) != nil {
		return false
	}
	c := &handles.Change{Handle: handle}
	if err := h.readPut(r, q, c); err != nil {
		return false
	}
	c.Operation = hdl.ModifyValue // what everybody may do; see [handles.Change.IsPublic]
	if err := h.o.Handles.Begin(r.Context(), c); err != nil {
		return false
	}
	if public, err := c.IsPublic(r.Context()); err != nil || !public {
		return false
	}
	if err := c.Commit(h.witnessed(r), handles.Public()); err != nil {
		if handles.CodeOf(err) == hdl.NotPermitted { // the permission was taken away meanwhile
			return false
		}
		h.refuse(w, r, q, c.Handle, err)
		return true
	}
	h.answer(w, r, q, http.StatusOK, refusal{Code: hdl.Success, Handle: c.Handle})
	return true
}
