package test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele/store/postgres/postgrestest"
)

var update = flag.Bool("update", false, "write what commands print into the console blocks of the documents")

// TestDocuments runs every command that README.md and the other pages show, and
// follows their links.
//
//	```console   "$ command" is run, and must print what stands below it;
//	             a line "..." stands for any lines
//	```sh        "stele ..." is run and must succeed; "make x" must be a target;
//	             what else may stand there is in judgeLine
//	```go        a whole program is compiled and run, and must print what stands
//	             after "// prints "; parts of programs are not looked at
//
// A command in any other block is an error: no shown command goes untested. To
// write new output into the pages: go test ./test -run TestDocuments -update
func TestDocuments(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(filepath.Join(root, "README.md")); err != nil {
		t.Error(err)
	}
	for name := range repositoryFiles(t) {
		if filepath.Ext(name) != ".md" || slices.Contains(strings.Split(name, "/"), "testdata") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if !*update { // files that were written would be copied half for the next page
				t.Parallel()
			}
			text, err := os.ReadFile(filepath.Join(root, name))
			if err != nil {
				t.Fatal(err)
			}
			p, err := parsePage(name, string(text))
			if err != nil {
				t.Fatal(err)
			}
			complaints := p.brokenLinks(root)
			d := new(sandbox) // for pages without commands
			if slices.ContainsFunc(p.fences, func(f fence) bool { return f.tag == "console" || f.tag == "sh" || f.isProgram() }) {
				d = newSandbox(t)
			}
			complaints = append(complaints, d.check(t.Context(), p, *update)...)
			for _, c := range complaints {
				t.Error(c)
			}
			if now := strings.Join(p.lines, "\n"); *update && now != string(text) {
				if err := os.WriteFile(filepath.Join(root, name), []byte(now), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// sandbox runs the commands of a page as a reader does: in a copy of the repository, which
// all blocks of a page share, with stele in the path.
type sandbox struct {
	sh      shell
	timeout time.Duration   // for one block
	life    context.Context // of what blocks leave running
	demo    *demo           // nil if no block spoke to it yet

	database *postgrestest.Server // the same

	// literal says that what pages show is what is: the demo and a database run where the
	// pages say.
	literal bool
}

func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	for name, d := range repositoryFiles(t) {
		info, err := d.Info()
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, name), string(text), info.Mode().Perm())
	}
	program := filepath.Join(dir, "bin/stele")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := copyExecutable(stele(t), program); err != nil {
		t.Fatal(err)
	}

	env := []string{
		"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"),
		"HOME=" + home, "LC_ALL=C.UTF-8", "TZ=UTC", "TERM=dumb",
	}
	// Go's own folders stand below HOME; those of this run are filled already.
	out, err := runIn(root, "go", "env", "GOCACHE", "GOMODCACHE", "GOPATH")
	if err != nil {
		t.Fatal(err)
	}
	dirs := strings.Fields(string(out))
	for i, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		env = append(env, name+"="+dirs[i])
	}
	d := &sandbox{sh: shell{dir: dir, env: env}, timeout: 2 * time.Minute, life: t.Context()}
	t.Cleanup(func() {
		if err := errors.Join(d.endDemo(), d.endDatabase()); err != nil {
			t.Error(err)
		}
	})
	return d
}

