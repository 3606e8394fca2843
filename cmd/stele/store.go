package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/cmd/stele/card"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/registry/access"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/search"
	storecopy "github.com/stele-id/stele/store/copy"
	"github.com/stele-id/stele/store/postgres"
)

func (p *program) storeCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "store",
		Short: "Manage the storage of the registry: prepare a database, copy, seal",
		Long: `A registry is in a folder (--data), which one process at a time can open, or in a
PostgreSQL database (--store), which many processes can share. These commands manage the
storage, not the content.`,
		Example: `  stele store migrate --store postgres://stele@db.example.org/stele
  stele store copy /var/lib/stele postgres://stele@db.example.org/stele
  stele store status --store postgres://stele@db.example.org/stele`,
	}, onFolder(p.storeMigrateCommand()), onFolder(p.storeStatusCommand()), onFolder(p.storeCopyCommand()), onFolder(p.storeUnsealCommand()), p.storeCompactCommand(), onFolder(p.storeReindexCommand()))
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
	return usage.NeverFiles(&cobra.Command{
		Use:   "migrate",
		Short: "Prepare a database, or upgrade it",
		Long: `Migrate makes the tables of a registry in a PostgreSQL database, or changes them to the
schema that this version of the program needs. It loses no data. You can run it again,
and from several machines at the same time. The database and its user must exist:
createuser stele, createdb -O stele stele.

An upgrade is explicit: a program that finds older tables says so, and stops.`,
		Example: `  stele store migrate --store postgres://stele@db.example.org/stele
  STELE_STORE=postgres://stele@db1,db2/stele stele store migrate`,
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.store == "" {
				return usage.Errorf(cmd, "flag.migration-store-missing", "name the database with --store URL; a folder needs no migration")
			}
			return p.interruptible(cmd, p.migrate)
		},
	})
}

// migrate makes the database ready and prints what was done.
func (p *program) migrate(ctx context.Context) error {
	if err := postgres.CheckURL(p.store); err != nil {
		return refuse("migrate", stele.Invalid, "", "STELE_STORE: {cause}", err)
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
	return p.say("%s is ready\n", printable(p.place().String()))
}

func (p *program) storeUnsealCommand() *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:   "unseal",
		Short: "Let a sealed registry accept writes again",
		Long: `Unseal removes the seal that 'stele store copy' puts on the registry that it copies.

If the copy is in use, both registries from then on give the same names to different
things, and this can't be repaired. Unseal only if you have abandoned the copy, and
remove the copy first. --yes confirms this.`,
		Example: "  stele store unseal --data /var/lib/stele --yes",
		Args:    usage.NoArguments,
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
	cmd.Flags().BoolVar(&yes, "yes", false, "confirm that the copy, if there was one, is not in use and never will be")
	return usage.NeverFiles(cmd)
}

// unseal takes the seal away if there is one.
func (p *program) unseal(ctx context.Context, cmd *cobra.Command, s stele.Store, reason string, yes bool) error {
	if reason != "" && !yes {
		return usage.Errorf(cmd, "flag.unseal-unconfirmed", "{place} is sealed ({reason}); if the other one is in use, both give the same names to different things; give --yes if it is not and never will be", p.place(), reason)
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
	return p.say("%s %s\n", printable(p.place().String()), printable(text))
}

func (p *program) storeCompactCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "compact",
		Short: "Remove redacted content from the files",
		Long: `Compact removes from the files of the registry what 'stele redact' erased: the content
of a record, of its earlier versions, and their targets. When it ends, no file of the
registry contains it.

Compact rewrites the whole registry, which takes a while. A server continues to run, but
long downloads may end early, and writes wait. In a PostgreSQL database it runs VACUUM
FULL, which locks the tables: the server can't resolve or write until it ends, so choose
a quiet hour.

Compact can't reach copies: earlier backups, and for a database its write-ahead log
(WAL), the archives of the log, and the database's own backups. Destroy those that are
older than the redaction, or let them expire.`,
		Example: "  stele store compact --data /var/lib/stele\n  stele store compact --store postgres://stele@db.example.org/stele",
		Args:    usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.writing(cmd, func(ctx context.Context, l *Registry) error { return l.Purge(ctx) })
		},
	})
}

