package webrules

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Rule is a directive that answers for names: a RewriteRule with its conditions, a Redirect or a RedirectMatch.
type Rule struct {
	Line      int
	Text      string
	Inherited bool // it stands in the file of a folder above, and holds in this one

	alias      bool // of mod_alias
	conditions []condition
	pattern    string         // as an expression on the name, for comparison with other rules
	fold       bool           // the case of letters does not count
	tree       *syntax.Regexp // the expression; nil if it can't be read
	re         *regexp.Regexp
	names      *language
	variants   []variant // the forms of its names; nil if they have none that rules can say
	literal    []string  // the names, if there are a few only
	noForm     error     // why there are no variants

	parts  []part // of the URL; none if the answer is a status
	escape bool   // characters of the URL are percent-encoded, as Apache httpd does unless told not to
	status int

	open    bool  // later rules are tried after it has answered
	chained bool  // the next rule is passed over where this one does not match
	never   bool  // it answers for no name of the folder
	off     bool  // because the engine is off
	err     error // why what it answers is not known
}

// groupsOfCondition is added to the number of a group of the last condition, which is 1 to 9.
const groupsOfCondition = 100

// part is a part of a substitution: text, or what a group matched.
type part struct {
	text  string
	group int // -1 for text
}

// File is what a file has.
type File struct {
	Rules    []*Rule // in the order in which they are tried
	Ignored  []string
	Comments []string // lines without their marks; "" between blocks
}

// Parse reads a .htaccess file that no other one is above; see [Source.Parse].
func Parse(text, path string) *File { return Read(text, nil, nil).Parse(path) }

// rule returns the rule of a directive, without what it says.
func (d *directive) rule() *Rule {
	r := &Rule{Line: d.line, Text: d.text, Inherited: d.inherited}
	if d.off != "" {
		r.err = refusal("webrules.section-unknown", "whether it holds depends on the section {section}", d.off)
	}
	if len(d.text) > maxLine {
		r.fail(errLine)
	}
	return r
}

var errLine = refusal("webrules.line-too-long", "the directive has more than {most} bytes, with the lines that continue it", maxLine)

// rewrites reads the rules of mod_rewrite that hold in the folder, if they are its own. Those of a folder above see other names.
func (s *Source) rewrites(path string) (list []*Rule) {
	if s.of != s {
		return nil
	}
	var pending []condition
	var wrong error // of the conditions
	for i := range s.rules {
		d := &s.rules[i]
		switch d.name {
		case "rewritecond":
			c, err := parseCondition(d.rest)
			if len(d.text) > maxLine {
				err = errLine
			}
			if wrong == nil {
				wrong = err
			}
			pending = append(pending, c)
		case "rewriterule":
			r := d.rule()
			r.conditions = pending
			if r.err == nil {
				r.err = wrong
			}
			r.rewrite(d.rest, path)
			r.off = !s.engine && !r.never && r.err == nil
			r.never = r.never || !s.engine
			list = append(list, r)
			pending, wrong = nil, nil
		}
	}
	for i, r := range list {
		if r.chained && i+1 < len(list) { // for names that r does not match the next one is passed over
			list[i+1].fail(refusal("webrules.in-a-chain", "the rule is chained to that of line {line}, which has no counterpart here", r.Line))
		}
	}
	return list
}

// Parse reads the directives of a file. The path is that of its folder on the server, such as /ontology/, and begins and ends
// with a slash. What can't be read is a Rule that Compile refuses.
func (s *Source) Parse(path string) *File {
	f := &File{Rules: s.rewrites(path), Comments: s.comments}
	var aliases []*Rule
	for i := range s.list {
		d := &s.list[i]
		switch d.name {
		case "redirect", "redirectmatch", "redirectpermanent", "redirecttemp":
			r := d.rule()
			r.alias = true
			r.redirect(d.name, words(d.rest), path)
			aliases = append(aliases, r)
		case "rewriteengine", "rewritecond", "rewriterule":
		case "rewritebase": // for relative substitutions, which are not read
		case "rewriteoptions", "rewritemap", "errordocument", "fallbackresource", "directoryindex", "require", "deny", "allow", "order", "sethandler", "action":
			f.Ignored = append(f.Ignored, d.text)
		default: // Header, AddType, Options and others that change no redirect
			f.Ignored = append(f.Ignored, d.text)
		}
	}
	f.Rules = append(f.Rules, aliases...) // mod_alias comes after mod_rewrite
	if s.cut > 0 {
		f.Rules = append([]*Rule{{Line: s.cut, Text: "...", err: refusal("webrules.directives-too-many", "a file has {most} directives at most; the rest is not read", maxDirectives)}}, f.Rules...)
	}
	f.finish()
	return f
}

