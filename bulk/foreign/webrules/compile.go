package webrules

import (
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/rules"
)

// Options say whose directives are compiled.
type Options struct {
	Schemes *stele.Schemes
	Base    string                                           // what names of the folder begin with, in canonical form: https://w3id.org/ontology/
	Path    string                                           // the same, as the server sees it: /ontology/
	Folders []string                                         // that are below the folder, without a slash at the end
	Others  func(id stele.ID) (*rules.Set, *stele.Namespace) // of names of other folders: loops through these rules are refused; may be nil

	// Work is what may still be done for all folders of an import; nil: each has what one folder may use. Compile takes from it
	// what it does.
	Work *int
}

// Refusal is a directive that can't be said here, and why.
type Refusal struct {
	Rule *Rule
	Err  error
}

// Record is a name, and what the folder answers for it.
type Record struct {
	Name    string // after the base
	Targets []stele.Target
	Gone    bool // the thing is not to be had any more, whatever the client accepts
	Line    int  // of the first directive that answers
	Text    string
}

// Result is what the directives of a folder are here.
type Result struct {
	Records []Record
	Rules   []stele.Rule // in their order
	Lines   []int        // by rule: that of the first directive that answers
	Texts   []string     // the same directives
	Refused []Refusal    // by line
	Idle    []*Rule      // directives that never answer
	Read    int          // directives that are in Records and Rules
	InRules int          // directives that are in Rules only

	work int // that was done; see maxWork
}

// outcome is what a client gets: a URL or a template with a status, or a status that says that there is nothing. The
// zero outcome is that no directive answers.
type outcome struct {
	status int
	url    string
}

// compiler compiles the directives of a folder.
type compiler struct {
	o       Options
	list    []*Rule
	types   []string // media types that are tried
	result  *Result
	groups  []*group
	byName  map[string][]int // places of directives for a few names
	others  []int            // places of all others
	refused map[*Rule]error
	missing map[string]*Rule // names that some directives are for, and which have no record
	used    map[*Rule]bool
	related map[[2]*Rule]relation
	folders map[string]bool
	places  map[string]int // of groups, by expression
	left    int            // work that may still be done; see maxWork
}

var errWork = refusal("webrules.too-much-work", "what the folder answers for its names takes too long to find out; divide the folder, or leave out expressions that it does not need")

// group is the directives with one expression, and becomes rules.
type group struct {
	rule     *Rule // the first one
	outcomes map[string]outcome
	by       map[string]*Rule // the directives that answer so
	err      error
}

// Compile returns what the directives of a folder are here. Directives that are not in the result are refused, or never answer.
func Compile(list []*Rule, o Options) *Result {
	c := &compiler{o: o, list: list, result: new(Result), byName: make(map[string][]int), refused: make(map[*Rule]error), missing: make(map[string]*Rule), folders: make(map[string]bool, len(o.Folders)), used: make(map[*Rule]bool), related: make(map[[2]*Rule]relation), left: maxWork}
	if o.Work != nil {
		c.left = min(c.left, *o.Work)
	}
	most := c.left
	for _, folder := range o.Folders {
		c.folders[folder] = true
	}
	c.types = []string{anyType}
	if slices.ContainsFunc(list, func(r *Rule) bool { return len(r.conditions) > 0 }) {
		c.types = append(c.types, typesIn(list)...)
	}
	for i, r := range list {
		switch {
		case r.never:
		case r.err != nil || r.literal == nil:
			c.others = append(c.others, i)
		default:
			for _, name := range r.literal {
				c.byName[name] = append(c.byName[name], i)
			}
		}
	}
	c.makeRecords()
	inRecords := len(c.used)
	c.makeRules()
	c.result.InRules = len(c.used) - inRecords
	c.settle()
	if c.result.work = most - c.left; o.Work != nil {
		*o.Work -= c.result.work
	}
	return c.result
}

