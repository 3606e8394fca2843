// Package purl reads persistent URLs: http names under the hosts of a resolver,
// such as https://purl.org/dc/terms/title. The caller of [New] names these hosts;
// there is no other mark of a PURL.
//
// # Canonical form
//
// https://<host>/<path>. A PURL is the same with http and with https, since a
// resolver answers both. The host is in lower case, without a dot at its end and
// without the protocol's own port; each host is a resolver of its own, www.purl.org
// not being purl.org. Percent-encodings are in upper case, and those of
// unreserved characters are decoded (RFC 3986, 6.2.2). All else in the path
// counts: the case of letters, an empty part (//), a slash at the end.
//
// A query and a fragment are not part of the name and are left out.
//
// # Decided here
//
// "." and ".." as parts of a path are refused, encoded ones too: browsers remove
// them before they ask, so they name nothing. So is user information, which
// serves to make a URL look like another, and a host alone, which names nothing.
// Encoded control characters are refused as plain ones are.
//
// Some first parts of a path are a resolver's own; see [IsReserved]. A URL that
// carries a name with a mark ("ark:" and "urn:" anywhere in the path, or "urn:"
// first in the query; "hdl:" and "doi:" first in the path) is left to that
// scheme, which is what stele.ErrForeign says. Any other that begins with a
// reserved part is an invalid PURL: those that are handles or IBIs all the same
// are read by their schemes, which are asked before.
//
// The package follows no redirect, and never asks a host anything.
package purl

import (
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/internal/lex"
)

// name is the scheme's name.
const name = "purl"

// start begins every canonical text.
const start = "https://"

// Scheme is the [stele.Scheme] of PURLs.
type Scheme struct {
	adding sync.Mutex
	known  atomic.Pointer[[]host] // replaced by AddHosts, and never changed
}

var (
	_ stele.HostScheme = (*Scheme)(nil)
	_ stele.URIScheme  = (*Scheme)(nil)
)

// New returns the scheme of the PURLs under hosts, each a host name or an IPv4
// address, perhaps with a port: purl.org, localhost:8080. Without any it claims
// nothing. [DefaultHosts] are those of the public resolvers.
func New(hosts ...string) (*Scheme, error) {
	s := &Scheme{}
	s.known.Store(new([]host))
	if err := s.AddHosts(hosts...); err != nil {
		return nil, err
	}
	return s, nil
}

// AddHosts implements [stele.HostScheme].
func (s *Scheme) AddHosts(hosts ...string) error {
	s.adding.Lock()
	defer s.adding.Unlock()
	next := slices.Clone(*s.known.Load())
	for _, text := range hosts {
		h, err := newHost(text)
		if err != nil {
			return err
		}
		if !slices.Contains(next, h) {
			next = append(next, h)
		}
	}
	s.known.Store(&next)
	return nil
}

// Hosts implements [stele.HostScheme].
func (s *Scheme) Hosts() (hosts []string) {
	for _, h := range *s.known.Load() {
		hosts = append(hosts, h.text)
	}
	slices.Sort(hosts)
	return hosts
}

