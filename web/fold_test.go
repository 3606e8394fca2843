package web

import (
	"html/template"
	"strings"
	"testing"
)

// TestFold: texts that have no arguments, and constants, are written once, and pages stay as they were.
func TestFold(t *testing.T) {
	asked := 0
	text := func(key string, args ...any) string {
		asked++
		return "<" + key + `> & "` + strings.Repeat("x", len(args)) + `"`
	}
	constants := map[string]any{"site": `A <b> & "c"`, "logo": "", "icon": "/.web/icon.svg", "links": template.HTML(`<u>"</u>`)}
	constant := func(name string) func() any {
		return func() any {
			asked++
			return constants[name]
		}
	}
	parsed := template.Must(template.New("page").Funcs(template.FuncMap{"t": text, "prose": func(v any) string { return ShowProse(v.(string)) }, "site": constant("site"), "logo": constant("logo"), "icon": constant("icon"), "links": constant("links")}).Parse(
		`<i lang="{{site}}">{{if logo}}{{logo}}{{else}}{{icon}}{{t "g"}}{{end}}{{if icon}}<img src="{{icon}}"/>{{end}}{{if logo}}{{t "h"}}{{end}}{{prose site}}</i>{{links}}` +
			`{{define "part"}}<b title="{{t "a"}}">{{t "b"}}</b>{{end}}{{if .}}{{t "c"}}{{else}}{{t "d"}}{{end}}{{range .}}{{t "e"}}{{with .}}{{t .}}{{t "f" "n" 1}}{{end}}{{end}}{{template "part"}}`))
	other, err := parsed.Clone()
	if err != nil {
		t.Fatal(err)
	}
	Fold(parsed, text, constants)
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
	if before != 18 || after != 4 {
		t.Errorf("texts are asked for %d times, and %d times before", after, before)
	}
}
