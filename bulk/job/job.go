package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk"
)

// Task is what a job does.
type Task string

const (
	Import  Task = "import"  // of an upload
	Replace Task = "replace" // the beginning of targets
	Revert  Task = "revert"  // what another job did
	Accept  Task = "accept"  // addresses to which targets have moved
)

// State is how far a job is.
type State string

const (
	Waiting   State = "waiting"
	Working   State = "working"
	Done      State = "done"
	Cancelled State = "cancelled"
	Failed    State = "failed"
)

// Job is a bulk change under way, or one that has ended.
type Job struct {
	ID      string    `json:"id"`
	User    string    `json:"user"`
	Task    Task      `json:"task"`
	Label   string    `json:"label"` // what is imported, for people; may be empty
	State   State     `json:"state"`
	Created time.Time `json:"created"`
	Began   time.Time `json:"began,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	Cancel  bool      `json:"cancel,omitempty"` // a user asked for its end

	Total  int    `json:"total"` // rows or records that it is about
	Done   int    `json:"done"`
	Parts  int    `json:"parts"` // that Done is made of
	Counts Counts `json:"counts"`

	Import   uint64            `json:"import,omitempty"`  // the number that versions of the job have
	Upload   *Upload           `json:"upload,omitempty"`  // of an import
	Replace  *bulk.Replacement `json:"replace,omitempty"` // of a replacement
	After    string            `json:"after,omitempty"`   // of a replacement: the last name that was looked at
	Of       string            `json:"of,omitempty"`      // of a revert: the job that it reverts
	UndoneBy string            `json:"undone-by,omitempty"`
	Problem  *Problem          `json:"problem,omitempty"` // why it failed
	Notes    []Problem         `json:"notes,omitempty"`   // what of a file of another system is not in its rows
	Log      []Event           `json:"log,omitempty"`
}

// Event is something that happened to a job.
type Event struct {
	At     time.Time `json:"at"`
	What   string    `json:"what"`             // "began", "resumed", "cancelled", "done", "failed"
	Server string    `json:"server,omitempty"` // that worked on it
}

// maxJobNotes is how many notes are kept of a job, which is written again after each of its parts.
const maxJobNotes = 50

// maxLog is how many events are kept of a job.
const maxLog = 50

func (j *Job) note(at time.Time, what, server string) {
	if j.Log = append(j.Log, Event{at, what, server}); len(j.Log) > maxLog {
		j.Log = slices.Delete(j.Log, 1, 2)
	}
}

// IsOpen reports whether the job has not ended.
func (j *Job) IsOpen() bool { return j.State == Waiting || j.State == Working }

// MayUndo reports whether what the job did can be undone.
func (j *Job) MayUndo() bool { return !j.IsOpen() && j.Import != 0 && j.UndoneBy == "" }

// Problem is what is wrong with a row, as it is kept.
type Problem struct {
	Path   string        `json:"path,omitempty"`
	Code   string        `json:"code,omitempty"`
	Text   string        `json:"text"`
	Params []stele.Param `json:"params,omitempty"`
}

// Err returns the problem as an error.
func (p *Problem) Err() error { return stele.ReceivedMessage(p.Code, p.Text, p.Params) }

// keptText is how many bytes of a text of a problem are kept.
const keptText = 400

// problemOf returns an error as it is kept.
func problemOf(path string, err error) Problem {
	p := Problem{Path: path, Text: cut(stele.Reason(err).Error())}
	if m, ok := errors.AsType[*stele.Message](err); ok {
		p.Code = m.Code
		for _, param := range m.Params[:min(len(m.Params), 8)] {
			p.Params = append(p.Params, stele.Param{Name: param.Name, Value: cut(param.Value)})
		}
	}
	return p
}

// problemsOf returns the first problems of a row.
func problemsOf(err error) (list []Problem) {
	problems, ok := errors.AsType[stele.Problems](err)
	if !ok {
		return []Problem{problemOf("", err)}
	}
	for _, p := range problems[:min(len(problems), 3)] {
		list = append(list, problemOf(p.Path, p.Err))
	}
	return list
}

func cut(text string) string {
	for i := range text {
		if i > keptText {
			return text[:i] + "…"
		}
	}
	return text
}

// Outcome is what became of a row or a record.
type Outcome struct {
	Line     int       `json:"line,omitempty"`  // of an import
	Space    bool      `json:"space,omitempty"` // it is the rules of a namespace, and no record
	ID       string    `json:"id,omitempty"`    // "" if the row has no name; the key of a namespace
	Kind     Kind      `json:"kind"`
	Problems []Problem `json:"problems,omitempty"` // why it was refused
}

// part is what a job did to some rows. Names that were made are written down before they are
// registered, so that a row never gets another one.
type part struct {
	Names map[int][]string `json:"names,omitempty"` // by line: the name, and its aliases
	Rows  []Outcome        `json:"rows,omitempty"`
}

func partName(id string, n int) string { return fmt.Sprintf("%s%s %06d", partCells, id, n) }

// lease says which server works on a job.
type lease struct {
	Server string    `json:"server,omitempty"` // "": none does
	Until  time.Time `json:"until,omitzero"`
}

// Start makes a job of an upload of the caller, with as many rows as were judged. The upload
// belongs to the job then: it can't be started twice. Conflict if the upload is not as the caller
// judged it, because it is read in another way since. The job keeps the notes of the judgement.
func (b *Board) Start(ctx context.Context, judged *Upload, rows int, notes ...error) (Job, error) {
	id := judged.ID
	u, before, err := b.getUpload(ctx, id)
	switch {
	case err != nil:
		return Job{}, err
	case u.Mark() != judged.Mark():
		return Job{}, refuse(stele.Conflict, "upload.changed-meanwhile", "this file was used or changed at the same time; look again")
	}
	j := Job{Task: Import, Label: u.Name, Total: rows, Upload: &u}
	for _, note := range notes[:min(len(notes), maxJobNotes)] {
		j.Notes = append(j.Notes, problemOf("", note))
	}
	err = b.begin(ctx, &j, stele.CellChange{Name: uploadCells + id, Before: before})
	return j, err
}

// StartRevert makes a job that undoes what another did.
func (b *Board) StartRevert(ctx context.Context, id string, records int) (Job, error) {
	of, before, err := b.getJob(ctx, id)
	switch {
	case err != nil:
		return Job{}, err
	case !of.MayUndo():
		return Job{}, refuse(stele.Conflict, "job.not-undoable", "this job can't be undone: it has not ended, it changed nothing, or it was undone already")
	}
	j := Job{Task: Revert, Label: of.Label, Total: records, Of: of.ID}
	if j.ID, err = b.NewID(); err != nil {
		return Job{}, err
	}
	of.UndoneBy = j.ID
	c, err := change(jobCells+of.ID, before, &of)
	if err != nil {
		return Job{}, err
	}
	err = b.begin(ctx, &j, c)
	return j, err
}

// begin keeps a new job of the caller, together with other changes.
func (b *Board) begin(ctx context.Context, j *Job, also ...stele.CellChange) error {
	who, err := identify(ctx)
	if err != nil {
		return err
	}
	if err := b.mayBegin(ctx, who.Name); err != nil {
		return err
	}
	if j.ID == "" {
		if j.ID, err = b.NewID(); err != nil {
			return err
		}
	}
	j.User, j.State, j.Created = who.Name, Waiting, b.now()
	c, err := change(jobCells+j.ID, nil, j)
	if err != nil {
		return err
	}
	l, err := change(leaseCells+j.ID, nil, &lease{})
	if err != nil {
		return err
	}
	if err := b.o.Registrar.KeepWork(asServer(ctx), append(also, c, l)...); err != nil {
		if errors.Is(err, stele.Conflict) {
			err = refuse(stele.Conflict, "job.started-already", "this was started already; look at the list of jobs")
		}
		return err
	}
	b.poke()
	return nil
}

// poke tells the runner of this server that there may be work.
func (b *Board) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// mayBegin makes sure that there is room for another job, and removes old ones.
func (b *Board) mayBegin(ctx context.Context, user string) error {
	jobs, err := b.jobs(ctx)
	if err != nil {
		return err
	}
	open, all, kept := 0, 0, 0
	for i := range jobs { // the newest first
		j := &jobs[i]
		if j.IsOpen() {
			all++
		}
		if j.User != user {
			continue
		}
		if j.IsOpen() {
			open++
		} else if kept++; kept >= MaxKept {
			if err := b.removeJob(ctx, j); err != nil {
				return err
			}
		}
	}
	switch {
	case open >= MaxOpen:
		return refuse(stele.Exhausted, "job.too-many", "{count} jobs of yours have not ended; wait for one of them", open)
	case all >= maxAllOpen:
		return refuse(stele.Exhausted, "job.too-many-of-all", "other users have too many jobs at the moment; try again later")
	}
	return nil
}

// jobs returns all jobs, the newest first.
func (b *Board) jobs(ctx context.Context) (list []Job, err error) {
	for c, err := range b.o.Registrar.WorkList(asServer(ctx), jobCells, "") {
		var j Job
		if err == nil {
			err = decode(c.Name, c.Value, &j)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, j)
	}
	slices.SortStableFunc(list, func(a, b Job) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID)) })
	return list, nil
}

// Jobs returns the jobs of the caller, the newest first; with all, those of all users, for an
// administrator.
func (b *Board) Jobs(ctx context.Context, all bool) ([]Job, error) {
	who, err := identify(ctx)
	if err != nil {
		return nil, err
	}
	list, err := b.jobs(ctx)
	return slices.DeleteFunc(list, func(j Job) bool { return j.User != who.Name && !(all && who.Admin) }), err
}

// Get returns a job of the caller; administrators see all.
func (b *Board) Get(ctx context.Context, id string) (Job, error) {
	j, _, err := b.getJob(ctx, id)
	return j, err
}

func (b *Board) getJob(ctx context.Context, id string) (j Job, value []byte, err error) {
	who, err := identify(ctx)
	if err != nil {
		return j, nil, err
	}
	ok := false
	if isID(id) {
		if value, ok, err = b.read(ctx, jobCells+id, &j); err != nil {
			return j, nil, err
		}
	}
	if !ok || !maySee(who, &j) {
		return Job{}, nil, refuse(stele.NotFound, "job.missing", "there is no such job; jobs are removed a month after their end")
	}
	return j, value, nil
}

func maySee(who auth.Principal, j *Job) bool { return who.Admin || who.Name == j.User }

// Cancel asks for the end of a job: what it did stays, and can be undone.
func (b *Board) Cancel(ctx context.Context, id string) error {
	const attempts = 20
	for n := 1; ; n++ {
		j, before, err := b.getJob(ctx, id)
		if err != nil || !j.IsOpen() || j.Cancel {
			return err
		}
		j.Cancel = true
		c, err := change(jobCells+id, before, &j)
		if err != nil {
			return err
		}
		if err := b.o.Registrar.KeepWork(asServer(ctx), c); err == nil || !errors.Is(err, stele.Conflict) || n == attempts {
			b.poke()
			return err
		}
	}
}

// Outcomes calls found with what became of each row of a job, in order, until it returns false.
// The caller got the job from Get.
func (b *Board) Outcomes(ctx context.Context, j *Job, found func(Outcome) bool) error {
	for c, err := range b.o.Registrar.WorkList(asServer(ctx), partCells+j.ID, "") {
		var p part
		if err == nil {
			err = decode(c.Name, c.Value, &p)
		}
		if err != nil {
			return err
		}
		for _, o := range p.Rows {
			if !found(o) {
				return nil
			}
		}
	}
	return nil
}

// removeJob removes a job that has ended, with its files.
func (b *Board) removeJob(ctx context.Context, j *Job) error {
	if j.Upload != nil {
		if err := b.remove(ctx, pieceCells+j.Upload.ID); err != nil {
			return err
		}
	}
	if err := b.remove(ctx, moveCells+j.ID); err != nil {
		return err
	}
	if err := b.remove(ctx, partCells+j.ID); err != nil {
		return err
	}
	if err := b.remove(ctx, ruleCells+j.ID); err != nil {
		return err
	}
	return b.remove(ctx, jobCells+j.ID)
}

// Tidy removes uploads and jobs whose time is over, and pieces of uploads that never came whole. It
// is housekeeping of the server.
func (b *Board) Tidy(ctx context.Context) error {
	jobs, err := b.jobs(ctx)
	if err != nil {
		return err
	}
	for i := range jobs {
		if j := &jobs[i]; !j.IsOpen() && b.now().Sub(j.Ended) > Life {
			if err := b.removeJob(ctx, j); err != nil {
				return err
			}
		}
	}
	return b.tidyUploads(ctx)
}
