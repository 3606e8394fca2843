package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/audit"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/registrar"
)

// auditFlags select entries.
type auditFlags struct {
	since, until, by, operation, namespace, outcome, via string
	follow                                               bool
}

func (p *program) auditCommand() *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Print the audit trail: who did what, when, and with which outcome",
		Long: `Audit prints the entries of the audit trail, oldest first: every write, every change of
users, tokens, roles, keys and zones, backups, restores, and refusals. An administrator
sees all entries; the owner of a namespace sees those that concern that namespace.

Each line has the number of the entry, the time, the user, the outcome (done, refused or
failed), the operation, and its object. For a command on a folder or a database the user
is that of the operating system, written USER@system.

--since and --until take a date, a time, or an age: 90m, 12h, 7d. With --follow the
command waits for new entries and prints them, until it is interrupted.`,
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
				return usage.Errorf(cmd, "flag.follow-on-folder", "--follow: nothing else writes to a folder while this command has it open; follow the server with --server, or a database with --store")
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
	flags.StringVar(&f.until, "until", "", "only entries before this `time`")
	flags.StringVar(&f.by, "by", "", "only entries of this `user`")
	flags.StringVar(&f.operation, "operation", "", "only entries of this `operation`, such as 'create token'")
	flags.StringVar(&f.namespace, "namespace", "", "only entries in the namespace with this `prefix`")
	flags.StringVar(&f.outcome, "outcome", "", "only entries with this `outcome`: done, refused or failed")
	flags.StringVar(&f.via, "via", "", "only entries of this `way` in: "+strings.Join(auth.Ways(), ", "))
	flags.BoolVar(&f.follow, "follow", false, "wait for new entries and print them")
	_ = cmd.RegisterFlagCompletionFunc("outcome", cobra.FixedCompletions([]string{"done", "refused", "failed"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("via", cobra.FixedCompletions(auth.Ways(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("namespace", p.completeNamespaces)
	_ = cmd.RegisterFlagCompletionFunc("by", p.completeUsers)
	for _, name := range []string{"since", "until"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions([]string{"1h", "1d", "7d", "30d"}, cobra.ShellCompDirectiveNoFileComp))
	}
	_ = cmd.RegisterFlagCompletionFunc("operation", cobra.NoFileCompletions)
	return usage.NeverFiles(cmd)
}

// query returns what the flags ask for.
func (f *auditFlags) query(cmd *cobra.Command, now time.Time) (q registrar.AuditQuery, err error) {
	q = registrar.AuditQuery{By: f.by, Operation: f.operation, Outcome: stele.AuditOutcome(f.outcome), Via: f.via}
	if q.Since, err = usage.ParseAgo(f.since, now); err != nil {
		return q, usage.Errorf(cmd, "", "--since: {cause}", err)
	}
	if q.Until, err = usage.ParseAgo(f.until, now); err != nil {
		return q, usage.Errorf(cmd, "", "--until: {cause}", err)
	}
	switch q.Outcome {
	case "", stele.AuditDone, stele.AuditRefused, stele.AuditFailed:
		return q, nil
	}
	return q, usage.Errorf(cmd, "flag.outcome-unknown", `--outcome: "{outcome}" is not an outcome; choose from done, refused and failed`, f.outcome)
}

// printAudit prints the trail.
func (p *program) printAudit(ctx context.Context, l *Registry, q registrar.AuditQuery, follow bool) error {
	for d, err := range l.AuditTrail(ctx, q, follow) {
		if err == nil {
			err = p.printEntry(d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *program) printEntry(d *audit.Document) error {
	if p.json {
		return p.printObject(d)
	}
	return p.say("%s\n", d.Line())
}
