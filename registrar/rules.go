package registrar

import (
	"context"
	"slices"
	"strconv"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/publish/zonemap"
	"github.com/stele-id/stele/registrar/minting"
)

// admit decides whether the caller may write next, a version of a record that follows
// before, which is nil for a new one. It checks rights first; then it reports all
// problems together.
func (r *Registrar) admit(ctx context.Context, op string, s *lookup, before, next *stele.Record) error {
	return r.admitKept(ctx, op, s, before, next, false)
}

// admitKept is admit. What another registry kept (see [ImportOptions]) may have
// signatures of keys that may not sign any more.
func (r *Registrar) admitKept(ctx context.Context, op string, s *lookup, before, next *stele.Record, kept bool) error {
	if err := mayWrite(ctx, op, s, before, next); err != nil {
		return err
	}
	if err := r.open(ctx, op, s.namespaceTree, next); err != nil {
		return err
	}
	if err := r.judge(op, s, before, next, kept); err != nil || kept {
		return err
	}
	destination.Align(before, next) // it makes targets of values that were judged, and the other way round
	return nil
}

// judge decides whether a version of a record is right, whoever writes it. It reports all
// problems together.
func (r *Registrar) judge(op string, s *lookup, before, next *stele.Record, kept bool) error {
	problems, err := problemsOf(next.Validate())
	if err != nil {
		return tell(op, err)
	}
	j := judge{r, s, problems}
	j.names(before, next)
	j.partial(before, next)
	j.destinations(next)
	j.signatures(before, next, kept)
	if len(j.problems) > 0 {
		return &stele.Error{Op: op, ID: next.ID, Kind: stele.Invalid, Err: j.problems}
	}
	return elsewhere(op, s, before, next)
}

// mayWrite requires rights in the namespace of the record, and in that of each new
// alias.
func mayWrite(ctx context.Context, op string, s *lookup, before, next *stele.Record) error {
	who := auth.From(ctx)
	switch {
	case !who.IsKnown():
		return refuse(op, next.ID, stele.Unauthenticated, "request.anonymous", "say who you are; send a token")
	case who.Admin, !next.ID.IsValid(): // a record without a name is refused anyway
		return nil
	case before != nil && before.Redacted:
		return refuse(op, next.ID, stele.Forbidden, "record.redacted-needs-administrator", "its content was removed by a legal order; only an administrator may change it")
	}
	if err := authorise(ctx, op, next.ID, s.ancestorsOf(next.ID)); err != nil {
		return err
	}
	for _, alias := range next.Aliases {
		if before != nil && slices.Contains(before.Aliases, alias) {
			continue
		}
		if err := authorise(ctx, op, alias, s.ancestorsOf(alias)); err != nil {
			return err
		}
	}
	return nil
}

// elsewhere refuses new names in a namespace that another resolver answers for:
// they are registered there. Names that are here already stay and may change.
func elsewhere(op string, s *lookup, before, next *stele.Record) error {
	if !s.delegated {
		return nil
	}
	check := func(id stele.ID) error {
		if ns := s.Of(id); ns != nil && ns.Delegate != "" {
			return refuse(op, id, stele.Conflict, "record.namespace-delegated", `names in {namespace} are kept by another resolver, "{resolver}"; register it there`, ns.Key(), ns.Delegate)
		}
		return nil
	}
	if before == nil {
		if err := check(next.ID); err != nil {
			return err
		}
	}
	for _, alias := range next.Aliases {
		if before != nil && slices.Contains(before.Aliases, alias) {
			continue
		}
		if err := check(alias); err != nil {
			return err
		}
	}
	return nil
}

// judge collects what is wrong with a record beyond what the record itself shows.
type judge struct {
	*Registrar
	namespaceTree *lookup
	problems      stele.Problems
}

func (j *judge) addf(path, code, text string, args ...any) {
	j.add(path, stele.Messagef(code, text, args...))
}

func (j *judge) add(path string, err error) {
	j.problems = append(j.problems, stele.Problem{Path: path, Err: err})
}

