package pebble

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// All keys and values that the store keeps. Pebble orders keys by their bytes. The
// first byte is the family:
//
//	family     key                              value
//	------     ---                              -----
//	meta       01 "schema"                      uvarint: the oldest version of this table whose programs may
//	                                            use the store ("readable from")
//	           01 "written"                     uvarint: the version of this table that the store has
//	                                            ("written by"); that of "schema" if it is not there
//	           01 "generations"                 the list of generations, as text
//	           01 "seal"                        why nothing more is written; not there if it is
//	           01 "versions"                    nothing: the marks of versions are complete
//	change     02 seq                           changes up to this one; see appendChunk
//	count      03 scheme 00 prefix              uvarint: names of the namespace
//	minter     04 name                          state, as the minter gave it
//	namespace  05 scheme 00 prefix              namespace in binary form
//	cell       06 name                          value, as it was committed
//	audit      07 number                        varint, uvarint: seconds and nanoseconds of its time, and
//	                                            the entry of the audit trail in binary form
//	zone       08 01 zone                       base, last, since: uvarints; flags: a byte
//	           08 02 zone 00 seq                uvarint: changes from this one to seq touched the zone
//	spaces     09 scheme 00 [prefix] ^version   namespace in binary form, as it was
//	mark       0A 01 scheme 00 [text] ^time ^version   nothing: a version in history has this time
//	           0A 02 scheme 00 text             nothing: the record withholds earlier versions
//	name       10 scheme 00 text                01 record in binary form (its identifier), or
//	                                            02 scheme 00 text of the record (an alias)
//	history    11 scheme 00 [text] ^version     record in binary form, as it was
//	url        12 [url] scheme 00 text          nothing: the record has a target there
//	host       13 [host] scheme 00 text         nothing: the record has a target there
//
// seq, number and version are 8 bytes, the greatest first; ^version has all bits turned, so
// that the newest version comes first. [x] is x with 00 FF for each zero byte and 00
// 01 at its end: what follows can't be taken for a part of it, and order stays that
// of x. A location of more than maxLocation bytes has its first maxLocation, then 00
// 02, then the SHA-256 of the whole.
//
// A scheme has no zero byte, so names of a scheme stand together, in the order of
// their texts, and a prefix of a text is a prefix of the key. Identifiers and
// aliases share a family: one look-up finds a name, whichever it is, and two
// records can't both have it. Names that are looked up are whole keys, which is what
// Pebble's default comparer makes filters of.
//
// history has superseded versions only. The current one stands under its name, and
// nowhere else. The same holds for spaces, the history of namespaces. ^time is 12 bytes,
// those of stele.AppendTimeKey with all bits turned.
//
// A zone has a state, and runs of changes that touched it. Those of the zone with the
// empty name touched every zone.
const (
	familyMeta             = 0x01
	familyChange           = 0x02
	familyCount            = 0x03
	familyMinter           = 0x04
	familyNamespace        = 0x05
	familyCell             = 0x06
	familyAudit            = 0x07
	familyZone             = 0x08
	familyNamespaceHistory = 0x09
	familyMark             = 0x0a
	familyName             = 0x10
	familyHistory          = 0x11
	familyURL              = 0x12
	familyHost             = 0x13
)

// The second byte of the family mark.
const (
	markTime     = 0x01
	markWithheld = 0x02
)

// schemaVersion is the version of the table above, and readableFrom the oldest version
// whose programs may use a store of this one, to read and to write: raise it where what
// an older program does not write would be missed. Versions, and what they brought:
//
//	1  (the cells came later and left it at 1)
//	2  generations. Readable from 2: an older program would restore a backup without a
//	   new generation.
//	3  zones, marks of versions, the history of namespaces. Readable from 3: an older
//	   program would not write them.
const (
	schemaVersion = 3
	readableFrom  = 3
)

// What stands under a name.
const (
	isRecord = 0x01
	isAlias  = 0x02
)

// maxLocation is how much of a URL or host stands in a key.
const maxLocation = 1024

var (
	metaReadable    = []byte("\x01schema")
	metaWritten     = []byte("\x01written")
	metaSeal        = []byte("\x01seal")
	metaGenerations = []byte("\x01generations")
	metaVersions    = []byte("\x01versions")
)

