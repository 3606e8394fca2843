package handles

import (
	"context"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/wire/hdl"
)

// Types of values that say who administers a handle.
const (
	typeAdmin = "HS_ADMIN"
	typeList  = "HS_VLIST"
)

// Limits on the lists that HS_ADMIN values lead to: lists may name lists, of other handles too.
const (
	maxListDepth = 8
	maxLists     = 64   // that are read for one question
	maxListed    = 1000 // identities in all of them
	maxAway      = 4    // lists of other registries
)

// isAdmin reports whether a value is one of type HS_ADMIN.
func isAdmin(v *stele.HandleValue) bool { return destination.HasType(v.Type, typeAdmin) }

// rights are what an identity may do with a record.
type rights struct {
	known bool // it is one of the administrators, whatever they may do
	all   bool // it administers the server, or the namespace by a role
	bits  hdl.AdminPermissions
}

// need returns why the rights are not enough: 400 for a client that is not an administrator at all, and
// 401 for one that may not do this.
func (r rights) need(bits hdl.AdminPermissions) error {
	switch {
	case r.all || r.known && r.bits&bits == bits:
		return nil
	case !r.known:
		return refuse(hdl.NotAdministrator, "")
	}
	return refuse(hdl.NotPermitted, "")
}

// allows reports whether the rights are enough.
func (r rights) allows(bits hdl.AdminPermissions) bool { return r.need(bits) == nil }

// administers reports whether an identity administers the server.
func (s *Service) administers(who Identity) bool {
	return slices.ContainsFunc(s.o.Administrators, func(a Identity) bool {
		return a.Handle == who.Handle && (a.Index == who.Index || a.Index == 0)
	})
}

// Principal returns who acts for an identity that was proved: with the roles of the user whose
// credential it is, if it is one.
func (s *Service) Principal(ctx context.Context, who Identity) (auth.Principal, error) {
	p := auth.Handle(who.Index, who.Handle)
	if s.o.User == nil {
		return p, nil
	}
	user, ok, err := s.o.User(ctx, who)
	if err != nil {
		return auth.Principal{}, refusalOf(err)
	}
	if ok {
		p = p.Acting(user)
	}
	return p, nil
}

// rightsIn returns what an identity may do with a record, by its HS_ADMIN values. The record may be nil:
// then only who administers the server or the namespace has any.
func (s *Service) rightsIn(ctx context.Context, who Identity, id stele.ID, rec *stele.Record) (rights, error) {
	if s.administers(who) {
		return rights{known: true, all: true}, nil
	}
	p, err := s.Principal(ctx, who)
	if err != nil {
		return rights{}, err
	}
	return s.rightsAs(ctx, who, p, id, rec)
}

// rightsAs is rightsIn for an identity for which a principal acts.
func (s *Service) rightsAs(ctx context.Context, who Identity, p auth.Principal, id stele.ID, rec *stele.Record) (rights, error) {
	if s.administers(who) {
		return rights{known: true, all: true}, nil
	}
	role, err := s.o.Registrar.RoleIn(auth.With(ctx, p), stele.NamespaceKey{Scheme: id.Scheme(), Prefix: id.String()})
	if err != nil {
		return rights{}, refusalOf(err)
	}
	if role.Includes(stele.RoleEditor) {
		return rights{known: true, all: true}, nil
	}
	var r rights
	if rec == nil {
		return r, nil
	}
	walk := listWalk{s: s, who: who, first: rec}
	for i := range rec.Values {
		v := &rec.Values[i]
		if !isAdmin(v) {
			continue
		}
		admin, err := hdl.ParseAdmin(v.Data)
		if err != nil {
			continue // a value that can't be read grants nothing
		}
		if r.known && r.bits|admin.Permissions == r.bits {
			continue
		}
		named, err := walk.names(ctx, admin.Identity, 0)
		if err != nil {
			return rights{}, err
		}
		if named {
			r.known = true
			r.bits |= admin.Permissions
		}
	}
	if !r.known && walk.missed != nil {
		return rights{}, walk.missed
	}
	return r, nil
}

