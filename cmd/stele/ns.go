package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/card"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/internal/terminal"
	"github.com/stele-id/stele/internal/wording"
	"github.com/stele-id/stele/registrar/minting"
)

func (p *program) nsCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "ns",
		Short: "Manage namespaces: who may write, and how names are made",
		Long: `A namespace is what one authority controls: all names that begin with its prefix, except
those that belong to a namespace with a longer prefix. It has an owner, rules and
defaults for its records, and optionally a minter for new names.

Write a prefix as its names begin: ark:12345/x5, 102.100.272/, urn:example,
sid.inpe.br/mtc-m18. A scheme with a colon, such as ark:, is the root of all names of
that scheme; every scheme has one.`,
		Example: `  stele ns add ark:12345/x5 --title 'Reports' --minter noid --template .reedeedk --check
  stele ns set ark:12345/x5 --host-allowed .example.org --protocol https
  stele ns grant ark:12345/x5 user:ann editor
  stele ns show ark:12345/x5
  stele ns check ark:12345/x5
  stele ns ls ark`,
	}, p.nsAddCommand(), p.nsShowCommand(), p.nsLsCommand(), p.nsSetCommand(), p.nsGrantCommand(), p.nsUngrantCommand(), p.nsSkipCommand(), p.nsCheckCommand(), p.nsHistoryCommand())
}

func (p *program) nsAddCommand() *cobra.Command {
	var f namespaceFlags
	var h handleFlags
	var dry, serves bool
	cmd := &cobra.Command{
		Use:   "add PREFIX",
		Short: "Make a namespace",
		Long: `Add makes a namespace, and prints its prefix in canonical form. With --dry-run it makes
none: it prints names such as the minter would make, one per line.

A prefix belongs to one namespace only. This includes the prefixes of names that its
minter makes: with --host and --ip, those of the repository names and of the IBIps.

With --handle-server a prefix of handles is set up to be served by the Handle protocol,
as 'stele handle setup' does it.`,
		Example: `  stele ns add ark:12345/x5 --owner ana --title 'Reports' --minter noid --template .reedeedk --check
  stele ns add ark:13030/f5 --minter noid --template .reedeedk --order noid
  stele ns add ark:12345/x5 --minter noid --template .reedeedk --check --dry-run
  stele ns add sid.inpe.br/mtc-m18 --minter ibi --host mtc-m18.sid.inpe.br --ip 150.163.34.243
  stele ns add 102.100.272/ --minter pilin --level permanent --statement 'Kept by the library.'
  stele ns add 20.500.12345/ --handle-server --handle-address 192.0.2.7
  stele ns add urn:nbn:de --delegate 'https://nbn-resolving.org/{id}'`,
		Args: usage.OneArgument("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.creating(cmd, func(ctx context.Context, l *Registry) error {
				key, err := l.ParsePrefix(args[0])
				if err != nil {
					return err
				}
				ns := &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}
				f.apply(ns)
				if dry {
					return p.printSamples(ctx, l, ns)
				}
				if ns, err = l.AddNamespace(ctx, ns); err != nil {
					return err
				}
				return p.printPrefix(p.stdout, ns)
			})
		},
	}
	plain := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !serves || dry {
			return plain(cmd, args)
		}
		if len(h.addresses) == 0 {
			return usage.Errorf(cmd, "flag.handle-address-missing", "say where clients reach the server of the Handle protocol: --handle-address IP")
		}
		if err := plain(cmd, args); err != nil {
			return err
		}
		return p.withHandles(cmd, func(ctx context.Context, s handleSites) error {
			return p.setUpHandles(ctx, cmd, s, args[0], &h)
		})
	}
	f.add(cmd)
	h.add(cmd, "handle-")
	cmd.Flags().BoolVar(&serves, "handle-server", false, "set the prefix up to be served by the Handle protocol")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print names such as the minter would make, and make no namespace")
	return usage.NeverFiles(cmd)
}

