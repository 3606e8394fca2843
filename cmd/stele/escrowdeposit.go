package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/bulk/deposit"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/wording"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/registry/access"
	"github.com/stele-id/stele/transparency"
)

// placeFlags are the flags about the place of deposits.
type placeFlags struct {
	credentials string
	knownHosts  string
	allow       string
}

func (f *placeFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.credentials, "credentials", "", "`file` with the private key for SFTP, or with the keys for S3 (default for S3: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment)")
	flags.StringVar(&f.knownHosts, "known-hosts", "", "`file` with the public keys of SFTP servers, as OpenSSH writes it (default: ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts)")
	flags.StringVar(&f.allow, "allow", "", "`addresses` and networks of servers in addition to public ones, with commas between")
	for _, name := range []string{"credentials", "known-hosts"} {
		_ = cmd.MarkFlagFilename(name) // it fails only for a flag that the command does not have
	}
	_ = cmd.RegisterFlagCompletionFunc("allow", cobra.NoFileCompletions)
}

// open makes a place ready for use.
func (p *program) openPlace(cmd *cobra.Command, text string, f *placeFlags) (deposit.Destination, error) {
	place, err := deposit.ParsePlace(text)
	if err != nil {
		return nil, usage.Errorf(cmd, "", "{cause}", stele.Reason(err))
	}
	rule, err := allowedRule(cmd, f.allow)
	if err != nil {
		return nil, err
	}
	dialer := &outbound.Dialer{Rule: rule, Timeout: deposit.Connecting, Own: net.InterfaceAddrs}
	return place.Open(deposit.Access{Dial: dialer.DialContext, HTTP: outbound.NewClient(rule, deposit.Patience, deposit.MaxAnswer), Credentials: f.credentials, KnownHosts: deposit.KnownHosts(f.knownHosts), Environment: os.Getenv, Now: p.now, Wait: waitFor})
}

