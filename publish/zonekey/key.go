package zonekey

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/secret"
)

// Role says which records a key signs.
type Role string

const (
	CSK Role = "csk" // the zone and its keys: one key for both
	KSK Role = "ksk" // the zone's keys
	ZSK Role = "zsk" // the zone
)

// IsValid reports whether r is a role.
func (r Role) IsValid() bool { return r == CSK || r == KSK || r == ZSK }

// SignsKeys reports whether keys of this role sign the DNSKEY records, so that the DS
// records at the parent zone name them.
func (r Role) SignsKeys() bool { return r != ZSK }

// SignsZone reports whether keys of this role sign the other records of the zone.
func (r Role) SignsZone() bool { return r != KSK }

// State is a step in the life of a key (RFC 7583, section 3.1, and RFC 6781).
type State string

const (
	Prepared  State = "prepared"  // of another algorithm: it signs, and is not in the zone yet
	Published State = "published" // in the zone, so that resolvers learn it
	Active    State = "active"    // it signs, and the parent should have its DS record
	Retired   State = "retired"   // in the zone for resolvers that have its signatures in their caches
	Leaving   State = "leaving"   // of another algorithm: it signs, and is no longer in the zone
	Removed   State = "removed"   // out of use, and its private part is erased
)

// PrivateKey is a key of a zone as it is stored, with its private part. It never leaves
// the server: [Key] is what others see. Its state changes when an owner of the zone asks
// for it, and never by itself, so that all servers of a zone sign alike.
type PrivateKey struct {
	ID        string `json:"-"` // the key tag, in the cell's name
	Role      Role   `json:"role"`
	Algorithm uint8  `json:"algorithm"`
	Public    string `json:"public"` // as in the DNSKEY record

	// Private is the private key (PKCS#8), which is encrypted where it is stored.
	Private secret.Value `json:"private,omitzero"`

	Prepared  time.Time `json:"prepared,omitzero"`
	Published time.Time `json:"published,omitzero"`
	Active    time.Time `json:"active,omitzero"`
	Retired   time.Time `json:"retired,omitzero"`
	Withdrawn time.Time `json:"withdrawn,omitzero"` // of another algorithm: the owner said that the parent has no DS record of it
	Leaving   time.Time `json:"leaving,omitzero"`
	Removed   time.Time `json:"removed,omitzero"`
}

// created returns when the key was made.
func (k *PrivateKey) created() time.Time {
	if !k.Prepared.IsZero() {
		return k.Prepared
	}
	return k.Published
}

// IsInZone reports whether the zone has a DNSKEY record of the key.
func (k *PrivateKey) IsInZone() bool {
	s := k.State()
	return s == Published || s == Active || s == Retired
}

// State returns the state that the key is in.
func (k *PrivateKey) State() State {
	switch {
	case !k.Removed.IsZero():
		return Removed
	case !k.Leaving.IsZero():
		return Leaving
	case !k.Retired.IsZero():
		return Retired
	case !k.Active.IsZero():
		return Active
	case !k.Published.IsZero():
		return Published
	}
	return Prepared
}

// public returns what others see of the key.
func (k *PrivateKey) public() Key {
	return Key{
		Tag: k.ID, Role: k.Role, Algorithm: AlgorithmName(k.Algorithm), Public: k.Public, State: k.State(),
		Prepared: k.Prepared, Published: k.Published, Active: k.Active, Retired: k.Retired, Leaving: k.Leaving, Removed: k.Removed,
	}
}

// Algorithms of zone keys (RFC 8624 recommends both).
const (
	ECDSA   = dns.ECDSAP256SHA256
	Ed25519 = dns.ED25519
)

// ParseAlgorithm reads the name that IANA gives an algorithm; "" is ECDSA, which all
// validators know.
func ParseAlgorithm(name string) (uint8, error) {
	switch strings.ToLower(name) {
	case "", "ecdsap256sha256":
		return ECDSA, nil
	case "ed25519":
		return Ed25519, nil
	}
	return 0, keyError(stele.Invalid, "dnssec-key.algorithm-unknown", `"{algorithm}" is not an algorithm of zone keys; take ecdsap256sha256 or ed25519`, name)
}

// AlgorithmName returns the name of an algorithm.
func AlgorithmName(algorithm uint8) string {
	return strings.ToLower(dns.AlgorithmToString[algorithm])
}

