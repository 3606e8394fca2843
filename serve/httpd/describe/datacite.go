package describe

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"strconv"
	"strings"
)

// The DataCite Metadata Schema, version 4. What it requires and the record does not say is
// written as its appendix 3 says that it is not known: (:unav). The year is then that of the
// registration.

const (
	dataciteSpace  = "http://datacite.org/schema/kernel-4"
	dataciteSchema = dataciteSpace + " https://schema.datacite.org/meta/kernel-4.4/metadata.xsd"
)

type dataciteResource struct {
	XMLName    xml.Name `xml:"resource" json:"-"`
	Space      string   `xml:"xmlns,attr" json:"-"`
	Instance   string   `xml:"xmlns:xsi,attr" json:"-"`
	Location   string   `xml:"xsi:schemaLocation,attr" json:"-"`
	Persistent string   `xml:"-" json:"id"`
	DOI        string   `xml:"-" json:"doi,omitempty"`
	URL        string   `xml:"-" json:"url"`

	Identifier   dataciteIdentifier    `xml:"identifier" json:"-"`
	Creators     []dataciteName        `xml:"creators>creator" json:"creators"`
	Titles       []dataciteTitle       `xml:"titles>title" json:"titles"`
	Publisher    string                `xml:"publisher" json:"publisher"`
	Year         int                   `xml:"publicationYear" json:"publicationYear"`
	Type         dataciteType          `xml:"resourceType" json:"types"`
	Subjects     *dataciteSubjects     `xml:"subjects,omitempty" json:"-"`
	SubjectList  []dataciteSubject     `xml:"-" json:"subjects,omitempty"`
	Contributors *dataciteContributors `xml:"contributors,omitempty" json:"-"`
	Helpers      []dataciteName        `xml:"-" json:"contributors,omitempty"`
	Dates        *dataciteDates        `xml:"dates,omitempty" json:"-"`
	DateList     []dataciteDate        `xml:"-" json:"dates,omitempty"`
	Language     string                `xml:"language,omitempty" json:"language,omitempty"`
	Alternates   *dataciteAlternates   `xml:"alternateIdentifiers,omitempty" json:"-"`
	Identifiers  []dataciteAlternate   `xml:"-" json:"identifiers,omitempty"`
	Version      string                `xml:"version,omitempty" json:"version,omitempty"`
	Rights       *dataciteRightsList   `xml:"rightsList,omitempty" json:"-"`
	RightsList   []dataciteRights      `xml:"-" json:"rightsList,omitempty"`
	Descriptions *dataciteDescriptions `xml:"descriptions,omitempty" json:"-"`
	About        []dataciteDescription `xml:"-" json:"descriptions,omitempty"`
	Related      *dataciteRelated      `xml:"relatedItems,omitempty" json:"-"`
	Container    *dataciteContainer    `xml:"-" json:"container,omitempty"`
	Schema       string                `xml:"-" json:"schemaVersion"`
}

