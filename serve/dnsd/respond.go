package dnsd

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime/debug"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/trace"
)

// peer is the client that asks.
type peer struct {
	addr netip.Addr // IPv4 addresses in four bytes
	tcp  bool
	idle time.Duration // how long a connection may be idle, for a client that asks for it; 0: it is not told

	private bool // the transport is encrypted
}

// worker answers messages, one at a time. It has what this needs, so that nothing is
// allocated for an answer that is known.
type worker struct {
	s       *Server
	ctx     context.Context
	tally   *tally
	q       query
	name    []byte // of the question, in lower case
	hash    uint64 // of name
	scratch []byte // where answers are packed
	first   first
	lookup  lookup

	cookie    [cookieSize]byte // for the client
	hasCookie bool
	extended  uint16 // code of the extended error (RFC 8914) in an answer; 0: none
	expires   bool   // the answer says for how long a secondary may keep the zone
	verified  bool   // the client has shown a good cookie
	tcp       bool
	private   bool // the transport of the answer is encrypted
	tell      time.Duration

	mayBlock   bool // whether it may wait for the registry
	wouldBlock bool // it would have had to: nothing was answered
}

func (s *Server) newWorker(ctx context.Context, t *tally) *worker {
	return &worker{s: s, ctx: ctx, tally: t, name: make([]byte, 0, maxName), scratch: make([]byte, 4<<10), mayBlock: true}
}

