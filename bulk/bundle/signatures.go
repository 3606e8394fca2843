package bundle

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/proof"
	"github.com/stele-id/stele/transparency"
)

// noteText returns what the registry signs.
func noteText(origin string, manifest []byte) string {
	return origin + "\n" + noteLine + "\n" + base64.StdEncoding.EncodeToString(manifest) + "\n"
}

func (r *reader) readRegistryNote(in io.Reader) error {
	text, err := whole(in)
	if err != nil {
		return err
	}
	said, err := transparency.OpenText(text, r.keys)
	if err != nil {
		return err
	}
	if said != noteText(r.report.Head.Origin, r.report.Manifest[:]) {
		return wrong("bundle.signature-of-other", "the registry has signed another manifest than this one")
	}
	return nil
}

// readCosignatures reads lines of witnesses, which belong to the checkpoint.
func (r *reader) readCosignatures(in io.Reader) error {
	text, err := whole(in)
	if err != nil {
		return err
	}
	if len(text) == 0 || !strings.HasSuffix(string(text), "\n") {
		return wrong("bundle.cosignatures-unfinished", "it has no line of a witness, or the last line has no end")
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "— ") {
			return wrong("bundle.cosignature-malformed", "a line is not the signature of a witness")
		}
	}
	var witnesses []transparency.PublicKey
	for _, k := range r.o.Keys {
		if k.Cosign {
			witnesses = append(witnesses, k)
		}
	}
	r.report.Cosignatures, err = transparency.Cosignatures(r.report.Checkpoint, text, witnesses)
	return err
}

// statement returns what a namespace signs, in the form of package proof.
func (s *Signature) statement() (id stele.ID, out stele.Signature, err error) {
	if id, err = stele.NewID(s.Scheme, s.Namespace); err != nil {
		return id, out, err
	}
	sum, err := hex.DecodeString(s.Manifest)
	if err != nil || len(sum) != len(out.SHA256) {
		return id, out, wrong("bundle.signature-malformed", "the digest is not SHA-256 in hexadecimal digits")
	}
	out = stele.Signature{Size: s.Size, Type: SignatureType, Date: s.Date, Key: s.Key, JWS: s.JWS}
	copy(out.SHA256[:], sum)
	return id, out, nil
}

func (r *reader) readSignature(in io.Reader) error {
	text, err := whole(in)
	if err != nil {
		return err
	}
	var s Signature
	if err := parseJSON(text, &s); err != nil {
		return err
	}
	if r.now != fmt.Sprintf(fileSigned, s.Key) || len(r.tags) > 0 && r.tags[len(r.tags)-1].name >= r.now && strings.HasPrefix(r.tags[len(r.tags)-1].name, "signatures/namespace-") {
		return errOrder
	}
	if err := r.verify(&s); err != nil {
		return err
	}
	r.report.Signatures = append(r.report.Signatures, s)
	return nil
}

// verify checks the signature of a namespace with the keys that the namespace has in the bundle.
func (r *reader) verify(s *Signature) error {
	id, said, err := s.statement()
	if err != nil {
		return err
	}
	if said.SHA256 != r.report.Manifest || said.Size != uint64(r.manifest) {
		return wrong("bundle.signature-of-other-manifest", "the namespace has signed another manifest than this one")
	}
	for _, n := range r.spaces {
		if n.Scheme == s.Scheme && n.Prefix == s.Namespace {
			_, err := proof.Verify(n.Keys, id, said, r.o.Now)
			return err
		}
	}
	return wrong("bundle.signature-of-unknown", "the namespace {namespace} is not in the bundle", s.Namespace)
}
