package deposit

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/bundle"
)

// A deposit gives the bundle back as it would have been written at once, compressed or not.
func TestFetch(t *testing.T) {
	h := newHouse(t)
	h.fill(700) // more leaves than a tile has
	to, _ := newFolder(t)
	made := h.deposit(to)
	if made.Same || made.Sent == 0 || made.List.Records != 700 {
		t.Errorf("made %+v", made)
	}
	h.must(h.check(to))
	for _, packed := range []bool{false, true} {
		name := filepath.Join(t.TempDir(), "b.tar")
		report, resumed, err := (&Rebuild{From: to, List: h.last(to)}).Fetch(h.ctx, name, packed, h.options())
		h.must(err)
		got, err := os.ReadFile(name)
		h.must(err)
		if want := h.bundle(packed); !bytes.Equal(got, want) {
			t.Errorf("compressed %v: it is another file: %d bytes and %d", packed, len(got), len(want))
		}
		if resumed || report.Counts.Records != 700 || !report.Trusted {
			t.Errorf("report %+v", report)
		}
		if left, _ := filepath.Glob(name + ".*"); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	// Long files are kept in several objects.
	to, _ = newFolder(t)
	made, err := (&Job{Bundle: h.job(), To: to, Now: h.now, piece: 100}).Make(h.ctx)
	h.must(err)
	if len(made.List.Objects) < 60 {
		t.Errorf("there are %d objects", len(made.List.Objects))
	}
	h.must(h.check(to))
}

// A second deposit brings only what is new, changes nothing that is there, and each deposit can be fetched.
func TestIncrement(t *testing.T) {
	h := newHouse(t)
	h.fill(300)
	to, path := newFolder(t)
	first := h.deposit(to)
	was := filesIn(t, path)
	if again := h.deposit(to); !again.Same || again.Sent != 0 || len(filesIn(t, path)) != len(was) {
		t.Errorf("without a change: %+v", again)
	}
	h.put("ark:12345/x7")
	second := h.deposit(to)
	// The checkpoint, the last tile, bundle.json, a file of records, counts, manifests, the note and bag-info.
	if second.Same || second.Sent > 11 || second.List.Name <= first.List.Name {
		t.Errorf("made %d objects, %s after %s", second.Sent, second.List.Name, first.List.Name)
	}
	now := filesIn(t, path)
	for name, text := range was {
		if now[name] != text {
			t.Errorf("%s was changed", name)
		}
	}
	h.must(h.check(to))
	old, err := Last(h.ctx, to, first.List.At)
	h.must(err)
	if old.Name != first.List.Name {
		t.Errorf("at the first time there is %s", old.Name)
	}
	if _, err := (&Rebuild{From: to, List: old}).Check(h.ctx, h.options()); err != nil {
		t.Errorf("the first one: %v", err)
	}
	if _, err := Last(h.ctx, to, first.List.At.Add(-time.Second)); stele.KindOf(err) != stele.NotFound {
		t.Errorf("before the first one: %v", err)
	}
	// A clock that was put back.
	h.put("ark:12345/x8")
	made, err := (&Job{Bundle: h.job(), To: to, Now: first.List.At.Add(-time.Hour)}).Make(h.ctx)
	h.must(err)
	if l := h.last(to); l.Name != made.List.Name {
		t.Errorf("the last one is %s, and %s was made last", l.Name, made.List.Name)
	}
}

// A deposit that is interrupted, anywhere, is not seen; the next one is whole, and does not bring again what is there.
func TestInterrupt(t *testing.T) {
	h := newHouse(t)
	h.fill(300)
	inner, path := newFolder(t)
	whole := 0
	for stop := int64(1); ; stop++ {
		ctx, cancel := context.WithCancel(h.ctx)
		var puts atomic.Int64
		to := &faulty{inner, func(string) error {
			if puts.Add(1) >= stop {
				cancel()
				return ctx.Err()
			}
			return nil
		}}
		h.now = h.now.Add(time.Minute)
		made, err := (&Job{Bundle: h.job(), To: to, Now: h.now}).Make(ctx)
		cancel()
		if err == nil {
			whole = made.Sent
			break
		}
		if _, err := Last(h.ctx, inner, time.Time{}); stele.KindOf(err) != stele.NotFound {
			t.Fatalf("it is seen after %d objects: %v", stop, err)
		}
		if stop > 100 {
			t.Fatal("it never ends")
		}
	}
	h.must(h.check(inner))
	l := h.last(inner)
	objects := map[string]bool{}
	for i := range l.Objects {
		objects[l.Objects[i].name()] = true
	}
	if n := len(filesIn(t, path)); n != len(objects)+1 || whole >= len(objects) {
		t.Errorf("there are %d files for %d objects, and the last run sent %d", n, len(objects), whole)
	}
}

// Errors that pass are tried again; others end the deposit.
func TestFaults(t *testing.T) {
	h := newHouse(t)
	h.fill(5)
	inner, _ := newFolder(t)
	var failures atomic.Int64
	failures.Store(3)
	to := &patient{&faulty{inner.(*patient).Destination, func(string) error {
		if failures.Add(-1) >= 0 {
			return &stele.Error{Op: op, Kind: stele.Unavailable}
		}
		return nil
	}}, noWait}
	h.deposit(to)
	h.must(h.check(inner))
	for _, kind := range []stele.Kind{stele.Exhausted, stele.Forbidden, stele.Unavailable} {
		h.put("ark:12345/x1")
		to := &patient{&faulty{inner, func(string) error { return &stele.Error{Op: op, Kind: kind} }}, noWait}
		if _, err := (&Job{Bundle: h.job(), To: to, Now: h.now}).Make(h.ctx); stele.KindOf(err) != kind {
			t.Errorf("%v: %v", kind, err)
		}
	}
}

// A place is for one registry and the same names.
func TestOtherDeposits(t *testing.T) {
	h := newHouse(t)
	h.fill(3)
	to, path := newFolder(t)
	h.deposit(to, "ark:12345")
	was := len(filesIn(t, path))
	other := newHouse(t)
	other.keys.Origin = "other.example.org/.log"
	other.fill(3)
	for what, j := range map[string]*Job{
		"all":              {Bundle: h.job(), To: to, Now: h.now},
		"other prefixes":   {Bundle: h.job("ark:99999"), To: to, Now: h.now},
		"another registry": {Bundle: other.job("ark:12345"), To: to, Now: h.now},
	} {
		if _, err := j.Make(h.ctx); stele.KindOf(err) != stele.Conflict {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := len(filesIn(t, path)); n != was {
		t.Errorf("something was written: %d files, and %d before", n, was)
	}
}

// One bit that is changed at the place is found, wherever it is, and the error names the place.
func TestDamage(t *testing.T) {
	h := newHouse(t)
	h.fill(300)
	to, path := newFolder(t)
	h.deposit(to)
	l := h.last(to)
	for name, text := range filesIn(t, path) {
		damaged := []byte(text)
		if len(damaged) == 0 {
			continue
		}
		damaged[len(damaged)/2] ^= 4
		file := filepath.Join(path, name)
		h.must(os.Chmod(file, 0o600))
		h.must(os.WriteFile(file, damaged, 0o600))
		err := h.check(to)
		if stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), filepath.Base(name)) {
			t.Errorf("%s: %v", name, err)
		}
		if name != l.Name {
			out := filepath.Join(t.TempDir(), "b.tar")
			if _, _, err := (&Rebuild{From: to, List: l}).Fetch(h.ctx, out, false, h.options()); stele.KindOf(err) != stele.Invalid {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := os.Stat(out); err == nil {
				t.Errorf("%s: there is a file", name)
			}
		}
		h.must(os.WriteFile(file, []byte(text), 0o600))
	}
	h.must(h.check(to))
	// One that is missing is named, and the next deposit brings it again; one that is shorter is found without reading it.
	var records *Object
	for i := range l.Objects {
		if len(l.Objects[i].Files) == 1 && l.Objects[i].Files[0].Name == "data/records-00001.jsonl" {
			records = &l.Objects[i]
		}
	}
	file := filepath.Join(path, records.name())
	h.must(os.Truncate(file, 10))
	h.put("ark:99999/new")
	if _, err := (&Job{Bundle: h.job(), To: to, Now: h.now.Add(time.Hour)}).Make(h.ctx); err != nil {
		t.Errorf("the file of records is another one: %v", err)
	}
	l = h.last(to)
	file = filepath.Join(path, l.Objects[0].name())
	h.must(os.Truncate(file, 10))
	h.put("ark:99999/new")
	if _, err := (&Job{Bundle: h.job(), To: to, Now: h.now.Add(2 * time.Hour)}).Make(h.ctx); stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), l.Objects[0].name()) {
		t.Errorf("a shorter object: %v", err)
	}
	h.must(os.Remove(file))
	if err := h.check(to); stele.KindOf(err) != stele.NotFound || !strings.Contains(err.Error(), l.Objects[0].name()) || !strings.Contains(err.Error(), "bagit.txt") {
		t.Errorf("a missing object: %v", err)
	}
	h.now = h.now.Add(3 * time.Hour)
	h.deposit(to)
	h.must(h.check(to))
}

