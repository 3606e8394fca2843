package web

import (
	"html/template"
	"io"
)

// Docs is the view of a document about the program. Its body is the only markup that a view holds:
// the documents are part of the program.
type Docs struct {
	Frame
	Title  string
	Body   template.HTML
	Groups []DocsGroup
}

// IsForeign reports whether the page is in another language than the document: documents are in English.
func (v *Docs) IsForeign() bool { return v.Language != nil && v.Language.Tag != "en" }

// DocsGroup is a part of the navigation between documents.
type DocsGroup struct {
	Title string
	Pages []DocsPage
}

// DocsPage is a document in the navigation.
type DocsPage struct {
	Name
	Contents []Name // of the document that is shown; nil for others
	Current  bool
}

// Docs writes a document about the program.
func (p *Pages) Docs(w io.Writer, v *Docs) error { return p.write(w, "docs", v) }
