package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/disk"
)

func (p *program) backupCommand() *cobra.Command {
	var f drillFlags
	cmd := &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy the registry to a new folder",
		Long: `Backup copies the registry, as it is at one moment, to a folder that must not exist yet.
The backup is complete: it has the records with their history, the namespaces, and the
positions of the minters.

On the same disk the backup shares files with the registry, so it takes little time and
space. Copy it to another disk or machine: otherwise both are lost with this disk.

With --server the command downloads the backup from the server, which continues to
answer requests.

'stele restore DIR' restores a backup, and 'stele verify --data DIR' checks it.

With --drill the command shows that a backup can be restored: it makes a backup, restores
it to another place, verifies what was restored, compares it with the registry, prints a
report, and removes what it has made. It changes nothing in the registry. If DIR is a
backup that exists, the command examines that backup instead. If DIR does not exist, the
new backup stays there. The command exits with 1 if there is a problem or a difference.

A backup of a folder is restored to a folder below --scratch, which needs twice the space
of the registry. A backup of a database is restored to a new schema of the database that
--into names, or else of the database of --store. With --server the command compares the
records and namespaces, in all versions; where it has the registry open itself, also
minters, users, tokens, keys, the list of changes and the audit trail.`,
		Example: `  stele backup /backups/stele-$(date +%F)
  stele backup /backups/stele-$(date +%F) --server https://id.example.org
  stele backup --drill --server https://id.example.org --scratch /var/backups/stele
  stele backup --drill /backups/stele-2031-05-02 --json
  stele backup --drill --store postgres://stele@db/stele --into postgres://stele@spare/drill
  stele --data /srv/stele backup /srv/stele-backup && tar -C /srv -cf - stele-backup | ssh vault 'cat > stele.tar'`,
		Args:              f.arguments,
		ValidArgsFunction: usage.Folders,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.drill {
				return p.drill(cmd, &f, args)
			}
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				changes, err := l.Backup(ctx, args[0])
				if err != nil {
					return err
				}
				return p.printBackup(args[0], changes)
			})
		},
	}
	f.add(cmd)
	return cmd
}

// printBackup says what the backup has.
func (p *program) printBackup(folder string, last uint64) error {
	size, err := disk.FolderSize(folder)
	if err != nil {
		return err
	}
	if !p.json {
		return p.say("%s has all %s changes, in %s bytes\n", printable(folder), grouped(int64(last)), grouped(size))
	}
	return p.printObject(struct {
		Folder  string `json:"folder"`
		Changes uint64 `json:"changes"`
		Bytes   int64  `json:"bytes"`
	}{folder, last, size})
}
