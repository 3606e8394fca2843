package minting_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/registrar"
)

// TestNOIDNames: the names are those that package mint makes for an authority,
// wherever the shoulder stands, and in every scheme they are below the prefix.
func TestNOIDNames(t *testing.T) {
	f := newFixture(t)
	whole := must(mint.ParseTemplate("x5.reedeedk"))(t)
	for i, tt := range []struct{ prefix, template string }{{"ark:12345", "x5.reedeedk"}, {"ark:12346/x5", ".reedeedk"}} {
		key := f.space(tt.prefix, minter(stele.Minter{Kind: stele.MinterNOID, Template: tt.template, Seed: 42}), func(ns *stele.Namespace) { ns.Checked = true })
		naan := fmt.Sprint(12345 + i)
		for n, l := range must(f.Mint(f.admin, key, 50))(t) {
			name := must(whole.Name(naan, uint64(n), 42))(t)
			if want := "ark:" + naan + "/" + name; l.ID.String() != want {
				t.Errorf("name %d is %s, want %s", n, l.ID, want)
			}
		}
		must(f.MintAndRegister(f.admin, f.record("", "https://example.org/1"), key))(t)
	}
	for prefix, want := range map[string]string{
		"102.100.272/":               "102.100.272/A00",
		"102.100.272/B":              "102.100.272/B/A00",
		"urn:example":                "urn:example:a00",
		"urn:paradisec":              "urn:paradisec:a00",
		"urn:lsid:ubio.org:namebank": "urn:lsid:ubio.org:namebank:a00",
		"https://purl.org/net/":      "https://purl.org/net/a00",
		"https://purl.org/docs":      "https://purl.org/docs/a00",
	} {
		key := f.space(prefix, minter(noid("b.sdd")))
		want = strings.Replace(strings.Replace(want, "a00", "b00", 1), "A00", "B00", 1)
		if got := f.first(key); got != want {
			t.Errorf("%s: %s, want %s", prefix, got, want)
		}
	}
}

func TestCheckedNOIDInHandles(t *testing.T) {
	f := newFixture(t)
	key := f.space("102.100.272/", minter(noid(".zddk")), func(ns *stele.Namespace) { ns.Checked = true })
	for range 30 {
		rec := must(f.MintAndRegister(f.admin, f.record("", "https://example.org/1"), key))(t)
		if !mint.Checked(strings.ToLower(rec.ID.String())) {
			t.Errorf("%s has no check character", rec.ID)
		}
		bad := []byte(rec.ID.String())
		bad[len(bad)-2] = "1234567890"[bad[len(bad)-2]-'0']
		_, err := f.Register(f.admin, f.record(string(bad), "https://example.org/1"))
		want(t, err, stele.Invalid, "check character")
	}
}

func TestCounterIsDurable(t *testing.T) {
	f := newFixture(t, func(o *registrar.Options) { o.BlockSize = 10 })
	key := f.space("ark:12345/x5", minter(noid(".sddddd")))
	got := texts(must(f.Mint(f.admin, key, 3))(t))
	f.start() // a crash skips what is left of the block
	got = append(got, texts(must(f.Mint(f.admin, key, 2))(t))...)
	if diff := cmp.Diff([]string{"ark:12345/x500000", "ark:12345/x500001", "ark:12345/x500002", "ark:12345/x500010", "ark:12345/x500011"}, got); diff != "" {
		t.Error(diff)
	}
	if s := must(f.MinterStatus(f.admin, key))(t); s.Given != 20 || s.Total != 100_000 || s.Shut {
		t.Errorf("got %+v", s)
	}
}

// TestSmallTemplate: crashes do not exhaust it, and its end is reported.
func TestSmallTemplate(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345/x5", minter(noid(".sd")))
	for i := range 10 {
		if got, want := f.first(key), fmt.Sprintf("ark:12345/x5%d", i); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		f.start()
	}
	_, err := f.Mint(f.admin, key, 1)
	want(t, err, stele.Exhausted, "all 10 names")
	_, err = f.MintAndRegister(f.admin, f.record("", "https://example.org/1"), key)
	want(t, err, stele.Exhausted)
	// What was made before the end comes with the error.
	key = f.space("ark:12345/y5", minter(noid(".sd")))
	labels, err := f.Mint(f.admin, key, 12)
	want(t, err, stele.Exhausted)
	if len(labels) != 10 {
		t.Errorf("%d labels", len(labels))
	}
}

