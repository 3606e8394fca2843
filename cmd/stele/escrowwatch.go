package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/giver"
	"github.com/stele-id/stele/internal/wording"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/server"
)

func (p *program) escrowWatchCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "watch",
		Short: "Watch the registries whose heir this one is",
		Long: `If another registry has named this one as an heir, watch it: 'stele serve' then asks it for a
checkpoint of its log about once a day, checks the signature, and counts the days on which it got
none. After as many silent days as the other registry has agreed to, its names may be taken over
with 'stele adopt --silent'. A checkpoint sets the count back to 0. A day on which no server of
this registry asked does not count.`,
		Example: `  stele escrow watch add giver.example.org/.log --url https://giver.example.org --key giver.txt
  stele escrow watch ls
  stele escrow watch now giver.example.org/.log
  stele escrow watch remove giver.example.org/.log`,
	}, p.escrowWatchAddCommand(), p.escrowWatchLsCommand(), p.escrowWatchNowCommand(), p.escrowWatchRemoveCommand())
}

// giverFlags are those of verbs that ask other registries.
type giverFlags struct {
	allow    string
	controls []string
}

func (f *giverFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.allow, "allow", "", "`addresses` and networks at which the other registry may be asked in addition to public ones, with commas between; not for --server, which has the setting handover-allow")
	cmd.Flags().StringArrayVar(&f.controls, "control", nil, "`URL` of a server that is always there, by which it is known that this machine is not offline; may be repeated; not for --server, which has the setting handover-control")
	_ = cmd.RegisterFlagCompletionFunc("control", cobra.NoFileCompletions)
}

// watcher returns what asks registries that are watched.
func (f *giverFlags) watcher(p *program, cmd *cobra.Command, r *registrar.Registrar) (*giver.Watcher, error) {
	rule, err := allowedRule(cmd, f.allow)
	if err != nil {
		return nil, err
	}
	for _, c := range f.controls {
		if err := giver.CheckControl(c); err != nil {
			return nil, usage.Errorf(cmd, "", "{cause}", stele.Reason(err))
		}
	}
	w := server.GiverWatcher(r, rule, "Stele/"+about().Version, p.now, nil)
	w.Controls = f.controls
	return w, nil
}

// withGivers calls do with a registry that can ask the registries that it watches.
func (p *program) withGivers(cmd *cobra.Command, f *giverFlags, do func(ctx context.Context, l *Registry) error) error {
	w, err := f.watcher(p, cmd, nil)
	if err != nil {
		return err
	}
	return p.reading(cmd, func(ctx context.Context, l *Registry) error {
		l.WithGivers(*w)
		return do(ctx, l)
	})
}

func (p *program) escrowWatchAddCommand() *cobra.Command {
	var keys []string
	var url string
	var f giverFlags
	cmd := &cobra.Command{
		Use:   "add ORIGIN --url URL --key KEY",
		Short: "Watch a registry",
		Long: `Add lets servers of this registry watch another one: by ORIGIN, the name of its log, at URL, its
public address. KEY is the public key of its log, which 'stele log key' prints there, or a file
with it. If the registry is watched already, the URL and the keys are replaced, and the count of
silent days begins anew.

Add asks the registry at once, and reports the answer. Days of silence count only after it showed
a checkpoint once: until then the URL or the key may be wrong.`,
		Example: `  stele escrow watch add giver.example.org/.log --url https://giver.example.org --key giver.example.org/.log+f3ed7f9b+AQ...
  stele escrow watch add giver.example.org/.log --url https://giver.example.org --key giver.txt`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := usage.OneArgument("the origin of its log")(cmd, args); err != nil {
				return err
			}
			if url == "" || len(keys) == 0 {
				return usage.Errorf(cmd, "flag.watch-incomplete", "say where the registry is, with --url, and which key signs its log, with --key")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := monitorKeys(cmd, keys)
			if err != nil {
				return err
			}
			w := registrar.WatchedGiver{Origin: args[0], URL: url}
			for _, k := range list {
				w.Keys = append(w.Keys, k.String())
			}
			return p.withGivers(cmd, &f, func(ctx context.Context, l *Registry) error {
				if err := l.AddWatch(ctx, w); err != nil {
					return err
				}
				now, err := l.AskGiver(ctx, w.Origin)
				if err != nil { // it is watched all the same
					fmt.Fprintf(p.stderr, "stele: %s is watched, and could not be asked: %v; try 'stele escrow watch now'\n", printable(w.Origin), stele.Reason(err))
					return p.say("%s\n", printable(w.Origin))
				}
				if now.Seen.IsZero() {
					fmt.Fprintf(p.stderr, "stele: %s is watched, and did not show a checkpoint: no day of silence counts before it does; look whether the URL and the key are right\n", printable(w.Origin))
				}
				return p.printWatch(now)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&url, "url", "", "`URL` of the registry, such as https://giver.example.org")
	cmd.Flags().StringArrayVar(&keys, "key", nil, "public `key` of its log, or a file with such keys; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("key", usage.Files)
	return usage.NeverFiles(cmd)
}

// completeWatches completes the names of registries that are watched.
func (p *program) completeWatches(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	// A shell can't show an error while it completes.
	_ = p.reading(cmd, func(ctx context.Context, l *Registry) error {
		list, err := l.Watches(ctx)
		for i := range list {
			names = append(names, list[i].Origin)
		}
		return err
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (p *program) escrowWatchLsCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:     "ls",
		Short:   "List the registries that are watched",
		Long:    "Ls lists the registries that are watched, when each showed a checkpoint last, and for how many days it has been silent.",
		Example: "  stele escrow watch ls\n  stele escrow watch ls --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				list, err := l.Watches(ctx)
				if err != nil {
					return err
				}
				for i := range list {
					if err := p.printWatch(&list[i]); err != nil {
						return err
					}
				}
				return nil
			})
		},
	})
}

func (p *program) escrowWatchNowCommand() *cobra.Command {
	var f giverFlags
	cmd := &cobra.Command{
		Use:   "now [ORIGIN]",
		Short: "Ask a registry that is watched, or all of them, now",
		Long: `Now asks for a checkpoint at once, and notes the answer as if the question had been due. A
registry that was silent today is not counted twice. It is for a registry without a server, for
example once a day by cron, and to find out whether all is set up well.`,
		Example:           "  stele escrow watch now\n  stele escrow watch now giver.example.org/.log",
		Args:              usage.AtMostOne("the origin of its log"),
		ValidArgsFunction: p.completeWatches,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withGivers(cmd, &f, func(ctx context.Context, l *Registry) error {
				if len(args) == 0 {
					list, err := l.Watches(ctx)
					if err != nil {
						return err
					}
					for i := range list {
						args = append(args, list[i].Origin)
					}
				}
				for _, origin := range args {
					w, err := l.AskGiver(ctx, origin)
					if err != nil {
						return err
					}
					if err := p.printWatch(w); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	f.add(cmd)
	return usage.NeverFiles(cmd)
}

func (p *program) escrowWatchRemoveCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:               "remove ORIGIN",
		Short:             "End the watch of a registry",
		Long:              "Remove ends the watch of a registry, and forgets how many days it was silent.",
		Example:           "  stele escrow watch remove giver.example.org/.log",
		Args:              usage.OneArgument("the origin of its log"),
		ValidArgsFunction: p.completeWatches,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				if err := l.RemoveWatch(ctx, args[0]); err != nil {
					return err
				}
				return p.say("%s is not watched any more\n", printable(args[0]))
			})
		},
	})
}

