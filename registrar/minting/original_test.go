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
	"github.com/stele-id/stele/registrar/minting"
)

// original is a minter in the order of the original program.
func original(template string, expand uint8) stele.Minter {
	return stele.Minter{Kind: stele.MinterNOID, Template: template, Order: stele.OrderNOID, Expand: expand}
}

// walk returns the names of a template in the original order, with what stands before them.
func walk(t testing.TB, before, naan, template string, expand, n int) (names []string, s *mint.Subcounters) {
	t.Helper()
	s = must(must(mint.ParseTemplate(template))(t).Subcounters(0, expand))(t)
	for range n {
		step := must(s.Next())(t)
		names = append(names, before+s.Template(step.Growth).Write(naan, step.Number))
	}
	return names, s
}

// TestOriginalOrder: the names are those of the original program, wherever the shoulder stands.
func TestOriginalOrder(t *testing.T) {
	for _, tt := range []struct{ prefix, template string }{{"ark:13030", "f5.reedeedk"}, {"ark:13030/f5", ".reedeedk"}} {
		f := newFixture(t)
		key := f.space(tt.prefix, minter(original(tt.template, 0)), func(ns *stele.Namespace) { ns.Checked = true })
		got := texts(must(f.Mint(f.admin, key, 3))(t))
		if diff := cmp.Diff([]string{"ark:13030/f54x54g11", "ark:13030/f5154dn7k", "ark:13030/f5wd3q12m"}, got); diff != "" {
			t.Errorf("%s: %s", tt.prefix, diff)
		}
		got = append(got, texts(must(f.Mint(f.admin, key, 2500))(t))...)
		if want, _ := walk(t, "ark:13030/", "13030", "f5.reedeedk", 0, 2503); !slices.Equal(got, want) {
			t.Errorf("%s: the order differs", tt.prefix)
		}
		rec := must(f.MintAndRegister(f.admin, f.record("", "https://example.org/1"), key))(t)
		if !mint.Checked(strings.TrimPrefix(rec.ID.String(), "ark:")) {
			t.Errorf("%s has a wrong check character", rec.ID)
		}
		if got := f.problems(); got != nil {
			t.Errorf("problems: %q", got)
		}
	}
}

// TestOriginalOrderGrows: the mask grows when its names are used up, and all names come once.
func TestOriginalOrderGrows(t *testing.T) {
	f := newFixture(t, func(o *registrar.Options) { o.BlockSize = 7 })
	key := f.space("ark:77913/r7", minter(original(".redk", 2)))
	var got []string
	for len(got) < 5000 {
		got = append(got, texts(must(f.Mint(f.admin, key, 100))(t))...)
	}
	if want, _ := walk(t, "ark:77913/", "77913", "r7.redk", 2, len(got)); !slices.Equal(got, want) {
		t.Error("the order differs")
	}
	// One that does not grow ends.
	key = f.space("ark:77913/s7", minter(original(".rd", 0)))
	labels, err := f.Mint(f.admin, key, 12)
	want(t, err, stele.Exhausted, "all 10 names")
	if len(labels) != 10 {
		t.Errorf("%d names", len(labels))
	}
}

// TestOriginalOrderIsDurable: a process that begins anew skips what is left of a block, and continues in
// the original order.
func TestOriginalOrderIsDurable(t *testing.T) {
	f := newFixture(t, func(o *registrar.Options) { o.BlockSize = 10 })
	key := f.space("ark:13030/f5", minter(original(".reedeedk", 0)))
	got := texts(must(f.Mint(f.admin, key, 3))(t))
	f.start()
	got = append(got, texts(must(f.Mint(f.admin, key, 12))(t))...)
	names, _ := walk(t, "ark:13030/", "13030", "f5.reedeedk", 0, 40)
	if diff := cmp.Diff(slices.Concat(names[:3], names[10:22]), got); diff != "" {
		t.Error(diff)
	}
	if err := f.SkipCounter(f.admin, key, 33); err != nil {
		t.Fatal(err)
	}
	if got := f.first(key); got != names[33] {
		t.Errorf("after the skip: %s, want %s", got, names[33])
	}
	want(t, f.SkipCounter(f.admin, key, 5), stele.Conflict, "only goes ahead")
	want(t, f.SkipCounter(f.admin, key, 1<<40), stele.Invalid, "at most at a time")
	if s := must(f.MinterStatus(f.admin, key))(t); s.Given != 43 || s.Total != 70728100 {
		t.Errorf("%+v", s)
	}
}

