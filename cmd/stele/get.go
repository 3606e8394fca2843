package main

import (
	"os/signal"
	"syscall"

	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/progress"

	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/stele-id/stele/client/dnssec"
	"github.com/stele-id/stele/client/fetch"
	"github.com/stele-id/stele/client/get"
	"github.com/stele-id/stele/client/ways"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/config"
)

// getFlags are the flags of get.
type getFlags struct {
	resolveFlags
	output  string
	force   bool
	verify  bool
	anyKey  bool   // verify by unauthenticated keys, too
	private string // whether addresses of private networks are reached; "": not if the DNS led there
	maxSize string
	most    int64 // bytes: maxSize, read
	stall   time.Duration
	maxTime time.Duration
}

func (p *program) getCommand() *cobra.Command {
	var f getFlags
	cmd := &cobra.Command{
		Use:   "get ID",
		Short: "Fetch what an identifier stands for",
		Long: `Get resolves an identifier, as 'stele resolve' does but in the DNS first, and fetches
the resource into a file. It fetches from http, https and ftp locations. For any other
location it prints the location, and says on standard error that it fetched nothing.

Without -o the file is named after the identifier, in the current folder. Until it is
complete, the file is FILE.part, and FILE.part.json describes it. If the transfer is
interrupted, the next run resumes it, provided that the server still has the same
content. Get overwrites an existing file only with --force. -o - writes to standard
output, when the transfer is complete.

With --verify the resource must be signed (see 'stele sign'). Get checks digest, size
and signature with the keys of the namespace. These are TXT records in its zone, or else
a JWKS at a resolver: that of --server, or one that validated rules of the DNS name. A
line of the output says what was proven, and what authenticates the key: DNSSEC, or a
server over HTTPS alone. If nothing authenticates the key, or if any check fails, get
does not put the file in place. With --allow-unauthenticated-key it accepts any key; the
line then says that the file was not verified, but fits its signature.

With --verify get validates the answers of the DNS (DNSSEC), from the trust anchors
(--anchors) down. If a name server does not pass on signatures, turn validation off with
--dnssec=off.

Get sends nothing that identifies the user, and no passwords that a location contains.
It follows redirects to http, https and ftp.

Any domain owner can publish rules in the DNS. If a name was resolved in the DNS, get
does not fetch from this machine or a private network, unless --private-addresses allow
is given, for names of your own. If the resolver of --server or the local registry gave
the location, get fetches from any address, unless --private-addresses refuse is given.
With a proxy (HTTPS_PROXY), the proxy looks up host names and must check the addresses.

Exit codes:
  1  the file is not what was signed, the key is not authenticated, the file is too large,
     or the server can't prove its identity
  3  the name is not known, or nothing is at its location
  4  the name was withdrawn
  5  no server answered, or the transfer was interrupted; run the command again to resume`,
		Example: `  stele get urn:paradisec:AB1:001:A
  stele get urn:paradisec:AB1:001:A --accept audio/wav -o A.wav --verify
  stele get urn:paradisec:AB1:001:A --dns 127.0.0.1:5353 --root urn.example. --verify --anchors keys.txt
  stele get urn:archive:report --private-addresses allow
  stele get ark:12345/x54xz321 --server https://id.example.org --max-size 100GB --json
  stele get doi:10.5072/rivers --via http --server https://id.example.org -o - | less`,
		Args: usage.OneArgument("the identifier"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := f.getRequest(args[0])
			if err != nil {
				return err
			}
			return p.get(&f, q)
		},
	}
	f.addGet(cmd)
	return usage.NeverFiles(cmd)
}

