// Package namespaces knows which namespace a name belongs to. The registrar, the resolver
// and the zones of the DNS ask it, so that they all give the same answer. It reads no
// store: a [Tree] is made of the namespaces that its caller has read.
package namespaces

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/rules"
)

// Node is a namespace in a [Tree]. It does not change.
type Node struct {
	*stele.Namespace
	below  stele.ID // a name right below its prefix; zero for a root, and for a prefix that can't be read
	claims []string // prefixes whose names belong to it by the settings of its minter or by its scheme
	rules  *rules.Set
}

// Rules returns the compiled rules of the namespace; nil if it has none.
func (n *Node) Rules() *rules.Set { return n.rules }

// Below returns a name right below the namespace's prefix, which need not be registered.
// It is zero for the root of a scheme.
func (n *Node) Below() stele.ID { return n.below }

// Claims returns the prefixes whose names belong to the namespace by the settings of its
// minter, or because its scheme says so ([stele.ClaimingScheme]). The prefix of the namespace itself may be one of them.
func (n *Node) Claims() []string { return n.claims }

// Tree is some namespaces at one time. It does not change, and is used by several
// goroutines at once. A name belongs to the namespace with the longest prefix that is the
// name itself or at which the name may be cut ([stele.Scheme.Cuts]): urn:par has no names
// of urn:paradisec, and ark:13030/q has those of ark:13030/qt that are in no namespace of
// their own. Where no prefix fits it belongs to the root of its scheme, if that is there.
type Tree struct {
	schemes *stele.Schemes
	byKey   map[stele.NamespaceKey]*Node

	once   sync.Once
	places map[string][]place // by scheme, in order of their prefixes
}

// place is a prefix whose names belong to a namespace.
type place struct {
	prefix string
	node   *Node
	up     int // the longest other place that this prefix begins with; -1 if there is none
}

// New returns a tree without namespaces.
func New(schemes *stele.Schemes) *Tree {
	return &Tree{schemes: schemes, byKey: make(map[stele.NamespaceKey]*Node)}
}

// Schemes returns the schemes that read the names.
func (t *Tree) Schemes() *stele.Schemes { return t.schemes }

// Add adds namespaces. It is for the caller that makes the tree, before the first
// look-up. Each error is about one namespace, whose settings this program would not
// accept; that namespace is added all the same, without what could not be read.
func (t *Tree) Add(list ...*stele.Namespace) (errs []error) {
	for _, ns := range list {
		n, err := newNode(t.schemes, ns)
		t.byKey[ns.Key()] = n
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func newNode(schemes *stele.Schemes, ns *stele.Namespace) (n *Node, err error) {
	n = &Node{Namespace: ns}
	var problems stele.Problems
	if n.rules, problems = rules.Compile(ns); len(problems) > 0 {
		// Those that can be read answer.
		defer func() {
			if err == nil {
				err = &stele.Error{Op: "read rules", Kind: stele.Invalid, Err: problems}
			}
		}()
	}
	if ns.Prefix == "" {
		return n, nil
	}
	if _, n.below, err = ReadPrefix(schemes, ns.Prefix); err != nil {
		n.below = stele.ID{}
		return n, err
	}
	n.claims, _, err = DateNames(schemes, ns)
	if scheme, ok := schemes.Lookup(ns.Scheme).(stele.ClaimingScheme); ok {
		n.claims = append(slices.Clip(n.claims), scheme.Claims(ns.Prefix)...)
	}
	return n, err
}

// With returns a tree in which ns is as it is now. The error is as those of Add.
func (t *Tree) With(ns *stele.Namespace) (*Tree, error) {
	next := &Tree{schemes: t.schemes, byKey: maps.Clone(t.byKey)}
	n, err := newNode(t.schemes, ns)
	next.byKey[ns.Key()] = n
	t.index()
	next.once.Do(func() {
		next.places = maps.Clone(t.places)
		list := slices.DeleteFunc(slices.Clone(t.places[ns.Scheme]), func(p place) bool { return p.node.Key() == ns.Key() || p.prefix == ns.Prefix })
		next.places[ns.Scheme] = ordered(next.appendPlaces(list, n))
	})
	return next, err
}

// index puts the prefixes in order, once.
func (t *Tree) index() {
	t.once.Do(func() {
		t.places = make(map[string][]place)
		for key, n := range t.byKey {
			t.places[key.Scheme] = t.appendPlaces(t.places[key.Scheme], n)
		}
		for scheme, list := range t.places {
			t.places[scheme] = ordered(list)
		}
	})
}

// appendPlaces appends the places of a namespace. What is the prefix of another one is not
// its own, whatever its settings say.
func (t *Tree) appendPlaces(list []place, n *Node) []place {
	if n.Prefix == "" {
		return list
	}
	list = append(list, place{prefix: n.Prefix, node: n})
	for _, prefix := range n.claims {
		if t.byKey[stele.NamespaceKey{Scheme: n.Scheme, Prefix: prefix}] == nil {
			list = append(list, place{prefix: prefix, node: n})
		}
	}
	return list
}

// ordered sorts places, and finds what each is below.
func ordered(list []place) []place {
	slices.SortFunc(list, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.prefix, b.prefix), cmp.Compare(a.node.Prefix, b.node.Prefix))
	})
	last := -1
	for i := range list {
		for last >= 0 && (!strings.HasPrefix(list[i].prefix, list[last].prefix) || list[i].prefix == list[last].prefix) {
			last = list[last].up
		}
		list[i].up = last
		last = i
	}
	return list
}

