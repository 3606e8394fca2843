package stele_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

func TestHandOver(t *testing.T) {
	ns := stele.Namespace{Scheme: "ark", Prefix: "ark:1/", Delegate: "https://other.example.org/{rest}"}
	h := stele.HandOver{State: stele.Offered, Heir: "heir.example.org/.log", Address: "https://heir.example.org/"}
	for _, c := range []struct {
		state  stele.HandOverState
		sealed bool
		at     string
	}{
		{stele.Offered, false, ns.Delegate},
		{stele.Sealed, true, ns.Delegate},
		{stele.Forwarded, true, "https://heir.example.org/{id}"},
	} {
		ns.HandOver = h
		ns.HandOver.State = c.state
		if err := ns.Validate(); err != nil {
			t.Errorf("%s: %v", c.state, err)
		}
		if ns.IsSealed() != c.sealed || ns.AnsweredAt() != c.at {
			t.Errorf("%s: sealed %v, answered at %q", c.state, ns.IsSealed(), ns.AnsweredAt())
		}
	}
	if ns.IsRead() {
		t.Error("a namespace that was never adopted is for reading only")
	}
	ns.Adoptions = []stele.Adoption{{From: "g", Bundle: strings.Repeat("0f", 32), Reading: true}}
	if !ns.IsRead() {
		t.Error("a namespace that was adopted for reading is not for reading only")
	}
	ns.Adoptions = append(ns.Adoptions, stele.Adoption{From: "g", Bundle: strings.Repeat("0f", 32)})
	if err := ns.Validate(); ns.IsRead() || err != nil {
		t.Errorf("a namespace that was adopted after that is for reading only, or not valid: %v", err)
	}
}

// A namespace is silent until all of it is adopted and its giver has not ended.
func TestIsSilent(t *testing.T) {
	one := stele.Adoption{From: "g", Bundle: strings.Repeat("0f", 32)}
	for _, c := range []struct {
		change func(a *stele.Adoption)
		want   bool
	}{
		{func(a *stele.Adoption) {}, false},
		{func(a *stele.Adoption) { a.Silent = true }, true},
		{func(a *stele.Adoption) { a.Silent, a.Reading = true, true }, false},
		{func(a *stele.Adoption) { a.Silent, a.Ended = true, time.Unix(2e9, 0) }, false},
	} {
		a := one
		c.change(&a)
		n := stele.Namespace{Scheme: "ark", Prefix: "ark:1/", Adoptions: []stele.Adoption{one, a}}
		if n.IsSilent() != c.want || n.Validate() != nil {
			t.Errorf("%+v: %v, %v", a, n.IsSilent(), n.Validate())
		}
		if n.SameHandOver(&stele.Namespace{Adoptions: []stele.Adoption{one, one}}) != (a == one) {
			t.Errorf("%+v is the same as one that is not silent", a)
		}
	}
}

func TestHandOverProblems(t *testing.T) {
	good := stele.HandOver{State: stele.Sealed, Heir: "heir.example.org/.log", Address: "https://heir.example.org/"}
	for path, change := range map[string]func(n *stele.Namespace){
		"handOver.state":    func(n *stele.Namespace) { n.HandOver.State = "given" },
		"handOver.heir":     func(n *stele.Namespace) { n.HandOver.Heir = "two\nlines" },
		"handOver.address":  func(n *stele.Namespace) { n.HandOver.Address = "https://heir.example.org/?id=" },
		"adoptions[0].from": func(n *stele.Namespace) { n.Adoptions = []stele.Adoption{{Bundle: strings.Repeat("0f", 32)}} },
		"adoptions[0].bundle": func(n *stele.Namespace) {
			n.Adoptions = []stele.Adoption{{From: "g", Bundle: strings.Repeat("0F", 32)}}
		},
		"adoptions[0].ended": func(n *stele.Namespace) {
			n.Adoptions = []stele.Adoption{{From: "g", Bundle: strings.Repeat("0f", 32), Ended: time.Unix(2e9, 0)}}
		},
		"adoptions[0].generation": func(n *stele.Namespace) {
			n.Adoptions = []stele.Adoption{{From: "g", Bundle: strings.Repeat("0f", 32), Generation: "g2"}}
		},
		"adoptions": func(n *stele.Namespace) { n.Adoptions = make([]stele.Adoption, stele.MaxAdoptions+1) },
	} {
		n := stele.Namespace{Scheme: "ark", Prefix: "ark:1/", HandOver: good}
		change(&n)
		if err := n.Validate(); stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, address := range []string{"", "ftp://heir.example.org/", "heir.example.org", "https:///"} {
		n := stele.Namespace{Scheme: "ark", Prefix: "ark:1/", HandOver: good}
		n.HandOver.Address = address
		if err := n.Validate(); stele.KindOf(err) != stele.Invalid {
			t.Errorf("the address %q: %v", address, err)
		}
	}
	n := stele.Namespace{Scheme: "ark", Prefix: "ark:1/", HandOver: stele.HandOver{Heir: "h"}}
	if err := n.Validate(); stele.KindOf(err) != stele.Invalid {
		t.Errorf("a hand-over without a state: %v", err)
	}
}
