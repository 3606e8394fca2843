package usage

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
)

// TestCounterReport reads a report page by page, and checks its shape.
func TestCounterReport(t *testing.T) {
	h := newHouse(t)
	h.library()
	h.register("ark:12345/x1", "ark:12345/x2", "ark:12345/x3", "ark:123456/x1")
	for _, day := range []int{0, 20} {
		h.at(time.Duration(day) * 24 * time.Hour)
		h.counter.Redirected(h.id("ark:12345/x1"), h.ann, firefox, "")
		h.counter.Redirected(h.id("ark:12345/x1"), h.ann, googlebot, "")
		h.counter.Redirected(h.id("ark:123456/x1"), h.ann, firefox, "")
		h.flush()
	}
	h.counter.Redirected(h.id("ark:12345/x2"), h.ann, googlebot, "") // a robot only
	h.counter.Redirected(h.id("ark:12345/x3"), h.bob, curl, "")
	h.counter.Described(h.id("ark:12345/x3"), h.bob, curl)
	h.flush()
	book := &Book{Registrar: h.r, Schemes: h.schemes}
	var names []string
	q := apijson.UsageReportQuery{Name: "ark:12345", From: "2026-11-10", Until: "2026-12-31", Limit: 1}
	var first *apijson.UsageReport
	for pages := 1; ; pages++ {
		r, err := book.CounterReport(h.as("bob"), q)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = r
		}
		for _, n := range r.Names {
			names = append(names, n.ID[0].Value)
		}
		if q.After = r.Header.Next; q.After == "" || pages > 5 {
			break
		}
	}
	if diff := cmp.Diff([]string{"ark:12345/x1", "ark:12345/x3"}, names); diff != "" {
		t.Error(diff)
	}
	text, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"report-header":{"report-name":"Resolution Report","report-id":"stele-resolutions","release":"1","created":"2026-12-07T12:00:00Z","created-by":"Stele",` +
		`"reporting-period":{"begin-date":"2026-11-10","end-date":"2026-12-31"},"report-filters":[{"name":"prefix","value":"ark:12345"}],"report-attributes":[],"exceptions":[],"next":"ark:12345/x1"},` +
		`"report-datasets":[{"dataset-title":"","dataset-id":[{"type":"ark","value":"ark:12345/x1"}],"platform":"Stele","publisher":"ark:12345","publisher-id":[{"type":"namespace","value":"ark:12345"}],"data-type":"Other",` +
		`"performance":[{"period":{"begin-date":"2026-11-10","end-date":"2026-11-30"},"instance":[{"metric-type":"total-resolutions","access-method":"regular","count":1},{"metric-type":"unique-resolutions","access-method":"regular","count":1}]},` +
		`{"period":{"begin-date":"2026-12-01","end-date":"2026-12-31"},"instance":[{"metric-type":"total-resolutions","access-method":"regular","count":1},{"metric-type":"unique-resolutions","access-method":"regular","count":1}]}]}]}`
	if string(text) != want {
		t.Errorf("%s", text)
	}
	h.put(recordCell(h.id("ark:12345/x2"), DateOf(noon).number()), []byte{200})
	if r, err := book.CounterReport(h.as("bob"), apijson.UsageReportQuery{Name: "ark:12345"}); err != nil || len(r.Header.Exceptions) != 1 || len(r.Names) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	for who, want := range map[string]stele.Kind{"eve": stele.Forbidden, "": stele.Unauthenticated} {
		if _, err := book.CounterReport(h.as(who), apijson.UsageReportQuery{Name: "ark:12345"}); stele.KindOf(err) != want {
			t.Errorf("%q: %v", who, err)
		}
	}
}

// TestCounterReportMonths has a month whose days were added up: it is there as a whole, or not at all, and the report says so.
func TestCounterReportMonths(t *testing.T) {
	h := newHouse(t)
	h.library()
	h.register("ark:12345/x1")
	h.put(recordCell(h.id("ark:12345/x1"), Date{2024, 3}.number()), appendMonth(nil, &Month{Days: []Day{{0, Counts{Regulars: 5}}}}))
	book := &Book{Registrar: h.r, Schemes: h.schemes}
	for _, c := range []struct {
		from, until, want string
		faults            int
	}{
		{"2024-03-01", "2024-03-10", "2024-03-01 2024-03-31", 1},
		{"2024-02", "2024-03", "2024-03-01 2024-03-31", 0},
		{"2024-03-02", "2024-04", "", 1},
	} {
		r, err := book.CounterReport(h.as("bob"), apijson.UsageReportQuery{Name: "ark:12345", From: c.from, Until: c.until})
		if err != nil {
			t.Fatal(err)
		}
		have := ""
		for _, n := range r.Names {
			have += n.Performance[0].Period.Begin + " " + n.Performance[0].Period.End
		}
		if have != c.want || len(r.Header.Exceptions) != c.faults {
			t.Errorf("%+v: %q, %+v", c, have, r.Header.Exceptions)
		}
	}
}
