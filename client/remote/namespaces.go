package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registrar/minting"
)

// Namespace returns the namespace of that key, or NotFound if there is none that the user
// may see.
func (r *Registry) Namespace(ctx context.Context, key stele.NamespaceKey) (*stele.Namespace, error) {
	a, err := r.call(ctx, &ask{method: http.MethodGet, path: pathOf("namespaces", key.String()), again: true})
	if err != nil {
		return nil, under("show namespace", stele.ID{}, err)
	}
	return r.readNamespace(a.body)
}

func (r *Registry) readNamespace(text []byte) (*stele.Namespace, error) {
	ns, err := document.DecodeNamespace(r.o.Schemes, text)
	if err != nil {
		return nil, unread(stele.Reason(err))
	}
	return ns, nil
}

// Namespaces yields the namespaces in which the user has a role, by scheme and then by
// prefix; for an administrator all.
func (r *Registry) Namespaces(ctx context.Context) iter.Seq2[*stele.Namespace, error] {
	return r.namespaces(ctx, "namespaces")
}

// NamespaceHistory yields the versions of a namespace that the server keeps, the newest
// first.
func (r *Registry) NamespaceHistory(ctx context.Context, key stele.NamespaceKey) iter.Seq2[*stele.Namespace, error] {
	return r.namespaces(ctx, pathOf("namespacehistory", key.String()))
}

func (r *Registry) namespaces(ctx context.Context, path string) iter.Seq2[*stele.Namespace, error] {
	q := &ask{method: http.MethodGet, path: path, query: url.Values{"limit": {strconv.Itoa(pageSize)}}, again: true}
	return func(yield func(*stele.Namespace, error) bool) {
		for item, err := range r.items(ctx, q) {
			var ns *stele.Namespace
			if err == nil {
				ns, err = r.readNamespace(item)
			}
			if !yield(ns, err) || err != nil {
				return
			}
		}
	}
}

// ParentNamespace returns the namespace above one, or NotFound if there is none that the
// user may see.
func (r *Registry) ParentNamespace(ctx context.Context, key stele.NamespaceKey) (*stele.Namespace, error) {
	tree := namespaces.New(r.o.Schemes)
	for ns, err := range r.Namespaces(ctx) {
		if err != nil {
			return nil, err
		}
		tree.Add(ns)
	}
	if n := tree.Get(key); n != nil {
		if ancestors := tree.Ancestors(n); len(ancestors) > 1 {
			return ancestors[1], nil
		}
	}
	return nil, refuse("show namespace", stele.ID{}, stele.NotFound, "namespace.none-above", "no namespace is above {namespace}", key)
}

// AddNamespace makes a namespace.
func (r *Registry) AddNamespace(ctx context.Context, ns *stele.Namespace) (*stele.Namespace, error) {
	const op = "add namespace"
	if ns.Prefix == "" {
		return nil, refuse(op, stele.ID{}, stele.Conflict, "namespace.root-exists", "every scheme has its root namespace already; change that")
	}
	if err := valid(op, stele.ID{}, ns); err != nil {
		return nil, err
	}
	a, err := r.call(ctx, putNamespace(ns, "If-None-Match", "*"))
	switch {
	case err == nil:
		return r.readNamespace(a.body)
	case !isPrecondition(err):
		return nil, under(op, stele.ID{}, err)
	case mayBeOwn(err):
		if have, getErr := r.Namespace(ctx, ns.Key()); getErr == nil && have.Version == 1 && bytes.Equal(settings(have), settings(ns)) {
			return have, nil
		}
	}
	return nil, refuse(op, stele.ID{}, stele.Conflict, "namespace.exists", "the namespace {namespace} exists; change it, or choose another prefix", ns.Key())
}

// putNamespace makes the request that writes a namespace, on a condition.
func putNamespace(ns *stele.Namespace, condition, tag string) *ask {
	return &ask{
		method: http.MethodPut, path: pathOf("namespaces", ns.Key().String()), again: true,
		header: http.Header{condition: {tag}}, media: apijson.JSON, body: settings(ns),
	}
}

// settings returns the document of a namespace as its owner writes it, without the fields
// that the server sets.
func settings(ns *stele.Namespace) []byte {
	c := *ns
	c.Version, c.By = 0, ""
	c.Created, c.Modified = time.Time{}, time.Time{}
	return document.AppendNamespace(nil, &c)
}

