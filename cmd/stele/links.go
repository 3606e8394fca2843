package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/server"
)

func (p *program) linksCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "links",
		Short: "Check where names lead",
		Long: `A server checks the targets of a namespace in the background if an owner switches that on with
'stele links set PREFIX --on'. It asks slowly, as robots.txt allows, and calls a target
broken only after failures on several days. A server that keeps programs out is blocked,
not broken: a person has to look.`,
		Example: `  stele links set ark:12345 --on
  stele links report ark:12345
  stele links check ark:12345 --now`,
	}, p.linksCheckCommand(), p.linksReportCommand(), p.linksSetCommand(), p.linksLookedCommand(), p.linksAcceptCommand())
}

// checkFlags are those of verbs that need what checks links.
type checkFlags struct {
	allow, resolver string
	config          string // file of settings; it counts for what asks targets
	asks            bool
}

func (f *checkFlags) add(cmd *cobra.Command) {
	f.asks = true
	cmd.Flags().StringVar(&f.config, "config", os.Getenv(configVariable), "configuration `file` of the server, whose rules of links are used (environment: STELE_CONFIG); not for --server")
	_ = cmd.RegisterFlagCompletionFunc("config", cobra.FixedCompletions([]string{"toml"}, cobra.ShellCompDirectiveFilterFileExt))
	cmd.Flags().StringVar(&f.allow, "allow", "", "`addresses` and networks that may be asked in addition to public ones, with commas between; not for --server")
	cmd.Flags().StringVar(&f.resolver, "resolver", "", "`address` of a second DNS resolver that confirms that a host does not exist; not for --server")
}

// rules returns the rules by which answers are judged: those that the settings of the server name, if this process asks targets.
func (f *checkFlags) rules(p *program, cmd *cobra.Command) (*server.LinkRules, error) {
	path := ""
	if far, err := p.isRemote(cmd); err != nil {
		return nil, err
	} else if f.asks && !far {
		c := config.Load(f.config, os.Environ(), nil)
		if len(c.Problems) > 0 {
			return nil, refuse("check links", stele.Invalid, "", "{cause}", c.Problems[0].Err())
		}
		path = c.LinkRules
	}
	rules, err := server.OpenLinkRules(path)
	if err != nil {
		return nil, refuse("check links", stele.Invalid, "", "{cause}", err)
	}
	return rules, nil
}

// withLinks calls do with a registry that can check links. In a folder or a database this process checks, unless a server that
// shares the database does.
func (p *program) withLinks(cmd *cobra.Command, f *checkFlags, do func(ctx context.Context, l *Registry) error) error {
	return p.writing(cmd, func(ctx context.Context, l *Registry) error {
		rules, err := f.rules(p, cmd)
		if err != nil {
			return err
		}
		rule, err := allowedRule(cmd, f.allow)
		if err != nil {
			return err
		}
		checker, near := l.WithLinks(server.LinkOptions(rules, rule, f.resolver, "", "Stele/"+about().Version, nil, p.now))
		if !near {
			return do(ctx, l)
		}
		running, stop := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			checker.RunAsked(running)
		}()
		defer func() {
			stop()
			<-ended
		}()
		return do(ctx, l)
	})
}

