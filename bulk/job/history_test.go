package job

import (
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
)

// TestNewWithHistory: a new record that comes with its earlier versions is counted as a new one, although its
// version is not the first.
func TestNewWithHistory(t *testing.T) {
	for want, row := range map[Kind]*bulk.Row{
		New:     {Record: &stele.Record{Version: 3}, Earlier: []*stele.Record{{Version: 1}, {Version: 2}}},
		Changed: {Record: &stele.Record{Version: 3}},
	} {
		if got := kindOf(row); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
