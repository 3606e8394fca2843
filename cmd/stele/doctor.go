package main

import (
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/doctor"
	"github.com/stele-id/stele/registry"

	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
)

// doctorOptions are the flags of doctor.
type doctorOptions struct {
	config string
	backup string
	dns    []string
}

func (p *program) doctorCommand() *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check an installation, and say what to do",
		Long: `Doctor checks the environment of a registry: the configuration, the folder and its disk,
the clock, the server and its certificates, the delegation of published zones, tokens
and backups. It prints a line for each check: ok, a warning, or a problem, with what to
do. It changes nothing.

Run it on the machine of the server, as the server's user, with the configuration of the
server. To read the registry while the server runs, doctor needs the token of an
administrator, in STELE_TOKEN or --token-file. With --server it checks a remote server,
as far as that is possible from outside.

It exits with 1 if it finds a problem. Warnings don't change the exit code.`,
		Example: `  sudo -u stele stele doctor --config /etc/stele/stele.toml --token-file /etc/stele/doctor.token --backup /var/backups/stele
  stele doctor --server https://id.example.org --json
  stele doctor --dns 9.9.9.9`,
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.doctor(cmd, o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.config, "config", os.Getenv(configVariable), "configuration `file` of the server (environment: STELE_CONFIG)")
	flags.StringVar(&o.backup, "backup", "", "`folder` of the backups")
	flags.StringArrayVar(&o.dns, "dns", nil, "`address` of a recursive name server; if it has a port, doctor queries the servers of zones at that port, too (default: the system's)")
	_ = cmd.RegisterFlagCompletionFunc("config", cobra.FixedCompletions([]string{"toml"}, cobra.ShellCompDirectiveFilterFileExt))
	_ = cmd.RegisterFlagCompletionFunc("backup", usage.Folders)
	return usage.NeverFiles(cmd)
}

// doctor is the verb.
func (p *program) doctor(cmd *cobra.Command, o doctorOptions) error {
	far, err := p.isRemote(cmd)
	if err != nil {
		return err
	}
	roots, err := p.remote.roots()
	if err != nil {
		return err
	}
	c := config.Load(o.config, os.Environ(), nil) // doctor reports what is wrong there
	if !cmd.Flags().Changed("data") && !cmd.Flags().Changed("store") {
		p.data, p.store = c.Data, c.Store
	}
	if p.data == "" { // the configuration is broken
		p.data = config.DefaultData
	}
	server := *p // the keys are those that the server reads
	server.secretFile = c.SecretKeyFile
	server.settleSecrets()
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	schemes, err := p.schemes(cmd)
	if err != nil {
		return err
	}
	problems, err := doctor.Examine(ctx, doctor.Options{
		Config: c, ConfigFile: o.config, Away: far, Server: p.remote.server, Place: p.place(), Secrets: server.secrets, Backup: o.backup,
		Version: about().Version, Now: p.now, Roots: roots, Schemes: schemes, Token: p.remote.token,
		AskServer: func(_ context.Context, server string, do func(ctx context.Context, r *remote.Registry) error) error {
			p.remote.server = server
			return p.withServer(cmd, do)
		},
		Open: func(_ context.Context, do func(ctx context.Context, r *registry.Registry) error) error {
			return p.inRegistry(cmd, do)
		},
		Delegations: func() (*client.Delegations, error) { return client.NewDelegations(o.dns...) },
	}, p.printFinding)
	switch {
	case err != nil:
		return err
	case problems == 1:
		return refuse("doctor", stele.Invalid, "doctor.one-problem", "there is 1 problem; it is named above")
	case problems > 1:
		return refuse("doctor", stele.Invalid, "doctor.problems", "there are {count} problems; they are named above", problems)
	}
	return nil
}

// printFinding prints what an examination found.
func (p *program) printFinding(f doctor.Finding) error {
	if p.json {
		return p.printObject(f)
	}
	line := fmt.Sprintf("%-8s %s: %s", f.Grade, f.Check, f.What)
	if f.Do != "" {
		line += "; " + f.Do
	}
	return p.say("%s\n", printable(strings.ReplaceAll(line, "\n", " ")))
}