// metaKeys are all keys of their family.
var metaKeys = [][]byte{metaReadable, metaWritten, metaSeal, metaGenerations, metaVersions}

func appendSchemed(b []byte, family byte, scheme, text string) []byte {
	b = append(append(b, family), scheme...)
	return append(append(b, 0), text...)
}

func appendNameKey(b []byte, id stele.ID) []byte {
	return appendSchemed(b, familyName, id.Scheme(), id.String())
}

func nameKey(id stele.ID) []byte { return appendNameKey(nil, id) }

func namespaceKey(k stele.NamespaceKey) []byte {
	return appendSchemed(nil, familyNamespace, k.Scheme, k.Prefix)
}

func countKey(k stele.NamespaceKey) []byte {
	return appendSchemed(nil, familyCount, k.Scheme, k.Prefix)
}

func minterKey(name string) []byte { return append([]byte{familyMinter}, name...) }

func cellKey(name string) []byte { return append([]byte{familyCell}, name...) }

func appendChangeKey(b []byte, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b, familyChange), seq)
}

// appendHistoryPrefix appends what the keys of all versions of a record begin with,
// and no others.
func appendHistoryPrefix(b []byte, id stele.ID) []byte {
	b = append(append(b, familyHistory), id.Scheme()...)
	return appendEnded(append(b, 0), id.String())
}

func historyKey(id stele.ID, version uint64) []byte {
	return binary.BigEndian.AppendUint64(appendHistoryPrefix(nil, id), ^version)
}

// appendLocation appends what the keys of all records with a target there begin
// with, and no others.
func appendLocation(b []byte, family byte, text string) []byte {
	b = append(b, family)
	if len(text) <= maxLocation {
		return appendEnded(b, text)
	}
	sum := sha256.Sum256([]byte(text))
	b = append(appendEscaped(b, text[:maxLocation]), 0, 2)
	return append(b, sum[:]...)
}

// appendEnded appends [text], as the table above says.
func appendEnded(b []byte, text string) []byte { return append(appendEscaped(b, text), 0, 1) }

func appendEscaped(b []byte, text string) []byte {
	for {
		n := strings.IndexByte(text, 0)
		if n < 0 {
			return append(b, text...)
		}
		b = append(append(b, text[:n]...), 0, 0xff)
		text = text[n+1:]
	}
}

// cutEnded returns what follows [text], or nil if there is no end of it.
func cutEnded(b []byte) (rest []byte) {
	for {
		n := bytes.IndexByte(b, 0)
		if n < 0 || n+1 >= len(b) {
			return nil
		}
		mark := b[n+1]
		b = b[n+2:]
		switch {
		case mark == 1:
			return b
		case mark == 2 && len(b) >= sha256.Size:
			return b[sha256.Size:]
		case mark != 0xff:
			return nil
		}
	}
}

var errKey = stele.Messagef("store.key-malformed", "a key is not what it can be")

// cutSchemed reads scheme 00 text.
func cutSchemed(b []byte) (scheme, text string, err error) {
	s, t, ok := bytes.Cut(b, []byte{0})
	if !ok {
		return "", "", errKey
	}
	return string(s), string(t), nil
}

// cutID reads scheme 00 text as an identifier.
func cutID(b []byte) (stele.ID, error) {
	scheme, text, err := cutSchemed(b)
	if err != nil {
		return stele.ID{}, err
	}
	id, err := stele.NewID(scheme, text)
	if err != nil {
		return stele.ID{}, fmt.Errorf("%w: %v", errKey, err)
	}
	return id, nil
}

