package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/registry/access"
)

// zoneFlags are the flags of zone add. Only flags that were given count.
type zoneFlags struct {
	cmd       *cobra.Command
	root      string
	scheme    string
	given     stele.Publication
	servers   []string
	elsewhere []string
	layout    string
}

func (p *program) zoneAddCommand() *cobra.Command {
	var f zoneFlags
	cmd := &cobra.Command{
		Use:   "add {PREFIX | --root ZONE}",
		Short: "Publish a namespace, or change its publication",
		Long: `Add publishes the names that begin with PREFIX in a zone, or changes the settings of an
existing zone that flags name. It makes the namespace if it does not exist. It prints
the name of the zone, and what to do next.

In the layout names, add divides each name into parts, which become the labels of its
owner name from right to left: urn:paradisec:AB1:001:A is a.001.ab1.paradisec.example.
The last part may contain dots. The number of parts is that of the registered names, if
all have the same. A name with another number of parts is resolved over HTTP, at the
resolver; with --exact the registry refuses such new names.

The layout rules puts all rules of a collection at one name, at most 100.

With --root the zone is a root: it leads to all published namespaces of a scheme.
Handles, DOIs and PURLs share a root, that of either scheme (--scheme hdl or purl). With
--elsewhere other servers answer for the namespace, and rules lead to them.`,
		Example: `  stele zone add urn:paradisec --zone paradisec.example. --layout names
  stele zone add urn:paradisec --ns ns1.paradisec.example=192.0.2.1,2001:db8::1 --ns ns2.example.net --resolver id.example.org
  stele zone add urn:example --zone example.org --separator / --parts 2 --mailbox hostmaster@example.org
  stele zone add --root urn.example. --ns ns1.urn.example=192.0.2.1
  stele zone add 20.500.12345/ --zone handles.example.org --parts 1
  stele zone add --root uri.example. --scheme hdl --ns ns1.uri.example=192.0.2.1
  stele zone add urn:nbn:de --elsewhere NAPTR=nbn.example.net --elsewhere NAPTR=nbn2.example.net`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.checkUse(args); err != nil {
				return err
			}
			return p.creating(cmd, func(ctx context.Context, l *Registry) error {
				zones := l.Zones()
				defer zones.Close()
				return p.zoneAdd(ctx, l, zones, &f, args)
			})
		},
	}
	f.add(cmd)
	return usage.NeverFiles(cmd)
}

func (f *zoneFlags) add(cmd *cobra.Command) {
	f.cmd = cmd
	flags := cmd.Flags()
	flags.StringVar(&f.root, "root", "", "make this `zone` the root of a scheme")
	flags.StringVar(&f.scheme, "scheme", "urn", "scheme of --root")
	flags.StringVar(&f.given.Zone, "zone", "", "`name` of the zone, such as paradisec.example.")
	flags.StringVar(&f.layout, "layout", "", "layout: names (an owner name for each name) or rules (all at one name) (default names)")
	flags.StringVar(&f.given.Separator, "separator", "", "character between the parts of names (default: the one after the prefix)")
	flags.IntVar(&f.given.Parts, "parts", 0, "number of parts of a name (default: that of the registered names)")
	flags.BoolVar(&f.given.Exact, "exact", false, "refuse new names with another number of parts; registered names stay")
	flags.StringArrayVar(&f.servers, "ns", nil, "name server of the zone, `NAME=ADDRESS[,ADDRESS]`, the primary first; may be repeated. A server in the zone needs addresses")
	flags.StringVar(&f.given.Mailbox, "mailbox", "", "`mailbox` of the administrator of the zone")
	flags.StringVar(&f.given.Resolver, "resolver", "", "`host`, optionally with a port, that answers over HTTP for names that the DNS can't have")
	flags.StringArrayVar(&f.elsewhere, "elsewhere", nil, "other server that answers: `KIND=WHERE`, with NAPTR, SRV, A or AAAA and a name, or URL and a URL; may be repeated to share the load")
	usage.Choices(cmd, "layout", stele.LayoutNames, stele.LayoutRules)
	usage.Choices(cmd, "separator", ":", "/", "-", ".")
	usage.Choices(cmd, "elsewhere", "NAPTR=", "SRV=", "A=", "AAAA=", "URL=")
}

