package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/serve/api/openapi"
)

// How much of an import is committed together. A crash costs the work on one chunk.
const (
	chunkLines = 10_000
	chunkBytes = 8 << 20
)

// idleChunk is how long a chunk waits for more records from a slow client.
const idleChunk = 300 * time.Millisecond

var importName = parameter{name: "name", min: 1, max: 1000, about: "what the import is called, so that it can go on after an interruption; every user has names of their own", example: "maps-2031"}

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
			{name: "if-bookmark", min: 4, max: 64, about: "the SHA-256, in hexadecimal digits, of the bookmark that is kept under the name until now, or none if there should be none; 409 if it is another one, because another client imports the same", example: "none"},
			updateParameter, replaceParameter,
			{name: "import", kind: numberKind, min: 1, about: "the number of the import that this is a part of, which beginImport gave; without it the import gets one", example: "17"},
			{name: "keep", kind: flagKind, usual: "false", about: "believe when records were created and changed, and by whom; for administrators"},
			{name: "keep-types", min: 1, max: 1000, about: "types of handle values that the lines leave out, with commas between them; a registered record keeps its values of these types", example: "HS_ADMIN,HS_SECKEY"},
			{name: "secrets", kind: flagKind, usual: "false", about: "lines may have handle values of type HS_SECKEY in clear, which are encrypted before they are written; for administrators, and only over https or from the machine of the server"},
			{name: "if-version", kind: flagKind, usual: "false", about: "a line that has a version changes that version of a registered record, also without update; it is refused if the record has another version by now. A line with version 18446744073709551615 is refused if the record is registered"},
			{name: "dry-run", kind: flagKind, usual: "false", about: "find out what would be refused, and write nothing. What an earlier chunk would have written is not seen"},
			{name: "each", kind: flagKind, usual: "false", about: "tell what became of each line, not only of those that were refused"},
		},
		body: &body{media: []string{apijson.Lines}, value: openapi.RecordLine{}, lines: true,
			about:   "A record a line, or a namespace in {\"namespace\":{...}}, as exportRecords writes them. A record may have its earlier versions in earlier, with keep. A line has 1 MiB at most.",
			example: `{"id":"ark:12345/x1","url":"https://example.org/1"}`},
		answers: []answer{{status: 200, about: "How far the import is, and what was refused.", value: apijson.Imported{}, media: apijson.Lines, lines: true}},
		fails:   []int{409},
		serve:   h.importRecords,
	}, {
		name: "getImport", method: http.MethodGet, path: "import/{name}", group: group,
		tail:    parameter{name: "name", about: importName.about, example: importName.example},
		summary: "Show how far an import is",
		asks:    known, scope: auth.ScopeWrite,
		answers: []answer{{status: 200, about: "How far it is; with no line done if it never began.", value: apijson.Import{}}},
		serve:   h.getImport,
	}}
}

// getImport shows how far an import is.
func (h *Handler) getImport(c *call) error {
	if len(c.tail) > int(importName.max) {
		return invalidf("import.name-too-long", "the name has more than {limit} bytes", importName.max)
	}
	mark, err := h.importMark(c, c.tail)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, mark)
}

