package dnsd

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/zonekey"
)

// Times and bounds of notices. A secondary that has not confirmed one gets it again after
// 2, 4, 8, 16 and 32 seconds, and then asks by itself when the refresh time of the SOA
// record has come.
const (
	noticeEvery = time.Second            // one to a secondary about a zone at most
	noticePause = 20 * time.Millisecond  // between rounds: what changes meanwhile is told at once
	noticeFirst = 2 * time.Second        // until the first repetition
	noticeTries = 6                      // sendings
	maxNotices  = 20_000                 // that wait for something
	noticeIdle  = time.Hour              // between rounds without work
	noticeReply = 512                    // bytes of a confirmation that are read
	repliesKept = 256                    // confirmations that wait to be looked at
	socketAgain = 100 * time.Millisecond // until a socket that fails is read again
)

// noticeTally counts notices.
type noticeTally struct {
	sent, confirmed, refused, givenUp atomic.Uint64
}

// changedZones are the zones that have changed since the notifier last looked.
type changedZones struct {
	mu    sync.Mutex
	all   bool
	names map[string]struct{}
	wake  chan struct{} // holds one value if there are some
}

// add notes that zones have changed.
func (c *changedZones) add(zones []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range zones {
		if !c.all {
			c.names[name] = struct{}{}
		}
	}
	c.awake()
}

// addAll notes that all zones may have changed.
func (c *changedZones) addAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = true
	c.awake()
}

// awake wakes the notifier.
func (c *changedZones) awake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// take returns the zones that have changed.
func (c *changedZones) take() (all bool, names map[string]struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, names = c.all, c.names
	c.all, c.names = false, make(map[string]struct{})
	return all, names
}

// noticeTo is a secondary that is told of a zone.
type noticeTo struct {
	zone string
	at   netip.AddrPort
}

// notice is what a secondary is told.
type notice struct {
	noticeTo
	key     string // name of the TSIG key; "" if there is none
	news    bool   // something changed since it was sent
	tries   int
	due     time.Time // when it is to be sent; the zero time if it was confirmed
	sent    time.Time
	id      uint16
	signer  *zonekey.TSIGKey
	request []byte // signature of what was sent
}

// replyTo is what a confirmation is known by.
type replyTo struct {
	at netip.AddrPort
	id uint16
}

// reply is a message that came back.
type reply struct {
	from netip.AddrPort
	msg  []byte
}

// notifier tells secondaries that zones have changed (RFC 1996). It has one goroutine, and
// one for each socket that reads, however many secondaries there are and whatever they do.
type notifier struct {
	s       *Server
	zones   *publish.Zones
	rule    outbound.Rule
	changed *changedZones
	notices map[noticeTo]*notice
	awaited map[replyTo]*notice
	sockets map[bool]*outbound.Packets // by whether it is for IPv4
	replies chan reply
	trouble complaint
}

// NotifySecondaries tells the secondaries of all zones whenever these change, and once at
// the beginning, until ctx ends. It tells a change once a second at most, and until the
// secondary confirms it or the last try has passed.
func (s *Server) NotifySecondaries(ctx context.Context) {
	n := s.newNotifier()
	ctx, cancel := context.WithCancel(ctx)
	var readers sync.WaitGroup
	n.open(ctx, &readers)
	defer func() {
		cancel()
		for _, c := range n.sockets {
			_ = c.Close()
		}
		readers.Wait()
	}()
	for wait := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-n.changed.wake:
		case r := <-n.replies:
			n.confirm(r)
		case <-time.After(wait):
		}
		n.plan(ctx)
		wait = n.sendDue(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(noticePause):
		}
		n.confirmAll()
	}
}

// newNotifier makes a notifier that has all zones to tell of, and learns of changes from
// now on.
func (s *Server) newNotifier() *notifier {
	z := s.o.Zones
	n := &notifier{
		s: s, zones: z, notices: make(map[noticeTo]*notice), awaited: make(map[replyTo]*notice),
		changed: &changedZones{all: true, names: make(map[string]struct{}), wake: make(chan struct{}, 1)},
		sockets: make(map[bool]*outbound.Packets), replies: make(chan reply, repliesKept),
	}
	n.rule = outbound.Rule{Any: true}
	if s.o.Notify != nil {
		n.rule = *s.o.Notify
	}
	n.trouble.text = "a secondary could not be told of a change"
	z.OnChange(func(names []string) {
		if zones, ok := z.ZonesOf(names); ok && names != nil {
			n.changed.add(zones)
		} else {
			n.changed.addAll()
		}
	})
	return n
}