// checkUse checks the command line.
func (f *zoneFlags) checkUse(args []string) error {
	changed := f.cmd.Flags().Changed
	switch {
	case f.root == "" && len(args) == 0:
		return usage.Errorf(f.cmd, "argument.zone-prefix-missing", "the prefix is missing; give one, such as urn:paradisec, or --root ZONE")
	case f.root != "" && len(args) > 0:
		return usage.Errorf(f.cmd, "argument.root-with-prefix", "a root is of a whole scheme; give --root or a prefix")
	case len(args) > 1:
		return usage.OneArgument("the prefix")(f.cmd, args)
	case f.root == "" && changed("scheme"):
		return usage.Errorf(f.cmd, "flag.scheme-without-root", "--scheme says of which scheme a --root is")
	case f.root != "" && (changed("zone") || changed("layout") || changed("separator") || changed("parts") || changed("exact") || changed("elsewhere")):
		return usage.Errorf(f.cmd, "flag.not-for-root", "a root has --ns, --mailbox and --resolver only")
	case f.root == "" && !usage.Given(f.cmd):
		return usage.Errorf(f.cmd, "flag.zone-missing", "say in which zone, with --zone NAME")
	}
	return nil
}

func (p *program) zoneAdd(ctx context.Context, l *Registry, zones *publish.Zones, f *zoneFlags, args []string) error {
	key := stele.NamespaceKey{Scheme: f.scheme}
	if f.root == "" {
		var err error
		if key, err = l.ParsePrefix(args[0]); err != nil {
			return err
		}
	} else if l.Schemes.Lookup(f.scheme) == nil {
		return usage.Errorf(f.cmd, "scheme.unknown", `"{scheme}" is not a scheme; there are {schemes}`, f.scheme, strings.Join(l.Schemes.Names(), ", "))
	} else if !client.Knows(f.scheme) {
		return usage.Errorf(f.cmd, "flag.root-scheme-without-dns", "{scheme} names have no keys in the DNS, so a root of them would lead nowhere; they are found over HTTP", f.scheme)
	}
	change := func(ns *stele.Namespace) error { return f.apply(ctx, zones, ns) }
	ns, err := l.Namespace(ctx, key)
	switch {
	case errors.Is(err, stele.NotFound):
		ns = &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}
		if err := change(ns); err != nil {
			return err
		}
		ns, err = l.AddNamespace(ctx, ns)
	case err == nil:
		ns, err = l.SetNamespace(ctx, key, 0, change)
	}
	if err != nil {
		return err
	}
	return p.tellAdded(ctx, l, ns)
}

// tellAdded prints the zone, and on stderr what is left to do.
func (p *program) tellAdded(ctx context.Context, l *Registry, ns *stele.Namespace) error {
	if p.json {
		return p.printPrefix(p.stdout, ns)
	}
	name := ns.Publication.Zone
	if name == "" {
		return p.printPrefix(p.stdout, ns)
	}
	if _, err := fmt.Fprintln(p.stdout, name); err != nil {
		return err
	}
	zones := l.Zones()
	defer zones.Close()
	list, err := zones.Advise(ctx, name)
	for _, problem := range list {
		fmt.Fprintf(p.stderr, "stele: %s: %s\n", name, printable(problem.Text))
	}
	return err
}

