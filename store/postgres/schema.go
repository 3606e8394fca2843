package postgres

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/stele-id/stele"
)

// All that the store keeps. The tables live in one schema of the database, stele unless
// the URL's search_path names another, so that a database can hold several registries.
//
//	table       columns                         a row is
//	-----       -------                         --------
//	registry    id, version, written, last,     the registry, and the only one (id 1): the oldest version of
//	            seal, generations, audit,       this table whose programs may use it ("readable from"), the
//	            auditat, spaces                 version that it has ("written by"), the number of the last
//	                                            change, why it is sealed (empty: it is not), the list of
//	                                            generations as text, number and time of the last entry of the
//	                                            audit trail, and the sum of the versions of all namespaces
//	names       key, full, record,              a name. An identifier has version and body, the record in
//	            version, body                   its binary form as it is now; an alias has the key of its
//	                                            record instead
//	history     key, version, body, at          a version of a record before the present one, and its time
//	                                            as stele.AppendTimeKey has it
//	withheld    key, full                       a record that withholds something of earlier versions
//	spacehistory  key, version, body            a version of a namespace before the present one
//	places      place, record, full             a record by a URL or host at which it has a target now
//	namespaces  key, full, version, body        a namespace in its binary form
//	counts      key, n                          how many names count for a namespace
//	minters     key, full, state                the state of a minter
//	cells       name, value                     a cell
//	changes     seq, at, name, space,           an entry of the change feed: which version of which record,
//	            version, counted                or namespace if space, and what its new names count for; see countedValue
//	audit       number, at, body                an entry of the audit trail in its binary form
//	zones       zone, base, last, since, shut   the state of a zone; that of the empty name touched every zone
//	zone_runs   zone, last, first               changes from first to last touched the zone
//	writers     id, done, at                    who writes, and how many transactions of it were committed;
//	                                            see outcome.go
//
// A name is "scheme 00 text", that of a namespace "scheme 00 prefix", a place "u URL" or
// "h host"; all are bytea, whose order is that of bytes. A scheme has no zero byte, so
// names of a scheme stand together, in the order of their texts, and a prefix of a text is
// a prefix of the name.
//
// An entry of an index holds 2,700 bytes at most. The key of what is longer than maxKey is
// therefore its first maxKey bytes and the SHA-256 of the whole, which stands in full; full
// is null for the others, whose keys say all. Those that begin with the same maxKey bytes
// are a run: they stand together, in an order of their own, and are sorted when they are
// read; see list.go.
//
// Identifiers and aliases share a table: one look-up finds a name, whichever it is, and two
// records can't both have it. history has superseded versions only.
//
// registry is one row, which every transaction that writes updates as the last but one thing
// it does: that numbers the changes without gaps, since no transaction has a number until
// the one before is committed or rolled back, and refuses writes after a seal.
//
// schemaVersion is the version of the tables, and readableFrom the oldest version whose
// programs may use tables of this one, to read and to write: raise it where what an older
// program does not write would be missed. Where it is lower, servers of both versions
// may use one database while they are upgraded. Versions, and what they brought:
//
//	1
//	2  the audit trail
//	3  generations, and two numbers; zones; times of versions, what is withheld, the
//	   history of namespaces. Readable from 3: an older program would restore a backup
//	   without a new generation, and would not write the others.
const (
	schemaVersion = 3
	readableFrom  = 3

	laterVersion = 3 // that brought the tables after audit
)

// numbers are the two numbers of a schema: of a program, or of a database.
type numbers struct {
	written  int64
	readable int64
}

// ours are the numbers of this program.
var ours = numbers{written: schemaVersion, readable: readableFrom}

// SchemaVersion returns the version of what is kept.
func (s *Store) SchemaVersion() uint64 { return schemaVersion }

// defaultSchema is where the tables are if the URL does not say.
const defaultSchema = "stele"

