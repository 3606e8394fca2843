package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/wording"
)

func (p *program) tokenCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "token",
		Short: "Manage tokens, with which users authenticate",
		Long: `A token is a secret text that authenticates a user. Programs send it with each request,
as Authorization: Bearer TOKEN; this program reads it from STELE_TOKEN.

A token is shown once, when it is made: the registry stores a hash of it. A program that
has the token acts as the user, so give each program its own token, and revoke tokens
that are not needed.

Users make, list and revoke their own tokens; administrators those of all users.

Tokens form a tree. A token that is made with another token, through --server, is its
child: it expires with its parent at the latest, has no permissions that its parent
lacks, and is revoked with it. A token that is made on the registry itself is a child of
its user.`,
		Example: `  TOKEN=$(stele token create ann --label laptop)
  stele token create root --label 'daily backup' --scope backup
  stele token ls ann
  stele token revoke 4k2m9x0q7rbc
  stele token open --all`,
	}, p.tokenCreateCommand(), p.tokenLsCommand(), p.tokenRevokeCommand(), p.tokenOpenCommand())
}

func (p *program) tokenCreateCommand() *cobra.Command {
	var f tokenFlags
	cmd := &cobra.Command{
		Use:     "create USER",
		Aliases: []string{"new"},
		Short:   "Make a token, and print it once",
		Long: `Create makes a token for a user and prints it alone on standard output. Other messages
go to standard error. The token can't be shown again: if it is lost, make another.

The token is valid for a year, or for the time of --expires: a number of hours, days,
weeks or years, such as 90d, or a date, at the end of which it expires. Only an
administrator can make tokens that are valid for more than a year, or permanently with
--expires never. Through --server the token expires with the token that makes it at the
latest: this is the default without --expires, and the server refuses a later time.

With --scope the token is limited to some operations, and never allows more than the
user may do:

  read     list and search, see reserved and restricted records
  mint     make new names, and register records under them
  write    read, mint, and register and change records
  admin    everything that the user may do
  backup   read, back up and verify the whole registry, and 'stele doctor'
  metrics  read /metrics, if the server requires a token

With --namespace the token is limited to these namespaces, which must exist, and to all
below them. It then does not allow backups, users, or any other operation on the whole
registry. Without these flags the token allows all that the user may do, or all that the
token allows with which it is made.`,
		Example: `  TOKEN=$(stele token create ann --label laptop)
  stele token create harvester --label 'nightly import' --expires 90d
  stele token create harvester --scope mint,read --namespace ark:12345/x5
  stele token create root --label 'daily backup' --scope backup --expires 90d
  stele token create ann --expires 2027-06-30
  stele token create ann --json`,
		Args:              usage.OneArgument("the user"),
		ValidArgsFunction: p.completeUsers,
		RunE: func(cmd *cobra.Command, args []string) error {
			want, err := f.request(cmd, args[0], p.now())
			if err != nil {
				return err
			}
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				credential, t, err := l.CreateToken(ctx, want)
				if err != nil {
					return err
				}
				return p.printCredential(credential, &t)
			})
		},
	}
	f.add(cmd)
	_ = cmd.RegisterFlagCompletionFunc("namespace", p.completeNamespaces)
	return usage.NeverFiles(cmd)
}

// tokenFlags describe a new token.
type tokenFlags struct {
	label, expires     string
	scopes, namespaces []string
}

func (f *tokenFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.label, "label", "", "purpose of the token, in a few `words`")
	flags.StringVar(&f.expires, "expires", "1y", "validity (90d, 2y), the last `day`, or never")
	flags.StringSliceVar(&f.scopes, "scope", nil, "allowed `operations`: read, mint, write, admin, backup, metrics")
	flags.StringSliceVar(&f.namespaces, "namespace", nil, "`prefixes` of the allowed namespaces, including all below them")
	_ = cmd.RegisterFlagCompletionFunc("expires", cobra.FixedCompletions([]string{"1d", "30d", "90d", "1y", "never"}, cobra.ShellCompDirectiveNoFileComp))
	var scopes []string
	for _, s := range auth.Scopes() {
		scopes = append(scopes, string(s))
	}
	_ = cmd.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions(scopes, cobra.ShellCompDirectiveNoFileComp))
}

// request returns the token that the flags ask for.
func (f *tokenFlags) request(cmd *cobra.Command, user string, now time.Time) (auth.TokenRequest, error) {
	want := auth.TokenRequest{User: user, Label: f.label, Namespaces: f.namespaces}
	if cmd.Flags().Changed("expires") {
		until, err := usage.ParseExpiry(f.expires, now)
		if err != nil {
			return want, usage.Errorf(cmd, "", "--expires: {cause}", err)
		}
		want.Expires, want.Never = until, until.IsZero()
	}
	for _, text := range f.scopes {
		s := auth.Scope(text)
		if !s.IsValid() {
			return want, usage.Errorf(cmd, "flag.scope-unknown", `--scope: "{scope}" is not a scope; choose from read, mint, write, admin, backup and metrics`, text)
		}
		want.Scopes = append(want.Scopes, s)
	}
	return want, nil
}

