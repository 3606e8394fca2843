package registrar

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// noted makes a note of a bundle by a user, whose manifest begins with a byte.
func (f *fixture) noted(ctx context.Context, manifest byte, prefixes ...string) {
	f.t.Helper()
	var keys []stele.NamespaceKey
	for _, p := range prefixes {
		keys = append(keys, stele.NamespaceKey{Scheme: "ark", Prefix: p})
	}
	b := must(f.Bundling(ctx, keys...))(f.t)
	b.NoteMade(ctx, MadeBundle{Manifest: [32]byte{manifest}, Change: uint64(manifest), Records: 3, Versions: 4})
}

func manifestOf(first string) string { return first + strings.Repeat("0", 62) }

// TestTakenBundles: a bundle is noted where it has all names of a namespace, its owners see so, and a check of the last one is noted.
func TestTakenBundles(t *testing.T) {
	f := newFixture(t)
	for _, prefix := range []string{"ark:12345", "ark:12345/x5", "ark:12345/x6", "ark:99999"} {
		must(f.AddNamespace(f.admin, &stele.Namespace{Scheme: "ark", Prefix: prefix, Owner: map[bool]string{true: "bob", false: "ann"}[prefix == "ark:99999"]}))(t)
	}
	ann, bob := as("ann"), as("bob")
	show := func(ctx context.Context, prefix string) string {
		t.Helper()
		last := must(f.TakenOf(ctx, stele.NamespaceKey{Scheme: "ark", Prefix: prefix}))(t)
		if last == nil {
			return "none"
		}
		said := last.Manifest[:2] + " by " + last.By
		if last.Wider {
			said += ", wider"
		}
		if !last.Checked.IsZero() {
			said += ", checked by " + last.CheckedBy + " at " + string(rune('0'+last.CheckedChange))
		}
		return said
	}
	is := func(ctx context.Context, prefix, want string) {
		t.Helper()
		if got := show(ctx, prefix); got != want {
			t.Errorf("%s: %q, not %q", prefix, got, want)
		}
	}
	is(ann, "ark:12345", "none")
	f.noted(ann, 1, "ark:12345/x5abc") // no namespace as a whole
	is(ann, "ark:12345/x5", "none")
	f.noted(ann, 1, "ark:12345/x")
	is(ann, "ark:12345", "none")
	is(ann, "ark:12345/x5", "01 by ann, wider")
	is(ann, "ark:12345/x6", "01 by ann, wider")
	f.jump(time.Minute)
	f.noted(ann, 2, "ark:12345/x5")
	is(ann, "ark:12345/x5", "02 by ann")
	if err := f.NoteChecked(ann, manifestOf("02")); err != nil {
		t.Fatal(err)
	}
	is(ann, "ark:12345/x5", "02 by ann, checked by ann at 2")
	var said []string
	for e, err := range f.store.Audit(f.admin, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Operation == opNoteBundle && e.Namespace.Prefix == "ark:12345/x5" {
			said = append(said, e.By+" "+strings.ReplaceAll(e.Details, strings.Repeat("0", 62), ""))
		}
	}
	if got := strings.Join(said, "; "); !strings.HasPrefix(got, "ann made 01 up to change 1, with ") || !strings.HasSuffix(got, "; ann checked 02 up to change 2") || len(said) != 3 {
		t.Errorf("the audit trail says %s", got)
	}
	f.jump(time.Minute)
	f.noted(f.admin, 3)
	is(ann, "ark:12345/x5", "03 by local, wider, checked by ann at 2") // the check is of an earlier one
	is(bob, "ark:99999", "03 by local, wider")
	is(bob, "ark:12345", "none")
	is(as("nemo"), "ark:99999", "none")

	// What a caller does not own is neither listed nor checked.
	for _, test := range []struct {
		who  context.Context
		want string
	}{{f.admin, "ark: ark:12345/x5 ark:12345/x6"}, {ann, "ark:12345/x5 ark:12345/x6"}, {bob, ""}} {
		var got []string
		for _, b := range must(f.TakenBundles(test.who))(t) {
			if b.Namespace.Scheme == "ark" {
				got = append(got, b.Namespace.String())
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%v are listed, not %s", got, test.want)
		}
	}
	if _, err := f.TakenBundles(t.Context()); stele.KindOf(err) != stele.Unauthenticated {
		t.Error(err)
	}
	for _, m := range []string{manifestOf("02"), manifestOf("03"), "", manifestOf("07")} {
		if err := f.NoteChecked(bob, m); stele.KindOf(err) != stele.NotFound {
			t.Errorf("%q: %v", m, err)
		}
	}
	f.jump(time.Minute)
	if err := f.NoteChecked(f.admin, manifestOf("03")); err != nil {
		t.Fatal(err)
	}
	is(ann, "ark:12345/x5", "03 by local, wider, checked by local at 3")
	is(ann, "ark:12345/x6", "03 by local, wider, checked by local at 3")

	// A sealed registry notes nothing, and a bundle of it is made all the same.
	if err := f.store.Seal(f.admin, "it moves"); err != nil {
		t.Fatal(err)
	}
	f.noted(ann, 4, "ark:12345/x5")
	is(ann, "ark:12345/x5", "03 by local, wider, checked by local at 3")
	if err := f.NoteChecked(ann, manifestOf("02")); stele.KindOf(err) != stele.Conflict {
		t.Error(err)
	}
}

// TestTakenByMany: more namespaces than a commit has are noted, and none twice.
func TestTakenByMany(t *testing.T) {
	f := newFixture(t)
	const n = maxTakenCells + 3
	for i := range n {
		must(f.AddNamespace(f.admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:1" + string(rune('0'+i/100)) + string(rune('0'+i/10%10)) + string(rune('0'+i%10)) + "5", Owner: "ann"}))(t)
	}
	f.noted(f.admin, 1, "ark:1")
	f.noted(f.admin, 2, "ark:1")
	list := must(f.TakenBundles(as("ann")))(t)
	if len(list) != n || list[n-1].Manifest != manifestOf("02") || !list[0].Wider {
		t.Errorf("%d are noted", len(list))
	}
}
