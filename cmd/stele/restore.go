package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/internal/wording"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/resolver"
)

func (p *program) restoreCommand() *cobra.Command {
	confirm, present, floor := "", "", uint32(0)
	cmd := &cobra.Command{
		Use:   "restore DIR",
		Short: "Replace the registry with a backup",
		Long: `Restore copies a backup, verifies the copy, and then replaces the registry with it, in
one step. It does not change the backup. It keeps the previous registry beside the new
one, in a folder whose name ends in .before- and the time.

Names that were issued after the backup must not be issued again. Minters that make
names from dates continue from now, or from their last date if that is later. For a
template the number of names issued since the backup is unknown, so the template is shut
until an administrator advances its counter: 'stele ns skip PREFIX +N', with N larger
than the number of names that may have been issued since the backup.

Restore keeps what was decided since the backup. Revoked tokens, disabled users, owners
and roles in namespaces, revoked signing keys, and redacted records are as they are in
the registry that is replaced. If there is no such registry, as on a new machine, or if
it can't be read, restore shuts all tokens until you make a new one or open them ('stele
token open'), unless you give --accept-tokens.

Restore gives DNS zones a serial above the one in the registry that is replaced, above
those of the secondaries, which it queries, and above --serial-floor, so that every
secondary transfers the whole zone. It queries secondaries at public addresses, and at
those of --notify-allow. If the serial of the registry that is replaced is not known,
you give no floor, and a secondary does not report its serial, the zone is not
transferred until 'stele zone raise' gives it a serial.

The registry begins a new generation: it refuses version tokens, cursors and idempotency
keys from before the restore.

With --store restore writes the backup, which must be one of a database, into a database
that is empty except for what 'stele store migrate' made. Name the registry that it
replaces with --present, a URL or a folder: restore keeps what was decided there since
the backup, as above, and seals that registry, so that no server writes to it any more.

With --server restore uploads the backup, and the server does the same while it
continues to run. --confirm must name the folder of the server's registry, so that you
don't replace the wrong registry.`,
		Example: `  stele restore /backups/stele-2031-05-02
  stele --data /srv/stele restore /srv/stele-backup && stele --data /srv/stele ns skip ark:12345/x5 +10000
  stele restore /backups/stele-2031-05-02 --store postgres://stele@db/stele2 --present postgres://stele@db/stele
  stele restore /backups/stele-2031-05-02 --data /srv/new --accept-tokens
  stele restore /backups/stele-2031-05-02 --data /srv/new --serial-floor 20310502
  stele restore /backups/stele-2031-05-02 --server https://id.example.org --confirm stele-data`,
		Args:              usage.OneArgument("the folder of the backup"),
		ValidArgsFunction: usage.Folders,
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
				err = usage.Errorf(cmd, "flag.present-with-server", "--present names the registry that a database replaces; a server replaces its own")
			case far && p.serialFloor != nil:
				err = usage.Errorf(cmd, "flag.serial-floor-with-server", "--serial-floor is for a restore where there is no registry; a server knows the serials of its zones, and 'stele zone raise' raises one")
			case far && cmd.Flags().Changed("notify-allow"):
				err = usage.Errorf(cmd, "flag.notify-allow-with-server", "--notify-allow is for a restore of a folder or a database; a server has the setting notify-allow")
			case far && p.acceptTokens:
				err = usage.Errorf(cmd, "flag.accept-tokens-with-server", "--accept-tokens is for a restore where there is no registry; a server keeps its tokens as they are")
			case far:
				report, err = p.restoreAtServer(cmd, args[0], confirm)
			case confirm != "":
				err = usage.Errorf(cmd, "flag.confirm-without-server", "--confirm names the registry of a --server; a folder is named by --data")
			case p.store == "" && present != "":
				err = usage.Errorf(cmd, "flag.present-without-store", "--present names the registry that a database replaces; without --store it is that of --data")
			default:
				report, err = p.restore(cmd, args[0], present)
			}
			if err != nil {
				return err
			}
			return p.printRestore(report)
		},
	}
	cmd.Flags().StringVar(&confirm, "confirm", "", "`name` of the folder of the server's registry to replace")
	cmd.Flags().StringVar(&present, "present", "", "`place` of the registry that the database replaces, a URL or a folder; with --store")
	cmd.Flags().Uint32Var(&floor, "serial-floor", 0, "`serial` that no secondary exceeds; restored zones get higher serials")
	p.allowFlag(cmd)
	cmd.Flags().BoolVar(&p.acceptTokens, "accept-tokens", false, "keep tokens valid if no replaced registry says which were revoked")
	// It fails only for a flag that the command does not have.
	_ = cmd.RegisterFlagCompletionFunc("present", usage.Folders)
	_ = cmd.RegisterFlagCompletionFunc("confirm", cobra.NoFileCompletions)
	return cmd
}

