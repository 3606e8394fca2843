package document

import (
	"math"

	"github.com/stele-id/stele"
)

func (d *document) handOver(h *stele.HandOver) {
	d.object("state heir address since by", func(name string) bool {
		switch name {
		case "state":
			h.State = stele.HandOverState(d.text())
		case "heir":
			h.Heir = d.text()
		case "address":
			h.Address = d.text()
		case "since":
			h.Since = d.time()
		case "by":
			h.By = d.text()
		default:
			return false
		}
		return true
	})
}

func (d *document) adoption() (a stele.Adoption) {
	d.object("from to bundle generation change until at by reading silent ended", func(name string) bool {
		switch name {
		case "from":
			a.From = d.text()
		case "to":
			a.To = d.text()
		case "bundle":
			a.Bundle = d.text()
		case "generation":
			a.Generation = d.text()
		case "change":
			a.Change = d.number(math.MaxUint64)
		case "until":
			a.Until = d.time()
		case "at":
			a.At = d.time()
		case "by":
			a.By = d.text()
		case "reading":
			a.Reading = d.bool()
		case "silent":
			a.Silent = d.bool()
		case "ended":
			a.Ended = d.time()
		default:
			return false
		}
		return true
	})
	return a
}

func (d *document) heir() (h stele.Heir) {
	d.object("registry address days", func(name string) bool {
		switch name {
		case "registry":
			h.Registry = d.text()
		case "address":
			h.Address = d.text()
		case "days":
			h.Days = int(d.number(math.MaxInt32))
		default:
			return false
		}
		return true
	})
	return h
}

func (w *jsonWriter) heirs(list []stele.Heir) {
	if len(list) == 0 {
		return
	}
	w.name("heirs")
	w.open('[')
	for i := range list {
		w.comma()
		w.open('{')
		w.text("registry", list[i].Registry)
		w.text("address", list[i].Address)
		w.number("days", uint64(list[i].Days), 0)
		w.close('}')
	}
	w.close(']')
}

// handOver writes how far a namespace is handed over, and from which registries it was adopted.
func (w *jsonWriter) handOver(n *stele.Namespace) {
	if h := &n.HandOver; *h != (stele.HandOver{}) {
		w.name("handOver")
		w.open('{')
		w.text("state", string(h.State))
		w.text("heir", h.Heir)
		w.text("address", h.Address)
		w.time("since", h.Since)
		w.text("by", h.By)
		w.close('}')
	}
	if len(n.Adoptions) == 0 {
		return
	}
	w.name("adoptions")
	w.open('[')
	for i := range n.Adoptions {
		a := &n.Adoptions[i]
		w.comma()
		w.open('{')
		w.text("from", a.From)
		w.text("to", a.To)
		w.text("bundle", a.Bundle)
		w.text("generation", a.Generation)
		w.number("change", a.Change, 0)
		w.time("until", a.Until)
		w.time("at", a.At)
		w.text("by", a.By)
		w.flag("reading", a.Reading)
		w.flag("silent", a.Silent)
		w.time("ended", a.Ended)
		w.close('}')
	}
	w.close(']')
}