// names judges the names that are new, and makes sure that none is gone.
func (j *judge) names(before, next *stele.Record) {
	if before == nil {
		j.name("id", next.ID)
	}
	for i, alias := range next.Aliases {
		if before == nil || !slices.Contains(before.Aliases, alias) {
			j.name("aliases["+strconv.Itoa(i)+"]", alias)
		}
	}
	if before != nil {
		for _, alias := range before.Aliases {
			if !slices.Contains(next.Aliases, alias) {
				j.addf("aliases", "record.alias-detached", "{alias} is missing; no name is ever detached from its record", alias)
			}
		}
	}
	if next.Spelling != "" && (before == nil || before.Spelling != next.Spelling) {
		if id, err := j.schemes.Parse(next.Spelling); err != nil {
			j.add("spelling", stele.Reason(err))
		} else if id != next.ID {
			j.addf("spelling", "record.spelling-of-other-name", "is a spelling of {id}; give one of the record's identifier", id)
		}
	}
	if t := next.Tombstone; t != nil && t.Replacement.IsValid() {
		j.canonical("tombstone.replacement", t.Replacement)
		if slices.Contains(next.Aliases, t.Replacement) {
			j.addf("tombstone.replacement", "record.replaced-by-itself", "is another name of the record itself; name another record, or leave it out")
		}
	}
}

// partial judges targets that are marked as partial, where none was before: something
// must be able to follow a name of the record.
func (j *judge) partial(before, next *stele.Record) {
	isPartial := func(t stele.Target) bool { return t.Partial }
	i := slices.IndexFunc(next.Targets, isPartial)
	if i < 0 || !next.ID.IsValid() || before != nil && slices.ContainsFunc(before.Targets, isPartial) {
		return
	}
	if !slices.ContainsFunc(next.Names(), func(id stele.ID) bool { return namespaces.IsFollowed(j.schemes, id) }) {
		j.add("targets["+strconv.Itoa(i)+"].partial", stele.Messagef("target.nothing-follows",
			"nothing can follow {name} in a name, so there is nothing to append to the URL; leave partial out", next.ID))
	}
}

// name judges a name that is new.
func (j *judge) name(path string, id stele.ID) {
	if !id.IsValid() || !j.canonical(path, id) {
		return
	}
	if j.namespaceTree.exact {
		j.parts(path, id)
	}
	if !j.namespaceTree.checked {
		return
	}
	ns := j.namespaceTree.Of(id)
	if ns == nil || !ns.Checked || ns.Prefix == id.String() {
		return
	}
	zone := minting.CheckZone(j.schemes.Lookup(id.Scheme()), id.String())
	if mint.Checked(zone) {
		return
	}
	if len(zone) < 2 {
		j.addf(path, "record.too-short-for-check-character", "names in {namespace} end in a check character, and this one is too short for it", ns.Key())
		return
	}
	last := len(zone) - 1
	j.addf(path, "record.check-character-wrong", "names in {namespace} end in a check character, and '{found}' is not that of the rest ('{expected}' is): a character is wrong, or two are swapped",
		ns.Key(), string(rune(zone[last])), string(rune(mint.CheckChar(zone[:last]))))
}

// parts makes sure that a name has as many parts as names have where it is published, if
// that namespace asks for it.
func (j *judge) parts(path string, id stele.ID) {
	ns := j.namespaceTree.Around(id, zonemap.HasDestination)
	if ns == nil || !ns.Publication.Exact || ns.Prefix == id.String() {
		return
	}
	p := &ns.Publication
	if n := zonemap.Parts(j.schemes, ns, id); n != p.Parts {
		j.add(path, stele.Messagef("name.parts", "names in {namespace} have {want} with {separator} between them, and this one has {parts}",
			ns.Key(), countParts(p.Parts), p.Separator, countParts(n)))
	}
}

func countParts(n int) string {
	if n == 1 {
		return "1 part"
	}
	return strconv.Itoa(n) + " parts"
}

// canonical makes sure that an ID is what its own text is read as. A caller that makes
// an ID without parsing could be wrong.
func (j *judge) canonical(path string, id stele.ID) bool {
	again, err := j.schemes.Parse(id.String())
	switch {
	case err != nil:
		j.add(path, stele.Reason(err))
	case again.Scheme() != id.Scheme():
		j.addf(path, "record.name-of-other-scheme", "is a name of the scheme {scheme}, not {expected}", again.Scheme(), id.Scheme())
	case again != id:
		j.addf(path, "record.name-not-canonical", "is not in canonical form; write {canonical}", again)
	default:
		return true
	}
	return false
}
