package giver

import (
	"context"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/transparency"
)

// Seals asks a giver whether what its bundle says of a seal still holds: the giver can cancel a seal, and makes names from then on.
type Seals struct {
	Watches Watches // says where registries are that are watched

	// Ask returns what the registry at an address says of a namespace and of those below it, by its public interface.
	Ask func(ctx context.Context, address string, key stele.NamespaceKey) (map[stele.NamespaceKey]*apijson.NamespaceHandOver, error)

	At   string // the address of the giver; "": that of its watch, or else the one that the name of its log has
	Sure bool   // a giver that can't be asked is not asked: its operator has said that the seal holds
}

// Confirm returns an error if a giver does not say that namespaces, which a bundle says are sealed for this registry, are so by the same seal: Conflict if it says
// otherwise; Unavailable if it can't be asked, and the caller is not sure. It returns those for which the giver redirects requests to this registry already.
func (s *Seals) Confirm(ctx context.Context, from string, spaces []registrar.AdoptedSpace) (forwarded []stele.NamespaceKey, err error) {
	if len(spaces) == 0 {
		return nil, nil
	}
	address, err := s.address(ctx, from)
	if err != nil {
		return nil, err
	}
	asking, cancel := context.WithTimeout(ctx, wholeTime)
	defer cancel()
	said := make(map[stele.NamespaceKey]*apijson.NamespaceHandOver)
	for i := range spaces {
		sp := &spaces[i]
		if said[sp.Key] == nil {
			list, err := s.Ask(asking, address, sp.Key)
			for key, d := range list {
				said[key] = d
			}
			if d := said[sp.Key]; err == nil && d != nil && !transparency.IsOfLog(d.Registry, from) {
				err = stele.Messagef("adopt.other-registry", `the registry there calls itself "{name}"`, d.Registry)
			}
			switch {
			case ctx.Err() != nil:
				return nil, unsealed(stele.Unavailable, ctx.Err())
			case err != nil && s.Sure:
				return forwarded, nil
			case err != nil:
				return nil, unsealed(stele.Unavailable, stele.Messagef("adopt.seal-unasked", "{giver} can't be asked at {address} whether {namespace} is still sealed for this registry: {cause}; give its address with --giver, or, if its operator tells you that the seal holds, --i-know", from, address, sp.Key, err))
			}
		}
		if err := holds(from, sp, said[sp.Key]); err != nil {
			return nil, unsealed(stele.Conflict, err)
		}
		if said[sp.Key].State == string(stele.Forwarded) {
			forwarded = append(forwarded, sp.Key)
		}
	}
	return forwarded, nil
}

func unsealed(kind stele.Kind, err error) error {
	return &stele.Error{Op: "adopt", Kind: kind, Err: err}
}

// address returns where a giver is.
func (s *Seals) address(ctx context.Context, from string) (string, error) {
	const log = "/.log"
	if s.At != "" {
		at, err := transparency.LogURL(s.At)
		return strings.TrimSuffix(at, log), err
	}
	list, err := s.Watches.Watches(ctx)
	if err != nil {
		return "", err
	}
	for i := range list {
		if list[i].Origin == from {
			return strings.TrimSuffix(list[i].URL, log), nil
		}
	}
	return "https://" + strings.TrimSuffix(from, log), nil
}

// holds returns why a seal of which a bundle was made is not the one that the giver tells of; nil if it is.
func holds(from string, sp *registrar.AdoptedSpace, d *apijson.NamespaceHandOver) error {
	of := &sp.HandOver
	if d == nil || d.Heir != of.Heir || d.State != string(stele.Sealed) && d.State != string(stele.Forwarded) {
		return stele.Messagef("adopt.seal-cancelled", "{giver} says that {namespace} is not sealed for this registry any more, so that names of it are made there; ask its operator, and adopt a bundle that is made after it is sealed again", from, sp.Key)
	}
	since := time.Time{}
	if d.Since != nil {
		since = d.Since.Truncate(time.Microsecond)
	}
	sealed := of.Since.Truncate(time.Microsecond)
	if d.State == string(stele.Forwarded) && of.State == stele.Sealed && !since.Before(sealed) { // the step after it, of which the time of the seal can't be seen
		return nil
	}
	if d.State != string(of.State) || !since.Equal(sealed) {
		return stele.Messagef("adopt.sealed-again", "{giver} says that {namespace} was sealed at {since}, and the bundle is of an earlier seal, at {before}, which was cancelled: names may have been made in between; adopt a bundle that was made since", from, sp.Key, since.UTC().Format(time.RFC3339Nano), sealed.UTC().Format(time.RFC3339Nano))
	}
	return nil
}
