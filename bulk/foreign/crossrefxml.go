package foreign

import (
	"encoding/xml"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/doirecord"
	"github.com/stele-id/stele/internal/plainxml"
)

// crossrefLimits bound the reading of one work with what stands around it.
var crossrefLimits = plainxml.Limits{Bytes: maxRow + maxContext, Token: maxRow, Depth: 128, Elements: 200_000}

// crossrefFrame is all that stands around works, and describes them. It is read once for all of them.
type crossrefFrame struct {
	before, after string // around an element
	tags          string // before without what describes works
	depth         int

	once sync.Once
	path []*plainxml.Element
	err  error
}

func newCrossrefFrame(open []crossrefLevel) *crossrefFrame {
	var before, tags strings.Builder
	f := &crossrefFrame{depth: len(open)}
	for i := range open {
		before.WriteString(open[i].tag)
		tags.WriteString(open[i].tag)
		for _, c := range open[i].context {
			before.WriteString(c)
		}
		name := strings.Fields(strings.Trim(open[i].tag, "<>"))[0]
		f.after = "</" + name + ">" + f.after
	}
	f.before, f.tags = before.String(), tags.String()
	return f
}

// levels returns the elements around works, the outermost first, with those that describe works. The next level is the last
// element of each.
func (f *crossrefFrame) levels() ([]*plainxml.Element, error) {
	f.once.Do(func() {
		var e *plainxml.Element
		for e, f.err = parseProse(f.before + f.after); f.err == nil; e = e.Children[len(e.Children)-1] {
			if f.path = append(f.path, e); len(f.path) == f.depth {
				return
			}
		}
	})
	return f.path, f.err
}

// crossrefUnit is an element with works. It is read once for all of them.
type crossrefUnit struct {
	frame *crossrefFrame
	local string // the name of the element
	text  []byte

	once  sync.Once
	xml   string
	works []crossrefFound
	err   error
}

// crossrefFound is a work with all around it, and the element doi_data that names it.
type crossrefFound struct {
	path []*plainxml.Element
	data *plainxml.Element
}

// crossrefPick is one of the works of a unit, counted from the last.
type crossrefPick struct {
	unit *crossrefUnit
	left int
}

// read finds the works of a unit.
func (u *crossrefUnit) read() {
	around, err := u.frame.levels()
	if u.err = err; err != nil {
		return
	}
	e, err := parseProse(u.frame.tags + string(u.text) + u.frame.after)
	if u.err = err; err != nil {
		return
	}
	for range u.frame.depth {
		e = e.Children[0]
	}
	u.xml = u.frame.before + string(u.text) + u.frame.after
	path := slices.Clone(around)
	// The unit stands beside what describes its works.
	inner := *path[len(path)-1]
	inner.Children = append(slices.Clip(inner.Children), e)
	path[len(path)-1] = &inner
	var walk func(e *plainxml.Element)
	walk = func(e *plainxml.Element) {
		path = append(path, e)
		for _, c := range e.Children {
			if c.Name.Local == "doi_data" {
				u.works = append(u.works, crossrefFound{slices.Clone(path), c})
			} else {
				walk(c)
			}
		}
		path = path[:len(path)-1]
	}
	walk(e)
}

// work reads a work. What the elements around it say holds for it too.
func (p crossrefPick) work() (*doirecord.Work, error) {
	u := p.unit
	u.once.Do(u.read)
	switch {
	case u.err != nil:
		return nil, u.err
	case p.left >= len(u.works):
		return nil, failf(stele.Invalid, "import.crossref-no-doi", "the element {element} has no doi_data, so it has no DOI", u.local)
	}
	w := crossrefWork(u.works[len(u.works)-1-p.left])
	w.XML = u.xml
	return w, nil
}

// crossrefWork reads a work, which is the last element of a path.
func crossrefWork(found crossrefFound) *doirecord.Work {
	path, data := found.path, found.data
	e := path[len(path)-1]
	w := &doirecord.Work{Kind: e.Name.Local, Kept: make(map[string]any)}
	w.DOI = textIn(data, "doi")
	crossrefPlaces(w, data)
	crossrefDescription(w, e)
	for i := len(path) - 1; i >= 0; i-- { // what is nearest holds
		for _, c := range path[i].Children {
			if c != e {
				crossrefAroundWork(w, path[i], c)
			}
		}
		if w.Language == "" {
			w.Language = path[i].Get("language")
		}
	}
	return w
}

