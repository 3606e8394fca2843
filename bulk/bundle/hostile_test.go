package bundle

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/transparency"
)

// A small file that claims a large log, or large tables, does not take the memory for them.
func TestClaims(t *testing.T) {
	h := newHouse(t)
	c := transparency.Checkpoint{Origin: h.keys.Origin, Size: 1 << 40}
	signed, err := h.keys.SignText(c.String(), h.now)
	h.must(err)
	r := &reader{report: &Report{Head: Head{Origin: c.Origin, Changes: c.Size}}, keys: h.keys.Public()}
	err = r.readCheckpoint(strings.NewReader(signed))
	if code, _ := stele.CodeOf(err); code != "log.too-large-to-check" || len(r.above) > 0 {
		t.Errorf("%d tiles are expected, %v", len(r.above), err)
	}
	for _, name := range []string{fileKeys, fileNamespaces, fileStatements} {
		r := &reader{report: new(Report), lastRank: rank(name) - 1, tar: tarReader{in: endless{}, left: 1 << 30}}
		if err := r.file(name, 1<<30); err == nil || !strings.Contains(err.Error(), "more than such a file may have") {
			t.Errorf("%s of a gigabyte: %v", name, err)
		}
		w := &writer{job: &Job{}, out: &outCounter{w: io.Discard}}
		if err := w.put(name, make([]byte, maxHeld+1)); !errors.Is(err, stele.Exhausted) {
			t.Errorf("%s of a gigabyte is written: %v", name, err)
		}
	}
}

// endless fails a test that reads it.
type endless struct{}

func (endless) Read([]byte) (int, error) { return 0, errors.New("it was read") }