// upper returns the first key that does not begin with prefix.
func upper(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// after returns the first key that follows key.
func after(key []byte) []byte { return append(key[:len(key):len(key)], 0) }

// A value of the change feed is a chunk: the changes of one group of commits, or a
// part of them, which were made at the same time. They are
//
//	seconds nanoseconds n      varint, uvarint, uvarint
//	length entry               n times; length is a uvarint
//
// and the key has the number of the last. An entry is
//
//	mark version scheme 00 text    version is a uvarint; text, or prefix, to the end
//
// with the namespace for which a new record counts after its mark. It is almost always
// one of the record's own scheme, whose prefix is where the record's identifier begins,
// so that its length says all. Before the mark there may be the namespaces for which
// the version's new aliases count.
const (
	changeOfRecord        = 0x00 // the record counts for none, or is not new
	changeOfCounted       = 0x01 // uvarint: how much of the text is the prefix
	changeOfCountedByName = 0x02 // uvarint and as many bytes: scheme 00 prefix
	changeOfNamespace     = 0x03
	changeWithAliases     = 0x04 // uvarint and as many namespaces, each uvarint and as many bytes; a mark follows
)

// maxChunk is how many changes a chunk has at most.
const maxChunk = 256

// feedEntry is an entry of the change feed, to be written or read.
type feedEntry struct{ stele.Change }

// appendChunk appends the value of n changes that were made at a time, given their
// entries with the length before each.
func appendChunk(b []byte, at time.Time, n int, entries []byte) []byte {
	b = binary.AppendVarint(b, at.Unix())
	b = binary.AppendUvarint(b, uint64(at.Nanosecond()))
	b = binary.AppendUvarint(b, uint64(n))
	return append(b, entries...)
}

// appendChange appends an entry with its length before it.
func appendChange(b []byte, e *feedEntry) []byte {
	scheme, text := e.ID.Scheme(), e.ID.String()
	mark, counted := byte(changeOfRecord), ""
	prefix := -1
	switch {
	case !e.ID.IsValid():
		scheme, text = e.Namespace.Scheme, e.Namespace.Prefix
		mark = changeOfNamespace
	case e.Counted == stele.NamespaceKey{}:
	case e.Counted.Scheme == scheme && strings.HasPrefix(text, e.Counted.Prefix):
		mark, prefix = changeOfCounted, len(e.Counted.Prefix)
	default:
		mark, counted = changeOfCountedByName, e.Counted.Scheme+"\x00"+e.Counted.Prefix
		prefix = len(counted)
	}
	size := 1 + uvarintLen(e.Version) + len(scheme) + 1 + len(text)
	if prefix >= 0 {
		size += uvarintLen(uint64(prefix)) + len(counted)
	}
	if len(e.CountedAliases) > 0 {
		list := appendNamespaces([]byte{changeWithAliases}, e.CountedAliases)
		b = append(binary.AppendUvarint(b, uint64(size+len(list))), list...)
	} else {
		b = binary.AppendUvarint(b, uint64(size))
	}
	b = append(b, mark)
	if prefix >= 0 {
		b = append(binary.AppendUvarint(b, uint64(prefix)), counted...)
	}
	b = binary.AppendUvarint(b, e.Version)
	return append(append(append(b, scheme...), 0), text...)
}

// appendNamespaces appends the number of some namespaces and each with its length before it.
func appendNamespaces(b []byte, list []stele.NamespaceKey) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, space := range list {
		b = binary.AppendUvarint(b, uint64(len(space.Scheme)+1+len(space.Prefix)))
		b = append(append(append(b, space.Scheme...), 0), space.Prefix...)
	}
	return b
}

// cutNamespaces reads what appendNamespaces wrote, and returns what follows.
func cutNamespaces(b []byte) (list []stele.NamespaceKey, rest []byte, err error) {
	n, b, err := cutUvarint(b)
	if err != nil || n == 0 || n > uint64(len(b)) {
		return nil, nil, errChange
	}
	for range n {
		size, tail, err := cutUvarint(b)
		if err != nil || size > uint64(len(tail)) {
			return nil, nil, errChange
		}
		scheme, prefix, err := cutSchemed(tail[:size])
		if err != nil {
			return nil, nil, errChange
		}
		list, b = append(list, stele.NamespaceKey{Scheme: scheme, Prefix: prefix}), tail[size:]
	}
	return list, b, nil
}

func uvarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

var errChange = stele.Messagef("feed.part-damaged", "a part of the change feed is damaged")