// source is the address of a kind from which notices are sent: secondaries look where a
// notice comes from (RFC 1996, section 3.10). It is invalid if the system has to choose.
func (n *notifier) source(v4 bool) netip.Addr {
	own := n.s.o.NotifyFrom
	for _, at := range n.s.Addrs() {
		own = append(own[:len(own):len(own)], at.Addr())
	}
	for _, addr := range own {
		if addr = addr.Unmap(); addr.Is4() == v4 && !addr.IsUnspecified() {
			return addr
		}
	}
	return netip.Addr{}
}

// open opens a socket for each kind of address.
func (n *notifier) open(ctx context.Context, readers *sync.WaitGroup) {
	for _, v4 := range []bool{true, false} {
		network, from := "udp6", netip.IPv6Unspecified()
		if v4 {
			network, from = "udp4", netip.IPv4Unspecified()
		}
		if own := n.source(v4); own.IsValid() {
			from = own
		}
		c, err := outbound.ListenPackets(n.rule, network, netip.AddrPortFrom(from, 0))
		if err != nil {
			continue // this machine has no such addresses; sending to one reports it
		}
		n.sockets[v4] = c
		readers.Go(func() { n.read(ctx, c) })
	}
}

// read passes on what comes to a socket. It drops a reply if the queue is full: the notice
// is sent again.
func (n *notifier) read(ctx context.Context, c *outbound.Packets) {
	buf := make([]byte, noticeReply)
	for {
		size, from, err := c.Receive(buf)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			select {
			case <-ctx.Done():
				return
			case <-time.After(socketAgain):
			}
			continue
		}
		select {
		case n.replies <- reply{netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), append([]byte(nil), buf[:size]...)}:
		default:
		}
	}
}

// plan makes notices of what has changed.
func (n *notifier) plan(ctx context.Context) {
	all, names := n.changed.take()
	if !all && len(names) == 0 {
		return
	}
	zones, err := n.zones.All(ctx)
	if err != nil {
		n.changed.addAll() // and once more
		n.complain("err", err)
		return
	}
	for _, z := range zones {
		if _, ok := names[z.Name]; ok || all {
			n.planZone(z)
		}
	}
}

func (n *notifier) planZone(z *publish.Zone) {
	if z.IsShut() {
		n.complain("zone", z.Name, "err", errShut)
		return
	}
	now := n.s.o.Now()
	for _, s := range z.Secondaries() {
		for _, text := range s.Notify {
			at, err := netip.ParseAddrPort(text)
			if err != nil {
				continue // settings are checked before they are written
			}
			if !n.rule.May(at.Addr()) {
				n.complain("zone", z.Name, "to", at, "err", "notify-allow does not name this address")
				continue
			}
			n.planOne(noticeTo{z.Name, at}, s.Key, now)
		}
	}
}

func (n *notifier) planOne(to noticeTo, key string, now time.Time) {
	one := n.notices[to]
	if one == nil {
		if len(n.notices) >= maxNotices {
			n.complain("zone", to.zone, "to", to.at, "err", "too many secondaries are waited for")
			return
		}
		one = &notice{noticeTo: to}
		n.notices[to] = one
	}
	one.key, one.news, one.tries, one.due = key, true, 0, now
	if earliest := one.sent.Add(noticeEvery); earliest.After(now) {
		one.due = earliest
	}
}

// sendDue sends the notices whose time has come, and returns how long to wait for the
// next.
func (n *notifier) sendDue(ctx context.Context) time.Duration {
	now, next := n.s.o.Now(), noticeIdle
	for to, one := range n.notices {
		switch {
		case one.due.IsZero() && now.Sub(one.sent) > noticeEvery:
			n.forget(to, one)
			continue
		case one.due.IsZero():
			next = min(next, noticeEvery)
			continue
		case !one.due.After(now):
			if one.tries == noticeTries {
				n.s.notices.givenUp.Add(1)
				n.complain("zone", to.zone, "to", to.at, "err", "it confirms nothing")
				n.forget(to, one)
				continue
			}
			n.send(ctx, one, now)
		}
		next = min(next, max(one.due.Sub(now), 0))
	}
	return next
}

func (n *notifier) forget(to noticeTo, one *notice) {
	delete(n.notices, to)
	delete(n.awaited, replyTo{one.at, one.id})
}

// send sends a notice.
func (n *notifier) send(ctx context.Context, one *notice, now time.Time) {
	one.due = now.Add(noticeFirst << one.tries)
	one.tries++
	one.sent, one.news = now, false
	msg, err := n.pack(ctx, one, now)
	if err == nil {
		err = n.write(msg, one.at)
	}
	if err != nil {
		n.complain("zone", one.zone, "to", one.at, "err", err)
		return
	}
	n.s.notices.sent.Add(1)
}