func (p *program) linksCheckCommand() *cobra.Command {
	var f checkFlags
	var ids string
	var now bool
	cmd := &cobra.Command{
		Use:   "check [PREFIX]",
		Short: "Check the targets of names",
		Long: `Check prints what is known of the targets of all names below PREFIX, or of those in the file
of --ids, one a line: the state, the name, the URL, what was seen, and what stands
for this answer, for 'stele links looked'. Targets that
were never checked are checked first; with --now all are, which takes about 5 seconds for
each target of a host. A target is not asked again whose site asked to be left alone, or if
the server reaches no host at all; its line says so. What works is printed with --json only.

The exit code is 1 if a target is broken or gone. One failure does not make a target broken:
it is failing until it has failed for days, which only a server that checks again finds out.`,
		Example: `  stele links check ark:12345
  stele links check --ids names.txt --now
  stele links check ark:12345 --json --server https://id.example.org`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 || (len(args) == 1) == (ids != "") {
				return usage.Errorf(cmd, "links.what-to-check", "give either a prefix or --ids")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withLinks(cmd, &f, func(ctx context.Context, l *Registry) error {
				names, err := p.linkNames(ctx, l, args, ids)
				if err != nil {
					return err
				}
				return p.checkLinks(ctx, l, names, now)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&ids, "ids", "", "`file` of names, one a line; - for standard input")
	cmd.Flags().BoolVar(&now, "now", false, "check all of them again now")
	return cmd
}

// linkNames returns the names that are to be checked.
func (p *program) linkNames(ctx context.Context, l *Registry, args []string, file string) (names []stele.ID, err error) {
	if file == "" {
		key, err := l.ParsePrefix(args[0])
		if err != nil {
			return nil, err
		}
		for rec, err := range l.List(ctx, remote.Listing{Key: key, State: stele.Active}) {
			if err != nil {
				return nil, err
			}
			// A name may begin with the text of a prefix and belong to another: urn:example2:x is not below urn:example.
			if key.Prefix == "" || l.Schemes.IsWithin(rec.ID, key.Prefix) {
				names = append(names, rec.ID)
			}
		}
		return names, nil
	}
	var in io.Reader = p.stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, refuse("check links", stele.Invalid, "", "{cause}", err)
		}
		defer f.Close()
		in = f
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		id, err := l.Parse(text)
		if err != nil {
			return nil, err
		}
		names = append(names, id)
	}
	return names, lines.Err()
}

// linksAtOnce is how many names are asked about at once.
const linksAtOnce = 500

// checkLinks checks names, and prints what is known of them at the end.
func (p *program) checkLinks(ctx context.Context, l *Registry, names []stele.ID, now bool) error {
	var since time.Time
	if now {
		since = p.now()
	}
	var done atomic.Int64
	bar := p.newProgress("check", "names", int64(len(names)), done.Load)
	defer bar.End()
	var all []apijson.LinkFinding
	finished := int64(0)
	for len(names) > 0 {
		some := names[:min(len(names), linksAtOnce)]
		names = names[len(some):]
		for {
			list, waiting, err := l.CheckLinks(ctx, some, since)
			if err != nil {
				return err
			}
			if waiting == 0 {
				all = append(all, list...)
				break
			}
			done.Store(finished + int64(max(len(some)-waiting, 0)))
			bar.Tick()
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Second):
			}
		}
		finished += int64(len(some))
		done.Store(finished)
		bar.Add(len(some))
	}
	bar.End()
	broken := 0
	for i := range all {
		f := &all[i]
		if f.IsBroken() {
			broken++
		}
		if err := p.printTarget(f, p.json || f.State != links.OK.String() || f.Drift != "" || now && f.Waits()); err != nil {
			return err
		}
	}
	if broken > 0 {
		return refuse("check links", stele.Conflict, "links.some-broken", "{broken} of {count} targets are broken or gone", broken, len(all))
	}
	return nil
}

// printTarget prints what is known of a target.
func (p *program) printTarget(f *apijson.LinkFinding, show bool) error {
	switch {
	case !show:
		return nil
	case p.json:
		return p.printObject(f)
	}
	state, seen := f.State, f.Cause
	if f.Drift != "" {
		state += ", " + f.Drift
	}
	if f.Status != 0 {
		seen += " (" + grouped(int64(f.Status)) + ")"
	}
	if f.Wall != "" {
		seen += ", " + f.Wall
	}
	if f.Waits() {
		seen += ", not asked again before " + f.Next.UTC().Format(time.RFC3339)
	}
	if f.Final != "" {
		seen += ", leads to " + f.Final
	}
	if f.Copy != "" {
		seen += ", archived copy " + f.Copy
		if !f.CopyAt.IsZero() {
			seen += " of " + f.CopyAt.Format(time.DateOnly)
		}
	}
	return p.say("%-9s %s  %s  %s  %s\n", printable(state), printable(f.ID), printable(f.URL), printable(seen), printable(f.Answer))
}

func (p *program) linksReportCommand() *cobra.Command {
	var look bool
	cmd := &cobra.Command{
		Use:   "report PREFIX",
		Short: "List targets that do not work as they should",
		Long: `Report prints what the checks have found out about the targets of names that begin with PREFIX:
first the hosts that do not answer, then each target that is broken, gone, moved, failing,
blocked or unsure, or whose content is another one. It checks nothing. The exit code is 1 if
a target is broken or gone, or a host is down.

With --look it prints the targets that have been blocked for half a year: look at them
yourself, and say what you saw with 'stele links looked'.`,
		Example: "  stele links report ark:12345\n  stele links report ark:12345 --look\n  stele links report ark:12345 --json",
		Args:    usage.OneArgument("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withLinks(cmd, &checkFlags{}, func(ctx context.Context, l *Registry) error {
				key, err := l.ParsePrefix(args[0])
				if err != nil {
					return err
				}
				if look {
					return p.reportLooks(ctx, l, key)
				}
				return p.reportLinks(ctx, l, key)
			})
		},
	}
	cmd.Flags().BoolVar(&look, "look", false, "print only what a person should look at")
	return usage.NeverFiles(cmd)
}

