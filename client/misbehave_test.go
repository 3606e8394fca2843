package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
)

// htmlLocation is a location in paradisecZone.
const htmlLocation = "https://data.example/ab1/001/a.html"

// once misbehaves at the first question only.
func once(odd func(w dns.ResponseWriter, q *dns.Msg)) func(w dns.ResponseWriter, q *dns.Msg) bool {
	var done atomic.Bool
	return func(w dns.ResponseWriter, q *dns.Msg) bool {
		if done.Swap(true) {
			return false
		}
		odd(w, q)
		return true
	}
}

// overUDP misbehaves over UDP, and answers over TCP.
func overUDP(odd func(w dns.ResponseWriter, q *dns.Msg)) func(w dns.ResponseWriter, q *dns.Msg) bool {
	return func(w dns.ResponseWriter, q *dns.Msg) bool {
		if w.LocalAddr().Network() != "udp" {
			return false
		}
		odd(w, q)
		return true
	}
}

// TestMisbehaviour: the client asks such a server again, or uses its answer where that is
// safe. The answer is right in the end.
func TestMisbehaviour(t *testing.T) {
	for _, tt := range []struct {
		about string
		odd   func(s *nameServer) func(w dns.ResponseWriter, q *dns.Msg) bool
		asked int // questions, at most; 0: it depends on time
	}{
		{"drops a question", func(*nameServer) func(dns.ResponseWriter, *dns.Msg) bool {
			return once(func(dns.ResponseWriter, *dns.Msg) {})
		}, 0},
		{"fails once", func(*nameServer) func(dns.ResponseWriter, *dns.Msg) bool {
			return once(func(w dns.ResponseWriter, q *dns.Msg) {
				_ = w.WriteMsg(new(dns.Msg).SetRcode(q, dns.RcodeServerFailure))
			})
		}, 3},
		{"truncates all over UDP", func(*nameServer) func(dns.ResponseWriter, *dns.Msg) bool {
			return overUDP(func(w dns.ResponseWriter, q *dns.Msg) {
				m := new(dns.Msg).SetReply(q)
				m.Truncated = true
				_ = w.WriteMsg(m)
			})
		}, 4},
		{"sends wrong IDs first", func(s *nameServer) func(dns.ResponseWriter, *dns.Msg) bool {
			return overUDP(func(w dns.ResponseWriter, q *dns.Msg) {
				lie := new(dns.Msg).SetRcode(q, dns.RcodeNameError)
				raw(w, packed(lie, otherID))
				_ = w.WriteMsg(s.answer(q))
			})
		}, 2},
		{"answers another question first", func(s *nameServer) func(dns.ResponseWriter, *dns.Msg) bool {
			return overUDP(func(w dns.ResponseWriter, q *dns.Msg) {
				for _, change := range []func(*dns.Msg){
					func(m *dns.Msg) { m.Question[0].Name = "evil.example." },
					func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeA },
					func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS },
					func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) },
					func(m *dns.Msg) { m.Question = nil },
					func(m *dns.Msg) { m.Response = false },
					func(m *dns.Msg) { m.Opcode = dns.OpcodeNotify },
				} {
					lie := new(dns.Msg).SetRcode(q, dns.RcodeNameError)
					lie.Question = slices.Clone(lie.Question)
					change(lie)
					raw(w, packed(lie, nil))
				}
				_ = w.WriteMsg(s.answer(q))
			})
		}, 2},
		{"sends garbage first", func(s *nameServer) func(dns.ResponseWriter, *dns.Msg) bool {
			return overUDP(func(w dns.ResponseWriter, q *dns.Msg) {
				raw(w, []byte{1})
				raw(w, packed(new(dns.Msg).SetReply(q), func(b []byte) { b[5] = 99 }))
				_ = w.WriteMsg(s.answer(q))
			})
		}, 2},
		{"floods with strays", func(s *nameServer) func(dns.ResponseWriter, *dns.Msg) bool {
			return overUDP(func(w dns.ResponseWriter, q *dns.Msg) {
				for range maxStrays {
					raw(w, packed(new(dns.Msg).SetReply(q), otherID))
				}
			})
		}, 4},
		{"writes names in lower case", func(s *nameServer) func(dns.ResponseWriter, *dns.Msg) bool {
			return overUDP(func(w dns.ResponseWriter, q *dns.Msg) {
				m := s.answer(q)
				m.Question = []dns.Question{{Name: strings.ToLower(q.Question[0].Name), Qtype: q.Question[0].Qtype, Qclass: dns.ClassINET}}
				_ = w.WriteMsg(m)
			})
		}, 4},
		{"does not know EDNS", func(s *nameServer) func(dns.ResponseWriter, *dns.Msg) bool {
			return func(w dns.ResponseWriter, q *dns.Msg) bool {
				if q.IsEdns0() == nil {
					return false
				}
				_ = w.WriteMsg(&dns.Msg{MsgHdr: dns.MsgHdr{Id: q.Id, Response: true, Rcode: dns.RcodeFormatError}})
				return true
			}
		}, 5}, // the second answer does not fit 512 bytes
		{"adds records that nobody asked for", func(s *nameServer) func(dns.ResponseWriter, *dns.Msg) bool {
			return func(w dns.ResponseWriter, q *dns.Msg) bool {
				m := s.answer(q)
				evil := `NAPTR 1 1 "u" "N2L" "!.*!https://evil.example/!" .`
				m.Answer = append(parseZone(t, "evil.example. "+evil+"\n"+q.Question[0].Name+" CH "+evil), m.Answer...)
				m.Ns = append(m.Ns, parseZone(t, q.Question[0].Name+" "+evil)...)
				m.Extra = append(m.Extra, parseZone(t, q.Question[0].Name+" "+evil)...)
				_ = w.WriteMsg(m)
				return true
			}
		}, 2},
		{"closes connections", func(s *nameServer) func(dns.ResponseWriter, *dns.Msg) bool {
			var n atomic.Int32
			return func(w dns.ResponseWriter, q *dns.Msg) bool {
				if w.LocalAddr().Network() == "udp" {
					m := new(dns.Msg).SetReply(q)
					m.Truncated = true
					_ = w.WriteMsg(m)
					return true
				}
				if n.Add(1) == 1 {
					_ = w.Close()
					return true
				}
				return false
			}
		}, 6},
	} {
		server := newNameServer(t, paradisecZone)
		server.misbehave(tt.odd(server))
		o := DNSOptions{TryTimeout: 20 * time.Second}
		if tt.asked == 0 {
			o = DNSOptions{TryTimeout: 500 * time.Millisecond, Tries: 20}
		}
		d := newDNS(t, o, server)
		res, err := d.Resolve(t.Context(), Request{Name: paradisec, Trace: true})
		if err != nil || res.Location != htmlLocation || tt.asked > 0 && len(server.asked()) > tt.asked {
			t.Errorf("%s: %q, %v, %d questions (at most %d)\n%s", tt.about, res.Location, err, len(server.asked()), tt.asked, res.Trace)
		}
	}
}

