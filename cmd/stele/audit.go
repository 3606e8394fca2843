package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/audit"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
)

// auditFlags select entries.
type auditFlags struct {
	since, until, by, operation, namespace, outcome string
	follow                                          bool
}

func (p *program) auditCommand() *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Read the audit trail: who did what, when, and with which outcome",
		Long: `Audit prints the entries of the audit trail, the oldest first: every write, every change
of users, tokens, roles, keys and zones, backups, restores, and refusals. An administrator
sees all of it; the owner of a namespace sees what concerns that namespace.

A line has the number of the entry, the time, the user, the outcome (done, refused or
failed), the operation, and what it was done to. For a command on a folder or a database
the user is that of the operating system, written USER@system.

--since and --until take a date, a time, or how long ago: 90m, 12h, 7d. With --follow the
command goes on with entries as they come, until it is interrupted.`,
		Example: `  stele audit --since 7d
  stele audit --by ann --outcome refused
  stele audit --operation 'create token' --json
  stele audit --namespace ark:12345 --server https://id.example.org --follow`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := f.query(cmd, p.now())
			if err != nil {
				return err
			}
			far, err := p.isRemote(cmd)
			if err != nil {
				return err
			}
			if f.follow && !far && !p.place().IsDatabase() {
				return misuse(cmd, "flag.follow-on-folder", "--follow: nothing else writes to a folder while this command has it open; follow the server with --server, or a database with --store")
			}
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				if f.namespace != "" {
					if q.Namespace, err = l.ParsePrefix(f.namespace); err != nil {
						return err
					}
				}
				return p.printAudit(ctx, l, q, f.follow)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.since, "since", "", "only entries from this `time` on")
	flags.StringVar(&f.until, "until", "", "only entries of before this `time`")
	flags.StringVar(&f.by, "by", "", "only entries of this `user`")
	flags.StringVar(&f.operation, "operation", "", "only entries of this `operation`, such as 'create token'")
	flags.StringVar(&f.namespace, "namespace", "", "only entries in the namespace with this `prefix`")
	flags.StringVar(&f.outcome, "outcome", "", "only entries with this `outcome`: done, refused or failed")
	flags.BoolVar(&f.follow, "follow", false, "go on with entries as they come")
	_ = cmd.RegisterFlagCompletionFunc("outcome", cobra.FixedCompletions([]string{"done", "refused", "failed"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("namespace", p.completeNamespaces)
	_ = cmd.RegisterFlagCompletionFunc("by", p.completeUsers)
	for _, name := range []string{"since", "until"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions([]string{"1h", "1d", "7d", "30d"}, cobra.ShellCompDirectiveNoFileComp))
	}
	_ = cmd.RegisterFlagCompletionFunc("operation", cobra.NoFileCompletions)
	return neverFiles(cmd)
}

// query returns what the flags ask for.
func (f *auditFlags) query(cmd *cobra.Command, now time.Time) (q registrar.AuditQuery, err error) {
	q = registrar.AuditQuery{By: f.by, Operation: f.operation, Outcome: stele.AuditOutcome(f.outcome)}
	if q.Since, err = parseAgo(f.since, now); err != nil {
		return q, misuse(cmd, "", "--since: {cause}", err)
	}
	if q.Until, err = parseAgo(f.until, now); err != nil {
		return q, misuse(cmd, "", "--until: {cause}", err)
	}
	switch q.Outcome {
	case "", stele.AuditDone, stele.AuditRefused, stele.AuditFailed:
		return q, nil
	}
	return q, misuse(cmd, "flag.outcome-unknown", `--outcome: "{outcome}" is not an outcome; choose from done, refused and failed`, f.outcome)
}

// parseAgo reads a date, which stands for its beginning, a time, or how long ago. Nothing
// is the zero time.
func parseAgo(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day, nil
	}
	if n := len(text) - 1; text[n] == 'd' {
		if days, err := strconv.ParseUint(text[:n], 10, 16); err == nil {
			return now.AddDate(0, 0, -int(days)), nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	t, err := parseMoment(text)
	if err != nil {
		return t, stele.Messagef("argument.not-a-time-or-age", `"{text}" is not a time; write 2024-05-17, 2024-05-17T10:00:00Z, or how long ago, such as 12h or 7d`, text)
	}
	return t, nil
}

// followPause is how long a command waits before it asks for more entries.
const followPause = time.Second

// printAudit prints the trail.
func (p *program) printAudit(ctx context.Context, l *Registry, q registrar.AuditQuery, follow bool) error {
	for {
		page, after, last, err := l.AuditPage(ctx, q)
		if err != nil {
			return err
		}
		for i := range page {
			if err := p.printEntry(&page[i]); err != nil {
				return err
			}
		}
		if q.After = after; !last {
			continue
		}
		if !follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followPause):
		}
	}
}

func (p *program) printEntry(d *audit.Document) error {
	line := d.Line()
	if p.json {
		text, err := json.Marshal(d)
		if err != nil {
			return err
		}
		line = string(text)
	}
	_, err := fmt.Fprintln(p.stdout, line)
	return err
}

// byCommand returns a context in which a command acts on a registry that it has open: as its
// administrator, and for the audit trail as the user of the operating system.
func byCommand(ctx context.Context) context.Context {
	name := "uid " + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return auth.WithOrigin(auth.With(ctx, auth.Local()), auth.Origin{Via: "command", System: name})
}
