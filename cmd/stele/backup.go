package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/disk"
)

func (p *program) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy the registry to a new folder",
		Long: `Backup copies the registry, as it is at one moment, to a folder that must not exist yet.
The backup is complete: it has the records with their history, the namespaces, and the
positions of the minters.

On the same disk the backup shares files with the registry, so it takes little time and
space. Copy it to another disk or machine: otherwise both are lost with this disk.

With --server the command downloads the backup from the server, which continues to
answer requests.

'stele restore DIR' restores a backup, and 'stele verify --data DIR' checks it.`,
		Example: `  stele backup /backups/stele-$(date +%F)
  stele backup /backups/stele-$(date +%F) --server https://id.example.org
  stele --data /srv/stele backup /srv/stele-backup && tar -C /srv -cf - stele-backup | ssh vault 'cat > stele.tar'`,
		Args:              usage.OneArgument("the folder"),
		ValidArgsFunction: usage.Folders,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				changes, err := l.Backup(ctx, args[0])
				if err != nil {
					return err
				}
				return p.printBackup(args[0], changes)
			})
		},
	}
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
