package zonesign

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/miekg/dns"
	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/dnsrr"
	"github.com/stele-id/stele/publish/zonekey"
)

// newRing makes the keys of a zone.
func newRing(t testing.TB, zone string, algorithm uint8, split bool, now time.Time) *zonekey.Ring {
	t.Helper()
	r, err := zonekey.ReadRing(zone, nil)
	if err == nil {
		err = r.Begin(algorithm, split, now, rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSteadySignatures checks that signatures in the mode transfer depend only on what is
// signed.
func TestSteadySignatures(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, algorithm := range []uint8{zonekey.ECDSA, zonekey.Ed25519} {
		ring := newRing(t, "paradisec.example.", algorithm, false, now)
		rr, err := dns.NewRR("a.paradisec.example. 60 TXT x")
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for i := range 3 {
			s, err := New(Transfer, ring, 3600, func() time.Time { return now.Add(time.Duration(i) * time.Hour) })
			if err != nil {
				t.Fatal(err)
			}
			list, err := s.Sign([]dns.RR{rr})
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, list[0].String())
		}
		if texts[0] != texts[1] || texts[0] != texts[2] {
			t.Errorf("three signatures: %q", texts)
		}
	}
}

// TestSignerNeedsKeys checks that a zone without keys that sign is not signed, nor one
// whose keys are damaged.
func TestSignerNeedsKeys(t *testing.T) {
	none, err := zonekey.ReadRing("z.example.", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Online, none, 60, time.Now); !errors.Is(err, stele.Conflict) {
		t.Errorf("without keys: %v", err)
	}
	damaged, err := zonekey.ReadRing("z.example.", []stele.Cell{{Name: zonekey.CellPrefix + "z.example. 00001", Value: []byte(`{"role":"csk","algorithm":13}`)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Online, damaged, 60, time.Now); !errors.Is(err, stele.Internal) {
		t.Errorf("with a damaged key: %v", err)
	}
}

// TestSuccessor holds that nothing is between a name and the one that follows it.
func TestSuccessor(t *testing.T) {
	const zone = "z."
	rapid.Check(t, func(t *rapid.T) {
		var wire []byte
		for range rapid.IntRange(0, 6).Draw(t, "labels") {
			size := rapid.SampledFrom([]int{1, 2, 30, 61, 62, 63}).Draw(t, "size")
			label := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 'a', 'z', '@', '[', 0xfe, 0xff}), size, size).Draw(t, "label")
			if len(wire)+len(label)+1+3 <= dnsrr.MaxName {
				wire = append(append(wire, byte(len(label))), label...)
			}
		}
		wire = append(wire, 1, 'z', 0)
		name, _, err := dns.UnpackDomainName(wire, 0)
		if err != nil {
			t.Fatal(err)
		}
		next, err := successor(name, zone)
		if err != nil {
			t.Fatal(err)
		}
		order := compareNames(t, name, next)
		if order >= 0 && next != zone {
			t.Fatalf("%s is followed by %s", name, next)
		}
		if len(wire)+2 <= dnsrr.MaxName && next != `\000.`+name {
			t.Fatalf("%s is followed by %s", name, next)
		}
	})
}

// compareNames compares two names in canonical order (RFC 4034, section 6.1).
func compareNames(t *rapid.T, a, b string) int {
	x, y := labelsOf(t, a), labelsOf(t, b)
	for i := 1; i <= min(len(x), len(y)); i++ {
		if c := bytes.Compare(x[len(x)-i], y[len(y)-i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x), len(y))
}

func labelsOf(t *rapid.T, name string) (list [][]byte) {
	wire := make([]byte, dnsrr.MaxName)
	if _, err := dns.PackDomainName(name, wire, 0, nil, false); err != nil {
		t.Fatalf("%q is not a name: %v", name, err)
	}
	for ; wire[0] != 0; wire = wire[1+wire[0]:] {
		list = append(list, wire[1:1+wire[0]])
	}
	return list
}
