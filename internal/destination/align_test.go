package destination_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/destination"
)

// handle makes a record of words: "1=url" is a value of type URL, "!1=url" one that the public may not
// read, "loc" one with locations, and ">url" a target.
func handle(words string) *stele.Record {
	rec := &stele.Record{Modified: time.Unix(1700000000, 0)}
	for word := range strings.FieldsSeq(words) {
		if url, ok := strings.CutPrefix(word, ">"); ok {
			rec.Targets = append(rec.Targets, stele.Target{Service: stele.N2L, URL: "https://example.org/" + url, Order: 100, Preference: 10})
			continue
		}
		if word == "loc" {
			rec.Values = append(rec.Values, stele.HandleValue{Index: 1000, Type: destination.TypeLoc, Data: []byte("<locations/>"), Permissions: stele.DefaultPermissions})
			continue
		}
		word, closed := strings.CutPrefix(word, "!")
		index, url, _ := strings.Cut(word, "=")
		v := stele.HandleValue{Index: uint32(index[0] - '0'), Type: "URL", Data: []byte("https://example.org/" + url), TTL: 60, Permissions: stele.DefaultPermissions}
		if url == "" {
			v.Data = []byte("nowhere")
		}
		if closed {
			v.Permissions = stele.AdminRead | stele.AdminWrite
		}
		rec.Values = append(rec.Values, v)
	}
	return rec
}

func words(rec *stele.Record) string {
	var list []string
	for _, v := range rec.Values {
		word := "loc"
		if v.Type == "URL" {
			word = string(rune('0'+v.Index)) + "=" + strings.TrimPrefix(strings.TrimPrefix(string(v.Data), "https://example.org/"), "nowhere")
		}
		if v.Permissions&stele.PublicRead == 0 {
			word = "!" + word
		}
		list = append(list, word)
	}
	for _, t := range rec.Targets {
		list = append(list, ">"+strings.TrimPrefix(t.URL, "https://example.org/"))
	}
	return strings.Join(list, " ")
}

// TestAlign: targets and values of type URL agree, whichever was changed.
func TestAlign(t *testing.T) {
	for name, c := range map[string]struct{ before, next, want string }{
		"a new handle":                 {"", "1=a 2=b", "1=a 2=b >a >b"},
		"a target of its own":          {"", "1=a >x", "1=a >x >a"},
		"the value changes":            {"1=a >a", "1=b >a", "1=b >b"},
		"the value goes":               {"1=a 2=b >a >b", "2=b >a >b", "2=b >b"},
		"the last value goes":          {"1=a >a", ">a", ">a"},
		"a value comes":                {"1=a >a", "1=a 2=b >a", "1=a 2=b >a >b"},
		"the target changes":           {"1=a >a", "1=a >b", "1=b >b"},
		"the target goes":              {"1=a 2=b >a >b", "1=a 2=b >a", "1=a >a"},
		"a target comes":               {"3=a >a", "3=a >a >b", "3=a 1=b >a >b"},
		"written with values alone":    {"1=a >a", "1=a", "1=a >a"},
		"for administrators only":      {"", "!1=a", "!1=a"},
		"it becomes theirs":            {"1=a >a", "!1=a >a", "!1=a >a"},
		"locations decide":             {"1=a >a", "1=a loc >a", "1=a loc >a"},
		"locations do so no more":      {"1=a loc", "1=a", "1=a >a"},
		"no URL":                       {"", "1=", "1="},
		"no values":                    {">a", ">b", ">b"},
		"a target beside stays":        {"1=a >x >a", "1=b >x >a", "1=b >x >b"},
		"both change":                  {"1=a >a", "1=b >a >c", "1=b >a >c >b"},
		"a version without values":     {"1=a >a", ">a >b", ">a >b"},
		"nothing changes":              {"1=a >a >x", "1=a >a >x", "1=a >a >x"},
		"the same place twice":         {"", "1=a 2=a", "1=a 2=a >a"},
		"a target beside changes only": {"1=a >a >x", "1=a >a >y", "1=a 2=y >a >y"},
	} {
		var before *stele.Record
		if c.before != "" {
			before = handle(c.before)
		}
		next := handle(c.next)
		destination.Align(before, next)
		if got := words(next); got != c.want {
			t.Errorf("%s: %q becomes %q, want %q", name, c.next, got, c.want)
		}
		again := *next
		destination.Align(next, &again)
		if words(&again) != words(next) {
			t.Errorf("%s: aligned again: %q, want %q", name, words(&again), words(next))
		}
	}
}

// TestFollow: targets follow what a client of the Handle System changes in the values, and keep their place.
func TestFollow(t *testing.T) {
	for name, c := range map[string]struct{ before, after, targets, want string }{
		"a value comes":           {"1=a", "1=a 2=b", ">a", ">a >b"},
		"the value changes":       {"1=a", "1=b", ">a", ">b"},
		"the first of two":        {"1=a 2=c", "1=b 2=c", ">a >c", ">b >c"},
		"the value goes":          {"1=a 2=b", "2=b", ">a >b", ">b"},
		"the last value goes":     {"1=a", "", ">a", ""},
		"it becomes theirs":       {"1=a", "!1=a", ">a", ""},
		"locations decide":        {"1=a", "1=a loc", ">a", ""},
		"a target beside stays":   {"1=a", "1=b", ">x >a", ">x >b"},
		"two values of one place": {"1=a 2=a", "1=b 2=a", ">a", ">a >b"},
		"nothing changes":         {"1=a", "1=a", ">a >x", ">a >x"},
	} {
		next := handle(c.after + " " + c.targets)
		destination.Follow(handle(c.before).Values, next.Values, next)
		next.Values = nil
		if got := words(next); got != c.want {
			t.Errorf("%s: the targets %q become %q, want %q", name, c.targets, got, c.want)
		}
	}
	kept := handle("1=a 2=c >a >c")
	kept.Targets[0].Language, kept.Targets[0].Order = "pt", 7
	destination.Follow(kept.Values, handle("1=b 2=c").Values, kept)
	if first := kept.Targets[0]; first.URL != "https://example.org/b" || first.Language != "pt" || first.Order != 7 {
		t.Errorf("the target is %+v", first)
	}
}

// TestAlignKeeps: the value whose place changes keeps its index and TTL, and gets a new timestamp;
// targets are in the order of the values, with their TTL.
func TestAlignKeeps(t *testing.T) {
	before := handle("3=a >a")
	next := handle("3=a >b")
	destination.Align(before, next)
	if v := next.Values[0]; v.Index != 3 || v.TTL != 60 || v.Timestamp != 1700000000 {
		t.Errorf("the value is %+v", v)
	}
	first := handle("1=a 2=b")
	destination.Align(nil, first)
	if a, b := first.Targets[0], first.Targets[1]; a.Order >= b.Order || a.TTL != 60 {
		t.Errorf("the targets are %+v", first.Targets)
	}
}
