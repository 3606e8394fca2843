package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/internal/wording"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/transparency"
)

func (p *program) logKeyCommand() *cobra.Command {
	var roll, retire bool
	var overlap time.Duration
	var origin string
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Print, roll or retire the key of the log",
		Long: `Key prints the public keys of the log, the oldest first, one a line. Publish them where
readers of proofs find them, and keep them yourself: proofs are checked by them. Keys
that were retired are printed too, since proofs of their time need them.

On a folder or a database key makes the first key if there is none: then name the log
with --origin. The name stays for ever, also if the registry moves to another host. A
server makes its key itself.

--roll makes a new key. It signs together with the old one for the time of --overlap, so
that readers can get the new key first; then the new key signs alone. --retire ends the
overlap at once and erases the private part of the old keys. Retire a key at once if
another party may have it.`,
		Example: `  stele log key --origin names.example.org/.log
  stele log key > log.pub
  stele log key --roll --overlap 2160h
  stele log key --retire`,
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case roll && retire:
				return usage.Errorf(cmd, "flag.log-roll-and-retire", "--roll makes a key and --retire ends the use of one; give one of them")
			case !roll && cmd.Flags().Changed("overlap"):
				return usage.Errorf(cmd, "flag.log-overlap-without-roll", "--overlap is about --roll")
			}
			return p.writing(cmd, func(ctx context.Context, l *Registry) error {
				status, err := l.SetUpLog(ctx, origin)
				if err == nil && roll {
					status, err = l.RollLogKey(ctx, overlap)
				} else if err == nil && retire {
					status, err = l.RetireLogKeys(ctx)
				}
				if err != nil {
					return err
				}
				return p.printLogKeys(&status)
			})
		},
	}
	cmd.Flags().BoolVar(&roll, "roll", false, "make a new key, which signs together with the old one for a while")
	cmd.Flags().BoolVar(&retire, "retire", false, "let the newest key sign alone, and erase the private part of the others")
	cmd.Flags().DurationVar(&overlap, "overlap", transparency.Overlap, "with --roll: how long the old key signs too, as a `duration`")
	logOriginFlag(cmd, &origin)
	return usage.NeverFiles(cmd)
}

// printLogKeys prints the keys of a log, and on standard error until when they sign.
func (p *program) printLogKeys(s *apijson.Log) error {
	for _, k := range s.Keys {
		if p.json {
			if err := p.printObject(k); err != nil {
				return err
			}
			continue
		}
		if err := p.say("%s\n", printable(k.Key)); err != nil {
			return err
		}
		if k.Retired != nil {
			fmt.Fprintf(p.stderr, "stele: %s\n", printable(logKeyLine(&k, p.now())))
		}
	}
	return nil
}

// logKeyLine says in words until when a key signs.
func logKeyLine(k *apijson.LogKey, now time.Time) string {
	name, rest, _ := strings.Cut(k.Key, "+")
	hash, _, _ := strings.Cut(rest, "+")
	name += "+" + hash
	switch {
	case k.Retired == nil:
		return name + " signs since " + wording.Moment(k.Created)
	case k.Retired.After(now):
		return name + " signs until " + wording.Moment(*k.Retired)
	}
	return name + " was retired on " + wording.Moment(*k.Retired) + ", and checks proofs from before"
}

func (p *program) logStatusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show how the log is",
		Long: `Status prints how many leaves the log has, and how many changes of the registry are not
in it yet; the generations of the registry that it was written in; the last checkpoint,
its age and the witnesses that have co-signed it; and the keys.`,
		Example: "  stele log status\n  stele log status --server https://id.example.org --json",
		Args:    usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				status, err := l.LogStatus(ctx)
				if err != nil {
					return err
				}
				if p.json {
					return p.printObject(status)
				}
				return p.say("%s", logStatusText(&status, p.now()))
			})
		},
	}
	return usage.NeverFiles(cmd)
}

// logStatusText says how a log is.
func logStatusText(s *apijson.Log, now time.Time) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", name, printable(fmt.Sprintf(format, args...)))
	}
	if s.Origin == "" {
		line("log", "it has no name and no key yet; 'stele log key --origin NAME' makes them")
	} else {
		line("log", "%s", s.Origin)
	}
	line("size", "%s leaves", grouped(int64(s.Size)))
	if s.Behind > 0 {
		line("behind", "%s changes; a server adds them, and so does 'stele log catch-up'", grouped(int64(s.Behind)))
	}
	for _, e := range s.Eras {
		line("generation", "%d, since %s, from leaf %d on", e.Number, wording.Moment(e.Began), e.Size)
	}
	if c := s.Checkpoint; c == nil {
		line("checkpoint", "none yet")
	} else {
		line("checkpoint", "%s leaves, signed %s (%s ago)", grouped(int64(c.Size)), wording.Moment(c.At), now.Sub(c.At).Round(time.Second))
		for _, w := range c.Cosignatures {
			line("seen by", "%s at %s", w.Witness, w.At.Format(time.RFC3339))
		}
	}
	for i := range s.Keys {
		line("key", "%s", logKeyLine(&s.Keys[i], now))
	}
	return b.String()
}

func (p *program) logCatchUpCommand() *cobra.Command {
	var origin string
	cmd := &cobra.Command{
		Use:   "catch-up",
		Short: "Bring the log up to date",
		Long: `Catch-up adds all changes to the log that are not in it yet, and signs a checkpoint if the
log has a key. A registry from before the log gets its log so; a server does the same
when it starts, beside its work. Namespaces have versions that an earlier program did not
keep: their leaves say that they were there, and nothing of what they said.

Catch-up can be interrupted, and goes on where it was.`,
		Example: "  stele log catch-up\n  stele log catch-up --origin names.example.org/.log",
		Args:    usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.inRegistry(cmd, func(ctx context.Context, r *registry.Registry) error { return p.catchUp(ctx, r, origin) })
		},
	}
	logOriginFlag(cmd, &origin)
	return usage.NeverFiles(onFolder(cmd))
}

// catchUp brings the log up to date.
func (p *program) catchUp(ctx context.Context, r *registry.Registry, origin string) error {
	keys, err := r.LogKeys(ctx)
	if err == nil && (keys == nil || origin != "") && origin != "" {
		keys, err = r.SetUpLog(ctx, origin)
	}
	if err != nil {
		return err
	}
	before, err := r.Log.Status(ctx)
	if err != nil {
		return err
	}
	var done atomic.Int64
	bar := p.newProgress("catch up", "leaves", int64(before.Changes-min(before.Size, before.Changes)), done.Load)
	defer bar.End()
	progress := func(s transparency.Status) {
		bar.Add(int(int64(s.Size-before.Size) - done.Load()))
		done.Store(int64(s.Size - before.Size))
		bar.Tick()
	}
	if keys == nil {
		err = r.Log.CatchUp(ctx, progress)
	} else {
		err = r.SignLog(ctx, keys, progress)
	}
	if err != nil {
		return err
	}
	bar.End()
	status, err := r.LogStatus(ctx)
	if err != nil {
		return err
	}
	if status.Behind > 0 {
		return refuse("catch up", stele.Unavailable, "log.still-behind", "the log is {count} changes behind, since the registry was read from a copy that lags, or changed meanwhile; run the command again", grouped(int64(status.Behind)))
	}
	if p.json {
		return p.printObject(status)
	}
	return p.say("%s leaves added; the log has %s\n", grouped(int64(status.Size-before.Size)), grouped(int64(status.Size)))
}
