package hdl_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stele-id/stele/wire/hdl"
)

var (
	sender = netip.MustParseAddrPort("192.0.2.1:40000")
	noon   = time.Unix(1_700_000_000, 0)
)

// message returns a message with a body of n octets.
func message(request uint32, n int) []byte {
	body := make([]byte, n)
	for i := range body {
		body[i] = byte(i>>8) ^ byte(i)
	}
	m := hdl.Message{Envelope: hdl.Envelope{Version: v211, Suggested: v211, Request: request}, Header: hdl.Header{Operation: 1}, Body: body}
	return m.Append(nil)
}

// datagrams returns the datagrams of a message.
func datagrams(b []byte, truncated bool) (list [][]byte) {
	for d := range hdl.Datagrams(b, truncated) {
		list = append(list, bytes.Clone(d))
	}
	return list
}

// TestRecordedFragments cuts the recorded messages as the reference did, and puts its fragments together.
func TestRecordedFragments(t *testing.T) {
	all, _ := recordings(t)
	c := hdl.NewCollector(hdl.DefaultLimits())
	cut, seen := [][]byte(nil), 0
	for _, rec := range all {
		if rec.transport != "UDP" {
			continue
		}
		got, err := c.Add(noon, sender, rec.octets)
		if err != nil {
			t.Fatalf("%s:%d: %v", rec.file, rec.line, err)
		}
		if cut = append(cut, rec.octets); got == nil {
			continue
		}
		if len(cut) > 1 {
			seen++
			truncated := rec.octets[2]&0x20 != 0
			again := datagrams(got, truncated)
			for i := range cut {
				if len(again) != len(cut) || !bytes.Equal(again[i], cut[i]) {
					t.Errorf("%s:%d: fragment %d differs", rec.file, rec.line, i)
				}
			}
			if _, err := hdl.Parse(got); err != nil {
				t.Errorf("%s:%d: %v", rec.file, rec.line, err)
			}
		}
		cut = nil
	}
	if n, octets := c.Waiting(); n != 0 || octets != 0 || seen < 10 {
		t.Errorf("%d messages of fragments; %d, %d octets are waiting", seen, n, octets)
	}
}

// TestFragmentsAnyOrder: fragments may come in any order and twice, from many senders at once.
func TestFragmentsAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := hdl.NewCollector(hdl.DefaultLimits())
		type piece struct {
			from netip.AddrPort
			b    []byte
		}
		var pieces []piece
		want := make(map[netip.AddrPort][]byte)
		for i := range rapid.IntRange(1, 5).Draw(t, "messages") {
			from := netip.AddrPortFrom(sender.Addr(), uint16(1000+i))
			want[from] = message(7, rapid.IntRange(465, 6000).Draw(t, "octets"))
			for _, d := range datagrams(want[from], i%2 == 0) {
				for range rapid.IntRange(1, 2).Draw(t, "copies") {
					pieces = append(pieces, piece{from, d})
				}
			}
		}
		seed := rapid.Uint64().Draw(t, "order")
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
		for _, p := range pieces {
			got, err := c.Add(noon, p.from, p.b)
			if err != nil {
				t.Fatal(err)
			}
			if got == nil {
				continue
			}
			got[2] &^= 0x20
			if w, ok := want[p.from]; ok && !bytes.Equal(got, w) {
				t.Fatalf("%x, want %x", got, w)
			}
			delete(want, p.from)
		}
		if len(want) > 0 {
			t.Fatalf("%d messages are not complete", len(want))
		}
	})
}

