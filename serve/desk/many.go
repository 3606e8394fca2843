package desk

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/job"
	"github.com/stele-id/stele/web/deskpage"
)

// previewRows is how many rows a page of the preview has, and shownChanges how many changes of each.
const (
	previewRows  = 50
	shownChanges = 4
)

// showMany shows the form for many names.
func (c *call) showMany() error {
	v, err := c.manyForm(c.r.URL.Query())
	if err != nil {
		return err
	}
	v.Update = true
	return c.show(http.StatusOK, "many", v)
}

// manyForm returns the form for many names as it was filled in.
func (c *call) manyForm(values url.Values) (*deskpage.Many, error) {
	choice, err := c.choices(values.Get("namespace"), true)
	if err != nil {
		return nil, err
	}
	v := &deskpage.Many{
		Frame: c.frame("many.title", "many"), Choice: choice, Update: values.Get("update") == "yes",
		Systems: c.systems(values.Get("system")), Prefix: deskpage.Field{ID: "prefix", Name: "prefix", Value: values.Get("prefix")},
		Text: deskpage.Field{ID: "text", Name: "text", Value: values.Get("text")}, File: deskpage.Field{ID: "file", Name: "file"}, Folder: deskpage.Field{ID: "folder", Name: "folder"}, Spaces: values.Get("spaces") == "yes",
		Most: strconv.Itoa(job.MaxUpload>>20) + " MB", MostRows: job.MaxRows,
	}
	open, err := c.h.o.Jobs.Uploads(c.ctx)
	if err != nil {
		return nil, err
	}
	for _, u := range open {
		v.Open = append(v.Open, deskpage.Upload{Name: c.uploadName(&u), URL: Root + "many/" + u.ID, Created: u.Created})
	}
	v.Same = []deskpage.Same{{Label: c.language.Text("same.command"), Text: "stele import --update --dry-run names.csv\nstele import --update names.csv"}}
	return v, nil
}

// uploadName returns the name of a file, or what stands for one.
func (c *call) uploadName(u *job.Upload) string {
	return cmp.Or(u.Name, c.language.Text("many.pasted"))
}

// sendMany keeps a file or a text, and leads to its preview.
func (c *call) sendMany() error {
	values, u, err := c.takeUpload()
	if err == nil {
		c.redirect(Root + "many/" + u.ID)
		return nil
	}
	if kind := stele.KindOf(err); kind != stele.Invalid && kind != stele.Exhausted {
		return err
	}
	v, formErr := c.manyForm(values)
	if formErr != nil {
		return formErr
	}
	v.Text.Problem = c.language.Problem(reason(err))
	v.Problems = []deskpage.Problem{{Field: "text", Text: v.Text.Problem}}
	return c.show(http.StatusUnprocessableEntity, "many", v)
}

// showPreview shows what would become of the rows of a file.
func (c *call) showPreview() error {
	u, err := c.h.o.Jobs.GetUpload(c.ctx, c.r.PathValue("id"))
	if err != nil {
		return err
	}
	return c.preview(http.StatusOK, &u)
}

