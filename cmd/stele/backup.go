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
		Long: `Backup copies the registry, as it is at one moment, to a folder that is not there
yet. The copy has everything: records with their history, namespaces, and how far
minters are. On the same disk it shares files with the registry, and so takes
little time and room; copy it to another disk or machine, or it does not outlive
this one.

With --server the copy comes from there to this machine, while the server goes on.

'stele restore DIR' brings it back, and 'stele verify --data DIR' checks it.`,
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
