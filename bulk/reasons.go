package bulk

import (
	"cmp"
	"errors"
	"slices"

	"github.com/stele-id/stele"
)

// Reason is why rows were rejected: those that have the same problem are counted together.
type Reason struct {
	Code  string `json:"code,omitempty"` // of the problem; "" if it has none
	Path  string `json:"path,omitempty"` // of the field; "" if it is about the whole row
	Count int    `json:"count"`
	Line  int    `json:"line"`   // of the first row
	Text  string `json:"reason"` // what is wrong with it
}

// maxReasons is how many reasons are told apart. A file can have a million rows, and each another problem.
const maxReasons = 100

// Reasons counts rejected rows by what is wrong with them.
type Reasons struct {
	counts map[[2]string]*Reason // by code and path
	others *Reason               // what is beyond maxReasons
}

// add counts a row. The first problem of a row counts.
func (r *Reasons) add(row *Row) {
	err := stele.Reason(row.Err)
	var key [2]string
	if problems, ok := errors.AsType[stele.Problems](row.Err); ok && len(problems) > 0 {
		key[1], err = problems[0].Path, problems[0].Err
	}
	if m, ok := errors.AsType[*stele.Message](err); ok {
		key[0] = m.Code
	}
	if known := r.counts[key]; known != nil {
		known.Count++
		return
	}
	if len(r.counts) == maxReasons {
		if r.others == nil {
			r.others = &Reason{Line: row.Line, Text: "other reasons"}
		}
		r.others.Count++
		return
	}
	if r.counts == nil {
		r.counts = make(map[[2]string]*Reason)
	}
	r.counts[key] = &Reason{Code: key[0], Path: key[1], Count: 1, Line: row.Line, Text: reasonOf(row.Err)}
}

// List returns the reasons, the most frequent first.
func (r *Reasons) List() (list []Reason) {
	for _, one := range r.counts {
		list = append(list, *one)
	}
	slices.SortFunc(list, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Path, b.Path))
	})
	if r.others != nil {
		list = append(list, *r.others)
	}
	return list
}
