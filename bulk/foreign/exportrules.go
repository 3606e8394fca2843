package foreign

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/rules"
)

// maxWebLine is how long a line of a file may be: nginx reads words of up to 4,096 bytes, and Apache httpd lines of 8,190.
const maxWebLine = 4000

// webRule is a rule of a namespace as the file has it, for one spelling of the namespace's prefix.
type webRule struct {
	number     int    // in the file, from 1
	expression string // for a whole path, with an anchor at its beginning only
	fold       bool   // letters are the same in either case
	choices    []webChoice
}

// webChoice is a redirect for clients that accept something: those whose Accept an expression of PCRE fits, and the others after them.
type webChoice struct {
	accept string // "" for all others
	status int
	url    []rules.Piece // nil if there is nothing
}

// prepareRules makes rules of the file of those of the exported namespaces, and tells which can't be in it.
func (x *webExport) prepareRules(exported func(ns *stele.Namespace) bool) {
	for _, ns := range x.spaces {
		if len(ns.Rules) == 0 || !exported(ns) {
			continue
		}
		set, problems := rules.Compile(ns)
		if len(problems) > 0 {
			x.told(ns.Prefix, stele.Messagef("export.web-rules-unreadable", "its {count} rules are left out: {cause}", len(ns.Rules), stele.Reason(problems[0].Err)))
			continue
		}
		x.sets = append(x.sets, webSet{ns.Key(), set})
		for i := range ns.Rules {
			if err := x.prepareRule(ns, set, i); err != nil {
				x.told(ns.Prefix, stele.Messagef("export.web-rule", "its rule {number}, {pattern}, is left out: {cause}", i+1, ns.Rules[i].Pattern, err))
			}
		}
	}
}

// webSet is the rules of a namespace.
type webSet struct {
	key stele.NamespaceKey
	set *rules.Set
}

// prepareRule makes rules of the file of one, with all spellings of the prefix.
func (x *webExport) prepareRule(ns *stele.Namespace, set *rules.Set, number int) error {
	r := &ns.Rules[number]
	first := len(x.rules) + 1
	open := func(group int) string { return fmt.Sprintf("(?<%s>", ruleVariable(first, group)) }
	if x.to == Htaccess {
		open = func(int) string { return "(" }
	}
	said, reason := set.Rewrite(number, false, pattern, open)
	if reason != nil {
		return reason
	}
	prefixes, folds, err := x.prefixesOf(ns, set, number)
	if err != nil {
		return err
	}
	if folds {
		if said, reason = set.Rewrite(number, true, pattern, open); reason != nil {
			return reason
		}
	}
	choices := choicesOf(ns, r, said)
	var made []webRule
	for _, prefix := range prefixes {
		if x.to == Htaccess { // in the file of a folder paths have no slash before
			prefix = strings.TrimPrefix(prefix, "/")
		}
		w := webRule{number: first, expression: "^" + x.notBelow(ns, set.Start(number), prefix) + pattern(prefix) + said.Expression, fold: folds, choices: choices}
		if n := len(w.expression); n > maxWebLine || slices.ContainsFunc(choices, func(c webChoice) bool { return len(c.accept) > maxWebLine || n+lengthOf(c.url) > maxWebLine }) {
			return stele.Messagef("export.web-rule-long", "it would be a line of more than {most} bytes", maxWebLine)
		}
		made = append(made, w)
	}
	x.rules = append(x.rules, made...)
	x.done.Rules++
	if len(said.Narrowed) > 0 {
		x.told(ns.Prefix, stele.Messagef("export.web-rule-narrowed", "its rule {number}, {pattern}, answers in the file for fewer names: for none whose {captures} would have to be percent-encoded", number+1, r.Pattern, strings.Join(said.Narrowed, ", ")))
	}
	if slices.ContainsFunc(r.Targets, func(t stele.Target) bool { return t.Language != r.Targets[0].Language }) {
		x.told(ns.Prefix, stele.Messagef("export.web-rule-language", "its rule {number}, {pattern}, does not choose by language in the file", number+1, r.Pattern))
	}
	if x.to == Htaccess && slices.ContainsFunc(choices, func(c webChoice) bool { return hasFragment(c.url) }) {
		x.told(ns.Prefix, stele.Messagef("export.web-rule-fragment", "its rule {number}, {pattern}, does not pass on queries in the file: its URL has a fragment", number+1, r.Pattern))
	}
	return nil
}

// ruleVariable names what a group of a rule matched, for nginx.
func ruleVariable(rule, group int) string { return fmt.Sprintf("stele_%d_%d", rule, group) }

