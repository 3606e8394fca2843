package lex

// proxies are the hosts whose paths are handles and nothing else.
var proxies = [...]struct {
	host string
	doi  bool
}{
	{"doi.org", true},
	{"dx.doi.org", true},
	{"www.doi.org", true},
	{"hdl.handle.net", false},
	{"hdl.loc.gov", false},
}

// HandleProxy reports whether host, in any case of letters, is a proxy of the
// Handle System, and whether it takes DOIs only. Two schemes call it: hdl, to which they
// belong, and ibi, to which hdl.handle.net/... would look like a repository name.
func HandleProxy(host string) (doi, ok bool) {
	for _, p := range proxies {
		if len(host) == len(p.host) {
			if _, ok := CutFold(host, p.host); ok {
				return p.doi, true
			}
		}
	}
	return false, false
}