// finish finds rules after which others go on with the URL.
func (f *File) finish() {
	first := slices.IndexFunc(f.Rules, func(r *Rule) bool { return r.open && r.err == nil })
	if first < 0 {
		return // every rule is the last one that is looked at
	}
	far, _ := syntax.Parse("^(ht|f)tps?://", syntax.Perl)
	urls, err := newLanguage(far)
	if err != nil {
		return
	}
	left := maxWork
	var later *Rule // that may match a URL
	for _, r := range slices.Backward(f.Rules[first:]) {
		if r.open && r.err == nil && later != nil {
			r.err = refusal("webrules.without-last", "the rule lacks the flag L, so that line {line} goes on with the URL that it makes", later.Line)
		}
		if !r.never && (r.literal == nil && (r.names == nil || urls.relate(r.names, &left) != disjoint)) {
			later = r
		}
	}
}

// mayMatch reports whether a name could be one of those that the rule is for.
func (r *Rule) mayMatch(name string) bool {
	if r.literal != nil {
		return slices.Contains(r.literal, name)
	}
	return r.re == nil || r.re.MatchString(name)
}

// setExpression takes the expression that names are held against.
func (r *Rule) setExpression(tree *syntax.Regexp, fold bool) {
	r.tree, r.fold, r.pattern = tree, fold, tree.String()
	if name, ok := plainName(tree); ok && !fold {
		r.literal = []string{name}
		return
	}
	var names *language
	var err error
	if r.re, names, err = compiled(tree); err != nil {
		r.fail(err)
		return
	}
	if !hasBoundary(tree) {
		r.names = names
	}
	if hasBoundary(tree) {
		r.noForm = errForm
		return
	}
	if r.variants, r.noForm = variantsOf(tree, fold); r.noForm == nil && len(r.variants) == 0 {
		r.never = true
	}
	if names, ok := namesOf(r.variants); ok && !fold && r.noForm == nil {
		r.literal = names
	}
}

// plainName returns the name that an expression is for, if it is literal text between anchors and has no groups.
func plainName(tree *syntax.Regexp) (string, bool) {
	if tree.Op != syntax.OpConcat || tree.Sub[0].Op != syntax.OpBeginText || tree.Sub[len(tree.Sub)-1].Op != syntax.OpEndText {
		return "", false
	}
	if len(tree.Sub) == 2 {
		return "", true
	}
	text := tree.Sub[1]
	if len(tree.Sub) != 3 || text.Op != syntax.OpLiteral || text.Flags&syntax.FoldCase != 0 || slices.ContainsFunc(text.Rune, func(c rune) bool { return c < firstRune || c > lastRune }) {
		return "", false
	}
	return string(text.Rune), true
}

// compiled returns an expression that can be matched, and the names that it matches.
func compiled(tree *syntax.Regexp) (*regexp.Regexp, *language, error) {
	names, err := newLanguage(tree)
	if err == nil && len(names.prog.Inst) > maxSteps {
		return nil, nil, errLarge
	}
	if err != nil {
		return nil, nil, err
	}
	re, err := regexp.Compile(tree.String())
	return re, names, err
}

var errLarge = refusal("webrules.expression-too-large", "the expression is longer than the {most} bytes, or the {steps} steps, that are followed here", maxExpression, maxSteps)

// parseExpression reads an expression of a directive.
func parseExpression(text string, fold bool) (*syntax.Regexp, bool, error) {
	flags := syntax.Perl
	if rest, ok := strings.CutPrefix(text, "(?i)"); ok {
		text, fold = rest, true
	}
	if fold {
		flags |= syntax.FoldCase
	}
	if len(text) > maxExpression {
		return nil, fold, errLarge
	}
	tree, err := syntax.Parse(text, flags)
	if err != nil {
		return nil, fold, refusal("webrules.expression-unreadable", "the expression {expression} is not read here: {cause}", text, err)
	}
	return tree, fold, nil
}

func (r *Rule) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// rewrite reads the arguments of a RewriteRule.
func (r *Rule) rewrite(rest, path string) {
	args := rewriteWords(rest)
	if len(args) < 2 {
		r.fail(refusal("webrules.rule-incomplete", "the rule has no substitution; Apache httpd does not read it"))
		return
	}
	flags := ""
	if len(args) > 2 {
		flags = args[2]
		if len(flags) < 2 || flags[0] != '[' || flags[len(flags)-1] != ']' {
			r.fail(refusal("webrules.flags-invalid", "Apache httpd does not read the flags {flags}", flags))
			return
		}
		flags = flags[1 : len(flags)-1]
	}
	fold, final := r.readFlags(flags)
	pattern := args[0]
	if strings.HasPrefix(pattern, "!") {
		r.fail(refusal("webrules.pattern-negated", "it answers for all names that do not match"))
		return
	}
	tree, fold, err := parseExpression(pattern, fold)
	if err != nil {
		r.fail(err)
		return
	}
	r.setExpression(tree, fold)
	r.substitute(args[1])
	r.open = !final
}

