package registrar

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/registrar/minting"
)

// A giver that fell silent may come back, with its minters where they were. So an heir that adopted a namespace by that rule changes records, and makes names only
// where the giver makes none: in namespaces below that it adds itself. See docs/decisions/0077.

// Silence says for how long a giver has been silent. The caller has asked it once more.
type Silence struct {
	Days int       // on which it was asked and did not answer
	Seen time.Time // its last good checkpoint; zero if there never was one
	Size uint64    // of that checkpoint
}

// inSilence decides whether a namespace that is not sealed for this registry is adopted since its giver fell silent, and returns the name by which the giver
// has named this registry; "" if it is adopted for reading only.
func (a *Adopting) inSilence(before, giver *stele.Namespace) (heir string, err error) {
	if before != nil && a.isLast(before) {
		if last := &before.Adoptions[len(before.Adoptions)-1]; last.Silent { // it was opened before
			return last.To, nil
		}
	}
	if a.o.Silence == nil {
		return "", nil
	}
	key := giver.Key()
	if giver.IsSealed() || giver.IsRead() {
		return "", refuse(opAdopt, stele.ID{}, stele.Conflict, "adopt.silent-not-giver", "{giver} does not make the names of {namespace}: it handed it over to another registry, or has it for reading only; look for a bundle of that registry", a.b.From, key)
	}
	own := a.heirs(giver, true)
	if len(own) == 0 {
		return "", refuse(opAdopt, stele.ID{}, stele.Conflict, "adopt.not-an-heir", "in the bundle {namespace} does not name this registry as an heir, so that it can be adopted for reading only; leave --silent out", key)
	}
	h := &own[0]
	if a.o.Silence.Days < h.Days {
		return "", refuse(opAdopt, stele.ID{}, stele.Conflict, "adopt.silence-too-short", "{giver} was asked and silent on {days} days, and {namespace} may be taken over after {want}; wait, and adopt the bundle for reading only meanwhile", a.b.From, a.o.Silence.Days, key, h.Days)
	}
	if until := a.b.Until.AddDate(0, 0, h.Days); a.r.now().Before(until) {
		return "", refuse(opAdopt, stele.ID{}, stele.Conflict, "adopt.bundle-in-silence", "{giver} has made the last change of the bundle at {change}, so that it was not silent for {want} days; try again at {until}", a.b.From, a.b.Until.UTC().Format(time.RFC3339), h.Days, until.UTC().Format(time.RFC3339))
	}
	return h.Registry, nil
}

// heirs returns the heirs of a namespace that the bundle names: this registry, or the others.
func (a *Adopting) heirs(giver *stele.Namespace, own bool) (list []stele.Heir) {
	for _, h := range stele.HeirsOf(a.tree.Ancestors(a.tree.Get(giver.Key()))...) {
		if own == (a.o.IsHeir != nil && a.o.IsHeir(h.Registry)) {
			list = append(list, h)
		}
	}
	return list
}

// marked returns a namespace that is about to be taken over in silence with the name of this registry in its adoption. So two heirs that ask each other at the same time see
// that of each other, and neither takes it over until their operators have agreed.
func (a *Adopting) marked(next *stele.Namespace) *stele.Namespace {
	for i := range a.spaces {
		if sp := &a.spaces[i]; sp.Key == next.Key() && sp.Silent != "" {
			next.Adoptions[len(next.Adoptions)-1].To = sp.Silent
		}
	}
	return next
}

// mayFollow refuses a bundle for a namespace that was adopted in silence, and is another one than that: if records were changed here, the two histories can't be joined.
func (a *Adopting) mayFollow(ctx context.Context, before, giver *stele.Namespace) error {
	key := before.Key()
	if err := a.notOlder(before); err != nil {
		return err
	}
	if !a.isSealedForUs(giver) && a.o.Silence == nil {
		return refuse(opAdopt, stele.ID{}, stele.Conflict, "adopt.silent-here", "{namespace} was taken over since {giver} fell silent, and records change here; adopt a bundle that was made after it was sealed for this registry, or give --silent", key, a.b.From)
	}
	s, err := a.r.view(ctx)
	if err != nil {
		return err
	}
	adopted, err := a.imports(ctx)
	if err != nil {
		return err
	}
	for rec, err := range a.r.store.Scan(ctx, key.Scheme, key.Prefix, "") {
		if err != nil {
			return tell(opAdopt, err)
		}
		if node := s.Of(rec.ID); node != nil && node.Key() == key && isChanged(rec, adopted) {
			return a.changedHere(rec)
		}
	}
	return nil
}

