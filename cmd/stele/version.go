package main

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele/cmd/stele/usage"
)

// release is the version of this source. The Makefile reads it here, and TestVersions compares
// it with CHANGELOG.md.
const release = "v1.0.0"

// linkedVersion and linkedCommit are set by `make build` and `make packages`: -ldflags
// "-X main.linkedVersion=...", which needs variables without a value. A program that `go build` made
// has none; about returns what is known.
var linkedVersion, linkedCommit string

// build says what the program is, and what it was built from and for.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"` // "" if it is not known
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// about describes this program.
func about() build {
	b := builtFrom(debug.ReadBuildInfo())
	return build{
		Version:  cmp.Or(linkedVersion, b.Version),
		Commit:   cmp.Or(linkedCommit, b.Commit),
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// builtFrom returns the version and the commit that the go command noted. `go install` of a
// release notes the version of the module. In a clone without tags the go command makes a version
// up that is older than all releases; the version of the source says more.
func builtFrom(info *debug.BuildInfo, ok bool) build {
	b := build{Version: release}
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" && !strings.HasPrefix(v, "v0.0.0-") {
		b.Version = v
	}
	changed := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Commit = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "-dirty"
		}
	}
	if b.Commit != "" {
		b.Commit += changed
	}
	return b
}

func (p *program) versionCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "version",
		Short: "Print the version of the program",
		Long: `Version prints the version of the program, the commit that it was built from (if that is known), the
version of Go that built it, and the system that it is for. --version prints the first line only.`,
		Example: "  stele version\n  stele version --json",
		Args:    usage.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			b := about()
			if p.json {
				return p.printObject(b)
			}
			if err := p.say("stele version %s\n", b.Version); err != nil {
				return err
			}
			if b.Commit != "" {
				if err := p.say("commit    %s\n", b.Commit); err != nil {
					return err
				}
			}
			return p.say("go        %s\nplatform  %s\n", b.Go, b.Platform)
		},
	})
}
