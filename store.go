package stele

import (
	"context"
	"iter"
	"slices"
	"time"
)

// Store keeps records, namespaces and the state of minters. It is composed of small
// interfaces, so that a consumer asks only for the part it needs. The obligations are the
// same for every implementation, and package store/storetest tests them:
//
//   - What is acknowledged is durable: it survives a crash of the process and of
//     the machine. What failed with an error other than Unavailable had no effect.
//   - Commits are linearizable, and a read sees every commit acknowledged before
//     it began.
//   - Nothing is deleted. Names are never detached from their record and never
//     given to another one.
//   - Names and bodies are bytes: there is no collation, and order is that of
//     bytes.
//
// A Store is used by many goroutines at once. Iterators that it returns see one
// state of the store, hold what they need until they end, and are to be used by
// one goroutine. All methods end early, with the context's error, when the context
// ends.
//
// Errors are of the kinds named in each comment, Unavailable where trying again
// may help (the store can't write at present, or does not know whether it did),
// and Internal for damage, which is named.
type Store interface {
	Records
	Versions
	Namespaces
	Changes
	Zones
	Minters
	Cells
	AuditStore
	Writer
	Upkeep

	// Close ends the store's use. Commits under way are finished first.
	Close() error
}

// Records reads the current versions of records. See [Store] for the obligations of all its
// parts.
type Records interface {
	// Record returns the record that has this name, as its identifier or as an
	// alias. NotFound if there is none.
	Record(ctx context.Context, name ID) (*Record, error)

	// Longest returns the record that has the longest registered prefix of a name, as an
	// identifier or an alias, and that prefix. It is shorter than the name, and one at
	// which cuts says that the name may be cut ([Scheme.Cuts]). NotFound if there is
	// none. It asks its engine a few times, however long the name is and however many
	// prefixes it has: [LongestPrefix] says how.
	Longest(ctx context.Context, name ID, cuts func(n int) bool) (*Record, Prefix, error)

	// First returns the record that the first of the candidates names, as an
	// identifier or an alias, and that candidate: it finds out with one call whether some
	// of several names is taken. NotFound if none is registered.
	First(ctx context.Context, candidates iter.Seq[Prefix]) (*Record, Prefix, error)

	// Scan yields the records of a scheme whose identifiers begin with prefix and
	// come after the given text, in order of their texts. Aliases are not scanned.
	Scan(ctx context.Context, scheme, prefix, after string) iter.Seq2[*Record, error]

	// Pointing yields the identifiers of records, in their current version and
	// whatever their state, that have a target at the location and that come after
	// the given one, in order.
	Pointing(ctx context.Context, at Location, after ID) iter.Seq2[ID, error]
}

// Versions reads earlier versions of records.
type Versions interface {
	// History yields all versions of the record with this identifier, the newest
	// first. It yields none for an unknown one, or for an alias.
	History(ctx context.Context, id ID) iter.Seq2[*Record, error]

	// HistoryBefore is History without the versions from the given one on. It does not
	// read those, so that a long history can be read in parts.
	HistoryBefore(ctx context.Context, id ID, version uint64) iter.Seq2[*Record, error]

	// Version returns one version of the record with this identifier. Its cost does not
	// depend on how many versions there are. NotFound if there is no such version, or if
	// no record has this identifier; an alias is not one.
	Version(ctx context.Context, id ID, version uint64) (*Record, error)

	// VersionAt returns the version that was current at a time: the present one if its
	// Modified is not after it, and otherwise the superseded version with the latest
	// Modified that is not after it, of several the newest. Its cost does not depend on
	// how many versions there are. NotFound if there is none, as in Version.
	VersionAt(ctx context.Context, id ID, at time.Time) (*Record, error)

	// Withholding yields the identifiers of the records whose current version withholds
	// something of earlier ones, in order; see [Withheld].
	Withholding(ctx context.Context) iter.Seq2[ID, error]
}

// Namespaces reads namespaces.
type Namespaces interface {
	// Namespace returns a namespace. NotFound if there is none.
	Namespace(ctx context.Context, key NamespaceKey) (*Namespace, error)

	// Namespaces yields all namespaces, by scheme and then by prefix.
	Namespaces(ctx context.Context) iter.Seq2[*Namespace, error]

	// NamespaceHistory yields all versions of a namespace that are kept, the newest
	// first; none for an unknown one. A registry that an earlier program made has those
	// since it was upgraded.
	NamespaceHistory(ctx context.Context, key NamespaceKey) iter.Seq2[*Namespace, error]

	// Count returns how many records count for a namespace; see [Commit].
	Count(ctx context.Context, key NamespaceKey) (uint64, error)
}

