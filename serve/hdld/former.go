package hdld

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"time"

	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/wire/hdl"
)

// Bounds of what is remembered of clients that know the site by its former number.
const (
	formerLife = 30 * time.Minute
	formerMost = 10_000
	formerTidy = time.Second // between two looks at all of them
)

// formerClients are the addresses of clients that named the site by its former number the last time. A request that sets up a session does not
// name the site (its number is 0xffff), so the server can't see from it by which key the client will check the answer.
type formerClients struct {
	mu     sync.Mutex
	until  map[netip.Addr]time.Time // by network: a client may have all addresses of one
	tidied time.Time                // when those whose time is over were removed
}

// note remembers by which number a client knows the site.
func (l *formerClients) note(client netip.Addr, former bool, now time.Time) {
	client = limit.Network(client)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !former {
		delete(l.until, client)
		return
	}
	if l.until == nil {
		l.until = make(map[netip.Addr]time.Time)
	}
	if _, ok := l.until[client]; !ok && len(l.until) >= formerMost {
		if now.Sub(l.tidied) < formerTidy {
			return
		}
		l.tidied = now
		for other, until := range l.until {
			if !now.Before(until) {
				delete(l.until, other)
			}
		}
		if len(l.until) >= formerMost {
			return
		}
	}
	l.until[client] = now.Add(formerLife)
}

// has reports whether a client knows the site by its former number.
func (l *formerClients) has(client netip.Addr, now time.Time) bool {
	client = limit.Network(client)
	l.mu.Lock()
	defer l.mu.Unlock()
	until, ok := l.until[client]
	return ok && now.Before(until)
}

// notice remembers by which number the client that sent a request knows the site, after its key was replaced. It is not for requests over
// UDP, whose address may be forged: an attacker could have the answers to another client signed by a key that the client does not know any more.
func (s *Server) notice(request []byte, from netip.Addr, now time.Time) {
	site := s.o.Site()
	if site.Former == nil || len(request) < hdl.EnvelopeSize+hdl.HeaderSize {
		return
	}
	e, err := hdl.ParseEnvelope(request)
	if err != nil || e.Encrypted || e.Compressed {
		return
	}
	const place = 12 // of the number in the header (section 3)
	switch serial := binary.BigEndian.Uint16(request[hdl.EnvelopeSize+place:]); serial {
	case hdl.UnknownSerial:
	case site.FormerSerial:
		s.former.note(from, true, now)
	default:
		s.former.note(from, false, now)
	}
}

// keyFor returns the key with which the answer to a request is signed: the one that the client knows, as far as the server can tell.
func (s *Server) keyFor(q *call, site *Site) *hdl.PrivateKey {
	serial := q.m.Header.SiteSerial
	if serial == hdl.UnknownSerial && q.m.Header.Operation == hdl.SetUpSession && q.via != viaUDP && s.former.has(q.from.Addr(), s.o.Now()) {
		serial = site.FormerSerial
	}
	return site.keyFor(serial)
}
