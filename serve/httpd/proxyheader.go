package httpd

import (
	"net/netip"
	"strings"

	"github.com/stele-id/stele/internal/destination"
)

// readForwarded reads the fields of Forwarded (RFC 7239, section 4). The last hop is
// the nearest.
func readForwarded(fields []string) ([]hop, bool) {
	var hops []hop
	for _, field := range fields {
		rest := forwardedText(field)
		for {
			h, ok := rest.element()
			if !ok {
				return nil, false
			}
			hops = append(hops, h)
			if rest == "" {
				break
			}
			rest = rest[1:] // the comma
		}
	}
	return hops, true
}

// forwardedText is what is left of a field.
type forwardedText string

// element takes an element off, up to its comma or the end: pairs with semicolons
// between them, each name once.
func (t *forwardedText) element() (h hop, ok bool) {
	seen := map[string]bool{}
	for {
		t.skip()
		if *t == "" || (*t)[0] == ',' {
			return h, true
		}
		if (*t)[0] == ';' {
			*t = (*t)[1:]
			continue
		}
		name := strings.ToLower(t.token())
		if name == "" || seen[name] || !strings.HasPrefix(string(*t), "=") {
			return h, false
		}
		seen[name] = true
		*t = (*t)[1:]
		value, ok := t.value()
		if !ok || !h.set(name, value) {
			return h, false
		}
		if t.skip(); *t != "" && (*t)[0] != ',' && (*t)[0] != ';' {
			return h, false
		}
	}
}

// set sets the field that a pair names. It ignores unknown names.
func (h *hop) set(name, value string) (ok bool) {
	switch name {
	case "for":
		h.client, ok = readNode(value)
		return ok
	case "proto":
		h.proto, ok = readProto(value)
		return ok
	case "host":
		h.host = value
		return destination.IsHost(value)
	}
	return true
}

func (t *forwardedText) skip() { *t = forwardedText(strings.TrimLeft(string(*t), " \t")) }

// token takes a token off (RFC 9110, section 5.6.2).
func (t *forwardedText) token() string {
	i := 0
	for i < len(*t) && (isAlphanumeric((*t)[i]) || strings.IndexByte("!#$%&'*+-.^_`|~", (*t)[i]) >= 0) {
		i++
	}
	token := string((*t)[:i])
	*t = (*t)[i:]
	return token
}

// value takes a token or a text in quotation marks off (RFC 9110, section 5.6.4).
func (t *forwardedText) value() (string, bool) {
	if !strings.HasPrefix(string(*t), `"`) {
		token := t.token()
		return token, token != ""
	}
	var b strings.Builder
	for i := 1; i < len(*t); i++ {
		c := (*t)[i]
		switch {
		case c == '"':
			*t = (*t)[i+1:]
			return b.String(), true
		case c == '\\' && i+1 < len(*t):
			i++
			c = (*t)[i]
		case c < ' ' && c != '\t' || c == 0x7f:
			return "", false
		}
		b.WriteByte(c)
	}
	return "", false // it does not end
}

// readNode reads the client's address (RFC 7239, section 6); an address of IPv6 is in
// brackets, and a port may follow. The zero one for "unknown" and for obfuscated names.
func readNode(text string) (netip.Addr, bool) {
	name, _, _ := strings.Cut(text, ":")
	if strings.EqualFold(name, "unknown") || strings.HasPrefix(name, "_") {
		return netip.Addr{}, true
	}
	addr, ok := readAddress(text)
	return addr, ok && (addr.Is4() || text[0] == '[')
}

// readAddress reads an address as proxies write them: with a port or without, that
// of IPv6 in brackets or without.
func readAddress(text string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(text)
	if err != nil && strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		addr, err = netip.ParseAddr(text[1 : len(text)-1])
	}
	if err != nil {
		var at netip.AddrPort
		at, err = netip.ParseAddrPort(text)
		addr = at.Addr()
	}
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, false
	}
	return addr.Unmap(), true
}

func readProto(text string) (string, bool) {
	proto := strings.ToLower(text)
	return proto, proto == "http" || proto == "https"
}

// readXForwarded reads the headers that proxies wrote before there was a standard:
// a list of addresses, the last being the nearest, and the protocol and the host by
// which the first of them asked, or as many of these as there are addresses.
func readXForwarded(addresses, protos, hosts []string) (hops []hop, ok bool) {
	for _, text := range commas(addresses) {
		addr, ok := readAddress(text)
		hops = append(hops, hop{client: addr, unclear: !ok})
	}
	if len(hops) == 0 {
		hops = []hop{{}} // a client without an address, to which the rest belongs
	}
	for _, list := range []struct {
		texts []string
		name  string
	}{{commas(protos), "proto"}, {commas(hosts), "host"}} {
		for i := range hops {
			switch len(list.texts) {
			case 0:
				continue
			case 1:
				ok = hops[i].set(list.name, list.texts[0])
			case len(hops):
				ok = hops[i].set(list.name, list.texts[i])
			default:
				ok = false // it is unknown which belongs to which
			}
			if !ok {
				return nil, false
			}
		}
	}
	return hops, len(addresses)+len(protos)+len(hosts) > 0
}

// commas returns the elements of lists with commas between them.
func commas(fields []string) (all []string) {
	for _, field := range fields {
		for text := range strings.SplitSeq(field, ",") {
			all = append(all, strings.Trim(text, " \t"))
		}
	}
	return all
}
