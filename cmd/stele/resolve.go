package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	"github.com/stele-id/stele/ddds"
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
		Long: `Resolve prints the location of what an identifier stands for, or of its metadata
(N2C), its signature (N2S) or the promise of its persistence (N2P). Nothing is
fetched from there.

There are three ways, and --via says which are tried, in which order: dns walks the
rules that its publisher put into the DNS, http asks a resolver (--server), and local
looks into the registry of --data. Without --via it is the way that other flags speak
of, or else the registry if there is one, and then the DNS. A way that does not know
the name leaves it to the next.

If the DNS ends at a resolver that speaks THTTP, that one is asked. If it speaks
something else its address is printed, and on standard error what it is.

Name servers are asked in clear, or by TLS (--dns tls://HOST) or HTTPS (--dns
https://HOST/dns-query). These must prove who they are: by a certificate for the name
behind #, or else for HOST, or by ?pin=sha256/..., the digest of their key. If they
fail nobody is asked in clear instead.

With --dnssec all answers of the DNS must prove themselves: signatures are checked from
the trust anchors down. An answer that fails is an error, which names the broken link;
where nobody signs, that is told on standard error.

Services that other systems know are asked for as well: N2Ls (all locations), N2R, N2Ns
(all names) and so on; I2L is N2L. Of lists all lines are printed. A rule in the DNS may
have flags; --flag names those at which to end, and others are passed over.

With --trace every step is told: questions to name servers, rules, servers, requests.
With --compare all ways are tried, and it is told whether they agree.

It exits with 3 if the name is not known, 4 if it was withdrawn, 5 if nobody could
say; with --dnssec, with 1 if an answer does not prove itself; with --compare, with 1
if the ways do not agree.`,
		Example: `  stele resolve urn:paradisec:AB1:001:A
  stele resolve urn:paradisec:AB1:001:A --accept 'audio/mpeg, audio/*;q=0.5' --trace
  stele resolve urn:paradisec:AB1:001:A --dns 127.0.0.1:5353 --root urn.example. --service N2C
  stele resolve urn:paradisec:AB1:001:A --dns tls://192.0.2.1#dns.example.org --dnssec
  stele resolve urn:paradisec:AB1:001:A --dns https://dns.example.org/dns-query --dnssec=trust-ad
  stele resolve ark:12345/x54xz321 --server https://id.example.org --json | jq -r .location
  stele resolve urn:paradisec:AB1:001:A --compare --dns 127.0.0.1:5353 --root urn.example. --server http://localhost:8080
  stele resolve urn:paradisec:ab1:001:a --dns 127.0.0.1:5353 --root @urn.arpa --compat`,
		Args: oneArgument("the identifier"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := f.request(args[0])
			if err != nil {
				return err
			}
			return p.resolve(&f, q)
		},
	}
	f.add(cmd)
	return neverFiles(cmd)
}

func (f *resolveFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.service, "service", string(stele.N2L), "what is wanted: N2L (the thing), N2C (its metadata), N2S (its signature), N2P (its persistence), or another service of RFC 2483 or of the publisher, such as N2Ls or N2Ns")
	flags.StringVar(&f.accept, "accept", "", "media `types`, such as 'audio/mpeg, audio/*;q=0.5'; for N2S algorithms, such as ED25519")
	flags.StringSliceVar(&f.flags, "flag", nil, "`flags` of the rule in the DNS at which to end, such as RES:http, DIS:SRV or s; DIS and RES stand for all that begin so")
	flags.BoolVar(&f.trace, "trace", false, "tell every step")
	flags.BoolVar(&f.compare, "compare", false, "try all ways, and tell whether they agree")
	choices(cmd, "service", stele.N2L, stele.N2C, stele.N2S, stele.N2P)
	choices(cmd, "flag", ddds.FlagSRV, ddds.FlagURI, ddds.FlagDisSRV, ddds.FlagDisURL, ddds.FlagDisNAPTR, "RES:https", "RES:http")
	f.addWays(cmd)
}

// addWays adds the flags that say how to resolve. The flag for media types must exist.
func (f *resolveFlags) addWays(cmd *cobra.Command) {
	f.cmd = cmd
	flags := cmd.Flags()
	flags.StringSliceVar(&f.protocols, "protocol", nil, "`protocols` of the location that are preferred, such as https,ftp")
	flags.StringSliceVar(&f.onlyProtocols, "only-protocol", nil, "`protocols` of the location; no other will do")
	flags.StringSliceVar(&f.via, "via", nil, "`ways` to try, in this order: dns, http, local")
	f.dns.add(cmd)
	flags.StringVar(&f.server, "server", os.Getenv("STELE_SERVER"), "`URL` of a resolver to ask over HTTP (environment: STELE_SERVER)")
	flags.DurationVar(&f.timeout, "timeout", 15*time.Second, "for how long to try to resolve, all in all")
	choices(cmd, "via", client.ViaDNS, client.ViaHTTP, client.ViaLocal)
	choices(cmd, "protocol", "https", "http", "ftp", "rtsp")
	choices(cmd, "only-protocol", "https", "http", "ftp", "rtsp")
	choices(cmd, "accept", "text/html", "application/json", "application/pdf")
}

