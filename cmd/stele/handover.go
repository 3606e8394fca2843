package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/heir"
	"github.com/stele-id/stele/internal/wording"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/registrar"
)

func (p *program) handOverCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "handover",
		Short: "Hand a namespace over to another registry",
		Long: `A namespace goes from this registry, the giver, to another one, the heir, in steps. After
each of them both registries can be stopped for any time: never do both make names, and
there is always one that resolves them.

  offer     name the heir; all goes on as before
  seal      end minting and all changes here; names are still resolved here
  (bundle)  make a bundle with 'stele bundle', which the heir adopts
  forward   redirect requests to the heir, once it answers
  cancel    end the hand-over

Namespaces below the prefix go with it. Only administrators hand namespaces over.`,
		Example: `  stele handover offer ark:12345 --to heir.example.org/.log --address https://heir.example.org/
  stele handover seal ark:12345 --dry-run
  stele handover seal ark:12345 --yes
  stele bundle ark:12345 -o ark12345.tgz
  stele handover status ark:12345 --check
  stele handover forward ark:12345`,
	}, p.handOverOfferCommand(), p.handOverSealCommand(), p.handOverForwardCommand(), p.handOverCancelCommand(), p.handOverStatusCommand())
}

func (p *program) handOverOfferCommand() *cobra.Command {
	var to, address string
	cmd := &cobra.Command{
		Use:   "offer PREFIX --to ORIGIN --address URL",
		Short: "Name the registry that takes over a namespace",
		Long: `Offer names the heir of a namespace and of all below it: by ORIGIN, the name of its log, which
'stele log key' prints there, and by URL, the address of its resolver, to which names are
appended. All goes on as before. Until the namespace is sealed another heir can be named, and
the offer can be cancelled.`,
		Example: `  stele handover offer ark:12345 --to heir.example.org/.log --address https://heir.example.org/
  stele handover offer 102.100.272/ --to heir.example.org/.log --address https://heir.example.org/ --server https://id.example.org`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := usage.OneArgument("the prefix")(cmd, args); err != nil {
				return err
			}
			if to == "" || address == "" {
				return usage.Errorf(cmd, "flag.heir-missing", "say which registry takes over: --to with the origin of its log, and --address with the URL of its resolver")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onPrefix(cmd, args[0], func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
				list, err := l.OfferNamespace(ctx, key, to, address)
				return p.printHandOvers(list, err)
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "`origin` of the heir's log, such as heir.example.org/.log")
	cmd.Flags().StringVar(&address, "address", "", "`URL` of the heir's resolver, such as https://heir.example.org/")
	return usage.NeverFiles(cmd)
}

func (p *program) handOverSealCommand() *cobra.Command {
	var yes, dry bool
	cmd := &cobra.Command{
		Use:   "seal PREFIX",
		Short: "End minting and all changes in a namespace",
		Long: `Seal ends minting, registration and all changes in a namespace that was offered, and in all
below it, on all servers of the registry. Names are still resolved here. Then make a bundle
with 'stele bundle' for the heir: with one that was made since the seal, the heir makes the
names.

Records elsewhere may have aliases in the namespace. They stay with their records, and the heir could
give these names to other things. So seal refuses as long as there are any, unless the namespaces of
these records are offered to the same heir, too. It reads all records for that.

A seal is not for a trial: it can only be cancelled as long as the heir has not adopted such a
bundle. With --dry-run, seal says what it would concern and changes nothing. It needs --yes, or
asks at a terminal for the prefix.`,
		Example: `  stele handover seal ark:12345 --dry-run
  stele handover seal ark:12345 --yes`,
		Args: usage.OneArgument("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			asks := !yes && !dry && isTerminal(p.stdin) && !p.json
			if !yes && !dry && !asks {
				return usage.Errorf(cmd, "flag.seal-unconfirmed", "give --dry-run to see what the seal concerns, and --yes to seal: it ends minting and all changes here")
			}
			return p.onPrefix(cmd, args[0], func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
				if dry || asks {
					plan, err := p.planSeal(ctx, l, key)
					if err != nil {
						return err
					}
					if err := p.printPlan(plan, dry); err != nil || dry {
						return err
					}
					if err := p.confirmSeal(l, key); err != nil {
						return err
					}
				}
				list, err := l.SealNamespace(ctx, key)
				return p.printHandOvers(list, err)
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "seal without asking")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what the seal concerns, and change nothing")
	return usage.NeverFiles(cmd)
}

// confirmSeal asks at the terminal for the prefix.
func (p *program) confirmSeal(l *Registry, key stele.NamespaceKey) error {
	fmt.Fprintf(p.stderr, "Type %s to seal it: ", printable(key.String()))
	line, _ := bufio.NewReader(p.stdin).ReadString('\n') // what is missing is not the prefix
	given, err := l.ParsePrefix(strings.TrimSpace(line))
	if err != nil || given != key {
		return refuse("seal namespace", stele.Invalid, "command.seal-not-confirmed", "this is not {namespace}; nothing was sealed", key)
	}
	return nil
}

// planSeal finds out what a seal would do.
func (p *program) planSeal(ctx context.Context, l *Registry, key stele.NamespaceKey) (*registrar.SealPlan, error) {
	bar, read := p.newProgress("seal", "records", 0, nil), 0
	defer bar.End()
	return l.PlanSeal(ctx, key, func(n int) {
		bar.Add(n - read)
		read = n
	})
}

// heirFlags are those of verbs that ask the heir.
type heirFlags struct{ allow string }

func (f *heirFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.allow, "allow", "", "`addresses` and networks at which the heir may be asked in addition to public ones, with commas between; not for --server, which has the setting handover-allow")
}

// withHeirs calls do with a registry that can ask heirs.
func (p *program) withHeirs(cmd *cobra.Command, f *heirFlags, prefix string, do func(ctx context.Context, l *Registry, key stele.NamespaceKey) error) error {
	rule, err := allowedRule(cmd, f.allow)
	if err != nil {
		return err
	}
	return p.onPrefix(cmd, prefix, func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
		l.WithHeirs(heir.Checker{HTTP: outbound.NewClient(rule, heir.Patience, heir.MaxAnswer), Agent: "Stele/" + about().Version})
		return do(ctx, l, key)
	})
}

func (p *program) handOverForwardCommand() *cobra.Command {
	var f heirFlags
	var sure bool
	cmd := &cobra.Command{
		Use:   "forward PREFIX",
		Short: "Redirect requests for the names of a namespace to the heir",
		Long: `Forward redirects requests for names of a namespace that was sealed, and of all below it, to the
heir, permanently (301). It first asks the heir whether it has adopted everything for writing,
and whether it answers for a sample of the names, and refuses if it does not. With --i-know it
does not ask.`,
		Example: `  stele handover forward ark:12345
  stele handover forward ark:12345 --allow 10.1.0.0/16
  stele handover forward ark:12345 --i-know`,
		Args: usage.OneArgument("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withHeirs(cmd, &f, args[0], func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
				list, err := l.Forward(ctx, key, sure)
				return p.printHandOvers(list, err)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&sure, "i-know", false, "do not ask the heir: you have made sure yourself that it answers for the names")
	return usage.NeverFiles(cmd)
}

func (p *program) handOverCancelCommand() *cobra.Command {
	var f heirFlags
	var sure bool
	cmd := &cobra.Command{
		Use:   "cancel PREFIX",
		Short: "End the hand-over of a namespace",
		Long: `Cancel ends the hand-over of a namespace and of all below it. An offer can always be cancelled.

If the namespace is sealed, the heir may have adopted it and make names: then both registries
would give the same names to different things, and this can't be repaired. Ask the heir's
operator first. With --i-know you say that the heir has not adopted it and will not, and names
are made here again. The heir is asked all the same, if it can be reached, and the seal stays if
it says that it has.`,
		Example: `  stele handover cancel ark:12345
  stele handover cancel ark:12345 --i-know`,
		Args: usage.OneArgument("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withHeirs(cmd, &f, args[0], func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
				list, err := l.CancelHandOver(ctx, key, sure)
				return p.printHandOvers(list, err)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&sure, "i-know", false, "cancel a seal: the heir has not adopted the namespace, and will not")
	return usage.NeverFiles(cmd)
}

func (p *program) handOverStatusCommand() *cobra.Command {
	var f heirFlags
	var check bool
	cmd := &cobra.Command{
		Use:   "status [PREFIX]",
		Short: "Show how far namespaces are handed over, or from which registry they were taken over",
		Long: `Status shows the state of each namespace at and below PREFIX, or of all, that is handed over to
another registry or was taken over from one. With --check it also asks the heir of PREFIX
whether it has adopted everything and answers for a sample of the names; the exit code is 1 if
it does not.`,
		Example: `  stele handover status
  stele handover status ark:12345 --json
  stele handover status ark:12345 --check`,
		Args: func(cmd *cobra.Command, args []string) error {
			if check && len(args) == 0 {
				return usage.Errorf(cmd, "flag.check-without-prefix", "--check asks the heir of one namespace; give its prefix")
			}
			return usage.AtMostOne("the prefix")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return p.reading(cmd, func(ctx context.Context, l *Registry) error { return p.showHandOvers(ctx, l, stele.NamespaceKey{}) })
			}
			return p.withHeirs(cmd, &f, args[0], func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
				if err := p.showHandOvers(ctx, l, key); err != nil || !check {
					return err
				}
				return p.checkHeir(ctx, l, key)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&check, "check", false, "ask the heir how far it is")
	return usage.NeverFiles(cmd)
}

// checkHeir prints what the heir of a namespace answers.
func (p *program) checkHeir(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
	a, err := l.CheckHeir(ctx, key)
	if err != nil {
		return err
	}
	if p.json {
		if err := p.printObject(a); err != nil {
			return err
		}
	}
	switch {
	case !a.Ready:
		return &stele.Error{Op: "check heir", Kind: stele.Conflict, Err: a.Coded.Message(a.Reason)}
	case p.json:
		return nil
	}
	return p.say("%s has adopted it for writing, and answers for %d of %d names\n", printable(a.Heir), a.Answered, a.Asked)
}

// showHandOvers prints how far namespaces are.
func (p *program) showHandOvers(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
	list, err := l.HandOvers(ctx, key)
	if err != nil {
		return err
	}
	if p.json {
		return p.printHandOvers(list, nil)
	}
	if len(list) == 0 {
		if key == (stele.NamespaceKey{}) {
			return p.say("nothing is handed over, and nothing was taken over\n")
		}
		return p.say("%s is not handed over, and was not taken over\n", printable(key.String()))
	}
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "  %-8s  %s\n", what, printable(fmt.Sprintf(format, args...)))
	}
	for _, ns := range list {
		fmt.Fprintf(&b, "%s\n", printable(ns.Key().String()))
		if h := &ns.HandOver; h.State != stele.NotHandedOver {
			line("state", "%s since %s%s", h.State, wording.Moment(h.Since), by(h.By))
			line("heir", "%s at %s", h.Heir, h.Address)
		}
		for _, h := range ns.Heirs {
			line("silence", "of %d days: %s at %s may take it over", h.Days, h.Registry, h.Address)
		}
		if n := len(ns.Adoptions); n > 0 {
			a := &ns.Adoptions[n-1]
			line("adopted", "from %s on %s%s, up to its change %s of %s", a.From, wording.Moment(a.At), by(a.By), grouped(int64(a.Change)), wording.Moment(a.Until))
			if a.Reading {
				line("", "for reading only")
			}
			switch {
			case ns.IsSilent():
				line("", "since that registry fell silent; records are changed here, and names are not made")
			case a.Silent && !a.Ended.IsZero():
				line("", "since that registry fell silent; it has ended by %s", wording.Moment(a.Ended))
			}
		}
	}
	return p.say("%s", b.String())
}

func by(name string) string {
	if name == "" {
		return ""
	}
	return " by " + name
}

// printHandOvers prints what a step made of namespaces.
func (p *program) printHandOvers(list []*stele.Namespace, err error) error {
	if err != nil {
		return err
	}
	for _, ns := range list {
		if p.json {
			err = p.printObject(apijson.HandOverOf(ns, ""))
		} else {
			err = p.say("%s %s\n", printable(ns.Key().String()), printable(handOverText(&ns.HandOver)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func handOverText(h *stele.HandOver) string {
	switch h.State {
	case stele.Offered:
		return fmt.Sprintf("is offered to %s at %s", h.Heir, h.Address)
	case stele.Sealed:
		return fmt.Sprintf("is sealed for %s", h.Heir)
	case stele.Forwarded:
		return fmt.Sprintf("is forwarded to %s at %s", h.Heir, h.Address)
	}
	return "is not handed over"
}

// printPlan prints what a seal would do.
func (p *program) printPlan(plan *registrar.SealPlan, dry bool) error {
	if p.json {
		return p.printObject(plan.Document())
	}
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s  %s\n", what, printable(fmt.Sprintf(format, args...)))
	}
	fmt.Fprintf(&b, "a seal for %s at %s ends minting and all changes in\n", printable(plan.Heir), printable(plan.Address))
	for _, ns := range plan.Namespaces {
		what := grouped(int64(ns.Records)) + " records"
		switch {
		case ns.Total > 0:
			what += fmt.Sprintf(", minter %s, which has made %s of %s names", ns.Minter, grouped(int64(ns.Given)), grouped(int64(ns.Total)))
		case ns.Given > 0:
			what += fmt.Sprintf(", minter %s, which has made %s names", ns.Minter, grouped(int64(ns.Given)))
		case ns.Minter != stele.NoMinter:
			what += ", minter " + string(ns.Minter)
		}
		if ns.State == stele.Sealed || ns.State == stele.Forwarded {
			what += "; it is " + string(ns.State) + " already"
		}
		fmt.Fprintf(&b, "  %s: %s\n", printable(ns.Key.String()), printable(what))
	}
	line("records", "%s, of which %s are reserved", grouped(int64(plan.Records())), grouped(int64(plan.Reserved)))
	if c := &plan.Inward; c.Count > 0 {
		line("aliases", "%s there of records elsewhere, such as %s of %s: the heir does not get them, so that a seal is refused; offer the namespaces of these records to it, too", grouped(int64(c.Count)), c.Some[0].Alias, c.Some[0].ID)
	}
	if c := &plan.Outward; c.Count > 0 {
		line("aliases", "%s elsewhere of records there, such as %s of %s: the heir gets them with the records, and does not answer for them unless it has their namespaces", grouped(int64(c.Count)), c.Some[0].Alias, c.Some[0].ID)
	}
	if plan.Registry == "" {
		line("note", "the log of this registry has no name yet, which a bundle needs: 'stele log key --origin NAME'")
	}
	if dry && plan.Inward.Count > 0 {
		fmt.Fprintf(&b, "nothing was changed\n")
	} else if dry {
		fmt.Fprintf(&b, "nothing was changed; give --yes instead of --dry-run to seal\n")
	}
	return p.say("%s", b.String())
}
