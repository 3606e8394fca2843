package chart

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
)

// TestChart: the drawing is XML without style attributes, texts stay texts, and the bars have their heights.
func TestChart(t *testing.T) {
	number := func(n any) string { return fmt.Sprint(n) }
	c := Chart{Label: `"><script>`, Number: number, Columns: []Column{
		{Short: "Oct", Long: "2026", Title: "nothing"},
		{Short: "Nov", Title: "<b>", Parts: [2]uint64{75, 25}},
		{Short: "Dec", Parts: [2]uint64{0, 1}, Open: true},
	}}
	html, err := c.HTML()
	if err != nil {
		t.Fatal(err)
	}
	text := string(html)
	for _, want := range []string{
		`viewBox="0 0 30 1000"`, `<rect class="part" x="12" y="250" width="6" height="750"/>`, `<rect class="part second" x="12" y="0" width="6" height="250"/>`,
		`<g class="open">`, `<rect class="part second" x="22" y="985" width="6" height="15"/>`, `>100</span>`, `<span>Oct<small>2026</small></span>`, `<span class="minor">Nov</span>`, "&lt;b&gt;",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, "<script") || strings.Contains(text, "style=") || strings.Count(text, "<rect class=\"part") != 3 {
		t.Errorf("got %s", text)
	}
	dec := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := dec.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	c.Small = true
	if html, err = c.HTML(); err != nil || strings.Contains(string(html), "axis") {
		t.Errorf("a small one has an axis: %v %s", err, html)
	}
}

func TestRoundUp(t *testing.T) {
	for n, want := range map[uint64]uint64{0: 1, 1: 1, 3: 4, 5: 6, 9: 10, 11: 20, 61: 80, 81: 100, 1999: 2000, math.MaxUint64: math.MaxUint64} {
		if got := roundUp(n); got != want {
			t.Errorf("%d becomes %d, not %d", n, got, want)
		}
	}
}
