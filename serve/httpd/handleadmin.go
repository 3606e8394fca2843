package httpd

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/serve/httpd/handle"
	"github.com/stele-id/stele/wire/hdl"
)

// administerHandle passes a request on that only an administrator of handles may send. broken is the error of its query; may be nil.
func (h *Handler) administerHandle(w http.ResponseWriter, r *http.Request, path string, q url.Values, broken error) {
	if h.o.Handles != nil {
		h.o.Handles.Serve(w, r, handle.Request{Path: path, Query: q, Broken: broken})
		return
	}
	w.Header()["Connection"] = closing // the server does not read the body
	if h.o.Frozen != nil {
		h.writeHandle(w, r, q, handleRefusal{Code: handleCode(hdl.NotPermitted), Message: stele.Reason(h.o.Frozen).Error(), status: http.StatusForbidden})
		return
	}
	_, text, _ := strings.Cut(path, "/")
	if q.Has("prefix") && text == "" {
		text = q.Get("prefix")
	}
	h.writeHandle(w, r, q, handleRefusal{Code: handleNeedsKnowing, Handle: decodeHandle(text)})
}

// showHandle answers with the values of a handle: to the public, or to a client that has proved a handle identity.
func (h *Handler) showHandle(w http.ResponseWriter, r *http.Request, path string, q url.Values) {
	_, text, _ := strings.Cut(path, "/")
	if h.o.Handles == nil {
		h.writeHandle(w, r, q, h.readHandle(w.Header(), r, text, q))
		return
	}
	who, ok := h.o.Handles.Identify(w, r, handle.Request{Path: path, Query: q})
	if !ok {
		return
	}
	if who != nil {
		w, r = &personal{ResponseWriter: w}, r.WithContext(context.WithValue(r.Context(), identityKey{}, *who))
		if q.Has("callback") {
			// Any page can have a browser load a script, with the password or the certificate that the browser has.
			q.Del("callback")
			h.writeHandle(w, r, q, handleRefusal{Code: handleProtocol, Message: "callback is for the public; leave it out, or the credentials"})
			return
		}
	}
	answer := h.readHandle(w.Header(), r, text, q)
	if refused, is := answer.(handleRefusal); is && refused.Code == handleNeedsKnowing {
		h.o.Handles.Challenge(w, r, handle.Request{Path: path, Query: q}, refused.Handle)
		return
	}
	h.writeHandle(w, r, q, answer)
}

// identityKey is the key of the handle identity that a client has proved, in the context of a request.
type identityKey struct{}

// handleReader is the client that reads a handle.
type handleReader struct {
	principal auth.Principal
	mayRead   bool       // the values that are not for the public, too
	lacks     handleCode // why not
}

// readerOf returns who reads a handle. An identity that may not read the values that are not for the public reads
// what the public does.
func (h *Handler) readerOf(r *http.Request, id stele.ID) (handleReader, error) {
	public := handleReader{principal: auth.From(r.Context()), lacks: handleNeedsKnowing}
	who, ok := r.Context().Value(identityKey{}).(handles.Identity)
	if !ok {
		return public, nil
	}
	p, err := h.o.Handles.MayRead(r.Context(), who, id)
	switch code := handles.CodeOf(err); {
	case err == nil:
		return handleReader{principal: p, mayRead: true}, nil
	case code == hdl.NotAdministrator, code == hdl.NotPermitted:
		public.lacks = handleCode(code)
		return public, nil
	}
	return public, err
}
