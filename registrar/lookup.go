package registrar

import (
	"github.com/stele-id/stele"
	"github.com/stele-id/stele/namespaces"
)

// lookup is the namespaces as one write of a record sees them. What it finds of a name it
// keeps, so that rights, rules, the audit trail and the store's counts have one answer of
// one look-up. One goroutine uses it, except for counter.
type lookup struct {
	*namespaceTree
	found []found
}

// found is what was found of a name.
type found struct {
	id        stele.ID
	node      *namespaces.Node
	ancestors []*stele.Namespace // nil: not looked up yet
}

// maxFound is of how many names the answer is kept. A record has few names; a search among
// many would take longer than another look-up.
const maxFound = 16

// lookup returns a lookup that has found nothing yet.
func (s *namespaceTree) lookup() *lookup { return &lookup{namespaceTree: s} }

// Of returns the namespace that a name belongs to, as [namespaces.Tree.Of] does.
func (l *lookup) Of(id stele.ID) *namespaces.Node {
	if f := l.known(id); f != nil {
		return f.node
	}
	node := l.namespaceTree.Of(id)
	if len(l.found) < maxFound {
		l.found = append(l.found, found{id: id, node: node})
	}
	return node
}

// ancestorsOf returns the namespaces of a name, as that of namespaceTree does.
func (l *lookup) ancestorsOf(id stele.ID) []*stele.Namespace {
	node := l.Of(id)
	f := l.known(id)
	if f == nil || f.ancestors == nil {
		ancestors := l.ancestors(id, node)
		if f != nil {
			f.ancestors = ancestors
		}
		return ancestors
	}
	return f.ancestors
}

// known returns what was found of a name; nil if nothing is kept.
func (l *lookup) known(id stele.ID) *found {
	for i := range l.found {
		if l.found[i].id == id {
			return &l.found[i]
		}
	}
	return nil
}

// counter says for which namespace a new name counts, as that of namespaceTree does. It keeps
// nothing, because a store may call it in a goroutine of its own.
func (l *lookup) counter(id stele.ID) (stele.NamespaceKey, uint64) {
	if f := l.known(id); f != nil {
		return counts(id, f.node)
	}
	return l.namespaceTree.counter(id)
}
