package bundle

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/store/mem"
)

// A bundle that was interrupted goes on, also if the registry has changed: it is the one that would have been made at once.
func TestResume(t *testing.T) {
	h := newHouse(t)
	h.fill(60)
	for range 7 { // its versions stand in several files
		h.put("ark:12345/x30")
	}
	for _, packed := range []bool{false, true} {
		job := func() *Job {
			j := h.job()
			j.fileLines, j.Gzip = 5, packed
			return j
		}
		want := h.bundle(job())
		name := filepath.Join(t.TempDir(), "b.tar")
		for stop := 12; ; stop += 9 {
			ctx, cancel := context.WithCancel(h.ctx)
			j, done := job(), 0
			j.Progress = func(n int) {
				if done += n; done == stop {
					cancel()
				}
			}
			_, resumed, err := j.WriteFile(ctx, name, false)
			cancel()
			if err == nil {
				if !resumed {
					t.Error("it was made at once")
				}
				break
			}
			if _, err := os.Stat(name); err == nil {
				t.Fatal("the file is there before it is complete")
			}
			// The registry goes on.
			h.put("ark:12345/x30")
			h.put("ark:12345/aaa", func(r *stele.Record) { r.Metadata["who"] = "Later" })
			h.put("ark:99999/x3")
		}
		got, err := os.ReadFile(name)
		h.must(err)
		if !bytes.Equal(got, want) {
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			t.Errorf("compressed %v: the bundle is another one than without interruption: %d bytes and %d, from byte %d on: %.300q, %.300q", packed, len(got), len(want), at, got[max(at-100, 0):], want[max(at-100, 0):])
		}
		h.check(got)
	}
	// Another bundle is not taken for the rest of the first.
	name := filepath.Join(t.TempDir(), "b.tar")
	ctx, cancel := context.WithCancel(h.ctx)
	j, done := h.job(), 0
	j.fileLines = 5
	j.Progress = func(n int) {
		if done += n; done == 20 {
			cancel()
		}
	}
	if _, _, err := j.WriteFile(ctx, name, false); err == nil {
		t.Fatal("it was not interrupted")
	}
	if _, resumed, err := h.job("ark:99999").WriteFile(h.ctx, name, false); err != nil || resumed {
		t.Errorf("resumed %v: %v", resumed, err)
	}
}

// A bundle that was interrupted begins anew if a record was redacted since: what is written of it has the content.
func TestResumeRedacted(t *testing.T) {
	h := newHouse(t)
	h.fill(60)
	h.put("ark:12345/a0", func(r *stele.Record) { r.Metadata["who"] = "Konrad Kept" })
	name := filepath.Join(t.TempDir(), "b.tar")
	for _, redact := range []string{"", "ark:12345/a0"} {
		ctx, cancel := context.WithCancel(h.ctx)
		j, done := h.job(), 0
		j.fileLines = 5
		j.Progress = func(n int) {
			if done += n; done == 40 {
				cancel()
			}
		}
		if _, _, err := j.WriteFile(ctx, name, false); err == nil {
			t.Fatal("it was not interrupted")
		}
		if part, err := os.ReadFile(name + partSuffix); err != nil || !bytes.Contains(part, []byte("Konrad")) {
			t.Fatalf("the record is not in the part that was written: %v", err)
		}
		if redact != "" {
			_, err := h.r.Redact(h.ctx, h.id(redact), 0, "a court order")
			h.must(err)
		}
		j = h.job()
		j.fileLines = 5
		_, resumed, err := j.WriteFile(h.ctx, name, false)
		h.must(err)
		data, err := os.ReadFile(name)
		h.must(err)
		h.check(data)
		if has := bytes.Contains(data, []byte("Konrad")); has != (redact == "") || resumed != (redact == "") {
			t.Errorf("redacted %q: resumed %v, and the bundle has the content: %v", redact, resumed, has)
		}
	}
}

