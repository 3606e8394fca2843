package dnsd

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/publish/publishtest"
)

// TestZoneAnswers checks that authoritative answers are counted for their zones, whether they were packed before or not.
func TestZoneAnswers(t *testing.T) {
	for _, counted := range []bool{true, false} {
		p := publishtest.New(t)
		p.Paradisec()
		s := serve(p, Options{CountZones: counted})
		for _, name := range []string{"paradisec.example.", "paradisec.example.", "nothing.paradisec.example.", "elsewhere.example.org."} {
			for _, network := range []string{"udp", "tcp"} {
				m := new(dns.Msg)
				m.SetQuestion(name, dns.TypeSOA)
				exchange(t, network, s.Addr(), m)
			}
		}
		want := uint64(0)
		if counted {
			want = 6
		}
		if found := s.ZoneAnswers(); found["paradisec.example."] != want || counted != (len(found) == 1) {
			t.Errorf("%v, want %d", found, want)
		}
	}
	var c zoneCounts
	c.add(65535)
	if n := testing.AllocsPerRun(100, func() { c.add(65535); c.add(7) }); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}
