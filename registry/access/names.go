package access

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/remote"
)

// Beginnings returns what a prefix on the command line stands for: itself, or all
// schemes if it is empty.
func (l *Registry) Beginnings(prefix string) (keys []stele.NamespaceKey, err error) {
	if prefix == "" {
		for scheme := range l.Schemes.All() {
			keys = append(keys, stele.NamespaceKey{Scheme: scheme.Name()})
		}
		return keys, nil
	}
	if l.Schemes.Lookup(prefix) != nil {
		return []stele.NamespaceKey{{Scheme: prefix}}, nil
	}
	key, err := l.ParsePrefix(prefix)
	if err != nil {
		// A whole name is the beginning of itself.
		id, noName := l.Parse(prefix)
		if noName != nil {
			return nil, err
		}
		key = stele.NamespaceKey{Scheme: id.Scheme(), Prefix: id.String()}
	}
	return []stele.NamespaceKey{key}, nil
}

// ListBelow yields the records whose identifiers begin with a prefix, as [Registry.Beginnings]
// reads it, and for which the listing asks.
func (l *Registry) ListBelow(ctx context.Context, prefix string, q remote.Listing) (iter.Seq2[*stele.Record, error], error) {
	keys, err := l.Beginnings(prefix)
	if err != nil {
		return nil, err
	}
	if id, err := l.Parse(q.After); err == nil {
		q.After = id.String() // in canonical form, as names are listed
	}
	return func(yield func(*stele.Record, error) bool) {
		q := q
		for _, q.Key = range keys {
			for rec, err := range l.List(ctx, q) {
				if !yield(rec, err) || err != nil {
					return
				}
				if q.Limit > 0 {
					if q.Limit--; q.Limit == 0 {
						return
					}
				}
			}
		}
	}, nil
}

// ListPointing yields the records that have a target at a URL, or on a host, and whose
// identifiers begin with a prefix if one is given.
func (l *Registry) ListPointing(ctx context.Context, prefix, at string, q remote.Listing) (iter.Seq2[*stele.Record, error], error) {
	keys, err := l.Beginnings(prefix)
	if err != nil {
		return nil, err
	}
	q.At = stele.Location{URL: at}
	if !strings.Contains(at, "://") {
		q.At = stele.Location{Host: strings.ToLower(strings.Trim(at, "[]"))}
	}
	if prefix != "" {
		q.Key = keys[0]
	}
	if q.After != "" {
		last, err := l.Parse(q.After)
		if err != nil {
			return nil, err
		}
		q.After = last.String()
	}
	return l.List(ctx, q), nil
}

// Taken adds to a conflict which of the record's names is taken, and by which record.
func (l *Registry) Taken(ctx context.Context, rec *stele.Record, err error) error {
	if !errors.Is(err, stele.Conflict) {
		return err
	}
	for _, name := range rec.Names() {
		have, lookErr := l.Get(ctx, name)
		switch {
		case lookErr != nil:
			continue
		case name == rec.ID && have.ID == name:
			err = stele.Messagef("register.registered-already", "it is registered already; see 'stele show {name}', and change it with 'stele update'", name)
		default:
			err = stele.Messagef("register.name-of-other-record", "{name} is a name of {identifier} already, and no name is ever given away; leave it out", name, have.ID)
		}
		return &stele.Error{Op: "register", ID: rec.ID, Kind: stele.Conflict, Err: err}
	}
	return err
}