// importMark reads how far the import of that name is.
func (h *Handler) importMark(c *call, name string) (mark apijson.Import, err error) {
	data, err := h.o.Registrar.Bookmark(c.ctx, name)
	if err != nil || data == nil {
		return mark, err
	}
	var own struct{ Lines *int }
	if json.Unmarshal(data, &own) == nil && own.Lines != nil && json.Unmarshal(data, &mark) == nil {
		return mark, nil
	}
	if mark = (apijson.Import{Bookmark: string(data)}); !utf8.Valid(data) {
		return mark, &stele.Error{Op: c.op.name, Kind: stele.Internal, Err: stele.Messagef("request.import-bookmark-damaged", `the bookmark of the import "{import}" is damaged`, name)}
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
	mark     apijson.Import

	committer *bulk.Committer
	out       *stream // nil until the answer begins
}

// importRecords imports what is sent, as it arrives.
func (h *Handler) importRecords(c *call) error {
	im := &importing{c: c, each: c.flag("each"), bookmark: c.text("bookmark"), merges: c.flag("update") && !c.flag("replace"), o: registrar.ImportOptions{
		Update: c.flag("update"), Keep: c.flag("keep"), DryRun: c.flag("dry-run"), Name: c.text("name"), Import: c.number("import"), Secrets: c.flag("secrets"),
	}}
	if types := c.text("keep-types"); types != "" {
		im.o.KeepTypes = strings.Split(types, ",")
	}
	if err := im.begin(); err != nil {
		return err
	}
	// The server imports what has arrived, even if the client is gone by then. The flow ends
	// when nothing more arrives.
	c.ctx = context.WithoutCancel(c.ctx)
	ctx, stop := c.running()
	defer stop()
	flow := startFlow(ctx, c, im.mark.Lines, im.merges, c.flag("if-version"))
	defer flow.end()
	err := im.commit(ctx, flow.Flow)
	if err != nil && im.out != nil {
		// The client has its answer already; so the reason comes as a line of it.
		problem := problemOf(err)
		_ = im.out.line(apijson.Imported{Problem: &problem})
		_ = im.out.flush()
	}
	return err
}

// begin finds out where the import goes on, and whether the caller may import.
func (im *importing) begin() error {
	c, from := im.c, im.c.number("from")
	switch {
	case im.o.Keep && !c.who.Admin:
		return &stele.Error{Op: c.op.name, Kind: stele.Forbidden, Err: stele.Messagef("import.keep-forbidden", "only an administrator may say when records were created, and by whom; leave keep out")}
	case im.o.Secrets && !c.who.Admin:
		return &stele.Error{Op: c.op.name, Kind: stele.Forbidden, Err: stele.Messagef("import.secrets-forbidden", "only an administrator may import secrets of handles; leave secrets out")}
	case im.o.Secrets && auth.IsInClear(c.r.TLS != nil, "", c.from(), c.r.Header):
		return &stele.Error{Op: c.op.name, Kind: stele.Forbidden, Err: stele.Messagef("import.secrets-sent-in-clear", "secrets of handles are not imported over http, where others can read them; use https, and replace the secrets that were sent")}
	case im.o.Name == "" && (from > 0 || im.bookmark != ""):
		return invalidf("import.name-missing", "only an import with a name can go on or be marked; give the name")
	case im.bookmark != "" || from == 0:
		im.mark.Lines = int(min(from, 1<<40))
		return im.onlyAfter(c.text("if-bookmark"))
	}
	var err error
	if im.mark, err = c.h.importMark(c, im.o.Name); err != nil {
		return err
	}
	if im.mark.Bookmark != "" || uint64(im.mark.Lines) != from {
		return &stele.Error{Op: c.op.name, Kind: stele.Conflict, Err: stele.Messagef(
			"import.from-differs", `{lines} lines of the import "{import}" are done, not {from}; send what follows them, with from={lines}, or start over with from=0`, im.mark.Lines, im.o.Name, from)}
	}
	im.mark.Done = false
	if im.o.Import == 0 {
		im.o.Import = im.mark.Import
	}
	return nil
}

// onlyAfter makes sure that the bookmark is the one that the client knows, now and when it is written.
func (im *importing) onlyAfter(want string) error {
	if want == "" {
		return nil
	}
	held, err := im.c.h.o.Registrar.Bookmark(im.c.ctx, im.o.Name)
	if err != nil {
		return err
	}
	if apijson.BookmarkDigest(held) != strings.ToLower(want) {
		return &stele.Error{Op: im.c.op.name, Kind: stele.Conflict, Err: stele.Messagef("import.runs-twice", "the same was begun at another place meanwhile; wait until that has ended, and look again")}
	}
	im.o.OnlyAfter, im.o.Held = true, held
	return nil
}

// commit commits what the flow brings, and tells the client of each chunk.
func (im *importing) commit(ctx context.Context, flow *bulk.Flow) error {
	im.committer = &bulk.Committer{
		To: im.c.h.o.Registrar, Options: im.o,
		Limit: bulk.ChunkLimit{Lines: chunkLines, Bytes: chunkBytes}, Idle: idleChunk,
		Begin: im.number, EveryChunk: true, Bookmark: im.bookmarkOf, Before: im.pace, Committed: im.committed,
		Counts: bulk.Counts{New: im.mark.Created, Updated: im.mark.Updated, Unchanged: im.mark.Unchanged, Rejected: im.mark.Refused, Namespaces: im.mark.Namespaces, Earlier: im.mark.Earlier, EarlierLeft: im.mark.LeftOut},
	}
	err := im.committer.Run(ctx, flow)
	if _, ours := errors.AsType[*stele.Error](err); err != nil && !ours && ctx.Err() != nil {
		return &stele.Error{Op: im.c.op.name, Kind: stele.Unavailable, Err: errEnding}
	}
	if err != nil {
		return err
	}
	if err := im.tell(nil); err != nil {
		return err
	}
	return im.out.flush()
}

// pace waits until the caller may import so many lines, and recognises the caller again.
func (im *importing) pace(lines int) (context.Context, error) {
	err := im.c.pace(lines)
	return im.c.ctx, err
}

// number gives the import its number before it writes for the first time.
func (im *importing) number(ctx context.Context) (n uint64, err error) {
	label := im.o.Name
	n, err = im.c.h.o.Registrar.BeginImport(ctx, label[:min(len(label), registrar.MaxLabel)])
	if errors.Is(err, stele.Forbidden) {
		return 0, nil // nothing will be written: each line is refused
	}
	im.mark.Import = n
	return n, err
}

// bookmarkOf returns how far the import is, for the import of that name. The client's own
// bookmark is written at the end only.
func (im *importing) bookmarkOf(done bool) (name string, data []byte, err error) {
	im.mark.Done = done
	switch {
	case im.o.Name == "", im.bookmark != "" && !done:
		return "", nil, nil
	case im.bookmark != "":
		return im.o.Name, []byte(im.bookmark), nil
	}
	data, err = json.Marshal(im.mark)
	return im.o.Name, data, err
}

// committed tells the client what became of a chunk.
func (im *importing) committed(chunk []*bulk.Block) error {
	n := im.committer.Counts
	im.mark.Counts = apijson.Counts{Created: n.New, Updated: n.Updated, Unchanged: n.Unchanged, Refused: n.Rejected}
	im.mark.Earlier, im.mark.LeftOut = n.Earlier, n.EarlierLeft
	im.mark.Namespaces, im.mark.Lines = n.Namespaces, chunk[len(chunk)-1].Next-1
	if err := im.tell(chunk); err != nil {
		return err
	}
	return im.out.flush()
}

// tell reports what became of the rows of a chunk, and how far the import is.
func (im *importing) tell(chunk []*bulk.Block) error {
	if im.out == nil {
		im.out = im.c.stream(apijson.Lines)
	}
	var text []byte
	for _, b := range chunk {
		for i := range b.Rows {
			row := &b.Rows[i]
			if !row.Rejected() && !im.each {
				continue
			}
			text = fmt.Appendf(text[:0], `{"line":%d,`, row.Line)
			if _, err := im.out.Write(append(appendRow(text, row), "}\n"...)); err != nil {
				return err
			}
		}
	}
	shown := im.mark
	shown.Bookmark = ""
	return im.out.line(shown)
}

// inFlight is how many pieces of a body, of 256 KiB, are read and not committed. It bounds
// the memory of an import; a chunk and the longest line must fit.
const inFlight = 8 + chunkBytes>>18

// flow is a body on its way: one goroutine reads it, some parse, and the importer commits.
type flow struct {
	*bulk.Flow
	c      *call
	cancel context.CancelFunc
}

// startFlow begins to read, after so many lines. With versions, lines say which version of a record they change.
func startFlow(ctx context.Context, c *call, line int, merges, versions bool) *flow {
	ctx, cancel := context.WithCancel(ctx)
	in := bulk.NewLines(&steady{ctx: ctx, c: c, left: c.h.o.Patience}, line, maxLine)
	parser := bulk.NewLineParser(c.h.o.Schemes, maxLine, merges)
	parser.Versions = versions
	return &flow{parser.Flow(ctx, in, inFlight, cut), c, cancel}
}

// end ends reading, and waits for it: the body must not be used after the request was
// answered. What still comes is dropped.
func (f *flow) end() {
	f.cancel()
	for {
		select {
		case _, more := <-f.Blocks():
			if !more {
				return
			}
		case <-time.After(10 * time.Millisecond):
			_ = http.NewResponseController(f.c.w).SetReadDeadline(time.Unix(1, 0))
		}
	}
}

// steady reads the body of a client that must go on sending: each kilobyte gives it more
// time. The time in which the server does not read does not count.
type steady struct {
	ctx  context.Context
	c    *call
	left time.Duration
	got  int
}

func (s *steady) Read(b []byte) (int, error) {
	switch {
	case s.ctx.Err() != nil:
		return 0, s.ctx.Err()
	case s.left <= 0:
		return 0, os.ErrDeadlineExceeded
	}
	begin := s.c.h.o.Now()
	// A connection without deadlines, in a test, needs no more time.
	_ = http.NewResponseController(s.c.w).SetReadDeadline(begin.Add(s.left))
	n, err := s.c.r.Body.Read(b)
	s.left -= s.c.h.o.Now().Sub(begin)
	if s.got += n; s.got >= 1<<10 {
		s.got, s.left = 0, s.c.h.o.Patience
	}
	return n, err
}
