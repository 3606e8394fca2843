package api

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/serve/api/openapi"
)

// prefixInPath is the parameter in the path of what names a namespace.
var prefixInPath = parameter{name: "prefix", about: "The prefix of the namespace; a scheme and a colon for its root", example: "ark:12345/x5"}

func (h *Handler) namespaceOperations() []operation {
	const group = "Namespaces"
	ns := answer{status: 200, about: "The namespace as it is now.", value: openapi.Namespace{}, headers: []parameter{entityTag}}
	status := answer{status: 200, about: "How far the minter is.", value: apijson.Minter{}}
	return []operation{{
		name: "listNamespaces", method: http.MethodGet, path: "namespaces", group: group,
		summary: "List the namespaces in which you have a role",
		about:   "Administrators see all, the roots of the schemes included.",
		asks:    known, scope: auth.ScopeRead,
		query:   []parameter{limitParameter, cursorParameter},
		answers: []answer{{status: 200, about: "A page of the list.", value: apijson.NamespacePage{}}},
		gathers: true,
		serve:   h.listNamespaces,
	}, {
		name: "getNamespace", method: http.MethodGet, path: "namespaces/{prefix}", group: group, tail: prefixInPath,
		summary: "Show a namespace",
		about:   "To users without a role there, it does not exist.",
		asks:    reader, scope: auth.ScopeRead, headers: []parameter{ifMatch, ifNoneMatch},
		answers: []answer{ns, {status: 304, about: "It has one of the tags in If-None-Match.", headers: []parameter{entityTag}}},
		fails:   []int{404, 412},
		serve:   h.getNamespace,
	}, {
		name: "putNamespace", method: http.MethodPut, path: "namespaces/{prefix}", group: group, tail: prefixInPath,
		summary: "Make a namespace, or replace its settings",
		about:   "Conditions are as for putRecord. Making one takes the role owner in the namespace above. Setting its owner or quota takes the role owner above it, too, and its DNS zone must not belong to another namespace.",
		asks:    owner, scope: auth.ScopeAdmin, headers: []parameter{ifMatch, ifNoneMatch},
		body: &body{media: []string{apijson.JSON}, limit: maxBody, value: openapi.NamespaceInput{}, example: `{"title":"Maps","owner":"ann","minter":{"kind":"noid","template":".reeeedk"}}`,
			about: "The namespace. What the system keeps (version, created, modified, by) is not believed. Scheme and prefix are those of the path."},
		answers: []answer{ns, {status: 201, about: "The namespace was made.", value: openapi.Namespace{}, headers: []parameter{entityTag, location}}},
		fails:   []int{404, 409, 412, 428},
		serve:   h.putNamespace,
	}, {
		name: "tryNamespace", method: http.MethodPost, path: "try/{prefix}", group: group,
		tail:    parameter{name: "prefix", about: prefixInPath.about, example: "ark:12345/q7"},
		summary: "Try a namespace that does not exist yet",
		about:   "It is judged as putNamespace would, and nothing is written. The answer has names such as its minter would make.",
		asks:    owner, scope: auth.ScopeAdmin,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: openapi.NamespaceInput{}, example: `{"title":"Maps","minter":{"kind":"noid","template":".reeeedk"}}`},
		answers: []answer{{status: 200, about: "It could be made like this.", value: apijson.NamespaceSamples{}}},
		fails:   []int{404, 409},
		serve:   h.tryNamespace,
	}, {
		name: "patchNamespace", method: http.MethodPatch, path: "namespaces/{prefix}", group: group, tail: prefixInPath,
		summary: "Change some settings of a namespace",
		about:   "A merge patch (RFC 7396) of the namespace as getNamespace shows it.",
		asks:    owner, scope: auth.ScopeAdmin, headers: []parameter{ifMatch, ifNoneMatch},
		body:    &body{media: []string{apijson.MergePatch}, limit: maxBody, value: openapi.NamespacePatch{}, example: `{"title":"Old maps"}`},
		answers: []answer{ns},
		fails:   []int{404, 409, 412},
		serve:   h.patchNamespace,
	}, {
		name: "getNamespaceHistory", method: http.MethodGet, path: "namespacehistory/{prefix}", group: group, tail: prefixInPath,
		summary: "Show the versions of a namespace",
		about:   "The newest first. Those from before the registry kept them are missing.",
		asks:    reader, scope: auth.ScopeRead,
		query:   []parameter{limitParameter, cursorParameter},
		answers: []answer{{status: 200, about: "A page of versions.", value: apijson.NamespacePage{}}},
		fails:   []int{404},
		serve:   h.getNamespaceHistory,
	}, {
		name: "getMinter", method: http.MethodGet, path: "minters/{prefix}", group: group, tail: prefixInPath,
		summary: "Show how far the minter of a namespace is",
		asks:    reader, scope: auth.ScopeRead,
		answers: []answer{status},
		fails:   []int{404},
		serve: func(c *call) error {
			ns, err := h.namespace(c)
			if err != nil {
				return err
			}
			return h.replyMinter(c, ns)
		},
	}, {
		name: "skip", method: http.MethodPost, path: "skip/{prefix}", group: group, tail: prefixInPath,
		summary: "Advance the counter of a template",
		about:   "A template whose counter came from a backup makes no names until this is done, since names may have been given since: take a number that is ahead of all of them. What is skipped is never made, and the counter never goes back.",
		asks:    administrator, scope: auth.ScopeAdmin,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.Skip{}, example: `{"ahead":10000}`},
		answers: []answer{status},
		fails:   []int{404, 409},
		serve:   h.skip,
	}}
}

