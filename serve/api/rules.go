package api

import (
	"bytes"
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/rules"
)

func (h *Handler) ruleOperations() []operation {
	return []operation{{
		name: "testRules", method: http.MethodPost, path: "rules/{prefix}", group: "Namespaces",
		tail:    parameter{name: "prefix", about: prefixInPath.about, example: "ark:12345/x5"},
		summary: "Try rules of a namespace",
		about:   "Runs the examples of the rules, and says what the rules answer for names that are not registered. Nothing is written: putNamespace and patchNamespace set rules.",
		asks:    reader, scope: auth.ScopeRead,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.RuleTest{}, example: `{"names":["ark:12345/x5007"]}`},
		answers: []answer{{status: 200, about: "What the rules answer.", value: apijson.RuleTestResult{}}},
		fails:   []int{404},
		serve:   h.testRules,
	}}
}

// maxTried is how many names are tried at once.
const maxTried = 100

// testRules tries the rules of a namespace, or others in their place.
func (h *Handler) testRules(c *call) error {
	have, err := h.namespace(c)
	if err != nil {
		return err
	}
	var want apijson.RuleTest
	if err := c.decode(&want); err != nil {
		return err
	}
	if len(want.Names) > maxTried {
		return invalidf("request.names-too-many", "there are {count} names; {most} are the most", len(want.Names), maxTried)
	}
	ns := *have
	if len(want.Rules) > 0 {
		list := make([][]byte, len(want.Rules))
		for i, text := range want.Rules {
			list[i] = text
		}
		if ns.Rules, err = document.DecodeRules(append(append([]byte("["), bytes.Join(list, []byte(","))...), ']')); err != nil {
			return err
		}
	}
	got, err := h.tryRules(c, &ns, &want)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, got)
}

// tryRules says what the rules of a namespace answer.
func (h *Handler) tryRules(c *call, ns *stele.Namespace, want *apijson.RuleTest) (apijson.RuleTestResult, error) {
	got := apijson.RuleTestResult{Rules: len(ns.Rules)}
	for i := range ns.Rules {
		got.Examples += len(ns.Rules[i].Examples)
	}
	problems, err := h.o.Registrar.JudgeRules(c.ctx, ns)
	if err != nil {
		return got, err
	}
	got.Failed = apijson.FaultsOf(problems)
	set, _ := rules.Compile(ns)
	overlaps, _ := set.Overlaps(h.o.Schemes, ns)
	for _, o := range overlaps {
		got.Overlaps = append(got.Overlaps, apijson.RuleOverlap{Earlier: o.Earlier + 1, Later: o.Later + 1, Name: o.Name})
	}
	for _, name := range want.Names {
		a := apijson.RuleAnswer{Name: name}
		o, err := set.Try(h.o.Schemes, ns, name, want.Type)
		if err == nil {
			err = o.Err
		}
		if err != nil {
			a.Error = err.Error()
		}
		if o.Rule >= 0 {
			a.Rule, a.Pattern, a.URL, a.Status = o.Rule+1, ns.Rules[o.Rule].Pattern, o.URL, o.Status
		}
		got.Names = append(got.Names, a)
	}
	return got, nil
}
