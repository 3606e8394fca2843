package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/registrar"
)

// sheetOf returns a sheet of new names.
func sheetOf(rows int) string {
	var text strings.Builder
	text.WriteString("id,url\n")
	for i := range rows {
		fmt.Fprintf(&text, "ark:12345/x5own%d,https://example.org/%d\n", i, i)
	}
	return text.String()
}

// watching calls a function when a part of a job is kept.
type watching struct {
	stele.Store
	part func(n int)
	n    int
}

func (s *watching) Apply(ctx context.Context, c *stele.Commit) error {
	err := s.Store.Apply(ctx, c)
	for _, cell := range c.Cells {
		if err == nil && strings.HasPrefix(cell.Name, partCells) {
			s.n++
			s.part(s.n)
		}
	}
	return err
}

// undoing imports rows, and returns the job and the one that undoes it.
func undoing(t *testing.T, p *place, rows int) (of, undo Job) {
	t.Helper()
	of = startText(t, p, sheetOf(rows), true)
	if err := p.runner.work(t.Context(), of.ID); err != nil {
		t.Fatal(err)
	}
	return of, startUndo(t, p, of.ID)
}

func startUndo(t *testing.T, p *place, id string) Job {
	t.Helper()
	undo, err := p.board.StartRevert(p.user, id, 0)
	if err != nil {
		t.Fatal(err)
	}
	return undo
}

// withdrawn returns how many names of the namespace are withdrawn.
func (p *place) withdrawn(t *testing.T) (n int) {
	t.Helper()
	local := auth.With(t.Context(), auth.Local())
	for rec, err := range p.registrar.Scan(local, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, "") {
		if err != nil {
			t.Fatal(err)
		}
		if rec.State == stele.Withdrawn {
			n++
		}
	}
	return n
}

