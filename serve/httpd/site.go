package httpd

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/web"
	"github.com/stele-id/stele/web/language"
)

// aboutSite answers with the page about the registry, and below it with the operator's texts.
func (h *Handler) aboutSite(w http.ResponseWriter, r *http.Request, t requestTarget) {
	_, name := t.segment()
	v := web.About{Frame: h.frame(r, "about")}
	switch {
	case name == "":
		v.Text = h.o.Pages.Text(v.Language, "about")
		v.Levels = []stele.Level{stele.Unchanging, stele.Stable, stele.Dynamic, stele.Permanent, stele.NotGuaranteed, stele.Unstated}
		v.States = []stele.State{stele.Active, stele.Reserved, stele.Withdrawn}
		for _, s := range h.schemes {
			v.Schemes = append(v.Schemes, s.Name())
		}
		slices.Sort(v.Schemes)
	case slices.Contains(web.TextNames(), name) && name != "about":
		v.Page, v.Text = v.Language.Text("public."+name), h.o.Pages.Text(v.Language, name)
	}
	if name != "" && v.Text == nil {
		h.nothing(w, r, t)
		return
	}
	var b bytes.Buffer
	if err := h.o.Pages.About(&b, &v); err != nil {
		h.fail(w, r, err)
		return
	}
	w.Header()["Cache-Control"] = oneMinute
	h.writePage(w, r, v.Language, b.Bytes())
}

// chooseLanguage keeps the reader's choice of a language in a cookie, and leads back to the page:
// /.language/pt-BR?next=/.about. The links to it are on every page.
func (h *Handler) chooseLanguage(w http.ResponseWriter, r *http.Request, t requestTarget) {
	_, tag := t.segment()
	l := h.o.Pages.Chosen(tag)
	if l == nil {
		h.nothing(w, r, t)
		return
	}
	next, _ := field(t.query, "next")
	if !isReturn(next) {
		next = "/"
	}
	http.SetCookie(w, &http.Cookie{Name: language.Cookie, Value: l.Tag, Path: "/", MaxAge: 365 * 24 * 3600, SameSite: http.SameSiteLaxMode, Secure: r.TLS != nil || strings.HasPrefix(h.o.Base, "https://"), HttpOnly: true})
	w.Header()["Cache-Control"] = notKept
	send(w, r, h.base(r)+next, http.StatusSeeOther)
}

// maxReturn is how long a path may be to which a choice of a language leads back.
const maxReturn = 4096

// isReturn reports whether a path and query are of this server, and fit for a header.
func isReturn(path string) bool {
	if len(path) > maxReturn || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.HasPrefix(path, web.LanguagePath) {
		return false
	}
	return strings.IndexFunc(path, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) < 0
}

// protocol answers browsers that follow links such as urn:isbn:9780140449136 or
// web+urn:isbn:9780140449136 and have this server as the handler of their protocol:
// /.urn?uri=urn:isbn:9780140449136 leads to what the name leads to. It leads to names only, never
// to a URL. Without a link it is the page that registers the handler.
func (h *Handler) protocol(w http.ResponseWriter, r *http.Request, t requestTarget) {
	link, _ := field(t.query, "uri")
	if link = strings.TrimSpace(link); link == "" {
		h.protocolPage(w, r)
		return
	}
	id, err := h.linked(link)
	if err != nil {
		h.failAbout(w, r, brief(link), err)
		return
	}
	w.Header()["Cache-Control"] = notKept
	send(w, r, h.base(r)+"/"+h.path(r, id), http.StatusSeeOther)
}

// linked returns the name to which a link leads: urn:..., or web+urn:..., or the same with another
// scheme that is read here.
func (h *Handler) linked(link string) (stele.ID, error) {
	if len(link) > stele.MaxText {
		return stele.ID{}, refused(http.StatusBadRequest, "protocol.too-long", "The link has more than {most} bytes, so that it is not a name.", stele.MaxText)
	}
	prefix, _, _ := strings.Cut(strings.ToLower(link), ":")
	name, onWeb := strings.CutPrefix(prefix, "web+")
	if !slices.ContainsFunc(h.schemes, func(s stele.Scheme) bool { return s.Name() == name }) {
		return stele.ID{}, refused(http.StatusBadRequest, "protocol.scheme-unknown", "This address opens links that begin with urn: or web+urn:, and this is another link.")
	}
	if onWeb {
		link = link[len("web+"):]
	}
	return h.o.Schemes.Parse(link)
}

// protocolPage answers with the page that registers the site as the handler of links.
func (h *Handler) protocolPage(w http.ResponseWriter, r *http.Request) {
	v := web.Protocol{Frame: h.frame(r, "home"), Template: h.base(r) + "/.urn?uri=%s"}
	for _, e := range h.o.Examples {
		if _, err := h.linked(e.ID); err == nil {
			v.Example = e.ID
			break
		}
	}
	var b bytes.Buffer
	if err := h.o.Pages.Protocol(&b, &v); err != nil {
		h.fail(w, r, err)
		return
	}
	w.Header()["Cache-Control"], w.Header()["Content-Security-Policy"] = oneMinute, ownScript
	h.writePage(w, r, v.Language, b.Bytes())
}

// infoVersion answers with a record as it was: /.info/<id>?version=2.
func (h *Handler) infoVersion(w http.ResponseWriter, r *http.Request, res *resolver.Resolution, number string) {
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		h.fail(w, r, refused(http.StatusBadRequest, "request.version-number", "The parameter version has no number of a version."))
		return
	}
	v, err := h.o.Registry.Version(r.Context(), res.Record.ID, n)
	if err == nil && !h.maySee(r, v) && v.Withheld.Disavowal(n) == nil {
		err = refused(http.StatusNotFound, "version.not-shown", "There is no such version of this name, or it is not public.")
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	if d := v.Withheld.Disavowal(n); d != nil {
		h.fail(w, r, disavowed(d))
		return
	}
	if n == res.Record.Version {
		h.infoPage(w, r, res)
		return
	}
	then, err := h.o.Resolver.ResolveVersion(r.Context(), v, res.Matched, resolver.Request{ID: res.ID, Who: auth.From(r.Context())})
	if err != nil {
		h.fail(w, r, err)
		return
	}
	then.Private = then.Private || res.Private
	if then.Kind != resolver.Tombstone {
		then.Kind = resolver.Description
	}
	h.versionPage(w, r, &then, &web.Old{Number: n, At: v.Modified, Current: h.page(r, ".info", v.ID), Follow: h.mementoURL(r, v.ID, v, v.Modified)})
}

// disavowed is the answer for a version that its owner has disavowed.
func disavowed(d *stele.Disavowal) error {
	return refused(http.StatusGone, "version.disavowed", "The owner of the name has disavowed this version: it must not be followed. The reason given: {reason}", d.Reason)
}
