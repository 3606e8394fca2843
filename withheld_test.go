package stele_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/recordtest"
	"pgregory.net/rapid"
)

func TestWithheld(t *testing.T) {
	w := stele.Withheld{Redacted: 5, Erased: 2, Disavowed: []stele.Disavowal{{First: 6, Last: 8, Reason: "first"}, {First: 8, Last: 9, Reason: "second"}}}
	for version, want := range map[uint64]struct {
		hides  bool
		reason string
	}{1: {true, ""}, 2: {true, ""}, 4: {true, ""}, 5: {false, ""}, 6: {false, "first"}, 8: {false, "second"}, 9: {false, "second"}, 10: {false, ""}} {
		reason := ""
		if d := w.Disavowal(version); d != nil {
			reason = d.Reason
		}
		if w.Hides(version) != want.hides || reason != want.reason {
			t.Errorf("version %d: hidden %v, disavowed %q; want %v", version, w.Hides(version), reason, want)
		}
	}
}

func TestCheckFollows(t *testing.T) {
	at := time.Unix(9, 0).UTC()
	d := stele.Disavowal{First: 2, Last: 3, Reason: "hijacked", At: at, By: "user:ana"}
	id := stele.StoredID("ark", "ark:12345/x5")
	before := &stele.Record{ID: id, Version: 7, Withheld: stele.Withheld{Redacted: 2, Erased: 1, Disavowed: []stele.Disavowal{d}}}
	for name, c := range map[string]struct {
		w    stele.Withheld
		good bool
	}{
		"the same":              {before.Withheld, true},
		"more":                  {stele.Withheld{Redacted: 8, Erased: 1, Disavowed: []stele.Disavowal{d, {First: 7, Last: 7}}}, true},
		"local time":            {stele.Withheld{Redacted: 2, Erased: 1, Disavowed: []stele.Disavowal{{2, 3, "hijacked", at.In(time.FixedZone("x", 60)), "user:ana"}}}, true},
		"erased and forgotten":  {stele.Withheld{Redacted: 8, Erased: 7}, true},
		"nothing":               {stele.Withheld{}, false},
		"redaction forgotten":   {stele.Withheld{Redacted: 1, Erased: 1, Disavowed: []stele.Disavowal{d}}, false},
		"erasure forgotten":     {stele.Withheld{Redacted: 2, Disavowed: []stele.Disavowal{d}}, false},
		"disavowal forgotten":   {stele.Withheld{Redacted: 2, Erased: 2}, false},
		"disavowal of less":     {stele.Withheld{Redacted: 2, Erased: 1, Disavowed: []stele.Disavowal{{2, 2, "hijacked", at, "user:ana"}}}, false},
		"disavowal, new reason": {stele.Withheld{Redacted: 2, Erased: 1, Disavowed: []stele.Disavowal{{2, 3, "?", at, "user:ana"}}}, false},
	} {
		next := &stele.Record{ID: id, Version: 8, Withheld: c.w}
		if err := next.CheckFollows(before); (err == nil) != c.good || err != nil && stele.KindOf(err) != stele.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, w := range map[string]stele.Withheld{
		"a later redaction":       {Redacted: 9},
		"its own erasure":         {Erased: 8},
		"its own disavowal":       {Disavowed: []stele.Disavowal{{First: 8, Last: 8}}},
		"disavowal of nothing":    {Disavowed: []stele.Disavowal{{First: 0, Last: 1}}},
		"disavowal the wrong way": {Disavowed: []stele.Disavowal{{First: 3, Last: 2}}},
	} {
		c := stele.Commit{Records: []*stele.Record{{ID: id, Version: 8, Withheld: w}}}
		if err := c.Check(); stele.KindOf(err) != stele.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEntry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := recordtest.AnyRecord.Draw(t, "record")
		if once, twice := r.Entry(), r.Entry().Entry(); !once.Equal(twice) {
			t.Fatalf("the entry of an entry differs: %+v; %+v", *once, *twice)
		}
		e := r.Entry()
		if e.Version != r.Version || e.By != r.By || !e.Modified.Equal(r.Modified) || len(e.Targets)+len(e.Metadata)+len(e.Values)+len(e.Aliases)+len(e.Readers) > 0 {
			t.Fatalf("the entry is %+v", e)
		}
	})
}

func TestTimeKeyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := recordtest.GoodTime.Draw(t, "a"), recordtest.GoodTime.Draw(t, "b")
		if got := bytes.Compare(stele.AppendTimeKey(nil, a), stele.AppendTimeKey(nil, b)); got != a.Compare(b) {
			t.Fatalf("%v and %v: %d", a, b, got)
		}
	})
}
