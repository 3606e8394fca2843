package client

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func TestCacheHonoursTTL(t *testing.T) {
	c := &clock{now: time.Unix(1_700_000_000, 0)}
	server := newNameServer(t, paradisecZone)
	d := newDNS(t, DNSOptions{Now: c.Now}, server)
	for i, tt := range []struct {
		name  string
		move  time.Duration
		ttl   uint32
		asked int // questions in all, after this
		kind  stele.Kind
	}{
		{paradisec, 0, 60, 2, 0},
		{"URN:paradisec:ab1:001:A", 0, 60, 2, 0},
		{paradisec, 20 * time.Second, 40, 2, 0},
		{paradisec, 40 * time.Second, 60, 3, 0}, // 60 s are over; the first key's hour is not
		{"urn:paradisec:ab1:001:unknown", 0, 0, 4, stele.NotFound},
		{"urn:paradisec:ab1:001:unknown", 29 * time.Second, 0, 4, stele.NotFound},
		{"urn:paradisec:ab1:001:unknown", time.Second, 0, 5, stele.NotFound}, // the SOA record's minimum is 30 s
		{paradisec, -time.Hour, 60, 7, 0},                                    // the clock was put back: the cache is not used
		{paradisec, time.Hour + 30*time.Second, 60, 9, 0},
	} {
		c.move(tt.move)
		res, err := d.Resolve(t.Context(), Request{Name: tt.name, Trace: true})
		if err != nil && stele.KindOf(err) != tt.kind || res.TTL != tt.ttl || len(server.asked()) != tt.asked {
			t.Errorf("%d: %v, TTL %d, %d questions; want TTL %d, %d\n%s", i, err, res.TTL, len(server.asked()), tt.ttl, tt.asked, res.Trace)
		}
	}
}

// TestCacheNot: answers that must not be cached are not, and without a clock none is.
func TestCacheNot(t *testing.T) {
	c := &clock{now: time.Unix(1_700_000_000, 0)}
	zone := `zero.urn.example. 0 NAPTR 1 1 "u" "http+N2L" "!.*!https://a.example/!" .
top.urn.example. 4294967295 NAPTR 1 1 "u" "http+N2L" "!.*!https://a.example/!" .
hour.urn.example. 3600 NAPTR 1 1 "u" "http+N2L" "!.*!https://a.example/!" .`
	server := newNameServer(t, zone)
	d := newDNS(t, DNSOptions{Now: c.Now}, server)
	for _, name := range []string{"urn:zero:x", "urn:top:x"} { // RFC 2181, section 8
		for range 2 {
			if res, err := d.Resolve(t.Context(), Request{Name: name}); err != nil || res.TTL != 0 {
				t.Errorf("%s: %v, %v", name, res, err)
			}
		}
	}
	if n := len(server.asked()); n != 4 {
		t.Errorf("%d questions, want 4", n)
	}
	without := newDNS(t, DNSOptions{}, server)
	for range 2 {
		if res, err := without.Resolve(t.Context(), Request{Name: "urn:hour:x"}); err != nil || res.TTL != 3600 {
			t.Errorf("%v, %v", res, err)
		}
	}
	if n := len(server.asked()); n != 6 {
		t.Errorf("%d questions, want 6", n)
	}
}

// TestCacheIsBounded: a flood of names does not fill the memory.
func TestCacheIsBounded(t *testing.T) {
	const bytes = 64 << 10
	c := newCache(func() time.Time { return time.Unix(1_700_000_000, 0) }, bytes)
	for i := range 10_000 {
		q := question{fmt.Sprintf("n%d.example.", i), dns.TypeNAPTR}
		c.keep(q, &answer{owner: q.name, ttl: 60, missing: noData})
	}
	c.kept.CleanUp()
	if n := c.kept.EstimatedSize(); n > bytes/256 {
		t.Errorf("%d answers are kept", n)
	}
}