func (p *program) storeReindexCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "reindex",
		Short: "Make the search index anew",
		Long: `Reindex deletes the search index of the registry and makes it anew from the records. That
is seldom needed: an index that is missing, damaged, or of another registry is made anew
by itself, by 'stele find' or by the server.

The index is in the folder of the registry with -search appended to its name, or in
STELE_SEARCH_INDEX; for a database it is in the cache folder of the user. A server has
its own, as its setting search-index says; to make that anew, stop the server, and name
the folder in STELE_SEARCH_INDEX.`,
		Example: "  stele store reindex --data /var/lib/stele/registry\n  STELE_SEARCH_INDEX=/var/cache/stele/search stele store reindex --store postgres://stele@db.example.org/stele",
		Args:    usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.inRegistry(cmd, p.reindex)
		},
	})
}

// reindex is the verb.
func (p *program) reindex(ctx context.Context, r *registry.Registry) error {
	local := &access.Local{Registrar: r.Registrar, Registry: r}
	index, err := local.SearchIndex(ctx)
	if err != nil {
		return err
	}
	last, err := r.Store.LastChange(ctx)
	if err != nil {
		return err
	}
	done := uint64(0)
	progress := p.newProgress("reindex", "changes", int64(last), nil)
	err = index.Rebuild(ctx, func(s search.Status) {
		progress.Add(int(s.Change - min(done, s.Change)))
		done = s.Change
	})
	progress.End()
	if err != nil {
		return err
	}
	s := index.Status()
	if p.json {
		return p.printObject(apijson.Search{Indexed: s.Change, Behind: s.Behind(), Records: s.Documents, Bytes: s.Bytes})
	}
	return p.say("%s records are in the search index, up to change %s\n", grouped(int64(s.Documents)), grouped(int64(s.Change)))
}

func (p *program) storeStatusCommand() *cobra.Command {
	count := false
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show where the registry is stored, and its state",
		Long: `Status prints the storage of the registry, the number of changes, whether it is sealed
or an unfinished copy, and for a database whether its primary answers.`,
		Example: "  stele store status\n  stele store status --store postgres://stele@db1,db2/stele --count --json",
		Args:    usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.inStore(cmd, func(ctx context.Context, s stele.Store) error {
				status, err := p.place().Status(ctx, s, count)
				if err != nil {
					return err
				}
				return p.printStatus(status)
			})
		},
	}
	cmd.Flags().BoolVar(&count, "count", false, "also count the records, which takes a while")
	return usage.NeverFiles(cmd)
}

// printStatus prints it.
func (p *program) printStatus(s registry.Status) error {
	if p.json {
		return p.printObject(s)
	}
	var b strings.Builder
	card.Rows(&b, "kind", s.Kind)
	card.Rows(&b, "place", s.Place)
	card.Rows(&b, "schema", fmt.Sprint(s.Schema))
	changes := grouped(int64(s.Changes))
	if s.LastChange != nil {
		changes += ", the last at " + s.LastChange.Format(time.RFC3339)
	}
	card.Rows(&b, "changes", changes)
	since := "from " // the beginning of the registry
	if s.Generation.Restored != "" {
		since = "restored at "
	}
	card.Rows(&b, "generation", fmt.Sprintf("%d, %s%s (%s)", s.Generation.Number, since, s.Generation.Began.Format(time.RFC3339), s.Generation.ID))
	card.Rows(&b, "namespaces", grouped(int64(s.Namespaces)))
	if s.Records != nil {
		card.Rows(&b, "records", grouped(int64(*s.Records)))
	}
	if s.Sealed != "" {
		card.Rows(&b, "sealed", s.Sealed)
	}
	if s.CopyOf != "" {
		card.Rows(&b, "unfinished", "this is a copy of "+s.CopyOf+" that is not finished")
	}
	if s.Lagging != nil {
		card.Rows(&b, "primary", "away since "+s.Lagging.UTC().Format(time.RFC3339)+"; a standby is read, which may be behind")
	}
	_, err := fmt.Fprint(p.stdout, b.String())
	return err
}

