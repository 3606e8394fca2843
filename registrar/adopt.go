package registrar

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/registrar/minting"
)

const opAdopt = "adopt"

// AdoptedBundle is what a bundle says besides its records. The caller has checked all of the bundle.
type AdoptedBundle struct {
	From    string    // the giver, by the origin of its log, without the era
	Bundle  string    // SHA-256 of the manifest, in lower-case hexadecimal digits
	Change  uint64    // number of the last change that it has, in the giver's feed
	Until   time.Time // when that was made
	Keys    []string  // public keys of the giver's log by which it was checked
	Label   string    // of the import: the name of the file
	Spaces  []*stele.Namespace
	Minters []stele.MinterState // Name and After
	Names   uint64              // identifiers and aliases of all records, without the aliases that are left out
}

// AdoptOptions say how a bundle is adopted.
type AdoptOptions struct {
	// IsHeir reports whether an origin is one of this registry's own log; nil if that has no name.
	IsHeir func(origin string) bool

	Owner string // who owns the namespaces here; "": those who own them here already, or else administrators alone
	Split bool   // aliases of other namespaces are left out
}

// AdoptedSpace is what becomes of a namespace.
type AdoptedSpace struct {
	Key      stele.NamespaceKey
	HandOver stele.HandOver // as the giver has it
	New      bool           // this registry does not have it yet
	Reading  bool           // the giver has not sealed it for this registry
	Zone     string         // in which the giver publishes it; "" if it does not
}

// Adopting is the adoption of a bundle under way. Its methods are called one after the other: Begin, Write for all versions of
// records in their order, and Finish. Each may be repeated, also by another process: what is there already is compared and left.
type Adopting struct {
	*AdoptedNames
	r      *Registrar
	b      *AdoptedBundle
	o      AdoptOptions
	spaces []AdoptedSpace

	number uint64 // of the import
	fresh  bool   // no record was there when it began
	opened bool   // the final commit was made before
	result Adopted
}

// AdoptedNames are the names of the namespaces of a bundle.
type AdoptedNames struct {
	keys map[stele.NamespaceKey]bool
	tree *namespaces.Tree // of the namespaces of the bundle alone
}

// NamesOf returns the names that belong to namespaces. The schemes read them.
func NamesOf(schemes *stele.Schemes, spaces []*stele.Namespace) (*AdoptedNames, error) {
	n := &AdoptedNames{keys: map[stele.NamespaceKey]bool{}, tree: namespaces.New(schemes)}
	for _, ns := range spaces {
		n.keys[ns.Key()] = true
	}
	if errs := n.tree.Add(spaces...); len(errs) > 0 {
		return nil, tell(opAdopt, errs[0])
	}
	return n, nil
}

// Has reports whether a name is one that the bundle hands over.
func (n *AdoptedNames) Has(id stele.ID) bool {
	node := n.tree.Of(id)
	return node != nil && n.keys[node.Key()]
}

// Check refuses a version of a record that a registry would not keep.
func (n *AdoptedNames) Check(rec *stele.Record) error {
	if !n.Has(rec.ID) {
		return refuse(opAdopt, rec.ID, stele.Invalid, "adopt.record-outside", "the bundle does not have the namespace of this name; let the giver make one of whole namespaces")
	}
	if isEntry(rec) {
		return nil
	}
	if err := rec.Validate(); err != nil {
		return refuse(opAdopt, rec.ID, stele.Invalid, "adopt.version-invalid", "version {version}: {cause}", rec.Version, err)
	}
	return nil
}

// Adopted is what an adoption did.
type Adopted struct {
	Import  uint64
	Created int        // records
	Written int        // versions
	Present int        // versions that were here already
	Erased  int        // records whose content was erased here, since the giver has redacted them meanwhile
	Left    []stele.ID // records that were redacted here, and are left as they are
}