// Changes reads the feed of changes, and where it stands.
type Changes interface {
	// Changes yields what was committed after the change with number after, in
	// order. Numbers begin with 1 and have no gaps.
	Changes(ctx context.Context, after uint64) iter.Seq2[Change, error]

	// LastChange returns the number of the last change; 0 if there is none.
	LastChange(ctx context.Context) (uint64, error)

	// Position returns the number of the last change and the present generation, as
	// they are at one moment.
	Position(ctx context.Context) (Position, error)

	// Generations returns the generations of the registry, the oldest first. A new
	// store has one, with the number 1 and a random identifier. A backup has the same
	// list as the store that it was made of.
	Generations(ctx context.Context) (Generations, error)
}

// Zones reads what is kept about the zones of the DNS.
type Zones interface {
	// ZoneState returns what is kept about a zone, with the changes that touched every
	// zone. Of a zone about which nothing is kept, Last and Since are the number of the
	// last change.
	ZoneState(ctx context.Context, zone string) (ZoneState, error)

	// ZoneStates yields what is kept about zones, by name.
	ZoneStates(ctx context.Context) iter.Seq2[ZoneState, error]

	// ZoneChanges yields the changes that touched a zone, or every zone, after the change
	// with number after, in order. Its cost does not grow with the changes of other zones.
	// What happened before the Since of the zone may be missing.
	ZoneChanges(ctx context.Context, zone string, after uint64) iter.Seq2[Change, error]
}

// Minters reads the states of minters.
type Minters interface {
	// MinterState returns what the last commit kept for a minter; nil if nothing
	// was.
	MinterState(ctx context.Context, name string) ([]byte, error)

	// MinterStates yields the names and states of all minters, by name. The state is
	// in After; Before is nil.
	MinterStates(ctx context.Context) iter.Seq2[MinterState, error]
}

// Cells reads cells.
type Cells interface {
	// Cell returns what is kept under a name; nil if nothing is.
	Cell(ctx context.Context, name string) ([]byte, error)

	// Cells yields the cells whose names begin with prefix and come after the given
	// name, in order of their names.
	Cells(ctx context.Context, prefix, after string) iter.Seq2[Cell, error]
}

// Writer commits.
type Writer interface {
	// Apply makes a commit: all of it or nothing. It returns once that is durable.
	// Conflict if a condition of the commit does not hold, Exhausted if a quota is
	// used up, Invalid if the commit breaks a rule that holds always.
	Apply(ctx context.Context, c *Commit) error

	// Ingest adds many new records, as fast as the store can. Each is the first
	// version of its record. They are committed together, with the state of one
	// minter if given: those whose error in the returned list is nil, and none if
	// the second result is an error. The list has an error for each record, in
	// their order: Conflict if one of its names is taken, by a record in the store
	// or by one before it in the list that is committed; Exhausted if its quota is
	// used up; Invalid if it is not a first version. touch says which zones they touch, as in
	// a [Commit].
	//
	// The entries are models for the audit trail. In the same commit each is appended once
	// for every namespace for which committed records count, in order of their keys, with that
	// Namespace and with how many they are as Count. Nothing is appended if no record is
	// committed. They have no number.
	Ingest(ctx context.Context, records []*Record, count NamespaceCounter, touch *Touch, state *MinterState, entries ...*AuditEntry) ([]error, error)
}

// Upkeep is what administrators do with a store as a whole.
type Upkeep interface {
	// Ready returns nil if the store can write, and otherwise an error that says
	// why not and what will happen. That of a sealed store is the Conflict that a
	// commit would be refused with.
	Ready(ctx context.Context) error

	// Seal ends all writes: Apply and Ingest are refused from then on, with a Conflict
	// that is ErrSealed and has the reason in its text. It returns once that is durable and no
	// write is under way any more, so that what is read afterwards stays as it is. An empty
	// reason removes the seal, another one replaces the former. Invalid if the reason has more
	// than MaxSeal bytes.
	Seal(ctx context.Context, reason string) error

	// Sealed returns the reason of the seal; "" if there is none.
	Sealed(ctx context.Context) (string, error)

	// Purge removes from the store's files what commits have erased: the content of
	// erased versions, of the version that was current before, where they led, and former
	// values of cells, which may have been about them. It
	// returns once no file of the store holds it. Copies that others keep (backups, a
	// database's log and its archive) are not the store's. It may take as long as
	// rewriting the whole store, and writes or reads may have to wait meanwhile.
	// Iterators under way may end with Unavailable.
	Purge(ctx context.Context) error

	// Backup writes a copy of the store's present state, consistent in itself, to
	// a new folder. Writes continue meanwhile. The backup of a sealed store is sealed.
	Backup(ctx context.Context, folder string) error

	// Verify checks every invariant of what is kept and calls report for each that
	// is broken. Its error says that it could not finish.
	Verify(ctx context.Context, report func(problem *Message)) error

	// SetGenerations replaces the list whose last generation is present by another one.
	// Only two callers may do so: a restore, which appends a generation, and a copy of a
	// store, which takes over the list of the store that is copied. It returns once that
	// is durable. Conflict if present is not the last generation, or the store is sealed
	// (ErrSealed); Invalid if the list is not one that a registry can have.
	SetGenerations(ctx context.Context, present GenerationID, list Generations) error
}

