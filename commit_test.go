package stele_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// TestCommitCheck: what no store may take, whatever it has.
func TestCommitCheck(t *testing.T) {
	id := func(text string) stele.ID {
		made, err := stele.NewID("ark", "ark:12345/"+text)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	rec := func(text string, aliases ...stele.ID) *stele.Record {
		return &stele.Record{ID: id(text), Aliases: aliases, Version: 1}
	}
	var many []*stele.Record
	var aliases []stele.ID
	for i := range 100 {
		many = append(many, rec(fmt.Sprint("many", i)))
		aliases = append(aliases, id(fmt.Sprint("alias", i)))
	}
	many, aliases = slices.Clip(many), slices.Clip(aliases) // what is appended to them is not shared
	space := &stele.Namespace{Scheme: "ark", Version: 1}
	minter := stele.MinterState{Name: "m", After: []byte{}}
	cell := stele.CellChange{Name: "c"}
	for name, tt := range map[string]struct {
		commit stele.Commit
		want   string // "" if it is well
	}{
		"nothing":                {stele.Commit{}, ""},
		"one of each":            {stele.Commit{Records: []*stele.Record{rec("a", id("b"))}, Namespaces: []*stele.Namespace{space}, Minters: []stele.MinterState{minter}, Cells: []stele.CellChange{cell}}, ""},
		"many":                   {stele.Commit{Records: append(many, rec("a", aliases...))}, ""},
		"a record that is nil":   {stele.Commit{Records: []*stele.Record{nil}}, "nil"},
		"one without name":       {stele.Commit{Records: []*stele.Record{{Version: 1}}}, "no identifier"},
		"version 0":              {stele.Commit{Records: []*stele.Record{{ID: id("a")}}}, "version is 0"},
		"an empty alias":         {stele.Commit{Records: []*stele.Record{rec("a", stele.ID{})}}, "can't be kept"},
		"its own alias":          {stele.Commit{Records: []*stele.Record{rec("a", id("a"))}}, "its own name"},
		"an alias twice":         {stele.Commit{Records: []*stele.Record{rec("a", id("b"), id("b"))}}, "twice"},
		"an alias twice of many": {stele.Commit{Records: []*stele.Record{rec("a", append(aliases, aliases[7])...)}}, "twice"},
		"a record twice":         {stele.Commit{Records: []*stele.Record{rec("a"), rec("a")}}, "twice"},
		"a record twice of many": {stele.Commit{Records: append(many, many[50])}, "twice"},
		"no namespace":           {stele.Commit{Namespaces: []*stele.Namespace{nil}}, "no scheme"},
		"a namespace twice":      {stele.Commit{Namespaces: []*stele.Namespace{space, space}}, "twice"},
		"version 0 of one":       {stele.Commit{Namespaces: []*stele.Namespace{{Scheme: "ark"}}}, "version 0"},
		"a scheme with a zero":   {stele.Commit{Namespaces: []*stele.Namespace{{Scheme: "a\x00", Version: 1}}}, "zero byte"},
		"a long prefix":          {stele.Commit{Namespaces: []*stele.Namespace{{Scheme: "a", Prefix: strings.Repeat("a", stele.MaxKeptName), Version: 1}}}, "shorten"},
		"a minter twice":         {stele.Commit{Minters: []stele.MinterState{minter, minter}}, "twice"},
		"no state":               {stele.Commit{Minters: []stele.MinterState{{Name: "m"}}}, "never removed"},
		"a minter's long name":   {stele.Commit{Minters: []stele.MinterState{{Name: strings.Repeat("m", stele.MaxKeptName+1), After: []byte{}}}}, "more than"},
		"a cell twice":           {stele.Commit{Cells: []stele.CellChange{cell, cell}}, "twice"},
		"a cell without name":    {stele.Commit{Cells: []stele.CellChange{{}}}, "no name"},
		"a cell's long name":     {stele.Commit{Cells: []stele.CellChange{{Name: strings.Repeat("c", stele.MaxCellName+1)}}}, "shorten"},
		"a large cell":           {stele.Commit{Cells: []stele.CellChange{{Name: "c", After: make([]byte, stele.MaxCell+1)}}}, "at most"},
		"a replay of nothing":    {stele.Commit{Replay: []stele.Change{{Seq: 1}}}, "replayed"},
		"a replay of another":    {stele.Commit{Records: []*stele.Record{rec("a")}, Replay: []stele.Change{{Seq: 1, ID: id("b"), Version: 1}}}, "replayed"},
	} {
		err := tt.commit.Check()
		if (err != nil) != (tt.want != "") || err != nil && (stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if err := (&stele.Record{ID: id("a"), Version: 2}).CheckFirst(); stele.KindOf(err) != stele.Invalid {
		t.Errorf("a second version is taken for a first: %v", err)
	}
}
