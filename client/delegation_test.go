package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

// oneServer answers all questions on one port, over UDP and TCP, as a resolver, a zone
// above and a server of the zone at once. It is silent where there is no answer.
func oneServer(t *testing.T, answer func(q *dns.Msg, tcp bool) *dns.Msg) netip.AddrPort {
	t.Helper()
	s := newNameServer(t, "")
	s.misbehave(func(w dns.ResponseWriter, q *dns.Msg) bool {
		if m := answer(q, w.LocalAddr().Network() == "tcp"); m != nil {
			_ = w.WriteMsg(m) // a client that does not get it stops asking
		}
		return true
	})
	return s.addr
}

// records makes an answer of records as they stand in a zone file. Those after a line
// "authority" or "additional" go there.
func records(t *testing.T, q *dns.Msg, text string) *dns.Msg {
	t.Helper()
	m := new(dns.Msg).SetReply(q)
	m.Authoritative = true
	section := &m.Answer
	for line := range strings.SplitSeq(text, "\n") {
		switch line {
		case "":
		case "authority":
			section = &m.Ns
		case "additional":
			section = &m.Extra
		default:
			rr, err := dns.NewRR(line)
			if err != nil {
				t.Error(err)
				continue
			}
			*section = append(*section, rr)
		}
	}
	return m
}

