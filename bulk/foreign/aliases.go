package foreign

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/destination"
)

const (
	maxAliases     = 200_000 // handles that are aliases, which are kept in memory
	maxAliasLooks  = 1000    // registered handles that aliases lead to
	maxCycleListed = 5       // handles of a cycle that are named
)

// aliases are the handles of the files that are aliases of others, by their values of type HS_ALIAS. Such values are
// what a server keeps, so that they are imported as they are; but handles that are aliases of one another lead nowhere, which is told.
type aliases struct {
	mu   sync.Mutex
	of   map[stele.ID]alias
	more int // aliases that are not kept
}

// alias is where a handle leads.
type alias struct {
	to   stele.ID
	line int
}

// aliasOf returns the handle that a record is an alias of. As when a handle is resolved, the first value that the public may read
// counts.
func (s *Source) aliasOf(rec *stele.Record) (to stele.ID, ok bool) {
	at := slices.IndexFunc(rec.Values, func(v stele.HandleValue) bool {
		return v.Permissions&stele.PublicRead != 0 && destination.HasType(v.Type, destination.TypeAlias)
	})
	if at < 0 {
		return to, false
	}
	to, err := destination.ParseHandle(s.o.Schemes, strings.TrimSpace(string(rec.Values[at].Data)))
	return to, err == nil
}

// noteAlias notes where a record leads, if it is an alias. Several goroutines call it at once.
func (s *Source) noteAlias(rec *stele.Record, line int) {
	to, ok := s.aliasOf(rec)
	if !ok {
		return
	}
	a := &s.aliases
	a.mu.Lock()
	defer a.mu.Unlock()
	before, known := a.of[rec.ID]
	switch {
	case !known && len(a.of) >= maxAliases:
		a.more++
		return
	case known && before.line < line: // the first row of a name is the one that is registered
		return
	case a.of == nil:
		a.of = make(map[stele.ID]alias)
	}
	a.of[rec.ID] = alias{to, line}
}

// aliasCycles tells which handles are aliases of one another, by their first lines. It follows those of the files, and registered ones.
func (s *Source) aliasCycles() (notes []error) {
	a := &s.aliases
	a.mu.Lock()
	defer a.mu.Unlock()
	starts := make([]stele.ID, 0, len(a.of))
	for id := range a.of {
		starts = append(starts, id)
	}
	slices.SortFunc(starts, func(x, y stele.ID) int {
		return cmp.Or(cmp.Compare(a.of[x].line, a.of[y].line), strings.Compare(x.String(), y.String()))
	})
	found := make(map[stele.ID]stele.ID) // registered handles, and where they lead; the zero ID is nowhere
	walks := make(map[stele.ID]int, len(a.of))
	cycles := 0
	for i, start := range starts {
		var way []stele.ID
		id, ends := start, false
		for !ends && walks[id] == 0 {
			walks[id], way = i+1, append(way, id)
			next, ok := s.aliasFrom(id, found)
			if ends = !ok; ok {
				id = next
			}
		}
		if ends || walks[id] != i+1 { // it leads somewhere, or into a way that was followed before
			continue
		}
		if cycles++; cycles <= maxNotes {
			way, line := a.fromFirst(way[slices.Index(way, id):])
			if line == 0 { // all of them are registered
				line = a.of[start].line
			}
			notes = append(notes, stele.Messagef("import.alias-cycle", "line {line}: the handle {name} is an alias that leads back to itself ({way}), so that it leads nowhere; correct one of the values of type HS_ALIAS",
				line, way[0], wayOf(way)))
		}
	}
	if cycles > maxNotes {
		notes = append(notes, stele.Messagef("import.alias-cycles-more", "{count} more cycles of aliases are not listed", cycles-maxNotes))
	}
	if a.more > 0 {
		notes = append(notes, stele.Messagef("import.aliases-unfollowed", "{count} aliases (HS_ALIAS) were not followed to find those that lead back to themselves: {most} are the most", a.more, maxAliases))
	}
	return notes
}

// aliasFrom returns where a handle leads, as the files say or else the registry.
func (s *Source) aliasFrom(id stele.ID, found map[stele.ID]stele.ID) (to stele.ID, ok bool) {
	if next, ok := s.aliases.of[id]; ok {
		return next.to, true
	}
	to, known := found[id]
	if !known && s.o.Registered.Get != nil && len(found) < maxAliasLooks {
		if rec, err := s.o.Registered.Get(id); err == nil && rec.State == stele.Active {
			to, _ = s.aliasOf(rec)
		}
		found[id] = to
	}
	return to, to.IsValid()
}

// fromFirst returns the handles of a cycle from the one that is first in the files, and its line; 0 if none of them is in the files.
func (a *aliases) fromFirst(cycle []stele.ID) ([]stele.ID, int) {
	first := -1
	for i, id := range cycle {
		if one, ok := a.of[id]; ok && (first < 0 || one.line < a.of[cycle[first]].line) {
			first = i
		}
	}
	first = max(first, 0)
	return slices.Concat(cycle[first:], cycle[:first]), a.of[cycle[first]].line
}

// wayOf names the handles of a cycle.
func wayOf(way []stele.ID) string {
	var b strings.Builder
	for i, id := range way {
		if i == maxCycleListed {
			b.WriteString("... -> ")
			break
		}
		b.WriteString(id.String() + " -> ")
	}
	return b.String() + way[0].String()
}
