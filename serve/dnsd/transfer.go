package dnsd

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/zonekey"
)

// TransferLimits bound what secondaries may use up. Zero fields stand for the numbers
// beside them.
type TransferLimits struct {
	AtOnce  int           // transfers; 10
	Total   time.Duration // how long one may last; an hour
	Message time.Duration // how long the taking of a message may take; 30 s
}

func (l *TransferLimits) fillIn() {
	l.AtOnce = orElse(l.AtOnce, 10)
	l.Total = orElse(l.Total, time.Hour)
	l.Message = orElse(l.Message, 30*time.Second)
}

// transferTally counts transfers.
type transferTally struct {
	whole   atomic.Uint64
	deltas  atomic.Uint64
	refused atomic.Uint64
	failed  atomic.Uint64
}

// isTransfer reports whether the message that was read asks for a zone.
func (q *query) isTransfer() bool {
	return q.asks && q.class == dns.ClassINET && (q.qtype == dns.TypeAXFR || q.qtype == dns.TypeIXFR)
}

// tsigKey returns the TSIG key with a name, with which clients may sign.
func (s *Server) tsigKey(ctx context.Context, name string) (*zonekey.TSIGKey, error) {
	if s.o.Zones == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.LookupTimeout)
	defer cancel()
	return s.o.Zones.TSIGKey(ctx, name)
}

// errRefused says that a client may not have a zone.
var errRefused = stele.Messagef("zone.client-not-allowed", "the zone is not for this client")

// errShut says that a zone is not transferred to any client at present.
var errShut = stele.Messagef("zone.serial-unknown-after-restore", "the zone came from a backup, and it is not known which serial its secondaries have, so it is not transferred; ask each secondary for its SOA record, and then run 'stele zone raise ZONE --above SERIAL' with the highest serial")

// zoneFor returns the zone that was asked for, if the client may have it.
func (w *worker) zoneFor(ctx context.Context, from peer, who *tsigSigner) (*publish.Zone, error) {
	if w.s.o.Zones == nil {
		return nil, errRefused
	}
	name, _, err := dns.UnpackDomainName(w.q.name, 0)
	if err != nil {
		return nil, errRefused
	}
	z, err := w.s.o.Zones.Zone(ctx, strings.ToLower(name))
	if err != nil {
		return nil, err
	}
	switch {
	case z == nil || !z.IsSecondary(from.addr, who.keyName()):
		return nil, errRefused
	case w.s.o.Transfer != nil && !w.s.o.Transfer.May(from.addr):
		w.s.o.Log.Warn("a zone was asked for from an address that transfer-allow does not name, and refused", "zone", z.Name, "from", from.addr)
		return nil, errRefused
	case z.IsShut():
		w.s.o.Log.Error("a zone is not transferred", "zone", z.Name, "to", from.addr, "err", errShut)
		return nil, errShut
	}
	return z, nil
}

// transfer sends a zone, or what has changed in it, over a connection. It returns an
// error if the connection is of no use any more.
func (t *stream) transfer(w *worker, msg []byte, from peer, now time.Time) error {
	w.greet(from, now)
	w.note(from, msg, nil, now) // what is sent is too long to be told of
	who, code := w.verify(msg, now)
	if code != dns.RcodeSuccess {
		return t.decline(w, msg, who, code)
	}
	ctx, cancel := context.WithTimeout(w.ctx, t.s.o.Transfers.Total)
	defer cancel()
	z, err := w.zoneFor(ctx, from, who)
	if err != nil {
		return t.declineFor(w, msg, who, err)
	}
	select {
	case t.s.slots <- struct{}{}:
		defer func() { <-t.s.slots }()
	default:
		t.s.transfers.refused.Add(1)
		return t.decline(w, msg, who, dns.RcodeServerFailure)
	}
	if err := t.flush(); err != nil {
		return err
	}
	out := &outgoing{t: t, who: who, opt: w.transferOPT(), env: newEnvelopes(w.q.id, flagQR|flagAA|w.q.flags&flagRD, w.q.question)}
	err = w.send(ctx, out, z, msg)
	if err != nil && out.sent == 0 {
		return t.declineFor(w, msg, who, err)
	}
	if err != nil {
		t.s.transfers.failed.Add(1)
		t.s.o.Log.Warn("a transfer was broken off", "zone", z.Name, "to", from.addr, "err", err)
	}
	return err
}

// transferOPT is the OPT record of a transfer: a client that sends EDNS gets it back (RFC
// 6891, section 6.1.1), with the time after which the zone expires, if it asks for it (RFC
// 7314, section 3).
func (w *worker) transferOPT() []byte {
	if !w.q.edns {
		return nil
	}
	return w.appendOPT(nil, dns.RcodeSuccess, 0)
}

// send sends what was asked for.
func (w *worker) send(ctx context.Context, out *outgoing, z *publish.Zone, msg []byte) error {
	if w.q.qtype == dns.TypeIXFR {
		serial, ok := serialIn(msg)
		if !ok {
			return errMalformed
		}
		list, err := z.IXFR(ctx, serial)
		if err != nil {
			return err
		}
		if list != nil {
			w.s.transfers.deltas.Add(1)
			return out.records(list)
		}
	}
	w.s.transfers.whole.Add(1)
	return sendWhole(ctx, w.s.o.Zones, out, z.Name)
}

var errMalformed = stele.Messagef("zone.transfer-request-malformed", "the request is malformed")

