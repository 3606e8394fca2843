package manual

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Markdown writes a command, and all commands below it, as sections of a page. The level is that
// of the first heading.
func Markdown(b *bytes.Buffer, cmd *cobra.Command, level int) {
	fmt.Fprintf(b, "\n%s %s\n\n%s.\n\n", strings.Repeat("#", level), cmd.CommandPath(), strings.TrimSuffix(cmd.Short, "."))
	if cmd.Runnable() && !cmd.HasAvailableSubCommands() {
		fmt.Fprintf(b, "```text\n  %s\n```\n\n", cmd.UseLine())
	}
	if cmd.Long != "" {
		markBlocks(b, cmd.Long)
	}
	MarkdownOptions(b, cmd, false)
	if cmd.Example != "" {
		b.WriteString("For example:\n\n")
		markBlocks(b, cmd.Example)
	}
	for _, c := range below(cmd) {
		Markdown(b, c, min(level+1, 4))
	}
}

// MarkdownOptions writes a table of the flags of a command: its own, or with persistent, those
// that all commands below it have.
func MarkdownOptions(b *bytes.Buffer, cmd *cobra.Command, persistent bool) {
	flags := cmd.NonInheritedFlags()
	if persistent {
		flags = cmd.PersistentFlags()
	}
	all := options(flags)
	if len(all) == 0 {
		return
	}
	b.WriteString("| option | what it does |\n|---|---|\n")
	for _, o := range all {
		name := o.spelled
		if o.value != "" {
			name += " " + o.value
		}
		fmt.Fprintf(b, "| `%s` | %s", strings.ReplaceAll(name, "|", `\|`), markText(o.what))
		if o.usual != "" {
			fmt.Fprintf(b, " (default `%s`)", strings.ReplaceAll(o.usual, "|", `\|`))
		}
		b.WriteString(" |\n")
	}
	b.WriteByte('\n')
}

// MarkdownText writes a help text.
func MarkdownText(b *bytes.Buffer, text string) { markBlocks(b, text) }

func markBlocks(b *bytes.Buffer, text string) {
	for _, p := range blocks(text) {
		if p.fixed {
			// The lines keep their two spaces: a command at the margin would be one that a test runs.
			fmt.Fprintf(b, "```text\n%s\n```\n\n", strings.Join(p.lines, "\n"))
			continue
		}
		for _, line := range p.lines {
			b.WriteString(markText(line) + "\n")
		}
		b.WriteByte('\n')
	}
}

// markText escapes what Markdown would read as its own.
func markText(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch r {
		case '\\', '`', '*', '_', '<', '>', '[', ']', '|', '~', '&':
			b.WriteByte('\\')
		case '#', '+', '-':
			if i == 0 {
				b.WriteByte('\\')
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}
