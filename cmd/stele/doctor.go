package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
)

// doctorOptions are the flags of doctor.
type doctorOptions struct {
	config string
	backup string
	dns    []string
}

func (p *program) doctorCommand() *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look a running installation over, and say what to do",
		Long: `Doctor looks at everything around a registry that can go wrong by itself: the
configuration, the folder and its disk, the clock, the server and its certificates, the
delegation of published zones, tokens and backups. It prints a line for each thing it
looked at: ok, a warning, or a problem, with what to do. It changes nothing.

Run it on the machine of the server, as the server's user, with the configuration of
the server. To look into the registry while the server runs it needs the token of an
administrator, in STELE_TOKEN or --token-file. With --server it looks at a server elsewhere, as far as
that is possible from outside.

It exits with 1 if there is a problem; warnings are none.`,
		Example: `  sudo -u stele stele doctor --config /etc/stele/stele.toml --token-file /etc/stele/doctor.token --backup /var/backups/stele
  stele doctor --server https://id.example.org --json
  stele doctor --dns 9.9.9.9`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.doctor(cmd, o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.config, "config", os.Getenv(configVariable), "configuration `file` of the server (environment: STELE_CONFIG)")
	flags.StringVar(&o.backup, "backup", "", "`folder` in which backups are kept")
	flags.StringArrayVar(&o.dns, "dns", nil, "`address` of a name server that answers about the whole DNS; if it has a port, all servers of zones are asked at that port (default: the system's)")
	_ = cmd.RegisterFlagCompletionFunc("config", cobra.FixedCompletions([]string{"toml"}, cobra.ShellCompDirectiveFilterFileExt))
	_ = cmd.RegisterFlagCompletionFunc("backup", completeFolders)
	return neverFiles(cmd)
}

// grade is how good what was found is.
type grade string

const (
	gradeOK      grade = "ok"
	gradeWarning grade = "warning"
	gradeProblem grade = "problem"
)

// finding is what an examination found.
type finding struct {
	Check string `json:"check"` // the name of the examination
	Grade grade  `json:"state"`
	What  string `json:"what"`
	Do    string `json:"do,omitempty"` // what to do about it
}

// examination looks at one thing.
type examination struct {
	name string
	look func(ctx context.Context, x *patient)
}

// examinations are all of them, in the order in which they are made: what is wrong at
// first is often why the rest is.
var examinations = []examination{
	{"configuration", examineConfiguration},
	{"folder", examineFolder},
	{"disk", examineDisk},
	{"descriptors", examineDescriptors},
	{"server", examineServer},
	{"registry", examineRegistry},
	{"clock", examineClock},
	{"certificate", examineCertificate},
	{"redirect", examineRedirect},
	{"zones", examineZones},
	{"delegation", examineDelegations},
	{"tokens", examineTokens},
	{"backup", examineBackup},
}

// examinationTime is how long one may take.
const examinationTime = 30 * time.Second

// doctor is the verb.
func (p *program) doctor(cmd *cobra.Command, o doctorOptions) error {
	x, err := p.newPatient(cmd, o)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	for _, e := range examinations {
		if ctx.Err() != nil {
			return refuse("doctor", stele.Unavailable, "interrupted")
		}
		x.at = e.name
		within, cancel := context.WithTimeout(ctx, examinationTime)
		e.look(within, x)
		cancel()
	}
	switch {
	case x.failed != nil:
		return x.failed
	case x.problems == 1:
		return refuse("doctor", stele.Invalid, "there is 1 problem; it is named above")
	case x.problems > 1:
		return refuse("doctor", stele.Invalid, "there are %d problems; they are named above", x.problems)
	}
	return nil
}

// report prints a finding.
func (x *patient) report(g grade, what, do string) {
	f := finding{x.at, g, what, do}
	if g == gradeProblem {
		x.problems++
	}
	var err error
	if x.json {
		err = x.printObject(f)
	} else {
		line := fmt.Sprintf("%-8s %s: %s", f.Grade, f.Check, f.What)
		if f.Do != "" {
			line += "; " + f.Do
		}
		_, err = fmt.Fprintln(x.stdout, printable(strings.ReplaceAll(line, "\n", " ")))
	}
	if x.failed == nil {
		x.failed = err
	}
}

func (x *patient) ok(format string, args ...any) {
	x.report(gradeOK, fmt.Sprintf(format, args...), "")
}

func (x *patient) warn(do, format string, args ...any) {
	x.report(gradeWarning, fmt.Sprintf(format, args...), do)
}

func (x *patient) problem(do, format string, args ...any) {
	x.report(gradeProblem, fmt.Sprintf(format, args...), do)
}
