package bulk

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/registrar"
)

// Parser turns blocks of rows into what they say. Several goroutines use it.
type Parser struct {
	Header    Header // nil for JSON
	Title     []byte // the header as it stands in the file
	Delimiter byte
	Versions  bool // the version that a line says is the one that the registered record must have

	schemes *stele.Schemes
	format  Format
	most    int  // bytes of a row
	unnamed bool // the file has no column for names, so that Header has one more than it
}

// NewParser finds out in which format the rows are, and leaves the reader at the
// first of them.
func NewParser(schemes *stele.Schemes, r *Reader, name string, format Format) (*Parser, error) {
	r.start(format.Encoding)
	p := &Parser{schemes: schemes, format: format, most: MaxRow}
	switch text := bytes.TrimLeft(r.buf, " \t"); {
	case len(text) == 0 || text[0] == '{':
		return p, nil
	case text[0] == '[':
		return nil, failf(stele.Invalid, "import.json-array", "{file} is one JSON array; write an object a line: jq -c '.[]'", name)
	}
	if r.decoder == nil {
		r.decode(format.Encoding)
	}
	var err error
	p.Header, p.Title, err = r.readHeader(name, format.Columns)
	p.Delimiter = r.delimiter
	if err == nil && format.Placeholder != nil && !slices.Contains(p.Header, "id") {
		p.Header, p.unnamed = append(slices.Clip(p.Header), "id"), true
	}
	return p, err
}

// parse fills in what the rows of a block say.
func (p *Parser) parse(b *Block) {
	switch {
	case b.Long > 0:
		b.Rows = []Row{{Line: b.Line, Err: p.tooLong(b.Long, b.Text)}}
	case p.Header != nil:
		p.parseCSV(b)
	default:
		p.parseJSON(b)
	}
}

// longRow is the error of a row that is too long to be read.
type longRow struct {
	said *stele.Message
	head []byte
}

func (e *longRow) Error() string { return e.said.Error() }

// Unwrap returns the message.
func (e *longRow) Unwrap() error { return e.said }

// longShown is how much of such a row a message shows.
const longShown = 200

func (p *Parser) tooLong(size int, text []byte) error {
	return &stele.Error{Kind: stele.Invalid, Err: &longRow{
		stele.Messagef("row.line-too-long", "the line has {size} bytes; {most} are the most", size, p.most), text[:min(longShown, len(text))]}}
}

// parseJSON reads lines of JSON.
func (p *Parser) parseJSON(b *Block) {
	b.Rows = make([]Row, 0, bytes.Count(b.Text, []byte{'\n'})+1)
	line := b.Line
	for text := range bytes.Lines(b.Text) {
		row := Row{Line: line, Text: TrimEnd(text)}
		line++
		switch {
		case IsSkipped(row.Text):
			continue
		case len(row.Text) > p.most:
			row.Err = p.tooLong(len(row.Text), row.Text)
		default:
			ParseRow(&row, p.parseLine)
		}
		b.Rows = append(b.Rows, row)
	}
}

// parseLine reads a line of JSON. A record that may be merged with a registered one is
// judged when that is done.
func (p *Parser) parseLine(row *Row) {
	defer func() {
		if p.Versions && row.Record != nil {
			row.Version = row.Record.Version
		}
	}()
	text := row.Text
	if p.format.Placeholder != nil {
		if text, row.Err = p.nameLine(row); row.Err != nil {
			return
		}
	}
	if p.format.Rows.Merges && !registrar.IsNamespaceLine(text) {
		if text, row.Fixed, row.Err = registrar.CutFixedData(text); row.Err != nil {
			return
		}
		if text, row.Earlier, row.Err = document.CutEarlier(p.schemes, text); row.Err != nil {
			return
		}
		row.Patch = text
		row.Record, row.Err = registrar.Patch(p.schemes, nil, text)
		return
	}
	var said registrar.Line
	said, row.Err = registrar.ParseLine(p.schemes, text)
	row.Earlier, row.Fixed = said.Earlier, said.Fixed
	row.Record, row.Namespace, row.Progress = said.Record, said.Namespace, said.Progress
}

// nameLine returns a line of JSON, with a placeholder if it is an object without a name.
func (p *Parser) nameLine(row *Row) ([]byte, error) {
	var said map[string]json.RawMessage
	if err := json.Unmarshal(row.Text, &said); err != nil || said == nil || said["namespace"] != nil {
		return row.Text, nil // what is wrong with it is found later
	}
	if id := said["id"]; id != nil && string(id) != "null" && string(id) != `""` {
		return row.Text, nil
	}
	row.Nameless = true
	id, err := p.format.Placeholder(row.Line)
	if err != nil {
		return nil, err
	}
	if said["id"], err = json.Marshal(id); err != nil {
		return nil, err
	}
	return json.Marshal(said)
}

// All yields rows in their order, and what they say, one block at a time. It is for a caller that is
// slower than a parser.
func All(rows Rows) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		for {
			b, err := nextBlock(rows)
			if err == io.EOF {
				return
			} else if err != nil {
				yield(nil, err)
				return
			}
			parseBlock(rows, b)
			for i := range b.Rows {
				if !yield(&b.Rows[i], nil) {
					return
				}
			}
		}
	}
}

// NewLineParser returns a parser of lines of JSON. With merges, lines are merged with what
// is registered. A line has maxLine bytes at most.
func NewLineParser(schemes *stele.Schemes, maxLine int, merges bool) *Parser {
	return &Parser{schemes: schemes, most: maxLine, format: Format{Rows: RowOptions{Merges: merges}}}
}

// textRows are the rows that a Reader cuts and a Parser parses.
type textRows struct {
	*Reader
	parser *Parser
}

// Parse implements [Rows].
func (t textRows) Parse(b *Block) { t.parser.parse(b) }

// Rows returns the rows of a reader, which the parser parses.
func (p *Parser) Rows(r *Reader) Rows { return textRows{r, p} }

// Flow starts reading and parsing; see [NewFlow].
func (p *Parser) Flow(ctx context.Context, r *Reader, pieces int, explain func(error) error) *Flow {
	return NewFlow(ctx, textRows{r, p}, pieces, explain)
}
