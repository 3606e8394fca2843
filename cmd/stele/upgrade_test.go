package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele/store/postgres/postgrestest"
)

// TestUpgrade opens registries that earlier programs made: all that they had is there, verify
// finds nothing wrong, and minters make no name that was made before.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob(filepath.Join(upgradeFolder, "*-*"))
	if err != nil || len(folders) < 6 {
		t.Fatalf("there are the registries %q, %v", folders, err)
	}
	database := lazyPostgres(t)
	for _, folder := range folders {
		store, _, _ := strings.Cut(filepath.Base(folder), "-")
		t.Run(filepath.Base(folder), func(t *testing.T) {
			u := &upgraded{t: t, folder: folder, store: store}
			if store == "pebble" {
				u.place = []string{"--data", unpacked(t, filepath.Join(folder, "registry.tar.gz"))}
				u.check()
				u.mint()
				return
			}
			u.place = []string{"--store", loaded(t, database(), folder)}
			u.migrate()
			u.check()
			u.mint()
			// The backup of that program is restored, too.
			empty := database().Database(t)
			runStele(t, "store", "migrate", "--store", empty)
			runStele(t, "restore", unpacked(t, filepath.Join(folder, "backup.tar.gz")), "--store", empty, "--accept-tokens")
			u.place, u.restored = []string{"--store", empty}, true
			u.check()
		})
	}
}

// loaded makes a database as an earlier program left it, and returns its URL.
func loaded(t *testing.T, s *postgrestest.Server, folder string) string {
	t.Helper()
	url := s.Database(t)
	s.Exec(t, databaseOf(t, url), string(unzipped(t, filepath.Join(folder, "registry.sql.gz"))))
	return url
}

// upgraded is a registry of an earlier program.
type upgraded struct {
	t      *testing.T
	folder string
	store  string
	place  []string

	restored bool // minters have moved on, as after every restore
}

func (u *upgraded) run(args ...string) string {
	u.t.Helper()
	return runStele(u.t, append(args, u.place...)...)
}

// migrate upgrades a database. A program that finds one of an earlier version refuses it, and
// says what to do.
func (u *upgraded) migrate() {
	u.t.Helper()
	if !strings.HasSuffix(u.folder, fmt.Sprintf("-%d", schemaVersions()[u.store])) {
		out, err := steleCommand(u.t, append([]string{"verify"}, u.place...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), `run "stele store migrate"`) {
			u.t.Errorf("a database of an earlier version: %v\n%s", err, out)
		}
	}
	u.run("store", "migrate")
}

// check compares the registry with what the program that made it said of it.
func (u *upgraded) check() {
	u.t.Helper()
	if out := u.run("verify"); !strings.Contains(out, "all is well") {
		u.t.Errorf("verify: %s", out)
	}
	var status struct{ Schema uint64 }
	if err := json.Unmarshal([]byte(u.run("store", "status", "--json")), &status); err != nil || status.Schema != schemaVersions()[u.store] {
		u.t.Errorf("the registry has version %d, %v", status.Schema, err)
	}
	want := lines(u.t, unzipped(u.t, filepath.Join(u.folder, "listing.jsonl.gz")))
	have := lines(u.t, []byte(u.run("export", "--namespaces", "--history")))
	if len(want) < 40 || len(have) != len(want) {
		u.t.Fatalf("the registry has %d lines, and %d were kept", len(have), len(want))
	}
	for i := range want {
		if object, ok := want[i].(map[string]any); ok && u.restored {
			delete(object, "progress")
		}
		if missing := lacks(have[i], want[i], ""); missing != "" {
			u.t.Errorf("line %d: %s\nwas %v\nis  %v", i+1, missing, want[i], have[i])
		}
	}
}

// lines reads JSON, an object a line.
func lines(t *testing.T, text []byte) (list []any) {
	t.Helper()
	for line := range bytes.Lines(text) {
		var v any
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		list = append(list, v)
	}
	return list
}

// lacks returns what is in want and is not the same in have; "" if nothing is. A later program
// may say more of a record than an earlier one, and never less.
func lacks(have, want any, at string) string {
	switch want := want.(type) {
	case map[string]any:
		object, _ := have.(map[string]any)
		for name := range want {
			if missing := lacks(object[name], want[name], at+"/"+name); missing != "" {
				return missing
			}
		}
		return ""
	case []any:
		list, _ := have.([]any)
		if len(list) != len(want) {
			return fmt.Sprintf("%s has %d members, and had %d", at, len(list), len(want))
		}
		for i := range want {
			if missing := lacks(list[i], want[i], fmt.Sprintf("%s/%d", at, i)); missing != "" {
				return missing
			}
		}
		return ""
	}
	if !reflect.DeepEqual(have, want) {
		return fmt.Sprintf("%s is %v, and was %v", at, have, want)
	}
	return ""
}

// TestLacks: the comparison finds what is lost or changed, and allows what is new.
func TestLacks(t *testing.T) {
	for want, cases := range map[string]map[string]bool{
		`{"id":"a","list":[{"x":1}]}`: {
			`{"id":"a","list":[{"x":1}]}`:               true,
			`{"id":"a","list":[{"x":1,"y":2}],"new":3}`: true,
			`{"id":"a","list":[{"x":2}]}`:               false,
			`{"id":"a","list":[]}`:                      false,
			`{"id":"a","list":[{"x":1},{"x":1}]}`:       false,
			`{"list":[{"x":1}]}`:                        false,
			`[]`:                                        false,
		},
	} {
		for have, same := range cases {
			if got := lacks(lines(t, []byte(have))[0], lines(t, []byte(want))[0], ""); (got == "") != same {
				t.Errorf("%s for %s: %q", have, want, got)
			}
		}
	}
}

// mint makes names with every minter of the registry: the templates go on where they were, and
// no name was made before.
func (u *upgraded) mint() {
	u.t.Helper()
	read := func(name string) []string {
		text, err := os.ReadFile(filepath.Join(u.folder, name))
		if err != nil {
			u.t.Fatal(err)
		}
		return strings.Fields(string(text))
	}
	issued, next := read("issued.txt"), read("next.txt")
	var templates []string
	for _, m := range fixtureMinters {
		made := strings.Fields(u.run(append(append([]string{"mint"}, m.args...), "-n", "5")...))
		if len(made) != 5 {
			u.t.Errorf("mint %q made %q", m.args, made)
		}
		for _, name := range made {
			if slices.Contains(issued, name) {
				u.t.Errorf("%s was made again", name)
			}
		}
		issued = append(issued, made...)
		if m.template {
			templates = append(templates, made...)
		}
	}
	if !slices.Equal(templates, next) {
		u.t.Errorf("the templates made %q; the earlier program would have made %q", templates, next)
	}
	u.run("verify")
}
