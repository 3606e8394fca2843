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
		Short: "Show and check the server's configuration",
		Long: `The server takes its settings from flags, environment variables and a TOML file. Each
setting has one name: log-level in the file is the flag --log-level of 'stele serve',
and the variable STELE_LOG_LEVEL. A flag overrides the environment, the environment
overrides the file, and the file overrides the default.

--config or STELE_CONFIG names the file. The server does not look for any other file.`,
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
		Long:    "List prints all settings, with their purpose, their syntax and their defaults.",
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
	cmd.Flags().BoolVar(&markdown, "markdown", false, "print the table in docs/configuration.md")
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
		Short: "Check a configuration",
		Long: `Check reads a configuration file (by default the one that STELE_CONFIG names) and the
environment as 'stele serve' does, and prints every problem with its line. It opens
neither the registry nor a socket.

With --try it also tests what the server needs, as the user who runs the command: it
reads keys and certificates, writes to folders, opens and closes the sockets, and
connects to the database. Run it as the user of the server, before the server starts.

It exits with 1 if it finds a problem.`,
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
	cmd.Flags().BoolVar(&try, "try", false, "also test the keys, folders, sockets and database that the server needs")
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
		Short: "Show the settings in effect, and the source of each",
		Long: `Show prints the settings that the file and the environment give, as a configuration
file. A comment on each line names the source of the value.`,
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
