package manual

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// FileName returns the name of a command's page: "stele-ns-add.1".
func FileName(cmd *cobra.Command) string { return pageName(cmd) + ".1" }

// pageName is what man calls the page: "stele-ns-add".
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// Man returns the page of a command for section 1 of the manual, in the macros of man(7).
func Man(cmd *cobra.Command) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"Stele\" \"Stele Manual\"\n", strings.ToUpper(roff(pageName(cmd))))
	// Neither hyphens nor spaces are added: commands must read as they are typed.
	b.WriteString(".nh\n.ad l\n")
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(pageName(cmd)), roff(lower(cmd.Short)))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n\\fB%s\\fR", roff(cmd.CommandPath()))
	if rest := strings.TrimSpace(strings.TrimPrefix(cmd.UseLine(), cmd.CommandPath())); rest != "" {
		fmt.Fprintf(&b, " %s", roff(rest))
	}
	b.WriteString("\n.SH DESCRIPTION\n")
	manBlocks(&b, text(cmd))
	manOptions(&b, "OPTIONS", options(cmd.NonInheritedFlags()))
	manOptions(&b, "OPTIONS OF ALL COMMANDS", options(cmd.InheritedFlags()))
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		manBlocks(&b, cmd.Example)
	}
	manLinks(&b, cmd)
	return b.Bytes()
}

// lower writes the first letter of a sentence small, unless its first word is an abbreviation.
func lower(sentence string) string {
	if len(sentence) > 1 && sentence[1] >= 'a' && sentence[1] <= 'z' {
		return strings.ToLower(sentence[:1]) + sentence[1:]
	}
	return sentence
}

// text is what a command says of itself.
func text(cmd *cobra.Command) string {
	if cmd.Long != "" {
		return cmd.Long
	}
	return cmd.Short + "."
}

func manBlocks(b *bytes.Buffer, text string) {
	for _, p := range blocks(text) {
		if !p.fixed {
			b.WriteString(".PP\n")
			for _, line := range p.lines {
				b.WriteString(roffLine(line))
			}
			continue
		}
		b.WriteString(".PP\n.nf\n")
		for _, line := range p.lines {
			b.WriteString(roffLine(line))
		}
		b.WriteString(".fi\n")
	}
}

func manOptions(b *bytes.Buffer, title string, all []option) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	for _, o := range all {
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR", roff(o.spelled))
		if o.value != "" {
			fmt.Fprintf(b, " \\fI%s\\fR", roff(o.value))
		}
		b.WriteByte('\n')
		b.WriteString(roffLine(o.what))
		if o.usual != "" {
			b.WriteString(roffLine("(default: " + o.usual + ")"))
		}
	}
}

// manLinks names the pages above and below.
func manLinks(b *bytes.Buffer, cmd *cobra.Command) {
	var names []string
	if cmd.HasParent() {
		names = append(names, pageName(cmd.Parent()))
	}
	for _, c := range below(cmd) {
		names = append(names, pageName(c))
	}
	if len(names) == 0 {
		return
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, name := range names {
		end := ","
		if i == len(names)-1 {
			end = ""
		}
		fmt.Fprintf(b, ".BR %s (1)%s\n", roff(name), end)
	}
}

// roffLine is a line of text. A line that begins with a dot or an apostrophe would be a request.
func roffLine(line string) string {
	switch line = roff(line); {
	case line == "":
		return ".sp\n"
	case line[0] == '.':
		return `\&` + line + "\n"
	}
	return line + "\n"
}

// roff escapes a text. Hyphens, quotation marks and the like stay what a shell reads, so that
// commands can be copied from the page.
func roff(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`)
		case r == '\'':
			b.WriteString(`\(aq`)
		case r == '`':
			b.WriteString(`\(ga`)
		case r == '^':
			b.WriteString(`\(ha`)
		case r == '~':
			b.WriteString(`\(ti`)
		case r == '"':
			b.WriteString(`\(dq`)
		case r == '\n':
			b.WriteByte(' ')
		case r == '\t':
			b.WriteString("    ")
		case r < ' ' || r == 0x7f: // nothing that a page needs
		case r > 0x7f:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
