package stele

import (
	"net/netip"
	"strings"
)

// MaxGrants is how many roles a namespace may give.
const MaxGrants = 1000

// MaxHosts is to how many hosts the targets of a namespace may be restricted.
const MaxHosts = 1000

// Validate tells everything that is wrong with the namespace, as [Problems] in an
// Error of Kind Invalid. What only a scheme or package mint can judge (whether
// names can be cut there, the grammar of templates and granularities) is left to those
// packages.
func (n *Namespace) Validate() error {
	var f Report
	n.Check(&f)
	return f.Err("validate namespace", ID{})
}

// Check adds everything that is wrong with the namespace to a report; see Validate.
func (n *Namespace) Check(f *Report) {
	if !isSchemeName(n.Scheme) {
		f.Addf("scheme", "namespace.scheme-malformed", `"{scheme}" is not a name of a scheme; give one, such as ark`, n.Scheme)
	}
	if n.Prefix != "" {
		if err := CheckText("", n.Prefix); err != nil {
			f.Add("prefix", err)
		}
	}
	checkName(f, "owner", n.Owner)
	checkProse(f, "title", n.Title)
	n.checkMinter(f)
	if n.TTL > MaxTTL {
		f.Add("ttl", ttlReason(n.TTL))
	}
	if !isStatus(n.Status) {
		f.Add("status", statusReason(n.Status))
	}
	n.Persistence.check(f)
	n.checkTargets(f)
	if n.Delegate != "" {
		if reason := delegateReason(n.Delegate); reason != nil {
			f.Add("delegate", reason)
		}
	}
	n.checkRules(f)
	n.checkPublication(f)
	n.checkGrants(f)
	n.checkKeys(f)
	n.checkHeirs(f)
	n.checkHandOver(f)
	checkTime(f, "created", n.Created)
	checkTime(f, "modified", n.Modified)
	checkName(f, "by", n.By)
}

func (n *Namespace) checkGrants(f *Report) {
	if !fits(f, "grants", len(n.Grants), MaxGrants) {
		return
	}
	for i, g := range n.Grants {
		checkPrincipalName(f, ItemPath("grants", i)+".to", g.To)
		if !g.Role.IsValid() {
			f.Addf(ItemPath("grants", i)+".role", "role.unknown", `"{role}" is not a role; there are reader, editor and owner`, string(g.Role))
		}
	}
	twice(f, "grants", ".to", n.Grants, func(g Grant) string { return g.To })
}

// checkTargets judges what is asked of targets: hosts and protocols.
func (n *Namespace) checkTargets(f *Report) {
	if fits(f, "hosts", len(n.Hosts), MaxHosts) {
		for i, host := range n.Hosts {
			if reason := hostRuleReason(host); reason != nil {
				f.Add(ItemPath("hosts", i), reason)
			}
		}
		twice(f, "hosts", "", n.Hosts, func(s string) string { return s })
	}
	if fits(f, "protocols", len(n.Protocols), MaxProtocols) {
		for i, p := range n.Protocols {
			if !isProtocol(p) {
				f.Addf(ItemPath("protocols", i), "namespace.protocol-not-allowed", `"{protocol}" is not a protocol that is allowed; use some of {protocols}, in lower case`, p, strings.ReplaceAll(protocols, " ", ", "))
			}
		}
		twice(f, "protocols", "", n.Protocols, func(s string) string { return s })
	}
}

// hostRuleReason says why a host, or a domain with a dot before it, can't match
// what [Target.Host] returns, or "".
func hostRuleReason(rule string) *Message {
	if rule != strings.ToLower(rule) {
		return Messagef("text.capitals", `"{text}" has capitals; write "{lower}"`, rule, strings.ToLower(rule))
	}
	if addr, err := netip.ParseAddr(rule); err == nil && addr.Zone() == "" {
		return nil
	}
	domain := strings.TrimPrefix(rule, ".")
	if reason := checkHost(domain); reason != nil || domain[0] == '[' {
		return Messagef("namespace.host-rule", `"{rule}" is not a host; write example.org for a host, .example.org for all below it, or an IP address without brackets`, rule)
	}
	return nil
}

// delegateExample shows a URL of another resolver in messages.
const delegateExample = "https://resolver.example.org/{id}"

// delegateReason says why a text is not a URL of another resolver, or "". What is put
// into it is percent-encoded, so it may stand anywhere after the host.
func delegateReason(template string) *Message {
	url := template
	for _, mark := range [...]string{"{id}", "{rest}"} {
		url = strings.ReplaceAll(url, mark, "x")
	}
	if url == template {
		return Messagef("delegate.no-place", "has neither {id-mark} nor {rest-mark}; write a URL with the place for the name, such as {example}", "{id}", "{rest}", delegateExample)
	}
	protocol, rest, _ := strings.Cut(template, "://")
	if p := strings.ToLower(protocol); p != "http" && p != "https" {
		return Messagef("delegate.protocol", `"{url}" does not begin with http:// or https://, as a resolver's URL does`, template)
	}
	if strings.Contains(authority(rest), "{") {
		return Messagef("delegate.decides-host", "the name must not decide the host; put {id-mark} or {rest-mark} after it, such as {example}", "{id}", "{rest}", delegateExample)
	}
	return checkURL(url)
}

