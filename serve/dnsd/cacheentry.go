package dnsd

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/stele-id/stele/publish/zonesign"
)

// Fields of an entry, in front of the name and the body.
const (
	entryEpoch      = 0  // 4 bytes
	entryBody       = 4  // length of the body: 2
	entryType       = 6  // 2
	entryAnswers    = 8  // 2
	entryAuthority  = 10 // 2
	entryAdditional = 12 // 2
	entryExtra      = 14 // 2
	entrySerial     = 16 // 2
	entryZone       = 18 // 2
	entryName       = 20 // length of the name: 1
	entryCode       = 21 // the response code, and whether it is authoritative: 1
	entryStored     = 22 // length of the body as it is stored: 2
	entryDictionary = 24 // what it was shortened with: 1
	entryFlags      = 25 // 1
	entryHour       = 26 // until when its signatures are good enough: 2
	entryHead       = 28

	codeAA = 1 << 7

	flagSigned  = 1 << 0
	flagAbsent  = 1 << 1
	flagChained = 1 << 2
	flagBare    = 1 << 3
)

// wanted is what is looked for.
type wanted struct {
	key    uint64
	qtype  uint16
	signed bool
	hour   uint16
	epoch  uint32
	chains uint32
}

// fits reports whether an entry for the name is good still.
func (w *wanted) fits(e []byte) bool {
	epoch := binary.LittleEndian.Uint32(e[entryEpoch:])
	if w.signed {
		// More time may be left only if the clock was wrong when they were made.
		if left := int16(binary.LittleEndian.Uint16(e[entryHour:]) - w.hour); left <= 0 || left > int16(zonesign.SignatureFresh/time.Hour)+1 {
			return false
		}
	}
	if e[entryFlags]&flagChained != 0 {
		return epoch == w.chains
	}
	return epoch == w.epoch
}

// cacheKey is what an answer is found by.
func cacheKey(hash uint64, qtype uint16, signed bool) uint64 {
	kind := uint64(qtype) + 1
	if signed {
		kind |= 1 << 32
	}
	return mix(hash, kind)
}

// hourOf is a time in hours. It goes round in seven years, and hours compare as serials
// do.
func hourOf(t time.Time) uint16 { return uint16(t.Unix() / 3600) }

// is reports whether an entry is the answer for a name and type.
func is(entry, name []byte, qtype uint16, signed bool) bool {
	return binary.LittleEndian.Uint16(entry[entryType:]) == qtype &&
		(entry[entryFlags]&flagSigned != 0) == signed &&
		int(entry[entryName]) == len(name) &&
		bytes.Equal(entry[entryHead:entryHead+len(name)], name)
}

// kept is an answer as it is put into a ring.
type kept struct {
	*packed
	qtype      uint16
	epoch      uint32
	stored     []byte // the body, shortened with a dictionary
	dictionary uint8
}

// readEntry reads an entry whose name has a length. The body is as it is stored.
func readEntry(e []byte, name int) packed {
	begin := entryHead + name
	return packed{
		rcode:      e[entryCode] &^ codeAA,
		aa:         e[entryCode]&codeAA != 0,
		answers:    binary.LittleEndian.Uint16(e[entryAnswers:]),
		authority:  binary.LittleEndian.Uint16(e[entryAuthority:]),
		additional: binary.LittleEndian.Uint16(e[entryAdditional:]),
		extra:      int(binary.LittleEndian.Uint16(e[entryExtra:])),
		serial:     int(binary.LittleEndian.Uint16(e[entrySerial:])),
		zone:       binary.LittleEndian.Uint16(e[entryZone:]),
		signed:     e[entryFlags]&flagSigned != 0,
		absent:     e[entryFlags]&flagAbsent != 0,
		bare:       e[entryFlags]&flagBare != 0,
		body:       e[begin : begin+int(binary.LittleEndian.Uint16(e[entryStored:]))],
	}
}

// flags are the bits of an answer.
func (p *packed) flags() (bits uint8) {
	if p.signed {
		bits |= flagSigned
	}
	if p.absent {
		bits |= flagAbsent
	}
	if p.chained {
		bits |= flagChained
	}
	if p.bare {
		bits |= flagBare
	}
	return bits
}

func writeEntry(e []byte, name []byte, k *kept) {
	binary.LittleEndian.PutUint32(e[entryEpoch:], k.epoch)
	binary.LittleEndian.PutUint16(e[entryBody:], uint16(len(k.body)))
	binary.LittleEndian.PutUint16(e[entryType:], k.qtype)
	binary.LittleEndian.PutUint16(e[entryAnswers:], k.answers)
	binary.LittleEndian.PutUint16(e[entryAuthority:], k.authority)
	binary.LittleEndian.PutUint16(e[entryAdditional:], k.additional)
	binary.LittleEndian.PutUint16(e[entryExtra:], uint16(k.extra))
	binary.LittleEndian.PutUint16(e[entrySerial:], uint16(k.serial))
	binary.LittleEndian.PutUint16(e[entryZone:], k.zone)
	e[entryName] = uint8(len(name))
	e[entryCode] = k.rcode
	if k.aa {
		e[entryCode] |= codeAA
	}
	binary.LittleEndian.PutUint16(e[entryStored:], uint16(len(k.stored)))
	e[entryDictionary] = k.dictionary
	e[entryFlags] = k.flags()
	binary.LittleEndian.PutUint16(e[entryHour:], k.hour)
	copy(e[entryHead:], name)
	copy(e[entryHead+len(name):], k.stored)
}
