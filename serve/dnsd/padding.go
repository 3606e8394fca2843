package dnsd

import "encoding/binary"

// padTo is the block length of encrypted answers: each is padded to a multiple of it (RFC
// 8467, section 4.1), so that the length does not tell an observer which answer it is.
const padTo = 468

// paddingSize returns how many bytes the padding option of an answer takes, with its head,
// if the answer has so many without it; 0 if there is none. Only a client that pads gets
// padding, and only over an encrypted transport (RFC 7830, sections 4 and 6).
func (w *worker) paddingSize(n int) int {
	if !w.private || !w.q.padded || n+4 > maxMessage {
		return 0
	}
	whole := (n + 4 + padTo - 1) / padTo * padTo
	return min(whole, maxMessage) - n
}

// appendPadding appends a padding option of so many bytes, with its head. It must be the
// last one.
func appendPadding(dst []byte, size int) []byte {
	if size == 0 {
		return dst
	}
	dst = binary.BigEndian.AppendUint16(dst, optionPadding)
	dst = binary.BigEndian.AppendUint16(dst, uint16(size-4))
	return append(dst, make([]byte, size-4)...)
}
