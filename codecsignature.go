package stele

import "encoding/binary"

func appendSignature(b []byte, s Signature) []byte {
	b = append(b, s.SHA256[:]...)
	b = binary.AppendUvarint(b, s.Size)
	b = appendText(b, s.Type)
	b = appendTime(b, s.Date)
	return appendText(appendText(b, s.Key), s.JWS)
}

func (d *decoder) signature() (s Signature) {
	if len(d.rest) < len(s.SHA256) {
		d.fail(errShort)
		return s
	}
	d.rest = d.rest[copy(s.SHA256[:], d.rest):]
	s.Size, s.Type, s.Date, s.Key, s.JWS = d.uvarint(), d.text(), d.time(), d.text(), d.text()
	return s
}

// laterRecord reads the fields that were added to records later. At least one is there.
func (d *decoder) laterRecord(r *Record) (uncached []uint64) {
	r.Signatures = list(d, d.signature)
	odd := len(r.Signatures) == 0
	if len(d.rest) > 0 {
		r.Import = d.uvarint()
		odd = r.Import == 0
	}
	if len(d.rest) > 0 {
		d.withheld(r)
		odd = r.Withheld.IsZero()
	}
	if len(d.rest) > 0 {
		uncached = d.uncached(r.Values)
		odd = len(uncached) == 0
	}
	if d.err == nil && odd {
		d.fail(errOdd) // an empty last field is not written
	}
	return uncached
}

func appendSigningKey(b []byte, k SigningKey) []byte {
	b = appendText(appendText(appendText(b, k.ID), k.Algorithm), string(k.Public))
	b = appendTime(appendTime(appendTime(b, k.Created), k.Expires), k.Revoked)
	return appendText(b, k.Note)
}

func (d *decoder) signingKey() SigningKey {
	return SigningKey{
		ID:        d.text(),
		Algorithm: d.text(),
		Public:    []byte(d.text()),
		Created:   d.time(),
		Expires:   d.time(),
		Revoked:   d.time(),
		Note:      d.text(),
	}
}
