// Command stele mints persistent identifiers, keeps what they stand for, and
// resolves them. Run "stele help" for its verbs.
package main

import (
	"cmp"
	"context"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/secret"
)

// version is set by `make build`: -ldflags "-X main.version=...", which asks for a variable
// without a value.
var version string

// programVersion returns the version that the program was built with, or else what the go command
// noted in it.
func programVersion() string {
	if version != "" {
		return version
	}
	return builtVersion(debug.ReadBuildInfo())
}

// builtVersion returns the version of the module, which `go install` of a release notes, or
// else the commit.
func builtVersion(info *debug.BuildInfo, ok bool) string {
	if !ok {
		return "unversioned"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	var commit, changed string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "-dirty"
		}
	}
	return cmp.Or(commit, "unversioned") + changed
}

func main() {
	p := program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, now: time.Now, machineConfig: "/etc/stele/stele.toml", config: all.Config{Now: time.Now}}
	os.Exit(p.run(context.Background(), os.Args[1:]))
}

// program has all that the verbs use of the system, so that tests run the real program
// with their own.
type program struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	now    func() time.Time

	// machineConfig is the configuration file of the server of this machine, where the
	// documents put it; "" if there is none to look at.
	machineConfig string

	brief    bool           // the registry is closed after the verb
	create   bool           // make a registry if there is none; see creating
	rehearse bool           // the verb has --dry-run: make no registry
	block    int            // how many names of a template are reserved at a time; 0: as a server does
	notify   *outbound.Rule // where secondaries may be told of changes; nil: everywhere
	transfer *outbound.Rule // from where they may transfer zones

	acceptTokens bool    // where a restore finds no registry that knows which were revoked
	serialFloor  *uint32 // serial that restored zones must be above; nil if it was not given
	askAllow     string  // --notify-allow of verbs that ask secondaries

	// What flags of all verbs set.
	json   bool // --json
	remote remoteFlags
	data   string     // --data
	named  bool       // the folder is named by a flag or by the environment
	store  string     // --store; "" for the folder
	config all.Config // --purl-host, --checked

	secretFile string       // --secret-key-file
	secrets    *secret.Ring // the keys there, or wherever they come from
}
