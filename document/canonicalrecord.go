package document

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"time"

	"github.com/stele-id/stele"
)

// record writes a record. By, Import and Readers are noted as cuts.
func (w *sortedWriter) record(r *stele.Record) {
	w.open('{')
	if len(r.Aliases) > 0 {
		w.name("aliases")
		w.open('[')
		for _, alias := range r.Aliases {
			w.comma()
			w.string(alias.String())
		}
		w.close(']')
	}
	w.by(r.By)
	w.time("created", r.Created)
	w.name("id")
	w.string(r.ID.String())
	from := len(w.b)
	w.number("import", r.Import)
	w.cut(from)
	w.metadata(r.Metadata)
	w.time("modified", r.Modified)
	w.persistence(r.Persistence)
	from = len(w.b)
	w.texts("readers", r.Readers)
	w.cut(from)
	w.flag("redacted", r.Redacted)
	w.signatures(r.Signatures)
	w.text("spelling", r.Spelling)
	if r.State != stele.Active {
		w.name("state")
		w.string(string(r.State))
	}
	w.targets(r.Targets)
	w.tombstone(r.Tombstone)
	w.values(r.Values)
	w.number("version", r.Version)
	w.withheld(&r.Withheld)
	w.close('}')
}

// by writes who committed the version. The member can be the first one; the comma after it is cut then, which stands there because the
// identifier always follows.
func (w *sortedWriter) by(by string) {
	from := len(w.b)
	w.text("by", by)
	if len(w.b) > from && w.b[from] != ',' {
		w.cuts = append(w.cuts, cut{from, len(w.b) + 1})
		return
	}
	w.cut(from)
}

// cut notes what was written since a place, if that is anything.
func (w *sortedWriter) cut(from int) {
	if len(w.b) > from {
		w.cuts = append(w.cuts, cut{from, len(w.b)})
	}
}

func (w *sortedWriter) tombstone(t *stele.Tombstone) {
	if t == nil {
		return
	}
	w.name("tombstone")
	w.open('{')
	w.time("at", t.At)
	w.text("reason", t.Reason)
	w.text("replacement", t.Replacement.String())
	w.close('}')
}

func (w *sortedWriter) targets(list []stele.Target) {
	if len(list) == 0 {
		return
	}
	w.name("targets")
	w.open('[')
	for i := range list {
		t := &list[i]
		w.comma()
		w.open('{')
		w.text("language", t.Language)
		w.numberUnless("order", uint64(t.Order), stele.DefaultOrder)
		w.flag("partial", t.Partial)
		w.numberUnless("preference", uint64(t.Preference), stele.DefaultPreference)
		if t.Service != stele.N2L {
			w.name("service")
			w.string(string(t.Service))
		}
		w.status(t.Status)
		w.number("ttl", uint64(t.TTL))
		w.text("type", t.Type)
		w.text("url", t.URL)
		w.close('}')
	}
	w.close(']')
}

func (w *sortedWriter) persistence(p stele.Persistence) {
	if p == (stele.Persistence{}) {
		return
	}
	w.name("persistence")
	w.open('{')
	w.text("level", string(p.Level))
	w.text("statement", p.Statement)
	w.text("until", p.Until)
	w.close('}')
}

func (w *sortedWriter) values(list []stele.HandleValue) {
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

func (w *sortedWriter) value(v *stele.HandleValue) {
	w.open('{')
	if len(v.Data) > 0 {
		w.name("data")
		w.base64(v.Data)
	}
	w.number("index", uint64(v.Index))
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
			w.number("index", uint64(ref.Index))
			w.close('}')
		}
		w.close(']')
	}
	if v.Timestamp != 0 {
		w.name("timestamp")
		w.moment(time.Unix(int64(v.Timestamp), 0))
	}
	w.numberUnless("ttl", uint64(v.TTL), math.MaxUint64)
	w.flag("ttlAbsolute", v.TTLAbsolute)
	w.text("type", v.Type)
	w.close('}')
}

func (w *sortedWriter) base64(data []byte) {
	w.b = append(w.b, '"')
	w.b = base64.StdEncoding.AppendEncode(w.b, data)
	w.b = append(w.b, '"')
}

func (w *sortedWriter) signatures(list []stele.Signature) {
	if len(list) == 0 {
		return
	}
	w.name("signatures")
	w.open('[')
	for i := range list {
		s := &list[i]
		w.comma()
		w.open('{')
		w.time("date", s.Date)
		w.text("jws", s.JWS)
		w.text("key", s.Key)
		w.name("sha256")
		w.b = append(w.b, '"')
		w.b = hex.AppendEncode(w.b, s.SHA256[:])
		w.b = append(w.b, '"')
		w.number("size", s.Size)
		w.text("type", s.Type)
		w.close('}')
	}
	w.close(']')
}

func (w *sortedWriter) withheld(h *stele.Withheld) {
	if h.IsZero() {
		return
	}
	w.name("withheld")
	w.open('{')
	if len(h.Disavowed) > 0 {
		w.name("disavowed")
		w.open('[')
		for i := range h.Disavowed {
			d := &h.Disavowed[i]
			w.comma()
			w.open('{')
			w.time("at", d.At)
			w.text("by", d.By)
			w.number("first", d.First)
			w.number("last", d.Last)
			w.text("reason", d.Reason)
			w.close('}')
		}
		w.close(']')
	}
	w.number("erased", h.Erased)
	w.number("redacted", h.Redacted)
	w.close('}')
}
