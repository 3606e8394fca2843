package describe

import (
	"slices"
	"time"

	"github.com/stele-id/stele"
)

// vocabulary is what a prefix of terms stands for.
type vocabulary struct{ prefix, uri string }

// dublinCore is a vocabulary that all documents declare which can.
var dublinCore = vocabulary{"dcterms", "http://purl.org/dc/terms/"}

// vocabularies returns those beside schema.org and Dublin Core of which a description has terms.
func (f *facts) vocabularies() (list []vocabulary) {
	if f.subject.About != "" {
		list = append(list, vocabulary{"owl", "http://www.w3.org/2002/07/owl#"})
	}
	for _, s := range f.subject.Also {
		if v := (vocabulary{s.Prefix, s.Vocabulary}); !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// node is a thing in a graph that speaks schema.org. JSON-LD and Turtle write the
// same graph.
type node struct {
	id    string // a URL; "" for a thing without one
	class string // of schema.org; "" says nothing
	props []prop
}

// prop is a property with its values, of which there is at least one. Its name is
// schema.org's, unless a prefix stands before it.
type prop struct {
	name   string
	values []value
}

// value is a text, or what its sort says.
type value struct {
	sort sort
	text string
	node *node
}

type sort uint8

const (
	isText sort = iota
	isURL
	isDate
	isNode
)

// add adds values to the node, if there are any.
func (n *node) add(name string, values ...value) {
	if len(values) > 0 {
		n.props = append(n.props, prop{name, values})
	}
}

// text adds a text, unless it is empty.
func (n *node) text(name, text string) {
	if text != "" {
		n.add(name, value{text: text})
	}
}

// url adds a URL, unless it is empty.
func (n *node) url(name, url string) {
	if url != "" {
		n.add(name, value{sort: isURL, text: url})
	}
}

// date adds a date, unless it is empty.
func (n *node) date(name, iso string) {
	if iso != "" {
		n.add(name, value{sort: isDate, text: iso})
	}
}

// day returns the date of t; "" if there is none.
func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateOnly)
}

// graph returns what schema.org can say of the record. It leaves metadata without a term in
// schema.org to other formats.
func (f *facts) graph() *node {
	n := &node{id: f.self, class: f.kind.schema}
	if about := f.subject.About; about != "" && about != f.self {
		n.id = encode(about)
		n.url("owl:sameAs", f.self)
	}
	n.url("additionalType", f.kind.url)
	n.add("identifier", f.identifiers()...)
	n.text("name", f.title)
	n.add("creator", people(f.creators)...)
	n.add("contributor", people(f.helpers)...)
	n.date("datePublished", f.date.iso)
	if f.date.iso == "" {
		n.text("dcterms:date", f.when) // schema.org's dates are of the calendar
	}
	n.text("description", f.description)
	n.add("publisher", named("Organization", f.publisher)...)
	n.text("inLanguage", f.language)
	n.add("license", f.licenses()...)
	n.text("copyrightNotice", f.rights)
	n.add("keywords", texts(f.subjects)...)
	n.text("version", f.version)
	n.add("isPartOf", named("Periodical", f.journal)...)
	n.text("volumeNumber", f.volume)
	n.text("issueNumber", f.issue)
	n.text("pagination", f.pages)
	f.addTargets(n)
	for _, alias := range f.names[1:] {
		n.url("sameAs", alias.url)
	}
	f.addTombstone(n)
	if !f.record.Redacted {
		for _, s := range f.subject.Also {
			n.text(s.Prefix+":"+s.Term, clean(s.Text))
		}
	}
	n.date("sdDatePublished", day(f.record.Modified))
	return n.joined()
}

// joined puts the values of properties that were added several times together.
func (n *node) joined() *node {
	var props []prop
	at := make(map[string]int)
	for _, p := range n.props {
		if i, ok := at[p.name]; ok {
			props[i].values = append(props[i].values, p.values...)
			continue
		}
		at[p.name] = len(props)
		props = append(props, p)
	}
	n.props = props
	return n
}

// identifiers returns all names of the record.
func (f *facts) identifiers() (values []value) {
	for _, name := range f.names {
		n := &node{class: "PropertyValue"}
		n.text("propertyID", name.scheme)
		n.text("value", name.text)
		n.url("url", name.url)
		values = append(values, value{sort: isNode, node: n})
	}
	return values
}

func people(agents []agent) (values []value) {
	for i := range agents {
		a := &agents[i]
		n := &node{id: a.url}
		if a.isPerson() {
			n.class = "Person"
		}
		n.text("name", a.name)
		n.text("familyName", a.family)
		n.text("givenName", a.given)
		values = append(values, value{sort: isNode, node: n})
	}
	return values
}

// named returns a thing that has only a name, or nothing.
func named(class, text string) []value {
	if text == "" {
		return nil
	}
	n := &node{class: class}
	n.text("name", text)
	return []value{{sort: isNode, node: n}}
}

func texts(list []string) (values []value) {
	for _, text := range list {
		values = append(values, value{text: text})
	}
	return values
}

// licenses returns the license: schema.org wants a URL or a work.
func (f *facts) licenses() []value {
	if url, ok := webURL(f.license); ok {
		return []value{{sort: isURL, text: url}}
	}
	return named("CreativeWork", f.license)
}

// addTargets says where the thing and its descriptions are.
func (f *facts) addTargets(n *node) {
	things := f.of(stele.N2L)
	for _, t := range things {
		if _, ok := webURL(t.URL); ok {
			n.url("url", t.URL)
			break
		}
	}
	for _, t := range things {
		m := &node{class: "MediaObject"}
		m.url("contentUrl", t.URL)
		m.text("encodingFormat", t.Type)
		m.text("inLanguage", t.Language)
		n.add("encoding", value{sort: isNode, node: m})
	}
	for _, t := range f.of(stele.N2C) {
		m := &node{class: "DigitalDocument"}
		m.url("url", t.URL)
		m.text("encodingFormat", t.Type)
		m.text("inLanguage", t.Language)
		n.add("subjectOf", value{sort: isNode, node: m})
	}
}

// addTombstone says that the thing is gone. Only Dublin Core, and not schema.org, has a term
// for what replaces it.
func (f *facts) addTombstone(n *node) {
	t := f.tombstone
	if t == nil {
		return
	}
	n.text("creativeWorkStatus", "Withdrawn")
	n.date("expires", day(t.at))
	if t.reason != "" {
		c := &node{class: "Comment"}
		c.text("text", t.reason)
		c.date("dateCreated", day(t.at))
		n.add("comment", value{sort: isNode, node: c})
	}
	n.url("dcterms:isReplacedBy", t.replacement.url)
}