func (p *program) storeCopyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "copy FROM TO",
		Short: "Move a registry to another place",
		Long: `Copy moves a registry from a folder to a PostgreSQL database, or back, or between two of
the same kind: every version of every record and namespace at its number in the list of
changes, minters, users, tokens, keys, and the audit trail, which gets an entry about
the copy. TO is an empty folder or one that does not exist, or a database that 'stele
store migrate' has prepared.

Copy first seals FROM, permanently: from then on FROM is read-only, because names that
both registries issue would be issued twice. A server can continue to answer from it. If
TO turns out to be the wrong place, 'stele store unseal' removes the seal.

If copy is interrupted, run it again: it continues where it stopped. TO can't be used
until copy has compared both registries and found no difference.`,
		Example: `  stele store copy /var/lib/stele postgres://stele@db.example.org/stele
  stele store copy postgres://stele@db.example.org/stele /srv/stele
  stele store copy /var/lib/stele /mnt/larger/stele`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage.Errorf(cmd, "argument.two-places-expected", "{count} arguments where two belong: the place of the registry and the place to which it moves", len(args))
			}
			return nil
		},
		ValidArgsFunction: usage.Folders,
		RunE: func(cmd *cobra.Command, args []string) error {
			from, to, err := copyPlaces(cmd, args)
			if err != nil {
				return err
			}
			return p.interruptible(cmd, func(ctx context.Context) error { return p.copyStore(ctx, from, to) })
		},
	}
}

// copyPlaces reads the arguments.
func copyPlaces(cmd *cobra.Command, args []string) (from, to registry.Place, err error) {
	for _, name := range []string{"data", "store"} {
		if cmd.Flags().Changed(name) {
			return from, to, usage.Errorf(cmd, "flag.place-with-from-and-to", "the places are named by FROM and TO; leave --{flag} out", name)
		}
	}
	if from, err = registry.ParsePlace(args[0]); err != nil {
		return from, to, usage.Errorf(cmd, "", "FROM: {cause}", err)
	}
	if to, err = registry.ParsePlace(args[1]); err != nil {
		return from, to, usage.Errorf(cmd, "", "TO: {cause}", err)
	}
	if !from.IsDatabase() && registry.IsFolderBackup(from.Folder) != nil { // opening would make a registry there
		return from, to, refuse("copy", stele.NotFound, "store-copy.registry-missing", `there is no registry in "{folder}"`, from.Folder)
	}
	if same, err := from.IsSame(to); err != nil || same {
		return from, to, errors.Join(err, usage.Errorf(cmd, "argument.same-place", "FROM and TO are the same place"))
	}
	return from, to, nil
}

// copyStore is the verb.
func (p *program) copyStore(ctx context.Context, from, to registry.Place) (err error) {
	o := p.openOptions(p.logger(), resolver.Options{})
	o.Brief = !from.IsDatabase()
	source, err := from.OpenStore(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	o.Brief, o.Create = !to.IsDatabase(), true
	target, err := to.OpenStore(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	ctx = byCommand(ctx)
	who, by := auth.From(ctx), auth.OriginOf(ctx)
	c := &storecopy.Copier{From: source, To: target, FromPlace: from.ForCopy(), ToPlace: to.ForCopy(), Now: p.now, Progress: p.copyProgress,
		Entry: stele.AuditEntry{By: who.Name, System: by.System, Via: by.Via}}
	done, err := c.Run(ctx)
	if ctx.Err() != nil {
		return refuse("copy", stele.Unavailable, "store-copy.interrupted", "interrupted; run the same command again, and it goes on where it was")
	}
	if err != nil {
		return err
	}
	return p.printCopied(done)
}

// copyProgress shows how far a copy is.
func (p *program) copyProgress(phase, unit string, total int64, done func() int64) storecopy.Progress {
	return p.newProgress(phase, unit, total, done)
}

// printCopied says what was copied.
func (p *program) printCopied(c storecopy.Report) error {
	if p.json {
		return p.printObject(c)
	}
	_, err := fmt.Fprintf(p.stdout, "%s has all that %s has: %s changes, %s records, %s namespaces, %s minters, %s cells, %s entries of the audit trail\n%s is sealed: %s\n",
		printable(c.To), printable(c.From), grouped(int64(c.Changes)), grouped(int64(c.Records)), grouped(int64(c.Namespaces)), grouped(int64(c.Minters)), grouped(int64(c.Cells)), grouped(int64(c.Audit)),
		printable(c.From), printable(c.Seal))
	return err
}
