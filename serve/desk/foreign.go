package desk

import (
	"net/url"
	"strings"

	"github.com/stele-id/stele/bulk/foreign"
	"github.com/stele-id/stele/bulk/job"
	"github.com/stele-id/stele/web/deskpage"
)

// systems returns the choice of where a file comes from.
func (c *call) systems(chosen string) []deskpage.Option {
	list := []deskpage.Option{
		{Text: c.language.Text("many.system-none"), Chosen: chosen == ""},
		{Value: string(foreign.Auto), Text: c.language.Text("many.system-auto"), Chosen: chosen == string(foreign.Auto)},
	}
	for _, s := range foreign.Systems() {
		if s.Tree != nil { // folders, with rules; the command imports them
			continue
		}
		list = append(list, deskpage.Option{Value: s.Name, Text: c.systemName(s.Name), Chosen: chosen == s.Name})
	}
	return list
}

// systemName returns what a system is called on pages.
func (c *call) systemName(name string) string {
	return c.language.Text("system." + strings.ReplaceAll(name, ".", "-"))
}

// system reads where a file comes from.
func system(form url.Values) (name, prefix string) {
	name = form.Get("system")
	if s := foreign.SystemNamed(name); name != string(foreign.Auto) && (s == nil || s.Tree != nil) {
		return "", ""
	}
	prefix = strings.TrimSpace(form.Get("prefix"))
	return name, prefix[:min(len(prefix), job.MaxPrefix)]
}
