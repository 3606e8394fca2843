// Command stele mints persistent identifiers, keeps what they stand for, and
// resolves them. Run "stele help" for its verbs.
package main

import (
	"context"
	"io"
	"os"
	"time"
)

// version is set when the program is built: -ldflags "-X main.version=...".
var version = "unversioned"

func main() {
	p := program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, now: time.Now}
	os.Exit(p.run(context.Background(), os.Args[1:]))
}

// program is what the verbs have of the world. All of it is here, so that tests
// run the real program in a world of their own.
type program struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	now    func() time.Time
	json   bool // --json
}