// TestNoServerKnows: the client rejects what a broken server says, and never takes it to
// mean that there is no such name.
func TestNoServerKnows(t *testing.T) {
	rcode := func(code int) func(w dns.ResponseWriter, q *dns.Msg) bool {
		return func(w dns.ResponseWriter, q *dns.Msg) bool {
			_ = w.WriteMsg(new(dns.Msg).SetRcode(q, code))
			return true
		}
	}
	reply := func(change func(m *dns.Msg)) func(w dns.ResponseWriter, q *dns.Msg) bool {
		return func(w dns.ResponseWriter, q *dns.Msg) bool {
			m := new(dns.Msg).SetReply(q)
			change(m)
			_ = w.WriteMsg(m)
			return true
		}
	}
	rule := `NAPTR 1 1 "u" "http+N2L" "!.*!https://evil.example/!" .`
	for _, tt := range []struct {
		about string
		odd   func(w dns.ResponseWriter, q *dns.Msg) bool
		text  string
		asked int
		drops bool
	}{
		{about: "drops all", odd: func(dns.ResponseWriter, *dns.Msg) bool { return true }, text: "no answer in time", asked: 2, drops: true},
		{"fails", rcode(dns.RcodeServerFailure), "SERVFAIL", 2, false},
		{"refuses", rcode(dns.RcodeRefused), "REFUSED", 1, false},
		{"knows nothing", rcode(dns.RcodeNotImplemented), "NOTIMP", 2, false},
		{"answers with another owner", reply(func(m *dns.Msg) { m.Answer = parseZone(t, "evil.example. "+rule) }), "about something else", 1, false},
		{"answers with another class", reply(func(m *dns.Msg) { m.Answer = parseZone(t, "paradisec.urn.example. CH "+rule) }), "about something else", 1, false},
		{"answers with another type", reply(func(m *dns.Msg) { m.Answer = parseZone(t, "paradisec.urn.example. TXT x") }), "about something else", 1, false},
		{"refers to others", reply(func(m *dns.Msg) { m.Ns = parseZone(t, "urn.example. NS ns.example.") }), "refers to others", 1, false},
		{"truncates over TCP too", reply(func(m *dns.Msg) { m.Truncated = true }), "cut off", 4, false},
		{"sends garbage over TCP", func(w dns.ResponseWriter, q *dns.Msg) bool {
			m := new(dns.Msg).SetReply(q)
			if m.Truncated = true; w.LocalAddr().Network() == "tcp" {
				raw(w, packed(m, otherID))
			} else {
				_ = w.WriteMsg(m)
			}
			return true
		}, "can't be read", 4, false},
	} {
		server := newNameServer(t, paradisecZone)
		server.misbehave(tt.odd)
		o := DNSOptions{TryTimeout: 20 * time.Second, Tries: 2, Now: time.Now}
		if tt.drops {
			o.TryTimeout = 100 * time.Millisecond
		}
		d := newDNS(t, o, server)
		res, err := d.Resolve(t.Context(), Request{Name: paradisec, Trace: true})
		if stele.KindOf(err) != stele.Unavailable || !strings.Contains(err.Error(), tt.text) || len(server.asked()) > tt.asked {
			t.Errorf("%s: %v (%v), %d questions (at most %d)\n%s", tt.about, err, stele.KindOf(err), len(server.asked()), tt.asked, res.Trace)
		}
		if strings.Contains(fmt.Sprint(res), "evil.example/") {
			t.Errorf("%s: the lie is believed: %v", tt.about, res)
		}
		if tt.drops {
			continue
		}
		// It is not cached either.
		server.misbehave(nil)
		if res, err := d.Resolve(t.Context(), Request{Name: paradisec}); err != nil || res.Location != htmlLocation {
			t.Errorf("%s, later: %v, %v", tt.about, res, err)
		}
	}
}

