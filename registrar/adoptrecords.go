package registrar

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/destination"
)

// adoptee is what a list has of a record: versions that follow each other, the oldest first.
type adoptee struct {
	versions []*stele.Record
	rest     []*stele.Record // that are not here yet
	have     *stele.Record   // the current version here; nil if there is none, or the store was not asked
}

// isEntry reports whether only the entry of a version is left: its content was erased.
func isEntry(rec *stele.Record) bool { return rec.Redacted && rec.Equal(rec.Entry()) }

// Write writes versions of records, in the order of the bundle. The versions of a record may be in several lists. It takes the
// records over. A version that is here already is compared; Conflict, with the name, if it is another one.
func (a *Adopting) Write(ctx context.Context, list []*stele.Record) error {
	ctx = context.WithValue(ctx, adopting{}, true)
	var groups []*adoptee
	for _, rec := range list {
		a.prepare(rec)
		if n := len(groups); n > 0 && groups[n-1].versions[0].ID == rec.ID {
			groups[n-1].versions = append(groups[n-1].versions, rec)
			continue
		}
		groups = append(groups, &adoptee{versions: []*stele.Record{rec}})
	}
	for _, g := range groups {
		g.rest = g.versions
	}
	if a.fresh {
		counted := a.result
		err := a.write(ctx, groups)
		if err == nil || stele.KindOf(err) != stele.Conflict {
			return err
		}
		a.result = counted // a part was written, and is found below
	}
	if err := a.compare(ctx, groups); err != nil {
		return err
	}
	return a.write(ctx, groups)
}

// prepare makes of a version of the giver what is kept here: marked with the number of the import, and without rights of users who have
// the same name here.
func (a *Adopting) prepare(rec *stele.Record) {
	if isEntry(rec) {
		return // as the store has it
	}
	rec.Import = a.number
	for i, who := range rec.Readers {
		rec.Readers[i] = a.foreign(who)
	}
	for i := range rec.Values {
		// The secret stayed with the giver. A reference that leads nowhere says so to a Handle client.
		if v := &rec.Values[i]; isClearSecret(v) {
			v.Data = []byte(secretReference + secretNames.EncodeToString(make([]byte, secretNameBytes)))
		}
	}
	if a.o.Split {
		rec.Aliases = slices.DeleteFunc(rec.Aliases, func(alias stele.ID) bool { return !a.Has(alias) })
		if len(rec.Aliases) == 0 {
			rec.Aliases = nil
		}
	}
}

// foreign returns the name of a user or a group of the giver: one that no user has here, unless an administrator makes a group of that name.
func (a *Adopting) foreign(who string) string {
	if text := who + "@" + a.b.From; len(text) <= stele.MaxName {
		return text
	}
	kind, _, _ := strings.Cut(who, ":")
	sum := sha256.Sum256([]byte(who + "@" + a.b.From))
	return kind + ":" + hex.EncodeToString(sum[:])
}

// GrantsRights reports whether a record has handle values by which identities of the Handle System may change it.
func (n *AdoptedNames) GrantsRights(rec *stele.Record) bool {
	return slices.ContainsFunc(rec.Values, func(v stele.HandleValue) bool { return destination.HasType(v.Type, "HS_ADMIN") })
}

// compare finds out what is here of the records, and leaves in rest what is not.
func (a *Adopting) compare(ctx context.Context, groups []*adoptee) error {
	const part = 1024
	for len(groups) > 0 {
		n := min(part, len(groups))
		names := make([]stele.ID, n)
		for i, g := range groups[:n] {
			names[i] = g.versions[0].ID
		}
		have, err := a.r.gather(ctx, names)
		if err != nil {
			return tell(opAdopt, err)
		}
		for i, g := range groups[:n] {
			if err := a.compareOne(ctx, g, have[i]); err != nil {
				return err
			}
		}
		groups = groups[n:]
	}
	return nil
}

// gather returns the records that have these names, and nil for a name that is not registered.
func (r *Registrar) gather(ctx context.Context, names []stele.ID) ([]*stele.Record, error) {
	if many, ok := r.store.(stele.Gatherer); ok {
		return many.Gather(ctx, names)
	}
	list := make([]*stele.Record, len(names))
	for i, name := range names {
		rec, err := r.store.Record(ctx, name)
		if err != nil && stele.KindOf(err) != stele.NotFound {
			return nil, err
		}
		list[i] = rec
	}
	return list, nil
}

