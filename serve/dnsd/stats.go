package dnsd

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
)

// Stats are counts since the server was made.
type Stats struct {
	UDP, TCP    uint64            // messages answered
	TLS, HTTPS  uint64            // messages answered over an encrypted transport
	Rcodes      map[string]uint64 // the same by response code: NOERROR, NXDOMAIN, ...
	Truncated   uint64            // answers that did not fit and sent the client to TCP
	Dropped     uint64            // messages that must not be answered
	Held        uint64            // answers held back by the rate limit
	Slipped     uint64            // answers shortened by the rate limit
	Cookies     uint64            // messages with a good server cookie
	Hits        uint64            // questions answered with what was packed before
	Misses      uint64            // questions for which the registry was asked
	Busy        uint64            // answers shortened since too much was to be signed
	Connections uint64            // TCP connections accepted, for TLS too
	Signatures  uint64            // messages with a wrong signature (TSIG)
	Whole       uint64            // transfers of whole zones that were begun
	Differences uint64            // transfers of what has changed
	Declined    uint64            // transfers refused
	Broken      uint64            // transfers that failed
	Notices     uint64            // sent to secondaries about changes
	Confirmed   uint64            // notices that a secondary confirmed
	Unwanted    uint64            // notices that a secondary refused
	GivenUp     uint64            // notices that no secondary confirmed
	Refused     uint64            // TCP connections closed at once, since there were too many
	Untold      uint64            // exchanges that the collector of dnstap did not take in time
	Replaced    uint64            // TCP connections closed to make room for those of other clients
}

// tally is the counts of one goroutine or more. Each socket has its own, so that they
// don't wait for each other.
type tally struct {
	rcodes      [maxRcode + 1]atomic.Uint64
	truncated   atomic.Uint64
	dropped     atomic.Uint64
	held        atomic.Uint64
	slipped     atomic.Uint64
	cookies     atomic.Uint64
	hits        atomic.Uint64
	misses      atomic.Uint64
	busy        atomic.Uint64
	connections atomic.Uint64
	refused     atomic.Uint64

	badSignatures atomic.Uint64
	zones         zoneCounts

	_ [64]byte // so that two don't share a line of the processor's cache
}

const maxRcode = dns.RcodeBadCookie

// Stats returns what was counted so far.
func (s *Server) Stats() Stats {
	st := Stats{Rcodes: make(map[string]uint64)}
	s.mu.Lock()
	tallies := s.tallies
	s.mu.Unlock()
	for _, t := range tallies {
		switch n := t.answers(st.Rcodes); t {
		case s.tcp:
			st.TCP += n
		case s.tls:
			st.TLS += n
		case s.https:
			st.HTTPS += n
		default:
			st.UDP += n
		}
		st.Truncated += t.truncated.Load()
		st.Dropped += t.dropped.Load()
		st.Held += t.held.Load()
		st.Slipped += t.slipped.Load()
		st.Cookies += t.cookies.Load()
		st.Hits += t.hits.Load()
		st.Misses += t.misses.Load()
		st.Busy += t.busy.Load()
		st.Connections += t.connections.Load()
		st.Refused += t.refused.Load()
		st.Signatures += t.badSignatures.Load()
	}
	if s.tap != nil {
		st.Untold = s.tap.lost.Load()
	}
	st.Replaced = s.clients.replaced.Load()
	st.Whole, st.Differences = s.transfers.whole.Load(), s.transfers.deltas.Load()
	st.Declined, st.Broken = s.transfers.refused.Load(), s.transfers.failed.Load()
	st.Notices, st.Confirmed = s.notices.sent.Load(), s.notices.confirmed.Load()
	st.Unwanted, st.GivenUp = s.notices.refused.Load(), s.notices.givenUp.Load()
	return st
}

// answers adds the counts by response code to those there are, and returns their sum.
func (t *tally) answers(by map[string]uint64) (sum uint64) {
	for code := range t.rcodes {
		if n := t.rcodes[code].Load(); n > 0 {
			name := dns.RcodeToString[code]
			if code == dns.RcodeBadVers {
				name = "BADVERS" // the same number means something else in a signature
			}
			by[name] += n
			sum += n
		}
	}
	return sum
}

// newTally makes a tally that is counted in Stats.
func (s *Server) newTally() *tally {
	t := new(tally)
	s.mu.Lock()
	s.tallies = append(s.tallies, t)
	s.mu.Unlock()
	return t
}

// complaint is a line in the log that any client could cause, and that is therefore written
// now and then only.
type complaint struct {
	text  string
	last  atomic.Int64 // when it was written, in Unix seconds
	quiet atomic.Uint64
}

const complaintEvery = 10 // seconds

func (c *complaint) log(to *slog.Logger, now time.Time, args ...any) {
	last, at := c.last.Load(), now.Unix()
	if last != 0 && at-last < complaintEvery || !c.last.CompareAndSwap(last, at) {
		c.quiet.Add(1)
		return
	}
	to.Error(c.text, append(args, "more", c.quiet.Swap(0))...)
}
