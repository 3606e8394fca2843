package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// testSandbox is a sandbox with a small Makefile and a program stele that prints its
// arguments, or fails if the first is "fail".
func testSandbox(t *testing.T) *sandbox {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "Makefile"), ".PHONY: demo test\ndemo test:\n\techo demo\n", 0o600)
	writeFile(t, filepath.Join(dir, "cmd/stele/main.go"), "package main\n", 0o600)
	writeFile(t, filepath.Join(dir, "bin/stele"),
		"#!/bin/sh\nif [ \"$1\" = fail ]; then echo failed >&2; exit 1; fi\n"+
			"if [ \"$1\" = hang ]; then sleep 600; fi\nif [ \"$1\" = mute ]; then exit 3; fi\n"+
			"[ $# -gt 0 ] || cat\nprintf '%s\\n' \"$@\"\n", 0o700)
	return &sandbox{sh: shell{dir: dir, env: []string{"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH")}}, timeout: 20 * time.Second, life: t.Context()}
}

func TestSandbox(t *testing.T) {
	for _, tt := range []struct {
		name string
		text string // ~ stands for the fence
		want string // a part of the complaint; "" for none
	}{
		{"no commands", "text\n\n~go\nfunc f()\n~\n\n    indented code", ""},
		{"right output", "~console\n$ stele a b\na\nb\n~", ""},
		{"wrong output", "~console\n$ stele a b\na\nc\n~", "prints\na\nb\nbut the page shows\na\nc"},
		{"missing output", "~console\n$ stele a\n~", "prints\na"},
		{"output too much", "~console\n$ true\na\n~", "shows\na"},
		{"elided output", "~console\n$ stele a b c\n...\nc\n~", ""},
		{"two commands", "~console\n$ stele a\na\n$ stele b\nb\n~", ""},
		{"second wrong", "~console\n$ stele a\na\n$ stele b\nc\n~", `"stele b" prints`},
		{"shown failure", "~console\n$ stele fail\nfailed\n$ echo $?\n1\n~", ""},
		{"silent failure", "~console\n$ stele mute\n~", "fails silently, with status 3"},
		{"silent failure, shown", "~console\n$ stele mute\n$ echo $?\n3\n~", ""},
		{"no such command", "~console\n$ no-such-command\n~", "not found"},
		{"output first", "~console\nhello\n~", "must begin with a command"},
		{"empty console", "~console\n~", "the block is empty"},
		{"shell exits", "~console\n$ exit\n$ stele a\na\n~", "the shell ended"},
		{"continued", "~console\n$ stele a \\\n> b\na\nb\n~", ""},
		{"page shares a folder", "~console\n$ echo x > f\n~\n\n~console\n$ stele < f\nx\n\n~", ""},
		{"tests within tests", "~console\n$ make test\n~", "tagged sh"},
		{"go test within tests", "~console\n$ cd . && go test ./...\n~", "tagged sh"},
		{"make in a console", "~console\n$ make -s demo\ndemo\n~", ""},

		{"script", "~sh\n# a remark\nstele a  # another\n\nbin/stele b && ./bin/stele c\n~", ""},
		{"script fails", "~sh\nstele a\nstele fail\n~", `"stele fail" fails with status 1`},
		{"script fails after cd", "~sh\ncd x && stele fail\n~", "fails with status 1"},
		{"script fails before a pipe", "~sh\nstele fail | cat\n~", "fails with status 1"},
		{"script hides a failure", "~sh\nstele fail; true\n~", "would go unseen"},
		{"script hides a failure otherwise", "~sh\nstele fail || true\n~", "would go unseen"},
		{"script fails in a pipe", "~sh\necho x | stele fail\n~", "fails with status 1"},
		{"continued script", "~sh\nstele \\\n  fail\n~", "fails with status 1"},
		{"assignment", "~sh\nA=1 B=2 stele fail\n~", "fails with status 1"},
		{"target", "~sh\nmake demo\nmake -j2 X=1 demo test\n~", ""},
		{"no such target", "~sh\nmake dream\n~", "has no target dream"},
		{"second target", "~sh\nmake demo dream\n~", "has no target dream"},
		{"folder is not a target", "~sh\nmake bin\n~", "has no target bin"},
		{"clone", "~sh\ngit clone https://example.org/stele\ncd stele\n~", ""},
		{"install", "~sh\ngo install github.com/stele-id/stele/cmd/stele@latest\n~", ""},
		{"library", "~sh\ngo get github.com/stele-id/stele@latest\n~", ""},
		{"install nothing", "~sh\ngo install github.com/stele-id/stele/cmd/other@latest\n~", "no such file"},
		{"go run", "~sh\ngo build ./cmd/stele\ngo vet ./...\n~", ""},
		{"go run nothing", "~sh\ngo run ./other\n~", "no such file"},
		{"unknown command", "~sh\ncurl https://example.org/\n~", "nobody checks this command"},
		{"prompt in script", "~sh\n$ stele a\n~", "nobody checks this command"},

		{"untagged", "~\n$ ls\n~", "not tagged console or sh"},
		{"untagged stele", "~\nstele explain x\n~", "not tagged console or sh"},
		{"other tag", "~text\nmake demo\n~", "not tagged console or sh"},
		{"bash", "~bash\nls\n~", "tag the block sh or console"},
		{"indented", "text\n\n    $ ls\n", "indented block"},
		{"indented stele", "text\n\n\tstele explain x\n", "indented block"},
		{"list", "- text\n    stele goes on\n", ""},
		{"fence in a list", "- text\n\n  ~console\n  $ stele a\n  b\n  ~", "prints\na"},
		{"usage", "~\nusage: stele VERB\n  stele explain\n~", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := parsePage("page.md", strings.ReplaceAll(tt.text, "~", "```"))
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(testSandbox(t).check(t.Context(), p, false), "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("complaint %q\nwant %q", got, tt.want)
			}
			if got != "" && !strings.HasPrefix(got, "page.md:") {
				t.Errorf("%q does not say where", got)
			}
		})
	}
}

