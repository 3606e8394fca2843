package card

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/terminal"
	"github.com/stele-id/stele/internal/wording"
	"github.com/stele-id/stele/proof"
	"github.com/stele-id/stele/registrar/minting"
	"github.com/stele-id/stele/registry/access"
)

// Namespace draws the card of a namespace.
func Namespace(ns *stele.Namespace, d access.NamespaceDetails, now time.Time) string {
	var b strings.Builder
	fmt.Fprintln(&b, terminal.Printable(ns.Key().String()))
	Rows(&b, "scheme", ns.Scheme)
	if d.Parent != nil {
		Rows(&b, "below", d.Parent.Key().String())
	}
	Rows(&b, "title", ns.Title)
	Rows(&b, "owner", ns.Owner)
	for i, g := range ns.Grants {
		Rows(&b, First(i, "roles"), fmt.Sprintf("%s  %s", g.Role, g.To))
	}
	for i := range ns.Keys {
		Rows(&b, First(i, "keys"), KeyLine(&ns.Keys[i], now))
	}
	names := strconv.FormatUint(d.Count, 10)
	if ns.Quota > 0 {
		names += fmt.Sprintf(" of at most %d", ns.Quota)
	}
	Rows(&b, "names", names)
	Rows(&b, "new names", minting.Describe(&ns.Minter))
	Rows(&b, "", made(ns, d.Minter))
	if ns.Checked {
		Rows(&b, "check", "names end in a check character")
	}
	if n := len(ns.Rules); n > 0 {
		Rows(&b, "rules", fmt.Sprintf("%d, for names that are not registered; see 'stele rule ls %s'", n, terminal.Printable(ns.Key().String())))
	}
	if ns.Passthrough {
		Rows(&b, "passthrough", "what follows a registered name is appended to its targets")
	}
	if ns.Reviewed {
		Rows(&b, "review", "an owner approves what editors propose")
	}
	if ns.Listed {
		Rows(&b, "listed", "the public may list its names")
	}
	if ns.Handles.Off {
		Rows(&b, "handle protocol", "does not answer for it")
	}
	if ns.Handles.PublicWrite {
		Rows(&b, "handle values", "with the permission publicWrite are changed by everybody")
	}
	if ns.TTL > 0 {
		Rows(&b, "TTL", fmt.Sprintf("%d s", ns.TTL))
	}
	if ns.Status > 0 {
		Rows(&b, "status", strconv.Itoa(ns.Status))
	}
	Rows(&b, "hosts", strings.Join(ns.Hosts, "  "))
	Rows(&b, "protocols", strings.Join(ns.Protocols, "  "))
	Rows(&b, "delegate", ns.Delegate)
	handOver(&b, ns)
	for i, h := range ns.Heirs {
		Rows(&b, First(i, "heirs"), fmt.Sprintf("%s at %s, after %d days of silence", h.Registry, h.Address, h.Days))
	}
	Rows(&b, "persistence", wording.Promise(ns.Persistence))
	Rows(&b, "statement", ns.Persistence.Statement)
	writeKept(&b, ns.Version, ns.Created, ns.Modified, ns.By)
	return b.String()
}

// handOver tells to and from which registries a namespace was handed over.
func handOver(b *strings.Builder, ns *stele.Namespace) {
	h := &ns.HandOver
	switch h.State {
	case stele.Offered:
		Rows(b, "hand-over", "offered to "+h.Heir+", "+wording.Moment(h.Since))
	case stele.Sealed:
		Rows(b, "hand-over", "sealed for "+h.Heir+", "+wording.Moment(h.Since)+"; nothing is minted or changed here")
	case stele.Forwarded:
		Rows(b, "hand-over", "handed over to "+h.Heir+", "+wording.Moment(h.Since)+"; requests are redirected")
	}
	if h.State != stele.NotHandedOver {
		Rows(b, "", h.Address)
	}
	for i, a := range ns.Adoptions {
		line := a.From + ", " + wording.Moment(a.At)
		if a.Reading {
			line += ", for reading only"
		} else if a.Silent && a.Ended.IsZero() {
			line += ", which fell silent; names are not made here"
		}
		Rows(b, First(i, "taken over from"), line)
	}
}

// made tells how far the minter of a namespace is.
func made(ns *stele.Namespace, status minting.Status) string {
	switch {
	case ns.Minter.Kind == stele.NoMinter:
		return ""
	case status.Shut:
		return fmt.Sprintf("%d are given; shut by a restore or an import; open it with 'stele ns skip'", status.Given)
	case !status.Last.IsZero():
		return "dates up to " + status.Last.UTC().Format(time.RFC3339Nano) + " are given"
	case ns.Minter.Kind != stele.MinterNOID:
		return ""
	case status.Total == 0:
		return fmt.Sprintf("%d are given", status.Given)
	}
	return fmt.Sprintf("%d of %d are given", status.Given, status.Total)
}

// KeyLine describes a key in a line.
func KeyLine(k *stele.SigningKey, now time.Time) string {
	state, since := proof.KeyState(k, now)
	line := fmt.Sprintf("%s  %-7s  %-7s  %s", k.ID, strings.ToLower(k.Algorithm), state, wording.Moment(since))
	if state == "signs" && !k.Expires.IsZero() {
		line += ", until " + wording.Moment(k.Expires)
	}
	return line
}

// User draws the card of a user.
func User(u *auth.User, d access.UserDetails) string {
	var b strings.Builder
	fmt.Fprintln(&b, terminal.Printable(u.Name))
	Rows(&b, "groups", strings.Join(u.Groups, "  "))
	if u.Admin {
		Rows(&b, "administrator", "may do everything")
	}
	if u.Disabled {
		Rows(&b, "disabled", "has the rights of the public")
	}
	for i, role := range d.Roles {
		Rows(&b, First(i, "roles"), role)
	}
	tokens := fmt.Sprintf("%d in use", d.TokensInUse)
	if d.TokensEnded > 0 {
		tokens += fmt.Sprintf(", %d ended", d.TokensEnded)
	}
	Rows(&b, "tokens", tokens)
	Rows(&b, "created", wording.Moment(u.Created))
	Rows(&b, "changed", wording.Moment(u.Modified)+", by "+u.By)
	return b.String()
}