// printSamples prints names such as the minter of a namespace would make that does not exist yet.
func (p *program) printSamples(ctx context.Context, l *Registry, ns *stele.Namespace) error {
	names, err := l.NamespaceSamples(ctx, ns)
	if err != nil {
		return err
	}
	if p.json {
		return p.printObject(struct {
			Namespace string   `json:"namespace"`
			Samples   []string `json:"samples"`
			DryRun    bool     `json:"dryRun"`
		}{ns.Key().String(), names, true})
	}
	for _, name := range names {
		if err := p.say("%s\n", printable(name)); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		fmt.Fprintf(p.stderr, "%s would make no names by itself.\n", printable(ns.Key().String()))
	}
	return nil
}

func (p *program) nsSetCommand() *cobra.Command {
	var f namespaceFlags
	var ifVersion uint64
	cmd := &cobra.Command{
		Use:   "set PREFIX",
		Short: "Change a namespace",
		Long: `Set changes the settings that flags name, and leaves the others. An empty value, such as
--owner '' or --host-allowed '', removes the setting. A different --minter discards the
settings of the previous minter; with --minter '' the namespace makes no more names.

Registered names stay as they are, even if the new rules would refuse them.`,
		Example: `  stele ns set ark:12345/x5 --owner ana --quota 10000
  stele ns set sid.inpe.br/mtc-m18 --granularity 1ms
  stele ns set ark: --level permanent`,
		Args: usage.OneArgument("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !usage.Given(cmd, "if-version") {
				return usage.Errorf(cmd, "flag.namespace-change-missing", "there is nothing to change; say what, such as --owner WHO")
			}
			return p.onPrefix(cmd, args[0], func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
				ns, err := l.SetNamespace(ctx, key, ifVersion, func(ns *stele.Namespace) error {
					f.apply(ns)
					return nil
				})
				if err != nil {
					return err
				}
				return p.printPrefix(p.stdout, ns)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().Uint64Var(&ifVersion, "if-version", 0, "write only if the namespace has this version")
	return usage.NeverFiles(cmd)
}

func (p *program) nsShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show PREFIX",
		Short:   "Show a namespace",
		Long:    "Show prints the settings of a namespace. It exits with 3 if the namespace does not exist.",
		Example: "  stele ns show ark:12345/x5\n  stele ns show ark:",
		Args:    usage.OneArgument("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onPrefix(cmd, args[0], func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
				ns, err := l.Namespace(ctx, key)
				if err != nil {
					return err
				}
				if p.json {
					return p.printPrefix(p.stdout, ns)
				}
				details, err := l.DescribeNamespace(ctx, ns)
				if err != nil {
					return err
				}
				_, err = io.WriteString(p.stdout, card.Namespace(ns, details, p.now()))
				return err
			})
		},
	}
	return usage.NeverFiles(cmd)
}

func (p *program) nsLsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls [SCHEME]",
		Short: "List namespaces",
		Long: `Ls lists the prefixes of all namespaces, or of those of a scheme, ordered by scheme and
prefix. It lists the root of a scheme if the root was changed.`,
		Example: "  stele ns ls\n  stele ns ls --json ark",
		Args:    usage.AtMostOne("the scheme"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			schemes, err := p.schemes(cmd)
			if err != nil || len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return schemes.Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			only := ""
			if len(args) == 1 {
				only = strings.TrimSuffix(args[0], ":")
			}
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				if only != "" && l.Schemes.Lookup(only) == nil {
					return usage.Errorf(cmd, "scheme.unknown", `"{scheme}" is not a scheme; there are {schemes}`, only, strings.Join(l.Schemes.Names(), ", "))
				}
				return p.listNamespaces(ctx, l, only)
			})
		},
	}
	return usage.NeverFiles(cmd)
}

// listNamespaces prints the namespaces of a scheme, or of all if it is empty.
func (p *program) listNamespaces(ctx context.Context, l *Registry, scheme string) error {
	out := bufio.NewWriter(p.stdout)
	defer out.Flush()
	for ns, err := range l.Namespaces(ctx) {
		if err != nil {
			return err
		}
		if ns.Version == 0 || scheme != "" && ns.Scheme != scheme {
			continue
		}
		if err := p.printPrefix(out, ns); err != nil {
			return err
		}
	}
	return out.Flush()
}

// printPrefix prints a namespace: for a person its prefix, for a program all of it.
func (p *program) printPrefix(w io.Writer, ns *stele.Namespace) error {
	text := []byte(ns.Key().String())
	if p.json {
		text = document.AppendNamespace(nil, ns)
	}
	_, err := w.Write(terminal.EscapeUnseen(append(text, '\n')))
	return err
}

