package document

import (
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stele-id/stele/internal/recordtest"
	"pgregory.net/rapid"
)

// texts are JSON and what resembles it: the corners of RFC 8259's grammar.
var jsonTexts = []string{
	`{}`, ` { } `, "\t\r\n{\n}\n", `[]`, `[ ]`, `[[],{}]`, `null`, `true`, `false`, `""`, `"a"`, `0`, `-0`, `-1`, `1.5`, `1e5`, `1E+5`, `1e-05`, `0.0`,
	`18446744073709551615`, `18446744073709551616`, `1234567890123456789012345678901234567890`,
	`"\"\\\/\b\f\n\r\t"`, `"\u0041\u00e9\u4e2d"`, `"\ud83d\ude00"`, `"\uD83D\uDE00x"`, `"é中😀"`, `"\u0000"`, `"\u2028"`, "\"\u2028\x7f\"",
	`"\ud800"`, `"\udc00"`, `"\ud800x"`, `"\ud800\ud800"`, `"\ud800\u0041"`, `"\ud800\udc00\ud800"`, `"\udc00\ud800"`, `"\ud800\n"`,
	`{"a":1,"b":[1,2,{"c":null}]}`, `{"a":1,"a":2}`, `{"":0}`, `{"a" : 1 , "b" : 2}`,
	// not JSON
	``, ` `, `{`, `}`, `[`, `]`, `{]`, `[}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1 "b":2}`, `{a:1}`, `{'a':1}`, `[1,]`, `[,]`, `[1 2]`, `[1,,2]`,
	`tru`, `trux`, `truee`, `nul`, `fals`, `True`, `NaN`, `Infinity`, `01`, `-01`, `00`, `-`, `+1`, `.5`, `1.`, `1.e5`, `1e`, `1e+`, `0x10`, `1_000`, `--1`,
	`"`, `"a`, `"\`, `"\x"`, `"\u"`, `"\u12"`, `"\u12g4"`, `"\ud800\u"`, `"\ud800\u12"`, "\"\n\"", "\"\x00\"", "\"\x1f\"", `"a" "b"`, `{} {}`, `{}x`, "{}\x00", "\x00", "\ufeff{}",
	`/* */ {}`, `{} // a`, "\u00a0{}", "\v{}", `"long text before the fault` + "\x01" + `"`, strings.Repeat("[", 100), strings.Repeat("[", 20) + strings.Repeat("]", 20),
}

// anyValue reads a value with the reader's own means, as encoding/json would into
// an any. It returns how deep it nests.
func anyValue(j *jsonReader) (v any, depth int) {
	switch c := j.peek(); {
	case c == '{':
		m := make(map[string]any)
		j.members(func(name string) {
			v, n := anyValue(j)
			m[name], depth = v, max(depth, n)
		})
		return m, depth + 1
	case c == '[':
		list := []any{}
		j.array(1<<20, func(int) {
			v, n := anyValue(j)
			list, depth = append(list, v), max(depth, n)
		})
		return list, depth + 1
	case c == '"':
		s, _ := j.string()
		return s, 0
	case c == '-' || isDigit(c):
		return json.Number(j.number()), 0
	case c == 't', c == 'f':
		return j.bool(), 0
	default:
		j.skip(0)
		return nil, 0
	}
}

// checkJSON holds the reader against encoding/json on any text.
func checkJSON(t *testing.T, text string) {
	var j jsonReader
	j.start(text)
	got, depth := anyValue(&j)
	j.end()

	var want any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	err := d.Decode(&want)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = io.ErrUnexpectedEOF
		}
	}
	valid := err == nil && utf8.ValidString(text)
	if valid == j.broken {
		t.Fatalf("%q: read as JSON %t (%v), by encoding/json: %v", text, !j.broken, j.faults.Problems(), err)
	}
	if j.broken != (len(j.faults.Problems()) > 0 && strings.Contains(j.faults.Problems()[len(j.faults.Problems())-1].Error(), "this is not JSON at byte ")) {
		t.Fatalf("%q: broken %t, but %v", text, j.broken, j.faults.Problems())
	}
	if valid && !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: %s", text, cmp.Diff(want, got))
	}

	var over jsonReader
	over.start(text)
	over.skip(0)
	over.end()
	if j.broken && !over.broken || !j.broken && over.broken && depth <= maxNesting {
		t.Fatalf("%q is passed over %t, and read %t", text, !over.broken, !j.broken)
	}
	if !j.broken && !over.broken && depth > maxNesting+1 {
		t.Fatalf("a value that nests %d deep is passed over", depth)
	}
}