// checkMinter makes sure that the minter has what its kind needs, and no setting that
// only another kind uses: an operator would rely on it.
func (n *Namespace) checkMinter(f *Report) {
	m := &n.Minter
	if !m.Kind.IsValid() {
		f.Addf("minter.kind", "minter.kind-unknown", `"{kind}" is not a kind of minter; use ibi, pilin, noid or uuid, or leave minter out`, string(m.Kind))
		return
	}
	if m.Kind == MinterIBI {
		n.checkIBI(f)
	} else {
		m.refuse(f, m.Host != "", "host")
		m.refuse(f, m.Port != 0, "port")
		m.refuse(f, m.IP != "", "ip")
		m.refuse(f, m.IPPort != 0, "ipPort")
		m.refuse(f, m.AllowPrivate, "allowPrivate")
		m.refuse(f, m.Granularity != "", "granularity")
	}
	if m.Kind == MinterNOID {
		n.checkNOID(f)
	} else {
		m.refuse(f, m.Template != "", "template")
		m.refuse(f, m.Seed != 0, "seed")
		m.refuse(f, m.Order != OwnOrder, "order")
		m.refuse(f, m.Expand != 0, "expand")
		if m.Kind != NoMinter && n.Checked {
			f.Addf("checked", "minter.without-check-character", "the minter {kind} makes names without a check character; use noid, or leave checked out", m.Kind)
		}
	}
	if m.Kind == MinterPILIN && n.Scheme != "hdl" {
		f.Addf("minter.kind", "minter.pilin-needs-hdl", "pilin makes handles; use it in a namespace of the scheme hdl")
	}
}

// refuse adds a problem for a field that the kind of minter does not use.
func (m *Minter) refuse(f *Report, given bool, field string) {
	if !given {
		return
	}
	if m.Kind == NoMinter {
		f.Addf("minter."+field, "minter.setting-without-kind", "means nothing without a kind of minter; give the kind, or leave it out")
		return
	}
	f.Addf("minter."+field, "minter.setting-meaningless", "means nothing to the minter {kind}; leave it out", m.Kind)
}

func (n *Namespace) checkNOID(f *Report) {
	m := &n.Minter
	if m.Template == "" {
		f.Addf("minter.template", "minter.template-missing", "is missing; give one, such as .reedeedk")
		return
	}
	checkName(f, "minter.template", m.Template)
	if !m.Order.IsValid() {
		f.Addf("minter.order", "minter.order-unknown", `"{order}" is not an order of names; use noid for that of the original program, or leave it out`, string(m.Order))
	}
	if m.Expand != 0 && m.Order != OrderNOID {
		f.Addf("minter.expand", "minter.expand-needs-order", "only the order noid has masks that grow; set the order, or leave it out")
	}
	if n.Checked && !strings.HasSuffix(m.Template, "k") {
		f.Addf("minter.template", "minter.template-without-check-character", "names of this namespace end in a check character, so the template ends in k")
	}
}

// checkIBI judges the names of an IBI's server: a host with its port, an IP
// address with its port, or both.
func (n *Namespace) checkIBI(f *Report) {
	m := &n.Minter
	if n.Scheme != "ibi" {
		f.Addf("minter.kind", "minter.ibi-needs-ibi", "ibi makes IBIs; use it in a namespace of the scheme ibi")
	}
	if m.Host == "" && m.IP == "" {
		f.Addf("minter.host", "minter.host-missing", "is missing; an IBI is made from a host name, an IP address or both")
	}
	if m.Host != "" {
		if reason := ibiHostReason(m.Host); reason != nil {
			f.Add("minter.host", reason)
		}
	}
	checkPort(f, "minter.port", m.Host != "", m.Port, "host")
	checkPort(f, "minter.ipPort", m.IP != "", m.IPPort, "ip")
	if m.IP != "" {
		n.checkIP(f)
	}
	checkName(f, "minter.granularity", m.Granularity)
}

func ibiHostReason(host string) *Message {
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	switch {
	case err == nil:
		return Messagef("minter.host-is-address", `"{host}" is an IP address; give it as ip, with its port as ipPort`, host)
	case checkHost(host) != nil:
		return Messagef("minter.host-invalid", `"{host}" is not a host name; give one such as mtc-m18.sid.inpe.br`, host)
	case !strings.Contains(host, "."):
		return Messagef("minter.host-without-dot", `"{host}" has no dot; an IBI needs a fully qualified domain name`, host)
	case host != strings.ToLower(host):
		return Messagef("text.capitals", `"{text}" has capitals; write "{lower}"`, host, strings.ToLower(host))
	}
	return nil
}

func checkPort(f *Report, path string, needed bool, port uint16, of string) {
	if needed && port == 0 {
		f.Addf(path, "minter.port-missing", "is missing; give the server's port, 1 to 65535")
	} else if !needed && port != 0 {
		f.Addf(path, "minter.port-alone", "means nothing without {needed}; give that too, or leave the port out", of)
	}
}

// checkIP judges an IBI server's address. The scheme refuses some more that are
// not unique; here are those that are wrong beyond doubt.
func (n *Namespace) checkIP(f *Report) {
	m := &n.Minter
	addr, err := netip.ParseAddr(m.IP)
	if err != nil || addr.Zone() != "" {
		f.Addf("minter.ip", "minter.ip-not-an-address", `"{address}" is not an IP address`, m.IP)
		return
	}
	if text := addr.Unmap().String(); text != m.IP {
		f.Addf("minter.ip", "minter.ip-not-canonical", `"{text}" is not the usual way to write the address; write {canonical}`, m.IP, text)
	}
	addr = addr.Unmap()
	if !m.AllowPrivate && (!addr.IsGlobalUnicast() || addr.IsPrivate()) {
		f.Addf("minter.ip", "minter.ip-not-public", "others have the address {address} too, so names made from it would not be unique; give a public one, or set allowPrivate (--allow-private)", addr)
	}
}