func (p *program) nsHistoryCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "history PREFIX",
		Short: "List the versions of a namespace",
		Long: `History prints a line for each version of a namespace, newest first: its number, its
date, its author, the owner and the title. With --json it prints the whole versions.

In a registry that an earlier version of the program made, the history begins at the
upgrade.`,
		Example: `  stele ns history ark:12345/x5
  stele ns history --json ark:12345/x5 | jq -r .owner`,
		Args: usage.OneArgument("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onPrefix(cmd, args[0], func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
				out := bufio.NewWriter(p.stdout)
				for ns, err := range l.NamespaceHistory(ctx, key) {
					if err != nil {
						return err
					}
					if p.json {
						err = p.printPrefix(out, ns)
					} else {
						_, err = fmt.Fprintf(out, "%-3d %s  %s  owner %s  %s\n", ns.Version, wording.Moment(ns.Modified), printable(ns.By), printable(ns.Owner), printable(ns.Title))
					}
					if err != nil {
						return err
					}
				}
				return out.Flush()
			})
		},
	})
}

func (p *program) nsSkipCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "skip PREFIX N",
		Short: "Advance the counter of a template",
		Long: `Skip sets the counter of the namespace's template to N: N names count as issued, and the
next name is the one after them. With +N it advances the counter by N. The counter never
goes back.

A template whose counter came from a backup, or from another registry, makes no names
until you advance it, because names may have been issued since. Choose N so large that
the counter is after all of them. Skipped names are never made.`,
		Example: `  stele ns skip ark:12345/x5 +10000
  stele ns skip ark:12345/x5 250000`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage.Errorf(cmd, "argument.prefix-and-number-missing", "give a prefix and a number")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			number, ahead := strings.CutPrefix(args[1], "+")
			n, err := strconv.ParseUint(number, 10, 64)
			if err != nil {
				return usage.Errorf(cmd, "argument.not-a-number", `"{text}" is not a number; give one such as 5000 or +5000`, args[1])
			}
			return p.onPrefix(cmd, args[0], func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
				return p.skip(ctx, l, key, n, ahead)
			})
		},
	})
}

// skip sets a counter to n, or ahead by n.
func (p *program) skip(ctx context.Context, l *Registry, key stele.NamespaceKey, n uint64, ahead bool) error {
	to, err := l.SkipTo(ctx, key, n, ahead)
	if err != nil {
		return err
	}
	if p.json {
		return p.printObject(map[string]any{"namespace": key.String(), "given": to})
	}
	return p.say("the counter of %s is at %s\n", key, grouped(int64(to)))
}

func (p *program) nsCheckCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "check PREFIX",
		Short: "List the records that the rules of a namespace refuse",
		Long: `Check lists the records with a name in the namespace that its present rules refuse: a
target, handle value or alias with a host or protocol that is not allowed, or a name
without the required check character.

The registry applies rules when a record is written. A record that was written before a
rule works until it is changed: correct it with 'stele update', withdraw it, or allow
the host with 'stele ns set'.

Check reads all records, because a record of another namespace can have an alias in this
one. It exits with 1 if it finds a record.`,
		Example: `  stele ns check ark:12345/x5
  stele ns check --json ark:12345/x5`,
		Args: usage.OneArgument("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onPrefix(cmd, args[0], func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
				return p.checkRules(ctx, l, key)
			})
		},
	})
}

// breachLine is a record that breaks a rule, as programs see it.
type breachLine struct {
	ID       string        `json:"id"`
	Version  uint64        `json:"version"`
	Problems []problemLine `json:"problems"`
}

// problemLine is a problem as programs see it.
type problemLine struct {
	Path       string            `json:"path"`
	Detail     string            `json:"detail"`
	Code       string            `json:"code,omitempty"`
	Parameters map[string]string `json:"parameters,omitempty"`
}

