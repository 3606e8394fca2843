package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/namespaces"
)

func (p *program) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain [ID...]",
		Short: "Tell what an identifier is and what is encoded in it",
		Long: `Explain reads identifiers in any spelling and tells, for each, its scheme, its
canonical form, all that is encoded in it (host, IP address, port, date, check
character, ...), other spellings of the same name, and what its owner or reader
should know. For a text that is not an identifier it tells what is wrong, where, and,
if a check digit shows a slip of the hand, what may have been meant.

Without arguments it reads standard input, an identifier a line; empty lines and
lines that begin with # are passed over. It looks at the text alone, with two
exceptions, for which it asks the registry of --data or --store, or the server of
--server, if it can be asked. Whether a URL is a PURL depends on its host, so for a URL
that is not an identifier otherwise it asks which hosts have PURLs ('stele purl-host'). And
the shoulder of an ARK is the namespace that is registered ('stele ns'); if there is none,
it is the one by the first-digit convention.

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
			x.registered = sync.OnceValue(func() *namespaces.Tree { return p.registered(cmd, schemes, server) })
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

	// registered returns the namespaces of the registry; none if it can't be read.
	registered func() *namespaces.Tree
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
		c := p.explainText(text, size)
		if c.Error != "" && p.learn(text) {
			c = p.explainText(text, size)
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
	} else if err := p.lines(out, one); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	switch {
	case invalid == 1 && total == 1:
		return &stele.Error{Kind: stele.Invalid, Err: errors.New("this is not an identifier; its card says why")}
	case invalid > 0:
		return &stele.Error{Kind: stele.Invalid, Err: fmt.Errorf("%d of %d texts are no identifiers; their cards say why", invalid, total)}
	}
	return nil
}

// lines calls one for each line of standard input with the line, cut after the longest
// identifier, and its whole size. Whatever the size of a line, no more of it than that is
// held.
func (p *program) lines(out *bufio.Writer, one func(text string, size int) error) error {
	if isTerminal(p.stdin) {
		fmt.Fprintln(p.stderr, "Type identifiers, one a line; end with Ctrl-D.")
	}
	in := bufio.NewReaderSize(p.stdin, stele.MaxText+16)
	for {
		skipBlanks(in)
		line, err := in.ReadSlice('\n')
		text := string(line)
		read, size := len(line), visible(line) // the size is without what is blank at the end
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = in.ReadSlice('\n')
			if n := visible(line); n > 0 {
				size = read + n
			}
			read += len(line)
		}
		text = text[:min(size, len(text))]
		if text != "" && text[0] != '#' {
			if err := one(text, size); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("standard input: %w", err)
		case in.Buffered() == 0: // the process that writes may be waiting for the answer
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

// visible returns how long a piece of a line is without the blanks at its end.
func visible(line []byte) int { return len(bytes.TrimRight(line, " \t\r\n")) }

// skipBlanks skips spaces and tabs: they do not count for a line's size.
func skipBlanks(in *bufio.Reader) {
	for {
		c, err := in.ReadByte()
		if err != nil {
			return
		}
		if c != ' ' && c != '\t' {
			_ = in.UnreadByte() // can't fail after ReadByte
			return
		}
	}
}

// isTerminal reports whether r is a terminal at which a person types. (The null device is
// a character device too.)
func isTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// card is an explanation, or what is wrong, as JSON shows it.
type card struct {
	Input       string           `json:"input"`
	Scheme      string           `json:"scheme,omitempty"`
	Form        string           `json:"form,omitempty"`
	Canonical   string           `json:"canonical,omitempty"`
	Parts       stele.Parts      `json:"parts,omitempty"`
	Spellings   []stele.Spelling `json:"spellings,omitempty"`
	Warnings    []string         `json:"warnings"`
	Error       string           `json:"error,omitempty"`
	Position    *int             `json:"position,omitempty"`
	Suggestions []string         `json:"suggestions,omitempty"`
}

// explainText makes the card of one text. size is its whole size: a longer text
// than an identifier can be was cut by its reader.
func (p *explainer) explainText(text string, size int) card {
	c := card{Input: text, Warnings: []string{}}
	if size > stele.MaxText {
		c.Input = strings.ToValidUTF8(text[:min(len(text), 60)], "") + "..."
	}
	var x stele.Explanation
	err := tooLong(size)
	if err == nil {
		x, err = p.schemes.Explain(text)
	}
	if err == nil && p.schemes.IsPlaced(x.ID) {
		x = p.schemes.Place(x, p.registered().ChainOf(x.ID))
	}
	if err != nil {
		c.Error = err.Error()
		if syntax, ok := errors.AsType[*stele.SyntaxError](err); ok {
			c.Error, c.Scheme, c.Position, c.Suggestions = syntax.Reason, syntax.Scheme, &syntax.Pos, syntax.Suggestions
		}
		return c
	}
	c.Scheme, c.Form, c.Canonical = x.ID.Scheme(), x.Form, x.ID.String()
	c.Parts, c.Spellings = x.Parts, x.Spellings
	c.Warnings = append(c.Warnings, x.Warnings...)
	return c
}

// tooLong is the error for a text of more bytes than an identifier can have.
func tooLong(size int) error {
	if size <= stele.MaxText {
		return nil
	}
	return stele.Invalidf("", stele.MaxText, "the text has %d bytes; an identifier has at most %d", size, stele.MaxText)
}

// print writes the card, for a program or for a person.
func (p *program) print(w io.Writer, c card) error {
	if !p.json {
		return c.write(w)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(c); err != nil {
		return err
	}
	_, err := w.Write(escapeUnseen(b.Bytes()))
	return err
}

// escapeUnseen escapes, in JSON, the characters that JSON leaves as they are and a
// terminal acts on or does not show: DEL, the C1 controls, marks of direction.
func escapeUnseen(enc []byte) []byte {
	out := make([]byte, 0, len(enc))
	for _, r := range string(enc) {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}
