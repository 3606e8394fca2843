// Package signtest signs zones and answers for them, for the tests of validators. It shares
// no code with them except the library.
//
// It is for tests alone: keys are made when needed and kept nowhere, and what can't be
// made fails the test.
package signtest

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// Denial is how a zone proves that something is not there.
type Denial int

const (
	NSEC Denial = iota
	NSEC3
	Compact // RFC 9824
)

// Options are how a zone is signed.
type Options struct {
	Algorithm  uint8 // ECDSAP256SHA256 if 0
	Bits       int   // of an RSA key; 2048 if 0
	Denial     Denial
	Iterations uint16
	Salt       string
	OptOut     bool
	Unsigned   bool
	Split      bool // a key for keys and one for all else; otherwise one key
	From, To   time.Time

	// Seed, if it is not empty, is what Ed25519 keys are made of, so that a zone is the
	// same in every run.
	Seed string
}

// Key is a key that signs.
type Key struct {
	*dns.DNSKEY
	signer crypto.Signer
}

// Zone is a signed zone.
type Zone struct {
	Name string
	Options
	Keys []Key

	t       testing.TB
	records map[string]map[uint16][]dns.RR // by name and type
	sigs    map[string]map[uint16][]dns.RR // signatures, by name and type
	names   []string                       // that exist, in canonical order
	cuts    []string                       // names at which others begin
	nsec3   map[string]string              // name by hash
	hashes  []string                       // in order
}

// NewZone makes a zone of the text of a zone file. It is signed by [Zone.Sign].
func NewZone(t testing.TB, name, text string, o Options) *Zone {
	t.Helper()
	z := &Zone{Name: dns.CanonicalName(name), Options: o, t: t, records: make(map[string]map[uint16][]dns.RR)}
	z.Add("$TTL 300\n@ SOA ns mail 1 3600 600 86400 60\n@ NS ns.other.test.\n" + text)
	if !o.Unsigned {
		z.AddKey(257)
		if o.Split {
			z.AddKey(256)
		}
	}
	return z
}

// Add adds records.
func (z *Zone) Add(text string) {
	z.t.Helper()
	p := dns.NewZoneParser(strings.NewReader(text), z.Name, "")
	p.SetDefaultTTL(300)
	for r, ok := p.Next(); ok; r, ok = p.Next() {
		z.AddRR(r)
	}
	if err := p.Err(); err != nil {
		z.t.Fatal(err)
	}
}

// AddRR adds a record.
func (z *Zone) AddRR(r dns.RR) {
	h := r.Header()
	name := dns.CanonicalName(h.Name)
	if z.records[name] == nil {
		z.records[name] = make(map[uint16][]dns.RR)
	}
	z.records[name][h.Rrtype] = append(z.records[name][h.Rrtype], r)
	if h.Rrtype == dns.TypeNS && name != z.Name && !slices.Contains(z.cuts, name) {
		z.cuts = append(z.cuts, name)
	}
}

// AddKey makes a key, and publishes it.
func (z *Zone) AddKey(flags uint16) Key {
	z.t.Helper()
	key := NewKey(z.t, z.Name, flags, z.Algorithm, z.Bits)
	if z.Seed != "" {
		seed := sha256.Sum256(fmt.Append(nil, z.Seed, z.Name, len(z.Keys)))
		private := ed25519.NewKeyFromSeed(seed[:])
		key.signer = private
		key.Algorithm, key.PublicKey = dns.ED25519, base64.StdEncoding.EncodeToString(private[ed25519.SeedSize:])
	}
	z.Keys = append(z.Keys, key)
	z.AddRR(key.DNSKEY)
	return key
}

// NewKey makes a key.
func NewKey(t testing.TB, zone string, flags uint16, algorithm uint8, bits int) Key {
	t.Helper()
	if algorithm == 0 {
		algorithm = dns.ECDSAP256SHA256
	}
	size := map[uint8]int{dns.ECDSAP256SHA256: 256, dns.ECDSAP384SHA384: 384, dns.ED25519: 256}[algorithm]
	if size == 0 {
		size = max(bits, 2048)
	}
	key := &dns.DNSKEY{
		Hdr:   dns.RR_Header{Name: zone, Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 300},
		Flags: flags, Protocol: 3, Algorithm: algorithm,
	}
	private, err := key.Generate(size)
	if err != nil {
		t.Fatal(err)
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		t.Fatalf("%T does not sign", private)
	}
	return Key{key, signer}
}

// DS returns the DS record of the zone's first key, as a line of the zone above.
func (z *Zone) DS(digest uint8) string { return z.Keys[0].ToDS(digest).String() + "\n" }

// Anchor returns the zone's first key, as a line of a file of trust anchors.
func (z *Zone) Anchor() string { return z.Keys[0].DNSKEY.String() + "\n" }

// Sign signs everything, and makes the chain of what is not there.
func (z *Zone) Sign() *Zone {
	z.t.Helper()
	z.sigs = make(map[string]map[uint16][]dns.RR)
	z.exist()
	if z.Unsigned {
		return z
	}
	switch z.Denial {
	case NSEC:
		z.chain()
	case NSEC3:
		z.hashed()
	}
	for name, types := range z.records {
		for kind, set := range types {
			if z.isSigned(name, kind) {
				z.keep(name, kind, z.SignSet(set, z.signers(kind)...))
			}
		}
	}
	return z
}

func (z *Zone) keep(name string, kind uint16, sigs []dns.RR) {
	if z.sigs[name] == nil {
		z.sigs[name] = make(map[uint16][]dns.RR)
	}
	z.sigs[name][kind] = sigs
}

// signers returns the keys that sign records of a type.
func (z *Zone) signers(kind uint16) []Key {
	if !z.Split {
		return z.Keys[:1]
	}
	if kind == dns.TypeDNSKEY {
		return z.Keys[:1]
	}
	return z.Keys[1:2]
}

// isSigned reports whether records are the zone's own: at a cut they are not, except
// those that speak of the signatures below (RFC 4035, section 2.2).
func (z *Zone) isSigned(name string, kind uint16) bool {
	for _, at := range z.cuts {
		if name == at {
			return kind == dns.TypeDS || kind == dns.TypeNSEC
		}
		if dns.IsSubDomain(at, name) {
			return false
		}
	}
	return true
}

// SignSet signs a set of records.
func (z *Zone) SignSet(set []dns.RR, keys ...Key) (sigs []dns.RR) {
	z.t.Helper()
	from, to := z.From, z.To
	if from.IsZero() {
		from, to = Now().Add(-time.Hour), Now().Add(24*time.Hour)
	}
	for _, key := range keys {
		sig := &dns.RRSIG{
			Hdr:       dns.RR_Header{Name: set[0].Header().Name, Rrtype: dns.TypeRRSIG, Class: dns.ClassINET, Ttl: set[0].Header().Ttl},
			Inception: uint32(from.Unix()), Expiration: uint32(to.Unix()),
			KeyTag: key.KeyTag(), SignerName: z.Name, Algorithm: key.Algorithm,
		}
		if err := sig.Sign(key.signer, set); err != nil {
			z.t.Fatal(err)
		}
		sigs = append(sigs, sig)
	}
	return sigs
}

// Now is the time at which zones are signed, unless their options say otherwise.
func Now() time.Time { return time.Unix(1_800_000_000, 0) }
