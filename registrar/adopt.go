package registrar

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/namespaces"
)

const opAdopt = "adopt"

// AdoptedBundle is what a bundle says besides its records. The caller has checked all of the bundle.
type AdoptedBundle struct {
	From       string    // the giver, by the origin of its log, without the era
	Bundle     string    // SHA-256 of the manifest, in lower-case hexadecimal digits
	Change     uint64    // number of the last change that it has, in the giver's feed
	Generation string    // the generation of the giver in which that number was counted
	Earlier    []string  // the generations of the giver before it
	Until      time.Time // when that was made
	Keys       []string  // public keys of the giver's log by which it was checked
	Label      string    // of the import: the name of the file
	Spaces     []*stele.Namespace
	Minters    []stele.MinterState // Name and After
	Fixed      []FixedName         // which bytes names stand for
	Names      uint64              // identifiers and aliases of all records, without the aliases that are left out
}

// AdoptOptions say how a bundle is adopted.
type AdoptOptions struct {
	// IsHeir reports whether an origin is one of this registry's own log; nil if that has no name.
	IsHeir func(origin string) bool

	Owner string // who owns the namespaces here; "": those who own them here already, or else administrators alone
	Split bool   // aliases of other namespaces are left out

	Silence *Silence // of the giver: it is adopted by the rule for that. Nil: not so
}

// AdoptedSpace is what becomes of a namespace.
type AdoptedSpace struct {
	Key      stele.NamespaceKey
	HandOver stele.HandOver // as the giver has it
	New      bool           // this registry does not have it yet
	Reading  bool           // the giver has not sealed it for this registry, and it is not adopted in silence
	Silent   string         // the name by which the giver has named this registry as an heir, if it is adopted since the giver fell silent
	Others   []stele.Heir   // the other heirs that the bundle names, if it is adopted since the giver fell silent

	// Publication is the zone in which the giver publishes it, and how names are cut into parts; the zero value if it does not.
	Publication stele.Publication
}

// Adopting is the adoption of a bundle under way. Its methods are called one after the other: Begin, Write for all versions of
// records in their order, FixData, and Finish. Each may be repeated, also by another process: what is there already is compared and left.
type Adopting struct {
	*AdoptedNames
	r      *Registrar
	b      *AdoptedBundle
	o      AdoptOptions
	spaces []AdoptedSpace

	number    uint64                      // of the import
	fresh     bool                        // no record was there when it began
	opened    bool                        // the final commit was made before
	forwarded map[stele.NamespaceKey]bool // see Forwarded
	ahead     map[stele.ID]bool           // records that have later versions here than the lists until now
	left      map[stele.ID]int            // records that are left as they are here, with how many names more each has in the bundle
	result    Adopted
}

// AdoptedNames are the names of the namespaces of a bundle.
type AdoptedNames struct {
	keys map[stele.NamespaceKey]bool
	tree *namespaces.Tree // of the namespaces of the bundle alone
	own  *namespaces.Tree // of those that this registry has added; see leave
}

// NamesOf returns the names that belong to namespaces, and to none of those that this registry has added below them. The schemes read them.
func NamesOf(schemes *stele.Schemes, spaces []*stele.Namespace, shoulders ...*stele.Namespace) (*AdoptedNames, error) {
	n := &AdoptedNames{keys: map[stele.NamespaceKey]bool{}, tree: namespaces.New(schemes)}
	for _, ns := range spaces {
		n.keys[ns.Key()] = true
	}
	if errs := n.tree.Add(spaces...); len(errs) > 0 {
		return nil, tell(opAdopt, errs[0])
	}
	n.leave(schemes, shoulders)
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
	if slices.ContainsFunc(rec.Names(), n.isOwn) {
		return refuse(opAdopt, rec.ID, stele.Conflict, "adopt.name-in-own-namespace", "it has a name in a namespace that this registry has added for new names since the giver fell silent: both registries have given names there; nothing is taken over")
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
	Left    []stele.ID // records that were redacted here, and are left as they are, except that they get new aliases

	// Shut are namespaces whose templates make no names until an administrator skips their counters ahead: this registry may have opened them before, and lost that by a restore.
	Shut []stele.NamespaceKey
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
	return a, a.judgeFixed(ctx)
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
		if other != key && !a.keys[other] && !s.isShoulder(other) {
			return nil, refuse(opAdopt, stele.ID{}, stele.Conflict, "adopt.namespace-below", "this registry has the namespace {namespace}, below {above}, and the bundle does not have it: both registries would give its names; nothing is taken over", other, key)
		}
	}
	next := a.taken(ctx, before, giver)
	sp := AdoptedSpace{Key: key, HandOver: giver.HandOver, New: before == nil, Publication: zoneOf(&giver.Publication)}
	if !a.isSealedForUs(giver) {
		var err error
		if sp.Silent, err = a.inSilence(before, giver); err != nil {
			return nil, err
		}
		if sp.Reading = sp.Silent == ""; !sp.Reading {
			sp.Others = a.heirs(giver, false)
		}
	}
	a.spaces = append(a.spaces, sp)
	if a.wasOpened(before) {
		a.opened = true
		return s, nil
	}
	a.r.stampNamespace(ctx, before, next)
	changed, _, err := a.r.admitNamespace(context.WithValue(ctx, adopting{}, true), opAdopt, s, before, next)
	return changed, err
}