// imports returns the numbers of the imports by which something was adopted from the giver.
func (a *Adopting) imports(ctx context.Context) (map[uint64]bool, error) {
	adopted := map[uint64]bool{}
	for i, err := range a.r.Imports(ctx, 0) {
		if err != nil {
			return nil, err
		}
		adopted[i.Number] = i.Adopted != nil && i.Adopted.From == a.b.From
	}
	return adopted, nil
}

// isChanged reports whether the last version of a record was made here, and did not come with one of the imports. A redaction follows a legal order.
func isChanged(rec *stele.Record, adopted map[uint64]bool) bool {
	return !adopted[rec.Import] && !rec.Redacted
}

// changedHere refuses a bundle since a record was changed here.
func (a *Adopting) changedHere(rec *stele.Record) error {
	return refuse(opAdopt, rec.ID, stele.Conflict, "adopt.changed-in-silence", "version {version} was made here, since {giver} fell silent, so that this record is another one here than in the bundle; nothing is taken over. Agree with the operator of {giver} on which of the two registries goes on", rec.Version, a.b.From)
}

// isShoulder reports whether a namespace is one that this registry has added for new names, below one that it adopted in silence.
func (s *namespaceTree) isShoulder(key stele.NamespaceKey) bool {
	node := s.Get(key)
	if node == nil || len(node.Adoptions) > 0 {
		return false
	}
	for _, above := range s.Ancestors(node)[1:] {
		if slices.ContainsFunc(above.Adoptions, func(a stele.Adoption) bool { return a.Silent }) {
			return true
		}
	}
	return false
}

// Shoulders returns the namespaces that this registry has added for new names, below those that it adopted since their giver fell silent. Only an administrator may have them.
func (r *Registrar) Shoulders(ctx context.Context) (list []*stele.Namespace, err error) {
	if err := administrate(ctx, opAdopt, stele.ID{}); err != nil {
		return nil, err
	}
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	for _, key := range s.ordered() {
		if s.isShoulder(key) {
			list = append(list, cloneNamespace(s.Get(key).Namespace))
		}
	}
	return list, nil
}

// EndGiver says that the registry from which a namespace, and those below it, were taken over after a silence has ended, and makes no names of them any more. From then on
// they are made here. The bundle is as a backup of the giver's minters: they may have made names after it that are in no log. So minters are made safe as after a restore: templates are shut until an
// administrator skips their counters ahead, and dates go on from now. The caller is sure of it; confirm asks each giver once more, and the other heirs of its namespaces, and returns an error if
// the giver is not silent, or if another heir has taken one of them over. Only an administrator may.
func (r *Registrar) EndGiver(ctx context.Context, key stele.NamespaceKey, sure bool, confirm func(ctx context.Context, giver string, spaces []AdoptedSpace) error) ([]*stele.Namespace, error) {
	const op = "end giver"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return nil, err
	}
	if err := r.needProof(ctx, op); err != nil {
		return nil, err
	}
	now, err := mint.DateOf(r.now())
	if err != nil {
		return nil, refuse(op, stele.ID{}, stele.Unavailable, "mint.clock-wrong", "the clock is wrong: {cause}; set it", err)
	}
	own, err := r.LogOrigin(ctx)
	if err != nil {
		return nil, err
	}
	confirmed := make(map[stele.NamespaceKey]bool)
	for {
		ended, ask := false, make(map[string][]AdoptedSpace)
		list, err := r.writeNamespacesAnd(ctx, op, key, false, func(_, next *stele.Namespace) error {
			n := len(next.Adoptions)
			if n > 0 && next.Adoptions[n-1].Silent {
				ended = true
			}
			if !next.IsSilent() {
				return nil
			}
			last := &next.Adoptions[n-1]
			switch {
			case !sure:
				return refuse(op, stele.ID{}, stele.Conflict, "silence.end-unconfirmed", "{namespace} was taken over from {giver}: if that registry still makes names, two registries make the same ones, and this can't be repaired; find out that it has ended for good, and give --i-know then", next.Key(), last.From)
			case !confirmed[next.Key()]:
				ask[last.From] = append(ask[last.From], AdoptedSpace{Key: next.Key()})
			}
			last.Ended = r.now()
			return nil
		}, func(c *stele.Commit, s *namespaceTree) (err error) {
			for from, spaces := range ask {
				for i := range spaces {
					spaces[i].Others = s.heirsBut(spaces[i].Key, own.Origin)
				}
				err = refuse(op, stele.ID{}, stele.Conflict, "silence.giver-unasked", "{giver} was not asked whether it is silent; try again", from)
			}
			if err != nil {
				return err
			}
			c.Minters, err = r.afterGiver(ctx, op, now, s, c.Namespaces)
			return err
		})
		switch {
		case len(ask) > 0 && sure: // no lock is held while the giver is asked
			for from, spaces := range ask {
				if err := confirm(ctx, from, spaces); err != nil {
					return nil, under(op, err)
				}
				for _, sp := range spaces {
					confirmed[sp.Key] = true
				}
			}
			continue
		case err == nil && !ended:
			return nil, refuse(op, stele.ID{}, stele.Conflict, "silence.none", "{namespace} was not taken over from a registry that fell silent; 'stele handover status' says from which it was", key)
		}
		return list, err
	}
}

