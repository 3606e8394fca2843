package stele

import (
	"encoding/binary"
	"iter"
	"slices"
	"strings"
)

// ZoneState is what a store keeps about a zone of the DNS: where its serial begins, and
// which change touched it last. It stays when the zone is no longer published, so that a
// zone which comes back does not use a serial again for other contents.
type ZoneState struct {
	Zone  string
	Base  uint32 // what is added to Last to make the serial
	Last  uint64 // number of the last change that touched the zone
	Since uint64 // changes after this one are in the zone's index, and their serials are of this Base
	Shut  bool   // no transfers: it is not known which serial the secondaries have

	At uint64 // number of the last change of the registry when this was read; not kept
}

// Serial returns the serial of the zone (RFC 1982: it is a number modulo 2^32).
func (s ZoneState) Serial() uint32 { return s.Base + uint32(s.Last) }

// Change returns the number of the change at which the zone had a serial. ok is false if
// the serial is newer than the present one, or older than what the index knows: the
// whole zone must be sent then.
func (s ZoneState) Change(serial uint32) (change uint64, ok bool) {
	distance := uint64(s.Serial() - serial)
	if distance >= 1<<31 || distance > s.Last || s.Last-distance < s.Since {
		return 0, false
	}
	return s.Last - distance, true
}

// Above returns the Base with which the serial of the zone is the one after floor.
func (s ZoneState) Above(floor uint32) (base uint32) { return floor + 1 - uint32(s.Last) }

// SerialAfter reports whether serial a is newer than serial b (RFC 1982, section 3.2).
func SerialAfter(a, b uint32) bool { return int32(a-b) > 0 }

// ZoneRaise gives a zone another Base. All transfers that begin before it are of the
// whole zone from then on.
type ZoneRaise struct {
	Zone   string
	Before uint32 // the Base that the zone must have now; 0 if the store has no state of it
	Base   uint32
	Shut   bool

	// Last is 0, except in a copy of another store: the number of the last change that
	// touched the zone there. It is not more than that of the last change of the store.
	Last uint64
}

// Touch says which zones the changes of a commit touch: in which the contents of the
// zone may differ after the commit. The caller finds that out from the namespaces that it
// knows, and the store makes sure that these are the present ones.
type Touch struct {
	// Record returns the zones that a new version of a record touches: those of its
	// names. It is called by several goroutines at once.
	Record func(r *Record) []string

	// Namespaces are the zones that the namespaces of the commit touch.
	Namespaces []string

	// NamespaceVersions is the sum of the versions of all namespaces that the caller knows. If the
	// store has another sum, a commit with namespaces is refused as a Conflict, and the
	// records of another one touch every zone. If it is below the number in the cell
	// [NamespaceFence], records are refused as a Conflict with [ErrFenced].
	NamespaceVersions uint64
}

// NamespaceFence is the name of a cell. It has the sum of the versions of all namespaces at the last change of one after which
// no record may be written that was judged by the namespaces before it: eight bytes, the highest first. A store
// refuses such records, so that nothing enters a namespace after it was sealed, not even by a server that
// does not know yet. Without the cell, or with another length, nothing is refused for this reason.
const NamespaceFence = "namespaces fence"

// ErrFenced says that records were judged by namespaces that have been sealed since; see [NamespaceFence].
var ErrFenced = Messagef("commit.namespaces-sealed", "a namespace was sealed meanwhile; read the namespaces again, and try again")

// IsFenced reports whether a store that has this value of the cell [NamespaceFence] refuses records that were judged by namespaces
// with this sum of versions.
func IsFenced(cell []byte, namespaceVersions uint64) bool {
	return len(cell) == 8 && namespaceVersions < binary.BigEndian.Uint64(cell)
}

// EveryZone is the name under which changes are kept that touch every zone, since it is
// not known which.
const EveryZone = ""

// MaxZoneName is how many bytes the name of a zone has at most.
const MaxZoneName = 255

// ZoneRun is changes without others in between that touch a zone.
type ZoneRun struct{ First, Last uint64 }

// ZoneRuns collects the runs of a commit, by zone.
type ZoneRuns map[string][]ZoneRun

// Add notes that a change touches a zone. Numbers come in order.
func (z ZoneRuns) Add(zone string, change uint64) {
	list := z[zone]
	if n := len(list); n > 0 && list[n-1].Last+1 >= change {
		list[n-1].Last = change
		return
	}
	z[zone] = append(list, ZoneRun{change, change})
}

// AddCommit notes what the changes of a commit touch. The number of the first is given.
// records has the zones of each record, in their order; namespaces those of all
// namespaces, of which there are n. With every, all changes touch every zone.
func (z ZoneRuns) AddCommit(first uint64, records [][]string, namespaces []string, n int, every bool) {
	for i, zones := range records {
		if every {
			zones = everyZone
		}
		for _, zone := range zones {
			z.Add(zone, first+uint64(i))
		}
	}
	if every {
		namespaces = everyZone
	}
	first += uint64(len(records))
	for i := range uint64(n) {
		for _, zone := range namespaces {
			z.Add(zone, first+i)
		}
	}
}

var everyZone = []string{EveryZone}

// RecordZones returns the zones that each record of a commit touches; nil if Touch says
// nothing of records.
func (t *Touch) RecordZones(records []*Record) [][]string {
	list := make([][]string, len(records))
	if t == nil || t.Record == nil {
		return list
	}
	for i, r := range records {
		if r != nil {
			list[i] = t.Record(r)
		}
	}
	return list
}

// MergeZoneRuns yields the runs of two lists that are in order and have no change in
// common, in order.
func MergeZoneRuns(a, b iter.Seq2[ZoneRun, error]) iter.Seq2[ZoneRun, error] {
	return func(yield func(ZoneRun, error) bool) {
		nextA, stopA := iter.Pull2(a)
		defer stopA()
		nextB, stopB := iter.Pull2(b)
		defer stopB()
		x, errX, okX := nextA()
		y, errY, okY := nextB()
		for okX || okY {
			if okX && (!okY || errX != nil || errY == nil && x.First < y.First) {
				if !yield(x, errX) || errX != nil {
					return
				}
				x, errX, okX = nextA()
				continue
			}
			if !yield(y, errY) || errY != nil {
				return
			}
			y, errY, okY = nextB()
		}
	}
}

// checkZones refuses zones of a commit that can't be kept.
func (c *Commit) checkZones() error {
	if c.Touch != nil {
		if err := CheckZoneNames(c.Touch.Namespaces); err != nil {
			return err
		}
	}
	for i, z := range c.Zones {
		if err := CheckZoneNames([]string{z.Zone}); err != nil {
			return err
		}
		if slices.ContainsFunc(c.Zones[:i], func(other ZoneRaise) bool { return other.Zone == z.Zone }) {
			return unfit(ID{}, "commit.zone-twice", `the zone "{zone}" is in the commit twice; commit its last state`, z.Zone)
		}
	}
	return nil
}

// CheckZoneNames returns an error of kind Invalid if one of the names can't be kept as
// that of a zone.
func CheckZoneNames(names []string) error {
	for _, name := range names {
		if name == EveryZone || len(name) > MaxZoneName || strings.IndexByte(name, 0) >= 0 {
			return unfit(ID{}, "zone.name-unkeepable", `"{name}" can't be the name of a zone; it has 1 to {most} bytes and no zero byte`, name, MaxZoneName)
		}
	}
	return nil
}
