package main

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/internal/edit"
	"github.com/stele-id/stele/internal/terminal"
)

func (p *program) registerCommand() *cobra.Command {
	var f recordFlags
	reserve, like := false, ""
	cmd := &cobra.Command{
		Use:   "register ID --to URL",
		Short: "Register an identifier and what it stands for",
		Long: `Register makes a record: an identifier, its targets, metadata, and a persistence
statement. The identifier may be in any spelling. Register stores it in canonical form,
which it prints, and stores your spelling beside it.

A name is registered once and permanently. You can change a record (update) and withdraw
it with a reason (withdraw), but not delete it. Its identifier and its aliases are never
given to another record.

With --reserve the name is taken, and the public does not see the record until you
activate it: 'stele update ID --activate'.

With --like the new record begins as a copy of another one, without its names, state and
history; the other flags change it. (Users of PURLs call this a clone.)`,
		Example: `  stele register ark:12345/x54xz321 --to https://example.org/report.pdf --type application/pdf
  stele register 10.5072/rivers --to https://example.org/rivers --title 'Rivers of Pará' --who 'Lima, A.' \
      --alias ark:12345/x5rivers --level stable --until 2040-01-01
  stele register https://purl.org/example/terms --to https://example.org/terms/ --partial
  stele register https://purl.org/example/terms2 --like https://purl.org/example/terms
  stele register urn:x1:draft --reserve --reader user:ana`,
		Args: usage.OneArgument("the identifier"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if !reserve && like == "" && !f.describes() {
				return usage.Errorf(cmd, "flag.register-record-empty", "there is nothing to register; say where it is with --to URL, what it is with --title, or take the name only with --reserve")
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
	cmd.Flags().StringVar(&like, "like", "", "copy the record with this `name` first")
	cmd.Flags().BoolVar(&reserve, "reserve", false, "take the name, and hide the record from the public")
	return usage.NeverFiles(cmd)
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

// recordFlags are the flags of register, update and mint that describe a record. Only flags
// that were given count, so that an update leaves the rest as it is.
type recordFlags struct {
	cmd     *cobra.Command
	to      []string
	target  stele.Target
	fields  map[string]*string // by flag; see fieldFlags
	meta    []string
	aliases []string
	persistenceFlags
	readers []string
}

// targetFlags are the flags that say something of the target that --to gives.
var targetFlags = []string{"type", "service", "language", "order", "preference", "ttl", "status", "partial"}

// fieldFlags are the flags of the four fields that every description should have.
var fieldFlags = map[string]string{"title": stele.What, "who": stele.Who, "when": stele.When, "where": stele.Where}

// add gives the flags to a command.
func (f *recordFlags) add(cmd *cobra.Command) {
	f.cmd = cmd
	flags := cmd.Flags()
	flags.StringArrayVar(&f.to, "to", nil, "`URL` of the resource, or of what --service names")
	flags.StringVar(&f.target.Type, "type", "", "media type of the URL, such as text/html")
	flags.StringVar((*string)(&f.target.Service), "service", string(stele.N2L), "what the URL has: N2L the resource, N2C its metadata, N2S its signature, N2P its persistence statement")
	flags.StringVar(&f.target.Language, "language", "", "language of the URL, such as pt-BR")
	flags.Uint16Var(&f.target.Order, "order", stele.DefaultOrder, "order: resolvers use the targets with the lowest order, the others are spares")
	flags.Uint16Var(&f.target.Preference, "preference", stele.DefaultPreference, "preference among targets of the same order, the lowest first")
	flags.Uint32Var(&f.target.TTL, "ttl", 0, "`seconds` for which clients may cache the answer (0: as the namespace says)")
	flags.IntVar(&f.target.Status, "status", 0, "HTTP status of the redirect (0: as the namespace says)")
	flags.BoolVar(&f.target.Partial, "partial", false, "append what follows the name to the URL, so that one record serves all names below it")
	f.fields = make(map[string]*string)
	for flag, usage := range map[string]string{
		"title": "title (metadata: what)",
		"who":   "creator (metadata: who)",
		"when":  "date of creation (metadata: when)",
		"where": "place of creation or of storage (metadata: where)",
	} {
		f.fields[flag] = flags.String(flag, "", usage)
	}
	flags.StringArrayVar(&f.meta, "meta", nil, "other metadata field, `key=value`; may be repeated")
	flags.StringArrayVar(&f.aliases, "alias", nil, "other `ID` of the same resource, in any scheme, permanently; may be repeated")
	f.persistenceFlags.add(cmd)
	flags.StringArrayVar(&f.readers, "reader", nil, "only this reader may see the record, `user:NAME` or group:NAME; may be repeated")
	usage.Choices(cmd, "service", stele.N2L, stele.N2C, stele.N2S, stele.N2P)
	usage.Choices(cmd, "status", "301", "302", "303", "307", "308", "404", "410")
}

// given reports whether one of the flags was given.
func (f *recordFlags) given(flags ...string) bool {
	return slices.ContainsFunc(flags, f.cmd.Flags().Changed)
}

// describes reports whether the flags describe the thing.
func (f *recordFlags) describes() bool {
	return f.given("to", "meta") || f.given(slices.Collect(maps.Keys(fieldFlags))...)
}

// check finds what is wrong with the flags themselves.
func (f *recordFlags) check() error {
	if len(f.to) > 1 {
		return usage.Errorf(f.cmd, "flag.to-repeated", "--to is given {count} times; give one URL, and add the others by 'stele update ID --to URL', each with its own type, language or service", len(f.to))
	}
	for _, flag := range targetFlags {
		if f.given(flag) && len(f.to) == 0 {
			return usage.Errorf(f.cmd, "flag.target-url-missing", "--{flag} says something of a target; give its URL with --to", flag)
		}
	}
	seen := make(map[string]string)
	for flag, key := range fieldFlags {
		if f.given(flag) {
			seen[key] = "--" + flag
		}
	}
	for _, text := range f.meta {
		key, _, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return usage.Errorf(f.cmd, "flag.meta-malformed", `--meta "{text}" has no key and value; write --meta key=value`, text)
		}
		if by := seen[key]; by != "" {
			return usage.Errorf(f.cmd, "flag.meta-field-twice", `the field "{field}" is given twice, by {flag} and by --meta; keep one`, key, by)
		}
		seen[key] = "--meta"
	}
	return nil
}

// edit returns what the flags change in a record.
func (f *recordFlags) edit() *edit.Record {
	e := &edit.Record{Metadata: make(map[string]string), Persistence: f.persistenceFlags.apply}
	if len(f.to) > 0 {
		e.Target = &edit.Target{Target: f.target, Given: f.cmd.Flags().Changed}
		e.Target.URL = f.to[0]
	}
	for flag, key := range fieldFlags {
		if f.given(flag) {
			e.Metadata[key] = *f.fields[flag]
		}
	}
	for _, text := range f.meta {
		key, value, _ := strings.Cut(text, "=")
		e.Metadata[key] = value
	}
	if f.given("reader") {
		e.Readers = f.readers
	}
	return e
}

// persistenceFlags are the persistence statement of a record, or of a namespace.
type persistenceFlags struct {
	promise stele.Persistence
	owner   *cobra.Command
}

func (f *persistenceFlags) add(cmd *cobra.Command) {
	f.owner = cmd
	flags := cmd.Flags()
	flags.StringVar((*string)(&f.promise.Level), "level", "", "persistence level: permanent, unchanging, stable, dynamic or not-guaranteed")
	flags.StringVar(&f.promise.Until, "until", "", "`date` until which the persistence level holds, such as 2040-01-01")
	flags.StringVar(&f.promise.Statement, "statement", "", "persistence statement, in words")
	usage.Choices(cmd, "level", stele.Permanent, stele.Unchanging, stele.Stable, stele.Dynamic, stele.NotGuaranteed)
}

func (f *persistenceFlags) apply(p *stele.Persistence) {
	changed := f.owner.Flags().Changed
	if changed("level") {
		p.Level = f.promise.Level
	}
	if changed("until") {
		p.Until = f.promise.Until
	}
	if changed("statement") {
		p.Statement = f.promise.Statement
	}
}
