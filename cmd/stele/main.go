// Command stele mints persistent identifiers, keeps what they stand for, and
// resolves them. Run "stele help" for its verbs.
package main

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/secret"
)

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
