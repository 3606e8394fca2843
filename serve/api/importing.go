package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/registrar"
)

// How much of an import is committed together. A crash costs the work on one chunk.
const (
	chunkLines = 10_000
	chunkBytes = 8 << 20
)

// idleChunk is how long a chunk waits for more records from a slow client.
const idleChunk = 300 * time.Millisecond

// importDocument is how far an import is. All counts are those of the whole import.
type importDocument struct {
	Lines int `json:"lines" doc:"How many lines are done: go on after them." minimum:"0"`
	countsDocument
	Namespaces int    `json:"namespaces,omitempty" doc:"Namespaces that were made or changed."`
	Import     uint64 `json:"import,omitempty" doc:"The number of the import, by which it can be reverted."`
	Done       bool   `json:"done,omitempty" doc:"All that was sent is imported."`
	Bookmark   string `json:"bookmark,omitempty" doc:"What the client gave as bookmark; then nothing else is known here."`
}

// importedDocument is a line of the answer to an import: how far it is, or what became
// of a line, or why it ended.
type importedDocument struct {
	Lines      *int                  `json:"lines,omitempty" doc:"How many lines are done. In a line like this all counts are those of the whole import."`
	Created    *int                  `json:"created,omitempty"`
	Updated    *int                  `json:"updated,omitempty"`
	Unchanged  *int                  `json:"unchanged,omitempty"`
	Refused    *int                  `json:"refused,omitempty"`
	Namespaces *int                  `json:"namespaces,omitempty"`
	Import     uint64                `json:"import,omitempty" doc:"The number of the import, by which it can be reverted; see revertImport."`
	Done       bool                  `json:"done,omitempty" doc:"This is the last line: all that was sent is imported."`
	Line       int                   `json:"line,omitempty" doc:"The number of a line, from 1: the rest says what became of it."`
	ID         string                `json:"id,omitempty" doc:"The identifier in it, if it could be read."`
	Status     string                `json:"status,omitempty" enum:"created,updated,unchanged,refused"`
	Version    uint64                `json:"version,omitempty"`
	Changes    []fieldChangeDocument `json:"changes,omitempty" doc:"In a dry run: every field that the line would change."`
	Problem    *problemDocument      `json:"problem,omitempty" doc:"Why the line was refused. Without a line: why the import ended before its end."`
}

// fieldChangeDocument is a field that a change gives another value.
type fieldChangeDocument struct {
	Path string `json:"path" doc:"Where it is in the record." example:"metadata.who"`
	Old  string `json:"old,omitempty" doc:"What it is; left out if it is not there."`
	New  string `json:"new,omitempty" doc:"What it would be; left out if it is removed."`
}

var importName = parameter{name: "name", min: 1, max: 1000, about: "what the import is called, so that it can go on after an interruption; everybody has names of their own", example: "maps-2031"}

func (h *Handler) importOperations() []operation {
	const group = "Many records"
	return []operation{{
		name: "importRecords", method: http.MethodPost, path: "import", group: group,
		summary: "Import any number of records",
		about: "Lines are imported in chunks as they arrive. After each chunk the answer has a line that says how far the import is, and before that one for each line that was refused. " +
			"What it says is done is durable. An import with a name that was interrupted goes on: ask getImport how many lines are done, and send those after them, with from. " +
			"Empty lines and those that begin with # are passed over, but counted. A record that is registered already just like that is passed over too.",
		asks: editor, scope: auth.ScopeWrite,
		query: []parameter{
			importName,
			{name: "from", kind: numberKind, usual: "0", about: "how many lines of this import were sent before; with 0 it starts over"},
			{name: "bookmark", min: 1, max: 4096, about: "kept under the name instead of the number of lines, for clients that count otherwise; it is committed when all that was sent is imported"},
			updateParameter, replaceParameter,
			{name: "import", kind: numberKind, min: 1, about: "the number of the import that this is a part of, which beginImport gave; without it the import gets one", example: "17"},
			{name: "keep", kind: flagKind, usual: "false", about: "believe when records were created and changed, and by whom; for administrators"},
			{name: "dry-run", kind: flagKind, usual: "false", about: "find out what would be refused, and write nothing. What an earlier chunk would have written is not seen"},
			{name: "each", kind: flagKind, usual: "false", about: "tell what became of each line, not only of those that were refused"},
		},
		body: &body{media: []string{linesType}, value: recordLine{}, lines: true,
			about:   "A record a line, or a namespace in {\"namespace\":{...}}, as exportRecords writes them. A line has 1 MiB at most.",
			example: `{"id":"ark:12345/x1","url":"https://example.org/1"}`},
		answers: []answer{{status: 200, about: "How far the import is, and what was refused.", value: importedDocument{}, media: linesType, lines: true}},
		fails:   []int{409},
		serve:   h.importRecords,
	}, {
		name: "getImport", method: http.MethodGet, path: "import/{name}", group: group,
		tail:    parameter{name: "name", about: importName.about, example: importName.example},
		summary: "Show how far an import is",
		asks:    known, scope: auth.ScopeWrite,
		answers: []answer{{status: 200, about: "How far it is; with no line done if it never began.", value: importDocument{}}},
		serve:   h.getImport,
	}}
}

