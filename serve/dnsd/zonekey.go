package dnsd

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

// KeyRole is what a key of a zone signs: its own kind and no other.
type KeyRole string

const (
	RoleCSK KeyRole = "csk" // the zone and its keys: one key for both
	RoleKSK KeyRole = "ksk" // the zone's keys
	RoleZSK KeyRole = "zsk" // the zone
)

// IsValid reports whether r is a role.
func (r KeyRole) IsValid() bool { return r == RoleCSK || r == RoleKSK || r == RoleZSK }

// signsKeys reports whether keys of this role are what the parent zone points at.
func (r KeyRole) signsKeys() bool { return r != RoleZSK }

// signsZone reports whether keys of this role sign what stands in the zone.
func (r KeyRole) signsZone() bool { return r != RoleKSK }

// KeyState is where a key is in its life (RFC 7583, section 3.1, and RFC 6781).
type KeyState string

const (
	KeyPrepared  KeyState = "prepared"  // of another algorithm: it signs, and is not in the zone yet
	KeyPublished KeyState = "published" // in the zone, so that everybody learns it
	KeyActive    KeyState = "active"    // it signs, and the parent should point at it
	KeyRetired   KeyState = "retired"   // in the zone for those who have its signatures still
	KeyLeaving   KeyState = "leaving"   // of another algorithm: it signs, and is in the zone no more
	KeyRemoved   KeyState = "removed"   // gone, and its private part is erased
)

// ZoneKey is a key of a zone. Its states follow each other when somebody says so, and
// never by themselves, so that all servers of a zone sign alike.
type ZoneKey struct {
	ID        string  `json:"-"` // the key tag, in the cell's name
	Role      KeyRole `json:"role"`
	Algorithm uint8   `json:"algorithm"`
	Public    string  `json:"public"` // as in the DNSKEY record

	// Private is the private key (PKCS#8), which is encrypted where it is stored.
	Private secret.Value `json:"private,omitzero"`

	Prepared  time.Time `json:"prepared,omitzero"`
	Published time.Time `json:"published,omitzero"`
	Active    time.Time `json:"active,omitzero"`
	Retired   time.Time `json:"retired,omitzero"`
	Withdrawn time.Time `json:"withdrawn,omitzero"` // of another algorithm: the parent was said to have no DS record of it
	Leaving   time.Time `json:"leaving,omitzero"`
	Removed   time.Time `json:"removed,omitzero"`
}

// Since is when the key came into its state.
func (k *ZoneKey) Since() time.Time {
	return map[KeyState]time.Time{
		KeyPrepared: k.Prepared, KeyPublished: k.Published, KeyActive: k.Active,
		KeyRetired: k.Retired, KeyLeaving: k.Leaving, KeyRemoved: k.Removed,
	}[k.State()]
}

// made is when the key was made.
func (k *ZoneKey) made() time.Time {
	if !k.Prepared.IsZero() {
		return k.Prepared
	}
	return k.Published
}

// isShown reports whether the key is among those of the zone.
func (k *ZoneKey) isShown() bool {
	s := k.State()
	return s == KeyPublished || s == KeyActive || s == KeyRetired
}

// State is the state that the key is in.
func (k *ZoneKey) State() KeyState {
	switch {
	case !k.Removed.IsZero():
		return KeyRemoved
	case !k.Leaving.IsZero():
		return KeyLeaving
	case !k.Retired.IsZero():
		return KeyRetired
	case !k.Active.IsZero():
		return KeyActive
	case !k.Published.IsZero():
		return KeyPublished
	}
	return KeyPrepared
}

// Algorithms of zone keys (RFC 8624 recommends both), by the names that IANA gives
// them.
const (
	AlgorithmECDSA   = dns.ECDSAP256SHA256
	AlgorithmEd25519 = dns.ED25519
)

// ParseKeyAlgorithm reads the name of an algorithm; "" is ECDSA, which all validators
// know.
func ParseKeyAlgorithm(name string) (uint8, error) {
	switch strings.ToLower(name) {
	case "", "ecdsap256sha256":
		return AlgorithmECDSA, nil
	case "ed25519":
		return AlgorithmEd25519, nil
	}
	return 0, keyError(stele.Invalid, "%.40q is no algorithm of zone keys; take ecdsap256sha256 or ed25519", name)
}

