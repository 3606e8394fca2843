package pebble

import (
	"bytes"
	"net/url"
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// maxRecord is the size of the largest record, in binary form. Callers have smaller
// limits of their own; this one keeps a group within what Pebble can write at once.
const maxRecord = 64 << 20

// entry is a version of a record as it will be kept. It is made by the goroutine of
// the caller, so that the committer only compares and copies bytes.
type entry struct {
	id      stele.ID
	version uint64
	turn    int    // its place among the records of its commit
	key     []byte // of its name
	value   []byte // what is kept under it
	aliases [][]byte
	places  [][]byte // its keys by URL and host, in order, each once
	counted stele.NamespaceKey
	quota   uint64
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

// encode makes an entry of a record, or says why it can be none.
func (e *encoder) encode(r *stele.Record, count stele.NamespaceCounter) (n entry, err error) {
	if err := checkRecord(r); err != nil {
		return n, err
	}
	n.id, n.version = r.ID, r.Version
	e.buffer = appendNameKey(e.buffer[:0], r.ID)
	n.key = e.keep(e.buffer)
	if e.buffer, err = r.AppendBinary(append(e.buffer[:0], isRecord)); err != nil {
		return n, err
	}
	if len(e.buffer) > maxRecord {
		return n, refuse("commit", r.ID, stele.Invalid, "the record has %d bytes; at most %d are kept", len(e.buffer), maxRecord)
	}
	n.value = e.keep(e.buffer)
	e.list = e.list[:0]
	for _, alias := range r.Aliases {
		e.buffer = appendNameKey(e.buffer[:0], alias)
		e.list = append(e.list, e.keep(e.buffer))
	}
	if n.aliases = e.keepList(e.list); repeats(n.key, n.aliases) {
		return n, refuse("commit", r.ID, stele.Invalid, "a name is there twice; leave one out")
	}
	n.places = e.locate(r)
	if count != nil && r.Version == 1 {
		n.counted, n.quota = count(r.ID)
		if err := checkSpace(n.counted); err != nil {
			return n, err
		}
	}
	return n, nil
}

// repeats reports whether a key is among the others, or one of those is there twice.
func repeats(key []byte, others [][]byte) bool {
	if len(others) < 16 {
		for i, k := range others {
			if bytes.Equal(k, key) || slices.ContainsFunc(others[:i], func(o []byte) bool { return bytes.Equal(k, o) }) {
				return true
			}
		}
		return false
	}
	seen := map[string]bool{string(key): true}
	for _, k := range others {
		if seen[string(k)] {
			return true
		}
		seen[string(k)] = true
	}
	return false
}

// checkRecord refuses what can be no version of a record.
func checkRecord(r *stele.Record) error {
	switch {
	case r == nil:
		return refuse("commit", stele.ID{}, stele.Invalid, "a record is nil; leave it out")
	case !r.ID.IsValid():
		return refuse("commit", stele.ID{}, stele.Invalid, "a record has no identifier; give it one")
	case r.Version == 0:
		return refuse("commit", r.ID, stele.Invalid, "the version is 0; the first is 1")
	}
	if err := checkName(r.ID, r.ID); err != nil {
		return err
	}
	for _, alias := range r.Aliases {
		if err := checkName(r.ID, alias); err != nil {
			return err
		}
	}
	return nil
}

// checkName refuses a name that could not be read back from its key.
func checkName(id, name stele.ID) error {
	if _, err := stele.NewID(name.Scheme(), name.String()); err != nil {
		return refuse("commit", id, stele.Invalid, "the name %.100q can't be kept: %w", name, err)
	}
	return nil
}

// checkSpace refuses the name of a namespace that can't be kept. The zero one is
// none.
func checkSpace(k stele.NamespaceKey) error {
	switch {
	case strings.IndexByte(k.Scheme, 0) >= 0:
		return refuse("commit", stele.ID{}, stele.Invalid, "the scheme %.100q of a namespace has a zero byte; name one that there is", k.Scheme)
	case len(k.Scheme)+len(k.Prefix) > maxKey:
		return refuse("commit", stele.ID{}, stele.Invalid, "the namespace %.100q has a name of more than %d bytes; shorten it", k.Prefix, maxKey)
	}
	return nil
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
// "" if it has none or is no URL.
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