func (c *compiler) isFolder(name string) bool {
	return name == "" || c.folders[strings.TrimSuffix(name, "/")]
}

// holds reports whether the conditions of a directive hold for a client and a name.
func (c *compiler) holds(r *Rule, who client, name string) bool {
	c.left -= max(0, len(r.conditions)-fewConditions)
	return allHold(r.conditions, who, c.o.Path, name, c.isFolder)
}

func errEarlier(r *Rule) error {
	return refusal("webrules.earlier-unread", "line {line}, which can't be read, may answer before it", r.Line)
}

// answer returns what the folder answers for a name.
func (c *compiler) answer(who client, name string) (outcome, *Rule, error) {
	own, others := c.byName[name], c.others
	for len(own) > 0 || len(others) > 0 {
		var r *Rule
		mine := len(others) == 0 || len(own) > 0 && own[0] < others[0]
		if mine {
			r, own = c.list[own[0]], own[1:]
		} else {
			r, others = c.list[others[0]], others[1:]
		}
		if c.left--; c.left < 0 {
			return outcome{}, r, errWork
		}
		if !mine && !r.mayMatch(name) {
			continue
		}
		switch {
		case r.err != nil:
			return outcome{}, r, errEarlier(r)
		case !c.holds(r, who, name):
		case len(r.parts) == 0:
			return outcome{status: r.status}, r, nil
		default:
			return outcome{r.status, r.urlFor(name)}, r, nil
		}
	}
	return outcome{}, nil, nil
}

// makeRecords makes records of names that directives are for by themselves.
func (c *compiler) makeRecords() {
	done := make(map[string]bool)
	for _, r := range c.list {
		if r.never || r.err != nil {
			continue
		}
		names := r.literal
		if names == nil && slices.ContainsFunc(r.conditions, func(x condition) bool { return x.on == onFilename && x.cmp == 'd' }) && r.mayMatch("") {
			names = []string{""} // it is a folder, while other names are not
		}
		for _, name := range names {
			if !done[name] {
				done[name] = true
				c.makeRecord(name, r)
			}
		}
	}
}

func (c *compiler) makeRecord(name string, of *Rule) {
	if folder := c.folderOf(name); folder != "" {
		c.refuse(of, refusal("webrules.in-another-folder", "the folder {folder} has a file of its own, which answers for the name", folder))
		c.missing[name] = of
		return
	}
	rec := Record{Name: name, Line: of.Line, Text: of.Text}
	outcomes := make(map[string]outcome)
	var by []*Rule
	for _, t := range c.types {
		o, r, err := c.answer(clientOf(t), name)
		if err != nil {
			c.refuse(of, err)
			c.missing[name] = of
			return
		}
		if outcomes[t] = o; r != nil {
			by = append(by, r)
		}
	}
	if len(by) == 0 && of.literal != nil {
		return
	}
	rec.Targets = targetsOf(c.types, outcomes)
	if rec.Gone = !slices.ContainsFunc(rec.Targets, func(t stele.Target) bool { return t.Status != 410 }); rec.Gone {
		rec.Targets = nil
	}
	if err := rec.settle(c.o); err != nil {
		c.refuse(of, err)
		c.missing[name] = of
		return
	}
	for _, r := range by {
		c.used[r] = true
	}
	c.result.Records = append(c.result.Records, rec)
}

// folderOf returns the folder below, with a file of its own, that a name is in; "" if there is none. Apache httpd takes the
// directives of mod_rewrite from that file alone.
func (c *compiler) folderOf(name string) string {
	for i := range len(name) {
		if name[i] == '/' && c.folders[name[:i]] {
			return name[:i]
		}
	}
	return ""
}