func TestSandboxTimeout(t *testing.T) {
	d := testSandbox(t)
	d.timeout = time.Second
	for _, text := range []string{"```console\n$ stele hang\n```", "```sh\nstele hang\n```"} {
		p, err := parsePage("page.md", text)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.check(t.Context(), p, false); len(got) != 1 || !strings.Contains(got[0], "too long") {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestSandboxUpdate(t *testing.T) {
	const (
		before = "# Page\n```console\n$ stele a b\nold\n$ stele c\n...\n```\n" +
			"- item\n\n  ```console\n  $ stele d\n  ```\n\n```sh\nstele fail\n```\n```console\n$ stele mute\n```\nend\n"
		after = "# Page\n```console\n$ stele a b\na\nb\n$ stele c\n...\n```\n" +
			"- item\n\n  ```console\n  $ stele d\n  d\n  ```\n\n```sh\nstele fail\n```\n```console\n$ stele mute\n```\nend\n"
	)
	p, err := parsePage("page.md", before)
	if err != nil {
		t.Fatal(err)
	}
	complaints := testSandbox(t).check(t.Context(), p, true)
	if got := strings.Join(p.lines, "\n"); got != after {
		t.Errorf("got\n%s\nwant\n%s", got, after)
	}
	// What an update can't mend is still wrong.
	if all := strings.Join(complaints, "\n"); len(complaints) != 2 ||
		!strings.Contains(all, "fails with status 1") || !strings.Contains(all, "fails silently") {
		t.Errorf("complaints %q", complaints)
	}
	p, err = parsePage("page.md", "```console\n$ echo '$ x'\nold\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := testSandbox(t).check(t.Context(), p, true); len(got) == 0 {
		t.Error("output that looks like a prompt was written into the page")
	}
}