// TestTemplatesOverlap: a name is given once, by whichever template.
func TestTemplatesOverlap(t *testing.T) {
	f := newFixture(t, func(o *registrar.Options) { o.BlockSize = 1 })
	key := f.space("ark:12345/x5", minter(noid(".sdd")))
	seen := make(map[string]bool)
	take := func(key stele.NamespaceKey, n int) {
		t.Helper()
		labels, err := f.Mint(f.admin, key, n)
		if err != nil && stele.KindOf(err) != stele.Exhausted {
			t.Fatal(err)
		}
		for _, name := range texts(labels) {
			if seen[name] {
				t.Fatalf("%s was given twice", name)
			}
			seen[name] = true
		}
	}
	take(key, 30)
	for i, m := range []stele.Minter{noid(".zdd"), noid(".rdd"), {Kind: stele.MinterNOID, Template: ".rdd", Seed: 9}, noid(".sdk"), noid("0.sd"), noid(".sdd"), noid(".zd")} {
		must(f.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error { ns.Minter = m; return nil }))(t)
		take(key, 10)
		if i%2 == 0 {
			f.start()
		}
	}
	if len(seen) < 70 {
		t.Errorf("only %d names", len(seen))
	}
}

// TestTemplateAbove: names that a namespace gave out before a part of it became a
// namespace of its own are not given there again, and later it gives none there.
func TestTemplateAbove(t *testing.T) {
	f := newFixture(t)
	above := f.space("ark:12345", minter(noid("x5.sdd")))
	seen := texts(must(f.Mint(f.admin, above, 20))(t))
	below := f.space("ark:12345/x5", minter(noid(".sdd")))
	got := texts(must(f.Mint(f.admin, below, 20))(t))
	for _, name := range got {
		if slices.Contains(seen, name) {
			t.Errorf("%s was given twice", name)
		}
	}
	if got[0] != "ark:12345/x520" {
		t.Errorf("the first is %s", got[0])
	}
	labels, err := f.Mint(f.admin, above, 1)
	if err == nil || len(labels) > 0 {
		t.Errorf("%v fell into the namespace below", labels)
	}
}

func TestSkipCounter(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345/x5", owner("ann"), minter(noid(".zddd")))
	f.first(key)
	want(t, f.SkipCounter(as("ann"), key, 5000), stele.Forbidden)
	want(t, f.SkipCounter(f.admin, key, 5), stele.Conflict, "only goes ahead")
	if err := f.SkipCounter(f.admin, key, 5000); err != nil {
		t.Fatal(err)
	}
	if got := f.first(key); got != "ark:12345/x55000" {
		t.Errorf("got %s", got)
	}
	want(t, f.SkipCounter(f.admin, f.space("ark:99999"), 1), stele.Invalid)
}

func TestUUIDs(t *testing.T) {
	f := newFixture(t)
	for prefix, start := range map[string]string{"urn:uuid": "urn:uuid:", "urn:example": "urn:example:", "102.100.272/": "102.100.272/", "https://purl.org/net": "https://purl.org/net/"} {
		key := f.space(prefix, minter(stele.Minter{Kind: stele.MinterUUID}))
		names := texts(must(f.Mint(f.admin, key, 5000))(t))
		if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
			t.Errorf("%s: not in order, or not unique", prefix)
		}
		rest, ok := strings.CutPrefix(names[0], start)
		if !ok || len(rest) != 36 || rest[14] != '7' || !strings.ContainsRune("89abAB", rune(rest[19])) {
			t.Errorf("%s: %s is not a UUID of version 7", prefix, names[0])
		}
		f.jump(-1e15) // eleven days back
		if next := f.first(key); next <= names[len(names)-1] {
			t.Errorf("%s came after %s", next, names[len(names)-1])
		}
		f.jump(1e15)
	}
}
