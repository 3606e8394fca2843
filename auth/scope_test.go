package auth

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

func TestScopeIncludes(t *testing.T) {
	want := map[Scope][]Scope{
		ScopeRead:    {ScopeRead},
		ScopeMint:    {ScopeMint},
		ScopeWrite:   {ScopeRead, ScopeMint, ScopeWrite},
		ScopeAdmin:   Scopes(),
		ScopeBackup:  {ScopeRead, ScopeBackup},
		ScopeMetrics: {ScopeMetrics},
		"":           nil,
		"all":        nil,
	}
	for s, includes := range want {
		for _, other := range append(Scopes(), "", "all") {
			if got := s.Includes(other); got != slices.Contains(includes, other) {
				t.Errorf("%q includes %q: %t", s, other, got)
			}
		}
	}
}

// A token with a scope of a later program, or with no scope that is left, grants nothing: it
// is never taken for one without scopes.
func TestUnknownScopeGivesNothing(t *testing.T) {
	_, naan, _, _ := testAncestors()
	p := Principal{Name: "olga", rules: true, limits: limits{}.add(&Token{Scopes: []Scope{"later"}})}
	for _, s := range Scopes() {
		if p.Has(s) || p.Administers(s) {
			t.Errorf("it has %s", s)
		}
	}
	if RoleIn(p, naan) != stele.NoRole || MayMint(p, naan) || !p.IsLimited() {
		t.Error("it may be used")
	}
	apart := Principal{Name: "olga", limits: limits{}.add(&Token{Scopes: []Scope{ScopeMint}}).add(&Token{Scopes: []Scope{ScopeMetrics}})}
	if len(apart.Scopes()) != 0 || MayMint(apart, naan) || !apart.IsLimited() {
		t.Errorf("it has %v", apart.Scopes())
	}
}

func TestLimitedRoles(t *testing.T) {
	_, naan, shoulder, part := testAncestors()
	admin := Principal{Name: "zoe", rules: true}
	owner, editor, reader := Principal{Name: "olga"}, Principal{Name: "ed"}, Principal{Name: "zoe", Groups: []string{"staff"}}
	above, below := []*stele.Namespace{naan}, []*stele.Namespace{part, shoulder, naan}
	for _, tt := range []struct {
		p         Principal
		token     Token
		ancestors []*stele.Namespace
		role      stele.Role
		mint      bool
	}{
		{admin, Token{}, above, stele.RoleOwner, true},
		{admin, Token{Scopes: []Scope{ScopeAdmin}}, above, stele.RoleOwner, true},
		{admin, Token{Scopes: []Scope{ScopeWrite}}, above, stele.RoleEditor, true},
		{admin, Token{Scopes: []Scope{ScopeMint}}, above, stele.NoRole, true},
		{admin, Token{Scopes: []Scope{ScopeRead}}, above, stele.RoleReader, false},
		{admin, Token{Scopes: []Scope{ScopeBackup}}, above, stele.RoleReader, false},
		{admin, Token{Scopes: []Scope{ScopeMetrics}}, above, stele.NoRole, false},
		{admin, Token{Scopes: []Scope{ScopeRead, ScopeMint}}, above, stele.RoleReader, true},
		{owner, Token{Scopes: []Scope{ScopeAdmin}}, above, stele.RoleOwner, true},
		{owner, Token{Scopes: []Scope{ScopeWrite}}, above, stele.RoleEditor, true},
		{editor, Token{Scopes: []Scope{ScopeAdmin}}, above, stele.RoleEditor, true},
		{reader, Token{Scopes: []Scope{ScopeAdmin}}, above, stele.RoleReader, false},
		{reader, Token{Scopes: []Scope{ScopeMint}}, above, stele.NoRole, false},
		{owner, Token{Namespaces: []string{"ark:12345/x5"}}, above, stele.NoRole, false},
		{owner, Token{Namespaces: []string{"ark:12345/x5"}}, below, stele.RoleOwner, true},
		{owner, Token{Namespaces: []string{"ark:12345"}, Scopes: []Scope{ScopeRead}}, below, stele.RoleReader, false},
		{admin, Token{Namespaces: []string{"ark:99999"}}, below, stele.NoRole, false},
	} {
		p := tt.p
		p.limits = p.limits.add(&tt.token)
		if role, mint := RoleIn(p, tt.ancestors...), MayMint(p, tt.ancestors...); role != tt.role || mint != tt.mint {
			t.Errorf("%s with %v in %v: %q, may mint %t", p.Name, tt.token.Scopes, tt.token.Namespaces, role, mint)
		}
		if p.Administers(ScopeAdmin) && len(tt.token.Namespaces) > 0 {
			t.Error("it administers the whole registry")
		}
		if MayWrite(p.Minting(), tt.ancestors...) != tt.mint {
			t.Errorf("%s with %v in %v: what it has made can't be registered, or more", p.Name, tt.token.Scopes, tt.token.Namespaces)
		}
	}
}

