package doirecord

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
)

// Work is what a deposit to Crossref says of a DOI.
type Work struct {
	DOI       string
	Places    []Place // the first is the page of the work
	Title     string
	Authors   []Contributor
	Others    []Contributor
	Date      string // 2019, 2019-05 or 2019-05-17
	Publisher string
	Kind      string // the name of its element, or the type in JSON
	Specific  string // what more is said of the kind
	Journal   string // or another container
	Volume    string
	Issue     string
	Pages     string
	Abstract  string
	License   string
	Language  string
	Created   string
	Updated   string
	Kept      map[string]any // what else is kept, by the names of fields after crossref.
	XML       string         // all that is said
}

// Place is where a work is.
type Place struct{ URL, Type string }

// Contributor is a person or an organisation that took part in a work.
type Contributor struct{ Name, Family, Given, ORCID string }

// crossrefTypes are the general types of DataCite's for Crossref's kinds of works, in XML and in JSON.
var crossrefTypes = map[string]string{
	"journal_article": "JournalArticle", "journal-article": "JournalArticle", "journal_metadata": "Journal", "journal": "Journal",
	"book_metadata": "Book", "book": "Book", "monograph": "Book", "edited-book": "Book", "reference-book": "Book", "book_set_metadata": "Book",
	"content_item": "BookChapter", "book-chapter": "BookChapter", "book-section": "BookChapter", "book-part": "BookChapter",
	"conference_paper": "ConferencePaper", "proceedings-article": "ConferencePaper",
	"proceedings_metadata": "ConferenceProceeding", "proceedings": "ConferenceProceeding", "proceedings_series_metadata": "ConferenceProceeding",
	"dataset": "Dataset", "database_metadata": "Collection", "database": "Collection", "dissertation": "Dissertation",
	"report-paper_metadata": "Report", "report": "Report", "standard_metadata": "Standard", "standard": "Standard",
	"posted_content": "Preprint", "posted-content": "Preprint", "peer_review": "PeerReview", "peer-review": "PeerReview",
}

// Record makes a record of a work.
func (w *Work) Record(schemes *stele.Schemes) (*stele.Record, error) {
	rec, err := newRecord(schemes, w.DOI)
	if err != nil {
		return nil, err
	}
	f := &filler{rec: rec, source: Crossref}
	for _, p := range w.Places {
		addTarget(rec, p.URL, mediaType(p.Type))
	}
	f.setAgents(stele.Who, contributors(w.Authors))
	f.setAgents("contributor", contributors(w.Others))
	f.set(stele.What, oneLine(w.Title))
	f.set(stele.When, w.Date)
	f.set("publisher", oneLine(w.Publisher))
	general, specific := crossrefTypes[w.Kind], w.Specific
	if general == "" {
		general, specific = "Other", cmp.Or(specific, strings.ReplaceAll(w.Kind, "_", " "))
	}
	f.set("type", typeText(general, specific))
	f.set("journal", oneLine(w.Journal))
	f.set("volume", w.Volume)
	f.set("issue", w.Issue)
	f.set("pages", w.Pages)
	f.set("description", w.Abstract)
	f.set("license", w.License)
	f.set("language", w.Language)
	for name, v := range w.Kept {
		if !isEmpty(v) {
			f.keep(name, v)
		}
	}
	f.keepOther()
	switch {
	case w.XML == "":
	case len(w.XML) <= stele.MaxProse && isProse(w.XML):
		rec.Metadata[Crossref] = w.XML
	default:
		f.keep("xml", w.XML)
	}
	rec.Created, rec.Modified = moment(w.Created), moment(w.Updated)
	if rec.Created.IsZero() {
		rec.Created = rec.Modified
	}
	if rec.Modified.Before(rec.Created) {
		rec.Modified = rec.Created
	}
	return rec, nil
}

func contributors(list []Contributor) []agent {
	agents := make([]agent, len(list))
	for i, c := range list {
		agents[i] = agent{c.Name, c.Family, c.Given, orcid(c.ORCID)}
	}
	return agents
}

