package main

import (
	"context"

	"github.com/spf13/cobra"
)

func (p *program) storeCompactCommand() *cobra.Command {
	return neverFiles(&cobra.Command{
		Use:   "compact",
		Short: "Remove what was erased from the files",
		Long: `Compact removes from the files of the registry what 'stele redact' erased: the content
of a record, of its earlier versions, and where they led. When it ends, no file of the
registry holds it.

It writes the whole registry anew, which takes a while. A server goes on meanwhile, but
long downloads may end early, and writes wait. In a PostgreSQL database it runs VACUUM
FULL, which locks the tables: nothing is resolved or written until it ends, so choose a
quiet hour.

It can't reach copies: backups that were made before, and of a database its log (WAL),
the archives of that, and its own backups. Destroy those that are older than the
redaction, or let them expire.`,
		Example: "  stele store compact --data /var/lib/stele\n  stele store compact --store postgres://stele@db.example.org/stele",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.writing(cmd, func(ctx context.Context, l *ledger) error { return l.Purge(ctx) })
		},
	})
}
