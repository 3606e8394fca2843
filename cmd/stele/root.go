package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
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
	if _, ok := errors.AsType[*usage.Error](err); !ok && strings.HasPrefix(err.Error(), "unknown command") {
		err = usage.UnknownVerb(root, args, err)
	}
	fmt.Fprintf(p.stderr, "stele: %s\n", printable(strings.ReplaceAll(err.Error(), "\n", "; ")))
	if _, ok := errors.AsType[*usage.Error](err); ok {
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
		Long: `Stele mints persistent identifiers, stores their records, and resolves them: IBI, URN,
ARK, handles and DOIs, PURL and LSID.

Begin with the demo: it serves a small registry of examples, and prints commands to try.

  stele serve --demo

The registry is in a folder (--data), in a PostgreSQL database (--store), or at a server
(--server, with a token in STELE_TOKEN). Commands do the same with each of them.

Exit codes: 0 ok, 1 failed, 2 wrong usage, 3 not found, 4 gone, 5 try again.`,
		Example: `  stele serve --demo
  stele explain 8JMKD3MGP8W/34PGRBS
  stele register ark:12345/x1 --to https://example.org/1
  stele resolve ark:12345/x1`,
		Version:       about().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.PersistentFlags().BoolVar(&p.json, "json", false, "print JSON, one object per line")
	root.SetFlagErrorFunc(usage.FlagError)
	p.registryFlags(root)
	p.addVerbs(root)
	usage.Strict(root, groupSelf)
	return root
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

// Groups of verbs, as 'stele --help' shows them.
const (
	groupNames  = "names"
	groupPolicy = "policy"
	groupBulk   = "bulk"
	groupServer = "server"
	groupSafety = "safety"
	groupSelf   = "self"
)

// verbGroup is a group of verbs.
type verbGroup struct {
	id, title string
	verbs     []*cobra.Command
}

// verbGroups is the one list of verbs, by group, in the order of the help text. A new verb
// is a line here.
func (p *program) verbGroups() []verbGroup {
	return []verbGroup{
		{groupNames, "Identifiers: mint, register, change, resolve", []*cobra.Command{
			p.explainCommand(),
			p.mintCommand(),
			p.registerCommand(),
			p.updateCommand(),
			p.withdrawCommand(),
			p.revertCommand(),
			p.reinstateCommand(),
			p.redactCommand(),
			p.disavowCommand(),
			p.showCommand(),
			p.historyCommand(),
			p.lsCommand(),
			p.findCommand(),
			p.usageCommand(),
			p.resolveCommand(),
			p.getCommand(),
			p.signCommand(),
		}},
		{groupPolicy, "Namespaces, users, keys and zones", []*cobra.Command{
			p.nsCommand(),
			p.ruleCommand(),
			p.purlHostCommand(),
			p.proposalCommand(),
			p.linksCommand(),
			p.userCommand(),
			p.tokenCommand(),
			p.auditCommand(),
			p.keyCommand(),
			p.zoneCommand(),
			p.handleCommand(),
		}},
		{groupBulk, "Import and export", []*cobra.Command{
			p.importCommand(),
			p.harvestCommand(),
			p.replaceCommand(),
			p.exportCommand(),
			p.bundleCommand(),
			p.handOverCommand(),
			p.escrowCommand(),
			p.adoptCommand(),
		}},
		{groupServer, "The server", []*cobra.Command{
			onFolder(p.serveCommand()),
			p.configCommand(),
			p.doctorCommand(),
			p.topCommand(),
			p.mailCommand(),
		}},
		{groupSafety, "Backup, verification and storage", []*cobra.Command{
			p.backupCommand(),
			p.restoreCommand(),
			p.verifyCommand(),
			p.logCommand(),
			p.storeCommand(),
			p.secretCommand(),
		}},
		{groupSelf, "The program itself", []*cobra.Command{
			p.versionCommand(),
			p.manCommand(),
		}},
	}
}

// addVerbs adds all verbs to the root.
func (p *program) addVerbs(root *cobra.Command) {
	for _, g := range p.verbGroups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, verb := range g.verbs {
			verb.GroupID = g.id
			root.AddCommand(verb)
		}
	}
}

// printObject prints a line of JSON.
func (p *program) printObject(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = p.stdout.Write(terminal.EscapeUnseen(append(line, '\n')))
	return err
}

// say prints a line for a person.
func (p *program) say(format string, args ...any) error {
	_, err := fmt.Fprintf(p.stdout, format, args...)
	return err
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
