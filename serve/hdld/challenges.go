package hdld

import (
	"container/list"
	"net/netip"
	"sync"
	"time"

	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/wire/hdl"
)

// Bounds of challenges.
const (
	challengeLife   = 60 * time.Second
	challengeOctets = 64 << 20 // of the requests that wait
	challengeShare  = 16       // one client has at most this part of the number and of the octets
	nonceSize       = 16
)

// challenge is a request that waits until the client has proved who it is. It is used once.
type challenge struct {
	id        uint32
	op        operation
	what      hdl.Operation
	flags     hdl.Flags // of the request
	nonce     []byte
	digest    []byte
	ends      time.Time
	octets    int
	from      netip.Addr // of the client
	forgeable bool       // the address may be that of another client: the request came by UDP

	element *list.Element // in the list of all
	own     *list.Element // in the list of its client
}

// waiting are the challenges of one client.
type waiting struct {
	order  list.List // of *challenge, the oldest first
	octets int
}

// challenges are those that wait for an answer, outside of sessions. A client that has too many loses its oldest one; when there
// are too many in all, the oldest one is forgotten, and first those whose requests came by datagrams, in which a sender can forge its address.
// So a flood of requests that are never answered does not lock out those that are.
type challenges struct {
	most int

	mu       sync.Mutex
	byID     map[uint32]*challenge
	byClient map[string]*waiting
	datagram list.List // of *challenge that are forgeable, the oldest first
	stream   list.List // of the others
	octets   int
}

func newChallenges(most int) *challenges {
	return &challenges{most: most, byID: make(map[uint32]*challenge), byClient: make(map[string]*waiting)}
}

// add keeps a challenge under a number that no other one has, and no session.
func (l *challenges) add(c *challenge, number func() (uint32, error), now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	for {
		id, err := number()
		if err != nil {
			return err
		}
		if l.byID[id] == nil {
			c.id = id
			break
		}
	}
	client := limit.Client(c.from)
	for own := l.byClient[client]; own != nil && own.order.Len() > 0 &&
		(own.order.Len() >= max(l.most/challengeShare, 1) || own.octets+c.octets > challengeOctets/challengeShare); {
		l.forget(own.order.Front().Value.(*challenge))
	}
	for len(l.byID) >= l.most || l.octets+c.octets > challengeOctets && len(l.byID) > 0 {
		l.forget(l.oldest())
	}
	own := l.byClient[client]
	if own == nil {
		own = new(waiting)
		l.byClient[client] = own
	}
	l.byID[c.id] = c
	c.element, c.own = l.listOf(c).PushBack(c), own.order.PushBack(c)
	own.octets += c.octets
	l.octets += c.octets
	return nil
}

func (l *challenges) listOf(c *challenge) *list.List {
	if c.forgeable {
		return &l.datagram
	}
	return &l.stream
}

// oldest returns the challenge that is forgotten first.
func (l *challenges) oldest() *challenge {
	if e := l.datagram.Front(); e != nil {
		return e.Value.(*challenge)
	}
	return l.stream.Front().Value.(*challenge)
}

// take returns a challenge and forgets it; nil if there is none.
func (l *challenges) take(id uint32, now time.Time) *challenge {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	c := l.byID[id]
	if c != nil {
		l.forget(c)
	}
	return c
}

func (l *challenges) expire(now time.Time) {
	for _, order := range []*list.List{&l.datagram, &l.stream} {
		for e := order.Front(); e != nil && !now.Before(e.Value.(*challenge).ends); e = order.Front() {
			l.forget(e.Value.(*challenge))
		}
	}
}

func (l *challenges) forget(c *challenge) {
	l.listOf(c).Remove(c.element)
	delete(l.byID, c.id)
	l.octets -= c.octets
	client := limit.Client(c.from)
	own := l.byClient[client]
	own.order.Remove(c.own)
	if own.octets -= c.octets; own.order.Len() == 0 {
		delete(l.byClient, client)
	}
}
