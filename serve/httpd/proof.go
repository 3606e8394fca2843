package httpd

import (
	"net/http"
	"strconv"

	"github.com/stele-id/stele"
)

// proofRelation is the relation of a version to its proof: that of a description, which all clients know (describedby of
// IANA's registry), and the address of the format, which only a proof has (an extension relation, RFC 8288, section 2.1.2).
// The second is needed since records have other descriptions of the first relation.
const proofRelation = "describedby https://c2sp.org/tlog-proof"

// proofURL returns where the proof of a version is; "" if there are no proofs.
func (h *Handler) proofURL(r *http.Request, v *stele.Record) string {
	if h.o.API == nil || h.o.Proofs == nil || !h.o.Proofs(r.Context()) {
		return ""
	}
	return h.base(r) + "/api/v1/proof/" + escape(v.ID.String(), false) + "?version=" + strconv.FormatUint(v.Version, 10)
}

// linkProof adds a link to the proof of the version of which a memento is.
func (h *Handler) linkProof(head http.Header, r *http.Request, v *stele.Record) {
	at := h.proofURL(r, v)
	if links := head["Link"]; at != "" && len(at) <= maxLinked && len(links) > 0 {
		head["Link"] = []string{links[0] + ", <" + at + `>; rel="` + proofRelation + `"; type="text/plain"`}
	}
}
