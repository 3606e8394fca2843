package handles

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/wire/hdl"
)

// Prefix is a question about a whole prefix. A server calls [Service.BeginPrefix], then
// [Prefix.Authorise], and once the identity is proved one of the other methods.
type Prefix struct {
	Operation hdl.Operation // ListHandles, ListDerived, ListPrefixes, HomePrefix or UnhomePrefix
	Handle    string        // 0.NA/prefix as the client wrote it

	s      *Service
	id     stele.ID
	prefix string
	all    bool // who asks may know of all records
}

// BeginPrefix finds what is wrong with a question for every client.
func (s *Service) BeginPrefix(ctx context.Context, p *Prefix) (err error) {
	if p.s = s; p.Operation == hdl.ListPrefixes {
		return nil
	}
	if p.id, err = s.Parse(p.Handle); err != nil {
		return &Refusal{Code: hdl.InvalidHandle, Text: stele.Reason(err).Error(), Err: err}
	}
	var ok bool
	if p.prefix, ok = describes(p.id); !ok || strings.Contains(p.prefix, "/") {
		return refuse(hdl.InvalidHandle, "Name a prefix, such as 0.NA/20.500.12345")
	}
	if p.Operation == hdl.HomePrefix {
		return nil
	}
	// The record of a prefix may be that of a prefix elsewhere, so what counts is a name below it.
	below, err := s.Parse(p.prefix + "/0")
	if err != nil {
		return &Refusal{Code: hdl.InvalidHandle, Text: stele.Reason(err).Error(), Err: err}
	}
	return s.responsible(ctx, below)
}

// Authorise makes sure that an identity may ask.
func (p *Prefix) Authorise(ctx context.Context, who Identity) error {
	switch p.Operation {
	case hdl.ListHandles, hdl.ListDerived:
		rec, err := p.s.present(ctx, p.id)
		if err != nil {
			return err
		}
		has, err := p.s.rightsIn(ctx, who, p.id, rec)
		if err != nil {
			return err
		}
		p.all = has.all
		if p.Operation == hdl.ListDerived && (has.allows(hdl.MayListDerived) || has.allows(hdl.MayAddDerived)) {
			return nil
		}
		return has.need(choose(p.Operation == hdl.ListDerived, hdl.MayListDerived, hdl.MayList))
	}
	if !p.s.administers(who) {
		return refuse(hdl.NotAdministrator, "")
	}
	return nil
}

// key returns the namespace of the prefix.
func (p *Prefix) key() (stele.NamespaceKey, error) {
	parsed, _, err := p.s.o.Schemes.Lookup(destination.HandleScheme).ParsePrefix(destination.HandleMark + p.prefix + "/")
	if err != nil {
		return stele.NamespaceKey{}, &Refusal{Code: hdl.InvalidHandle, Text: stele.Reason(err).Error(), Err: err}
	}
	return stele.NamespaceKey{Scheme: destination.HandleScheme, Prefix: parsed.String()}, nil
}

// Handles yields the handles below the prefix, in their order, without those that were deleted and
// those that were never public.
func (p *Prefix) Handles(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		key, err := p.key()
		if err != nil {
			yield("", err)
			return
		}
		for rec, err := range p.s.o.Registrar.Scan(server(ctx), key, "") {
			if err != nil {
				yield("", refusalOf(err))
				return
			}
			if rec.State == stele.Active && (p.all || rec.IsPublic()) && !yield(Bare(rec.ID), nil) {
				return
			}
		}
	}
}

// Derived yields the prefixes below the prefix that have a record here, as 0.NA/prefix.
func (p *Prefix) Derived(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for name, err := range p.s.homed(ctx) {
			if err == nil && !strings.HasPrefix(name, authorityMark+p.prefix+".") {
				continue
			}
			if !yield(name, err) || err != nil {
				return
			}
		}
	}
}

// Homed yields the prefixes for which this server answers, as 0.NA/prefix.
func (p *Prefix) Homed(ctx context.Context) iter.Seq2[string, error] { return p.s.homed(ctx) }

func (s *Service) homed(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var names []string
		for ns, err := range s.o.Registrar.Namespaces(server(ctx)) {
			if err != nil {
				yield("", refusalOf(err))
				return
			}
			prefix, below, ok := strings.Cut(strings.TrimPrefix(ns.Prefix, destination.HandleMark), "/")
			if ns.Scheme == destination.HandleScheme && ok && below == "" && ns.AnsweredAt() == "" && !ns.Handles.Off {
				names = append(names, authorityMark+prefix)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			if !yield(name, nil) {
				return
			}
		}
	}
}

// Home makes this server answer for the prefix: it adds a namespace, or serves the one that is there.
func (p *Prefix) Home(ctx context.Context, who Identity) error {
	return p.set(ctx, who, false)
}

// Unhome ends that. The namespace and all its names stay, and other ways to resolve them too.
func (p *Prefix) Unhome(ctx context.Context, who Identity) error {
	return p.set(ctx, who, true)
}

func (p *Prefix) set(ctx context.Context, who Identity, off bool) error {
	key, err := p.key()
	if err != nil {
		return err
	}
	principal := auth.Handle(who.Index, who.Handle)
	principal.Admin = true
	ctx = auth.With(ctx, principal)
	_, err = p.s.o.Registrar.SetNamespace(ctx, key, 0, func(ns *stele.Namespace) error {
		ns.Handles.Off = off
		return nil
	})
	if stele.KindOf(err) == stele.NotFound && !off {
		_, err = p.s.o.Registrar.AddNamespace(ctx, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix})
	}
	if err != nil {
		return refusalOf(err)
	}
	return nil
}