// listWalk looks for one identity in what HS_ADMIN values name.
type listWalk struct {
	s      *Service
	who    Identity
	first  *stele.Record // whose values they are: most lists are there too
	seen   []hdl.Reference
	listed int
	away   int
	missed error // why a list of another registry could not be read
}

// names reports whether a reference is the identity, or a list with it.
func (w *listWalk) names(ctx context.Context, ref hdl.Reference, depth int) (bool, error) {
	id, err := w.s.Parse(ref.Handle)
	if err != nil {
		return false, nil
	}
	ref.Handle = Bare(id)
	if ref.Handle == w.who.Handle && (ref.Index == w.who.Index || ref.Index == 0) {
		return true, nil
	}
	if ref.Index == 0 || depth == maxListDepth || len(w.seen) == maxLists || slices.Contains(w.seen, ref) {
		return false, nil
	}
	w.seen = append(w.seen, ref)
	lists, err := w.lists(ctx, id, ref.Index)
	if err != nil || len(lists) == 0 {
		return false, err
	}
	list, err := hdl.ParseReferences(lists[0].Data)
	if err != nil {
		return false, nil
	}
	for _, next := range list {
		if w.listed++; w.listed > maxListed {
			return false, nil
		}
		if named, err := w.names(ctx, next, depth+1); named || err != nil {
			return named, err
		}
	}
	return false, nil
}

// lists returns the list at an index of a handle. That another registry does not answer is kept in missed: another value may name the
// identity.
func (w *listWalk) lists(ctx context.Context, id stele.ID, index uint32) ([]stele.HandleValue, error) {
	if w.first.ID == id {
		return pick(w.first.Values, index, typeList), nil
	}
	if w.away >= maxAway {
		ctx = AtHome(ctx)
	}
	lists, away, err := w.s.valuesOf(ctx, id, index, typeList)
	if away {
		if w.away++; err != nil {
			w.missed = err
			return nil, nil
		}
	}
	return lists, err
}

// MayReadValues makes sure that an identity may read the values of a handle that are not for the public.
// Values that administrators may not read either are left out.
func (s *Service) MayReadValues(ctx context.Context, who Identity, f *Found) ([]stele.HandleValue, error) {
	if _, err := s.MayRead(ctx, who, f.record.ID); err != nil {
		return nil, err
	}
	values := Readable(f.Values)
	if len(values) == 0 {
		return nil, refuse(hdl.ValuesNotFound, "")
	}
	return values, nil
}

// MayRead makes sure that an identity may read the values of a handle that are not for the public, and returns the
// principal that reads them: the record itself may not be for the public either.
func (s *Service) MayRead(ctx context.Context, who Identity, id stele.ID) (auth.Principal, error) {
	rec, err := s.present(ctx, id)
	if err != nil {
		return auth.Principal{}, err
	}
	if rec != nil {
		id = rec.ID // the handle may be an alias
	}
	r, err := s.rightsIn(ctx, who, id, rec)
	if err != nil {
		return auth.Principal{}, err
	}
	if err := r.need(hdl.MayRead); err != nil {
		return auth.Principal{}, err
	}
	p, err := s.Principal(ctx, who)
	return p.Administering(id), err
}

// Readable returns the values that administrators may read.
func Readable(values []stele.HandleValue) []stele.HandleValue {
	return slices.DeleteFunc(slices.Clone(values), func(v stele.HandleValue) bool {
		return !IsOpen(v) && v.Permissions&stele.AdminRead == 0
	})
}

// parentOf returns the record whose administrators may make a handle: that of its prefix or, for the
// record of a prefix itself, that of the prefix above it; and the right that this takes.
func (s *Service) parentOf(id stele.ID) (parent stele.ID, need hdl.AdminPermissions, err error) {
	prefix, ok := describes(id)
	if !ok {
		parent, err = s.authorityOf(id)
		return parent, hdl.MayAddHandle, err
	}
	if at := strings.LastIndexByte(prefix, '.'); at > 0 {
		parent, err = s.Parse(authorityMark + prefix[:at])
		return parent, hdl.MayAddDerived, err
	}
	parent, err = s.Parse(authorityMark + strings.TrimSuffix(authorityMark, "/"))
	return parent, hdl.MayAddDerived, err
}
