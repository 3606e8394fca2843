package top

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stele-id/stele/internal/terminal"
)

// columnWidth is how wide a column is: two fit into 80.
const columnWidth = 39

// historyLength is how many pictures are remembered for the small graphs.
const historyLength = 60

// View draws pictures, and remembers the last ones.
type View struct {
	Address string        // of the metrics
	Every   time.Duration // between readings
	Colour  bool

	last    *Picture
	history map[string][]float64 // by the name of a line
	trouble string
}

// Add takes the next picture.
func (v *View) Add(p *Picture) {
	v.last, v.trouble = p, ""
	if v.history == nil {
		v.history = make(map[string][]float64)
	}
	for name, value := range map[string]float64{"redirects": p.Redirects, "dns": known(p.DNS), "handle": known(p.Handle), "commits": p.Commits, "cpu": p.CPU} {
		list := append(v.history[name], value)
		v.history[name] = list[max(0, len(list)-historyLength):]
	}
}

// Fail says that the server did not answer.
func (v *View) Fail(why string) { v.trouble = why }

func known(n *float64) float64 {
	if n == nil {
		return 0
	}
	return *n
}

// line is a number with its name.
type line struct {
	name, value string
	graph       string // the name of its history; "": none
	bad         bool
}

// section is some numbers that belong together.
type section struct {
	title string
	lines []line
}

// sections says all that a picture has.
func (p *Picture) sections() []section {
	web := section{"Web", []line{
		{name: "redirects", value: perSecond(p.Redirects), graph: "redirects"},
		{name: "other", value: perSecond(p.Other)},
		{name: "client errors", value: perSecond(p.ClientErrors)},
		{name: "server errors", value: perSecond(p.ServerErrors), bad: p.ServerErrors > 0},
		{name: "99 % within", value: optional(p.Slowest, seconds)},
		{name: "connections", value: count(p.Connections)},
	}}
	names := section{title: "DNS and Handle"}
	if p.DNS != nil {
		names.lines = append(names.lines, line{name: "DNS answers", value: perSecond(*p.DNS), graph: "dns"},
			line{name: "failures", value: perSecond(p.DNSFailures), bad: p.DNSFailures > 0},
			line{name: "zones", value: count(p.Zones)},
			p.secondaries(),
			line{name: "oldest copy", value: seconds(p.OldestCopy), bad: p.OldestCopy > 3600})
	}
	if p.Handle != nil {
		names.lines = append(names.lines, line{name: "Handle", value: perSecond(*p.Handle), graph: "handle"})
	}
	registry := section{"Registry", []line{
		{name: "names", value: count(p.Names)},
		{name: "changes", value: count(p.Changes)},
		{name: "commits", value: perSecond(p.Commits), graph: "commits"},
		{name: "refused", value: perSecond(p.Refused)},
		{name: "failed", value: perSecond(p.Failed), bad: p.Failed > 0},
		{name: "waiting", value: count(p.Waiting)},
		{name: "a write takes", value: optional(p.Writing, seconds)},
	}}
	if p.Free > 0 {
		registry.lines = append(registry.lines, line{name: "disk", value: size(p.Bytes) + ", " + size(p.Free) + " free", bad: p.Free < 4*p.Reserve})
	}
	caches := section{title: "Cache hits"}
	for _, name := range []string{"redirects", "records", "dns", "blocks"} {
		if share, asked := p.Hits[name]; asked {
			caches.lines = append(caches.lines, line{name: name, value: fmt.Sprintf("%.1f %%", 100*share)})
		}
	}
	late := section{title: "Behind the changes"}
	if p.LogBehind != nil {
		late.lines = append(late.lines, line{name: "log", value: count(*p.LogBehind), bad: *p.LogBehind > 100_000},
			line{name: "checkpoint", value: age(known(p.CheckpointAge)), bad: known(p.CheckpointAge) > 3600})
	}
	late.lines = append(late.lines, line{name: "search index", value: count(p.SearchBehind)})
	if p.FollowBehind > 0 {
		late.lines = append(late.lines, line{name: "this server", value: count(p.FollowBehind)})
	}
	work := section{"Work", []line{
		{name: "links checked", value: perSecond(p.Checked) + ", " + count(p.LinksWaiting) + " wait"},
		{name: "jobs", value: count(p.Jobs)},
		{name: "mail", value: count(p.Mail)},
	}}
	process := section{"Process", []line{
		{name: "processors", value: fmt.Sprintf("%.2f", p.CPU), graph: "cpu"},
		{name: "memory", value: size(p.Memory)},
		{name: "open files", value: count(p.Files)},
	}}
	list := []section{web, names, process, registry, caches, late, work}
	return slices.DeleteFunc(list, func(s section) bool { return len(s.lines) == 0 })
}

