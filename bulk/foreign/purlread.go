package foreign

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"regexp"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/internal/plainxml"
)

// purlFile reads objects of purl.org's files. It looks only for where PURLs begin and end, so that a file may have any size.
type purlFile struct {
	jsonPart
	p *purlPart
}

func (f *purlFile) wrong(want string) error {
	if err := f.w.failure(); err != nil {
		return err
	}
	found := "the end"
	if !f.w.ended() {
		found = stele.Describe(rune(f.w.peek()))
	}
	return failf(stele.Invalid, "import.purl-json-broken", "{file} is not a file of PURLs at line {line}: {expected} should stand here, not {found}", f.w.name, f.w.line, want, found)
}

// readJSON reads objects with PURLs, one after the other.
func (p *purlPart) readJSON(w *window) error {
	f := &purlFile{jsonPart{s: p.s, w: w}, p}
	if bytes.HasPrefix(w.peekText(3), []byte("\xef\xbb\xbf")) {
		w.take(3)
	}
	for {
		if f.remarks(); w.ended() {
			return w.failure()
		}
		if w.peek() != '{' {
			return f.wrong("an object")
		}
		w.byte()
		if err := f.object(); err != nil {
			return err
		}
	}
}

// object reads what follows the brace of an object.
func (f *purlFile) object() error {
	w, p := f.w, f.p
	if len(p.domains) >= maxDomains {
		return failf(stele.Invalid, "import.purl-too-many-domains", "the files have more than {most} objects with PURLs; import some of them, and then the others", maxDomains)
	}
	domain, present := len(p.domains), false
	p.domains = append(p.domains, purlDomain{said: make(stele.Metadata)})
	for first := true; ; first = false {
		w.space()
		switch {
		case w.peek() == '}':
			w.byte()
			if d := &p.domains[domain]; present && d.name != "" {
				p.known[strings.ToLower(strings.TrimSuffix(d.name, "/"))] = true
			}
			return nil
		case w.peek() == ',' && !first:
			w.byte()
			w.space()
		case !first:
			return f.wrong("a comma")
		}
		if w.peek() != '"' {
			return f.wrong("a name in quotation marks")
		}
		name, err := f.name()
		if err != nil {
			return err
		}
		switch isList := w.peek() == '['; {
		case isList && (name == "purls" || name == "history"):
			w.byte()
			present = present || name == "purls"
			err = f.list(domain, name == "history")
		default:
			err = f.about(&p.domains[domain], name)
		}
		if err != nil {
			return err
		}
	}
}

// list reads PURLs up to the end of their list.
func (f *purlFile) list(domain int, past bool) error {
	w := f.w
	for first := true; ; first = false {
		w.space()
		switch {
		case w.peek() == ']':
			w.byte()
			return nil
		case w.peek() == ',' && !first:
			w.byte()
			w.space()
		case !first:
			return f.wrong("a comma")
		}
		if w.peek() != '{' {
			return f.wrong("a PURL in braces")
		}
		line := w.line
		text, long, err := f.value(maxRow)
		if err != nil {
			return err
		}
		if long > 0 {
			err = f.p.fault(line, tooLong(long, maxRow))
		} else {
			err = f.p.take(domain, past, line, text)
		}
		if err != nil {
			return err
		}
	}
}

// about reads what an object says of all its PURLs. The metadata of each has it.
func (f *purlFile) about(d *purlDomain, name string) error {
	const most = 16 << 10
	line := f.w.line
	text, long, err := f.value(most)
	if err != nil {
		return err
	}
	if long > 0 {
		return failf(stele.Invalid, "import.purl-member-too-long", "{file}: the member {name} at line {line} has {size} bytes; {most} are the most", f.w.name, stele.Quote(name), line, long, most)
	}
	switch {
	case name == "name":
		d.name = plainText(text)
		d.keep("domain", d.name)
	case text[0] == '{':
		members, err := document.ReadObject(text)
		if err != nil {
			return failf(stele.Invalid, "import.purl-member-broken", "{file}: the member {name} at line {line} can't be read: {cause}", f.w.name, stele.Quote(name), line, stele.Reason(err))
		}
		for member, value := range members {
			d.keep(name+"-"+member, plainText(value))
		}
	case strings.HasPrefix(name, "maintainer"):
		d.keep(name, plainText(text))
	default:
		d.keep("domain-"+name, plainText(text))
	}
	return nil
}

// keep keeps what a domain says, under a name of the metadata.
func (d *purlDomain) keep(name, value string) {
	if value != "" {
		d.said[metadataName(purlSource+"."+name)] = value
	}
}

// plainText returns a value in JSON as text: a string without its quotation marks, nothing for null, and others as they stand.
func plainText(text []byte) string {
	var s string
	if json.Unmarshal(text, &s) == nil { // null leaves it empty
		return s
	}
	return string(text)
}

