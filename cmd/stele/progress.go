package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress tells how far a long work is: by a bar on a terminal, elsewhere by a line
// every few seconds.
type progress struct {
	what  string // "import"
	unit  string // "lines"
	w     io.Writer
	now   func() time.Time
	begin time.Time

	total int64        // of bytes; 0 if nobody knows
	bytes func() int64 // how many are read
	first int64        // how many were when it began
	count atomic.Int64 // of units

	bars *mpb.Progress // nil if there is no terminal
	bar  *mpb.Bar
	told time.Time // the last line
}

// progressEvery is how often a line tells how far it is.
const progressEvery = 5 * time.Second

// newProgress starts to tell. The total may be 0 and bytes nil.
func (p *program) newProgress(what, unit string, total int64, bytes func() int64) *progress {
	now := p.now()
	g := &progress{what: what, unit: unit, w: p.stderr, now: p.now, begin: now, told: now, total: total, bytes: bytes}
	if bytes == nil {
		g.bytes = func() int64 { return 0 }
	}
	g.first = g.bytes()
	if f, ok := p.stderr.(*os.File); ok && isTerminal(f) {
		g.draw(f)
	}
	return g
}

// draw starts a bar, or a spinner where the total is unknown.
func (g *progress) draw(w io.Writer) {
	g.bars = mpb.New(mpb.WithOutput(w), mpb.WithAutoRefresh(), mpb.WithWidth(64), mpb.WithRefreshRate(200*time.Millisecond))
	style := mpb.BarFillerBuilder(mpb.BarStyle())
	if g.total == 0 {
		style = mpb.SpinnerStyle()
	}
	g.bar = g.bars.New(g.total, style, mpb.BarWidth(20), mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(g.what+" ")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return " " + g.state() })))
}

// Add says that some more units are done.
func (g *progress) Add(n int) {
	g.count.Add(int64(n))
	g.Tick()
}

// Tick moves the bar, or writes a line if it is time for one.
func (g *progress) Tick() {
	if g.bars != nil {
		g.bar.SetCurrent(min(g.bytes(), max(0, g.total-1))) // it would end at the total
		return
	}
	if now := g.now(); now.Sub(g.told) >= progressEvery {
		g.told = now
		fmt.Fprintf(g.w, "%s: %s\n", g.what, g.state())
	}
}

// state says how far it is.
func (g *progress) state() string {
	elapsed := g.now().Sub(g.begin)
	text := fmt.Sprintf("%s %s, %s a second", grouped(g.count.Load()), g.unit, grouped(g.rate(elapsed)))
	done := g.bytes()
	if g.total == 0 || done <= g.first {
		return text
	}
	left := time.Duration(float64(elapsed) * float64(g.total-done) / float64(done-g.first))
	return fmt.Sprintf("%d%%, %s, %s left", done*100/g.total, text, left.Round(time.Second))
}

// rate returns how many units are done in a second.
func (g *progress) rate(elapsed time.Duration) int64 {
	if elapsed <= 0 {
		return 0
	}
	return int64(float64(g.count.Load()) / elapsed.Seconds())
}

// End stops telling, and takes the bar away. It may be called twice.
func (g *progress) End() {
	if g.bars != nil {
		g.bar.Abort(true)
		g.bars.Wait()
		g.bars = nil
	}
}

// grouped writes a number with commas between thousands.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