// secondaries says how many copies of zones are as they should be.
func (p *Picture) secondaries() line {
	all := 0.0
	for _, n := range p.Secondaries {
		all += n
	}
	good := p.Secondaries["same"]
	return line{name: "copies", value: count(good) + " of " + count(all) + " current", bad: good < all}
}

// Draw returns the picture for a terminal of a size. With height 0 it is as long as needed.
func (v *View) Draw(width, height int) string {
	width = max(width, 20)
	lines := []string{v.head(width), ""}
	if v.last != nil {
		lines = append(lines, v.columns(width, height)...)
	}
	if height > 0 {
		if len(lines) > height-1 {
			lines = lines[:max(height-1, 1)]
		}
		for len(lines) < height-1 {
			lines = append(lines, "")
		}
		if height > 1 {
			lines = append(lines, fit("q ends", width))
		}
	}
	return strings.Join(lines, "\n")
}

// head says which server this is, and how it is.
func (v *View) head(width int) string {
	if v.last == nil {
		if v.trouble != "" {
			return v.red(fit(v.Address+"  "+v.trouble, width))
		}
		return fit("stele top  "+v.Address+"  reading", width)
	}
	state := "ready"
	bad := !v.last.Ready
	switch {
	case v.trouble != "":
		state, bad = v.trouble, true
	case bad:
		state = "NOT READY"
	case v.last.Sealed:
		state = "sealed"
	}
	clock := ""
	if at, err := time.Parse(time.RFC3339, v.last.Time); err == nil {
		clock = at.Format("15:04:05") + " UTC"
	}
	parts := slices.DeleteFunc([]string{"stele top", v.Address, v.last.Version, clock, state}, func(s string) bool { return s == "" })
	text := fit(strings.Join(parts, "  "), width)
	if bad {
		return v.red(text)
	}
	return v.bold(text)
}

// columns puts the sections into as many columns as fit, without a change of their order.
func (v *View) columns(width, height int) []string {
	sections := v.last.sections()
	n := max(1, min((width+1)/(columnWidth+1), 3))
	wide := (width - (n - 1)) / n
	total := 0
	for _, s := range sections {
		total += len(s.lines) + 1
	}
	var columns [][]string
	var column []string
	for i, s := range sections {
		drawn := v.section(s, wide)
		if i > 0 && len(columns) < n-1 && len(column)+len(drawn)/2 > total/n {
			columns, column = append(columns, column), nil
		}
		column = append(column, drawn...)
	}
	columns = append(columns, column)
	longest := 0
	for i := range columns {
		columns[i] = v.spaced(columns[i], height-3)
		longest = max(longest, len(columns[i]))
	}
	out := make([]string, longest)
	for row := range out {
		var b strings.Builder
		for i, c := range columns {
			text := ""
			if row < len(c) {
				text = c[row]
			}
			b.WriteString(text)
			if i < len(columns)-1 {
				b.WriteString(strings.Repeat(" ", max(0, wide-shown(text))+1))
			}
		}
		out[row] = strings.TrimRight(b.String(), " ")
	}
	return out
}

