package resolver

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/urltext"
)

// Origins says which servers are trusted to answer for the names that they made, where a name itself says which server
// that is ([stele.OriginScheme]). The reader of a name that is not registered here is sent to such a server, and to no other one: a name is
// made up easily, so that a resolver which believed it would send readers anywhere. The nil Origins trusts none.
type Origins struct {
	hosts    map[string]bool // in lower case
	domains  []string        // ".example.org"
	networks []netip.Prefix
	scheme   string // "http"
	port     bool   // the template has a port
	rest     string // what follows the host and the port: "/ibi/{label}"
}

// NewOrigins makes Origins of what an operator lists: host names, domains with a dot before (".inpe.br" is all below inpe.br), IP
// addresses and networks; and a template of the URL at which they are asked, with {host}, which is the address of a server that is known by
// one, perhaps {port}, and {label} for the name. It returns nil if nothing is listed.
func NewOrigins(trusted []string, template string) (*Origins, error) {
	o := &Origins{hosts: make(map[string]bool)}
	if err := o.read(template); err != nil {
		return nil, err
	}
	for _, text := range trusted {
		if err := o.trust(strings.ToLower(strings.TrimSpace(text))); err != nil {
			return nil, err
		}
	}
	if len(trusted) == 0 {
		return nil, nil
	}
	return o, nil
}

// read reads the template. What stands for the host and the port is the whole of them, so that no name can put anything else there.
func (o *Origins) read(template string) error {
	wrong := func() error {
		return stele.Messagef("origin.template-invalid", `"{template}" is not a template for the address of another server; write it as in {example}`, template, "http://{host}:{port}/names/"+labelPlace)
	}
	scheme, rest, ok := strings.Cut(template, "://{host}")
	if !ok || scheme != "http" && scheme != "https" {
		return wrong()
	}
	rest, o.port = strings.CutPrefix(rest, ":{port}")
	if u, err := url.Parse(scheme + "://x.example" + strings.ReplaceAll(rest, labelPlace, "x")); err != nil || !strings.HasPrefix(rest, "/") ||
		strings.Count(rest, labelPlace) != 1 || strings.ContainsAny(strings.ReplaceAll(rest, labelPlace, ""), "{}#\\") || u.Host != "x.example" {
		return wrong()
	}
	o.scheme, o.rest = scheme, rest
	return nil
}

const labelPlace = "{label}"

// trust adds a host, a domain, an address or a network.
func (o *Origins) trust(text string) error {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		o.networks = append(o.networks, netip.PrefixFrom(addr, addr.BitLen()))
		return nil
	}
	if network, err := netip.ParsePrefix(text); err == nil {
		o.networks = append(o.networks, network.Masked())
		return nil
	}
	name := strings.TrimPrefix(text, ".")
	if !isHostName(name) {
		return stele.Messagef("origin.host-invalid", `"{value}" is not a host name, a domain with a dot before, an IP address or a network`, text)
	}
	if name != text {
		o.domains = append(o.domains, text)
		return nil
	}
	o.hosts[name] = true
	return nil
}

// isHostName reports whether a text has the form of a host name, with at least two labels: a whole top-level domain can't be trusted.
func isHostName(name string) bool {
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	return len(labels) > 1 && len(name) <= 253
}

// trusts reports whether a server is one of those that are listed.
func (o *Origins) trusts(from stele.Origin) bool {
	if from.Addr.IsValid() {
		addr := from.Addr.Unmap()
		for _, network := range o.networks {
			if network.Contains(addr) {
				return true
			}
		}
		return false
	}
	host := strings.ToLower(from.Host)
	if o.hosts[host] {
		return true
	}
	for _, domain := range o.domains {
		if strings.HasSuffix(host, domain) {
			return true
		}
	}
	return false
}

// at returns the host and port of a URL for a server.
func (o *Origins) at(from stele.Origin) string {
	host := from.Host
	if from.Addr.IsValid() {
		host = from.Addr.Unmap().String()
	}
	usual := uint16(80)
	if o.scheme == "https" {
		usual = 443
	}
	switch {
	case o.port && from.Port != usual:
		return net.JoinHostPort(host, strconv.Itoa(int(from.Port)))
	case strings.Contains(host, ":"):
		return "[" + host + "]"
	}
	return host
}

// origin answers with the server that made the name, if that is trusted and is not this one; ok is false if there is none.
func (w *walk) origin(ns *stele.Namespace) (res Resolution, ok bool) {
	if w.origins == nil || ns != nil && ns.Prefix != "" { // what is in a namespace of ours, only we can know
		return Resolution{}, false
	}
	scheme, is := w.schemes.Lookup(w.q.ID.Scheme()).(stele.OriginScheme)
	if !is {
		return Resolution{}, false
	}
	from, ok := scheme.Origin(w.q.ID)
	if !ok || !w.origins.trusts(from) {
		return Resolution{}, false
	}
	at := w.origins.at(from)
	if w.hosts[strings.ToLower(at)] {
		return Resolution{}, false
	}
	before, after, _ := strings.Cut(w.origins.rest, labelPlace)
	b := []byte(w.origins.scheme + "://" + at + before)
	b = append(urltext.Append(b, w.q.ID.String(), urltext.PlaceAfter(before), w.isLiteral()), after...)
	if !w.q.Component {
		var err error
		if b, err = urltext.AppendQuery(b, w.q.Query); err != nil {
			return Resolution{}, false
		}
	}
	if urltext.Verify(w.origins.scheme+"://"+at+"/", string(b)) != nil {
		return Resolution{}, false
	}
	if w.q.Trace {
		w.step("origin", "trace.origin", "the name says that {server} made it, which is trusted to answer for it", at)
	}
	return Resolution{Kind: Delegation, Namespace: ns, URL: string(b), Status: http.StatusFound, TTL: w.ttl}, true
}
