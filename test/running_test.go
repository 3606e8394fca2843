package test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// rootPages are the pages with blocks tagged root, whose commands are an
// administrator's, in the order in which they are tried: the bad day comes after the
// first.
var rootPages = []string{"docs/running.md", "docs/bad-day.md"}

// strangers stand for commands of the system that a test can't give: there is no
// systemd to speak to and no other machine to copy to, and users are not made for a test. install and sudo do what they
// are asked to, as the user who runs the test.
var strangers = map[string]string{
	"systemctl": "", "journalctl": "", "timedatectl": "", "useradd": "", "chown": "", "rsync": "",
	"sudo": `case "$1" in
-u) [ "$2" = stele ] || exit 1; shift 2 ;;
esac
exec "$@"`,
	"install": `for arg; do
	shift
	case $arg in -o | -g) skip=1; continue ;; esac
	[ -n "$skip" ] || set -- "$@" "$arg"
	skip=
done
exec /usr/bin/install "$@"`,
}

// TestRootCommands runs the commands that the pages show for root, with folders of
// the test in place of the system's.
func TestRootCommands(t *testing.T) {
	for name := range repositoryFiles(t) {
		if filepath.Ext(name) != ".md" || slices.Contains(rootPages, name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "```root") {
			t.Errorf("%s has commands for root; name it among rootPages", name)
		}
	}
	machine := t.TempDir()
	for _, folder := range []string{"usr/local/bin", "usr/sbin", "etc/systemd/system", "var/lib", "var/log/stele", "bin"} {
		if err := os.MkdirAll(filepath.Join(machine, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, script := range strangers {
		writeFile(t, filepath.Join(machine, "bin", name), "#!/bin/sh\nskip=\n"+script+"\n", 0o755)
	}
	d := newDesk(t)
	d.sh.env = append(d.sh.env, "PATH="+filepath.Join(machine, "bin")+":"+filepath.Join(machine, "usr/local/bin")+":"+os.Getenv("PATH"))
	place := strings.NewReplacer(" /usr/local/", " "+machine+"/usr/local/", " /etc/", " "+machine+"/etc/", " /var/", " "+machine+"/var/")
	for _, name := range rootPages {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		p, err := parsePage(name, string(text))
		if err != nil {
			t.Fatal(err)
		}
		tried := 0
		for _, f := range p.fences {
			if f.tag != "root" {
				continue
			}
			for i, line := range f.body {
				tried++
				if complaint := d.tryRoot(t.Context(), place.Replace(line)); complaint != "" {
					t.Error(p.at(f.first+i, "%q: %s", line, complaint))
				}
			}
		}
		if tried < 5 {
			t.Errorf("%s has %d commands for root", name, tried)
		}
	}
}

// tryRoot runs a command, and returns what is wrong with it. What goes to a server is
// only asked whether it could.
func (d *desk) tryRoot(ctx context.Context, command string) string {
	if strings.Contains(command, " --server ") {
		command += " --help"
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	results, err := d.sh.run(ctx, command)
	switch {
	case err != nil:
		return err.Error()
	case strings.Contains(command, "stele doctor") && results[0].code == 1 && strings.Contains(results[0].out, "ok       configuration: "):
		return "" // there is no server, so there is a problem
	case results[0].code != 0:
		return results[0].out
	}
	return ""
}
