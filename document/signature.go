package document

import (
	"encoding/base64"
	"encoding/hex"
	"math"

	"github.com/stele-id/stele"
)

const (
	signatureFields  = "sha256 size type date key jws"
	signingKeyFields = "id algorithm public created expires revoked note"
)

func (d *document) signature() (s stele.Signature) {
	d.object(signatureFields, func(name string) bool {
		switch name {
		case "sha256":
			s.SHA256 = d.digest()
		case "size":
			s.Size = d.number(math.MaxUint64)
		case "type":
			s.Type = d.text()
		case "date":
			s.Date = d.time()
		case "key":
			s.Key = d.text()
		case "jws":
			s.JWS = d.text()
		default:
			return false
		}
		return true
	})
	return s
}

// digest reads a SHA-256 in hexadecimal; it is zero if there is none.
func (d *document) digest() (sum [32]byte) {
	text, ok := d.string()
	if !ok {
		return sum
	}
	if n, err := hex.Decode(sum[:], []byte(text[:min(len(text), 2*len(sum))])); err != nil || n != len(sum) || len(text) != 2*len(sum) {
		d.faultf("document.not-a-sha-256", `"{text}" is not a SHA-256; write 64 hexadecimal digits`, text)
		return [32]byte{}
	}
	return sum
}

func (d *document) signingKey() (k stele.SigningKey) {
	d.object(signingKeyFields, func(name string) bool {
		switch name {
		case "id":
			k.ID = d.text()
		case "algorithm":
			k.Algorithm = d.text()
		case "public":
			k.Public = d.bytes()
		case "created":
			k.Created = d.time()
		case "expires":
			k.Expires = d.time()
		case "revoked":
			k.Revoked = d.time()
		case "note":
			k.Note = d.text()
		default:
			return false
		}
		return true
	})
	return k
}

// AppendSignature appends a signature in JSON to b, as a record's document has it.
func AppendSignature(b []byte, s *stele.Signature) []byte {
	w := jsonWriter{b: b}
	w.signature(s)
	return w.b
}

func (w *jsonWriter) signature(s *stele.Signature) {
	w.open('{')
	w.name("sha256")
	w.b = append(w.b, '"')
	w.b = hex.AppendEncode(w.b, s.SHA256[:])
	w.b = append(w.b, '"')
	w.number("size", s.Size, 0)
	w.text("type", s.Type)
	w.time("date", s.Date)
	w.text("key", s.Key)
	w.text("jws", s.JWS)
	w.close('}')
}

func (w *jsonWriter) signatures(list []stele.Signature) {
	if len(list) == 0 {
		return
	}
	w.name("signatures")
	w.open('[')
	for i := range list {
		w.comma()
		w.signature(&list[i])
	}
	w.close(']')
}

func (w *jsonWriter) signingKeys(list []stele.SigningKey) {
	if len(list) == 0 {
		return
	}
	w.name("keys")
	w.open('[')
	for i := range list {
		k := &list[i]
		w.comma()
		w.open('{')
		w.text("id", k.ID)
		w.text("algorithm", k.Algorithm)
		w.text("public", base64.StdEncoding.EncodeToString(k.Public))
		w.time("created", k.Created)
		w.time("expires", k.Expires)
		w.time("revoked", k.Revoked)
		w.text("note", k.Note)
		w.close('}')
	}
	w.close(']')
}

// DecodeSignatures reads what N2S gives: {"id":...,"signatures":[...]}, the
// identifier as it is written, and the signatures as a record's document has them.
// It is as strict as [DecodeRecord]. It does not verify the signatures.
func DecodeSignatures(data []byte) (id string, list []stele.Signature, err error) {
	var d document
	if d.begin(data) {
		d.object("id signatures", func(name string) bool {
			switch name {
			case "id":
				id = d.text()
			case "signatures":
				d.array(stele.MaxSignatures, func(int) { list = append(list, d.signature()) })
			default:
				return false
			}
			return true
		})
		d.end()
	}
	if !d.broken {
		if err := stele.CheckText("", id); err != nil {
			d.faults.Add("id", err)
		}
		stele.CheckSignatures(&d.faults, list)
	}
	if err := d.faults.Err("read signatures", stele.ID{}); err != nil {
		return "", nil, err
	}
	return id, list, nil
}
