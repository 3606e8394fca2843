// Package usage reads a command line strictly: it checks arguments, refuses what can't be
// understood with a sentence that says what to write instead, names the verb or flag that may
// be meant, and tells shells what can be completed. It knows no verb's work.
package usage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stele-id/stele"
)

// Error is a command line that can't be understood.
type Error struct {
	Err     error
	Command string // whose help tells more
}

func (e *Error) Error() string {
	return fmt.Sprintf("%v; see '%s --help'", e.Err, e.Command)
}

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// Errorf is the error of a command line that can't be understood.
func Errorf(cmd *cobra.Command, code, text string, args ...any) error {
	return &Error{stele.Messagef(code, text, args...), cmd.CommandPath()}
}

// OneArgument makes sure that there is one argument; what says which.
func OneArgument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		if len(args) == 0 {
			return Errorf(cmd, "argument.missing", "{argument} is missing", what)
		}
		return Errorf(cmd, "argument.one-expected", "{count} arguments where one belongs, {argument}; put quotation marks around what has spaces", len(args), what)
	}
}

// AtMostOne makes sure that there is one argument or none.
func AtMostOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return OneArgument(what)(cmd, args)
	}
}

// NoArguments makes sure that there is none.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Errorf(cmd, "argument.none-expected", `"{argument}" is an argument where none belongs`, args[0])
	}
	return nil
}

// Family makes a command that has commands below it, and does nothing by itself.
func Family(cmd *cobra.Command, members ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(members...)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var names []string
		for _, m := range members {
			names = append(names, m.Name())
		}
		return Errorf(cmd, "command.unknown", `unknown command "{command}"; there are {commands}`, args[0], strings.Join(names, ", "))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// Choices lets shells complete the values of a flag.
func Choices[T ~string](cmd *cobra.Command, flag string, values ...T) {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	// It fails only for a flag that the command does not have.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(texts, cobra.ShellCompDirectiveNoFileComp))
}

// NeverFiles tells shells that neither arguments nor flags of a command are names of
// files. It is called when all flags are there.
func NeverFiles(cmd *cobra.Command) *cobra.Command {
	if cmd.ValidArgs == nil && cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if _, done := cmd.GetFlagCompletionFunc(flag.Name); !done {
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, cobra.NoFileCompletions)
		}
	})
	return cmd
}

// Given reports whether one of the command's own flags was given, except those in but.
func Given(cmd *cobra.Command, but ...string) (yes bool) {
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if cmd.InheritedFlags().Lookup(flag.Name) == nil && !slices.Contains(but, flag.Name) {
			yes = true
		}
	})
	return yes
}

// Folders tells shells that names of folders are completed.
func Folders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// Files tells shells that names of files are completed.
func Files(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}
