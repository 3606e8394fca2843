package usage

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
)

// TestBook reads figures by month, day and name, as readers, owners of other namespaces and the public may.
func TestBook(t *testing.T) {
	h := newHouse(t)
	admin := auth.With(t.Context(), auth.Local())
	if _, err := h.r.AddNamespace(admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Owner: "ann", Grants: []stele.Grant{{To: "user:bob", Role: stele.RoleReader}}}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ark:12345/x1", "ark:12345/x12", "ark:12345/x2", "ark:123456/x1"} {
		rec := &stele.Record{ID: h.id(name), State: stele.Active, Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/", Order: 100, Preference: 10}}}
		if _, err := h.r.Register(admin, rec); err != nil {
			t.Fatal(err)
		}
	}
	for _, day := range []int{0, 1, 20} {
		h.at(time.Duration(day) * 24 * time.Hour)
		h.counter.Redirected(h.id("ark:12345/x1"), h.ann, firefox, "")
		h.counter.Redirected(h.id("ark:12345/x12"), h.ann, firefox, "")
		h.counter.Redirected(h.id("ark:12345/x12"), h.bob, curl, "")
		h.counter.Redirected(h.id("ark:123456/x1"), h.bob, curl, "") // it only begins with the same letters
		h.flush()
	}
	book := &Book{Registrar: h.r, Schemes: h.schemes}
	as := func(name string) context.Context { return auth.With(t.Context(), auth.Principal{Name: name}) }
	rows := func(ctx context.Context, q apijson.UsageQuery) (list []string) {
		t.Helper()
		r, err := book.Report(ctx, q)
		if err != nil {
			return []string{stele.KindOf(err).String()}
		}
		for _, row := range append(r.Rows, r.Total) {
			list = append(list, row.Name+row.Period+" "+string(rune('0'+row.Regular))+string(rune('0'+row.Machine)))
		}
		return list
	}
	for _, c := range []struct {
		who  string
		q    apijson.UsageQuery
		want []string
	}{
		{"ann", apijson.UsageQuery{Name: "ark:12345/x1"}, []string{"2026-11 20", "2026-12 10", " 30"}},
		{"bob", apijson.UsageQuery{Name: "ark:/12345/x1", By: "day", From: "2026-11-18"}, []string{"2026-11-18 10", "2026-12-07 10", " 20"}},
		{"bob", apijson.UsageQuery{Name: "ark:12345", By: "name"}, []string{"ark:12345/x12 33", "ark:12345/x1 30", " 63"}},
		{"bob", apijson.UsageQuery{Name: "ark:12345", By: "name", Limit: 1}, []string{"ark:12345/x12 33", " 63"}},
		{"bob", apijson.UsageQuery{Name: "ark:12345", Until: "2026-11"}, []string{"2026-11 42", " 42"}},
		{"bob", apijson.UsageQuery{Name: "ark:12345/x2"}, []string{" 00"}},
		{"bob", apijson.UsageQuery{Name: "ark:12345", Limit: -1}, []string{"invalid"}},
		{"bob", apijson.UsageQuery{Name: "ark:12345", Limit: maxRows + 1}, []string{"invalid"}},
		{"bob", apijson.UsageQuery{Name: "ark:12345", By: "hour"}, []string{"invalid"}},
		{"bob", apijson.UsageQuery{Name: "ark:12345", From: "yesterday"}, []string{"invalid"}},
		{"bob", apijson.UsageQuery{Name: "ark:12345", From: "2026-12", Until: "2026-11"}, []string{"invalid"}},
		{"eve", apijson.UsageQuery{Name: "ark:12345"}, []string{"forbidden"}},
		{"eve", apijson.UsageQuery{Name: "ark:12345/x1"}, []string{"forbidden"}},
		{"", apijson.UsageQuery{Name: "ark:12345"}, []string{"unauthenticated"}},
		{"", apijson.UsageQuery{Name: "ark:12345/x1"}, []string{"unauthenticated"}},
	} {
		if diff := cmp.Diff(c.want, rows(as(c.who), c.q)); diff != "" {
			t.Errorf("%s asks for %+v: %s", c.who, c.q, diff)
		}
	}
	if r, err := book.Report(admin, apijson.UsageQuery{Name: "ark:12345"}); err != nil || r.Total.Visitors != 6 || r.Began == "" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestTopOfMany finds the most used names of more than a report has.
func TestTopOfMany(t *testing.T) {
	period := span{dayOf(noon.Unix()) - 31, dayOf(noon.Unix())}
	month := DateOf(noon).number()
	once := &Month{Days: []Day{{17, Counts{Regulars: 1}}}}
	fill := func(limit int) (*apijson.Usage, error) {
		t.Helper()
		sums := newSums(byName, limit)
		for n := range maxRows + 10 {
			name := fmt.Sprintf("ark:12345/%06d", n)
			months := []int{month}
			if n%50_000 == 0 { // three of them are used in both months
				months = []int{month - 1, month}
			}
			for _, m := range months {
				if err := sums.add(name, m, once, period); err != nil {
					return nil, err
				}
			}
		}
		r := new(apijson.Usage)
		sums.fill(r)
		return r, nil
	}
	if _, err := fill(0); stele.KindOf(err) != stele.Exhausted {
		t.Errorf("without a limit: %v", err)
	}
	r, err := fill(4)
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, row := range r.Rows {
		have = append(have, fmt.Sprint(row.Name, " ", row.Regular))
	}
	want := []string{"ark:12345/000000 2", "ark:12345/050000 2", "ark:12345/100000 2", "ark:12345/000001 1"}
	if diff := cmp.Diff(want, have); diff != "" || r.Total.Regular != maxRows+13 {
		t.Errorf("%s; %d in all", diff, r.Total.Regular)
	}
}

// TestReportOf asks for the figures of a record and a namespace that have the same name.
func TestReportOf(t *testing.T) {
	h := newHouse(t)
	h.library()
	if _, err := h.r.AddNamespace(asServer(t.Context()), &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x1", Owner: "ann"}); err != nil {
		t.Fatal(err)
	}
	h.register("ark:12345/x1")
	month := DateOf(noon).number()
	h.put(recordCell(h.id("ark:12345/x1"), month), appendMonth(nil, &Month{Days: []Day{{1, Counts{Regulars: 1}}}}))
	h.put(spaceCell(stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x1"}, month), appendMonth(nil, &Month{Days: []Day{{1, Counts{Regulars: 5, Visitors: 3}}}}))
	book := &Book{Registrar: h.r, Schemes: h.schemes}
	for _, c := range []struct {
		name, of string
		want     uint64
		kind     stele.Kind
	}{
		{"ark:12345/x1", "", 5, 0}, {"ark:12345/x1", "namespace", 5, 0}, {"ark:12345/x1", "record", 1, 0}, {"ark:12345/x2", "record", 0, stele.NotFound}, {"ark:12345/x1", "both", 0, stele.Invalid},
	} {
		r, err := book.Report(h.as("bob"), apijson.UsageQuery{Name: c.name, Of: c.of})
		switch {
		case c.kind != 0:
			if stele.KindOf(err) != c.kind {
				t.Errorf("%+v: %v", c, err)
			}
		case err != nil || r.Total.Regular != c.want || r.Record != (c.of == "record"):
			t.Errorf("%+v: %+v, %v", c, r, err)
		}
	}
}