// preview shows an upload.
func (c *call) preview(status int, u *job.Upload, problems ...deskpage.Problem) error {
	choice, err := c.choices(u.Namespace, true)
	if err != nil {
		return err
	}
	v := &deskpage.Preview{Frame: c.frame(c.language.Text("many.preview", "file", c.uploadName(u)), "many"), ID: u.ID, Name: c.uploadName(u), Update: u.Update,
		Namespace: u.Namespace, Choice: choice, Mine: Root + "many/" + u.ID, Seen: u.Mark(),
		Systems: c.systems(u.System), Prefix: deskpage.Field{ID: "prefix", Name: "prefix", Value: u.Prefix}}
	v.Problems = problems
	c.showTree(v, u)
	for _, e := range bulk.Encodings() {
		v.Encodings = append(v.Encodings, deskpage.Option{Value: string(e), Text: c.language.Text("encoding." + string(e)), Chosen: e == u.Encoding})
	}
	s, err := c.h.o.Jobs.Look(c.ctx, u)
	if err == nil {
		c.showColumns(v, u, &s)
		var j *job.Judgement
		if j, err = c.h.o.Jobs.Judge(c.ctx, u, s); err == nil {
			c.showJudgement(v, j)
		}
	}
	if err != nil {
		if kind := stele.KindOf(err); kind != stele.Invalid && kind != stele.NotFound {
			return err
		}
		status, v.Open = http.StatusUnprocessableEntity, true
		v.Problems = append(v.Problems, deskpage.Problem{Text: c.headerProblem(err)})
	}
	if command := c.importCommand(u, v); command != "" {
		v.Same = []deskpage.Same{{Label: c.language.Text("same.command"), Text: command}}
	}
	return c.show(status, "preview", v)
}

// headerProblem says what is wrong with a file as a whole: not with the words of the command line,
// because the page has choices for it.
func (c *call) headerProblem(err error) string {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		if m, ok := inner.(*stele.Message); ok && m.Code == "import.column-missing" {
			return c.language.Text("many.column-missing", "field", c.fieldName(m.Params[0].Value))
		}
	}
	return c.language.Problem(reason(err))
}

// importCommand returns the command that does what the page does; "" if there is none.
func (c *call) importCommand(u *job.Upload, v *deskpage.Preview) string {
	file, flags := "names.csv", ""
	switch {
	case v.Nameless > 0:
		return "" // 'stele mint --from' has other flags for each scheme
	case u.System != "":
		file, flags = "FILE", " --from "+u.System
		if u.Files != nil {
			file = "FILE..."
		}
		if u.Tree != nil {
			file = "FOLDER"
		}
		if u.Spaces {
			flags += " --create-namespaces"
		}
		if u.Prefix != "" {
			flags += " --prefix '" + strings.ReplaceAll(u.Prefix, "'", `'\''`) + "'"
		}
	}
	if u.Update {
		flags += " --update"
	}
	return "stele import" + flags + " --dry-run " + file
}

// mainFields are the fields that most sheets have. A header can name the others; see docs/import.md.
var mainFields = []string{"id", "url", stele.What, stele.Who, stele.When, stele.Where, "aliases", "type", "language", "state", "reason", "replacement"}

// fieldName returns what a field is called on pages.
func (c *call) fieldName(field string) string {
	if slices.Contains(mainFields, field) {
		return c.language.Text("row-field." + field)
	}
	return strings.TrimPrefix(field, "meta.")
}

// showColumns shows the columns of a sheet, with choices for each.
func (c *call) showColumns(v *deskpage.Preview, u *job.Upload, s *bulk.Survey) {
	v.Headless = s.Headless
	if !s.IsSheet() {
		if s.System != "" {
			v.System = c.systemName(s.System)
		}
		return
	}
	v.Separator = c.language.Text(map[byte]string{',': "many.comma", ';': "many.semicolon", '\t': "many.tab"}[s.Delimiter])
	fields := u.Fields
	if len(fields) != len(s.Columns) {
		fields = s.Fields()
	}
	for i, column := range s.Columns {
		id := "column-" + strconv.Itoa(i)
		col := deskpage.Column{Number: i + 1, Name: column.Name, Samples: column.Samples, Field: deskpage.Field{ID: id, Name: "column." + strconv.Itoa(i)}}
		choose := func(field, text string) {
			col.Choices = append(col.Choices, deskpage.Option{Value: field, Text: text, Chosen: field == fields[i]})
		}
		choose(bulk.Ignored, c.language.Text("many.leave-out"))
		if own := column.Slug(); own != "" && bulk.IsField(own) {
			choose(own, c.language.Text("many.as-metadata", "name", strings.TrimPrefix(own, "meta.")))
		}
		for _, field := range mainFields {
			choose(field, c.fieldName(field))
		}
		if !slices.Contains(mainFields, column.Field) && column.Field != column.Slug() && column.Field != bulk.Ignored {
			choose(column.Field, column.Field) // a rarer field, which the header names
		}
		v.Columns = append(v.Columns, col)
	}
}

