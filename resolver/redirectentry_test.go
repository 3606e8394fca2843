package resolver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

func newID(t interface{ Fatal(...any) }, scheme, text string) stele.ID {
	id, err := stele.NewID(scheme, text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// drawID draws a name. Some begin alike, and some are odd.
func drawID(t *rapid.T, label string) stele.ID {
	scheme := rapid.SampledFrom([]string{"ark", "urn", "hdl", "purl"}).Draw(t, label+" scheme")
	begin := rapid.SampledFrom([]string{"ark:12345/", "urn:example:", "urn:", "https://purl.org/", ""}).Draw(t, label+" begin")
	return newID(t, scheme, begin+rapid.StringMatching(`[a-z0-9:/é%-]{1,20}`).Draw(t, label))
}

func drawTarget(t *rapid.T) stele.Target {
	number := rapid.Uint32Range(0, 3)
	return stele.Target{
		Service:    rapid.SampledFrom([]stele.Service{stele.N2L, stele.N2L, stele.N2C, stele.N2P}).Draw(t, "service"),
		URL:        rapid.SampledFrom([]string{"https://example.org/a/b/", "https://example.org", "ftp://", ""}).Draw(t, "url") + rapid.StringN(0, 30, 60).Draw(t, "path"),
		Type:       rapid.SampledFrom([]string{"", "text/html", "text/" + strings.Repeat("x", 200)}).Draw(t, "type"),
		Language:   rapid.SampledFrom([]string{"", "pt-BR"}).Draw(t, "language"),
		Order:      rapid.SampledFrom([]uint16{100, 0, 65535}).Draw(t, "order"),
		Preference: rapid.SampledFrom([]uint16{10, 0, 65535}).Draw(t, "preference"),
		TTL:        number.Draw(t, "ttl") * 1_000_000_000,
		Status:     rapid.SampledFrom([]int{0, 301, 410}).Draw(t, "status"),
		Partial:    rapid.Bool().Draw(t, "partial"),
	}
}

// An entry has all that a redirect needs, and no more bytes than it may.
func TestRedirectEntry(t *testing.T) {
	for _, many := range []bool{false, true} {
		t.Run(fmt.Sprintf("many words %v", many), func(t *testing.T) {
			var w dictionary
			if many {
				for i := range maxWords {
					w.number(word{"", fmt.Sprintf("https://%d.example.org/", i)})
				}
			}
			rapid.Check(t, func(t *rapid.T) {
				r := &stele.Record{
					ID: drawID(t, "id"), Aliases: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) stele.ID { return drawID(t, "alias") }), 0, 3).Draw(t, "aliases"),
					State: stele.Active, Version: rapid.Uint64Min(1).Draw(t, "version"),
					Targets:  rapid.SliceOfN(rapid.Custom(drawTarget), 0, 4).Draw(t, "targets"),
					Metadata: stele.Metadata{stele.Who: "Ada"}, Persistence: stele.Persistence{Level: stele.Permanent}, Created: noon, Modified: noon, By: "user:ada",
				}
				spellings := []string{"", "another:spelling", "https://doi.org/" + strings.ToUpper(r.ID.String()), "https://n2t.net/" + r.ID.String()}
				r.Spelling = rapid.SampledFrom(spellings).Draw(t, "spelling")
				name := rapid.SampledFrom(append(r.Aliases, r.ID)).Draw(t, "name")
				want := &stele.Record{ID: r.ID, State: stele.Active, Version: r.Version}
				if r.Spelling == spellings[2] && strings.ToUpper(r.ID.String()) != r.ID.String() {
					want.Spelling = strings.ToUpper(r.ID.String())
				}
				if len(r.Aliases) > 0 {
					want.Aliases = r.Aliases
				}
				for _, target := range r.Targets {
					if target.Service == stele.N2L {
						want.Targets = append(want.Targets, target)
					}
				}
				entry, ok := w.appendRedirect([]byte("before"), name, r)
				if len(want.Targets) == 0 && ok || ok && len(entry) > len("before")+maxRedirect {
					t.Fatalf("%d bytes", len(entry))
				}
				if !ok {
					if len(want.Targets) > 0 && len(entry) <= len("before")+maxRedirect {
						t.Fatal("it has no entry")
					}
					return
				}
				d := w.reader(append(entry[len("before"):], "behind"...))
				if other := drawID(t, "other"); other != name && d.isNamed(other) {
					t.Fatalf("it is taken for that of %s", other)
				}
				if d = w.reader(entry[len("before"):]); !d.isNamed(name) {
					t.Fatal("it has another name")
				}
				if diff := cmp.Diff(want, d.record(name), cmp.AllowUnexported(stele.ID{})); diff != "" {
					t.Fatal(diff)
				}
				if len(d.rest) > 0 {
					t.Fatalf("%q is left", d.rest)
				}
			})
			if n := len(*w.list.Load()); n > maxWords+8 {
				t.Errorf("%d words", n)
			}
		})
	}
}