// Replicated is a Store whose reads may come from a replica. It is optional: without it
// every read sees all commits that were acknowledged before it began.
type Replicated interface {
	// Lagging reports whether what is read at present may be older than what was read
	// before, because it comes from a replica, and since when. If yes is false, since is
	// when that began last, or zero if it never was. A reader that gets the same answer
	// before and after a read, with yes false, has read the current state. Lagging does not
	// wait for the database.
	Lagging() (since time.Time, yes bool)
}

// Shared is a Store that several processes write to at the same time. It is optional: a
// store without it has one writer.
type Shared interface {
	// Applied returns the number of the newest change that this process has committed; 0 if
	// there is none. A commit is in it before Apply or Ingest returns.
	Applied() uint64

	// Rewind says that a restored registry replaced the one that this process wrote to: from
	// then on Applied returns at most last, the number of its last change.
	Rewind(last uint64)
}

// Gatherer is a Store that reads many records at once faster than one by one. It is optional.
type Gatherer interface {
	// Gather returns the records that have these names, in the order of the names, and nil for a
	// name that is not registered. It is fastest if the names are in the order of
	// [ID.Compare].
	Gather(ctx context.Context, names []ID) ([]*Record, error)
}

// CellGatherer is a Store that reads many cells at once faster than one by one. It is optional.
type CellGatherer interface {
	// GatherCells returns what is kept under these names, in the order of the names, and nil for a
	// name under which nothing is. It is fastest if the names are in order.
	GatherCells(ctx context.Context, names []string) ([][]byte, error)
}

// CellCutter is a Store that reads a part of what is kept under a name without the rest. It is optional.
type CellCutter interface {
	// CutCell returns so many bytes from one on, fewer if there are no more, and how many are kept under the name; -1 if none are.
	CutCell(ctx context.Context, name string, from, count int) (part []byte, length int, err error)
}

// Releaser is a Store that keeps in memory what it has read from its files. It is optional.
type Releaser interface {
	// Release releases most of that memory if it is worth it, and returns how many bytes were
	// released. It is called when the process is at rest: what is read next is read from the
	// files. It works after Close, too, and then releases nothing.
	Release() int64
}

// Schematic is a Store whose stored form has a version. It is optional: a store in memory
// has none.
type Schematic interface {
	// SchemaVersion returns the version of the stored form that this program writes. It is
	// the same as long as the store is open.
	SchemaVersion() uint64
}

// Commit is what Apply commits. It is not changed after it was handed over. What holds
// for it whatever a store has, Check knows. Its
// changes are numbered without others in between, in the order of Records and then
// in that of Namespaces; those of an ingest in the order of its records.
type Commit struct {
	// Records are new versions of records. A version n is committed only if the
	// store has n-1 as the current one (for 1: if none of the names is taken). The
	// names of the version before must be among those of the new one, and what it
	// withholds must be carried forward (Invalid if not; see [Record.CheckFollows]).
	// The same record must not occur twice, except a new one that comes with its history
	// ([MaxEarlier]): all its versions from the first on stand one after the other, and none
	// withholds another one. Each is a change.
	//
	// A version whose Withheld.Erased is higher than that of the version before erases:
	// with the same commit, of all versions up to that one only [Record.Entry] is left.
	Records []*Record

	// Seen are records by which the commit was judged, and which it does not write. Conflict
	// if the store has another version of one, or no record of that identifier, at the moment of
	// the commit: what is written in Cells then is of that version.
	Seen []SeenRecord

	// Counter says for which namespace each new name counts: the identifier of a new
	// record, and every alias that a version adds. Nil: they count for none.
	Counter NamespaceCounter

	// Namespaces are new versions of namespaces, under the same condition.
	Namespaces []*Namespace

	// Touch says which zones the changes of the commit touch; nil if the caller does not
	// know, and every zone counts as touched. In a Replay nil says that none is: what is
	// known about zones is copied as such; see Zones.
	Touch *Touch

	// Zones are zones that get another base, each of another zone. A commit is refused as a
	// Conflict if one has another Base by now than Before.
	Zones []ZoneRaise

	// Minters are new states of minters, each of another one. Each is committed only
	// if the store has its Before, byte for byte. After is not nil.
	Minters []MinterState

	// Cells are new values of cells, each of another one, under the same condition.
	Cells []CellChange

	// Audit are the entries that this commit appends to the audit trail, in their order. A
	// commit may have nothing else. Conflict if one has a number that is not the next one.
	Audit []*AuditEntry

	// TrimAudit removes the entries of the audit trail with numbers up to this one; 0 removes
	// none. One of Audit says so in Trimmed. Conflict if there is no entry up to that number
	// (another caller has removed them), or if there was never one of that number.
	TrimAudit uint64

	// Replay is nil, except in a commit that copies from another store. It has the
	// changes of this commit then, in their order, as the feed of the other store has
	// them: the feed gets their numbers and times, and names count as is said there,
	// without limit; Counter is not called. Conflict if the first number is not the
	// next one. Invalid if they are not the changes that the commit makes, or leave a
	// number out.
	Replay []Change
}

