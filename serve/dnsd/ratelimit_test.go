package dnsd

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"
)

func TestRateLimit(t *testing.T) {
	d := newOfflineServer(t, Options{Rate: RateLimit{Same: 5, Slip: 2}})
	ask := func(name string, from peer) string {
		return brief(d.ask(question(name, dns.TypeSOA), from))
	}
	flood := func(names func(i int) string, from peer) (full, short, none int) {
		for i := range 25 {
			switch got := ask(names(i), from); got {
			case "nothing":
				none++
			case "NOERROR tc":
				short++
			default:
				full++
			}
		}
		return full, short, none
	}
	same := func(int) string { return "paradisec.example." }
	if full, short, none := flood(same, someone); full != 5 || short != 10 || none != 10 {
		t.Errorf("the same answer: %d whole, %d short, %d held back", full, short, none)
	}
	if got := ask("paradisec.example.", peer{addr: netip.MustParseAddr("192.0.2.99")}); got == "NOERROR aa answer:SOA" {
		t.Error("a neighbour in the same network is not limited")
	}
	if got := ask("paradisec.example.", neighbor); got != "NOERROR aa answer:SOA" {
		t.Errorf("another network: %s", got)
	}
	if got := ask("paradisec.example.", caller); got != "NOERROR aa answer:SOA" {
		t.Errorf("over TCP: %s", got)
	}
	if got := ask("ns1.paradisec.example.", someone); got != "NOERROR aa authority:SOA" {
		t.Errorf("another answer: %s", got)
	}
	made := func(i int) string { return fmt.Sprintf("x%d.paradisec.example.", i) }
	if full, _, _ := flood(made, neighbor); full != 5 {
		t.Errorf("%d answers for names that are made up, want 5", full)
	}
	foreign := func(i int) string { return fmt.Sprintf("x%d.example.", i) }
	if full, _, _ := flood(foreign, neighbor); full != 5 {
		t.Errorf("%d refusals, want 5", full)
	}
	d.clock.add(time.Second)
	if full, _, _ := flood(same, someone); full != 5 {
		t.Errorf("%d answers a second later, want 5", full)
	}
	d.clock.add(200 * time.Millisecond)
	if full, _, _ := flood(same, someone); full != 1 {
		t.Errorf("%d answers a fifth of a second later, want 1", full)
	}
	if st := d.s.Stats(); st.Held == 0 || st.Slipped == 0 || st.Slipped > st.Held+2 {
		t.Errorf("%+v", st)
	}
}

func TestRateLimitOfAll(t *testing.T) {
	d := newOfflineServer(t, Options{Rate: RateLimit{All: 7, Exempt: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}}})
	for _, test := range []struct {
		from peer
		want int
	}{{someone, 7}, {neighbor, 100}, {peer{addr: netip.MustParseAddr("2001:db8::1")}, 7}, {peer{addr: netip.MustParseAddr("2001:db8:0:ff::1")}, 0}, {peer{addr: netip.MustParseAddr("2001:db8:0:100::1")}, 7}} {
		got := 0
		for i := range 100 {
			if d.ask(question(fmt.Sprintf("x%d.paradisec.example.", i), uint16(i+1)), test.from) != nil {
				got++
			}
		}
		if got != test.want {
			t.Errorf("%d answers to %s, want %d", got, test.from.addr, test.want)
		}
	}
}

// TestRateLimitAndCookies checks that a client with a good cookie is not limited, and that
// a client without one gets it.
func TestRateLimitAndCookies(t *testing.T) {
	d := newOfflineServer(t, Options{Rate: RateLimit{Same: 1, Slip: 1}})
	ask := func(cookie string) *dns.Msg {
		return d.ask(withCookie(question("paradisec.example.", dns.TypeSOA), cookie), someone)
	}
	ask("2464c4abcf10c957")
	r := ask("2464c4abcf10c957")
	if r.Rcode|r.IsEdns0().ExtendedRcode() != dns.RcodeBadCookie || len(r.Answer) != 0 || r.Truncated {
		t.Fatalf("over the limit: %v", r)
	}
	cookie := cookieIn(r)
	for range 10 {
		if r = ask(cookie); brief(r) != "NOERROR aa answer:SOA additional:OPT" {
			t.Fatalf("with the cookie: %v", r)
		}
	}
}

// TestBuckets goes through the time that a bucket keeps in 32 bits.
func TestBuckets(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	l := newLimiter(RateLimit{Same: 2}, start)
	for _, after := range []time.Duration{0, time.Second, time.Hour, 24 * 24 * time.Hour, 26 * 24 * time.Hour, 49 * 24 * time.Hour, 50 * 24 * time.Hour, 100 * 24 * time.Hour} {
		got := 0
		for range 5 {
			if l.judge(someone.addr, kindAnswer, 1, start.Add(after)) == send {
				got++
			}
		}
		if got != 2 {
			t.Errorf("after %v: %d, want 2", after, got)
		}
	}
	if newLimiter(RateLimit{Slip: 2}, start).judge(someone.addr, kindAnswer, 1, start) != send {
		t.Error("without limits something is limited")
	}
}