type (
	dataciteIdentifier struct {
		Type string `xml:"identifierType,attr"`
		Text string `xml:",chardata"`
	}
	dataciteName struct {
		Role        string          `xml:"contributorType,attr,omitempty" json:"contributorType,omitempty"`
		Creator     *datacitePerson `xml:"creatorName" json:"-"`
		Contributor *datacitePerson `xml:"contributorName" json:"-"`
		Name        string          `xml:"-" json:"name"`
		NameType    string          `xml:"-" json:"nameType,omitempty"`
		Given       string          `xml:"givenName,omitempty" json:"givenName,omitempty"`
		Family      string          `xml:"familyName,omitempty" json:"familyName,omitempty"`
		Identifier  *dataciteORCID  `xml:"nameIdentifier" json:"-"`
		Identifiers []dataciteORCID `xml:"-" json:"nameIdentifiers,omitempty"`
	}
	datacitePerson struct {
		Type string `xml:"nameType,attr,omitempty"`
		Text string `xml:",chardata"`
	}
	dataciteORCID struct {
		Scheme string `xml:"nameIdentifierScheme,attr" json:"nameIdentifierScheme"`
		URI    string `xml:"schemeURI,attr" json:"schemeUri"`
		Text   string `xml:",chardata" json:"nameIdentifier"`
	}
	dataciteTitle struct {
		Text string `xml:",chardata" json:"title"`
	}
	dataciteType struct {
		General string `xml:"resourceTypeGeneral,attr" json:"resourceTypeGeneral"`
		Text    string `xml:",chardata" json:"resourceType,omitempty"`
		Schema  string `xml:"-" json:"schemaOrg"`
		CSL     string `xml:"-" json:"citeproc"`
		BibTeX  string `xml:"-" json:"bibtex"`
		RIS     string `xml:"-" json:"ris"`
	}
	dataciteSubjects struct {
		List []dataciteSubject `xml:"subject"`
	}
	dataciteSubject struct {
		Text string `xml:",chardata" json:"subject"`
	}
	dataciteContributors struct {
		List []dataciteName `xml:"contributor"`
	}
	dataciteDates struct {
		List []dataciteDate `xml:"date"`
	}
	dataciteDate struct {
		Type string `xml:"dateType,attr" json:"dateType"`
		Info string `xml:"dateInformation,attr,omitempty" json:"dateInformation,omitempty"`
		Text string `xml:",chardata" json:"date"`
	}
	dataciteAlternates struct {
		List []dataciteAlternate `xml:"alternateIdentifier"`
	}
	dataciteAlternate struct {
		Type string `xml:"alternateIdentifierType,attr" json:"identifierType"`
		Text string `xml:",chardata" json:"identifier"`
	}
	dataciteRightsList struct {
		List []dataciteRights `xml:"rights"`
	}
	dataciteRights struct {
		URI  string `xml:"rightsURI,attr,omitempty" json:"rightsUri,omitempty"`
		Text string `xml:",chardata" json:"rights,omitempty"`
	}
	dataciteDescriptions struct {
		List []dataciteDescription `xml:"description"`
	}
	dataciteDescription struct {
		Type string `xml:"descriptionType,attr" json:"descriptionType"`
		Text string `xml:",chardata" json:"description"`
	}
	dataciteRelated struct {
		Item dataciteItem `xml:"relatedItem"`
	}
	dataciteItem struct {
		Type     string          `xml:"relatedItemType,attr"`
		Relation string          `xml:"relationType,attr"`
		Titles   []dataciteTitle `xml:"titles>title"`
		Volume   string          `xml:"volume,omitempty"`
		Issue    string          `xml:"issue,omitempty"`
		First    string          `xml:"firstPage,omitempty"`
		Last     string          `xml:"lastPage,omitempty"`
	}
	dataciteContainer struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Volume string `json:"volume,omitempty"`
		Issue  string `json:"issue,omitempty"`
		First  string `json:"firstPage,omitempty"`
		Last   string `json:"lastPage,omitempty"`
	}
)

// datacite returns the record in the words of the schema.
func (f *facts) datacite() *dataciteResource {
	r := &dataciteResource{
		Space: dataciteSpace, Instance: "http://www.w3.org/2001/XMLSchema-instance", Location: dataciteSchema,
		Persistent: f.citedURL(), DOI: f.doi(), URL: f.self, Schema: dataciteSpace,
		Titles:    []dataciteTitle{{cmp.Or(f.title, unavailable)}},
		Publisher: cmp.Or(f.publisher, unavailable),
		Year:      cmp.Or(f.date.year, max(f.record.Created.UTC().Year(), 1000)),
		Type:      dataciteType{General: f.kind.datacite, Text: f.kind.specific, Schema: f.kind.schema, CSL: f.kind.csl, BibTeX: f.kind.bibtex, RIS: f.kind.ris},
		Language:  f.language, Version: f.version,
	}
	f.dataciteNames(r)
	f.dataciteIdentifiers(r)
	for _, text := range f.subjects {
		r.SubjectList = append(r.SubjectList, dataciteSubject{text})
	}
	switch {
	case f.date.iso != "":
		r.DateList = []dataciteDate{{Type: "Issued", Text: f.date.iso}}
	case f.when != "":
		r.DateList = []dataciteDate{{Type: "Other", Info: "as its owner wrote it", Text: f.when}}
	}
	if url, ok := webURL(f.license); ok {
		r.RightsList = append(r.RightsList, dataciteRights{URI: url, Text: f.rights})
	} else if text := cmp.Or(f.license, f.rights); text != "" {
		r.RightsList = append(r.RightsList, dataciteRights{Text: text})
	}
	if f.description != "" {
		r.About = append(r.About, dataciteDescription{"Abstract", f.description})
	}
	if f.tombstone != nil {
		r.About = append(r.About, dataciteDescription{"Other", f.tombstone.note()})
	}
	if f.journal != "" {
		first, last := f.firstLast()
		r.Container = &dataciteContainer{Type: "Journal", Title: f.journal, Volume: f.volume, Issue: f.issue, First: first, Last: last}
		if f.kind.csl == "chapter" {
			r.Container.Type = "Book"
		}
	}
	return r
}