// settle makes the targets those of a record, in which every target has a URL: one that says that there is nothing
// has that of another.
func (rec *Record) settle(o Options) error {
	some := o.Base + rec.Name
	if _, err := o.Schemes.Parse(some); err != nil {
		return err
	}
	for _, t := range rec.Targets {
		if t.URL != "" {
			some = t.URL
			break
		}
	}
	for i := range rec.Targets {
		t := &rec.Targets[i]
		if t.URL == "" {
			if t.URL = some; t.Status == 406 {
				t.Status = 404
			}
		}
		if err := stele.CheckURL(t.URL); err != nil {
			return err
		}
	}
	return nil
}

// targetsOf returns targets by media type, and one for all other clients, which comes first where a client has no wish.
func targetsOf(types []string, outcomes map[string]outcome) (targets []stele.Target) {
	others := outcomes[anyType]
	if others.status == 0 {
		others.status = 404
	}
	add := func(o outcome, mediaType string, order uint16) {
		targets = append(targets, stele.Target{Service: stele.N2L, URL: o.url, Type: mediaType, Status: o.status, Order: order, Preference: stele.DefaultPreference})
	}
	add(others, "", stele.DefaultOrder)
	for _, t := range types {
		o := outcomes[t]
		if o.status == 0 {
			o.status = 404
		}
		if t != anyType && o != others {
			add(o, t, stele.DefaultOrder+1)
		}
	}
	// A browser names pages first, and takes others too.
	if len(targets) > 1 && !slices.ContainsFunc(targets, func(t stele.Target) bool { return t.Type == "text/html" }) {
		add(others, "text/html", stele.DefaultOrder)
	}
	return targets
}

// relate returns how the names of a directive are related to those of another one.
func (c *compiler) relate(a, b *Rule) relation {
	if a.pattern == b.pattern && a.tree != nil && b.tree != nil {
		return within
	}
	if a.names == nil || b.names == nil {
		return unsure
	}
	key := [2]*Rule{a, b}
	r, ok := c.related[key]
	if !ok {
		r = a.names.relate(b.names, &c.left)
		c.related[key] = r
	}
	return r
}

// makeRules makes rules of all other directives.
func (c *compiler) makeRules() {
	c.arrange()
	for again := true; again; { // what is refused may answer first for names of others
		again = false
		for _, g := range c.groups {
			if g.err == nil {
				g.err = c.evaluate(g)
				again = again || g.err != nil
			}
		}
	}
	c.emit()
}

// arrange puts the groups into the order of their rules: one whose names all belong to another comes before it.
func (c *compiler) arrange() {
	known := make(map[string]bool)
	for _, r := range c.list {
		if r.never || r.err != nil || r.literal != nil || known[r.pattern] {
			continue
		}
		known[r.pattern] = true
		g := &group{rule: r, err: r.noForm}
		at := slices.IndexFunc(c.groups, func(h *group) bool {
			return c.left > 0 && h.rule.tree != nil && c.relate(r, h.rule) == within && c.relate(h.rule, r) != within
		})
		if at < 0 {
			at = len(c.groups)
		}
		c.groups = slices.Insert(c.groups, at, g)
	}
	c.places = make(map[string]int, len(c.groups))
	for i, g := range c.groups {
		c.places[g.rule.pattern] = i
	}
}

// evaluate finds out what the folder answers for all names of a group. An error says why that can't be said.
func (c *compiler) evaluate(g *group) error {
	place := c.places[g.rule.pattern]
	g.outcomes, g.by = make(map[string]outcome), make(map[string]*Rule)
	if c.left -= len(c.missing); c.left < 0 {
		return errWork
	}
	for name := range c.missing {
		if g.rule.mayMatch(name) {
			return refusal("webrules.name-missing", `it answers for "{name}", too, for which line {line} can't be read`, name, c.missing[name].Line)
		}
	}
	for _, t := range c.types {
		o, by, err := c.outcome(g, place, clientOf(t))
		if err != nil {
			return err
		}
		g.outcomes[t], g.by[t] = o, by
	}
	return nil
}

