package document

import "github.com/stele-id/stele"

// The JSON form.
const (
	withheldFields  = "redacted erased disavowed"
	disavowalFields = "first last reason at by"
)

func (d *document) withheld() (w stele.Withheld) {
	d.object(withheldFields, func(name string) bool {
		switch name {
		case "redacted":
			w.Redacted = d.number(1<<64 - 1)
		case "erased":
			w.Erased = d.number(1<<64 - 1)
		case "disavowed":
			d.array(stele.MaxDisavowals, func(int) { w.Disavowed = append(w.Disavowed, d.disavowal()) })
		default:
			return false
		}
		return true
	})
	return w
}

func (d *document) disavowal() (v stele.Disavowal) {
	d.object(disavowalFields, func(name string) bool {
		switch name {
		case "first":
			v.First = d.number(1<<64 - 1)
		case "last":
			v.Last = d.number(1<<64 - 1)
		case "reason":
			v.Reason = d.text()
		case "at":
			v.At = d.time()
		case "by":
			v.By = d.text()
		default:
			return false
		}
		return true
	})
	return v
}

func (w *jsonWriter) withheld(h *stele.Withheld) {
	if h.IsZero() {
		return
	}
	w.name("withheld")
	w.open('{')
	w.number("redacted", h.Redacted, 0)
	w.number("erased", h.Erased, 0)
	if len(h.Disavowed) > 0 {
		w.name("disavowed")
		w.open('[')
		for _, d := range h.Disavowed {
			w.comma()
			w.open('{')
			w.number("first", d.First, 0)
			w.number("last", d.Last, 0)
			w.text("reason", d.Reason)
			w.time("at", d.At)
			w.text("by", d.By)
			w.close('}')
		}
		w.close(']')
	}
	w.close('}')
}
