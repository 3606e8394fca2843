package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/manual"
	"github.com/stele-id/stele/cmd/stele/usage"
)

// manCommand is for those who build packages: it is hidden from users, who have --help.
func (p *program) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man FOLDER",
		Short:  "Write the manual pages of all commands",
		Hidden: true,
		Long: `Man writes a page in the form of man(7) for each command to a folder, which it makes if it is
missing: stele.1, stele-ns.1, stele-ns-add.1 and so on. The pages have no dates: the same
program writes the same files.`,
		Example:           "  stele man build/man1",
		Args:              usage.OneArgument("the folder"),
		ValidArgsFunction: usage.Folders,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return refuse("man", stele.Internal, "man.folder-failed", "cannot make the folder of the manual: {cause}", err)
			}
			for _, c := range manual.Commands(cmd.Root()) {
				if err := os.WriteFile(filepath.Join(args[0], manual.FileName(c)), manual.Man(c), 0o644); err != nil {
					return refuse("man", stele.Internal, "man.page-failed", "cannot write a page of the manual: {cause}", err)
				}
			}
			return nil
		},
	}
}