// A record that is not public, or that takes more than a redirect, has no entry.
func TestNoRedirect(t *testing.T) {
	usual := func() *stele.Record {
		return &stele.Record{ID: newID(t, "ark", "ark:12345/x1"), State: stele.Active, Version: 1, Targets: []stele.Target{page("https://example.org/1")}}
	}
	for what, change := range map[string]func(r *stele.Record){
		"reserved":    func(r *stele.Record) { r.State = stele.Reserved },
		"withdrawn":   func(r *stele.Record) { r.State = stele.Withdrawn },
		"private":     func(r *stele.Record) { r.Readers = []string{"user:ada"} },
		"redacted":    func(r *stele.Record) { r.Redacted = true },
		"with values": func(r *stele.Record) { r.Values = []stele.HandleValue{{Index: 1, Type: "URL"}} },
		"no target":   func(r *stele.Record) { r.Targets[0].Service = stele.N2C },
		"long":        func(r *stele.Record) { r.Targets[0].URL += strings.Repeat("x", maxRedirect) },
	} {
		var w dictionary
		r := usual()
		if _, ok := w.appendRedirect(nil, r.ID, r); !ok {
			t.Fatal("the usual record has none")
		}
		change(r)
		if entry, ok := w.appendRedirect(nil, r.ID, r); ok {
			t.Errorf("%s: %q", what, entry)
		}
	}
}

func TestWordLengths(t *testing.T) {
	for text, want := range map[string]string{
		"ark:12345/x1": "ark:12345/", "20.500.12345/x/y": "20.500.12345/", "urn:paradisec:AB1:001": "urn:paradisec:",
		"urn:x": "urn:", "x": "", "": "", strings.Repeat("x", 200) + "/": "",
	} {
		if got := text[:nameWord(text)]; got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
	for text, want := range map[string]string{
		"https://example.org/items/1/view": "https://example.org/items/", "https://example.org/1": "https://example.org/", "https://example.org": "https://",
		"": "", "x": "", "https://example.org/" + strings.Repeat("x", 200) + "/": "",
	} {
		if got := text[:urlWord(text)]; got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// A record of an entry with one target is two allocations: the record with room for the target, and the URL.
func TestRedirectEntryAllocations(t *testing.T) {
	var w dictionary
	id := newID(t, "ark", "ark:12345/x1")
	entry, ok := w.appendRedirect(nil, id, &stele.Record{ID: id, State: stele.Active, Version: 1, Targets: []stele.Target{page("https://archive.example.org/items/1/view")}})
	if !ok {
		t.Fatal("there is no entry")
	}
	if got := testing.AllocsPerRun(100, func() {
		d := w.reader(entry)
		if !d.isNamed(id) || len(d.record(id).Targets) != 1 {
			t.Fatal("the entry is of another record")
		}
	}); got > 2 {
		t.Errorf("%v allocations", got)
	}
}