// TestOriginalOrderContinues: the state of a minter of the original program is taken over, shut, and
// opens with the name that it would have given next.
func TestOriginalOrderContinues(t *testing.T) {
	names, _ := walk(t, "ark:77913/", "77913", "r7.reedk", 3, 2192)
	_, there := walk(t, "", "", "r7.reedk", 3, 2191)
	f := newFixture(t)
	key := f.key("ark:77913/r7")
	m := original(".reedk", 3)
	at := minting.Progress{Given: 2191, Counters: string(there.AppendText(nil))}
	want(t, f.ShutTemplate(as("ann"), key, m, at), stele.Forbidden)
	for range 2 {
		if err := f.ShutTemplate(f.admin, key, m, at); err != nil {
			t.Fatal(err)
		}
	}
	f.space("ark:77913/r7", minter(m))
	_, err := f.Mint(f.admin, key, 1)
	want(t, err, stele.Conflict, "skip it ahead")
	if s := must(f.MinterStatus(f.admin, key))(t); s.Given != 2191 || !s.Shut {
		t.Errorf("%+v", s)
	}
	if err := f.SkipCounter(f.admin, key, 2191); err != nil {
		t.Fatal(err)
	}
	if got := f.first(key); got != names[2191] {
		t.Errorf("the next name is %s, want %s", got, names[2191])
	}
	// The same state again, or an older one, neither shuts it nor sets it back.
	if err := f.ShutTemplate(f.admin, key, m, at); err != nil {
		t.Fatal(err)
	}
	f.first(key)
	for _, bad := range []minting.Progress{{Given: 9000, Counters: at.Counters}, {Given: 9000, Counters: "1,2"}, {Given: 2191, Counters: "x"}} {
		want(t, f.ShutTemplate(f.admin, key, m, bad), stele.Invalid, "counter")
	}
	if got := f.problems(); got != nil {
		t.Errorf("problems: %q", got)
	}
}

// TestOriginalOrderOverlaps: a name is given once, in whichever order.
func TestOriginalOrderOverlaps(t *testing.T) {
	f := newFixture(t, func(o *registrar.Options) { o.BlockSize = 3 })
	key := f.space("ark:12345/x5", minter(original(".rddk", 1)))
	seen := make(map[string]bool)
	for i, m := range []stele.Minter{original(".rddk", 1), noid(".sddk"), original(".rddk", 0), noid(".rddk"), original(".rdddk", 0), {Kind: stele.MinterNOID, Template: ".rddk", Order: stele.OrderNOID, Seed: 9}, original(".rddk", 1)} {
		must(f.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error { ns.Minter = m; return nil }))(t)
		labels, err := f.Mint(f.admin, key, 40)
		if err != nil && stele.KindOf(err) != stele.Exhausted {
			t.Fatal(err)
		}
		for _, name := range texts(labels) {
			if seen[name] {
				t.Fatalf("%s was given twice, the second time by %+v", name, m)
			}
			seen[name] = true
		}
		if i%2 == 0 {
			f.start()
		}
	}
	if len(seen) < 150 {
		t.Errorf("%d names", len(seen))
	}
}

// TestOriginalOrderSettings: what the order needs is judged when the namespace is set.
func TestOriginalOrderSettings(t *testing.T) {
	f := newFixture(t)
	for i, tt := range []struct {
		m    stele.Minter
		want string
	}{
		{stele.Minter{Kind: stele.MinterNOID, Template: ".rddk", Order: "perl"}, "not an order"},
		{stele.Minter{Kind: stele.MinterNOID, Template: ".rddk", Expand: 3}, "only the order noid"},
		{original(".sddk", 3), "begins with r"},
		{stele.Minter{Kind: stele.MinterNOID, Template: ".rddk", Order: stele.OrderNOID, Seed: 1 << 20}, "at most 65536"},
		{original(".reeeeeeeeeeeee", 0), "fewer digits"},
		{stele.Minter{Kind: stele.MinterUUID, Order: stele.OrderNOID}, "means nothing"},
	} {
		key := f.key(fmt.Sprintf("urn:example%d", i))
		_, err := f.AddNamespace(f.admin, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Minter: tt.m})
		want(t, err, stele.Invalid, tt.want)
	}
	// A sequential template has one order; saying so changes nothing.
	key := f.space("ark:12345/x5", minter(noid(".sdd")))
	f.first(key)
	must(f.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error { ns.Minter.Order = stele.OrderNOID; return nil }))(t)
	if s := must(f.MinterStatus(f.admin, key))(t); s.Given == 0 {
		t.Errorf("%+v", s)
	}
	key = f.space("ark:12345/y5", minter(original(".reedeedk", 0)))
	if ns := must(f.Namespace(f.admin, key))(t); ns.Minter.Seed != 0 {
		t.Errorf("a seed was drawn: %+v", ns.Minter)
	}
	if got := f.SampleNames(f.admin, must(f.Namespace(f.admin, key))(t), 2); len(got) != 2 || got[0] != texts(must(f.Mint(f.admin, key, 1))(t))[0] {
		t.Errorf("samples: %q", got)
	}
}
