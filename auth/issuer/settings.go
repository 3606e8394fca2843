package issuer

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// Settings are what the operator says of an issuer.
type Settings struct {
	Name        string // in paths, such as campus
	Label       string // for people; the name if it is empty
	URL         string // as the provider writes it in its tokens
	Client      string // ID that the provider gave to the server
	Secret      string
	Scopes      []string // beside openid
	GroupsClaim string   // that lists the person's groups; "": none
	Groups      []GroupRule
	Enter       Enter
}

// Title returns the name for people.
func (s *Settings) Title() string {
	if s.Label != "" {
		return s.Label
	}
	return s.Name
}

// GroupRule makes people with a value in the groups claim members of a group.
type GroupRule struct{ Value, Group string }

// EnterKind says who may enter through an issuer.
type EnterKind string

// Those who may enter: people whose account is linked to a user already; or also those who have a
// one-time link; or also those with a value in a claim, for whom a user is made.
const (
	EnterIfKnown   EnterKind = "none"
	EnterIfInvited EnterKind = "invited"
	EnterByClaim   EnterKind = "claim"
)

// Enter says who may enter. Claim and Value are for EnterByClaim.
type Enter struct {
	Kind         EnterKind
	Claim, Value string
}

// ParseEnter reads none, invited, or claim:NAME=VALUE.
func ParseEnter(text string) (Enter, error) {
	switch EnterKind(text) {
	case EnterIfKnown, EnterIfInvited:
		return Enter{Kind: EnterKind(text)}, nil
	}
	rest, ok := strings.CutPrefix(text, string(EnterByClaim)+":")
	name, value, both := strings.Cut(rest, "=")
	if !ok || !both || name == "" || value == "" {
		return Enter{}, stele.Messagef("issuer.enter-invalid", `"{value}" does not say who may enter; write none, invited, or claim:NAME=VALUE, as in claim:affiliation=staff`, text)
	}
	return Enter{EnterByClaim, name, value}, nil
}

// CheckURL makes sure that a text can be the URL of an issuer. Without https anyone on the way
// could sign in as anyone, so http is for this machine only.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
		return stele.Messagef("issuer.url-invalid", `"{url}" is not the URL of an issuer; write it as its provider does, with https and without a query, as in https://login.example.org`, text)
	}
	return nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// IsName reports whether a text can be the name of an issuer: it is in paths and after @ in the
// names of users.
func IsName(text string) bool {
	for i := range len(text) {
		c := text[i]
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' && i > 0) {
			return false
		}
	}
	return text != "" && len(text) <= maxIssuerName
}

// Limits.
const (
	maxIssuerName = 20
	maxSubject    = 255 // characters (OpenID Connect Core 1.0, section 2)
	maxValues     = 1000
)

// Person is who a provider says that a person is.
type Person struct {
	Issuer, Subject string    // which together are the account
	Name            string    // that the person has at the provider; may be empty
	Label           string    // to show the account to its owner: a name or an address; may be empty
	Groups          []string  // of the registry, by the rules of the issuer, sorted
	MayEnter        bool      // a claim says so
	SignedIn        time.Time // when the person signed in at the provider; zero if it does not say
}

// read reads the claims about a person.
func (s *Settings) read(subject string, claims map[string]any) Person {
	p := Person{Issuer: s.URL, Subject: subject}
	text := func(names ...string) string {
		for _, name := range names {
			if value, ok := claims[name].(string); ok && value != "" {
				return value
			}
		}
		return ""
	}
	p.Name, p.Label = text("preferred_username", "nickname"), text("email", "preferred_username", "name")
	if s.GroupsClaim != "" {
		values := valuesOf(claims, s.GroupsClaim)
		for _, rule := range s.Groups {
			if slices.Contains(values, rule.Value) && !slices.Contains(p.Groups, rule.Group) {
				p.Groups = append(p.Groups, rule.Group)
			}
		}
		slices.Sort(p.Groups)
	}
	p.MayEnter = s.Enter.Kind == EnterByClaim && slices.Contains(valuesOf(claims, s.Enter.Claim), s.Enter.Value)
	return p
}

// valuesOf returns the texts of a claim: one or a list. A name such as realm_access.roles that is
// not a claim itself leads into objects. It is nil if there is no such claim.
func valuesOf(claims map[string]any, name string) []string {
	value, ok := claims[name]
	if !ok {
		for i := range len(name) {
			if inner, isObject := claims[name[:i]].(map[string]any); name[i] == '.' && isObject {
				return valuesOf(inner, name[i+1:])
			}
		}
		return nil
	}
	switch v := value.(type) {
	case string:
		return []string{v}
	case bool:
		if v {
			return []string{"true"}
		}
		return []string{"false"}
	case []any:
		texts := []string{}
		for _, element := range v[:min(len(v), maxValues)] {
			if text, ok := element.(string); ok {
				texts = append(texts, text)
			}
		}
		return texts
	}
	return []string{}
}