// declineFor declines a request with the response code for an error.
func (t *stream) declineFor(w *worker, msg []byte, who *tsigSigner, err error) error {
	switch {
	case errors.Is(err, errRefused), errors.Is(err, publish.ErrNoZone):
		w.extended = dns.ExtendedErrorCodeProhibited
		return t.decline(w, msg, who, dns.RcodeRefused)
	case errors.Is(err, errShut):
		w.extended = dns.ExtendedErrorCodeNotReady
		return t.decline(w, msg, who, dns.RcodeRefused)
	case errors.Is(err, errMalformed):
		return t.decline(w, msg, who, dns.RcodeFormatError)
	}
	t.s.transfers.failed.Add(1)
	t.s.failures.log(t.s.o.Log, t.s.o.Now(), "err", err)
	return t.decline(w, msg, who, dns.RcodeServerFailure)
}

// decline answers with a response code alone.
func (t *stream) decline(w *worker, msg []byte, who *tsigSigner, code int) error {
	if code == dns.RcodeRefused || code == dns.RcodeNotAuth {
		t.s.transfers.refused.Add(1)
	}
	answer := append(append([]byte(nil), msg[:headerSize]...), w.q.question...)
	answer = who.sign(w.finish(answer, &packed{rcode: uint8(code)}), t.s.o.Now())
	t.out = append(binary.BigEndian.AppendUint16(t.out, uint16(len(answer))), answer...)
	return nil
}

// outgoing is a transfer under way.
type outgoing struct {
	t    *stream
	who  *tsigSigner
	opt  []byte // the server's side of EDNS, for the first message; nil: there is none
	env  *envelopes
	sent int // messages
	buf  []byte
}

// write writes messages.
func (o *outgoing) write(list [][]byte) error {
	for i, msg := range list {
		now := o.t.s.o.Now()
		if o.sent == 0 && o.opt != nil && len(msg)+len(o.opt) <= maxMessage {
			msg = append(msg, o.opt...)
			binary.BigEndian.PutUint16(msg[10:], binary.BigEndian.Uint16(msg[10:])+1)
		}
		msg = o.who.sign(msg, now)
		if len(msg) > maxMessage {
			return stele.Messagef("dns.message-too-long", "a message of {bytes} bytes can't be sent", len(msg))
		}
		o.buf = append(binary.BigEndian.AppendUint16(o.buf, uint16(len(msg))), msg...)
		if o.sent++; i < len(list)-1 && len(o.buf) < maxMessage {
			continue // several are written at once
		}
		if err := o.t.c.SetWriteDeadline(now.Add(o.t.s.o.Transfers.Message)); err != nil {
			return err
		}
		if _, err := o.t.c.Write(o.buf); err != nil {
			return err
		}
		o.buf = o.buf[:0]
	}
	return nil
}

// records sends records.
func (o *outgoing) records(list []dns.RR) error {
	for _, rr := range list {
		if err := o.env.addShared(rr); err != nil {
			return err
		}
		if err := o.write(o.env.take()); err != nil {
			return err
		}
	}
	o.env.close()
	return o.write(o.env.take())
}

// serialIn returns the serial that a client has, from the SOA record of its question
// (RFC 1995, section 3).
func serialIn(msg []byte) (uint32, bool) {
	var m dns.Msg
	if m.Unpack(msg) != nil || len(m.Ns) != 1 || len(m.Question) != 1 {
		return 0, false
	}
	soa, ok := m.Ns[0].(*dns.SOA)
	if !ok || !strings.EqualFold(soa.Hdr.Name, m.Question[0].Name) {
		return 0, false
	}
	return soa.Serial, true
}

// answerIXFR answers a question for what has changed that came over UDP: with that if
// it fits, or with the SOA record, which tells the client to come by TCP (RFC 1995,
// section 2).
func (w *worker) answerIXFR(dst, msg []byte, from peer, who *tsigSigner, limit int, now time.Time) ([]byte, packed) {
	if w.wouldBlock = !w.mayBlock; w.wouldBlock {
		return dst, packed{}
	}
	ctx, cancel := context.WithTimeout(w.ctx, w.s.o.LookupTimeout)
	defer cancel()
	z, err := w.zoneFor(ctx, from, who)
	if errors.Is(err, errRefused) || errors.Is(err, errShut) {
		w.s.transfers.refused.Add(1)
		w.extended = dns.ExtendedErrorCodeProhibited
		if errors.Is(err, errShut) {
			w.extended = dns.ExtendedErrorCodeNotReady
		}
		return dst, packed{rcode: dns.RcodeRefused}
	}
	serial, ok := serialIn(msg)
	if !ok {
		return dst, packed{rcode: dns.RcodeFormatError}
	}
	var list []dns.RR
	if err == nil {
		list, err = z.IXFR(ctx, serial)
	}
	if err != nil && stele.KindOf(err) != stele.Unavailable {
		w.s.failures.log(w.s.o.Log, now, "err", err)
		return dst, packed{rcode: dns.RcodeServerFailure}
	}
	if body, n := packDelta(w.q.question, list, limit); n > 0 {
		w.s.transfers.deltas.Add(1)
		return append(dst, body...), packed{aa: true, answers: n}
	}
	if z == nil {
		return dst, packed{rcode: dns.RcodeServerFailure}
	}
	soa, _ := z.Apex()
	body, n := packDelta(w.q.question, []dns.RR{soa}, limit)
	return append(dst, body...), packed{aa: true, answers: n}
}

// packDelta packs records after a question, if they fit.
func packDelta(question []byte, list []dns.RR, limit int) (body []byte, n uint16) {
	e := newEnvelopes(0, 0, question)
	for _, rr := range list {
		if e.addShared(rr) != nil || len(e.full) > 0 || len(e.msg)-len(e.head) > limit {
			return nil, 0
		}
	}
	if e.count == 0 {
		return nil, 0
	}
	return e.msg[len(e.head):], uint16(e.count)
}
