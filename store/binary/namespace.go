package binary

import (
	"encoding/binary"
	"math"

	"github.com/stele-id/stele"
)

// namespaceForm is the version of the form of namespaces.
const namespaceForm = 1

// AppendNamespace appends a namespace to b.
func AppendNamespace(b []byte, n *stele.Namespace) []byte {
	b = append(b, namespaceForm)
	for _, text := range []string{n.Scheme, n.Prefix, n.Owner, n.Title} {
		b = appendText(b, text)
	}
	m := &n.Minter
	b = appendText(b, string(m.Kind))
	b = appendText(b, m.Host)
	b = binary.AppendUvarint(b, uint64(m.Port))
	b = appendText(b, m.IP)
	b = binary.AppendUvarint(b, uint64(m.IPPort))
	b = appendBool(b, m.AllowPrivate)
	b = appendText(b, m.Granularity)
	b = appendText(b, m.Template)
	b = binary.AppendUvarint(b, m.Seed)
	b = binary.AppendUvarint(b, uint64(n.TTL))
	b = binary.AppendVarint(b, int64(n.Status))
	b = appendPersistence(b, n.Persistence)
	b = appendList(b, n.Hosts, appendText)
	b = appendList(b, n.Protocols, appendText)
	b = appendText(b, n.Delegate)
	b = appendBool(b, n.Checked)
	b = binary.AppendUvarint(b, n.Quota)
	b = binary.AppendUvarint(b, n.Version)
	b = appendTime(b, n.Created)
	b = appendTime(b, n.Modified)
	b = appendText(b, n.By)
	return appendLater(b, n)
}

// appendLater appends the fields that were added later, one after the other up to the last
// that has something in it, so that other namespaces keep the bytes that they had.
func appendLater(b []byte, n *stele.Namespace) []byte {
	p := &n.Publication
	heirs := len(n.Heirs) > 0
	handed := heirs || !n.SameHandOver(&stele.Namespace{})
	listed := handed || n.Listed
	ruled := len(n.Rules) > 0 || listed
	ordered := ruled || n.Minter.Order != stele.OwnOrder || n.Minter.Expand != 0
	handles := ordered || n.Handles != stele.HandleService{}
	reviewed := n.Reviewed || handles
	extended := isExtended(p) || reviewed
	passing := extended || n.Passthrough
	keys := passing || len(n.Keys) > 0
	secured := keys || isSecured(p)
	granted := secured || len(n.Grants) > 0
	if granted || !p.IsZero() {
		b = appendPublication(b, p)
	}
	if granted {
		b = appendList(b, n.Grants, func(b []byte, g stele.Grant) []byte {
			return appendText(appendText(b, g.To), string(g.Role))
		})
	}
	if secured {
		b = appendSecurity(b, p)
	}
	if keys {
		b = appendList(b, n.Keys, appendSigningKey)
	}
	if passing {
		b = appendBool(b, n.Passthrough)
	}
	if extended {
		b = appendExtension(b, p)
	}
	exact := p.Exact || reviewed
	if p.Catalog != "" || exact {
		b = appendText(b, p.Catalog)
	}
	if exact {
		b = appendBool(b, p.Exact)
	}
	if reviewed {
		b = appendBool(b, n.Reviewed)
	}
	if handles {
		b = appendBool(appendBool(b, n.Handles.Off), n.Handles.PublicWrite)
	}
	if ordered {
		b = append(appendText(b, string(n.Minter.Order)), n.Minter.Expand)
	}
	if ruled {
		b = appendList(b, n.Rules, appendRule)
	}
	if listed {
		b = appendBool(b, n.Listed)
	}
	if handed {
		b = appendHandOver(b, n)
	}
	if heirs {
		b = appendList(b, n.Heirs, func(b []byte, h stele.Heir) []byte {
			return binary.AppendUvarint(appendText(appendText(b, h.Registry), h.Address), uint64(h.Days))
		})
	}
	return b
}

// MarshalNamespace returns a namespace's bytes.
func MarshalNamespace(n *stele.Namespace) []byte { return AppendNamespace(nil, n) }

// UnmarshalNamespace reads a namespace.
func UnmarshalNamespace(data []byte, n *stele.Namespace) error {
	d := decoder{rest: string(data)}
	if form := d.byte(); form != namespaceForm && d.err == nil {
		return &stele.Error{Op: "decode", Kind: stele.Internal, Err: stele.Messagef("namespace.stored-form-unknown", "a namespace of form {form}, which this program does not know", form)}
	}
	*n = stele.Namespace{
		Scheme: d.text(),
		Prefix: d.text(),
		Owner:  d.text(),
		Title:  d.text(),
		Minter: stele.Minter{
			Kind:         stele.MinterKind(d.text()),
			Host:         d.text(),
			Port:         uint16(d.upTo(math.MaxUint16)),
			IP:           d.text(),
			IPPort:       uint16(d.upTo(math.MaxUint16)),
			AllowPrivate: d.bool(),
			Granularity:  d.text(),
			Template:     d.text(),
			Seed:         d.uvarint(),
		},
		TTL:         uint32(d.upTo(math.MaxUint32)),
		Status:      int(d.varint()),
		Persistence: d.persistence(),
		Hosts:       list(&d, d.text),
		Protocols:   list(&d, d.text),
		Delegate:    d.text(),
		Checked:     d.bool(),
		Quota:       d.uvarint(),
		Version:     d.uvarint(),
		Created:     d.time(),
		Modified:    d.time(),
		By:          d.text(),
	}
	if d.err == nil && len(d.rest) > 0 {
		d.later(n)
	}
	return d.end("namespace")
}

