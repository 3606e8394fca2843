package stele

import (
	"encoding/base64"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// jsonWriter writes a document: compact, in a fixed order, in UTF-8. What reading
// gives back by itself is left out.
type jsonWriter struct {
	b []byte
}

// open begins an object or a list.
func (w *jsonWriter) open(c byte) { w.b = append(w.b, c) }

// close ends an object or a list, and begins no other.
func (w *jsonWriter) close(c byte) { w.b = append(w.b, c) }

// comma separates from what stands before, unless that is an opening.
func (w *jsonWriter) comma() {
	if n := len(w.b); n > 0 && w.b[n-1] != '{' && w.b[n-1] != '[' {
		w.b = append(w.b, ',')
	}
}

// name begins a member. Names of fields have nothing to escape.
func (w *jsonWriter) name(name string) {
	w.comma()
	w.b = append(w.b, '"')
	w.b = append(w.b, name...)
	w.b = append(w.b, '"', ':')
}

// text writes a member that is a string, unless it is empty.
func (w *jsonWriter) text(name, value string) {
	if value != "" {
		w.name(name)
		w.string(value)
	}
}

// number writes a member that is a number, unless it is what reading gives back.
func (w *jsonWriter) number(name string, value, missing uint64) {
	if value != missing {
		w.name(name)
		w.b = strconv.AppendUint(w.b, value, 10)
	}
}

// flag writes a member that is true, or nothing.
func (w *jsonWriter) flag(name string, value bool) {
	if value {
		w.name(name)
		w.b = append(w.b, "true"...)
	}
}

// time writes a member that is a time, unless it is zero.
func (w *jsonWriter) time(name string, t time.Time) {
	if !t.IsZero() {
		w.name(name)
		w.moment(t)
	}
}

func (w *jsonWriter) moment(t time.Time) {
	w.b = append(w.b, '"')
	w.b = t.UTC().AppendFormat(w.b, time.RFC3339Nano)
	w.b = append(w.b, '"')
}

// texts writes a member that is a list of strings, unless there are none.
func (w *jsonWriter) texts(name string, list []string) {
	if len(list) == 0 {
		return
	}
	w.name(name)
	w.open('[')
	for _, s := range list {
		w.comma()
		w.string(s)
	}
	w.close(']')
}

// string writes a string. Unlike encoding/json it does not escape what only
// matters in HTML. Bytes that are not UTF-8 become U+FFFD.
func (w *jsonWriter) string(s string) {
	const hex = "0123456789abcdef"
	w.b = append(w.b, '"')
	for s != "" {
		n := ordinary(s)
		if utf8.ValidString(s[:n]) {
			w.b = append(w.b, s[:n]...)
		} else {
			for _, r := range s[:n] {
				w.b = utf8.AppendRune(w.b, r)
			}
		}
		if n == len(s) {
			break
		}
		switch c := s[n]; c {
		case '"', '\\':
			w.b = append(w.b, '\\', c)
		case '\n':
			w.b = append(w.b, '\\', 'n')
		case '\t':
			w.b = append(w.b, '\\', 't')
		case '\r':
			w.b = append(w.b, '\\', 'r')
		default:
			w.b = append(w.b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
		s = s[n+1:]
	}
	w.b = append(w.b, '"')
}

// AppendJSON appends the record in JSON to b, as [Schemes.DecodeRecord] reads it:
// one object on one line. The same record gives the same bytes.
func (r *Record) AppendJSON(b []byte) []byte {
	w := jsonWriter{b}
	w.open('{')
	w.name("id")
	w.string(r.ID.text)
	w.text("spelling", r.Spelling)
	if len(r.Aliases) > 0 {
		w.name("aliases")
		w.open('[')
		for _, alias := range r.Aliases {
			w.comma()
			w.string(alias.text)
		}
		w.close(']')
	}
	if r.State != Active {
		w.name("state")
		w.string(string(r.State))
	}
	w.tombstone(r.Tombstone)
	w.targets(r.Targets)
	w.metadata(r.Metadata)
	w.persistence(r.Persistence)
	w.values(r.Values)
	w.texts("readers", r.Readers)
	w.signatures(r.Signatures)
	w.number("version", r.Version, 0)
	w.time("created", r.Created)
	w.time("modified", r.Modified)
	w.text("by", r.By)
	w.flag("redacted", r.Redacted)
	w.number("import", r.Import, 0)
	w.withheld(&r.Withheld)
	w.close('}')
	return w.b
}

// MarshalJSON returns the record in JSON; see [Record.AppendJSON]. (It has no
// inverse: reading names takes the list of schemes, see [Schemes.DecodeRecord].)
func (r *Record) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil), nil }

func (w *jsonWriter) tombstone(t *Tombstone) {
	if t == nil {
		return
	}
	w.name("tombstone")
	w.open('{')
	w.text("reason", t.Reason)
	w.time("at", t.At)
	w.text("replacement", t.Replacement.text)
	w.close('}')
}

func (w *jsonWriter) targets(list []Target) {
	if len(list) == 0 {
		return
	}
	w.name("targets")
	w.open('[')
	for i := range list {
		t := &list[i]
		w.comma()
		w.open('{')
		if t.Service != N2L {
			w.name("service")
			w.string(string(t.Service))
		}
		w.text("url", t.URL)
		w.text("type", t.Type)
		w.text("language", t.Language)
		w.number("order", uint64(t.Order), DefaultOrder)
		w.number("preference", uint64(t.Preference), DefaultPreference)
		w.number("ttl", uint64(t.TTL), 0)
		w.status(t.Status)
		w.flag("partial", t.Partial)
		w.close('}')
	}
	w.close(']')
}

func (w *jsonWriter) status(status int) {
	if status != 0 {
		w.name("status")
		w.b = strconv.AppendInt(w.b, int64(status), 10)
	}
}

func (w *jsonWriter) metadata(m Metadata) {
	if len(m) == 0 {
		return
	}
	w.name("metadata")
	w.open('{')
	for _, key := range m.keys() {
		w.comma()
		w.string(key)
		w.b = append(w.b, ':')
		w.string(m[key])
	}
	w.close('}')
}

func (w *jsonWriter) persistence(p Persistence) {
	if p == (Persistence{}) {
		return
	}
	w.name("persistence")
	w.open('{')
	w.text("level", string(p.Level))
	w.text("until", p.Until)
	w.text("statement", p.Statement)
	w.close('}')
}

func (w *jsonWriter) values(list []HandleValue) {
	if len(list) == 0 {
		return
	}
	w.name("values")
	w.open('[')
	for i := range list {
		w.comma()
		w.value(&list[i])
	}
	w.close(']')
}

func (w *jsonWriter) value(v *HandleValue) {
	w.open('{')
	w.number("index", uint64(v.Index), 0)
	w.text("type", v.Type)
	if len(v.Data) > 0 {
		w.name("data")
		w.b = append(w.b, '"')
		w.b = base64.StdEncoding.AppendEncode(w.b, v.Data)
		w.b = append(w.b, '"')
	}
	w.number("ttl", uint64(v.TTL), math.MaxUint64) // always: older readers take a missing one for 0
	w.flag("ttlAbsolute", v.TTLAbsolute)
	if v.Timestamp != 0 {
		w.name("timestamp")
		w.moment(time.Unix(int64(v.Timestamp), 0))
	}
	if v.Permissions != DefaultPermissions {
		w.permissions(v.Permissions)
	}
	if len(v.References) > 0 {
		w.name("references")
		w.open('[')
		for _, ref := range v.References {
			w.comma()
			w.open('{')
			w.text("handle", ref.Handle)
			w.number("index", uint64(ref.Index), 0)
			w.close('}')
		}
		w.close(']')
	}
	w.close('}')
}

func (w *jsonWriter) permissions(set Permission) {
	w.name("permissions")
	w.open('[')
	for i, name := range permissions {
		if set&(1<<i) != 0 {
			w.comma()
			w.string(name)
		}
	}
	w.close(']')
}
