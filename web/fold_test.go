package web

import (
	"html/template"
	"strings"
	"testing"
)

// TestFold: texts that have no arguments are written once, and pages stay as they were.
func TestFold(t *testing.T) {
	asked := 0
	text := func(key string, args ...any) string {
		asked++
		return "<" + key + `> & "` + strings.Repeat("x", len(args)) + `"`
	}
	parsed := template.Must(template.New("page").Funcs(template.FuncMap{"t": text}).Parse(
		`{{define "part"}}<b title="{{t "a"}}">{{t "b"}}</b>{{end}}{{if .}}{{t "c"}}{{else}}{{t "d"}}{{end}}{{range .}}{{t "e"}}{{with .}}{{t .}}{{t "f" "n" 1}}{{end}}{{end}}{{template "part"}}`))
	other, err := parsed.Clone()
	if err != nil {
		t.Fatal(err)
	}
	Fold(parsed, text)
	run := func(p *template.Template) (string, int) {
		var b strings.Builder
		asked = 0
		if err := p.Execute(&b, []string{"x", "y"}); err != nil {
			t.Fatal(err)
		}
		return b.String(), asked
	}
	want, before := run(other)
	got, after := run(parsed)
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if before != 9 || after != 4 {
		t.Errorf("texts are asked for %d times, and %d times before", after, before)
	}
}