// request makes the request of the flags.
func (f *resolveFlags) request(name string) (client.Request, error) {
	q := client.Request{Name: name, Protocols: f.protocols, Trace: f.trace}
	var err error
	if q.Service, err = ddds.ParseService(f.service); err != nil {
		return q, misuse(f.cmd, "--service: %.60q is not a service; there are N2L, N2C, N2S, N2P and others of that shape", f.service)
	}
	for _, text := range f.flags {
		flag, err := ddds.ParseWantedFlag(text)
		if err != nil {
			return q, misuse(f.cmd, "--flag: %w", err)
		}
		q.Flags = append(q.Flags, flag)
	}
	if len(f.onlyProtocols) > 0 {
		if len(f.protocols) > 0 {
			return q, misuse(f.cmd, "--protocol and --only-protocol both name protocols; keep one")
		}
		q.Protocols, q.OnlyProtocols = f.onlyProtocols, true
	}
	if f.timeout <= 0 {
		return q, misuse(f.cmd, "the --timeout must be longer than nothing")
	}
	if q.Accept, err = parseAccept(f.accept, q.Service); err != nil {
		return q, misuse(f.cmd, "--accept: %w", err)
	}
	return q, nil
}

// parseAccept reads media types with weights; for signatures algorithms, which are
// written in the same way.
func parseAccept(text string, service stele.Service) (list []ddds.Preference, err error) {
	if service == stele.N2S && text != "" {
		var algorithms []string
		for word := range strings.SplitSeq(text, ",") {
			name, weight, weighted := strings.Cut(strings.TrimSpace(word), ";")
			name += "/*"
			if weighted {
				name += ";" + weight
			}
			algorithms = append(algorithms, name)
		}
		text = strings.Join(algorithms, ",")
	}
	if list, err = resolver.ParseAccept(text); service == stele.N2S {
		for i := range list {
			list[i].Range = strings.ToUpper(strings.TrimSuffix(list[i].Range, "/*"))
		}
	}
	return list, err
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
	ways, err := p.ways(f, schemes, id)
	if err != nil {
		return err
	}
	defer ways.close()
	ctx, stop := signal.NotifyContext(f.cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	if f.compare {
		return p.compare(ctx, schemes, id, q, ways)
	}
	var list []client.Way
	for _, w := range ways {
		list = append(list, w.way)
	}
	res, err := client.First(ctx, q, list...)
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

// chosenVia returns the ways that were asked for, or else those that other flags imply, or
// else all that are available; these too if there would be nothing to compare.
func (p *program) chosenVia(f *resolveFlags, id stele.ID) ([]client.Via, error) {
	var list []client.Via
	for _, text := range f.via {
		via := client.Via(strings.ToLower(text))
		if !slices.Contains([]client.Via{client.ViaDNS, client.ViaHTTP, client.ViaLocal}, via) {
			return nil, misuse(f.cmd, "%.60q is no way; there are dns, http and local", text)
		}
		if !slices.Contains(list, via) {
			list = append(list, via)
		}
	}
	if len(list) > 0 {
		return list, nil
	}
	changed := f.cmd.Flags().Changed
	registered, found := p.hasFolder() == nil, inDNS(id)
	add := func(yes bool, via client.Via) {
		if yes {
			list = append(list, via)
		}
	}
	// A server that the environment names for all verbs does not imply a way.
	unsaid := !changed("server") && !changed("data") && !changed("store")
	add(f.dns.isGiven(f.cmd) || f.dnsFirst && found && unsaid && f.server != "", client.ViaDNS)
	add(f.server != "", client.ViaHTTP)
	add(changed("data") || changed("store"), client.ViaLocal)
	if enough := len(list) >= 2; len(list) == 0 || f.compare && !enough {
		add(f.dnsFirst && found, client.ViaDNS)
		add(registered && !slices.Contains(list, client.ViaLocal), client.ViaLocal)
		add((found || len(list) == 0) && !slices.Contains(list, client.ViaDNS), client.ViaDNS)
	}
	return list, nil
}

// namedWay is a way to resolve names.
type namedWay struct {
	via   client.Via
	way   client.Way
	close func()
}

type ways []namedWay

func (w ways) close() {
	for _, one := range w {
		one.close()
	}
}

// ways makes the ways to try.
func (p *program) ways(f *resolveFlags, schemes *stele.Schemes, id stele.ID) (list ways, err error) {
	chosen, err := p.chosenVia(f, id)
	if err != nil {
		return nil, err
	}
	if f.compare && len(chosen) < 2 {
		return nil, misuse(f.cmd, "to compare takes two ways; name them with --via, a resolver with --server, a registry with --data")
	}
	timeout := f.timeout
	if len(chosen) > 1 {
		timeout /= 2 // for a way that does not answer, so that another is tried
	}
	for _, via := range chosen {
		w := namedWay{via: via, close: func() {}}
		switch via {
		case client.ViaDNS:
			var way *client.DNS
			if way, err = p.dnsWay(f.cmd, &f.dns, schemes, timeout); err == nil {
				w.way, w.close = way, way.Close
			}
		case client.ViaHTTP:
			w.way, w.close, err = p.httpWay(f, schemes)
		case client.ViaLocal:
			w.way = &localWay{program: p, schemes: schemes}
		}
		if err != nil {
			list.close()
			return nil, err
		}
		list = append(list, w)
	}
	return list, nil
}

// httpWay makes the way over HTTP.
func (p *program) httpWay(f *resolveFlags, schemes *stele.Schemes) (client.Way, func(), error) {
	if f.server == "" {
		return nil, nil, misuse(f.cmd, "which resolver? Name it with --server URL")
	}
	roots, err := p.remote.roots()
	if err != nil {
		return nil, nil, err
	}
	way, err := client.NewHTTP(client.HTTPOptions{Schemes: schemes, Server: f.server, Timeout: f.timeout, RootCAs: roots})
	if err != nil {
		return nil, nil, misuse(f.cmd, "--server: %w", errors.Unwrap(err))
	}
	return way, way.Close, nil
}

// inDNS reports whether an identifier can be found over the DNS.
func inDNS(id stele.ID) bool { return client.Knows(id.Scheme()) }
