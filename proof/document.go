package proof

import (
	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
)

// maxDocument is the size in bytes of the largest document of N2S or JWKS: all
// signatures or keys there may be, each of the largest kind.
const maxDocument = 128 << 10

// Document returns what N2S gives for an identifier, application/json:
//
//	{"id":"urn:example:a","signatures":[{"sha256":"…","size":5,"type":"text/html","date":"2026-11-15T12:00:00Z","key":"…","jws":"…"}]}
func Document(id stele.ID, list []stele.Signature) []byte {
	b := appendText([]byte(`{"id":`), id.String())
	b = append(b, `,"signatures":[`...)
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = document.AppendSignature(b, &list[i])
	}
	return append(b, "]}\n"...)
}

// ParseDocument reads what [Document] wrote. It returns the identifier as it stands
// there: the caller compares it with the one that was asked for. Nothing is verified.
func ParseDocument(data []byte) (id string, list []stele.Signature, err error) {
	if len(data) > maxDocument {
		return "", nil, invalid("read signatures", stele.Messagef("document.too-large", "the document has {size} bytes; {most} are the most", len(data), maxDocument))
	}
	return document.DecodeSignatures(data)
}
