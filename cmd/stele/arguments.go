package main

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stele-id/stele"
)

// misuse is the error of a command line that can't be understood.
func misuse(cmd *cobra.Command, code, text string, args ...any) error {
	return &usageError{stele.Messagef(code, text, args...), cmd.CommandPath()}
}

// oneArgument makes sure that there is one argument; what says which.
func oneArgument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		if len(args) == 0 {
			return misuse(cmd, "argument.missing", "{argument} is missing", what)
		}
		return misuse(cmd, "argument.one-expected", "{count} arguments where one belongs, {argument}; put quotation marks around what has spaces", len(args), what)
	}
}

// atMostOne makes sure that there is one argument or none.
func atMostOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return oneArgument(what)(cmd, args)
	}
}

// noArguments makes sure that there is none.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return misuse(cmd, "argument.none-expected", `"{argument}" is an argument where none belongs`, args[0])
	}
	return nil
}

// family makes a command that has commands below it, and does nothing by itself.
func family(cmd *cobra.Command, members ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(members...)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var names []string
		for _, m := range members {
			names = append(names, m.Name())
		}
		return misuse(cmd, "command.unknown", `unknown command "{command}"; there are {commands}`, args[0], strings.Join(names, ", "))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// choices lets shells complete the values of a flag.
func choices[T ~string](cmd *cobra.Command, flag string, values ...T) {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	// It fails only for a flag that the command does not have.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(texts, cobra.ShellCompDirectiveNoFileComp))
}

// neverFiles tells shells that neither arguments nor flags of a command are names of
// files. It is called when all flags are there.
func neverFiles(cmd *cobra.Command) *cobra.Command {
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

// given reports whether one of the command's own flags was given, except those in but.
func given(cmd *cobra.Command, but ...string) (yes bool) {
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if cmd.InheritedFlags().Lookup(flag.Name) == nil && !slices.Contains(but, flag.Name) {
			yes = true
		}
	})
	return yes
}

// parseMoment reads a date, which stands for its end, or a time; both in UTC if they
// do not say otherwise.
func parseMoment(text string) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1).Add(-1), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateTime, "2006-01-02T15:04", "2006-01-02 15:04"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, stele.Messagef("argument.not-a-date", `"{text}" is not a date; write 2024-05-17, or 2024-05-17T10:00:00Z`, text)
}