// getImport shows how far an import is.
func (h *Handler) getImport(c *call) error {
	if len(c.tail) > int(importName.max) {
		return invalidf("the name has more than %d bytes", importName.max)
	}
	mark, err := h.importMark(c, c.tail)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, mark)
}

// importMark reads how far the import of that name is.
func (h *Handler) importMark(c *call, name string) (mark importDocument, err error) {
	data, err := h.o.Registrar.Bookmark(c.ctx, name)
	if err != nil || data == nil {
		return mark, err
	}
	var own struct{ Lines *int }
	if json.Unmarshal(data, &own) == nil && own.Lines != nil && json.Unmarshal(data, &mark) == nil {
		return mark, nil
	}
	if mark = (importDocument{Bookmark: string(data)}); !utf8.Valid(data) {
		return mark, &stele.Error{Op: c.op.name, Kind: stele.Internal, Err: fmt.Errorf("the bookmark of the import %.100q is damaged", name)}
	}
	return mark, nil
}

// importing is an import under way.
type importing struct {
	c        *call
	o        registrar.ImportOptions
	each     bool
	bookmark string // the client's own; "" if lines are counted
	merges   bool   // lines are merged with what is registered
	mark     importDocument
	noted    importDocument // what of mark is kept with the import

	chunk []*bulk.Block
	lines int
	bytes int
	flow  *flow
	out   *stream // nil until the answer begins
}

// importRecords imports what is sent, as it arrives.
func (h *Handler) importRecords(c *call) error {
	im := &importing{c: c, each: c.flag("each"), bookmark: c.text("bookmark"), merges: c.flag("update") && !c.flag("replace"), o: registrar.ImportOptions{
		Update: c.flag("update"), Keep: c.flag("keep"), DryRun: c.flag("dry-run"), Name: c.text("name"), Import: c.number("import"),
	}}
	if err := im.begin(); err != nil {
		return err
	}
	// The server imports what has arrived, even if the client is gone by then. The flow ends
	// when nothing more arrives.
	c.ctx = context.WithoutCancel(c.ctx)
	ctx, stop := c.running()
	defer stop()
	im.flow = startFlow(ctx, c, im.mark.Lines, im.merges)
	defer im.flow.end()
	err := im.run(ctx, im.flow)
	if noted := im.note(); err == nil {
		err = noted
	}
	if err != nil && im.out != nil {
		// The client has its answer already; so the reason comes as a line of it.
		problem := problemOf(err)
		_ = im.out.line(importedDocument{Problem: &problem})
		_ = im.out.flush()
	}
	return err
}

// begin finds out where the import goes on, and whether the caller may import.
func (im *importing) begin() error {
	c, from := im.c, im.c.number("from")
	switch {
	case im.o.Keep && !c.who.Admin:
		return &stele.Error{Op: c.op.name, Kind: stele.Forbidden, Err: errors.New("only an administrator may say when records were created, and by whom; leave keep out")}
	case im.o.Name == "" && (from > 0 || im.bookmark != ""):
		return invalidf("only an import with a name can go on or be marked; give the name")
	case im.bookmark != "" || from == 0:
		im.mark.Lines = int(min(from, 1<<40))
		return nil
	}
	var err error
	if im.mark, err = c.h.importMark(c, im.o.Name); err != nil {
		return err
	}
	if im.mark.Bookmark != "" || uint64(im.mark.Lines) != from {
		return &stele.Error{Op: c.op.name, Kind: stele.Conflict, Err: fmt.Errorf(
			"%d lines of the import %.100q are done, not %d; send what follows them, with from=%d, or start over with from=0", im.mark.Lines, im.o.Name, from, im.mark.Lines)}
	}
	im.mark.Done, im.noted = false, im.mark
	if im.o.Import == 0 {
		im.o.Import = im.mark.Import
	}
	return nil
}

// number gives the import its number before it writes for the first time.
func (im *importing) number(rows []row) (err error) {
	if im.o.Import != 0 || im.o.DryRun || len(rows) == 0 {
		return nil
	}
	label := im.o.Name
	if im.o.Import, err = im.c.h.o.Registrar.BeginImport(im.c.ctx, label[:min(len(label), registrar.MaxLabel)]); err == nil {
		im.mark.Import = im.o.Import
	} else if errors.Is(err, stele.Forbidden) {
		return nil // nothing will be written: each line is refused
	}
	return err
}