// outcome returns what a client gets for all names of a group that have no rule before it, and which directive answers.
func (c *compiler) outcome(g *group, place int, who client) (outcome, *Rule, error) {
	for _, i := range c.others { // names of the rest have records
		if c.left--; c.left < 0 {
			return outcome{}, nil, errWork
		}
		r := c.list[i]
		if r.literal != nil && !slices.ContainsFunc(r.literal, g.rule.mayMatch) {
			continue
		}
		how := c.relate(g.rule, r)
		if how == disjoint {
			continue
		}
		if r.err != nil {
			if r.pattern == g.rule.pattern {
				return outcome{}, nil, r.err
			}
			return outcome{}, nil, errEarlier(r)
		}
		if slices.ContainsFunc(r.conditions, func(x condition) bool { return x.isOfName() }) {
			return outcome{}, nil, refusal("webrules.condition-of-name", "whether line {line} answers depends on the path by a condition", r.Line)
		}
		if !c.holds(r, who, "\x00") { // a name that is not a folder
			continue
		}
		if how == within {
			o, err := c.template(g.rule, r)
			return o, r, err
		}
		if i, ok := c.places[r.pattern]; ok && i < place && c.groups[i].err == nil {
			continue // its rule comes first
		}
		return outcome{}, nil, refusal("webrules.overlap", "line {line} answers for some of its names, and which ones can't be said here", r.Line)
	}
	return outcome{}, nil, nil
}

// template returns what a directive answers for all names of another.
func (c *compiler) template(names, r *Rule) (outcome, error) {
	if len(r.parts) == 0 {
		return outcome{status: r.status}, nil
	}
	if len(names.variants) == 0 {
		return outcome{}, names.noForm
	}
	var b strings.Builder
	for _, p := range r.parts {
		switch {
		case p.group < 0:
			if strings.ContainsAny(p.text, "{}") {
				return outcome{}, refusal("webrules.url-brace", "the URL has a brace")
			}
			b.WriteString(p.text)
		case r.isWhole(p.group):
			b.WriteString("{rest}")
		case r.pattern == names.pattern && p.group > 0:
			b.WriteString(groupMark(p.group))
		default:
			return outcome{}, refusal("webrules.overlap-captures", "line {line} answers for all of its names, with parts of them that can't be said here", r.Line)
		}
	}
	return outcome{r.status, r.finished(b.String())}, nil
}

// groupMark stands for a group in a template until the form of the names is known.
func groupMark(n int) string { return "{" + string(rune('0'+n)) + "}" }

// isWhole reports whether a group is always the whole name.
func (r *Rule) isWhole(n int) bool {
	if len(r.variants) == 0 {
		return false
	}
	for _, v := range r.variants {
		at, ok := v.groups[n]
		if n == 0 {
			at, ok = [2]int{0, len(v.elements)}, r.isAnchored()
		}
		if !ok || at[0] != 0 || at[1] != len(v.elements) {
			return false
		}
	}
	return true
}

// isAnchored reports whether the expression has an anchor at its beginning and at its end, so that it matches whole names.
func (r *Rule) isAnchored() bool {
	t := r.tree
	return t.Op == syntax.OpConcat && t.Sub[0].Op == syntax.OpBeginText && t.Sub[len(t.Sub)-1].Op == syntax.OpEndText
}

// refuse notes that a directive can't be said here.
func (c *compiler) refuse(r *Rule, err error) {
	if c.refused[r] == nil {
		c.refused[r] = err
	}
}

// settle sorts out which directives are said, refused, or never answer.
func (c *compiler) settle() {
	for _, r := range c.list {
		switch {
		case r.off:
			c.refuse(r, refusal("webrules.engine-off", "the rewrite engine is off, so that Apache httpd does not follow the rule; RewriteEngine on is missing in the file"))
		case r.err != nil && !r.never:
			c.refuse(r, r.err)
		}
		switch {
		case c.used[r]:
			c.result.Read++
		case c.refused[r] != nil:
			c.result.Refused = append(c.result.Refused, Refusal{r, c.refused[r]})
		default:
			c.result.Idle = append(c.result.Idle, r)
		}
	}
	slices.SortStableFunc(c.result.Refused, func(a, b Refusal) int { return a.Rule.Line - b.Rule.Line })
}

