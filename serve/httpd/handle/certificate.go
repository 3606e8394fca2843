package handle

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"

	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/wire/hdl"
)

// byCertificate identifies a client by the certificate of its connection. The handshake has proved that the client has
// the key; the handle that the certificate names must have the same one. Who signed the certificate, and until when it
// is good, says nothing here: the key in the handle's value is what counts, as long as it is there.
//
// A certificate that names no such handle is one for another purpose, which a browser may have sent; it is a
// failure only where the client says that it wants to be identified by it.
func (h *Handler) byCertificate(r *http.Request, wanted bool) (caller, *failure) {
	c := caller{other: wanted, ambient: !wanted}
	var chain []*x509.Certificate
	if !h.o.Proxied(r) { // else it is the proxy's
		chain = r.TLS.PeerCertificates
	}
	var claim string
	if len(chain) > 0 {
		claim = claimed(&chain[0].Subject)
	}
	if claim == "" {
		if wanted {
			return c, &failure{text: notVerified}
		}
		return c, nil
	}
	who, err := h.o.Handles.ParseIdentity(claim)
	if err == nil { // a key is not guessed, so that this is not counted
		// Questions to other servers are counted for the client's address.
		ctx := handles.WithClient(r.Context(), limit.Client(h.o.Client(r)))
		who, err = h.o.Handles.VerifyKey(ctx, who, func(key *hdl.PublicKey) bool { return isKey(key, chain[0].PublicKey) })
		if err == nil {
			c.who, c.known = who, true
			return c, nil
		}
		if handles.CodeOf(err) != hdl.NotAuthenticated {
			return c, failed(err)
		}
	}
	if wanted {
		return c, &failure{text: notVerified}
	}
	return c, nil
}

// claimed returns the identity that a certificate names: its UID, else its CN, else its O (section 8).
func claimed(subject *pkix.Name) string {
	for i := range subject.Names {
		if subject.Names[i].Type.String() == "0.9.2342.19200300.100.1.1" { // UID (RFC 4519, section 2.39)
			if text, ok := subject.Names[i].Value.(string); ok && text != "" {
				return text
			}
		}
	}
	if subject.CommonName != "" {
		return subject.CommonName
	}
	if len(subject.Organization) > 0 {
		return subject.Organization[0]
	}
	return ""
}

// isKey reports whether a certificate has the key of a handle value. TLS has no DSA keys, so that these prove nothing
// here.
func isKey(key *hdl.PublicKey, have any) bool {
	return key.RSA != nil && key.RSA.Equal(have)
}
