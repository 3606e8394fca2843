package apijson

import "encoding/json"

// RuleTest is a request to try the rules of a namespace.
type RuleTest struct {
	Rules []json.RawMessage `json:"rules,omitempty" schema:"Rule" maxItems:"200" doc:"The rules to try; without any, those of the namespace."`
	Names []string          `json:"names,omitempty" maxItems:"100" doc:"Names to try, in any spelling." example:"[\"ark:12345/x5007\"]"`
	Type  string            `json:"type,omitempty" maxLength:"255" doc:"The media type that the client accepts; without it, any." example:"text/turtle"`
}

// RuleTestResult is what rules answer.
type RuleTestResult struct {
	Rules    int           `json:"rules" doc:"How many rules there are."`
	Examples int           `json:"examples" doc:"How many examples were run."`
	Failed   []Fault       `json:"failed,omitempty" doc:"What is wrong with the rules, and which examples do not hold. A namespace with such rules would be refused."`
	Overlaps []RuleOverlap `json:"overlaps,omitempty" doc:"Rules that match the same names, as far as samples show. The first one answers."`
	Names    []RuleAnswer  `json:"names,omitempty" doc:"What the rules answer for the names, in their order."`
}

// RuleOverlap is two rules that match the same names.
type RuleOverlap struct {
	Earlier int    `json:"earlier" doc:"The number of the rule that answers, from 1."`
	Later   int    `json:"later"`
	Name    string `json:"name" doc:"A name that both match."`
}

// RuleAnswer is what rules answer for a name that is not registered.
type RuleAnswer struct {
	Name    string `json:"name"`
	Rule    int    `json:"rule,omitempty" doc:"The number of the rule that answers, from 1; without it none does."`
	Pattern string `json:"pattern,omitempty" doc:"Its pattern."`
	URL     string `json:"url,omitempty" doc:"Where the name leads."`
	Status  int    `json:"status,omitempty" doc:"Of the redirect, if the rule says; with 404, 406 and 410 there is nothing."`
	Error   string `json:"error,omitempty" doc:"Why there is no answer."`
}
