package documents

import (
	"bytes"
	"html/template"
	"io/fs"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown makes a reader and writer of Markdown: CommonMark with tables, as our documents use it.
func markdown() goldmark.Markdown {
	return goldmark.New(goldmark.WithExtensions(extension.Table),
		goldmark.WithRendererOptions(html.WithXHTML(), renderer.WithNodeRenderers(util.Prioritized(blocks{}, 100))))
}

func parseMarkdown(source []byte) ast.Node { return markdown().Parser().Parse(text.NewReader(source)) }

// read makes the page of a document.
func (l *Library) read(name string) (*Page, error) {
	source, err := fs.ReadFile(l.files, name+".md")
	if err != nil {
		return nil, err
	}
	p := &Page{Name: name}
	m := markdown()
	document := m.Parser().Parse(text.NewReader(source))
	used := make(map[string]bool)
	var dead []*ast.Link
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			title := plain(n, source)
			id := anchor(title, used)
			n.SetAttributeString("id", []byte(id))
			switch n.Level {
			case 1:
				p.Title = title
			case 2:
				p.Contents = append(p.Contents, Link{Title: title, Name: id})
			}
		case *ast.Image:
			if to, ok := l.resolve(name, string(n.Destination)); ok {
				n.Destination = []byte(to)
			}
		case *ast.Link:
			to, ok := l.resolve(name, string(n.Destination))
			switch n.Destination = []byte(to); {
			case !ok:
				dead = append(dead, n)
			case !strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "#"):
				n.SetAttributeString("rel", []byte("external noopener"))
			}
		}
		return ast.WalkContinue, nil
	})
	for _, link := range dead { // its text stays
		for child := link.FirstChild(); child != nil; child = link.FirstChild() {
			link.Parent().InsertBefore(link.Parent(), link, child)
		}
		link.Parent().RemoveChild(link.Parent(), link)
	}
	var b bytes.Buffer
	if err := m.Renderer().Render(&b, source, document); err != nil {
		return nil, err
	}
	p.Body = template.HTML(b.String())
	return p, nil
}

// resolve returns where a link of a document leads: to another document, to a picture, or out of the
// site. It is false if it leads to a file that is not shown, such as source code.
func (l *Library) resolve(from, to string) (string, bool) {
	u, err := url.Parse(to)
	switch {
	case err != nil:
		return "", false
	case u.Scheme == "https" || u.Scheme == "http" || u.Scheme == "mailto":
		return to, true
	case u.Scheme != "" || u.Host != "":
		return "", false
	case u.Path == "":
		return to, true
	}
	file := path.Join(path.Dir(from), u.Path)
	if name, ok := strings.CutSuffix(file, ".md"); ok && l.pages[name] != nil {
		u.Path = address(name)
		return u.String(), true
	}
	if _, err := l.Picture(file); err == nil {
		return Path + file, true
	}
	return "", false
}

// anchor returns the name of a heading in its page, as GitHub makes it, since links in the documents
// work there too.
func anchor(title string, used map[string]bool) string {
	base := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, title)
	id := base
	for n := 1; used[id]; n++ {
		id = base + "-" + strconv.Itoa(n)
	}
	used[id] = true
	return id
}

// plain returns the text of a node without its markup.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Segment.Value(source))
			if n.SoftLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// blocks writes what may be wider than the window, so that a reader without a mouse can scroll in it:
// code and tables.
type blocks struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (blocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, writeCode)
	r.Register(ast.KindCodeBlock, writeCode)
	r.Register(tables.KindTable, writeTable)
	r.Register(tables.KindTableHeader, writeTableHeader)
	r.Register(tables.KindTableCell, writeTableCell)
}

func writeCode(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString(`<pre tabindex="0"><code>`)
		for i := range n.Lines().Len() {
			line := n.Lines().At(i)
			_, _ = w.Write(util.EscapeHTML(line.Value(source)))
		}
		_, _ = w.WriteString("</code></pre>\n")
	}
	return ast.WalkSkipChildren, nil
}

func writeTable(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString(`<div class="wide" role="group" tabindex="0"><table>` + "\n")
	} else {
		_, _ = w.WriteString("</table></div>\n")
	}
	return ast.WalkContinue, nil
}

// writeTableHeader leaves out a header that has no text: such tables are pairs.
func writeTableHeader(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if plain(n, source) == "" {
		if entering && n.NextSibling() != nil {
			_, _ = w.WriteString("<tbody>\n")
		}
		return ast.WalkSkipChildren, nil
	}
	if entering {
		_, _ = w.WriteString("<thead><tr>\n")
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString("</tr></thead>\n")
	if n.NextSibling() != nil {
		_, _ = w.WriteString("<tbody>\n")
	}
	return ast.WalkContinue, nil
}

// writeTableCell writes a cell. An empty one heads nothing.
func writeTableCell(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	open, shut := "<td>", "</td>\n"
	if n.Parent().Kind() == tables.KindTableHeader && plain(n, source) != "" {
		open, shut = `<th scope="col">`, "</th>\n"
	}
	if entering {
		_, _ = w.WriteString(open)
	} else {
		_, _ = w.WriteString(shut)
	}
	return ast.WalkContinue, nil
}