// Adopt judges whether a bundle can be adopted, and writes nothing. Only an administrator may adopt one.
func (r *Registrar) Adopt(ctx context.Context, b *AdoptedBundle, o AdoptOptions) (*Adopting, error) {
	if err := administrate(ctx, opAdopt, stele.ID{}); err != nil {
		return nil, err
	}
	if err := r.needProof(ctx, opAdopt); err != nil {
		return nil, err
	}
	a := &Adopting{r: r, b: b, o: o, fresh: true}
	if err := a.learnHosts(); err != nil {
		return nil, err
	}
	if err := r.Reload(ctx); err != nil {
		return nil, err
	}
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	if a.AdoptedNames, err = NamesOf(r.schemes, b.Spaces); err != nil {
		return nil, err
	}
	if len(b.Spaces) == 0 {
		return nil, refuse(opAdopt, stele.ID{}, stele.Invalid, "adopt.no-namespaces", "the bundle has no namespace, so that there is nothing to take over; let the giver make one of whole namespaces")
	}
	for _, ns := range b.Spaces {
		if s, err = a.judge(ctx, s, ns); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// learnHosts lets the schemes read the PURLs of the namespaces. Begin keeps their hosts.
func (a *Adopting) learnHosts() error {
	for scheme := range a.r.schemes.All() {
		if hosted, ok := scheme.(stele.HostScheme); ok {
			if hosts := a.hostsOf(hosted); len(hosts) > 0 {
				if err := hosted.AddHosts(hosts...); err != nil {
					return refuse(opAdopt, stele.ID{}, stele.Invalid, "", "{cause}", err)
				}
			}
		}
	}
	return nil
}

func (a *Adopting) hostsOf(scheme stele.HostScheme) (hosts []string) {
	for _, ns := range a.b.Spaces {
		if id, err := stele.NewID(ns.Scheme, ns.Prefix); ns.Scheme == scheme.Name() && err == nil {
			if host := scheme.HostOf(id); host != "" && !slices.Contains(hosts, host) {
				hosts = append(hosts, host)
			}
		}
	}
	return hosts
}

// judge decides whether a namespace can be adopted, and returns the namespaces with it.
func (a *Adopting) judge(ctx context.Context, s *namespaceTree, giver *stele.Namespace) (*namespaceTree, error) {
	key := giver.Key()
	var before *stele.Namespace
	if node := s.Get(key); node != nil {
		before = node.Namespace
	}
	if err := a.mayAdopt(ctx, before, giver); err != nil {
		return nil, err
	}
	for _, other := range s.below(key) {
		if other != key && !a.keys[other] {
			return nil, refuse(opAdopt, stele.ID{}, stele.Conflict, "adopt.namespace-below", "this registry has the namespace {namespace}, below {above}, and the bundle does not have it: both registries would give its names; nothing is taken over", other, key)
		}
	}
	next := a.taken(ctx, before, giver)
	a.spaces = append(a.spaces, AdoptedSpace{Key: key, HandOver: giver.HandOver, New: before == nil, Reading: !a.isSealedForUs(giver), Zone: giver.Publication.Zone})
	if before != nil && !before.IsRead() && len(before.Adoptions) > 0 {
		a.opened = true
		return s, nil
	}
	a.r.stampNamespace(ctx, before, next)
	changed, _, err := a.r.admitNamespace(context.WithValue(ctx, adopting{}, true), opAdopt, s, before, next)
	return changed, err
}

// isSealedForUs reports whether the giver has stopped to give names of a namespace, for this registry to go on.
func (a *Adopting) isSealedForUs(giver *stele.Namespace) bool {
	return giver.IsSealed() && a.o.IsHeir != nil && a.o.IsHeir(giver.HandOver.Heir)
}

// mayAdopt refuses a namespace that has names of this registry's own, that came from another giver, or that is newer here.
func (a *Adopting) mayAdopt(ctx context.Context, before, giver *stele.Namespace) error {
	key := giver.Key()
	if before == nil || len(before.Adoptions) == 0 {
		if before != nil && before.IsSealed() {
			return refuse(opAdopt, stele.ID{}, stele.Conflict, "adopt.handed-over", "{namespace} was handed over from this registry to {heir}, and does not come back by a bundle", key, before.HandOver.Heir)
		}
		return a.mustBeEmpty(ctx, before, key)
	}
	a.fresh = false
	last := before.Adoptions[len(before.Adoptions)-1]
	switch {
	case before.IsSealed():
		return refuse(opAdopt, stele.ID{}, stele.Conflict, "adopt.handed-over", "{namespace} was handed over from this registry to {heir}, and does not come back by a bundle", key, before.HandOver.Heir)
	case last.From != a.b.From:
		return refuse(opAdopt, stele.ID{}, stele.Conflict, "adopt.other-giver", "{namespace} was taken over from {giver}, and this bundle is of {other}", key, last.From, a.b.From)
	case last.Bundle == a.b.Bundle:
		return nil
	case !last.Reading:
		return refuse(opAdopt, stele.ID{}, stele.Conflict, "adopt.written-here", "{namespace} was taken over from {giver} for good, and its names change here since; a later bundle of the giver adds nothing", key, last.From)
	case last.Change > a.b.Change:
		return refuse(opAdopt, stele.ID{}, stele.Conflict, "adopt.older-bundle", "the bundle ends with change {change} of {giver}, and {namespace} was taken over here up to change {have}; adopt a later bundle", a.b.Change, a.b.From, key, last.Change)
	}
	return nil
}

// mustBeEmpty refuses a namespace of which this registry has given names itself: perhaps the giver gave the same ones.
func (a *Adopting) mustBeEmpty(ctx context.Context, before *stele.Namespace, key stele.NamespaceKey) error {
	s, err := a.r.view(ctx)
	if err != nil {
		return err
	}
	for _, above := range s.ancestorsAt(key) {
		if above.Key() != key && above.IsRead() && above.Adoptions[len(above.Adoptions)-1].From == a.b.From {
			return nil // the giver has added it since, and what is there came from it
		}
	}
	for rec, err := range a.r.store.Scan(ctx, key.Scheme, key.Prefix, "") {
		if err != nil {
			return tell(opAdopt, err)
		}
		if a.Has(rec.ID) {
			return refuse(opAdopt, rec.ID, stele.Conflict, "adopt.own-names", "it is registered here, and did not come from {giver}: two registries have given names in {namespace}; nothing is taken over", a.b.From, key)
		}
	}
	if before == nil {
		return nil
	}
	count, err := a.r.store.Count(ctx, key)
	if err != nil {
		return tell(opAdopt, err)
	}
	status, err := a.r.minters.Status(ctx, before)
	if err != nil {
		return tell(opAdopt, err)
	}
	if count > 0 || status.Given > 0 || !status.Last.IsZero() {
		return refuse(opAdopt, stele.ID{}, stele.Conflict, "adopt.own-minted", "names of {namespace} were given here, and did not come from {giver}; nothing is taken over", key, a.b.From)
	}
	return nil
}

// taken returns a namespace as this registry keeps it: with the giver's settings, and with owners, roles and publication of its own.
// It is for reading only until Finish.
func (a *Adopting) taken(ctx context.Context, before, giver *stele.Namespace) *stele.Namespace {
	next := cloneNamespace(giver)
	next.HandOver, next.Publication, next.Grants, next.Owner = stele.HandOver{}, stele.Publication{}, nil, a.o.Owner
	if before != nil {
		next.Publication, next.Grants = before.Publication, slices.Clone(before.Grants)
		next.Owner = cmp.Or(a.o.Owner, before.Owner)
		next.Keys = withKeys(next.Keys, before.Keys)
		if len(before.Adoptions) > 0 {
			next.Adoptions = slices.Clone(before.Adoptions)
		}
	}
	if n := len(next.Adoptions); before != nil && len(before.Adoptions) > 0 && next.Adoptions[n-1].Bundle == a.b.Bundle {
		return next // by an earlier run
	}
	next.Adoptions = append(next.Adoptions, stele.Adoption{
		From: a.b.From, To: giver.HandOver.Heir, Bundle: a.b.Bundle, Change: a.b.Change, Until: a.b.Until,
		At: a.r.now(), By: auth.From(ctx).Name, Reading: true,
	})
	if n := len(next.Adoptions) - stele.MaxAdoptions; n > 0 {
		next.Adoptions = next.Adoptions[n:]
	}
	return next
}

// Spaces returns what becomes of the namespaces.
func (a *Adopting) Spaces() []AdoptedSpace { return a.spaces }

// IsDone reports whether an earlier run adopted all of the bundle.
func (a *Adopting) IsDone(ctx context.Context) (bool, error) {
	if a.fresh {
		return false, nil
	}
	i, err := a.findImport(ctx)
	if err != nil || i == nil || i.Ended.IsZero() {
		return false, err
	}
	s, err := a.r.view(ctx)
	if err != nil {
		return false, err
	}
	for _, sp := range a.spaces {
		node := s.Get(sp.Key)
		if node == nil || len(node.Adoptions) == 0 || node.Adoptions[len(node.Adoptions)-1].Bundle != a.b.Bundle || node.IsRead() != sp.Reading {
			return false, nil
		}
	}
	return true, nil
}

// Begin adds the namespaces, or gives them the settings of the bundle, for reading only: no server gives names of them from
// then on, or changes a record there.
func (a *Adopting) Begin(ctx context.Context) error {
	ctx = context.WithValue(ctx, adopting{}, true)
	if err := a.beginImport(ctx); err != nil {
		return err
	}
	for scheme := range a.r.schemes.All() {
		if hosted, ok := scheme.(stele.HostScheme); ok {
			if hosts := a.hostsOf(hosted); len(hosts) > 0 {
				if _, err := a.r.addHosts(ctx, opAdopt, hosted, hosts); err != nil {
					return err
				}
			}
		}
	}
	for _, giver := range a.b.Spaces {
		_, err := a.r.writeNamespace(ctx, opAdopt, giver.Key(), func(before *stele.Namespace) (*stele.Namespace, error) {
			if err := a.mayAdopt(ctx, before, giver); err != nil {
				return nil, err
			}
			if before != nil && len(before.Adoptions) > 0 && !before.IsRead() {
				return cloneNamespace(before), nil
			}
			return a.taken(ctx, before, giver), nil
		})
		if err != nil {
			return err
		}
	}
	return a.fence(ctx)
}

// fence lets the store refuse what other servers judged before they knew of the namespaces. What they wrote until then Finish finds.
func (a *Adopting) fence(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		if err := a.r.Reload(ctx); err != nil {
			return err
		}
		s, err := a.r.view(ctx)
		if err != nil {
			return err
		}
		cell, err := a.r.raiseFence(ctx, opAdopt, s.versions)
		if err != nil {
			return err
		}
		if len(cell.Before) == 8 && binary.BigEndian.Uint64(cell.Before) >= s.versions {
			return nil
		}
		err = a.r.apply(ctx, opAdopt, &stele.Commit{Cells: []stele.CellChange{cell}})
		if err == nil || !a.r.again(ctx, err, attempt) {
			return err
		}
	}
}

// findImport returns the import of an earlier run; nil if there is none.
func (a *Adopting) findImport(ctx context.Context) (*Import, error) {
	for i, err := range a.r.Imports(ctx, 0) {
		if err != nil {
			return nil, err
		}
		if i.Adopted != nil && i.Adopted.Bundle == a.b.Bundle {
			return &i, nil
		}
	}
	return nil, nil
}

// beginImport gives the adoption the number of an import, which marks its versions, or finds that of an earlier run.
func (a *Adopting) beginImport(ctx context.Context) error {
	have, err := a.findImport(ctx)
	if err != nil {
		return err
	}
	if have != nil {
		a.number, a.result.Import = have.Number, have.Number
		return a.r.mayContinue(ctx, have.Number)
	}
	i := Import{Label: a.b.Label[:min(len(a.b.Label), MaxLabel)], Adopted: &AdoptedFrom{From: a.b.From, Bundle: a.b.Bundle, Keys: a.b.Keys}}
	err = a.r.beginImport(ctx, opAdopt, &i)
	a.number, a.result.Import = i.Number, i.Number
	return err
}

// GiverKeys returns the public keys of the logs of registries from which something was adopted. Only an administrator may have them.
func (r *Registrar) GiverKeys(ctx context.Context) (list []string, err error) {
	if err := administrate(ctx, opAdopt, stele.ID{}); err != nil {
		return nil, err
	}
	for i, err := range r.Imports(ctx, 0) {
		if err != nil {
			return nil, err
		}
		if i.Adopted != nil {
			list = append(list, i.Adopted.Keys...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// Finish lets the minters go on where the giver's are, makes sure that this registry has all names of the bundle and no others, and
// then opens the namespaces that the giver has sealed for this registry: from then on they are this registry's.
func (a *Adopting) Finish(ctx context.Context) (Adopted, error) {
	ctx = context.WithValue(ctx, adopting{}, true)
	if err := a.advance(ctx); err != nil {
		return a.result, err
	}
	if !a.opened {
		if err := a.isWhole(ctx); err != nil {
			return a.result, err
		}
		if err := a.open(ctx); err != nil {
			return a.result, err
		}
	}
	err := a.r.NoteImport(ctx, a.number, ImportCounts{Created: a.result.Created, Updated: a.result.Written - a.result.Created, Unchanged: a.result.Present, Refused: len(a.result.Left)})
	return a.result, err
}

// advance lets the minters go on where those of the giver are, and never back.
func (a *Adopting) advance(ctx context.Context) error {
	ours := map[string]bool{}
	for _, ns := range a.b.Spaces {
		ours[minting.StateName(ns.Key())] = true
		keys, err := minting.DatePrefixes(a.r.schemes, ns)
		if err != nil {
			return tell(opAdopt, err)
		}
		for _, key := range keys {
			ours[minting.StateName(key)] = true
		}
	}
	var list []stele.MinterState
	for _, m := range a.b.Minters {
		scheme, prefix, _ := strings.Cut(m.Name, " ")
		node := a.tree.At(stele.NamespaceKey{Scheme: scheme, Prefix: prefix})
		if ours[m.Name] || node != nil && a.keys[node.Key()] {
			list = append(list, m)
		}
	}
	for attempt := 1; ; attempt++ {
		states, err := a.r.minters.Adopt(ctx, opAdopt, list)
		if err != nil {
			return err
		}
		err = a.r.applyMinters(ctx, opAdopt, states)
		if err == nil || !a.r.again(ctx, err, attempt) {
			return err
		}
	}
}

// isWhole makes sure that the namespaces have as many names as the bundle.
func (a *Adopting) isWhole(ctx context.Context) error {
	if len(a.result.Left) > 0 {
		return nil // a record that is left may lack aliases
	}
	sum := uint64(0)
	for _, sp := range a.spaces {
		n, err := a.r.store.Count(ctx, sp.Key)
		if err != nil {
			return tell(opAdopt, err)
		}
		sum += n
	}
	if sum != a.b.Names {
		return refuse(opAdopt, stele.ID{}, stele.Conflict, "adopt.names-differ", "the namespaces have {have} names here, and {want} in the bundle: names were registered here that did not come from {giver}; they stay for reading only", sum, a.b.Names, a.b.From)
	}
	return nil
}

// open makes the namespaces that were sealed for this registry its own, all with one commit.
func (a *Adopting) open(ctx context.Context) error {
	if err := a.r.lock(ctx); err != nil {
		return err
	}
	defer a.r.unlock()
	for attempt := 1; ; attempt++ {
		s, err := a.r.latest(ctx)
		if err != nil {
			return err
		}
		c, changed := new(stele.Commit), s
		for _, sp := range a.spaces {
			node := s.Get(sp.Key)
			if node == nil || !node.IsRead() || sp.Reading {
				continue
			}
			next := cloneNamespace(node.Namespace)
			next.Adoptions[len(next.Adoptions)-1].Reading = false
			a.r.stampNamespace(ctx, node.Namespace, next)
			if changed, err = changed.with(next); err != nil {
				return tell(opAdopt, err)
			}
			c.Namespaces = append(c.Namespaces, next)
		}
		if len(c.Namespaces) == 0 {
			return nil
		}
		c.Cells = []stele.CellChange{s.changed()}
		if err = a.r.apply(ctx, opAdopt, c); err == nil {
			changed.epoch = c.Cells[0].After
			a.r.replace(s, changed)
			return nil
		}
		a.r.replace(s, nil)
		if !a.r.again(ctx, err, attempt) {
			return err
		}
	}
}
