package dnsd

import (
	"crypto/hmac"
	"encoding/binary"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/zonekey"
)

// tsigFudge is by how many seconds the clocks of two name servers may differ (RFC 8945,
// section 10).
const tsigFudge = 300

// tsig is a signature as it stands at the end of a message (RFC 8945, section 4.2).
type tsig struct {
	begin     int    // where it begins in the message
	name      string // of the key, in lower case
	algorithm string // in lower case, without its dot
	signed    uint64 // when, in Unix seconds
	fudge     uint16
	mac       []byte
	id        uint16 // of the message as it was signed
	code      uint16
	other     []byte
}

var errNoSignature = stele.Messagef("tsig.not-a-signature", "this is not a signature (RFC 8945)")

// readTSIG reads the signature that begins at an offset, where a record is.
func readTSIG(msg []byte, off int) (*tsig, error) {
	t := &tsig{begin: off}
	r, end := readRecord(msg, off)
	if end == 0 || r.class != dns.ClassANY || r.ttl != 0 {
		return nil, errNoSignature
	}
	name, _, err := dns.UnpackDomainName(msg, off)
	if err != nil {
		return nil, err
	}
	algorithm, n, err := dns.UnpackDomainName(r.data, 0)
	if err != nil {
		return nil, err
	}
	t.name, t.algorithm = strings.ToLower(name), strings.TrimSuffix(strings.ToLower(algorithm), ".")
	data := r.data[n:]
	if len(data) < 10 {
		return nil, errNoSignature
	}
	t.signed, t.fudge = uint48(data), binary.BigEndian.Uint16(data[6:])
	size := int(binary.BigEndian.Uint16(data[8:]))
	if data = data[10:]; len(data) < size+6 {
		return nil, errNoSignature
	}
	t.mac, data = data[:size], data[size:]
	t.id, t.code = binary.BigEndian.Uint16(data), binary.BigEndian.Uint16(data[2:])
	if t.other = data[6:]; len(t.other) != int(binary.BigEndian.Uint16(data[4:])) {
		return nil, errNoSignature
	}
	return t, nil
}

func uint48(b []byte) uint64 {
	return uint64(binary.BigEndian.Uint16(b))<<32 | uint64(binary.BigEndian.Uint32(b[2:]))
}

func appendUint48(b []byte, n uint64) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, uint16(n>>32)), uint32(n))
}

// appendSigned appends what is signed beside the message (RFC 8945, section 4.3.3); of
// the messages that follow another one the times only.
func (t *tsig) appendSigned(b []byte, timesOnly bool) []byte {
	if timesOnly {
		return binary.BigEndian.AppendUint16(appendUint48(b, t.signed), t.fudge)
	}
	b, _ = packName(b, t.name) // it was read, or it is in the settings
	b = binary.BigEndian.AppendUint16(b, dns.ClassANY)
	b = binary.BigEndian.AppendUint32(b, 0)
	b, _ = packName(b, t.algorithm+".")
	b = binary.BigEndian.AppendUint16(appendUint48(b, t.signed), t.fudge)
	b = binary.BigEndian.AppendUint16(b, t.code)
	b = binary.BigEndian.AppendUint16(b, uint16(len(t.other)))
	return append(b, t.other...)
}

// sumTSIG makes the signature of a message. before is that of the message before: of the
// request, or of the one that this follows.
func sumTSIG(k *zonekey.TSIGKey, before, msg []byte, t *tsig, timesOnly bool) []byte {
	h := hmac.New(k.Hash(), k.Secret)
	if before != nil {
		h.Write(binary.BigEndian.AppendUint16(nil, uint16(len(before))))
		h.Write(before)
	}
	h.Write(msg)
	h.Write(t.appendSigned(nil, timesOnly))
	return h.Sum(nil)
}

// checkTSIG says what is wrong with the signature of a message, as a TSIG error; 0 if
// nothing is (RFC 8945, section 5.2). The message is changed while it looks.
func checkTSIG(k *zonekey.TSIGKey, before, msg []byte, t *tsig, now time.Time) uint16 {
	if k == nil || k.Name != t.name || k.Algorithm != t.algorithm {
		return dns.RcodeBadKey
	}
	if size := k.Hash()().Size(); len(t.mac) < size {
		return dns.RcodeBadTrunc
	}
	sum := func() []byte {
		id, count := binary.BigEndian.Uint16(msg), binary.BigEndian.Uint16(msg[10:])
		defer func() {
			binary.BigEndian.PutUint16(msg, id)
			binary.BigEndian.PutUint16(msg[10:], count)
		}()
		binary.BigEndian.PutUint16(msg, t.id)
		binary.BigEndian.PutUint16(msg[10:], count-1)
		return sumTSIG(k, before, msg[:t.begin], t, false)
	}()
	if !hmac.Equal(sum, t.mac) {
		return dns.RcodeBadSig
	}
	// The client may allow less than tsigFudge, but not more.
	if apart := now.Unix() - int64(t.signed); max(apart, -apart) > int64(min(t.fudge, tsigFudge)) {
		return dns.RcodeBadTime
	}
	return 0
}