func (f *getFlags) addGet(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "", "output `file` or folder; - is standard output (default: a name made of the identifier)")
	flags.BoolVar(&f.force, "force", false, "overwrite an existing file")
	flags.BoolVar(&f.verify, "verify", false, "check the signature of the file, and print what was proven")
	flags.BoolVar(&f.anyKey, get.AnyKeyFlag, false, "with --verify: accept a key that is not authenticated; the output says that the file was not verified")
	flags.StringVar(&f.maxSize, "max-size", "16GiB", "maximum `size` of the file, such as 500MB; 0 for no limit")
	flags.StringVar(&f.private, "private-addresses", "", "whether to fetch from this machine and private networks: `allow` or refuse (default: refuse if the name was resolved in the DNS or by the Handle protocol)")
	flags.DurationVar(&f.stall, "stall", 30*time.Second, "how long to wait while no data arrives")
	flags.DurationVar(&f.maxTime, "max-time", 24*time.Hour, "maximum duration of the whole transfer")
	flags.StringVar(&f.accept, "accept", "", "media `types`, such as 'audio/mpeg, audio/*;q=0.5' (default with --verify: those that were signed)")
	f.service, f.dnsFirst, f.dns.unproven = string(stele.N2L), true, true
	f.addWays(cmd)
	flags.Lookup("dnssec").Usage = "DNSSEC `mode`: validate (check signatures; the default of the flag alone, and with --verify or --anchors), trust-ad (trust the AD bit of name servers that are queried over tls:// or https://) or off"
	flags.Lookup("anchors").Usage = "`file` of trust anchors, as DNSKEY or DS records (default: those of the root of the public DNS)"
	usage.Choices(cmd, "private-addresses", get.PrivateAllow, get.PrivateRefuse)
	usage.Choices(cmd, "max-size", "100MB", "16GiB", "100GB", "0")
	// It fails only for a flag that the command does not have.
	_ = cmd.RegisterFlagCompletionFunc("output", usage.Files)
}

// getRequest makes the request of the flags, and fills in their defaults.
func (f *getFlags) getRequest(name string) (client.Request, error) {
	q, err := f.request(name)
	if err != nil {
		return q, err
	}
	size, err := config.ParseSize(strings.TrimSpace(f.maxSize))
	if err != nil {
		return q, usage.Errorf(f.cmd, "", "--max-size: {cause}", err)
	}
	f.most = size
	if f.anyKey && !f.verify {
		return q, usage.Errorf(f.cmd, "flag.any-key-without-verify", "--{flag} says how to --verify; give both, or neither", get.AnyKeyFlag)
	}
	switch get.PrivateAddresses(f.private) {
	case get.PrivateByWay, get.PrivateRefuse:
		f.dns.permit, f.hdl.permit = get.PermitPublic, get.PermitPublic
	case get.PrivateAllow:
	default:
		return q, usage.Errorf(f.cmd, "flag.private-addresses-invalid", `--private-addresses: "{value}" is neither {allow} nor {refuse}`, f.private, get.PrivateAllow, get.PrivateRefuse)
	}
	if f.stall <= 0 || f.maxTime <= 0 {
		return q, usage.Errorf(f.cmd, "flag.fetch-time-not-positive", "--stall and --max-time must be longer than nothing")
	}
	switch {
	case client.DNSSEC(f.dns.dnssec) == dnssecOff:
		if f.dns.anchors != "" {
			return q, usage.Errorf(f.cmd, "flag.anchors-with-dnssec-off", "--anchors are for checking signatures, and --dnssec=off does not; keep one")
		}
		f.dns.dnssec = ""
	case f.dns.dnssec == "" && (f.verify || f.dns.anchors != ""):
		f.dns.dnssec = string(client.Validate)
	}
	return q, nil
}

// gotDocument is the result of get, as programs see it. There is no file if stele can't
// fetch from the location.
type gotDocument struct {
	ID       stele.ID      `json:"id"`
	File     string        `json:"file,omitempty"`
	Location string        `json:"location"`
	URL      string        `json:"url,omitempty"` // where redirects from there led
	Type     string        `json:"type,omitempty"`
	Encoding string        `json:"encoding,omitempty"` // compression of the server, which the file still has
	Size     int64         `json:"size"`
	SHA256   string        `json:"sha256,omitempty"`
	Resumed  int64         `json:"resumed,omitempty"` // bytes that were there already
	InClear  bool          `json:"inClear,omitempty"` // an attacker on the network path could have changed it
	Open     bool          `json:"open,omitempty"`    // the server did not say how long it is
	Via      client.Via    `json:"via"`
	DNSSEC   dnssec.Status `json:"dnssec,omitempty"` // of the location
	Verified bool          `json:"verified"`         // by an authenticated key
	Proof    *client.Proof `json:"proof,omitempty"`
}

func newGot(id stele.ID, got *get.Result) gotDocument {
	info := &got.Info
	d := gotDocument{
		ID: id, File: got.File, Location: got.Location, Type: info.Type, Encoding: info.Encoding, Size: info.Size, Resumed: info.Resumed, InClear: info.InClear, Open: info.Open,
		SHA256: got.SHA256, Via: got.Via, DNSSEC: got.DNSSEC, Proof: got.Proof, Verified: got.Proof != nil && got.Proof.IsProven(),
	}
	if info.URL != got.Location {
		d.URL = info.URL
	}
	return d
}

