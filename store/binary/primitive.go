package binary

import (
	"encoding/binary"
	"time"

	"github.com/stele-id/stele"
)

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendList[T any](b []byte, list []T, item func([]byte, T) []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, v := range list {
		b = item(b, v)
	}
	return b
}

func appendID(b []byte, id stele.ID) []byte {
	return appendText(appendText(b, id.Scheme()), id.String())
}

// appendTime appends seconds and nanoseconds since 1970; the zero time is 0, 0 and
// a mark, since 1970 is a time too.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, 0)
	}
	b = append(b, 1)
	b = binary.AppendVarint(b, t.Unix())
	return binary.AppendUvarint(b, uint64(t.Nanosecond()))
}

var (
	errShort = stele.Messagef("store.value-too-short", "it ends too early")
	errOdd   = stele.Messagef("store.value-has-wrong-number", "a number or mark is not what it can be")
)

// decoder reads a binary form. After the first error it reads zeros. The form is
// copied once, as a string, of which all texts are pieces.
type decoder struct {
	rest string
	err  error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.rest = ""
}

// end returns what was wrong, or that something is left.
func (d *decoder) end(what string) error {
	if d.err == nil && len(d.rest) > 0 {
		d.err = stele.Messagef("store.value-followed", "something follows its end")
	}
	if d.err != nil {
		return &stele.Error{Op: "decode", Kind: stele.Internal, Err: stele.Messagef("store.value-damaged", "a stored {what} is damaged: {cause}", what, d.err)}
	}
	return nil
}

func (d *decoder) byte() byte {
	if len(d.rest) == 0 {
		d.fail(errShort)
		return 0
	}
	v := d.rest[0]
	d.rest = d.rest[1:]
	return v
}

func (d *decoder) bool() bool {
	v := d.byte()
	if v > 1 {
		d.fail(errOdd)
	}
	return v == 1
}

// uvarint is binary.Uvarint on a string.
func (d *decoder) uvarint() (v uint64) {
	for i := range min(len(d.rest), binary.MaxVarintLen64) {
		c := d.rest[i]
		if i == binary.MaxVarintLen64-1 && c > 1 {
			break // more than 64 bits
		}
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			d.rest = d.rest[i+1:]
			return v
		}
	}
	d.fail(errShort)
	return 0
}

func (d *decoder) upTo(limit uint64) uint64 {
	v := d.uvarint()
	if v > limit {
		d.fail(errOdd)
		return 0
	}
	return v
}

// varint undoes the zigzag of binary.AppendVarint.
func (d *decoder) varint() int64 {
	v := d.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (d *decoder) text() string {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.fail(errShort)
		return ""
	}
	v := d.rest[:n]
	d.rest = d.rest[n:]
	return v
}

// list reads a list; nil if it is empty. An item has at least a byte, so a length
// that can't be true is found before memory is taken for it.
func list[T any](d *decoder, item func() T) []T {
	n := d.upTo(uint64(len(d.rest)))
	if n == 0 {
		return nil
	}
	v := make([]T, 0, min(n, 1000)) // a damaged length takes no memory; see MaxTargets
	for range n {
		if v = append(v, item()); d.err != nil {
			return nil
		}
	}
	return v
}

func (d *decoder) id() stele.ID { return stele.StoredID(d.text(), d.text()) }

func (d *decoder) time() time.Time {
	if !d.bool() {
		return time.Time{}
	}
	sec := d.varint()
	return time.Unix(sec, int64(d.upTo(999_999_999))).UTC()
}
