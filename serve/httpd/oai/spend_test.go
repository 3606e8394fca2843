package oai_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/serve/httpd/describe"
	"github.com/stele-id/stele/serve/httpd/oai"
	"github.com/stele-id/stele/store/mem"
)

// failing is a store that fails after some records.
type failing struct{ *mem.Store }

func (f failing) Scan(ctx context.Context, scheme, prefix, after string) iter.Seq2[*stele.Record, error] {
	return func(yield func(*stele.Record, error) bool) {
		n := 0
		for rec, err := range f.Store.Scan(ctx, scheme, prefix, after) {
			if n++; n > 3 {
				rec, err = nil, errors.New("the disk is gone")
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// bill is a request that notes what it costs.
type bill struct {
	spent  int
	failed bool
}

func (b *bill) Base() string                                                 { return "https://id.example.org" }
func (b *bill) Subject(*stele.Record, *stele.Namespace) (s describe.Subject) { return s }
func (b *bill) Send(int, string, []byte)                                     {}
func (b *bill) Fail(error)                                                   { b.failed = true }
func (b *bill) Spend(_, read int)                                            { b.spent += read }

// TestFailedPagesCost: a client pays for a page that fails after records were read.
func TestFailedPagesCost(t *testing.T) {
	s := newRepository(t, 10)
	s.space("ark", "ark:12345", true)
	for i := range 9 {
		if _, err := s.registrar.Register(s.ctx, &stele.Record{ID: s.id(fmt.Sprintf("ark:12345/x%d", i)), State: stele.Active, Targets: []stele.Target{{Service: stele.N2L, URL: "https://a.example/", Order: 100, Preference: 10}}}); err != nil {
			t.Fatal(err)
		}
	}
	h := oai.New(oai.Options{Registrar: s.registrar, Store: failing{s.store}, Schemes: s.schemes, Now: func() time.Time { return s.now }, Name: "x", Mail: "ids@example.org"})
	var b bill
	h.Serve(httptest.NewRequest("GET", "/.oai", nil), "verb=ListIdentifiers&metadataPrefix=oai_dc", &b)
	if !b.failed || b.spent < 3 {
		t.Errorf("%+v", b)
	}
}