// crossrefPlaces reads where a work is. The resources of collections are spares.
func crossrefPlaces(w *doirecord.Work, data *plainxml.Element) {
	for _, c := range data.Children {
		switch c.Name.Local {
		case "resource":
			w.Places = slices.Insert(w.Places, 0, doirecord.Place{URL: strings.TrimSpace(c.Text), Type: c.Get("mime_type")})
		case "collection":
			for _, item := range c.Children {
				if r := item.Child("resource"); r != nil {
					w.Places = append(w.Places, doirecord.Place{URL: strings.TrimSpace(r.Text), Type: r.Get("mime_type")})
				}
			}
		case "timestamp":
			w.Kept["timestamp"] = strings.TrimSpace(c.Text)
		}
	}
}

// crossrefDescription reads what a work says of itself.
func crossrefDescription(w *doirecord.Work, e *plainxml.Element) {
	if w.Specific = e.Get("type"); w.Specific == "preprint" {
		w.Specific = ""
	}
	w.Language = e.Get("language")
	for _, c := range e.Children {
		switch c.Name.Local {
		case "titles":
			w.Title = first(w.Title, allText(c.Child("title")))
		case "full_title", "proceedings_title", "title":
			w.Title = first(w.Title, allText(c))
		case "description":
			if e.Name.Local == "component" {
				w.Title = first(w.Title, allText(c))
			}
		case "contributors":
			crossrefContributors(w, c)
		case "person_name":
			w.Authors = append(w.Authors, crossrefPerson(c))
		case "publication_date", "posted_date", "approval_date", "database_date":
			w.Date = first(w.Date, crossrefDate(c))
		case "pages":
			w.Pages = first(textIn(c, "first_page"), "")
			if last := textIn(c, "last_page"); last != "" && w.Pages != "" {
				w.Pages += "-" + last
			}
		case "abstract":
			w.Abstract = first(w.Abstract, allText(c))
		case "program":
			for _, ref := range c.Children {
				if ref.Name.Local == "license_ref" {
					w.License = first(w.License, strings.TrimSpace(ref.Text))
				}
			}
		case "issn", "isbn":
			crossrefNumber(w, c)
		case "publisher":
			w.Publisher = first(w.Publisher, textIn(c, "publisher_name"))
		case "institution":
			w.Publisher = first(w.Publisher, textIn(c, "institution_name"))
		}
	}
}

// crossrefAroundWork reads what an element beside a work, or beside those around it, says of the work.
func crossrefAroundWork(w *doirecord.Work, parent, c *plainxml.Element) {
	switch name := c.Name.Local; {
	case name == "journal_issue":
		w.Date = first(w.Date, crossrefDate(c.Child("publication_date")))
		if v := c.Child("journal_volume"); v != nil {
			w.Volume = first(w.Volume, textIn(v, "volume"))
		}
		w.Issue = first(w.Issue, textIn(c, "issue"))
	case name == "journal_volume" && w.Kind == "journal_issue":
		w.Volume = first(w.Volume, textIn(c, "volume"))
	case strings.HasSuffix(name, "metadata") && name != w.Kind:
		title := first(textIn(c, "full_title"), textIn(c, "proceedings_title"))
		if t := c.Child("titles"); t != nil {
			title = first(title, allText(t.Child("title")))
		}
		w.Journal = first(w.Journal, title)
		if w.Language == "" {
			w.Language = c.Get("language")
		}
		w.Date = first(w.Date, crossrefDate(c.Child("publication_date")))
		for _, inner := range c.Children {
			switch inner.Name.Local {
			case "publisher":
				w.Publisher = first(w.Publisher, textIn(inner, "publisher_name"))
			case "issn", "isbn":
				crossrefNumber(w, inner)
			}
		}
	case name == "crm-item":
		switch c.Get("name") {
		case "created":
			w.Created = strings.TrimSpace(c.Text)
		case "last-update":
			w.Updated = strings.TrimSpace(c.Text)
		case "publisher-name":
			w.Publisher = first(w.Publisher, strings.TrimSpace(c.Text))
		}
	case name == "titles" && parent.Name.Local != w.Kind && w.Kind == "component":
		w.Journal = first(w.Journal, allText(c.Child("title")))
	}
}

