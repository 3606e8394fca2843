package auth

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
)

func TestIsName(t *testing.T) {
	for _, name := range []string{"a", "0", "ann", "ann.lee", "ann_lee@example.org", "a-b", strings.Repeat("a", 64)} {
		if !IsName(name) {
			t.Errorf("%q is refused", name)
		}
	}
	for _, name := range []string{"", ".", "-a", "@a", "_a", "Ann", "ann lee", "ann:x", "a/b", "a\x00", "é", "user:ann", "a\n", strings.Repeat("a", 65)} {
		if IsName(name) {
			t.Errorf("%q is a name", name)
		}
	}
}

func TestValidate(t *testing.T) {
	many := make([]string, MaxGroups+1)
	for i := range many {
		many[i] = strings.Repeat("a", i%60+1)
	}
	for _, tt := range []struct {
		name  string
		v     interface{ Validate() error }
		paths string
	}{
		{"a user", &User{Name: "ann", Groups: []string{"a", "b"}}, ""},
		{"no name", &User{}, "name"},
		{"a name of ours", &User{Name: "local"}, "name"},
		{"wrong groups", &User{Name: "A", Groups: []string{"a", "B", "a", ""}}, "name groups[1] groups[2] groups[3]"},
		{"too many groups", &User{Name: "a", Groups: many}, "groups"},
		{"a token", &Token{Label: "laptop of Ann, büro"}, ""},
		{"a long label", &Token{Label: strings.Repeat("x", MaxLabel+1)}, "label"},
		{"a label of two lines", &Token{Label: "a\nb"}, "label"},
		{"a label that is not a text", &Token{Label: "a\xff"}, "label"},
		{"a year too far", &Token{Expires: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, "expires"},
	} {
		err := tt.v.Validate()
		var paths []string
		if problems, ok := errors.AsType[stele.Problems](err); ok {
			for _, p := range problems {
				paths = append(paths, p.Path)
			}
		}
		if got := strings.Join(paths, " "); got != tt.paths || (err == nil) != (tt.paths == "") || err != nil && stele.KindOf(err) != stele.Invalid {
			t.Errorf("%s: %v, want problems of %q", tt.name, err, tt.paths)
		}
	}
}

func TestCells(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	u := User{Name: "ann", Groups: []string{"a", "b"}, Admin: true, Disabled: true, Created: at, Modified: at, By: "root"}
	cell, err := u.Cell()
	if err != nil || cell.Name != "user ann" {
		t.Fatalf("%q, %v", cell.Name, err)
	}
	again, err := ReadUser(cell)
	if diff := cmp.Diff(u, again); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	token := Token{ID: "000000000000", User: "ann", Label: "x", Hash: []byte{1, 2}, Created: at, Expires: at, Revoked: at, LastUse: at, By: "ann"}
	if cell, err = token.Cell(); err != nil || cell.Name != "token 000000000000" {
		t.Fatalf("%q, %v", cell.Name, err)
	}
	back, err := ReadToken(cell)
	token.LastUse = time.Time{} // is kept elsewhere
	if diff := cmp.Diff(token, back); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}
