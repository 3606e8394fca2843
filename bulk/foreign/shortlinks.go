package foreign

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
)

// Services that make short URLs. A short code is not an identifier: Options.Prefix says what stands before it. In the prefix
// {domain} is the domain of the short URL, because such services have the same code in several domains.

// LinksJSON is what Kutt's API answers: {"data":[...]}, or the list alone, or links one after the other.
const LinksJSON Format = "json"

// What columns mean.
const (
	fieldCode     = "code"
	fieldShort    = "short" // a whole short URL, with its domain
	fieldDomain   = "domain"
	fieldTarget   = "target"
	fieldTitle    = "title"
	fieldCreated  = "created"
	fieldModified = "modified"
	fieldPerson   = "person"   // data of a person, which are left out
	fieldBanned   = "banned"   // the service has made it unavailable
	fieldRelative = "relative" // a date in words of the moment of the export, which another column has
)

// named says where the code of a short URL stands, and its target.
var named = [][]string{{fieldCode, fieldShort}, {fieldTarget}}

func shlinkTable() *tableKind {
	return shortLinks("shlink", map[string]string{
		"shortcode": fieldCode, "shorturl": fieldShort, "longurl": fieldTarget, "domain": fieldDomain, "title": fieldTitle,
		"createdat": fieldCreated, "datecreated": fieldCreated,
	})
}

func yourlsTable() *tableKind {
	return shortLinks("yourls", map[string]string{"keyword": fieldCode, "shorturl": fieldShort, "url": fieldTarget, "title": fieldTitle, "timestamp": fieldCreated, "ip": fieldPerson})
}

func kuttTable() *tableKind {
	return shortLinks("kutt", map[string]string{
		"address": fieldCode, "link": fieldShort, "target": fieldTarget, "domain": fieldDomain, "description": fieldTitle, "createdat": fieldCreated, "updatedat": fieldModified,
		"banned": fieldBanned, "relativecreatedat": fieldRelative, "relativeexpirein": fieldRelative,
	})
}

func shortLinks(source string, columns map[string]string) *tableKind {
	k := &tableKind{source: source, columns: columns, need: named}
	k.make = k.shortLink
	return k
}

// csvOnly returns what recognises the tables of a system, and what tells that they are its own: their columns do.
func csvOnly(k *tableKind) (recognise func([]byte) Format, claims func([]byte) bool) {
	return func(head []byte) Format {
		if isJSON(head) || !k.recognises(head) {
			return unknown
		}
		return CSV
	}, k.recognises
}

// isJSON reports whether a beginning is that of a value in JSON.
func isJSON(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	for len(head) > 0 && head[0] == '#' { // remarks of a file of rejected rows
		_, head, _ = bytes.Cut(head, []byte("\n"))
		head = bytes.TrimLeft(head, " \t\r\n")
	}
	return len(head) > 0 && (head[0] == '{' || head[0] == '[')
}

// shortLink makes a record of a short URL.
func (k *tableKind) shortLink(s *Source, row *bulk.Row, all []said) {
	var code, short, domain string
	for _, c := range all {
		switch c.field {
		case fieldCode:
			code = strings.Trim(c.value, "/")
		case fieldShort:
			short = c.value
		case fieldDomain:
			domain = c.value
		}
	}
	if u, err := url.Parse(short); err == nil && short != "" {
		if code == "" {
			code = strings.Trim(u.EscapedPath(), "/")
		}
		if domain == "" {
			domain = u.Host
		}
	}
	name, err := s.shortName(code, domain)
	if err != nil {
		row.Err = err
		return
	}
	id, err := s.o.Schemes.Parse(name)
	if err != nil {
		row.Err = err
		return
	}
	b := newBuilder(id)
	for _, c := range all {
		k.add(s, b, c)
	}
	if len(b.rec.Targets) == 0 {
		row.Err = failf(stele.Invalid, "import.short-target-missing", "the short code {code} leads nowhere: the row has no target", stele.Quote(code))
		return
	}
	b.settle()
	if t := b.rec.Tombstone; t != nil {
		t.At = b.rec.Modified
	}
	s.fill(row, b.finish(k.source))
}