// later reads what came later, of which something is there.
func (d *decoder) later(n *stele.Namespace) {
	n.Publication = d.publication()
	if len(d.rest) > 0 {
		n.Grants = list(d, func() stele.Grant { return stele.Grant{To: d.text(), Role: stele.Role(d.text())} })
	}
	odd := n.Publication.IsZero() && len(n.Grants) == 0
	if len(d.rest) > 0 {
		d.security(&n.Publication)
		odd = !isSecured(&n.Publication)
	}
	if len(d.rest) > 0 {
		n.Keys = list(d, d.signingKey)
		odd = len(n.Keys) == 0
	}
	if len(d.rest) > 0 {
		n.Passthrough = d.bool()
		odd = !n.Passthrough
	}
	if len(d.rest) > 0 {
		d.extension(&n.Publication)
		odd = !isExtended(&n.Publication)
	}
	if len(d.rest) > 0 {
		n.Publication.Catalog = d.text()
		odd = n.Publication.Catalog == ""
	}
	if len(d.rest) > 0 {
		n.Publication.Exact = d.bool()
		odd = !n.Publication.Exact
	}
	if len(d.rest) > 0 {
		n.Reviewed = d.bool()
		odd = !n.Reviewed
	}
	if len(d.rest) > 0 {
		n.Handles = stele.HandleService{Off: d.bool(), PublicWrite: d.bool()}
		odd = n.Handles == stele.HandleService{}
	}
	if len(d.rest) > 0 {
		n.Minter.Order, n.Minter.Expand = stele.MinterOrder(d.text()), d.byte()
		odd = n.Minter.Order == stele.OwnOrder && n.Minter.Expand == 0
	}
	if len(d.rest) > 0 {
		n.Rules = list(d, d.rule)
		odd = len(n.Rules) == 0
	}
	if len(d.rest) > 0 {
		n.Listed = d.bool()
		odd = !n.Listed
	}
	if len(d.rest) > 0 {
		d.handOver(n)
		odd = n.SameHandOver(&stele.Namespace{})
	}
	if len(d.rest) > 0 {
		n.Heirs = list(d, func() stele.Heir {
			return stele.Heir{Registry: d.text(), Address: d.text(), Days: int(d.upTo(math.MaxInt32))}
		})
		odd = len(n.Heirs) == 0
	}
	if d.err == nil && odd {
		d.fail(errOdd) // nothing is written of it then
	}
}

// isSecured reports whether a zone is signed or transferred.
func isSecured(p *stele.Publication) bool {
	return p.Signing != stele.NotSigned || len(p.Secondaries) > 0
}

// isExtended reports whether a zone has records of its owner or a catalog, or exact names.
func isExtended(p *stele.Publication) bool {
	return len(p.Records) > 0 || p.Catalog != "" || p.Exact
}

func appendPublication(b []byte, p *stele.Publication) []byte {
	b = appendText(b, p.Zone)
	b = appendText(b, string(p.Layout))
	b = appendText(b, p.Separator)
	b = binary.AppendVarint(b, int64(p.Parts))
	b = appendList(b, p.Servers, func(b []byte, s stele.NameServer) []byte {
		return appendList(appendText(b, s.Name), s.Addresses, appendText)
	})
	b = appendText(b, p.Mailbox)
	b = appendText(b, p.Resolver)
	return appendList(b, p.Elsewhere, func(b []byte, d stele.Discovery) []byte {
		return appendText(appendText(b, string(d.Kind)), d.At)
	})
}

func (d *decoder) publication() stele.Publication {
	return stele.Publication{
		Zone:      d.text(),
		Layout:    stele.Layout(d.text()),
		Separator: d.text(),
		Parts:     int(d.varint()),
		Servers: list(d, func() stele.NameServer {
			return stele.NameServer{Name: d.text(), Addresses: list(d, d.text)}
		}),
		Mailbox:  d.text(),
		Resolver: d.text(),
		Elsewhere: list(d, func() stele.Discovery {
			return stele.Discovery{Kind: stele.DiscoveryKind(d.text()), At: d.text()}
		}),
	}
}