func (a *Adopting) compareOne(ctx context.Context, g *adoptee, have *stele.Record) error {
	first, last := g.versions[0], g.versions[len(g.versions)-1]
	switch {
	case have == nil && first.Version == 1:
		g.rest, g.have = g.versions, nil
		return nil
	case have == nil:
		return refuse(opAdopt, first.ID, stele.Internal, "adopt.version-lost", "version {version} was adopted, and is not here; 'stele verify' tells what is damaged", first.Version-1)
	case have.ID != first.ID:
		return refuse(opAdopt, first.ID, stele.Conflict, "adopt.name-taken", "the name is one of {id} here, which did not come with it", have.ID)
	}
	g.have = have
	if _, left := a.left[have.ID]; left { // by an earlier list
		a.leave(ctx, g, last)
		return nil
	}
	a.noteAhead(have, last.Version)
	end := min(have.Version, last.Version)
	g.rest = g.versions[min(int(max(end+1, first.Version)-first.Version), len(g.versions)):]
	versions := func(yield func(*stele.Record, error) bool) {
		if end == have.Version && end == first.Version {
			yield(have, nil)
			return
		}
		a.r.store.HistoryBefore(ctx, have.ID, end+1)(yield)
	}
	for v, err := range versions {
		if err != nil {
			return tell(opAdopt, err)
		}
		if v.Version < first.Version {
			break
		}
		if sameVersion(have, v, g.versions[v.Version-first.Version]) {
			a.result.Present++
			continue
		}
		if have.Redacted || have.Withheld.Redacted > 0 { // by a legal order that this registry got: it stays as it is
			a.leave(ctx, g, last)
			return nil
		}
		return refuse(opAdopt, first.ID, stele.Conflict, "adopt.version-differs", "version {version} is another one here than in the bundle; nothing more is taken over", v.Version)
	}
	return nil
}

// leave leaves a record as it is here, except that it gets the aliases which the giver has added: this registry would not know these names, and could give them to other
// things. It keeps in mind how many names more the record has in the bundle.
func (a *Adopting) leave(ctx context.Context, g *adoptee, last *stele.Record) {
	g.rest = nil
	if added := slices.DeleteFunc(slices.Clone(last.Aliases), func(alias stele.ID) bool { return slices.Contains(g.have.Aliases, alias) }); len(added) > 0 {
		next := *g.have
		next.Version++
		next.Aliases = slices.Concat(g.have.Aliases, added)
		next.Modified, next.By = a.r.now(), auth.From(ctx).Name
		g.have, g.rest = &next, []*stele.Record{&next}
	}
	if !slices.Contains(a.result.Left, last.ID) {
		a.result.Left = append(a.result.Left, last.ID)
	}
	if a.left == nil {
		a.left = make(map[stele.ID]int)
	}
	a.left[last.ID] = a.aliasesOf(last) - a.aliasesOf(g.have)
}

// aliasesOf returns how many aliases a record has in the namespaces of the bundle.
func (a *Adopting) aliasesOf(rec *stele.Record) (n int) {
	for _, alias := range rec.Aliases {
		if a.Has(alias) {
			n++
		}
	}
	return n
}

// noteAhead keeps in mind a record that has later versions here than the bundle has until now: the giver was restored from a backup, and has lost them. A
// redaction that this registry got is its own.
func (a *Adopting) noteAhead(have *stele.Record, last uint64) {
	if have.Version <= last || have.Redacted || have.Withheld.Redacted > 0 {
		delete(a.ahead, have.ID)
		return
	}
	if a.ahead == nil {
		a.ahead = make(map[stele.ID]bool)
	}
	a.ahead[have.ID] = true
}

// sameVersion reports whether a version here is that of the bundle, as far as its content was not erased in one of them.
func sameVersion(current, have, want *stele.Record) bool {
	if current.Withheld.Hides(have.Version) || isEntry(have) || isEntry(want) {
		return have.Entry().Equal(want.Entry())
	}
	c := *want
	c.Import = have.Import
	return have.Equal(&c)
}

// write commits what is not here yet.
func (a *Adopting) write(ctx context.Context, groups []*adoptee) error {
	var firsts []*stele.Record
	var runs [][]*stele.Record
	var later []*adoptee
	for _, g := range groups {
		if len(g.rest) == 0 {
			continue
		}
		if g.rest[0].Version == 1 {
			n := runLength(g.rest)
			if n == 1 {
				firsts = append(firsts, g.rest[0])
			} else {
				runs = append(runs, g.rest[:n])
			}
			g.rest = g.rest[n:]
		}
		if len(g.rest) > 0 {
			later = append(later, g)
		}
	}
	if err := a.addFirsts(ctx, firsts); err != nil {
		return err
	}
	if err := a.addRuns(ctx, runs); err != nil {
		return err
	}
	return a.addLater(ctx, later)
}

// runLength returns how many versions of a new record one commit may have.
func runLength(list []*stele.Record) int {
	size := 0
	for n, rec := range list {
		size += rec.StoredSize()
		if n > 0 && (!rec.Withheld.IsZero() || n > stele.MaxEarlier || size > historyCommit) {
			return n
		}
	}
	return len(list)
}

