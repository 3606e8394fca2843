package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stele-id/stele/cmd/stele/manual"
)

var update = flag.Bool("update", false, "write the pages about commands anew")

// The pages in docs/reference say what the help texts say.
func TestReference(t *testing.T) {
	plainEnvironment(t)
	p := &program{stdout: new(bytes.Buffer), stderr: new(bytes.Buffer), now: time.Now}
	root := p.rootCommand()
	pages := make(map[string]*bytes.Buffer)
	index := bytes.NewBufferString("# Commands\n\n" +
		"These pages say what `stele help` and the manual pages say. They are made from the program: `go test ./cmd/stele -run TestReference -update`\n" +
		"writes them, and a test compares them.\n\n")
	manual.MarkdownText(index, root.Long)
	index.WriteString("## Options of all commands\n\n")
	manual.MarkdownOptions(index, root, true)
	for _, g := range root.Groups() {
		name := "cli-" + g.ID + ".md"
		b := bytes.NewBufferString("# " + g.Title + "\n\nA part of [all commands](cli.md), which has the options of all of them.\n")
		fmt.Fprintf(index, "## %s\n\n| command | what it does |\n|---|---|\n", g.Title)
		for _, c := range root.Commands() {
			if c.GroupID == g.ID && c.IsAvailableCommand() {
				manual.Markdown(b, c, 2)
				fmt.Fprintf(index, "| [`%s`](%s#%s) | %s |\n", c.Name(), name, "stele-"+c.Name(), c.Short)
			}
		}
		index.WriteByte('\n')
		pages[name] = b
	}
	pages["cli.md"] = index
	for name, b := range pages {
		file := filepath.Join("../../docs/reference", name)
		want := append(bytes.TrimRight(b.Bytes(), "\n"), '\n')
		if *update {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the program says (%v); run go test ./cmd/stele -run TestReference -update", file, err)
		}
	}
}
