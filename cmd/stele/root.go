package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/progress"
	"github.com/stele-id/stele/internal/terminal"
)

// Exit codes, which scripts rely on.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2
	exitNotFound = 3
	exitGone     = 4
	exitTryAgain = 5
)

// exitCodes maps the kinds of failure to exit codes. Kinds that are not here have the
// general one.
var exitCodes = map[stele.Kind]int{
	stele.NotFound:    exitNotFound,
	stele.Gone:        exitGone,
	stele.Exhausted:   exitTryAgain,
	stele.Unavailable: exitTryAgain,
}

// usageError is a command line that can't be understood.
type usageError struct {
	err     error
	command string // whose help tells more
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%v; see '%s --help'", e.err, e.command)
}

func (e *usageError) Unwrap() error { return e.err }

// run executes the command line and returns the exit code. An error is one line
// on stderr.
func (p *program) run(ctx context.Context, args []string) int {
	root := p.rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	// cobra reports an unknown command by text only.
	if _, ok := errors.AsType[*usageError](err); !ok && strings.HasPrefix(err.Error(), "unknown command") {
		err = &usageError{unknownVerb(root, args, err), root.Name()}
	}
	fmt.Fprintf(p.stderr, "stele: %s\n", printable(strings.ReplaceAll(err.Error(), "\n", "; ")))
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	if code, ok := exitCodes[stele.KindOf(err)]; ok {
		return code
	}
	return exitFailed
}

func (p *program) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "stele",
		Short: "Names that outlive their addresses",
		Long: `Stele mints persistent identifiers, keeps what they stand for, and resolves
them: IBI, URN, ARK, handles and DOIs, PURL and LSID.

To see it all at once, run the demo: it serves a small registry of examples, and
prints what to try.

  stele serve --demo

The registry is in a folder (--data), in a PostgreSQL database (--store), or behind a
server (--server, with a token in STELE_TOKEN); verbs do the same with all of them.

Exit codes: 0 ok, 1 failed, 2 wrong usage, 3 not found, 4 gone, 5 try again.`,
		Example: `  stele serve --demo
  stele explain 8JMKD3MGP8W/34PGRBS
  stele register ark:12345/x1 --to https://example.org/1
  stele resolve ark:12345/x1`,
		Version:       programVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.PersistentFlags().BoolVar(&p.json, "json", false, "print one JSON object a line")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{explainFlag(cmd, err), cmd.CommandPath()}
	})
	p.registryFlags(root)
	p.addVerbs(root)
	strict(root)
	return root
}

// strict makes wrong usage of cobra's own commands an error: a shell would source
// the help text of "completion", and a script take it for an answer.
func strict(root *cobra.Command) {
	root.SetCompletionCommandGroupID(groupSelf)
	root.InitDefaultCompletionCmd()
	root.SetHelpCommandGroupID(groupSelf)
	root.SetHelpCommand(&cobra.Command{
		Use:     "help [command]",
		Short:   "Help about any command",
		GroupID: groupSelf,
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return &usageError{stele.Messagef("command.not-found-with-hint", `there is no command "{command}"{hint}`, strings.Join(args, " "), suggestVerb(root, args)), root.Name()}
			}
			return about.Help()
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if about, _, err := root.Find(args); err == nil {
				for _, c := range about.Commands() {
					names = append(names, c.Name()+"\t"+c.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	})
	for _, c := range root.Commands() {
		if c.HasSubCommands() && !c.Runnable() {
			c.Args = cobra.ArbitraryArgs
			c.RunE = func(cmd *cobra.Command, args []string) error {
				if len(args) > 0 {
					return &usageError{stele.Messagef("command.not-found", `there is no command "{command}"`, cmd.Name()+" "+strings.Join(args, " ")), cmd.CommandPath()}
				}
				return cmd.Help()
			}
		}
	}
}

// refuse makes an error of a verb.
func refuse(op string, kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: op, Kind: kind, Err: stele.Messagef(code, text, args...)}
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
