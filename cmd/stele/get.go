package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/config"
)

// getFlags are what get is told.
type getFlags struct {
	resolveFlags
	output  string
	force   bool
	verify  bool
	anyKey  bool   // verify by keys that nobody vouches for, too
	private string // whether addresses of private networks are reached; "": not if the DNS led there
	maxSize string
	most    int64 // bytes: maxSize, read
	stall   time.Duration
	maxTime time.Duration
}

// anyKeyFlag is long: nobody should write it without a thought.
const anyKeyFlag = "allow-unauthenticated-key"

func (p *program) getCommand() *cobra.Command {
	var f getFlags
	cmd := &cobra.Command{
		Use:   "get ID",
		Short: "Fetch what an identifier stands for",
		Long: `Get resolves an identifier, as 'stele resolve' does but in the DNS first, and fetches
what it leads to into a file. Locations of http, https and ftp are fetched from; others
are printed, and it is said on standard error that nothing was fetched.

Without -o the file is named after the identifier, in this folder. While it is not whole
it is FILE.part, beside which FILE.part.json says what it is. What is broken off goes on
from there the next time, if the server still has the same. What is there already is
overwritten with --force only. -o - writes to standard output, once all of it is there.

With --verify it must be signed (see 'stele sign'), and what comes must be what was
signed: digest, size and signature are checked, with the keys of the namespace. These are
TXT records in its zone, or else those that a resolver has (JWKS): --server, or the one
that rules name which prove themselves. A line says what was proven, and who vouches for
the key: DNSSEC, or a server by HTTPS alone. If nobody does, or anything is wrong, no file
is put in place. --allow-unauthenticated-key takes any key: the line says then that it was
not verified, but fits its signature.
Answers of the DNS must prove themselves with --verify, from --anchors down; where a name
server does not pass on signatures, --dnssec=off does without.

Nothing is sent that tells who asks, neither passwords that stand in a location.
Redirects are followed to http, https and ftp. Anybody can publish rules in the DNS, so a
name that was resolved there is not fetched from this machine or a private network:
--private-addresses allow does so, for names of your own. What a resolver named with
--server or the registry here says is fetched from anywhere; --private-addresses refuse
does without. Behind a proxy (HTTPS_PROXY), names are looked up by the proxy, which has
to judge them.

It exits with 3 if the name is not known, or nothing is where it leads; 4 if it was
withdrawn; 5 if nobody answered, or it broke off: what is there is kept, try again; 1 if
it is not what was signed, the key is not authenticated, it is too large, or the server is
not who it should be.`,
		Example: `  stele get urn:paradisec:AB1:001:A
  stele get urn:paradisec:AB1:001:A --accept audio/wav -o A.wav --verify
  stele get urn:paradisec:AB1:001:A --dns 127.0.0.1:5353 --root urn.example. --verify --anchors keys.txt
  stele get urn:archive:report --private-addresses allow
  stele get ark:12345/x54xz321 --server https://id.example.org --max-size 100GB --json
  stele get doi:10.5072/rivers --via http --server https://id.example.org -o - | less`,
		Args: oneArgument("the identifier"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := f.getRequest(args[0])
			if err != nil {
				return err
			}
			return p.get(&f, q)
		},
	}
	f.addGet(cmd)
	return neverFiles(cmd)
}

func (f *getFlags) addGet(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "", "`file` to write to, or a folder; - is standard output (default: a name made of the identifier)")
	flags.BoolVar(&f.force, "force", false, "overwrite what is there")
	flags.BoolVar(&f.verify, "verify", false, "check that it is what was signed, and tell what was proven")
	flags.BoolVar(&f.anyKey, anyKeyFlag, false, "with --verify: fetch it also if the key is not authenticated; the output says that it was not verified")
	flags.StringVar(&f.maxSize, "max-size", "16GiB", "`size` that it may have, such as 500MB; 0 for any")
	flags.StringVar(&f.private, "private-addresses", "", "whether to fetch from this machine and private networks: `allow` or refuse (default: refuse if the name was resolved in the DNS)")
	flags.DurationVar(&f.stall, "stall", 30*time.Second, "for how long nothing may come")
	flags.DurationVar(&f.maxTime, "max-time", 24*time.Hour, "for how long to fetch, all in all")
	flags.StringVar(&f.accept, "accept", "", "media `types`, such as 'audio/mpeg, audio/*;q=0.5' (default with --verify: those that were signed)")
	f.service, f.dnsFirst, f.dns.unproven = string(stele.N2L), true, true
	f.addWays(cmd)
	flags.Lookup("dnssec").Usage = "have answers of the DNS prove themselves: `how` is validate (check signatures; alone, and with --verify or --anchors, it is that), trust-ad (take the word of name servers that are asked by tls:// or https://) or off"
	flags.Lookup("anchors").Usage = "`file` with the keys to trust, as DNSKEY or DS records (default: those of the public DNS's root)"
	choices(cmd, "private-addresses", privateAllow, privateRefuse)
	choices(cmd, "max-size", "100MB", "16GiB", "100GB", "0")
	// It fails only for a flag that the command does not have.
	_ = cmd.RegisterFlagCompletionFunc("output", completeNames)
}

// getRequest makes the request of the flags, and completes these.
func (f *getFlags) getRequest(name string) (client.Request, error) {
	q, err := f.request(name)
	if err != nil {
		return q, err
	}
	size, err := config.ParseSize(strings.TrimSpace(f.maxSize))
	if err != nil {
		return q, misuse(f.cmd, "--max-size: %w", err)
	}
	f.most = size
	if f.anyKey && !f.verify {
		return q, misuse(f.cmd, "--%s says how to --verify; give both, or neither", anyKeyFlag)
	}
	switch f.private {
	case "", privateRefuse:
		f.dns.permit = permitPublic
	case privateAllow:
	default:
		return q, misuse(f.cmd, "--private-addresses: %.40q is neither %s nor %s", f.private, privateAllow, privateRefuse)
	}
	if f.stall <= 0 || f.maxTime <= 0 {
		return q, misuse(f.cmd, "--stall and --max-time must be longer than nothing")
	}
	switch {
	case client.DNSSEC(f.dns.dnssec) == dnssecOff:
		if f.dns.anchors != "" {
			return q, misuse(f.cmd, "--anchors are for checking signatures, and --dnssec=off does not; keep one")
		}
		f.dns.dnssec = ""
	case f.dns.dnssec == "" && (f.verify || f.dns.anchors != ""):
		f.dns.dnssec = string(client.Validate)
	}
	return q, nil
}
