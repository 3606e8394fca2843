package foreign

import (
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
)

// addsSpaces reports whether namespaces are made for names that none has.
func (s *Source) addsSpaces() bool {
	return s.o.Namespaces && s.system.Spaces && s.o.Find != nil
}

// addSpaces puts the row of a new namespace before the first record that no namespace has, in the files of systems that do not list
// prefixes. The records are made here, one after the other, and not in parallel as otherwise.
func (s *Source) addSpaces(p part, b *bulk.Block) {
	rows := make([]bulk.Row, 0, len(b.Rows))
	for _, row := range b.Rows {
		if row.Err == nil && row.Namespace == nil {
			bulk.ParseRow(&row, p.parse)
		}
		if row.Err == nil && row.Record != nil {
			if ns := s.spaceOf(row.Record.ID); ns != nil {
				rows = append(rows, bulk.Row{Line: row.Line, Text: []byte(ns.Prefix), Namespace: ns})
			}
		}
		rows = append(rows, row)
	}
	b.Rows = rows
}

// spaceOf returns the namespace to make for a name: what --prefix says, or the shortest prefix of the name, such as its NAAN. It is nil if a
// namespace has the name, or one was made for it before.
func (s *Source) spaceOf(id stele.ID) *stele.Namespace {
	scheme := s.o.Schemes.Lookup(id.Scheme())
	if scheme == nil {
		return nil
	}
	text := id.String()
	key := stele.NamespaceKey{Scheme: id.Scheme()}
	for parent := range scheme.Parents(id) {
		key.Prefix = parent.String() // the last is the shortest
	}
	if prefix, _, err := scheme.ParsePrefix(s.o.Prefix); err == nil && strings.HasPrefix(text, prefix.String()) {
		key.Prefix = prefix.String()
	}
	if key.Prefix == "" || s.seen[key.String()] {
		return nil
	}
	for n := 1; n <= len(text); n++ { // a namespace has the name that is its prefix, too
		if (n == len(text) || scheme.Cuts(id, n)) && s.o.Find(stele.NamespaceKey{Scheme: id.Scheme(), Prefix: text[:n]}) != nil {
			return nil
		}
	}
	s.seen[key.String()] = true
	return &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}
}