func (p *program) escrowDepositCommand() *cobra.Command {
	var f placeFlags
	var to, origin string
	cmd := &cobra.Command{
		Use:   "deposit [PREFIX...] --to URL",
		Short: "Make a deposit: bring a bundle to another place",
		Long: `Deposit brings a bundle of all names under the prefixes, or of all names, to a place:

  file:///FOLDER               a folder of this machine, such as a disk that is mounted there
  sftp://USER@HOST/FOLDER      a server that speaks SFTP; --credentials names the private key
  s3://BUCKET/FOLDER?endpoint=https://HOST&region=REGION
                               a store that speaks S3; --credentials names a file with its keys

The bundle is the one that 'stele bundle' writes; 'stele escrow fetch' gives it back, byte for byte. It is kept
in parts, and only parts that are not at the place are brought there: after the first deposit that is a
little more than what has changed. Each deposit stays; nothing at the place is overwritten or deleted.

If deposit is interrupted, nothing is lost, and there is no deposit: give the same command again, and it
does not bring a second time what is there. A place is for one registry, and for the same prefixes.

A server makes deposits on a schedule: see the setting escrow in docs/configuration.md.`,
		Example: `  stele escrow deposit --to file:///mnt/vault
  stele escrow deposit ark:12345 --to sftp://stele@vault.example.org/srv/ark12345 --credentials vault.key
  stele escrow deposit --to 's3://vault/stele?endpoint=https://s3.example.org&region=eu-central-1' --credentials vault.keys`,
		Args: func(cmd *cobra.Command, _ []string) error {
			if to == "" {
				return usage.Errorf(cmd, "flag.deposit-place-missing", "say to which place, with --to URL")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.hasFolder(); err != nil {
				return err
			}
			place, err := p.openPlace(cmd, to, &f)
			if err != nil {
				return err
			}
			defer func() { _ = place.Close() }()
			return p.inRegistry(cmd, func(ctx context.Context, r *registry.Registry) error { return p.deposit(ctx, r, place, origin, args) })
		},
	}
	onFolder(cmd)
	f.add(cmd)
	cmd.Flags().StringVar(&to, "to", "", "`URL` of the place")
	cmd.Flags().StringVar(&origin, "origin", os.Getenv("STELE_LOG_ORIGIN"), "`name` of the log if it has none yet, a URL without its scheme, such as names.example.org/.log (environment: STELE_LOG_ORIGIN)")
	_ = cmd.RegisterFlagCompletionFunc("to", completePlaces)
	_ = cmd.RegisterFlagCompletionFunc("origin", cobra.NoFileCompletions)
	return usage.NeverFiles(cmd)
}

// completePlaces completes the beginning of the URL of a place.
func completePlaces(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"file:///", "sftp://", "s3://"}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// depositMade is what --json prints of a deposit.
type depositMade struct {
	Deposit string `json:"deposit"`
	deposit.Head
	Sent  int   `json:"sent"`      // objects that were brought to the place
	Bytes int64 `json:"sentBytes"` // of them
	Same  bool  `json:"same"`      // nothing has changed since that deposit
}

// deposit makes a deposit.
func (p *program) deposit(ctx context.Context, r *registry.Registry, to deposit.Destination, origin string, args []string) error {
	l := access.NewLocal(r, p.now, r.Place().String())
	keys := func(ctx context.Context) (*transparency.Keys, error) { return r.SetUpLog(ctx, origin) }
	j, err := l.BundleBelow(ctx, r, args, keys, p.now())
	if err != nil {
		return err
	}
	bar := p.newProgress("deposit", "records", 0, nil)
	j.Progress = bar.Add
	made, err := (&deposit.Job{To: to, Now: p.now(), Bundle: j}).Make(ctx)
	bar.End()
	switch {
	case ctx.Err() != nil:
		return refuse("escrow", stele.Unavailable, "command.interrupted", "interrupted; give the same command again to go on")
	case err != nil:
		return err
	case p.json:
		return p.printObject(depositMade{made.List.Name, made.List.Head, made.Sent, made.Bytes, made.Same})
	case made.Same:
		return p.say("nothing has changed since %s, of %s\n", made.List.Name, wording.Moment(made.List.At))
	}
	return p.say("%s has %s records in %s versions, up to change %s; %s of %s objects were new, %s bytes\n", made.List.Name, grouped(int64(made.List.Records)), grouped(int64(made.List.Versions)),
		grouped(int64(made.List.Bundle.Changes)), grouped(int64(made.Sent)), grouped(int64(len(made.List.Objects))), grouped(made.Bytes))
}

// fetchFlags are the flags of check and fetch.
type fetchFlags struct {
	place placeFlags
	at    string
	keys  []string
	file  string
}

func (f *fetchFlags) add(cmd *cobra.Command) {
	f.place.add(cmd)
	cmd.Flags().StringVar(&f.at, "at", "", "the last deposit that was made on this `date` or before: 2026-06-01 or 2026-06-01T12:00:00Z (default: the last of all)")
	cmd.Flags().StringArrayVar(&f.keys, "key", nil, "public `key` of the log or of a witness, or a file with such keys; may be given more than once")
	_ = cmd.RegisterFlagCompletionFunc("at", cobra.NoFileCompletions)
	cmd.ValidArgsFunction = completePlaces
}

// until reads --at. A date is the whole day.
func (f *fetchFlags) until(cmd *cobra.Command) (time.Time, error) {
	if f.at == "" {
		return time.Time{}, nil
	}
	if day, err := time.Parse(time.DateOnly, f.at); err == nil {
		return day.Add(24*time.Hour - time.Second), nil
	}
	t, err := time.Parse(time.RFC3339, f.at)
	if err != nil {
		return t, usage.Errorf(cmd, "flag.deposit-time-invalid", `"{value}" is not a date; write it as in 2026-06-01 or 2026-06-01T12:00:00Z`, f.at)
	}
	return t, nil
}

// withDeposit calls do with the deposit that the flags name.
func (p *program) withDeposit(cmd *cobra.Command, url string, f *fetchFlags, do func(ctx context.Context, b *deposit.Rebuild, o bundle.Options) error) error {
	until, err := f.until(cmd)
	if err != nil {
		return err
	}
	o, err := p.bundleOptions(cmd, f.keys)
	if err != nil {
		return err
	}
	place, err := p.openPlace(cmd, url, &f.place)
	if err != nil {
		return err
	}
	defer func() { _ = place.Close() }()
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	list, err := deposit.Last(ctx, place, until)
	if err == nil {
		err = do(ctx, &deposit.Rebuild{From: place, List: list}, o)
	}
	if ctx.Err() != nil {
		return refuse("escrow", stele.Unavailable, "command.interrupted", "interrupted; give the same command again to go on")
	}
	return err
}

func (p *program) escrowCheckCommand() *cobra.Command {
	var f fetchFlags
	cmd := &cobra.Command{
		Use:   "check URL",
		Short: "Check a deposit at its place",
		Long: `Check reads all of the last deposit at a place, and needs no registry: that each part is there and has its
digest, and that the bundle that is made of them is whole, as 'stele bundle check' does. It prints
what the deposit has, or says which part is wrong.

Give the public key of the log with --key, as the registry publishes it. Without it check uses the key
in the deposit: then the deposit is whole, but any registry may have made it.`,
		Example: `  stele escrow check file:///mnt/vault
  stele escrow check sftp://stele@vault.example.org/srv/stele --credentials vault.key --key log.pub
  stele escrow check file:///mnt/vault --at 2026-06-01`,
		Args: usage.OneArgument("the URL of the place"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withDeposit(cmd, args[0], &f, func(ctx context.Context, b *deposit.Rebuild, o bundle.Options) error {
				bar := p.newProgress("check", "versions", 0, nil)
				o.Progress = bar.Add
				report, err := b.Check(ctx, o)
				bar.End()
				if err != nil {
					return err
				}
				return p.sayDeposit(b.List.Name, report)
			})
		},
	}
	f.add(cmd)
	return cmd
}

// sayDeposit prints what a deposit has.
func (p *program) sayDeposit(name string, report *bundle.Report) error {
	if p.json {
		return p.printObject(bundleReport(name, report))
	}
	return p.sayBundle(name, report)
}

func (p *program) escrowFetchCommand() *cobra.Command {
	var f fetchFlags
	cmd := &cobra.Command{
		Use:   "fetch URL -o FILE",
		Short: "Get the bundle of a deposit back",
		Long: `Fetch writes the bundle of the last deposit at a place to a file: the one that 'stele bundle' would have written
at that time, byte for byte. It needs no registry. All of it is checked on the way, as 'stele escrow check'
does. Another registry can take over from the file with 'stele adopt'.

A file whose name ends in .gz or .tgz is compressed. The file appears when it is complete. If fetch is
interrupted, give the same command again: it goes on where it was.`,
		Example: `  stele escrow fetch file:///mnt/vault -o registry.tar
  stele escrow fetch 's3://vault/stele?endpoint=https://s3.example.org&region=eu-central-1' --credentials vault.keys -o registry.tgz
  stele escrow fetch file:///mnt/vault -o may.tar --at 2026-05-31`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.file == "" {
				return usage.Errorf(cmd, "flag.bundle-file-missing", "say to which file, with -o FILE")
			}
			return usage.OneArgument("the URL of the place")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withDeposit(cmd, args[0], &f, func(ctx context.Context, b *deposit.Rebuild, o bundle.Options) error {
				bar := p.newProgress("fetch", "bytes", b.List.Bytes, nil)
				b.Progress = func(n int64) { bar.Add(int(n)) }
				report, resumed, err := b.Fetch(ctx, f.file, isGzip(f.file), o)
				bar.End()
				if resumed {
					fmt.Fprintf(p.stderr, "stele: went on with what was interrupted, of %s\n", printable(b.List.Name))
				}
				if err != nil {
					return err
				}
				return p.sayDeposit(f.file, report)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&f.file, "output", "o", "", "write to this `file`")
	_ = cmd.MarkFlagFilename("output") // it fails only for a flag that the command does not have
	return cmd
}
