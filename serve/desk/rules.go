package desk

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/rules"
	"github.com/stele-id/stele/web/deskpage"
)

func rulesURL(key stele.NamespaceKey) string { return spaceURL("rules", key) }

// showRules shows the rules of a namespace, and what they answer for a name.
func (c *call) showRules() error {
	return c.rulesPage(http.StatusOK, c.r.URL.Query(), nil, false)
}

// rulesPage shows the rules, and the forms as they are filled in. Good says that the new rule in
// the form was tried, and that its examples hold.
func (c *call) rulesPage(status int, values url.Values, wrong stele.Problems, good bool) error {
	ns, role, err := c.namespaceOf(values)
	if err != nil {
		return err
	}
	key := ns.Key()
	v := &deskpage.Rules{Frame: c.frame("rules.title", "namespaces"), Key: key.String(), Title: ns.Title, SpaceURL: spaceURL("namespace", key), Role: role,
		MayChange: role.Includes(stele.RoleOwner), Version: ns.Version, Fold: values.Get("fold") == "yes"}
	set, _ := rules.Compile(ns)
	for i := range ns.Rules {
		v.List = append(v.List, c.ruleView(i, &ns.Rules[i]))
	}
	overlaps, _ := set.Overlaps(c.h.o.Schemes, ns)
	for _, o := range overlaps {
		v.Overlaps = append(v.Overlaps, c.language.Text("rules.overlap", "first", strconv.Itoa(o.Earlier+1), "second", strconv.Itoa(o.Later+1), "name", o.Name))
	}
	fields := map[string]*deskpage.Field{"name": &v.Name, "accept": &v.Accept, "pattern": &v.Pattern, "targets": &v.To, "examples": &v.Examples, "silent": &v.Silent,
		"status": &v.Status, "reason": &v.Reason, "title": &v.RuleTitle, "before": &v.Before}
	for name, f := range fields {
		*f = deskpage.Field{ID: name, Name: name, Value: values.Get(name)}
	}
	if name := strings.TrimSpace(v.Name.Value); name != "" {
		o, err := set.Try(c.h.o.Schemes, ns, name, strings.TrimSpace(v.Accept.Value))
		if wrong, err = orProblems(wrong, err, "name"); err != nil {
			return err
		}
		v.Tried = &deskpage.RuleAnswer{Name: name, URL: o.URL, Number: o.Rule + 1}
		if o.Rule >= 0 {
			v.Tried.Pattern = ns.Rules[o.Rule].Pattern
			switch {
			case o.Err != nil:
				v.Tried.Text = c.language.Problem(o.Err)
			case o.URL == "":
				v.Tried.Text = c.language.Text("rules.nothing", "status", strconv.Itoa(o.Status))
			}
		}
	}
	if good {
		v.Good = c.language.Text("rules.good")
	}
	if c.fault(&v.Frame, wrong, fields); len(wrong) > 0 && status == http.StatusOK {
		status = http.StatusUnprocessableEntity
	}
	prefix := shellWord(key.String())
	v.Same = []deskpage.Same{{Label: c.language.Text("same.command"), Text: "stele rule ls " + prefix + "\nstele rule test " + prefix + "\nstele rule remove " + prefix + " 1"},
		{Label: c.language.Text("same.api"), Text: `curl -H "Authorization: Bearer $STELE_TOKEN" -H 'Content-Type: application/json' -d '{}' ` + c.base() + "/api/v1/rules/" + pathOf(key.String())}}
	return c.show(status, "rules", v)
}

// ruleView is a rule as the list shows it.
func (c *call) ruleView(i int, r *stele.Rule) deskpage.RuleView {
	v := deskpage.RuleView{Number: i + 1, Pattern: r.Pattern, Title: r.Title, Reason: r.Reason, Fold: r.Fold}
	for k := range r.Targets {
		t := &r.Targets[k]
		parts := []string{t.URL, t.Type, t.Language, ""}
		if t.Status != 0 {
			parts[3] = strconv.Itoa(t.Status)
		}
		v.To = append(v.To, strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " "))
	}
	for _, x := range r.Examples {
		text := rules.FormatExample(x)
		if x.Want == "" {
			text = c.language.Text("rules.silent-example", "name", x.Name)
		}
		v.Examples = append(v.Examples, text)
	}
	return v
}

