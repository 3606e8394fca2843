// Package chart draws bars of figures over time as SVG, for pages that have no scripts and no style attributes: classes of the
// style sheet give the colours, light and dark. A chart says nothing that a table beside it does not say.
package chart

import (
	"html/template"
	"math"
	"strings"
)

// Column is a bar: the figures of a period, one upon the other.
type Column struct {
	Short, Long string    // below it: a word, and under it another one where something new begins; may be empty
	Title       string    // what a pointer shows
	Parts       [2]uint64 // from below
	Open        bool      // the period is not over
}

// sum returns the height of a bar.
func (c *Column) sum() uint64 { return c.Parts[0] + c.Parts[1] }

// Chart is a row of bars.
type Chart struct {
	Label   string // what it shows, for readers who do not see it
	Columns []Column
	Small   bool // it stands beside a text: without an axis
	Number  func(n any) string
}

// Sizes in units of the drawing. It is stretched to the place that it gets.
const (
	step   = 10 // from a bar to the next
	bar    = 6
	gap    = (step - bar) / 2
	height = 1000
	least  = 15 // of a bar that is not empty
)

// HTML returns the drawing.
func (c *Chart) HTML() (template.HTML, error) {
	v := view{Chart: c, Width: step * len(c.Columns), Height: height}
	for i := range c.Columns {
		v.Top = max(v.Top, c.Columns[i].sum())
	}
	v.Top = roundUp(v.Top)
	for i := range c.Columns {
		col := &c.Columns[i]
		b := drawn{Column: col, X: step * i, Left: step*i + gap, Step: step, Bar: bar}
		b.High = scale(col.sum(), v.Top)
		b.Second = b.High - scale(col.Parts[0], v.Top)
		if col.Parts[0] == 0 {
			b.Second = b.High
		}
		b.Y, b.Middle = height-b.High, height-b.High+b.Second
		v.Bars = append(v.Bars, b)
	}
	var b strings.Builder
	if err := drawing.Execute(&b, &v); err != nil {
		return "", err
	}
	return template.HTML(b.String()), nil
}

// scale returns the height of a bar.
func scale(n, top uint64) int {
	if n == 0 || top == 0 {
		return 0
	}
	return max(least, int(float64(n)/float64(top)*height))
}

// roundUp returns a number that people like, at which the drawing ends.
func roundUp(n uint64) uint64 {
	for unit := uint64(1); unit <= math.MaxUint64/100; unit *= 10 {
		for _, times := range []uint64{1, 2, 4, 6, 8} {
			if n <= times*unit {
				return times * unit
			}
		}
	}
	return n
}

type view struct {
	*Chart
	Width, Height int
	Top           uint64
	Bars          []drawn
}

// drawn is a bar with its place.
type drawn struct {
	*Column
	X, Left, Step, Bar int
	Y, High            int // of all
	Middle, Second     int // where the second part ends, and its height
}

// First returns the height of the lower part.
func (d *drawn) First() int { return d.High - d.Second }

var drawing = template.Must(template.New("chart").Parse(`<div class="chart{{if .Small}} small{{end}}">
{{- if not .Small}}<span class="most" aria-hidden="true">{{call .Number .Top}}</span>{{end -}}
<svg role="img" aria-label="{{.Label}}" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {{.Width}} {{.Height}}" preserveAspectRatio="none">
{{- $c := .}}
{{- if not .Small}}<path class="rule" d="M0 0H{{.Width}}M0 500H{{.Width}}"/>{{end}}
{{- range .Bars}}<g{{if .Open}} class="open"{{end}}><title>{{.Title}}</title><rect class="room" x="{{.X}}" y="0" width="{{.Step}}" height="{{$c.Height}}"/>
{{- if .First}}<rect class="part" x="{{.Left}}" y="{{.Middle}}" width="{{.Bar}}" height="{{.First}}"/>{{end}}
{{- if .Second}}<rect class="part second" x="{{.Left}}" y="{{.Y}}" width="{{.Bar}}" height="{{.Second}}"/>{{end}}</g>{{end -}}
<path class="base" d="M0 {{.Height}}H{{.Width}}"/></svg>
{{- if not .Small}}<p class="axis" aria-hidden="true">{{range .Columns}}<span{{if not .Long}} class="minor"{{end}}>{{.Short}}{{with .Long}}<small>{{.}}</small>{{end}}</span>{{end}}</p>{{end -}}
</div>`))
