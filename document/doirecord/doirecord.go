// Package doirecord says what a record is to the agencies that register DOIs: it makes a record of what DataCite and Crossref
// say of a DOI, and the attributes that DataCite's REST API has of a record.
//
// What describes the thing goes to the fields that every part of the registry knows:
//
//	DataCite                          Crossref (XML; JSON)                     field
//	creators                          contributors; author                     who, "Family, Given (https://orcid.org/...)"
//	titles, the first                 titles/title; title                      what
//	dates: Issued, publicationYear    publication_date; issued                 when
//	types                             the element of the work; type            type, such as Dataset/Weather data
//	publisher                         publisher/publisher_name; publisher      publisher
//	contributors                      contributors that are not authors        contributor
//	descriptions: Abstract            abstract                                 description
//	rightsList, the first             program/license_ref; license             license and rights
//	container                         journal, series; container-title         journal, volume, issue, pages
//	language, version, subjects       language; subject                        language, version, subject
//
// An attribute that these fields do not say as it was is kept too, under the name of its source in small letters:
// datacite.relatedidentifiers, crossref.isbn. Its value is text, or JSON if it is not text. A value that is longer than a field
// may be continues in fields with numbers: datacite.creators.2. DataCite's XML is in the field datacite, as EZID has it, or in
// base64 in datacite.xml if it does not fit there.
//
// It computes: no request, no store, no clock.
package doirecord

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
)

// The sources, as fields begin with them.
const (
	DataCite = "datacite"
	Crossref = "crossref"
)

const (
	op     = "read a DOI"
	others = "; et al." // follows creators of which not all fit
)

func refuse(code, text string, args ...any) error {
	return stele.Errorf(op, stele.ID{}, stele.Invalid, code, text, args...)
}

// agent is a person or an organisation that took part.
type agent struct {
	name, family, given, orcid string
}

const orcidHost = "https://orcid.org/"

// text returns an agent as the field who has it. A semicolon would begin another one.
func (a *agent) text() string {
	name := a.name
	if a.family != "" && a.given != "" {
		name = a.family + ", " + a.given
	} else if name == "" {
		name = a.family + a.given
	}
	name = strings.ReplaceAll(oneLine(name), ";", ",")
	if a.orcid != "" && name != "" {
		name += " (" + orcidHost + a.orcid + ")"
	}
	return name
}

// parseAgents reads the field who or contributor.
func parseAgents(field string) (list []agent) {
	for item := range strings.SplitSeq(field, ";") {
		if item = oneLine(item); item == "" || item == "et al." {
			continue
		}
		a := agent{name: item}
		if before, url, ok := strings.Cut(item, " ("+orcidHost); ok {
			if id, ok := strings.CutSuffix(url, ")"); ok && isORCID(id) {
				a.name, a.orcid = before, id
			}
		}
		family, given, ok := strings.Cut(a.name, ", ")
		if ok && family != "" && given != "" && !strings.Contains(given, ",") {
			a.family, a.given = family, given
		}
		list = append(list, a)
	}
	return list
}

// orcid returns the number of an ORCID, which may be a URL; "" if it is not one.
func orcid(text string) string {
	text = strings.TrimSpace(text)
	if i := strings.LastIndexByte(text, '/'); i >= 0 {
		text = text[i+1:]
	}
	if !isORCID(text) {
		return ""
	}
	return text
}

// isORCID reports whether a text is four groups of four digits, of which the last may be an X.
func isORCID(text string) bool {
	if len(text) != 19 {
		return false
	}
	for i := range 19 {
		c := text[i]
		switch {
		case i%5 == 4 && c == '-', i%5 != 4 && '0' <= c && c <= '9', i == 18 && c == 'X':
		default:
			return false
		}
	}
	return true
}

// oneLine returns a text with single spaces.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// filler fills a record.
type filler struct {
	rec    *stele.Record
	source string
	other  map[string]any // attributes whose names can't be those of fields
}