// readFlags reads the flags of a RewriteRule.
func (r *Rule) readFlags(text string) (fold, final bool) {
	r.escape = true
	for _, flag := range strings.Split(text, ",") {
		name, value, given := strings.Cut(strings.TrimSpace(flag), "=")
		switch strings.ToUpper(name) {
		case "L", "LAST", "END":
			final = true
		case "NE", "NOESCAPE":
			r.escape = false
		case "NC", "NOCASE":
			fold = true
		case "QSA", "QSAPPEND", "QSD", "QSDISCARD", "NS", "NOSUBREQ", "DPI", "DISCARDPATH", "":
		case "R", "REDIRECT":
			r.status = 302
			if given {
				r.status = statusOf(value)
			}
			if r.status == 0 {
				r.fail(refusal("webrules.status-unknown", "the status {status} has no counterpart here", value))
			}
		case "C", "CHAIN":
			r.chained = true
			r.fail(refusal("webrules.flag-unknown", "the flag {flag} has no counterpart here", flag))
		case "G", "GONE":
			r.status, final = 410, true
		default:
			r.fail(refusal("webrules.flag-unknown", "the flag {flag} has no counterpart here", flag))
		}
	}
	return fold, final || r.status >= 400
}

// statusOf reads a status of a redirect; 0 if it is not one that rules have.
func statusOf(text string) int {
	switch strings.ToLower(text) {
	case "permanent":
		return 301
	case "temp":
		return 302
	case "seeother":
		return 303
	case "gone":
		return 410
	}
	n, err := strconv.Atoi(text)
	if err != nil || !slices.Contains([]int{301, 302, 303, 307, 308, 404, 406, 410}, n) {
		return 0
	}
	return n
}

var errRelative = refusal("webrules.not-elsewhere", "it leads to a path of the same server")

// substitute reads the substitution of a RewriteRule.
func (r *Rule) substitute(text string) {
	if r.status >= 400 {
		return
	}
	if text == "-" {
		r.fail(refusal("webrules.no-substitution", "it changes nothing, or something that is not known here"))
		return
	}
	r.parts = partsOf(text, r.fail, true)
	if slices.ContainsFunc(r.parts, func(p part) bool { return p.group > groupsOfCondition }) {
		for _, c := range r.conditions {
			if c.re == nil || c.re.NumSubexp() > 0 {
				r.fail(refusal("webrules.substitution-condition", "the URL has what a condition matched"))
			}
		}
		r.parts = slices.DeleteFunc(r.parts, func(p part) bool { return p.group > groupsOfCondition }) // nothing was matched
	}
	if start := r.start(); !strings.Contains(start, "://") {
		r.fail(errRelative)
	}
	if r.status == 0 {
		r.status = 302
	}
}

// start returns what a substitution begins with.
func (r *Rule) start() string {
	if len(r.parts) > 0 && r.parts[0].group < 0 {
		return r.parts[0].text
	}
	return ""
}

// partsOf cuts a substitution: $1 is what a group matched, and a backslash stands before a character that is
// meant (regsub_core of Apache httpd 2.4; an ampersand had a meaning before that).
func partsOf(text string, fail func(error), rewrites bool) (parts []part) {
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			parts = append(parts, part{b.String(), -1})
			b.Reset()
		}
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		next := byte(0)
		if i+1 < len(text) {
			next = text[i+1]
		}
		switch {
		case c == '\\' && next != 0:
			b.WriteByte(next)
			i++
		case c == '$' && '0' <= next && next <= '9':
			flush()
			parts = append(parts, part{"", int(next - '0')})
			i++
		case rewrites && c == '%' && next == '0':
			fail(refusal("webrules.substitution-condition", "the URL has what a condition matched"))
			i++
		case rewrites && c == '%' && '1' <= next && next <= '9': // also in %2F, which mod_rewrite does not know
			flush()
			parts = append(parts, part{"", groupsOfCondition + int(next-'0')})
			i++
		case rewrites && (c == '%' || c == '$') && next == '{':
			fail(refusal("webrules.substitution-variable", "the URL has a variable of the server or a map, which are not known here"))
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	flush()
	return parts
}

