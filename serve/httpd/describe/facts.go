package describe

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// facts are what the formats say of a record, read once and cleaned, for all of them.
type facts struct {
	subject *Subject
	record  *stele.Record // the public's copy
	self    string        // URL of the identifier
	names   []name        // the identifier, then its aliases

	title       string
	creators    []agent
	helpers     []agent
	date        date
	when        string // the date as it was written
	kind        kind
	description string
	publisher   string
	language    string
	license     string
	rights      string
	subjects    []string
	version     string
	journal     string
	volume      string
	issue       string
	pages       string

	targets   []stele.Target // with URLs that can be shown
	tombstone *tombstone     // of a withdrawn record
}

// name is one of the record's names.
type name struct {
	scheme, text, url string
}

// tombstone says why a record was withdrawn.
type tombstone struct {
	reason      string
	at          time.Time
	replacement name // zero if there is nothing
}

// newFacts reads what the public may know.
func newFacts(s *Subject) *facts {
	f := &facts{subject: s, record: public(s.Record), self: encode(s.Self)}
	f.names = []name{{f.record.ID.Scheme(), f.record.ID.String(), f.self}}
	if s.Shown != "" && !f.record.Redacted {
		f.names[0].text = s.Shown
	}
	for _, alias := range f.record.Aliases {
		f.names = append(f.names, name{alias.Scheme(), alias.String(), s.locate(alias)})
	}
	f.readMetadata(f.record.Metadata)
	for _, t := range f.record.Targets {
		if url, ok := targetURL(t.URL); ok {
			t.URL, t.Type, t.Language = url, line(t.Type), line(t.Language)
			f.targets = append(f.targets, t)
		}
	}
	slices.SortStableFunc(f.targets, func(a, b stele.Target) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Preference, b.Preference))
	})
	if t := f.record.Tombstone; t != nil && f.record.State == stele.Withdrawn {
		f.tombstone = &tombstone{reason: clean(t.Reason), at: t.At}
		if id := t.Replacement; id.IsValid() {
			f.tombstone.replacement = name{id.Scheme(), id.String(), s.locate(id)}
		}
	}
	return f
}

// shown returns the record's identifier as people see it: in the spelling of its owner, if the
// record has one.
func (f *facts) shown() string { return f.names[0].text }

// public returns the record as the public may see it, within the limits of valid records.
func public(r *stele.Record) *stele.Record {
	p := *r
	p.Readers, p.By, p.Import = nil, "", 0
	p.Targets, p.Aliases = atMost(p.Targets, stele.MaxTargets), atMost(p.Aliases, stele.MaxAliases)
	p.Values = slices.DeleteFunc(slices.Clone(atMost(p.Values, stele.MaxValues)), func(v stele.HandleValue) bool {
		return v.Permissions&stele.PublicRead == 0
	})
	if len(p.Metadata) > stele.MaxFields {
		p.Metadata = make(stele.Metadata, stele.MaxFields)
		for _, key := range keys(r.Metadata)[:stele.MaxFields] {
			p.Metadata[key] = r.Metadata[key]
		}
	}
	if p.State == stele.Withdrawn {
		p.Targets, p.Values = nil, nil
		if p.Tombstone == nil {
			p.Tombstone = new(stele.Tombstone)
		}
	}
	if p.Redacted {
		p.Spelling, p.Aliases, p.Metadata, p.Persistence = "", nil, nil, stele.Persistence{}
		p.Targets, p.Values, p.Signatures = nil, nil, nil
	}
	return &p
}

func atMost[T any](s []T, n int) []T { return s[:min(len(s), n)] }

// keys returns the names of metadata fields: the kernel's four, then the others
// in order.
func keys(m stele.Metadata) []string {
	var all []string
	for key := range m {
		if !isKernel(key) {
			all = append(all, key)
		}
	}
	slices.Sort(all)
	for _, key := range [...]string{stele.Where, stele.When, stele.What, stele.Who} {
		if _, ok := m[key]; ok {
			all = slices.Insert(all, 0, key)
		}
	}
	return all
}

func isKernel(key string) bool {
	return key == stele.Who || key == stele.What || key == stele.When || key == stele.Where
}

// readMetadata reads the fields that have a meaning here (see the package's
// comment).
func (f *facts) readMetadata(m stele.Metadata) {
	f.title = uncoded(line(m[stele.What]))
	f.creators = agents(m[stele.Who])
	f.helpers = agents(m["contributor"])
	f.when = uncoded(line(m[stele.When]))
	f.date = parseDate(f.when)
	f.kind = parseKind(line(m["type"]))
	f.description = clean(m["description"])
	f.publisher = line(m["publisher"])
	f.language = line(m["language"])
	f.license = line(m["license"])
	f.rights = clean(m["rights"])
	f.subjects = list(m["subject"])
	f.version = line(m["version"])
	if f.journal = line(m["journal"]); f.journal != "" && f.kind.word == "" {
		f.kind = parseKind("article")
		f.kind.word, f.kind.specific = "", ""
	}
	f.volume = line(m["volume"])
	f.issue = line(m["issue"])
	f.pages = line(m["pages"])
}

