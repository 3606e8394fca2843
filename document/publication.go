package document

import (
	"math"

	"github.com/stele-id/stele"
)

const (
	publicationFields = "zone layout separator parts exact servers mailbox resolver signing secondaries records catalog elsewhere"
	serverFields      = "name addresses"
	secondaryFields   = "network key notify"
	zoneRecordFields  = "name ttl type data"
	discoveryFields   = "kind at"
)

func (d *document) publication(p *stele.Publication) {
	d.object(publicationFields, func(name string) bool {
		switch name {
		case "zone":
			p.Zone = d.text()
		case "layout":
			p.Layout = stele.Layout(d.text())
		case "separator":
			p.Separator = d.text()
		case "parts":
			p.Parts = int(d.number(stele.MaxParts))
		case "exact":
			p.Exact = d.bool()
		case "servers":
			d.array(stele.MaxNameServers, func(int) { p.Servers = append(p.Servers, d.server()) })
		case "mailbox":
			p.Mailbox = d.text()
		case "resolver":
			p.Resolver = d.text()
		case "signing":
			p.Signing = stele.Signing(d.text())
		case "secondaries":
			d.array(stele.MaxSecondaries, func(int) { p.Secondaries = append(p.Secondaries, d.secondary()) })
		case "records":
			d.array(stele.MaxZoneRecords, func(int) { p.Records = append(p.Records, d.zoneRecord()) })
		case "catalog":
			p.Catalog = d.text()
		case "elsewhere":
			d.array(stele.MaxDiscoveries, func(int) { p.Elsewhere = append(p.Elsewhere, d.discovery()) })
		default:
			return false
		}
		return true
	})
}

func (d *document) server() (s stele.NameServer) {
	d.object(serverFields, func(name string) bool {
		switch name {
		case "name":
			s.Name = d.text()
		case "addresses":
			s.Addresses = d.texts(stele.MaxAddresses)
		default:
			return false
		}
		return true
	})
	return s
}

func (d *document) secondary() (s stele.Secondary) {
	d.object(secondaryFields, func(name string) bool {
		switch name {
		case "network":
			s.Network = d.text()
		case "key":
			s.Key = d.text()
		case "notify":
			s.Notify = d.texts(stele.MaxAddresses)
		default:
			return false
		}
		return true
	})
	return s
}

func (d *document) zoneRecord() (r stele.ZoneRecord) {
	d.object(zoneRecordFields, func(name string) bool {
		switch name {
		case "name":
			r.Name = d.text()
		case "ttl":
			r.TTL = uint32(d.number(math.MaxUint32))
		case "type":
			r.Type = stele.RecordType(d.text())
		case "data":
			r.Data = d.text()
		default:
			return false
		}
		return true
	})
	return r
}

func (d *document) discovery() (v stele.Discovery) {
	d.object(discoveryFields, func(name string) bool {
		switch name {
		case "kind":
			v.Kind = stele.DiscoveryKind(d.text())
		case "at":
			v.At = d.text()
		default:
			return false
		}
		return true
	})
	return v
}

func (w *jsonWriter) publication(p *stele.Publication) {
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
