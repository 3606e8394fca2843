package document

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/recordtest"
)

// FuzzTree holds that what is read is what encoding/json reads, and that the members of an
// object are its tree.
func FuzzTree(f *testing.F) {
	for _, text := range append(jsonTexts, recordtest.Typical, strings.Repeat("[", 40), `{"a":1,"a":2}`, `{"a":{"b":[{"c":null,"c":null}]}}`) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		tree, err := ReadTree(text)
		if err != nil {
			if _, ok := err.(stele.Problem); !ok {
				t.Fatalf("%T", err)
			}
			if _, err := ReadObject(text); err == nil {
				t.Fatalf("%s is an object and no tree", text)
			}
			return
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		var peer any
		if err := d.Decode(&peer); err != nil || !reflect.DeepEqual(tree, peer) {
			t.Fatalf("%s: %v, encoding/json has %v, %v", text, tree, peer, err)
		}
		checkAppendTree(t, tree)
		object, isObject := tree.(map[string]any)
		members, err := ReadObject(text)
		if isObject != (err == nil) || isObject && len(members) != len(object) {
			t.Fatalf("%s: %v, %v", text, members, err)
		}
		for name, member := range members {
			if one, err := ReadTree(member); err != nil || !reflect.DeepEqual(one, object[name]) {
				t.Fatalf("%s: %s is %s", text, name, member)
			}
		}
	})
}

// checkAppendTree holds that a tree is written as encoding/json writes it, except what only matters in HTML and JavaScript.
func checkAppendTree(t *testing.T, tree any) {
	t.Helper()
	var peer bytes.Buffer
	e := json.NewEncoder(&peer)
	e.SetEscapeHTML(false)
	if err := e.Encode(tree); err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029").Replace(strings.TrimSuffix(peer.String(), "\n")) // an escaped backslash begins no escape
	if got := string(AppendTree([]byte("x"), tree)); got != "x"+want {
		t.Fatalf("%s is written, encoding/json writes %s", got, want)
	}
}

func TestReadTreeProblems(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,"a":2}`:                   "a: is given twice; keep one",
		`{"a":[{"b":1},{"b":1,"b":1}]}`:   "a[1].b: is given twice; keep one",
		`{"a":"\ud800"}`:                  "half",
		"{\"a\":\"\xff\"}":                "not UTF-8",
		`{} {}`:                           "something follows",
		`{"a":}`:                          "a value should stand here",
		strings.Repeat("[", maxNesting+2): "nests more than 32 deep",
	} {
		if _, err := ReadTree([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
