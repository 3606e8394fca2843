package handles

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/wire/hdl"
)

// Values returns what a record is to clients of the Handle System, as [destination.Values] does for its locations.
func Values(record *stele.Record, targets []stele.Target) []stele.HandleValue {
	return destination.Values(record, slices.DeleteFunc(slices.Clone(targets), func(t stele.Target) bool { return t.Service != stele.N2L }))
}

// IsOpen reports whether the public may read a value.
func IsOpen(v stele.HandleValue) bool { return v.Permissions&stele.PublicRead != 0 }

// Selection says which values are wanted: those of one of the types and those with one of the
// indexes; all, if it has neither.
type Selection struct {
	Types   []string
	Indexes []uint32
}

// IsAll reports whether all values are wanted.
func (w *Selection) IsAll() bool { return len(w.Types) == 0 && len(w.Indexes) == 0 }

// Of returns the values that are wanted. It may share the list that it is given.
func (w *Selection) Of(values []stele.HandleValue) (some []stele.HandleValue) {
	if w.IsAll() {
		return values
	}
	for _, v := range values {
		if slices.Contains(w.Indexes, v.Index) || slices.ContainsFunc(w.Types, func(t string) bool { return WantsType(t, v.Type) }) {
			some = append(some, v)
		}
	}
	return some
}

// WantsType reports whether a request for values of type want is one for values of this type. "URL."
// asks for URL and all types below it.
func WantsType(want, kind string) bool {
	if family, ok := strings.CutSuffix(want, "."); ok && family != "" {
		return destination.HasType(kind, family)
	}
	return strings.EqualFold(want, kind)
}

// Asked is what a client asks of a handle.
type Asked struct {
	Handle     string // as the client wrote it
	Wanted     Selection
	PublicOnly bool // values that are not for the public are left out, and not asked for
	NoReferral bool
}

// Found is what a handle has.
type Found struct {
	ID     stele.ID
	Values []stele.HandleValue

	// Restricted says that some of the values are not for the public. The client must prove
	// first who they are; see [Service.MayReadValues].
	Restricted bool

	// Epoch is for how long an answer with the values may be kept; see [Service.IsCurrent]. It is zero if it may not be kept.
	Epoch Epoch

	record *stele.Record
}

// Epoch says for how long an answer may be kept.
type Epoch = resolver.Epoch

// EpochBytes is how many bytes an epoch has as its method Put writes it.
const EpochBytes = resolver.EpochBytes

// ReadEpoch reads what the method Put of an epoch has written.
func ReadEpoch(b []byte) Epoch { return resolver.ReadEpoch(b) }

// IsCurrent reports whether an answer that was kept with the epoch is what a client would get now.
func (s *Service) IsCurrent(e Epoch) bool { return s.o.Resolver.IsCurrent(e) }

// Resolve looks a handle up for the public. A refusal with the code 303 comes with the values that
// say where to ask instead.
func (s *Service) Resolve(ctx context.Context, q Asked) (*Found, error) {
	id, err := s.Parse(q.Handle)
	if err != nil {
		return nil, &Refusal{Code: hdl.InvalidHandle, Text: stele.Reason(err).Error(), Err: err}
	}
	who, epoch := auth.From(ctx), s.o.Resolver.Epoch(id)
	record, err := s.o.Resolver.Record(ctx, who, id)
	switch {
	case err != nil:
		return nil, refusalOf(err)
	case record == nil:
		if found, err := s.byRule(ctx, id, q); found != nil || err != nil {
			return found, err
		}
		return nil, s.missing(ctx, id, q)
	}
	if err := s.responsible(ctx, id); err != nil {
		return nil, err
	}
	if record.State != stele.Active {
		return nil, refuse(hdl.HandleNotFound, "")
	}
	found, err := q.of(id, record)
	if err == nil && !found.Restricted && !who.IsKnown() && s.o.Resolver.MayKeep(epoch) {
		found.Epoch = epoch
	}
	return found, err
}