// completeNamespaces lets shells complete the prefix of a namespace.
func (p *program) completeNamespaces(cmd *cobra.Command, _ []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	// A shell can't show an error.
	_ = p.reading(cmd, func(ctx context.Context, l *Registry) error {
		for ns, err := range l.Namespaces(ctx) {
			if err != nil {
				return err
			}
			if ns.Prefix != "" {
				names = append(names, ns.Key().String())
			}
		}
		return nil
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}

// printCredential prints a new token: alone on standard output for scripts, and notes about
// it on standard error for people.
func (p *program) printCredential(credential string, t *auth.Token) error {
	if p.json {
		return p.printObject(struct {
			Credential string      `json:"credential"`
			Token      *auth.Token `json:"token"`
		}{credential, t})
	}
	if _, err := fmt.Fprintln(p.stdout, credential); err != nil {
		return err
	}
	lasts := "never expires"
	if !t.Expires.IsZero() {
		lasts = "expires " + wording.Moment(t.Expires)
	}
	// The token is printed already, so an error of this line does not matter.
	fmt.Fprintf(p.stderr, "token %s for %s, %s; it is not shown again, so keep it as a password\n", t.ID, printable(t.User), lasts)
	return nil
}

func (p *program) tokenLsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls [USER]",
		Short: "List tokens",
		Long: `Ls lists the tokens of a user, or of all users. Users who are not administrators see
their own tokens. Each line has the ID, the user, the expiry, the time of the last use,
the token that made it, its limits, and its label. If a token was ended together with
one above it, the line names that one. The registry does not store the secrets, so ls
can't show them. The registry updates the time of the last use once a minute.`,
		Example:           "  stele token ls\n  stele token ls ann\n  stele token ls --json",
		Args:              usage.AtMostOne("the user"),
		ValidArgsFunction: p.completeUsers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				user, err := l.TokenUser(ctx, args...)
				if err != nil {
					return err
				}
				return p.listTokens(ctx, l, user)
			})
		},
	}
	return usage.NeverFiles(cmd)
}

// listTokens prints tokens, one a line.
func (p *program) listTokens(ctx context.Context, l *Registry, user string) error {
	for t, err := range l.Tokens(ctx, user) {
		if err != nil {
			return err
		}
		if err := p.printToken(&t); err != nil {
			return err
		}
	}
	return nil
}

// printToken prints what is known of a token.
func (p *program) printToken(t *auth.Token) error {
	if p.json {
		return p.printObject(t)
	}
	words := []string{t.ID, t.User, tokenState(t, p.now()), "never used"}
	if !t.LastUse.IsZero() {
		words[3] = "used " + wording.Moment(t.LastUse)
	}
	if t.Parent != "" {
		words = append(words, "made by "+t.Parent)
	}
	if len(t.Scopes) > 0 {
		var scopes []string
		for _, s := range t.Scopes {
			scopes = append(scopes, string(s))
		}
		words = append(words, "for "+strings.Join(scopes, ","))
	}
	if len(t.Namespaces) > 0 {
		words = append(words, "in "+strings.Join(t.Namespaces, ","))
	}
	if t.Label != "" {
		words = append(words, t.Label)
	}
	return p.say("%s\n", printable(strings.Join(words, "  ")))
}

// tokenState says when a token expires, or since when it is not valid.
func tokenState(t *auth.Token, now time.Time) string {
	switch {
	case !t.Revoked.IsZero():
		return "revoked " + wording.Moment(t.Revoked)
	case t.EndedWith != "":
		return "ended with " + t.EndedWith
	case t.Shut:
		return "shut by a restore"
	case t.Expires.IsZero():
		return "never expires"
	case t.Ended(now):
		return "expired " + wording.Moment(t.Expires)
	}
	return "expires " + wording.Moment(t.Expires)
}

func (p *program) tokenRevokeCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a token",
		Long: `Revoke makes a token invalid, immediately and permanently, together with all tokens that
it made and all below those, and prints its ID. 'stele token ls' shows the ID: the 12
characters after stele_. It exits with 3 if the token does not exist.`,
		Example: "  stele token revoke 4k2m9x0q7rbc",
		Args:    usage.OneArgument("the ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := args[0]
			if c, err := auth.ParseCredential(id); err == nil { // the whole of it
				id = c.ID() // so that no secret is sent
			}
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				t, err := l.RevokeToken(ctx, id)
				if err != nil {
					return err
				}
				if p.json {
					return p.printObject(&t)
				}
				return p.say("%s\n", t.ID)
			})
		},
	})
}

func (p *program) tokenOpenCommand() *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use:   "open ID...",
		Short: "Open tokens that a restore shut",
		Long: `Open makes tokens valid again that a restore shut, and prints their IDs. A restore shuts
all tokens if no registry is there that knows which were revoked since the backup. List
the tokens with 'stele token ls', revoke those that must not be used any more, and open
the others, one by one or with --all. Open does not change a token that is not shut.
Only administrators may open tokens.`,
		Example: "  stele token open 4k2m9x0q7rbc\n  stele token open --all",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return usage.Errorf(cmd, "argument.tokens-missing", "name the tokens to open, or give --all")
			}
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				ids := args
				if all {
					var err error
					if ids, err = l.ShutTokens(ctx); err != nil {
						return err
					}
				}
				for _, id := range ids {
					if err := p.openToken(ctx, l, id); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "open all tokens that are shut")
	return usage.NeverFiles(cmd)
}

// openToken opens a token and prints it.
func (p *program) openToken(ctx context.Context, l *Registry, id string) error {
	if c, err := auth.ParseCredential(id); err == nil { // the whole of it
		id = c.ID() // so that no secret is sent
	}
	t, err := l.OpenToken(ctx, id)
	if err != nil {
		return err
	}
	if p.json {
		return p.printObject(&t)
	}
	return p.say("%s\n", t.ID)
}
