package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/store/pebble"
)

func (p *program) restoreCommand() *cobra.Command {
	confirm := ""
	cmd := &cobra.Command{
		Use:   "restore DIR",
		Short: "Put a backup in the place of the registry",
		Long: `Restore copies a backup beside the registry, verifies the copy, and only then puts
it in the registry's place, in one step. The backup is not changed. The registry as
it was is kept beside it, in a folder whose name ends in .before- and the time.

Names that were given after the backup was made must not be given again. Minters
that make names of dates go on from now, or from their last date if that is later.
Where names come from a template nobody knows how many were given, so it stays shut
until an administrator has set its counter ahead: 'stele ns skip PREFIX +N', with N
more than could have been given since the backup.

Users and tokens stay as they are now, with those that only the backup has: a token
that was revoked since then does not come back to life.

With --store the backup, which must be one of a database, goes into a database that is
empty but for what 'stele store migrate' made there. The one that it replaces, if there
is one, stays as it is: see that no server uses it any more, and that no names are lost
that it gave since the backup, as above.

With --server the backup goes there, and the server does the same while it goes on.
So that nobody replaces the wrong registry, --confirm must name the folder of the
registry on the server.`,
		Example: `  stele restore /backups/stele-2031-05-02
  stele --data /srv/stele restore /srv/stele-backup && stele --data /srv/stele ns skip ark:12345/x5 +10000
  stele restore /backups/stele-2031-05-02 --store postgres://stele@db/stele2
  stele restore /backups/stele-2031-05-02 --server https://id.example.org --confirm stele-data`,
		Args:              oneArgument("the folder of the backup"),
		ValidArgsFunction: completeFolders,
		RunE: func(cmd *cobra.Command, args []string) error {
			far, err := p.isRemote(cmd)
			if err != nil {
				return err
			}
			var report restored
			switch {
			case far:
				report, err = p.restoreAtServer(cmd, args[0], confirm)
			case confirm != "":
				err = misuse(cmd, "--confirm names the registry of a --server; a folder is named by --data")
			case p.store != "":
				report, err = p.restoreDatabase(cmd, args[0])
			default:
				report, err = p.restore(cmd, args[0])
			}
			if err != nil {
				return err
			}
			return p.printRestore(report)
		},
	}
	cmd.Flags().StringVar(&confirm, "confirm", "", "`name` of the folder of the server's registry that is replaced")
	// It fails only for a flag that the command does not have.
	_ = cmd.RegisterFlagCompletionFunc("confirm", cobra.NoFileCompletions)
	return cmd
}

// restored is what a restore did.
type restored struct {
	Data    string   `json:"data"`
	Kept    string   `json:"kept,omitempty"` // the registry as it was
	Changes uint64   `json:"changes"`
	Shut    []string `json:"shut,omitempty"` // namespaces whose templates are shut

	// MissingKeys are the secret keys that are not at hand, and how many secrets each
	// encrypts.
	MissingKeys map[string]int `json:"missingKeys,omitempty"`
}

// restore puts a backup in the place of the registry.
func (p *program) restore(cmd *cobra.Command, backup string) (report restored, err error) {
	if err := looksLikeStore(backup); err != nil {
		return report, err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd.SetContext(ctx) // so that nothing is left behind when it is interrupted
	data, err := filepath.Abs(p.data)
	if err != nil {
		return report, err
	}
	if real, err := filepath.EvalSymlinks(data); err == nil {
		data = real
	}
	if same, err := sameFolder(backup, data); err != nil || same {
		return report, errors.Join(err, refuse("restore", stele.Invalid, "%s is the registry itself, not a backup of it", backup))
	}
	old, release, err := p.holdOld(cmd, data)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, release()) }()

	mark := p.now().UTC().Format("20060102T150405Z")
	staged := data + ".restored-" + mark
	report, err = p.stage(cmd, backup, staged, old)
	if err != nil {
		return report, errors.Join(err, os.RemoveAll(staged))
	}
	report.Data = data
	report.Kept, err = replaceFolder(staged, data, data+".before-"+mark)
	return report, err
}

// looksLikeStore refuses a folder that can't be a backup, and one that is in use.
func looksLikeStore(folder string) error {
	found, err := filepath.Glob(filepath.Join(folder, "MANIFEST-*"))
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return nil
	}
	if _, err := os.Stat(folder); err != nil {
		return fileError(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "manifest.json")); err == nil {
		return refuse("restore", stele.Invalid, "%s is a backup of a database; restore it into an empty one with --store, and 'stele store copy' moves it to a folder", folder)
	}
	return refuse("restore", stele.Invalid, "%s is no backup of a registry: it has no manifest", folder)
}

func sameFolder(a, b string) (bool, error) {
	x, err := os.Stat(a)
	if err != nil {
		return false, fileError(err)
	}
	y, err := os.Stat(b)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, fileError(err)
	}
	return os.SameFile(x, y), nil
}

