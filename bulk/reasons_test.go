package bulk

import (
	"fmt"
	"testing"

	"github.com/stele-id/stele"
)

// TestReasons: rejected rows are counted by what is wrong with them, with the first line of each, and a file in
// which every row has another problem takes no more room than one with a hundred.
func TestReasons(t *testing.T) {
	var r Reasons
	for line := 1; line <= 1000; line++ {
		switch {
		case line%2 == 0:
			r.add(&Row{Line: line, Err: stele.Problems{{Path: "url", Err: stele.Messagef("test.url", "{url} is wrong", line)}}})
		case line < 10:
			r.add(&Row{Line: line, Err: stele.Messagef("test.whole", "the row is wrong")})
		default:
			r.add(&Row{Line: line, Err: stele.Messagef(fmt.Sprintf("test.other-%d", line), "another problem")})
		}
	}
	list := r.List()
	if len(list) != maxReasons+1 {
		t.Fatalf("%d reasons", len(list))
	}
	if got := list[0]; got.Count != 500 || got.Line != 2 || got.Code != "test.url" || got.Path != "url" {
		t.Errorf("the first is %+v", got)
	}
	if got := list[1]; got.Count != 5 || got.Line != 1 || got.Code != "test.whole" || got.Path != "" {
		t.Errorf("the second is %+v", got)
	}
	all := 0
	for _, one := range list {
		all += one.Count
	}
	if last := list[len(list)-1]; all != 1000 || last.Text != "other reasons" || last.Count != 1000-500-5-98 {
		t.Errorf("%d rows; the last is %+v", all, last)
	}
}
