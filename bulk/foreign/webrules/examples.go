package webrules

import (
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/rules"
)

// areDisjoint reports whether no name has two of the forms.
func areDisjoint(list []variant, fold bool, left *int) bool {
	all := make([]*language, len(list))
	for i := range list {
		tree, err := syntax.Parse(list[i].expression(fold), syntax.Perl)
		if err != nil {
			return false
		}
		if all[i], err = newLanguage(tree); err != nil {
			return false
		}
		for k := range i {
			if all[k].relate(all[i], left) != disjoint {
				return false
			}
		}
	}
	return true
}

// expression returns a form as a regular expression.
func (v *variant) expression(fold bool) string {
	var b strings.Builder
	if fold {
		b.WriteString("(?i)")
	}
	b.WriteString("^")
	for i := range v.elements {
		switch e := &v.elements[i]; e.kind {
		case literal:
			b.WriteString(regexp.QuoteMeta(e.text))
		case oneOf:
			words := make([]string, len(e.words))
			for k, w := range e.words {
				words[k] = regexp.QuoteMeta(w)
			}
			b.WriteString("(?:" + strings.Join(words, "|") + ")")
		case run:
			b.WriteString(e.set.expression() + "{" + strconv.Itoa(e.min) + ",")
			if e.max != unlimited {
				b.WriteString(strconv.Itoa(e.max))
			}
			b.WriteString("}")
		}
	}
	return b.String() + "$"
}

// expression returns the set as a class of a regular expression.
func (s *charset) expression() string {
	var b strings.Builder
	b.WriteByte('[')
	for c := rune(firstRune); c <= lastRune; c++ {
		if s[c] {
			b.WriteString(`\x` + strconv.FormatInt(int64(c), 16))
		}
	}
	b.WriteByte(']')
	return b.String()
}

// samples returns some names of a form, with fold set also in upper case.
func (v *variant) samples(fold bool) (names []string) {
	rounds := 3
	for i := range v.elements {
		rounds = max(rounds, min(len(v.elements[i].words), maxWords))
	}
	for _, likes := range []string{"0a", "a0", "Zz9", "x-1", "q7_", "ex."} {
		for more := range rounds {
			var b strings.Builder
			for i := range v.elements {
				switch e := &v.elements[i]; e.kind {
				case literal:
					b.WriteString(e.text)
				case oneOf:
					b.WriteString(e.words[min(more, len(e.words)-1)])
				case run:
					n := e.min + more%3
					if e.min == 0 {
						n++
					}
					if e.max != unlimited {
						n = min(n, e.max)
					}
					for k := range n {
						b.WriteByte(e.set.pick(likes[k%len(likes)], likes))
					}
				}
			}
			names = append(names, b.String())
		}
	}
	if fold {
		for _, name := range names {
			names = append(names, strings.ToUpper(name))
		}
	}
	return names
}

// isListed reports whether samples returns all names of the form.
func (v *variant) isListed() bool {
	lists := 0
	for i := range v.elements {
		switch e := &v.elements[i]; e.kind {
		case oneOf:
			if lists++; lists > 1 || len(e.words) > maxWords {
				return false
			}
		case run:
			return false
		}
	}
	return true
}

// pick returns a character of the set: one that is liked, if the set has it, or one of others that are liked.
func (s *charset) pick(c byte, likes string) byte {
	if s[c] {
		return c
	}
	for i := range len(likes) {
		if s[likes[i]] {
			return likes[i]
		}
	}
	for _, c := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_." {
		if s[c] {
			return byte(c)
		}
	}
	for c, in := range s {
		if in {
			return byte(c)
		}
	}
	return 'x'
}

// maxWords is how many words of a form are tried.
const maxWords = 50

// maxExamples is how many media types the examples of a rule show.
const maxExamples = 4