// restored is what a restore did.
type restored struct {
	Data    string   `json:"data"`
	Kept    string   `json:"kept,omitempty"` // the registry as it was
	Changes uint64   `json:"changes"`
	Shut    []string `json:"shut,omitempty"` // namespaces whose templates are shut

	// MissingKeys are the secret keys that were not found, and how many secrets each
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

// restore puts a backup in the place of the registry that the flags name: of the folder, or
// of the database that is present.
func (p *program) restore(cmd *cobra.Command, backup, present string) (report restored, err error) {
	schemes, err := p.schemes(cmd)
	if err != nil {
		return report, err
	}
	o := &registry.Restore{
		Schemes: schemes, Open: p.openOptions(p.logger(), resolver.Options{}), AcceptTokens: p.acceptTokens, SerialFloor: p.serialFloor,
		Ask: func(ctx context.Context, stores ...stele.Store) ([]stele.SecondaryAnswer, error) {
			may, err := p.mayAsk()
			if err != nil {
				return nil, err
			}
			return registry.AskSecondaries(ctx, may, stores...)
		},
		OnDamaged: func(err error) {
			fmt.Fprintf(p.stderr, "stele: the registry that is replaced is damaged, and nothing is known of it: %s\n", printable(err.Error()))
		},
		Look: func(ctx context.Context, r *registry.Registry) (err error) {
			report.MissingKeys, err = r.MissingSecretKeys(ctx)
			return err
		},
	}
	var done registry.RestoreReport
	err = p.interruptible(cmd, func(ctx context.Context) (err error) {
		ctx = byCommand(ctx)
		if p.place().IsDatabase() {
			done, err = p.restoreDatabase(ctx, cmd, o, backup, present)
			report.Data = p.place().String()
			return err
		}
		if report.Data, err = registry.RealFolder(p.data); err == nil {
			done, err = o.Folder(ctx, backup, p.data)
		}
		return err
	})
	report.Kept, report.Changes, report.Shut = done.Kept, done.Changes, done.Shut
	report.Unknown, report.Since, report.TokensShut = done.Unknown, done.Since, done.TokensShut
	for _, z := range done.Zones {
		report.Zones = append(report.Zones, newRestoredZone(z.Zone, z.Serial, z.Shut, z.Secondaries))
	}
	return report, err
}

// restoreDatabase puts a backup into an empty database.
func (p *program) restoreDatabase(ctx context.Context, cmd *cobra.Command, o *registry.Restore, backup, present string) (done registry.RestoreReport, err error) {
	var old registry.Place
	switch {
	case strings.Contains(present, "://"):
		old.URL = present
	case present != "":
		old.Folder = present
	}
	if old == p.place() {
		return done, usage.Errorf(cmd, "flag.present-is-store", "--present and --store name the same database; restore into an empty one")
	}
	return o.Database(ctx, p.store, backup, old)
}

// restoreAtServer puts a backup in the place of a server's registry.
func (p *program) restoreAtServer(cmd *cobra.Command, backup, confirm string) (report restored, err error) {
	if confirm == "" {
		return report, usage.Errorf(cmd, "flag.confirm-missing", "say which registry is replaced: give the name of its folder on the server with --confirm")
	}
	if err := registry.IsFolderBackup(backup); err != nil {
		return report, err
	}
	size, err := disk.FolderSize(backup)
	if err != nil {
		return report, disk.FileError(err)
	}
	err = p.withServer(cmd, func(ctx context.Context, r *remote.Registry) error {
		var sent atomic.Int64
		progress := p.newProgress("restore", "pieces", size, sent.Load)
		defer progress.End()
		done, err := r.Restore(ctx, backup, confirm, func(n int64) {
			sent.Add(n)
			progress.Add(1)
		})
		report = restored{Data: r.String(), Kept: done.Kept, Changes: done.Changes, Shut: done.Shut}
		for _, z := range done.Zones {
			report.Zones = append(report.Zones, newRestoredZone(z.Zone, z.Serial, z.Shut, z.Secondaries))
		}
		return err
	})
	return report, err
}

// printRestore says what was done, and what is left to do.
func (p *program) printRestore(r restored) error {
	if p.json {
		return p.printObject(r)
	}
	_, err := fmt.Fprintf(p.stdout, "%s is restored, with %s changes\n", printable(r.Data), grouped(int64(r.Changes)))
	if r.Kept != "" && err == nil {
		_, err = fmt.Fprintf(p.stdout, "the previous registry is in %s\n", printable(r.Kept))
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
			_, err = fmt.Fprintf(p.stdout, "no names are made in %s until its counter is advanced: stele ns skip %s +N\n", prefix, prefix)
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

// restoredZone is what a restore made of a zone, and what its secondaries said.
type restoredZone struct {
	Zone        string           `json:"zone"`
	Serial      uint32           `json:"serial"`
	Shut        bool             `json:"shut,omitempty"`
	Secondaries []secondaryCheck `json:"secondaries,omitempty"`

	answers []stele.SecondaryAnswer
}

func newRestoredZone(zone string, serial uint32, shut bool, answers []stele.SecondaryAnswer) restoredZone {
	z := restoredZone{Zone: zone, Serial: serial, Shut: shut}
	for _, a := range answers {
		a = a.Against(serial)
		z.Secondaries, z.answers = append(z.Secondaries, newSecondaryCheck(a)), append(z.answers, a)
	}
	return z
}

// printRestoredZones says which serials restored zones have, and why some are shut.
func (p *program) printRestoredZones(list []restoredZone) error {
	for _, z := range list {
		for _, a := range z.answers {
			text := wording.Secondary(a, z.Serial)
			if a.State == stele.SecondaryBehind {
				text = fmt.Sprintf("the secondary %s has serial %d, and takes the whole zone", a.At, a.Serial)
			}
			if _, err := fmt.Fprintf(p.stdout, "%s %s\n", printable(z.Zone), printable(text)); err != nil {
				return err
			}
		}
		text := fmt.Sprintf("has serial %d now", z.Serial)
		if z.Shut {
			text = "is shut: " + wording.ShutZone(z.Zone)
		}
		if _, err := fmt.Fprintf(p.stdout, "%s %s\n", printable(z.Zone), printable(text)); err != nil {
			return err
		}
	}
	return nil
}