// TestNextServer: if a server is of no use, the client asks the next one.
func TestNextServer(t *testing.T) {
	closed, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := &nameServer{addr: closed.LocalAddr().(*net.UDPAddr).AddrPort()}
	closed.Close()
	refusing, good := newNameServer(t, ""), newNameServer(t, paradisecZone)
	refusing.misbehave(func(w dns.ResponseWriter, q *dns.Msg) bool {
		_ = w.WriteMsg(new(dns.Msg).SetRcode(q, dns.RcodeRefused))
		return true
	})
	d := newDNS(t, DNSOptions{}, dead, refusing, good)
	res, err := d.Resolve(t.Context(), Request{Name: paradisec, Trace: true})
	if err != nil || res.Location != htmlLocation || len(good.asked()) != 2 {
		t.Errorf("%v, %v\n%s", res, err, res.Trace)
	}
	if text := res.Trace.String(); !strings.Contains(text, "REFUSED") || !strings.Contains(text, dead.addr.String()) {
		t.Errorf("the trace does not tell of servers that failed:\n%s", text)
	}
}

// TestLargeSets: an RRset that takes TCP is read; one of too many rules is refused.
func TestLargeSets(t *testing.T) {
	rules := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "many.urn.example. NAPTR %d 1 \"RES:http\" \"N2L\" \"!^urn:many:%d$!http://a.example/%d!\" .\n", i, i, i)
		}
		return b.String()
	}
	server := newNameServer(t, rules(ddds.MaxRules))
	d := newDNS(t, DNSOptions{}, server)
	if res, err := d.Resolve(t.Context(), Request{Name: "urn:many:500"}); err != nil || res.Location != "http://a.example/500" {
		t.Errorf("%v, %v", res, err)
	}
	if got := server.asked(); len(got) != 2 || !strings.HasPrefix(got[1], "tcp ") {
		t.Errorf("asked %q", got)
	}
	more := newDNS(t, DNSOptions{}, newNameServer(t, rules(ddds.MaxRules+100)))
	if _, err := more.Resolve(t.Context(), Request{Name: "urn:many:500"}); !errors.Is(err, ddds.ErrTooManyRules) {
		t.Errorf("too many rules: %v", err)
	}
}

