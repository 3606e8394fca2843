package document

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzSplitList holds SplitList against the standard library's reader of JSON: a list there
// has the same items here, and a text that is not a list here is not one there.
func FuzzSplitList(f *testing.F) {
	for _, seed := range []string{`[]`, `[ {"a":"],[\"\\"} , [1,[2]],"x" ]`, `[1,2`, `[{]}`, `[1]]`, `[,]`, `[1,]`, `["\u005d"]`, ` [1]	`, `[{"a":{}}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		texts, err := SplitList(data)
		var items []json.RawMessage
		jerr := json.Unmarshal(data, &items)
		if jerr == nil && bytes.TrimSpace(data)[0] == '[' {
			if err != nil || len(texts) != len(items) {
				t.Fatalf("%q has %d items, %v; want %d", data, len(texts), err, len(items))
			}
			for i := range items {
				if !bytes.Equal(bytes.TrimSpace(items[i]), texts[i]) {
					t.Fatalf("%q: item %d is %q, want %q", data, i, texts[i], items[i])
				}
			}
			return
		}
		// The reader of the items finds out what is not JSON; at least one of them is not.
		if err == nil {
			for _, text := range texts {
				if !json.Valid(text) {
					return
				}
			}
			t.Fatalf("%q is not a list, and has %q", data, texts)
		}
	})
}