func (n *notifier) write(msg []byte, to netip.AddrPort) error {
	c := n.sockets[to.Addr().Is4()]
	if c == nil {
		return &net.AddrError{Err: "this machine has no address of that kind", Addr: to.String()}
	}
	return c.Send(msg, to)
}

// errNoKey says that the TSIG key of a secondary does not exist.
var errNoKey = stele.Messagef("tsig-key.unknown-or-retired", "there is no such TSIG key, or it is retired; 'stele zone tsig ls' lists them")

// pack makes the message of a notice, with the present SOA record (RFC 1996, section
// 3.7), and notes how its confirmation is known.
func (n *notifier) pack(ctx context.Context, one *notice, now time.Time) ([]byte, error) {
	z, err := n.zones.Zone(ctx, one.zone)
	if err != nil {
		return nil, err
	}
	if z == nil {
		return nil, publish.ErrNoZone
	}
	delete(n.awaited, replyTo{one.at, one.id})
	m := new(dns.Msg).SetNotify(one.zone)
	for range 100 { // until no other notice has the ID
		if _, taken := n.awaited[replyTo{one.at, m.Id}]; !taken {
			break
		}
		m.Id = dns.Id()
	}
	soa, _ := z.Apex()
	m.Authoritative, m.Answer = true, []dns.RR{soa}
	msg, err := m.Pack()
	if err != nil {
		return nil, err
	}
	one.id, one.signer, one.request = m.Id, nil, nil
	if one.key != "" {
		if one.signer, err = n.zones.TSIGKey(ctx, one.key); err != nil {
			return nil, err
		}
		if one.signer == nil {
			return nil, &stele.Error{Op: "notify", Kind: stele.NotFound, Err: errNoKey}
		}
		s := newTSIGSigner(one.signer)
		msg = s.sign(msg, now)
		one.request = s.before
	}
	n.awaited[replyTo{one.at, one.id}] = one
	return msg, nil
}

// confirmAll looks at all confirmations there are.
func (n *notifier) confirmAll() {
	for {
		select {
		case r := <-n.replies:
			n.confirm(r)
		default:
			return
		}
	}
}

// confirm looks at a confirmation. It ignores one without the signature that it should
// have.
func (n *notifier) confirm(r reply) {
	if len(r.msg) < headerSize {
		return
	}
	flags := binary.BigEndian.Uint16(r.msg[2:])
	one := n.awaited[replyTo{r.from, binary.BigEndian.Uint16(r.msg)}]
	if one == nil || flags&flagQR == 0 || flags&maskOpcode>>11 != dns.OpcodeNotify {
		return
	}
	if one.signer != nil && !one.isSigned(r.msg, n.s.o.Now()) {
		return
	}
	if code := flags & 0xF; code == dns.RcodeSuccess {
		n.s.notices.confirmed.Add(1)
	} else {
		n.s.notices.refused.Add(1)
		n.complain("zone", one.zone, "to", one.at, "err", "it answers "+dns.RcodeToString[int(code)])
	}
	delete(n.awaited, replyTo{one.at, one.id})
	if !one.news {
		one.due = time.Time{}
	}
}

// isSigned reports whether a confirmation has the signature that it should.
func (one *notice) isSigned(msg []byte, now time.Time) bool {
	off := lastRecord(msg)
	if off == 0 {
		return false
	}
	t, err := readTSIG(msg, off)
	return err == nil && checkTSIG(one.signer, one.request, msg, t, now) == 0
}

// lastRecord returns where the last additional record of a message begins, if that is a
// signature; 0 otherwise.
func lastRecord(msg []byte) int {
	off, last := headerSize, 0
	for range binary.BigEndian.Uint16(msg[4:]) {
		if off = skipName(msg, off); off == 0 {
			return 0
		}
		off += 4
	}
	additional := int(binary.BigEndian.Uint16(msg[10:]))
	count := int(binary.BigEndian.Uint16(msg[6:])) + int(binary.BigEndian.Uint16(msg[8:])) + additional
	kind := uint16(0)
	for range count {
		r, next := readRecord(msg, off)
		if next == 0 {
			return 0
		}
		last, off, kind = off, next, r.rtype
	}
	if additional == 0 || kind != dns.TypeTSIG || off != len(msg) {
		return 0
	}
	return last
}

func (n *notifier) complain(args ...any) { n.trouble.log(n.s.o.Log, n.s.o.Now(), args...) }
