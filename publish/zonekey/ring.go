package zonekey

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/secret"
)

// Ring is the keys of a zone. Its methods change it in memory; Changes returns what has to
// be written to the store then.
type Ring struct {
	Zone string
	Keys []*PrivateKey // with those that were removed, by the time of publication

	// Signed is the time from which the signatures of a zone in the mode transfer are
	// valid. All of them are made anew when it moves on.
	Signed time.Time

	// Unsigning is since when the parent should no longer have DS records, so that the
	// zone can go without signatures; the zero time if it is to be signed.
	Unsigning time.Time

	// Withdrawn is when the owner first said that the parent has none; the zero time if
	// the owner has not.
	Withdrawn time.Time

	held map[string][]byte // cells as they were read, by ID
}

// ReadRing makes a ring of cells. It ignores cells of other zones. Private parts stay
// encrypted until [Ring.Open].
func ReadRing(zone string, cells []stele.Cell) (*Ring, error) {
	r := &Ring{Zone: zone, held: make(map[string][]byte)}
	for _, c := range cells {
		id, ok := strings.CutPrefix(c.Name, CellPrefix+zone+" ")
		if !ok {
			continue
		}
		r.held[id] = c.Value
		if at := map[string]*time.Time{unsigningID: &r.Unsigning, withdrawnID: &r.Withdrawn}[id]; at != nil {
			if err := json.Unmarshal(c.Value, at); err != nil {
				return nil, keyError(stele.Internal, "dnssec-key.leaving-time-unreadable", "since when {zone} has been about to go without signatures can't be read; restore it from a backup", zone)
			}
			continue
		}
		if id == signedID {
			if err := json.Unmarshal(c.Value, &r.Signed); err != nil {
				return nil, keyError(stele.Internal, "dnssec-key.refresh-unreadable", "the time of the signatures of {zone} can't be read; set it anew with 'stele zone sign {zone} --refresh'", zone)
			}
			continue
		}
		k, err := readKey(id, c.Value)
		if err != nil {
			return nil, err
		}
		r.Keys = append(r.Keys, k)
	}
	slices.SortStableFunc(r.Keys, func(a, b *PrivateKey) int { return a.created().Compare(b.created()) })
	return r, nil
}

// Load reads the ring of a zone from a store, and decrypts the private keys.
func Load(ctx context.Context, store interface {
	Cells(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error]
}, zone string, secrets *secret.Ring) (*Ring, error) {
	var cells []stele.Cell
	for c, err := range store.Cells(ctx, CellPrefix+zone+" ", "") {
		if err != nil {
			return nil, err
		}
		cells = append(cells, c)
	}
	ring, err := ReadRing(zone, cells)
	if err == nil {
		err = ring.Open(secrets)
	}
	return ring, err
}

// Changes returns what has changed since the ring was read. It calls seal for each private
// key that is not encrypted, with the name of its cell.
func (r *Ring) Changes(seal func(place string, v *secret.Value) error) (list []stele.CellChange, err error) {
	add := func(id string, v any) error {
		value, err := json.Marshal(v)
		if err != nil {
			return keyError(stele.Internal, "", "{cause}", err)
		}
		if !bytes.Equal(value, r.held[id]) {
			list = append(list, stele.CellChange{Name: CellPrefix + r.Zone + " " + id, Before: r.held[id], After: value})
		}
		return nil
	}
	for _, k := range r.Keys {
		if !k.Private.IsZero() && k.Private.Key() == "" {
			if err := seal(CellPrefix+r.Zone+" "+k.ID, &k.Private); err != nil {
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

// Open decrypts the private keys.
func (r *Ring) Open(secrets *secret.Ring) error {
	for _, k := range r.Keys {
		if err := k.Private.Open(secrets, CellPrefix+r.Zone+" "+k.ID); err != nil {
			return keyError(stele.Internal, "dnssec-key.private-key-unusable", "the private key {key} of {zone} can't be used: {cause}", k.ID, r.Zone, err)
		}
	}
	return nil
}

// Begin makes the first key of a zone, or with split the first two. They sign at once,
// since no resolver expects signatures yet. A ring that has keys keeps them as they are.
func (r *Ring) Begin(algorithm uint8, split bool, now time.Time, random io.Reader) error {
	r.refresh(now)
	r.Unsigning, r.Withdrawn = time.Time{}, time.Time{}
	if len(r.Current()) > 0 {
		return nil
	}
	roles := []Role{CSK}
	if split {
		roles = []Role{KSK, ZSK}
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
func (r *Ring) add(role Role, algorithm uint8, now time.Time, random io.Reader) (*PrivateKey, error) {
	for range 100 {
		k, err := newKey(role, algorithm, now, random)
		if err != nil {
			return nil, err
		}
		// Two keys with one tag make validators try both (RFC 4034, section 8).
		if r.held[k.ID] == nil && !slices.ContainsFunc(r.Keys, func(other *PrivateKey) bool { return other.ID == k.ID }) {
			r.Keys = append(r.Keys, k)
			return k, nil
		}
	}
	return nil, keyError(stele.Exhausted, "dnssec-key.tag-not-unique", "no key with a tag of its own could be made for {zone}; try again", r.Zone)
}

// Current returns the keys that are not removed: the zone has them, or signatures of them.
func (r *Ring) Current() (list []*PrivateKey) {
	for _, k := range r.Keys {
		if k.State() != Removed {
			list = append(list, k)
		}
	}
	return list
}

// Delegated returns the keys whose DS records the parent should have. During a roll the
// old and the new key are among them, so that a resolver may know either (RFC 6781, section
// 4.1.2, "Double-DS").
func (r *Ring) Delegated() (list []*PrivateKey) {
	for _, k := range r.Current() {
		if s := k.State(); k.Role.SignsKeys() && (s == Published || s == Active) && r.Unsigning.IsZero() {
			list = append(list, k)
		}
	}
	return list
}

// DS returns the records that the parent should have, as a master file has them: for each
// key one with a digest in SHA-256, and one in SHA-384 (RFC 6605).
func (r *Ring) DS(ttl uint32) (list []DSRecord) {
	for _, k := range r.Delegated() {
		for _, digest := range []uint8{dns.SHA256, dns.SHA384} {
			ds := k.DS(r.Zone, ttl, digest)
			text := fmt.Sprintf("%d IN DS %s", ttl, strings.TrimPrefix(ds.String(), ds.Hdr.String()))
			list = append(list, DSRecord{r.Zone, text})
		}
	}
	return list
}

// How often all signatures of a zone in the mode transfer are made anew, and for how long
// they are valid. A secondary that can't reach its primary serves a zone until the SOA
// record's expiry, and its signatures must be valid until then (RFC 6781, section 4.4.2).
const (
	refreshInterval   = 7 * 24 * time.Hour
	SignatureValidity = 30 * 24 * time.Hour
)

// Refresh moves the time of the signatures on if they are older than a week, and reports
// whether they were.
func (r *Ring) Refresh(now time.Time) bool {
	if r.Signed.IsZero() || now.Sub(r.Signed) < refreshInterval {
		return false
	}
	return r.refresh(now)
}

// refresh moves the time of the signatures on, unless the clock was set back.
func (r *Ring) refresh(now time.Time) bool {
	before := r.Signed
	if at := now.UTC().Truncate(time.Second); at.After(before) {
		r.Signed = at
	}
	return r.Signed != before
}