// TestFragmentsExpire: what does not complete is forgotten after 5 seconds.
func TestFragmentsExpire(t *testing.T) {
	c := hdl.NewCollector(hdl.DefaultLimits())
	parts := datagrams(message(1, 1000), false)
	add := func(now time.Time, b []byte) []byte {
		got, err := c.Add(now, sender, b)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	add(noon, parts[0])
	add(noon, parts[1])
	if add(noon.Add(5*time.Second), parts[2]) != nil {
		t.Error("fragments are kept for more than 5 seconds")
	}
	if n, _ := c.Waiting(); n != 1 {
		t.Errorf("%d messages", n)
	}
	add(noon.Add(6*time.Second), parts[0])
	if got := add(noon.Add(9*time.Second), parts[1]); got == nil {
		t.Error("fragments are kept for less than 5 seconds")
	}
}

// TestBadFragments tells which fragments are refused.
func TestBadFragments(t *testing.T) {
	parts := datagrams(message(1, 1000), true) // 492, 492, 44
	change := func(i int, f func(b []byte) []byte) []byte { return f(bytes.Clone(parts[i])) }
	put := func(at int, n uint32) func([]byte) []byte {
		return func(b []byte) []byte { binary.BigEndian.PutUint32(b[at:], n); return b }
	}
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"no envelope":        {parts[0][:10], "hdl.envelope-short"},
		"no octets":          {parts[0][:20], "hdl.fragment-size"},
		"short":              {parts[0][:511], "hdl.fragment-size"},
		"short last":         {parts[2][:40], "hdl.fragment-size"},
		"long":               {append(bytes.Clone(parts[0]), 0), "hdl.fragment-size"},
		"long last":          {append(bytes.Clone(parts[2]), 0), "hdl.fragment-size"},
		"sequence":           {change(0, put(12, 3)), "hdl.fragment-beyond-end"},
		"large sequence":     {change(0, put(12, 0xffffffff)), "hdl.fragment-beyond-end"},
		"total below octets": {change(0, put(16, 100)), "hdl.fragment-beyond-end"},
		"total 0":            {change(0, put(16, 0)), "hdl.fragment-beyond-end"},
		"total too large":    {change(0, put(16, hdl.MaxMessage+1)), "hdl.message-too-long"},
		"total 2^32-1":       {change(0, put(16, 0xffffffff)), "hdl.message-too-long"},
		"whole, sequence 1":  {put(12, 1)(message(1, 10)), "hdl.fragment-beyond-end"},
	} {
		col := hdl.NewCollector(hdl.DefaultLimits())
		if got, err := col.Add(noon, sender, c.b); got != nil || code(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
		if n, _ := col.Waiting(); n != 0 {
			t.Errorf("%s: it is kept", name)
		}
	}
}

// TestFragmentsOfTwoVersions: a client that encrypts its request again sends other octets with the same number. They are
// never mixed.
func TestFragmentsOfTwoVersions(t *testing.T) {
	first, second := message(1, 1000), message(1, 1000)
	for i := hdl.EnvelopeSize; i < len(second); i++ {
		second[i] ^= 0xff
	}
	other := message(1, 1001)
	for name, again := range map[string][]byte{"other octets": second, "another length": other} {
		c := hdl.NewCollector(hdl.DefaultLimits())
		a, b := datagrams(first, false), datagrams(again, false)
		var whole []byte
		for _, d := range [][]byte{a[0], a[1], b[0], b[1], b[2]} {
			got, err := c.Add(noon, sender, d)
			if err != nil {
				t.Fatal(err)
			}
			if got != nil {
				whole = got
			}
		}
		if !bytes.Equal(whole, again) {
			t.Errorf("%s: %x", name, whole)
		}
		if n, octets := c.Waiting(); n != 0 || octets != 0 {
			t.Errorf("%s: %d messages, %d octets are kept", name, n, octets)
		}
	}
}

// TestFragmentFlood: memory is bounded whatever comes, and a message that completes quickly is not lost.
func TestFragmentFlood(t *testing.T) {
	limits := hdl.Limits{Messages: 100, Octets: 64 << 10, Lifetime: 5 * time.Second}
	c := hdl.NewCollector(limits)
	parts := datagrams(message(1, 1000), false)
	large := datagrams(message(1, 200_000), false)[0]
	complete := 0
	for i := range 3003 {
		from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 1)
		if _, err := c.Add(noon, from, large); err != nil {
			t.Fatal(err)
		}
		if messages, octets := c.Waiting(); messages > limits.Messages || octets > limits.Octets {
			t.Fatalf("%d messages, %d octets are kept", messages, octets)
		}
		if i%1000 < len(parts) {
			got, err := c.Add(noon, sender, parts[i%1000])
			if err != nil {
				t.Fatal(err)
			}
			if got != nil {
				complete++
			}
		}
	}
	if complete != 4 {
		t.Errorf("%d of 4 messages are complete", complete)
	}
}

// TestCollectorTogether: several goroutines use one collector.
func TestCollectorTogether(t *testing.T) {
	c := hdl.NewCollector(hdl.DefaultLimits())
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			from := netip.AddrPortFrom(sender.Addr(), uint16(1+i))
			for request := range uint32(50) {
				want := message(request, 2000)
				var got []byte
				for d := range hdl.Datagrams(want, false) {
					var err error
					if got, err = c.Add(noon, from, d); err != nil {
						t.Error(err)
					}
				}
				if !bytes.Equal(got, want) {
					t.Errorf("message %d of sender %d differs", request, i)
				}
			}
		})
	}
	wait.Wait()
	if n, octets := c.Waiting(); n != 0 || octets != 0 {
		t.Errorf("%d messages, %d octets are kept", n, octets)
	}
}
