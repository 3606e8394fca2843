// Package zonesign signs the records of zones (RFC 4034): with the keys of package zonekey,
// when they are asked for or for transfer to secondaries, and with the NSEC records of
// signing online (RFC 9824). It does not know where records come from, and keeps no
// signatures.
package zonesign

import (
	"crypto"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/dnsrr"
	"github.com/stele-id/stele/publish/zonekey"
)

// Mode is how a zone is signed.
type Mode uint8

const (
	Unsigned Mode = iota
	// Online makes signatures when they are asked for, and its denials reveal no other names
	// (RFC 9824), so clients can't list the names of a zone.
	Online
	// Transfer makes signatures that depend only on what is signed, and a chain of all names
	// (NSEC3, RFC 5155), so the zone can be transferred to secondaries.
	Transfer
)

// ModeOf returns the mode of a zone by the settings of its namespace.
func ModeOf(ns *stele.Namespace) Mode {
	switch ns.Publication.Signing {
	case stele.SigningOnline:
		return Online
	case stele.SigningTransfer:
		return Transfer
	}
	return Unsigned
}

// Times of signatures that are made when they are asked for. They begin in the past,
// for clients whose clock is late, and are made anew when a third of their life is
// left.
const (
	SignatureEarly = time.Hour
	signatureLife  = 7 * 24 * time.Hour
	SignatureFresh = signatureLife * 2 / 3
)

// Signer signs for a zone. It is not changed after it was made: other keys make
// another signer.
type Signer struct {
	Zone  string
	Mode  Mode
	since time.Time // of signatures in the mode transfer
	now   func() time.Time

	forKeys []signingKey // that sign the zone's keys
	forZone []signingKey // that sign all else
	Records []dns.RR     // that stand at the apex because of it
	Parent  []dns.RR     // DS records, for the zone above

	zoneWire []byte // the name of the zone as signatures have it
}

// signingKey is a key that signs.
type signingKey struct {
	tag       uint16
	algorithm uint8
	signer    crypto.Signer
}

// New makes a signer of the keys of a zone. ttl is that of the records about
// keys.
func New(mode Mode, ring *zonekey.Ring, ttl uint32, now func() time.Time) (*Signer, error) {
	s := &Signer{Zone: ring.Zone, Mode: mode, since: ring.Signed, now: now}
	var err error
	if s.zoneWire, err = packZone(ring.Zone); err != nil {
		return nil, &stele.Error{Op: "zone keys", Kind: stele.Internal, Err: err}
	}
	for _, k := range ring.Current() {
		record := k.DNSKEY(ring.Zone, ttl)
		private, err := k.Signer()
		if err != nil {
			return nil, err
		}
		key := signingKey{record.KeyTag(), k.Algorithm, private}
		if k.IsInZone() {
			s.Records = append(s.Records, record)
		}
		if k.IsInZone() && k.Role.SignsKeys() {
			s.forKeys = append(s.forKeys, key)
		}
		// There must be signatures of every algorithm that there is a key of (RFC 4035,
		// section 2.2).
		if k.Role.SignsZone() && (k.State() == zonekey.Active || ring.IsChangingAlgorithm()) {
			s.forZone = append(s.forZone, key)
		}
	}
	if len(s.forKeys) == 0 || len(s.forZone) == 0 {
		return nil, &stele.Error{Op: "zone keys", Kind: stele.Conflict, Err: stele.Messagef("zone.signing-keys-missing", "the zone {zone} has no keys that sign, so it is served without signatures; make them with 'stele zone sign {zone}'", ring.Zone)}
	}
	s.addParentRecords(ring, ttl)
	if mode == Transfer {
		s.Records = append(s.Records, &dns.NSEC3PARAM{Hdr: dnsrr.Header(s.Zone, dns.TypeNSEC3PARAM, 0), Hash: dns.SHA1})
	}
	return s, nil
}

