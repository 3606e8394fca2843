package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/card"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/internal/edit"
	"github.com/stele-id/stele/internal/wording"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registrar/minting"
)

func (p *program) proposalCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "proposal",
		Short: "Propose changes, and decide about proposals",
		Long: `In a namespace that is reviewed, editors propose changes and an owner approves or declines
them. A proposal is kept beside the record and is not a version of it: the public sees
nothing of it.`,
		Example: `  stele proposal add ark:12345/x54xz321 --title 'Rivers of Pará' --note 'The old title was wrong.'
  stele proposal ls
  stele proposal approve 4f9c0a6b1d2e3f405162
  stele proposal decline 4f9c0a6b1d2e3f405162 --reason 'The title was right.'`,
	}, p.proposalAddCommand(), p.proposalLsCommand(), p.proposalShowCommand(), p.proposalApproveCommand(), p.proposalDeclineCommand())
}

func (p *program) proposalAddCommand() *cobra.Command {
	var f updateFlags
	var note string
	cmd := &cobra.Command{
		Use:   "add ID",
		Short: "Propose a change of a record",
		Long: `Add proposes a change of a record, with the flags of 'stele update', and prints the ID of
the proposal. The registry judges the change as if it were written now. A proposal can't be
approved any more if the record is changed meanwhile.`,
		Example: `  stele proposal add ark:12345/x54xz321 --to https://archive.example.org/report.pdf
  stele proposal add 10.5072/rivers --title 'Rivers of Pará' --note 'The old title was wrong.'`,
		Args: usage.OneArgument("the identifier"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return p.writing(cmd, func(ctx context.Context, l *Registry) error {
				id, err := l.Parse(args[0])
				if err != nil {
					return err
				}
				rec, err := l.Get(ctx, id)
				if err != nil {
					return err
				}
				e := f.edit()
				aliases, bad := edit.ParseAliases(l.Schemes, f.aliases)
				if bad != nil {
					return &stele.Error{Op: "propose", ID: id, Kind: stele.Invalid, Err: bad}
				}
				e.Aliases, e.Drop, e.Public, e.Activate = aliases, f.drop, f.public, f.activate
				base := rec.Version
				if f.ifVersion != 0 {
					base = f.ifVersion
				}
				if err := e.Apply(rec); err != nil {
					return err
				}
				kept, err := l.Propose(ctx, registrar.Proposal{Record: rec, Base: base, Note: note})
				if err != nil {
					return err
				}
				return p.printProposal(l, kept, true)
			})
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.drop, "drop-to", nil, "remove the target with this `URL`; may be repeated")
	flags.BoolVar(&f.public, "public", false, "make the record public")
	flags.BoolVar(&f.activate, "activate", false, "activate a reserved record, so that it resolves")
	flags.StringVar(&note, "note", "", "`text` that says why, for the owner")
	ifVersionFlag(cmd, &f.ifVersion)
	return usage.NeverFiles(cmd)
}

func (p *program) proposalLsCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "ls",
		Short: "List proposals",
		Long: `Ls lists the proposals that you may decide about, and your own, one per line: the ID, the
state, the name, who proposed it, when, and its title. With --json it prints all of each.`,
		Example: "  stele proposal ls\n  stele proposal ls --json",
		Args:    usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				for kept, err := range l.Proposals(ctx) {
					if err == nil {
						err = p.printProposal(l, kept, false)
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		},
	})
}

func (p *program) proposalShowCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:               "show PROPOSAL",
		Short:             "Show what a proposal changes",
		Long:              "Show prints a proposal, and each field that it changes. It exits with 3 if the proposal does not exist.",
		Example:           "  stele proposal show 4f9c0a6b1d2e3f405162\n  stele proposal show --json 4f9c0a6b1d2e3f405162",
		Args:              usage.OneArgument("the ID of the proposal"),
		ValidArgsFunction: p.completeProposals,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				kept, _, err := l.Proposal(ctx, args[0])
				if err != nil || p.json {
					if err == nil {
						err = p.printProposal(l, kept, false)
					}
					return err
				}
				before, now := &stele.Record{ID: kept.Record.ID}, kept.Base
				if kept.Base != 0 {
					if before, err = l.Version(ctx, kept.Record.ID, kept.Base); err != nil {
						return err
					}
					current, err := l.Get(ctx, kept.Record.ID)
					if err != nil {
						return err
					}
					now = current.Version
				}
				return p.say("%s", proposalCard(kept, before, now))
			})
		},
	})
}

