package bundle

import (
	"archive/tar"
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// A bundle says which bytes its names stand for, and only those.
func TestFixed(t *testing.T) {
	g := newHouse(t)
	g.fill(5)
	if names := filesOf(t, g.bundle(g.job())); strings.Contains(names, fileFixed) {
		t.Errorf("a bundle without such names has the file: %s", names)
	}
	before, err := g.job().Beside(g.ctx)
	g.must(err)
	g.fixed("ark:99999/b", registrar.FixedData{SHA256: digestOf("b"), Size: 1})
	g.fixed("ark:99999/a", registrar.FixedData{Absent: true})
	g.fixed("ark:12345/x-other", registrar.FixedData{SHA256: digestOf("c")})
	if after, err := g.job().Beside(g.ctx); err != nil || after == before {
		t.Errorf("what is beside the feed is the same: %v", err)
	}
	data := g.bundle(g.job("ark:99999"))
	if again := g.bundle(g.job("ark:99999")); !bytes.Equal(data, again) {
		t.Error("the same state gives another bundle")
	}
	var got []string
	o := g.options()
	o.Visit.Fixed = func(f *Fixed) error { got = append(got, f.Name+" "+f.SHA256); return nil }
	report, err := Read(g.ctx, bytes.NewReader(data), o)
	g.must(err)
	if want := "ark:99999/a , ark:99999/b " + digestOf("b"); strings.Join(got, ", ") != want || report.Counts.Fixed != 2 {
		t.Errorf("%q, %d", got, report.Counts.Fixed)
	}
}

// filesOf returns the names of the files of a bundle.
func filesOf(t *testing.T, data []byte) string {
	t.Helper()
	var names strings.Builder
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return names.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		names.WriteString(h.Name + "\n")
	}
}

// A line that is not one of a name of the bundle, in its order and with a digest, is refused.
func TestFixedLines(t *testing.T) {
	r := &reader{ctx: t.Context(), o: Options{Schemes: newSchemes(t)}, report: &Report{Head: Head{Prefixes: []Prefix{{"ark", "ark:99999"}}}}}
	sum := digestOf("x")
	for line, ok := range map[string]bool{
		`{"scheme":"ark","name":"ark:99999/b","sha256":"` + sum + `","at":"2031-05-02T10:00:00Z"}`:                  true,
		`{"scheme":"ark","name":"ark:99999/b","absent":true,"at":"2031-05-02T10:00:00Z"}`:                           true,
		`{"scheme":"ark","name":"ark:99999/b","at":"2031-05-02T10:00:00Z"}`:                                         false,
		`{"scheme":"ark","name":"ark:99999/b","sha256":"` + strings.ToUpper(sum) + `","at":"2031-05-02T10:00:00Z"}`: false,
		`{"scheme":"ark","name":"ark:99999/b","absent":true,"sha256":"` + sum + `","at":"2031-05-02T10:00:00Z"}`:    false,
		`{"scheme":"ark","name":"ark:12345/b","absent":true,"at":"2031-05-02T10:00:00Z"}`:                           false,
		`{"scheme":"urn","name":"ark:99999/b","absent":true,"at":"2031-05-02T10:00:00Z"}`:                           false,
		`{"scheme":"ark","name":"ark:/99999/b","absent":true,"at":"2031-05-02T10:00:00Z"}`:                          false,
		`{"scheme":"ark","name":"ark:99999/a","absent":true,"at":"2031-05-02T10:00:00Z"}`:                           false, // before the last one
		`{"scheme":"ark","name":"ark:99999/aa","absent":true,"at":"2031-05-02T10:00:00Z"}`:                          false, // the last one
	} {
		r.fixed = Fixed{Scheme: "ark", Name: "ark:99999/aa"}
		if err := r.readFixed(strings.NewReader(line + "\n")); (err == nil) != ok {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// A bundle by which a name would stand for other bytes than it does here is refused before anything is written.
func TestAdoptOtherBytes(t *testing.T) {
	g := newGiver(t, 3)
	g.seal(heirOrigin, givenPrefixes...)
	data := g.bundle(g.job(givenPrefixes...))
	h := newHeir(t)
	cell, err := registrar.FixedCell(h.id("ark:99999/fixed"), registrar.FixedData{SHA256: digestOf("other"), At: h.now})
	h.must(err)
	h.must(h.store.Apply(h.ctx, &stele.Commit{Cells: []stele.CellChange{cell}}))
	_, err = h.adoption(g).Run(h.ctx, bytes.NewReader(data))
	if stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), "stands for other bytes here") {
		t.Errorf("the error is %v", err)
	}
	if last, err := h.store.LastChange(h.ctx); err != nil || last != 0 {
		t.Errorf("change %d was written, %v", last, err)
	}
}

// While a namespace is for reading only, and after it was sealed, nothing says here which bytes its names stand for.
func TestFixedElsewhere(t *testing.T) {
	g := newGiver(t, 3)
	g.put("ark:99999/open")
	data := g.bundle(g.job(givenPrefixes...))
	h := newHeir(t)
	h.adopt(g, data)
	g.seal(heirOrigin, givenPrefixes...)
	for where, p := range map[string]*house{"sealed": g, "for reading": h} {
		rec, err := p.store.Record(p.ctx, p.id("ark:99999/open"))
		p.must(err)
		if _, err := p.r.FixData(p.ctx, rec, registrar.FixedData{Absent: true}); stele.KindOf(err) != stele.Conflict {
			t.Errorf("%s: %v", where, err)
		}
		errs, err := p.r.Ingest(p.ctx, []*stele.Record{rec}, registrar.ImportOptions{Fixed: []*registrar.FixedData{{Absent: true}}})
		if d, derr := p.r.FixedData(p.ctx, rec.ID); d != nil || derr != nil {
			t.Errorf("%s: an import says %+v, %v; %v, %v", where, d, derr, errs, err)
		}
	}
	done := h.adopt(g, g.bundle(g.job(givenPrefixes...)))
	rec, err := h.store.Record(h.ctx, h.id("ark:99999/open"))
	h.must(err)
	if _, err := h.r.FixData(h.ctx, rec, registrar.FixedData{Absent: true}); err != nil {
		t.Errorf("after %+v: %v", done, err)
	}
}
