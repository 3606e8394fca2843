package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/registrar"
)

// importParser turns blocks of rows into what they say. Several goroutines use it.
type importParser struct {
	schemes   *stele.Schemes
	csv       csvFormat
	header    bulk.Header // nil for JSON
	title     []byte      // the header as it stands in the file
	delimiter byte
}

// newParser finds out in which format the rows are, and leaves the reader at the
// first of them.
func newParser(schemes *stele.Schemes, r *rowReader, name string, csv csvFormat) (*importParser, error) {
	r.start(csv.encoding)
	p := &importParser{schemes: schemes, csv: csv}
	switch text := bytes.TrimLeft(r.buf, " \t"); {
	case len(text) == 0 || text[0] == '{':
		return p, nil
	case text[0] == '[':
		return nil, refuse("import", stele.Invalid, "%s is one JSON array; write an object a line: jq -c '.[]'", name)
	}
	if r.decoder == nil {
		r.decode(csv.encoding)
	}
	var err error
	p.header, p.title, err = r.readHeader(name, csv.columns)
	p.delimiter = r.delimiter
	return p, err
}

// parse fills in what the rows of a block say.
func (p *importParser) parse(b *block) {
	defer close(b.done)
	switch {
	case b.long > 0:
		b.rows = []importRow{{line: b.line, err: &longRow{b.long, b.text}}}
	case p.header != nil:
		p.parseCSV(b)
	default:
		p.parseJSON(b)
	}
}

// longRow is the error of a row that is too long to be read.
type longRow struct {
	size int
	head []byte
}

func (e *longRow) Error() string {
	return fmt.Sprintf("the line has %d bytes; %d are the most", e.size, maxRow)
}

// longShown is how much of such a row is told.
const longShown = 200

func tooLongRow(text []byte) error { return &longRow{len(text), text[:longShown]} }

// parseJSON reads lines of JSON.
func (p *importParser) parseJSON(b *block) {
	b.rows = make([]importRow, 0, bytes.Count(b.text, []byte{'\n'})+1)
	line := b.line
	for text := range bytes.Lines(b.text) {
		row := importRow{line: line, text: bulk.TrimEnd(text)}
		line++
		switch {
		case bulk.IsSkipped(row.text):
			continue
		case len(row.text) > maxRow:
			row.err = tooLongRow(row.text)
		default:
			p.parseLine(&row)
		}
		b.rows = append(b.rows, row)
	}
}

// parseLine reads a line of JSON. A record that may be merged with a registered one is
// judged when that is done.
func (p *importParser) parseLine(row *importRow) {
	if p.csv.rows.Merges && !registrar.IsNamespaceLine(row.text) {
		row.patch = row.text
		row.record, row.err = registrar.Patch(p.schemes, nil, row.text)
		return
	}
	var said registrar.Line
	said, row.err = registrar.ParseLine(p.schemes, row.text)
	row.record, row.namespace = said.Record, said.Namespace
}

// inFlight is how much text is read and not committed, in pieces of rowBlock. It
// bounds the memory of an import.
const inFlight = 160

// importFlow is an import under way: one goroutine reads, some parse, and whoever
// takes the blocks commits.
type importFlow struct {
	blocks chan *block   // in order; their done is closed when they are parsed
	room   chan struct{} // a token for each piece in flight
	err    error         // why reading ended, if not at the end; set before blocks is closed
}

// flow starts reading and parsing. It ends when the context does, or when all is
// read. If reading fails, explain says why.
func (p *importParser) flow(ctx context.Context, r *rowReader, explain func(error) error) *importFlow {
	f := &importFlow{blocks: make(chan *block, inFlight), room: make(chan struct{}, inFlight)}
	work := make(chan *block)
	var parsers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		parsers.Go(func() {
			for b := range work {
				p.parse(b)
			}
		})
	}
	go func() {
		f.err = f.read(ctx, r, work, explain)
		close(work)
		parsers.Wait()
		close(f.blocks)
	}()
	return f
}

// read hands blocks to the parsers and, in order, to whoever commits.
func (f *importFlow) read(ctx context.Context, r *rowReader, work chan<- *block, explain func(error) error) error {
	for {
		b, err := r.next()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return explain(err)
		}
		for range b.pieces() {
			select {
			case f.room <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		f.blocks <- b // there is room: it has at least one piece
		select {
		case work <- b:
		case <-ctx.Done():
			close(b.done)
			return ctx.Err()
		}
	}
}

// pieces is how much of the room a block takes. Rows that were left out take none.
func (b *block) pieces() int { return max(1, (len(b.text)+rowBlock-1)/rowBlock) }

// release gives back the room of a block.
func (f *importFlow) release(b *block) {
	for range b.pieces() {
		<-f.room
	}
}
