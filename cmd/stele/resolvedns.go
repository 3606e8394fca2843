package main

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/client/dnssec"
)

// dnsFlags say how the DNS is asked.
type dnsFlags struct {
	servers []string
	root    string
	compat  []string
	dnssec  string
	anchors string

	permit func(netip.AddrPort) error // of resolvers that rules name; nil: any address

	unproven bool // --dnssec=off: answers are not validated
}

// dnssecOff is the value of --dnssec that turns validation off.
const dnssecOff client.DNSSEC = "off"

func (f *dnsFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.servers, "dns", nil, "`address` of a name server, such as 127.0.0.1:5353, tls://192.0.2.1#dns.example.org or https://dns.example.org/dns-query; may be repeated (default: the system's)")
	flags.StringVar(&f.root, "root", "", "`zone` with the keys of all namespaces, such as urn.example., or with @ before it one name with the rules of all (default urn.arpa., of ARKs ark.arpa., of handles, DOIs and PURLs uri.arpa.)")
	flags.StringSliceVar(&f.compat, "compat", nil, "`zones` whose rules have patterns and URLs in separate fields, as the thesis on the EDDDS prints them; alone: all")
	flags.Lookup("compat").NoOptDefVal = "."
	flags.StringVar(&f.dnssec, "dnssec", "", "have answers of the DNS prove themselves: `how` is validate (check signatures; alone it is that) or trust-ad (take the word of name servers that are asked by tls:// or https://)")
	flags.Lookup("dnssec").NoOptDefVal = string(client.Validate)
	flags.StringVar(&f.anchors, "anchors", "", "`file` with the keys to trust, as DNSKEY or DS records; with --dnssec (default: those of the public DNS's root)")
	if f.unproven {
		choices(cmd, "dnssec", client.Validate, client.TrustAD, dnssecOff)
	} else {
		choices(cmd, "dnssec", client.Validate, client.TrustAD)
	}
	choices(cmd, "dns", "tls://", "https://", "127.0.0.1:")
	// It fails only for a flag that the command does not have.
	_ = cmd.RegisterFlagCompletionFunc("anchors", completeNames)
}

// isGiven reports whether a flag about the DNS was given.
func (f *dnsFlags) isGiven(cmd *cobra.Command) bool {
	changed := cmd.Flags().Changed
	return changed("dns") || changed("root") || changed("compat") || changed("dnssec") || changed("anchors")
}

// maxAnchorFile is how long a file of trust anchors may be.
const maxAnchorFile = 1 << 20

// dnsWay makes the way over the DNS. A root given is that of all schemes: one name is
// resolved.
func (p *program) dnsWay(cmd *cobra.Command, f *dnsFlags, schemes *stele.Schemes, timeout time.Duration) (*client.DNS, error) {
	roots, err := p.remote.roots()
	if err != nil {
		return nil, err
	}
	o := client.DNSOptions{
		Schemes: schemes, Now: p.now, Random: rand.IntN, ThesisZones: f.compat, Timeout: timeout, RootCAs: roots,
		Roots: map[string]string{"urn": f.root, "ark": f.root, client.RootOfURIs: f.root}, DNSSEC: client.DNSSEC(f.dnssec), Permit: f.permit,
	}
	if o.Anchors, err = f.readAnchors(cmd); err != nil {
		return nil, err
	}
	for _, text := range f.servers {
		server, err := client.ParseServer(text)
		if err != nil {
			return nil, misuse(cmd, "--dns: %w", errors.Unwrap(err))
		}
		o.Servers = append(o.Servers, server)
	}
	way, err := client.NewDNS(o)
	if errors.Is(err, stele.Invalid) {
		return nil, misuse(cmd, "%w", errors.Unwrap(err))
	}
	return way, err
}

// readAnchors reads the trust anchors; nil if none are named.
func (f *dnsFlags) readAnchors(cmd *cobra.Command) (*dnssec.Anchors, error) {
	if f.anchors == "" {
		return nil, nil
	}
	if f.dnssec != string(client.Validate) {
		return nil, misuse(cmd, "--anchors are for checking signatures; add --dnssec")
	}
	text, err := readSome(f.anchors, maxAnchorFile)
	if err != nil {
		return nil, err
	}
	anchors, err := dnssec.ParseAnchors(bytes.NewReader(text))
	if err != nil {
		return nil, refuse("resolve", stele.Invalid, "the trust anchors in %.200q: %w", f.anchors, errors.Unwrap(err))
	}
	return anchors, nil
}
