package zonesign

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/asn1"
	"math/big"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/publish/zonekey"
)

// TestAppendRRSIGs holds that signatures of what is on the wire are those of the DNS library for the
// same records, whatever their order.
func TestAppendRRSIGs(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, algorithm := range []uint8{zonekey.ECDSA, zonekey.Ed25519} {
		s, err := New(Transfer, newRing(t, "paradisec.example.", algorithm, false, now), 3600, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		for i := range 50 { // some numbers of a signature begin with zeros
			list, set := testSet(t, i)
			signatures, err := s.Sign(list)
			if err != nil {
				t.Fatal(err)
			}
			want := make([]byte, 1000)
			end, err := dns.PackRR(signatures[0], want, 0, nil, false)
			if err != nil {
				t.Fatal(err)
			}
			want = append([]byte{0xC0, 12}, want[len(set.Owner):end]...)
			got, n, err := s.AppendRRSIGs(nil, 12, set)
			if err != nil || n != 1 || !bytes.Equal(got, want) {
				t.Fatalf("%d %v:\n%x, want\n%x", n, err, got, want)
			}
		}
	}
}

// testSet returns some records, and the same as they are on the wire.
func testSet(t *testing.T, i int) (list []dns.RR, set *WireSet) {
	t.Helper()
	set = &WireSet{Name: "a.paradisec.example.", Owner: []byte("\x01a\x09paradisec\x07example\x00"), Type: dns.TypeTXT, TTL: uint32(i)}
	for _, text := range []string{"x", "b", "longer", "b"} {
		list = append(list, &dns.TXT{Hdr: dns.RR_Header{Name: set.Name, Rrtype: dns.TypeTXT, Class: dns.ClassINET, Ttl: set.TTL}, Txt: []string{text}})
		set.Data = append(set.Data, append([]byte{byte(len(text))}, text...))
	}
	return list, set
}

// FuzzSplitSignature holds that splitSignature reads what the standard library reads, and refuses
// everything else.
func FuzzSplitSignature(f *testing.F) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	for i := range byte(4) {
		signature, err := ecdsa.SignASN1(rand.Reader, key, []byte{i})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(signature)
	}
	f.Add([]byte{0x30, 6, 2, 1, 1, 2, 1, 0})
	f.Add([]byte{0x30, 7, 2, 1, 1, 2, 2, 0, 0x80})
	f.Fuzz(func(t *testing.T, der []byte) {
		var want struct{ R, S *big.Int }
		rest, err := asn1.Unmarshal(der, &want)
		r, s, ok := splitSignature(der)
		if err != nil || len(rest) > 0 || want.R.Sign() <= 0 || want.S.Sign() <= 0 {
			return // the signer makes none of these; that reading ends is all that is asked
		}
		small := want.R.BitLen() <= 256 && want.S.BitLen() <= 256 && len(der) <= 129
		if ok != small {
			t.Fatalf("%x is read: %t", der, ok)
		}
		if ok && (!bytes.Equal(r, want.R.Bytes()) || !bytes.Equal(s, want.S.Bytes())) {
			t.Fatalf("%x is %x and %x", der, r, s)
		}
	})
}

// BenchmarkAppendRRSIGs measures a signature beside a bare one.
func BenchmarkAppendRRSIGs(b *testing.B) {
	now := time.Unix(1_700_000_000, 0)
	s, err := New(Online, newRing(b, "paradisec.example.", zonekey.ECDSA, false, now), 3600, func() time.Time { return now })
	if err != nil {
		b.Fatal(err)
	}
	set := &WireSet{Name: "a.paradisec.example.", Owner: []byte("\x01a\x09paradisec\x07example\x00"), Type: dns.TypeTXT, TTL: 60, Data: [][]byte{[]byte("\x01a"), []byte("\x01b")}}
	b.Run("set", func(b *testing.B) {
		b.ReportAllocs()
		var to []byte
		for b.Loop() {
			if to, _, err = s.AppendRRSIGs(to[:0], 12, set); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		digest := make([]byte, 32)
		for b.Loop() {
			if _, err := s.forZone[0].signer.Sign(nil, digest, crypto.SHA256); err != nil {
				b.Fatal(err)
			}
		}
	})
}
