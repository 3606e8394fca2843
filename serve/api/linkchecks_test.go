package api

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
)

// manyLinks has many findings, of which a person should look at the last one.
type manyLinks struct {
	LinkChecker
	read *int
}

func (m manyLinks) Findings(_ context.Context, _ stele.NamespaceKey, after string) iter.Seq2[apijson.LinkFinding, error] {
	return func(yield func(apijson.LinkFinding, error) bool) {
		const count = maxScanned + 100
		for i := range count {
			f := apijson.LinkFinding{ID: fmt.Sprintf("ark:12345/%06d", i), Look: i == count-1}
			if f.ID+"\t0" <= after {
				continue
			}
			if *m.read++; !yield(f, nil) {
				return
			}
		}
	}
}

// A page reads no more findings than a request may, however few of them it shows.
func TestLookListIsBounded(t *testing.T) {
	read := 0
	s := newSite(t, func(o *Options) { o.Links = manyLinks{o.Links, &read} })
	s.ask(theReader, "GET", Root+"/linkfindings?prefix=ark:12345&look=true", "").want(t, 200)
	if read > maxScanned+1 {
		t.Errorf("%d findings were read for a page", read)
	}
	if names := s.all(theReader, "/linkfindings?prefix=ark:12345&look=true"); len(names) != 1 || names[0] != fmt.Sprintf("ark:12345/%06d", maxScanned+99) {
		t.Errorf("%q", names)
	}
}
