package ddds

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkWalk resolves the worked example in memory, without a trace: "kept" with
// rules that were read before, as from a cache, "fresh" with rules read each time.
func BenchmarkWalk(b *testing.B) {
	database := zone(b, Standard, namesZone)
	q := Request{Name: paradisec, Service: "N2L", Accept: []Preference{{"audio/mpeg", 1000}}}
	first := urnKey(b)
	b.Run("kept", func(b *testing.B) {
		w := &Walker{Database: database, First: first, Random: rand.IntN}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.Walk(b.Context(), q); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("fresh", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w := &Walker{Database: reread(database), First: first, Random: rand.IntN}
			if _, err := w.Walk(b.Context(), q); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// reread reads the rules again, so that nothing of them is compiled.
func reread(m Map) Map {
	fresh := make(Map, len(m))
	for name, set := range m {
		records := make([]Fields, len(set.Rules))
		for i := range set.Rules {
			records[i] = set.Rules[i].fields
		}
		fresh[name] = RuleSet{Rules: ParseRules(records, Standard), TTL: set.TTL}
	}
	return fresh
}

// BenchmarkRules walks sets of growing size, whose last rule is the one that
// matches: the time is to grow as they do.
func BenchmarkRules(b *testing.B) {
	for _, n := range []int{8, 64, 512} {
		var records []Fields
		for i := range n {
			records = append(records, Fields{uint16(i), 10, "RES:http", "N2L", fmt.Sprintf("!^urn:x:%03d$!http://example.org/!i", i), "."})
		}
		w := &Walker{Database: Map{"start.": {Rules: ParseRules(records, Standard)}}, Random: rand.IntN}
		q := Request{Name: fmt.Sprintf("urn:x:%03d", n-1), Start: "start.", Service: "N2L"}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := w.Walk(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/rule")
		})
	}
}

// BenchmarkWorst applies the largest expressions to the longest name, and tells
// what a step of a walk's budget takes.
func BenchmarkWorst(b *testing.B) {
	text := make([]byte, 4000)
	for i := range text {
		text[i] = 'a'
	}
	for _, field := range []string{
		`!((a|b|.){50}(c|d|.)*){8}x!y!`,
		`!(.{250}.{250}.{250}.{250}.*){2}x!y!`,
		`!(a?){255}(a?){255}(a?){255}(a*)x!y!`,
	} {
		b.Run(field, func(b *testing.B) {
			steps := 0
			for b.Loop() {
				e, err := ParseExpression(field)
				if err != nil {
					b.Fatal(err)
				}
				steps = e.work(string(text))
				if _, _, err := e.Apply(string(text)); err != nil {
					b.Fatal(err)
				}
			}
			perStep := float64(b.Elapsed().Nanoseconds()) / float64(b.N*steps)
			b.ReportMetric(perStep, "ns/step")
			b.ReportMetric(perStep*maxWork/1e9, "s/walk-at-most")
		})
	}
}
