package stele_test

import (
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

func TestHeirProblems(t *testing.T) {
	good := stele.Heir{Registry: "heir.example.org/.log", Address: "https://heir.example.org/", Days: 180}
	for path, change := range map[string]func(n *stele.Namespace){
		"":                  func(n *stele.Namespace) {},
		"heirs[0].registry": func(n *stele.Namespace) { n.Heirs[0].Registry = "two\nlines" },
		"heirs[0].address":  func(n *stele.Namespace) { n.Heirs[0].Address = "https://heir.example.org/?id=" },
		"heirs[0].days":     func(n *stele.Namespace) { n.Heirs[0].Days = stele.MinHeirDays - 1 },
		"heirs[1].days":     func(n *stele.Namespace) { n.Heirs[1].Days = stele.MaxHeirDays + 1 },
		"heirs[1].registry": func(n *stele.Namespace) { n.Heirs[1].Registry = n.Heirs[0].Registry },
		"heirs":             func(n *stele.Namespace) { n.Heirs = make([]stele.Heir, stele.MaxHeirs+1) },
	} {
		second := good
		second.Registry = "b"
		n := stele.Namespace{Scheme: "ark", Prefix: "ark:1/", Heirs: []stele.Heir{good, second}}
		change(&n)
		err := n.Validate()
		if path == "" && err != nil || path != "" && (stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), path)) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A namespace without heirs of its own has those of the one above it, and one with heirs has these alone.
func TestHeirsOf(t *testing.T) {
	above := &stele.Namespace{Heirs: []stele.Heir{{Registry: "a"}, {Registry: "b"}}}
	own := &stele.Namespace{Heirs: []stele.Heir{{Registry: "c"}}}
	bare := &stele.Namespace{}
	if got := stele.HeirsOf(bare, above, own); len(got) != 2 || got[0].Registry != "a" {
		t.Errorf("inherited: %+v", got)
	}
	if got := stele.HeirsOf(own, above); len(got) != 1 || got[0].Registry != "c" {
		t.Errorf("own: %+v", got)
	}
	if got := stele.HeirsOf(bare, bare); got != nil {
		t.Errorf("none: %+v", got)
	}
	if above.SameHeirs(own) || above.Equal(bare) {
		t.Error("heirs do not count when namespaces are compared")
	}
}
