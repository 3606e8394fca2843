package desk

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/job"
	"github.com/stele-id/stele/web/deskpage"
)

// shownRefused is how many rows that were refused the page of a job shows.
const shownRefused = 50

func jobURL(id string) string { return Root + "jobs/" + id }

// jobs lists jobs.
func (c *call) jobs() error {
	v := &deskpage.Jobs{Frame: c.frame("jobs.title", "many"), All: c.who.Admin}
	list, err := c.h.o.Jobs.Jobs(c.ctx, v.All)
	if err != nil {
		return err
	}
	for i := range list {
		v.List = append(v.List, c.jobRow(&list[i]))
	}
	v.Same = []deskpage.Same{{Label: c.language.Text("same.command"), Text: "stele import ls"}}
	return c.show(http.StatusOK, "jobs", v)
}

// jobRow returns a job as a list shows it.
func (c *call) jobRow(j *job.Job) deskpage.JobRow {
	name := cmp.Or(j.Label, c.language.Text("many.pasted"))
	return deskpage.JobRow{URL: jobURL(j.ID), Name: c.language.Text("job-task."+string(j.Task), "name", name), By: j.User, Created: j.Created,
		State: string(j.State), StateText: c.language.Text("job-state." + string(j.State)), Done: j.Done, Total: j.Total}
}

// showJob shows a job. While it is open, the page is read again every few seconds.
func (c *call) showJob() error {
	j, err := c.h.o.Jobs.Get(c.ctx, c.r.PathValue("id"))
	if err != nil {
		return err
	}
	row := c.jobRow(&j)
	v := &deskpage.Job{Frame: c.frame(row.Name, "many"), JobRow: row, Open: j.IsOpen(), Cancelled: j.Cancel, Ended: j.Ended, Import: j.Import}
	if v.Open {
		v.Refresh = strconv.Itoa(int(refreshEvery / time.Second))
	}
	if j.Total > 0 {
		v.Percent = 100 * j.Done / j.Total
	}
	for _, k := range job.Kinds() {
		key := "job-count." + string(k)
		if j.Task == job.Revert {
			if k != job.Changed && k != job.Refused {
				continue
			}
			key = "undone-count." + string(k)
		}
		v.Facts = append(v.Facts, deskpage.KindCount{Kind: string(k), Text: c.language.Text(key, "count", j.Counts.Of(k)), Count: j.Counts.Of(k)})
	}
	if j.Problem != nil {
		v.Problem = c.language.Problem(j.Problem.Err())
	}
	for i := range j.Notes {
		v.Notes = append(v.Notes, c.language.Problem(j.Notes[i].Err()))
	}
	if j.Done > 0 {
		v.Result = jobURL(j.ID) + "/result.csv"
	}
	if j.Counts.Refused > 0 && j.Task == job.Import {
		v.Rejects = jobURL(j.ID) + "/rejects"
	}
	if j.MayUndo() {
		v.Undo = jobURL(j.ID) + "/undo"
	}
	if j.UndoneBy != "" {
		v.UndoneBy = jobURL(j.UndoneBy)
	}
	if j.Of != "" {
		v.Of = jobURL(j.Of)
	}
	for _, e := range j.Log {
		v.Log = append(v.Log, deskpage.JobEvent{At: e.At, Text: c.language.Text("job-event." + e.What), Server: e.Server})
	}
	slices.Reverse(v.Log)
	if err := c.refusedRows(v, &j); err != nil {
		return err
	}
	if j.Import != 0 {
		v.Same = []deskpage.Same{{Label: c.language.Text("same.command"), Text: "stele revert --import " + strconv.FormatUint(j.Import, 10) + " --dry-run"}}
	}
	return c.show(http.StatusOK, "job", v)
}

// refreshEvery is how often the page of a job is read again.
const refreshEvery = 2 * time.Second

// refusedRows shows some of what a job did not write.
func (c *call) refusedRows(v *deskpage.Job, j *job.Job) error {
	if j.Counts.Refused == 0 || j.IsOpen() { // the page of an open job is read again and again
		return nil
	}
	return c.h.o.Jobs.Outcomes(c.ctx, j, func(o job.Outcome) bool {
		if o.Kind == job.Refused {
			row := deskpage.ManyRow{Line: o.Line, Name: o.ID, Kind: string(o.Kind), Problems: c.keptSentences(o.Problems)}
			if key, err := c.h.o.Registrar.ParsePrefix(o.ID); err == nil && o.Space {
				row.NameURL = rulesURL(key)
			} else if id, err := c.h.o.Schemes.Parse(o.ID); err == nil {
				row.NameURL = recordURL(id)
			}
			v.Rows = append(v.Rows, row)
		}
		return len(v.Rows) < shownRefused
	})
}

// keptSentences says what was wrong with a row, one sentence a problem.
func (c *call) keptSentences(problems []job.Problem) (list []string) {
	for i := range problems {
		text := c.language.Problem(problems[i].Err())
		if problems[i].Path != "" {
			text = c.pathName(problems[i].Path) + ": " + text
		}
		list = append(list, text)
	}
	return list
}

// cancelJob asks for the end of a job.
func (c *call) cancelJob() error {
	id := c.r.PathValue("id")
	if err := c.h.o.Jobs.Cancel(c.ctx, id); err != nil {
		return err
	}
	c.redirect(jobURL(id) + "?done=job-cancelled")
	return nil
}