func keyError(kind stele.Kind, code, text string, args ...any) error {
	return opError("zone keys", kind, code, text, args...)
}

func opError(op string, kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: op, Kind: kind, Err: stele.Messagef(code, text, args...)}
}

// newKey makes a key.
func newKey(role Role, algorithm uint8, now time.Time, random io.Reader) (*PrivateKey, error) {
	k := &PrivateKey{Role: role, Algorithm: algorithm, Published: now.UTC().Truncate(time.Second)}
	var private crypto.Signer
	var public []byte
	switch algorithm {
	case ECDSA:
		key, err := ecdsa.GenerateKey(elliptic.P256(), random)
		if err != nil {
			return nil, keyError(stele.Internal, "dnssec-key.not-made", "no key could be made: {cause}", err)
		}
		point, err := key.PublicKey.Bytes()
		if err != nil {
			return nil, keyError(stele.Internal, "dnssec-key.not-made", "no key could be made: {cause}", err)
		}
		private, public = key, point[1:] // without the mark of its form (RFC 6605, section 4)
	case Ed25519:
		pub, key, err := ed25519.GenerateKey(random)
		if err != nil {
			return nil, keyError(stele.Internal, "dnssec-key.not-made", "no key could be made: {cause}", err)
		}
		private, public = key, pub
	default:
		return nil, keyError(stele.Invalid, "dnssec-key.algorithm-unsupported", "no keys are made for the algorithm {algorithm}", algorithm)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, keyError(stele.Internal, "dnssec-key.not-made", "no key could be made: {cause}", err)
	}
	k.Private = secret.NewValue(encoded)
	k.Public = base64.StdEncoding.EncodeToString(public)
	k.ID = fmt.Sprintf("%05d", k.DNSKEY(".", 0).KeyTag())
	return k, nil
}

// DNSKEY returns the key as a record of a zone.
func (k *PrivateKey) DNSKEY(zone string, ttl uint32) *dns.DNSKEY {
	flags := uint16(dns.ZONE)
	if k.Role.SignsKeys() {
		flags |= dns.SEP
	}
	return &dns.DNSKEY{
		Hdr:   dns.RR_Header{Name: zone, Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: ttl},
		Flags: flags, Protocol: 3, Algorithm: k.Algorithm, PublicKey: k.Public,
	}
}

// DS returns the record of the key that the parent zone should have, with a digest in
// SHA-256 (dns.SHA256) or SHA-384 (RFC 6605).
func (k *PrivateKey) DS(zone string, ttl uint32, digest uint8) *dns.DS {
	ds := k.DNSKEY(zone, ttl).ToDS(digest)
	ds.Digest = strings.ToUpper(ds.Digest) // as master files usually have it
	return ds
}

// deterministicSigner makes the same signature whenever it signs the same bytes: its nonces
// are made of key and message (RFC 6979), so that servers that share a zone agree byte for
// byte.
type deterministicSigner struct{ crypto.Signer }

func (s deterministicSigner) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return s.Signer.Sign(nil, digest, opts)
}

// Signer returns a signer that signs with the key, the same bytes always alike. The private
// part must have been decrypted ([Ring.Open]).
func (k *PrivateKey) Signer() (crypto.Signer, error) {
	private, err := x509.ParsePKCS8PrivateKey(k.Private.Clear())
	if err != nil {
		return nil, keyError(stele.Internal, "dnssec-key.unreadable-roll", "the key {key} can't be read; restore it from a backup, or make another with 'stele zone roll'", k.ID)
	}
	switch key := private.(type) {
	case *ecdsa.PrivateKey:
		if k.Algorithm == ECDSA && key.Curve == elliptic.P256() {
			return deterministicSigner{key}, nil
		}
	case ed25519.PrivateKey:
		if k.Algorithm == Ed25519 {
			return deterministicSigner{key}, nil
		}
	}
	return nil, keyError(stele.Internal, "dnssec-key.algorithm-differs", "the key {key} is none of the algorithm {algorithm}", k.ID, k.Algorithm)
}

// readKey reads the key of a cell.
func readKey(id string, value []byte) (*PrivateKey, error) {
	k := &PrivateKey{ID: id}
	if err := json.Unmarshal(value, k); err != nil || !k.Role.IsValid() {
		return nil, keyError(stele.Internal, "dnssec-key.unreadable-restore", `the key "{key}" can't be read; restore it from a backup`, id)
	}
	return k, nil
}