// Whatever limits tokens have, a token never has a right that the token above it does not
// have.
func TestChildNeverExceedsParent(t *testing.T) {
	root, naan, shoulder, part := testAncestors()
	lists := [][]*stele.Namespace{{root}, {naan, root}, {shoulder, naan, root}, {part, shoulder, naan, root}}
	limit := rapid.Custom(func(t *rapid.T) Token {
		return Token{
			Scopes:     rapid.SliceOfNDistinct(rapid.SampledFrom(append(Scopes(), "later")), 0, 3, rapid.ID[Scope]).Draw(t, "scopes"),
			Namespaces: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"ark:12345", "ark:12345/x5", "ark:"}), 0, 2, rapid.ID[string]).Draw(t, "namespaces"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		parent := Principal{Name: rapid.SampledFrom([]string{"olga", "ed", "zoe"}).Draw(t, "who"), rules: rapid.Bool().Draw(t, "administrator")}
		for range rapid.IntRange(0, 3).Draw(t, "levels") {
			above := limit.Draw(t, "above")
			parent.limits = parent.limits.add(&above)
		}
		own := limit.Draw(t, "own")
		child := parent
		child.limits = limits{}.add(&own)
		child.limits.scopes = append(child.limits.scopes, parent.limits.scopes...)
		child.limits.within = append(child.limits.within, parent.limits.within...)
		for _, s := range Scopes() {
			if child.Has(s) && !parent.Has(s) || child.Administers(s) && !parent.Administers(s) {
				t.Fatalf("the child has the scope %s", s)
			}
		}
		for _, ancestors := range lists {
			if !RoleIn(parent, ancestors...).Includes(RoleIn(child, ancestors...)) || MayMint(child, ancestors...) && !MayMint(parent, ancestors...) {
				t.Fatalf("the child may do more in %s", ancestors[0].Key())
			}
			r := &stele.Record{State: stele.Active, Readers: []string{"user:" + child.Name}}
			if MayRead(child, r, ancestors...) && !MayRead(parent, r, ancestors...) {
				t.Fatalf("the child sees more in %s", ancestors[0].Key())
			}
		}
	})
}

func TestValidateLimits(t *testing.T) {
	many := make([]string, MaxTokenNamespaces+1)
	for _, tt := range []struct {
		token Token
		words string
	}{
		{Token{Scopes: []Scope{"root"}}, `"root" is not a scope; choose from read, mint,`},
		{Token{Scopes: []Scope{ScopeRead, ScopeRead}}, "twice"},
		{Token{Scopes: []Scope{ScopeMetrics}, Namespaces: []string{"ark:12345"}}, "whole server"},
		{Token{Scopes: slices.Repeat([]Scope{ScopeRead}, 100)}, "scopes[6]"},
		{Token{Namespaces: many}, "101"},
	} {
		if err := tt.token.Validate(); stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), tt.words) {
			t.Errorf("%+v: %v", tt.token, err)
		}
	}
	if err := (&Token{Scopes: Scopes()}).Validate(); err != nil {
		t.Error(err)
	}
}
