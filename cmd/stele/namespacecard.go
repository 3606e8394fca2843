package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar/minting"
	"github.com/stele-id/stele/registry/access"
)

// namespaceCard draws the card of a namespace for a person.
func namespaceCard(ns *stele.Namespace, d access.NamespaceDetails, now time.Time) string {
	var b strings.Builder
	fmt.Fprintln(&b, printable(ns.Key().String()))
	rows(&b, "scheme", ns.Scheme)
	if d.Parent != nil {
		rows(&b, "below", d.Parent.Key().String())
	}
	rows(&b, "title", ns.Title)
	rows(&b, "owner", ns.Owner)
	for i, g := range ns.Grants {
		rows(&b, first(i, "roles"), fmt.Sprintf("%s  %s", g.Role, g.To))
	}
	for i := range ns.Keys {
		rows(&b, first(i, "keys"), keyLine(&ns.Keys[i], now))
	}
	names := strconv.FormatUint(d.Count, 10)
	if ns.Quota > 0 {
		names += fmt.Sprintf(" of at most %d", ns.Quota)
	}
	rows(&b, "names", names)
	rows(&b, "new names", minting.Describe(&ns.Minter))
	rows(&b, "", made(ns, d.Minter))
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
	return b.String()
}

// made tells how far the minter of a namespace is.
func made(ns *stele.Namespace, status minting.Status) string {
	switch {
	case ns.Minter.Kind == stele.NoMinter:
		return ""
	case status.Shut:
		return "shut by a restore; open it with 'stele ns skip'"
	case !status.Last.IsZero():
		return "dates up to " + status.Last.UTC().Format(time.RFC3339Nano) + " are given"
	case ns.Minter.Kind != stele.MinterNOID:
		return ""
	case status.Total == 0:
		return fmt.Sprintf("%d are given", status.Given)
	}
	return fmt.Sprintf("%d of %d are given", status.Given, status.Total)
}