func (f *facts) dataciteNames(r *dataciteResource) {
	for i := range f.creators {
		n, person := f.creators[i].datacite()
		n.Creator = person
		r.Creators = append(r.Creators, n)
	}
	if len(r.Creators) == 0 {
		r.Creators = []dataciteName{{Creator: &datacitePerson{Text: unavailable}, Name: unavailable}}
	}
	for i := range f.helpers {
		n, person := f.helpers[i].datacite()
		n.Role, n.Contributor = "Other", person
		r.Helpers = append(r.Helpers, n)
	}
}

func (a *agent) datacite() (n dataciteName, person *datacitePerson) {
	n = dataciteName{Name: a.name, Given: a.given, Family: a.family}
	if a.isPerson() {
		n.NameType = "Personal"
	}
	if orcid, ok := strings.CutPrefix(a.url, orcidHost); ok {
		n.Identifier = &dataciteORCID{"ORCID", strings.TrimSuffix(orcidHost, "/"), orcidHost + orcid}
		n.Identifiers = []dataciteORCID{*n.Identifier}
	}
	return n, &datacitePerson{n.NameType, a.name}
}

// dataciteIdentifiers writes the DOI or else the name of the record as its identifier, and
// the other names as alternate ones.
func (f *facts) dataciteIdentifiers(r *dataciteResource) {
	doi := f.doi()
	if doi != "" {
		r.Identifier = dataciteIdentifier{"DOI", doi}
	}
	for i, name := range f.names {
		switch {
		case i == 0 && doi == "":
			r.Identifier = dataciteIdentifier{strings.ToUpper(name.scheme), name.text}
		case !strings.EqualFold(name.text, doi):
			r.Identifiers = append(r.Identifiers, dataciteAlternate{strings.ToUpper(name.scheme), name.text})
		}
	}
}

func appendDataCiteJSON(b []byte, f *facts) ([]byte, error) {
	text, err := json.Marshal(f.datacite())
	return append(append(b, text...), '\n'), err
}

func appendDataCiteXML(b []byte, f *facts) ([]byte, error) {
	r := f.datacite()
	if len(r.SubjectList) > 0 {
		r.Subjects = &dataciteSubjects{r.SubjectList}
	}
	if len(r.Helpers) > 0 {
		r.Contributors = &dataciteContributors{r.Helpers}
	}
	if len(r.DateList) > 0 {
		r.Dates = &dataciteDates{r.DateList}
	}
	if len(r.Identifiers) > 0 {
		r.Alternates = &dataciteAlternates{r.Identifiers}
	}
	if len(r.RightsList) > 0 {
		r.Rights = &dataciteRightsList{r.RightsList}
	}
	if len(r.About) > 0 {
		r.Descriptions = &dataciteDescriptions{r.About}
	}
	if c := r.Container; c != nil {
		r.Related = &dataciteRelated{dataciteItem{c.Type, "IsPublishedIn", []dataciteTitle{{c.Title}}, c.Volume, c.Issue, c.First, c.Last}}
	}
	text, err := xml.MarshalIndent(r, "", "  ")
	return append(append(append(b, xml.Header...), text...), '\n'), err
}

// dataciteCitation returns the citation that DataCite recommends: Creator (PublicationYear):
// Title. Version. Publisher. ResourceTypeGeneral. Identifier.
func (f *facts) dataciteCitation() string {
	names := make([]string, len(f.creators))
	for i := range f.creators {
		names[i] = f.creators[i].name
	}
	year := cmp.Or(f.when, "n.d.")
	if f.date.year > 0 {
		year = strconv.Itoa(f.date.year)
	}
	var c sentences
	c.add(joinWords(strings.Join(names, "; "), "("+year+"):", f.citedTitle()))
	c.add(prefixed("Version ", f.version))
	c.add(f.publisher)
	c.add(f.kind.datacite)
	return f.locate(c)
}
