// Package card draws what is known of a name, a namespace or a user for a person at a terminal: a
// line with what it is about, and below it a row for each thing that is known. It is handed
// values, and reads no registry.
package card

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/terminal"
)

// Indent is what stands before every row, and column where values begin after it.
const (
	Indent = "  "
	column = 14
)

// Explanation is what a scheme can tell of a text, or what is wrong with it, as JSON shows
// it.
type Explanation struct {
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

// Explain makes the card of one text. Size is its whole size: a longer text than an
// identifier can be was cut by its reader. Where the namespace of a name matters, ancestors
// returns those of the registry that it is in.
func Explain(schemes *stele.Schemes, text string, size int, ancestors func(stele.ID) []*stele.Namespace) Explanation {
	c := Explanation{Input: text, Warnings: []string{}}
	if size > stele.MaxText {
		c.Input = strings.ToValidUTF8(text[:min(len(text), 60)], "") + "..."
	}
	var x stele.Explanation
	err := tooLong(size)
	if err == nil {
		x, err = schemes.Explain(text)
	}
	if err == nil && schemes.IsPlaced(x.ID) {
		x = schemes.Place(x, ancestors(x.ID))
	}
	if err != nil {
		c.Error = err.Error()
		if syntax, ok := errors.AsType[*stele.SyntaxError](err); ok {
			c.Error, c.Scheme, c.Position, c.Suggestions = syntax.Reason.Error(), syntax.Scheme, &syntax.Pos, syntax.Suggestions
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
	return stele.Invalidf("", stele.MaxText, "identifier.too-long", "the text has {size} bytes; an identifier has at most {most}", size, stele.MaxText)
}

// Write draws the card for a person: the text, and a line for each thing known
// about it.
func (c Explanation) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintln(&b, terminal.Printable(c.Input))
	if c.Error != "" {
		c.writeError(&b)
	} else {
		c.writeParts(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (c Explanation) writeParts(b *strings.Builder) {
	scheme := c.Scheme
	if name := formNames[c.Form]; name != "" {
		scheme += ", " + name
	}
	Row(b, "scheme", scheme)
	Row(b, "canonical", terminal.Printable(c.Canonical))
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
		Row(b, part.Name, terminal.Printable(value))
	}
	for i, s := range c.Spellings {
		Row(b, []string{"also", ""}[min(i, 1)], terminal.Printable(s.Text))
	}
	for _, warning := range c.Warnings {
		Row(b, "warning", terminal.Printable(warning))
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

func (c Explanation) writeError(b *strings.Builder) {
	reason := c.Error
	if c.Scheme != "" {
		Row(b, "scheme", c.Scheme)
	}
	Row(b, "invalid", terminal.Printable(reason))
	if c.Position != nil {
		excerpt, at := c.excerpt(*c.Position)
		Row(b, "at byte "+strconv.Itoa(*c.Position), excerpt)
		Row(b, "", strings.Repeat(" ", at)+"^")
	}
	for i, s := range c.Suggestions {
		if i == maxSuggestions {
			Row(b, "", fmt.Sprintf("and %d more (--json lists them)", len(c.Suggestions)-i))
			break
		}
		Row(b, []string{"did you mean", ""}[min(i, 1)], terminal.Printable(s))
	}
}

// excerpt returns the surroundings of byte pos of the input, fit to print, and
// the column at which that byte stands in it.
func (c Explanation) excerpt(pos int) (text string, column int) {
	const before, after = 40, 20
	pos = min(pos, len(c.Input))
	from, to := max(0, pos-before), min(len(c.Input), pos+after)
	for from > 0 && !utf8.RuneStart(c.Input[from]) {
		from--
	}
	for to < len(c.Input) && !utf8.RuneStart(c.Input[to]) {
		to++
	}
	left := terminal.Printable(c.Input[from:pos])
	if from > 0 {
		left = "..." + left
	}
	right := terminal.Printable(c.Input[pos:to])
	if to < len(c.Input) {
		right += "..."
	}
	return left + right, utf8.RuneCountInString(left)
}

// Row writes a name and a value, in columns.
func Row(b *strings.Builder, name, value string) {
	fmt.Fprintf(b, "%s%-*s%s\n", Indent, column, name, value)
}