// prefixesOf returns the paths with which names of a rule begin, one for each spelling: those under which samples of its names are asked
// for. Folds is set if the case of letters does not count.
func (x *webExport) prefixesOf(ns *stele.Namespace, set *rules.Set, number int) (prefixes []string, folds bool, err error) {
	folds = true
	for _, name := range set.Names(number) {
		id, err := x.schemes.Parse(name)
		if err != nil || id.Scheme() != ns.Scheme || id.String() != name {
			continue
		}
		rest := strings.TrimPrefix(name, ns.Prefix)
		paths, host := x.paths(id)
		if x.host = cmp.Or(x.host, host); host != "" && host != x.host {
			return nil, false, stele.Messagef("export.web-rule-host", "the file is for the names of {host}; export those of the other host by themselves", x.host)
		}
		for _, path := range paths {
			if prefix, ok := strings.CutSuffix(path, rest); ok && isPlainPath(prefix) && !slices.Contains(prefixes, prefix) {
				prefixes = append(prefixes, prefix)
			}
		}
		folds = folds && x.folds(id) // a sample without letters says nothing
	}
	if len(prefixes) == 0 {
		return nil, false, stele.Messagef("export.web-rule-sample", "no name that it answers for was found that web servers look up as it is")
	}
	return prefixes, folds, nil
}

// notBelow returns an expression that keeps names of namespaces below from the rules of one: each namespace answers for all of its own.
func (x *webExport) notBelow(ns *stele.Namespace, start, prefix string) string {
	var list []string
	for _, other := range x.spaces {
		rest, below := strings.CutPrefix(other.Prefix, ns.Prefix)
		if other.Scheme == ns.Scheme && below && rest != "" && (strings.HasPrefix(rest, start) || strings.HasPrefix(start, rest)) {
			list = append(list, pattern(prefix+rest))
		}
	}
	if list == nil {
		return ""
	}
	return "(?!" + strings.Join(list, "|") + ")"
}

// choicesOf returns what clients get by what they accept: first those that name a type of the rule, then those that name a range of types.
// Types that a client likes less than others come after all that it likes most.
func choicesOf(ns *stele.Namespace, r *stele.Rule, said *rules.Rewriting) []webChoice {
	outcome := func(accept string) webChoice {
		best, fits := rules.Choose(r.Targets, accept)
		switch {
		case best < 0:
			return webChoice{status: http.StatusNotFound}
		case !fits:
			return webChoice{status: http.StatusNotAcceptable}
		}
		c := webChoice{status: cmp.Or(r.Targets[best].Status, ns.Status, http.StatusFound), url: said.URLs[best]}
		if c.url == nil || c.status == http.StatusNotFound || c.status == http.StatusGone || c.status == http.StatusNotAcceptable {
			c.url = nil
		}
		return c
	}
	var types, ranges []string
	targets := slices.Clone(r.Targets)
	slices.SortStableFunc(targets, func(a, b stele.Target) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Preference, b.Preference))
	})
	for _, t := range targets {
		name, _, _ := strings.Cut(strings.ToLower(t.Type), ";")
		major, _, ok := strings.Cut(name, "/")
		if t.Service != stele.N2L || !ok || slices.Contains(types, strings.TrimSpace(name)) {
			continue
		}
		types = append(types, strings.TrimSpace(name))
		if !slices.Contains(ranges, major+"/*") {
			ranges = append(ranges, major+"/*")
		}
	}
	usual, none := outcome(""), outcome("x/x")
	if len(types) == 0 {
		return []webChoice{usual}
	}
	var list []webChoice
	for _, names := range [][]string{types, ranges} {
		for _, after := range []string{`[ \t]*(?:;(?![^,]*q=0)[^,]*)?(?:,|$)`, `[ \t]*;[^,]*q=0\.[0-9]*[1-9]`} {
			for _, name := range names {
				c := outcome(name)
				c.accept = `(?:^|,)[ \t]*` + pattern(name) + after
				list = append(list, c)
			}
		}
	}
	if !isSameAnswer(usual, none) {
		usual.accept = acceptsNothing + `|(?:^|,)[ \t]*\x2a(?:/\x2a)?[ \t]*(?:[;,]|$)`
		list = append(list, usual)
	}
	return append(list, none)
}

// acceptsNothing fits the Accept of a client without a wish.
const acceptsNothing = `^[ \t]*$`

func isSameAnswer(a, b webChoice) bool { return a.status == b.status && slices.Equal(a.url, b.url) }

func lengthOf(url []rules.Piece) (n int) {
	for _, p := range url {
		n += len(p.Text) + 3*len("${stele_000_0}")
	}
	return n
}

func hasFragment(url []rules.Piece) bool {
	return slices.ContainsFunc(url, func(p rules.Piece) bool { return strings.Contains(p.Text, "#") })
}

