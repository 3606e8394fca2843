package main

import (
	"crypto/rand"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/mail"
	"github.com/stele-id/stele/web/language"
)

func (p *program) mailCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "mail",
		Short: "Try the settings of mail",
		Long: `A server sends invitations and one-time links by mail if the setting mail-server names a
mail server. 'stele doctor' checks the settings without sending a mail.`,
		Example: "  stele mail test ann@example.org --config /etc/stele/stele.toml",
	}, p.mailTestCommand())
}

func (p *program) mailTestCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "test ADDRESS",
		Short: "Send a test mail",
		Long: `Test sends a mail to an address, with the settings of the server, and returns when the
mail server has accepted it. It does not need the registry. If the mail server does not
accept the mail, the error says why, and nothing is tried again.`,
		Example: "  stele mail test ann@example.org\n  sudo -u stele stele mail test ann@example.org --config /etc/stele/stele.toml",
		Args: func(cmd *cobra.Command, args []string) error {
			switch len(args) {
			case 1:
				return nil
			case 0:
				return usage.Errorf(cmd, "argument.address-missing", "the address is missing")
			}
			return usage.Errorf(cmd, "argument.one-address", "give one address")
		},
		RunE: func(cmd *cobra.Command, args []string) error { return p.mailTest(cmd, file, args[0]) },
	}
	cmd.Flags().StringVar(&file, "config", os.Getenv(configVariable), "configuration `file` of the server (environment: STELE_CONFIG)")
	_ = cmd.RegisterFlagCompletionFunc("config", cobra.FixedCompletions([]string{"toml"}, cobra.ShellCompDirectiveFilterFileExt))
	return usage.NeverFiles(onFolder(cmd))
}

// mailTest is the verb.
func (p *program) mailTest(cmd *cobra.Command, file, address string) error {
	const op = "send mail"
	to, err := auth.ParseAddress(address)
	if err != nil {
		return refuse(op, stele.Invalid, "", "{cause}", err)
	}
	c := config.Load(file, os.Environ(), nil)
	if len(c.Problems) > 0 {
		return refuse(op, stele.Invalid, "", "{cause}", c.Problems[0].Err())
	}
	if c.MailServer == "" {
		return refuse(op, stele.Invalid, "mail.off", "the settings name no mail server; set mail-server, or name the file of the settings with --config")
	}
	settings, err := c.Mail()
	if err != nil {
		return refuse(op, stele.Invalid, "", "{cause}", err)
	}
	transport, err := mail.NewTransport(settings)
	if err != nil {
		return refuse(op, stele.Invalid, "", "{cause}", err)
	}
	languages, err := language.New()
	if err != nil {
		return err
	}
	if languages, err = languages.Only(c.Languages); err != nil {
		return refuse(op, stele.Invalid, "", "{cause}", err)
	}
	writer, err := mail.NewWriter(c.SiteName, c.Base)
	if err != nil {
		return err
	}
	letter, err := writer.Test(languages.Languages()[0], to, p.now(), strings.ToLower(rand.Text())+"@"+to[strings.LastIndex(to, "@")+1:])
	if err != nil {
		return err
	}
	if err := transport.Send(cmd.Context(), letter); err != nil {
		return err
	}
	if p.json {
		return p.printObject(map[string]string{"server": settings.Server, "to": to, "message": letter.ID})
	}
	return p.say("%s has accepted the mail to %s\n", printable(settings.Server), printable(to))
}
