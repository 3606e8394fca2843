package ddds

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const storyZone = `
start. 100 10 "x" "" "" ignored.
 100 11 "s" "p+N2L" "!a!b!" both.
 100 12 "s" "p+N2L" "!^urn:other:!x!" .
 100 13 "s" "p+N2C" "" other.
 100 14 "s" "p+N2L" "!.*!a b!" .
 100 15 "" "" "" down.
 100 16 "DIS:NAPTR" "N2L" "!.*!end.!" .
 100 17 "s" "p+N2L" "" spare.
 200 10 "s" "p+N2L" "" closed.
end. 100 10 "RES:ftp" "N2L:audio/wav" "!.*!ftp://example.org/1!" .
 100 20 "RES:https" "N2L:text/html" "!.*!https://example.org/\"!" .
 100 30 "RES:https" "N2L:text/html" "!.*!https://example.org/2!" .
`

func TestTraceString(t *testing.T) {
	database := flaky{zone(t, Standard, storyZone)}
	res, err := (&Walker{Database: database}).Walk(t.Context(), Request{
		Name: "urn:x:y", Start: "start", Service: "N2L", Accept: []Preference{{"audio/mpeg", 900}},
		Protocols: []string{"https"}, OnlyProtocols: true, Trace: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `urn:x:y, N2L, audio/mpeg;q=0.900, by https
1. start. (discovery): 9 rules for 3600 s
   ignored         100 10 "x" "" "" ignored.
                   parse: flags: at byte 0: "x" is not a flag; use s, a, u, p, DIS: with A, AAAA, SRV, URL or NAPTR, RES: with a protocol, or none
   unusable        100 11 "s" "p+N2L" "!a!b!" both.
                   parse: replacement: at byte 0: there are a regexp and a replacement; a rule has one of them (RFC 3403, 4.1)
   no match        100 12 "s" "p+N2L" "!^urn:other:!x!" .
   wrong service   100 13 "s" "p+N2C" "" other.
                   it does not offer "N2L"
                   -> other.
   bad output      100 14 "s" "p+N2L" "!.*!a b!" .
                   parse: name: at byte 1: ' ' can't be in the name of a key
                   -> a b
   failed          100 15 "" "" "" down.
                   -> down.
   chosen          100 16 "DIS:NAPTR" "N2L" "!.*!end.!" .
                   -> end.
   spare           100 17 "s" "p+N2L" "" spare.
                   -> spare.
   closed          200 10 "s" "p+N2L" "" closed.
                   a rule of order 100 matched
2. down. (discovery): look up: down.: SERVFAIL; try again
3. end. (resolution): 3 rules for 3600 s, the best fit first
   wrong protocol  100 10 "RES:ftp" "N2L:audio/wav" "!.*!ftp://example.org/1!" .
                   ftp is not among the protocols asked for
                   -> ftp://example.org/1
   bad output      100 20 "RES:https" "N2L:text/html" "!.*!https://example.org/\"!" .
                   parse: URI: at byte 20: '"' can't be in a URI
                   -> https://example.org/"
   chosen          100 30 "RES:https" "N2L:text/html" "!.*!https://example.org/2!" .
                   its type is different
                   -> https://example.org/2
=> RES:https N2L:text/html https://example.org/2, for 3600 s
`
	if diff := cmp.Diff(want, res.Trace.String()); diff != "" {
		t.Error(diff)
	}
}

// TestTraceJSON holds the names that programs rely on.
func TestTraceJSON(t *testing.T) {
	database := zone(t, Standard, `
start. 100 10 "" "" "!^urn:(x):(.*)$!\\2.\\1.short.!" .
y.x.short. 100 10 "RES:http" "N2L:text/html" "!.*!http://example.org/1!" .
`)
	set := database["start."]
	set.Note = "from 127.0.0.1"
	database["start."] = set
	res, err := (&Walker{Database: database}).Walk(t.Context(), Request{
		Name: "urn:x:y", Start: "start", Service: "N2L", Accept: []Preference{{"text/html", 1000}}, Protocols: []string{"http"}, Trace: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(res, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
 "key": "http://example.org/1",
 "flag": "RES:http",
 "service": "N2L",
 "type": "text/html",
 "protocol": "http",
 "fit": "asked for",
 "ttl": 60,
 "order": 100,
 "preference": 10,
 "candidates": [
  {
   "key": "http://example.org/1",
   "flag": "RES:http",
   "service": "N2L",
   "type": "text/html",
   "protocol": "http",
   "fit": "asked for",
   "ttl": 60,
   "order": 100,
   "preference": 10
  }
 ],
 "trace": {
  "name": "urn:x:y",
  "service": "N2L",
  "accept": [
   {
    "range": "text/html",
    "q": 1000
   }
  ],
  "protocols": [
   "http"
  ],
  "steps": [
   {
    "key": "start.",
    "phase": "discovery",
    "ttl": 3600,
    "note": "from 127.0.0.1",
    "rules": [
     {
      "order": 100,
      "preference": 10,
      "flags": "",
      "service": "",
      "regexp": "!^urn:(x):(.*)$!\\2.\\1.short.!",
      "replacement": ".",
      "verdict": "chosen",
      "output": "y.x.short."
     }
    ]
   },
   {
    "key": "y.x.short.",
    "phase": "resolution",
    "by_fit": true,
    "ttl": 60,
    "rules": [
     {
      "order": 100,
      "preference": 10,
      "flags": "RES:http",
      "service": "N2L:text/html",
      "regexp": "!.*!http://example.org/1!",
      "replacement": ".",
      "verdict": "chosen",
      "reason": "its type is asked for",
      "output": "http://example.org/1"
     }
    ]
   }
  ],
  "outcome": "RES:http N2L:text/html http://example.org/1, for 60 s"
 }
}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

// TestTraceIsPlain asks whether hostile rules can write to a terminal.
func TestTraceIsPlain(t *testing.T) {
	const evil = "\x1b[31m\r\n\x00é"
	r, _ := ParseRule(Fields{1, 1, evil, evil, "!" + evil, evil}, Standard)
	s, _ := ParseRule(Fields{1, 2, "s", "p+N2L", "!.*!" + evil + "!", ""}, Standard)
	database := Map{"start.": {Rules: []Rule{r, s}, Note: evil}}
	res, err := (&Walker{Database: database}).Walk(t.Context(), Request{Name: "urn:x:y", Start: "start", Service: "N2L", Trace: true})
	if err == nil {
		t.Fatal("no error")
	}
	for line := range strings.Lines(res.Trace.String()) {
		for _, c := range strings.TrimSuffix(line, "\n") {
			if hidden(c) {
				t.Fatalf("%q has %q", line, c)
			}
		}
	}
	if !json.Valid(must(json.Marshal(res))) {
		t.Error("the JSON is none")
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}
