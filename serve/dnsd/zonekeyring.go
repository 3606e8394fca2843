package dnsd

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/secret"
)

// KeyRing is the keys of a zone. Its methods change it in memory; Changes says what has
// to be written then.
type KeyRing struct {
	Zone string
	Keys []*ZoneKey // those that were removed too, by the time of publication

	// Signed is the time from which the signatures of a zone in the mode transfer are
	// good. All of them are made anew when it moves on.
	Signed time.Time

	// Unsigning is since when the parent should have no DS records any more, so that
	// the zone can go without signatures; the zero time if it is to be signed.
	Unsigning time.Time

	// Withdrawn is when it was first said that the parent has none; the zero time if it
	// was not.
	Withdrawn time.Time

	held map[string][]byte // cells as they were read, by ID
}

// ReadKeyRing makes a ring of cells. Those of other zones are passed over.
func ReadKeyRing(zone string, cells []stele.Cell) (*KeyRing, error) {
	r := &KeyRing{Zone: zone, held: make(map[string][]byte)}
	for _, c := range cells {
		id, ok := strings.CutPrefix(c.Name, zoneKeyCells+zone+" ")
		if !ok {
			continue
		}
		r.held[id] = c.Value
		if at := map[string]*time.Time{unsigningID: &r.Unsigning, withdrawnID: &r.Withdrawn}[id]; at != nil {
			if err := json.Unmarshal(c.Value, at); err != nil {
				return nil, keyError(stele.Internal, "since when %s has been about to go without signatures can't be read; restore it from a backup", zone)
			}
			continue
		}
		if id == signedID {
			if err := json.Unmarshal(c.Value, &r.Signed); err != nil {
				return nil, keyError(stele.Internal, "the time of the signatures of %s can't be read; set it anew with 'stele zone sign %s --refresh'", zone, zone)
			}
			continue
		}
		k, err := readZoneKey(id, c.Value)
		if err != nil {
			return nil, err
		}
		r.Keys = append(r.Keys, k)
	}
	slices.SortStableFunc(r.Keys, func(a, b *ZoneKey) int { return a.made().Compare(b.made()) })
	return r, nil
}

// Changes returns what has changed since the ring was read. It calls seal for each private
// key that is not encrypted, with the name of its cell.
func (r *KeyRing) Changes(seal func(place string, v *secret.Value) error) (list []stele.CellChange, err error) {
	add := func(id string, v any) error {
		value, err := json.Marshal(v)
		if err != nil {
			return keyError(stele.Internal, "%w", err)
		}
		if !bytes.Equal(value, r.held[id]) {
			list = append(list, stele.CellChange{Name: zoneKeyCells + r.Zone + " " + id, Before: r.held[id], After: value})
		}
		return nil
	}
	for _, k := range r.Keys {
		if !k.Private.IsZero() && k.Private.Key() == "" {
			if err := seal(zoneKeyCells+r.Zone+" "+k.ID, &k.Private); err != nil {
				return nil, err
			}
		}
		if err := add(k.ID, k); err != nil {
			return nil, err
		}
	}
	if !r.Signed.IsZero() {
		if err := add(signedID, r.Signed); err != nil {
			return nil, err
		}
	}
	for _, one := range []struct {
		id string
		at time.Time
	}{{unsigningID, r.Unsigning}, {withdrawnID, r.Withdrawn}} {
		if one.at.IsZero() && r.held[one.id] == nil {
			continue
		}
		if err := add(one.id, one.at); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// open decrypts the private keys.
func (r *KeyRing) open(secrets *secret.Ring) error {
	for _, k := range r.Keys {
		if err := k.Private.Open(secrets, zoneKeyCells+r.Zone+" "+k.ID); err != nil {
			return keyError(stele.Internal, "the private key %s of %s can't be used: %w", k.ID, r.Zone, err)
		}
	}
	return nil
}

// Begin makes the first key of a zone, or with split the first two. They sign at once:
// nobody expects signatures yet. A ring that has keys already is left as it is.
func (r *KeyRing) Begin(algorithm uint8, split bool, now time.Time, random io.Reader) error {
	r.refresh(now)
	r.Unsigning, r.Withdrawn = time.Time{}, time.Time{}
	if len(r.inZone()) > 0 {
		return nil
	}
	roles := []KeyRole{RoleCSK}
	if split {
		roles = []KeyRole{RoleKSK, RoleZSK}
	}
	for _, role := range roles {
		k, err := r.add(role, algorithm, now, random)
		if err != nil {
			return err
		}
		k.Active = k.Published
	}
	return nil
}

// add makes a key and publishes it.
func (r *KeyRing) add(role KeyRole, algorithm uint8, now time.Time, random io.Reader) (*ZoneKey, error) {
	for range 100 {
		k, err := newZoneKey(role, algorithm, now, random)
		if err != nil {
			return nil, err
		}
		// Two keys with one tag make validators try both (RFC 4034, section 8).
		if r.held[k.ID] == nil && !slices.ContainsFunc(r.Keys, func(other *ZoneKey) bool { return other.ID == k.ID }) {
			r.Keys = append(r.Keys, k)
			return k, nil
		}
	}
	return nil, keyError(stele.Exhausted, "no key with a tag of its own could be made for %s; try again", r.Zone)
}

// inZone returns the keys that the zone has, or has signatures of.
func (r *KeyRing) inZone() (list []*ZoneKey) {
	for _, k := range r.Keys {
		if k.State() != KeyRemoved {
			list = append(list, k)
		}
	}
	return list
}

// wanted returns the keys that the parent should point at. Both of a roll are among
// them, so that it does not matter which of them somebody knows (RFC 6781, section
// 4.1.2, "Double-DS").
func (r *KeyRing) wanted() (list []*ZoneKey) {
	for _, k := range r.inZone() {
		if s := k.State(); k.Role.signsKeys() && (s == KeyPublished || s == KeyActive) && r.Unsigning.IsZero() {
			list = append(list, k)
		}
	}
	return list
}

// DS returns the records that the parent should have, as a master file has them:
// SHA-256 for all, and with SHA-384 too (RFC 6605) if asked.
func (r *KeyRing) DS(ttl uint32, also384 bool) []Entry {
	var list []dns.RR
	for _, k := range r.wanted() {
		key := k.dnskey(r.Zone, ttl)
		list = append(list, upper(key.ToDS(dns.SHA256)))
		if also384 {
			list = append(list, upper(key.ToDS(dns.SHA384)))
		}
	}
	return entries(list)
}

// upper writes a digest as everybody does.
func upper(ds *dns.DS) *dns.DS {
	ds.Digest = strings.ToUpper(ds.Digest)
	return ds
}

// signaturesAnew is how often all signatures of a zone in the mode transfer are made
// anew. Secondaries give a zone up after soaExpire, and its signatures must be good
// until then (RFC 6781, section 4.4.2).
const (
	signaturesAnew = 7 * 24 * time.Hour
	signatureDays  = 30 * 24 * time.Hour
)

// Refresh moves the time of the signatures on if they are old, and reports whether
// they were.
func (r *KeyRing) Refresh(now time.Time) bool {
	if r.Signed.IsZero() || now.Sub(r.Signed) < signaturesAnew {
		return false
	}
	return r.refresh(now)
}

func (r *KeyRing) refresh(now time.Time) bool {
	before := r.Signed
	if at := now.UTC().Truncate(time.Second); at.After(before) { // or the clock stepped back
		r.Signed = at
	}
	return r.Signed != before
}