func writeFile(t testing.TB, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

var (
	// shownCommand is a line of a block that a reader takes for a command.
	shownCommand = regexp.MustCompile(`^(\$ |(\./)?(bin/)?stele |make [a-z])`)
	// indented is the same in a block made by indentation.
	indented = regexp.MustCompile(`^(    |\t)\s*(\$ |(\./)?(bin/)?stele [a-z]|make [a-z])`)
)

// check tries all blocks of a page, in order. With update, it writes what was
// printed into the page instead of complaining that it is not what is shown.
func (d *sandbox) check(ctx context.Context, p *page, update bool) (complaints []string) {
	for _, i := range p.prose {
		if indented.MatchString(p.lines[i]) && i > 0 && p.lines[i-1] == "" {
			complaints = append(complaints, p.at(i, "a command in an indented block; use a fence, tagged console or sh"))
		}
	}
	bodies := make([][]string, len(p.fences))
	for i, f := range p.fences {
		var found []string
		bodies[i] = f.body
		switch {
		case f.tag == "console":
			bodies[i], found = d.console(ctx, p, f)
		case f.tag == "sh":
			found = d.script(ctx, p, f)
		case f.isProgram():
			found = d.program(ctx, p, f)
		case f.tag == "root": // TestMachine runs these
		case slices.Contains([]string{"bash", "shell", "zsh", "shellsession", "terminal"}, f.tag):
			found = []string{p.at(f.first-1, "tag the block sh or console, not %s", f.tag)}
		default:
			for j, line := range f.body {
				if shownCommand.MatchString(line) {
					found = append(found, p.at(f.first+j, "a command in a block that is not tagged console or sh: %q", line))
				}
			}
		}
		if update && !slices.Equal(bodies[i], f.body) {
			found = nil
		}
		complaints = append(complaints, found...)
	}
	for i, f := range slices.Backward(p.fences) {
		if update && !slices.Equal(bodies[i], f.body) {
			p.replace(f, bodies[i])
		}
	}
	return complaints
}

// isProgram reports whether a block is a whole program in Go.
func (f fence) isProgram() bool { return f.tag == "go" && slices.Contains(f.body, "package main") }

// prints finds in a program what it says that it prints.
var prints = regexp.MustCompile(`(?m)// prints (.*)$`)

// program compiles and runs a program that a page shows, in the module of the sandbox.
func (d *sandbox) program(ctx context.Context, p *page, f fence) (complaints []string) {
	text := strings.Join(f.body, "\n") + "\n"
	folder, err := os.MkdirTemp(d.sh.dir, "example")
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "main.go"), []byte(text), 0o600)
	}
	if err != nil {
		return []string{p.at(f.first, "%v", err)}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute) // a busy machine may have to compile packages
	defer cancel()
	// With the flags of stele, so that the compiler works once for both.
	results, err := d.sh.run(ctx, "CGO_ENABLED=0 go run -trimpath -buildvcs=false ./"+quote(filepath.Base(folder)))
	if err != nil {
		return []string{p.at(f.first, "%v", err)}
	}
	var want []string
	for _, m := range prints.FindAllStringSubmatch(text, -1) {
		want = append(want, m[1])
	}
	if got := results[0].lines(); results[0].code != 0 || !slices.Equal(got, want) {
		complaints = append(complaints, p.at(f.first, "the program ends with status %d and prints\n%s\nbut the page says\n%s", results[0].code, strings.Join(got, "\n"), strings.Join(want, "\n")))
	}
	return complaints
}

// dnsAddress is the address of the DNS in a command.
var dnsAddress = regexp.MustCompile(` --dns \S+`)

// recursive matches commands that would run the tests from within the tests, or
// that run for long.
var recursive = regexp.MustCompile(`\b(make\s+(test|lint|bench|fuzz|soak|cover)|go\s+test)\b`)