// declaredEncoding finds the encoding in the declaration of a document.
var declaredEncoding = regexp.MustCompile(`^\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["'][^>]*\?>`)

// document returns the text of a document for a reader of XML in UTF-8. Batches of PURLZ say that they are in Latin-1.
func (w *window) document() io.Reader {
	head := w.peekText(recognised)
	encoding := bulk.UTF8
	if m := declaredEncoding.FindSubmatchIndex(head); m != nil {
		switch strings.ToLower(string(head[m[2]:m[3]])) {
		case "iso-8859-1", "latin1", "us-ascii", "ascii":
			encoding = bulk.Latin1
		case "windows-1252", "cp1252":
			encoding = bulk.CP1252
		}
		if encoding != bulk.UTF8 {
			w.take(m[1])
		}
	}
	rest := w.in
	if w.err != nil {
		rest = failedReader{w.err}
	}
	all := io.MultiReader(bytes.NewReader(w.buf[w.pos:]), rest)
	if encoding == bulk.UTF8 {
		return all
	}
	return bulk.NewDecoder(all, encoding)
}

// purlXML is a PURL of a batch, as the sorter has it.
type purlXML struct {
	Name   string   `json:"name"`
	Type   string   `json:"type,omitempty"`
	Target string   `json:"target,omitempty"`
	See    string   `json:"seealso,omitempty"`
	Base   string   `json:"basepurl,omitempty"`
	Users  []string `json:"uid,omitempty"`
	Groups []string `json:"gid,omitempty"`

	Other map[string]string `json:"other,omitempty"`
}

// readXML reads a batch of PURLZ.
func (p *purlPart) readXML(w *window) error {
	begin := w.line
	d := plainxml.NewDecoder(w.document(), plainxml.Limits{Bytes: -1, Elements: -1, Depth: 8})
	domain := len(p.domains)
	p.domains = append(p.domains, purlDomain{})
	broken := func(err error) error {
		return failf(stele.Invalid, "import.purl-xml-broken", "{file} is not a batch of PURLZ: {cause}", w.name, stele.Reason(err)) // which has the line
	}
	var one *purlXML
	var path []string
	line, text := 0, ""
	for {
		token, err := d.Token()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return broken(err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			path = append(path, t.Name.Local)
			text = ""
			switch strings.Join(path, "/") {
			case "purls":
			case "purls/purl":
				line, one = begin+d.Line()-1, new(purlXML)
				one.attributes(t.Attr, map[string]*string{"id": &one.Name, "type": &one.Type})
			case "purls/purl/target":
				one.attributes(t.Attr, map[string]*string{"url": &one.Target})
			case "purls/purl/seealso":
				one.attributes(t.Attr, map[string]*string{"url": &one.See})
			case "purls/purl/basepurl":
				one.attributes(t.Attr, map[string]*string{"path": &one.Base})
			case "purls/purl/maintainers", "purls/purl/maintainers/uid", "purls/purl/maintainers/gid":
			default:
				if one == nil {
					return broken(stele.Messagef("import.purl-xml-element", "line {line}: {element} is not an element of one", begin+d.Line()-1, stele.Quote(t.Name.Local)))
				}
				one.attributes(t.Attr, nil)
			}
		case xml.CharData:
			if text += string(t); len(text) > maxRow {
				return tooLong(len(text), maxRow)
			}
		case xml.EndElement:
			if one != nil {
				one.said(path, strings.TrimSpace(text))
			}
			text = ""
			if len(path) == 2 {
				said, err := json.Marshal(one)
				if err != nil {
					return broken(err)
				}
				if err := p.take(domain, false, line, said); err != nil {
					return err
				}
				one = nil
			}
			path = path[:len(path)-1]
		}
	}
}

// attributes takes the attributes of an element; those that are not known are kept.
func (x *purlXML) attributes(list []xml.Attr, known map[string]*string) {
	for _, a := range list {
		if to := known[a.Name.Local]; to != nil && *to == "" {
			*to = strings.TrimSpace(a.Value)
		} else {
			x.keep(a.Name.Local, a.Value)
		}
	}
}

// said takes the text of an element.
func (x *purlXML) said(path []string, text string) {
	switch name := path[len(path)-1]; {
	case text == "":
	case len(path) == 4 && path[2] == "maintainers" && name == "uid":
		x.Users = append(x.Users, text)
	case len(path) == 4 && path[2] == "maintainers" && name == "gid":
		x.Groups = append(x.Groups, text)
	default:
		x.keep(name, text)
	}
}

// keep keeps what is not known, after others of the same name.
func (x *purlXML) keep(name, value string) {
	if x.Other == nil {
		x.Other = make(map[string]string)
	}
	if before, ok := x.Other[name]; ok {
		value = before + "\n" + value
	}
	x.Other[name] = value
}
