package pebble

import (
	"bytes"
	"net/url"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
	"github.com/stele-id/stele/store/refusal"
)

// maxCommit is how much is committed at once. Callers have smaller limits of their own;
// this one keeps a group within what Pebble can write at once.
const maxCommit = 4 * stele.MaxKept

// entry is a version of a record as it will be kept. It is made by the goroutine of
// the caller, so that the committer only compares and copies bytes.
type entry struct {
	id      stele.ID
	version uint64
	turn    int    // its place among the records of its commit
	key     []byte // of its name
	value   []byte // what is kept under it
	aliases [][]byte
	places  [][]byte        // its keys by URL and host, in order, each once
	counted stele.NameCount // how its identifier counts, if it is new
	// aliasCounts says for each of aliases how it counts; nil if none counts.
	aliasCounts []stele.NameCount
	// countedAliases are the namespaces for which new aliases count. Those of a replay are
	// given; otherwise the committer finds out which aliases are new.
	countedAliases []stele.NamespaceKey
	replayed       bool
	zones          []string      // in an ingest: those that the record touches
	record         *stele.Record // only what it withholds is read of it
}

// arena is memory for the keys and values of many entries.
type arena struct {
	bytes []byte
	keys  [][]byte
}

const (
	arenaBytes = 1 << 20
	arenaKeys  = 1 << 13
)

// keep copies b to the arena.
func (a *arena) keep(b []byte) []byte {
	if len(b) > cap(a.bytes)-len(a.bytes) {
		if len(b) > arenaBytes/8 {
			return bytes.Clone(b)
		}
		a.bytes = make([]byte, 0, arenaBytes)
	}
	n := len(a.bytes)
	a.bytes = append(a.bytes, b...)
	return a.bytes[n:len(a.bytes):len(a.bytes)]
}

// keepList copies a list of keys, but not the keys, to the arena.
func (a *arena) keepList(list [][]byte) [][]byte {
	if len(list) > cap(a.keys)-len(a.keys) {
		if len(list) > arenaKeys/8 {
			return slices.Clone(list)
		}
		a.keys = make([][]byte, 0, arenaKeys)
	}
	n := len(a.keys)
	a.keys = append(a.keys, list...)
	return a.keys[n:len(a.keys):len(a.keys)]
}

// encoder makes entries. It is used by one goroutine.
type encoder struct {
	arena  *arena // nil to make each in memory of its own
	buffer []byte
	list   [][]byte
	places []place // of the last one that was encoded
}

func (e *encoder) keep(b []byte) []byte {
	if e.arena == nil {
		return bytes.Clone(b)
	}
	return e.arena.keep(b)
}

func (e *encoder) keepList(list [][]byte) [][]byte {
	if e.arena == nil || len(list) == 0 {
		return slices.Clone(list)
	}
	return e.arena.keepList(list)
}

// encode makes an entry of a record that was checked, or returns why it can't.
func (e *encoder) encode(r *stele.Record, count stele.NamespaceCounter) (n entry, err error) {
	n.id, n.version, n.record = r.ID, r.Version, r
	e.buffer = appendNameKey(e.buffer[:0], r.ID)
	n.key = e.keep(e.buffer)
	if e.buffer, err = binary.AppendRecord(append(e.buffer[:0], isRecord), r); err != nil {
		return n, err
	}
	if len(e.buffer) > stele.MaxKept {
		return n, refusal.RecordTooLarge(r.ID, len(e.buffer))
	}
	n.value = e.keep(e.buffer)
	e.list = e.list[:0]
	for _, alias := range r.Aliases {
		e.buffer = appendNameKey(e.buffer[:0], alias)
		e.list = append(e.list, e.keep(e.buffer))
	}
	n.aliases = e.keepList(e.list)
	n.places = e.locate(r)
	n.counted, n.aliasCounts, err = count.Count(r)
	return n, err
}

// countAs counts as another change did, without limit.
func (n *entry) countAs(made *stele.Change) {
	n.counted, n.aliasCounts = stele.NameCount{Namespace: made.Counted}, nil
	n.countedAliases, n.replayed = made.CountedAliases, true
}

// place is a URL or host at which a record has a target.
type place struct {
	family byte
	text   string
}

// locate returns the keys by which a record is found in reverse, in order, each once.
func (e *encoder) locate(r *stele.Record) [][]byte {
	e.places = e.places[:0]
	for i := range r.Targets {
		target := r.Targets[i].URL
		if target == "" {
			continue
		}
		e.places = append(e.places, place{familyURL, target})
		if host := hostOf(target); host != "" {
			e.places = append(e.places, place{familyHost, host})
		}
	}
	e.list = e.list[:0]
	for _, p := range e.places {
		e.buffer = appendLocation(e.buffer[:0], p.family, p.text)
		e.buffer = append(append(append(e.buffer, r.ID.Scheme()...), 0), r.ID.String()...)
		e.list = append(e.list, e.keep(e.buffer))
	}
	slices.SortFunc(e.list, bytes.Compare)
	e.list = slices.CompactFunc(e.list, bytes.Equal)
	return e.keepList(e.list)
}

// hostOf returns the host by which a URL is looked up: in lower case, without port;
// "" if it has none or is not a URL.
func hostOf(text string) string {
	if host := plainHost(text); host != "" {
		return host
	}
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// plainHost returns what url.Parse would, for URLs like most, and "" for others:
// those with a percent sign, a port, a user, or a capital letter in front of the
// path.
func plainHost(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || scheme == "" || scheme[0] < 'a' || scheme[0] > 'z' {
		return ""
	}
	for i := range len(scheme) {
		if c := scheme[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '+' && c != '-' && c != '.' {
			return ""
		}
	}
	end := 0
	for ; end < len(rest); end++ {
		c := rest[end]
		if c == '/' || c == '?' || c == '#' {
			break
		}
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' {
			return ""
		}
	}
	for i := end; i < len(rest); i++ {
		if c := rest[i]; c < ' ' || c == 0x7f || c == '%' {
			return ""
		}
	}
	return rest[:end]
}