// apply changes how a namespace is published, and makes sure that it can be.
func (f *zoneFlags) apply(ctx context.Context, zones *publish.Zones, ns *stele.Namespace) error {
	p := &ns.Publication
	var err error
	if f.cmd.Flags().Changed("elsewhere") {
		*p = stele.Publication{}
		if p.Elsewhere, err = f.discoveries(); err != nil {
			return err
		}
		return judged(ctx, zones, ns)
	}
	if len(p.Elsewhere) > 0 {
		*p = stele.Publication{}
	}
	f.applyNames(p)
	if f.cmd.Flags().Changed("ns") {
		if p.Servers, err = f.nameServers(); err != nil {
			return err
		}
	}
	if p.Zone == "" {
		return usage.Errorf(f.cmd, "flag.zone-missing", "say in which zone, with --zone NAME")
	}
	if p.Layout == stele.LayoutNames && (p.Separator == "" || p.Parts == 0) {
		sep, parts, err := zones.Survey(ctx, ns.Key(), p.Separator)
		p.Separator = sep
		if p.Parts == 0 {
			p.Parts = parts
		}
		if err != nil && p.Parts == 0 {
			return err
		}
	}
	return judged(ctx, zones, ns)
}

// judged checks how a namespace is published. The registrar reports faults of the namespace
// itself.
func judged(ctx context.Context, zones *publish.Zones, ns *stele.Namespace) error {
	if ns.Validate() != nil {
		return nil
	}
	return zones.Judge(ctx, ns)
}

// applyNames sets the texts and numbers.
func (f *zoneFlags) applyNames(p *stele.Publication) {
	changed := f.cmd.Flags().Changed
	switch {
	case f.root != "":
		p.Zone, p.Layout = access.Absolute(f.root), stele.LayoutRoot
	case changed("zone"):
		p.Zone = access.Absolute(f.given.Zone)
	}
	if changed("layout") {
		p.Layout = stele.Layout(f.layout)
	}
	if p.Layout == "" {
		p.Layout = stele.LayoutNames
	}
	if p.Layout != stele.LayoutNames {
		p.Separator, p.Parts, p.Exact = "", 0, false
	}
	if changed("exact") {
		p.Exact = f.given.Exact
	}
	if changed("separator") {
		if p.Separator != f.given.Separator {
			p.Parts = 0
		}
		p.Separator = f.given.Separator
	}
	if changed("parts") {
		p.Parts = f.given.Parts
	}
	if changed("mailbox") {
		p.Mailbox = f.given.Mailbox
	}
	if changed("resolver") {
		p.Resolver = strings.ToLower(f.given.Resolver)
	}
}

// nameServers reads the flags --ns. An empty one removes all.
func (f *zoneFlags) nameServers() (list []stele.NameServer, err error) {
	for _, text := range withoutEmpty(f.servers) {
		name, addresses, _ := strings.Cut(text, "=")
		s := stele.NameServer{Name: access.Absolute(name)}
		for _, a := range strings.FieldsFunc(addresses, func(r rune) bool { return r == ',' }) {
			addr, err := netip.ParseAddr(a)
			if err != nil {
				return nil, usage.Errorf(f.cmd, "flag.name-server-address-malformed", `"{text}" is not an IP address; write --ns NAME=192.0.2.1,2001:db8::1`, a)
			}
			s.Addresses = append(s.Addresses, addr.Unmap().String())
		}
		list = append(list, s)
	}
	return list, nil
}

// discoveries reads the flags --elsewhere.
func (f *zoneFlags) discoveries() (list []stele.Discovery, err error) {
	for _, text := range withoutEmpty(f.elsewhere) {
		kind, at, ok := strings.Cut(text, "=")
		d := stele.Discovery{Kind: stele.DiscoveryKind(strings.ToUpper(kind)), At: at}
		if !ok || !d.Kind.IsValid() {
			return nil, usage.Errorf(f.cmd, "flag.delegation-malformed", `"{text}" does not say where; write NAPTR=name, SRV=name, A=name, AAAA=name or URL=url`, text)
		}
		if d.Kind != stele.DiscoverURL {
			d.At = access.Absolute(at)
		}
		list = append(list, d)
	}
	return list, nil
}
