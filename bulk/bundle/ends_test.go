package bundle

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// Names decide where files of records end: a record that is changed, or new, changes one or two files of many.
func TestEnds(t *testing.T) {
	h := newHouse(t)
	h.fill(3)
	for i := range 3000 {
		h.put(fmt.Sprintf("ark:12345/e%d", i))
	}
	const usual = 8 << 10
	files := func() map[[sha256.Size]byte]int {
		j := h.job()
		j.fileBytes = usual
		list := map[[sha256.Size]byte]int{}
		bytes := 0
		_, err := j.Files(h.ctx, func(name string, _ int64, in io.Reader) error {
			data, err := io.ReadAll(in)
			if strings.HasPrefix(name, "data/records-") {
				list[sha256.Sum256(data)] = len(data)
				bytes += len(data)
			}
			return err
		})
		h.must(err)
		if n := bytes / len(list); n < usual || n > 2*usual {
			t.Errorf("files have %d bytes on average", n)
		}
		return list
	}
	before := files()
	if len(before) < 50 {
		t.Fatalf("%d files", len(before))
	}
	for what, change := range map[string]func(){
		"a change":       func() { h.put("ark:12345/e1500") },
		"a new record":   func() { h.put("ark:12345/e15000") },
		"a first record": func() { h.put("ark:12345/a") },
		"a much longer one": func() {
			h.put("ark:12345/e7", func(r *stele.Record) { r.Metadata["what"] = strings.Repeat("long ", 1900) })
		},
	} {
		change()
		after := files()
		fresh := 0
		for sum := range after {
			if _, ok := before[sum]; !ok {
				fresh++
			}
		}
		if fresh == 0 || fresh > 4 {
			t.Errorf("%s: %d of %d files are new", what, fresh, len(after))
		}
		before = after
	}
	j := h.job()
	j.fileBytes = usual
	data := h.bundle(j)
	h.check(data)
	j = h.job()
	j.fileBytes = usual
	if !bytes.Equal(h.bundle(j), data) {
		t.Error("the same state gives other bytes")
	}
}
