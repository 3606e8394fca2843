package ddds_test

import (
	"context"
	"fmt"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
)

// A namespace has a rule that makes an owner name of each of its names, and each
// name has its rules there. Asked for a type that is not to be had, the walk ends
// with one that is like it.
func Example() {
	rewriting, err := ddds.NewExpression(`^urn:paradisec:([-_a-z0-9]{1,63}):([-_a-z0-9]{1,63}):([-_a-z0-9]{1,63})$`, `\3.\2.\1.paradisec.example.`, true)
	if err != nil {
		fmt.Println(err)
		return
	}
	rules := ddds.ParseRules([]ddds.Fields{
		{Order: 100, Preference: 10, Flags: "RES:http", Service: "N2L:text/html", Regexp: "!.*!http://data.example/a.html!"},
		{Order: 100, Preference: 20, Flags: "RES:http", Service: "N2L:audio/wav", Regexp: "!.*!http://store.example/a.wav!"},
	}, ddds.Standard)
	database := ddds.Map{
		"paradisec.urn.arpa.":          {TTL: 86400, Rules: []ddds.Rule{{Order: 100, Preference: 10, Expression: rewriting}}},
		"a.001.ab1.paradisec.example.": {TTL: 300, Rules: rules},
	}
	first, err := ddds.URNKey("") // under urn.arpa
	if err != nil {
		fmt.Println(err)
		return
	}
	w := &ddds.Walker{Database: database, First: first}
	res, err := w.Walk(context.Background(), ddds.Request{
		Name:    "urn:paradisec:AB1:001:A",
		Service: stele.N2L,
		Accept:  []ddds.Preference{{Range: "audio/mpeg", Q: 1000}},
		Trace:   true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Key, res.Type, res.Fit)
	fmt.Print(res.Trace)
	// Output:
	// http://store.example/a.wav audio/wav similar
	// urn:paradisec:AB1:001:A, N2L, audio/mpeg;q=1.000
	// 1. paradisec.urn.arpa. (discovery): 1 rule for 86400 s
	//    chosen          100 10 "" "" "!^urn:paradisec:([-_a-z0-9]{1,63}):([-_a-z0-9]{1,63}):([-_a-z0-9]{1,63})$!\\3.\\2.\\1.paradisec.example.!i" .
	//                    -> a.001.ab1.paradisec.example.
	// 2. a.001.ab1.paradisec.example. (resolution): 2 rules for 300 s, the best fit first
	//    spare           100 10 "RES:http" "N2L:text/html" "!.*!http://data.example/a.html!" .
	//                    its type is different
	//                    -> http://data.example/a.html
	//    chosen          100 20 "RES:http" "N2L:audio/wav" "!.*!http://store.example/a.wav!" .
	//                    its type is similar
	//                    -> http://store.example/a.wav
	// => RES:http N2L:audio/wav http://store.example/a.wav, for 300 s, and 1 more
}

// A rule that is put together gives the fields of a NAPTR record, or says what can't
// be written so.
func ExampleRule_Fields() {
	expression, err := ddds.NewExpression(
		"^"+ddds.Quote("urn:paradisec:ab1:001:a.b")+"$",
		ddds.QuoteReplacement("https://store.example/?q=ab1!a"), true)
	if err != nil {
		fmt.Println(err)
		return
	}
	rule := ddds.Rule{
		Order: 100, Preference: 10, Flag: "RES:https",
		Services:   ddds.Services{Offers: []ddds.Offer{{Service: stele.N2L, Type: "audio/wav"}}},
		Expression: expression,
	}
	fields, err := rule.Fields()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("NAPTR", fields)

	_, err = ddds.NewExpression("^urn:x:[a-z0-9-]+$", "x.example.", true)
	fmt.Println(err)
	// Output:
	// NAPTR 100 10 "RES:https" "N2L:audio/wav" "#^urn:paradisec:ab1:001:a[.]b$#https://store.example/?q=ab1!a#i" .
	// write: regexp: not all name servers take this expression: at byte 15: a hyphen after a range; write it first, as in [-a-z]
}

// An expression is applied to the name, and what it gives is all there is: what
// stood around the match is gone.
func ExampleExpression_Apply() {
	e, err := ddds.ParseExpression(`!^http://([^/:]+)!\1!i`)
	if err != nil {
		fmt.Println(err)
		return
	}
	key, ok, err := e.Apply("http://www.example.com/software/latest-beta.exe")
	fmt.Println(key, ok, err)
	// Output: www.example.com true <nil>
}
