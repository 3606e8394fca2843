package api

import (
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

func TestConditions(t *testing.T) {
	for _, tt := range []struct {
		match, none string // "-": not there
		version     uint64
		holds, bad  bool
	}{
		{"-", "-", 3, true, false},
		{`"v3"`, "-", 3, true, false},
		{`"v2"`, "-", 3, false, false},
		{`"v2","v3"`, "-", 3, true, false},
		{` ,, "v2" ,	"v3",`, "-", 3, true, false},
		{`*`, "-", 3, true, false},
		{` * `, "-", 3, true, false},
		{`W/"v3"`, "-", 3, false, false},
		{`W/"v3", "v3"`, "-", 3, true, false},
		{`"a,b", "v3"`, "-", 3, true, false},
		{`"v3, x"`, "-", 3, false, true},
		{``, "-", 3, false, false},
		{`v3`, "-", 3, false, true},
		{`"v3`, "-", 3, false, true},
		{`"v3" "v4"`, "-", 3, false, true},
		{`w/"v3"`, "-", 3, false, true},
		{`*, "v3"`, "-", 3, false, true},
		{"-", `"v3"`, 3, false, false},
		{"-", `W/"v3"`, 3, false, false},
		{"-", `"v2"`, 3, true, false},
		{"-", `*`, 3, false, false},
		{`"v3"`, `"v2"`, 3, true, false},
		{`"v3"`, `"v3"`, 3, false, false},
		{`"v3"`, "-", 30, false, false},
	} {
		c := &call{heads: make(map[string]string)}
		if tt.match != "-" {
			c.heads[ifMatch.name] = tt.match
		}
		if tt.none != "-" {
			c.heads[ifNoneMatch.name] = tt.none
		}
		on, err := c.conditions()
		if (err != nil) != tt.bad {
			t.Errorf("%q %q: %v", tt.match, tt.none, err)
		}
		if err != nil {
			continue
		}
		if err := on.hold("", stele.ID{}, tt.version); (err == nil) != tt.holds {
			t.Errorf("%q %q of version %d: %v", tt.match, tt.none, tt.version, err)
		}
	}
}

// FuzzTags holds that any header gives a list of tags or an error, and that each tag
// that was read stands in the header.
func FuzzTags(f *testing.F) {
	for _, seed := range []string{"*", `"v1"`, `W/"v1", "v2"`, `"`, `,,`, `""`, `"a,b"`, "\x00", `W/`, `* *`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		list, err := readTags("If-Match", value)
		if err != nil {
			if stele.KindOf(err) != stele.Invalid {
				t.Errorf("%q: %v", value, err)
			}
			return
		}
		for _, tag := range append(list.strong, list.weak...) {
			if !strings.Contains(value, tag) {
				t.Errorf("%q has no %s", value, tag)
			}
		}
		if list.any && strings.Trim(value, " \t") != "*" {
			t.Errorf("%q is not a star", value)
		}
	})
}
