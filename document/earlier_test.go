package document

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/recordtest"
)

func TestEarlier(t *testing.T) {
	schemes := recordtest.Spellers(t)
	const line = `{"id":"ab:x1","earlier":[{"url":"https://a.example/","modified":"2001-02-03T04:05:06Z","by":"ann"},` +
		`{"aliases":["cd:y"],"state":"withdrawn","tombstone":{"reason":"gone"},"modified":"2002-02-03T04:05:06Z"}],"url":"https://b.example/"}`
	rest, list, err := CutEarlier(schemes, []byte(line))
	if err != nil || len(list) != 2 {
		t.Fatalf("CutEarlier: %d versions, %v", len(list), err)
	}
	rec, err := DecodeRecord(schemes, rest)
	if err != nil {
		t.Fatal(err)
	}
	if list[0].ID != rec.ID || list[0].By != "ann" || list[1].State != stele.Withdrawn || len(list[1].Aliases) != 1 || list[1].Modified.Year() != 2002 {
		t.Errorf("the versions are %+v", list)
	}

	// What is written is read back.
	text := AppendEarlier(AppendRecord(nil, rec), list)
	rest, again, err := CutEarlier(schemes, text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(list, again, cmp.AllowUnexported(stele.ID{})); diff != "" {
		t.Error(diff)
	}
	if back, err := DecodeRecord(schemes, rest); err != nil || !bytes.Equal(AppendRecord(nil, back), AppendRecord(nil, rec)) {
		t.Errorf("the record is %s, %v", rest, err)
	}
	if got := AppendEarlier([]byte("{}"), nil); string(got) != "{}" {
		t.Errorf("no versions: %s", got)
	}
}

func TestEarlierRefused(t *testing.T) {
	schemes := recordtest.Spellers(t)
	version := `{"url":"https://a.example/","modified":"2001-02-03T04:05:06Z"}`
	for text, want := range map[string]string{
		`{}`:                  "earlier: should be a list",
		`null`:                "earlier: should be a list",
		`[1]`:                 "earlier[0]: this is not an object",
		`[{}]`:                "earlier[0].modified: is missing",
		`[` + version + `,3]`: "earlier[1]: this is not an object",
		`[{"modified":"2001-02-03T04:05:06Z","id":"ab:x2"}]`:                "earlier[0].id: an earlier version does not have it",
		`[{"modified":"2001-02-03T04:05:06Z","version":3}]`:                 "earlier[0].version: an earlier version does not have it",
		`[{"modified":"2001-02-03T04:05:06Z","earlier":[]}]`:                "earlier[0].earlier: an earlier version does not have it",
		`[{"modified":"yesterday"}]`:                                        "earlier[0].modified: ",
		`[{"modified":"2001-02-03T04:05:06Z","color":"red"}]`:               "earlier[0].color: there is no such field",
		`[{"modified":"2001-02-03T04:05:06Z","url":"javascript:1"}]`:        "earlier[0].url: ",
		`[{"modified":"2001-02-03T04:05:06Z","targets":[{"url":"x:"}]}]`:    "earlier[0].targets[0].url: ",
		`[` + strings.Repeat(version+",", stele.MaxEarlier) + version + `]`: fmt.Sprintf("earlier: has %d items", stele.MaxEarlier+1),
	} {
		_, _, err := CutEarlier(schemes, []byte(`{"id":"ab:x1","earlier":`+text+`}`))
		if err == nil || stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
	// A line that is wrong otherwise is the record's to refuse.
	for _, line := range []string{`{"earlier":`, `{"id":"ab:x1","metadata":{"earlier":"1"}}`, `{"earlier":[` + version + `]}`} {
		if _, list, err := CutEarlier(schemes, []byte(line)); err != nil || len(list) != 0 {
			t.Errorf("%s: %v, %v", line, list, err)
		}
	}
}

func FuzzEarlier(f *testing.F) {
	f.Add(`{"id":"ab:x1","earlier":[{"url":"https://a.example/","modified":"2001-02-03T04:05:06Z","by":"ann"}]}`)
	f.Add(`{"id":"ab:x1","earlier":[{"modified":"2001-02-03T04:05:06Z","state":"reserved"},{}]}`)
	f.Add(`{"earlier":[[]],"id":3}`)
	schemes := recordtest.Spellers(f)
	f.Fuzz(func(t *testing.T, line string) {
		_, list, err := CutEarlier(schemes, []byte(line))
		if err != nil {
			return
		}
		for _, r := range list {
			if !r.ID.IsValid() {
				t.Errorf("%q gives a version without an identifier", line)
			}
		}
		if len(list) == 0 {
			return
		}
		text := AppendEarlier(AppendRecord(nil, list[0]), list)
		_, again, err := CutEarlier(schemes, text)
		if err != nil || !bytes.Equal(AppendEarlier([]byte("{}"), list), AppendEarlier([]byte("{}"), again)) {
			t.Errorf("%s is read as %d versions, %v; want %d", text, len(again), err, len(list))
		}
	})
}
