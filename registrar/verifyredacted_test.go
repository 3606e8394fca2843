package registrar

import (
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// An earlier program hid what it redacted and kept the content. Verify notes it and says
// what to do; after that there is nothing to note.
func TestVerifyOldRedactions(t *testing.T) {
	f := newFixture(t)
	rec := f.registered("urn:example:1")
	next := *rec
	next.Version, next.Redacted, next.State = 2, true, stele.Withdrawn
	blank(&next)
	next.Tombstone = &stele.Tombstone{Reason: "an order", At: f.clock()}
	next.Withheld.Redacted = 2 // and nothing is erased
	if err := f.store.Apply(f.admin, &stele.Commit{Records: []*stele.Record{&next}}); err != nil {
		t.Fatal(err)
	}
	notes := func() (list []string) {
		t.Helper()
		err := f.VerifyAll(f.admin, Verification{
			Problem: func(m *stele.Message) { t.Errorf("a problem: %v", m) },
			Note:    func(m *stele.Message) { list = append(list, m.Error()) }, Record: func() {},
		})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if got := notes(); len(got) != 1 || !strings.Contains(got[0], "stele redact urn:example:1 --reason") {
		t.Errorf("got %q", got)
	}
	must(f.Redact(f.admin, f.id("urn:example:1"), 0, "an order"))(t)
	if got := notes(); len(got) != 0 {
		t.Errorf("after it was redacted again: %q", got)
	}
	for v, err := range f.store.History(f.admin, rec.ID) {
		if err != nil || len(v.Targets) > 0 {
			t.Errorf("version %d: %v, %v", v.Version, v.Targets, err)
		}
	}
}
