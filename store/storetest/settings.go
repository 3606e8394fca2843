package storetest

import (
	"bytes"
	"fmt"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
)

// checkNamespaces: they have versions as records do, and are listed in order.
func checkNamespaces(s *session) {
	namespaces := func(list ...*stele.Namespace) *stele.Commit { return &stele.Commit{Namespaces: list} }
	root, a, b := space("ark", ""), space("ark", "ark:12345/"), space("ark", "ark:12345/x5")
	_, err := s.Namespace(s.ctx, root.Key())
	s.wantKind("Namespace of an empty store", err, stele.NotFound)
	s.apply(namespaces(b, space("urn", "urn:a1"), root))
	s.apply(namespaces(a))
	s.apply(namespaces(space("arkx", "ark:12345/"))) // the same prefix in another scheme

	s.wantNamespace(a)
	s.wantNamespace(root)
	for _, key := range []stele.NamespaceKey{{Scheme: "urn"}, {Scheme: "ark", Prefix: "ark:12345"}, {Scheme: "hdl", Prefix: "ark:12345/"}, {}} {
		_, err := s.Namespace(s.ctx, key)
		s.wantKind(fmt.Sprintf("Namespace(%q)", key), err, stele.NotFound)
	}

	s.refuse("a namespace again", namespaces(a), stele.Conflict)
	s.refuse("a namespace skips a version", namespaces(nextNamespace(nextNamespace(a, "x"), "y")), stele.Conflict)
	s.refuse("a new namespace begins late", namespaces(nextNamespace(space("hdl", ""), "x")), stele.Conflict)
	s.refuse("a namespace of version 0", namespaces(&stele.Namespace{Scheme: "hdl"}), stele.Invalid)
	s.refuse("one of two", namespaces(space("hdl", ""), a), stele.Conflict)

	a2 := nextNamespace(a, "second")
	a2.Owner, a2.Hosts = "bruno", nil
	s.apply(namespaces(a2))
	s.wantNamespace(a2)
	s.refuse("version 2 again", namespaces(a2), stele.Conflict)

	var got []string
	for _, n := range all(s, "Namespaces", s.Namespaces(s.ctx)) {
		got = append(got, n.Scheme+" "+n.Prefix)
	}
	s.wantTexts("Namespaces", got, []string{"ark ", "ark ark:12345/", "ark ark:12345/x5", "arkx ark:12345/", "urn urn:a1"})
	for range s.Namespaces(s.ctx) {
		break
	}
	// A namespace is not a record, and a record is not a namespace.
	s.wantNone(s.id("ark", "ark:12345/"))
	s.put(first(s.id("ark", "ark:12345/")), first(s.id("hdl", "10.1000/")))
	_, err = s.Namespace(s.ctx, stele.NamespaceKey{Scheme: "hdl", Prefix: "10.1000/"})
	s.wantKind("Namespace where a record is", err, stele.NotFound)
}

// wantNamespace compares namespaces by their binary forms.
func (s *session) wantNamespace(want *stele.Namespace) {
	s.Helper()
	got, err := s.Namespace(s.ctx, want.Key())
	if err != nil {
		s.Errorf("Namespace(%q): %v", want.Key(), err)
		return
	}
	if !bytes.Equal(binary.MarshalNamespace(got), binary.MarshalNamespace(want)) {
		s.Errorf("Namespace(%q) = %+v, want %+v", want.Key(), *got, *want)
	}
}

