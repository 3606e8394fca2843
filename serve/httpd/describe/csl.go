package describe

import (
	"encoding/json"
	"strings"
)

// cslItem is an item of CSL-JSON (Citation Style Language 1.0.2), with its
// variables in the order in which people read them.
type cslItem struct {
	ID             string    `json:"id"`
	Type           string    `json:"type"`
	Title          string    `json:"title,omitempty"`
	Author         []cslName `json:"author,omitempty"`
	Contributor    []cslName `json:"contributor,omitempty"`
	Issued         *cslDate  `json:"issued,omitempty"`
	ContainerTitle string    `json:"container-title,omitempty"`
	Volume         string    `json:"volume,omitempty"`
	Issue          string    `json:"issue,omitempty"`
	Page           string    `json:"page,omitempty"`
	Publisher      string    `json:"publisher,omitempty"`
	Version        string    `json:"version,omitempty"`
	Language       string    `json:"language,omitempty"`
	Abstract       string    `json:"abstract,omitempty"`
	Keyword        string    `json:"keyword,omitempty"`
	DOI            string    `json:"DOI,omitempty"`
	URL            string    `json:"URL"`
	Status         string    `json:"status,omitempty"`
	Note           string    `json:"note,omitempty"`
}

type cslName struct {
	Family  string `json:"family,omitempty"`
	Given   string `json:"given,omitempty"`
	Literal string `json:"literal,omitempty"`
}

type cslDate struct {
	Parts   [][]int `json:"date-parts,omitempty"`
	Literal string  `json:"literal,omitempty"`
}

func appendCSL(b []byte, f *facts) ([]byte, error) {
	item := cslItem{
		ID: f.shown(), Type: f.kind.csl, Title: f.title,
		Author: cslNames(f.creators), Contributor: cslNames(f.helpers), Issued: f.issued(),
		ContainerTitle: f.journal, Volume: f.volume, Issue: f.issue, Page: f.pages,
		Publisher: f.publisher, Version: f.version, Language: f.language, Abstract: f.description,
		Keyword: strings.Join(f.subjects, ", "), DOI: f.doi(), URL: f.cited(),
	}
	if f.tombstone != nil {
		item.Status, item.Note = "withdrawn", f.tombstone.note()
	}
	enc, err := json.Marshal(item)
	return append(append(b, enc...), '\n'), err
}

func cslNames(agents []agent) (names []cslName) {
	for i := range agents {
		if a := &agents[i]; a.family != "" {
			names = append(names, cslName{Family: a.family, Given: a.given})
		} else {
			names = append(names, cslName{Literal: a.name})
		}
	}
	return names
}

func (f *facts) issued() *cslDate {
	switch d := f.date; {
	case d.day > 0:
		return &cslDate{Parts: [][]int{{d.year, d.month, d.day}}}
	case d.month > 0:
		return &cslDate{Parts: [][]int{{d.year, d.month}}}
	case d.year > 0:
		return &cslDate{Parts: [][]int{{d.year}}}
	case f.when != "":
		return &cslDate{Literal: f.when}
	}
	return nil
}

// doi returns the record's DOI, and "" for a redacted record: the DOI may be an alias.
func (f *facts) doi() string {
	if f.record.Redacted {
		return ""
	}
	return line(f.subject.DOI)
}