// listNamespaces lists the namespaces in which the caller has a role. A cursor is the scheme
// and the prefix of the last one.
func (h *Handler) listNamespaces(c *call) error {
	after, err := c.after()
	if err != nil {
		return err
	}
	scheme, prefix, _ := strings.Cut(after, " ")
	page := newPage(c)
	for ns, err := range h.o.Registrar.Namespaces(c.ctx) {
		if err != nil {
			return err
		}
		if cmp.Or(cmp.Compare(ns.Scheme, scheme), cmp.Compare(ns.Prefix, prefix)) <= 0 {
			continue
		}
		if page.isFull() {
			return page.reply()
		}
		page.pass(ns.Scheme + " " + ns.Prefix)
		page.add(document.AppendNamespace(nil, ns))
	}
	return page.end()
}

// getNamespaceHistory shows the versions of a namespace. A cursor is the last version.
func (h *Handler) getNamespaceHistory(c *call) error {
	key, err := c.prefix()
	if err != nil {
		return err
	}
	after, err := c.after()
	if err != nil {
		return err
	}
	page := newPage(c)
	begun := after == ""
	for ns, err := range h.o.Registrar.NamespaceHistory(c.ctx, key) {
		if err != nil {
			return err
		}
		version := strconv.FormatUint(ns.Version, 10)
		if !begun {
			begun = version == after
			continue
		}
		if page.isFull() {
			return page.reply()
		}
		page.pass(version)
		page.add(document.AppendNamespace(nil, ns))
	}
	return page.end()
}

// namespace returns the namespace in the path, if the caller has a role there.
func (h *Handler) namespace(c *call) (*stele.Namespace, error) {
	key, err := c.prefix()
	if err != nil {
		return nil, err
	}
	return h.o.Registrar.Namespace(c.ctx, key)
}

// replyNamespace answers with a namespace and its version.
func (c *call) replyNamespace(status int, ns *stele.Namespace) error {
	c.w.Header().Set("ETag", c.h.tagOf(ns.Version))
	return c.replyJSON(status, document.AppendNamespace(nil, ns))
}

// getNamespace shows a namespace.
func (h *Handler) getNamespace(c *call) error {
	on, err := c.conditions()
	if err != nil {
		return err
	}
	ns, err := h.namespace(c)
	if err != nil {
		return err
	}
	if err := on.holdMatch(c.op.name, stele.ID{}, ns.Version); err != nil {
		return err
	}
	if on.isKnown(ns.Version) {
		c.w.Header().Set("ETag", c.h.tagOf(ns.Version))
		c.replyEmpty(http.StatusNotModified)
		return nil
	}
	return c.replyNamespace(http.StatusOK, ns)
}

