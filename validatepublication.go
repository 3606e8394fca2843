package stele

import (
	"net/netip"
	"strconv"
	"strings"
)

// Limits of what a Publication holds.
const (
	MaxParts       = 16 // of names
	MaxNameServers = 13 // of a zone
	MaxSecondaries = 64 // of a zone
	MaxDiscoveries = 16 // of a namespace that others answer for
	MaxAddresses   = 8  // of a name server

	MaxZoneRecords    = 500      // of the owner in a zone
	MaxZoneRecordData = 4096     // bytes of one of them
	maxZoneRecordText = 48 << 10 // bytes of all of them: each set fits an answer
)

// checkPublication makes sure that a zone can be made of what is said.
func (n *Namespace) checkPublication(f *Report) {
	p := &n.Publication
	if p.IsZero() {
		return
	}
	if len(p.Elsewhere) > 0 {
		p.checkElsewhere(f)
		return
	}
	if reason := domainReason(p.Zone); reason != nil {
		f.Add("publication.zone", reason)
	}
	n.checkLayout(f)
	p.checkSecurity(f)
	p.checkRecords(f)
	p.checkCatalog(f)
	if fits(f, "publication.servers", len(p.Servers), MaxNameServers) {
		for i := range p.Servers {
			p.Servers[i].check(f, ItemPath("publication.servers", i), p.Zone)
		}
		twice(f, "publication.servers", ".name", p.Servers, func(s NameServer) string { return s.Name })
	}
	if p.Mailbox != "" {
		local, host, _ := strings.Cut(p.Mailbox, "@")
		if local == "" || !isPrintable(local) || domainReason(strings.ToLower(host)+".") != nil {
			f.Addf("publication.mailbox", "publication.mailbox-malformed", `"{mailbox}" is not a mailbox; write one such as hostmaster@example.org`, p.Mailbox)
		}
	}
	if p.Resolver != "" {
		if reason := resolverReason(p.Resolver); reason != nil {
			f.Add("publication.resolver", reason)
		}
	}
}

// checkCatalog judges the catalog in which the zone is listed.
func (p *Publication) checkCatalog(f *Report) {
	if p.Catalog == "" {
		return
	}
	if reason := domainReason(p.Catalog); reason != nil {
		f.Add("publication.catalog", reason)
	} else if p.Catalog == p.Zone {
		f.Addf("publication.catalog", "publication.catalog-is-zone", `"{catalog}" is the zone itself; a catalog is a zone of its own`, p.Catalog)
	}
}

// checkSecurity checks how the zone is signed, and which clients may transfer it.
func (p *Publication) checkSecurity(f *Report) {
	if !p.Signing.IsValid() {
		f.Addf("publication.signing", "publication.signing-unknown", `"{mode}" is not a way to sign a zone; use online or transfer, or leave it out`, string(p.Signing))
	}
	if fits(f, "publication.secondaries", len(p.Secondaries), MaxSecondaries) {
		for i := range p.Secondaries {
			p.Secondaries[i].check(f, ItemPath("publication.secondaries", i))
		}
	}
}

func (s *Secondary) check(f *Report, path string) {
	if s.Network == "" && s.Key == "" {
		f.Addf(path, "publication.secondary-empty", "names no secondary; give a network, a key, or both")
	}
	if s.Network != "" && !isNetwork(s.Network) {
		f.Addf(path+".network", "publication.network-malformed", `"{network}" is neither an address nor a network; write one such as 192.0.2.1 or 2001:db8::/48`, s.Network)
	}
	if s.Key != "" {
		if reason := domainReason(s.Key); reason != nil {
			f.Add(path+".key", reason)
		}
	}
	if fits(f, path+".notify", len(s.Notify), MaxAddresses) {
		for i, text := range s.Notify {
			at, err := netip.ParseAddrPort(text)
			if err != nil || at.Port() == 0 || at.Addr().Zone() != "" || at.Addr().Is4In6() || at.String() != text {
				f.Addf(ItemPath(path+".notify", i), "publication.notify-address-malformed", `"{text}" is not an address with a port; write one such as 192.0.2.1:53 or [2001:db8::1]:53`, text)
			}
		}
		twice(f, path+".notify", "", s.Notify, func(s string) string { return s })
	}
}

// isNetwork reports whether a text is an address or a network, written as usual.
func isNetwork(text string) bool {
	if addr, err := netip.ParseAddr(text); err == nil {
		return addr.Zone() == "" && !addr.Is4In6() && addr.String() == text
	}
	prefix, err := netip.ParsePrefix(text)
	return err == nil && !prefix.Addr().Is4In6() && prefix.Masked().String() == text
}