// set gives a field a value, unless it is empty: without characters that no field may have, and not longer than a field may be.
// The caller keeps the original, if that makes a difference.
func (f *filler) set(name, value string) {
	if value = fitting(prose(value)); value != "" {
		f.rec.Metadata[name] = value
	}
}

// setAgents gives a field names. If they do not all fit, it ends with "et al.".
func (f *filler) setAgents(name string, list []agent) {
	var b strings.Builder
	for i := range list {
		text := prose(list[i].text())
		if text == "" {
			continue
		}
		if b.Len()+len(text)+2 > stele.MaxProse-len(others) {
			b.WriteString(others)
			break
		}
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		b.WriteString(text)
	}
	f.set(name, b.String())
}

// prose returns a text with characters that a field may have.
func prose(text string) string {
	text = strings.TrimSpace(text)
	if isProse(text) {
		return text
	}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if isBad(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

func isProse(text string) bool {
	for i := range len(text) {
		if c := text[i]; c >= utf8.RuneSelf || isBad(rune(c)) {
			return utf8.ValidString(text) && strings.IndexFunc(text[i:], isBad) < 0
		}
	}
	return true
}

func isBad(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == 0x202d || r == 0x202e
}

// fitting returns as much of a text as fits in a field.
func fitting(text string) string {
	const more = " [...]"
	if len(text) <= stele.MaxProse {
		return text
	}
	return text[:cutAt(text, stele.MaxProse-len(more))] + more
}

// cutAt returns where to cut a text that is longer than n bytes: before a character.
func cutAt(text string, n int) int {
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

// keep keeps an attribute under the name of its source.
func (f *filler) keep(name string, value any) {
	key := f.source + "." + strings.ToLower(name)
	if !stele.IsField(key) || len(key) > 56 { // room for a number
		if f.other == nil {
			f.other = make(map[string]any)
		}
		f.other[name] = value
		return
	}
	f.keepAs(key, value)
}

// keepOther keeps the attributes that have no field of their own.
func (f *filler) keepOther() {
	if f.other != nil {
		f.keepAs(f.source+"."+otherName, f.other)
	}
}

// otherName is what follows the source in the name of the field that has them.
const otherName = "other"

func (f *filler) keepAs(key string, value any) {
	text := keptText(value)
	for n := 1; text != ""; n++ {
		at := key
		if n > 1 {
			at += "." + strconv.Itoa(n)
		}
		if _, taken := f.rec.Metadata[at]; taken {
			continue
		}
		end := len(text)
		if end > stele.MaxProse {
			end = cutAt(text, stele.MaxProse)
		}
		f.rec.Metadata[at], text = text[:end], text[end:]
	}
}

// keptText returns a value as a field has it: text as it is, if it can't be taken for JSON, or else JSON. A number is its text.
func keptText(value any) string {
	if text, ok := value.(string); ok && isProse(text) && text == strings.TrimSpace(text) {
		if _, is := keptJSON(text); !is {
			return text
		}
	}
	text := string(document.AppendTree(nil, value))
	if isProse(text) && !strings.ContainsFunc(text, isSeparator) {
		return text
	}
	var plain strings.Builder
	for _, r := range text {
		if isBad(r) || isSeparator(r) {
			fmt.Fprintf(&plain, `\u%04x`, r)
		} else {
			plain.WriteRune(r)
		}
	}
	return plain.String()
}

// isSeparator reports whether a character ends lines in programs that take JSON for JavaScript. [encoding/json] writes these as escapes, and
// so do the fields of records.
func isSeparator(r rune) bool { return r == '\u2028' || r == '\u2029' }

// keptJSON returns the value of a field that has JSON.
func keptJSON(text string) (any, bool) {
	if text == "" || !strings.ContainsRune(`{["`, rune(text[0])) {
		return nil, false
	}
	v, err := document.ReadTree([]byte(text))
	return v, err == nil
}

// joined returns the text of a field with those that continue it; "" if there is none.
func joined(m stele.Metadata, key string) string {
	text := m[key]
	if len(text) < stele.MaxProse-utf8.UTFMax { // only a full field is continued
		return text
	}
	for n := 2; m[key+"."+strconv.Itoa(n)] != ""; n++ {
		text += m[key+"."+strconv.Itoa(n)]
	}
	return text
}

// textOf returns a value that is text, or a number or a word that others wrote in its place.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// get returns a member of an object as text.
func get(v any, name string) string {
	object, _ := v.(map[string]any)
	return textOf(object[name])
}

// items returns the items of a list; a value that is not a list is one item.
func items(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	}
	return []any{v}
}

// isEmpty reports whether a value says nothing.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return strings.TrimSpace(v) == ""
	case []any:
		for _, item := range v {
			if !isEmpty(item) {
				return false
			}
		}
		return true
	case map[string]any:
		for _, item := range v {
			if !isEmpty(item) {
				return false
			}
		}
		return true
	}
	return false
}

