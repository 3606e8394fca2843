package document

import (
	"bytes"
	"slices"

	"github.com/stele-id/stele"
)

const (
	ruleFields    = "pattern ignoreCase title reason targets examples"
	exampleFields = "name type want"
)

func (d *document) rule() (r stele.Rule) {
	d.object(ruleFields, func(name string) bool {
		switch name {
		case "pattern":
			r.Pattern = d.text()
		case "ignoreCase":
			r.Fold = d.bool()
		case "title":
			r.Title = d.text()
		case "reason":
			r.Reason = d.text()
		case "targets":
			d.array(stele.MaxRuleTargets, func(int) {
				t := stele.Target{Service: stele.N2L, Order: stele.DefaultOrder, Preference: stele.DefaultPreference}
				d.target(&t)
				r.Targets = append(r.Targets, t)
			})
		case "examples":
			d.array(stele.MaxRuleExamples, func(int) { r.Examples = append(r.Examples, d.ruleExample()) })
		default:
			return false
		}
		return true
	})
	return r
}

func (d *document) ruleExample() (x stele.RuleExample) {
	d.object(exampleFields, func(name string) bool {
		switch name {
		case "name":
			x.Name = d.text()
		case "type":
			x.Type = d.text()
		case "want":
			x.Want = d.text()
		default:
			return false
		}
		return true
	})
	return x
}

// DecodeRules reads a list of rules in JSON, as [AppendRules] writes it, or rules one a line,
// as [AppendRule] does. It is as strict as [DecodeNamespace]; what the rules say is judged
// with the namespace that gets them.
func DecodeRules(data []byte) ([]stele.Rule, error) {
	if text := bytes.TrimSpace(data); len(text) > 0 && text[0] == '{' {
		lines := slices.DeleteFunc(bytes.Split(text, []byte("\n")), func(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 })
		data = slices.Concat([]byte("["), bytes.Join(lines, []byte(",")), []byte("]"))
	}
	d := document{}
	var list []stele.Rule
	if d.begin(data) {
		d.array(stele.MaxRules, func(int) { list = append(list, d.rule()) })
		d.end()
	}
	if err := d.faults.Err("read rules", stele.ID{}); err != nil {
		return nil, err
	}
	return list, nil
}

// AppendRules appends a list of rules in JSON to b: one array on one line.
func AppendRules(b []byte, list []stele.Rule) []byte {
	w := jsonWriter{b: b}
	w.ruleList(list)
	return w.b
}

// AppendRule appends a rule in JSON to b: one object on one line.
func AppendRule(b []byte, r *stele.Rule) []byte {
	w := jsonWriter{b: b}
	w.rule(r)
	return w.b
}

func (w *jsonWriter) rules(list []stele.Rule) {
	if len(list) > 0 {
		w.name("rules")
		w.ruleList(list)
	}
}

func (w *jsonWriter) ruleList(list []stele.Rule) {
	w.open('[')
	for i := range list {
		w.comma()
		w.rule(&list[i])
	}
	w.close(']')
}

func (w *jsonWriter) rule(r *stele.Rule) {
	w.open('{')
	w.name("pattern")
	w.string(r.Pattern)
	w.flag("ignoreCase", r.Fold)
	w.text("title", r.Title)
	w.text("reason", r.Reason)
	w.targets(r.Targets)
	w.ruleExamples(r.Examples)
	w.close('}')
}

func (w *jsonWriter) ruleExamples(list []stele.RuleExample) {
	if len(list) == 0 {
		return
	}
	w.name("examples")
	w.open('[')
	for _, x := range list {
		w.comma()
		w.open('{')
		w.name("name")
		w.string(x.Name)
		w.text("type", x.Type)
		w.text("want", x.Want)
		w.close('}')
	}
	w.close(']')
}
