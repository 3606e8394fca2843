package desk

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// Of very many targets that wait for their first check the page says that there are more than it counts, and draws no bar: it would never move.
func TestLinksWaitingMore(t *testing.T) {
	s := newLinkSite(t)
	olga := s.as("olga")
	olga.follow(olga.post("/.desk/links", url.Values{"namespace": {"ark:12345/x5"}, "do": {"on"}}))
	s.tell("ark:12345/x5b0", apijson.LinkFinding{URL: "https://example.org/b", State: "failing", Cause: "not-found", Status: 404, Checked: s.now})
	s.cell("w ark\tark:12345/x5b0\t0", []byte{})
	if p := olga.get(linksPage).has(200, "One target waits for its first check."); !strings.Contains(p.text, "<progress") {
		t.Error("there is no bar")
	}
	var cells []stele.CellChange
	for i := range 12_100 { // the first 2,000 are compared with their records, which are not there
		cells = append(cells, stele.CellChange{Name: fmt.Sprintf("%sw ark\tark:12345/x5c%05d\t0", registrar.CheckCells, i), After: []byte{}})
		if len(cells) == 1000 || i == 12_099 {
			if err := s.r.KeepChecks(s.admin, cells...); err != nil {
				t.Fatal(err)
			}
			cells = nil
		}
	}
	if p := olga.get(linksPage).has(200, "More than 10,000 targets wait for their first check."); strings.Contains(p.text, "<progress") {
		t.Error("there is a bar")
	}
}
