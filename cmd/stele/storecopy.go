package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/resolver"
	storecopy "github.com/stele-id/stele/store/copy"
)

func (p *program) storeCopyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "copy FROM TO",
		Short: "Move a registry to another place",
		Long: `Copy moves a registry from a folder to a PostgreSQL database, or back, or between two of
a kind: every version of every record and namespace at its number in the list of changes,
minters, users, tokens, keys, and the audit trail, which gets an entry about the copy. TO is an empty folder or none, or a database that
'stele store migrate' has made ready.

First FROM is sealed, for ever: from then on it is read and not written, since names
that both places give would be given twice. A server may go on answering from it. If TO
is the wrong place after all, 'stele store unseal' takes the seal away.

Copy can be interrupted, and goes on where it was when it is run again. Until it has
compared both places with each other, and has found no difference, nobody can use TO.`,
		Example: `  stele store copy /var/lib/stele postgres://stele@db.example.org/stele
  stele store copy postgres://stele@db.example.org/stele /srv/stele
  stele store copy /var/lib/stele /mnt/larger/stele`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return misuse(cmd, "%d arguments where two belong: the place of the registry and the place to which it moves", len(args))
			}
			return nil
		},
		ValidArgsFunction: completeFolders,
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
			return from, to, misuse(cmd, "the places are named by FROM and TO; leave --%s out", name)
		}
	}
	if from, err = registry.ParsePlace(args[0]); err != nil {
		return from, to, misuse(cmd, "FROM: %w", err)
	}
	if to, err = registry.ParsePlace(args[1]); err != nil {
		return from, to, misuse(cmd, "TO: %w", err)
	}
	if !from.IsDatabase() && registry.IsFolderBackup(from.Folder) != nil { // opening would make a registry there
		return from, to, refuse("copy", stele.NotFound, "there is no registry in %.200q", from.Folder)
	}
	if same, err := from.IsSame(to); err != nil || same {
		return from, to, errors.Join(err, misuse(cmd, "FROM and TO are the same place"))
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
		return refuse("copy", stele.Unavailable, "interrupted; run the same command again, and it goes on where it was")
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
