// Package top shows how a server is, from its metrics: it reads them, compares two readings, and
// draws a picture for a terminal. It asks no server and knows no terminal.
package top

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// maxSamples bounds what is kept of a reading. A server has a few hundred.
const maxSamples = 4000

// maxValue bounds a sample, so that all sums are numbers that JSON can say.
const maxValue = 1e100

// sample is one line of an exposition.
type sample struct {
	labels string // as they are written, between the braces
	value  float64
}

// Reading is what a server's metrics were at a time.
type Reading struct {
	At      time.Time
	samples map[string][]sample
}

// Parse reads the text form of metrics (the exposition format of Prometheus). Lines that are not
// samples are passed over.
func Parse(text string, at time.Time) *Reading {
	r := &Reading{At: at, samples: make(map[string][]sample)}
	n := 0
	for line := range strings.Lines(text) {
		name, s, ok := parseSample(strings.TrimRight(line, "\r\n"))
		if !ok {
			continue
		}
		if n++; n > maxSamples {
			break
		}
		r.samples[name] = append(r.samples[name], s)
	}
	return r
}

// parseSample reads NAME{LABELS} VALUE [TIME].
func parseSample(line string) (name string, s sample, ok bool) {
	if line == "" || line[0] == '#' {
		return "", s, false
	}
	end := strings.IndexAny(line, "{ ")
	if end <= 0 {
		return "", s, false
	}
	name = line[:end]
	rest := line[end:]
	if rest[0] == '{' {
		closing := closingBrace(rest)
		if closing < 0 {
			return "", s, false
		}
		s.labels, rest = rest[1:closing], rest[closing+1:]
	}
	fields := strings.Fields(rest)
	if len(fields) < 1 || len(fields) > 2 {
		return "", s, false
	}
	value, err := strconv.ParseFloat(fields[0], 64)
	if err != nil || math.IsNaN(value) || math.Abs(value) > maxValue {
		return "", s, false
	}
	s.value = value
	return name, s, true
}

// closingBrace returns where the labels end: values are quoted, and may have braces.
func closingBrace(text string) int {
	quoted := false
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == '}' && !quoted:
			return i
		}
	}
	return -1
}

// has reports whether a sample has a label with a value. The label is written as name="value".
func (s *sample) has(label string) bool {
	for i := 0; ; {
		at := strings.Index(s.labels[i:], label)
		if at < 0 {
			return false
		}
		at += i
		before := at == 0 || s.labels[at-1] == ','
		after := at + len(label)
		if before && (after == len(s.labels) || s.labels[after] == ',') {
			return true
		}
		i = at + 1
	}
}

// label returns the value of a label as it is written; "" if there is none.
func (s *sample) label(name string) string {
	_, rest, ok := strings.Cut(","+s.labels, ","+name+`="`)
	if !ok {
		return ""
	}
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// Has reports whether there is a metric.
func (r *Reading) Has(name string) bool { return len(r.samples[name]) > 0 }

// Sum returns the sum of the samples of a metric that have all the labels, each written as
// name="value".
func (r *Reading) Sum(name string, labels ...string) (sum float64) {
	for i := range r.samples[name] {
		s := &r.samples[name][i]
		all := true
		for _, l := range labels {
			all = all && s.has(l)
		}
		if all {
			sum += s.value
		}
	}
	return sum
}

// Max returns the greatest sample of a metric; 0 if there is none.
func (r *Reading) Max(name string) (most float64) {
	for i, s := range r.samples[name] {
		if i == 0 || s.value > most {
			most = s.value
		}
	}
	return most
}