// unlimited is counter without the limits of quotas: the giver may have lowered one since.
func (s *namespaceTree) unlimited(id stele.ID) (stele.NamespaceKey, uint64) {
	key, _ := s.counter(id)
	return key, 0
}

// addFirsts adds new records, which have one version yet.
func (a *Adopting) addFirsts(ctx context.Context, list []*stele.Record) error {
	if len(list) <= few {
		return a.commit(ctx, list)
	}
	for attempt := 1; ; attempt++ {
		s, err := a.r.view(ctx)
		if err != nil {
			return err
		}
		for _, rec := range list {
			if err := a.r.open(ctx, opAdopt, s, rec); err != nil {
				return err
			}
		}
		model := entry(ctx, opAdopt, "bundle:"+a.b.Bundle)
		model.Bound()
		errs, err := a.r.store.Ingest(ctx, list, s.unlimited, s.touch(), nil, model)
		if err == nil && a.r.o.OnIngest != nil && !slices.ContainsFunc(errs, isError) {
			a.r.o.OnIngest(list)
		}
		a.r.o.OnCommit(list...)
		if a.r.fenced(ctx, err) && attempt < maxAttempts {
			continue
		}
		if err != nil {
			return tell(opAdopt, err)
		}
		for _, err := range errs {
			if err != nil {
				return tell(opAdopt, err)
			}
		}
		a.result.Created, a.result.Written = a.result.Created+len(list), a.result.Written+len(list)
		return nil
	}
}

func isError(err error) bool { return err != nil }

// addRuns adds new records with their histories.
func (a *Adopting) addRuns(ctx context.Context, runs [][]*stele.Record) error {
	var list []*stele.Record
	size := 0
	for _, run := range runs {
		list = append(list, run...)
		for _, rec := range run {
			size += rec.StoredSize()
		}
		if len(list) >= few || size >= historyCommit {
			if err := a.commit(ctx, list); err != nil {
				return err
			}
			list, size = nil, 0
		}
	}
	return a.commit(ctx, list)
}

// commit commits versions.
func (a *Adopting) commit(ctx context.Context, list []*stele.Record, cells ...stele.CellChange) error {
	if len(list) == 0 {
		return nil
	}
	s, err := a.r.view(ctx)
	if err != nil {
		return err
	}
	if err := a.r.commit(ctx, opAdopt, &stele.Commit{Records: list, Cells: cells, Counter: s.unlimited}); err != nil {
		return err
	}
	if a.r.o.OnIngest != nil && len(cells) == 0 {
		a.r.o.OnIngest(list)
	}
	for _, rec := range list {
		if a.result.Written++; rec.Version == 1 {
			a.result.Created++
		}
	}
	return nil
}

// addLater adds versions of records that are here: one of each record with a commit, since a commit has no record twice.
func (a *Adopting) addLater(ctx context.Context, groups []*adoptee) error {
	for len(groups) > 0 {
		var list []*stele.Record
		size := 0
		next := groups[:0]
		for _, g := range groups {
			rec := g.rest[0]
			g.rest = g.rest[1:]
			if len(g.rest) > 0 {
				next = append(next, g)
			}
			if rec.Withheld.Erased > 0 && (g.have == nil || rec.Withheld.Erased > g.have.Withheld.Erased) {
				if err := a.erase(ctx, g, rec); err != nil {
					return err
				}
				g.have = rec
				continue
			}
			list = append(list, rec)
			if size += rec.StoredSize(); len(list) >= few || size >= historyCommit {
				if err := a.commit(ctx, list); err != nil {
					return err
				}
				list, size = nil, 0
			}
		}
		if err := a.commit(ctx, list); err != nil {
			return err
		}
		groups = next
	}
	return nil
}

// erase adds a version that erases those before it. The log forgets what they said with the same commit.
func (a *Adopting) erase(ctx context.Context, g *adoptee, rec *stele.Record) error {
	for attempt := 1; ; attempt++ {
		var cells []stele.CellChange
		if a.r.o.OnErase != nil {
			var err error
			if cells, err = a.r.o.OnErase(ctx, rec.ID, rec.Withheld.Erased); err != nil {
				return tell(opAdopt, err)
			}
		}
		err := a.commit(ctx, []*stele.Record{rec}, cells...)
		if err == nil {
			if g.have != nil {
				a.result.Erased++
			}
			return nil
		}
		if len(cells) == 0 || !a.r.again(ctx, err, attempt) {
			return err
		}
		now, nerr := a.r.store.Record(ctx, rec.ID)
		if nerr != nil || now.Version != rec.Version-1 { // the conflict is not one of the log
			return err
		}
	}
}