// crossrefNumber keeps an ISSN or an ISBN.
func crossrefNumber(w *doirecord.Work, c *plainxml.Element) {
	name, text := c.Name.Local, strings.TrimSpace(c.Text)
	if old, ok := w.Kept[name].(string); ok && !strings.Contains(old, text) {
		text = old + "\n" + text
	} else if ok {
		text = old
	}
	w.Kept[name] = text
}

// crossrefContributors reads persons and organisations. Authors make the work; if there is none, all made it.
func crossrefContributors(w *doirecord.Work, c *plainxml.Element) {
	var others []doirecord.Contributor
	for _, p := range c.Children {
		who := crossrefPerson(p)
		switch {
		case p.Name.Local != "person_name" && p.Name.Local != "organization":
		case p.Get("contributor_role") == "author":
			w.Authors = append(w.Authors, who)
		default:
			others = append(others, who)
		}
	}
	if len(w.Authors) == 0 {
		w.Authors, others = others, nil
	}
	w.Others = append(w.Others, others...)
}

func crossrefPerson(p *plainxml.Element) doirecord.Contributor {
	if p.Name.Local == "organization" {
		return doirecord.Contributor{Name: strings.TrimSpace(p.Text)}
	}
	return doirecord.Contributor{Family: textIn(p, "surname"), Given: textIn(p, "given_name"), ORCID: textIn(p, "ORCID")}
}

// crossrefDate reads a date of elements year, month and day; database_date has it one level deeper.
func crossrefDate(c *plainxml.Element) string {
	if c == nil {
		return ""
	}
	if inner := c.Child("publication_date"); inner != nil {
		c = inner
	}
	return doirecord.ISODate(textIn(c, "year"), textIn(c, "month"), textIn(c, "day"))
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// textIn returns the text of a child; "" if there is none.
func textIn(e *plainxml.Element, local string) string {
	if c := e.Child(local); c != nil {
		return strings.TrimSpace(c.Text)
	}
	return ""
}

// allText returns the text of an element whose elements are formatting.
func allText(e *plainxml.Element) string {
	if e == nil {
		return ""
	}
	return strings.Join(strings.Fields(e.Text), " ")
}

// crossrefProse are elements whose elements are formatting, such as words in italics: their text is read as one.
var crossrefProse = []string{"title", "full_title", "proceedings_title", "abstract", "description"}

// parseProse reads a document as [plainxml.Parse] does, except that elements of prose have all their text and no elements.
func parseProse(text string) (*plainxml.Element, error) {
	if root, ok := plainxml.Plain(text, crossrefLimits); ok && isProsePlain(root) {
		return root, nil
	}
	d := plainxml.NewDecoder(strings.NewReader(text), crossrefLimits)
	root := new(plainxml.Element)
	open := []*plainxml.Element{root}
	texts := []*strings.Builder{new(strings.Builder)}
	inside := 0 // elements of prose that are open, and those in them
	for {
		t, err := d.Token()
		if err == io.EOF {
			return root.Children[0], nil
		}
		if err != nil {
			return nil, err
		}
		switch t := t.(type) {
		case xml.StartElement:
			if inside > 0 {
				if inside++; t.Name.Local == "p" || t.Name.Local == "title" || t.Name.Local == "sec" { // of JATS
					texts[len(texts)-1].WriteByte(' ')
				}
				continue
			}
			e := &plainxml.Element{Name: t.Name, Attr: t.Attr}
			top := open[len(open)-1]
			top.Children, open, texts = append(top.Children, e), append(open, e), append(texts, new(strings.Builder))
			if slices.Contains(crossrefProse, t.Name.Local) {
				inside = 1
			}
		case xml.CharData:
			texts[len(texts)-1].Write(t)
		case xml.EndElement:
			if inside > 1 {
				inside--
				continue
			}
			inside = 0
			open[len(open)-1].Text = texts[len(texts)-1].String()
			open, texts = open[:len(open)-1], texts[:len(texts)-1]
		}
	}
}

// isProsePlain reports whether no element of prose has elements in it.
func isProsePlain(e *plainxml.Element) bool {
	if len(e.Children) > 0 && slices.Contains(crossrefProse, e.Name.Local) {
		return false
	}
	for _, c := range e.Children {
		if !isProsePlain(c) {
			return false
		}
	}
	return true
}