// reportLooks prints the targets at which a person should look.
func (p *program) reportLooks(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
	for f, err := range l.LinkFindings(ctx, key) {
		if err != nil {
			return err
		}
		if err := p.printTarget(&f, f.Look); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) reportLinks(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
	hosts, err := l.LinkHosts(ctx, key)
	if err != nil {
		return err
	}
	broken := 0
	for _, h := range hosts {
		if !h.Down.IsZero() {
			broken++
		}
		switch {
		case p.json:
			err = p.printObject(h)
		case !h.Down.IsZero():
			err = p.say("host down  %s  since %s  %s\n", printable(h.Host), h.First.Format(time.DateOnly), h.Cause)
		}
		if err == nil && h.Names > 0 && !p.json {
			err = p.say("sample     %s  %d of a thousand of %s names\n", printable(h.Host), h.Share, grouped(int64(h.Names)))
		}
		if err != nil {
			return err
		}
	}
	for f, err := range l.LinkFindings(ctx, key) {
		if err != nil {
			return err
		}
		if f.IsBroken() {
			broken++
		}
		if err := p.printTarget(&f, true); err != nil {
			return err
		}
	}
	if broken > 0 {
		return refuse("report links", stele.Conflict, "links.report-broken", "{broken} findings are broken or gone", broken)
	}
	return nil
}

func (p *program) linksSetCommand() *cobra.Command {
	var on, off, fallBack bool
	var quota int
	var own, pause []string
	cmd := &cobra.Command{
		Use:   "set PREFIX",
		Short: "Switch the checks of a namespace on or off, and set their pace",
		Long: `Set changes how the targets of a namespace are checked, and of those below it that have no
settings of their own, and prints the settings. Without flags it prints them only. The
checks are off until an owner switches them on; a server does them.

--own HOST=GAP lets hosts of yours be asked faster than every 5 seconds: once a second at
most, and more slowly if they are slow, unless the administrator of the server knows that
they are yours (its setting link-own). --pause HOST=TIME has a host, or all with '*', not
asked until a time, for its maintenance.

--fall-back lets the server put the archived copy of a page into the place of a target that
has been broken for 30 days, if the server has an archive to ask (its setting link-timegate).
Without it, copies are only proposed.`,
		Example: `  stele links set ark:12345 --on --quota 10000
  stele links set ark:12345 --own data.example.org=500ms
  stele links set ark:12345 --pause data.example.org=2030-02-01
  stele links set ark:12345 --off`,
		Args: usage.OneArgument("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if on && off {
				return usage.Errorf(cmd, "links.on-and-off", "give either --on or --off")
			}
			hosts, err := parseOwn(cmd, own)
			if err != nil {
				return err
			}
			pauses, err := parsePauses(cmd, pause)
			if err != nil {
				return err
			}
			return p.onPrefix(cmd, args[0], func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
				var settings registrar.LinkChecks
				var err error
				if !on && !off && !cmd.Flags().Changed("quota") && !cmd.Flags().Changed("fall-back") && len(own)+len(pause) == 0 {
					settings, err = l.LinkChecks(ctx, key)
				} else {
					settings, err = l.SetLinkChecks(ctx, key, func(s *registrar.LinkChecks) {
						s.On = (s.On || on) && !off
						if cmd.Flags().Changed("fall-back") {
							s.FallBack = fallBack
						}
						if cmd.Flags().Changed("quota") {
							s.Quota = quota
						}
						if len(own) > 0 {
							s.Own = hosts
						}
						if len(pause) > 0 {
							s.Pauses = pauses
						}
					})
				}
				if err != nil {
					return err
				}
				return p.printLinkChecks(&settings)
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&on, "on", false, "check the targets of the namespace")
	flags.BoolVar(&off, "off", false, "do not check them")
	flags.BoolVar(&fallBack, "fall-back", false, "put archived copies into the place of targets that have been broken for 30 days; --fall-back=false: propose them only")
	flags.IntVar(&quota, "quota", 0, "`number` of checks a day; 0: no limit")
	flags.StringArrayVar(&own, "own", nil, "`HOST=GAP`: ask a host of yours this often, such as data.example.org=500ms; may be repeated, and replaces the list")
	flags.StringArrayVar(&pause, "pause", nil, "`HOST=DATE`: do not ask a host, or * for all, until a date; may be repeated, and replaces the list")
	return usage.NeverFiles(cmd)
}

func parseOwn(cmd *cobra.Command, list []string) (hosts []registrar.OwnHost, err error) {
	for _, text := range list {
		host, gap, _ := strings.Cut(text, "=")
		d, err := time.ParseDuration(gap)
		if err != nil {
			return nil, usage.Errorf(cmd, "links.own-invalid", `"{text}" is not a host and a time, such as data.example.org=500ms`, text)
		}
		hosts = append(hosts, registrar.OwnHost{Host: strings.ToLower(host), Gap: d})
	}
	return hosts, nil
}

func parsePauses(cmd *cobra.Command, list []string) (pauses []registrar.HostPause, err error) {
	for _, text := range list {
		host, until, _ := strings.Cut(text, "=")
		at, err := time.Parse(time.DateOnly, until)
		if err != nil {
			at, err = time.Parse(time.RFC3339, until)
		}
		if err != nil {
			return nil, usage.Errorf(cmd, "links.pause-invalid", `"{text}" is not a host and a date, such as data.example.org=2030-02-01`, text)
		}
		pauses = append(pauses, registrar.HostPause{Host: strings.TrimPrefix(strings.ToLower(host), "*"), Until: at.UTC()})
	}
	return pauses, nil
}

func (p *program) printLinkChecks(s *registrar.LinkChecks) error {
	if p.json {
		d := apijson.LinkChecks{On: s.On, Quota: s.Quota, FallBack: s.FallBack, By: s.By, Changed: s.Changed}
		for _, o := range s.Own {
			d.Own = append(d.Own, apijson.OwnHost{Host: o.Host, Gap: o.Gap.Milliseconds()})
		}
		for _, o := range s.Pauses {
			d.Pauses = append(d.Pauses, apijson.HostPause{Host: o.Host, Until: o.Until})
		}
		return p.printObject(d)
	}
	state := "off"
	if s.On {
		state = "on"
	}
	if err := p.say("checks  %s\n", state); err != nil {
		return err
	}
	if s.FallBack {
		if err := p.say("copies  used after 30 days\n"); err != nil {
			return err
		}
	}
	if s.Quota > 0 {
		if err := p.say("quota   %s a day\n", grouped(int64(s.Quota))); err != nil {
			return err
		}
	}
	for _, o := range s.Own {
		if err := p.say("own     %s every %s\n", printable(o.Host), o.Gap); err != nil {
			return err
		}
	}
	for _, o := range s.Pauses {
		host := o.Host
		if host == "" {
			host = "all hosts"
		}
		if err := p.say("pause   %s until %s\n", printable(host), o.Until.Format(time.RFC3339)); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) linksLookedCommand() *cobra.Command {
	var works, gone bool
	var number int
	var answer string
	cmd := &cobra.Command{
		Use:   "looked ID",
		Short: "Say what you saw at a target",
		Long: `Looked keeps that you looked at a target, and that it works or is gone. --answer is the last
word of the line about the target that 'stele links report' or 'stele links check' printed:
what you say is about this address and this answer. It is refused if the target or the
answer of its server is another one by now. That a target works is remembered for this
answer: another one is told again.`,
		Example: "  stele links looked ark:12345/x54xz321 --works --answer 5f0c3a91d2f3e4855a6b7c8d9e0f1a2b\n  stele links looked ark:12345/x54xz321 --target 2 --gone --answer 5f0c3a91d2f3e4855a6b7c8d9e0f1a2b",
		Args:    usage.OneArgument("the identifier"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if works == gone {
				return usage.Errorf(cmd, "links.works-or-gone", "give either --works or --gone")
			}
			if answer == "" {
				return usage.Errorf(cmd, "links.answer-missing", "give --answer with the last word of the line that 'stele links report' prints about the target")
			}
			return p.withLinks(cmd, &checkFlags{}, func(ctx context.Context, l *Registry) error {
				id, err := l.Parse(args[0])
				if err != nil {
					return err
				}
				return l.LookAtLink(ctx, id, number-1, works, answer)
			})
		},
	}
	cmd.Flags().BoolVar(&works, "works", false, "it works")
	cmd.Flags().BoolVar(&gone, "gone", false, "it is gone")
	cmd.Flags().StringVar(&answer, "answer", "", "what stands for the `answer` at which you looked, as the report prints it")
	cmd.Flags().IntVar(&number, "target", 1, "`number` of the target in the record")
	return usage.NeverFiles(cmd)
}