// FromCrossref makes a record of a work in JSON, as Crossref's REST API and its public data file have it.
func FromCrossref(schemes *stele.Schemes, text []byte) (*stele.Record, error) {
	tree, err := document.ReadTree(text)
	if err != nil {
		return nil, err
	}
	a, ok := tree.(map[string]any)
	if !ok {
		return nil, refuse("crossref.not-an-object", "it is not an object in JSON; give a work of Crossref's REST API")
	}
	first := func(name string) string {
		list := items(a[name])
		if len(list) == 0 {
			return ""
		}
		return textOf(list[0])
	}
	w := Work{
		DOI: textOf(a["DOI"]), Title: first("title"), Publisher: textOf(a["publisher"]), Kind: textOf(a["type"]), Specific: textOf(a["subtype"]),
		Journal: first("container-title"), Volume: textOf(a["volume"]), Issue: textOf(a["issue"]), Pages: textOf(a["page"]),
		Abstract: withoutTags(textOf(a["abstract"])), Language: textOf(a["language"]), Date: dateParts(a["issued"]),
		Created: get(a["created"], "date-time"), Updated: cmp.Or(get(a["deposited"], "date-time"), get(a["indexed"], "date-time")),
		Kept: make(map[string]any),
	}
	if resource, ok := a["resource"].(map[string]any); ok {
		w.Places = append(w.Places, Place{URL: get(resource["primary"], "URL")})
	} else if url := textOf(a["URL"]); !strings.EqualFold(bareDOI(url), w.DOI) { // a DOI does not lead to itself
		w.Places = append(w.Places, Place{URL: url})
	}
	for _, v := range items(a["link"]) {
		kind := get(v, "content-type")
		if kind == "unspecified" {
			kind = ""
		}
		w.Places = append(w.Places, Place{get(v, "URL"), kind})
	}
	for _, v := range items(a["author"]) {
		w.Authors = append(w.Authors, Contributor{get(v, "name"), get(v, "family"), get(v, "given"), get(v, "ORCID")})
	}
	for _, v := range items(a["editor"]) {
		w.Others = append(w.Others, Contributor{get(v, "name"), get(v, "family"), get(v, "given"), get(v, "ORCID")})
	}
	if list := items(a["license"]); len(list) > 0 {
		w.License = get(list[0], "URL")
	}
	for name, v := range a {
		if !w.says(name, v) {
			w.Kept[name] = v
		}
	}
	return w.Record(schemes)
}

// says reports whether a record says all that a member does.
func (w *Work) says(name string, v any) bool {
	switch name {
	case "DOI", "publisher", "volume", "issue", "page", "language":
		return true
	case "title", "container-title":
		return len(items(v)) < 2
	case "URL":
		return strings.EqualFold(bareDOI(textOf(v)), w.DOI)
	case "prefix":
		return strings.HasPrefix(w.DOI, textOf(v)+"/")
	case "resource":
		return len(w.Places) > 0 && same(v, map[string]any{"primary": map[string]any{"URL": w.Places[0].URL}})
	}
	n, ok := v.(json.Number)
	return ok && n == "0" && strings.HasSuffix(name, "-count")
}

// dateParts reads a date of CSL-JSON: {"date-parts":[[2019,5,17]]}.
func dateParts(v any) string {
	object, _ := v.(map[string]any)
	list := items(object["date-parts"])
	if len(list) == 0 {
		return ""
	}
	parts := make([]string, 3)
	for i, n := range items(list[0]) {
		if i < 3 {
			parts[i] = textOf(n)
		}
	}
	return ISODate(parts[0], parts[1], parts[2])
}

// ISODate returns a date of ISO 8601: its year, with the month and the day if they are known; "" if the year is not.
func ISODate(year, month, day string) string {
	pad := func(text string, most string) string {
		if text = strings.TrimSpace(text); len(text) == 1 {
			text = "0" + text
		}
		if len(text) != 2 || text < "01" || text > most || text[1] < '0' || text[1] > '9' {
			return "" // a season, for instance, is 21 to 34
		}
		return text
	}
	if year = strings.TrimSpace(year); len(year) != 4 || yearOf(year) == "" {
		return ""
	}
	if month = pad(month, "12"); month == "" {
		return year
	}
	if day = pad(day, "31"); day == "" {
		return year + "-" + month
	}
	return year + "-" + month + "-" + day
}

// withoutTags returns the text of a small piece of XML, as abstracts are.
func withoutTags(text string) string {
	if text == "" {
		return ""
	}
	var b strings.Builder
	for text != "" {
		before, rest, ok := strings.Cut(text, "<")
		b.WriteString(before)
		if !ok {
			break
		}
		b.WriteByte(' ')
		if _, text, ok = strings.Cut(rest, ">"); !ok {
			break
		}
	}
	return oneLine(entities.Replace(b.String()))
}

// entities are those that XML has by itself (XML 1.0, section 4.6).
var entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&apos;", "'", "&amp;", "&")
