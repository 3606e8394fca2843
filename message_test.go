package stele_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stele-id/stele"
)

func TestMessage(t *testing.T) {
	for _, c := range []struct {
		m    *stele.Message
		want string
	}{
		{stele.Messagef("a.b", "plain"), "plain"},
		{stele.Messagef("a.b", "{x} and {y}", "1", 2), "1 and 2"},
		{stele.Messagef("a.b", "{x", "1"), "{x"},
		{stele.Messagef("a.b", "{} {Z} {x}", "{y}"), "{} {Z} {y}"},
		{stele.Messagef("a.b", `"{x}"`, "a\nb\x1b[31m\u202e"), `"a\nb\x1b[31m\u202e"`},
		{stele.Messagef("a.b", "{x}", strings.Repeat("ä", 600)), strings.Repeat("ä", 500) + "..."},
		{stele.Messagef("a.b", "{x} {y} {x}", "1"), "1 {y} 1"},
		{stele.ReceivedMessage("a.b", "{x} stays", []stele.Param{{Name: "x", Value: "1"}}), "{x} stays"},
	} {
		if got := c.m.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestMessageIsBounded makes sure that a message does not hold what a client sent, however much it is.
func TestMessageIsBounded(t *testing.T) {
	long := strings.Repeat("ä", 1<<20)
	m := stele.Messagef("a.b", "{x} {y} {cause}", long, []byte(long), errors.New(long)).With("z", long)
	for i, most := range []int{500, 500, 10_000, 500} {
		if n := utf8.RuneCountInString(m.Params[i].Value); n > most+len("...") {
			t.Errorf("parameter %s has %d characters", m.Params[i].Name, n)
		}
	}
}

func TestTranslate(t *testing.T) {
	inner := stele.Messagef("a.b", "no {thing}", "door")
	m := stele.Messagef("a.c", "{place}: {cause}", "here", inner)
	portuguese := func(err error) string {
		if m, ok := errors.AsType[*stele.Message](err); ok && m.Code == "a.b" {
			return m.Translate("sem {thing}", nil)
		}
		return err.Error()
	}
	if got, want := m.Translate("{cause}, em {place}", portuguese), "sem door, em here"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := m.Translate("", portuguese), "here: sem door"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCodeOf(t *testing.T) {
	m := stele.Messagef("target.host", "not to {host}", "a.example").Because(io.EOF)
	err := fmt.Errorf("import: %w", &stele.Error{Op: "register", Kind: stele.Invalid, Err: stele.Problems{{Path: "url", Err: m}}})
	code, params := stele.CodeOf(err)
	if code != "target.host" || len(params) != 1 || params[0] != (stele.Param{Name: "host", Value: "a.example"}) {
		t.Errorf("CodeOf = %q, %v", code, params)
	}
	if !errors.Is(err, io.EOF) {
		t.Error("the cause is lost")
	}
	if code, params := stele.CodeOf(io.EOF); code != "" || params != nil {
		t.Errorf("CodeOf(EOF) = %q, %v", code, params)
	}
}
