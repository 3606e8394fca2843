package main

import (
	"os"

	"github.com/stele-id/stele/internal/progress"

	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stele-id/stele/internal/terminal"
)

const (
	cardIndent = "  "
	cardColumn = 14 // where values begin, after the indent
)

// write draws the card for a person: the text, and a line for each thing known
// about it.
func (c card) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintln(&b, printable(c.Input))
	if c.Error != "" {
		c.writeError(&b)
	} else {
		c.writeParts(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (c card) writeParts(b *strings.Builder) {
	scheme := c.Scheme
	if name := formNames[c.Form]; name != "" {
		scheme += ", " + name
	}
	row(b, "scheme", scheme)
	row(b, "canonical", printable(c.Canonical))
	for _, part := range c.Parts {
		value := ""
		switch v := part.Value.(type) {
		case []string:
			value = strings.Join(v, "  ")
		default:
			value = fmt.Sprint(v)
		}
		if part.Note != "" {
			value += "  (" + part.Note + ")"
		}
		row(b, part.Name, printable(value))
	}
	for i, s := range c.Spellings {
		row(b, []string{"also", ""}[min(i, 1)], printable(s.Text))
	}
	for _, warning := range c.Warnings {
		row(b, "warning", printable(warning))
	}
}

// formNames are the forms in words, where they say more than the scheme's name.
var formNames = map[string]string{
	"rep":       "repository name",
	"ibip":      "IBIp (opaque form)",
	"qualified": "with a qualifier",
	"handle":    "handle",
	"doi":       "DOI",
	"isbn":      "ISBN",
	"nbn":       "National Bibliography Number",
}

// maxSuggestions is how many candidates a card shows; JSON has all.
const maxSuggestions = 8

func (c card) writeError(b *strings.Builder) {
	reason := c.Error
	if c.Scheme != "" {
		row(b, "scheme", c.Scheme)
	}
	row(b, "invalid", printable(reason))
	if c.Position != nil {
		excerpt, column := c.excerpt(*c.Position)
		row(b, "at byte "+strconv.Itoa(*c.Position), excerpt)
		row(b, "", strings.Repeat(" ", column)+"^")
	}
	for i, s := range c.Suggestions {
		if i == maxSuggestions {
			row(b, "", fmt.Sprintf("and %d more (--json lists them)", len(c.Suggestions)-i))
			break
		}
		row(b, []string{"did you mean", ""}[min(i, 1)], printable(s))
	}
}

// excerpt returns the surroundings of byte pos of the input, fit to print, and
// the column at which that byte stands in it.
func (c card) excerpt(pos int) (text string, column int) {
	const before, after = 40, 20
	pos = min(pos, len(c.Input))
	from, to := max(0, pos-before), min(len(c.Input), pos+after)
	for from > 0 && !utf8.RuneStart(c.Input[from]) {
		from--
	}
	for to < len(c.Input) && !utf8.RuneStart(c.Input[to]) {
		to++
	}
	left := printable(c.Input[from:pos])
	if from > 0 {
		left = "..." + left
	}
	right := printable(c.Input[pos:to])
	if to < len(c.Input) {
		right += "..."
	}
	return left + right, utf8.RuneCountInString(left)
}

// row writes a name and a value, in columns.
func row(b *strings.Builder, name, value string) {
	fmt.Fprintf(b, "%s%-*s%s\n", cardIndent, cardColumn, name, value)
}

// printable is [terminal.Printable].
func printable(s string) string { return terminal.Printable(s) }

// grouped is [terminal.Grouped].
func grouped(n int64) string { return terminal.Grouped(n) }

// newProgress shows how far a verb is, on standard error; see [progress.New].
func (p *program) newProgress(what, unit string, total int64, bytes func() int64) *progress.Bar {
	file, ok := p.stderr.(*os.File)
	return progress.New(p.stderr, ok && isTerminal(file), p.now, what, unit, total, bytes)
}
