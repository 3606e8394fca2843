package main

import (
	"github.com/spf13/cobra"

	"github.com/stele-id/stele/cmd/stele/usage"
)

func (p *program) logCommand() *cobra.Command {
	members := []*cobra.Command{p.logProveCommand(), p.logCheckCommand(), p.logKeyCommand(), p.logStatusCommand(), p.logCatchUpCommand(), p.logMonitorCommand(), p.logWitnessCommand()}
	return usage.Family(&cobra.Command{
		Use:   "log",
		Short: "Prove and check the history of names",
		Long: `Each change of a registry is a leaf of its transparency log: a Merkle tree whose root the
registry signs. What was signed once can't be changed without that being seen.`,
		Example: "  stele log witness --listen 127.0.0.1:8090 --name witness.example.net --key witness.key --state witness.json --log id.example.org/.log+456b37fc+ASe6TBEOKNGNRtk+90u7D8Myz1rR+ZMDO8+8cmVzuOq+",
	}, members...)
}
