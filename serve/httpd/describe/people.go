package describe

import "strings"

// agent is a person or a body that made something.
type agent struct {
	name          string // as it was written
	family, given string // of a person; both or none
	url           string // an ORCID or a page; may be empty
}

// isPerson reports whether the agent is known to be a person.
func (a *agent) isPerson() bool { return a.family != "" || strings.HasPrefix(a.url, orcidHost) }

const orcidHost = "https://orcid.org/"

// agents reads a list of names with semicolons between them.
func agents(s string) (all []agent) {
	for _, item := range list(s) {
		if item = uncoded(item); item != "" {
			all = append(all, newAgent(item))
		}
	}
	return all
}

// newAgent reads one name: "Lima, Ana (https://orcid.org/...)".
func newAgent(s string) agent {
	a := agent{name: s}
	if url, ok := agentURL(s); ok {
		a.url = url
		return a
	}
	for _, brackets := range [...]string{"()", "<>"} {
		open := strings.LastIndexByte(s, brackets[0])
		if open <= 0 || s[len(s)-1] != brackets[1] {
			continue
		}
		if url, ok := agentURL(s[open+1 : len(s)-1]); ok {
			a.url = url
			if name := strings.TrimSpace(s[:open]); name != "" {
				a.name = name
			}
		}
	}
	family, given, ok := strings.Cut(a.name, ",")
	family, given = strings.TrimSpace(family), strings.TrimSpace(given)
	if ok && family != "" && given != "" && !strings.Contains(given, ",") && !isCompany(given) {
		a.family, a.given = family, given
	}
	return a
}

// isCompany reports whether what follows a comma belongs to a company's name.
func isCompany(s string) bool {
	switch strings.ToLower(strings.Trim(s, ".")) {
	case "inc", "ltd", "llc", "llp", "plc", "co", "corp", "gmbh", "ag", "s.a", "ltda", "ltée":
		return true
	}
	return false
}

// agentURL reads a URL, or an ORCID with or without its host.
func agentURL(s string) (string, bool) {
	if len(s) > 6 && strings.EqualFold(s[:5], "orcid") {
		s = strings.TrimLeft(s[5:], ": ")
	}
	if isORCID(s) {
		return orcidHost + s, true
	}
	return webURL(s)
}

// isORCID reports whether s is four groups of four digits with a valid check character (ISO
// 7064, MOD 11-2).
func isORCID(s string) bool {
	if len(s) != 19 {
		return false
	}
	sum := 0
	for i := range 18 {
		c := s[i]
		if i%5 == 4 {
			if c != '-' {
				return false
			}
			continue
		}
		if c < '0' || c > '9' {
			return false
		}
		sum = (sum + int(c-'0')) * 2 % 11
	}
	return s[18] == "0123456789X"[(12-sum)%11]
}
