package lex

import "testing"

func TestHasMark(t *testing.T) {
	for path, want := range map[string]bool{
		"":                    false,
		"/":                   false,
		"ark:12345":           false, // no path begins so
		"/ark":                false,
		"/ark:":               true,
		"/ark:/12345/x":       true,
		"/ARK:12345/x":        true,
		"/a/b/Ark:12345":      true,
		"/ark%3A12345":        true,
		"/a//ark%3a12345":     true,
		"/ark%12345":          false,
		"/ark%2F:":            false,
		"/dark:12345":         false,
		"/arks:12345":         false,
		"/a%2Fark:12345":      false,
		"/a?x=/ark:12345":     true, // a path has no "?"; callers cut it off
		"/%61rk:12345/x":      false,
		"/12345/x/ark/y:/a:b": false,
	} {
		if got := HasMark(path, "ark:"); got != want {
			t.Errorf("HasMark(%q) = %v, want %v", path, got, want)
		}
	}
}
