package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/card"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/server"
)

// configVariable names the configuration file in the environment.
const configVariable = "STELE_CONFIG"

func (p *program) configCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "config",
		Short: "The server's configuration: what there is, what holds, what is wrong",
		Long: `The server is configured by flags, by the environment and by a file in TOML. Each
setting has one name: a key of the file, a flag of 'stele serve', and in capitals
behind STELE_ a variable. Flags win over the environment, that over the file, and the
file over the defaults.

The file is the one that --config or STELE_CONFIG names; there is no other.`,
		Example: `  stele config list
  stele config check stele.toml
  stele config show --config stele.toml`,
	}, p.configListCommand(), p.configCheckCommand(), p.configShowCommand())
}

func (p *program) configListCommand() *cobra.Command {
	markdown := false
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List all settings",
		Long:    "List prints all settings: what they are for, how they are written, and their defaults.",
		Example: "  stele config list\n  stele config list --markdown\n  stele config list --json",
		Args:    usage.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			switch {
			case p.json:
				return p.listJSON()
			case markdown:
				return p.say("%s", config.Markdown())
			}
			return listSettings(p.stdout)
		},
	}
	cmd.Flags().BoolVar(&markdown, "markdown", false, "print the table of docs/configuration.md")
	return usage.NeverFiles(cmd)
}

// listSettings prints the settings for a person.
func listSettings(w io.Writer) error {
	var b strings.Builder
	for i, s := range config.All() {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s\n", s.Name)
		card.Row(&b, "what", s.What)
		card.Row(&b, "is", s.Values())
		if s.Usual != "" {
			card.Row(&b, "default", s.Usual)
		}
		card.Row(&b, "file", s.InFile(s.Example))
		card.Row(&b, "flag", "--"+s.Name+flagValue(&s))
		card.Row(&b, "environment", s.Variable())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// flagValue returns what follows the flag in an example.
func flagValue(s *config.Setting) string {
	if s.IsBool() {
		return ""
	}
	return " '" + s.Example + "'"
}

func (p *program) listJSON() error {
	for _, s := range config.All() {
		err := p.printObject(struct {
			Name        string   `json:"name"`
			Kind        string   `json:"kind"`
			Default     string   `json:"default"`
			What        string   `json:"what"`
			Example     string   `json:"example"`
			Choices     []string `json:"choices,omitempty"`
			Flag        string   `json:"flag"`
			Environment string   `json:"environment"`
		}{s.Name, s.Word(), s.Usual, s.What, s.Example, s.Choices, "--" + s.Name, s.Variable()})
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *program) configCheckCommand() *cobra.Command {
	try := false
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Tell what is wrong in a configuration",
		Long: `Check reads a configuration file (or the one that STELE_CONFIG names) and the
environment as 'stele serve' would, and prints all that is wrong, with the line. It
opens no registry and no socket.

With --try it also tries what the server will need, as the user who runs it: keys and
certificates are read, folders are written to, the sockets are opened and closed again,
and the database is asked. Run it as the user of the server, before the server starts.

It exits with 1 if something is wrong.`,
		Example: "  stele config check stele.toml\n  sudo -u stele stele config check --try /etc/stele/stele.toml\n  STELE_HTTP=:80 stele config check",
		Args:    usage.AtMostOne("the file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := os.Getenv(configVariable)
			if len(args) == 1 {
				file = args[0]
			}
			c := config.Load(file, os.Environ(), nil)
			if try && len(c.Problems) == 0 {
				server.Try(cmd.Context(), c, p.now, p.logger())
			}
			return p.checkConfig(c, file)
		},
	}
	cmd.Flags().BoolVar(&try, "try", false, "try what the server will need: keys, folders, sockets, the database")
	return cmd
}

// checkConfig prints what is wrong in a configuration.
func (p *program) checkConfig(c *config.Config, file string) error {
	for _, list := range [][]config.Problem{c.Problems, c.Warnings} {
		for _, q := range list {
			if p.json {
				if err := p.printObject(q); err != nil {
					return err
				}
				continue
			}
			fmt.Fprintln(p.stdout, q)
		}
	}
	if err := configError(c); err != nil {
		return err
	}
	if p.json || len(c.Warnings) > 0 {
		return nil
	}
	if file == "" {
		file = "the environment"
	}
	return p.say("nothing is wrong in %s\n", printable(file))
}

// configError is the error of a configuration whose problems were printed.
func configError(c *config.Config) error {
	switch n := len(c.Problems); n {
	case 0:
		return nil
	case 1:
		return refuse("config", stele.Invalid, "config-check.one-problem", "there is 1 problem in the configuration; it is named above")
	default:
		return refuse("config", stele.Invalid, "config-check.problems", "there are {count} problems in the configuration; they are named above", n)
	}
}

func (p *program) configShowCommand() *cobra.Command {
	file := ""
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show what holds, and where it comes from",
		Long: `Show prints what file and environment come to, as a configuration file, and behind
each line where its value comes from.`,
		Example: "  stele config show\n  stele config show --config stele.toml",
		Args:    usage.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			c := config.Load(file, os.Environ(), nil)
			for _, q := range c.Problems {
				fmt.Fprintln(p.stderr, q)
			}
			if err := configError(c); err != nil {
				return err
			}
			if p.json {
				return p.printObject(c.Object())
			}
			return p.say("%s", c.Text())
		},
	}
	cmd.Flags().StringVar(&file, "config", os.Getenv(configVariable), "configuration `file` (environment: STELE_CONFIG)")
	return cmd
}
