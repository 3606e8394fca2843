package foreign

import (
	"bytes"
	"io"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document/handlejson"
)

// dbListPart reads what hdl-dblist -v prints (specification, section 2): a line with the name, then the list of the values in
// JSON on several lines, and an empty line.
type dbListPart struct {
	jsonPart
	started bool
}

// next implements part.
func (p *dbListPart) next() (*bulk.Block, error) {
	b := &bulk.Block{Line: p.w.line}
	for p.s.err == nil && b.Size < windowBytes {
		row, ok, err := p.handle()
		if err != nil && len(b.Rows) == 0 {
			return nil, err
		}
		if p.s.err = err; err != nil || !ok {
			break
		}
		b.Rows = append(b.Rows, row)
		b.Size += len(row.Text) + 64
		b.Next, b.End = p.w.line, p.w.offset()
	}
	if len(b.Rows) == 0 {
		if p.s.err != nil {
			return nil, p.s.err
		}
		return nil, io.EOF
	}
	return b, nil
}

// handle reads a name and its values. ok is false at the end.
func (p *dbListPart) handle() (row bulk.Row, ok bool, err error) {
	w := p.w
	if !p.started && bytes.HasPrefix(w.peekText(3), []byte("\xef\xbb\xbf")) {
		w.take(3)
	}
	p.started = true
	if w.space(); w.ended() {
		return row, false, w.failure()
	}
	row.Line = w.line
	name, long, _ := w.nextLine()
	if w.space(); w.peek() != '[' {
		row.Err = failf(stele.Invalid, "import.foreign-dblist-bare", "the values of {name} are missing; list the database with hdl-dblist -v", stele.Quote(string(name[:min(len(name), 200)])))
		return row, true, w.failure()
	}
	text, longer, err := p.value(maxRow)
	switch {
	case err != nil:
		return row, false, err
	case long > 0 || longer > 0:
		row.Err = tooLong(max(long, longer), maxRow)
		return row, true, nil
	}
	row.Text = append(append([]byte(`{"handle":`), handlejson.Quote(string(name))...), `,"values":`...)
	row.Text = append(append(row.Text, text...), '}')
	return row, true, nil
}

// skip implements part.
func (p *dbListPart) skip(end int64, line int) error {
	p.started = true
	return p.w.skipTo(end, line)
}
