package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/recordtest"
)

func TestDecodeRecord(t *testing.T) {
	s := recordtest.Spellers(t)
	id := stele.StoredID("ab", "ab:x")
	n2l := stele.Target{Service: stele.N2L, URL: "https://example.org/1", Order: 100, Preference: 10}
	at := time.Date(2024, 5, 17, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]*stele.Record{
		`{"id":"ab:x"}`:                {ID: id, State: stele.Active},
		" {\n\"id\" :\t\"ab:x\" }\r\n": {ID: id, State: stele.Active},
		`{"id":"ab:x","aliases":[],"targets":[],"metadata":{},"persistence":{},"values":[],"readers":[]}`: {ID: id, State: stele.Active},
		`{"\u0069d":"a\u0062:\u0078"}`:                              {ID: id, State: stele.Active},
		`{"id":"ab:X"}`:                                             {ID: id, State: stele.Active, Spelling: "ab:X"},
		`{"id":"ab:x","spelling":"ab:X"}`:                           {ID: id, State: stele.Active, Spelling: "ab:X"},
		`{"id":"ab:X","spelling":"ab:x"}`:                           {ID: id, State: stele.Active},
		`{"id":"ab:x","aliases":["cd:Y","ab:z"]}`:                   {ID: id, State: stele.Active, Aliases: []stele.ID{stele.StoredID("cd", "cd:y"), stele.StoredID("ab", "ab:z")}},
		`{"id":"ab:x","state":"reserved"}`:                          {ID: id, State: stele.Reserved},
		`{"id":"ab:x","url":"https://example.org/1"}`:               {ID: id, State: stele.Active, Targets: []stele.Target{n2l}},
		`{"id":"ab:x","targets":[{"url":"https://example.org/1"}]}`: {ID: id, State: stele.Active, Targets: []stele.Target{n2l}},
		`{"id":"ab:x","targets":[{"service":"N2L","url":"https://example.org/1","order":100}],"by":"ana"}`:  {ID: id, State: stele.Active, Targets: []stele.Target{n2l}, By: "ana"},
		`{"id":"ab:x","metadata":{"who":"a\nb","dc.title":"\ud83d\ude00"}}`:                                 {ID: id, State: stele.Active, Metadata: stele.Metadata{"who": "a\nb", "dc.title": "😀"}},
		`{"id":"ab:x","persistence":{"level":"stable","until":"2040-02-29"}}`:                               {ID: id, State: stele.Active, Persistence: stele.Persistence{Level: stele.Stable, Until: "2040-02-29"}},
		`{"id":"ab:x","created":"2024-05-17T12:00:00+02:00","modified":"2024-05-17T10:00:00.5Z"}`:           {ID: id, State: stele.Active, Created: at, Modified: at.Add(time.Second / 2)},
		`{"id":"ab:x","version":18446744073709551615,"redacted":true,"readers":["user:ana","group:staff"]}`: {ID: id, State: stele.Active, Version: 1<<64 - 1, Redacted: true, Readers: []string{"user:ana", "group:staff"}},
		`{"id":"ab:x","state":"withdrawn","tombstone":{"reason":"twice","at":"2024-05-17T10:00:00Z","replacement":"ab:Y"}}`: {
			ID: id, State: stele.Withdrawn, Tombstone: &stele.Tombstone{Reason: "twice", At: at, Replacement: stele.StoredID("ab", "ab:y")}},
		`{"id":"ab:x","targets":[{"service":"N2C","url":"ftp://h/","type":"text/xml","language":"pt-BR","order":0,"preference":1,"ttl":60,"status":303,"partial":true}]}`: {
			ID: id, State: stele.Active, Targets: []stele.Target{{Service: stele.N2C, URL: "ftp://h/", Type: "text/xml", Language: "pt-BR", Order: 0, Preference: 1, TTL: 60, Status: 303, Partial: true}}},
		`{"id":"ab:x","values":[{"index":1,"type":"URL","data":"AAH/"},{"index":2,"type":"x","permissions":[]}]}`: {
			ID: id, State: stele.Active, Values: []stele.HandleValue{{Index: 1, Type: "URL", Data: []byte{0, 1, 255}, TTL: 86400, Permissions: stele.DefaultPermissions}, {Index: 2, Type: "x", TTL: 86400}}},
		`{"id":"ab:x","values":[{"index":1,"type":"URL","ttl":0},{"index":2,"type":"x","ttlAbsolute":true}]}`: {
			ID: id, State: stele.Active, Values: []stele.HandleValue{{Index: 1, Type: "URL", Permissions: stele.DefaultPermissions}, {Index: 2, Type: "x", TTLAbsolute: true, Permissions: stele.DefaultPermissions}}},
		`{"id":"ab:x","values":[{"index":1,"type":"U","ttl":5,"ttlAbsolute":true,"timestamp":"2024-05-17T10:00:00Z","permissions":["public-write","admin-read"],"references":[{"handle":"0.NA/1","index":300}]}]}`: {
			ID: id, State: stele.Active, Values: []stele.HandleValue{{Index: 1, Type: "U", TTL: 5, TTLAbsolute: true, Timestamp: 1715940000, Permissions: stele.PublicWrite | stele.AdminRead, References: []stele.HandleReference{{Handle: "0.NA/1", Index: 300}}}}},
	} {
		got, err := DecodeRecord(s, []byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, got, recordtest.Same); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

// Each document has one problem, told with its path and what would be right.
func TestDecodeRecordProblems(t *testing.T) {
	s := recordtest.Spellers(t)
	for members, want := range map[string]string{
		`"id":"ef:x"`:                                                                      `id: at byte 0: this is an identifier of no known scheme`,
		`"id":"ab:"`:                                                                       `id: ab: at byte 3: nothing follows`,
		`"id":7`:                                                                           `id: should be a string, and is a number`,
		`"id":null`:                                                                        `id: should be a string, and is null; leave the field out`,
		`"url":"https://h/"`:                                                               `id: is missing; give an identifier`,
		`"id":"ab:x","ID":"ab:x"`:                                                          `ID: there is no such field; there are id, spelling, aliases`,
		`"id":"ab:x","a b":{"c":[1]}`:                                                      `["a b"]: there is no such field`,
		`"id":"ab:x","id":"ab:y"`:                                                          `id: is given twice; keep one`,
		`"id":"ab:x","spelling":"ab:y"`:                                                    `spelling: is a spelling of "ab:y"; give one of the record's identifier`,
		`"id":"ab:x","spelling":"y"`:                                                       `spelling: at byte 0: this is an identifier of no known scheme`,
		`"id":"ab:x","aliases":"ab:y"`:                                                     `aliases: should be a list, and is a string`,
		`"id":"ab:x","aliases":["ab:y",[]]`:                                                `aliases[1]: should be a string, and is a list`,
		`"id":"ab:x","aliases":["ab:y",""]`:                                                `aliases[1]: at byte 0: there is no text`,
		`"id":"ab:x","aliases":["ab:y","ab:z","ab:Y"]`:                                     `aliases[2]: is the same as aliases[0]; remove or change one`,
		`"id":"ab:x","aliases":["ab:X"]`:                                                   `aliases[0]: is the record's identifier; remove it`,
		`"id":"ab:x","state":"gone"`:                                                       `state: "gone" is not a state; use reserved, active or withdrawn`,
		`"id":"ab:x","state":""`:                                                           `state: "" is not a state`,
		`"id":"ab:x","state":true`:                                                         `state: should be a string, and is true or false`,
		`"id":"ab:x","state":"withdrawn"`:                                                  `tombstone: is missing; say why`,
		`"id":"ab:x","tombstone":{"reason":"r"}`:                                           `tombstone: a record that is active has none`,
		`"id":"ab:x","state":"withdrawn","tombstone":{"reason":" "}`:                       `tombstone.reason: is missing; say why`,
		`"id":"ab:x","state":"withdrawn","tombstone":7`:                                    `tombstone: should be an object, and is a number`,
		`"id":"ab:x","url":"javascript:alert(1)"`:                                          `url: "javascript:alert(1)" does not begin with a protocol that is allowed; use one of http, https, ftp`,
		`"id":"ab:x","url":7`:                                                              `url: should be a string, and is a number`,
		`"id":"ab:x","url":"https://h/","targets":[{"url":"ftp://h"}]`:                     `url: is short for one target; there are targets too, so move it there`,
		`"id":"ab:x","targets":[{}]`:                                                       `targets[0].url: is missing; give the address`,
		`"id":"ab:x","targets":["https://h/"]`:                                             `targets[0]: should be an object, and is a string`,
		`"id":"ab:x","targets":[{"url":"https://h/","order":-1}]`:                          `targets[0].order: should be a whole number from 0 to 65535`,
		`"id":"ab:x","targets":[{"url":"https://h/","order":65536}]`:                       `targets[0].order: should be a whole number from 0 to 65535`,
		`"id":"ab:x","targets":[{"url":"https://h/","order":1.0}]`:                         `targets[0].order: should be a whole number`,
		`"id":"ab:x","targets":[{"url":"https://h/","order":1e1}]`:                         `targets[0].order: should be a whole number`,
		`"id":"ab:x","targets":[{"url":"https://h/","ttl":"60"}]`:                          `targets[0].ttl: should be a number, and is a string`,
		`"id":"ab:x","targets":[{"url":"https://h/","partial":1}]`:                         `targets[0].partial: should be true or false, and is a number`,
		`"id":"ab:x","targets":[{"url":"https://h/","URL":""}]`:                            `targets[0].URL: there is no such field; there are service, url, type`,
		`"id":"ab:x","metadata":[]`:                                                        `metadata: should be an object, and is a list`,
		`"id":"ab:x","metadata":{"when":1992}`:                                             `metadata.when: should be a string, and is a number`,
		`"id":"ab:x","metadata":{"who":"a","who":"a"}`:                                     `metadata.who: is given twice; keep one`,
		`"id":"ab:x","metadata":{"Who":"a"}`:                                               `metadata.Who: "Who" is not a name of a field; use up to 64 of a-z`,
		`"id":"ab:x","metadata":{"dc.rights":"\u0007"}`:                                    `metadata["dc.rights"]: at byte 0: control character U+0007; remove it`,
		`"id":"ab:x","metadata":{"who":"\ud800"}`:                                          `metadata.who: \ud800 alone is half a character`,
		`"id":"ab:x","persistence":{"until":"2040-02-30"}`:                                 `persistence.until: "2040-02-30" is not a date; write year, month and day, such as 2040-01-31`,
		`"id":"ab:x","persistence":{"level":"forever"}`:                                    `persistence.level: "forever" is not a level; use permanent`,
		`"id":"ab:x","values":[{"type":"URL"}]`:                                            `values[0].index: is missing; number values from 1`,
		`"id":"ab:x","values":[{"index":1}]`:                                               `values[0].type: is missing; give a type`,
		`"id":"ab:x","values":[{"index":1,"type":"a","data":"AA"}]`:                        `values[0].data: is not base64`,
		`"id":"ab:x","values":[{"index":1,"type":"a","data":"AB=="}]`:                      `values[0].data: is not base64`,
		`"id":"ab:x","values":[{"index":1,"type":"a","data":"A\nAA"}]`:                     `values[0].data: is not base64`,
		`"id":"ab:x","values":[{"index":1,"type":"a","permissions":["all"]}]`:              `values[0].permissions[0]: "all" is not a permission; use public-write, public-read, admin-write, admin-read`,
		`"id":"ab:x","values":[{"index":1,"type":"a","permissions":[1]}]`:                  `values[0].permissions[0]: should be a string, and is a number`,
		`"id":"ab:x","values":[{"index":1,"type":"a","timestamp":"1969-12-31T23:59:59Z"}]`: `values[0].timestamp: 1969-12-31T23:59:59Z is not a time of a handle value`,
		`"id":"ab:x","values":[{"index":1,"type":"a","references":[{"handle":""}]}]`:       `values[0].references[0].handle: at byte 0: there is no text`,
		`"id":"ab:x","values":[{"index":1,"type":"a","references":[{"handl":"a"}]}]`:       `values[0].references[0].handl: there is no such field; there are handle, index`,
		`"id":"ab:x","values":[{"index":1,"type":"a"},{"index":1,"type":"b"}]`:             `values[1].index: is the same as values[0].index; remove or change one`,
		`"id":"ab:x","readers":["ana"]`:                                                    `readers[0]: "ana" is not a user or group; write user: or group: and a name`,
		`"id":"ab:x","created":"yesterday"`:                                                `created: "yesterday" is not a time; write it as in 2024-05-17T10:00:00Z`,
		`"id":"ab:x","created":"2024-05-17T10:00:00"`:                                      `created: "2024-05-17T10:00:00" is not a time`,
		`"id":"ab:x","created":"0000-01-01T00:00:00Z"`:                                     `created: the year 0 is not between 1 and 9999`,
		`"id":"ab:x","modified":"9999-12-31T23:59:59-01:00"`:                               `modified: the year 10000 is not between`,
		`"id":"ab:x","redacted":"true"`:                                                    `redacted: should be true or false, and is a string`,
		`"id":"ab:x","version":18446744073709551616`:                                       `version: should be a whole number from 0 to 18446744073709551615`,
		`"id":"ab:x","by":"a\u0000"`:                                                       `by: at byte 1: control character U+0000`,
		`"id":"ab:x",`:                                                                     `this is not JSON at byte 13: a comma before the end`,
		`"id":"ab:x","x":` + strings.Repeat("[", 50):                                       `x: nests more than 32 deep at byte 50`,
		`"id":"ab:x"}{"id":"ab:y"`:                                                         `something follows the object's end`,
	} {
		_, err := DecodeRecord(s, []byte("{"+members+"}"))
		problems, ok := errors.AsType[stele.Problems](err)
		if !ok || !errors.Is(err, stele.Invalid) {
			t.Errorf("%s: %v", members, err)
			continue
		}
		known := 0 // an unknown field stands beside what it was meant to be
		for _, p := range problems {
			if !strings.Contains(p.Error(), "there is no such field") {
				known++
			}
		}
		if !strings.Contains(problems.Error(), want) || known > 1 {
			t.Errorf("%s: %v\nwant %s", members, err, want)
		}
	}
	for _, text := range []string{``, `null`, `[]`, `"ab:x"`, `7`, "\xff", `{"id":"ab:x"} x`} {
		if _, err := DecodeRecord(s, []byte(text)); !errors.Is(err, stele.Invalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The lists of fields that messages show are those that are read.
func TestFieldLists(t *testing.T) {
	s := recordtest.Spellers(t)
	for fields, frame := range map[string]string{
		recordFields:      `{%s}`,
		tombstoneFields:   `{"tombstone":{%s}}`,
		targetFields:      `{"targets":[{%s}]}`,
		persistenceFields: `{"persistence":{%s}}`,
		valueFields:       `{"values":[{%s}]}`,
		referenceFields:   `{"values":[{"references":[{%s}]}]}`,
	} {
		for _, name := range strings.Fields(fields) {
			_, err := DecodeRecord(s, fmt.Appendf(nil, frame, `"`+name+`":null`))
			if err == nil || !strings.Contains(err.Error(), name+": should be ") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for fields, frame := range map[string]string{namespaceFields: `{%s}`, minterFields: `{"minter":{%s}}`, "to role": `{"grants":[{%s}]}`} {
		for _, name := range strings.Fields(fields) {
			_, err := DecodeNamespace(s, fmt.Appendf(nil, frame, `"`+name+`":null`))
			if err == nil || !strings.Contains(err.Error(), name+": should be ") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestDecodeRecordAllProblemsAtOnce(t *testing.T) {
	_, err := DecodeRecord(recordtest.Spellers(t), []byte(`{"id":"ab:x","aliases":["ab:y","nothing"],"targets":[
		{"url":"https://h/"},{"url":"data:,x","type":"HTML","language":"pt_BR","ttl":9999999,"status":200,"service":"X"},7],
		"metadata":{"When":1},"persistence":{"level":1,"until":"soon"},"colour":"red","version":"1"}`))
	e, ok := errors.AsType[*stele.Error](err)
	if !ok || e.Kind != stele.Invalid || e.ID != (stele.StoredID("ab", "ab:x")) {
		t.Fatal(err)
	}
	var paths []string
	for _, p := range e.Err.(stele.Problems) {
		paths = append(paths, p.Path)
	}
	const want = "aliases[1] targets[2] metadata.When persistence.level colour version" +
		" targets[1].service targets[1].url targets[1].type targets[1].language targets[1].ttl targets[1].status persistence.until"
	if got := strings.Join(paths, " "); got != want {
		t.Errorf("%s\nwant\n%s\n%v", got, want, err)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %v", err)
	}
	if syntax, ok := errors.AsType[*stele.SyntaxError](err); !ok || !strings.Contains(syntax.Reason.Error(), "no known scheme") {
		t.Errorf("the parser's reason is lost: %v", err)
	}
}

// Documents that are too large are refused soon, and in few words.
func TestDecodeRecordLimits(t *testing.T) {
	s := recordtest.Spellers(t)
	many := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	var aliases, fields strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&aliases, `"ab:%d",`, i)
		fmt.Fprintf(&fields, `"a%d":"",`, i)
	}
	large := make(stele.Metadata)
	for i := range 200 {
		large[fmt.Sprintf("a%d", i)] = strings.Repeat("x", 9000)
	}
	for name, c := range map[string]struct{ text, want string }{
		"10 MB":            {`{"id":"ab:x","metadata":{"what":"` + strings.Repeat("x", 10<<20) + `"}}`, "the document has 10485796 bytes; 4194304 are the most"},
		"10,000 targets":   {`{"id":"ab:x","targets":[` + many(10_000, `{"url":"https://example.org/"}`) + `]}`, "targets: has 10000 items; 1000 are the most"},
		"100,000 aliases":  {`{"id":"ab:x","aliases":[` + strings.TrimSuffix(aliases.String(), ",") + `]}`, "aliases: has 100000 items; 1000 are the most"},
		"100,000 fields":   {`{"id":"ab:x","metadata":{` + strings.TrimSuffix(fields.String(), ",") + `}}`, "metadata: has 100000 fields; 1000 are the most"},
		"100,000 unknown":  {`{"id":"ab:x",` + strings.TrimSuffix(fields.String(), ",") + `}`, "and 99900 more problems"},
		"100,000 doubles":  {`{"id":"ab:x",` + many(100_000, `"id":"ab:x"`) + `}`, "id: is given twice"},
		"2 MB of metadata": {string(AppendRecord(nil, (&stele.Record{ID: stele.StoredID("ab", "ab:x"), State: stele.Active, Metadata: large}))), "the record has 1801"},
		"a long value":     {`{"id":"ab:x","metadata":{"what":"` + strings.Repeat("x", 10_001) + `"}}`, "metadata.what: has 10001 bytes; 10000 are the most"},
		"a long name":      {`{"id":"ab:x","` + strings.Repeat("x", 1<<20) + `":1}`, `"...]: there is no such field`},
		"much data":        {`{"id":"ab:x","values":[{"index":1,"type":"a","data":"` + strings.Repeat("AAAA", 30_000) + `"}]}`, "values[0].data: has 90000 bytes; 65536 are the most"},
	} {
		_, err := DecodeRecord(s, []byte(c.text))
		if !errors.Is(err, stele.Invalid) || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 50_000 {
			t.Errorf("%s: %.300v\nwant %s", name, err, c.want)
		}
	}
}

func TestAppendJSON(t *testing.T) {
	const want = `{"id":"ark:12345/x54xz321","spelling":"https://n2t.net/ark:/12345/x54xz321","aliases":["10.1000/182","urn:isbn:9780141036144"],` +
		`"state":"withdrawn","tombstone":{"reason":"published twice","at":"2024-05-17T10:00:00.123456789Z","replacement":"ark:12345/x5new"},` +
		`"targets":[{"url":"https://example.org/1","type":"text/html","language":"pt-BR","ttl":3600,"status":303,"partial":true},` +
		`{"service":"N2C","url":"ftp://example.org/2","order":65535,"preference":0}],` +
		`"metadata":{"who":"Gomes, Ana","what":"Dunas","when":"1992","where":"","dc.rights":"CC0"},` +
		`"persistence":{"level":"stable","until":"2040-01-01","statement":"as long as we are"},` +
		`"values":[{"index":1,"type":"URL","data":"AAH/","ttl":86400,"ttlAbsolute":true,"timestamp":"2106-02-07T06:28:15Z",` +
		`"permissions":["public-read","admin-read"],"references":[{"handle":"0.NA/10.1000","index":300}]},` +
		`{"index":4294967295,"type":"EMAIL","ttl":86400,"permissions":[]}],"readers":["user:ana","group:staff"],"version":18446744073709551615,` +
		`"created":"1969-12-31T23:59:59Z","modified":"2024-05-17T10:00:00.123456789Z","by":"user:ana","redacted":true}`
	if got := string(AppendRecord([]byte("["), recordtest.Rich())); got != "["+want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	r := &stele.Record{ID: stele.StoredID("ab", "ab:x"), State: stele.Active, Metadata: stele.Metadata{"what": "<a href=\"x\">&\u2028\n\x01\xff</a>"}}
	if got := string(AppendRecord(nil, r)); got != `{"id":"ab:x","metadata":{"what":"<a href=\"x\">&`+"\u2028"+`\n\u0001`+"\ufffd"+`</a>"}}` {
		t.Error(got)
	}
	if got, err := json.Marshal([]*stele.Record{r}); err == nil { // it would have the names of Go's fields
		t.Errorf("%s", got)
	}
	const empty = `{"id":"","state":"","targets":[{"service":"","order":0,"preference":0,"status":-1}]}`
	if got := string(AppendRecord(nil, (&stele.Record{Targets: []stele.Target{{Status: -1}}}))); got != empty {
		t.Error(got)
	}
}

func TestRecordJSON(t *testing.T) {
	s := recordtest.Spellers(t)
	rapid.Check(t, func(t *rapid.T) {
		r := recordtest.GoodRecord.Draw(t, "record")
		if err := r.Validate(); err != nil {
			t.Fatal(err)
		}
		b, err := AppendRecord(nil, r), error(nil)
		if err != nil || !utf8.Valid(b) || !json.Valid(b) || bytes.ContainsAny(b, "\n\r") {
			t.Fatalf("%q, %v", b, err)
		}
		back, err := DecodeRecord(s, b)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if diff := cmp.Diff(r, back, recordtest.Same); diff != "" {
			t.Fatalf("%s: %s", b, diff)
		}
		if again := AppendRecord(nil, back); !bytes.Equal(b, again) {
			t.Fatalf("%s, and then %s", b, again)
		}
	})
}

// Whatever a record holds, its JSON is JSON.
func TestAnyRecordJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, b := range [][]byte{AppendRecord(nil, recordtest.AnyRecord.Draw(t, "record")), AppendNamespace(nil, recordtest.AnyNamespace.Draw(t, "namespace"))} {
			if !utf8.Valid(b) || !json.Valid(b) {
				t.Fatalf("%q", b)
			}
		}
	})
}

// FuzzDecodeRecord holds the document against encoding/json: the same texts are
// taken, and mean the same.
func FuzzDecodeRecord(f *testing.F) {
	s := recordtest.Spellers(f)
	f.Add(string(AppendRecord(nil, recordtest.Rich())))
	f.Add(recordtest.Typical)
	f.Add(`{"id":"ab:X","url":"https://example.org/1","values":[{"index":1,"type":"a"}]}`)
	f.Add(`{"id":"ab:x","Id":1,"state":null,"targets":[{"order":1.0}],"metadata":{"a":"\ud800","a":""}}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := DecodeRecord(s, []byte(text))
		if err != nil {
			checkRefusal(t, text, err)
			return
		}
		var p plainRecord
		if err := json.Unmarshal([]byte(text), &p); err != nil || !hasShape(text, recordShape) {
			t.Fatalf("%q is taken; encoding/json: %v", text, err)
		}
		want, err := p.record(s)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, r, recordtest.Same); diff != "" {
			t.Fatalf("%q: %s", text, diff)
		}
		if err := r.Validate(); err != nil {
			t.Fatal(err)
		}
		back, err := DecodeRecord(s, AppendRecord(nil, r))
		if diff := cmp.Diff(r, back, recordtest.Same); diff != "" || err != nil {
			t.Fatalf("%q: %v, %s", text, err, diff)
		}
	})
}

// checkRefusal makes sure that a refusal gives the right reason.
func checkRefusal(t *testing.T, text string, err error) {
	problems, ok := errors.AsType[stele.Problems](err)
	if !ok || stele.KindOf(err) != stele.Invalid || len(problems) == 0 || !utf8.ValidString(err.Error()) {
		t.Fatalf("%q: %v", text, err)
	}
	syntax, deep, shape := false, false, false
	for _, p := range problems {
		reason := p.Err.Error()
		syntax = syntax || strings.HasPrefix(reason, "this is not JSON")
		deep = deep || strings.HasPrefix(reason, "nests more than")
		for _, word := range []string{"should be ", "there is no such field", "is given twice"} {
			shape = shape || strings.HasPrefix(reason, word)
		}
		shape = shape || deep || strings.Contains(reason, " items; ") || strings.Contains(reason, " fields; ")
	}
	valid := json.Valid([]byte(text)) && utf8.ValidString(text)
	if syntax == valid && !deep {
		t.Fatalf("%q is JSON: %t, and yet %v", text, valid, err)
	}
	if valid && shape && hasShape(text, recordShape) {
		t.Fatalf("%q has the right shape, and yet %v", text, err)
	}
	if valid && !shape && !hasShape(text, recordShape) {
		t.Fatalf("%q has the wrong shape, and that is not told: %v", text, err)
	}
}
