package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/client/dnssec"
	"github.com/stele-id/stele/client/ways"
	"github.com/stele-id/stele/cmd/stele/card"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/resolver"
)

// resolveFlags are the flags of resolve.
type resolveFlags struct {
	cmd           *cobra.Command
	service       string
	accept        string
	protocols     []string
	flags         []string
	onlyProtocols []string
	via           []string
	dns           dnsFlags
	hdl           hdlFlags
	origins       []string
	originURL     string
	server        string
	timeout       time.Duration
	trace         bool
	compare       bool
	dnsFirst      bool // prefer the DNS to the local registry, unless a flag says which
}

func (p *program) resolveCommand() *cobra.Command {
	var f resolveFlags
	cmd := &cobra.Command{
		Use:   "resolve ID",
		Short: "Find where an identifier leads",
		Long: `Resolve prints the location of what an identifier stands for, or of its metadata (N2C),
its signature (N2S) or its persistence statement (N2P). It does not fetch the location.

There are four ways to resolve. dns follows the rules that the publisher put into the
DNS, http asks a resolver (--server), hdl asks servers of the Handle System, and local
reads the registry of --data. --via says which ways to try, in which order. Without --via
resolve uses the way that other flags imply, or else the local registry, if there is one,
and then the DNS. If one way does not know the name, resolve tries the next.

If the rules in the DNS end at a resolver that speaks THTTP, resolve asks that resolver.
If they end at a server of the Handle System and the name is a handle, resolve asks that
server. If they end at another service, resolve prints its address, and on standard error
its kind.

By the Handle protocol resolve finds handles and DOIs: at the server that --hdl names, at
the site that the file of --hdl-site describes, or, with --hdl-root, at the site that the
root of the Handle System names for the prefix. The files are a siteinfo.bin or
siteinfo.json, or a root_info. If resolve knows the key of a site it asks for certified
answers, and an answer that is not signed with that key is an error. A server that --hdl
names has no key that resolve knows; its answers are not certified.

Resolve queries name servers unencrypted, over TLS (--dns tls://HOST) or over HTTPS
(--dns https://HOST/dns-query). TLS and HTTPS servers must authenticate: with a
certificate for the name after #, or else for HOST, or with a key whose digest is
?pin=sha256/... . If they fail, resolve does not fall back to unencrypted queries.

With --dnssec resolve validates all answers of the DNS, from the trust anchors down. An
answer that fails validation is an error, which names the broken link. If a zone is not
signed, resolve says so on standard error.

Resolve also asks for services that other systems define: N2Ls (all locations), N2R,
N2Ns (all names) and so on; I2L is N2L. It prints all lines of a list. A rule in the DNS
may have flags; --flag names those at which to stop, and resolve skips rules with
others.

A name that says which server made it, as an IBI does, leads to that server if the local
registry does not have it and --origins lists the server.

With --trace resolve prints every step: DNS queries, rules, servers, requests. With
--compare it tries all ways, and prints whether they agree.

Exit codes:
  1  with --dnssec, an answer fails validation; with --compare, the ways do not agree
  3  the name is not known
  4  the name was withdrawn
  5  no server could answer`,
		Example: `  stele resolve urn:paradisec:AB1:001:A
  stele resolve urn:paradisec:AB1:001:A --accept 'audio/mpeg, audio/*;q=0.5' --trace
  stele resolve urn:paradisec:AB1:001:A --dns 127.0.0.1:5353 --root urn.example. --service N2C
  stele resolve urn:paradisec:AB1:001:A --dns tls://192.0.2.1#dns.example.org --dnssec
  stele resolve urn:paradisec:AB1:001:A --dns https://dns.example.org/dns-query --dnssec=trust-ad
  stele resolve ark:12345/x54xz321 --server https://id.example.org --json | jq -r .location
  stele resolve hdl:20.500.12345/abc --hdl hdl.example.org --trace
  stele resolve hdl:20.500.12345/abc --hdl-root root_info
  stele resolve iconet.com.br/banon/2009/09.08.21.15 --origins .iconet.com.br
  stele resolve urn:paradisec:AB1:001:A --compare --dns 127.0.0.1:5353 --root urn.example. --server http://localhost:8080
  stele resolve urn:paradisec:ab1:001:a --dns 127.0.0.1:5353 --root @urn.arpa --compat`,
		Args: usage.OneArgument("the identifier"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := f.request(args[0])
			if err != nil {
				return err
			}
			return p.resolve(&f, q)
		},
	}
	f.add(cmd)
	return usage.NeverFiles(cmd)
}

