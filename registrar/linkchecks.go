package registrar

import (
	"context"
	"encoding/json"
	"iter"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/proof"
)

// CheckCells begins the names of cells that have what is known of where names lead. They are not in the history of
// records. A backup has them, and a restore leaves those of the backup.
const CheckCells = "links "

// checkSpaceCells begins the names of the cells that say where targets are checked.
const checkSpaceCells = CheckCells + "space "

// Limits of the settings of checks.
const (
	maxCheckHosts = 100
	MaxCheckQuota = 1_000_000
	leastCheckGap = 100 * time.Millisecond
)

// LinkChecks are how the targets of a namespace are checked, with those of the namespaces below that have no
// settings of their own.
type LinkChecks struct {
	Namespace string      `json:"namespace"`
	Scheme    string      `json:"scheme"`
	On        bool        `json:"on"`
	Quota     int         `json:"quota,omitempty"`    // checks a day; 0: no limit
	Own       []OwnHost   `json:"own,omitempty"`      // hosts that may be asked faster
	Pauses    []HostPause `json:"pauses,omitempty"`   // hosts that are not asked for a time
	FallBack  bool        `json:"fallBack,omitempty"` // to an archived copy of what has been broken for 30 days
	By        string      `json:"by,omitempty"`
	Changed   time.Time   `json:"changed,omitzero"`
}

// OwnHost is a host of the owner, which may be asked more often than others.
type OwnHost struct {
	Host string        `json:"host"`
	Gap  time.Duration `json:"gap"`
}

// HostPause says that a host is not asked until a time; an empty host stands for all.
type HostPause struct {
	Host  string    `json:"host,omitempty"`
	Until time.Time `json:"until"`
}

// Key returns the namespace.
func (l *LinkChecks) Key() stele.NamespaceKey {
	return stele.NamespaceKey{Scheme: l.Scheme, Prefix: l.Namespace}
}

// PausedUntil returns until when a host is not asked; zero if it is.
func (l *LinkChecks) PausedUntil(host string, now time.Time) (until time.Time) {
	for _, p := range l.Pauses {
		if (p.Host == "" || isBelow(host, p.Host)) && now.Before(p.Until) && until.Before(p.Until) {
			until = p.Until
		}
	}
	return until
}

// OwnGap returns the gap between two requests that the owner allows for a host; 0 if it is not one of their own.
func (l *LinkChecks) OwnGap(host string) (gap time.Duration) {
	for _, o := range l.Own {
		if isBelow(host, o.Host) {
			gap = max(gap, o.Gap)
		}
	}
	return gap
}

