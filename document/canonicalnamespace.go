package document

import "github.com/stele-id/stele"

func (w *sortedWriter) namespace(n *stele.Namespace) {
	w.open('{')
	w.adoptions(n.Adoptions)
	w.text("by", n.By)
	w.flag("checked", n.Checked)
	w.time("created", n.Created)
	w.text("delegate", n.Delegate)
	w.grants(n.Grants)
	w.handOver(&n.HandOver)
	w.handleService(&n.Handles)
	each(w, "heirs", n.Heirs, func(h *stele.Heir) {
		w.text("address", h.Address)
		w.number("days", uint64(h.Days))
		w.text("registry", h.Registry)
	})
	w.texts("hosts", n.Hosts)
	w.signingKeys(n.Keys)
	w.flag("listed", n.Listed)
	w.minter(&n.Minter)
	w.time("modified", n.Modified)
	w.text("owner", n.Owner)
	w.flag("passthrough", n.Passthrough)
	w.persistence(n.Persistence)
	w.text("prefix", n.Prefix)
	w.texts("protocols", n.Protocols)
	w.publication(&n.Publication)
	w.number("quota", n.Quota)
	w.flag("reviewed", n.Reviewed)
	w.rules(n.Rules)
	w.name("scheme")
	w.string(n.Scheme)
	w.status(n.Status)
	w.text("title", n.Title)
	w.number("ttl", uint64(n.TTL))
	w.number("version", n.Version)
	w.close('}')
}

func (w *sortedWriter) grants(list []stele.Grant) {
	each(w, "grants", list, func(g *stele.Grant) {
		w.name("role")
		w.string(string(g.Role))
		w.name("to")
		w.string(g.To)
	})
}

func (w *sortedWriter) signingKeys(list []stele.SigningKey) {
	each(w, "keys", list, func(k *stele.SigningKey) {
		w.text("algorithm", k.Algorithm)
		w.time("created", k.Created)
		w.time("expires", k.Expires)
		w.text("id", k.ID)
		w.text("note", k.Note)
		if len(k.Public) > 0 {
			w.name("public")
			w.base64(k.Public)
		}
		w.time("revoked", k.Revoked)
	})
}

func (w *sortedWriter) minter(m *stele.Minter) {
	if *m == (stele.Minter{}) {
		return
	}
	w.name("minter")
	w.open('{')
	w.flag("allowPrivate", m.AllowPrivate)
	w.number("expand", uint64(m.Expand))
	w.text("granularity", m.Granularity)
	w.text("host", m.Host)
	w.text("ip", m.IP)
	w.number("ipPort", uint64(m.IPPort))
	w.text("kind", string(m.Kind))
	w.text("order", string(m.Order))
	w.number("port", uint64(m.Port))
	w.number("seed", m.Seed)
	w.text("template", m.Template)
	w.close('}')
}

func (w *sortedWriter) rules(list []stele.Rule) {
	each(w, "rules", list, func(r *stele.Rule) {
		w.ruleExamples(r.Examples)
		w.flag("ignoreCase", r.Fold)
		w.name("pattern")
		w.string(r.Pattern)
		w.text("reason", r.Reason)
		w.targets(r.Targets)
		w.text("title", r.Title)
	})
}

func (w *sortedWriter) publication(p *stele.Publication) {
	if p.IsZero() {
		return
	}
	w.name("publication")
	w.open('{')
	w.text("catalog", p.Catalog)
	each(w, "elsewhere", p.Elsewhere, func(v *stele.Discovery) {
		w.text("at", v.At)
		w.text("kind", string(v.Kind))
	})
	w.flag("exact", p.Exact)
	w.text("layout", string(p.Layout))
	w.text("mailbox", p.Mailbox)
	w.number("parts", uint64(p.Parts))
	each(w, "records", p.Records, func(r *stele.ZoneRecord) {
		w.text("data", r.Data)
		w.text("name", r.Name)
		w.number("ttl", uint64(r.TTL))
		w.text("type", string(r.Type))
	})
	w.text("resolver", p.Resolver)
	each(w, "secondaries", p.Secondaries, func(s *stele.Secondary) {
		w.text("key", s.Key)
		w.text("network", s.Network)
		w.texts("notify", s.Notify)
	})
	w.text("separator", p.Separator)
	each(w, "servers", p.Servers, func(s *stele.NameServer) {
		w.texts("addresses", s.Addresses)
		w.text("name", s.Name)
	})
	w.text("signing", string(p.Signing))
	w.text("zone", p.Zone)
	w.close('}')
}

// each writes a member that is a list of objects, unless there are none.
func each[T any](w *sortedWriter, name string, list []T, members func(*T)) {
	if len(list) == 0 {
		return
	}
	w.name(name)
	w.open('[')
	for i := range list {
		w.comma()
		w.open('{')
		members(&list[i])
		w.close('}')
	}
	w.close(']')
}

func (w *sortedWriter) handOver(h *stele.HandOver) {
	if *h == (stele.HandOver{}) {
		return
	}
	w.name("handOver")
	w.open('{')
	w.text("address", h.Address)
	w.text("by", h.By)
	w.text("heir", h.Heir)
	w.time("since", h.Since)
	w.text("state", string(h.State))
	w.close('}')
}

func (w *sortedWriter) adoptions(list []stele.Adoption) {
	each(w, "adoptions", list, func(a *stele.Adoption) {
		w.time("at", a.At)
		w.text("bundle", a.Bundle)
		w.text("by", a.By)
		w.number("change", a.Change)
		w.time("ended", a.Ended)
		w.text("from", a.From)
		w.text("generation", a.Generation)
		w.flag("reading", a.Reading)
		w.flag("silent", a.Silent)
		w.text("to", a.To)
		w.time("until", a.Until)
	})
}
