// Package manual writes the help texts of commands in other forms: as pages for man, and as pages
// in Markdown. It knows no verb: all it says comes from the tree of commands.
//
// Its output depends on the commands only. It has no dates, so that two builds give the same
// files.
package manual

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Commands returns a command and all commands below it that help texts list, by name.
func Commands(root *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{root}
	for _, c := range below(root) {
		all = append(all, Commands(c)...)
	}
	return all
}

// below returns the commands below one, by name, without those that are hidden.
func below(cmd *cobra.Command) []*cobra.Command {
	list := slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool {
		return !c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand()
	})
	slices.SortFunc(list, func(a, b *cobra.Command) int { return cmp.Compare(a.Name(), b.Name()) })
	return list
}

// block is a paragraph, or lines that keep their breaks.
type block struct {
	lines []string
	fixed bool
}

// blocks cuts a help text. A line that begins with two spaces keeps its breaks and its columns.
func blocks(text string) (all []block) {
	fresh := true
	for _, line := range strings.Split(strings.TrimRight(text, " \n"), "\n") {
		line = strings.TrimRight(line, " ")
		if line == "" {
			fresh = true
			continue
		}
		fixed := strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t")
		n := len(all) - 1
		switch {
		case n >= 0 && all[n].fixed && fixed:
			if fresh {
				all[n].lines = append(all[n].lines, "")
			}
			all[n].lines = append(all[n].lines, line)
		case n >= 0 && !fresh && all[n].fixed == fixed:
			all[n].lines = append(all[n].lines, line)
		default:
			all = append(all, block{[]string{line}, fixed})
		}
		fresh = false
	}
	return all
}

// option is a flag as a page shows it.
type option struct {
	spelled string // "-n, --number"
	value   string // what follows it; "" if nothing does
	what    string
	usual   string // the default; "" if there is none worth a word
}

// options returns the flags of a set that help texts list.
func options(flags *pflag.FlagSet) (all []option) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" || f.Name == "help" {
			return
		}
		value, what := pflag.UnquoteUsage(f)
		o := option{spelled: "--" + f.Name, value: value, what: what}
		if f.Shorthand != "" && f.ShorthandDeprecated == "" {
			o.spelled = "-" + f.Shorthand + ", " + o.spelled
		}
		switch f.DefValue {
		case "", "false", "0", "[]", "0s", "<nil>":
		default:
			o.usual = f.DefValue
		}
		all = append(all, o)
	})
	return all
}
