package webrules

import (
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// Merge makes a partial target of a rule for all names, if it is the only rule and only appends the name to a URL: then
// the folder needs no namespace of its own.
func (r *Result) Merge() {
	if len(r.Rules) != 1 || len(r.Rules[0].Targets) != 1 || r.Rules[0].Pattern != "{c1:any,0-}" {
		return
	}
	t := r.Rules[0].Targets[0]
	start, ok := strings.CutSuffix(t.URL, "{rest}")
	if !ok || strings.Contains(start, "{") || stele.IsEmptyStatus(t.Status) || stele.CheckURL(start) != nil {
		return
	}
	t.URL, t.Partial = start, true
	i := slices.IndexFunc(r.Records, func(rec Record) bool { return rec.Name == "" })
	if i < 0 {
		r.Records = append([]Record{{Targets: []stele.Target{t}, Line: r.Lines[0], Text: r.Texts[0]}}, r.Records...)
		r.Rules, r.Lines, r.Texts = nil, nil, nil
		return
	}
	own := r.Records[i].Targets
	k := slices.IndexFunc(own, func(o stele.Target) bool { return o.Type == "" && o.URL == start && o.Status == t.Status })
	if k < 0 {
		return
	}
	own[k].Partial = true
	r.Rules, r.Lines, r.Texts = nil, nil, nil
}

// TakesRest reports whether the folder answers for names that it does not list.
func (r *Result) TakesRest() bool {
	return len(r.Rules) > 0 || slices.ContainsFunc(r.Records, func(rec Record) bool {
		return slices.ContainsFunc(rec.Targets, func(t stele.Target) bool { return t.Partial })
	})
}