// steps make the tables, one statement a step, in order. Each may be run again. A later
// version of the table above appends its steps here.
var steps = []struct{ name, sql string }{
	{"registry", `CREATE TABLE IF NOT EXISTS registry (
		id smallint PRIMARY KEY, version bigint NOT NULL, last bigint NOT NULL, seal bytea NOT NULL)`},
	{"names", `CREATE TABLE IF NOT EXISTS names (
		key bytea PRIMARY KEY, "full" bytea, record bytea, version bigint, body bytea)`},
	{"history", `CREATE TABLE IF NOT EXISTS history (
		key bytea NOT NULL, version bigint NOT NULL, body bytea NOT NULL, PRIMARY KEY (key, version))`},
	{"places", `CREATE TABLE IF NOT EXISTS places (
		place bytea NOT NULL, record bytea NOT NULL, "full" bytea, PRIMARY KEY (place, record))`},
	{"namespaces", `CREATE TABLE IF NOT EXISTS namespaces (
		key bytea PRIMARY KEY, "full" bytea, version bigint NOT NULL, body bytea NOT NULL)`},
	{"counts", `CREATE TABLE IF NOT EXISTS counts (key bytea PRIMARY KEY, n bigint NOT NULL)`},
	{"minters", `CREATE TABLE IF NOT EXISTS minters (key bytea PRIMARY KEY, "full" bytea, state bytea NOT NULL)`},
	{"cells", `CREATE TABLE IF NOT EXISTS cells (name bytea PRIMARY KEY, value bytea NOT NULL)`},
	{"changes", `CREATE TABLE IF NOT EXISTS changes (
		seq bigint PRIMARY KEY, at timestamptz NOT NULL, name bytea NOT NULL, space boolean NOT NULL,
		version bigint NOT NULL, counted bytea)`},
	{"history, times", `ALTER TABLE history ADD COLUMN IF NOT EXISTS at bytea`},
	{"history, index of times", `CREATE INDEX IF NOT EXISTS history_at ON history (key, at, version)`},
	{"history, index of missing times", `CREATE INDEX IF NOT EXISTS history_undated ON history (key, version) WHERE at IS NULL`},
	{"withheld", `CREATE TABLE IF NOT EXISTS withheld (key bytea PRIMARY KEY, "full" bytea)`},
	{"spacehistory", `CREATE TABLE IF NOT EXISTS spacehistory (
		key bytea NOT NULL, version bigint NOT NULL, body bytea NOT NULL, PRIMARY KEY (key, version))`},
	{"writers", `CREATE TABLE IF NOT EXISTS writers (id bytea PRIMARY KEY, done bigint NOT NULL, at timestamptz NOT NULL)`},

	{"audit", `CREATE TABLE IF NOT EXISTS audit (number bigint PRIMARY KEY, at timestamptz NOT NULL, body bytea NOT NULL)`},
	{"registry: last audit entry", `ALTER TABLE registry ADD COLUMN IF NOT EXISTS audit bigint NOT NULL DEFAULT 0`},
	{"registry: time of the last audit entry", `ALTER TABLE registry ADD COLUMN IF NOT EXISTS auditat timestamptz`},
	{"zones", `CREATE TABLE IF NOT EXISTS zones (
		zone bytea PRIMARY KEY, base bigint NOT NULL, last bigint NOT NULL, since bigint NOT NULL, shut boolean NOT NULL)`},
	{"zone_runs", `CREATE TABLE IF NOT EXISTS zone_runs (
		zone bytea NOT NULL, last bigint NOT NULL, first bigint NOT NULL, PRIMARY KEY (zone, last))`},
	{"registry, for namespaces", `ALTER TABLE registry ADD COLUMN IF NOT EXISTS spaces bigint NOT NULL DEFAULT 0`},
	{"registry (written)", `ALTER TABLE registry ADD COLUMN IF NOT EXISTS written bigint`},
	{"registry (generations)", `ALTER TABLE registry ADD COLUMN IF NOT EXISTS generations bytea`},
}

// maxKey is how much of a name stands in its key.
const maxKey = 1024

// key returns the key of a name, which may be the name itself.
func key(name []byte) []byte {
	if len(name) <= maxKey {
		return name
	}
	sum := sha256.Sum256(name)
	return append(name[:maxKey:maxKey], sum[:]...)
}

// full is what stands beside the key of a name: nil if the key says all.
func full(name []byte) []byte {
	if len(name) <= maxKey {
		return nil
	}
	return name
}

// schemed is the name of something that a scheme has.
func schemed(scheme, text string) []byte {
	b := make([]byte, 0, len(scheme)+1+len(text))
	return append(append(append(b, scheme...), 0), text...)
}

func nameOf(id stele.ID) []byte { return schemed(id.Scheme(), id.String()) }

func namespaceName(k stele.NamespaceKey) []byte { return schemed(k.Scheme, k.Prefix) }

// placeOf is the place of a location. It is its own key's beginning; see key.
func placeOf(at stele.Location) []byte {
	if at.URL != "" {
		return append([]byte{'u'}, at.URL...)
	}
	return append([]byte{'h'}, at.Host...)
}

var errName = stele.Messagef("store.name-malformed", "a name is not what it can be")

// cutNamespace reads the name of a namespace.
func cutNamespace(name []byte) (stele.NamespaceKey, error) {
	scheme, text, ok := bytes.Cut(name, []byte{0})
	if !ok {
		return stele.NamespaceKey{}, errName
	}
	return stele.NamespaceKey{Scheme: string(scheme), Prefix: string(text)}, nil
}

// countedValue is what the column counted has of a change: null if no new name counts, the
// name of the namespace if only the identifier does, and otherwise a zero byte, with which no
// name begins, and the names of all namespaces, the identifier's first (empty if it does not
// count), each with its length as a uvarint before it.
func countedValue(own stele.NamespaceKey, aliases []stele.NamespaceKey) []byte {
	var name []byte
	if own != (stele.NamespaceKey{}) {
		name = namespaceName(own)
	}
	if len(aliases) == 0 {
		return name
	}
	b := append(binary.AppendUvarint([]byte{0}, uint64(len(name))), name...)
	for _, space := range aliases {
		name := namespaceName(space)
		b = append(binary.AppendUvarint(b, uint64(len(name))), name...)
	}
	return b
}

// cutCounted reads a value that countedValue made.
func cutCounted(b []byte) (own stele.NamespaceKey, aliases []stele.NamespaceKey, err error) {
	if len(b) == 0 || b[0] != 0 {
		own, err = cutNamespace(b)
		return own, nil, err
	}
	b = b[1:]
	for first := true; first || len(b) > 0; first = false {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return own, nil, errName
		}
		name := b[n : n+int(size)]
		b = b[n+int(size):]
		if first && len(name) == 0 {
			continue
		}
		space, err := cutNamespace(name)
		if err != nil || space == (stele.NamespaceKey{}) {
			return own, nil, errName
		}
		if first {
			own = space
		} else {
			aliases = append(aliases, space)
		}
	}
	return own, aliases, nil
}

// cutID reads the name of a record.
func cutID(name []byte) (stele.ID, error) {
	k, err := cutNamespace(name)
	if err != nil {
		return stele.ID{}, err
	}
	id, err := stele.NewID(k.Scheme, k.Prefix)
	if err != nil {
		return stele.ID{}, fmt.Errorf("%w: %v", errName, err)
	}
	return id, nil
}

// upper returns the first name that does not begin with prefix.
func upper(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// after returns the first name that follows name.
func after(name []byte) []byte { return append(name[:len(name):len(name)], 0) }