// appendSecurity appends what came later to a Publication.
func appendSecurity(b []byte, p *stele.Publication) []byte {
	b = appendText(b, string(p.Signing))
	return appendList(b, p.Secondaries, func(b []byte, s stele.Secondary) []byte {
		return appendList(appendText(appendText(b, s.Network), s.Key), s.Notify, appendText)
	})
}

// appendExtension appends what came after that.
func appendExtension(b []byte, p *stele.Publication) []byte {
	return appendList(b, p.Records, func(b []byte, r stele.ZoneRecord) []byte {
		b = binary.AppendUvarint(appendText(b, r.Name), uint64(r.TTL))
		return appendText(appendText(b, string(r.Type)), r.Data)
	})
}

func (d *decoder) extension(p *stele.Publication) {
	p.Records = list(d, func() stele.ZoneRecord {
		return stele.ZoneRecord{Name: d.text(), TTL: uint32(d.upTo(math.MaxUint32)), Type: stele.RecordType(d.text()), Data: d.text()}
	})
}

func (d *decoder) security(p *stele.Publication) {
	p.Signing = stele.Signing(d.text())
	p.Secondaries = list(d, func() stele.Secondary {
		return stele.Secondary{Network: d.text(), Key: d.text(), Notify: list(d, d.text)}
	})
}

func appendSigningKey(b []byte, k stele.SigningKey) []byte {
	b = appendText(appendText(appendText(b, k.ID), k.Algorithm), string(k.Public))
	b = appendTime(appendTime(appendTime(b, k.Created), k.Expires), k.Revoked)
	return appendText(b, k.Note)
}

func (d *decoder) signingKey() stele.SigningKey {
	return stele.SigningKey{
		ID:        d.text(),
		Algorithm: d.text(),
		Public:    []byte(d.text()),
		Created:   d.time(),
		Expires:   d.time(),
		Revoked:   d.time(),
		Note:      d.text(),
	}
}

func appendRule(b []byte, r stele.Rule) []byte {
	b = appendBool(appendText(b, r.Pattern), r.Fold)
	b = appendList(appendText(appendText(b, r.Title), r.Reason), r.Targets, appendTarget)
	return appendList(b, r.Examples, func(b []byte, x stele.RuleExample) []byte {
		return appendText(appendText(appendText(b, x.Name), x.Type), x.Want)
	})
}

func (d *decoder) rule() stele.Rule {
	return stele.Rule{
		Pattern: d.text(),
		Fold:    d.bool(),
		Title:   d.text(),
		Reason:  d.text(),
		Targets: list(d, d.target),
		Examples: list(d, func() stele.RuleExample {
			return stele.RuleExample{Name: d.text(), Type: d.text(), Want: d.text()}
		}),
	}
}

// Bits of the byte that says how a namespace was adopted. The time at which its giver was found to have ended follows that of one that is silent, and then the generation of
// the giver if it is known.
const (
	adoptedReading = 1 << iota
	adoptedSilent
	adoptedInGeneration
)

func appendHandOver(b []byte, n *stele.Namespace) []byte {
	h := &n.HandOver
	b = appendText(appendText(appendText(b, string(h.State)), h.Heir), h.Address)
	b = appendText(appendTime(b, h.Since), h.By)
	return appendList(b, n.Adoptions, func(b []byte, a stele.Adoption) []byte {
		b = appendText(appendText(appendText(b, a.From), a.To), a.Bundle)
		b = appendTime(appendTime(binary.AppendUvarint(b, a.Change), a.Until), a.At)
		mode := byte(0)
		if a.Reading {
			mode |= adoptedReading
		}
		if a.Silent {
			mode |= adoptedSilent
		}
		if a.Generation != "" {
			mode |= adoptedInGeneration
		}
		b = append(appendText(b, a.By), mode)
		if a.Silent {
			b = appendTime(b, a.Ended)
		}
		if a.Generation != "" {
			b = appendText(b, a.Generation)
		}
		return b
	})
}

func (d *decoder) handOver(n *stele.Namespace) {
	n.HandOver = stele.HandOver{State: stele.HandOverState(d.text()), Heir: d.text(), Address: d.text(), Since: d.time(), By: d.text()}
	n.Adoptions = list(d, func() stele.Adoption {
		a := stele.Adoption{From: d.text(), To: d.text(), Bundle: d.text(), Change: d.uvarint(), Until: d.time(), At: d.time(), By: d.text()}
		mode := d.byte()
		a.Reading, a.Silent = mode&adoptedReading != 0, mode&adoptedSilent != 0
		if mode > adoptedReading|adoptedSilent|adoptedInGeneration {
			d.fail(errOdd)
		}
		if a.Silent {
			a.Ended = d.time()
		}
		if mode&adoptedInGeneration != 0 {
			if a.Generation = d.text(); a.Generation == "" {
				d.fail(errOdd)
			}
		}
		return a
	})
}
