package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// namespaceCard draws the card of a namespace for a person.
func (l *Registry) namespaceCard(ctx context.Context, ns *stele.Namespace) (string, error) {
	count, err := l.Count(ctx, ns.Key())
	if err != nil {
		return "", err
	}
	parent, err := l.ParentNamespace(ctx, ns.Key())
	if err != nil && !errors.Is(err, stele.NotFound) {
		return "", err
	}
	made, err := l.made(ctx, ns)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintln(&b, printable(ns.Key().String()))
	rows(&b, "scheme", ns.Scheme)
	if parent != nil {
		rows(&b, "below", parent.Key().String())
	}
	rows(&b, "title", ns.Title)
	rows(&b, "owner", ns.Owner)
	for i, g := range ns.Grants {
		rows(&b, first(i, "roles"), fmt.Sprintf("%s  %s", g.Role, g.To))
	}
	for i := range ns.Keys {
		rows(&b, first(i, "keys"), keyLine(&ns.Keys[i], l.now()))
	}
	names := strconv.FormatUint(count, 10)
	if ns.Quota > 0 {
		names += fmt.Sprintf(" of at most %d", ns.Quota)
	}
	rows(&b, "names", names)
	rows(&b, "new names", mints(&ns.Minter))
	rows(&b, "", made)
	if ns.Checked {
		rows(&b, "check", "names end in a check character")
	}
	if ns.Passthrough {
		rows(&b, "passthrough", "what follows a registered name is appended to its targets")
	}
	if ns.TTL > 0 {
		rows(&b, "TTL", fmt.Sprintf("%d s", ns.TTL))
	}
	if ns.Status > 0 {
		rows(&b, "status", strconv.Itoa(ns.Status))
	}
	rows(&b, "hosts", strings.Join(ns.Hosts, "  "))
	rows(&b, "protocols", strings.Join(ns.Protocols, "  "))
	rows(&b, "delegate", ns.Delegate)
	rows(&b, "persistence", promise(ns.Persistence))
	rows(&b, "statement", ns.Persistence.Statement)
	writeKept(&b, ns.Version, ns.Created, ns.Modified, ns.By)
	return b.String(), nil
}

// made tells how far the minter of a namespace is.
func (l *Registry) made(ctx context.Context, ns *stele.Namespace) (string, error) {
	if ns.Minter.Kind == stele.NoMinter {
		return "", nil
	}
	status, err := l.MinterStatus(ctx, ns.Key())
	switch {
	case err != nil:
		return "", err
	case status.Shut:
		return "shut by a restore; open it with 'stele ns skip'", nil
	case !status.Last.IsZero():
		return "dates up to " + status.Last.UTC().Format(time.RFC3339Nano) + " are given", nil
	case ns.Minter.Kind != stele.MinterNOID:
		return "", nil
	case status.Total == 0:
		return fmt.Sprintf("%d are given", status.Given), nil
	}
	return fmt.Sprintf("%d of %d are given", status.Given, status.Total), nil
}

// mints describes how names are made, by the settings' flags.
func mints(m *stele.Minter) string {
	if m.Kind == stele.NoMinter {
		return ""
	}
	words := []string{string(m.Kind)}
	say := func(is bool, format string, args ...any) {
		if is {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	say(m.Host != "", "host %s", m.Host)
	say(m.Port != 0, "port %d", m.Port)
	say(m.IP != "", "ip %s", m.IP)
	say(m.IPPort != 0, "ip-port %d", m.IPPort)
	say(m.AllowPrivate, "allow-private")
	say(m.Granularity != "", "granularity %s", m.Granularity)
	say(m.Template != "", "template %s", m.Template)
	say(m.Seed != 0, "seed %d", m.Seed)
	return strings.Join(words, ", ")
}
