package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stele-id/stele/document/apijson"
)

// TestRules sets rules of a namespace, and tries rules without setting them.
func TestRules(t *testing.T) {
	const (
		good = `{"pattern":"{n:digit,3}","targets":[{"url":"https://example.org/{n}"},{"url":"https://example.org/{n}.ttl","type":"text/turtle"}],"examples":[{"name":"ark:12345/q7007","want":"https://example.org/007"}]}`
		bad  = `{"pattern":"{n:digit,3}","targets":[{"url":"https://example.org/{n}"}],"examples":[{"name":"ark:12345/q7007","want":"https://example.org/7"}]}`
		host = `{"pattern":"{n:segment}","targets":[{"url":"https://{n}/"}],"examples":[{"name":"ark:12345/q7007","want":"https://007/"}]}`
		all  = `{"pattern":"{x:any}","targets":[{"status":410}],"reason":"Lost.","examples":[{"name":"ark:12345/q7old","want":"410"}]}`
	)
	s := newSite(t)
	at := Root + "/namespaces/ark:12345/q7"
	s.ask(theOwner, "PUT", at, `{"title":"Maps"}`, "If-None-Match", "*").want(t, 201)
	s.ask(theEditor, "PATCH", at, `{"rules":[`+good+`]}`).want(t, 403)
	for rule, says := range map[string]string{
		bad:            `rules[0].examples[0]`,
		host:           `must not stand in the protocol, host or port`,
		`{}`:           `rules[0].targets`,
		`{"patern":1}`: `patern`,
	} {
		if a := s.ask(theOwner, "PATCH", at, `{"rules":[`+rule+`]}`).want(t, 400); !strings.Contains(a.body, says) {
			t.Errorf("%s: %s", rule, a.body)
		}
	}
	s.ask(theOwner, "PATCH", at, `{"rules":[`+good+`]}`).want(t, 200)

	try := func(body string) (got apijson.RuleTestResult) {
		t.Helper()
		a := s.ask(theReader, "POST", Root+"/rules/ark:12345/q7", body).want(t, 200)
		if err := json.Unmarshal([]byte(a.body), &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	got := try(`{"names":["ark:/12345/q7123","ark:12345/q7x","ark:12345/z1","?"],"type":"text/turtle"}`)
	if got.Rules != 1 || got.Examples != 1 || len(got.Failed) != 0 || len(got.Names) != 4 ||
		got.Names[0] != (apijson.RuleAnswer{Name: "ark:/12345/q7123", Rule: 1, Pattern: "{n:digit,3}", URL: "https://example.org/123.ttl"}) ||
		got.Names[1] != (apijson.RuleAnswer{Name: "ark:12345/q7x"}) || !strings.Contains(got.Names[2].Error, "does not belong to ark:12345/q7") || got.Names[3].Error == "" {
		t.Errorf("%+v", got)
	}
	got = try(`{"rules":[` + bad + `,` + all + `],"names":["ark:12345/q7x"]}`)
	if len(got.Failed) != 1 || got.Failed[0].Path != "rules[0].examples[0]" || got.Failed[0].Code != "rule.example-differs" || len(got.Overlaps) != 1 || got.Names[0].Rule != 2 || got.Names[0].Status != 410 {
		t.Errorf("%+v", got)
	}
	s.ask(theReader, "POST", Root+"/rules/ark:12345/q7", `{"names":`+strings.Replace(strings.Repeat(`,"a"`, 101), ",", "[", 1)+`]}`).want(t, 400)
	s.ask(theReader, "POST", Root+"/rules/ark:12345/q7", `{"rules":[{"x":1}]}`).want(t, 400)
	s.ask(theOutsider, "POST", Root+"/rules/ark:12345/q7", `{}`).want(t, 404)
	if a := s.ask(theOwner, "GET", at, "").want(t, 200); !strings.Contains(a.body, `"rules":[`+good+`]`) {
		t.Errorf("%s", a.body)
	}
}