// SetNamespace changes a namespace. It calls change again, with the namespace as it is
// then, when another writer was faster.
func (r *Registry) SetNamespace(ctx context.Context, key stele.NamespaceKey, ifVersion uint64, change func(*stele.Namespace) error) (*stele.Namespace, error) {
	const op = "set namespace"
	for attempt := 1; ; attempt++ {
		before, err := r.Namespace(ctx, key)
		switch {
		case errors.Is(err, stele.NotFound):
			return nil, refuse(op, stele.ID{}, stele.NotFound, "namespace.missing", "there is no namespace {namespace}; add it first", key)
		case err != nil:
			return nil, err
		case ifVersion != 0 && before.Version != ifVersion:
			return nil, refuse(op, stele.ID{}, stele.Conflict, "namespace.version-differs", "the namespace {namespace} has version {version}, not {expected}; look at it again", key, before.Version, ifVersion)
		}
		next := *before
		next.Hosts, next.Protocols, next.Grants = slices.Clone(before.Hosts), slices.Clone(before.Protocols), slices.Clone(before.Grants)
		next.Keys = slices.Clone(before.Keys)
		if err := change(&next); err != nil {
			return nil, tell(op, err)
		}
		if next.Key() != key {
			return nil, refuse(op, stele.ID{}, stele.Invalid, "namespace.key-changed", "scheme and prefix of a namespace never change; add another")
		}
		if err := valid(op, stele.ID{}, &next); err != nil {
			return nil, err
		}
		a, err := r.call(ctx, putNamespace(&next, "If-Match", r.tagOf(before.Version)))
		if err == nil {
			return r.readNamespace(a.body)
		}
		if !isPrecondition(err) || attempt == maxAttempts {
			return nil, under(op, stele.ID{}, err)
		}
		if now, getErr := r.Namespace(ctx, key); mayBeOwn(err) && getErr == nil && now.Version == before.Version+1 && bytes.Equal(settings(now), settings(&next)) {
			return now, nil // an attempt whose answer was lost wrote it
		}
	}
}

func (r *Registry) minter(ctx context.Context, key stele.NamespaceKey) (m apijson.Minter, err error) {
	return m, r.fetch(ctx, "show namespace", &ask{method: http.MethodGet, path: pathOf("minters", key.String()), again: true}, &m)
}

// MinterStatus returns how far the minter of a namespace is.
func (r *Registry) MinterStatus(ctx context.Context, key stele.NamespaceKey) (minting.Status, error) {
	m, err := r.minter(ctx, key)
	var last time.Time
	if m.Last != nil {
		last = *m.Last
	}
	return minting.Status{Last: last, Given: m.Given, Total: m.Total, Shut: m.Shut}, err
}

// Count returns how many records count for a namespace.
func (r *Registry) Count(ctx context.Context, key stele.NamespaceKey) (uint64, error) {
	m, err := r.minter(ctx, key)
	return m.Names, err
}

// SkipCounter sets the counter of a namespace's template ahead.
func (r *Registry) SkipCounter(ctx context.Context, key stele.NamespaceKey, to uint64) error {
	const op = "skip counter"
	// It is idempotent: to set the counter where it is changes nothing.
	return r.fetch(ctx, op, &ask{method: http.MethodPost, path: pathOf("skip", key.String()), document: apijson.Skip{To: to}, again: true}, nil)
}

// CheckRules has the server check a namespace, as [registrar.Registrar.CheckRules] does.
func (r *Registry) CheckRules(ctx context.Context, key stele.NamespaceKey, progress func(read int)) iter.Seq2[registrar.Breach, error] {
	const op = "check namespace"
	return func(yield func(registrar.Breach, error) bool) {
		s, err := r.open(ctx, &ask{method: http.MethodPost, path: pathOf("check", key.String()), again: true}, nil, streamStill)
		if err != nil {
			yield(registrar.Breach{}, under(op, stele.ID{}, err))
			return
		}
		defer s.Close()
		for text, err := range textLines(s) {
			if err != nil {
				yield(registrar.Breach{}, err)
				return
			}
			var line apijson.Breach
			if err := json.Unmarshal(text, &line); err != nil {
				yield(registrar.Breach{}, unread(err))
				return
			}
			if line.Read > 0 && progress != nil {
				progress(line.Read)
			}
			if line.Done {
				return
			}
			if line.ID == "" {
				continue
			}
			id, err := r.o.Schemes.Parse(line.ID)
			if err != nil {
				yield(registrar.Breach{}, unread(err))
				return
			}
			if !yield(registrar.Breach{ID: id, Version: line.Version, Problems: apijson.ProblemsOf(line.Problems)}, nil) {
				return
			}
		}
		yield(registrar.Breach{}, refuse(op, stele.ID{}, stele.Unavailable, "record.listing-cut-off", "the answer was cut off, so not all records were read; try again"))
	}
}

// PURLHosts returns the hosts whose http names are PURLs in the registry.
func (r *Registry) PURLHosts(ctx context.Context) ([]string, error) {
	return r.purlHosts(ctx, "list hosts", &ask{method: http.MethodGet, path: "purl-hosts", again: true})
}

// AddPURLHosts adds hosts whose http names are PURLs, and returns all of them. Only an
// administrator may add hosts.
func (r *Registry) AddPURLHosts(ctx context.Context, hosts ...string) ([]string, error) {
	const op = "add hosts"
	return r.purlHosts(ctx, op, &ask{method: http.MethodPost, path: "purl-hosts", document: apijson.Hosts{Hosts: hosts}, again: true})
}

func (r *Registry) purlHosts(ctx context.Context, op string, q *ask) ([]string, error) {
	var list apijson.Hosts
	if err := r.fetch(ctx, op, q, &list); err != nil {
		return nil, err
	}
	return list.Hosts, r.learnHosts(list.Hosts)
}

// learnHosts makes the client's schemes read names under the hosts.
func (r *Registry) learnHosts(hosts []string) error {
	for scheme := range r.o.Schemes.All() {
		if hosted, ok := scheme.(stele.HostScheme); ok {
			if err := hosted.AddHosts(hosts...); err != nil {
				return unread(err)
			}
		}
	}
	return nil
}
