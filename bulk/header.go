package bulk

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// The columns that an export always has, and what they mean. The others of a record
// follow where a record needs them.
var usual = []string{
	"id", "url", "aliases", "service", "type", "language", "state", "reason",
	stele.Who, stele.What, stele.When, stele.Where,
}

// further are the other columns, in their order after those of metadata.
var further = []string{
	"order", "preference", "ttl", "redirect", "partial", "targets",
	"withdrawn", "replacement",
	"persistence.level", "persistence.until", "persistence.statement",
	"readers", "values", "signatures", "metadata",
	"redacted", "created", "modified", "by",
}

// meta begins the names of columns with metadata of the owner's own.
const meta = "meta."

// Ignored is the field of a column that is passed over.
const Ignored = "-"

// Others is what stands for all columns of a header that Stele does not know, and OtherMeta is
// the field that makes metadata of each.
const (
	Others    = "*"
	OtherMeta = "meta"
)

// Fields returns the fields that a column can have.
func Fields() []string { return slices.Concat(usual, further) }

// synonyms are headers of people's files, by what they mean here.
var synonyms = map[string]string{
	"identifier": "id", "pid": "id", "ark": "id", "doi": "id", "handle": "id", "hdl": "id", "urn": "id", "purl": "id", "lsid": "id",
	"location": "url", "target": "url", "link": "url", "href": "url", "uri": "url", "website": "url", "web address": "url", "landing page": "url",
	"alias": "aliases", "other identifiers": "aliases", "also known as": "aliases",
	"media type": "type", "mime type": "type", "mimetype": "type", "content type": "type", "lang": "language",
	"title": stele.What, "name": stele.What,
	"creator": stele.Who, "creators": stele.Who, "author": stele.Who, "authors": stele.Who,
	"date": stele.When, "year": stele.When, "published": stele.When, "publication date": stele.When, "publication year": stele.When,
	"place":  stele.Where,
	"reader": "readers",
}

// Header is what the columns of a file mean, in their order. A column that is passed over
// has the field [Ignored].
type Header []string

// HeaderOptions say how a header is read.
type HeaderOptions struct {
	// Map has fields by the columns that have them, as they stand in the file, whatever
	// their case. It wins over what the names of columns say. Others stands for columns
	// that Stele does not know.
	Map map[string]string

	// Need are the fields that the header must have.
	Need []string

	// ID is the column that has the identifiers, whatever its name says. It need not be
	// there.
	ID string

	// Fields are the fields of all columns in their order, as a person chose them; see [Guess].
	// They win over Map and over the names of columns. Nil if they are not known.
	Fields []string

	// Headless says that the first row is not a header. Fields must be set.
	Headless bool
}

// ParseMap reads what maps columns to fields: texts such as Autor=who.
func ParseMap(texts []string) (map[string]string, error) {
	m := make(map[string]string, len(texts))
	for _, text := range texts {
		i := strings.LastIndexByte(text, '=')
		if i < 1 {
			return nil, stele.Messagef("import.mapping-malformed", `"{text}" does not map a column to a field; write COLUMN=FIELD, as in Autor=who, or COLUMN=- to pass it over`, text)
		}
		column, field := plain(text[:i]), strings.ToLower(strings.TrimSpace(text[i+1:]))
		if field == "" {
			field = Ignored
		}
		known, ok := fieldOf(field)
		if column == Others && (field == OtherMeta || field == Ignored) {
			known, ok = field, true
		}
		if !ok {
			return nil, stele.Messagef("import.field-unknown", `there is no field "{field}"; there are {fields}, meta.x for metadata of your own, and - to pass the column over`, field, strings.Join(Fields(), ", "))
		}
		if _, twice := m[column]; twice {
			return nil, stele.Messagef("import.column-mapped-twice", `the column "{column}" is mapped twice`, column)
		}
		m[column] = known
	}
	return m, nil
}

// plain returns the name of a column without what people write differently: case,
// spaces around it, and underscores or hyphens for spaces.
func plain(cell string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(cell), func(r rune) bool { return r == ' ' || r == '_' || r == '-' || r == '\u00a0' }), " ")
}

// fieldOf returns the field that has a name, or whose name it is in other words.
func fieldOf(name string) (string, bool) {
	name = strings.ToLower(strings.TrimSpace(name))
	if key, ok := strings.CutPrefix(name, meta); ok {
		if slices.Contains(usual[len(usual)-4:], key) {
			return key, true
		}
		return name, key != ""
	}
	if name == Ignored || slices.Contains(usual, name) || slices.Contains(further, name) {
		return name, true
	}
	field, ok := synonyms[plain(name)]
	return field, ok
}

