package usage

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
)

// library adds a namespace of ann, whose reader is bob, and one below that is eve's.
func (h *house) library() {
	h.Helper()
	admin := auth.With(h.Context(), auth.Local())
	for _, ns := range []*stele.Namespace{
		{Scheme: "ark", Prefix: "ark:12345", Owner: "ann", Grants: []stele.Grant{{To: "user:bob", Role: stele.RoleReader}}},
		{Scheme: "ark", Prefix: "ark:123456", Owner: "eve"},
	} {
		if _, err := h.r.AddNamespace(admin, ns); err != nil {
			h.Fatal(err)
		}
	}
}

func (h *house) register(names ...string) {
	h.Helper()
	for _, name := range names {
		rec := &stele.Record{ID: h.id(name), State: stele.Active, Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/", Order: 100, Preference: 10}}}
		if _, err := h.r.Register(auth.With(h.Context(), auth.Local()), rec); err != nil {
			h.Fatal(err)
		}
	}
}

func (h *house) as(name string) context.Context {
	return auth.With(h.Context(), auth.Principal{Name: name})
}

// put writes a cell as it is.
func (h *house) put(cell string, value []byte) {
	h.Helper()
	server := asServer(h.Context())
	before, err := h.r.UsageCell(server, cell)
	if err == nil {
		err = h.r.KeepUsage(server, stele.CellChange{Name: cell, Before: before, After: value})
	}
	if err != nil {
		h.Fatal(err)
	}
}

// TestBreakdown reads what is counted for namespaces, as those may who may see it.
func TestBreakdown(t *testing.T) {
	h := newHouse(t)
	h.library()
	h.counter.Redirected(h.id("ark:12345/x1"), h.ann, firefox, "https://www.example.org/page?q=secret")
	h.counter.Redirected(h.id("ark:12345/x1"), h.bob, firefox, "https://www.example.org/other")
	h.counter.Redirected(h.id("ark:12345/x2"), h.bob, firefox, "https://example.net/")
	h.counter.Redirected(h.id("ark:123456/x2"), h.bob, firefox, "https://example.com/")
	for range 3 {
		h.counter.Failed(h.id("ark:12345/often"), h.ann, firefox)
	}
	h.counter.Failed(h.id("ark:12345/once"), h.ann, firefox)
	h.flush()
	month := DateOf(noon).number()
	h.put(cellName(landCells, "ark", "ark:12345", month), appendTexts(nil, []Tally{{"BR", 7}, {"AU", 2}, {otherText, 1}}))
	h.put(cellName(landCells, "ark", "ark:12345", month-1), appendTexts(nil, []Tally{{"AU", 6}}))
	h.put(cellName(landCells, "ark", "ark:12345", month-13), appendTexts(nil, []Tally{{"AU", 100}}))
	h.put(cellName(landCells, "ark", "ark:123456", month), appendTexts(nil, []Tally{{"DE", 7}}))
	h.put(zoneCell("ark.example.", month), appendHours(nil, []Hour{{0, 9}, {16*24 + 3, 5}, {16*24 + 4, 2}}))
	h.put(zoneCell("ark.example.org.", month), appendHours(nil, []Hour{{16 * 24, 1}}))
	if _, err := h.r.SetNamespace(auth.With(t.Context(), auth.Local()), stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}, 0, func(ns *stele.Namespace) error {
		ns.Publication = stele.Publication{Zone: "ark.example.", Layout: stele.LayoutNames, Separator: "/", Parts: 2, Servers: []stele.NameServer{{Name: "ns1.example.net."}}, Mailbox: "hostmaster@example.net"}
		return nil
	}); err != nil {
		t.Fatal(err)
	}

	book := &Book{Registrar: h.r, Schemes: h.schemes}
	for _, c := range []struct {
		who, by, name, from string
		limit               int
		want                string
	}{
		{"bob", "referrer", "ark:12345", "", 0, "[{example.org 2} {example.net 1}] 0 3"},
		{"bob", "referrer", "ark:12345", "", 1, "[{example.org 2}] 1 3"},
		{"bob", "country", "ark:12345", "", 0, "[{AU 8} {BR 7}] 1 16"},
		{"bob", "country", "ark:12345", "2026-11", 0, "[{BR 7} {AU 2}] 1 10"},
		{"bob", "failure", "ark:12345", "", 0, "[{ark:12345/often 3}] 0 3"},
		{"bob", "dns", "ark:12345", "", 0, "[{2026-11-17T03:00:00Z 5} {2026-11-17T04:00:00Z 2}] 0 7"},
		{"bob", "dns", "ark:12345", "2026-11", 0, "[{2026-11-01T00:00:00Z 9} {2026-11-17T03:00:00Z 5} {2026-11-17T04:00:00Z 2}] 0 16"},
		{"eve", "dns", "ark:123456", "", 0, "not found"},
		{"bob", "weather", "ark:12345", "", 0, "invalid"},
		{"bob", "country", "ark:12345", "", -1, "invalid"},
		{"bob", "country", "ark:12345/x", "", 0, "invalid"},
		{"bob", "dns", "ark:12345/x", "", 0, "invalid"},
		{"eve", "referrer", "ark:12345", "", 0, "forbidden"},
		{"eve", "country", "ark:12345", "", 0, "forbidden"},
		{"eve", "failure", "ark:12345", "", 0, "forbidden"},
		{"eve", "dns", "ark:12345", "", 0, "forbidden"},
		{"", "failure", "ark:12345", "", 0, "unauthenticated"},
	} {
		r, err := book.Breakdown(h.as(c.who), apijson.UsageQuery{Name: c.name, By: c.by, From: c.from, Limit: c.limit})
		have := stele.KindOf(err).String()
		if err == nil {
			have = fmt.Sprint(r.Rows, r.Other, r.Total)
		}
		if have != c.want {
			t.Errorf("%+v: %s, %v", c, have, err)
		}
	}
}