// addParentRecords makes what the zone above should know of the keys: in the zone itself as
// CDS and CDNSKEY (RFC 7344), and as it stands there.
func (s *Signer) addParentRecords(ring *zonekey.Ring, ttl uint32) {
	if !ring.Unsigning.IsZero() { // RFC 8078, section 4
		s.Records = append(s.Records,
			&dns.CDS{DS: dns.DS{Hdr: dnsrr.Header(s.Zone, dns.TypeCDS, ttl), Digest: "00"}},
			&dns.CDNSKEY{DNSKEY: dns.DNSKEY{Hdr: dnsrr.Header(s.Zone, dns.TypeCDNSKEY, ttl), Protocol: 3, PublicKey: "AA=="}})
	}
	for _, k := range ring.Delegated() {
		key := k.DNSKEY(ring.Zone, ttl)
		ds := k.DS(ring.Zone, ttl, dns.SHA256)
		s.Records = append(s.Records, ds.ToCDS(), key.ToCDNSKEY())
		s.Parent = append(s.Parent, ds)
	}
}

// ApexRecords returns what stands at a name because the zone is signed.
func (s *Signer) ApexRecords(name string) []dns.RR {
	if name == s.Zone {
		return s.Records
	}
	return nil
}

// keysFor returns the keys that sign records of a type. CDS and CDNSKEY need the ones
// that the parent points at (RFC 7344, section 4.1).
func (s *Signer) keysFor(rtype uint16) []signingKey {
	switch rtype {
	case dns.TypeDNSKEY, dns.TypeCDS, dns.TypeCDNSKEY:
		return s.forKeys
	}
	return s.forZone
}

// times returns when a signature begins and ends. Ends are spread, so that not all
// signatures have to be made anew at once.
func (s *Signer) times(name string, rtype uint16) (from, to time.Time) {
	spread := time.Duration(spreadOf(name, rtype)%(12*3600)) * time.Second
	if s.Mode == Transfer {
		return s.since.Add(-SignatureEarly), s.since.Add(zonekey.SignatureValidity - spread)
	}
	now := s.now()
	return now.Add(-SignatureEarly), now.Add(signatureLife - spread)
}

// Version returns a text that differs if signatures do: it has the mode, the time of the
// signatures in the mode transfer, and the tags of the keys that sign.
func (s *Signer) Version() string {
	return fmt.Sprintln(s.Mode, s.since.Unix(), tags(s.forKeys), tags(s.forZone))
}

func tags(keys []signingKey) (list []uint16) {
	for _, k := range keys {
		list = append(list, k.tag)
	}
	return list
}

// FreshUntil returns when signatures that are made now have to be made anew.
func (s *Signer) FreshUntil() time.Time { return s.now().Add(SignatureFresh) }

// newRRSIGs makes signatures of a set of records with nothing signed yet.
func (s *Signer) newRRSIGs(set []dns.RR) []*dns.RRSIG {
	h := set[0].Header()
	from, to := s.times(h.Name, h.Rrtype)
	var list []*dns.RRSIG
	for _, key := range s.keysFor(h.Rrtype) {
		list = append(list, &dns.RRSIG{
			Hdr: dnsrr.Header(h.Name, dns.TypeRRSIG, h.Ttl), TypeCovered: h.Rrtype, Algorithm: key.algorithm,
			Labels: uint8(dns.CountLabel(h.Name)), OrigTtl: h.Ttl,
			Expiration: uint32(to.Unix()), Inception: uint32(from.Unix()),
			KeyTag: key.tag, SignerName: s.Zone,
		})
	}
	return list
}

// Sign returns the signatures of a set of records: one name, one type, one TTL.
func (s *Signer) Sign(set []dns.RR) ([]dns.RR, error) {
	var list []dns.RR
	keys := s.keysFor(set[0].Header().Rrtype)
	for i, sig := range s.newRRSIGs(set) {
		if err := sig.Sign(keys[i].signer, set); err != nil {
			return nil, stele.Messagef("zone.records-not-signable", `the {type} records of "{name}" can't be signed: {cause}`, dns.TypeToString[sig.TypeCovered], sig.Hdr.Name, err)
		}
		list = append(list, sig)
	}
	return list, nil
}

// signatureSize is the size of a signature of either algorithm.
const signatureSize = 64

// PlaceholderRRSIGs returns what stands in the place of the signatures of an SOA record: they have
// the size of the real ones. Those are put in their place whenever the answer is sent,
// like the serial.
func (s *Signer) PlaceholderRRSIGs(soa *dns.SOA) []dns.RR {
	var list []dns.RR
	for _, sig := range s.newRRSIGs([]dns.RR{soa}) {
		sig.Signature = base64.StdEncoding.EncodeToString(make([]byte, signatureSize))
		list = append(list, sig)
	}
	return list
}