// get is the verb.
func (p *program) get(f *getFlags, q client.Request) error {
	schemes, err := p.schemes(f.cmd)
	if err != nil {
		return err
	}
	id, err := p.parseName(f.cmd, schemes, f.server, q.Name)
	if err != nil {
		return err
	}
	roots, err := p.remote.roots()
	if err != nil {
		return err
	}
	list, err := p.ways(&f.resolveFlags, schemes, id)
	if err != nil {
		return err
	}
	defer list.Close()
	local, err := p.localWay(&f.resolveFlags, schemes)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(f.cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	bar := &progress.Transfer{New: func(total int64, done func() int64) *progress.Bar { return p.newProgress("get", "bytes", total, done) }}
	if file, ok := p.stderr.(*os.File); !ok || !isTerminal(file) {
		bar = nil
	}
	got, err := get.Run(ctx, get.Options{
		ID: id, Request: q, Schemes: schemes, Ways: list, Local: local, Now: p.now, Timeout: f.timeout,
		Fetch: fetch.Options{RootCAs: roots, Idle: f.stall}, Private: get.PrivateAddresses(f.private), MaxSize: f.most, MaxTime: f.maxTime,
		Output: f.output, Force: f.force, Stdout: p.stdout,
		Verify: f.verify, AnyKey: f.anyKey, Server: f.server, Validated: f.dns.dnssec != "",
		Note: func(text string) {
			bar.End()
			fmt.Fprintf(p.stderr, "stele: %s\n", printable(text))
		},
		Progress: bar.Move, Advise: func(err error) error { return f.adviseProof(list, err) },
	})
	bar.End()
	if err != nil {
		return p.adviseFetch(err)
	}
	return p.printGot(id, &got)
}

// adviseFetch adds to an error which flag helps; its kind stays.
func (p *program) adviseFetch(err error) error {
	if errors.Is(err, fetch.ErrUntrusted) && p.remote.authority == "" {
		return stele.Messagef("get.certificate-untrusted", "{cause}; name the certificate of its authority with --ca FILE", err)
	}
	if errors.Is(err, fetch.ErrAddress) && stele.KindOf(err) == stele.Forbidden {
		return stele.Messagef("get.name-perhaps-private", "{cause}; if the name is of your own network, fetch it with --private-addresses allow", err)
	}
	return err
}

// adviseProof adds to an error of the DNS what to do if its answers are validated
// although the user did not ask for it.
func (f *getFlags) adviseProof(list ways.List, err error) error {
	changed := f.cmd.Flags().Changed
	implied := f.verify && !changed("dnssec") && !changed("anchors") && list.Has(client.ViaDNS)
	if implied && (errors.Is(err, dnssec.ErrBogus) || errors.Is(err, stele.Unavailable)) {
		return stele.Messagef("get.dns-unproven", "{cause}; --verify validates the answers of the DNS: if the name server does not pass on signatures, name another with --dns, or trust anchors with --anchors, or turn validation off with --dnssec=off", err)
	}
	return err
}

// printGot says what was got, and in a line what was proven of it.
func (p *program) printGot(id stele.ID, got *get.Result) error {
	d := newGot(id, got)
	if d.Encoding != "" {
		fmt.Fprintf(p.stderr, "stele: the server has packed it (Content-Encoding: %s), though it was asked not to; it is kept as it was sent, so unpack it before you use it\n", printable(d.Encoding))
	}
	toOutput := d.File == get.StandardOutput
	switch {
	case p.json && toOutput:
		return nil // standard output has the thing itself
	case p.json:
		return p.printObject(d)
	case d.File == "":
		fmt.Fprintf(p.stderr, "stele: nothing was fetched: %s is for other programs; this is where it is\n", printable(got.Protocol))
		return p.say("%s\n", printable(d.Location))
	}
	name, w := d.File, p.stdout
	if toOutput {
		name, w = "standard output", p.stderr
	}
	line := fmt.Sprintf("%s: %s bytes from %s", printable(name), grouped(d.Size), printable(d.Location))
	if d.Resumed > 0 {
		line += fmt.Sprintf(", of which %s were there already", grouped(d.Resumed))
	}
	switch {
	case d.Proof != nil:
		line += "\n" + d.Proof.String()
	case d.Open:
		line += "; nothing was verified, not even that this is all of it: the server did not say how long it is"
	default:
		line += "; nothing was verified"
	}
	_, err := fmt.Fprintln(w, line)
	return err
}
