package postgres

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

// TestKeys: a key fits in an index, tells names apart, and keeps their order except for
// names whose first maxKey bytes are equal.
func TestKeys(t *testing.T) {
	near := rapid.Custom(func(t *rapid.T) []byte {
		b := bytes.Repeat([]byte{rapid.SampledFrom([]byte{0, 'n', 0xff}).Draw(t, "filler")}, rapid.IntRange(maxKey-2, maxKey+3).Draw(t, "size"))
		return append(b, rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "end")...)
	})
	names := rapid.OneOf(near, rapid.SliceOfN(rapid.Byte(), 0, 5))
	rapid.Check(t, func(t *rapid.T) {
		a, b := names.Draw(t, "a"), names.Draw(t, "b")
		ka, kb := key(a), key(b)
		if len(ka) > maxKey+32 {
			t.Fatalf("a key has %d bytes", len(ka))
		}
		if bytes.Equal(a, b) != bytes.Equal(ka, kb) {
			t.Fatalf("%x and %x have the keys %x and %x", a, b, ka, kb)
		}
		isRun := len(a) > maxKey && len(b) > maxKey && bytes.Equal(a[:maxKey], b[:maxKey])
		if !isRun && bytes.Compare(a, b) != bytes.Compare(ka, kb) {
			t.Fatalf("%x and %x are ordered otherwise than their keys", a, b)
		}
		if !bytes.HasPrefix(a, b) && upper(b) != nil && bytes.Compare(a, b) > 0 && bytes.Compare(a, upper(b)) < 0 {
			t.Fatalf("%x is between %x and its upper bound", a, b)
		}
	})
}

// TestLongNames: names that are longer than a key come in the order of their texts, in
// every list, whole and from any cursor.
func TestLongNames(t *testing.T) {
	s := opened(t, migrated(t, server), Options{})
	head := strings.Repeat("n", maxKey-len("ark\x00"))
	var texts []string
	for i := range 150 { // more than a page
		texts = append(texts, fmt.Sprintf("%s%03d", head, (i*37)%150))
	}
	texts = append(texts, head, head[:len(head)-1], head+"0", head[:len(head)-1]+"m", head[:len(head)-1]+"o", head[:len(head)-1]+"oo", "a", "z",
		head[:len(head)-1]+"o"+strings.Repeat("x", 40), head+strings.Repeat("~", 500), head+strings.Repeat("~", 501))
	var list []*stele.Record
	namespaces := &stele.Commit{}
	for _, text := range texts {
		r := &stele.Record{ID: newID(t, "ark", text), State: stele.Active, Version: 1,
			Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/all"}}}
		list = append(list, r)
		namespaces.Namespaces = append(namespaces.Namespaces, &stele.Namespace{Scheme: "ark", Prefix: text, Version: 1})
		namespaces.Minters = append(namespaces.Minters, stele.MinterState{Name: "ark\x00" + text, After: []byte{}})
	}
	if _, err := s.Ingest(t.Context(), list, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), namespaces); err != nil {
		t.Fatal(err)
	}
	slices.Sort(texts)
	for i, cursor := range append([]string{"", head + "07", head + "0755"}, texts...) {
		if i > 3 && i%9 != 0 {
			continue
		}
		for _, prefix := range []string{"", head[:5], head, head + "0", head + "07", head + "~~"} {
			var got []string
			for r, err := range s.Scan(t.Context(), "ark", prefix, cursor) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, r.ID.String())
			}
			wantTexts(t, fmt.Sprintf("Scan of %d bytes after %d", len(prefix), len(cursor)), got, texts, prefix, cursor)
		}
		if cursor == "" {
			continue
		}
		var got []string
		for id, err := range s.Pointing(t.Context(), stele.Location{Host: "example.org"}, newID(t, "ark", cursor)) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, id.String())
		}
		wantTexts(t, fmt.Sprintf("Pointing after %d bytes", len(cursor)), got, texts, "", cursor)
	}
	var got, minters []string
	for n, err := range s.Namespaces(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, n.Prefix)
	}
	for m, err := range s.MinterStates(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		minters = append(minters, strings.TrimPrefix(m.Name, "ark\x00"))
	}
	wantTexts(t, "Namespaces", got, texts, "", "")
	wantTexts(t, "MinterStates", minters, texts, "", "")
	wantSound(t, s)
}

func wantTexts(t *testing.T, what string, got, all []string, prefix, after string) {
	t.Helper()
	var want []string
	for _, text := range all {
		if strings.HasPrefix(text, prefix) && text > after {
			want = append(want, text)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d texts, want %d in order", what, len(got), len(want))
	}
}
