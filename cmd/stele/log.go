package main

import (
	"github.com/spf13/cobra"

	"github.com/stele-id/stele/cmd/stele/usage"
)

func (p *program) logCommand() *cobra.Command {
	members := []*cobra.Command{p.logMonitorCommand()}
	return usage.Family(&cobra.Command{
		Use:   "log",
		Short: "Prove and check the history of names",
		Long: `Each change of a registry is a leaf of its transparency log: a Merkle tree whose root the
registry signs. What was signed once can't be changed without that being seen.`,
		Hidden: len(members) == 0,
	}, members...)
}