// A fetch that is interrupted goes on where it was.
func TestFetchResumes(t *testing.T) {
	h := newHouse(t)
	h.fill(700)
	to, _ := newFolder(t)
	h.deposit(to)
	for _, packed := range []bool{false, true} {
		name, all := filepath.Join(t.TempDir(), "b.tar"), len(h.last(to).Objects)
		for stop := 3; ; stop += 4 {
			ctx, cancel := context.WithCancel(h.ctx)
			n, b := 0, &Rebuild{From: to, List: h.last(to)}
			b.Progress = func(int64) {
				if n++; n == 4 {
					cancel()
				}
			}
			_, resumed, err := b.Fetch(ctx, name, packed, h.options())
			cancel()
			if err == nil {
				if !resumed || n >= all {
					t.Errorf("resumed %v, and read %d of %d objects", resumed, n, all)
				}
				break
			}
			if _, err := os.Stat(name); err == nil {
				t.Fatal("the file is there before it is complete")
			}
			if stop > 100 {
				t.Fatal("it never ends")
			}
		}
		got, err := os.ReadFile(name)
		h.must(err)
		if !bytes.Equal(got, h.bundle(packed)) {
			t.Errorf("compressed %v: it is another file", packed)
		}
	}
}

// TestAfterRestore holds that a registry which was restored goes on at the place of its deposits.
func TestAfterRestore(t *testing.T) {
	h := newHouse(t)
	m := &maker{job: &Job{Bundle: h.job()}}
	last := &List{Head: Head{Bundle: bundle.Head{Origin: h.keys.Origin + "/g2-20260102T030405Z"}}}
	if err := m.fits(last); err != nil {
		t.Error(err)
	}
	last.Bundle.Origin = "other.example.org/.log/g2-20260102T030405Z"
	if err := m.fits(last); stele.KindOf(err) != stele.Conflict {
		t.Errorf("another registry: %v", err)
	}
}