// shortName returns the identifier of a short code.
func (s *Source) shortName(code, domain string) (string, error) {
	prefix := s.o.Prefix
	switch {
	case code == "":
		return "", failf(stele.Invalid, "import.short-code-missing", "the row has no short code")
	case prefix == "":
		return "", failf(stele.Invalid, "import.short-code-needs-prefix", "the short code {code} is not an identifier; say what stands before it with --prefix, such as https://purl.example.org/ or https://{domain}/", stele.Quote(code), "{domain}")
	case strings.Contains(prefix, "{domain}") && domain == "":
		return "", failf(stele.Invalid, "import.short-domain-missing", "the row of the short code {code} has no domain, which --prefix asks for; import such rows with another --prefix", stele.Quote(code))
	case strings.ContainsAny(code, "?#") && isWeb(prefix): // a PURL would lose what follows
		return "", failf(stele.Invalid, "import.short-code-cut", "the short code {code} has a character that ends the path of a URL", stele.Quote(code))
	}
	return strings.ReplaceAll(prefix, "{domain}", strings.ToLower(domain)) + code, nil
}

func isWeb(prefix string) bool {
	u, err := url.Parse(strings.ReplaceAll(prefix, "{domain}", "d"))
	return err != nil || u.Host != ""
}

// add takes what a row says of a short URL.
func (k *tableKind) add(s *Source, b *builder, c said) {
	switch c.field {
	case fieldCode, fieldRelative: // the name says it; another column has the date
	case fieldTarget:
		b.target(c.value)
	case fieldTitle:
		b.rec.Metadata[stele.What] = c.value
	case fieldCreated, fieldModified:
		b.dated(k.source, c.field == fieldModified, c)
	case fieldPerson:
		s.persons.Add(1)
	case fieldBanned:
		switch strings.ToLower(strings.TrimSpace(c.value)) { // databases and spreadsheets write True, TRUE, t and 1
		case "true", "t", "1":
			b.rec.State, b.rec.Tombstone = stele.Withdrawn, &stele.Tombstone{Reason: "banned at " + k.source}
		case "", "false", "f", "0":
		default:
			b.element(k.source, c.name, c.value)
		}
	default:
		b.element(k.source, c.name, c.value)
	}
}

// detectKutt finds out what a file of Kutt is by its beginning.
func detectKutt(head []byte) Format {
	switch {
	case isJSON(head):
		return LinksJSON
	case kuttTable().recognises(head):
		return CSV
	}
	return unknown
}

// isKutt reports whether a beginning has the members, or the columns, of Kutt's links.
func isKutt(head []byte) bool {
	if isJSON(head) {
		return bytes.Contains(head, []byte(`"address"`)) && bytes.Contains(head, []byte(`"target"`)) && bytes.Contains(head, []byte(`"visit_count"`))
	}
	return kuttTable().recognises(head)
}

// openKutt opens files of Kutt.
func openKutt(s *Source, texts []*window) (parts []part) {
	k := kuttTable()
	for i, w := range texts {
		if s.kinds[i] == CSV {
			parts = append(parts, s.tablePart(k, w))
			continue
		}
		l := &linkList{jsonPart: jsonPart{s: s, w: w}, k: k}
		parts = append(parts, &itemPart{s: s, w: w, kind: LinksJSON, read: l.read, make: l.makeRow})
	}
	return parts
}

// linkList reads links in JSON: a list, an object whose member data is one, or one link after the other, with remarks between
// them, as a file of rejected rows has them.
type linkList struct {
	jsonPart
	k      *tableKind
	opened bool // the list has begun
	within bool // it is a member of an object
	single bool // there is no list
	links  int64
	total  int64 // how many links the service has, as the object says
}

// read returns the next link.
func (l *linkList) read() (item, error) {
	w := l.w
	if !l.opened {
		if err := l.open(); err != nil {
			return item{}, err
		}
		l.opened = true
	}
	l.remarks()
	switch {
	case l.single && w.ended():
		if err := w.failure(); err != nil {
			return item{}, err
		}
		return item{}, io.EOF
	case l.single:
	case w.peek() == ']':
		w.byte()
		return item{}, l.finish()
	case l.links > 0 && w.peek() != ',':
		return item{}, l.wrong("a comma")
	case l.links > 0:
		w.byte()
		w.space()
	}
	if w.peek() != '{' {
		return item{}, l.wrong("a link in braces")
	}
	line := w.line
	text, long, err := l.value(maxRow)
	if err != nil {
		return item{}, err
	}
	l.links++
	if long > 0 {
		return item{line: line, err: tooLong(long, maxRow)}, nil
	}
	return item{line: line, text: text}, nil
}

