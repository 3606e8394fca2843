package stele

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestWithheld(t *testing.T) {
	w := Withheld{Redacted: 5, Erased: 2, Disavowed: []Disavowal{{First: 6, Last: 8, Reason: "first"}, {First: 8, Last: 9, Reason: "second"}}}
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
	d := Disavowal{First: 2, Last: 3, Reason: "hijacked", At: at, By: "user:ana"}
	id := ID{"ark", "ark:12345/x5"}
	before := &Record{ID: id, Version: 7, Withheld: Withheld{Redacted: 2, Erased: 1, Disavowed: []Disavowal{d}}}
	for name, c := range map[string]struct {
		w    Withheld
		good bool
	}{
		"the same":              {before.Withheld, true},
		"more":                  {Withheld{Redacted: 8, Erased: 1, Disavowed: []Disavowal{d, {First: 7, Last: 7}}}, true},
		"local time":            {Withheld{Redacted: 2, Erased: 1, Disavowed: []Disavowal{{2, 3, "hijacked", at.In(time.FixedZone("x", 60)), "user:ana"}}}, true},
		"erased and forgotten":  {Withheld{Redacted: 8, Erased: 7}, true},
		"nothing":               {Withheld{}, false},
		"redaction forgotten":   {Withheld{Redacted: 1, Erased: 1, Disavowed: []Disavowal{d}}, false},
		"erasure forgotten":     {Withheld{Redacted: 2, Disavowed: []Disavowal{d}}, false},
		"disavowal forgotten":   {Withheld{Redacted: 2, Erased: 2}, false},
		"disavowal of less":     {Withheld{Redacted: 2, Erased: 1, Disavowed: []Disavowal{{2, 2, "hijacked", at, "user:ana"}}}, false},
		"disavowal, new reason": {Withheld{Redacted: 2, Erased: 1, Disavowed: []Disavowal{{2, 3, "?", at, "user:ana"}}}, false},
	} {
		next := &Record{ID: id, Version: 8, Withheld: c.w}
		if err := next.CheckFollows(before); (err == nil) != c.good || err != nil && KindOf(err) != Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, w := range map[string]Withheld{
		"a later redaction":       {Redacted: 9},
		"its own erasure":         {Erased: 8},
		"its own disavowal":       {Disavowed: []Disavowal{{First: 8, Last: 8}}},
		"disavowal of nothing":    {Disavowed: []Disavowal{{First: 0, Last: 1}}},
		"disavowal the wrong way": {Disavowed: []Disavowal{{First: 3, Last: 2}}},
	} {
		c := Commit{Records: []*Record{{ID: id, Version: 8, Withheld: w}}}
		if err := c.Check(); KindOf(err) != Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEntry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRecord.Draw(t, "record")
		once, err1 := r.Entry().MarshalBinary()
		twice, err2 := r.Entry().Entry().MarshalBinary()
		if err1 != nil || err2 != nil || !bytes.Equal(once, twice) {
			t.Fatalf("the entry of an entry differs: %x, %v; %x, %v", once, err1, twice, err2)
		}
		e := r.Entry()
		if e.Version != r.Version || e.By != r.By || !e.Modified.Equal(r.Modified) || len(e.Targets)+len(e.Metadata)+len(e.Values)+len(e.Aliases)+len(e.Readers) > 0 {
			t.Fatalf("the entry is %+v", e)
		}
	})
}

func TestTimeKeyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := goodTime.Draw(t, "a"), goodTime.Draw(t, "b")
		if got := bytes.Compare(AppendTimeKey(nil, a), AppendTimeKey(nil, b)); got != a.Compare(b) {
			t.Fatalf("%v and %v: %d", a, b, got)
		}
	})
}