// respond answers a message in dst, or with nothing. dst must have room for the
// largest answer that this peer may get.
func (w *worker) respond(dst, msg []byte, from peer, now time.Time) (answer []byte) {
	defer func() {
		if fault := recover(); fault != nil {
			w.s.faults.log(w.s.o.Log, now, "fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
			answer = nil
		}
	}()
	w.wouldBlock = false
	code := w.q.read(msg)
	if code == dropped {
		w.tally.dropped.Add(1)
		return nil
	}
	w.greet(from, now)
	var who *tsigSigner
	if w.q.tsig > 0 && code != dns.RcodeFormatError {
		var judged int
		if who, judged = w.verify(msg, now); judged != dns.RcodeSuccess {
			code = judged
		}
	}
	if code == dns.RcodeRefused || code == dns.RcodeNotImplemented {
		w.extended = dns.ExtendedErrorCodeNotSupported
	}
	dst = append(append(dst[:0], msg[:headerSize]...), w.q.question...)
	p := packed{rcode: uint8(code)}
	if code == dns.RcodeSuccess && w.q.asks {
		limit := w.limit(from) - len(dst) - w.optSize() - who.size()
		if w.q.isTransfer() && w.q.qtype == dns.TypeIXFR && !from.tcp {
			dst, p = w.answerIXFR(dst, msg, from, who, limit, now)
		} else {
			dst, p = w.find(dst, limit, now)
		}
	}
	if w.wouldBlock {
		return nil
	}
	if !from.tcp && !w.verified && w.s.limiter != nil {
		switch w.s.limiter.judge(from.addr, p.kind(), w.which(&p), now) {
		case hold:
			w.tally.held.Add(1)
			return nil
		case slip:
			w.tally.slipped.Add(1)
			w.extended = 0
			dst, p = dst[:headerSize+len(w.q.question)], w.slipped()
		}
	}
	if p.serial != 0 && !w.stamp(&p, now) {
		dst, p = dst[:headerSize+len(w.q.question)], packed{rcode: dns.RcodeServerFailure}
	}
	if p.aa && w.s.o.CountZones {
		w.tally.zones.add(p.zone)
	}
	answer = who.sign(w.finish(dst, &p), now)
	w.note(from, msg, answer, now)
	return answer
}

// stamp puts the present serial into the SOA record of an answer, and if it is signed
// the signatures of that. It reports false if there are none.
func (w *worker) stamp(p *packed, now time.Time) bool {
	if p.signed {
		seal, ok := w.s.serials.soaSignature(w.ctx, p.zone, now)
		return ok && seal.stamp(p.body[:p.extra], p.serial)
	}
	if n, ok := w.s.serials.now(w.ctx, p.zone); ok {
		binary.BigEndian.PutUint32(p.body[p.serial:], n)
	}
	return true
}

// greet looks at the client: whether a cookie shows that the answer goes where the question
// came from, and what the answer says of the connection.
func (w *worker) greet(from peer, now time.Time) {
	w.hasCookie, w.verified, w.tell, w.tcp = w.q.cookie != nil, false, 0, from.tcp
	w.private = from.private
	w.extended = 0
	w.expires = w.q.expire && w.q.asks && (w.q.qtype == dns.TypeSOA || w.q.isTransfer())
	if w.hasCookie {
		_, w.verified = w.s.jar.answer(w.cookie[:0], w.q.cookie, from.addr, now)
		if w.verified {
			w.tally.cookies.Add(1)
		}
	}
	if from.tcp && w.q.keepalive {
		w.tell = from.idle
	}
}

// limit is the largest answer that a peer may get.
func (w *worker) limit(from peer) int {
	if from.tcp {
		return maxMessage
	}
	return min(w.q.size, maxUDP)
}

// judgeQuestion says which questions are answered at all. Transfers are refused where they
// have no place (see transfer), and so is every other class than that of the Internet,
// except for the name of the server (see identify). It returns an extended error (RFC 8914)
// for what is refused.
func judgeQuestion(q *query) (code int, extended uint16) {
	if q.class != dns.ClassINET {
		return dns.RcodeRefused, dns.ExtendedErrorCodeNotSupported
	}
	switch q.qtype {
	case dns.TypeAXFR, dns.TypeIXFR:
		return dns.RcodeRefused, dns.ExtendedErrorCodeProhibited
	case dns.TypeMAILA, dns.TypeMAILB:
		return dns.RcodeNotImplemented, dns.ExtendedErrorCodeNotSupported
	case dns.TypeOPT, dns.TypeTSIG, dns.TypeTKEY, dns.TypeNXNAME:
		return dns.RcodeFormatError, 0 // they are not data
	}
	return dns.RcodeSuccess, 0
}

// find appends the answer to the question, of limit bytes at most.
func (w *worker) find(dst []byte, limit int, now time.Time) ([]byte, packed) {
	w.name = lower(w.name[:0], w.q.name)
	if dst, p, ok := w.identify(dst, limit); ok {
		return dst, p
	}
	code, extended := judgeQuestion(&w.q)
	if code != dns.RcodeSuccess {
		w.extended = extended
		return dst, packed{rcode: uint8(code)}
	}
	c := w.s.cache
	w.hash = c.hash(w.name)
	dst, p, ok := w.remembered(dst, limit, now)
	if ok {
		w.tally.hits.Add(1)
		return dst, p
	}
	if w.wouldBlock = !w.mayBlock; w.wouldBlock {
		return dst, packed{}
	}
	w.tally.misses.Add(1)
	_, span := w.s.o.Tracer.Begin(w.ctx, trace.Server, "dns")
	p, err := w.make(now)
	switch {
	case errors.Is(err, errBusy):
		w.tally.busy.Add(1)
		p = packed{rcode: dns.RcodeServerFailure}
		if !w.tcp {
			p = packed{tc: true} // over TCP the client's address is verified
		}
	case err != nil:
		w.s.failures.log(w.s.o.Log, now, "err", err)
		p = packed{rcode: dns.RcodeServerFailure}
	default:
		dst, p = p.appendTo(dst, limit)
	}
	if span != nil {
		span.Text("dns.question.type", dns.TypeToString[w.q.qtype])
		span.Text("dns.rcode", dns.RcodeToString[int(p.rcode)])
		span.End(err)
	}
	return dst, p
}

// remembered appends the answer that is known already, if there is one.
func (w *worker) remembered(dst []byte, limit int, now time.Time) (_ []byte, p packed, ok bool) {
	c := w.s.cache
	if w.q.do && w.s.source.Signs() {
		if dst, p, ok = c.getSigned(dst, w.name, w.hash, w.q.qtype, limit, hourOf(now)); ok {
			return dst, p, true
		}
	}
	begin := len(dst)
	if dst, p, ok = c.get(dst, w.name, w.hash, w.q.qtype, limit); ok && w.q.do && p.bare {
		return dst[:begin], packed{}, false
	}
	return dst, p, ok
}

// make asks the zones for the answer to the question, packs it and keeps it.
func (w *worker) make(now time.Time) (packed, error) {
	c := w.s.cache
	epoch, chains := c.epoch(w.hash), c.chains.Load() // before anything is looked at
	ctx := w.lookup.context(w.ctx, now, w.s.o.LookupTimeout)
	a := asked{qtype: w.q.qtype, signed: w.q.do}
	if p, ok, err := w.makeFirst(ctx, now, &a); ok || err != nil {
		if err == nil {
			c.put(w.name, w.hash, w.q.qtype, epoch, &p)
		}
		return p, err
	}
	name, _, err := dns.UnpackDomainName(w.name, 0)
	if err != nil {
		return packed{}, err
	}
	a.name = name
	a.afford = func(exists bool) bool { return w.s.budget.take(now, exists, w.tcp) }
	r, err := resolve(ctx, w.s.source, a)
	if err != nil {
		return packed{}, err
	}
	if r.apex == "" {
		w.extended = dns.ExtendedErrorCodeNotAuthoritative
		return packed{rcode: uint8(r.rcode)}, nil
	}
	p, err := r.pack(name, w.q.qtype, w.s.serials.numberOf(r.apex), w.scratch)
	if err != nil {
		return packed{}, stele.Messagef("zone.answer-not-packable", `the answer for "{name}" can't be packed: {cause}`, name, err)
	}
	if p.chained {
		epoch = chains
	}
	c.put(w.name, w.hash, w.q.qtype, epoch, &p)
	return p, nil
}

func (p *packed) kind() kind {
	switch {
	case !p.aa:
		return kindError
	case p.authority > 0 || p.rcode != dns.RcodeSuccess:
		return kindNegative
	}
	return kindAnswer
}

// which tells answers of a kind apart.
func (w *worker) which(p *packed) uint64 {
	switch p.kind() {
	case kindAnswer:
		return w.hash ^ uint64(w.q.qtype)
	case kindNegative:
		return uint64(p.zone)
	}
	return 0
}

// slipped is the short answer to a client that is over its limit: that it should come
// back with the cookie that goes with it, or over TCP.
func (w *worker) slipped() packed {
	if w.hasCookie {
		return packed{rcode: dns.RcodeBadCookie}
	}
	return packed{tc: true}
}

// maxOPT is the size of the longest OPT record that is sent.
const maxOPT = 11 + 4 + cookieSize + 4 + 2 + 4 + 2 + 4 + maxIdentity + 4 + 4

// optSize is the size of the OPT record of the answer.
func (w *worker) optSize() int {
	if !w.q.edns {
		return 0
	}
	n := 11
	if w.hasCookie {
		n += 4 + cookieSize
	}
	if w.tell > 0 {
		n += 4 + 2
	}
	if w.extended > 0 {
		n += 4 + 2
	}
	if w.tellsName() {
		n += 4 + len(w.s.o.Identity)
	}
	if w.expires {
		n += 4 + 4
	}
	return n
}

// finish puts the header in front of an answer and the OPT record after it.
func (w *worker) finish(dst []byte, p *packed) []byte {
	if p.absent && w.q.co {
		p.rcode = dns.RcodeNameError // RFC 9824, section 5.1
	}
	flags := flagQR | w.q.flags&(maskOpcode|flagRD) | uint16(p.rcode&0xF)
	if p.aa {
		flags |= flagAA
	}
	if p.tc {
		flags |= flagTC
		w.tally.truncated.Add(1)
	}
	w.tally.rcodes[min(p.rcode, maxRcode)].Add(1)
	additional := p.additional
	w.expires = w.expires && p.aa && p.answers > 0 // it says so of a zone that is ours
	if w.q.edns {
		additional++
		dst = w.appendOPT(dst, p.rcode, w.paddingSize(len(dst)+w.optSize()))
	}
	binary.BigEndian.PutUint16(dst[2:], flags)
	binary.BigEndian.PutUint16(dst[4:], uint16(min(len(w.q.question), 1)))
	binary.BigEndian.PutUint16(dst[6:], p.answers)
	binary.BigEndian.PutUint16(dst[8:], p.authority)
	binary.BigEndian.PutUint16(dst[10:], additional)
	return dst
}

// appendOPT appends the server's side of EDNS (RFC 6891, section 6.1.2), with the
// upper bits of the response code, and padding.
func (w *worker) appendOPT(dst []byte, rcode uint8, padding int) []byte {
	dst = append(dst, 0)
	dst = binary.BigEndian.AppendUint16(dst, dns.TypeOPT)
	dst = binary.BigEndian.AppendUint16(dst, maxUDP)
	ttl := uint32(rcode>>4) << 24
	if w.q.do {
		ttl |= ednsDO
	}
	if w.q.do && w.q.co {
		ttl |= ednsCO
	}
	dst = binary.BigEndian.AppendUint32(dst, ttl)
	dst = binary.BigEndian.AppendUint16(dst, uint16(w.optSize()-11+padding))
	if w.hasCookie {
		dst = binary.BigEndian.AppendUint16(dst, optionCookie)
		dst = binary.BigEndian.AppendUint16(dst, cookieSize)
		dst = append(dst, w.cookie[:]...)
	}
	if w.tell > 0 {
		dst = binary.BigEndian.AppendUint16(dst, optionKeepalive)
		dst = binary.BigEndian.AppendUint16(dst, 2)
		dst = binary.BigEndian.AppendUint16(dst, uint16(min(w.tell/(100*time.Millisecond), 1<<16-1)))
	}
	if w.extended > 0 {
		dst = binary.BigEndian.AppendUint16(dst, dns.EDNS0EDE)
		dst = binary.BigEndian.AppendUint16(dst, 2)
		dst = binary.BigEndian.AppendUint16(dst, w.extended)
	}
	if w.tellsName() {
		dst = binary.BigEndian.AppendUint16(dst, optionNSID)
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(w.s.o.Identity)))
		dst = append(dst, w.s.o.Identity...)
	}
	if w.expires {
		dst = binary.BigEndian.AppendUint16(dst, optionExpire)
		dst = binary.BigEndian.AppendUint16(dst, 4)
		dst = binary.BigEndian.AppendUint32(dst, publish.SOAExpire) // RFC 7314, section 4: a primary's is that of the SOA record
	}
	return appendPadding(dst, padding)
}