// TestDelegations asks servers that misbehave.
func TestDelegations(t *testing.T) {
	const soa = "zone.example. 60 SOA ns1.zone.example. h.example. 7 1 1 1 1"
	good := map[string]string{
		"zone.example. NS":      "authority\nzone.example. 60 NS ns1.zone.example.\nadditional\nns1.zone.example. 60 A 127.0.0.1",
		"zone.example. SOA":     soa,
		"example. SOA":          "example. 60 SOA ns.example. h.example. 1 1 1 1 1",
		"example. NS":           "example. 60 NS ns.example.",
		"ns.example. A":         "ns.example. 60 A 127.0.0.1",
		"ns.example. AAAA":      "",
		"sub.zone.example. NS":  "",
		"sub.zone.example. SOA": "",
	}
	for _, tt := range []struct {
		name   string
		change func(key string, tcp bool, m *dns.Msg) *dns.Msg
		want   string // what was found, in short
	}{
		{"well", nil, "example. [ns1.zone.example.] ns1.zone.example. 7 <nil>"},
		{"the resolver fails", func(key string, _ bool, m *dns.Msg) *dns.Msg {
			if key == "example. SOA" {
				m.Rcode = dns.RcodeServerFailure
			}
			return m
		}, " [] ns1.zone.example. 7 <nil>: ask the DNS"},
		{"no zone above", func(key string, _ bool, m *dns.Msg) *dns.Msg {
			if strings.HasSuffix(key, " SOA") && key != "zone.example. SOA" {
				m.Answer, m.Rcode = nil, dns.RcodeNameError
			}
			return m
		}, " [] ns1.zone.example. 7 <nil>: find the zone above"},
		{"the zone above says nothing", func(key string, _ bool, m *dns.Msg) *dns.Msg {
			if key == "zone.example. NS" {
				m.Rcode = dns.RcodeRefused
			}
			return m
		}, "example. [] ns1.zone.example. 7 <nil>: ask the zone above"},
		{"the zone above has no servers", func(key string, _ bool, m *dns.Msg) *dns.Msg {
			if key == "example. NS" {
				m.Answer = nil
			}
			return m
		}, "example. [] ns1.zone.example. 7 <nil>: ask the zone above"},
		{"not there", func(key string, _ bool, m *dns.Msg) *dns.Msg {
			if key == "zone.example. NS" {
				m.Ns, m.Extra, m.Rcode = nil, nil, dns.RcodeNameError
			}
			return m
		}, "example. [] ns1.zone.example. 7 <nil>"},
		{"another's word", func(key string, _ bool, m *dns.Msg) *dns.Msg {
			if key == "zone.example. SOA" {
				m.Authoritative = false
			}
			return m
		}, "example. [ns1.zone.example.] ns1.zone.example. 0 over UDP: it does not answer for the zone by itself"},
		{"another zone", func(key string, _ bool, m *dns.Msg) *dns.Msg {
			if key == "zone.example. SOA" {
				m.Answer[0].Header().Name = "other.example."
			}
			return m
		}, "example. [ns1.zone.example.] ns1.zone.example. 0 over UDP: the answer has no SOA of the zone"},
		{"no TCP", func(key string, tcp bool, m *dns.Msg) *dns.Msg {
			if key == "zone.example. SOA" && tcp {
				m.Rcode = dns.RcodeNotImplemented
			}
			return m
		}, "example. [ns1.zone.example.] ns1.zone.example. 7 over TCP: it answers NOTIMP"},
		{"too long for a datagram", func(_ string, tcp bool, m *dns.Msg) *dns.Msg {
			if !tcp {
				m.Truncated, m.Answer, m.Ns, m.Extra = true, nil, nil, nil
			}
			return m
		}, "example. [ns1.zone.example.] ns1.zone.example. 7 <nil>"},
		{"silence", func(key string, _ bool, m *dns.Msg) *dns.Msg {
			if key == "zone.example. SOA" {
				return nil
			}
			return m
		}, "example. [ns1.zone.example.] ns1.zone.example. 0 over UDP: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := oneServer(t, func(q *dns.Msg, tcp bool) *dns.Msg {
				key := q.Question[0].Name + " " + dns.TypeToString[q.Question[0].Qtype]
				m := records(t, q, good[key])
				if tt.change != nil {
					m = tt.change(key, tcp, m)
				}
				return m
			})
			d := &Delegations{Servers: []netip.AddrPort{at}, Port: at.Port(), Timeout: time.Minute}
			if tt.name == "silence" {
				d.Timeout = 3 * time.Second
			}
			found, err := d.Check(t.Context(), "Zone.Example", []stele.NameServer{{Name: "ns1.zone.example.", Addresses: []string{"127.0.0.1"}}})
			got := fmt.Sprintf("%s %v", found.Parent, found.Names)
			for _, s := range found.Servers {
				got += fmt.Sprintf(" %s %d %v", s.Name, s.Serial, s.Err)
			}
			if err != nil {
				got += ": " + err.Error()
			}
			if !strings.HasPrefix(got, tt.want) || strings.HasSuffix(tt.want, "<nil>") && got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// A zone that changes while its servers are asked does not make one of them late; a server
// that keeps the old serial is late.
func TestDelegationsChange(t *testing.T) {
	for _, test := range []struct {
		name   string
		serial func(asked int) int
		late   bool
	}{
		{"a change with each question", func(asked int) int { return asked }, false},
		{"a server behind", func(asked int) int { return 100 - min(asked, 3) }, true}, // the first has the newest
	} {
		var asked atomic.Int64
		at := oneServer(t, func(q *dns.Msg, tcp bool) *dns.Msg {
			if q.Question[0].Qtype != dns.TypeSOA || q.Question[0].Name != "zone.example." {
				return records(t, q, "")
			}
			if tcp {
				asked.Add(1) // its answer counts
			}
			return records(t, q, fmt.Sprintf("zone.example. 60 SOA ns1.zone.example. h.example. %d 1 1 1 1", test.serial(int(asked.Load()))))
		})
		d := &Delegations{Servers: []netip.AddrPort{at}, Port: at.Port(), Timeout: time.Minute, Again: time.Millisecond}
		found, _ := d.Check(t.Context(), "zone.example.", []stele.NameServer{
			{Name: "ns1.zone.example.", Addresses: []string{"127.0.0.1"}}, {Name: "ns2.zone.example.", Addresses: []string{"127.0.0.1"}}})
		if len(found.Servers) != 2 || found.Servers[0].Late || found.Servers[1].Late != test.late {
			t.Errorf("%s: %+v", test.name, found.Servers)
		}
	}
}

// A zone with many servers does not make the client ask without limit, and an invalid name
// is refused.
func TestDelegationsLimits(t *testing.T) {
	asked := make(chan string, 10_000)
	at := oneServer(t, func(q *dns.Msg, tcp bool) *dns.Msg {
		asked <- q.Question[0].Name
		var b strings.Builder
		switch q.Question[0].Name {
		case "example.":
			if q.Question[0].Qtype == dns.TypeSOA {
				return records(t, q, "example. 60 SOA ns.example. h.example. 1 1 1 1 1")
			}
			return records(t, q, "example. 60 NS ns.example.\nadditional\nns.example. 60 A 127.0.0.1")
		case "zone.example.":
			if q.Question[0].Qtype == dns.TypeNS {
				if !tcp {
					return &dns.Msg{MsgHdr: dns.MsgHdr{Id: q.Id, Response: true, Truncated: true}, Question: q.Question}
				}
				b.WriteString("authority\n")
				for i := range 500 {
					fmt.Fprintf(&b, "zone.example. 60 NS ns%d.other.example.\n", i)
				}
			}
		}
		return records(t, q, b.String())
	})
	d := &Delegations{Servers: []netip.AddrPort{at}, Port: at.Port(), Timeout: time.Minute}
	found, err := d.Check(t.Context(), "zone.example.", nil)
	if err != nil || len(found.Names) != 500 || len(found.Servers) != maxZoneServers {
		t.Errorf("%d names, %d servers, %v", len(found.Names), len(found.Servers), err)
	}
	if n := len(asked); n > 3*maxZoneServers+10 {
		t.Errorf("%d questions", n)
	}
	for _, name := range []string{"", ".", strings.Repeat("a", 64) + ".example", strings.Repeat("a.", 200)} {
		if _, err := d.Check(context.Background(), name, nil); !errors.Is(err, stele.Invalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	list, err := SystemAddresses()
	if err == nil && (len(list) == 0 || slices.ContainsFunc(list, func(a netip.AddrPort) bool { return a.Port() != 53 })) {
		t.Errorf("the system's name servers are %v", list)
	}
}

// TestDelegationsDial: servers that others name are asked by the way that the caller gives, and the
// caller's own name servers are not.
func TestDelegationsDial(t *testing.T) {
	refused := errors.New("refused by the rule")
	var asked []string
	d := &Delegations{Servers: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1")}, Timeout: 100 * time.Millisecond,
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			asked = append(asked, address)
			return nil, refused
		}}
	found, err := d.Check(t.Context(), "zone.example.", []stele.NameServer{{Name: "ns1.zone.example.", Addresses: []string{"127.0.0.2"}}})
	if err == nil || len(found.Servers) != 1 || found.Servers[0].Err == nil || !strings.Contains(found.Servers[0].Err.Error(), refused.Error()) {
		t.Errorf("got %+v, %v", found, err)
	}
	if !slices.Equal(asked, []string{"127.0.0.2:53"}) {
		t.Errorf("%q were asked", asked)
	}
}
