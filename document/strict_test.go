package document

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

func TestDecodeStrictly(t *testing.T) {
	type inner struct {
		Name string `json:"name"`
	}
	type outer struct {
		Text  string          `json:"text,omitempty"`
		Flag  bool            `json:"flag,omitempty"`
		Count uint64          `json:"count,omitempty"`
		Small *int            `json:"small,omitempty"`
		List  []inner         `json:"list,omitempty"`
		Raw   json.RawMessage `json:"raw,omitempty"`
		When  *time.Time      `json:"when,omitempty"`
		own   int
	}
	for _, tt := range []struct{ text, want string }{ // want is a part of what is wrong; "" if nothing is
		{`{}`, ""},
		{` {"text":"a","flag":true,"count":18446744073709551615,"small":-1,"list":[{"name":"x"}],"raw":{"a":[null]},"when":"2031-05-02T10:00:00Z"} `, ""},
		{`{"text":"\ud83e\udea8"}`, ""},
		{`{"Text":"a"}`, "Text: there is no such field; there are text, flag, count, small, list, raw, when"},
		{`{"own":1}`, "own: there is no such field"},
		{`{"text":"a","text":"b"}`, "text: is given twice"},
		{`{"raw":{"a":1,"a":2}}`, "raw.a: is given twice"},
		{`{"text":1,"flag":"x","count":-1,"list":{}}`, "count: should be a whole number in plain digits, not \"-1\"; flag: should be true or false, not a string; list: should be a list, not an object; text: should be a string, not a number"},
		{`{"text":null}`, "text: should be a string, not null"},
		{`{"list":[{"name":1}]}`, "list[0].name: should be a string"},
		{`{"list":[1]}`, "list[0]: should be an object"},
		{`{"count":18446744073709551616}`, "count: should be a whole number"},
		{`{"count":1.5}`, "count: should be a whole number"},
		{`{"count":1e3}`, "count: should be a whole number"},
		{`{"when":"yesterday"}`, "when: \"yesterday\" is not a time"},
		{`{"when":5}`, "when: should be a string"},
		{`{"a b":1}`, `["a b"]: there is no such field`},
		{`[]`, "should be an object, not a list"},
		{`null`, "should be an object, not null"},
		{``, "ends too early"},
		{`{`, "ends too early"},
		{`{"text"}`, "not JSON"},
		{`{"text":"a"}x`, "something follows"},
		{`{"text":"a"}{}`, "something follows"},
		{`{"text":"a",}`, "not JSON"},
		{`{'text':"a"}`, "not JSON"},
		{"{\"text\":\"a\x00\"}", "not JSON"},
		{"{\"text\":\"\xff\"}", "not UTF-8"},
		{"\ufeff{}", "not JSON"},
		{`{"text":"\ud800"}`, "half a character"},
		{`{"text":"\udc00x"}`, "half a character"},
		{`{"text":"\ud800\ud800"}`, "half a character"},
		{`{"text":"\\ud800"}`, ""},
		{strings.Repeat("[", 40) + strings.Repeat("]", 40), "nests more than 32 deep"},
		{strings.Repeat("[", 1<<20), "nests more than 32 deep"},
		{strings.Repeat(`{"raw":`, 1<<17), "nests more than 32 deep"},
	} {
		v := outer{own: 1}
		err := DecodeStrictly("op", []byte(tt.text), &v)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%.60s: %v", tt.text, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%.60s: got %v, want %q", tt.text, err, tt.want)
		case err != nil && stele.KindOf(err) != stele.Invalid:
			t.Errorf("%.60s: %v", tt.text, err)
		}
	}
}

// TestMerge has the examples of RFC 7396, appendix A.
func TestMerge(t *testing.T) {
	for _, tt := range []struct{ target, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		target, patch, want := tree(t, tt.target), tree(t, tt.patch), tree(t, tt.want)
		if got := merge(target, patch); !reflect.DeepEqual(got, want) {
			t.Errorf("%s with %s: got %v", tt.target, tt.patch, got)
		}
		if !reflect.DeepEqual(target, tree(t, tt.target)) || !reflect.DeepEqual(patch, tree(t, tt.patch)) {
			t.Errorf("%s with %s: changed what was given", tt.target, tt.patch)
		}
	}
}

func tree(t testing.TB, text string) any {
	t.Helper()
	v, err := ReadTree([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// FuzzMerge holds that any patch gives a document that can be read again, in which
// nothing is null that was not in a list, and that a patch does nothing the second time.
func FuzzMerge(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":null}`, `{"metadata":{"who":null,"what":"x"}}`, `{"targets":[{"url":null}]}`, `[null]`, `{"a":{"b":{"c":1}}}`, `{"a":1,"a":2}`, `"x"`, `{"metadata":[]}`, `1e999`} {
		f.Add([]byte(seed))
	}
	const before = `{"id":"ark:12345/x1","targets":[{"url":"https://example.org/"}],"metadata":{"who":"Ann","what":"x"},"version":3}`
	f.Fuzz(func(t *testing.T, text []byte) {
		patch, err := ReadTree(text)
		if err != nil {
			return
		}
		once, err := ApplyPatch([]byte(before), patch)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if len(once) > len(before)+6*len(text) {
			t.Errorf("%d bytes of a patch made %d", len(text), len(once))
		}
		twice, err := ApplyPatch(once, patch)
		if err != nil {
			t.Fatalf("%s: %s: %v", text, once, err)
		}
		if string(once) != string(twice) {
			t.Errorf("%s: %s, then %s", text, once, twice)
		}
	})
}

// FuzzDecodeStrictly holds that any body gives a document or an error of Kind Invalid, and that
// what was read is what encoding/json reads.
func FuzzDecodeStrictly(f *testing.F) {
	for _, seed := range []string{`{"name":"ann","groups":["a"],"admin":true}`, `{"name":1}`, `{"name":"a","name":"b"}`, `{"Name":"a"}`, `{"groups":[null]}`, `{"name":"\ud800"}`, "\xff", `[[[[`} {
		f.Add([]byte(seed))
	}
	type user struct {
		Name   string   `json:"name"`
		Groups []string `json:"groups,omitempty"`
		Admin  bool     `json:"admin,omitempty"`
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got, want user
		if err := DecodeStrictly("op", text, &got); err != nil {
			if stele.KindOf(err) != stele.Invalid {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if err := json.Unmarshal(text, &want); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %v, and encoding/json %v %v", text, got, want, err)
		}
	})
}