// same reports whether two values say the same: members that say nothing do not count, and a number is the same as its text.
func same(a, b any) bool {
	if isEmpty(a) || isEmpty(b) {
		return isEmpty(a) && isEmpty(b)
	}
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			return false
		}
		for name, v := range a {
			if !same(v, b[name]) {
				return false
			}
		}
		for name, v := range b {
			if _, has := a[name]; !has && !isEmpty(v) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !same(a[i], b[i]) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return textOf(a) == textOf(b)
}

// moment reads a time; the zero time if it is not one.
func moment(text string) time.Time {
	if text = strings.TrimSpace(text); text == "" { // as most works of Crossref have it: an attempt costs as much as a time
		return time.Time{}
	}
	for _, layout := range [...]string{time.RFC3339Nano, "2006-01-02 15:04:05 MST", "2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil && t.Year() > 0 {
			return t.UTC()
		}
	}
	return time.Time{}
}

// yearOf returns the year that a date of ISO 8601 begins with; "" if it begins with something else.
func yearOf(date string) string {
	if len(date) < 4 || len(date) > 4 && date[4] != '-' {
		return ""
	}
	if n, err := strconv.Atoi(date[:4]); err != nil || n < 1 {
		return ""
	}
	return date[:4]
}

// newRecord begins the record of a DOI.
func newRecord(schemes *stele.Schemes, doi string) (*stele.Record, error) {
	doi = strings.TrimSpace(doi)
	if doi == "" {
		return nil, refuse("doi.missing", "there is no DOI")
	}
	text := doi
	if len(doi) < 4 || !strings.EqualFold(doi[:4], "doi:") && !strings.Contains(doi, "://") {
		text = doiMark + doi
	}
	id, err := schemes.Parse(text)
	if err != nil {
		return nil, err
	}
	rec := &stele.Record{ID: id, State: stele.Active, Metadata: make(stele.Metadata)}
	if name := bareDOI(doi); name != id.String() { // case does not count, but owners have theirs
		own := doiMark + name
		if same, err := schemes.Parse(own); err == nil && same == id { // in a URL it may be encoded
			rec.Spelling = own
		}
	}
	return rec, nil
}

const doiMark = "doi:"

// bareDOI returns a DOI without what stands before it.
func bareDOI(text string) string {
	text = strings.TrimSpace(text)
	if i := strings.Index(text, "://"); i >= 0 {
		if _, path, ok := strings.Cut(text[i+3:], "/"); ok {
			return path
		}
	}
	if len(text) > 4 && strings.EqualFold(text[:4], doiMark) {
		return text[4:]
	}
	return text
}

// addTarget adds a location, after those that are there.
func addTarget(rec *stele.Record, url, kind string) {
	url = strings.TrimSpace(url)
	for i := range rec.Targets {
		if rec.Targets[i].URL == url {
			return
		}
	}
	if url != "" {
		order := min(stele.DefaultOrder+len(rec.Targets), 1<<16-1)
		rec.Targets = append(rec.Targets, stele.Target{Service: stele.N2L, URL: url, Type: kind, Order: uint16(order), Preference: stele.DefaultPreference})
	}
}