// zoneOf returns in which zone a giver publishes a namespace, and how names are cut into parts there: its name servers and what else belongs to it are not another registry's.
func zoneOf(p *stele.Publication) stele.Publication {
	if p.Zone == "" {
		return stele.Publication{}
	}
	return stele.Publication{Zone: p.Zone, Layout: p.Layout, Separator: p.Separator, Parts: p.Parts, Exact: p.Exact}
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
	case before.IsSilent():
		return a.mayFollow(ctx, before, giver)
	case !last.Reading:
		return refuse(opAdopt, stele.ID{}, stele.Conflict, "adopt.written-here", "{namespace} was taken over from {giver} for good, and its names change here since; a later bundle of the giver adds nothing", key, last.From)
	}
	return a.notOlder(before)
}

// notOlder refuses a bundle that is older than the last one of a namespace. Numbers of changes are compared within a generation of the giver alone: a restore sets them back.
func (a *Adopting) notOlder(before *stele.Namespace) error {
	n := len(before.Adoptions) - 1
	key, last, older := before.Key(), &before.Adoptions[n], false
	switch left := func(o stele.Adoption) bool { return o.From == a.b.From && o.Generation == a.b.Generation }; {
	case last.Generation == a.b.Generation, last.Generation == "" && len(a.b.Earlier) == 0:
		older = last.Change > a.b.Change
	case slices.Contains(a.b.Earlier, last.Generation):
	case last.Generation != "" && slices.ContainsFunc(before.Adoptions[:n], left): // the giver is in another one since
		older = true
	default: // neither knows the other
		older = a.b.Until.Before(last.Until)
	}
	if older {
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
	var silent *stele.Namespace // above it: the giver has added it since, and what is there came from it, or was changed here
	for _, above := range s.ancestorsAt(key) {
		n := len(above.Adoptions)
		switch {
		case above.Key() == key || n == 0 || above.Adoptions[n-1].From != a.b.From:
		case above.IsRead():
			return nil // the giver has added it since, and what is there came from it
		case above.IsSilent() && silent == nil:
			silent = above
		}
	}
	var adopted map[uint64]bool
	if silent != nil {
		if adopted, err = a.imports(ctx); err != nil {
			return err
		}
	}
	for rec, err := range a.r.store.Scan(ctx, key.Scheme, key.Prefix, "") {
		if err != nil {
			return tell(opAdopt, err)
		}
		if !a.Has(rec.ID) {
			continue
		}
		switch node := s.Of(rec.ID); {
		case silent == nil || node == nil || node.Key() != silent.Key():
			return refuse(opAdopt, rec.ID, stele.Conflict, "adopt.own-names", "it is registered here, and did not come from {giver}: two registries have given names in {namespace}; nothing is taken over", a.b.From, key)
		case isChanged(rec, adopted):
			return a.changedHere(rec)
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
	if a.o.IsHeir != nil { // it is not an heir of itself
		next.Heirs = slices.DeleteFunc(next.Heirs, func(h stele.Heir) bool { return a.o.IsHeir(h.Registry) })
	}
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
		From: a.b.From, To: giver.HandOver.Heir, Bundle: a.b.Bundle, Generation: a.b.Generation, Change: a.b.Change, Until: a.b.Until,
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
			if a.wasOpened(before) {
				return cloneNamespace(before), nil
			}
			return a.marked(a.taken(ctx, before, giver)), nil
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
