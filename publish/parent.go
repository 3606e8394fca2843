package publish

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/publish/naptr"
	"github.com/stele-id/stele/publish/zonemap"
)

// ExportParent writes the records that administrators of other zones must publish so that
// clients find a zone: its name servers, for the administrator of the domain above it, and
// its rules, for that of the root of its scheme and, of URIs with a host, for that of the
// host's name. The root is that of this registry if it serves one, or urn.arpa for URNs, if
// none is given.
func (z *Zones) ExportParent(ctx context.Context, w io.Writer, name, root string) error {
	one, err := z.zoneNamed(ctx, name)
	if err != nil {
		return err
	}
	var b strings.Builder
	_, above, _ := strings.Cut(one.Name, ".")
	fmt.Fprintf(&b, "; for the administrator of %s\n", orRoot(above))
	servers := one.delegation()
	if len(servers) == 0 {
		fmt.Fprintf(&b, "; (there are no name servers; name them with 'stele zone add %s --ns NAME=ADDRESS')\n", one.argument())
	}
	for _, rr := range servers {
		fmt.Fprintf(&b, "%s %s\n", rr.Header().Name, naptr.Text(rr))
	}
	if one.ns.Publication.Layout != stele.LayoutRoot {
		if err := one.parentRules(&b, root); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, b.String())
	return err
}

func orRoot(name string) string {
	if name == "" {
		return "the root of the DNS"
	}
	return name
}

// registryTTL is the TTL of records that IANA is asked to publish: such records are not to
// change, and live long (RFC 3405, section 4).
const registryTTL = 365 * 24 * 60 * 60

// parentRules writes the rules at the key of the zone's namespace. A record there leads to
// the apex of the zone, where the rules themselves are: they can change without the
// administrator of the root (RFC 3405, section 4).
func (z *Zone) parentRules(b *strings.Builder, root string) error {
	key, ok := zonemap.KeyOf(z.set.schemes, z.ns.Key())
	if !ok {
		fmt.Fprintf(b, "; (clients find %s over HTTP only: there is no key for such names)\n", z.ns.Prefix)
		return nil
	}
	root, err := z.rootName(key.Root, root)
	if err != nil {
		return err
	}
	ttl, registry := z.ttl, strings.HasSuffix(root, ".arpa.")
	if registry {
		ttl = registryTTL
	}
	fmt.Fprintf(b, "; for the administrator of %s%s\n", root, z.remark(key, registry))
	for _, label := range key.Labels {
		if registry {
			z.template(b, label, root)
		}
		for _, f := range z.rulesAtKey(key, label) {
			record := naptr.Text(naptr.NewNAPTR("", ttl, f))
			if registry {
				_, data, _ := strings.Cut(record, " IN ")
				fmt.Fprintf(b, "; Record: %s IN %s\n", label, data)
			}
			fmt.Fprintf(b, "%s.%s %s\n", label, root, record)
		}
	}
	if key.Host != "" {
		z.hostRules(b, key.Host)
	}
	return nil
}

// remark says what an administrator of a root has to know of the keys of URIs.
func (z *Zone) remark(key zonemap.Key, registry bool) string {
	switch {
	case key.Root != zonemap.URIs || !registry:
		return ""
	case key.Host != "":
		return ", unless the keys are there: they are the same for all hosts"
	}
	return ", which takes schemes of the IETF tree only (RFC 3405, section 3.1.1); otherwise use a root of your own (stele zone add --root)"
}

// rulesAtKey returns the rules that the root is to have at a key.
func (z *Zone) rulesAtKey(key zonemap.Key, label string) []ddds.Fields {
	switch {
	case key.Host != "":
		return []ddds.Fields{hostRule(label, naptr.Order)}
	case key.Root == zonemap.URIs:
		var k keyRules
		sc := z.set.uriScope(z.ns)
		sc.addRule(&k, ddds.FlagNone, ddds.Services{}, naptr.Preference, z.Name)
		return k.list
	}
	return z.set.delegation(z.ns.Prefix[:zonemap.Head(z.ns.Prefix)]).list
}

// hostRules writes the rules at the name of the host in the URIs, to which the root leads.
func (z *Zone) hostRules(b *strings.Builder, host string) {
	if z.set.zones[host] != nil {
		fmt.Fprintf(b, "; (the zone %s of this registry has the rules that keys lead to)\n", host)
		return
	}
	var k keyRules
	sc := z.set.uriScope(z.ns)
	sc.addRule(&k, ddds.FlagNone, ddds.Services{}, naptr.Preference, z.Name)
	fmt.Fprintf(b, "; for the administrator of %s\n", host)
	for _, f := range k.list {
		fmt.Fprintf(b, "%s %s\n", host, naptr.Text(naptr.NewNAPTR("", z.ttl, f)))
	}
}

// template writes what a request to the registry needs beside the records (RFC 3405,
// section 6).
func (z *Zone) template(b *strings.Builder, label, root string) {
	mailbox := z.ns.Publication.Mailbox
	if mailbox == "" {
		mailbox = "hostmaster@" + strings.TrimSuffix(z.Name, ".")
	}
	fmt.Fprintf(b, "; To: register@%s\n; From: %s\n; Key: %s\n", strings.ToUpper(strings.TrimSuffix(root, ".")), mailbox, label)
	fmt.Fprintf(b, "; Authority: (who registered %s, and the document that says so)\n", label)
}

// delegation returns the rules that lead from a key to the zones of its names. A
// namespace that all of them belong to has rules for those below it in its own zone.
func (s *zoneSet) delegation(head string) (k keyRules) {
	list := s.below(head)
	if i := slices.IndexFunc(list, func(sc scope) bool { return sc.whole }); i >= 0 {
		list = list[i : i+1]
	}
	for _, sc := range list {
		if zone := sc.ns.Publication.Zone; s.zones[zone] != nil && s.zones[zone].ns == sc.ns {
			sc.addRule(&k, ddds.FlagNone, ddds.Services{}, naptr.Preference, zone)
			continue
		}
		s.addNamespaceRules(&k, sc)
	}
	return k
}

// rootName returns the root under which keys stand.
func (z *Zone) rootName(root, given string) (string, error) {
	if given != "" {
		return ddds.CanonicalName(given)
	}
	for _, ns := range z.set.list {
		if ns.Publication.Layout == stele.LayoutRoot && zonemap.RootOf(z.set.schemes, ns.Scheme) == root {
			return ns.Publication.Zone, nil
		}
	}
	return root + ".arpa.", nil // urn.arpa and uri.arpa (RFC 3405), ark.arpa (ARK's draft)
}
