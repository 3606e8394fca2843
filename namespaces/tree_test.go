package namespaces

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/scheme/all"
)

func newSchemes(t *testing.T) *stele.Schemes {
	t.Helper()
	schemes, err := all.New(all.Config{Now: func() time.Time { return time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC) }, PURLHosts: []string{"purl.org", "purl.obolibrary.org"}})
	if err != nil {
		t.Fatal(err)
	}
	return schemes
}

// plant makes a tree of prefixes.
func plant(t *testing.T, schemes *stele.Schemes, prefixes ...string) *Tree {
	t.Helper()
	tree := New(schemes)
	for _, prefix := range prefixes {
		key, err := ParsePrefix(schemes, prefix)
		if err != nil {
			t.Fatal(err)
		}
		if errs := tree.Add(&stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}); errs != nil {
			t.Fatal(errs)
		}
	}
	return tree
}

func parse(t *testing.T, schemes *stele.Schemes, text string) stele.ID {
	t.Helper()
	id, err := schemes.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// ancestors returns the keys of the namespaces of a name, with a space between them.
func ancestors(tree *Tree, id stele.ID) string {
	var keys []string
	for _, ns := range tree.AncestorsOf(id) {
		keys = append(keys, ns.Key().String())
	}
	return strings.Join(keys, " ")
}

// words returns the words of a file, without lines that begin with a number sign.
func words(t *testing.T, name string) (list []string) {
	t.Helper()
	table, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		if !strings.HasPrefix(line, "#") {
			list = append(list, strings.Fields(line)...)
		}
	}
	return list
}

