package job

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/store/mem"
)

// newPlace starts a server on an empty store, with a user and a namespace of theirs.
func newPlace(t *testing.T) (*place, stele.Store) {
	t.Helper()
	now := new(atomic.Int64)
	now.Store(time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC).Unix())
	store := mem.New(func() time.Time { return time.Unix(now.Load(), 0) })
	p := server(t, store, now)
	setUp(t, p)
	return p, store
}

// startText starts a job of a sheet.
func startText(t *testing.T, p *place, text string, update bool) Job {
	t.Helper()
	u, err := p.board.Upload(p.user, "a.csv", Settings{Encoding: bulk.Auto, Namespace: "ark:12345/x5", Update: update}, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	job, err := p.board.Start(p.user, &u, strings.Count(text, "\n")-1)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func (p *place) target(t *testing.T, name string) string {
	t.Helper()
	id, err := p.board.o.Schemes.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := p.registrar.Get(p.user, id)
	if err != nil {
		t.Fatal(err)
	}
	return rec.Targets[0].URL
}

// TestRepeatedNamesGoOn: rows of one record in two parts and twice in a part. Whenever the process
// dies, the last row wins in an update and the first one otherwise, and each row is counted as if
// nothing had happened.
func TestRepeatedNamesGoOn(t *testing.T) {
	const rows = partRows + 60
	var text strings.Builder
	text.WriteString("id,url\n")
	for i := range rows {
		name := fmt.Sprintf("own%d", i)
		switch i {
		case 10, partRows + 50:
			name = "twice"
		case partRows + 5, partRows + 8:
			name = "near"
		}
		fmt.Fprintf(&text, "ark:12345/x5%s,https://example.org/%d\n", name, i)
	}
	for _, update := range []bool{true, false} {
		want, twice, near := Counts{New: rows - 2, Changed: 2}, partRows+50, partRows+8
		if !update {
			want, twice, near = Counts{New: rows - 2, Refused: 2}, 10, partRows+5
		}
		for _, late := range []bool{false, true} {
			for step, ended := 0, false; !ended; step++ {
				first, store := newPlace(t)
				job := startText(t, first, text.String(), update)
				first.store.late = late
				first.store.left.Store(int64(step))
				err := first.runner.work(t.Context(), job.ID)
				ended = err == nil && first.store.left.Load() >= 0
				first.now.Add(int64(DefaultLease/time.Second) + 1)
				second := server(t, store, first.now)
				if err := second.runner.work(t.Context(), job.ID); err != nil {
					t.Fatal(err)
				}
				when := fmt.Sprintf("update=%v late=%v step=%d", update, late, step)
				if j, err := second.board.Get(second.user, job.ID); err != nil || j.State != Done || j.Counts != want {
					t.Errorf("%s: %+v %v, want %+v", when, j, err, want)
				}
				for name, row := range map[string]int{"twice": twice, "near": near} {
					if got, want := second.target(t, "ark:12345/x5"+name), fmt.Sprintf("https://example.org/%d", row); got != want {
						t.Errorf("%s: %s leads to %s, want %s", when, name, got, want)
					}
				}
			}
		}
	}
}

// TestOthersWin: a record that another user changed after an attempt wrote it stays as they left it.
func TestOthersWin(t *testing.T) {
	first, store := newPlace(t)
	job := startText(t, first, "id,url\nark:12345/x5a,https://example.org/job\n", true)
	first.store.late = true
	for step := int64(2); ; step++ {
		first.store.left.Store(step)
		_ = first.runner.work(t.Context(), job.ID)
		first.store.left.Store(never)
		first.now.Add(int64(DefaultLease/time.Second) + 1)
		if j, err := first.board.Get(first.user, job.ID); err != nil || !j.IsOpen() {
			t.Fatal("the job ended before its row was written alone", err)
		}
		id, _ := first.board.o.Schemes.Parse("ark:12345/x5a")
		if _, err := first.registrar.Get(first.user, id); err != nil {
			continue
		}
		if _, err := first.registrar.Update(first.user, id, 0, func(r *stele.Record) error { r.Targets[0].URL = "https://example.org/theirs"; return nil }); err != nil {
			t.Fatal(err)
		}
		break
	}
	second := server(t, store, first.now)
	if err := second.runner.work(t.Context(), job.ID); err != nil {
		t.Fatal(err)
	}
	if got := second.target(t, "ark:12345/x5a"); got != "https://example.org/theirs" {
		t.Errorf("it leads to %s", got)
	}
}

// TestReadFails: a job that can't be read at the moment is not lost.
func TestReadFails(t *testing.T) {
	p, _ := newPlace(t)
	job := startText(t, p, "id,url\nark:12345/x5a,https://example.org/1\n", true)
	cell := jobCells + job.ID
	p.store.unread.Store(&cell)
	if err := p.runner.work(t.Context(), job.ID); err == nil {
		t.Error("the error is not returned")
	}
	p.store.unread.Store(nil)
	if err := p.runner.work(t.Context(), job.ID); err != nil { // the lease was given back
		t.Fatal(err)
	}
	if j, err := p.board.Get(p.user, job.ID); err != nil || j.State != Done {
		t.Errorf("got %+v, %v", j, err)
	}
}

// TestNoSpinning: a store that can be read and not written is not asked again at once, and a job
// that can't go on does not keep others waiting.
func TestNoSpinning(t *testing.T) {
	p, _ := newPlace(t)
	p.runner.mine = make(map[string]bool)
	look := func() {
		var workers sync.WaitGroup
		if err := p.runner.look(t.Context(), make(chan struct{}, 1), &workers); err != nil {
			t.Fatal(err)
		}
		workers.Wait()
	}
	woken := func() bool {
		select {
		case <-p.board.wake:
			return true
		default:
			return false
		}
	}
	a := startText(t, p, "id,url\nark:12345/x5a,https://example.org/1\n", true)
	b := startText(t, p, "id,url\nark:12345/x5b,https://example.org/1\n", true)
	woken()
	p.store.left.Store(0)
	look()
	if woken() {
		t.Error("the runner looks again without a pause")
	}
	p.store.left.Store(never)
	cell := jobCells + min(a.ID, b.ID)
	p.store.unread.Store(&cell)
	for range 2 {
		look()
	}
	if j, err := p.board.Get(p.user, max(a.ID, b.ID)); err != nil || j.State != Done {
		t.Errorf("a job waits for one that can't go on: %+v, %v", j, err)
	}
	if !woken() {
		t.Error("the runner does not look for the next job")
	}
}