// printWatch prints what is known of a registry that is watched.
func (p *program) printWatch(w *registrar.WatchedGiver) error {
	if p.json {
		return p.printObject(w)
	}
	state := "was not asked yet"
	switch {
	case w.Asked.IsZero():
	case w.Silent > 0:
		state = fmt.Sprintf("silent for %d days", w.Silent)
	case w.Seen.IsZero():
		state = "was never seen, so that no day of silence is counted"
	case !w.Seen.Before(w.Asked):
		state = "answers"
	default:
		state = "no day of silence is counted"
	}
	if !w.Seen.IsZero() {
		state += fmt.Sprintf("; its last checkpoint, of %s, has %s entries", wording.Moment(w.Seen), grouped(int64(w.Size)))
	}
	if w.Said != "" && (w.Seen.IsZero() || w.Seen.Before(w.Asked)) {
		state += "; asked " + wording.Moment(w.Asked) + ": " + w.Said
	}
	return p.say("%s  %s  %s\n", printable(w.Origin), printable(w.URL), printable(state))
}

func (p *program) escrowEndedCommand() *cobra.Command {
	var f giverFlags
	var sure bool
	cmd := &cobra.Command{
		Use:   "ended PREFIX --i-know",
		Short: "Say that the registry which a namespace was taken over from has ended",
		Long: `Ended is for a namespace that was taken over with 'stele adopt --silent', and for all below it: its
registry has ended for good, and makes no names any more. From then on names of it are made here.
That registry has to be watched, and is asked once more: if it answers, ended refuses.

The bundle says how far the minters were when it was made, and the other registry may have made
names after that. So each template is shut until you skip its counter ahead of all that the other
registry can have made, with 'stele ns skip'. Minters of dates go on from now.

If that registry comes back all the same, or has registered names by hand after the bundle was made,
both have given the same names to different things, and this can't be repaired. Find out first.`,
		Example: `  stele escrow ended ark:12345 --i-know
  stele ns skip ark:12345 +100000`,
		Args:              usage.OneArgument("the prefix"),
		ValidArgsFunction: p.completePrefixes,
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := f.watcher(p, cmd, nil)
			if err != nil {
				return err
			}
			return p.onPrefix(cmd, args[0], func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
				l.WithGivers(*w)
				list, err := l.EndGiver(ctx, key, sure)
				if err != nil {
					return err
				}
				return p.sayEnded(ctx, l, list)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&sure, "i-know", false, "you have found out that the other registry has ended, and makes no names any more")
	return usage.NeverFiles(cmd)
}

// sayEnded prints what becomes of namespaces whose giver has ended, and what is to be done next.
func (p *program) sayEnded(ctx context.Context, l *Registry, list []*stele.Namespace) (err error) {
	var next strings.Builder
	for _, ns := range list {
		n := len(ns.Adoptions)
		switch {
		case p.json:
			err = p.printObject(apijson.HandOverOf(ns, ""))
		case n > 0 && ns.Adoptions[n-1].Silent:
			err = p.say("%s is minted and changed here from now on; %s has ended\n", printable(ns.Key().String()), printable(ns.Adoptions[n-1].From))
		}
		if err != nil {
			return err
		}
		if n == 0 || p.json {
			continue
		}
		status, err := l.MinterStatus(ctx, ns.Key())
		if err != nil {
			return err
		}
		if status.Shut {
			fmt.Fprintf(&next, "  stele ns skip %s +N   its minter is shut: that registry may have made names after %s of the bundle; give an N that is greater than what it can have made\n", printable(ns.Key().String()), grouped(int64(status.Given)))
		}
	}
	if next.Len() == 0 {
		return nil
	}
	return p.say("next:\n%s", next.String())
}
