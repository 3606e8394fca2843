// Package progress shows on a terminal or in a log how far a long task is.
package progress

import (
	"github.com/stele-id/stele/internal/terminal"

	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Bar shows how far a long task is: by a bar on a terminal, elsewhere by a line every few
// seconds.
type Bar struct {
	what  string // "import"
	unit  string // "lines"
	w     io.Writer
	now   func() time.Time
	begin time.Time

	total int64        // of bytes; 0 if it is not known
	bytes func() int64 // how many are read
	first int64        // how many were when it began
	count atomic.Int64 // of units

	bars *mpb.Progress // nil if there is no terminal
	bar  *mpb.Bar
	told time.Time // the last line
}

// lineEvery is how often a line is written.
const lineEvery = 5 * time.Second

// New starts to show a task on w, which may be a terminal. The total of bytes may be 0, and
// bytes, which returns how many are done, nil.
func New(w io.Writer, terminal bool, now func() time.Time, what, unit string, total int64, bytes func() int64) *Bar {
	began := now()
	g := &Bar{what: what, unit: unit, w: w, now: now, begin: began, told: began, total: total, bytes: bytes}
	if bytes == nil {
		g.bytes = func() int64 { return 0 }
	}
	g.first = g.bytes()
	if terminal {
		g.draw(w)
	}
	return g
}

// draw starts a bar, or a spinner where the total is unknown.
func (g *Bar) draw(w io.Writer) {
	g.bars = mpb.New(mpb.WithOutput(w), mpb.WithAutoRefresh(), mpb.WithWidth(64), mpb.WithRefreshRate(200*time.Millisecond))
	style := mpb.BarFillerBuilder(mpb.BarStyle())
	if g.total == 0 {
		style = mpb.SpinnerStyle()
	}
	g.bar = g.bars.New(g.total, style, mpb.BarWidth(20), mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(g.what+" ")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return " " + g.state() })))
}

// Add adds units that are done.
func (g *Bar) Add(n int) {
	g.count.Add(int64(n))
	g.Tick()
}

// Tick moves the bar, or writes a line if it is time for one.
func (g *Bar) Tick() {
	if g.bars != nil {
		g.bar.SetCurrent(min(g.bytes(), max(0, g.total-1))) // it would end at the total
		return
	}
	if now := g.now(); now.Sub(g.told) >= lineEvery {
		g.told = now
		fmt.Fprintf(g.w, "%s: %s\n", g.what, g.state())
	}
}

// state says how far the task is.
func (g *Bar) state() string {
	elapsed := g.now().Sub(g.begin)
	text := fmt.Sprintf("%s %s, %s a second", terminal.Grouped(g.count.Load()), g.unit, terminal.Grouped(g.Rate(elapsed)))
	done := g.bytes()
	if g.total == 0 || done <= g.first {
		return text
	}
	left := time.Duration(float64(elapsed) * float64(g.total-done) / float64(done-g.first))
	return fmt.Sprintf("%d%%, %s, %s left", done*100/g.total, text, left.Round(time.Second))
}

// Rate returns how many units are done in a second.
func (g *Bar) Rate(elapsed time.Duration) int64 {
	if elapsed <= 0 {
		return 0
	}
	return int64(float64(g.count.Load()) / elapsed.Seconds())
}

// End removes the bar. It may be called twice.
func (g *Bar) End() {
	if g.bars != nil {
		g.bar.Abort(true)
		g.bars.Wait()
		g.bars = nil
	}
}

// Transfer shows how many bytes of a file are there. Its bar begins anew when the file turns
// out to have another size, or is fetched from the beginning again. A nil Transfer shows nothing.
type Transfer struct {
	New func(total int64, done func() int64) *Bar

	bar   *Bar
	done  atomic.Int64
	total int64
}

// Move sets how many bytes are there, of how many; the total is negative if it is unknown.
func (t *Transfer) Move(done, total int64) {
	if t == nil {
		return
	}
	before := t.done.Swap(done)
	if t.bar == nil || total != t.total || done < before {
		t.End()
		t.total, before = total, done
		t.bar = t.New(max(total, 0), t.done.Load)
	}
	t.bar.Add(int(done - before))
}

// End removes the bar. It may be called twice.
func (t *Transfer) End() {
	if t != nil && t.bar != nil {
		t.bar.End()
		t.bar = nil
	}
}
