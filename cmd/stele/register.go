package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/internal/terminal"
)

func (p *program) registerCommand() *cobra.Command {
	var f recordFlags
	reserve, like := false, ""
	cmd := &cobra.Command{
		Use:   "register ID --to URL",
		Short: "Register an identifier and what it stands for",
		Long: `Register makes a record: an identifier, where the thing is, what is known of it
and what is promised. The identifier may be in any spelling; it is kept in
canonical form, which is printed, and yours beside it.

A name is registered once and for ever. A record can be changed (update), and
withdrawn with a reason (withdraw), but never deleted, and neither its identifier
nor an alias is ever given to another one.

With --reserve the name is taken, and the public sees nothing until you say
'stele update ID --activate'.

With --like the new record begins as a copy of another one, its names, state and
history aside; the other flags change it. (PURL's users call it a clone.)`,
		Example: `  stele register ark:12345/x54xz321 --to https://example.org/report.pdf --type application/pdf
  stele register 10.5072/rivers --to https://example.org/rivers --title 'Rivers of Pará' --who 'Lima, A.' \
      --alias ark:12345/x5rivers --level stable --until 2040-01-01
  stele register https://purl.org/example/terms --to https://example.org/terms/ --partial
  stele register https://purl.org/example/terms2 --like https://purl.org/example/terms
  stele register urn:x1:draft --reserve --reader user:ana`,
		Args: oneArgument("the identifier"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if !reserve && like == "" && !f.describes() {
				return misuse(cmd, "flag.register-record-empty", "there is nothing to register; say where it is with --to URL, what it is with --title, or take the name only with --reserve")
			}
			return p.creating(cmd, func(ctx context.Context, l *Registry) error {
				model := &stele.Record{}
				if like != "" {
					id, err := l.Parse(like)
					if err != nil {
						return err
					}
					if model, err = l.Get(ctx, id); err != nil {
						return err
					}
				}
				rec, err := f.edit().New(l.Schemes, args[0], f.aliases, model)
				if err != nil {
					return err
				}
				if reserve {
					rec.State = stele.Reserved
				}
				done, err := l.Register(ctx, rec)
				if err != nil {
					return l.Taken(ctx, rec, err)
				}
				return p.printName(p.stdout, done)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&like, "like", "", "begin with a copy of the record that has this `name`")
	cmd.Flags().BoolVar(&reserve, "reserve", false, "take the name, and show nothing to the public yet")
	return neverFiles(cmd)
}

// printName prints a record that was written: for a person its identifier, in its owner's
// letters where case does not count, for a program all of it.
func (p *program) printName(w io.Writer, rec *stele.Record) error {
	text := []byte(destination.Shown(rec))
	if p.json {
		text = document.AppendRecord(nil, rec)
	}
	_, err := w.Write(terminal.EscapeUnseen(append(text, '\n')))
	return err
}
