package links

import (
	"encoding/binary"
	"time"

	"github.com/stele-id/stele"
)

// statusForm is the number of the stored form of a Status. In form 1 a row has two bytes instead of the hours of its failures.
const statusForm = 2

// What follows the first part of a stored Status.
const (
	hasRow = 1 << iota
	hasText
	hasDigest
	hasModified
	hasTag
	hasDrift
	hasLooked
	isLarge
)

// epoch is where stored times begin. They are kept to the minute.
const epoch = 1_577_836_800 // 2020

func putTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, 0)
	}
	return binary.AppendUvarint(b, uint64(max(t.Unix()-epoch, 0))/60+1)
}

// Append appends the stored form of a status: about 70 bytes for a target that works.
func (s *Status) Append(b []byte) []byte {
	flags := byte(0)
	for flag, set := range map[byte]bool{hasRow: s.Row != (Row{}) || s.Gone > 0, hasText: s.Print.Text != 0 || s.Print.Title != 0, hasDigest: s.Print.Digest != [16]byte{},
		hasModified: !s.Print.Modified.IsZero(), hasTag: s.Print.Tag != "", hasDrift: s.Drift != NoDrift || !s.DriftSince.IsZero(), hasLooked: s.Looked != 0, isLarge: s.Large} {
		if set {
			flags |= flag
		}
	}
	b = append(b, statusForm, flags, byte(s.State), byte(s.Cause))
	b = binary.AppendUvarint(b, uint64(s.Code))
	b = binary.BigEndian.AppendUint64(b, s.URL)
	for _, t := range []time.Time{s.Since, s.Checked, s.Good, s.Next} {
		b = putTime(b, t)
	}
	b = binary.BigEndian.AppendUint16(b, s.Print.Type)
	b = binary.AppendUvarint(b, uint64(max(s.Print.Length, 0)))
	if flags&hasRow != 0 {
		b = putTime(putTime(b, s.Row.First), s.Row.Last)
		h := s.Row.Hours
		b = append(b, s.Row.Fails, s.Row.Days, byte(h>>16), byte(h>>8), byte(h), s.Row.Absent, s.Gone)
	}
	if flags&hasText != 0 {
		b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, s.Print.Title), s.Print.Text)
	}
	if flags&hasDigest != 0 {
		b = append(b, s.Print.Digest[:]...)
	}
	if flags&hasModified != 0 {
		b = binary.AppendUvarint(b, uint64(max(s.Print.Modified.Unix(), 0))) // it is sent as it came
	}
	if flags&hasTag != 0 {
		b = append(append(b, byte(len(s.Print.Tag))), s.Print.Tag...)
	}
	if flags&hasDrift != 0 {
		b = putTime(append(b, byte(s.Drift)), s.DriftSince)
	}
	if flags&hasLooked != 0 {
		b = binary.BigEndian.AppendUint32(b, s.Looked)
	}
	return b
}

// reader reads a stored form; bad is set when it ends too early.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.bad, r.b = true, nil
		return make([]byte, n)
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) byte() byte { return r.take(1)[0] }

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > 1<<60 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) time() time.Time {
	v := r.number()
	if v == 0 {
		return time.Time{}
	}
	if v > 1<<32 {
		r.bad = true
		return time.Time{}
	}
	return time.Unix(int64(v-1)*60+epoch, 0).UTC()
}

// ReadStatus reads a stored status.
func ReadStatus(b []byte) (s Status, err error) {
	r := &reader{b: b}
	head := r.take(4)
	flags := head[1]
	s.State, s.Cause = State(head[2]), Cause(head[3])
	s.Code = uint16(r.number())
	s.URL = binary.BigEndian.Uint64(r.take(8))
	s.Since, s.Checked, s.Good, s.Next = r.time(), r.time(), r.time(), r.time()
	s.Print.Type = binary.BigEndian.Uint16(r.take(2))
	s.Print.Length = int64(r.number())
	if flags&hasRow != 0 {
		s.Row.First, s.Row.Last = r.time(), r.time()
		s.Row.Fails, s.Row.Days = r.byte(), r.byte()
		if head[0] == 1 {
			r.take(2)
		} else {
			h := r.take(3)
			s.Row.Hours = uint32(h[0])<<16 | uint32(h[1])<<8 | uint32(h[2])
		}
		s.Row.Absent, s.Gone = r.byte(), r.byte()
	}
	if flags&hasText != 0 {
		s.Print.Title, s.Print.Text = binary.BigEndian.Uint32(r.take(4)), binary.BigEndian.Uint64(r.take(8))
	}
	if flags&hasDigest != 0 {
		copy(s.Print.Digest[:], r.take(16))
	}
	if flags&hasModified != 0 {
		s.Print.Modified = time.Unix(int64(r.number()), 0).UTC()
	}
	if flags&hasTag != 0 {
		s.Print.Tag = string(r.take(int(r.byte())))
	}
	if flags&hasDrift != 0 {
		s.Drift, s.DriftSince = Drift(r.byte()), r.time()
	}
	if flags&hasLooked != 0 {
		s.Looked = binary.BigEndian.Uint32(r.take(4))
	}
	s.Large = flags&isLarge != 0
	if r.bad || head[0] < 1 || head[0] > statusForm || len(r.b) > 0 || int(s.State) >= len(stateNames) {
		return Status{}, stele.Errorf("read link status", stele.ID{}, stele.Internal, "links.status-damaged", "what is known of a link is damaged")
	}
	return s, nil
}