// Get returns the namespace of a key; nil if there is none.
func (t *Tree) Get(key stele.NamespaceKey) *Node { return t.byKey[key] }

// All yields all namespaces, in no order.
func (t *Tree) All() iter.Seq2[stele.NamespaceKey, *Node] { return maps.All(t.byKey) }

// At returns the namespace that a prefix belongs to by itself: it is its own, or its
// minter's settings claim it. Nil if there is none.
func (t *Tree) At(key stele.NamespaceKey) *Node {
	if n := t.byKey[key]; n != nil {
		return n
	}
	return t.Claimed(key)
}

// Claimed returns the namespace to whose names a prefix leads by the settings of its
// minter, and which has another prefix itself; nil if there is none.
func (t *Tree) Claimed(key stele.NamespaceKey) *Node {
	list := t.list(key.Scheme)
	i := last(list, key.Prefix)
	if i < 0 || list[i].prefix != key.Prefix || list[i].node.Prefix == key.Prefix {
		return nil
	}
	return list[i].node
}

// Claims yields the prefixes that are not namespaces and belong to one by the settings of
// its minter, with that one.
func (t *Tree) Claims() iter.Seq2[stele.NamespaceKey, *Node] {
	t.index()
	return func(yield func(stele.NamespaceKey, *Node) bool) {
		for scheme, list := range t.places {
			for _, p := range list {
				if p.prefix != p.node.Prefix && !yield(stele.NamespaceKey{Scheme: scheme, Prefix: p.prefix}, p.node) {
					return
				}
			}
		}
	}
}

func (t *Tree) list(scheme string) []place {
	t.index()
	return t.places[scheme]
}

// last returns the last place whose prefix is not after a text, or -1.
func last(list []place, text string) int {
	low, high := 0, len(list)
	for low < high {
		if mid := (low + high) / 2; list[mid].prefix <= text {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low - 1
}

// Of returns the namespace that a name belongs to, which need not be registered; nil if
// there is none.
func (t *Tree) Of(id stele.ID) *Node {
	list, text := t.list(id.Scheme()), id.String()
	if i := last(list, text); i >= 0 {
		// Every prefix of the text that is in the list is one of this place too: what
		// is between two texts in order begins with all that both begin with.
		for common := stele.CommonPrefix(list[i].prefix, text); i >= 0; i = list[i].up {
			if n := len(list[i].prefix); n <= common && (n == len(text) || t.schemes.Cuts(id, n)) {
				return list[i].node
			}
		}
	}
	return t.byKey[stele.NamespaceKey{Scheme: id.Scheme()}]
}

// Around returns the nearest of the namespaces with whose prefix a name begins for which
// good returns true; nil if there is none. The prefixes decide, and not what minters
// claim: that is how names are found in the DNS, whose rules see their texts alone.
func (t *Tree) Around(id stele.ID, good func(*stele.Namespace) bool) *stele.Namespace {
	list, text := t.list(id.Scheme()), id.String()
	if i := last(list, text); i >= 0 {
		for common := stele.CommonPrefix(list[i].prefix, text); i >= 0; i = list[i].up {
			p := &list[i]
			if n := len(p.prefix); n <= common && p.prefix == p.node.Prefix && (n == len(text) || t.schemes.Cuts(id, n)) && good(p.node.Namespace) {
				return p.node.Namespace
			}
		}
	}
	if root := t.byKey[stele.NamespaceKey{Scheme: id.Scheme()}]; root != nil && good(root.Namespace) {
		return root.Namespace
	}
	return nil
}

// above returns the next place above place i, which is n's or above it; -1 if there is
// none.
func (t *Tree) above(list []place, n *Node, i int) int {
	if i < 0 || !n.below.IsValid() {
		return -1
	}
	for i = list[i].up; i >= 0; i = list[i].up {
		if t.schemes.Cuts(n.below, len(list[i].prefix)) {
			return i
		}
	}
	return -1
}

// Ancestors returns a namespace with its ancestors, the nearest first and the root last, as far
// as they are there.
func (t *Tree) Ancestors(n *Node) []*stele.Namespace {
	ancestors := []*stele.Namespace{n.Namespace}
	list := t.list(n.Scheme)
	for i := t.above(list, n, last(list, n.Prefix)); n.Prefix != "" && i >= 0; i = t.above(list, n, i) {
		ancestors = append(ancestors, list[i].node.Namespace)
	}
	if root := t.byKey[stele.NamespaceKey{Scheme: n.Scheme}]; root != nil && root != n {
		ancestors = append(ancestors, root.Namespace)
	}
	return ancestors
}

// AncestorsOf returns the namespaces of a name, as Ancestors does; none if it belongs to none.
func (t *Tree) AncestorsOf(id stele.ID) []*stele.Namespace {
	if n := t.Of(id); n != nil {
		return t.Ancestors(n)
	}
	return nil
}

// IsLeaf reports whether no namespace is below a prefix: names there belong to it.
func (t *Tree) IsLeaf(key stele.NamespaceKey) bool {
	list := t.list(key.Scheme)
	for i := last(list, key.Prefix) + 1; i < len(list) && strings.HasPrefix(list[i].prefix, key.Prefix); i++ {
		if p := list[i]; p.prefix == p.node.Prefix && (key.Prefix == "" || t.schemes.IsWithin(p.node.below, key.Prefix)) {
			return false
		}
	}
	return true
}
