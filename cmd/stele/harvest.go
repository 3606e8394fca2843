package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/harvest"
	"github.com/stele-id/stele/outbound"
)

func (p *program) harvestCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "harvest",
		Short: "Register names from repositories",
		Long: `Harvest registers and updates the names of a namespace from a repository, which offers its
records by OAI-PMH: once (oai), or from time to time by the servers of the registry (add).`,
		Example: `  stele harvest oai https://example.org/oai --into urn:nbn:de:example --format epicur --dry-run
  stele harvest oai https://example.org/oai --into urn:nbn:de:example --format epicur
  stele harvest add theses https://example.org/oai --into urn:nbn:de:example --format epicur`,
	}, p.harvestOAICommand(), p.harvestAddCommand(), p.harvestListCommand(), p.harvestRunCommand(), p.harvestStopCommand())
}

// harvestFlags are those of harvest oai.
type harvestFlags struct {
	source harvest.Source
	into   string
	format string
	limit  string
	allow  string
	pause  time.Duration
	o      harvest.Options
}

func (p *program) harvestOAICommand() *cobra.Command {
	var f harvestFlags
	cmd := &cobra.Command{
		Use:   "oai URL --into PREFIX",
		Short: "Harvest a repository by OAI-PMH",
		Long: `Harvest reads the records of a repository, whose base URL is URL, and registers their names,
or updates where they lead and how they are described. It writes names in the namespace
PREFIX only; other records are rejected with a reason, printed to standard error, and the
exit code is 1.

Formats are epicur (URN:NBN and their URLs, of the Deutsche Nationalbibliothek), oai_dc and
oai_datacite.

A record that is deleted in the repository is withdrawn here, when all pages are read. If that
would be more than 5 % of the names of the namespace (see --withdraw-limit), harvest withdraws
none of them and exits with 1. Look whether that is right, and give the command again with --yes.

Harvest asks one page at a time, and waits between two (see --pause), or as long as the
repository wants. If it is interrupted or killed, give the same command again: it continues
with the page where it stopped. If it is complete, the same command asks for what changed
since; with --again it starts from the beginning. With --from or --until a harvest that is
complete has nothing left to do.

With --server, too, this program asks the repository, and not the server of the registry.`,
		Example: `  stele harvest oai https://example.org/oai --into urn:nbn:de:example --format epicur --dry-run
  stele harvest oai https://example.org/oai --into 10.1234 --format oai_datacite --set theses
  stele harvest oai https://example.org/oai --into ark:12345 --from 2026-01-01 --until 2026-01-31
  stele harvest oai https://example.org/oai --into ark:12345 --yes`,
		Args: usage.OneArgument("the base URL of the repository"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.read(cmd, args[0]); err != nil {
				return err
			}
			fetch, err := p.harvestClient(cmd, &f)
			if err != nil {
				return err
			}
			f.o.Client = fetch
			return p.writing(cmd, func(ctx context.Context, l *Registry) error { return p.harvest(ctx, l, f.o, f.into) })
		},
	}
	flags := cmd.Flags()
	f.addSource(p, cmd)
	f.addAsking(cmd)
	flags.StringVar(&f.source.From, "from", "", "records that changed on this `date` or later: 2026-06-01 or 2026-06-01T12:00:00Z")
	flags.StringVar(&f.source.Until, "until", "", "records that changed on this `date` or before")
	flags.BoolVar(&f.o.Yes, "yes", false, "withdraw all names that are deleted in the repository, however many they are")
	flags.BoolVar(&f.o.Again, "again", false, "start from the beginning, whatever an earlier harvest did")
	flags.BoolVar(&f.o.DryRun, "dry-run", false, "print what would happen, and write nothing")
	return cmd
}

// addSource adds the flags that say what is harvested.
func (f *harvestFlags) addSource(p *program, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.into, "into", "", "`prefix` of the namespace that the names are in")
	flags.StringVar(&f.format, "format", string(harvest.Dublin), "metadata format: epicur, oai_dc or oai_datacite")
	flags.StringVar(&f.source.Set, "set", "", "`set` of the repository, as its ListSets names it (default: all)")
	flags.StringVar(&f.limit, "withdraw-limit", "5%", "part of the names of the namespace that may be withdrawn without --yes")
	usage.Choices(cmd, "format", harvest.Formats()...)
	_ = cmd.RegisterFlagCompletionFunc("into", p.completeNamespaces)
	for _, name := range []string{"set", "withdraw-limit"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// addAsking adds the flags that say how this program asks.
func (f *harvestFlags) addAsking(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&f.pause, "pause", time.Second, "least `time` between two requests")
	cmd.Flags().StringVar(&f.allow, "allow", "", "`addresses` and networks that may be asked in addition to public ones, with commas between")
}

