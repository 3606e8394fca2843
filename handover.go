package stele

import (
	"slices"
	"strings"
	"time"
)

// HandOver says how far a namespace is handed over to another registry, the heir. The zero HandOver says that it is not.
type HandOver struct {
	State   HandOverState
	Heir    string // the registry that takes over, by the origin of its log: names.example.org/.log
	Address string // of the heir's resolver: a URL that a name is appended to
	Since   time.Time
	By      string
}

// HandOverState is how far a hand-over is. Each state but the first is reached from the one before it.
type HandOverState string

const (
	NotHandedOver HandOverState = ""

	// Offered: the heir is named. All goes on as before.
	Offered HandOverState = "offered"

	// Sealed: names are neither minted nor registered, and no record changes. Names are still resolved here: perhaps the
	// heir does not answer for them yet.
	Sealed HandOverState = "sealed"

	// Forwarded: the heir answers for the names, and requests for them are redirected there.
	Forwarded HandOverState = "forwarded"
)

// IsValid reports whether s is a state; NotHandedOver is one.
func (s HandOverState) IsValid() bool {
	switch s {
	case NotHandedOver, Offered, Sealed, Forwarded:
		return true
	}
	return false
}

// Adoption says that this registry took a namespace over from another one, the giver, and of which bundle.
type Adoption struct {
	From   string    // the giver, by the origin of its log
	To     string    // the registry that the giver named as its heir; "" if it named none
	Bundle string    // SHA-256 of the manifest of the bundle, in lower-case hexadecimal digits
	Change uint64    // number of the last change that the bundle has, in the giver's feed
	Until  time.Time // when that was made
	At     time.Time // when it was adopted
	By     string    // which principal did so

	// Generation is that of the giver in which Change was counted, as [GenerationID.String] writes it. It is missing from adoptions that were made before it was kept.
	Generation string

	// Reading says that the giver had not sealed the namespace for this registry, or that not all of the bundle is adopted yet:
	// names are resolved here, and neither minted nor registered, and no record changes.
	Reading bool

	// Silent says that the giver had not sealed the namespace, and fell silent for longer than it had agreed to with this registry. The giver may come back, so
	// names are not made here until an administrator says, at Ended, that it has ended; records are changed.
	Silent bool
	Ended  time.Time
}

// MaxAdoptions is how many adoptions a namespace keeps.
const MaxAdoptions = 100

// IsSealed reports whether the namespace was handed over, so that its names are another registry's to give.
func (n *Namespace) IsSealed() bool {
	return n.HandOver.State == Sealed || n.HandOver.State == Forwarded
}

// IsRead reports whether the namespace was adopted for reading only.
func (n *Namespace) IsRead() bool {
	last := len(n.Adoptions) - 1
	return last >= 0 && n.Adoptions[last].Reading
}

// IsSilent reports whether the namespace was adopted since its giver fell silent, and the giver may still make names of it.
func (n *Namespace) IsSilent() bool {
	last := len(n.Adoptions) - 1
	return last >= 0 && n.Adoptions[last].Silent && !n.Adoptions[last].Reading && n.Adoptions[last].Ended.IsZero()
}

// AnsweredAt returns the URL of the resolver that answers instead of this one, with {id} or {rest} in it: that of the heir if
// the namespace was handed over, or else Delegate. The empty text if this registry answers.
func (n *Namespace) AnsweredAt() string {
	if n.HandOver.State == Forwarded {
		return n.HandOver.Template()
	}
	return n.Delegate
}

// Template returns the URL of the heir's resolver with {id} in the place of the name.
func (h *HandOver) Template() string { return strings.TrimSuffix(h.Address, "/") + "/{id}" }

func (h HandOver) equal(other HandOver) bool {
	return h.State == other.State && h.Heir == other.Heir && h.Address == other.Address && h.Since.Equal(other.Since) && h.By == other.By
}

func (a Adoption) equal(other Adoption) bool {
	return a.From == other.From && a.To == other.To && a.Bundle == other.Bundle && a.Change == other.Change && a.Generation == other.Generation &&
		a.Until.Equal(other.Until) && a.At.Equal(other.At) && a.By == other.By && a.Reading == other.Reading && a.Silent == other.Silent && a.Ended.Equal(other.Ended)
}

// SameHandOver reports whether two versions of a namespace are as far handed over, and were adopted alike.
func (n *Namespace) SameHandOver(other *Namespace) bool {
	return n.HandOver.equal(other.HandOver) && slices.EqualFunc(n.Adoptions, other.Adoptions, Adoption.equal)
}

func (n *Namespace) checkHandOver(f *Report) {
	h := &n.HandOver
	switch {
	case !h.State.IsValid():
		f.Addf("handOver.state", "hand-over.state-unknown", `"{state}" is not a state of a hand-over; there are offered, sealed and forwarded`, string(h.State))
	case h.State == NotHandedOver:
		if !h.equal(HandOver{}) {
			f.Addf("handOver.state", "hand-over.state-missing", "is missing; say how far the hand-over is, or leave out the hand-over")
		}
	default:
		CheckRegistryName(f, "handOver.heir", h.Heir)
		checkResolver(f, "handOver.address", h.Address)
	}
	checkTime(f, "handOver.since", h.Since)
	checkName(f, "handOver.by", h.By)
	if !fits(f, "adoptions", len(n.Adoptions), MaxAdoptions) {
		return
	}
	for i := range n.Adoptions {
		n.Adoptions[i].check(f, ItemPath("adoptions", i))
	}
}

func (a *Adoption) check(f *Report, path string) {
	CheckRegistryName(f, path+".from", a.From)
	if a.To != "" {
		CheckRegistryName(f, path+".to", a.To)
	}
	if len(a.Bundle) != 64 || strings.Trim(a.Bundle, "0123456789abcdef") != "" {
		f.Addf(path+".bundle", "hand-over.digest-malformed", `"{digest}" is not a digest by SHA-256; give 64 hexadecimal digits in lower case`, a.Bundle)
	}
	if _, err := ParseGenerationID(a.Generation); err != nil && a.Generation != "" {
		f.Addf(path+".generation", "hand-over.generation-malformed", `"{generation}" is not a generation; give 32 hexadecimal digits in lower case, not all of them 0`, a.Generation)
	}
	checkTime(f, path+".until", a.Until)
	checkTime(f, path+".at", a.At)
	checkTime(f, path+".ended", a.Ended)
	if !a.Ended.IsZero() && !a.Silent {
		f.Addf(path+".ended", "hand-over.ended-not-silent", "means nothing of a giver that did not fall silent; leave it out")
	}
	checkName(f, path+".by", a.By)
}

// MaxRegistryName is how many bytes the name of a registry has at most.
const MaxRegistryName = 300

// CheckRegistryName judges the name of another registry: the origin of its log, which stands alone on a line of signed notes.
func CheckRegistryName(f *Report, path, name string) {
	bad := func(c rune) bool { return c <= ' ' || c == '+' || c > '~' }
	if name == "" || len(name) > MaxRegistryName || strings.ContainsFunc(name, bad) {
		f.Addf(path, "hand-over.registry-malformed", `"{name}" is not the name of a registry; give the origin of its log, which 'stele log key' prints there, such as names.example.org/.log`, name)
	}
}
