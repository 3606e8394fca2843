package ezidrecord

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// crossrefFields reads a part of Crossref's deposit XML, as EZID keeps it: authors, the first title, publisher, year, and the kind of thing.
// EZID checks such a document; one that can't be read gives nothing, and is kept as it is.
func crossrefFields(text string) map[string]string {
	dec := xml.NewDecoder(strings.NewReader(text)) // which reads no entities but those of XML itself
	fields := make(map[string]string)
	var path []string
	var within strings.Builder
	var surname, given string
	for {
		token, err := dec.Token()
		if err != nil {
			if !errors.Is(err, io.EOF) || len(fields) == 0 {
				return nil
			}
			return fields
		}
		switch t := token.(type) {
		case xml.Directive:
			return nil
		case xml.StartElement:
			if len(path) == maxDepth {
				return nil
			}
			if len(path) == 0 || len(path) == 1 && fields["type"] == "body" {
				fields["type"] = t.Name.Local
			}
			if !slices.Contains(path, "title") { // a title may have marks in it
				within.Reset()
			}
			path = append(path, t.Name.Local)
		case xml.CharData:
			within.Write(t)
		case xml.EndElement:
			if slices.Contains(path[:len(path)-1], "title") {
				path = path[:len(path)-1]
				continue
			}
			value := plain(within.String())
			within.Reset()
			switch last(path, 2) {
			case "person_name/surname":
				surname = value
			case "person_name/given_name":
				given = value
			case "contributors/person_name":
				addWho(fields, strings.Trim(surname+", "+given, ", "))
				surname, given = "", ""
			case "contributors/organization":
				addWho(fields, value)
			case "titles/title":
				setFirst(fields, stele.What, value)
			case "publisher/publisher_name":
				setFirst(fields, "publisher", value)
			case "publication_date/year", "posted_date/year", "creation_date/year", "approval_date/year":
				setFirst(fields, stele.When, value)
			}
			path = path[:len(path)-1]
		}
	}
}

// last returns the last n names of a path.
func last(path []string, n int) string { return strings.Join(path[max(0, len(path)-n):], "/") }

func setFirst(fields map[string]string, key, value string) {
	if fields[key] == "" && value != "" {
		fields[key] = value
	}
}

// addWho adds an author.
func addWho(fields map[string]string, name string) {
	who := fields[stele.Who]
	switch {
	case name == "" || slices.Contains(strings.Split(who, "; "), name):
	case who == "":
		fields[stele.Who] = name
	default:
		fields[stele.Who] = who + "; " + name
	}
}
