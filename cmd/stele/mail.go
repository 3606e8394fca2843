package main

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk/job"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/links/check"
	"github.com/stele-id/stele/mail"
	"github.com/stele-id/stele/mail/digest"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/server"
	"github.com/stele-id/stele/web/language"
)

func (p *program) mailCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "mail",
		Short: "Try the settings of mail, and look at digests",
		Long: `A server sends invitations and one-time links by mail if the setting mail-server names a
mail server. 'stele doctor' checks the settings without sending a mail.`,
		Example: "  stele mail test ann@example.org --config /etc/stele/stele.toml\n  stele mail digest --dry-run",
	}, p.mailTestCommand(), p.mailDigestCommand())
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

// postman is what sends mail by the settings of a server.
type postman struct {
	settings  mail.Settings
	transport *mail.Transport
	writer    *mail.Writer
	languages *language.Catalog
	base      string
	rules     string // file with the rules of links; "": those of the program
}

// postman reads the settings of mail. They need not be those of a server that runs.
func (p *program) postman(op, file string) (*postman, error) {
	c := config.Load(file, os.Environ(), nil)
	if len(c.Problems) > 0 {
		return nil, refuse(op, stele.Invalid, "", "{cause}", c.Problems[0].Err())
	}
	if c.MailServer == "" {
		return nil, refuse(op, stele.Invalid, "mail.off", "the settings name no mail server; set mail-server, or name the file of the settings with --config")
	}
	m := &postman{base: c.Base, rules: c.LinkRules}
	var err error
	if m.settings, err = c.Mail(); err != nil {
		return nil, refuse(op, stele.Invalid, "", "{cause}", err)
	}
	if m.transport, err = mail.NewTransport(m.settings); err != nil {
		return nil, refuse(op, stele.Invalid, "", "{cause}", err)
	}
	if m.languages, err = language.New(); err != nil {
		return nil, err
	}
	if m.languages, err = m.languages.Only(c.Languages); err != nil {
		return nil, refuse(op, stele.Invalid, "", "{cause}", err)
	}
	m.writer, err = mail.NewWriter(c.SiteName, c.Base)
	return m, err
}

// send sends a letter now.
func (m *postman) send(ctx context.Context, l *mail.Letter, now time.Time) error {
	l.Date, l.ID = now, messageID(l.To)
	return m.transport.Send(ctx, l)
}

func messageID(to string) string {
	return strings.ToLower(rand.Text()) + "@" + to[strings.LastIndex(to, "@")+1:]
}

// mailTest is the verb.
func (p *program) mailTest(cmd *cobra.Command, file, address string) error {
	const op = "send mail"
	to, err := auth.ParseAddress(address)
	if err != nil {
		return refuse(op, stele.Invalid, "", "{cause}", err)
	}
	m, err := p.postman(op, file)
	if err != nil {
		return err
	}
	letter, err := m.writer.Test(m.languages.Languages()[0], to, p.now(), messageID(to))
	if err != nil {
		return err
	}
	if err := m.transport.Send(cmd.Context(), letter); err != nil {
		return err
	}
	if p.json {
		return p.printObject(map[string]string{"server": m.settings.Server, "to": to, "message": letter.ID})
	}
	return p.say("%s has accepted the mail to %s\n", printable(m.settings.Server), printable(to))
}

func (p *program) mailDigestCommand() *cobra.Command {
	var file string
	var dry bool
	cmd := &cobra.Command{
		Use:   "digest [USER] --dry-run",
		Short: "Print the digests that users would get now",
		Long: `Digest prints the digest of a user, or of all users who get one, as a server would send it if
it were due now: what needs the user, and what happened since the last one. It prints nothing
for a user who has nothing new. Nothing is sent and nothing changes: servers send digests,
at the time of the setting mail-digest. The link that ends digests does not work in what is
printed.`,
		Example:           "  stele mail digest --dry-run\n  stele mail digest ann --dry-run --config /etc/stele/stele.toml",
		Args:              usage.AtMostOne("the user"),
		ValidArgsFunction: p.completeUsers,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !dry {
				return usage.Errorf(cmd, "flag.digest-dry-run", "servers send digests when they are due; add --dry-run to print what they would send now")
			}
			return p.mailDigest(cmd, file, strings.Join(args, ""))
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print the digests, and send nothing")
	cmd.Flags().StringVar(&file, "config", os.Getenv(configVariable), "configuration `file` of the server (environment: STELE_CONFIG)")
	_ = cmd.RegisterFlagCompletionFunc("config", cobra.FixedCompletions([]string{"toml"}, cobra.ShellCompDirectiveFilterFileExt))
	return onFolder(cmd)
}

// mailDigest is the verb.
func (p *program) mailDigest(cmd *cobra.Command, file, user string) error {
	m, err := p.postman("preview digest", file)
	if err != nil {
		return err
	}
	rules, err := server.OpenLinkRules(m.rules)
	if err != nil {
		return refuse("preview digest", stele.Invalid, "", "{cause}", err)
	}
	return p.inRegistry(cmd, func(ctx context.Context, r *registry.Registry) error {
		if user != "" {
			if _, err := r.Registrar.User(ctx, user); err != nil {
				return err
			}
		}
		schemes, err := p.schemes(cmd)
		if err != nil {
			return err
		}
		asks := server.LinkOptions(rules, outbound.Rule{}, "", "", "Stele/"+about().Version, nil, p.now)
		asks.Registrar, asks.Store, asks.Log = r.Registrar, r.Store, p.logger()
		sender := server.DigestSender(r, schemes, job.NewBoard(job.Options{Registrar: r.Registrar, Schemes: schemes, Now: p.now}), check.New(asks),
			digest.Options{Writer: m.writer, Languages: m.languages, Base: m.base, Now: p.now, Log: p.logger()})
		letters, err := sender.Preview(ctx, user)
		if err != nil {
			return err
		}
		for _, l := range letters {
			if p.json {
				err = p.printObject(map[string]string{"to": l.To, "subject": l.Subject, "text": l.Text, "html": l.HTML})
			} else {
				err = p.say("To: %s\nSubject: %s\n\n%s\n", printable(l.To), printable(l.Subject), l.Text)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