// tsigSigner signs what answers a signed message, one message after the other.
type tsigSigner struct {
	key    *zonekey.TSIGKey // nil: what it says is not signed
	t      tsig             // what is said of the request, or of the answers
	before []byte           // the signature of the message before; nil if there is none
	sent   int              // messages so far
}

// newTSIGSigner makes a signer for a message that answers none.
func newTSIGSigner(k *zonekey.TSIGKey) *tsigSigner {
	return &tsigSigner{key: k, t: tsig{name: k.Name, algorithm: k.Algorithm, fudge: tsigFudge}}
}

// newTSIGAnswerSigner makes a signer for the answers to a message whose signature was checked.
func newTSIGAnswerSigner(k *zonekey.TSIGKey, t *tsig, code uint16, now time.Time) *tsigSigner {
	s := &tsigSigner{key: k, t: tsig{name: t.name, algorithm: t.algorithm, fudge: tsigFudge, code: code, signed: t.signed}, before: t.mac}
	switch code {
	case dns.RcodeBadKey, dns.RcodeBadSig, dns.RcodeBadTrunc:
		s.key = nil // RFC 8945, section 5.3.2
	case dns.RcodeBadTime:
		s.t.other = appendUint48(nil, uint64(now.Unix())) // section 5.2.3
	}
	return s
}

// keyName is the name of the key that signed the request; "" if the signature is not valid.
func (s *tsigSigner) keyName() string {
	if s == nil || s.key == nil || s.t.code != 0 {
		return ""
	}
	return s.key.Name
}

// size is how many bytes the signature of a message has at most.
func (s *tsigSigner) size() int {
	if s == nil {
		return 0
	}
	return len(s.t.name) + 1 + 10 + len(s.t.algorithm) + 2 + 16 + 64 + len(s.t.other)
}

// sign appends the signature to a message. A nil signer signs nothing.
func (s *tsigSigner) sign(msg []byte, now time.Time) []byte {
	if s == nil {
		return msg
	}
	t := s.t
	if t.code != dns.RcodeBadTime {
		t.signed = uint64(max(0, now.Unix()))
	}
	if s.key != nil {
		t.mac = sumTSIG(s.key, s.before, msg, &t, s.sent > 0)
	}
	s.before = t.mac
	s.sent++
	id := binary.BigEndian.Uint16(msg)
	msg, _ = packName(msg, t.name)
	msg = binary.BigEndian.AppendUint16(msg, dns.TypeTSIG)
	msg = binary.BigEndian.AppendUint16(msg, dns.ClassANY)
	msg = binary.BigEndian.AppendUint32(msg, 0)
	at := len(msg)
	msg = append(msg, 0, 0)
	msg, _ = packName(msg, t.algorithm+".")
	msg = binary.BigEndian.AppendUint16(appendUint48(msg, t.signed), t.fudge)
	msg = append(binary.BigEndian.AppendUint16(msg, uint16(len(t.mac))), t.mac...)
	msg = binary.BigEndian.AppendUint16(msg, id)
	msg = binary.BigEndian.AppendUint16(msg, t.code)
	msg = append(binary.BigEndian.AppendUint16(msg, uint16(len(t.other))), t.other...)
	binary.BigEndian.PutUint16(msg[at:], uint16(len(msg)-at-2))
	binary.BigEndian.PutUint16(msg[10:], binary.BigEndian.Uint16(msg[10:])+1)
	return msg
}

// verify judges the signature of a request, and returns the signer of the answers and
// the response code so far. A request without a signature has no signer.
func (w *worker) verify(msg []byte, now time.Time) (*tsigSigner, int) {
	if w.q.tsig == 0 {
		return nil, dns.RcodeSuccess
	}
	t, err := readTSIG(msg, w.q.tsig)
	if err != nil {
		return nil, dns.RcodeFormatError
	}
	k, err := w.s.tsigKey(w.ctx, t.name)
	if err != nil {
		w.s.failures.log(w.s.o.Log, now, "err", err)
		return nil, dns.RcodeServerFailure
	}
	// Section 5.2.2.1: no MAC is longer than its hash gives, or shorter than ten bytes or
	// half of that. Nor is the empty MAC of a name server that does not know the key valid.
	if k != nil && k.Algorithm == t.algorithm {
		size := k.Hash()().Size()
		if len(t.mac) > size || len(t.mac) < max(10, size/2) {
			return nil, dns.RcodeFormatError
		}
	}
	code := checkTSIG(k, nil, msg, t, now)
	if code != 0 {
		w.tally.badSignatures.Add(1)
		return newTSIGAnswerSigner(k, t, code, now), dns.RcodeNotAuth
	}
	return newTSIGAnswerSigner(k, t, 0, now), dns.RcodeSuccess
}
