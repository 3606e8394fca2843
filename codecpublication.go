package stele

import (
	"encoding/binary"
	"math"
)

func appendPublication(b []byte, p *Publication) []byte {
	b = appendText(b, p.Zone)
	b = appendText(b, string(p.Layout))
	b = appendText(b, p.Separator)
	b = binary.AppendVarint(b, int64(p.Parts))
	b = appendList(b, p.Servers, func(b []byte, s NameServer) []byte {
		return appendList(appendText(b, s.Name), s.Addresses, appendText)
	})
	b = appendText(b, p.Mailbox)
	b = appendText(b, p.Resolver)
	return appendList(b, p.Elsewhere, func(b []byte, d Discovery) []byte {
		return appendText(appendText(b, string(d.Kind)), d.At)
	})
}

func (d *decoder) publication() Publication {
	return Publication{
		Zone:      d.text(),
		Layout:    Layout(d.text()),
		Separator: d.text(),
		Parts:     int(d.varint()),
		Servers: list(d, func() NameServer {
			return NameServer{Name: d.text(), Addresses: list(d, d.text)}
		}),
		Mailbox:  d.text(),
		Resolver: d.text(),
		Elsewhere: list(d, func() Discovery {
			return Discovery{Kind: DiscoveryKind(d.text()), At: d.text()}
		}),
	}
}

// appendSecurity appends what came later to a Publication.
func appendSecurity(b []byte, p *Publication) []byte {
	b = appendText(b, string(p.Signing))
	return appendList(b, p.Secondaries, func(b []byte, s Secondary) []byte {
		return appendList(appendText(appendText(b, s.Network), s.Key), s.Notify, appendText)
	})
}

// appendExtension appends what came after that.
func appendExtension(b []byte, p *Publication) []byte {
	return appendList(b, p.Records, func(b []byte, r ZoneRecord) []byte {
		b = binary.AppendUvarint(appendText(b, r.Name), uint64(r.TTL))
		return appendText(appendText(b, string(r.Type)), r.Data)
	})
}

func (d *decoder) extension(p *Publication) {
	p.Records = list(d, func() ZoneRecord {
		return ZoneRecord{Name: d.text(), TTL: uint32(d.upTo(math.MaxUint32)), Type: RecordType(d.text()), Data: d.text()}
	})
}

func (d *decoder) security(p *Publication) {
	p.Signing = Signing(d.text())
	p.Secondaries = list(d, func() Secondary {
		return Secondary{Network: d.text(), Key: d.text(), Notify: list(d, d.text)}
	})
}
