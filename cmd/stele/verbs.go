package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Groups of verbs, as 'stele --help' shows them.
const (
	groupNames  = "names"
	groupPolicy = "policy"
	groupBulk   = "bulk"
	groupServer = "server"
	groupSafety = "safety"
	groupSelf   = "self"
)

// verbGroup is a group of verbs.
type verbGroup struct {
	id, title string
	verbs     []*cobra.Command
}

// verbGroups is the one list of verbs, by group, in the order of the help text. A new verb
// is a line here.
func (p *program) verbGroups() []verbGroup {
	return []verbGroup{
		{groupNames, "Names: make them, look after them, follow them", []*cobra.Command{
			p.explainCommand(),
			p.mintCommand(),
			p.registerCommand(),
			p.updateCommand(),
			p.withdrawCommand(),
			p.revertCommand(),
			p.reinstateCommand(),
			p.redactCommand(),
			p.disavowCommand(),
			p.showCommand(),
			p.historyCommand(),
			p.lsCommand(),
			p.resolveCommand(),
			p.getCommand(),
			p.signCommand(),
		}},
		{groupPolicy, "Namespaces, people and keys", []*cobra.Command{
			p.nsCommand(),
			p.purlHostCommand(),
			p.userCommand(),
			p.tokenCommand(),
			p.auditCommand(),
			p.keyCommand(),
			p.zoneCommand(),
		}},
		{groupBulk, "Many at once", []*cobra.Command{
			p.importCommand(),
			p.exportCommand(),
		}},
		{groupServer, "The server", []*cobra.Command{
			onFolder(p.serveCommand()),
			p.configCommand(),
			p.doctorCommand(),
		}},
		{groupSafety, "Keeping the registry safe", []*cobra.Command{
			p.backupCommand(),
			p.restoreCommand(),
			p.verifyCommand(),
			p.storeCommand(),
			p.secretCommand(),
		}},
		{groupSelf, "The program itself", []*cobra.Command{
			p.versionCommand(),
		}},
	}
}

// addVerbs adds all verbs to the root.
func (p *program) addVerbs(root *cobra.Command) {
	for _, g := range p.verbGroups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, verb := range g.verbs {
			verb.GroupID = g.id
			root.AddCommand(verb)
		}
	}
}

func (p *program) versionCommand() *cobra.Command {
	return neverFiles(&cobra.Command{
		Use:     "version",
		Short:   "Print the version of the program",
		Long:    "Version prints the version of the program, as --version does.",
		Example: "  stele version\n  stele version --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.json {
				return p.printObject(map[string]string{"version": version})
			}
			_, err := fmt.Fprintf(p.stdout, "stele version %s\n", version)
			return err
		},
	})
}