// read reads the flags.
func (f *harvestFlags) read(cmd *cobra.Command, url string) (err error) {
	if f.into == "" {
		return usage.Errorf(cmd, "flag.harvest-into", "which names? Give --into with the prefix of a namespace")
	}
	f.source.URL, f.source.Format = url, harvest.Format(f.format)
	if err := f.source.Check(); err != nil {
		return usage.Errorf(cmd, "", "{cause}", stele.Reason(err))
	}
	percent, ok := strings.CutSuffix(strings.TrimSpace(f.limit), "%")
	if f.o.Limit, err = strconv.ParseFloat(strings.TrimSpace(percent), 64); err != nil || !ok || !(f.o.Limit >= 0 && f.o.Limit <= 100) {
		return usage.Errorf(cmd, "flag.harvest-limit", `--withdraw-limit is a percentage from 0% to 100%, not "{limit}"`, f.limit)
	}
	if f.pause < 0 || f.pause > time.Hour {
		return usage.Errorf(cmd, "flag.harvest-pause", "--pause is a time from 0s to 1h")
	}
	f.o.Limit /= 100
	f.o.Source = f.source
	return nil
}

// Times for requests to a repository.
const (
	harvestConnecting = 10 * time.Second
	harvestHeading    = 2 * time.Minute // some make a page for a minute
)

// harvestClient returns what asks the repository.
func (p *program) harvestClient(cmd *cobra.Command, f *harvestFlags) (*harvest.Client, error) {
	rule, err := allowedRule(cmd, f.allow)
	if err != nil {
		return nil, err
	}
	fetch := outbound.NewFetcher(&outbound.Dialer{Rule: rule, Timeout: harvestConnecting, Own: net.InterfaceAddrs}, harvestHeading)
	return &harvest.Client{HTTP: fetch, Now: p.now, Pause: f.pause, Agent: "Stele/" + about().Version, Wait: waitFor, Busy: func(wait time.Duration, why string) {
		fmt.Fprintf(p.stderr, "harvest: waits %s: %s\n", wait.Round(time.Second), printable(why))
	}}, nil
}

// waitFor waits, unless the context ends before.
func waitFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// harvest harvests, and prints what became of the records.
func (p *program) harvest(ctx context.Context, l *Registry, o harvest.Options, into string) (err error) {
	if o.Into, err = l.ParsePrefix(into); err != nil {
		return err
	}
	if _, err := l.Namespace(ctx, o.Into); err != nil {
		return err
	}
	o.To, o.Schemes = l, l.Schemes
	o.Rejected = func(item *harvest.Item, err error) {
		fmt.Fprintf(p.stderr, "rejected: %s: %s\n", printable(item.Identifier), printable(stele.Reason(err).Error()))
	}
	o.Outside = func(item *harvest.Item) {
		fmt.Fprintf(p.stderr, "harvest: %s has the date %q, which was not asked for\n", printable(item.Identifier), item.Date)
	}
	o.Deleted = func(id stele.ID) { fmt.Fprintf(p.stdout, "would be withdrawn: %s\n", printable(id.String())) }
	o.Resumed = func(pages int, since time.Time) {
		switch {
		case pages > 0:
			fmt.Fprintf(p.stderr, "harvest: continues after page %s\n", grouped(int64(pages)))
		case !since.IsZero():
			fmt.Fprintf(p.stderr, "harvest: asks for changes since %s\n", since.Format(time.RFC3339))
		}
	}
	h, err := harvest.New(ctx, o)
	if err != nil {
		return err
	}
	bar := p.newProgress("harvest", "records", 0, func() int64 { return 0 })
	rows := 0
	h.Told = func(c harvest.Counts) {
		now := c.Rows() + c.Withdrawn
		bar.Add(now - rows)
		bar.Tick()
		rows = now
	}
	err = h.Run(ctx)
	bar.End()
	return p.harvestReport(h, o, err)
}

// harvestReport prints the counts, and returns the error of the verb.
func (p *program) harvestReport(h *harvest.Harvest, o harvest.Options, err error) error {
	c, number := h.Counts()
	if errors.Is(err, context.Canceled) {
		err = refuse("harvest", stele.Unavailable, "command.interrupted", "interrupted; give the same command again to go on")
	}
	if p.json {
		if failed := p.printObject(struct {
			harvest.Counts
			Import uint64 `json:"import,omitempty"`
			DryRun bool   `json:"dryRun,omitempty"`
			Done   bool   `json:"done"`
		}{c, number, o.DryRun, err == nil}); failed != nil {
			return failed
		}
	} else {
		text := fmt.Sprintf("%s new, %s updated, %s unchanged, %s withdrawn, %s rejected; %s page",
			grouped(int64(c.New)), grouped(int64(c.Updated)), grouped(int64(c.Unchanged)), grouped(int64(c.Withdrawn)), grouped(int64(c.Rejected)), grouped(int64(c.Pages)))
		if c.Pages != 1 {
			text += "s"
		}
		if c.Unknown > 0 {
			text += fmt.Sprintf("; %s deleted that are not known here", grouped(int64(c.Unknown)))
		}
		if c.Outside > 0 {
			text += fmt.Sprintf("; %s with dates that were not asked for", grouped(int64(c.Outside)))
		}
		if o.DryRun {
			text += "; nothing was written"
		}
		if number != 0 {
			text += fmt.Sprintf("; import %d", number)
		}
		fmt.Fprintln(p.stdout, text)
	}
	if c.Rejected > 0 {
		err = errors.Join(err, refuse("harvest", stele.Invalid, "harvest.records-rejected", "{rejected} records were rejected", grouped(int64(c.Rejected))))
	}
	return err
}
