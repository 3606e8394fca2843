// Package refusal makes the errors by which every store refuses what its contract does not
// allow ([stele.Store]). A client that tells errors apart by their codes needs the same code
// from every store; store/storetest checks that.
package refusal

import (
	"time"

	"github.com/stele-id/stele"
)

// of makes an error.
func of(op string, id stele.ID, kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: op, ID: id, Kind: kind, Err: stele.Messagef(code, text, args...)}
}

// Closed says that the store was closed.
func Closed(op string) error {
	return of(op, stele.ID{}, stele.Unavailable, "store.closed", "the store is closed; open it again")
}

// Sealed says that the store is sealed, and why ([stele.ErrSealed]).
func Sealed(op, reason string) error {
	return of(op, stele.ID{}, stele.Conflict, "", "{cause}: {reason}", stele.ErrSealed, reason)
}

// SealReasonTooLong says that the reason for a seal has more than [stele.MaxSeal] bytes.
func SealReasonTooLong(op string, size int) error {
	return of(op, stele.ID{}, stele.Invalid, "store.seal-reason-too-long", "the reason has {size} bytes; at most {most} are kept", size, stele.MaxSeal)
}

// NotRegistered says that no record has the name.
func NotRegistered(name stele.ID) error {
	return of("get", name, stele.NotFound, "record.not-registered", "nothing is registered under this name")
}

// NoPartRegistered says that no record has a part of the name.
func NoPartRegistered(name stele.ID) error {
	return of("get", name, stele.NotFound, "record.no-part-registered", "no part of the name is registered")
}

// NeitherRegistered says that no record has the name or a part of it.
func NeitherRegistered() error {
	return of("get", stele.ID{}, stele.NotFound, "record.neither-name-nor-part-registered", "neither the name nor a part of it is registered")
}

// IdentifierUnknown says that no record has the identifier; an alias is not one.
func IdentifierUnknown(op string, id stele.ID) error {
	return of(op, id, stele.NotFound, "record.identifier-unknown", "no record has this identifier")
}

// VersionMissing says that the record has no such version; its versions are 1 to last.
func VersionMissing(op string, id stele.ID, version, last uint64) error {
	return of(op, id, stele.NotFound, "record.version-missing", "it has no version {version}; its versions are 1 to {last}", version, last)
}

// NoVersionSoEarly says that the record was made after the time.
func NoVersionSoEarly(op string, id stele.ID, at time.Time) error {
	return of(op, id, stele.NotFound, "record.no-version-so-early", "it has no version of {time} or before", at.UTC().Format(time.RFC3339))
}

// NamespaceMissing says that there is no such namespace.
func NamespaceMissing(namespace stele.NamespaceKey) error {
	return of("get namespace", stele.ID{}, stele.NotFound, "store.namespace-missing", `there is no namespace "{namespace}"; add it first`, namespace)
}

// AliasMissing says that a new version of the record lacks an alias of the version before.
func AliasMissing(id stele.ID, alias string) error {
	return of("commit", id, stele.Invalid, "commit.alias-missing", `the alias "{alias}" is missing; a name stays with its record for ever`, alias)
}

// NameTaken says that another record has a name of the record.
func NameTaken(id stele.ID, name, owner string) error {
	return of("commit", id, stele.Conflict, "commit.name-taken", `the name "{name}" is taken by "{owner}"; no name is ever given away`, name, owner)
}

// VersionDiffers says that the version is not the one after the stored version.
func VersionDiffers(op string, id stele.ID, version, stored uint64) error {
	return of(op, id, stele.Conflict, "commit.version-differs", "version {version} was to be committed, but the store has version {stored}; read it again", version, stored)
}

// SeenDiffers says that a record which the caller has read has another version by now; 0 if there is none.
func SeenDiffers(id stele.ID, seen, stored uint64) error {
	return of("commit", id, stele.Conflict, "commit.seen-differs", "the commit was judged by version {version}, but the store has version {stored}; read it again", seen, stored)
}

