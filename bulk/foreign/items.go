package foreign

import (
	"io"

	"github.com/stele-id/stele/bulk"
)

// item is what a file has of one record, as it stands there.
type item struct {
	line int
	text []byte
	err  error // why it can't be read; the rest of the file still can

	unit  any           // what make needs beside the text
	later func() []byte // makes the text of a rejected row; nil if it is text
	size  int           // bytes that the row takes, if that is more than the text
}

// itemPart reads a file whose records follow each other. Finding where they begin and end is done one after
// the other; what they say is read in parallel.
//
// Its bookmark is the number of items: a file that is compressed, or XML, has to be read from its beginning
// in any case.
type itemPart struct {
	s    *Source
	w    *window
	kind Format

	// read returns the next item; io.EOF at the end. It is called by one goroutine. Another error ends the
	// import, after what was read before.
	read func() (item, error)

	// make fills in a row, whose Text is that of its item; several goroutines call it. A row that it
	// refuses has an Err.
	make func(row *bulk.Row)

	done int64
	err  error
}

// next implements part.
func (p *itemPart) next() (*bulk.Block, error) {
	b := new(bulk.Block)
	for p.err == nil && b.Size < windowBytes {
		it, err := p.read()
		if err != nil {
			p.err = err
			break
		}
		p.done++
		b.Rows = append(b.Rows, bulk.Row{Line: it.line, Text: it.text, Err: it.err, Unit: it.unit, Later: it.later})
		b.Size += max(len(it.text), it.size) + 64
	}
	if len(b.Rows) == 0 {
		return nil, p.err
	}
	b.Line, b.Next, b.End = b.Rows[0].Line, p.w.line, p.done
	return b, nil
}

// parse implements part.
func (p *itemPart) parse(row *bulk.Row) { p.make(row) }

// skip implements part.
func (p *itemPart) skip(end int64, _ int) error {
	for p.done < end {
		if _, err := p.read(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		p.done++
	}
	return nil
}

func (p *itemPart) close() error { return nil }