// byRule answers for a handle that is not registered by a rule of its namespace, with values of type
// URL; nil if no rule answers. Rules are what template handles are in the Handle System.
func (s *Service) byRule(ctx context.Context, id stele.ID, q Asked) (*Found, error) {
	res, ok, err := s.o.Resolver.ByRule(ctx, resolver.Request{ID: id})
	switch {
	case errors.Is(err, stele.NotFound), errors.Is(err, stele.Invalid):
		return nil, nil // the rule has nothing for this name
	case err != nil:
		return nil, refusalOf(err)
	case !ok || res.Kind != resolver.Redirect:
		return nil, nil
	}
	if err := s.responsible(ctx, id); err != nil {
		return nil, err
	}
	f := &Found{ID: id, Values: q.Wanted.Of(destination.RuleValues(res.Namespace, res.Targets))}
	if len(f.Values) == 0 {
		return nil, refuse(hdl.ValuesNotFound, "")
	}
	return f, nil
}

// of selects from a record what was asked for.
func (q *Asked) of(id stele.ID, record *stele.Record) (*Found, error) {
	f := &Found{ID: id, record: record, Values: q.Wanted.Of(Values(record, record.Targets))}
	closed := func(v stele.HandleValue) bool { return !IsOpen(v) }
	if slices.ContainsFunc(f.Values, closed) {
		if f.Restricted = !q.PublicOnly; q.PublicOnly {
			f.Values = slices.DeleteFunc(slices.Clone(f.Values), closed)
		}
	}
	if len(f.Values) == 0 {
		return nil, refuse(hdl.ValuesNotFound, "")
	}
	return f, nil
}

// Referral says where to ask instead.
type Referral struct {
	Refusal
	Values []stele.HandleValue // of type HS_SITE.PREFIX and HS_SERV.PREFIX
}

// missing says why there is no such handle: this server does not answer for its prefix, or the prefix
// 0.NA/a.b is unknown and is below one that says which server knows of those below it.
func (s *Service) missing(ctx context.Context, id stele.ID, q Asked) error {
	if prefix, ok := describes(id); ok && !q.NoReferral {
		for {
			at := strings.LastIndexByte(prefix, '.')
			if at < 0 {
				break
			}
			prefix = prefix[:at]
			above, err := s.Parse(authorityMark + prefix)
			if err != nil {
				break
			}
			rec, err := s.present(ctx, above)
			if err != nil {
				return err
			}
			if rec == nil || !rec.IsPublic() {
				continue
			}
			var there []stele.HandleValue
			for _, v := range rec.Values {
				if IsOpen(v) && (destination.HasType(v.Type, "HS_SITE.PREFIX") || destination.HasType(v.Type, "HS_SERV.PREFIX") || destination.HasType(v.Type, "HS_NA_DELEGATE")) {
					there = append(there, v)
				}
			}
			if len(there) > 0 {
				return &Referral{Refusal{Code: hdl.PrefixReferral}, there}
			}
			break
		}
	}
	if err := s.responsible(ctx, id); err != nil {
		return err
	}
	return refuse(hdl.HandleNotFound, "")
}

// WireValues returns values in the form of the protocol.
func WireValues(values []stele.HandleValue) []hdl.Value {
	list := make([]hdl.Value, len(values))
	for i := range values {
		v := &values[i]
		w := &list[i]
		*w = hdl.Value{Index: v.Index, Timestamp: v.Timestamp, TTL: v.TTL, Permissions: uint8(v.Permissions), Type: []byte(v.Type), Data: v.Data}
		if v.TTLAbsolute {
			w.TTLType = hdl.TTLAbsolute
		}
		for _, ref := range v.References {
			w.References = append(w.References, hdl.Reference{Handle: ref.Handle, Index: ref.Index})
		}
	}
	return list
}

// ReadValues returns values that a client sent. What they share with the message is copied.
func ReadValues(list []hdl.Value) []stele.HandleValue {
	values := make([]stele.HandleValue, len(list))
	for i := range list {
		w := &list[i]
		v := &values[i]
		*v = stele.HandleValue{Index: w.Index, Timestamp: w.Timestamp, TTL: w.TTL, TTLAbsolute: w.TTLType == hdl.TTLAbsolute,
			Permissions: stele.Permission(w.Permissions), Type: string(w.Type), Data: slices.Clone(w.Data)}
		for _, ref := range w.References {
			v.References = append(v.References, stele.HandleReference{Handle: ref.Handle, Index: ref.Index})
		}
	}
	return values
}
