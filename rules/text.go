package rules

import (
	"strings"

	"github.com/stele-id/stele"
)

// ParseExample reads an example as people write it on a line: 'NAME WANT' or 'NAME TYPE
// WANT'. It returns false if there is no name, or nothing after it.
func ParseExample(line string) (x stele.RuleExample, ok bool) {
	line = strings.TrimSpace(line)
	at := strings.LastIndexByte(line, ' ')
	if at < 0 {
		return x, false
	}
	x.Name, x.Want = strings.TrimSpace(line[:at]), line[at+1:]
	if at = strings.LastIndexByte(x.Name, ' '); at >= 0 && stele.IsMediaType(x.Name[at+1:]) {
		x.Name, x.Type = strings.TrimSpace(x.Name[:at]), x.Name[at+1:]
	}
	return x, x.Name != ""
}

// FormatExample writes an example as ParseExample reads it; only the name if the rule must
// not answer.
func FormatExample(x stele.RuleExample) string {
	return strings.Join(strings.Fields(x.Name+" "+x.Type+" "+x.Want), " ")
}

// ParseTarget reads a target as people write it on a line: a URL, or TYPE=URL for clients
// that accept a media type.
func ParseTarget(line string, status int) stele.Target {
	t := stele.Target{Service: stele.N2L, URL: line, Order: stele.DefaultOrder, Preference: stele.DefaultPreference, Status: status}
	// A media type has no colon, and a URL has one before anything else.
	if kind, url, ok := strings.Cut(line, "="); ok && !strings.Contains(kind, ":") {
		t.Type, t.URL = strings.ToLower(strings.TrimSpace(kind)), strings.TrimSpace(url)
	}
	return t
}
