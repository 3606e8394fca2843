package document

import (
	"encoding/base64"
	"math"
	"strconv"
	"time"

	"github.com/stele-id/stele"
)

// AppendRecord appends a record in JSON to b, as [DecodeRecord] reads it:
// one object on one line. The same record gives the same bytes.
func AppendRecord(b []byte, r *stele.Record) []byte {
	w := jsonWriter{b: b}
	w.record(r)
	return w.b
}

func (w *jsonWriter) record(r *stele.Record) {
	w.open('{')
	w.name("id")
	w.string(r.ID.String())
	w.text("spelling", r.Spelling)
	w.content(r)
	w.number("version", r.Version, 0)
	w.time("created", r.Created)
	w.time("modified", r.Modified)
	w.text("by", r.By)
	w.flag("redacted", r.Redacted)
	w.number("import", r.Import, 0)
	w.withheld(&r.Withheld)
	w.close('}')
}

// content writes what people say of a record.
func (w *jsonWriter) content(r *stele.Record) {
	if len(r.Aliases) > 0 {
		w.name("aliases")
		w.open('[')
		for _, alias := range r.Aliases {
			w.comma()
			w.string(alias.String())
		}
		w.close(']')
	}
	if r.State != stele.Active {
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
}

func (w *jsonWriter) tombstone(t *stele.Tombstone) {
	if t == nil {
		return
	}
	w.name("tombstone")
	w.open('{')
	w.text("reason", t.Reason)
	w.time("at", t.At)
	w.text("replacement", t.Replacement.String())
	w.close('}')
}

func (w *jsonWriter) targets(list []stele.Target) {
	if len(list) == 0 {
		return
	}
	w.name("targets")
	w.open('[')
	for i := range list {
		t := &list[i]
		w.comma()
		w.open('{')
		if t.Service != stele.N2L {
			w.name("service")
			w.string(string(t.Service))
		}
		w.text("url", t.URL)
		w.text("type", t.Type)
		w.text("language", t.Language)
		w.number("order", uint64(t.Order), stele.DefaultOrder)
		w.number("preference", uint64(t.Preference), stele.DefaultPreference)
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

func (w *jsonWriter) metadata(m stele.Metadata) {
	if len(m) == 0 {
		return
	}
	w.name("metadata")
	w.open('{')
	for _, key := range m.Keys() {
		w.comma()
		w.string(key)
		w.b = append(w.b, ':')
		w.string(m[key])
	}
	w.close('}')
}

func (w *jsonWriter) persistence(p stele.Persistence) {
	if p == (stele.Persistence{}) {
		return
	}
	w.name("persistence")
	w.open('{')
	w.text("level", string(p.Level))
	w.text("until", p.Until)
	w.text("statement", p.Statement)
	w.close('}')
}

func (w *jsonWriter) values(list []stele.HandleValue) {
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

func (w *jsonWriter) value(v *stele.HandleValue) {
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
	if v.Permissions != stele.DefaultPermissions {
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

func (w *jsonWriter) permissions(set stele.Permission) {
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