// The shoulders of ARKs that are in use end in a digit, in a letter, or inside a
// qualifier. Some NAANs have several, and names without one besides.
func TestShoulders(t *testing.T) {
	schemes := newSchemes(t)
	prefixes := []string{"ark:"}
	odd := 0
	for _, shoulder := range words(t, "testdata/shoulders.txt") {
		prefixes = append(prefixes, "ark:"+shoulder)
		if last := shoulder[len(shoulder)-1]; strings.Contains(shoulder, "/") && (last < '0' || last > '9') {
			odd++
		}
	}
	if len(prefixes) < 290 || odd < 12 {
		t.Fatalf("%d prefixes, and %d of them without a digit", len(prefixes), odd)
	}
	tree := plant(t, schemes, prefixes...)
	for _, prefix := range prefixes[1:] {
		start := prefix
		if !strings.Contains(prefix, "/") {
			start += "/"
		}
		for _, rest := range []string{"4xz32", "bcdf", "2/g5.v1", "7"} {
			base, qualifiers, _ := strings.Cut(rest, "/")
			name := start + base
			// Where all names of a shoulder have a check character it is right.
			name += string(mint.CheckChar(strings.TrimPrefix(strings.SplitN(name, ".", 2)[0], "ark:")))
			if qualifiers != "" {
				name += "/" + qualifiers
			}
			// The prefixes of which the name begins with, the longest first.
			var want []string
			for _, p := range prefixes {
				if strings.HasPrefix(name, p) && (strings.Contains(p, "/") || p == "ark:" || strings.HasPrefix(name, p+"/")) {
					want = append(want, p)
				}
			}
			slices.SortFunc(want, func(a, b string) int { return len(b) - len(a) })
			if got := ancestors(tree, parse(t, schemes, name)); got != strings.Join(want, " ") || want[0] != prefix {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	}
}

// The idspaces of the OBO Foundry end inside a part of the path, and some begin as others
// do.
func TestIdspaces(t *testing.T) {
	schemes := newSchemes(t)
	const obo = "https://purl.obolibrary.org/obo/"
	prefixes := []string{"purl:", obo}
	for _, idspace := range words(t, "testdata/obo.txt") {
		prefixes = append(prefixes, obo+idspace+"_")
	}
	tree := plant(t, schemes, prefixes...)
	if len(prefixes) < 240 {
		t.Fatalf("%d prefixes", len(prefixes))
	}
	for _, prefix := range prefixes[2:] {
		for _, rest := range []string{"0000001", "1", "x/y"} {
			if got, want := ancestors(tree, parse(t, schemes, strings.Replace(prefix, "https:", "http:", 1)+rest)), prefix+" "+obo+" purl:"; got != want {
				t.Errorf("%s%s: %s, want %s", prefix, rest, got, want)
			}
		}
		if got, want := ancestors(tree, parse(t, schemes, strings.TrimSuffix(prefix, "_")+"/1")), obo+" purl:"; got != want {
			t.Errorf("%s/1: %s, want %s", strings.TrimSuffix(prefix, "_"), got, want)
		}
	}
}

func TestOf(t *testing.T) {
	schemes := newSchemes(t)
	tree := plant(t, schemes, "ark:", "ark:13030", "ark:13030/q", "ark:13030/qt", "ark:13030/qt8/x", "urn:par", "urn:paradisec:sds", "20.500.12345/", "20.500.12345/A")
	for text, want := range map[string]string{
		"ark:13030/qt8n91c81t": "ark:13030/qt ark:13030/q ark:13030 ark:",
		"ark:13030/qt8/x1":     "ark:13030/qt8/x ark:13030/qt ark:13030/q ark:13030 ark:",
		"ark:13030/qt":         "ark:13030/qt ark:13030/q ark:13030 ark:",
		"ark:13030/qs":         "ark:13030/q ark:13030 ark:",
		"ark:13030/r":          "ark:13030 ark:",
		"ark:130300/qt1":       "ark:",
		"urn:paradisec:sds:5":  "urn:paradisec:sds",
		"urn:paradisec:sdsx:5": "",
		"urn:par:adisec":       "urn:par",
		"20.500.12345/AB":      "20.500.12345/",
		"20.500.12345/A/B":     "20.500.12345/A 20.500.12345/",
	} {
		if got := ancestors(tree, parse(t, schemes, text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for prefix, want := range map[string]bool{"ark:13030/qt": false, "ark:13030/qt8/x": true, "urn:par": true, "20.500.12345/": false} {
		key, _ := ParsePrefix(schemes, prefix)
		if got := tree.IsLeaf(key); got != want {
			t.Errorf("%s is a leaf: %v", prefix, got)
		}
	}
}

// A server's IBIps do not begin as its repository names do, and belong to it all the same.
func TestClaims(t *testing.T) {
	schemes := newSchemes(t)
	tree := plant(t, schemes, "ibi:", "sid.inpe.br")
	server := &stele.Namespace{Scheme: "ibi", Prefix: "sid.inpe.br/mtc-m18", Minter: stele.Minter{
		Kind: stele.MinterIBI, Host: "mtc-m18.sid.inpe.br", Port: 80, IP: "150.163.34.243", IPPort: 80, Granularity: "1s"}}
	with, err := tree.With(server)
	if err != nil {
		t.Fatal(err)
	}
	claims := with.Get(server.Key()).Claims()
	if len(claims) != 2 {
		t.Fatalf("it claims %q", claims)
	}
	rep, ibip := parse(t, schemes, claims[0]+"/2009/02.16.17.46"), parse(t, schemes, claims[1]+"/34PGRBS")
	for _, c := range []struct {
		tree *Tree
		id   stele.ID
		want string
	}{
		{tree, rep, "sid.inpe.br ibi:"}, {tree, ibip, "ibi:"},
		{with, rep, "sid.inpe.br/mtc-m18 sid.inpe.br ibi:"}, {with, ibip, "sid.inpe.br/mtc-m18 sid.inpe.br ibi:"},
	} {
		if got := ancestors(c.tree, c.id); got != c.want {
			t.Errorf("%s: %s, want %s", c.id, got, c.want)
		}
	}
	around := with.Around(ibip, func(*stele.Namespace) bool { return true })
	if around == nil || around.Key().String() != "ibi:" {
		t.Errorf("the DNS finds %s by its text in %v", ibip, around)
	}
	key := stele.NamespaceKey{Scheme: "ibi", Prefix: claims[1]}
	if n := with.Claimed(key); n == nil || n.Namespace != server || with.At(key) != n || tree.At(key) != nil {
		t.Errorf("%s belongs to %v", key, n)
	}
	moved := *server
	moved.Minter.IP, moved.Minter.IPPort = "", 0
	without, err := with.With(&moved)
	if err != nil || ancestors(without, ibip) != "ibi:" || without.Claimed(key) != nil {
		t.Errorf("without its address: %s, %v", ancestors(without, ibip), err)
	}
}

// Any namespaces and any name: the answer is that of trying every prefix, and it is the
// same for a tree that grew as for one that was made at once.
func TestOfIsTheLongest(t *testing.T) {
	schemes := newSchemes(t)
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringMatching(`ark:12345/[ab1]([ab1./]{0,8})`)
		grown, made := New(schemes), New(schemes)
		var prefixes []string
		for range rapid.IntRange(0, 6).Draw(rt, "namespaces") {
			key, err := ParsePrefix(schemes, text.Draw(rt, "prefix"))
			if err != nil || slices.Contains(prefixes, key.Prefix) {
				continue
			}
			prefixes = append(prefixes, key.Prefix)
			ns := &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}
			made.Add(ns)
			if grown, err = grown.With(ns); err != nil {
				rt.Fatal(err)
			}
		}
		id, err := schemes.Parse(text.Draw(rt, "name"))
		if err != nil {
			return
		}
		want := ""
		for _, p := range prefixes {
			if strings.HasPrefix(id.String(), p) && len(p) > len(want) {
				want = p
			}
		}
		for _, tree := range []*Tree{grown, made} {
			got := ""
			if n := tree.Of(id); n != nil {
				got = n.Prefix
			}
			if got != want {
				rt.Errorf("%s is in %q, want %q of %q", id, got, want, prefixes)
			}
		}
	})
}

// What no name can begin with is refused, and what is wrong is said.
func TestPrefixesThatCannotWork(t *testing.T) {
	schemes := newSchemes(t)
	for text, says := range map[string]string{
		"https://purl.org/api/":           "which a resolver uses itself",
		"https://purl.org/a%2":            "hexadecimal",
		"https://purl.org/net/../x":       "can't be parts",
		"ark:12345/a%2":                   "hexadecimal",
		"ark:12345/é":                     "can't stand in an ARK",
		"102.100.272":                     `did you mean "102.100.272/"?`,
		strings.Repeat("ark:12345/", 500): "bytes",
	} {
		key, err := ParsePrefix(schemes, text)
		if err == nil || stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40s: %v, %v, want %q", text, key, err, says)
		}
	}
	for _, text := range []string{"https://purl.obolibrary.org/obo/HP_", "https://purl.org/n", "ark:13030/qt", "ark:12345/x5/y.z", "ark:12345/a%2F"} {
		if key, err := ParsePrefix(schemes, text); err != nil || key.Prefix != text {
			t.Errorf("%s: %v, %v", text, key, err)
		}
	}
	// A separator at the end of an ARK does not count.
	for _, text := range []string{"ark:12345/x5", "ark:12345"} {
		if key, err := ParsePrefix(schemes, text+"/"); err != nil || key.Prefix != text {
			t.Errorf("%s/: %v, %v", text, key, err)
		}
	}
}

func BenchmarkOf(b *testing.B) {
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	tree := New(schemes)
	for i := range 1000 {
		tree.Add(&stele.Namespace{Scheme: "ark", Prefix: "ark:" + string(rune('0'+i/100)) + "00" + string(rune('0'+i/10%10)) + string(rune('0'+i%10)) + "/x5"})
	}
	id, err := schemes.Parse("ark:50042/x50000001")
	if err != nil || tree.Of(id) == nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		tree.Of(id)
	}
}

// TestHandleAuthority: the record that describes a prefix belongs to the namespace of the prefix; that of a
// longer prefix does not, and names below neither.
func TestHandleAuthority(t *testing.T) {
	schemes := newSchemes(t)
	tree := New(schemes)
	short := &stele.Namespace{Scheme: "hdl", Prefix: "20.500.1/"}
	long := &stele.Namespace{Scheme: "hdl", Prefix: "20.500.12/"}
	if errs := tree.Add(short, long, &stele.Namespace{Scheme: "hdl", Prefix: "20.500.1/A"}); len(errs) > 0 {
		t.Fatal(errs)
	}
	for name, want := range map[string]*stele.Namespace{
		"hdl:0.NA/20.500.1": short, "hdl:0.NA/20.500.12": long, "hdl:0.NA/20.500.123": nil, "hdl:0.NA/20.500": nil, "20.500.1/X": short,
	} {
		id, err := schemes.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		var got *stele.Namespace
		if n := tree.Of(id); n != nil {
			got = n.Namespace
		}
		if got != want {
			t.Errorf("%s belongs to %v, want %v", name, got, want)
		}
	}
}
