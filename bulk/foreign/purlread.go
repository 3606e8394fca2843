package foreign

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
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
	domain, present, ours := len(p.domains), false, false
	line := w.line
	p.domains = append(p.domains, purlDomain{said: make(stele.Metadata)})
	for first := true; ; first = false {
		w.space()
		switch {
		case w.peek() == '}':
			w.byte()
			if !ours {
				return failf(stele.Invalid, "import.purl-object-unknown", "{file}: the object at line {line} has neither purls nor history, as files of purl.org do", w.name, line)
			}
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
			ours = true
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
	line := f.w.line
	text, long, err := f.value(maxAbout)
	if err != nil {
		return err
	}
	if long > 0 {
		return failf(stele.Invalid, "import.purl-member-too-long", "{file}: the member {name} at line {line} has {size} bytes; {most} are the most", f.w.name, stele.Quote(name), line, long, maxAbout)
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
		for _, member := range slices.Sorted(maps.Keys(members)) {
			d.keep(name+"-"+member, plainText(members[member]))
		}
	case strings.HasPrefix(name, "maintainer"):
		d.keep(name, plainText(text))
	default:
		d.keep("domain-"+name, plainText(text))
	}
	if d.size > maxAbout || len(d.said) > stele.MaxFields {
		return failf(stele.Invalid, "import.purl-domain-too-long", "{file}: the object with PURLs that has the member {name} at line {line} says more of all its PURLs than {most} bytes in {fields} members; remove some of them", f.w.name, stele.Quote(name), line, maxAbout, stele.MaxFields)
	}
	return nil
}

// keep keeps what a domain says, under a name of the metadata, after others of the same name.
func (d *purlDomain) keep(name, value string) {
	if value == "" {
		return
	}
	name = metadataName(purlSource + "." + name)
	d.size += len(name) + len(value)
	if before, ok := d.said[name]; ok && before != value && d.size <= maxAbout {
		value = before + "\n" + value
	}
	d.said[name] = value
}

// plainText returns a value in JSON as text: a string without its quotation marks, nothing for null, and others as they stand.
func plainText(text []byte) string {
	var s string
	if json.Unmarshal(text, &s) == nil { // null leaves it empty
		return s
	}
	return string(text)
}
