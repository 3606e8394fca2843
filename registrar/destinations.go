package registrar

import (
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/namespaces"
)

// destinations judges every place that a record can lead to, by the rules of the
// namespaces of all its names: a name of a namespace never leads where the namespace
// does not allow it, whether by a target, by a handle value, by another handle, or
// because it is an alias of a record of another namespace. A withdrawn record leads
// nowhere.
func (j *judge) destinations(next *stele.Record) {
	if next.State == stele.Withdrawn {
		return
	}
	judged := make([]*namespaces.Node, 0, 1)
	judgeBy := func(id stele.ID) {
		if ns := j.namespaceTree.Of(id); ns != nil && !slices.Contains(judged, ns) {
			judged = append(judged, ns)
		}
	}
	judgeBy(next.ID)
	for _, alias := range next.Aliases {
		judgeBy(alias)
	}
	for _, ns := range judged {
		j.destinationsIn(ns, next)
	}
}

// destinationsIn judges by the rules of one namespace. Most records have a target or
// two and nothing else, so those take a fast path.
func (j *judge) destinationsIn(ns *namespaces.Node, next *stele.Record) {
	if len(next.Values) == 0 && !slices.ContainsFunc(next.Targets, func(t stele.Target) bool {
		return !allowsProtocol(ns.Namespace, t.Protocol()) || len(ns.Hosts) > 0 && !allowsHost(ns.Namespace, t.Host())
	}) {
		return
	}
	for d := range destination.Of(next) {
		if slices.ContainsFunc(j.problems, func(p stele.Problem) bool { return p.Path == d.Path }) {
			continue
		}
		if m := j.judgeDestination(ns, d); m != nil {
			j.add(d.Path, m)
		}
	}
}

// judgeDestination returns what is wrong with a destination in a namespace; nil if
// nothing is. A text that is not fit for a redirect does not lead anywhere here; it is
// refused only where the namespace says where names may lead, because another client
// could read it in another way.
func (j *judge) judgeDestination(ns *namespaces.Node, d destination.Destination) *stele.Message {
	restricted := len(ns.Hosts) > 0 || len(ns.Protocols) > 0
	switch {
	case d.Handle != "":
		if restricted {
			return j.judgeHandle(ns, d.Handle)
		}
		return nil
	case d.URL == "" && !restricted:
		return nil
	case d.URL == "":
		return stele.Messagef("destination.unreadable",
			"\"{text}\" is not a URL that can be held against the hosts and protocols that {namespace} allows; give an absolute URL with a host",
			d.Text, ns.Key())
	}
	if p := destination.Protocol(d.URL); !allowsProtocol(ns.Namespace, p) {
		return stele.Messagef("destination.protocol-not-allowed",
			"the protocol \"{protocol}\" is not allowed in {namespace}", p, ns.Key())
	}
	if host := destination.Host(d.URL); !allowsHost(ns.Namespace, host) {
		return stele.Messagef("destination.host-not-allowed",
			"\"{host}\": targets of {namespace} don't point there; ask its owner to allow the host",
			host, ns.Key())
	}
	return nil
}

// judgeHandle judges another handle to which a value of type HS_ALIAS leads: its
// namespace must allow no more than this one does. What is not a handle leads nowhere.
func (j *judge) judgeHandle(ns *namespaces.Node, handle string) *stele.Message {
	id, err := destination.ParseHandle(j.schemes, handle)
	if err != nil {
		return nil
	}
	other := j.namespaceTree.Of(id)
	if other != nil && (other == ns || isWithinRules(other.Namespace, ns.Namespace)) {
		return nil
	}
	return stele.Messagef("destination.handle-not-allowed",
		"\"{handle}\" belongs to a namespace that may lead to other hosts or protocols than {namespace} allows; name a handle of {namespace}, or ask its owner",
		handle, ns.Key())
}

// isWithinRules reports whether everything that the namespace inner allows is allowed
// in outer too.
func isWithinRules(inner, outer *stele.Namespace) bool {
	if len(outer.Hosts) > 0 {
		if len(inner.Hosts) == 0 {
			return false
		}
		for _, rule := range inner.Hosts {
			if !allowsRule(outer, rule) {
				return false
			}
		}
	}
	if d := inner.Delegate; d != "" {
		safe, ok := destination.Safe(strings.NewReplacer("{id}", "x", "{rest}", "x").Replace(d))
		if !ok || !allowsProtocol(outer, destination.Protocol(safe)) || !allowsHost(outer, destination.Host(safe)) {
			return false
		}
	}
	protocols := inner.Protocols
	if len(protocols) == 0 {
		protocols = []string{"https", "http", "ftp"}
	}
	return !slices.ContainsFunc(protocols, func(p string) bool { return !allowsProtocol(outer, p) })
}

// allowsRule reports whether all hosts that a rule stands for are allowed.
func allowsRule(ns *stele.Namespace, rule string) bool {
	rule = strings.TrimSuffix(rule, ".")
	if !strings.HasPrefix(rule, ".") {
		return allowsHost(ns, rule)
	}
	return slices.ContainsFunc(ns.Hosts, func(own string) bool {
		own = strings.TrimSuffix(own, ".")
		return strings.HasPrefix(own, ".") && strings.HasSuffix(rule, own)
	})
}

func allowsProtocol(ns *stele.Namespace, protocol string) bool {
	if len(ns.Protocols) == 0 {
		return protocol == "https" || protocol == "http" || protocol == "ftp"
	}
	return slices.Contains(ns.Protocols, protocol)
}

func allowsHost(ns *stele.Namespace, host string) bool {
	if len(ns.Hosts) == 0 {
		return true
	}
	host = strings.TrimSuffix(host, ".") // the root's dot
	return slices.ContainsFunc(ns.Hosts, func(rule string) bool {
		rule = strings.TrimSuffix(rule, ".")
		return host == rule || strings.HasPrefix(rule, ".") && strings.HasSuffix(host, rule)
	})
}
