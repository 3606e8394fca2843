package stele

import (
	"slices"
	"strconv"
)

// Rule answers for names of a namespace that are not registered: those whose text after the
// namespace's prefix has the form of a pattern. Package rules reads patterns and templates.
type Rule struct {
	// Pattern is literal text with captures in it, such as HP_{number:digit,7}.
	Pattern string
	Fold    bool   // the case of ASCII letters does not count
	Title   string // for people; may be empty
	Reason  string // told to readers where a target's status says that there is nothing; may be empty

	// Targets are as those of a record, but their URLs are templates, in which {number} is
	// what the capture number matched. They have no Partial. One with the status 404, 406 or
	// 410 needs no URL.
	Targets []Target

	// Examples are run whenever the namespace changes, and must hold.
	Examples []RuleExample
}

// RuleExample is a name and what a rule answers for it.
type RuleExample struct {
	Name string // an identifier in any spelling
	Type string // the media type that the client accepts; "": any
	Want string // the URL; or the status 404, 406 or 410; or "" if the rule must not answer
}

// Limits of rules.
const (
	MaxRules        = 200      // of a namespace
	MaxRuleText     = 64 << 10 // bytes of all texts in the rules of a namespace
	MaxRuleTargets  = 20       // of a rule
	MaxRuleExamples = 50       // of a rule
)

// Equal reports whether two rules are the same in every field.
func (r Rule) Equal(other Rule) bool {
	return r.Pattern == other.Pattern && r.Fold == other.Fold && r.Title == other.Title && r.Reason == other.Reason &&
		slices.Equal(r.Targets, other.Targets) && slices.Equal(r.Examples, other.Examples)
}

// IsEmptyStatus reports whether a status of a rule's target says that there is nothing to
// be had, so that no URL is needed.
func IsEmptyStatus(status int) bool { return status == 404 || status == 406 || status == 410 }

// checkRules judges what needs no reading of patterns and templates.
func (n *Namespace) checkRules(f *Report) {
	if !fits(f, "rules", len(n.Rules), MaxRules) {
		return
	}
	size := 0
	for i := range n.Rules {
		size += n.Rules[i].check(f, ItemPath("rules", i))
	}
	if size > MaxRuleText {
		f.Addf("rules", "rule.text-too-long", "the rules have {bytes} bytes of text; {most} are the most", size, MaxRuleText)
	}
	twice(f, "rules", ".pattern", n.Rules, func(r Rule) string { return r.Pattern + "\x00" + strconv.FormatBool(r.Fold) })
}

// check judges a rule, whose path is given, and returns how many bytes of text it has.
func (r *Rule) check(f *Report, path string) (size int) {
	checkProse(f, FieldPath(path, "title"), r.Title)
	checkProse(f, FieldPath(path, "reason"), r.Reason)
	size = len(r.Pattern) + len(r.Title) + len(r.Reason)
	if len(r.Targets) == 0 {
		f.Addf(FieldPath(path, "targets"), "rule.targets-missing", "there are none; give at least one URL, or a status that says that there is nothing")
	}
	if fits(f, FieldPath(path, "targets"), len(r.Targets), MaxRuleTargets) {
		for i := range r.Targets {
			size += r.Targets[i].checkInRule(f, ItemPath(FieldPath(path, "targets"), i))
		}
	}
	if fits(f, FieldPath(path, "examples"), len(r.Examples), MaxRuleExamples) {
		wanted := 0
		for i, x := range r.Examples {
			size += len(x.Name) + len(x.Type) + len(x.Want)
			at := ItemPath(FieldPath(path, "examples"), i)
			if x.Want != "" {
				wanted++
			}
			if x.Name == "" {
				f.Addf(FieldPath(at, "name"), "rule.example-name-missing", "is missing; give a name, such as the rule is for")
			}
			if x.Type != "" && x.Type != "*/*" {
				if reason := checkMediaType(x.Type); reason != nil {
					f.Add(FieldPath(at, "type"), reason)
				}
			}
		}
		if wanted == 0 {
			f.Addf(FieldPath(path, "examples"), "rule.example-missing", "a rule needs at least one example of a name with the URL that it leads to, which is tried before the rule goes live")
		}
	}
	return size
}

// checkInRule judges a target of a rule, except its template.
func (t *Target) checkInRule(f *Report, path string) (size int) {
	tell := func(field string, reason *Message) { f.Add(FieldPath(path, field), reason) }
	t.checkService(tell)
	t.checkKind(tell)
	if t.TTL > MaxTTL {
		tell("ttl", ttlReason(t.TTL))
	}
	if t.Status != 406 && !isStatus(t.Status) {
		tell("status", Messagef("rule.status-invalid", "{status} is not a status of a rule's target; use 301, 302, 303, 307, 308, 404, 406 or 410, or leave it out", t.Status))
	}
	switch {
	case t.URL == "" && !IsEmptyStatus(t.Status):
		tell("url", Messagef("rule.template-missing", "is missing; give the address with captures in it, such as https://example.org/page/{capture}", "{name}"))
	case t.URL != "" && IsEmptyStatus(t.Status):
		tell("url", Messagef("rule.template-unused", "is not used, since the status {status} says that there is nothing; leave one of them out", t.Status))
	}
	if t.Partial {
		tell("partial", Messagef("rule.partial", "means nothing in a rule; write a capture of the class any at the end of the pattern, and its name in the URL"))
	}
	return len(t.URL) + len(t.Type) + len(t.Language)
}
