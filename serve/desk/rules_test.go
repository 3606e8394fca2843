package desk

import (
	"net/url"
	"strings"
	"testing"
)

// TestRules adds, tries and removes rules of a namespace at the desk.
func TestRules(t *testing.T) {
	const page = "/.desk/rules?namespace=ark%3A12345%2Fx5"
	s := newSite(t)
	olga, ed, sam := s.as("olga"), s.as("ed"), s.as("sam")
	form := func(pairs ...string) url.Values {
		v := url.Values{"namespace": {"ark:12345/x5"}, "do": {"add"}}
		for i := 0; i < len(pairs); i += 2 {
			v.Set(pairs[i], pairs[i+1])
		}
		return v
	}
	good := []string{"pattern", "m{n:digit,3}", "targets", "https://example.org/{n}\r\ntext/turtle=https://example.org/{n}.ttl", "status", "303",
		"examples", "ark:12345/x5m007 https://example.org/007\r\nark:12345/x5m007 text/turtle https://example.org/007.ttl", "silent", "ark:12345/x5m7"}
	olga.get(page).has(200, "Rules for names", "There are no rules", "A new rule")
	if p := ed.get(page).has(200, "There are no rules"); strings.Contains(p.text, "A new rule") {
		t.Error("an editor is offered what an owner may do")
	}
	sam.get(page).has(404)
	ed.post("/.desk/rules/add", form(good...)).has(403)

	// Trying writes nothing.
	olga.post("/.desk/rules/add", form(append(good, "do", "try")...)).has(200, "all examples hold", `value="m{n:digit,3}"`, "There are no rules")
	for says, wrong := range map[string][]string{
		`href="#pattern"`:                        {"pattern", "{n:emoji}"},
		"must not stand in the protocol":         {"targets", "https://{n}/"},
		`href="#examples"`:                       {"examples", "ark:12345/x5m007"},
		"but https://example.org/007 came":       {"examples", "ark:12345/x5m007 https://example.org/7"},
		`href="#status"`:                         {"status", "418"},
		"&#34;x&#34; is not a number":            {"status", "x"},
		`href="#before"`:                         {"before", "7"},
		"javascript":                             {"targets", "javascript:alert(1)"},
		"the rule must not answer for this name": {"silent", "ark:12345/x5m008"},
	} {
		olga.post("/.desk/rules/add", form(append(good, wrong...)...)).has(422, says)
	}
	olga.follow(olga.post("/.desk/rules/add", form(good...))).has(200, "The rule answers from now on.", "m{n:digit,3}", "https://example.org/{n}.ttl", "not ark:12345/x5m7", "Remove")
	olga.follow(olga.post("/.desk/rules/add", form("pattern", "m{x:any}", "status", "410", "reason", "<Lost>", "examples", "ark:12345/x5mx 410"))).has(200, "&lt;Lost&gt;", "Rules 1 and 2 both match")
	olga.get(page+"&name=ark:12345/x5m123&accept=text/turtle").has(200, "Rule 1 answers:", "https://example.org/123.ttl")
	olga.get(page+"&name=ark:12345/x5mz").has(200, "Rule 2 answers:", "status 410")
	olga.get(page+"&name=ark:12345/x5z").has(200, "No rule answers for this name.")
	olga.get(page+"&name=ark:12345/zz").has(422, `href="#name"`)
	olga.get("/.desk/namespace?namespace=ark%3A12345%2Fx5").has(200, "2 rules answer for names that are not registered.", "Rules for names")

	// A list that another user changed meanwhile is shown again.
	olga.post("/.desk/rules/remove", form("number", "2", "version", "1")).has(409, "changed meanwhile")
	first := []string{"pattern", "n{x:any}", "targets", "https://example.org/n/{x}", "examples", "ark:12345/x5n1 https://example.org/n/1", "before", "1"}
	olga.post("/.desk/rules/add", form(append(first, "version", "1")...)).has(409, "changed meanwhile", `value="n{x:any}"`)
	version := between(olga.get(page).text, `name="version" value="`, `"`)
	olga.follow(olga.post("/.desk/rules/add", form(append(first, "version", version)...))).has(200, "The rule answers from now on.")
	version = between(olga.get(page).text, `name="version" value="`, `"`)
	olga.follow(olga.post("/.desk/rules/remove", form("number", "1", "version", version))).has(200, "The rule is removed.")
	version = between(olga.get(page).text, `name="version" value="`, `"`)
	olga.follow(olga.post("/.desk/rules/remove", form("number", "2", "version", version))).has(200, "The rule is removed.")
	ed.post("/.desk/rules/remove", form("number", "1", "version", version)).has(409)
	olga.get("/.desk/rules?namespace=ark%3A12345%2Fx5&lang=pt-BR").has(200, "m{n:digit,3}")
}

// between returns what stands between two texts.
func between(text, before, after string) string {
	_, rest, _ := strings.Cut(text, before)
	found, _, _ := strings.Cut(rest, after)
	return found
}