// showJudgement shows numbers and rows.
func (c *call) showJudgement(v *deskpage.Preview, j *job.Judgement) {
	query := c.r.URL.Query()
	v.Judged, v.All, v.Nameless, v.Good, v.Refused, v.Unchanged = true, j.All(), j.Nameless, j.Good(), j.Refused, j.Unchanged
	v.Encoding, v.Foreign = c.language.Text("encoding."+string(j.Encoding)), j.Foreign
	for _, note := range j.Notes {
		v.Notes = append(v.Notes, c.language.Problem(note))
	}
	kind := job.Kind(query.Get("kind"))
	if !slices.Contains(job.Kinds(), kind) {
		kind = ""
	}
	v.Kind = string(kind)
	for _, k := range job.Kinds() {
		v.Kinds = append(v.Kinds, deskpage.KindCount{Kind: string(k), Text: c.language.Text("row-count."+string(k), "count", j.Of(k)), Count: j.Of(k), URL: v.Mine + "?kind=" + string(k), Shown: k == kind})
	}
	after, _ := strconv.Atoi(query.Get("after")) // 0 if it is damaged: the first page
	rows, next := j.Page(kind, after, previewRows)
	for i := range rows {
		v.Rows = append(v.Rows, c.manyRow(&rows[i]))
	}
	if next > 0 {
		v.Next = v.Mine + "?" + url.Values{"kind": {string(kind)}, "after": {strconv.Itoa(next)}}.Encode()
	}
	if j.Refused > 0 {
		v.RejectsURL = v.Mine + "/rejects"
	}
	v.Typed, v.New, v.Changed, v.Confirm = deskpage.Field{ID: "number", Name: "number"}, j.New, j.Changed, j.Changed > great
}

// great is the number of records above which a change of them must be confirmed: the number is
// typed, and the user proves again who they are.
const great = 100

// isTyped reports whether a number was typed that must be typed.
func isTyped(text string, number int) bool {
	text = strings.NewReplacer(" ", "", "\u00a0", "", ".", "", ",", "").Replace(text)
	n, err := strconv.Atoi(text)
	return err == nil && n == number
}

// wasShown reports whether the form has a number as it is now: the user has seen it.
func (c *call) wasShown(field string, now int) bool {
	return c.r.PostForm.Get(field) == strconv.Itoa(now)
}

// startImport starts the job that writes all rows, or the good ones.
func (c *call) startImport(u *job.Upload) error {
	s, err := c.h.o.Jobs.Look(c.ctx, u)
	if err != nil {
		return err
	}
	j, err := c.h.o.Jobs.Judge(c.ctx, u, s)
	if err != nil {
		return err
	}
	switch {
	case c.r.PostForm.Get("seen") != u.Mark():
		return c.preview(http.StatusConflict, u, deskpage.Problem{Text: c.language.Text("many.settings-changed")})
	case c.r.PostForm.Get("do") == "all" && j.Refused > 0:
		return c.preview(http.StatusConflict, u, deskpage.Problem{Text: c.language.Text("many.now-refused", "count", j.Refused)})
	case !c.wasShown("new", j.New) || !c.wasShown("changed", j.Changed):
		return c.preview(http.StatusConflict, u, deskpage.Problem{Text: c.language.Text("many.now-different", "new", j.New, "changed", j.Changed)})
	case j.Good() == 0:
		return c.preview(http.StatusConflict, u, deskpage.Problem{Text: c.language.Text("many.nothing-to-do")})
	case j.Changed > great && !isTyped(c.r.PostForm.Get("number"), j.Changed):
		return c.preview(http.StatusUnprocessableEntity, u, deskpage.Problem{Field: "number", Text: c.language.Text("many.type-number", "number", j.Changed)})
	case j.Changed > great:
		if err := c.fresh(); err != nil {
			return err
		}
	}
	made, err := c.h.o.Jobs.Start(c.ctx, u, j.All(), j.Notes...)
	if err != nil {
		return err
	}
	c.redirect(jobURL(made.ID) + "?done=job-started")
	return nil
}