func (p *program) proposalApproveCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "approve PROPOSAL",
		Short: "Write what a proposal says",
		Long: `Approve writes what a proposal says, and prints the identifier. You are the author of the
version. It fails if the record was changed since the proposal was made.`,
		Example:           "  stele proposal approve 4f9c0a6b1d2e3f405162",
		Args:              usage.OneArgument("the ID of the proposal"),
		ValidArgsFunction: p.completeProposals,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.writing(cmd, func(ctx context.Context, l *Registry) error {
				rec, err := l.Approve(ctx, args[0])
				if err != nil {
					return err
				}
				return p.printName(p.stdout, rec)
			})
		},
	})
}

func (p *program) proposalDeclineCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "decline PROPOSAL",
		Short: "Decline a proposal, or take your own back",
		Long: `Decline ends a proposal without writing it. An owner gives the reason, which the editor
reads. The editor who made the proposal needs no reason: decline takes it back, and
removes one that was declined.`,
		Example: `  stele proposal decline 4f9c0a6b1d2e3f405162 --reason 'The title was right.'
  stele proposal decline 4f9c0a6b1d2e3f405162`,
		Args:              usage.OneArgument("the ID of the proposal"),
		ValidArgsFunction: p.completeProposals,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.writing(cmd, func(ctx context.Context, l *Registry) error {
				return l.Decline(ctx, args[0], reason)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`reason`, which the editor reads")
	return usage.NeverFiles(cmd)
}

// proposalName returns the name of a proposal's record.
func proposalName(kept *registrar.Proposal) string {
	if kept.Record.ID.IsValid() {
		return kept.Record.ID.String()
	}
	return "new in " + kept.Namespace.String()
}

// printProposal prints a proposal: for a person its ID, or a line of a list, for a program all of
// it, as the API does.
func (p *program) printProposal(l *Registry, kept *registrar.Proposal, brief bool) error {
	if p.json {
		rec := *kept.Record
		mint := !rec.ID.IsValid()
		if mint {
			var err error
			if rec.ID, err = minting.NameBelow(l.Schemes, kept.Namespace); err != nil {
				return err
			}
		}
		return p.printObject(apijson.Proposal{ID: kept.ID, Namespace: kept.Namespace.String(), Record: document.AppendRecord(nil, &rec), Mint: mint, Base: kept.Base, By: kept.By, At: kept.At,
			Note: kept.Note, Declined: kept.Declined, Decliner: kept.Decliner, Reason: kept.Reason})
	}
	if brief {
		return p.say("%s\n", kept.ID)
	}
	return p.say("%s  %-8s  %s  %s  %s  %s\n", kept.ID, proposalState(kept), printable(proposalName(kept)), printable(kept.By), wording.Moment(kept.At), printable(kept.Record.Metadata[stele.What]))
}

func proposalState(kept *registrar.Proposal) string {
	if kept.IsOpen() {
		return "open"
	}
	return "declined"
}

// proposalCard returns a proposal for people: what it changes in a version, and whether that is the
// current one.
func proposalCard(kept *registrar.Proposal, before *stele.Record, now uint64) string {
	var b strings.Builder
	b.WriteString(kept.ID + "\n")
	rows := func(name, value string) {
		if value != "" {
			card.Rows(&b, name, printable(value))
		}
	}
	rows("record", proposalName(kept))
	rows("proposed", wording.Moment(kept.At)+", by "+kept.By)
	rows("note", strings.ReplaceAll(kept.Note, "\n", " "))
	if !kept.IsOpen() {
		rows("declined", wording.Moment(kept.Declined)+", by "+kept.Decliner)
		rows("reason", strings.ReplaceAll(kept.Reason, "\n", " "))
	} else if now != kept.Base {
		rows("outdated", "the record was changed since, so this can't be approved")
	}
	for i, c := range registrar.FieldChanges(before, kept.Record) {
		text := c.Path + ": " + c.New
		if c.Old != "" {
			text = c.Path + ": " + c.Old + " -> " + c.New
		}
		card.Rows(&b, card.First(i, "changes"), printable(text))
	}
	return b.String()
}

// completeProposals lets shells complete the ID of a proposal.
func (p *program) completeProposals(cmd *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	// A shell can't show an error while it completes.
	_ = p.reading(cmd, func(ctx context.Context, l *Registry) error {
		for kept, err := range l.Proposals(ctx) {
			if err != nil {
				return err
			}
			ids = append(ids, kept.ID)
		}
		return nil
	})
	return ids, cobra.ShellCompDirectiveNoFileComp
}