// heirsBut returns the heirs of a namespace and of those above it, except a registry.
func (s *namespaceTree) heirsBut(key stele.NamespaceKey, own string) (list []stele.Heir) {
	for _, ns := range s.ancestorsAt(key) {
		for _, h := range ns.Heirs {
			if h.Registry != own && !slices.Contains(list, h) {
				list = append(list, h)
			}
		}
	}
	return list
}

// keepsHeirs refuses to remove a registry from the heirs of a namespace whose giver fell silent: it may take the namespace over by the same silence, and has to be asked.
func keepsHeirs(op string, before, next *stele.Namespace) error {
	for _, h := range before.Heirs {
		if !slices.ContainsFunc(next.Heirs, func(n stele.Heir) bool { return n.Registry == h.Registry }) {
			return refuse(op, stele.ID{}, stele.Conflict, "silence.heir-stays", "{heir} may take {namespace} over by the same silence, so that it is asked before its giver is said to have ended; it stays named until then", h.Registry, before.Key())
		}
	}
	return nil
}

// under returns an error as one of another operation.
func under(op string, err error) error {
	e, ok := errors.AsType[*stele.Error](err)
	if !ok {
		return tell(op, err)
	}
	other := *e
	other.Op = op
	return &other
}

// afterGiver returns the states of minters by which the minters of namespaces repeat no name that their giver made after the bundle: all states of
// prefixes that belong to them, also those of templates and dates that they had before.
func (r *Registrar) afterGiver(ctx context.Context, op string, now mint.Date, s *namespaceTree, ended []*stele.Namespace) ([]stele.MinterState, error) {
	theirs, prefixes := make(map[stele.NamespaceKey]bool), make(map[string]bool)
	for _, ns := range ended {
		theirs[ns.Key()] = true
		keys, err := minting.DatePrefixes(r.schemes, ns)
		if err != nil {
			return nil, tell(op, err)
		}
		for _, key := range keys {
			prefixes[minting.StateName(key)] = true
		}
	}
	states := func(yield func(stele.MinterState, error) bool) {
		for m, err := range r.store.MinterStates(ctx) {
			if err == nil && !prefixes[m.Name] {
				scheme, prefix, _ := strings.Cut(m.Name, " ")
				if node := s.At(stele.NamespaceKey{Scheme: scheme, Prefix: prefix}); node == nil || !theirs[node.Key()] {
					continue
				}
			}
			if !yield(m, err) {
				return
			}
		}
	}
	spaces := func(yield func(*stele.Namespace, error) bool) {
		for _, ns := range ended {
			if !yield(ns, nil) {
				return
			}
		}
	}
	return minting.Restored(op, now, states, spaces)
}

// silent refuses to make a name in a namespace whose giver fell silent.
func silent(op string, id stele.ID, ns *stele.Namespace) error {
	from := ns.Adoptions[len(ns.Adoptions)-1].From
	return refuse(op, id, stele.Conflict, "record.namespace-silent", `{namespace} was taken over since {giver} fell silent, which may come back and make names of it; register new names in a new namespace below it, or, if that registry has ended for good, say so with 'stele escrow ended'`, ns.Key(), from)
}

// keepsSilence refuses changes by which names could be made here that a silent giver makes, too: of the minter of its namespace, and of namespaces below it in which it has
// names, or can make some.
func (r *Registrar) keepsSilence(ctx context.Context, op string, s *namespaceTree, ancestors []*stele.Namespace, before, next *stele.Namespace) error {
	if ctx.Value(adopting{}) != nil {
		return nil
	}
	if before != nil && before.IsSilent() {
		if before.Minter != next.Minter || before.Checked != next.Checked {
			return silent(op, stele.ID{}, before)
		}
		return keepsHeirs(op, before, next)
	}
	above := slices.IndexFunc(ancestors[1:], (*stele.Namespace).IsSilent)
	if above < 0 || len(next.Adoptions) > 0 {
		return nil
	}
	if next.Minter.Kind == stele.MinterIBI { // whose names do not begin as the namespace does
		return refuse(op, stele.ID{}, stele.Conflict, "silence.dates", "names of {namespace} would be made of dates, as those of {above} may be; use a template", next.Key(), ancestors[1+above].Key())
	}
	if before != nil {
		return nil
	}
	return r.isFree(ctx, op, s, ancestors[1+above], next.Key())
}