// TestUnused finds names without uses, over several pages, and leaves out those that were used by people or programs.
func TestUnused(t *testing.T) {
	h := newHouse(t)
	h.library()
	long := func(end string) string { return "ark:12345/" + strings.Repeat("l", 950) + end }
	names := []string{"ark:12345/a", "ark:12345/ab", "ark:12345/b", "ark:12345/c", long("1"), long("2"), "ark:12345/z", "ark:123456/x"}
	h.register(names...)
	h.counter.Redirected(h.id("ark:12345/ab"), h.ann, firefox, "")
	h.counter.Described(h.id("ark:12345/b"), h.ann, curl)
	h.counter.Redirected(h.id("ark:12345/c"), h.ann, googlebot, "")
	h.counter.Redirected(h.id(long("1")), h.ann, curl, "")
	h.flush()
	month := DateOf(noon).number()
	old := appendMonth(nil, &Month{Days: []Day{{0, Counts{Regulars: 5}}}})
	h.put(recordCell(h.id("ark:12345/a"), month-25), old)
	h.put(recordCell(h.id("ark:12345/z"), month-24), old)

	book := &Book{Registrar: h.r, Schemes: h.schemes}
	list := func(q apijson.UnusedQuery) (names []string) {
		t.Helper()
		q.Name = "ark:12345"
		for {
			u, err := book.Unused(h.as("bob"), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range u.Names {
				names = append(names, n.Name)
			}
			if q.After = u.Next; u.Next == "" {
				return names
			}
		}
	}
	for limit := range 5 {
		if diff := cmp.Diff([]string{"ark:12345/a", "ark:12345/c", long("2")}, list(apijson.UnusedQuery{Limit: limit})); diff != "" {
			t.Errorf("limit %d: %s", limit, diff)
		}
	}
	if diff := cmp.Diff([]string{"ark:12345/c", long("2")}, list(apijson.UnusedQuery{Since: "2020-01"})); diff != "" {
		t.Error(diff)
	}
	for who, want := range map[string]stele.Kind{"eve": stele.Forbidden, "": stele.Unauthenticated} {
		if _, err := book.Unused(h.as(who), apijson.UnusedQuery{Name: "ark:12345"}); stele.KindOf(err) != want {
			t.Errorf("%q: %v", who, err)
		}
	}
	if _, err := book.Unused(h.as("bob"), apijson.UnusedQuery{Name: "ark:12345", Limit: maxUnused + 1}); stele.KindOf(err) != stele.Invalid {
		t.Error(err)
	}
}

// TestDamagedReport checks that a report goes on without a cell that can't be read, says so, and tells the operator.
func TestDamagedReport(t *testing.T) {
	h := newHouse(t)
	h.library()
	h.register("ark:12345/x1", "ark:12345/x2", "ark:12345/x3")
	h.at(time.Hour).counter.Redirected(h.id("ark:12345/x1"), h.ann, firefox, "https://example.org/")
	h.flush()
	month := DateOf(noon).number()
	wrong := []byte{200}
	h.put(recordCell(h.id("ark:12345/x1"), month-1), wrong)
	h.put(recordCell(h.id("ark:12345/x2"), month), wrong)
	h.put(spaceCell(stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}, month-1), wrong)
	h.put(cellName(hostCells, "ark", "ark:12345", month-1), wrong)
	var log bytes.Buffer
	book := &Book{Registrar: h.r, Schemes: h.schemes, Log: slog.New(slog.NewTextHandler(&log, nil))}
	for _, q := range []apijson.UsageQuery{{Name: "ark:12345/x1"}, {Name: "ark:12345"}, {Name: "ark:12345/x", By: byName}} {
		r, err := book.Report(h.as("bob"), q)
		if err != nil || r.Damaged == 0 || r.Total.Regular != 1 {
			t.Errorf("%+v: %+v, %v", q, r, err)
		}
	}
	if r, err := book.Referrers(h.as("bob"), apijson.UsageQuery{Name: "ark:12345"}); err != nil || r.Damaged != 1 || r.Total != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if u, err := book.Unused(h.as("bob"), apijson.UnusedQuery{Name: "ark:12345"}); err != nil || u.Damaged != 2 || len(u.Names) != 1 {
		t.Errorf("%+v, %v", u, err) // x2 may have been used
	}
	if !strings.Contains(log.String(), "ark:12345/x2") {
		t.Error(log.String())
	}
}
