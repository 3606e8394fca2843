package dnsd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
)

// ExportParent writes the records that others must have, so that a zone is found: its
// name servers, for the administrator of the domain above it, and its rules, for that
// of the root of its scheme. The root is that of this registry if it serves one, or
// urn.arpa for URNs, if none is given.
func (z *Zones) ExportParent(ctx context.Context, w io.Writer, name, root string) error {
	one, err := z.zoneNamed(ctx, name)
	if err != nil {
		return err
	}
	var b strings.Builder
	_, above, _ := strings.Cut(one.name, ".")
	fmt.Fprintf(&b, "; for the administrator of %s\n", orRoot(above))
	servers := one.delegation()
	if len(servers) == 0 {
		fmt.Fprintf(&b, "; (there are no name servers; name them with 'stele zone add %s --ns NAME=ADDRESS')\n", one.argument())
	}
	for _, rr := range servers {
		fmt.Fprintf(&b, "%s %s\n", rr.Header().Name, recordText(rr))
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

// parentRules writes the rules at the key of the zone's namespace.
func (z *zone) parentRules(b *strings.Builder, root string) error {
	head := z.ns.Prefix[:headLen(z.ns.Prefix)]
	scheme, label, ok := strings.Cut(head, ":")
	if !ok {
		return nil // no key is defined for names without a scheme before them
	}
	root, err := z.rootName(scheme, root)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "; for the administrator of %s\n", root)
	var k keyRules
	for _, sc := range z.set.below(head) {
		z.set.lead(&k, sc)
	}
	for _, f := range k.list {
		fmt.Fprintf(b, "%s %s\n", strings.ToLower(label)+"."+root, recordText(naptr("", z.ttl, f)))
	}
	return nil
}

// rootName returns the root under which the keys of a scheme stand.
func (z *zone) rootName(scheme, given string) (string, error) {
	if given != "" {
		return ddds.CanonicalName(given)
	}
	ns := z.set.byKey[stele.NamespaceKey{Scheme: scheme}]
	if ns != nil && ns.Publication.Layout == stele.LayoutRoot {
		return ns.Publication.Zone, nil
	}
	return scheme + ".arpa.", nil // urn.arpa (RFC 3405), ark.arpa (ARK's draft)
}