// spaced puts an empty line before each title but the first, if there is room.
func (v *View) spaced(column []string, room int) []string {
	titles := 0
	for _, text := range column {
		if isTitle(text) {
			titles++
		}
	}
	if room > 0 && len(column)+titles-1 > room {
		return column
	}
	var out []string
	for i, text := range column {
		if i > 0 && isTitle(text) {
			out = append(out, "")
		}
		out = append(out, text)
	}
	return out
}

// isTitle reports whether a line is the title of a section: numbers are indented.
func isTitle(text string) bool { return text != "" && !strings.HasPrefix(text, " ") }

// section draws a section.
func (v *View) section(s section, width int) []string {
	out := []string{v.bold(fit(s.title, width))}
	for _, l := range s.lines {
		text := fmt.Sprintf("  %-13s %s", l.name, l.value)
		if room := width - 30; l.graph != "" && room > 2 {
			text = fmt.Sprintf("  %-13s %-14s%s", l.name, l.value, graph(v.history[l.graph], room))
		}
		text = fit(text, width)
		if l.bad {
			text = "  " + v.red(strings.TrimPrefix(text, "  "))
		}
		out = append(out, text)
	}
	return out
}

const (
	boldOn = "\x1b[1m"
	redOn  = "\x1b[31;1m"
	plain  = "\x1b[0m"
)

func (v *View) bold(text string) string { return v.styled(boldOn, text) }
func (v *View) red(text string) string  { return v.styled(redOn, text) }

func (v *View) styled(on, text string) string {
	if !v.Colour {
		return text
	}
	return on + text + plain
}

// shown returns how many columns a text takes, without its styles.
func shown(text string) int {
	return utf8.RuneCountInString(strings.NewReplacer(boldOn, "", redOn, "", plain, "").Replace(text))
}

// fit returns a text that can be shown in so many columns. All of ours have one column for each character.
func fit(text string, width int) string {
	text = terminal.Printable(text)
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(width, 0)])
}

// graph draws the last values, one in a column, the newest at the right.
func graph(values []float64, width int) string {
	const levels = "▁▂▃▄▅▆▇█"
	marks := []rune(levels)
	values = values[max(0, len(values)-width):]
	most := 0.0
	for _, x := range values {
		most = max(most, x)
	}
	var b strings.Builder
	for _, x := range values {
		if most <= 0 {
			b.WriteRune(marks[0])
			continue
		}
		b.WriteRune(marks[min(len(marks)-1, max(0, int(x/most*float64(len(marks)))))])
	}
	return b.String()
}

func optional(n *float64, of func(float64) string) string {
	if n == nil {
		return "-"
	}
	return of(*n)
}

func perSecond(n float64) string {
	if n > 0 && n < 10 {
		return fmt.Sprintf("%.1f/s", n)
	}
	return terminal.Grouped(int64(n+0.5)) + "/s"
}

func count(n float64) string { return terminal.Grouped(int64(n)) }

// age is seconds where -1 stands for none.
func age(n float64) string {
	if n < 0 {
		return "none"
	}
	return seconds(n)
}

func seconds(n float64) string {
	switch {
	case n == 0:
		return "0 s"
	case n < 0.001:
		return fmt.Sprintf("%.0f us", n*1e6)
	case n < 1:
		return fmt.Sprintf("%.1f ms", n*1e3)
	case n < 120:
		return fmt.Sprintf("%.1f s", n)
	case n < 7200:
		return fmt.Sprintf("%.0f min", n/60)
	}
	return fmt.Sprintf("%.1f h", n/3600)
}

func size(n float64) string {
	for _, unit := range []string{"B", "kB", "MB", "GB"} {
		if n < 1000 {
			if unit == "B" {
				return fmt.Sprintf("%.0f %s", n, unit)
			}
			return fmt.Sprintf("%.1f %s", n, unit)
		}
		n /= 1000
	}
	return fmt.Sprintf("%.1f TB", n)
}