// checkMinters: a state is replaced only by a caller that knows it, byte for byte; no
// state and an empty one differ.
func checkMinters(s *session) {
	const name = "ibi sid.inpe.br/mtc-m18"
	try := func(name string, before, after []byte) *stele.Commit {
		return &stele.Commit{Minters: []stele.MinterState{{Name: name, Before: before, After: after}}}
	}
	s.wantMinter(name, nil)
	s.refuse("empty where nothing is", try(name, []byte{}, []byte("x")), stele.Conflict)
	s.refuse("something where nothing is", try(name, []byte("x"), []byte("y")), stele.Conflict)
	s.wantMinter(name, nil)

	state := []byte{0, 0xff, 'a', 0}
	s.apply(try(name, nil, state))
	s.wantMinter(name, state)
	for why, before := range map[string][]byte{
		"nothing where something is": nil,
		"empty where something is":   {},
		"the beginning only":         state[:3],
		"more than there is":         append(bytes.Clone(state), 0),
		"another byte":               {0, 0xff, 'A', 0},
	} {
		s.refuse(why, try(name, before, []byte("no")), stele.Conflict)
		s.wantMinter(name, state)
	}
	s.apply(try(name, state, []byte{}))
	s.wantMinter(name, []byte{})
	s.refuse("nothing where empty is", try(name, nil, []byte("no")), stele.Conflict)
	s.apply(try(name, []byte{}, []byte("z")))
	s.apply(try(name, []byte("z"), []byte("z"))) // to the same state
	s.wantMinter(name, []byte("z"))

	s.apply(&stele.Commit{Minters: []stele.MinterState{{Name: "a", After: []byte{1}}, {Name: name + "/x", After: []byte{}}}})
	var got []string
	for _, m := range all(s, "MinterStates", s.MinterStates(s.ctx)) {
		got = append(got, fmt.Sprintf("%s=%q", m.Name, m.After))
	}
	s.wantTexts("MinterStates", got, []string{`a="\x01"`, name + `="z"`, name + `/x=""`})
	for range s.MinterStates(s.ctx) {
		break
	}
	if n := s.lastChange(); n != 0 {
		s.Errorf("minters made %d changes in the feed; it is for records and namespaces", n)
	}
}

// wantMinter compares a minter's state; nil is not empty.
func (s *session) wantMinter(name string, want []byte) {
	s.Helper()
	got, err := s.MinterState(s.ctx, name)
	if err != nil || !bytes.Equal(got, want) || (got == nil) != (want == nil) {
		s.Errorf("MinterState(%q) = %#v, %v; want %#v", name, got, err, want)
	}
}

// checkQuota: new names count, up to the limit and no further; nothing else does.
func checkQuota(s *session) {
	key, other := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/"}, stele.NamespaceKey{Scheme: "ark"}
	put := func(quota uint64, list ...*stele.Record) *stele.Commit {
		return &stele.Commit{Records: list, Counter: countFor(key, quota)}
	}
	a, b := first(s.ark("a"), s.ark("alias")), first(s.ark("b"))
	s.wantCount(key, 0)
	s.put(first(s.ark("uncounted")))
	s.wantCount(key, 0)
	s.refuse("two where one may be", put(2, a, b), stele.Exhausted)
	s.wantCount(key, 0)
	s.apply(put(2, a))
	s.wantCount(key, 2) // with its alias
	s.refuse("a conflict", put(9, a), stele.Conflict)
	s.wantCount(key, 2)
	s.apply(put(3, b))
	s.wantCount(key, 3)
	s.refuse("one too many", put(3, first(s.ark("c"))), stele.Exhausted)
	s.refuse("far too many already", put(1, first(s.ark("c"))), stele.Exhausted)
	s.apply(put(3, next(a, "x"), next(b, "x"))) // new versions have no new names
	s.wantCount(key, 3)
	s.apply(put(4, next(next(a, "x"), "y"), first(s.ark("c"))))
	s.wantCount(key, 4)
	s.apply(put(0, first(s.ark("d")))) // no limit
	s.wantCount(key, 5)

	// Each record has its own namespace, and its own limit.
	s.apply(&stele.Commit{
		Records: []*stele.Record{first(s.ark("e")), first(s.ark("f")), first(s.ark("g"))},
		Counter: func(id stele.ID) (stele.NamespaceKey, uint64) {
			if id == s.ark("g") {
				return key, 6
			}
			return other, 2
		},
	})
	s.wantCount(key, 6)
	s.wantCount(other, 2)
	s.wantCount(stele.NamespaceKey{Scheme: "hdl"}, 0)
	s.wantCount(stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}, 0)
}