// checkRules prints the records that break a rule of a namespace.
func (p *program) checkRules(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
	bar := p.newProgress("check", "records", 0, nil)
	defer bar.End()
	found, read := 0, 0
	for b, err := range l.CheckRules(ctx, key, func(n int) {
		bar.Add(n - read)
		read = n
	}) {
		if err != nil {
			return err
		}
		found++
		line := breachLine{ID: b.ID.String(), Version: b.Version}
		for _, problem := range b.Problems {
			if !p.json {
				fmt.Fprintf(p.stdout, "%s: %s\n", printable(b.ID.String()), printable(problem.Error()))
				continue
			}
			one := problemLine{Path: problem.Path, Detail: problem.Err.Error()}
			code, params := stele.CodeOf(problem.Err)
			if one.Code = code; len(params) > 0 {
				one.Parameters = make(map[string]string)
			}
			for _, param := range params {
				one.Parameters[param.Name] = param.Value
			}
			line.Problems = append(line.Problems, one)
		}
		if p.json {
			if err := p.printLine(line); err != nil {
				return err
			}
		}
	}
	if found > 0 {
		return refuse("check", stele.Invalid, "namespace.rule-broken-by-records", "{records} records break a rule of {namespace}; correct them with 'stele update', or change the rule with 'stele ns set'", grouped(int64(found)), key)
	}
	if p.json {
		return nil
	}
	return p.say("no record breaks a rule of %s; %s were read\n", key, grouped(int64(read)))
}

// minterFlags are the settings of a minter. Only what was given counts.
type minterFlags struct {
	owner *cobra.Command
	given stele.Minter
	looks bool // read only: do not make a namespace

	ordered bool // the flags --order and --expand are those of a minter
}

// isGiven reports whether a setting was given by its flag.
func (f *minterFlags) isGiven(setting string) bool {
	if setting == "order" || setting == "expand" {
		return f.ordered && f.owner.Flags().Changed(setting)
	}
	return f.owner.Flags().Changed(setting)
}

// addIBI gives a command the flags of an IBI server.
func (f *minterFlags) addIBI(cmd *cobra.Command) {
	f.owner = cmd
	flags := cmd.Flags()
	flags.StringVar(&f.given.Host, "host", "", "fully qualified host `name` of the server, for repository names")
	flags.Uint16Var(&f.given.Port, "port", minting.DefaultHostPort, "port for --host")
	flags.StringVar(&f.given.IP, "ip", "", "IP `address` of the server, for IBIps")
	flags.Uint16Var(&f.given.IPPort, "ip-port", minting.DefaultIPPort, "port for --ip")
	flags.BoolVar(&f.given.AllowPrivate, "allow-private", false, "allow a private address: names from it are unique in your network only")
	flags.StringVar(&f.given.Granularity, "granularity", "", "distance between two dates: 1m, 1s, 100ms and so on down to 1as (default 1s)")
	usage.Choices(cmd, "granularity", "1m", "1s", "100ms", "10ms", "1ms", "1us", "1ns")
}

// addNOID gives a command the flags of a template.
func (f *minterFlags) addNOID(cmd *cobra.Command) {
	f.owner = cmd
	flags := cmd.Flags()
	flags.StringVar(&f.given.Template, "template", "", "NOID `template`: .reedeedk makes names in quasi-random order that end in a check character, .zd counts")
	flags.Uint64Var(&f.given.Seed, "seed", 0, "`number` that decides the order of names for a template that begins with r (default: random, so that names can't be predicted)")
}

// addOrder gives a command the flags of the order of a template's names. Commands that also make a record
// have none: their --order is that of a target.
func (f *minterFlags) addOrder(cmd *cobra.Command) {
	f.ordered = true
	flags := cmd.Flags()
	flags.StringVar((*string)(&f.given.Order), "order", "", "order of names for a template that begins with r: noid for that of the original program Noid (default: our own)")
	flags.Uint8Var(&f.given.Expand, "expand", 0, "with --order noid: `number` of digits that the mask grows by when its names are used up, as Nog's add3 (default: it does not grow)")
	usage.Choices(cmd, "order", stele.OrderNOID)
}

// apply changes a minter as the flags say.
func (f *minterFlags) apply(m *stele.Minter) { minting.Configure(m, &f.given, f.isGiven) }

// namespaceFlags are the flags of ns add and ns set.
type namespaceFlags struct {
	cmd    *cobra.Command
	given  stele.Namespace
	minter minterFlags
	persistenceFlags
}