// checkLayout judges the layout and, for names, how they are cut.
func (n *Namespace) checkLayout(f *Report) {
	p := &n.Publication
	switch {
	case !p.Layout.IsValid():
		f.Addf("publication.layout", "publication.layout-unknown", `"{layout}" is not a layout; use names, rules or root`, string(p.Layout))
	case p.Layout == LayoutRoot && n.Prefix != "":
		f.Addf("publication.layout", "publication.root-of-part", "a root zone is of a whole scheme; publish the namespace {scheme}: for it", n.Scheme)
	case p.Layout != LayoutRoot && n.Prefix == "":
		f.Addf("publication.layout", "publication.root-layout-needed", "the root of a scheme has the layout root")
	}
	if p.Layout != LayoutNames {
		if p.Separator != "" || p.Parts != 0 {
			f.Addf("publication.parts", "publication.parts-outside-names-layout", "names are cut into parts in the layout names only; leave separator and parts out")
		}
		if p.Exact {
			f.Addf("publication.exact", "publication.exact-outside-names-layout", "names have a number of parts in the layout names only; leave it out")
		}
		return
	}
	if p.Parts < 1 || p.Parts > MaxParts {
		f.Addf("publication.parts", "publication.parts-out-of-range", "a name has from 1 to {most} parts", MaxParts)
	}
	if len(p.Separator) != 1 || !strings.Contains(":/-_.;,@=+~!$*", p.Separator) {
		f.Addf("publication.separator", "publication.separator-invalid", `"{separator}" can't stand between parts; give one character such as : or /`, p.Separator)
	}
}

func (p *Publication) checkElsewhere(f *Report) {
	here := *p
	here.Elsewhere = nil
	if !here.IsZero() {
		f.Addf("publication.elsewhere", "publication.delegated-elsewhere", "a namespace that others answer for has no zone here; leave out one of both")
	}
	if !fits(f, "publication.elsewhere", len(p.Elsewhere), MaxDiscoveries) {
		return
	}
	for i, d := range p.Elsewhere {
		path := ItemPath("publication.elsewhere", i)
		switch {
		case !d.Kind.IsValid():
			f.Addf(path+".kind", "publication.delegation-kind-unknown", `"{kind}" is not known; use NAPTR, SRV, A, AAAA or URL`, string(d.Kind))
		case d.Kind == DiscoverURL:
			if reason := checkURL(d.At); reason != nil {
				f.Add(path+".at", reason)
			}
		default:
			if reason := domainReason(d.At); reason != nil {
				f.Add(path+".at", reason)
			}
		}
	}
	twice(f, "publication.elsewhere", "", p.Elsewhere, func(d Discovery) Discovery { return d })
}

func (s *NameServer) check(f *Report, path, zone string) {
	if reason := domainReason(s.Name); reason != nil {
		f.Add(path+".name", reason)
	}
	if fits(f, path+".addresses", len(s.Addresses), MaxAddresses) {
		for i, text := range s.Addresses {
			addr, err := netip.ParseAddr(text)
			if err != nil || addr.Zone() != "" || addr.String() != text || addr.Is4In6() {
				f.Addf(ItemPath(path+".addresses", i), "publication.server-address-malformed", `"{text}" is not an IP address; write one such as 192.0.2.1 or 2001:db8::1`, text)
			}
		}
	}
	if len(s.Addresses) == 0 && zone != "" && (s.Name == zone || strings.HasSuffix(s.Name, "."+zone)) {
		f.Addf(path+".addresses", "publication.server-address-missing", `"{server}" is in the zone itself, so resolvers can't find it without an address; give one`, s.Name)
	}
}

// domainReason says why a text is not an absolute domain name that zones can have, or
// "". Underscores are allowed: services have them.
func domainReason(name string) *Message {
	host, ok := strings.CutSuffix(name, ".")
	switch {
	case name == "":
		return Messagef("domain.missing", "is missing; write one such as paradisec.example.")
	case !ok:
		return Messagef("domain.no-final-dot", `"{domain}" does not end in a dot, which says that it is complete; write "{absolute}"`, name, strings.ToLower(name)+".")
	case name != strings.ToLower(name):
		return Messagef("text.capitals", `"{text}" has capitals; write "{lower}"`, name, strings.ToLower(name))
	case len(name) > 254:
		return Messagef("domain.too-long", "has more than {most} bytes", 253)
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 {
			return Messagef("domain.label", `"{domain}" has a label that is empty or longer than 63 bytes; write one such as paradisec.example.`, name)
		}
		for i := range len(label) {
			c := label[i]
			edge := i == 0 || i == len(label)-1
			if !(isDigit(c) || 'a' <= c && c <= 'z' || c == '_' || c == '-' && !edge) {
				return Messagef("domain.invalid", `"{domain}" is not a domain name; write one such as paradisec.example.`, name)
			}
		}
	}
	return nil
}

// resolverReason says why a text is not a host with an optional port, or "".
func resolverReason(text string) *Message {
	host, port, ok := strings.Cut(text, ":")
	if ok {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return Messagef("resolver.port-missing", `"{resolver}" has no port after its colon; write one such as id.example.org:8080`, text)
		}
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return Messagef("resolver.is-address", `"{resolver}" is an address, and SRV records name hosts (RFC 2782); write a name such as id.example.org`, text)
	}
	if domainReason(host+".") != nil {
		return Messagef("resolver.not-a-host", `"{resolver}" is not a host; write one such as id.example.org, in lower case and without a path`, text)
	}
	return nil
}

func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
