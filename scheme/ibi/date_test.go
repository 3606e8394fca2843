package ibi_test

import (
	"testing"
	"time"

	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/scheme/ibi"
)

// A label's date is the one of which it was made, in both forms.
func TestNameDate(t *testing.T) {
	s := ibi.New(time.Now)
	for text, want := range map[string]string{
		"sid.inpe.br/mtc-m21d/2022/07.20.15.45": "2022-07-20T15:45:00Z",
		"8JMKD3MGP8W/34PGRBS":                   "2009-02-16T17:46:00Z",
	} {
		id, err := s.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := s.NameDate(id); !ok || got.String() != want {
			t.Errorf("%s: %s, %t; want %s", text, got, ok, want)
		}
	}
	d, err := mint.NewDate(1_900_000_000, 123_456_000_000_000_000)
	if err != nil {
		t.Fatal(err)
	}
	p, err := ibi.RepPrefix("mtc-m18.sid.inpe.br", 80)
	if err != nil {
		t.Fatal(err)
	}
	id, err := p.ID(d)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := s.NameDate(id); !ok || got != d {
		t.Errorf("%s: %s, %t; want %s", id, got, ok, d)
	}
}