// manyRow returns a row as the page shows it.
func (c *call) manyRow(row *job.Row) deskpage.ManyRow {
	v := deskpage.ManyRow{Line: row.Line, Title: row.Title, URL: row.URL, Name: row.Name, Kind: string(row.Kind), Result: c.language.Text("row-kind." + string(row.Kind))}
	if row.Space {
		c.treeRow(&v, row)
	} else if id, err := c.h.o.Schemes.Parse(row.Name); err == nil && (row.Kind == job.Changed || row.Kind == job.Unchanged) {
		v.NameURL = recordURL(id)
	}
	for i, f := range row.Changes {
		if i == shownChanges {
			v.More = len(row.Changes) - i
			break
		}
		v.Changes = append(v.Changes, deskpage.FieldChange{Field: c.pathName(f.Path), Old: plainValue(f.Old), New: plainValue(f.New)})
	}
	if row.Kind == job.Refused {
		v.Problems = c.sentences(row.Err)
	}
	return v
}

// pathName returns what a path in a record is called on pages.
func (c *call) pathName(path string) string {
	if rest, ok := strings.CutPrefix(path, "targets["); ok && strings.HasSuffix(rest, "].url") {
		return c.fieldName("url")
	}
	if strings.HasPrefix(path, "rules[") {
		return c.language.Text("many.rule")
	}
	return c.fieldName(strings.TrimPrefix(path, "metadata."))
}

// plainValue returns a text of a document without its quotation marks.
func plainValue(text string) string {
	if plain, err := strconv.Unquote(text); err == nil {
		return plain
	}
	return text
}

// sentences says what is wrong, one sentence a problem.
func (c *call) sentences(err error) (list []string) {
	problems, ok := errors.AsType[stele.Problems](err)
	if !ok {
		return []string{c.language.Problem(reason(err))}
	}
	for _, p := range problems {
		text := c.language.Problem(p.Err)
		if p.Path != "" {
			text = c.pathName(p.Path) + ": " + text
		}
		list = append(list, text)
	}
	return list
}

// setPreview changes how a file is read, throws it away, or starts the job.
func (c *call) setPreview() error {
	if err := c.readForm(); err != nil {
		return err
	}
	u, err := c.h.o.Jobs.GetUpload(c.ctx, c.r.PathValue("id"))
	if err != nil {
		return err
	}
	switch c.r.PostForm.Get("do") {
	case "columns":
		err := c.h.o.Jobs.SetUpload(c.ctx, u.ID, c.settings(&u))
		if stele.KindOf(err) == stele.Invalid {
			return c.preview(http.StatusUnprocessableEntity, &u, deskpage.Problem{Field: "system", Text: c.language.Problem(reason(err))})
		}
		if err != nil {
			return err
		}
		c.redirect(Root + "many/" + u.ID)
		return nil
	case "discard":
		if err := c.h.o.Jobs.Discard(c.ctx, u.ID); err != nil {
			return err
		}
		c.redirect(Root + "many?done=discarded")
		return nil
	case "all", "good":
		return c.startImport(&u)
	}
	return errUnreadable()
}

// errUnreadable says that a form is not one of a page.
func errUnreadable() error {
	return stele.Errorf("read form", stele.ID{}, stele.Invalid, "desk.form-unreadable", "the form can't be read; go back and send it again")
}