// holdOld keeps others out of the registry that is replaced, and reads what must not be
// forgotten of it, if it can be read: that it can't may be why a backup is restored.
func (p *program) holdOld(cmd *cobra.Command, data string) (left registrar.Legacy, release func() error, err error) {
	if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) {
		return left, func() error { return nil }, nil
	}
	old := *p
	old.data = data
	if looksLikeStore(data) == nil {
		err = old.inRegistry(cmd, func(ctx context.Context, r *registry) (err error) {
			left, err = registrar.ReadLegacy(ctx, r.store)
			return err
		})
	}
	if err != nil && stele.KindOf(err) == stele.Internal {
		fmt.Fprintf(p.stderr, "stele: the registry that is replaced is damaged: %s\n", printable(err.Error()))
	} else if err != nil {
		return left, nil, err
	}
	release, err = pebble.Hold(data, pebble.Options{Now: p.now, Log: p.logger()})
	return left, release, err
}

func (p *program) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// stage makes a verified copy of the backup whose minters repeat nothing.
func (p *program) stage(cmd *cobra.Command, backup, staged string, old registrar.Legacy) (report restored, err error) {
	if err := copyFolder(cmd.Context(), backup, staged); err != nil {
		return report, refuse("restore", stele.Unavailable, "the backup can't be copied: %w", err)
	}
	copied := *p
	copied.data = staged
	err = copied.inRegistry(cmd, func(ctx context.Context, r *registry) error {
		reason, err := r.store.Sealed(ctx)
		if err == nil {
			err = refuseSealed(backup, reason)
		}
		if err != nil {
			return err
		}
		var problems []string
		if err := r.verify(ctx, func(problem string) { problems = append(problems, problem) }); err != nil {
			return err
		}
		if len(problems) > 0 {
			return refuse("restore", stele.Internal, "the backup is damaged, and was not restored; %d problems, the first: %s", len(problems), problems[0])
		}
		if err := r.registrar.Inherit(ctx, old); err != nil {
			return err
		}
		if report.Shut, err = r.shut(ctx); err != nil {
			return err
		}
		if report.MissingKeys, err = r.missingSecretKeys(ctx); err != nil {
			return err
		}
		report.Changes, err = r.store.LastChange(ctx)
		return err
	})
	return report, err
}

// shut returns the namespaces whose templates are shut.
func (r *registry) shut(ctx context.Context) (list []string, err error) {
	for ns, err := range r.registrar.Namespaces(ctx) {
		if err != nil {
			return nil, err
		}
		if ns.Minter.Kind != stele.MinterNOID {
			continue
		}
		status, err := r.registrar.MinterStatus(ctx, ns.Key())
		if err != nil {
			return nil, err
		}
		if status.Shut {
			list = append(list, ns.Key().String())
		}
	}
	return list, nil
}

// replaceFolder puts the folder staged in the place of data, which is kept under
// another name. At every moment data is one of both, as far as the system can do so.
func replaceFolder(staged, data, kept string) (string, error) {
	parent := filepath.Dir(data)
	if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(staged, data); err != nil {
			return "", err
		}
		return "", syncFolder(parent)
	}
	err := exchange(staged, data)
	if errors.Is(err, errors.ErrUnsupported) {
		if err = os.Rename(data, kept); err == nil {
			if err = os.Rename(staged, data); err == nil {
				return kept, syncFolder(parent)
			}
			err = errors.Join(err, os.Rename(kept, data))
		}
	}
	if err != nil {
		return "", errors.Join(refuse("restore", stele.Unavailable, "%s can't be replaced: %w; restore to another folder with --data", data, err), os.RemoveAll(staged))
	}
	// What was staged is data now, and the other way round.
	if err := syncFolder(parent); err != nil {
		return staged, err
	}
	if err := os.Rename(staged, kept); err != nil {
		return staged, err
	}
	return kept, syncFolder(parent)
}

// copyFile copies a file to a new one, and makes sure that it stays.
func copyFile(ctx context.Context, from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := io.CopyN(out, in, 64<<20); err == io.EOF {
			return out.Sync()
		} else if err != nil {
			return err
		}
	}
}

// syncFolder makes sure that what a folder lists stays.
func syncFolder(folder string) error {
	dir, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// printRestore says what was done, and what is left to do.
func (p *program) printRestore(r restored) error {
	if p.json {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.stdout, "%s\n", line)
		return err
	}
	_, err := fmt.Fprintf(p.stdout, "%s is restored, with %s changes\n", printable(r.Data), grouped(int64(r.Changes)))
	if r.Kept != "" && err == nil {
		_, err = fmt.Fprintf(p.stdout, "what was there is in %s\n", printable(r.Kept))
	}
	for _, id := range slices.Sorted(maps.Keys(r.MissingKeys)) {
		if err == nil {
			_, err = fmt.Fprintf(p.stdout, "%d secrets of the backup are encrypted under the secret key %s, which is not in %s: put the key there from its copy, or make new keys of zones and secondaries (docs/secrets.md); nothing else is lost\n", r.MissingKeys[id], id, printable(p.secrets.Where()))
		}
	}
	slices.Sort(r.Shut)
	for _, prefix := range r.Shut {
		if err == nil {
			_, err = fmt.Fprintf(p.stdout, "no names are made in %s until its counter is set ahead: stele ns skip %s +N\n", prefix, prefix)
		}
	}
	return err
}