// KeyAlgorithmName is the name of an algorithm.
func KeyAlgorithmName(algorithm uint8) string {
	return strings.ToLower(dns.AlgorithmToString[algorithm])
}

func keyError(kind stele.Kind, format string, args ...any) error {
	return &stele.Error{Op: "zone keys", Kind: kind, Err: fmt.Errorf(format, args...)}
}

// newZoneKey makes a key.
func newZoneKey(role KeyRole, algorithm uint8, now time.Time, random io.Reader) (*ZoneKey, error) {
	k := &ZoneKey{Role: role, Algorithm: algorithm, Published: now.UTC().Truncate(time.Second)}
	var private crypto.Signer
	var public []byte
	switch algorithm {
	case AlgorithmECDSA:
		key, err := ecdsa.GenerateKey(elliptic.P256(), random)
		if err != nil {
			return nil, keyError(stele.Internal, "no key could be made: %w", err)
		}
		point, err := key.PublicKey.Bytes()
		if err != nil {
			return nil, keyError(stele.Internal, "no key could be made: %w", err)
		}
		private, public = key, point[1:] // without the mark of its form (RFC 6605, section 4)
	case AlgorithmEd25519:
		pub, key, err := ed25519.GenerateKey(random)
		if err != nil {
			return nil, keyError(stele.Internal, "no key could be made: %w", err)
		}
		private, public = key, pub
	default:
		return nil, keyError(stele.Invalid, "no keys are made for the algorithm %d", algorithm)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, keyError(stele.Internal, "no key could be made: %w", err)
	}
	k.Private = secret.NewValue(encoded)
	k.Public = base64.StdEncoding.EncodeToString(public)
	k.ID = fmt.Sprintf("%05d", k.dnskey(".", 0).KeyTag())
	return k, nil
}

// dnskey is the key as a record.
func (k *ZoneKey) dnskey(zone string, ttl uint32) *dns.DNSKEY {
	flags := uint16(dns.ZONE)
	if k.Role.signsKeys() {
		flags |= dns.SEP
	}
	return &dns.DNSKEY{Hdr: header(zone, dns.TypeDNSKEY, ttl), Flags: flags, Protocol: 3, Algorithm: k.Algorithm, PublicKey: k.Public}
}

// steady signs the same bytes always in the same way: with nonces that are made of key
// and message (RFC 6979), so that servers that share a zone agree byte for byte.
type steady struct{ crypto.Signer }

func (s steady) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return s.Signer.Sign(nil, digest, opts)
}

// signer returns what signs with the key.
func (k *ZoneKey) signer() (crypto.Signer, error) {
	private, err := x509.ParsePKCS8PrivateKey(k.Private.Clear())
	if err != nil {
		return nil, keyError(stele.Internal, "the key %s can't be read; restore it from a backup, or make another with 'stele zone roll'", k.ID)
	}
	switch key := private.(type) {
	case *ecdsa.PrivateKey:
		if k.Algorithm == AlgorithmECDSA && key.Curve == elliptic.P256() {
			return steady{key}, nil
		}
	case ed25519.PrivateKey:
		if k.Algorithm == AlgorithmEd25519 {
			return steady{key}, nil
		}
	}
	return nil, keyError(stele.Internal, "the key %s is none of the algorithm %d", k.ID, k.Algorithm)
}

// zoneKeyCells is what the names of cells with the keys of zones begin with. The zone
// follows, and the key's ID.
const zoneKeyCells = "zonekey "

// signedID stands in the place of a key's ID, in the cell that has the time of the
// signatures of a zone.
const signedID = "signed"

// unsigningID is the same for the time since which a zone is about to go without
// signatures.
const unsigningID = "unsigning"

// withdrawnID is the same for the time since which its parent is said to have no DS
// records of it.
const withdrawnID = "withdrawn"

// readZoneKey reads the key of a cell.
func readZoneKey(id string, value []byte) (*ZoneKey, error) {
	k := &ZoneKey{ID: id}
	if err := json.Unmarshal(value, k); err != nil || !k.Role.IsValid() {
		return nil, keyError(stele.Internal, "the key %.20q can't be read; restore it from a backup", id)
	}
	return k, nil
}
