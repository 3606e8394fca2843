package document

import (
	"math"
	"strings"

	"github.com/stele-id/stele"
)

const (
	namespaceFields = "scheme prefix owner title minter ttl status persistence hosts protocols delegate checked passthrough reviewed listed rules handles quota publication grants keys heirs handOver adoptions version created modified by"
	minterFields    = "kind host port ip ipPort allowPrivate granularity template seed order expand"
)

// DecodeNamespace reads a namespace in JSON, as [AppendNamespace] writes it.
// It is as strict as [DecodeRecord], ends with [stele.Namespace.Validate], and
// refuses schemes that are not in the list. The prefix is taken as it is.
func DecodeNamespace(s *stele.Schemes, data []byte) (*stele.Namespace, error) {
	d := document{schemes: s}
	n := new(stele.Namespace)
	if d.begin(data) {
		d.namespace(n)
		d.end()
	}
	if !d.broken {
		if n.Scheme != "" && s.Lookup(n.Scheme) == nil {
			d.faults.Add("scheme", unknownScheme(s, n.Scheme))
		}
		n.Check(&d.faults)
	}
	if err := d.faults.Err("read namespace", stele.ID{}); err != nil {
		return nil, err
	}
	return n, nil
}

// unknownScheme says which schemes there are instead.
func unknownScheme(s *stele.Schemes, name string) error {
	var names []string
	for scheme := range s.All() {
		names = append(names, scheme.Name())
	}
	return stele.Messagef("document.scheme-unknown", `"{scheme}" is not a known scheme; use one of {schemes}`, name, strings.Join(names, ", "))
}

func (d *document) namespace(n *stele.Namespace) {
	d.object(namespaceFields, func(name string) bool {
		switch name {
		case "scheme":
			n.Scheme = d.text()
		case "prefix":
			n.Prefix = d.text()
		case "owner":
			n.Owner = d.text()
		case "title":
			n.Title = d.text()
		case "minter":
			d.minter(&n.Minter)
		case "ttl":
			n.TTL = uint32(d.number(math.MaxUint32))
		case "status":
			n.Status = int(d.number(999))
		case "persistence":
			n.Persistence = d.persistence()
		case "hosts":
			n.Hosts = d.texts(stele.MaxHosts)
		case "protocols":
			n.Protocols = d.texts(stele.MaxProtocols)
		case "delegate":
			n.Delegate = d.text()
		case "checked":
			n.Checked = d.bool()
		case "passthrough":
			n.Passthrough = d.bool()
		case "reviewed":
			n.Reviewed = d.bool()
		case "listed":
			n.Listed = d.bool()
		case "rules":
			d.array(stele.MaxRules, func(int) { n.Rules = append(n.Rules, d.rule()) })
		case "handles":
			d.handleService(&n.Handles)
		case "quota":
			n.Quota = d.number(math.MaxUint64)
		case "publication":
			d.publication(&n.Publication)
		case "grants":
			d.array(stele.MaxGrants, func(int) { n.Grants = append(n.Grants, d.grant()) })
		case "keys":
			d.array(stele.MaxKeys, func(int) { n.Keys = append(n.Keys, d.signingKey()) })
		case "heirs":
			d.array(stele.MaxHeirs, func(int) { n.Heirs = append(n.Heirs, d.heir()) })
		case "handOver":
			d.handOver(&n.HandOver)
		case "adoptions":
			d.array(stele.MaxAdoptions, func(int) { n.Adoptions = append(n.Adoptions, d.adoption()) })
		default:
			return d.kept(name, &n.Version, &n.Created, &n.Modified, &n.By)
		}
		return true
	})
}

func (d *document) handleService(h *stele.HandleService) {
	d.object("off publicWrite", func(name string) bool {
		switch name {
		case "off":
			h.Off = d.bool()
		case "publicWrite":
			h.PublicWrite = d.bool()
		default:
			return false
		}
		return true
	})
}