// ruleIn reads the form of a new rule.
func ruleIn(form url.Values) (r stele.Rule, wrong stele.Problems) {
	get := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	r = stele.Rule{Pattern: get("pattern"), Fold: form.Get("fold") == "yes", Title: get("title"), Reason: get("reason")}
	status := 0
	if text := get("status"); text != "" {
		var err error
		if status, err = strconv.Atoi(text); err != nil {
			wrong = append(wrong, stele.Problem{Path: "status", Err: stele.Messagef("rule.status-not-a-number", `"{text}" is not a number`, text)})
		}
	}
	for _, line := range textLines(form.Get("targets")) {
		r.Targets = append(r.Targets, rules.ParseTarget(line, status))
	}
	if len(r.Targets) == 0 && stele.IsEmptyStatus(status) {
		r.Targets = append(r.Targets, rules.ParseTarget("", status))
	}
	for _, line := range textLines(form.Get("examples")) {
		x, ok := rules.ParseExample(line)
		if !ok {
			wrong = append(wrong, stele.Problem{Path: "examples", Err: stele.Messagef("rule.example-line", `"{line}" has no URL; write a name, a blank, and where it must lead`, line)})
		}
		r.Examples = append(r.Examples, x)
	}
	for _, line := range textLines(form.Get("silent")) {
		r.Examples = append(r.Examples, stele.RuleExample{Name: line})
	}
	return r, wrong
}

// textLines returns the lines of a text that have something in them.
func textLines(text string) (list []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list
}

// errRulesChanged says that a number on the page may be that of another rule by now.
var errRulesChanged = stele.Messagef("rule.changed-meanwhile", "the rules were changed meanwhile; look at them again")

// addRule adds a rule to a namespace, or tries it.
func (c *call) addRule() error {
	if err := c.readForm(); err != nil {
		return err
	}
	form := c.r.PostForm
	ns, _, err := c.namespaceOf(form)
	if err != nil {
		return err
	}
	rule, wrong := ruleIn(form)
	at := len(ns.Rules)
	if text := strings.TrimSpace(form.Get("before")); text != "" {
		n, err := strconv.Atoi(text)
		version, _ := strconv.ParseUint(form.Get("version"), 10, 64)
		switch {
		case err != nil || n < 1 || n > len(ns.Rules):
			wrong = append(wrong, stele.Problem{Path: "before", Err: stele.Messagef("rule.number-missing", `there is no rule "{number}"`, text)})
		case version != ns.Version: // the number is that of another list
			return c.rulesPage(http.StatusConflict, form, stele.Problems{{Path: "before", Err: errRulesChanged}}, false)
		}
		at = n - 1
	}
	if len(wrong) > 0 {
		return c.rulesPage(http.StatusUnprocessableEntity, form, wrong, false)
	}
	next := *ns
	next.Rules = slices.Insert(slices.Clone(ns.Rules), at, rule)
	if form.Get("do") == "try" {
		err = c.h.o.Registrar.TryNamespace(c.ctx, &next, false)
	} else {
		_, err = c.h.o.Registrar.SetNamespace(c.ctx, ns.Key(), ns.Version, func(n *stele.Namespace) error {
			n.Rules = next.Rules
			return nil
		})
	}
	if err != nil {
		if wrong, err = problemsIn(err, "pattern"); err != nil {
			return err
		}
		return c.rulesPage(http.StatusUnprocessableEntity, form, ofRule(wrong, at), false)
	}
	if form.Get("do") == "try" {
		return c.rulesPage(http.StatusOK, form, nil, true)
	}
	c.redirect(rulesURL(ns.Key()) + "&done=rule-added")
	return nil
}

// ofRule makes problems of the new rule those of the form's fields.
func ofRule(wrong stele.Problems, at int) (list stele.Problems) {
	own := stele.ItemPath("rules", at)
	for _, p := range wrong {
		if rest, ok := strings.CutPrefix(p.Path, own+"."); ok {
			p.Path = rest
			if strings.HasSuffix(rest, ".status") {
				p.Path = "status"
			}
		}
		list = append(list, p)
	}
	return list
}

// removeRule removes a rule from a namespace.
func (c *call) removeRule() error {
	if err := c.readForm(); err != nil {
		return err
	}
	form := c.r.PostForm
	ns, _, err := c.namespaceOf(form)
	if err != nil {
		return err
	}
	number, _ := strconv.Atoi(form.Get("number"))
	version, _ := strconv.ParseUint(form.Get("version"), 10, 64)
	if number < 1 || number > len(ns.Rules) || version != ns.Version { // another user changed the rules meanwhile
		return c.rulesPage(http.StatusConflict, form, stele.Problems{{Err: errRulesChanged}}, false)
	}
	_, err = c.h.o.Registrar.SetNamespace(c.ctx, ns.Key(), ns.Version, func(n *stele.Namespace) error {
		n.Rules = slices.Delete(slices.Clone(n.Rules), number-1, number)
		return nil
	})
	if err != nil {
		wrong, err := problemsIn(err, "")
		if err != nil {
			return err
		}
		return c.rulesPage(http.StatusUnprocessableEntity, form, wrong, false)
	}
	c.redirect(rulesURL(ns.Key()) + "&done=rule-removed")
	return nil
}
