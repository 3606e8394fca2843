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
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/store/pebble"
)

func (p *program) restoreCommand() *cobra.Command {
	confirm, present, floor := "", "", uint32(0)
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

What was decided since the backup stays: tokens that were revoked, users who were
disabled, owners and roles in namespaces, signing keys that were revoked, and records
that were redacted are as they are in the registry that is replaced. Where there is no
such registry, as on a new machine, or where it can't be read, the backup can't know of
them: then all tokens are shut until you make a new one or open them ('stele token
open'), unless you say --accept-tokens.

Zones of the DNS get serials above those that they had in the registry that is replaced,
above those that their secondaries have, which are asked, and above --serial-floor, so
that every secondary takes the whole zone. Secondaries are asked at public addresses, and
at those of --notify-allow. If the serial of the registry that is replaced is not known,
no floor is given, and a secondary does not say which serial it has, a zone is not
transferred until 'stele zone raise' has given it a serial.

The registry begins a new generation: version tokens, cursors and idempotency keys from
before the restore are refused.

With --store the backup, which must be one of a database, goes into a database that is
empty except for what 'stele store migrate' made there. Name the one that it replaces
with --present, a URL or a folder: what was decided there since the backup is kept as
above, and it is sealed, so that no server writes to it any more.

With --server the backup goes there, and the server does the same while it goes on.
So that nobody replaces the wrong registry, --confirm must name the folder of the
registry on the server.`,
		Example: `  stele restore /backups/stele-2031-05-02
  stele --data /srv/stele restore /srv/stele-backup && stele --data /srv/stele ns skip ark:12345/x5 +10000
  stele restore /backups/stele-2031-05-02 --store postgres://stele@db/stele2 --present postgres://stele@db/stele
  stele restore /backups/stele-2031-05-02 --data /srv/new --accept-tokens
  stele restore /backups/stele-2031-05-02 --data /srv/new --serial-floor 20310502
  stele restore /backups/stele-2031-05-02 --server https://id.example.org --confirm stele-data`,
		Args:              oneArgument("the folder of the backup"),
		ValidArgsFunction: completeFolders,
		RunE: func(cmd *cobra.Command, args []string) error {
			far, err := p.isRemote(cmd)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("serial-floor") {
				p.serialFloor = &floor
			}
			var report restored
			switch {
			case far && present != "":
				err = misuse(cmd, "--present names the registry that a database replaces; a server replaces its own")
			case far && p.serialFloor != nil:
				err = misuse(cmd, "--serial-floor is for a restore where there is no registry; a server knows the serials of its zones, and 'stele zone raise' raises one")
			case far && cmd.Flags().Changed("notify-allow"):
				err = misuse(cmd, "--notify-allow is for a restore of a folder or a database; a server has the setting notify-allow")
			case far && p.acceptTokens:
				err = misuse(cmd, "--accept-tokens is for a restore where there is no registry; a server keeps its tokens as they are")
			case far:
				report, err = p.restoreAtServer(cmd, args[0], confirm)
			case confirm != "":
				err = misuse(cmd, "--confirm names the registry of a --server; a folder is named by --data")
			case p.store != "":
				report, err = p.restoreDatabase(cmd, args[0], present)
			case present != "":
				err = misuse(cmd, "--present names the registry that a database replaces; without --store it is that of --data")
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
	cmd.Flags().StringVar(&present, "present", "", "`place` of the registry that the database replaces: a URL or a folder; with --store")
	cmd.Flags().Uint32Var(&floor, "serial-floor", 0, "`serial` that no secondary is above: restored zones get higher ones")
	p.allowFlag(cmd)
	cmd.Flags().BoolVar(&p.acceptTokens, "accept-tokens", false, "leave tokens good where no registry is replaced that knows which were revoked")
	// It fails only for a flag that the command does not have.
	_ = cmd.RegisterFlagCompletionFunc("present", completeFolders)
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

	// Unknown says that there was no registry to replace, or that it could not be read:
	// what was decided since the backup, whose last change was made at that time, is not
	// known.
	Unknown    bool      `json:"unknown,omitempty"`
	Since      time.Time `json:"since,omitzero"`
	TokensShut bool      `json:"tokensShut,omitempty"`

	Zones []restoredZone `json:"zones,omitempty"`
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
	mark := p.now().UTC().Format("20060102T150405Z")
	staged := freeName(data + ".restored-" + mark)
	report, release, err := p.stage(cmd, backup, staged, data)
	if err != nil {
		return report, errors.Join(err, os.RemoveAll(staged))
	}
	defer func() { err = errors.Join(err, release()) }()
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

// openOld opens the registry that is replaced, so that no other process uses it
// meanwhile. It is nil if there is none, or if it can't be read: that may be why a backup
// is restored.
func (p *program) openOld(ctx context.Context, data string) (stele.Store, error) {
	if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) || looksLikeStore(data) != nil {
		return nil, nil
	}
	old, err := place{folder: data}.open(ctx, p, p.logger(), true)
	if err != nil && stele.KindOf(err) == stele.Internal {
		fmt.Fprintf(p.stderr, "stele: the registry that is replaced is damaged, and nothing is known of it: %s\n", printable(err.Error()))
		return nil, nil
	}
	return old, err
}

// holdOld closes the registry that is replaced, if it is open, and keeps others out of
// its folder.
func (p *program) holdOld(old stele.Store, data string) (release func() error, err error) {
	if old != nil {
		if err := old.Close(); err != nil {
			return nil, err
		}
	}
	if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) {
		return func() error { return nil }, nil
	}
	return pebble.Hold(data, pebble.Options{Now: p.now, Log: p.logger()})
}

func (p *program) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// stage makes a verified copy of the backup that is safe to use in the place of the
// registry in the folder data, which no other process uses until release.
func (p *program) stage(cmd *cobra.Command, backup, staged, data string) (report restored, release func() error, err error) {
	old, err := p.openOld(cmd.Context(), data)
	if err != nil {
		return report, nil, err
	}
	defer func() {
		if old != nil && err != nil {
			err = errors.Join(err, old.Close())
		}
	}()
	if err := copyFolder(cmd.Context(), backup, staged); err != nil {
		return report, nil, refuse("restore", stele.Unavailable, "the backup can't be copied: %w", err)
	}
	copied := *p
	copied.data = staged
	err = copied.inRegistry(cmd, func(ctx context.Context, r *registry.Registry) error {
		reason, err := r.Store.Sealed(ctx)
		if err == nil {
			err = refuseSealed(backup, reason)
		}
		if err != nil {
			return err
		}
		var problems []string
		if err := verifyRegistry(ctx, r, func(problem string) { problems = append(problems, problem) }); err != nil {
			return err
		}
		if len(problems) > 0 {
			return refuse("restore", stele.Internal, "the backup is damaged, and was not restored; %d problems, the first: %s", len(problems), problems[0])
		}
		answers, err := p.secondariesOf(ctx, r.Store, old)
		if err != nil {
			return err
		}
		report, err = p.inherit(ctx, r, old, answers)
		return err
	})
	if err != nil {
		return report, nil, err
	}
	if release, err = p.holdOld(old, data); err != nil {
		old = nil // it is closed
	}
	return report, release, err
}

// inherit makes a restored registry safe to use in the place of the present one, which is
// nil if there is none or it can't be read. Answers are those of the secondaries of both.
// All kinds of restores come here.
func (p *program) inherit(ctx context.Context, r *registry.Registry, present stele.Store, answers []stele.SecondaryAnswer) (report restored, err error) {
	var left registrar.Legacy
	if present != nil {
		left, err = registrar.ReadLegacy(ctx, present, r.Store)
		if stele.KindOf(err) == stele.Internal && err != nil {
			fmt.Fprintf(p.stderr, "stele: the registry that is replaced is damaged, and nothing is known of it: %s\n", printable(err.Error()))
			left = registrar.Legacy{}
		} else if err != nil {
			return report, err
		}
	}
	left.AcceptTokens, left.SerialFloor, left.Answers = p.acceptTokens, p.serialFloor, answers
	at, err := lastTime(ctx, r)
	if err != nil {
		return report, err
	}
	if err := r.Registrar.Inherit(ctx, left); err != nil {
		return report, err
	}
	if !left.IsKnown() {
		report.Unknown, report.Since, report.TokensShut = true, at, !p.acceptTokens
	}
	if report.Shut, err = shutZones(ctx, r); err != nil {
		return report, err
	}
	slices.Sort(report.Shut)
	if report.Zones, err = restoredZones(ctx, r, answers); err != nil {
		return report, err
	}
	if report.MissingKeys, err = missingSecretKeys(ctx, r); err != nil {
		return report, err
	}
	report.Changes, err = r.Store.LastChange(ctx)
	return report, err
}

// lastTime returns when the last change was made; the zero time if there is none.
func lastTime(ctx context.Context, r *registry.Registry) (at time.Time, err error) {
	last, err := r.Store.LastChange(ctx)
	if err != nil || last == 0 {
		return at, err
	}
	for change, err := range r.Store.Changes(ctx, last-1) {
		return change.At.UTC(), err
	}
	return at, nil
}

// shutZones returns the namespaces whose templates are shut.
func shutZones(ctx context.Context, r *registry.Registry) (list []string, err error) {
	for ns, err := range r.Registrar.Namespaces(ctx) {
		if err != nil {
			return nil, err
		}
		if ns.Minter.Kind != stele.MinterNOID {
			continue
		}
		status, err := r.Registrar.MinterStatus(ctx, ns.Key())
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
	parent, kept := filepath.Dir(data), freeName(kept)
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

// freeName returns a name that no file has: the one that is given, or with a number after it.
// A registry that two restores in a second replaced is kept under two names.
func freeName(path string) string {
	for name, i := path, 2; ; i++ {
		if _, err := os.Lstat(name); err != nil { // what else is wrong is told when it is used
			return name
		}
		name = fmt.Sprintf("%s-%d", path, i)
	}
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
	if r.Unknown && err == nil {
		err = p.printUnknown(r)
	}
	slices.Sort(r.Shut)
	for _, prefix := range r.Shut {
		if err == nil {
			_, err = fmt.Fprintf(p.stdout, "no names are made in %s until its counter is set ahead: stele ns skip %s +N\n", prefix, prefix)
		}
	}
	if err != nil {
		return err
	}
	return p.printRestoredZones(r.Zones)
}

// printUnknown says what a backup can't know, where there is no present registry.
func (p *program) printUnknown(r restored) error {
	since := "the backup"
	if !r.Since.IsZero() {
		since += " (its last change is of " + r.Since.Format(time.RFC3339) + ")"
	}
	text := "there was no registry here that could be read, so nothing is known of what was decided since " + since + ":\n" +
		"  tokens that were revoked, users who were disabled, roles that were taken away,\n" +
		"  signing keys that were revoked, records that were redacted: look through them before others come in\n"
	if r.TokensShut {
		text += "all tokens are shut: make a new one (stele token create USER), or open those that are still good (stele token open)\n"
	} else {
		text += "tokens are good as the backup has them, as --accept-tokens asks for\n"
	}
	_, err := fmt.Fprint(p.stdout, text)
	return err
}