// isFree refuses a new namespace below one whose giver fell silent if the giver has names there, or can make some, or if that can't be known.
func (r *Registrar) isFree(ctx context.Context, op string, s *namespaceTree, above *stele.Namespace, key stele.NamespaceKey) error {
	for _, node := range s.All() {
		if node.Scheme != key.Scheme || !node.IsSilent() {
			continue
		}
		state, err := r.minters.State(ctx, node.Key())
		if err != nil {
			return err
		}
		if minting.MayMake(r.schemes, node.Namespace, state.Templates, key.Prefix) {
			return refuse(op, stele.ID{}, stele.Conflict, "silence.made-there", "the minter of {above} makes names that may begin with {namespace}, and {giver} may come back and make them; choose another prefix", node.Key(), key, above.Adoptions[len(above.Adoptions)-1].From)
		}
	}
	read, _ := ctx.Value(namesRead{}).(*namesRead)
	if read == nil { // nothing is written: perhaps it is only foreseen
		read = &namesRead{key: key}
		if err := r.readNames(ctx, op, read); err != nil {
			return err
		}
	}
	if !read.all {
		return errNamesUnread
	}
	if err := r.readLater(ctx, op, read, mostLater); err != nil {
		return err
	}
	if read.found.IsValid() {
		return refuse(op, stele.ID{}, stele.Conflict, "silence.named-there", "{id} begins with {namespace}, and came from {giver}; choose a prefix with which none of its names begins", read.found, key, above.Adoptions[len(above.Adoptions)-1].From)
	}
	return nil
}

// namesRead says whether a name begins as a namespace does that is to be added. An alias can belong to any record, so that all of them are read, before the namespace is judged: no lock
// is held meanwhile. Its zero value is the key of a context that has one.
type namesRead struct {
	key   stele.NamespaceKey
	all   bool     // all records were read
	upTo  uint64   // the change up to which they were
	found stele.ID // the first such name; invalid if there is none
}

// errNamesUnread says that records have to be read first.
var errNamesUnread = stele.Messagef("silence.names-unread", "names were registered meanwhile; try again")

// mostLater is how many changes are read while a lock is held.
const mostLater = 1000

// readNames reads all records, or, the second time, those that changed since.
func (r *Registrar) readNames(ctx context.Context, op string, read *namesRead) error {
	if read.all {
		return r.readLater(ctx, op, read, math.MaxInt)
	}
	last, err := r.store.LastChange(ctx)
	if err != nil {
		return tell(op, err)
	}
	for scheme := range r.schemes.All() {
		for rec, err := range r.store.Scan(ctx, scheme.Name(), "", "") {
			if err != nil {
				return tell(op, err)
			}
			if read.look(rec); read.found.IsValid() {
				break
			}
		}
	}
	read.all, read.upTo = true, last
	return nil
}

// readLater reads the records that changed since records were read. If there are more than most changes it says that they are unread.
func (r *Registrar) readLater(ctx context.Context, op string, read *namesRead, most int) error {
	n := 0
	for c, err := range r.store.Changes(ctx, read.upTo) {
		if err != nil {
			return tell(op, err)
		}
		if n++; n > most {
			return errNamesUnread
		}
		if c.ID.IsValid() {
			rec, err := r.store.Record(ctx, c.ID)
			if err != nil {
				return tell(op, err)
			}
			read.look(rec)
		}
		read.upTo = c.Seq
	}
	return nil
}

// look notes a name of a record that begins as the namespace does.
func (n *namesRead) look(rec *stele.Record) {
	for _, id := range rec.Names() {
		if id.Scheme() == n.key.Scheme && strings.HasPrefix(id.String(), n.key.Prefix) && !n.found.IsValid() {
			n.found = id
		}
	}
}

// leave lets Check refuse names in namespaces that this registry has added itself.
func (n *AdoptedNames) leave(schemes *stele.Schemes, shoulders []*stele.Namespace) {
	if len(shoulders) > 0 {
		n.own = namespaces.New(schemes)
		n.own.Add(shoulders...) // what is wrong with them is not of interest here
	}
}

// isOwn reports whether a name is in a namespace that this registry has added itself.
func (n *AdoptedNames) isOwn(id stele.ID) bool { return n.own != nil && n.own.Of(id) != nil }