// emit makes rules of groups. All of them are refused if they are more than a namespace has.
func (c *compiler) emit() {
	ns := &stele.Namespace{Prefix: c.o.Base}
	if prefix, err := c.o.Schemes.Parse(c.o.Base); err == nil {
		ns.Scheme = prefix.Scheme()
	}
	var of []*group
	for _, g := range c.groups {
		if g.err != nil {
			continue
		}
		made, err := c.rulesOf(g)
		if err != nil {
			g.err = err
			continue
		}
		for range made {
			of = append(of, g)
		}
		ns.Rules = append(ns.Rules, made...)
	}
	// One that can't be said after all may answer for names of those after it, and of those whose names it shares.
	for again := true; again; {
		again = false
		for _, g := range c.groups {
			if g.err == nil {
				if g.err = c.evaluate(g); g.err != nil {
					again = true
				}
			}
		}
	}
	for again := true; again; { // without those that are refused
		var list []stele.Rule
		var owners []*group
		for i := range ns.Rules {
			if of[i].err == nil {
				list, owners = append(list, ns.Rules[i]), append(owners, of[i])
			}
		}
		ns.Rules, of = list, owners
		again = c.addExamples(ns, of)
	}
	for _, r := range c.list {
		if i, ok := c.places[r.pattern]; ok && c.groups[i].err != nil && !r.never && r.literal == nil {
			c.refuse(r, c.groups[i].err)
		}
	}
}

// rulesOf returns the rules of a group: one for each form of its names. No name has two of the forms.
func (c *compiler) rulesOf(g *group) (list []stele.Rule, err error) {
	r := g.rule
	targets := targetsOf(c.types, g.outcomes)
	texts := make([]string, len(r.variants))
	for i := range r.variants {
		v := &r.variants[i]
		needs := func(k int) bool {
			return slices.ContainsFunc(targets, func(t stele.Target) bool {
				for n, at := range v.groups {
					if at[0] <= k && k < at[1] && strings.Contains(t.URL, groupMark(n)) {
						return true
					}
				}
				return false
			})
		}
		if texts[i], err = v.text(needs, r.fold); err != nil {
			return nil, err
		}
		rule := stele.Rule{Pattern: texts[i], Fold: r.fold}
		p, err := rules.ParsePattern(rule.Pattern, rule.Fold)
		if err != nil {
			return nil, stele.Reason(err)
		}
		for _, t := range targets {
			t.URL = v.fill(t.URL, r.fold)
			if t.URL != "" {
				if _, err := p.ParseTemplate(t.URL); err != nil {
					return nil, stele.Reason(err)
				}
			}
			rule.Targets = append(rule.Targets, t)
		}
		list = append(list, rule)
	}
	if len(list) > 1 && !areDisjoint(r.variants, r.fold, &c.left) {
		return nil, refusal("webrules.forms-overlap", "its names can be read in several ways")
	}
	return list, nil
}

// fill puts captures where a template has groups.
func (v *variant) fill(template string, fold bool) string {
	for n := 1; n <= 9; n++ {
		if !strings.Contains(template, groupMark(n)) {
			continue
		}
		var b strings.Builder
		at := v.groups[n]
		for i := at[0]; i < at[1]; i++ {
			e := &v.elements[i]
			if e.kind == literal && !(fold && strings.ContainsFunc(e.text, isLetter)) {
				b.WriteString(e.text)
				continue
			}
			b.WriteString("{c" + strconv.Itoa(i+1) + "}")
		}
		template = strings.ReplaceAll(template, groupMark(n), b.String())
	}
	return template
}