// open passes over all before the first link.
func (l *linkList) open() error {
	w := l.w
	if bytes.HasPrefix(w.peekText(3), []byte("\xef\xbb\xbf")) {
		w.take(3)
	}
	l.remarks()
	switch w.peek() {
	case '[':
		w.byte()
		return nil
	case '{':
		if l.single = !isAnswer.Match(w.peekText(256)); l.single {
			return nil
		}
		w.byte()
		l.within = true
		return l.members(true)
	}
	return l.wrong("a list or an object")
}

// isAnswer finds how an answer of Kutt's API begins.
var isAnswer = regexp.MustCompile(`^\{\s*(?:\}|"(?:limit|skip|total|data)"\s*:)`)

// members reads members of the object: up to the list, or after it to the end.
func (l *linkList) members(before bool) error {
	w := l.w
	for first := before; ; first = false {
		w.space()
		switch {
		case w.peek() == '}' && before:
			return l.wrong("a member data with the links")
		case w.peek() == '}':
			w.byte()
			return nil
		case w.peek() == ',' && !first:
			w.byte()
			w.space()
		case !first:
			return l.wrong("a comma")
		}
		if w.peek() != '"' {
			return l.wrong("a name in quotation marks")
		}
		name, err := l.name()
		if err != nil {
			return err
		}
		if name == "data" && before && w.peek() == '[' {
			w.byte()
			return nil
		}
		text, _, err := l.value(64)
		if err != nil {
			return err
		}
		if name == "total" {
			_ = json.Unmarshal(text, &l.total) // if it is not a number, the file does not say how many there are
		}
	}
}

// finish reads what follows the list, and tells if it is not whole.
func (l *linkList) finish() error {
	if l.within {
		if err := l.members(false); err != nil {
			return err
		}
	}
	l.w.space()
	if !l.w.ended() {
		return l.wrong("the end of the file")
	}
	if l.total > l.links {
		l.s.note("import.links-incomplete", "{file} has {count} of {total} links; get the others with limit and skip of the API", l.w.name, l.links, l.total)
	}
	return io.EOF
}

func (l *linkList) wrong(want string) error {
	if err := l.w.failure(); err != nil {
		return err
	}
	found := "the end"
	if !l.w.ended() {
		found = stele.Describe(rune(l.w.peek()))
	}
	return failf(stele.Invalid, "import.links-json-broken", "{file} is not a list of links at line {line}: {expected} should stand here, not {found}", l.w.name, l.w.line, want, found)
}

// makeRow makes a record of a link.
func (l *linkList) makeRow(row *bulk.Row) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(row.Text, &members); err != nil {
		row.Err = failf(stele.Invalid, "import.links-json-link", "the link is not an object in JSON: {cause}", err)
		return
	}
	var all []said
	for _, name := range slices.Sorted(maps.Keys(members)) {
		c := said{name: name, field: l.k.columns[plainName(name)]}
		if c.value = linkValue(members[name], c.field); c.value != "" {
			all = append(all, c)
		}
	}
	l.k.make(l.s, row, all)
}

// linkValue returns what a member of a link says, whose text is valid JSON; "" if that is nothing.
func linkValue(text json.RawMessage, field string) string {
	switch first := text[0]; { // it has no white space around it
	case first == '"' && bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text): // as almost all are
		return string(text[1 : len(text)-1])
	case first == '"':
		var value string
		_ = json.Unmarshal(text, &value) // which is valid
		return value
	case first == 'n':
		return ""
	case first == '{' && field == fieldShort: // later versions have the short URL in two forms
		var forms map[string]any
		_ = json.Unmarshal(text, &forms)
		if url, ok := forms["url"].(string); ok {
			return url
		}
	}
	return string(text)
}