// redirect reads a directive of mod_alias.
func (r *Rule) redirect(name string, args []string, path string) {
	r.status, r.escape = 302, true
	switch name {
	case "redirectpermanent":
		r.status = 301
	case "redirect", "redirectmatch":
		if len(args) > 0 {
			if s := statusOf(args[0]); s != 0 {
				r.status, args = s, args[1:]
			} else if _, err := strconv.Atoi(args[0]); err == nil {
				r.fail(refusal("webrules.status-unknown", "the status {status} has no counterpart here", args[0]))
				args = args[1:]
			}
		}
	}
	want := 2
	if r.status >= 400 {
		want = 1
	}
	if len(args) != want {
		r.fail(refusal("webrules.redirect-incomplete", "the directive does not have what Apache httpd needs to read it"))
		return
	}
	pattern := args[0]
	to := ""
	if want == 2 {
		to = args[1]
	}
	if name != "redirectmatch" {
		switch {
		case !strings.HasPrefix(pattern, "/"):
			r.fail(refusal("webrules.redirect-path", "a path begins with a slash"))
			return
		case pattern+"/" == path:
			pattern, to = "^"+regexp.QuoteMeta(path)+"(.*)$", quoteGroups(to)+"/$1"
		case strings.HasSuffix(pattern, "/"):
			pattern, to = "^"+regexp.QuoteMeta(pattern)+"(.*)$", quoteGroups(to)+"$1"
		default:
			pattern, to = "^"+regexp.QuoteMeta(pattern)+"(/.*)?$", quoteGroups(to)+"$1"
		}
	}
	r.Match(pattern, to, path)
}

func quoteGroups(text string) string {
	return strings.NewReplacer(`\`, `\\`, "$", `\$`).Replace(text)
}

// Match makes the rule answer for paths that an expression matches, as RedirectMatch does.
func (r *Rule) Match(pattern, to, path string) {
	tree, fold, err := parseExpression(pattern, false)
	if err != nil {
		r.fail(err)
		return
	}
	rest, ok := below(tree, path, fold)
	switch {
	case !ok:
		r.fail(refusal("webrules.path-elsewhere", "the expression does not begin with the path of the folder, {path}, so that its names are not clear", path))
		return
	case rest == nil:
		r.never = true
		return
	}
	r.setExpression(rest, fold)
	if r.status < 400 {
		r.parts = partsOf(to, r.fail, false)
		if !strings.Contains(r.start(), "://") {
			r.fail(errRelative)
		}
	}
}

// below returns the expression for what follows a path; nil if no path below it is matched, false if that is not clear.
func below(tree *syntax.Regexp, path string, fold bool) (*syntax.Regexp, bool) {
	if tree.Op != syntax.OpConcat || len(tree.Sub) < 2 || tree.Sub[0].Op != syntax.OpBeginText || tree.Sub[1].Op != syntax.OpLiteral {
		return nil, false
	}
	text := string(tree.Sub[1].Rune)
	same := func(a, b string) bool { return a == b || fold && strings.EqualFold(a, b) }
	n := min(len(text), len(path))
	if !same(text[:n], path[:n]) {
		return nil, true
	}
	if n < len(path) {
		ends := len(tree.Sub) == 3 && tree.Sub[2].Op == syntax.OpEndText
		return nil, ends
	}
	out := *tree
	lit := *tree.Sub[1]
	lit.Rune = lit.Rune[utf8.RuneCountInString(path):]
	out.Sub = slices.Clone(tree.Sub)
	if out.Sub[1] = &lit; len(lit.Rune) == 0 {
		out.Sub = slices.Delete(out.Sub, 1, 2)
	}
	return &out, true
}

// urlFor returns the URL of the rule for a name, as Apache httpd makes it.
func (r *Rule) urlFor(name string) string {
	at := []int{0, len(name)}
	if r.re != nil {
		at = r.re.FindStringSubmatchIndex(name)
	}
	var b strings.Builder
	for _, p := range r.parts {
		switch {
		case p.group < 0:
			b.WriteString(p.text)
		case at != nil && 2*p.group+1 < len(at) && at[2*p.group] >= 0:
			b.WriteString(name[at[2*p.group]:at[2*p.group+1]])
		}
	}
	return r.finished(b.String())
}

// finished returns a URL, or a template, as Apache httpd sends it: percent-encoded after the host, unless the rule says otherwise. A question
// mark at the end only says that the query of the request is not passed on.
func (r *Rule) finished(text string) string {
	text = strings.TrimSuffix(text, "?")
	if !r.escape {
		return text
	}
	scheme, rest, _ := strings.Cut(text, "://")
	host, after := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host, after = rest[:i], rest[i:]
	}
	path, query, asks := strings.Cut(after, "?")
	text = scheme + "://" + host + escaped(path)
	if asks {
		text += "?" + escaped(query)
	}
	return text
}

// escaped percent-encodes as ap_escape_uri of Apache httpd. Braces stay: here they are captures of templates, which URLs do not have
// otherwise.
func escaped(text string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		if isLetter(rune(c)) || '0' <= c && c <= '9' || strings.IndexByte("$-_.+!*'(),:;@&=/~{}", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteString("%" + string(hex[c>>4]) + string(hex[c&15]))
	}
	return b.String()
}