// TestAliases: CNAME records are followed, within an answer and beyond, and end.
func TestAliases(t *testing.T) {
	var long strings.Builder
	for i := range 12 {
		fmt.Fprintf(&long, "a%d.example. CNAME a%d.example.\n", i, i+1)
	}
	zone := paradisecZone + long.String() + `
alias.urn.example. 20 CNAME paradisec.urn.example.
circle.urn.example. CNAME round.example.
round.example. CNAME circle.urn.example.
self.urn.example. CNAME self.urn.example.
long.urn.example. CNAME a0.example.
lost.urn.example. CNAME nowhere.example.
empty.urn.example. CNAME only.example.
only.example. TXT x
`
	server := newNameServer(t, zone)
	apart := newNameServer(t, zone) // does not follow aliases itself
	apart.misbehave(func(w dns.ResponseWriter, q *dns.Msg) bool {
		m := apart.answer(q)
		if len(m.Answer) > 1 && m.Answer[0].Header().Rrtype == dns.TypeCNAME {
			m.Answer, m.Ns, m.Rcode = m.Answer[:1], nil, dns.RcodeSuccess
		}
		if len(m.Answer) == 1 {
			m.Ns, m.Rcode = nil, dns.RcodeSuccess
		}
		_ = w.WriteMsg(m)
		return true
	})
	for about, s := range map[string]*nameServer{"whole answers": server, "single answers": apart} {
		d := newDNS(t, DNSOptions{}, s)
		for _, tt := range []struct {
			name string
			kind stele.Kind
			is   error
		}{
			{"circle", stele.Exhausted, nil},
			{"self", stele.Exhausted, nil},
			{"long", stele.Exhausted, nil},
			{"lost", stele.NotFound, ddds.ErrNoSuchName},
			{"empty", stele.NotFound, ddds.ErrNoData},
		} {
			res, err := d.Resolve(t.Context(), Request{Name: "urn:" + tt.name + ":x", Trace: true})
			if stele.KindOf(err) != tt.kind || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%s, %s: %v, want %v\n%s", about, tt.name, err, tt.kind, res.Trace)
			}
		}
		a, err := d.lookup(t.Context(), nil, nil, "alias.urn.example.", dns.TypeNAPTR)
		if err != nil || a.owner != "paradisec.urn.example." || len(a.rules) != 2 || a.ttl != 20 {
			t.Errorf("%s: %+v, %v", about, a, err)
		}
	}
}

// TestCancel: a caller that cancels its context does not wait any longer.
func TestCancel(t *testing.T) {
	server := newNameServer(t, paradisecZone)
	begun := make(chan struct{}, 100)
	server.misbehave(func(dns.ResponseWriter, *dns.Msg) bool {
		begun <- struct{}{}
		return true
	})
	d := newDNS(t, DNSOptions{TryTimeout: time.Hour, Timeout: time.Hour}, server)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	if _, err := d.Resolve(ctx, Request{Name: paradisec}); stele.KindOf(err) != stele.Unavailable || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := d.Resolve(ctx, Request{Name: paradisec}); stele.KindOf(err) != stele.Unavailable {
		t.Errorf("out of time: %v", err)
	}
	if n := len(server.asked()); n > 2 {
		t.Errorf("%d questions", n)
	}
}
