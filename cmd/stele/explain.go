package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/cmd/stele/card"
	"github.com/stele-id/stele/internal/terminal"
	"github.com/stele-id/stele/namespaces"
)

func (p *program) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain [ID...]",
		Short: "Show what an identifier is and what it encodes",
		Long: `Explain parses identifiers in any spelling. For each it prints the scheme, the canonical
form, everything that is encoded in it (host, IP address, port, date, check character,
...), other spellings of the same name, and warnings for its owner or its readers. For a
text that is not an identifier it prints what is wrong and where. If a check digit shows
a typing error, it also prints which identifiers may be meant.

Without arguments explain reads identifiers from standard input, one per line. It skips
empty lines and lines that begin with #.

Explain looks at the text only, with two exceptions. For these it asks the registry of
--data or --store, or the server of --server, if that is available:

  - Whether a URL is a PURL depends on its host. For a URL that is not an identifier
    otherwise, explain asks for the PURL hosts ('stele purl-host').
  - The shoulder of an ARK is the namespace that is registered ('stele ns'). If there is
    none, explain finds the shoulder by the first-digit convention.

It exits with 1 if a text is not an identifier.`,
		Example: `  stele explain 8JMKD3MGP8W/34PGRBS
  stele explain https://doi.org/10.1000/182 ark:/12148/cb11928669t
  stele explain --json urn:isbn:0-306-40615-2 | jq .parts.isbn13
  stele explain < identifiers.txt`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			schemes, err := p.schemes(cmd)
			if err != nil {
				return err
			}
			server, err := p.serverOf(cmd)
			if err != nil {
				return err
			}
			asked := false
			x := explainer{program: p, schemes: schemes}
			x.learn = func(text string) bool {
				if asked {
					return false
				}
				asked = p.learnFor(cmd, schemes, server, text)
				return asked
			}
			tree := sync.OnceValue(func() *namespaces.Tree { return p.registered(cmd, schemes, server) })
			x.ancestors = func(id stele.ID) []*stele.Namespace { return tree().AncestorsOf(id) }
			return x.explain(args)
		},
	}
}

// explainer explains texts.
type explainer struct {
	*program
	schemes *stele.Schemes

	// learn is called with a text that can't be read, and reports whether it is worth
	// reading again.
	learn func(text string) bool

	// ancestors returns the namespaces of the registry that a name is in; none if the
	// registry can't be read.
	ancestors func(stele.ID) []*stele.Namespace
}

// registered returns the namespaces of a registry that the caller may see; none if there
// is no registry, or it can't be read.
func (p *program) registered(cmd *cobra.Command, schemes *stele.Schemes, server string) *namespaces.Tree {
	tree := namespaces.New(schemes)
	add := func(list iter.Seq2[*stele.Namespace, error]) error {
		for ns, err := range list {
			if err != nil {
				return err
			}
			tree.Add(ns) // 'stele verify' reports one whose settings are wrong
		}
		return nil
	}
	if !p.consult(cmd, schemes, server,
		func(r *remote.Registry) error { return add(r.Namespaces(cmd.Context())) },
		func(store stele.Store) error { return add(store.Namespaces(cmd.Context())) }) {
		return namespaces.New(schemes)
	}
	return tree
}

// explain explains the arguments, or the lines of standard input.
func (p *explainer) explain(args []string) error {
	out := bufio.NewWriter(p.stdout)
	defer out.Flush()
	total, invalid := 0, 0
	one := func(text string, size int) error {
		c := card.Explain(p.schemes, text, size, p.ancestors)
		if c.Error != "" && p.learn(text) {
			c = card.Explain(p.schemes, text, size, p.ancestors)
		}
		if total > 0 && !p.json {
			fmt.Fprintln(out)
		}
		total++
		if c.Error != "" {
			invalid++
		}
		return p.print(out, c)
	}
	if len(args) > 0 {
		for _, text := range args {
			if err := one(text, len(text)); err != nil {
				return err
			}
		}
	} else {
		if isTerminal(p.stdin) {
			fmt.Fprintln(p.stderr, "Type identifiers, one a line; end with Ctrl-D.")
		}
		if err := terminal.Lines(p.stdin, stele.MaxText, one, out.Flush); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	switch {
	case invalid == 1 && total == 1:
		return &stele.Error{Kind: stele.Invalid, Err: stele.Messagef("explain.not-an-identifier", "this is not an identifier; its card says why")}
	case invalid > 0:
		return &stele.Error{Kind: stele.Invalid, Err: stele.Messagef("explain.not-identifiers", "{invalid} of {total} texts are not identifiers; their cards say why", invalid, total)}
	}
	return nil
}

// print writes the card, for a program or for a person.
func (p *program) print(w io.Writer, c card.Explanation) error {
	if !p.json {
		return c.Write(w)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(c); err != nil {
		return err
	}
	_, err := w.Write(terminal.EscapeUnseen(b.Bytes()))
	return err
}
