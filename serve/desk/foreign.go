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
	if name != string(foreign.Auto) && foreign.SystemNamed(name) == nil {
		return "", ""
	}
	prefix = strings.TrimSpace(form.Get("prefix"))
	return name, prefix[:min(len(prefix), job.MaxPrefix)]
}

// showTree shows how a folder is read.
func (c *call) showTree(v *deskpage.Preview, u *job.Upload) {
	if u.Tree == nil && !foreign.IsTree(u.System) {
		return
	}
	v.Tree, v.Spaces = true, u.Spaces
	v.Root = deskpage.Field{ID: "root", Name: "root", Value: u.Root}
	if u.Tree != nil {
		v.Files = u.Tree.Files
	}
}

// treeRow shows the row of a namespace: the rules that change.
func (c *call) treeRow(v *deskpage.ManyRow, row *job.Row) {
	v.Title = c.language.Text("many.space-row", "count", row.Rules)
	if row.Kind == job.Changed || row.Kind == job.Unchanged {
		if key, err := c.h.o.Registrar.ParsePrefix(row.Name); err == nil {
			v.NameURL = rulesURL(key)
		}
	}
}

// maxRoot is how many bytes the path of a folder has.
const maxRoot = 1000

// treeSettings reads how a folder is read.
func treeSettings(s *job.Settings, form url.Values) {
	root := strings.Trim(strings.TrimSpace(form.Get("root")), "/")
	s.Root, s.Spaces = root[:min(len(root), maxRoot)], form.Get("spaces") == "yes"
}
