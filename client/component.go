package client

import (
	"net/url"
	"strings"

	"github.com/stele-id/stele"
)

// Components are what follows a URN and is not a part of it (RFC 8141, section 2.3).
type Components struct {
	R string // for resolvers
	Q string // for the resource: the query of its URL
	F string // for the client: the fragment of its URL, which no server gets
}

// ComponentsOf returns the components among the parts of a name.
func ComponentsOf(parts stele.Parts) Components {
	get := func(name string) string {
		text, _ := parts.Get(name).(string)
		return text
	}
	return Components{get("r"), get("q"), get("f")}
}

// forResolver returns a name as a resolver is asked for it: with the r-component, which
// section 2.3.1 demands, and the q-component, which the resolver copies to the location.
func (c *Components) forResolver(name string) string {
	if c.R != "" {
		name += "?+" + c.R
	}
	if c.Q != "" {
		name += "?=" + c.Q
	}
	return name
}

// toTarget copies the q-component to a location that no resolver made, but a rule
// (section 2.3.2). Where the location has a query, the component follows it after an &.
// A location that ends with the name is a resolver's, which gets all that resolvers get,
// after an r-component that the rule has for it.
func (c *Components) toTarget(location, name string) string {
	if c.Q == "" && c.R == "" {
		return location
	}
	head, fragment, marked := strings.Cut(location, "#")
	base, own, _ := strings.Cut(head, "?+")
	if endsWith(base, name) {
		all := *c
		all.R = strings.Trim(own+"&"+c.R, "&")
		head = all.forResolver(base)
	} else if c.Q != "" {
		head = joinQuery(head, c.Q)
	}
	if marked {
		head += "#" + fragment
	}
	return head
}

// endsWith reports whether a URL ends with a name, as it is or encoded.
func endsWith(location, name string) bool {
	if n := len(location) - len(name); n >= 0 && strings.EqualFold(location[n:], name) {
		return true
	}
	decoded, err := url.PathUnescape(location)
	n := len(decoded) - len(name)
	return err == nil && n >= 0 && strings.EqualFold(decoded[n:], name)
}

// joinQuery adds to the query of a URL that has no fragment.
func joinQuery(location, query string) string {
	switch {
	case !strings.Contains(location, "?"):
		return location + "?" + query
	case strings.HasSuffix(location, "?"), strings.HasSuffix(location, "&"):
		return location + query
	}
	return location + "&" + query
}

// Place appends the f-component to the locations of the resource that have no fragment
// of their own (section 2.3.3, and RFC 9110, section 10.2.2, of redirects).
func (c *Components) Place(res *Result) {
	if c.F == "" || res.Found != FoundLocation || !isOfResource(res.Service) {
		return
	}
	for _, list := range [][]string{res.Others, res.Equals} {
		for i := range list {
			list[i] = withFragment(list[i], c.F)
		}
	}
	res.Location = withFragment(res.Location, c.F)
}

func withFragment(location, fragment string) string {
	if strings.Contains(location, "#") {
		return location
	}
	return location + "#" + fragment
}

// isOfResource reports whether a service gives the resource, or where it is, and not what
// is known of it.
func isOfResource(service stele.Service) bool {
	return strings.HasPrefix(string(service), "N2L") || isResource(string(service))
}