func (f *namespaceFlags) add(cmd *cobra.Command) {
	f.cmd = cmd
	flags := cmd.Flags()
	flags.StringVar(&f.given.Owner, "owner", "", "`user` who may write in it, in addition to administrators")
	flags.StringVar(&f.given.Title, "title", "", "title, for people")
	flags.StringVar((*string)(&f.minter.given.Kind), "minter", "", "minter of new names: ibi, noid, pilin or uuid (default: none)")
	f.minter.addIBI(cmd)
	f.minter.addNOID(cmd)
	f.minter.addOrder(cmd)
	flags.Uint32Var(&f.given.TTL, "ttl", 0, "`seconds` for which clients may cache an answer, if the target has no TTL")
	flags.IntVar(&f.given.Status, "status", 0, "HTTP status of redirects, if the target has none")
	f.persistenceFlags.add(cmd)
	flags.StringArrayVar(&f.given.Hosts, "host-allowed", nil, "`host` that targets may have, or .example.org for all hosts below it; may be repeated (default: any)")
	flags.StringArrayVar(&f.given.Protocols, "protocol", nil, "protocol of targets' URLs; may be repeated (default: http, https and ftp)")
	flags.StringVar(&f.given.Delegate, "delegate", "", "`URL` of another resolver to redirect to, with {id} or {rest} in the place of the name")
	flags.BoolVar(&f.given.Checked, "check", false, "names end in a NOID check character; the registry refuses mistyped ones")
	flags.BoolVar(&f.given.Passthrough, "passthrough", false, "append what follows a registered name to the URLs of its targets, as if all targets were partial: in ARKs and PURLs x12 leads to the target of x1, with 2 appended")
	flags.BoolVar(&f.given.Reviewed, "review", false, "an owner approves what editors propose, here and in namespaces below; editors write nothing themselves")
	flags.BoolVar(&f.given.Listed, "listed", false, "the public may list its names: other systems harvest them by OAI-PMH; namespaces below say so for themselves")
	flags.BoolVar(&f.given.Handles.Off, "no-handle", false, "the Handle protocol does not answer for a namespace of handles")
	flags.BoolVar(&f.given.Handles.PublicWrite, "handle-public-write", false, "handle values with the permission publicWrite are changed by everybody who asks, without a key")
	flags.Uint64Var(&f.given.Quota, "quota", 0, "maximum number of names, including aliases (0: no limit)")
	usage.Choices(cmd, "minter", stele.MinterIBI, stele.MinterNOID, stele.MinterPILIN, stele.MinterUUID)
	usage.Choices(cmd, "protocol", "https", "http", "ftp", "ftps", "sftp", "rsync", "rtsp")
	usage.Choices(cmd, "status", "301", "302", "303", "307", "308")
}

// apply changes a namespace as the flags say.
func (f *namespaceFlags) apply(ns *stele.Namespace) {
	for flag, set := range map[string]func(){
		"owner":               func() { ns.Owner = f.given.Owner },
		"title":               func() { ns.Title = f.given.Title },
		"ttl":                 func() { ns.TTL = f.given.TTL },
		"status":              func() { ns.Status = f.given.Status },
		"host-allowed":        func() { ns.Hosts = withoutEmpty(f.given.Hosts) },
		"protocol":            func() { ns.Protocols = withoutEmpty(f.given.Protocols) },
		"delegate":            func() { ns.Delegate = f.given.Delegate },
		"check":               func() { ns.Checked = f.given.Checked },
		"passthrough":         func() { ns.Passthrough = f.given.Passthrough },
		"review":              func() { ns.Reviewed = f.given.Reviewed },
		"listed":              func() { ns.Listed = f.given.Listed },
		"no-handle":           func() { ns.Handles.Off = f.given.Handles.Off },
		"handle-public-write": func() { ns.Handles.PublicWrite = f.given.Handles.PublicWrite },
		"quota":               func() { ns.Quota = f.given.Quota },
	} {
		if f.cmd.Flags().Changed(flag) {
			set()
		}
	}
	f.minter.apply(&ns.Minter)
	f.persistenceFlags.apply(&ns.Persistence)
}

// withoutEmpty returns a list without empty texts: an empty one removes all.
func withoutEmpty(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "" })
}