func (f *resolveFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.service, "service", string(stele.N2L), "service: N2L (the resource), N2C (its metadata), N2S (its signature), N2P (its persistence statement), or another service of RFC 2483 or of the publisher, such as N2Ls or N2Ns")
	flags.StringVar(&f.accept, "accept", "", "media `types`, such as 'audio/mpeg, audio/*;q=0.5'; for N2S algorithms, such as ED25519")
	flags.StringSliceVar(&f.flags, "flag", nil, "`flags` of the rule in the DNS at which to stop, such as RES:http, DIS:SRV or s; DIS and RES match all flags that begin so")
	flags.BoolVar(&f.trace, "trace", false, "print every step")
	flags.BoolVar(&f.compare, "compare", false, "try all ways, and print whether they agree")
	usage.Choices(cmd, "service", stele.N2L, stele.N2C, stele.N2S, stele.N2P)
	usage.Choices(cmd, "flag", ddds.FlagSRV, ddds.FlagURI, ddds.FlagDisSRV, ddds.FlagDisURL, ddds.FlagDisNAPTR, "RES:https", "RES:http")
	f.addWays(cmd)
}

// addWays adds the flags that say how to resolve. The flag for media types must exist.
func (f *resolveFlags) addWays(cmd *cobra.Command) {
	f.cmd = cmd
	flags := cmd.Flags()
	flags.StringSliceVar(&f.protocols, "protocol", nil, "preferred `protocols` of the location, such as https,ftp")
	flags.StringSliceVar(&f.onlyProtocols, "only-protocol", nil, "allowed `protocols` of the location")
	flags.StringSliceVar(&f.via, "via", nil, "`ways` to try, in this order: dns, http, hdl, local")
	flags.StringSliceVar(&f.origins, "origins", environmentList("origins", nil), "`hosts`, .domains and networks of servers that answer for names that they made and that the local registry does not have, as IBIs (environment: STELE_ORIGINS)")
	flags.StringVar(&f.originURL, "origin-url", config.Find("origin-url").Usual, "template of the `URL` at which such a server is asked")
	f.dns.add(cmd)
	f.hdl.add(cmd)
	flags.StringVar(&f.server, "server", os.Getenv("STELE_SERVER"), "`URL` of a resolver to ask over HTTP (environment: STELE_SERVER)")
	flags.DurationVar(&f.timeout, "timeout", 15*time.Second, "maximum duration of the whole resolution")
	usage.Choices(cmd, "via", client.ViaDNS, client.ViaHTTP, client.ViaHandle, client.ViaLocal)
	usage.Choices(cmd, "protocol", "https", "http", "ftp", "rtsp")
	usage.Choices(cmd, "only-protocol", "https", "http", "ftp", "rtsp")
	usage.Choices(cmd, "accept", "text/html", "application/json", "application/pdf")
}

// request makes the request of the flags.
func (f *resolveFlags) request(name string) (client.Request, error) {
	q := client.Request{Name: name, Protocols: f.protocols, Trace: f.trace}
	var err error
	if q.Service, err = ddds.ParseService(f.service); err != nil {
		return q, usage.Errorf(f.cmd, "flag.service-unknown", `--service: "{service}" is not a service; there are N2L, N2C, N2S, N2P and others of that shape`, f.service)
	}
	for _, text := range f.flags {
		flag, err := ddds.ParseWantedFlag(text)
		if err != nil {
			return q, usage.Errorf(f.cmd, "", "--flag: {cause}", err)
		}
		q.Flags = append(q.Flags, flag)
	}
	if len(f.onlyProtocols) > 0 {
		if len(f.protocols) > 0 {
			return q, usage.Errorf(f.cmd, "flag.protocol-and-only-protocol", "--protocol and --only-protocol both name protocols; keep one")
		}
		q.Protocols, q.OnlyProtocols = f.onlyProtocols, true
	}
	if f.timeout <= 0 {
		return q, usage.Errorf(f.cmd, "flag.timeout-not-positive", "the --timeout must be longer than nothing")
	}
	if q.Accept, err = ways.ParseAccept(f.accept, q.Service); err != nil {
		return q, usage.Errorf(f.cmd, "", "--accept: {cause}", err)
	}
	return q, nil
}

