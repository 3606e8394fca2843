package stele

const (
	publicationFields = "zone layout separator parts servers mailbox resolver elsewhere"
	serverFields      = "name addresses"
	discoveryFields   = "kind at"
)

func (d *document) publication(p *Publication) {
	d.object(publicationFields, func(name string) bool {
		switch name {
		case "zone":
			p.Zone = d.text()
		case "layout":
			p.Layout = Layout(d.text())
		case "separator":
			p.Separator = d.text()
		case "parts":
			p.Parts = int(d.number(MaxParts))
		case "servers":
			d.array(MaxNameServers, func(int) { p.Servers = append(p.Servers, d.server()) })
		case "mailbox":
			p.Mailbox = d.text()
		case "resolver":
			p.Resolver = d.text()
		case "elsewhere":
			d.array(MaxDiscoveries, func(int) { p.Elsewhere = append(p.Elsewhere, d.discovery()) })
		default:
			return false
		}
		return true
	})
}

func (d *document) server() (s NameServer) {
	d.object(serverFields, func(name string) bool {
		switch name {
		case "name":
			s.Name = d.text()
		case "addresses":
			s.Addresses = d.texts(maxAddresses)
		default:
			return false
		}
		return true
	})
	return s
}

func (d *document) discovery() (v Discovery) {
	d.object(discoveryFields, func(name string) bool {
		switch name {
		case "kind":
			v.Kind = DiscoveryKind(d.text())
		case "at":
			v.At = d.text()
		default:
			return false
		}
		return true
	})
	return v
}

func (w *jsonWriter) publication(p *Publication) {
	if p.IsZero() {
		return
	}
	w.name("publication")
	w.open('{')
	w.text("zone", p.Zone)
	w.text("layout", string(p.Layout))
	w.text("separator", p.Separator)
	w.number("parts", uint64(p.Parts), 0)
	if len(p.Servers) > 0 {
		w.name("servers")
		w.open('[')
		for i := range p.Servers {
			w.comma()
			w.open('{')
			w.text("name", p.Servers[i].Name)
			w.texts("addresses", p.Servers[i].Addresses)
			w.close('}')
		}
		w.close(']')
	}
	w.text("mailbox", p.Mailbox)
	w.text("resolver", p.Resolver)
	if len(p.Elsewhere) > 0 {
		w.name("elsewhere")
		w.open('[')
		for _, v := range p.Elsewhere {
			w.comma()
			w.open('{')
			w.text("kind", string(v.Kind))
			w.text("at", v.At)
			w.close('}')
		}
		w.close(']')
	}
	w.close('}')
}