// note keeps with the import what became of the lines.
func (im *importing) note() error {
	if im.o.Import == 0 || im.o.DryRun {
		return nil
	}
	return im.c.h.o.Registrar.NoteImport(im.c.ctx, im.o.Import, registrar.ImportCounts{
		Created: im.mark.Created - im.noted.Created, Updated: im.mark.Updated - im.noted.Updated,
		Unchanged: im.mark.Unchanged - im.noted.Unchanged, Refused: im.mark.Refused - im.noted.Refused,
	})
}

// run commits what the flow brings.
func (im *importing) run(ctx context.Context, flow *flow) error {
	idle := time.NewTimer(idleChunk)
	defer idle.Stop()
	for {
		select {
		case b, ok := <-flow.Blocks():
			if !ok {
				return im.finishImport(flow.Err())
			}
			<-b.Parsed()
			im.chunk = append(im.chunk, b)
			im.lines, im.bytes = im.lines+b.Next-b.Line, im.bytes+len(b.Text)
			if im.lines >= chunkLines || im.bytes >= chunkBytes {
				if err := im.commit(); err != nil {
					return err
				}
			}
			idle.Reset(idleChunk)
		case <-idle.C:
			if err := im.commit(); err != nil {
				return err
			}
		case <-ctx.Done():
			return &stele.Error{Op: im.c.op.name, Kind: stele.Unavailable, Err: errEnding}
		}
	}
}

// finishImport commits the last chunk. Where the body could not be read to its end, what came
// before is imported.
func (im *importing) finishImport(cut error) error {
	if err := im.commit(); err != nil {
		return err
	}
	im.mark.Done = cut == nil
	if im.o.Name != "" && !im.o.DryRun && (im.bookmark == "" || im.mark.Done) {
		if err := im.ingest(nil); err != nil {
			return err
		}
	}
	if cut != nil {
		return cut
	}
	if err := im.tell(nil); err != nil {
		return err
	}
	return im.out.flush()
}

// commit imports the chunk: its records and namespaces in their order.
func (im *importing) commit() error {
	if len(im.chunk) == 0 {
		return nil
	}
	if err := im.c.pace(im.lines); err != nil {
		return err
	}
	var rows []row
	for _, b := range im.chunk {
		rows = appendRows(rows, b)
	}
	if err := im.number(rows); err != nil {
		return err
	}
	begin := 0
	for i := range rows {
		ns := rows[i].namespace
		if ns == nil || rows[i].err != nil {
			continue
		}
		if err := im.ingest(rows[begin:i]); err != nil {
			return err
		}
		begin = i + 1
		rows[i].err = im.c.h.o.Registrar.IngestNamespace(im.c.ctx, ns, im.o)
		if err := rows[i].err; err != nil && (stele.KindOf(err) == stele.Unavailable || stele.KindOf(err) == stele.Internal && !errors.Is(err, registrar.ErrUnchanged)) {
			return err
		}
	}
	if err := im.ingest(rows[begin:]); err != nil {
		return err
	}
	im.mark.Lines = im.chunk[len(im.chunk)-1].Next - 1
	for _, b := range im.chunk {
		im.flow.Release(b)
	}
	im.chunk, im.lines, im.bytes = nil, 0, 0
	if err := im.tell(rows); err != nil {
		return err
	}
	return im.out.flush()
}

// ingest writes records, with the bookmark of what came before them: everything before the
// bookmark is committed, and after a crash in between the import only reads again records
// that are there already. The client's own bookmark is written at the end only.
func (im *importing) ingest(rows []row) (err error) {
	o := im.o
	switch {
	case o.Name == "":
	case im.bookmark == "":
		if o.Bookmark, err = json.Marshal(im.mark); err != nil {
			return err
		}
	case im.mark.Done:
		o.Bookmark = []byte(im.bookmark)
	default:
		o.Name = ""
	}
	return ingestRows(im.c, rows, o, im.merges)
}

// tell reports what became of rows, and how far the import is.
func (im *importing) tell(rows []row) error {
	if im.out == nil {
		im.out = im.c.stream(linesType)
	}
	var b []byte
	for i := range rows {
		status := rows[i].status()
		if rows[i].namespace != nil && (status == created || status == updated) {
			im.mark.Namespaces++
		} else {
			im.mark.count(status)
		}
		if status == refused || im.each {
			b = fmt.Appendf(b[:0], `{"line":%d,`, rows[i].line)
			b = append(rows[i].appendTo(b, status), "}\n"...)
			if _, err := im.out.Write(b); err != nil {
				return err
			}
		}
	}
	shown := im.mark
	shown.Bookmark = ""
	return im.out.line(shown)
}
