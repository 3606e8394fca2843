package httpd

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/proof"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/web"
)

const (
	jsonType = "application/json"
	jwksType = "application/jwk-set+json" // RFC 7517, section 8.5.2
)

// keysKept is for how long clients may cache keys: one may be revoked.
var keysKept = []string{"max-age=300"}

// isSigned reports whether an answer is for a record that has signatures. The request must
// name the record itself: they do not cover parts of it.
func isSigned(res *resolver.Resolution) bool {
	return res.Kind == resolver.Description && res.Record != nil && len(res.Record.Signatures) > 0 && res.Matched == res.ID.String()
}

// signatures answers N2S with what keys of the namespace signed.
func (h *Handler) signatures(w http.ResponseWriter, r *http.Request, res *resolver.Resolution) {
	w, done, ok := h.charge(w, r, costDescription)
	if !ok {
		return
	}
	defer done()
	head := w.Header()
	forScripts(head)
	h.about(head, res)
	links := "<" + h.base(r) + jwksPath + url.PathEscape(res.Record.ID.String()) + `>; rel="jwks"`
	if before := head["Link"]; len(before) > 0 {
		links += ", " + before[0]
	}
	head["Link"] = []string{links}
	h.write(w, r, http.StatusOK, jsonType, proof.Document(res.Record.ID, res.Record.Signatures))
}

// jwksPath is where keys are; a namespace or a name in it follows.
const jwksPath = "/.well-known/stele/jwks/"

// aboutChecks is for the operators of sites that find this address in their logs, as a part of the link checker's name.
const aboutChecks = `This server keeps persistent identifiers: names that lead to addresses on the web.
It checks from time to time whether these addresses still work, so that the owners of
the names can correct them. It asks under the name Stele, with the address of this page.

It asks one page at a time of a domain, 5 seconds apart or more, obeys robots.txt with its
Crawl-delay, and Retry-After. It reads at most the first 256 KiB of a page, except where an
owner has promised that the content does not change. It asks again after 30 days if all is
well. It runs no scripts and keeps no copies of pages.

To be left alone, write in robots.txt:

  User-agent: Stele
  Disallow: /
`

// wellKnown answers for the well-known URIs (RFC 8615): the keys of namespaces, where
// ARKs are resolved, and what the link checker does.
func (h *Handler) wellKnown(w http.ResponseWriter, r *http.Request, t requestTarget) {
	_, rest := t.segment()
	if rest == "ark" {
		h.arkRoot(w, r)
		return
	}
	if rest == "stele" {
		h.write(w, r, http.StatusOK, textType, []byte(aboutChecks))
		return
	}
	name, ok := strings.CutPrefix("/.well-known/"+rest, jwksPath)
	if !ok || name == "" {
		h.nothing(w, r, t)
		return
	}
	h.jwks(w, r, name)
}

// jwks answers with the keys that may have signed a name: those of its namespace and of all
// above it. They are public, and tell nothing of what is registered: where there are none the
// answer is as if there were no namespace.
func (h *Handler) jwks(w http.ResponseWriter, r *http.Request, name string) {
	w, done, ok := h.charge(w, r, costDescription)
	if !ok {
		return
	}
	defer done()
	keys, err := h.keysOf(r, name)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	if len(keys) == 0 {
		h.fail(w, r, refused(http.StatusNotFound, "signing-key.namespace-unknown", "There are no keys of a namespace of this name; write its prefix or a name in it, as in {path}urn:example.", jwksPath))
		return
	}
	body, err := proof.JWKS(keys[:min(len(keys), proof.MaxKeys)])
	if err != nil {
		h.fail(w, r, err)
		return
	}
	head := w.Header()
	forScripts(head)
	head["Cache-Control"] = keysKept
	h.write(w, r, http.StatusOK, jwksType, body)
}

// keysOf returns the keys for a name, or a prefix of names, as it stands in a URL.
func (h *Handler) keysOf(r *http.Request, text string) ([]stele.SigningKey, error) {
	readings := []string{text}
	if decoded, err := url.PathUnescape(text); err == nil && decoded != text {
		readings = append(readings, decoded)
	}
	for _, text := range readings {
		id, err := h.o.Schemes.Parse(text)
		if err != nil {
			if _, id, err = namespaces.ReadPrefix(h.o.Schemes, text); err != nil {
				continue
			}
		}
		if keys, err := h.o.Resolver.SigningKeys(r.Context(), id); err != nil || len(keys) > 0 {
			return keys, err
		}
	}
	return nil, nil
}

// promise answers N2P in JSON: what is promised, and which authority promises it.
func (h *Handler) promise(w http.ResponseWriter, r *http.Request, res *resolver.Resolution) {
	w, done, ok := h.charge(w, r, costDescription)
	if !ok {
		return
	}
	defer done()
	said := struct {
		ID        string      `json:"id"`
		Level     stele.Level `json:"level,omitempty"`
		Until     string      `json:"until,omitempty"`
		Statement string      `json:"statement,omitempty"`
		Words     string      `json:"words"` // what the level means
		By        string      `json:"by,omitempty"`
	}{ID: res.Record.ID.String()}
	p := res.Record.Persistence
	if said.By = "record"; p == (stele.Persistence{}) {
		said.By = ""
		if ns := res.Namespace; ns != nil && ns.Persistence != p {
			p, said.By = ns.Persistence, "namespace "+ns.Key().String()
		}
	}
	said.Level, said.Until, said.Statement, said.Words = p.Level, p.Until, p.Statement, web.Promise(h.o.Pages.English(), p)
	body, err := json.Marshal(said)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	head := w.Header()
	forScripts(head)
	h.about(head, res)
	h.write(w, r, http.StatusOK, jsonType, append(body, '\n'))
}

// pageSignatures are signatures as pages show them.
func pageSignatures(record *stele.Record) (list []web.Signature) {
	for i := range record.Signatures {
		s := &record.Signatures[i]
		list = append(list, web.Signature{Date: s.Date, Key: s.Key, Algorithm: proof.Algorithm(*s), SHA256: s.SHA256[:], Size: s.Size, Type: s.Type})
	}
	return list
}
