package registrar

import (
	"context"
	"iter"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// Breach is a record that was written before a rule of one of its namespaces, and that
// the rule would refuse now.
type Breach struct {
	ID       stele.ID
	Version  uint64
	Problems stele.Problems
}

// CheckRules yields the records with a name in the namespace, or in one below it, that
// the present rules would refuse: hosts and protocols that are not allowed, and names
// without the check character that the namespace asks for. Rules are applied when a
// record is written, so a record that is older than a rule can break it.
//
// An alias can make a record of any other namespace lead from this one, so CheckRules
// reads all records; it calls progress, if that is not nil, with the number of records
// read so far. The caller needs the role of a reader in the namespace, and sees the
// records that it may read.
func (r *Registrar) CheckRules(ctx context.Context, key stele.NamespaceKey, progress func(read int)) iter.Seq2[Breach, error] {
	const op = "check namespace"
	return func(yield func(Breach, error) bool) {
		if _, err := r.Namespace(ctx, key); err != nil {
			yield(Breach{}, err)
			return
		}
		s, err := r.view(ctx)
		if err != nil {
			yield(Breach{}, err)
			return
		}
		read := 0
		for scheme := range r.schemes.All() {
			for rec, err := range r.store.Scan(ctx, scheme.Name(), "", "") {
				if err != nil {
					yield(Breach{}, tell(op, err))
					return
				}
				if read++; progress != nil {
					progress(read)
				}
				if !r.isIn(s, key, rec) || !auth.MayRead(auth.From(ctx), rec, s.ancestorsOf(rec.ID)...) {
					continue
				}
				j := judge{r, s.lookup(), nil}
				j.presentNames(rec)
				j.partial(nil, rec)
				j.destinations(rec)
				if len(j.problems) > 0 && !yield(Breach{rec.ID, rec.Version, j.problems}, nil) {
					return
				}
			}
		}
	}
}

// isIn reports whether a name of the record is in the namespace or below it.
func (r *Registrar) isIn(s *namespaceTree, key stele.NamespaceKey, rec *stele.Record) bool {
	in := func(id stele.ID) bool {
		if id.Scheme() != key.Scheme {
			return false
		}
		for _, ns := range s.ancestorsOf(id) {
			if ns.Key() == key {
				return true
			}
		}
		return false
	}
	if in(rec.ID) {
		return true
	}
	for _, alias := range rec.Aliases {
		if in(alias) {
			return true
		}
	}
	return false
}

// presentNames judges the names of a record as if they were new.
func (j *judge) presentNames(rec *stele.Record) { j.names(nil, rec) }