// jobResult sends what became of the rows of a job, with the names that were made.
func (c *call) jobResult() error {
	j, err := c.h.o.Jobs.Get(c.ctx, c.r.PathValue("id"))
	if err != nil {
		return err
	}
	rows, survey, err := c.jobCells(&j)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("\ufeff") // by which a spreadsheet knows UTF-8
	w := csv.NewWriter(&b)
	head := []string{"id", "result"}
	if j.Task == job.Import {
		head = append([]string{"row"}, head...)
	}
	if survey != nil {
		for _, column := range survey.Columns {
			head = append(head, column.Name)
		}
	}
	list := [][]string{cleaned(head)}
	if err := c.h.o.Jobs.Outcomes(c.ctx, &j, func(o job.Outcome) bool {
		line := []string{o.ID, c.language.Text("row-kind." + string(o.Kind))}
		if len(o.Problems) > 0 {
			line[1] += ": " + strings.Join(c.keptSentences(o.Problems), "; ")
		}
		if j.Task == job.Import {
			line = append([]string{strconv.Itoa(o.Line)}, line...)
		}
		if n := len(list) - 1; n < len(rows) {
			line = append(line, rows[n]...)
		}
		list = append(list, cleaned(line))
		return true
	}); err != nil {
		return err
	}
	if err := w.WriteAll(list); err != nil {
		return err
	}
	return c.sendFile(&job.Upload{Name: j.Label}, new(bulk.Survey), "-result", b.Bytes())
}

// cleaned returns cells that a spreadsheet does not run.
func cleaned(cells []string) []string {
	for i, cell := range cells {
		cells[i] = bulk.Neutralise(bulk.Restore(cell))
	}
	return cells
}

// jobCells returns the cells of the rows that were imported, in the order of outcomes, if they were a sheet.
func (c *call) jobCells(j *job.Job) ([][]string, *bulk.Survey, error) {
	if j.Task != job.Import {
		return nil, nil, nil
	}
	texts, survey, err := c.h.o.Jobs.Texts(c.ctx, j)
	if err != nil || !survey.IsSheet() {
		return nil, nil, err
	}
	cells := make([][]string, len(texts))
	for i, text := range texts {
		if cells[i], err = bulk.SplitRow(text, survey.Delimiter, nil); err != nil {
			cells[i] = []string{string(text)}
		}
	}
	return cells, &survey, nil
}

// jobRejects sends the rows that a job did not write, as a file that can be mended and sent again.
func (c *call) jobRejects() error {
	j, err := c.h.o.Jobs.Get(c.ctx, c.r.PathValue("id"))
	if err != nil {
		return err
	}
	if j.Task != job.Import {
		return stele.Errorf("show page", stele.ID{}, stele.NotFound, "desk.page-unknown", "there is no such page here")
	}
	texts, survey, err := c.h.o.Jobs.Texts(c.ctx, &j)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	c.rejectsHead(&b, &survey)
	n := -1
	if err := c.h.o.Jobs.Outcomes(c.ctx, &j, func(o job.Outcome) bool {
		if n++; o.Kind == job.Refused && n < len(texts) {
			c.reject(&b, &survey, o.Line, c.keptSentences(o.Problems), texts[n])
		}
		return true
	}); err != nil {
		return err
	}
	return c.sendFile(j.Upload, &survey, "-rejects", b.Bytes())
}

// showUndo shows what undoing a job would do.
func (c *call) showUndo() error { return c.undoPage(http.StatusOK) }

func (c *call) undoPage(status int, problems ...deskpage.Problem) error {
	j, p, err := c.h.o.Jobs.PreviewRevert(c.ctx, c.r.PathValue("id"))
	if err != nil {
		return err
	}
	v := &deskpage.Undo{Frame: c.frame("undo.title", "many"), URL: jobURL(j.ID), Name: c.jobRow(&j).Name, Withdrawn: p.Withdrawn, Reverted: p.Reverted, Left: p.Left,
		Rules: p.Rules, RulesLeft: p.RulesLeft, All: p.Withdrawn + p.Reverted + p.Rules, Typed: deskpage.Field{ID: "number", Name: "number"}}
	v.Confirm, v.Problems = v.All > great, problems
	for _, step := range p.First {
		s := deskpage.UndoStep{ID: step.ID.String(), URL: recordURL(step.ID), Text: c.language.Text("undo-step." + step.Status)}
		if step.Err != nil {
			s.Why = c.language.Problem(step.Err)
		}
		v.Steps = append(v.Steps, s)
	}
	v.Same = []deskpage.Same{{Label: c.language.Text("same.command"), Text: "stele revert --import " + strconv.FormatUint(j.Import, 10)}}
	return c.show(status, "undo", v)
}

// undo starts the job that undoes another.
func (c *call) undo() error {
	if err := c.readForm(); err != nil {
		return err
	}
	id := c.r.PathValue("id")
	_, p, err := c.h.o.Jobs.PreviewRevert(c.ctx, id)
	if err != nil {
		return err
	}
	all := p.Withdrawn + p.Reverted + p.Rules
	if all > great {
		if !isTyped(c.r.PostForm.Get("number"), all) {
			return c.undoPage(http.StatusUnprocessableEntity, deskpage.Problem{Field: "number", Text: c.language.Text("many.type-number", "number", all)})
		}
		if err := c.fresh(); err != nil {
			return err
		}
	}
	made, err := c.h.o.Jobs.StartRevert(c.ctx, id, all+p.Left+p.RulesLeft)
	if err != nil {
		return err
	}
	c.redirect(jobURL(made.ID) + "?done=job-started")
	return nil
}