// NamespaceVersionDiffers is [VersionDiffers] for a namespace.
func NamespaceVersionDiffers(namespace stele.NamespaceKey, version, stored uint64) error {
	return of("commit", stele.ID{}, stele.Conflict, "commit.namespace-version-differs", `version {version} of namespace "{namespace}" was to be committed, but the store has version {stored}; read it again`, version, namespace, stored)
}

// NamespaceChanged says that a namespace changed after the caller read the namespaces.
func NamespaceChanged() error {
	return of("commit", stele.ID{}, stele.Conflict, "commit.namespace-changed-meanwhile", "a namespace has changed meanwhile; read the namespaces again")
}

// Fenced says that records were judged before a namespace was sealed ([stele.NamespaceFence]).
func Fenced(op string) error {
	return &stele.Error{Op: op, Kind: stele.Conflict, Err: stele.ErrFenced}
}

// QuotaReached says that the namespace has as many names as it may.
func QuotaReached(id stele.ID, namespace stele.NamespaceKey, quota uint64) error {
	return of("commit", id, stele.Exhausted, "quota.reached", `namespace "{namespace}" has its quota of {quota} names; ask for a greater one`, namespace, quota)
}

// MinterChanged says that the minter's state is not what the caller read.
func MinterChanged(minter string) error {
	return of("commit", stele.ID{}, stele.Conflict, "commit.minter-state-changed", `minter "{minter}" has another state by now; read it again`, minter)
}

// CellChanged says that the cell's value is not what the caller read.
func CellChanged(cell string) error {
	return of("commit", stele.ID{}, stele.Conflict, "store.cell-changed", `cell "{cell}" has another value by now; read it again`, cell)
}

// RecordTooLarge says that a record has more than [stele.MaxKept] bytes.
func RecordTooLarge(id stele.ID, size int) error {
	return of("commit", id, stele.Invalid, "record.too-large-to-keep", "the record has {size} bytes; at most {most} are kept", size, stele.MaxKept)
}

// CommitTooLarge says that a commit has more bytes than the store commits at once.
func CommitTooLarge(size, most int) error {
	return of("commit", stele.ID{}, stele.Invalid, "commit.too-large", "the commit has {size} bytes; at most {most} are committed at once", size, most)
}

// ReplayOutOfOrder says that the replayed change is not the one after the store's last.
func ReplayOutOfOrder(change, changes uint64) error {
	return of("commit", stele.ID{}, stele.Conflict, "commit.replay-out-of-order", "change {change} was to be replayed, but the store has {changes} changes; go on from there", change, changes)
}

// GenerationDiffers says that the present generation is not what the caller read.
func GenerationDiffers(op string, present, expected any) error {
	return of(op, stele.ID{}, stele.Conflict, "store.generation-differs", "the present generation is {generation}, not {expected}; read it again", present, expected)
}

// AuditTrim says that the audit trail, which has the entries first to last, can't be trimmed
// up to an entry.
func AuditTrim(trim, first, last uint64) error {
	return of("commit", stele.ID{}, stele.Conflict, "audit.trim-out-of-range", "the audit trail was to be trimmed up to entry {trim}, and has those from {first} to {last}; read it again", trim, first, last)
}

// AuditOrder says that the number is not the one after the last entry of the audit trail.
func AuditOrder(number, last uint64) error {
	return of("commit", stele.ID{}, stele.Conflict, "audit.entry-out-of-order", "entry {number} was to be added to the audit trail, which has {last}; go on from there", number, last)
}

// ZoneBase says that the zone's base is not what the caller read.
func ZoneBase(zone string, base, expected uint32) error {
	return of("commit", stele.ID{}, stele.Conflict, "commit.zone-base-differs", "the zone {zone} has the base {base} by now, not {expected}; read it again", zone, base, expected)
}

// ZoneChange says that a zone's last change can't be one that the store does not have yet.
func ZoneChange(zone string, change, changes uint64) error {
	return of("commit", stele.ID{}, stele.Invalid, "commit.zone-change-not-last", "change {change} was to be the last of the zone {zone}, but the store has {changes} changes", change, zone, changes)
}
