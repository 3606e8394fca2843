package stele

import (
	"math/bits"
	"slices"
	"time"
)

// StoredSize returns how many bytes the record takes in a store, without what the store adds:
// the length of the form of package store/binary, whose tests hold both against each other.
// [MaxRecord] bounds it.
func (r *Record) StoredSize() int {
	n := 1 + idSize(r.ID) + textSize(r.Spelling) + textSize(string(r.State)) + numberSize(r.Version) +
		timeSize(r.Created) + timeSize(r.Modified) + textSize(r.By) + 1
	n += listSize(r.Aliases, idSize)
	if n++; r.Tombstone != nil {
		n += textSize(r.Tombstone.Reason) + timeSize(r.Tombstone.At) + idSize(r.Tombstone.Replacement)
	}
	n += listSize(r.Targets, func(t Target) int {
		return textSize(string(t.Service)) + textSize(t.URL) + textSize(t.Type) + textSize(t.Language) +
			numberSize(uint64(t.Order)) + numberSize(uint64(t.Preference)) + numberSize(uint64(t.TTL)) + signedSize(int64(t.Status)) + 1
	})
	n += numberSize(uint64(len(r.Metadata)))
	for key, value := range r.Metadata {
		n += textSize(key) + textSize(value)
	}
	n += textSize(string(r.Persistence.Level)) + textSize(r.Persistence.Until) + textSize(r.Persistence.Statement)
	n += listSize(r.Values, valueSize)
	n += listSize(r.Readers, textSize)
	return n + r.laterSize()
}

// laterSize is the size of the fields that the form got later: each is there if it or one after
// it has something in it.
func (r *Record) laterSize() (n int) {
	isUncached := func(v HandleValue) bool { return v.TTL == 0 && !v.TTLAbsolute }
	uncached := slices.ContainsFunc(r.Values, isUncached)
	withholds := uncached || !r.Withheld.IsZero()
	if withholds || r.Import > 0 || len(r.Signatures) > 0 {
		n += listSize(r.Signatures, func(s Signature) int {
			return len(s.SHA256) + numberSize(s.Size) + textSize(s.Type) + timeSize(s.Date) + textSize(s.Key) + textSize(s.JWS)
		})
	}
	if withholds || r.Import > 0 {
		n += numberSize(r.Import)
	}
	if withholds {
		n += numberSize(r.Withheld.Redacted) + numberSize(r.Withheld.Erased)
		n += listSize(r.Withheld.Disavowed, func(d Disavowal) int {
			return numberSize(d.First) + numberSize(d.Last) + textSize(d.Reason) + timeSize(d.At) + textSize(d.By)
		})
	}
	if uncached {
		var places []uint64
		for i, v := range r.Values {
			if isUncached(v) {
				places = append(places, uint64(i))
			}
		}
		n += listSize(places, numberSize)
	}
	return n
}

func valueSize(v HandleValue) int {
	return numberSize(uint64(v.Index)) + textSize(v.Type) + textSize(string(v.Data)) + numberSize(uint64(v.TTL)) + 1 +
		numberSize(uint64(v.Timestamp)) + 1 +
		listSize(v.References, func(r HandleReference) int { return textSize(r.Handle) + numberSize(uint64(r.Index)) })
}

// numberSize is the size of a varint: seven bits in each byte.
func numberSize(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// signedSize is the size of a number whose sign is in its lowest bit.
func signedSize(v int64) int { return numberSize(uint64(v)<<1 ^ uint64(v>>63)) }

func textSize(s string) int { return numberSize(uint64(len(s))) + len(s) }

func idSize(id ID) int { return textSize(id.scheme) + textSize(id.text) }

func timeSize(t time.Time) int {
	if t.IsZero() {
		return 1
	}
	return 1 + signedSize(t.Unix()) + numberSize(uint64(t.Nanosecond()))
}

func listSize[T any](list []T, size func(T) int) int {
	n := numberSize(uint64(len(list)))
	for _, v := range list {
		n += size(v)
	}
	return n
}