// promise returns what is promised: by the record or else by its namespace.
func (f *facts) promise() stele.Persistence {
	if p := f.record.Persistence; p != (stele.Persistence{}) {
		return p
	}
	if ns := f.subject.Namespace; ns != nil && !f.record.Redacted {
		return ns.Persistence
	}
	return stele.Persistence{}
}

// of returns the targets of a service, the first to be tried first.
func (f *facts) of(service stele.Service) (list []stele.Target) {
	for _, t := range f.targets {
		if t.Service == service {
			list = append(list, t)
		}
	}
	return list
}

// isPage reports whether a target is a page for people.
func isPage(t stele.Target) bool {
	kind, _, _ := strings.Cut(t.Type, ";")
	return kind == "text/html" || kind == "application/xhtml+xml"
}

// date is a day, a month or a year of the calendar. The zero date is unknown.
type date struct {
	year, month, day int
	iso              string // as ISO 8601 writes it
}

// parseDate reads the forms that the package's comment lists.
func parseDate(s string) date {
	for _, form := range [...]struct {
		layout, iso string
		parts       int
	}{
		{"2006", "2006", 1},
		{"2006-01", "2006-01", 2},
		{time.DateOnly, time.DateOnly, 3},
		{"20060102", time.DateOnly, 3},
		{time.RFC3339, time.DateOnly, 3},
	} {
		t, err := time.Parse(form.layout, s)
		if err != nil || t.Year() == 0 {
			continue
		}
		d := date{year: t.Year(), iso: t.Format(form.iso)}
		if form.parts > 1 {
			d.month = int(t.Month())
		}
		if form.parts > 2 {
			d.day = t.Day()
		}
		return d
	}
	return date{}
}

// kind is what sort of thing it is, in the words of several formats.
type kind struct {
	word   string // as it was written
	url    string // if that is a URL
	schema string // a class of schema.org
	csl    string
	bibtex string
	ris    string

	datacite string // a resourceTypeGeneral
	specific string // the resourceType: the word, or what follows a resourceTypeGeneral in it
}

// parseKind reads the words of Dublin Core's types and others in common use. What
// it does not know is a creative work.
func parseKind(word string) kind {
	k := kind{word: word, schema: "CreativeWork", csl: "document", bibtex: "misc", ris: "GEN", datacite: "Other", specific: word}
	if word == "" {
		return k
	}
	k.url, _ = webURL(word)
	// EZID, and records that come from DataCite, have both parts of a resource type: Dataset/Weather data.
	if general, specific, _ := strings.Cut(word, "/"); strings.Contains(generalTypes, " "+general+" ") {
		word, k.datacite, k.specific = general, general, cmp.Or(specific, general)
	}
	folded := strings.ToLower(strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' || r == '_' {
			return -1
		}
		return r
	}, word))
	for _, known := range [...]struct{ words, schema, csl, bibtex, ris, datacite string }{
		{" dataset data ", "Dataset", "dataset", "misc", "DATA", "Dataset"},
		{" collection ", "Collection", "collection", "misc", "GEN", "Collection"},
		{" article journalarticle scholarlyarticle paper ", "ScholarlyArticle", "article-journal", "article", "JOUR", "JournalArticle"},
		{" book monograph ", "Book", "book", "book", "BOOK", "Book"},
		{" chapter bookchapter ", "Chapter", "chapter", "misc", "CHAP", "BookChapter"},
		{" thesis dissertation ", "Thesis", "thesis", "phdthesis", "THES", "Dissertation"},
		{" report technicalreport ", "Report", "report", "techreport", "RPRT", "Report"},
		{" image stillimage photograph ", "ImageObject", "graphic", "misc", "FIGURE", "Image"},
		{" sound audio soundrecording ", "AudioObject", "song", "misc", "SOUND", "Sound"},
		{" movingimage video film audiovisual ", "VideoObject", "motion_picture", "misc", "VIDEO", "Audiovisual"},
		{" software ", "SoftwareApplication", "software", "misc", "COMP", "Software"},
		{" webpage website ", "WebPage", "webpage", "misc", "ELEC", "InteractiveResource"},
		{" map ", "Map", "map", "misc", "MAP", "Image"},
		{" manuscript ", "Manuscript", "manuscript", "misc", "MANSCPT", "Text"},
		{" presentation slides ", "PresentationDigitalDocument", "speech", "misc", "SLIDE", "Other"},
		{" event ", "Event", "event", "misc", "GEN", "Event"},
	} {
		if strings.Contains(known.words, " "+folded+" ") {
			k.schema, k.csl, k.bibtex, k.ris = known.schema, known.csl, known.bibtex, known.ris
			if k.datacite == "Other" {
				k.datacite = known.datacite
			}
		}
	}
	return k
}

// generalTypes are the values of resourceTypeGeneral (DataCite Metadata Schema 4.4, appendix 1, table 7).
const generalTypes = " Audiovisual Book BookChapter Collection ComputationalNotebook ConferencePaper ConferenceProceeding DataPaper Dataset Dissertation Event Image InteractiveResource Journal JournalArticle Model OutputManagementPlan PeerReview PhysicalObject Preprint Report Service Software Sound Standard Text Workflow Other "