func TestJSONReader(t *testing.T) {
	for _, text := range jsonTexts {
		checkJSON(t, text)
	}
	for i := range 256 {
		for _, frame := range []string{"%", `"%"`, `"1234567%"`, `"12345678%901234567890"`, `{"%":0}`, `[1%2]`, `"\%"`, `"\u00%0"`, `-%`} {
			checkJSON(t, strings.Replace(frame, "%", string([]byte{byte(i)}), 1))
		}
	}
}

func FuzzJSON(f *testing.F) {
	for _, text := range jsonTexts {
		f.Add(text)
	}
	f.Add(recordtest.Typical)
	f.Fuzz(checkJSON)
}

// What is written is read back, by the reader and by encoding/json.
func TestJSONString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := recordtest.BytesText.Draw(t, "text")
		var w jsonWriter
		w.string(s)
		want := strings.ToValidUTF8(s, "\ufffd")
		if utf8.RuneCountInString(s) != utf8.RuneCountInString(want) {
			want = string([]rune(s)) // a replacement for each byte
		}
		var theirs string
		if err := json.Unmarshal(w.b, &theirs); err != nil || theirs != want {
			t.Fatalf("%q is written as %s: %q, %v", s, w.b, theirs, err)
		}
		var j jsonReader
		j.start(string(w.b))
		ours, ok := j.string()
		if j.end(); !ok || ours != want || len(j.faults.Problems()) > 0 {
			t.Fatalf("%q is written as %s: %q, %v", s, w.b, ours, j.faults.Problems())
		}
	})
}

func TestOrdinary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOfN(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("abc\"\\\x1f !\x7f\x80\xa2\xdc"))), 0, 40).Draw(t, "text"))
		want := strings.IndexFunc(s, func(r rune) bool { return r == '"' || r == '\\' || r < ' ' })
		if want < 0 {
			want = len(s)
		}
		if got := ordinary(s); got != want {
			t.Fatalf("%q: %d, want %d", s, got, want)
		}
		want = 0
		for want < len(s) {
			r, n := utf8.DecodeRuneInString(s[want:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			want += n
		}
		if got := invalidAt(s); got != want {
			t.Fatalf("%q is UTF-8 up to %d, want %d", s, got, want)
		}
	})
}

// Faults name the place.
func TestJSONPlaces(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":[0,{"b c":01}]}`: `a[1]["b c"]: this is not JSON at byte 15: a number does not begin with 0; remove it, or write a string`,
		`{"a":1,}`:             `this is not JSON at byte 7: a comma before the end; remove it`,
		`[1`:                   `this is not JSON at byte 2: the text ends too early; a comma or ']' should follow`,
		`{"x":"\q"}`:           `x: this is not JSON at byte 7: one of "\/bfnrtu after the backslash should stand here, not 'q'`,
		"[\"a\nb\"]":           `[0]: this is not JSON at byte 3: a control character U+000A in a string; write \u000a`,
		"{}\xff":               `this is not JSON at byte 2: byte 0xFF is not UTF-8; save the text as UTF-8`,
		"\ufeff{}":             `this is not JSON at byte 0: a byte order mark, which JSON must not have; remove it`,
		`{} {}`:                `this is not JSON at byte 3: something follows the object's end; write one object alone`,
		`["\udc00"]`:           `[0]: \udc00 alone is half a character; write both halves, or the character itself`,
		`{а:1}`:                `this is not JSON at byte 1: a name in quotation marks should stand here, not 'а' (U+0430, which looks like 'a')`,
	} {
		var j jsonReader
		j.start(text)
		anyValue(&j)
		j.end()
		if got := j.faults.Problems().Error(); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", text, got, want)
		}
	}
}
