package stele

import "math"

const (
	publicationFields = "zone layout separator parts exact servers mailbox resolver signing secondaries records catalog elsewhere"
	serverFields      = "name addresses"
	secondaryFields   = "network key notify"
	zoneRecordFields  = "name ttl type data"
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
		case "exact":
			p.Exact = d.bool()
		case "servers":
			d.array(MaxNameServers, func(int) { p.Servers = append(p.Servers, d.server()) })
		case "mailbox":
			p.Mailbox = d.text()
		case "resolver":
			p.Resolver = d.text()
		case "signing":
			p.Signing = Signing(d.text())
		case "secondaries":
			d.array(MaxSecondaries, func(int) { p.Secondaries = append(p.Secondaries, d.secondary()) })
		case "records":
			d.array(MaxZoneRecords, func(int) { p.Records = append(p.Records, d.zoneRecord()) })
		case "catalog":
			p.Catalog = d.text()
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

func (d *document) secondary() (s Secondary) {
	d.object(secondaryFields, func(name string) bool {
		switch name {
		case "network":
			s.Network = d.text()
		case "key":
			s.Key = d.text()
		case "notify":
			s.Notify = d.texts(maxAddresses)
		default:
			return false
		}
		return true
	})
	return s
}

func (d *document) zoneRecord() (r ZoneRecord) {
	d.object(zoneRecordFields, func(name string) bool {
		switch name {
		case "name":
			r.Name = d.text()
		case "ttl":
			r.TTL = uint32(d.number(math.MaxUint32))
		case "type":
			r.Type = RecordType(d.text())
		case "data":
			r.Data = d.text()
		default:
			return false
		}
		return true
	})
	return r
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
	w.flag("exact", p.Exact)
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
	w.text("signing", string(p.Signing))
	if len(p.Secondaries) > 0 {
		w.name("secondaries")
		w.open('[')
		for i := range p.Secondaries {
			s := &p.Secondaries[i]
			w.comma()
			w.open('{')
			w.text("network", s.Network)
			w.text("key", s.Key)
			w.texts("notify", s.Notify)
			w.close('}')
		}
		w.close(']')
	}
	if len(p.Records) > 0 {
		w.name("records")
		w.open('[')
		for i := range p.Records {
			r := &p.Records[i]
			w.comma()
			w.open('{')
			w.text("name", r.Name)
			w.number("ttl", uint64(r.TTL), 0)
			w.text("type", string(r.Type))
			w.text("data", r.Data)
			w.close('}')
		}
		w.close(']')
	}
	w.text("catalog", p.Catalog)
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
