package hdl

import (
	"testing"
	"time"
)

// A handle whose local name is a PILIN suffix has its date.
func TestNameDate(t *testing.T) {
	s := New(time.Now)
	for text, want := range map[string]string{
		"102.100.272/Y35XYS0QH":     "2007-05-25T03:49:52.865Z",
		"hdl:tal.x/y35xys0qh":       "2007-05-25T03:49:52.865Z",
		"102.100.272/short":         "",
		"10.1000/182":               "",
		"102.100.272/Y35XYS0QH/new": "",
	} {
		id, err := s.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := s.NameDate(id)
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%s: %s, %t; want %q", text, got, ok, want)
		}
	}
}