func (w *jsonWriter) handleService(h *stele.HandleService) {
	if *h == (stele.HandleService{}) {
		return
	}
	w.name("handles")
	w.open('{')
	w.flag("off", h.Off)
	w.flag("publicWrite", h.PublicWrite)
	w.close('}')
}

func (d *document) grant() (g stele.Grant) {
	d.object("to role", func(name string) bool {
		switch name {
		case "to":
			g.To = d.text()
		case "role":
			g.Role = stele.Role(d.text())
		default:
			return false
		}
		return true
	})
	return g
}

func (d *document) minter(m *stele.Minter) {
	d.object(minterFields, func(name string) bool {
		switch name {
		case "kind":
			m.Kind = stele.MinterKind(d.text())
		case "host":
			m.Host = d.text()
		case "port":
			m.Port = uint16(d.number(math.MaxUint16))
		case "ip":
			m.IP = d.text()
		case "ipPort":
			m.IPPort = uint16(d.number(math.MaxUint16))
		case "allowPrivate":
			m.AllowPrivate = d.bool()
		case "granularity":
			m.Granularity = d.text()
		case "template":
			m.Template = d.text()
		case "seed":
			m.Seed = d.number(math.MaxUint64)
		case "order":
			m.Order = stele.MinterOrder(d.text())
		case "expand":
			m.Expand = uint8(d.number(math.MaxUint8))
		default:
			return false
		}
		return true
	})
}

// AppendNamespace appends a namespace in JSON to b, as [DecodeNamespace] reads it: one object
// on one line. The same namespace gives the same bytes.
func AppendNamespace(b []byte, n *stele.Namespace) []byte {
	w := jsonWriter{b: b}
	w.namespace(n)
	return w.b
}

func (w *jsonWriter) namespace(n *stele.Namespace) {
	w.open('{')
	w.name("scheme")
	w.string(n.Scheme)
	w.text("prefix", n.Prefix)
	w.text("owner", n.Owner)
	w.text("title", n.Title)
	w.minter(&n.Minter)
	w.number("ttl", uint64(n.TTL), 0)
	w.status(n.Status)
	w.persistence(n.Persistence)
	w.texts("hosts", n.Hosts)
	w.texts("protocols", n.Protocols)
	w.text("delegate", n.Delegate)
	w.flag("checked", n.Checked)
	w.flag("passthrough", n.Passthrough)
	w.flag("reviewed", n.Reviewed)
	w.flag("listed", n.Listed)
	w.rules(n.Rules)
	w.handleService(&n.Handles)
	w.number("quota", n.Quota, 0)
	w.publication(&n.Publication)
	w.grants(n.Grants)
	w.signingKeys(n.Keys)
	w.heirs(n.Heirs)
	w.handOver(n)
	w.number("version", n.Version, 0)
	w.time("created", n.Created)
	w.time("modified", n.Modified)
	w.text("by", n.By)
	w.close('}')
}

func (w *jsonWriter) grants(list []stele.Grant) {
	if len(list) == 0 {
		return
	}
	w.name("grants")
	w.open('[')
	for _, g := range list {
		w.comma()
		w.open('{')
		w.name("to")
		w.string(g.To)
		w.name("role")
		w.string(string(g.Role))
		w.close('}')
	}
	w.close(']')
}

func (w *jsonWriter) minter(m *stele.Minter) {
	if *m == (stele.Minter{}) {
		return
	}
	w.name("minter")
	w.open('{')
	w.text("kind", string(m.Kind))
	w.text("host", m.Host)
	w.number("port", uint64(m.Port), 0)
	w.text("ip", m.IP)
	w.number("ipPort", uint64(m.IPPort), 0)
	w.flag("allowPrivate", m.AllowPrivate)
	w.text("granularity", m.Granularity)
	w.text("template", m.Template)
	w.number("seed", m.Seed, 0)
	w.text("order", string(m.Order))
	w.number("expand", uint64(m.Expand), 0)
	w.close('}')
}