// TestUndoOfDisabled: an undo ends when its user is disabled, and can be finished by another.
func TestUndoOfDisabled(t *testing.T) {
	const rows = 2200 // the registrar commits a thousand at once
	p, store := newPlace(t)
	of, undo := undoing(t, p, rows)
	local := auth.With(t.Context(), auth.Local())
	disable := func(yes bool) {
		if _, err := p.registrar.SetUser(local, "ed", func(u *auth.User) error { u.Disabled = yes; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	watch := &watching{Store: store, part: func(n int) {
		if n == 1 {
			disable(true)
		}
	}}
	second := server(t, watch, p.now)
	second.runner.Directory = p.runner.Directory
	if err := second.runner.work(t.Context(), undo.ID); err != nil {
		t.Fatal(err)
	}
	j, err := p.board.Get(p.user, undo.ID)
	if err != nil || j.State != Failed || j.Problem == nil || j.Problem.Code != "token.user-disabled" {
		t.Fatalf("got %+v, %v", j, err)
	}
	if n := p.withdrawn(t); n == 0 || n >= rows {
		t.Errorf("%d of %d were undone", n, rows)
	}

	// What it left can be undone.
	disable(false)
	if of, err := p.board.Get(p.user, of.ID); err != nil || of.UndoneBy != "" || !of.MayUndo() {
		t.Fatalf("got %+v, %v", of, err)
	}
	if _, v, err := p.board.PreviewRevert(p.user, of.ID); err != nil || v.Withdrawn+p.withdrawn(t) != rows {
		t.Errorf("got %+v, %v", v, err)
	}
	again := startUndo(t, p, of.ID)
	if err := p.runner.work(t.Context(), again.ID); err != nil {
		t.Fatal(err)
	}
	if n := p.withdrawn(t); n != rows {
		t.Errorf("%d of %d were undone", n, rows)
	}
	if of, err := p.board.Get(p.user, of.ID); err != nil || of.UndoneBy != again.ID {
		t.Errorf("got %+v, %v", of, err)
	}
}

// TestUndoOfCancelled: an undo that was cancelled can be finished.
func TestUndoOfCancelled(t *testing.T) {
	const rows = 2200
	p, store := newPlace(t)
	of, undo := undoing(t, p, rows)
	second := server(t, &watching{Store: store, part: func(int) {
		if err := p.board.Cancel(p.user, undo.ID); err != nil {
			t.Error(err)
		}
	}}, p.now)
	if err := second.runner.work(t.Context(), undo.ID); err != nil {
		t.Fatal(err)
	}
	if j, err := p.board.Get(p.user, undo.ID); err != nil || j.State != Cancelled {
		t.Fatalf("got %+v, %v", j, err)
	}
	again := startUndo(t, p, of.ID)
	if err := p.runner.work(t.Context(), again.ID); err != nil {
		t.Fatal(err)
	}
	if n := p.withdrawn(t); n != rows {
		t.Errorf("%d of %d were undone", n, rows)
	}
	if _, err := p.board.StartRevert(p.user, of.ID, 0); !errors.Is(err, stele.Conflict) {
		t.Errorf("what is undone can be undone again: %v", err)
	}
}

// TestUndoWithNewRights: an administrator who is one no more goes on with the rights that are left.
func TestUndoWithNewRights(t *testing.T) {
	const rows = 2200
	p, store := newPlace(t)
	local := auth.With(t.Context(), auth.Local())
	for _, name := range []string{"ada", "bea"} { // one must stay
		if _, err := p.registrar.AddUser(local, auth.User{Name: name, Admin: true}); err != nil {
			t.Fatal(err)
		}
	}
	p.user = auth.With(t.Context(), auth.Principal{Name: "ada", Admin: true})
	_, undo := undoing(t, p, rows)
	second := server(t, &watching{Store: store, part: func(n int) {
		if n > 1 {
			return
		}
		if _, err := p.registrar.SetUser(local, "ada", func(u *auth.User) error { u.Admin = false; return nil }); err != nil {
			t.Error(err)
		}
	}}, p.now)
	second.runner.Directory = p.runner.Directory
	if err := second.runner.work(t.Context(), undo.ID); err != nil {
		t.Fatal(err)
	}
	if n := p.withdrawn(t); n == 0 || n >= rows {
		t.Errorf("%d of %d were undone by a user who may not write them", n, rows)
	}
}

// TestStartAsJudged: an upload that another window has read in another way since is not started.
func TestStartAsJudged(t *testing.T) {
	p, _ := newPlace(t)
	u, err := p.board.Upload(p.user, "a.csv", Settings{Encoding: bulk.Auto}, strings.NewReader("id,url\nark:12345/x5a,https://example.org/1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.board.SetUpload(p.user, u.ID, Settings{Encoding: bulk.Auto, Update: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.board.Start(p.user, &u, 1); !errors.Is(err, stele.Conflict) {
		t.Errorf("got %v", err)
	}
	now, err := p.board.GetUpload(p.user, u.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.board.Start(p.user, &now, 1); err != nil {
		t.Errorf("got %v", err)
	}
}

// TestDiscardOfStarted: an upload that becomes a job while it is thrown away keeps its text.
func TestDiscardOfStarted(t *testing.T) {
	p, store := newPlace(t)
	u, err := p.board.Upload(p.user, "a.csv", Settings{Encoding: bulk.Auto}, strings.NewReader("id,url\nark:12345/x5a,https://example.org/1\n"))
	if err != nil {
		t.Fatal(err)
	}
	var job Job
	second := server(t, &between{Store: store, cell: uploadCells + u.ID, then: func() {
		if job, err = p.board.Start(p.user, &u, 1); err != nil {
			t.Error(err)
		}
	}}, p.now)
	if err := second.board.Discard(p.user, u.ID); !errors.Is(err, stele.Conflict) {
		t.Errorf("got %v", err)
	}
	if err := p.runner.work(t.Context(), job.ID); err != nil {
		t.Fatal(err)
	}
	if j, err := p.board.Get(p.user, job.ID); err != nil || j.State != Done || j.Counts.New != 1 {
		t.Errorf("got %+v, %v", j, err)
	}

	// Nor is one thrown away at the end of its time that a job takes at that moment.
	if u, err = p.board.Upload(p.user, "a.csv", Settings{Encoding: bulk.Auto}, strings.NewReader("id,url\nark:12345/x5b,https://example.org/1\n")); err != nil {
		t.Fatal(err)
	}
	_, before, err := p.board.getUpload(p.user, u.ID)
	if err != nil {
		t.Fatal(err)
	}
	if job, err = p.board.Start(p.user, &u, 1); err != nil {
		t.Fatal(err)
	}
	if err := p.board.removeOld(p.user, []stele.Cell{{Name: uploadCells + u.ID, Value: before}}); err != nil {
		t.Fatal(err)
	}
	if err := p.runner.work(t.Context(), job.ID); err != nil {
		t.Fatal(err)
	}
	if j, err := p.board.Get(p.user, job.ID); err != nil || j.State != Done {
		t.Errorf("got %+v, %v", j, err)
	}
}

// between calls a function once after a cell was read.
type between struct {
	stele.Store
	cell string
	then func()
}

func (s *between) Cell(ctx context.Context, name string) ([]byte, error) {
	value, err := s.Store.Cell(ctx, name)
	if then := s.then; name == s.cell && then != nil {
		s.then = nil
		then()
	}
	return value, err
}

// TestReplaceOnce: a form that is sent twice starts one job.
func TestReplaceOnce(t *testing.T) {
	p, _ := newPlace(t)
	once, err := p.board.NewID()
	if err != nil {
		t.Fatal(err)
	}
	r := bulk.Replacement{From: "https://example.org/", To: "https://example.org/new/" + strings.Repeat("é", registrar.MaxLabel)}
	j, err := p.board.StartReplace(p.user, once, r, 1)
	if err != nil || j.ID != once || !utf8.ValidString(j.Label) || strings.ContainsRune(j.Label, utf8.RuneError) {
		t.Fatalf("got %+v, %v", j, err)
	}
	if _, err := p.board.StartReplace(p.user, once, r, 1); !errors.Is(err, stele.Conflict) {
		t.Errorf("got %v", err)
	}
	if j, err := p.board.StartReplace(p.user, "../nonsense", r, 1); err != nil || !isID(j.ID) {
		t.Errorf("got %+v, %v", j, err)
	}
}

// TestPreviewsAreBounded: looks at many records wait for each other, and not without end.
func TestPreviewsAreBounded(t *testing.T) {
	p, _ := newPlace(t)
	other := startText(t, p, "id,url\nark:12345/x5other,https://example.org/1\n", true)
	if err := p.runner.work(t.Context(), other.ID); err != nil {
		t.Fatal(err)
	}
	p.board.most = time.Nanosecond
	previews := map[string]func() error{
		"replace": func() error {
			_, err := p.board.PreviewReplace(p.user, bulk.Replacement{From: "example.org", To: "example.net"})
			return err
		},
		"revert": func() error { _, _, err := p.board.PreviewRevert(p.user, other.ID); return err },
	}
	for name, preview := range previews {
		if code, _ := stele.CodeOf(preview()); code != "job.preview-too-long" && code != "job.too-many-previews" {
			t.Errorf("%s: got %q", name, code)
		}
	}
	for range judgements {
		p.board.turns <- struct{}{}
	}
	for name, preview := range previews {
		if code, _ := stele.CodeOf(preview()); code != "job.too-many-previews" {
			t.Errorf("%s: got %q", name, code)
		}
	}
}