// console runs the commands of a console block and compares what they print. It
// returns the block as it should be.
func (d *sandbox) console(ctx context.Context, p *page, f fence) (body, complaints []string) {
	all, err := steps(f.body)
	if err != nil {
		return f.body, []string{p.at(f.first, "%v", err)}
	}
	commands := make([]string, len(all))
	for i, s := range all {
		commands[i] = s.command
		if recursive.MatchString(s.command) {
			return f.body, []string{p.at(f.first, "%q can't run here; show it in a block tagged sh", s.command)}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	results, err := d.runShown(ctx, commands)
	if err != nil {
		return f.body, []string{p.at(f.first, "%v", err)}
	}
	for i, s := range all {
		got := d.athome(results[i].lines())
		if matches(s.want, got) {
			body = append(append(body, s.shown...), s.want...)
		} else {
			body = append(append(body, s.shown...), got...)
			complaints = append(complaints, p.at(f.first, "%q prints\n%s\nbut the page shows\n%s",
				s.command, strings.Join(got, "\n"), strings.Join(s.want, "\n")))
		}
		// A reader must see that it fails: by a message, or by what comes next.
		if results[i].code != 0 && got == nil && (i+1 == len(all) || !strings.Contains(all[i+1].command, "$?")) {
			complaints = append(complaints, p.at(f.first, "%q fails silently, with status %d", s.command, results[i].code))
		}
	}
	// What is printed may read as a prompt; then the block can't show it.
	if again, err := steps(body); err != nil || len(again) != len(all) {
		return f.body, append(complaints, p.at(f.first, "the output can't be told from commands"))
	}
	return body, complaints
}

// readerHome is where pages show the reader to sit.
const readerHome = "/srv/ana"

// requestID is an id of a request in an answer, and shownID what pages show instead.
var requestID = regexp.MustCompile(`("request":"|X-Request-Id: )[0-9a-f]{16}`)

const shownID = "${1}4bf92f3577b34da6"

// athome writes the folder of the sandbox, and ids of requests, which are others each time, as pages show them.
func (d *sandbox) athome(lines []string) []string {
	for i, line := range lines {
		lines[i] = requestID.ReplaceAllString(strings.ReplaceAll(line, d.sh.dir, readerHome), shownID)
	}
	return lines
}

// script checks a block tagged sh and runs what is stele's.
func (d *sandbox) script(ctx context.Context, p *page, f fence) (complaints []string) {
	var commands []string
	line := ""
	for i, next := range f.body {
		if more, ok := strings.CutSuffix(next, "\\"); ok && i+1 < len(f.body) {
			line += more + " "
			continue
		}
		line += next
		ours, err := d.judgeLine(ctx, line)
		if err != nil {
			complaints = append(complaints, p.at(f.first+i, "%q: %v", line, err))
		}
		commands = append(commands, ours...)
		line = ""
	}
	if commands == nil {
		return complaints
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	commands = append([]string{"set -o pipefail"}, commands...)
	results, err := d.sh.run(ctx, commands...)
	if err != nil {
		return append(complaints, p.at(f.first, "%v", err))
	}
	for i, r := range results {
		if r.code != 0 {
			complaints = append(complaints, p.at(f.first, "%q fails with status %d:\n%s", commands[i], r.code, r.out))
		}
	}
	return complaints
}

var (
	comment    = regexp.MustCompile(`(^|\s)#.*$`)
	callsStele = regexp.MustCompile(`(^|\|\s*)(\./)?(bin/)?stele(\s|$)`)
	serves     = regexp.MustCompile(`^(\./)?(bin/)?stele serve( |$)`)
	assignment = regexp.MustCompile(`^[A-Z_]+=\S*\s+`)
	ourModule  = regexp.MustCompile(`^` + regexp.QuoteMeta(module) + `(/[^@\s]+)?@\S+$`)
)

// judgeLine checks a line of a block tagged sh. It returns what of it is to be
// run. An error says that the line is wrong, or that it can't be checked.
func (d sandbox) judgeLine(ctx context.Context, line string) (run []string, err error) {
	for command := range strings.SplitSeq(comment.ReplaceAllString(line, ""), "&&") {
		command = strings.TrimSpace(command)
		bare := command
		for assignment.MatchString(bare) {
			bare = assignment.ReplaceAllString(bare, "")
		}
		words := strings.Fields(bare)
		switch {
		case len(words) == 0, words[0] == "cd", strings.HasPrefix(bare, "git clone "):
		case d.literal && (words[0] == "make" || words[0] == "go"): // that machine runs what is built
		case strings.Contains(bare, ";") || strings.Contains(bare, "||"):
			err = errors.New("a failure would go unseen; write one command a line")
		case serves.MatchString(bare):
			// The test sends it SIGTERM, and it must exit with success. Without --foreground timeout sends the
			// signal twice, and a second one ends the server before all requests are answered.
			command = dnsAddress.ReplaceAllString(command, " --dns 127.0.0.1:0") // a second one would be one more
			run = append(run, "timeout --foreground --preserve-status -s TERM 2 "+command+" --http 127.0.0.1:0")
		case callsStele.MatchString(bare):
			run = append(run, command)
		case words[0] == "make":
			err = d.judgeMake(ctx, words[1:])
		case words[0] == "go" && len(words) == 3 && (words[1] == "install" || words[1] == "get") && ourModule.MatchString(words[2]):
			err = d.judgeFolder("." + ourModule.FindStringSubmatch(words[2])[1])
		case words[0] == "go" && strings.HasPrefix(words[len(words)-1], "./"):
			err = d.judgeFolder(strings.TrimSuffix(words[len(words)-1], "/..."))
		default:
			err = fmt.Errorf("nobody checks this command; show it in a console block, or teach judgeLine")
		}
		if err != nil {
			return nil, err
		}
	}
	return run, nil
}

func (d sandbox) judgeFolder(name string) error {
	info, err := os.Stat(filepath.Join(d.sh.dir, name))
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder", name)
	}
	return err
}

var nothingToDo = regexp.MustCompile(`(?m)^make(\[\d+\])?: .*(Nothing to be done|is up to date)`)

// judgeMake fails if make knows nothing to do for the targets among the words.
func (d sandbox) judgeMake(ctx context.Context, words []string) error {
	for _, target := range words {
		if strings.HasPrefix(target, "-") || strings.Contains(target, "=") {
			continue
		}
		results, err := d.sh.run(ctx, "LC_ALL=C make -n -- "+quote(target))
		if err != nil {
			return err
		}
		// A file or folder of that name satisfies make, but not the reader.
		if r := results[0]; r.code != 0 || nothingToDo.MatchString(r.out) {
			return fmt.Errorf("the Makefile has no target %s:\n%s", target, r.out)
		}
	}
	return nil
}
