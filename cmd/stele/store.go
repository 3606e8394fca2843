package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/postgres"
)

func (p *program) storeCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:   "store",
		Short: "What keeps the registry: make a database ready, move, seal",
		Long: `A registry is kept in a folder (--data), by one process at a time, or in a PostgreSQL
database (--store), by as many as you like. These commands are about the place and not
about what is in it.`,
		Example: `  stele store migrate --store postgres://stele@db.example.org/stele
  stele store copy /var/lib/stele postgres://stele@db.example.org/stele
  stele store status --store postgres://stele@db.example.org/stele`,
	}, onFolder(p.storeMigrateCommand()), onFolder(p.storeStatusCommand()), onFolder(p.storeCopyCommand()), onFolder(p.storeUnsealCommand()), p.storeCompactCommand())
}

// interruptible calls do with a context that an interrupt ends.
func (p *program) interruptible(cmd *cobra.Command, do func(ctx context.Context) error) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return do(ctx)
}

// inStore calls do with the store that the flags name, and nothing around it.
func (p *program) inStore(cmd *cobra.Command, do func(ctx context.Context, s stele.Store) error) error {
	if err := p.place().Exists(); err != nil {
		return err
	}
	return p.interruptible(cmd, func(ctx context.Context) (err error) {
		s, err := p.openStore(ctx, p.place(), p.logger())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		return do(ctx, s)
	})
}

func (p *program) storeMigrateCommand() *cobra.Command {
	return neverFiles(&cobra.Command{
		Use:   "migrate",
		Short: "Make a database ready, or upgrade it",
		Long: `Migrate makes the tables of a registry in a PostgreSQL database, or changes them to
what this version of the program needs. Nothing that is kept there is lost. It may be
run again, and from several places at once. The database itself and its user must be
there: createuser stele, createdb -O stele stele.

An upgrade is explicit: a program that finds older tables says so, and does nothing.`,
		Example: `  stele store migrate --store postgres://stele@db.example.org/stele
  STELE_STORE=postgres://stele@db1,db2/stele stele store migrate`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.store == "" {
				return misuse(cmd, "name the database with --store URL; a folder needs no migration")
			}
			return p.interruptible(cmd, p.migrate)
		},
	})
}

// migrate makes the database ready and prints what was done.
func (p *program) migrate(ctx context.Context) error {
	if err := postgres.CheckURL(p.store); err != nil {
		return refuse("migrate", stele.Invalid, "STELE_STORE: %w", err)
	}
	steps := []string{}
	err := postgres.Migrate(ctx, p.store, postgres.Options{Now: p.now, Log: p.logger(), Brief: true}, func(step string) {
		steps = append(steps, step)
		if !p.json {
			fmt.Fprintln(p.stdout, printable(step))
		}
	})
	if err != nil {
		return err
	}
	if p.json {
		return p.printObject(struct {
			Store string   `json:"store"`
			Steps []string `json:"steps"`
		}{p.place().String(), steps})
	}
	_, err = fmt.Fprintf(p.stdout, "%s is ready\n", printable(p.place().String()))
	return err
}

func (p *program) storeUnsealCommand() *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:   "unseal",
		Short: "Let a sealed registry take writes again",
		Long: `Unseal takes away the seal that 'stele store copy' puts on the registry that it copies.

If the copy is in use, both registries give the same names to different things from
then on, and nobody can ever put that right. Unseal only if the copy was given up, and
remove it first. --yes says that you know.`,
		Example: "  stele store unseal --data /var/lib/stele --yes",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.inStore(cmd, func(ctx context.Context, s stele.Store) error {
				reason, err := s.Sealed(ctx)
				if err != nil {
					return err
				}
				return p.unseal(ctx, cmd, s, reason, yes)
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "the copy, if there was one, is not in use and never will be")
	return neverFiles(cmd)
}

// unseal takes the seal away if there is one.
func (p *program) unseal(ctx context.Context, cmd *cobra.Command, s stele.Store, reason string, yes bool) error {
	if reason != "" && !yes {
		return misuse(cmd, "%s is sealed (%s); if the other one is in use, both give the same names to different things; give --yes if it is not and never will be", p.place(), reason)
	}
	if reason != "" {
		if err := s.Seal(ctx, ""); err != nil {
			return err
		}
	}
	if p.json {
		return p.printObject(map[string]string{"store": p.place().String(), "was": reason})
	}
	text := "is not sealed"
	if reason != "" {
		text = "takes writes again; it was sealed: " + reason
	}
	_, err := fmt.Fprintf(p.stdout, "%s %s\n", printable(p.place().String()), printable(text))
	return err
}

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
			return p.writing(cmd, func(ctx context.Context, l *Registry) error { return l.Purge(ctx) })
		},
	})
}