// Owners make bundles of what is theirs.
func TestRights(t *testing.T) {
	h := newHouse(t)
	h.fill(3)
	as := func(name string) context.Context { return auth.With(t.Context(), auth.Principal{Name: name}) }
	mine, other := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:99999"}
	if _, err := h.r.Bundling(as("anna"), mine); err != nil {
		t.Errorf("an owner: %v", err)
	}
	for name, ask := range map[string][]stele.NamespaceKey{"of another": {other}, "of both": {mine, other}, "of a scheme": {{Scheme: "ark"}}, "of all": nil} {
		if _, err := h.r.Bundling(as("anna"), ask...); stele.KindOf(err) != stele.Forbidden {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := h.r.Bundling(t.Context(), mine); stele.KindOf(err) != stele.Unauthenticated {
		t.Errorf("a stranger: %v", err)
	}
}

// A name whose text begins as another namespace's prefix does is not in that one's bundle: the owner may not even see it.
func TestNeighbours(t *testing.T) {
	h := newHouse(t)
	h.fill(3)
	_, err := h.r.AddNamespace(h.ctx, &stele.Namespace{Scheme: "ark", Prefix: "ark:123456", Owner: "bruno"})
	h.must(err)
	h.put("ark:123456/besides9", func(r *stele.Record) { r.Readers = []string{"user:bruno"} })
	h.put("ark:123457/unowned")
	for _, word := range []string{"besides9", "ark:123456", "unowned"} {
		if bytes.Contains(h.bundle(h.job("ark:12345")), []byte(word)) {
			t.Errorf("the bundle of ark:12345 has %q", word)
		}
		if word != "unowned" && !bytes.Contains(h.bundle(h.job("ark:12345", "ark:123456")), []byte(word)) {
			t.Errorf("the bundle of both has not %q", word)
		}
	}
	if _, err := Read(h.ctx, bytes.NewReader(h.bundle(h.job("ark:12345"))), h.options()); err != nil {
		t.Error(err)
	}
}

// Secrets that an earlier program kept in the clear are not in bundles; the leaf is proved without them.
func TestSecrets(t *testing.T) {
	h := newHouse(t)
	h.fill(3)
	rec, err := h.store.Record(h.ctx, h.id("20.500.1/secret"))
	h.must(err)
	next := *rec
	next.Version++
	next.Values = append(next.Values, stele.HandleValue{Index: 301, Type: "HS_SECKEY", Data: []byte("s3cr3t-word"), TTL: 86400, Permissions: stele.AdminRead | stele.AdminWrite})
	h.must(h.store.Apply(h.ctx, &stele.Commit{Records: []*stele.Record{&next}}))
	data := h.bundle(h.job())
	h.check(data)
	for _, secret := range []string{"s3cr3t-word", "czNjcjN0LXdvcmQ", string(h.keys.List[0].Private.Seed())} {
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("the bundle has %q", secret)
		}
	}
	if !bytes.Contains(data, []byte("HS_SECKEY")) {
		t.Error("the bundle does not say that there was a secret")
	}
}

// A reader with little memory for hashes keeps them in a file.
func TestSpool(t *testing.T) {
	for _, temp := range []func() (Temp, error){nil, TempFile} {
		s := spool{temp: temp, most: 3 * tileBytes}
		defer s.close()
		for n := range uint64(10) {
			tile := bytes.Repeat([]byte{byte(n + 1)}, tileBytes)
			if n == 9 {
				tile = tile[:64]
			}
			if err := s.add(n*2, tile); err != nil {
				t.Fatal(err)
			}
		}
		for leaf, want := range map[uint64]byte{0: 1, 255: 1, 256: 0, 512: 2, 18 * 256: 10, 18*256 + 1: 10, 18*256 + 2: 0, 19 * 256: 0, 16*256 + 255: 9} {
			if h, err := s.hash(leaf); err != nil || h[0] != want || h[31] != want {
				t.Errorf("leaf %d: %x, %v", leaf, h, err)
			}
		}
		if (s.file != nil) != (temp != nil) {
			t.Error("the file")
		}
	}
}

func FuzzRead(f *testing.F) {
	schemes := newSchemes(f)
	f.Add([]byte{})
	f.Add(make([]byte, 2*blockSize))
	head := tarHeader("x/"+fileBagit, int64(len(bagit)), 0)
	f.Add(append(append(head[:], bagit...), make([]byte, padding(int64(len(bagit))))...))
	seeds, err := filepath.Glob(filepath.Join("testdata", "*.tar"))
	if err != nil || len(seeds) == 0 {
		f.Fatalf("there are no seeds: %v", err)
	}
	for _, name := range seeds {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		report, err := Read(t.Context(), bytes.NewReader(data), Options{Schemes: schemes})
		if err == nil && report.Counts.Versions == 0 && report.Counts.Kept == 0 {
			t.Error("an empty bundle is taken")
		}
		if err != nil && stele.KindOf(err) != stele.Invalid {
			t.Errorf("the error is of the kind %v: %v", stele.KindOf(err), err)
		}
	})
}

// A bundle that an earlier program made is read for ever.
func TestStoredBundle(t *testing.T) {
	name := filepath.Join("testdata", "form1.tar")
	if os.Getenv("STELE_UPDATE") != "" {
		h := newHouse(t)
		h.over(mem.New(h.clock))
		h.fill(3)
		h.must(os.WriteFile(name, h.bundle(h.job()), 0o600))
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	report, err := Read(t.Context(), bytes.NewReader(data), Options{Schemes: newSchemes(t)})
	if err != nil {
		t.Fatal(err)
	}
	if report.Counts.Records == 0 || report.Head.Form != 1 {
		t.Errorf("report %+v", report)
	}
}
