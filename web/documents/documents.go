// Package documents makes pages of documents that are written in Markdown: those of package docs. The
// documents are part of the program, and therefore trusted; markup in them is left out all the same.
//
// The first document is index.md. Its headings of the second level are the groups of the navigation,
// and its links to other documents are their pages, in that order. Documents that are not in the
// index are in a last group.
package documents

import (
	"cmp"
	"html/template"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"

	"github.com/stele-id/stele"
)

// Path is the path below which the documents are.
const Path = "/.docs/"

// index is the name of the first document.
const index = "index"

// Library is a set of documents. It is used by many goroutines at once.
type Library struct {
	files  fs.FS
	groups []Group
	pages  map[string]func() (*Page, error) // by name
}

// Group is a part of the navigation.
type Group struct {
	Title string
	Pages []Link
}

// Link is a document in the navigation, or a heading of a page.
type Link struct {
	Title string
	Name  string // of the document, or of the heading in its page
}

// Page is a document.
type Page struct {
	Name     string // registry, reference/cli; index for the first one
	Title    string
	Body     template.HTML // well-formed as XML too
	Contents []Link        // the headings of the second level
}

// New reads the index of some documents. Each page is made when it is asked for, once.
func New(files fs.FS) (*Library, error) {
	l := &Library{files: files, pages: make(map[string]func() (*Page, error))}
	source, err := fs.ReadFile(files, index+".md")
	if err != nil {
		return nil, err
	}
	l.groups = readGroups(source)
	names := []string{index}
	for _, g := range l.groups {
		for _, p := range g.Pages {
			names = append(names, p.Name)
		}
	}
	more := Group{Title: "More"}
	err = fs.WalkDir(files, ".", func(file string, _ fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(file, ".md"); ok && err == nil && !slices.Contains(names, name) {
			more.Pages = append(more.Pages, Link{Title: l.title(name), Name: name})
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if more.Pages != nil {
		l.groups = append(l.groups, more)
	}
	for _, name := range names {
		if _, err := fs.Stat(files, name+".md"); err != nil {
			return nil, err
		}
		l.pages[name] = sync.OnceValues(func() (*Page, error) { return l.read(name) })
	}
	return l, nil
}

// title returns the heading of a document, or else its name.
func (l *Library) title(name string) string {
	source, _ := fs.ReadFile(l.files, name+".md")
	line, _, _ := strings.Cut(string(source), "\n")
	return cmp.Or(strings.TrimSpace(strings.TrimPrefix(line, "#")), name)
}

// Groups returns the navigation. The caller must not change it.
func (l *Library) Groups() []Group { return l.groups }

// Page returns the document of that name, "" for the first one; NotFound if there is none.
func (l *Library) Page(name string) (*Page, error) {
	if read, ok := l.pages[cmp.Or(name, index)]; ok && name != index {
		return read()
	}
	return nil, unknown(name)
}

// Picture returns a picture of the documents, a PNG; NotFound if there is none.
func (l *Library) Picture(name string) ([]byte, error) {
	if !fs.ValidPath(name) || path.Ext(name) != ".png" {
		return nil, unknown(name)
	}
	content, err := fs.ReadFile(l.files, name)
	if err != nil {
		return nil, unknown(name)
	}
	return content, nil
}

func unknown(name string) error {
	return &stele.Error{Op: "read document", Kind: stele.NotFound, Err: stele.Messagef("document.page-unknown", `there is no document "{name}"`, name)}
}

// address returns the path of a document at the server.
func address(name string) string { return Path + strings.TrimPrefix(name, index) }

// readGroups reads the navigation from the index.
func readGroups(source []byte) (groups []Group) {
	inside := false // of a list item, whose first link is a page
	_ = ast.Walk(parseMarkdown(source), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Heading:
			if entering && n.Level == 2 {
				groups = append(groups, Group{Title: plain(n, source)})
			}
		case *ast.ListItem:
			inside = entering
		case *ast.Link:
			name, ok := strings.CutSuffix(string(n.Destination), ".md")
			if entering && ok && inside && len(groups) > 0 {
				g := &groups[len(groups)-1]
				g.Pages = append(g.Pages, Link{Title: plain(n, source), Name: name})
				inside = false
			}
		}
		return ast.WalkContinue, nil
	})
	return groups
}

// Names returns the names of all documents, by name.
func (l *Library) Names() []string {
	var names []string
	for name := range l.pages {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
