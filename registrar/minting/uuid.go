package minting

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"io"
	"time"

	"github.com/stele-id/stele"
)

// uuid is a UUID of version 7 (RFC 9562, section 5.7).
type uuid [16]byte

// newUUID puts together a UUID. The clock has 48 bits of milliseconds and 12 bits
// of 1/4096 of one (method 3 of section 6.2).
func newUUID(clock uint64, random [8]byte) (u uuid) {
	binary.BigEndian.PutUint64(u[:8], clock>>12<<16|7<<12|clock&0xfff)
	copy(u[8:], random[:])
	u[8] = u[8]&0x3f | 0x80
	return u
}

// String returns u as RFC 9562 writes it, in lower case.
func (u uuid) String() string {
	var b [36]byte
	hex.Encode(b[:8], u[:4])
	hex.Encode(b[9:13], u[4:6])
	hex.Encode(b[14:18], u[6:8])
	hex.Encode(b[19:23], u[8:10])
	hex.Encode(b[24:], u[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// uuids makes names of UUIDs, each greater than the one before it as long as the
// process runs. Their 62 random bits make them unique, so nothing is kept.
type uuids struct {
	timeless
	names *uuidMaker
	now   func() time.Time
	rand  io.Reader
	last  uint64
}

// uuidMaker makes names of UUIDs. It does not change.
type uuidMaker struct {
	schemes *stele.Schemes
	prefix  string
}

func newUUIDs(ms *Minters, ns *stele.Namespace, earlier *uuids) (*uuids, error) {
	link, err := joint(ms.schemes, ns, uuid{}.String())
	if err != nil {
		return nil, err
	}
	u := &uuids{names: &uuidMaker{ms.schemes, ns.Prefix + link}, now: ms.o.Now, rand: ms.o.Rand}
	if earlier != nil {
		u.last = earlier.last
	}
	return u, nil
}

func (u *uuids) burst() int { return 1000 }

func (u *uuids) load(context.Context) error { return nil }

func (u *uuids) forget() {}

func (u *uuids) next(time.Time) (draw, []stele.MinterState, time.Duration, error) {
	now := u.now()
	clock := uint64(now.UnixMilli())<<12 | uint64(now.Nanosecond()%1e6)<<12/1e6
	u.last = max(clock, u.last+1)
	var random [8]byte
	if _, err := io.ReadFull(u.rand, random[:]); err != nil {
		return draw{}, nil, 0, stele.Errorf("mint", stele.ID{}, stele.Internal, "mint.no-random-numbers", "there are no random numbers: {cause}", err)
	}
	return draw{uuid: newUUID(u.last, random)}, nil, 0, nil
}

func (u *uuids) settle() {}

func (u *uuids) skip(draw) {}

func (u *uuids) maker() maker { return u.names }

func (m *uuidMaker) label(d draw) (Label, error) {
	id, err := m.schemes.Parse(m.prefix + d.uuid.String())
	return Label{ID: id}, err
}