// addExamples gives each rule examples, which are what Apache httpd answers. A rule for whose names other rules answer is left out: nothing shows
// that it is right. Rules that have more text than a namespace may have are all refused. It reports whether it refused some, so that the
// others have to be tried again.
func (c *compiler) addExamples(ns *stele.Namespace, of []*group) (again bool) {
	set, problems := rules.Compile(ns)
	if len(problems) > 0 || set == nil {
		for _, g := range of {
			g.err = stele.Reason(problems[0].Err)
		}
		return false
	}
	records := make(map[string]bool) // names for which no rule answers
	for _, r := range c.result.Records {
		records[r.Name] = true
	}
	size := 0
	var unshown []*group // whose names that were tried are records; others may not be
	next := make(map[*group]int)
	for i := range ns.Rules {
		rule, g := &ns.Rules[i], of[i]
		v := &g.rule.variants[next[g]]
		rule.Examples = nil
		next[g]++
		recorded := false
		for _, name := range v.samples(rule.Fold) {
			if c.left -= 1 + len(ns.Rules)/16; c.left < 0 {
				for _, g := range of {
					g.err = errWork
				}
				return false
			}
			if records[name] {
				recorded = true
				continue
			}
			if m, ok := set.Match(ns.Prefix + name); !ok || m.Number != i {
				continue
			}
			whole := c.o.Base + name
			if _, err := c.o.Schemes.Parse(whole); err != nil {
				continue
			}
			if rule.Examples = c.examples(rule, name); rule.Examples != nil {
				break
			}
		}
		if recorded && len(rule.Examples) == 0 && !v.isListed() {
			unshown = append(unshown, g)
		}
		size += sizeOf(rule)
	}
	if c.dropUnshown(unshown, of) || c.dropLoops(set, ns, of) {
		return true
	}
	total := 0
	for i := range ns.Rules {
		if len(ns.Rules[i].Examples) > 0 {
			total++
		}
	}
	if total > stele.MaxRules || size > stele.MaxRuleText {
		for _, g := range of {
			g.err = refusal("webrules.too-many", "the folder needs {rules} rules with {bytes} bytes of text; a namespace has {most} rules with {room} bytes", total, size, stele.MaxRules, stele.MaxRuleText)
		}
		return false
	}
	for i := range ns.Rules {
		if len(ns.Rules[i].Examples) == 0 {
			continue
		}
		c.result.Rules = append(c.result.Rules, ns.Rules[i])
		c.result.Lines = append(c.result.Lines, of[i].rule.Line)
		c.result.Texts = append(c.result.Texts, of[i].rule.Text)
		for _, by := range of[i].by {
			if by != nil {
				c.used[by] = true
			}
		}
	}
	return false
}

// dropUnshown refuses groups for which no example was found although their rules may answer for names, and all groups that would
// answer for these names in their place. It reports whether there were some: the others are tried again then.
func (c *compiler) dropUnshown(unshown, of []*group) bool {
	for _, g := range unshown {
		if g.err == nil {
			g.err = refusal("webrules.no-example", "all names of it that were tried have redirects of their own, so that nothing shows what the rule does")
		}
		for _, other := range of {
			if other != g && other.err == nil && c.relate(other.rule, g.rule) != disjoint {
				other.err = refusal("webrules.answers-for-refused", "it would also answer for names of line {line}, which is refused", g.rule.Line)
			}
		}
	}
	return len(unshown) > 0
}

// dropLoops refuses groups whose rules lead to themselves, and all after them that would answer for their names in their place. It
// reports whether there were some: the others are tried again then.
func (c *compiler) dropLoops(set *rules.Set, ns *stele.Namespace, of []*group) (some bool) {
	for _, l := range set.LoopsAmong(c.o.Schemes, ns, func(id stele.ID) (*rules.Set, *stele.Namespace) {
		switch {
		case id.Scheme() == ns.Scheme && strings.HasPrefix(id.String(), ns.Prefix):
			return set, ns
		case c.o.Others != nil:
			return c.o.Others(id)
		}
		return nil, nil
	}) {
		g := of[l.Rule]
		if some = true; g.err == nil {
			g.err = stele.Reason(l.Err(ns))
		}
		for _, other := range of[l.Rule+1:] {
			if other.err == nil && c.relate(other.rule, g.rule) != disjoint {
				other.err = refusal("webrules.answers-for-refused", "it would also answer for names of line {line}, which is refused", g.rule.Line)
			}
		}
	}
	return some
}

// examples returns what the folder answers for a name, for the media types of a rule's targets.
func (c *compiler) examples(rule *stele.Rule, name string) (list []stele.RuleExample) {
	for i, t := range rule.Targets {
		if i > maxExamples {
			break
		}
		kind := t.Type
		if kind == "" {
			kind = anyType
		}
		o, _, err := c.answer(clientOf(kind), name)
		if err != nil {
			return nil
		}
		want := o.url
		if want == "" {
			if want = "404"; o.status != 0 {
				want = strconv.Itoa(o.status)
			}
		}
		x := stele.RuleExample{Name: c.o.Base + name, Type: t.Type, Want: want}
		list = append(list, x)
	}
	return list
}

// sizeOf returns how many bytes of text a rule has.
func sizeOf(r *stele.Rule) int {
	n := len(r.Pattern)
	for _, t := range r.Targets {
		n += len(t.URL) + len(t.Type)
	}
	for _, x := range r.Examples {
		n += len(x.Name) + len(x.Type) + len(x.Want)
	}
	return n
}