// parseChunk reads a key and value of the change feed.
func parseChunk(key, value []byte) (entries []feedEntry, err error) {
	err = eachChange(key, value, 0, func(e *feedEntry) bool {
		entries = append(entries, *e)
		return true
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// eachChange calls yield with the entries of a key and value of the change feed that come after a change, until it says that it has enough.
// What comes after that is not read. An entry is valid until the next one.
func eachChange(key, value []byte, after uint64, yield func(*feedEntry) bool) error {
	if len(key) != 9 {
		return errChange
	}
	last := binary.BigEndian.Uint64(key[1:])
	sec, n := binary.Varint(value)
	if n <= 0 {
		return errChange
	}
	nsec, rest, err1 := cutUvarint(value[n:])
	count, rest, err2 := cutUvarint(rest)
	if err1 != nil || err2 != nil || nsec > 999_999_999 || count == 0 || count > last || count > uint64(len(rest)) {
		return errChange
	}
	at := time.Unix(sec, int64(nsec)).UTC()
	var e feedEntry
	for seq := last - count + 1; seq != last+1; seq++ {
		size, tail, err := cutUvarint(rest)
		if err != nil || size > uint64(len(tail)) {
			return errChange
		}
		if rest = tail[size:]; seq <= after {
			continue
		}
		e = feedEntry{}
		if err := e.parse(tail[:size]); err != nil {
			return err
		}
		if e.Seq, e.At = seq, at; !yield(&e) {
			return nil
		}
	}
	if len(rest) > 0 {
		return errChange
	}
	return nil
}

// parse reads an entry without its length.
func (e *feedEntry) parse(b []byte) (err error) {
	if len(b) == 0 {
		return errChange
	}
	if b[0] == changeWithAliases {
		if e.CountedAliases, b, err = cutNamespaces(b[1:]); err != nil || len(b) == 0 || b[0] == changeOfNamespace {
			return errChange
		}
	}
	mark, rest := b[0], b[1:]
	prefix := uint64(0)
	switch mark {
	case changeOfRecord, changeOfNamespace:
	case changeOfCounted, changeOfCountedByName:
		prefix, rest, err = cutUvarint(rest)
	default:
		err = errChange
	}
	if err == nil && mark == changeOfCountedByName {
		if prefix > uint64(len(rest)) {
			return errChange
		}
		e.Counted.Scheme, e.Counted.Prefix, err = cutSchemed(rest[:prefix])
		rest = rest[prefix:]
	}
	if err != nil {
		return errChange
	}
	if e.Version, rest, err = cutUvarint(rest); err != nil {
		return errChange
	}
	if mark == changeOfNamespace {
		e.Namespace.Scheme, e.Namespace.Prefix, err = cutSchemed(rest)
		return err
	}
	if e.ID, err = cutID(rest); err != nil {
		return err
	}
	if mark == changeOfCounted {
		if prefix > uint64(len(e.ID.String())) {
			return errChange
		}
		e.Counted = stele.NamespaceKey{Scheme: e.ID.Scheme(), Prefix: e.ID.String()[:prefix]}
	}
	return nil
}

func cutUvarint(b []byte) (uint64, []byte, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, stele.Messagef("store.number-cut-off", "a number is cut off")
	}
	return v, b[n:], nil
}

// parseUvarint reads a value that is a number and nothing else.
func parseUvarint(b []byte) (uint64, error) {
	v, rest, err := cutUvarint(b)
	if err == nil && len(rest) > 0 {
		err = stele.Messagef("store.number-followed", "something follows a number")
	}
	return v, err
}

// describeKey names a key for messages.
func describeKey(key []byte) string {
	if len(key) == 0 {
		return "an empty key"
	}
	family := map[byte]string{
		familyMeta: "meta", familyChange: "change", familyCount: "count", familyMinter: "minter",
		familyNamespace: "namespace", familyCell: "cell", familyAudit: "audit", familyZone: "zone", familyNamespaceHistory: "namespace history", familyMark: "mark", familyName: "name", familyHistory: "history", familyURL: "url", familyHost: "host",
	}[key[0]]
	if family == "" {
		family = "unknown"
	}
	return fmt.Sprintf("the %s key %.200q", family, key[1:])
}
