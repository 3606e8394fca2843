package describe

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// citationRow is a record, its item of CSL-JSON, and what the reference implementation makes
// of that.
type citationRow struct {
	Name     string          `json:"name"`
	DOI      string          `json:"doi"`
	Metadata stele.Metadata  `json:"metadata"`
	CSL      json.RawMessage `json:"csl"`
	APA      string          `json:"apa"`
	IEEE     string          `json:"ieee"`
}

const citationTable = "testdata/citations.json"

// TestCitationTable compares citations with those of citeproc-js, which testdata/citations.mjs
// has written down: for the item that we tell of the same record.
func TestCitationTable(t *testing.T) {
	text, err := os.ReadFile(citationTable)
	if err != nil {
		t.Fatal(err)
	}
	var rows []citationRow
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	csl, citation := format(t, "csl"), format(t, "citation")
	for i := range rows {
		row := &rows[i]
		s := subject(&stele.Record{ID: id(t, "ark", "ark:12345/x1"), State: stele.Active, Metadata: row.Metadata})
		s.DOI = row.DOI
		item := bytes.TrimSpace(mustAppend(t, csl, s))
		if *update {
			row.CSL = item
			continue
		}
		var known, told any
		if json.Unmarshal(row.CSL, &known) != nil || json.Unmarshal(item, &told) != nil || !reflect.DeepEqual(known, told) {
			t.Errorf("%s: the item is %s\nwant %s", row.Name, item, row.CSL)
		}
		for style, want := range map[Style]string{APA: row.APA, IEEE: row.IEEE} {
			f, _ := citation.In(string(style))
			if got := strings.TrimSuffix(string(mustAppend(t, f, s)), "\n"); got != want || want == "" {
				t.Errorf("%s as %s:\ngot  %s\nwant %s", row.Name, style, got, want)
			}
		}
	}
	if len(rows) < 80 {
		t.Errorf("%d rows", len(rows))
	}
	if *update {
		text, err := json.MarshalIndent(rows, "", " ")
		if err == nil {
			err = os.WriteFile(citationTable, append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