// resolve is the verb.
func (p *program) resolve(f *resolveFlags, q client.Request) error {
	schemes, err := p.schemes(f.cmd)
	if err != nil {
		return err
	}
	id, err := p.parseName(f.cmd, schemes, f.server, q.Name)
	if err != nil {
		return err
	}
	list, err := p.ways(f, schemes, id)
	if err != nil {
		return err
	}
	defer list.Close()
	ctx, stop := signal.NotifyContext(f.cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	if f.compare {
		return p.compare(id, ways.Compare(ctx, schemes, id, q, list))
	}
	res, err := client.First(ctx, q, list.Ways()...)
	return p.printResolution(&q, &res, err)
}

// printResolution prints where a name leads, and the steps if they are wanted.
func (p *program) printResolution(q *client.Request, res *client.Result, err error) error {
	var told error
	switch {
	case p.json && err == nil:
		told = p.printObject(res)
	case p.json && q.Trace:
		told = p.printObject(newFailure(q.Name, err, res.Trace))
	case p.json:
	case q.Trace && res.Trace != nil:
		_, told = fmt.Fprint(p.stdout, res.Trace)
	case err == nil:
		_, told = fmt.Fprintln(p.stdout, printable(res.Location))
		if strings.HasSuffix(string(q.Service), "s") { // a list was asked for
			for _, other := range res.Others {
				_, err := fmt.Fprintln(p.stdout, printable(other))
				told = cmp.Or(told, err)
			}
		}
	}
	if err == nil && res.Note != "" && !p.json && !q.Trace {
		fmt.Fprintf(p.stderr, "stele: %s\n", printable(res.Note))
	}
	if err == nil && res.DNSSEC == dnssec.Insecure && !p.json && !q.Trace {
		fmt.Fprintf(p.stderr, "stele: INSECURE: %s\n", printable(res.Insecure))
	}
	if told != nil {
		return told
	}
	return err
}

// failureDocument is a resolution that failed, as programs see it.
type failureDocument struct {
	Name  string        `json:"name"`
	Error string        `json:"error"`
	Kind  string        `json:"kind"`
	Bogus *dnssec.Bogus `json:"bogus,omitempty"` // an answer that fails validation
	Trace *client.Trace `json:"trace,omitempty"`
}

func newFailure(name string, err error, trace *client.Trace) failureDocument {
	d := failureDocument{Name: name, Error: err.Error(), Kind: stele.KindOf(err).String(), Trace: trace}
	d.Bogus, _ = errors.AsType[*dnssec.Bogus](err)
	return d
}

// via returns the ways to try.
func (p *program) via(f *resolveFlags, id stele.ID) ([]client.Via, error) {
	changed := f.cmd.Flags().Changed
	c := ways.Choice{
		DNS: f.dns.isGiven(f.cmd), Handle: f.hdl.isGiven(f.cmd), Server: f.server != "", Local: changed("data") || changed("store"),
		ServerImplied: !changed("server"), // one that the environment names for all verbs
		Registered:    p.hasFolder() == nil, InDNS: client.Knows(id.Scheme()), DNSFirst: f.dnsFirst, Compare: f.compare,
	}
	for _, text := range f.via {
		via := client.Via(strings.ToLower(text))
		if !slices.Contains([]client.Via{client.ViaDNS, client.ViaHTTP, client.ViaHandle, client.ViaLocal}, via) {
			return nil, usage.Errorf(f.cmd, "flag.via-unknown", `"{text}" is not a way to resolve; there are dns, http, hdl and local`, text)
		}
		c.Named = append(c.Named, via)
	}
	return c.Ways(), nil
}

// ways makes the ways to try.
func (p *program) ways(f *resolveFlags, schemes *stele.Schemes, id stele.ID) (list ways.List, err error) {
	chosen, err := p.via(f, id)
	if err != nil {
		return nil, err
	}
	if f.compare && len(chosen) < 2 {
		return nil, usage.Errorf(f.cmd, "flag.compare-one-way", "to compare takes two ways; name them with --via, a resolver with --server, a registry with --data")
	}
	timeout := f.timeout
	if len(chosen) > 1 {
		timeout /= 2 // for a way that does not answer, so that another is tried
	}
	for _, via := range chosen {
		var w client.Way
		switch via {
		case client.ViaDNS:
			w, err = p.dnsWay(f.cmd, &f.dns, schemes, timeout)
		case client.ViaHTTP:
			w, err = p.httpWay(f, schemes)
		case client.ViaHandle:
			w, err = p.handleWay(f, schemes, timeout)
		case client.ViaLocal:
			w, err = p.localWay(f, schemes)
		}
		if err != nil {
			list.Close()
			return nil, err
		}
		list = append(list, ways.Named{Via: via, Way: w})
	}
	return list, nil
}

// httpWay makes the way over HTTP.
func (p *program) httpWay(f *resolveFlags, schemes *stele.Schemes) (client.Way, error) {
	if f.server == "" {
		return nil, usage.Errorf(f.cmd, "flag.resolver-missing", "which resolver? Name it with --server URL")
	}
	roots, err := p.remote.roots()
	if err != nil {
		return nil, err
	}
	way, err := client.NewHTTP(client.HTTPOptions{Schemes: schemes, Server: f.server, Timeout: f.timeout, RootCAs: roots})
	if err != nil {
		return nil, usage.Errorf(f.cmd, "", "--server: {cause}", errors.Unwrap(err))
	}
	return way, nil
}

// localWay makes the way by the registry that the flags name.
func (p *program) localWay(f *resolveFlags, schemes *stele.Schemes) (*ways.Local, error) {
	origins, err := resolver.NewOrigins(f.origins, f.originURL)
	if err != nil {
		return nil, usage.Errorf(f.cmd, "", "--origins: {cause}", err)
	}
	return &ways.Local{Schemes: schemes, Place: p.data, Open: func(ctx context.Context) (*ways.Opened, error) {
		if err := p.place().Exists(); err != nil {
			return nil, err
		}
		p.brief = true
		r, err := p.openRegistry(ctx, schemes, slog.New(slog.DiscardHandler), resolver.Options{Origins: origins})
		if err != nil {
			return nil, err
		}
		return &ways.Opened{Resolver: r.Resolver, Records: r.Store, Close: r.Close}, nil
	}}, nil
}

// outcomeDocument is what one way says, as programs see it.
type outcomeDocument struct {
	Via      client.Via    `json:"via"`
	Location string        `json:"location,omitempty"`
	Found    client.Found  `json:"found,omitempty"`
	Type     string        `json:"type,omitempty"`
	TTL      uint32        `json:"ttl,omitempty"`
	DNSSEC   dnssec.Status `json:"dnssec,omitempty"`
	Error    string        `json:"error,omitempty"`
	Kind     string        `json:"kind,omitempty"`
	Trace    *client.Trace `json:"trace,omitempty"`
}

// comparison is what all ways say, as programs see it.
type comparison struct {
	ID    stele.ID          `json:"id"`
	Agree bool              `json:"agree"`
	Ways  []outcomeDocument `json:"ways"`
}

// compare prints what all ways say, and whether they agree. If one of them does not answer,
// that is unknown.
func (p *program) compare(id stele.ID, c ways.Comparison) error {
	if err := p.printComparison(id, &c); err != nil {
		return err
	}
	switch {
	case c.Unanswered != nil:
		return c.Unanswered
	case !c.Agree:
		return &stele.Error{Op: "compare", ID: id, Kind: stele.Conflict, Err: stele.Messagef("resolve.ways-disagree", "the ways do not agree; --trace tells how each came to its answer")}
	}
	return nil
}

func (p *program) printComparison(id stele.ID, c *ways.Comparison) error {
	if p.json {
		d := comparison{ID: id, Agree: c.Agree}
		for i := range c.Outcomes {
			d.Ways = append(d.Ways, newOutcome(&c.Outcomes[i]))
		}
		return p.printObject(d)
	}
	var b strings.Builder
	for i := range c.Outcomes {
		if t := c.Outcomes[i].Result.Trace; t != nil {
			fmt.Fprintf(&b, "%s: %s\n", c.Outcomes[i].Via, t)
		}
	}
	fmt.Fprintln(&b, printable(id.String()))
	for i := range c.Outcomes {
		o := &c.Outcomes[i]
		switch {
		case o.Err != nil:
			card.Row(&b, string(o.Via), "("+stele.KindOf(o.Err).String()+") "+printable(o.Err.Error()))
		case o.Result.Found == client.FoundServer:
			card.Row(&b, string(o.Via), printable(o.Result.Location)+"  (a resolver)")
		default:
			card.Row(&b, string(o.Via), printable(o.Result.Location))
		}
	}
	verdict := "they agree"
	switch {
	case c.Unanswered != nil:
		verdict = "not known: a way does not answer"
	case !c.Agree:
		verdict = "they do not agree"
	}
	card.Row(&b, "result", verdict)
	_, err := fmt.Fprint(p.stdout, b.String())
	return err
}

func newOutcome(o *ways.Outcome) outcomeDocument {
	d := outcomeDocument{Via: o.Via, Trace: o.Result.Trace}
	if o.Err != nil {
		d.Error, d.Kind = o.Err.Error(), stele.KindOf(o.Err).String()
		return d
	}
	d.Location, d.Found, d.Type, d.TTL, d.DNSSEC = o.Result.Location, o.Result.Found, o.Result.Type, o.Result.TTL, o.Result.DNSSEC
	return d
}

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
	flags.StringVar(&f.root, "root", "", "`zone` with the keys of all namespaces, such as urn.example., or @NAME for one name with the rules of all namespaces (default urn.arpa.; for ARKs ark.arpa.; for handles, DOIs and PURLs uri.arpa.)")
	flags.StringSliceVar(&f.compat, "compat", nil, "`zones` whose rules have patterns and URLs in separate fields, as the thesis on the EDDDS prints them; without a value: all zones")
	flags.Lookup("compat").NoOptDefVal = "."
	flags.StringVar(&f.dnssec, "dnssec", "", "DNSSEC `mode`: validate (check signatures; the default of the flag alone) or trust-ad (trust the AD bit of name servers that are queried over tls:// or https://)")
	flags.Lookup("dnssec").NoOptDefVal = string(client.Validate)
	flags.StringVar(&f.anchors, "anchors", "", "`file` of trust anchors, as DNSKEY or DS records; with --dnssec (default: those of the root of the public DNS)")
	if f.unproven {
		usage.Choices(cmd, "dnssec", client.Validate, client.TrustAD, dnssecOff)
	} else {
		usage.Choices(cmd, "dnssec", client.Validate, client.TrustAD)
	}
	usage.Choices(cmd, "dns", "tls://", "https://", "127.0.0.1:")
	// It fails only for a flag that the command does not have.
	_ = cmd.RegisterFlagCompletionFunc("anchors", usage.Files)
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
			return nil, usage.Errorf(cmd, "", "--dns: {cause}", errors.Unwrap(err))
		}
		o.Servers = append(o.Servers, server)
	}
	way, err := client.NewDNS(o)
	if errors.Is(err, stele.Invalid) {
		return nil, usage.Errorf(cmd, "", "{cause}", errors.Unwrap(err))
	}
	return way, err
}

// readAnchors reads the trust anchors; nil if none are named.
func (f *dnsFlags) readAnchors(cmd *cobra.Command) (*dnssec.Anchors, error) {
	if f.anchors == "" {
		return nil, nil
	}
	if f.dnssec != string(client.Validate) {
		return nil, usage.Errorf(cmd, "flag.anchors-without-dnssec", "--anchors are for checking signatures; add --dnssec")
	}
	text, err := disk.ReadSome(f.anchors, maxAnchorFile)
	if err != nil {
		return nil, err
	}
	anchors, err := dnssec.ParseAnchors(bytes.NewReader(text))
	if err != nil {
		return nil, refuse("resolve", stele.Invalid, "anchors-file.invalid", `the trust anchors in "{file}": {cause}`, f.anchors, errors.Unwrap(err))
	}
	return anchors, nil
}
