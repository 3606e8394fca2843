package documents_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/docs"
	"github.com/stele-id/stele/web/documents"
)

// Every document is shown, well-formed, without markup of its own, and its links lead to
// documents and headings that are there.
func TestDocuments(t *testing.T) {
	files := docs.Files()
	l, err := documents.New(files)
	if err != nil {
		t.Fatal(err)
	}
	ids, links := make(map[string]bool), make(map[string][]string) // by address
	for _, name := range l.Names() {
		asked, at := name, documents.Path+name
		if name == "index" {
			asked, at = "", documents.Path
		}
		p, err := l.Page(asked)
		if err != nil {
			t.Fatal(err)
		}
		if p.Title == "" || len(p.Body) < 200 || strings.Contains(string(p.Body), "raw HTML omitted") {
			t.Errorf("%s: title %q, %d bytes, or there is markup in it", name, p.Title, len(p.Body))
		}
		ids[at] = true
		read(t, name, string(p.Body), func(e xml.StartElement) {
			for _, a := range e.Attr {
				switch a.Name.Local {
				case "id":
					if ids[at+"#"+a.Value] || a.Value == "main" || a.Value == "id" {
						t.Errorf("%s: two elements have the id %s", name, a.Value)
					}
					ids[at+"#"+a.Value] = true
				case "href":
					links[at] = append(links[at], a.Value)
				case "src":
					picture, ok := strings.CutPrefix(a.Value, documents.Path)
					if content, err := l.Picture(picture); !ok || err != nil || len(content) == 0 {
						t.Errorf("%s: no picture %s: %v", name, a.Value, err)
					}
				case "style", "onclick":
					t.Errorf("%s: %s has %s", name, e.Name.Local, a.Name.Local)
				}
			}
		})
	}
	for at, all := range links {
		for _, to := range all {
			if strings.HasPrefix(to, "#") {
				to = at + to
			}
			if strings.HasPrefix(to, "/") && !ids[to] {
				t.Errorf("%s links to %s, which is not there", at, to)
			}
		}
	}
	err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if page, ok := strings.CutSuffix(name, ".md"); ok && page != "index" && err == nil {
			if _, err := l.Page(page); err != nil {
				t.Errorf("%s is not shown: %v", name, err)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(l.Groups()); got < 4 {
		t.Errorf("the navigation has %d groups", got)
	}
}

// read reads a body by encoding/xml, strictly.
func read(t *testing.T, name, body string, visit func(xml.StartElement)) {
	t.Helper()
	level := 0
	for dec := xml.NewDecoder(strings.NewReader("<body>" + body + "</body>")); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if h := e.Name.Local; len(h) == 2 && h[0] == 'h' && h != "hr" {
			if n := int(h[1] - '0'); n > level+1 {
				t.Errorf("%s: heading %s follows h%d", name, h, level)
			} else {
				level = n
			}
		}
		visit(e)
	}
}

func TestLinks(t *testing.T) {
	l, err := documents.New(fstest.MapFS{
		"index.md":       {Data: []byte("# All\n\n[outside](outside.md)\n\n## One\n\n- [A](a.md): with [B](b.md)\n- [Sub](sub/c.md)\n")},
		"a.md":           {Data: []byte("# A `b`\n\n[index](index.md) [c](sub/c.md#x) [code](../main.go) [*old*](gone.md) [web](https://example.org/?a&b) [bad](javascript:alert) [here](#d-e)\n\n<b onclick=\"x\">raw</b>\n\n## D, e!\n\n## D e\n\n| | |\n|---|---|\n| a\\|b | `c` |\n\n| x | |\n|---|---|\n| 1 | 2 |\n\n```sh\na <b>\n```\n")},
		"b.md":           {Data: []byte("# B\n")},
		"sub/c.md":       {Data: []byte("# C\n\n[a](../a.md) ![p](../pictures/p.png)\n")},
		"pictures/p.png": {Data: []byte("png")},
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.Page("a")
	if err != nil {
		t.Fatal(err)
	}
	want := `<h1 id="a-b">A <code>b</code></h1>
<p><a href="/.docs/">index</a> <a href="/.docs/sub/c#x">c</a> code <em>old</em> <a href="https://example.org/?a&amp;b" rel="external noopener">web</a> bad <a href="#d-e">here</a></p>
<p><!-- raw HTML omitted -->raw<!-- raw HTML omitted --></p>
<h2 id="d-e">D, e!</h2>
<h2 id="d-e-1">D e</h2>
<div class="wide" role="group" tabindex="0"><table>
<tbody>
<tr>
<td>a|b</td>
<td><code>c</code></td>
</tr>
</tbody>
</table></div>
<div class="wide" role="group" tabindex="0"><table>
<thead><tr>
<th scope="col">x</th>
<td></td>
</tr></thead>
<tbody>
<tr>
<td>1</td>
<td>2</td>
</tr>
</tbody>
</table></div>
<pre tabindex="0"><code>a &lt;b&gt;
</code></pre>
`
	if string(p.Body) != want || p.Title != "A b" || len(p.Contents) != 2 || p.Contents[1] != (documents.Link{Title: "D e", Name: "d-e-1"}) {
		t.Errorf("%+v\n%s", p, p.Body)
	}
	if p, err := l.Page("sub/c"); err != nil || !bytes.Contains([]byte(p.Body), []byte(`<a href="/.docs/a">a</a> <img src="/.docs/pictures/p.png" alt="p" />`)) {
		t.Errorf("%v %v", p, err)
	}
	if g := l.Groups(); len(g) != 2 || len(g[0].Pages) != 2 || g[0].Pages[1] != (documents.Link{Title: "Sub", Name: "sub/c"}) || g[1].Pages[0] != (documents.Link{Title: "B", Name: "b"}) {
		t.Errorf("the navigation is %+v", g)
	}
	for _, name := range []string{"index", "a.md", "outside", "../a", "sub", "sub/"} {
		if _, err := l.Page(name); stele.KindOf(err) != stele.NotFound {
			t.Errorf("page %q: %v", name, err)
		}
	}
	for _, name := range []string{"pictures/q.png", "../p.png", "a.md", "/pictures/p.png", "pictures/../pictures/p.png"} {
		if _, err := l.Picture(name); stele.KindOf(err) != stele.NotFound {
			t.Errorf("picture %q: %v", name, err)
		}
	}
	if _, err := documents.New(fstest.MapFS{"index.md": {Data: []byte("## One\n\n- [A](a.md)\n")}}); err == nil {
		t.Error("an index with a missing page is good")
	}
}