// putNamespace makes a namespace, or replaces its settings.
func (h *Handler) putNamespace(c *call) error {
	key, err := c.prefix()
	if err != nil {
		return err
	}
	on, err := c.conditions()
	if err != nil {
		return err
	}
	have, err := h.namespace(c)
	if err != nil && !errors.Is(err, stele.NotFound) {
		return err
	}
	if err == nil && !on.isSaid() {
		return on.unconditional(c.op.name, stele.ID{}, have.Version)
	}
	ns, readErr := c.namespaceIn(key)
	if readErr != nil {
		return readErr
	}
	if err != nil {
		return h.addNamespace(c, ns, on)
	}
	next, err := h.o.Registrar.SetNamespace(c.ctx, key, 0, func(next *stele.Namespace) error {
		if err := on.hold(c.op.name, stele.ID{}, next.Version); err != nil {
			return err
		}
		replaceNamespace(next, ns)
		return nil
	})
	if err != nil {
		return err
	}
	return c.replyNamespace(http.StatusOK, next)
}

// namespaceSamples is how many names are made up of a namespace that is tried.
const namespaceSamples = 5

// tryNamespace judges a namespace that does not exist yet.
func (h *Handler) tryNamespace(c *call) error {
	key, err := c.prefix()
	if err != nil {
		return err
	}
	ns, err := c.namespaceIn(key)
	if err != nil {
		return err
	}
	if err := h.o.Registrar.TryNamespace(c.ctx, ns, true); err != nil {
		return err
	}
	samples := h.o.Registrar.SampleNames(c.ctx, ns, namespaceSamples)
	return c.reply(http.StatusOK, apijson.NamespaceSamples{Samples: append([]string{}, samples...)})
}

// addNamespace makes a namespace.
func (h *Handler) addNamespace(c *call, ns *stele.Namespace, on conditions) error {
	if err := on.holdNothing(c.op.name, stele.ID{}); err != nil {
		return err
	}
	made, err := h.o.Registrar.AddNamespace(c.ctx, ns)
	if err != nil {
		if have, _ := h.namespace(c); have != nil && stele.KindOf(err) == stele.Conflict {
			// Another request made it first.
			if !on.isSaid() {
				return on.unconditional(c.op.name, stele.ID{}, have.Version)
			}
			return failed(c.op.name, stele.ID{}, "precondition.made-meanwhile", "it was made meanwhile, with version {version}", have.Version)
		}
		return err
	}
	c.w.Header().Set("Location", Root+"/namespaces/"+escaped(made.Key().String()))
	return c.replyNamespace(http.StatusCreated, made)
}

// namespaceIn reads a namespace in the body: strictly, and with scheme and prefix of
// the path if it has none of its own.
func (c *call) namespaceIn(key stele.NamespaceKey) (*stele.Namespace, error) {
	data, err := c.bytes()
	if err != nil {
		return nil, err
	}
	data = document.WithMember(data, "scheme", key.Scheme)
	if key.Prefix != "" {
		data = document.WithMember(data, "prefix", key.Prefix)
	}
	return c.sameNamespace(key, data)
}

// sameNamespace reads a namespace, which must be the one in the path.
func (c *call) sameNamespace(key stele.NamespaceKey, data []byte) (*stele.Namespace, error) {
	ns, err := document.DecodeNamespace(c.h.o.Schemes, data)
	if err != nil {
		return nil, err
	}
	if ns.Key() != key {
		return nil, &stele.Error{Op: c.op.name, Kind: stele.Invalid, Err: stele.Problems{{Path: "prefix",
			Err: stele.Messagef("request.namespace-differs-from-path", `the path leads to {expected}, and this is "{given}"; make them the same, or leave it out`, key, ns.Key())}}}
	}
	return ns, nil
}

// replaceNamespace gives a namespace all that people say of another.
func replaceNamespace(next, by *stele.Namespace) {
	kept := *next
	*next = *by
	next.Version, next.Created, next.Modified, next.By = kept.Version, kept.Created, kept.Modified, kept.By
}

