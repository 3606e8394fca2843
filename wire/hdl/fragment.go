package hdl

import (
	"bytes"
	"container/list"
	"iter"
	"net/netip"
	"sync"
	"time"
)

// The sizes of datagrams: longer messages are cut (specification, section 1).
const (
	MaxDatagram  = 512
	fragmentSize = MaxDatagram - EnvelopeSize
	maxFragments = (MaxMessage + fragmentSize - 1) / fragmentSize
)

// Datagrams cuts a message, as Message.Append writes it, for UDP. With truncated, fragments have the flag TC,
// as clients set it; servers do not. What it yields is valid until the next step. A message that fits is
// yielded as it is.
func Datagrams(message []byte, truncated bool) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if len(message) <= MaxDatagram {
			yield(message)
			return
		}
		e, err := ParseEnvelope(message)
		if err != nil {
			return // not a message, or too long to be one
		}
		e.Truncated = e.Truncated || truncated
		rest := message[EnvelopeSize:]
		buf := make([]byte, 0, MaxDatagram)
		for e.Sequence = 0; len(rest) > 0; e.Sequence++ {
			n := min(len(rest), fragmentSize)
			if !yield(append(e.Append(buf), rest[:n]...)) {
				return
			}
			rest = rest[n:]
		}
	}
}

// Limits bound what a Collector holds.
type Limits struct {
	Messages int           // that are not complete
	Octets   int           // of all their fragments, with what it costs to hold them
	Lifetime time.Duration // from the first fragment on
}

// DefaultLimits are for a server: 1024 messages, 8 MiB, and the 5 seconds of the reference.
func DefaultLimits() Limits { return Limits{1024, 8 << 20, 5 * time.Second} }

// Collector puts messages together whose fragments came in datagrams. It goes by lengths, because servers do not set
// the flag for fragments. Its memory grows with the octets that came, never with lengths that a
// fragment claims. When it is full it forgets the message whose first fragment is oldest: so a flood of fragments that
// never complete does not lock out messages that do. A fragment that contradicts those before it, by its envelope or by
// its octets, begins the message anew: a client that got no answer encrypts its request again, with the same number. Octets of
// two versions of a message are never mixed. Several goroutines may use it.
type Collector struct {
	limits Limits

	mu     sync.Mutex
	parts  map[partKey]*list.Element // of *partial
	order  list.List                 // of *partial, the oldest first
	octets int
}

// NewCollector returns an empty Collector.
func NewCollector(limits Limits) *Collector {
	return &Collector{limits: limits, parts: make(map[partKey]*list.Element)}
}

// partKey identifies the message of a fragment.
type partKey struct {
	from    netip.AddrPort
	request uint32
}

// partial is a message that is not complete.
type partial struct {
	key       partKey
	envelope  Envelope // of the first fragment that came, with sequence 0
	began     time.Time
	fragments map[uint32][]byte
	octets    int
}

// fragmentCost is about what a fragment costs beside its octets, and partialCost a message.
const (
	fragmentCost = 64
	partialCost  = 512
)

// Add takes a datagram that came from an address. It returns the whole message when it is complete: the datagram
// itself if it is not a fragment. It returns nil without an error while fragments are missing.
// now is the time of the caller's clock.
func (c *Collector) Add(now time.Time, from netip.AddrPort, datagram []byte) ([]byte, error) {
	e, err := ParseEnvelope(datagram)
	if err != nil {
		return nil, err
	}
	data := datagram[EnvelopeSize:]
	if int(e.Length) == len(data) && e.Sequence == 0 {
		return datagram, nil
	}
	if err := checkFragment(&e, data); err != nil {
		return nil, err
	}
	sequence := e.Sequence
	e.Sequence = 0
	key := partKey{from, e.Request}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(now)
	el := c.parts[key]
	if el != nil {
		p := el.Value.(*partial)
		have, twice := p.fragments[sequence]
		if twice && p.envelope == e && bytes.Equal(have, data) {
			return nil, nil // the network repeated it
		}
		if twice || p.envelope != e {
			c.forget(el)
			el = nil
		}
	}
	if el == nil {
		el = c.order.PushBack(&partial{key: key, envelope: e, began: now, fragments: make(map[uint32][]byte), octets: partialCost})
		c.parts[key] = el
		c.octets += partialCost
	}
	p := el.Value.(*partial)
	p.fragments[sequence] = bytes.Clone(data)
	p.octets += len(data) + fragmentCost
	c.octets += len(data) + fragmentCost
	if len(p.fragments) == fragments(e.Length) {
		c.forget(el)
		return p.message(), nil
	}
	for c.octets > c.limits.Octets || len(c.parts) > c.limits.Messages {
		c.forget(c.order.Front())
	}
	return nil, nil
}

// fragments returns how many fragments a message of length octets has.
func fragments(length uint32) int { return (int(length) + fragmentSize - 1) / fragmentSize }

// checkFragment judges a fragment alone. All but the last have 492 octets, so that the sequence number tells where a
// fragment belongs, and none can overlap another.
func checkFragment(e *Envelope, data []byte) error {
	count := uint32(fragments(e.Length))
	if len(data) > int(e.Length) || e.Sequence >= count {
		return errorf(ProtocolError, "hdl.fragment-beyond-end", "the fragment {sequence} has {octets} octets, and does not fit into a message of {length}", e.Sequence, len(data), e.Length)
	}
	want := fragmentSize
	if e.Sequence == count-1 {
		want = int(e.Length) - int(e.Sequence)*fragmentSize
	}
	if len(data) != want {
		return errorf(ProtocolError, "hdl.fragment-size", "the fragment {sequence} of a message of {length} octets has {octets}; {expected} are expected", e.Sequence, e.Length, len(data), want)
	}
	return nil
}

// message puts the fragments together.
func (p *partial) message() []byte {
	b := make([]byte, 0, EnvelopeSize+int(p.envelope.Length))
	b = p.envelope.Append(b)
	for i := range uint32(len(p.fragments)) {
		b = append(b, p.fragments[i]...)
	}
	return b
}

// expire forgets messages whose time is over.
func (c *Collector) expire(now time.Time) {
	for el := c.order.Front(); el != nil && now.Sub(el.Value.(*partial).began) >= c.limits.Lifetime; el = c.order.Front() {
		c.forget(el)
	}
}

// forget removes a message.
func (c *Collector) forget(el *list.Element) {
	p := c.order.Remove(el).(*partial)
	delete(c.parts, p.key)
	c.octets -= p.octets
}

// Waiting returns how many messages are not complete, and how many octets they take.
func (c *Collector) Waiting() (messages, octets int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.parts), c.octets
}