// foldHost returns the name of a host as names are compared: in lower case, without a dot at the end. A dot alone stays, since no host stands for all.
func foldHost(host string) string {
	if host == "." {
		return host
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// isBelow reports whether a host is another one or below it.
func isBelow(host, above string) bool {
	host, above = foldHost(host), foldHost(above)
	return host == above || strings.HasSuffix(host, "."+above)
}

func checkSpaceCell(key stele.NamespaceKey) string {
	return checkSpaceCells + key.Scheme + "\t" + key.Prefix
}

// LinkChecks returns how the targets of a namespace are checked, to a caller who has a role there.
func (r *Registrar) LinkChecks(ctx context.Context, key stele.NamespaceKey) (LinkChecks, error) {
	l, _, err := r.linkChecks(ctx, "show link checks", key, stele.RoleReader)
	return l, err
}

func (r *Registrar) linkChecks(ctx context.Context, op string, key stele.NamespaceKey, least stele.Role) (l LinkChecks, value []byte, err error) {
	if err := identify(ctx, op); err != nil {
		return l, nil, err
	}
	if _, err := r.Namespace(ctx, key); err != nil {
		return l, nil, err
	}
	role, err := r.RoleIn(ctx, key)
	if err != nil {
		return l, nil, err
	}
	if !role.Includes(least) {
		return l, nil, refuse(op, stele.ID{}, stele.Forbidden, "links.not-allowed", "you may not do that with the checks of {namespace}; ask one of its owners", key)
	}
	l.Namespace, l.Scheme = key.Prefix, key.Scheme
	if value, err = r.store.Cell(ctx, checkSpaceCell(key)); err != nil || value == nil {
		return l, nil, tell(op, err)
	}
	if err := json.Unmarshal(value, &l); err != nil {
		l = LinkChecks{Namespace: key.Prefix, Scheme: key.Scheme}
		return l, value, refuse(op, stele.ID{}, stele.Internal, "links.settings-damaged", "the settings of the checks of {namespace} are damaged: {cause}; an owner can set them anew", key, err)
	}
	l.Namespace, l.Scheme = key.Prefix, key.Scheme
	return l, value, nil
}

// LinkChecksHere returns how the targets of a namespace are checked and by the settings of which namespace: its own, or those of the
// nearest one above it that has some. The caller has a role in the first one.
func (r *Registrar) LinkChecksHere(ctx context.Context, key stele.NamespaceKey) (l LinkChecks, own bool, err error) {
	const op = "show link checks"
	l, value, err := r.linkChecks(ctx, op, key, stele.RoleReader)
	if err != nil || value != nil {
		return l, true, err
	}
	s, err := r.view(ctx)
	if err != nil {
		return l, false, err
	}
	for _, ns := range s.ancestorsAt(key) {
		value, err := r.store.Cell(ctx, checkSpaceCell(ns.Key()))
		if err != nil {
			return l, false, tell(op, err)
		}
		var above LinkChecks
		if value != nil && json.Unmarshal(value, &above) == nil {
			return LinkChecks{Namespace: above.Namespace, Scheme: above.Scheme, On: above.On, FallBack: above.FallBack}, false, nil
		}
	}
	return l, false, nil
}

// CheckedNamespaces returns namespaces in which the caller has a role and whose targets are checked, at most so many, without those
// below another one of the list.
func (r *Registrar) CheckedNamespaces(ctx context.Context, least stele.Role, limit int) (list []FoundNamespace, err error) {
	spaces, err := r.CheckedSpaces(auth.With(ctx, auth.Local()))
	if err != nil || len(spaces) == 0 {
		return nil, err
	}
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	on := make(map[stele.NamespaceKey]bool, len(spaces))
	for i := range spaces {
		on[spaces[i].Key()] = spaces[i].On
	}
	taken := make(map[stele.NamespaceKey]bool)
	q := NamespaceQuery{Role: least, Match: func(ns *stele.Namespace) bool {
		decided, checked := false, false
		for _, above := range s.ancestorsAt(ns.Key()) { // the nearest first, which is ns itself
			if taken[above.Key()] {
				return false
			}
			if is, set := on[above.Key()]; set && !decided {
				decided, checked = true, is
			}
		}
		return checked
	}}
	for more := true; more && len(list) < limit; {
		var found []FoundNamespace
		q.Limit = limit - len(list)
		if found, more, err = r.FindNamespaces(ctx, q); err != nil || len(found) == 0 {
			return list, err
		}
		q.After = found[len(found)-1].Key()
		for _, ns := range found {
			if !slices.ContainsFunc(s.ancestorsAt(ns.Key()), func(above *stele.Namespace) bool { return taken[above.Key()] }) {
				taken[ns.Key()], list = true, append(list, ns)
			}
		}
	}
	return list, nil
}

// AreChecksDamaged reports whether an error says that settings of checks can't be read. An owner can set them anew.
func AreChecksDamaged(err error) bool {
	code, _ := stele.CodeOf(err)
	return code == "links.settings-damaged"
}

// SetLinkChecks changes how the targets of a namespace are checked: change is called with a copy of the settings, and
// again if another request was faster. Settings that are damaged are as if there were none. An owner may.
func (r *Registrar) SetLinkChecks(ctx context.Context, key stele.NamespaceKey, change func(*LinkChecks)) (LinkChecks, error) {
	const op = "set link checks"
	for attempt := 1; ; attempt++ {
		l, before, err := r.linkChecks(ctx, op, key, stele.RoleOwner)
		if err != nil && !AreChecksDamaged(err) {
			return l, err
		}
		if err == nil && before == nil { // what is not set here stays as it is above
			above, _, err := r.LinkChecksHere(ctx, key)
			if err != nil {
				return l, err
			}
			l.On, l.FallBack = above.On, above.FallBack
		}
		change(&l)
		for i := range l.Own {
			l.Own[i].Host = foldHost(l.Own[i].Host)
		}
		for i := range l.Pauses {
			l.Pauses[i].Host = foldHost(l.Pauses[i].Host)
		}
		if err := l.check(); err != nil {
			return l, &stele.Error{Op: op, Kind: stele.Invalid, Err: err}
		}
		now := r.now()
		l.Pauses = slices.DeleteFunc(l.Pauses, func(p HostPause) bool { return !now.Before(p.Until) })
		l.Namespace, l.Scheme, l.By, l.Changed = key.Prefix, key.Scheme, auth.From(ctx).Name, now
		after, err := json.Marshal(&l)
		if err != nil {
			return l, tell(op, err)
		}
		err = r.apply(ctx, op, &stele.Commit{Cells: []stele.CellChange{{Name: checkSpaceCell(key), Before: before, After: after}}})
		if err == nil || !r.again(ctx, err, attempt) {
			return l, err
		}
	}
}

func (l *LinkChecks) check() error {
	var list stele.Problems
	add := func(path string, m *stele.Message) { list = append(list, stele.Problem{Path: path, Err: m}) }
	if l.Quota < 0 || l.Quota > MaxCheckQuota {
		add("quota", stele.Messagef("links.quota-invalid", "{quota} is not a number of checks a day; write 0 for no limit, or at most {most}", l.Quota, MaxCheckQuota))
	}
	if len(l.Own)+len(l.Pauses) > maxCheckHosts {
		add("own", stele.Messagef("links.too-many-hosts", "there are {count} hosts; {most} are the most", len(l.Own)+len(l.Pauses), maxCheckHosts))
	}
	for i, o := range l.Own {
		if stele.CheckURL("https://"+o.Host+"/") != nil || strings.ContainsAny(o.Host, "/:") {
			add(stele.ItemPath("own", i), stele.Messagef("links.host-invalid", `"{host}" is not the name of a host`, o.Host))
		} else if !hasOneOwner(o.Host) {
			add(stele.ItemPath("own", i), stele.Messagef("links.host-of-many", `"{host}" is not a domain of one owner; give a name below it`, o.Host))
		}
		if o.Gap < leastCheckGap {
			add(stele.ItemPath("own", i), stele.Messagef("links.pace-too-fast", "{gap} is too short a pause between two requests; {least} is the least", o.Gap, leastCheckGap))
		}
	}
	for i, p := range l.Pauses {
		if p.Host != "" && (stele.CheckURL("https://"+p.Host+"/") != nil || strings.ContainsAny(p.Host, "/:")) {
			add(stele.ItemPath("pauses", i), stele.Messagef("links.host-invalid", `"{host}" is not the name of a host`, p.Host))
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// hasOneOwner reports whether a name is a registered domain, or below one, or an address: the settings hold for all hosts below it, and
// those of org have many owners.
func hasOneOwner(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	_, err := publicsuffix.EffectiveTLDPlusOne(foldHost(host))
	return err == nil
}

// counts reports whether the owner of a namespace may have a host asked faster. It is judged whenever it is used: the list of
// domains below which anyone can register grows, and settings may be older than a rule.
func (o *OwnHost) counts() bool { return o.Host != "" && hasOneOwner(o.Host) && o.Gap >= leastCheckGap }

// CheckedSpaces returns the settings of all namespaces that have some, without hosts that do not count. The caller is a server.
func (r *Registrar) CheckedSpaces(ctx context.Context) (list []LinkChecks, err error) {
	for c, err := range r.CheckList(ctx, checkSpaceCells, "") {
		if err != nil {
			return nil, err
		}
		var l LinkChecks
		if err := json.Unmarshal(c.Value, &l); err != nil {
			r.o.Log.ErrorContext(ctx, "the settings of link checks can't be read", "cell", c.Name, "error", err.Error())
			continue
		}
		scheme, prefix, _ := strings.Cut(strings.TrimPrefix(c.Name, checkSpaceCells), "\t")
		l.Scheme, l.Namespace = scheme, prefix // whatever the value says
		l.Own = slices.DeleteFunc(l.Own, func(o OwnHost) bool { return !o.counts() })
		list = append(list, l)
	}
	return list, nil
}

// CheckedAbove returns the namespaces of a name, the nearest first and the root of its scheme last. The caller is a server.
func (r *Registrar) CheckedAbove(ctx context.Context, id stele.ID) ([]stele.NamespaceKey, error) {
	if err := mayKeepChecks(ctx, CheckCells); err != nil {
		return nil, err
	}
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	above := s.ancestorsOf(id)
	keys := make([]stele.NamespaceKey, len(above))
	for i, ns := range above {
		keys[i] = ns.Key()
	}
	return keys, nil
}

// CheckedPrefixes returns the prefixes of names in a namespace and below it that do not begin with its own prefix: the settings of
// minters lead there. The caller is a server.
func (r *Registrar) CheckedPrefixes(ctx context.Context, key stele.NamespaceKey) (list []string, err error) {
	if err := mayKeepChecks(ctx, CheckCells); err != nil {
		return nil, err
	}
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	for claim, node := range s.Claims() {
		if strings.HasPrefix(claim.Prefix, key.Prefix) {
			continue
		}
		if slices.ContainsFunc(s.Ancestors(node), func(ns *stele.Namespace) bool { return ns.Key() == key }) {
			list = append(list, claim.Prefix)
		}
	}
	slices.Sort(list)
	return list, nil
}

// CheckedNames returns with which texts the names of a namespace begin, and what reports whether a name belongs to it: a name may begin with the
// text of a namespace and belong to another, as urn:example2:x does. The key may also be a prefix that is not that of a namespace. The caller is a server.
func (r *Registrar) CheckedNames(ctx context.Context, key stele.NamespaceKey) (begin []string, has func(stele.ID) bool, err error) {
	beside, err := r.CheckedPrefixes(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	begin = []string{key.Prefix}
	for _, prefix := range beside { // in order, so that what begins with another one follows it
		if !slices.ContainsFunc(begin, func(b string) bool { return strings.HasPrefix(prefix, b) }) {
			begin = append(begin, prefix)
		}
	}
	s, err := r.view(ctx)
	if err != nil {
		return nil, nil, err
	}
	return begin, func(id stele.ID) bool {
		return id.Scheme() == key.Scheme && (key.Prefix == "" || s.schemes.IsWithin(id, key.Prefix) ||
			slices.ContainsFunc(s.ancestorsOf(id), func(ns *stele.Namespace) bool { return ns.Key() == key }))
	}, nil
}

// CheckedSignatures returns the signatures of a record that promise something: those by keys of its namespaces that are not revoked. The caller is a server.
func (r *Registrar) CheckedSignatures(ctx context.Context, rec *stele.Record) (list []stele.Signature, err error) {
	if err := mayKeepChecks(ctx, CheckCells); err != nil {
		return nil, err
	}
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	keys := keysOf(s.ancestorsOf(rec.ID))
	for _, one := range rec.Signatures {
		if _, err := proof.Verify(keys, rec.ID, one, r.now()); err == nil {
			list = append(list, one)
		}
	}
	return list, nil
}

const opChecks = "keep link checks"

// mayKeepChecks makes sure that the caller is a server, which decides who sees what.
func mayKeepChecks(ctx context.Context, name string) error {
	if who := auth.From(ctx); !who.Admin || who.Token != "" {
		return refuse(opChecks, stele.ID{}, stele.Forbidden, "work.kept-by-server-only", "only a server keeps what is done in the background")
	}
	if !strings.HasPrefix(name, CheckCells) {
		return refuse(opChecks, stele.ID{}, stele.Internal, "work.cell-of-another-part", `the cell "{cell}" does not belong to work in the background`, name)
	}
	return nil
}

// CheckCell returns a cell of the checks; nil if there is none.
func (r *Registrar) CheckCell(ctx context.Context, name string) ([]byte, error) {
	if err := mayKeepChecks(ctx, name); err != nil {
		return nil, err
	}
	value, err := r.store.Cell(ctx, name)
	return value, tell(opChecks, err)
}

// CheckList yields the cells of the checks whose names begin with a text and come after another, in order.
func (r *Registrar) CheckList(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error] {
	return func(yield func(stele.Cell, error) bool) {
		if err := mayKeepChecks(ctx, prefix); err != nil {
			yield(stele.Cell{}, err)
			return
		}
		for c, err := range r.store.Cells(ctx, prefix, after) {
			if !yield(c, tell(opChecks, err)) || err != nil {
				return
			}
		}
	}
}

// KeepChecks changes cells of the checks, all or none. Conflict if one does not have the value that the change expects.
func (r *Registrar) KeepChecks(ctx context.Context, changes ...stele.CellChange) error {
	for _, c := range changes {
		if err := mayKeepChecks(ctx, c.Name); err != nil {
			return err
		}
	}
	return r.apply(ctx, opChecks, &stele.Commit{Cells: changes})
}

// KeepLook changes cells of the checks because a person looked at where a name leads. An editor of the name may; the audit trail
// has an entry.
func (r *Registrar) KeepLook(ctx context.Context, id stele.ID, changes ...stele.CellChange) error {
	const op = "look at link"
	if err := identify(ctx, op); err != nil {
		return err
	}
	role, err := r.RoleIn(ctx, stele.NamespaceKey{Scheme: id.Scheme(), Prefix: id.String()})
	if err != nil {
		return err
	}
	if !role.Includes(stele.RoleEditor) {
		return refuse(op, id, stele.Forbidden, "links.not-allowed", "you may not do that with the checks of {namespace}; ask one of its owners", id)
	}
	for _, c := range changes {
		if !strings.HasPrefix(c.Name, CheckCells) || strings.HasPrefix(c.Name, checkSpaceCells) {
			return refuse(op, id, stele.Internal, "work.cell-of-another-part", `the cell "{cell}" does not belong to work in the background`, c.Name)
		}
	}
	return r.apply(ctx, op, &stele.Commit{Cells: changes})
}

// CopyUser is the principal of versions of records in which an archived copy took the place of a broken target. No user can have this name.
const CopyUser = "link checker: archived copy"

// copyTTL is for how many seconds an archived copy may be cached: the target may come back.
const copyTTL = 3600

// TakesCopy reports whether an archived copy may take the place of a target. It may not if the record does not have the target any more or has the copy, or
// if another target of the same service comes before it. It may not if the owner promised that the content does not change, since an archive adds to a
// page; and not if the target is shown as one that is not there.
func TakesCopy(rec *stele.Record, url, archived string) bool {
	at := slices.IndexFunc(rec.Targets, func(t stele.Target) bool { return t.URL == url })
	if rec.State != stele.Active || rec.Persistence.Level == stele.Unchanging || at < 0 {
		return false
	}
	broken := rec.Targets[at]
	return broken.Status != http.StatusNotFound && broken.Status != http.StatusGone && !slices.ContainsFunc(rec.Targets, func(t stele.Target) bool {
		return t.URL == archived || t.Service == broken.Service && (t.Order < broken.Order || t.Order == broken.Order && t.Preference < broken.Preference)
	})
}

// UseCopy puts an archived copy into the place of a target that is broken, and keeps the target after all others. It makes a version of
// the record as any other change does, which a user can revert. The redirect to the copy is a temporary one. UseCopy does nothing, and reports false, if
// TakesCopy does. The caller is a server; the cells are changed with the record.
func (r *Registrar) UseCopy(ctx context.Context, id stele.ID, url, archived string, cells ...stele.CellChange) (bool, error) {
	const op = "use archived copy"
	for _, c := range cells {
		if err := mayKeepChecks(ctx, c.Name); err != nil {
			return false, err
		}
	}
	if err := mayKeepChecks(ctx, CheckCells); err != nil {
		return false, err
	}
	ctx = auth.With(ctx, auth.Principal{Name: CopyUser, Admin: true})
	used := false
	_, err := r.reviseWith(ctx, op, id, 0, func(next *stele.Record) error {
		if used = TakesCopy(next, url, archived); !used {
			return nil
		}
		at := slices.IndexFunc(next.Targets, func(t stele.Target) bool { return t.URL == url })
		broken := next.Targets[at]
		last := broken.Order
		for _, t := range next.Targets {
			last = max(last, t.Order)
		}
		found := &next.Targets[at]
		found.URL, found.Partial, found.Status = archived, false, http.StatusFound
		if found.TTL == 0 || found.TTL > copyTTL {
			found.TTL = copyTTL
		}
		if last < math.MaxUint16 {
			last++
		}
		broken.Order = last
		next.Targets = append(next.Targets, broken)
		return nil
	}, cells...)
	return used && err == nil, err
}