// patchNamespace changes some settings of a namespace.
func (h *Handler) patchNamespace(c *call) error {
	on, err := c.conditions()
	if err != nil {
		return err
	}
	ns, err := h.namespace(c)
	if err != nil {
		return err
	}
	patch, err := c.readPatch()
	if err != nil {
		return err
	}
	next, err := h.o.Registrar.SetNamespace(c.ctx, ns.Key(), 0, func(next *stele.Namespace) error {
		if err := on.hold(c.op.name, stele.ID{}, next.Version); err != nil {
			return err
		}
		patched, err := document.ApplyPatch(document.AppendNamespace(nil, next), patch)
		if err != nil {
			return err
		}
		changed, err := c.sameNamespace(next.Key(), patched)
		if err != nil {
			return err
		}
		replaceNamespace(next, changed)
		return nil
	})
	if err != nil {
		return err
	}
	return c.replyNamespace(http.StatusOK, next)
}

// replyMinter answers with how far the minter of a namespace is.
func (h *Handler) replyMinter(c *call, ns *stele.Namespace) error {
	status, err := h.o.Registrar.MinterStatus(c.ctx, ns.Key())
	if err != nil {
		return err
	}
	count, err := h.o.Store.Count(c.ctx, ns.Key())
	if err != nil {
		return err
	}
	d := apijson.Minter{
		Namespace: ns.Key().String(), Kind: string(ns.Minter.Kind), Given: status.Given, Total: status.Total,
		Shut: status.Shut, Names: count, Quota: ns.Quota,
	}
	if !status.Last.IsZero() {
		last := status.Last.UTC()
		d.Last = &last
	}
	return c.reply(http.StatusOK, d)
}

// skip sets the counter of a template ahead.
func (h *Handler) skip(c *call) error {
	ns, err := h.namespace(c)
	if err != nil {
		return err
	}
	var want apijson.Skip
	if err := c.decode(&want); err != nil {
		return err
	}
	status, err := h.o.Registrar.MinterStatus(c.ctx, ns.Key())
	if err != nil {
		return err
	}
	to := want.To
	switch {
	case (want.To == 0) == (want.Ahead == 0):
		return invalidf("mint.to-or-ahead-wrong", "give either to or ahead, and a number from 1 on")
	case want.Ahead > 0:
		to = status.Given + want.Ahead
	}
	if to < want.Ahead || status.Total > 0 && to > status.Total {
		return &stele.Error{Op: c.op.name, Kind: stele.Exhausted, Err: stele.Messagef("namespace.template-used-up", "the template of {namespace} has {total} names; {given} are given", ns.Key(), status.Total, status.Given)}
	}
	if err := h.o.Registrar.SkipCounter(c.ctx, ns.Key(), to); err != nil {
		return err
	}
	return h.replyMinter(c, ns)
}

func (h *Handler) hostOperations() []operation {
	const group = "Namespaces"
	return []operation{{
		name: "listPURLHosts", method: http.MethodGet, path: "purl-hosts", group: group,
		summary: "List PURL hosts",
		about:   "They belong to the registry. A client needs them to tell PURLs from other URLs.",
		asks:    anyone, scope: anyScope,
		answers: []answer{{status: 200, about: "The hosts, in order.", value: apijson.Hosts{}}},
		serve:   h.listHosts,
	}, {
		name: "addPURLHosts", method: http.MethodPost, path: "purl-hosts", group: group,
		summary: "Add PURL hosts",
		about:   "Hosts that are there already change nothing. A host is never taken away: names under it could not be read any more.",
		asks:    administrator, scope: auth.ScopeAdmin,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.Hosts{}, example: `{"hosts":["purl.example.org"]}`},
		answers: []answer{{status: 200, about: "All hosts, in order.", value: apijson.Hosts{}}},
		serve:   h.addHosts,
	}}
}

// listHosts answers with all hosts.
func (h *Handler) listHosts(c *call) error {
	return c.reply(http.StatusOK, apijson.Hosts{Hosts: h.o.Registrar.Hosts()})
}

// addHosts adds some.
func (h *Handler) addHosts(c *call) error {
	var want apijson.Hosts
	if err := c.decode(&want); err != nil {
		return err
	}
	if _, err := h.o.Registrar.AddHosts(c.ctx, want.Hosts...); err != nil {
		return err
	}
	return h.listHosts(c)
}