// settings reads the form about columns.
func (c *call) settings(u *job.Upload) job.Settings {
	form := c.r.PostForm
	s := job.Settings{Encoding: bulk.Encoding(form.Get("encoding")), Namespace: form.Get("namespace"), Update: form.Get("update") == "yes"}
	s.System, s.Prefix = system(form)
	treeSettings(&s, form)
	if !slices.Contains(bulk.Encodings(), s.Encoding) {
		s.Encoding = bulk.Auto
	}
	for i := range bulk.MaxColumns {
		name := "column." + strconv.Itoa(i)
		if !form.Has(name) {
			break
		}
		field := form.Get(name)
		if !bulk.IsField(field) {
			field = bulk.Ignored
		}
		s.Fields = append(s.Fields, field)
	}
	if s.Encoding != u.Encoding {
		s.Fields = nil // other cells may be there now
	}
	if s.Fields != nil {
		headless := form.Get("headless") == "yes"
		s.Headless = &headless
	}
	return s
}

// previewRejects sends the rows that can't be used, as a file that can be mended and sent again.
func (c *call) previewRejects() error {
	u, err := c.h.o.Jobs.GetUpload(c.ctx, c.r.PathValue("id"))
	if err != nil {
		return err
	}
	s, err := c.h.o.Jobs.Look(c.ctx, &u)
	if err != nil {
		return err
	}
	j, err := c.h.o.Jobs.Judge(c.ctx, &u, s)
	if err != nil {
		return err
	}
	rows, _ := j.Page(job.Refused, 0, job.MaxRows)
	var b bytes.Buffer
	c.rejectsHead(&b, &s)
	for i := range rows {
		c.reject(&b, &s, rows[i].Line, c.sentences(rows[i].Err), rows[i].Text)
	}
	return c.sendFile(&u, &s, "-rejects", b.Bytes())
}

// rejectsHead begins a file of rows that can't be used.
func (c *call) rejectsHead(b *bytes.Buffer, s *bulk.Survey) {
	if !s.IsSheet() {
		return
	}
	b.WriteString("\ufeff") // by which a spreadsheet knows UTF-8
	if s.Title != nil {
		b.Write(harmlessRow(s.Title, s.Delimiter))
		b.WriteString("\r\n")
	}
}

// reject writes a row that can't be used, after a remark that says why.
func (c *call) reject(b *bytes.Buffer, s *bulk.Survey, line int, problems []string, text []byte) {
	words := strings.Join(problems, "; ")
	words = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, words)
	if s.IsSheet() { // a spreadsheet divides the remark too
		words, text = harmlessPieces(words, ",;\t"), harmlessRow(text, s.Delimiter)
	}
	b.WriteString("# " + c.language.Text("many.reject-line", "line", line) + " " + words + "\r\n")
	b.Write(text)
	b.WriteString("\r\n")
}

// harmlessRow returns a row of a sheet in which a spreadsheet takes no cell for a formula. An import
// reads the same cells from it.
func harmlessRow(row []byte, delimiter byte) []byte {
	cells, err := bulk.SplitRow(row, delimiter, nil)
	if err != nil { // a spreadsheet may divide it where an import can't
		return []byte(harmlessPieces(string(row), string(delimiter)+"\r\n"))
	}
	return bulk.AppendRow(nil, cleaned(cells), delimiter)
}

// harmlessPieces is [bulk.Neutralise] for all pieces of a text, in quotation marks or not.
func harmlessPieces(text, delimiters string) string {
	var b strings.Builder
	for len(text) > 0 {
		end := strings.IndexAny(text, delimiters) + 1
		if end == 0 {
			end = len(text)
		}
		piece := text[:end]
		text = text[end:]
		cell := strings.TrimLeft(piece, `"`)
		b.WriteString(piece[:len(piece)-len(cell)])
		if cell != "" && strings.IndexByte(delimiters, cell[0]) < 0 {
			cell = bulk.Neutralise(bulk.Restore(cell))
		}
		b.WriteString(cell)
	}
	return b.String()
}