// A copy of the registry, which goes on as another generation of it, makes no deposit at the place, and the registry none at one of the copy.
func TestCopy(t *testing.T) {
	h, other := newHouse(t), newHouse(t)
	other.keys = h.keys
	h.fill(3)
	other.fill(3)
	to, path := newFolder(t)
	h.deposit(to)
	was := len(filesIn(t, path))
	other.put("ark:12345/x1")
	h.must(other.log.CatchUp(other.ctx, nil))
	_, err := (&Job{Bundle: other.job(), To: to, Now: h.now.Add(time.Hour)}).Make(h.ctx)
	if stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), "a copy of the registry") || len(filesIn(t, path)) != was {
		t.Errorf("a copy: %v", err)
	}
}

// What is at the place and in no list is read before a deposit counts on it: an interrupted deposit may have left anything.
func TestLeftovers(t *testing.T) {
	h := newHouse(t)
	h.fill(40)
	model, from := newFolder(t)
	whole := h.deposit(model)
	var names []string
	for name := range filesIn(t, from) {
		if strings.HasPrefix(name, objectsFolder) {
			names = append(names, name)
		}
	}
	if len(names) != whole.Sent || len(names) < 3 {
		t.Fatalf("the objects are %q, and %d were sent", names, whole.Sent)
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(from, name))
		h.must(err)
		to, folder := newFolder(t)
		h.must(os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755))
		bad := bytes.Clone(text)
		bad[len(bad)/2] ^= 1
		for what, c := range map[string][]byte{"changed": bad, "cut": text[:len(text)/2], "empty": nil} {
			h.must(os.WriteFile(filepath.Join(folder, name), c, 0o644))
			_, err := (&Job{Bundle: h.job(), To: to, Now: h.now}).Make(h.ctx)
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
			if list, err := All(h.ctx, to); err != nil || len(list) != 0 {
				t.Errorf("%s, %s: the deposits are %+v, %v", name, what, list, err)
			}
		}
		h.must(os.WriteFile(filepath.Join(folder, name), text, 0o644))
		if _, err := h.deposit(to), h.check(to); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What a list says the size of is not read.
	to := &countingGets{Destination: model}
	h.put("ark:12345/new")
	h.deposit(to)
	if to.objects != 0 {
		t.Errorf("%d objects are read", to.objects)
	}
}

// countingGets counts the objects that are read.
type countingGets struct {
	Destination
	objects int
}

func (c *countingGets) Get(ctx context.Context, name string, most int64) ([]byte, error) {
	if strings.HasPrefix(name, objectsFolder) {
		c.objects++
	}
	return c.Destination.Get(ctx, name, most)
}