// NewHeader finds out what columns mean. Its error names all columns that it does not
// know, and says how to map them.
func NewHeader(cells []string, o HeaderOptions) (Header, error) {
	if o.Fields != nil {
		return chosenHeader(cells, o)
	}
	h := make(Header, len(cells))
	columns := make(map[string]string) // by field
	unused := maps.Clone(o.Map)
	delete(unused, Others)
	var unknown []string
	for i, cell := range cells {
		field, ok := o.Map[plain(cell)]
		if delete(unused, plain(cell)); !ok && o.ID != "" && plain(cell) == plain(o.ID) {
			field, ok = "id", true
		} else if !ok {
			if field, ok = fieldOf(cell); strings.TrimSpace(cell) == "" {
				field, ok = Ignored, true // a spreadsheet's empty column
			}
		}
		if other := o.Map[Others]; !ok && other == OtherMeta {
			field, ok = meta+slug(cell), slug(cell) != ""
		} else if !ok && other == Ignored {
			field, ok = Ignored, true
		}
		if !ok {
			unknown = append(unknown, strings.TrimSpace(cell))
			continue
		}
		if first, twice := columns[field]; twice && field != Ignored {
			if plain(first) == plain(cell) {
				return nil, stele.Messagef("import.column-repeated", "the column {column} is there twice", field)
			}
			return nil, stele.Messagef("import.columns-mean-the-same", `the columns "{column}" and "{other-column}" both mean {field}; give one of them another meaning, as in --map {example}, or pass it over with --map {example-ignored}`,
				first, cell, field, quoted(cell+"="+meta+slug(cell)), quoted(cell+"="+Ignored))
		}
		columns[field], h[i] = cell, field
	}
	if len(unknown) > 0 {
		return nil, unknownColumns(unknown)
	}
	for column := range unused {
		return nil, stele.Messagef("import.mapped-column-missing", `--map: there is no column "{column}"; there are {columns}`, column, strings.Join(cells, ", "))
	}
	for _, field := range o.Need {
		if columns[field] == "" {
			return nil, stele.Messagef("import.column-missing", "the column {column} is missing", field)
		}
	}
	return h, nil
}

// chosenHeader returns the header with the fields that a person chose.
func chosenHeader(cells []string, o HeaderOptions) (Header, error) {
	if len(cells) != len(o.Fields) {
		return nil, stele.Messagef("import.columns-not-as-chosen", "there are {columns} columns, and fields for {fields} were chosen; choose again", len(cells), len(o.Fields))
	}
	columns := make(map[string]bool)
	for _, field := range o.Fields {
		if known, ok := fieldOf(field); !ok || known != field {
			return nil, stele.Messagef("import.field-unknown", `there is no field "{field}"; there are {fields}, meta.x for metadata of your own, and - to pass the column over`, field, strings.Join(Fields(), ", "))
		}
		if columns[field] && field != Ignored {
			return nil, stele.Messagef("import.field-chosen-twice", `two columns have the field "{field}"; choose another for one of them, or leave it out`, field)
		}
		columns[field] = true
	}
	for _, field := range o.Need {
		if !columns[field] {
			return nil, stele.Messagef("import.column-missing", "the column {column} is missing", field)
		}
	}
	return slices.Clone(o.Fields), nil
}

// unknownColumns says how to map columns.
func unknownColumns(names []string) error {
	var text strings.Builder
	for i, name := range names[:min(len(names), 20)] {
		if i > 0 {
			text.WriteString(", ")
		}
		fmt.Fprintf(&text, "%.60q", name)
	}
	what := "is not known: say what it means with"
	if len(names) > 1 {
		what = "are not known: say what each means with"
	}
	return stele.Messagef("import.columns-unknown", "{columns} {problem} --map, as in --map {example}; --map {example-ignored} passes a column over, and --map '*=meta' makes metadata of all of them. Known are {fields}",
		text.String(), what, quoted(names[0]+"="+meta+cmpOr(slug(names[0]), "x")), quoted(names[0]+"="+Ignored), strings.Join(Fields(), ", "))
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// quoted returns a text as it is written in a shell.
func quoted(text string) string {
	if strings.ContainsAny(text, " \t'\"*?$&;|<>()\\`!#") {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return text
}

// slug returns a column's name as the name of a field of metadata; "" if nothing is left
// of it.
func slug(cell string) string {
	var b strings.Builder
	for _, r := range plain(cell) {
		switch {
		case r >= 'a' && r <= 'z', b.Len() > 0 && (r >= '0' && r <= '9' || r == '.'):
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() == 60 {
			break
		}
	}
	return strings.Trim(b.String(), "-.")
}

// Delimiter returns what separates the cells of a header: the most frequent of comma,
// semicolon and tab outside quotation marks; 0 if there is none.
func Delimiter(line []byte) byte {
	count := make(map[byte]int)
	inside := false
	for _, c := range line {
		switch {
		case c == '\n' && !inside:
			line = nil
		case c == '"':
			inside = !inside
		case !inside && (c == ',' || c == ';' || c == '\t'):
			count[c]++
		}
		if line == nil {
			break
		}
	}
	best := byte(0)
	for _, c := range []byte(",;\t") {
		if count[c] > count[best] {
			best = c
		}
	}
	return best
}

// Separator reads the line with which Excel says what separates cells, sep=; for
// example. It is 0 if the line is another one.
func Separator(line []byte) byte {
	text := strings.Trim(strings.TrimSpace(string(TrimEnd(line))), `"`)
	if len(text) >= 4 && strings.EqualFold(text[:4], "sep=") {
		switch rest := text[4:]; rest {
		case ",", ";":
			return rest[0]
		case "", "\t": // a tab at the end was trimmed
			return '\t'
		}
	}
	return 0
}

// IsHeader reports whether cells look like a header: one of them names the identifier.
func IsHeader(cells []string) bool {
	return slices.ContainsFunc(cells, func(c string) bool {
		field, _ := fieldOf(c)
		return field == "id"
	})
}

var errNotUTF8 = stele.Messagef("row.text-not-utf8", "is not UTF-8")