// HostOf implements [stele.HostScheme].
func (s *Scheme) HostOf(id stele.ID) string {
	rest, ok := strings.CutPrefix(id.String(), start)
	if !ok || id.Scheme() != name {
		return ""
	}
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// HostPrefix implements [stele.HostScheme].
func (s *Scheme) HostPrefix(host string) string { return start + host + "/" }

// DefaultHosts returns the hosts of public resolvers: those of the Internet
// Archive, which OCLC began in 1995, of the W3C's community group, of the United
// States Government Publishing Office, and of the OBO Foundry.
func DefaultHosts() []string {
	return []string{
		"purl.org", "purl.com", "purl.net", "purl.info", "purl.oclc.org", "purl.archive.org",
		"w3id.org",
		"purl.fdlp.gov", "purl.access.gpo.gov",
		"purl.obolibrary.org",
	}
}

// IsReserved reports whether the first part of a path is one that a resolver uses
// itself, for names of other schemes or for services, so that no PURL begins with
// it. Letters count in any case. All parts that begin with a dot are reserved, also those
// that no resolver uses yet.
func IsReserved(part string) bool {
	if strings.HasPrefix(part, ".") {
		return true
	}
	for _, mark := range [...]string{"ark:", "urn:", "hdl:", "doi:"} {
		if part != "" && part[0]|0x20 == mark[0] && lex.IsMark(part, mark) {
			return true
		}
	}
	for _, r := range reserved {
		if len(part) == len(r) && strings.EqualFold(part, r) {
			return true
		}
	}
	return false
}

var reserved = [...]string{
	"hdl", "doi", "ibi", "rep", // ways to name an identifier of another scheme
	"uri-res", "api", "authority", // other systems' clients, and our own
	"dns-query",                    // DNS over HTTPS
	"healthz", "readyz", "metrics", // for the operator
	"robots.txt", "favicon.ico", // what crawlers and browsers ask for
}

// Name returns "purl".
func (s *Scheme) Name() string { return name }

// Parse reads an http or https URL under one of the hosts.
func (s *Scheme) Parse(text string) (stele.ID, error) {
	var r reading
	err := s.read(text, &r)
	return r.id, err
}

// Explain reads text as Parse does. The form is "purl", the parts are host and
// path, in canonical form, then query and fragment if text has them.
func (s *Scheme) Explain(text string) (stele.Explanation, error) {
	var r reading
	if err := s.read(text, &r); err != nil {
		return stele.Explanation{}, err
	}
	path := r.id.String()[len(start)+len(r.host):]
	x := stele.Explanation{ID: r.id, Form: "purl", Spellings: s.Spellings(r.id)}
	x.Parts = stele.Parts{{Name: "host", Value: r.host}, {Name: "path", Value: path}}
	if r.link.HasQuery {
		x.Warnings = append(x.Warnings, "The query is not part of the name and was left out.")
	}
	if r.link.Query != "" {
		x.Parts = append(x.Parts, stele.Part{Name: "query", Value: r.link.Query})
	}
	if r.link.Fragment != "" {
		x.Warnings = append(x.Warnings, "The fragment is not part of the name and was left out; servers never see it.")
		x.Parts = append(x.Parts, stele.Part{Name: "fragment", Value: r.link.Fragment})
	}
	if strings.Contains(path, "//") {
		x.Warnings = append(x.Warnings, "The path has a doubled slash, which counts, but which many programs make one.")
	}
	if strings.Contains(path, "%2F") {
		x.Warnings = append(x.Warnings, "The path has an encoded slash (%2F), which is not the same as a slash, but which many programs take for one.")
	}
	return x, nil
}

// Spellings returns the name with http, as most PURLs were published.
func (s *Scheme) Spellings(id stele.ID) []stele.Spelling {
	rest, ok := strings.CutPrefix(id.String(), start)
	if !ok {
		return nil
	}
	return []stele.Spelling{{Name: "http", Text: "http://" + rest}}
}

// URI implements [stele.URIScheme]: a PURL is a URI as it is.
func (s *Scheme) URI(text string) (schemes []string, rest string) {
	rest, ok := strings.CutPrefix(text, "https:")
	if !ok {
		return nil, ""
	}
	return []string{"https", "http"}, rest
}

// Parents yields the domains that id is in, each with its slash and without:
// partial PURLs are registered either way. Of https://purl.org/net/a these are
// https://purl.org/net/, https://purl.org/net and https://purl.org/.
func (s *Scheme) Parents(id stele.ID) iter.Seq[stele.Prefix] {
	return func(yield func(stele.Prefix) bool) {
		text := id.String()
		if !strings.HasPrefix(text, start) {
			return
		}
		root := len(start) + strings.IndexByte(text[len(start):], '/') + 1
		for last, i := len(text), len(text)-1; i >= root-1; i-- {
			if text[i] != '/' {
				continue
			}
			for _, n := range [...]int{i + 1, i} {
				if n >= last || n < root {
					continue
				}
				if last = n; !yield(id.Prefix(n)) {
					return
				}
			}
		}
	}
}

// Cuts reports whether id may be cut after n bytes: after the slash that follows the host,
// and after any character of the path, since the prefix of a family of names may end inside
// a part (https://purl.obolibrary.org/obo/HP_). It is not cut within a percent-encoding.
func (s *Scheme) Cuts(id stele.ID, n int) bool {
	text := id.String()
	if !strings.HasPrefix(text, start) || n <= len(start) || n >= len(text) {
		return false
	}
	host := strings.IndexByte(text[len(start):], '/')
	return host >= 0 && n > len(start)+host && !lex.InTriplet(text, n)
}

// ParsePrefix reads a host with its slash, or any other beginning of PURLs.
func (s *Scheme) ParsePrefix(text string) (stele.Prefix, stele.ID, error) {
	return lex.ParsePrefix(s, text, "x", "/x")
}

// Joint returns the separator between a prefix and a name that a minter makes below it. A
// prefix may end inside a part of the path, but one that ends in a letter or digit is
// nearly always a whole part, such as https://purl.org/docs.
func (s *Scheme) Joint(prefix string) string {
	if prefix != "" && lex.IsAlnum(prefix[len(prefix)-1]) {
		return "/"
	}
	return ""
}