// answeredByRule reports whether a rule of the file answers for a name, so that a record that is not in the file must be.
func (x *webExport) answeredByRule(id stele.ID) bool {
	longest := stele.NamespaceKey{}
	for _, ns := range x.spaces {
		if ns.Scheme == id.Scheme() && strings.HasPrefix(id.String(), ns.Prefix) && (longest.Scheme == "" || len(ns.Prefix) > len(longest.Prefix)) {
			longest = ns.Key()
		}
	}
	return slices.ContainsFunc(x.sets, func(s webSet) bool {
		_, ok := s.set.Match(id.String())
		return ok && s.key == longest
	})
}

// apacheRule writes a rule for Apache httpd.
func apacheRule(b *bytes.Buffer, r *webRule) {
	for _, c := range r.choices {
		if c.accept != "" {
			fmt.Fprintf(b, "RewriteCond %%{HTTP_ACCEPT} \"%s\" [NC]\n", c.accept)
		}
		flags := "NE,L"
		if r.fold {
			flags = "NC," + flags
		}
		fmt.Fprintf(b, `RewriteRule "%s$" `, r.expression)
		if c.url == nil {
			fmt.Fprintf(b, "- [R=%d,QSD,%s]\n", c.status, flags)
			continue
		}
		query := "QSA"
		if hasFragment(c.url) {
			query = "QSD" // a query would come after the fragment
		}
		b.WriteByte('"')
		for _, p := range c.url {
			if p.Group > 0 {
				fmt.Fprintf(b, "$%d", p.Group)
			}
			b.WriteString(substitution.Replace(p.Text))
		}
		fmt.Fprintf(b, "\" [R=%d,%s,%s]\n", c.status, query, flags)
	}
}

// nginxAnswer returns what the map of paths has for a choice: a status and a URL.
func nginxAnswer(rule int, c webChoice) string {
	if c.url == nil {
		return fmt.Sprint(c.status)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d ", c.status)
	asked, done := false, false
	query := func(before string) {
		switch last := before[len(before)-1]; {
		case !asked:
			b.WriteString("$is_args$args")
		case last == '?' || last == '&':
			b.WriteString("$args")
		default:
			b.WriteString("$stele_more")
		}
		done = true
	}
	for _, p := range c.url {
		if p.Group > 0 {
			fmt.Fprintf(&b, "${%s}", ruleVariable(rule, p.Group))
			continue
		}
		text, fragment, cut := strings.Cut(strings.ReplaceAll(p.Text, "$", "%24"), "#")
		b.WriteString(text)
		asked = asked || !done && strings.Contains(text, "?")
		if cut && !done {
			query(b.String())
			b.WriteString("#" + fragment)
		} else if cut {
			b.WriteString("#" + fragment)
		}
	}
	if !done {
		query(b.String())
	}
	return b.String()
}

// nginxUse returns what the server block needs.
func (x *webExport) nginxUse() string {
	byType := false
	for _, r := range x.rules {
		byType = byType || len(r.choices) > 1
		for _, c := range r.choices {
			x.statuses[c.status] = true
		}
	}
	var use strings.Builder
	if byType {
		use.WriteString("#     add_header Vary Accept always;\n")
	}
	for _, s := range slices.Sorted(maps.Keys(x.statuses)) {
		switch {
		case s == 0:
		case s >= http.StatusBadRequest:
			fmt.Fprintf(&use, "#     if ($stele = %d) { return %d; }\n", s, s)
		default:
			fmt.Fprintf(&use, "#     if ($stele ~ \"^%d (.*)$\") { return %d $1; }\n", s, s)
		}
	}
	return use.String()
}

// nginxTypes writes a map for each rule that chooses by what a client accepts.
func (x *webExport) nginxTypes() error {
	var b strings.Builder
	done, more := 0, false
	for _, r := range x.rules {
		for _, c := range r.choices {
			more = more || strings.Contains(nginxAnswer(r.number, c), "$stele_more")
		}
		if len(r.choices) == 1 || r.number == done { // another spelling of the same names
			continue
		}
		done = r.number
		fmt.Fprintf(&b, "map $http_accept $stele_%d {\n", r.number)
		for _, c := range r.choices {
			key := "default"
			if c.accept != "" {
				key = "\"~*" + c.accept + "\""
			}
			if strings.HasPrefix(c.accept, acceptsNothing) { // patterns are not looked up for it
				fmt.Fprintf(&b, "    \"\" \"%s\";\n", nginxAnswer(r.number, c))
			}
			fmt.Fprintf(&b, "    %s \"%s\";\n", key, nginxAnswer(r.number, c))
		}
		b.WriteString("}\n")
	}
	if more {
		b.WriteString("map $args $stele_more {\n    default \"&$args\";\n    \"\" \"\";\n}\n")
	}
	_, err := io.WriteString(x.out, b.String())
	return err
}
