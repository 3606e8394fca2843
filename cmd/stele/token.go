package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele/auth"
)

func (p *program) tokenCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:   "token",
		Short: "Tokens: how users prove who they are",
		Long: `A token is a secret text that stands for a user. Programs send it with each request,
as Authorization: Bearer TOKEN; this program takes it from STELE_TOKEN.

It is shown once, when it is made: the registry keeps a hash of it. Whoever has it is
the user, so give each program a token of its own, and revoke what is not needed.

A user may make, list and revoke their own tokens; an administrator, everybody's.`,
		Example: `  TOKEN=$(stele token create ann --label laptop)
  stele token ls ann
  stele token revoke 4k2m9x0q7rbc`,
	}, p.tokenCreateCommand(), p.tokenLsCommand(), p.tokenRevokeCommand())
}

func (p *program) tokenCreateCommand() *cobra.Command {
	var label, expires string
	cmd := &cobra.Command{
		Use:   "create USER",
		Short: "Make a token, and print it once",
		Long: `Create makes a token for a user and prints it alone on standard output; what else there
is to say goes to standard error. It can't be had again: who loses it makes another.

It lasts for a year, or for as long as --expires says: a number of hours, days, weeks
or years, such as 90d, or a date, up to the end of which it lasts. Only an
administrator makes tokens that last for more than a year, or for ever with
--expires never.`,
		Example: `  TOKEN=$(stele token create ann --label laptop)
  stele token create harvester --label 'nightly import' --expires 90d
  stele token create ann --expires 2027-06-30
  stele token create ann --json`,
		Args:              oneArgument("the user"),
		ValidArgsFunction: p.completeUsers,
		RunE: func(cmd *cobra.Command, args []string) error {
			until, err := parseExpiry(expires, p.now())
			if err != nil {
				return misuse(cmd, "--expires: %w", err)
			}
			return p.reading(cmd, func(ctx context.Context, l *ledger) error {
				credential, t, err := l.CreateToken(ctx, args[0], label, until)
				if err != nil {
					return err
				}
				return p.printCredential(credential, &t)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&label, "label", "", "what it is for, in a few `words`")
	flags.StringVar(&expires, "expires", "1y", "how long it lasts (90d, 2y), the last `day`, or never")
	_ = cmd.RegisterFlagCompletionFunc("expires", cobra.FixedCompletions([]string{"1d", "30d", "90d", "1y", "never"}, cobra.ShellCompDirectiveNoFileComp))
	return neverFiles(cmd)
}

// printCredential prints a new token: alone where scripts read it, and what to know
// about it where people do.
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
		lasts = "expires " + moment(t.Expires)
	}
	// Whoever reads the token has it, were this line lost.
	fmt.Fprintf(p.stderr, "token %s for %s, %s; it is not shown again, so keep it as a password\n", t.ID, printable(t.User), lasts)
	return nil
}

// parseExpiry reads until when a token lasts: the zero time for ever.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	if text == "never" {
		return time.Time{}, nil
	}
	if text != "" {
		units := map[byte]time.Duration{'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour, 'y': auth.TokenLife}
		unit, ok := units[text[len(text)-1]]
		if n, err := strconv.ParseUint(text[:len(text)-1], 10, 16); ok && err == nil && n > 0 {
			// Added one by one: thousands of years are more than a Duration holds.
			for range n {
				now = now.Add(unit)
			}
			return now.UTC(), nil
		}
	}
	if at, err := parseMoment(text); err == nil {
		return at.UTC(), nil
	}
	return time.Time{}, fmt.Errorf("%.60q is neither a duration such as 90d or 1y, nor a date such as 2027-06-30, nor never", text)
}

func (p *program) tokenLsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls [USER]",
		Short: "List tokens",
		Long: `Ls lists the tokens of a user, or of all users; who is no administrator sees their own.
Each line has the ID, the user, until when it lasts, when it was used last, and its
label. The secrets are kept nowhere, so they are not shown. The time of the last use
is written once a minute.`,
		Example:           "  stele token ls\n  stele token ls ann\n  stele token ls --json",
		Args:              atMostOne("the user"),
		ValidArgsFunction: p.completeUsers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.reading(cmd, func(ctx context.Context, l *ledger) error {
				user, err := l.tokenUser(ctx, args)
				if err != nil {
					return err
				}
				return p.listTokens(ctx, l, user)
			})
		},
	}
	return neverFiles(cmd)
}

// tokenUser returns whose tokens are listed: of all, for an administrator who names
// nobody.
func (l *ledger) tokenUser(ctx context.Context, args []string) (string, error) {
	if len(args) == 1 {
		_, err := l.User(ctx, args[0])
		return args[0], err
	}
	me, err := l.Me(ctx)
	if err != nil || me.Admin {
		return "", err
	}
	return me.Name, nil
}

// listTokens prints tokens, one a line.
func (p *program) listTokens(ctx context.Context, l *ledger, user string) error {
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
		words[3] = "used " + moment(t.LastUse)
	}
	if t.Label != "" {
		words = append(words, t.Label)
	}
	return p.say("%s\n", printable(strings.Join(words, "  ")))
}

// tokenState says how long a token lasts, or since when it is of no use.
func tokenState(t *auth.Token, now time.Time) string {
	switch {
	case !t.Revoked.IsZero():
		return "revoked " + moment(t.Revoked)
	case t.Expires.IsZero():
		return "never expires"
	case t.Ended(now):
		return "expired " + moment(t.Expires)
	}
	return "expires " + moment(t.Expires)
}

func (p *program) tokenRevokeCommand() *cobra.Command {
	return neverFiles(&cobra.Command{
		Use:   "revoke ID",
		Short: "Make a token useless",
		Long: `Revoke makes a token useless, at once and for ever, and prints its ID. ID is what
'stele token ls' shows: the 12 characters behind stele_. It exits with 3 if there is
no such token.`,
		Example: "  stele token revoke 4k2m9x0q7rbc",
		Args:    oneArgument("the ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := args[0]
			if c, err := auth.ParseCredential(id); err == nil { // the whole of it
				id = c.ID() // so that no secret is sent
			}
			return p.reading(cmd, func(ctx context.Context, l *ledger) error {
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
