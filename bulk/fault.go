package bulk

import (
	"fmt"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/fault"
)

// rowFault makes an error of what recover returned: readers and parsers read files of others inside a server, which must not end
// because of one of them. A deferred function calls it.
func rowFault(panicked any) error {
	return failf(stele.Internal, "row.fault", "it can't be read because of a fault in the program: {cause}, at {place}; report it with the text", fmt.Sprint(panicked), fault.Place())
}

// ParseRow calls parse with a row. If parse panics, the row is rejected.
func ParseRow(row *Row, parse func(*Row)) {
	defer func() {
		if p := recover(); p != nil {
			*row = Row{Line: row.Line, Text: row.Text, Later: row.Later, Err: rowFault(p)}
		}
	}()
	parse(row)
}

// parseBlock calls Parse. If that panics, one rejected row has the text of the whole block, so that none of it is lost.
func parseBlock(rows Rows, b *Block) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		err := rowFault(p)
		if b.Text != nil || len(b.Rows) == 0 {
			b.Rows = []Row{{Line: b.Line, Text: b.Text, Err: err}}
			return
		}
		for i := range b.Rows {
			b.Rows[i] = Row{Line: b.Rows[i].Line, Text: b.Rows[i].Text, Later: b.Rows[i].Later, Err: err}
		}
	}()
	rows.Parse(b)
}

// nextBlock calls Next. A panic of it is an error.
func nextBlock(rows Rows) (b *Block, err error) {
	defer func() {
		if p := recover(); p != nil {
			b, err = nil, rowFault(p)
		}
	}()
	return rows.Next()
}