// SeenRecord is the version of a record that a caller has read.
type SeenRecord struct {
	ID      ID
	Version uint64
}

// NamespaceCounter says for which namespace a name counts, be it an identifier or an
// alias, and how many names may count there; no limit if 0. With the zero key the name
// counts nowhere.
type NamespaceCounter func(name ID) (key NamespaceKey, quota uint64)

// NameCount says for which namespace a name counts, and how many names may count there.
type NameCount struct {
	Namespace NamespaceKey // the zero key: the name counts nowhere
	Quota     uint64       // 0: no limit
}

// Count asks the counter about the names of a version of a record: the identifier, if the
// version is the first, and each alias, in their order. Which aliases are new only a store
// knows. A nil counter says that no name counts. The error is Invalid if a namespace can't
// be kept.
func (count NamespaceCounter) Count(r *Record) (own NameCount, aliases []NameCount, err error) {
	if count == nil {
		return own, nil, nil
	}
	if r.Version == 1 {
		own.Namespace, own.Quota = count(r.ID)
		if err := own.Namespace.Check(); err != nil {
			return own, nil, err
		}
	}
	for _, alias := range r.Aliases {
		key, quota := count(alias)
		if err := key.Check(); err != nil {
			return own, nil, err
		}
		aliases = append(aliases, NameCount{key, quota})
	}
	return own, aliases, nil
}

// MinterState is the state of one minter.
type MinterState struct {
	Name   string // "ibi sid.inpe.br/mtc-m18"
	Before []byte // what the store must have for it now; nil: nothing
	After  []byte
}

// Cell is a small value with a name, for what a registry keeps beside names and what
// they stand for: users, tokens and keys, and the answers to requests that a client may
// repeat. It alone can be removed, so nothing is kept in one that has to stay. Cells
// are not in the change feed.
type Cell struct {
	Name  string // not empty, at most MaxCellName bytes
	Value []byte // at most MaxCell bytes; may be empty
}

// CellChange gives a cell another value.
type CellChange struct {
	Name   string
	Before []byte // what the store must have for it now; nil: nothing
	After  []byte // nil: it is removed
}

// Limits on what a store keeps, in bytes.
const (
	MaxCellName = 1 << 10
	MaxCell     = 1 << 20
	MaxKeptName = 1 << 16  // of a minter, or of a namespace with its scheme
	MaxKept     = 64 << 20 // of a record in its binary form, or the state of a minter
)

// MaxEarlier is how many versions before the current one a new record may have that comes
// with its history from another registry.
const MaxEarlier = 1000

// MaxSeal is how many bytes the reason of a seal may have.
const MaxSeal = 1000

// ErrSealed is in the chain of the errors with which a sealed store refuses writes:
// unlike other conflicts it does not help to read again and to try again.
var ErrSealed = Messagef("registry.sealed", "the registry is sealed and takes no more writes")

// Change is an entry of the change feed.
type Change struct {
	Seq       uint64
	ID        ID           // of the record that changed; zero if a namespace did
	Namespace NamespaceKey // that changed; zero if a record did
	Version   uint64
	Counted   NamespaceKey // for which the identifier of a new record counts; zero if it counts for none
	At        time.Time    // kept to the microsecond at least

	// CountedAliases has the namespaces for which the aliases count that this version
	// added, in the order of the record's aliases, without those that count for none.
	CountedAliases []NamespaceKey
}

// Equal reports whether two changes are the same.
func (c Change) Equal(other Change) bool {
	return c.Seq == other.Seq && c.ID == other.ID && c.Namespace == other.Namespace && c.Version == other.Version &&
		c.Counted == other.Counted && c.At.Equal(other.At) && slices.Equal(c.CountedAliases, other.CountedAliases)
}

// EqualStored reports whether two stores have the same change. Stores keep times to the
// microsecond.
func (c Change) EqualStored(other Change) bool {
	c.At, other.At = c.At.Truncate(time.Microsecond), other.At.Truncate(time.Microsecond)
	return c.Equal(other)
}

// Location is a URL, or a host, by which records are looked up in reverse.
type Location struct {
	URL  string // exactly as in the target
	Host string // lower case, without port; used if URL is empty
}
