package ezidrecord

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/anvl"
)

// The elements whose values are whole documents: one in ANVL, and those of DataCite and Crossref in XML.
const (
	ercDocument      = "erc"
	dataciteDocument = "datacite"
	crossrefDocument = "crossref"
)

// maxDepth is how deep elements of XML may be in each other; DataCite's schema needs 6.
const maxDepth = 32

// derived returns the fields that the document of a profile gives: their values are shown as a part of the document, and not
// beside it.
func derived(profile string, m stele.Metadata) map[string]string {
	switch {
	case len(m[profile]) > stele.MaxProse: // no record may have it
	case profile == ercDocument && m[ercDocument] != "":
		return ercFields(m[ercDocument])
	case profile == dataciteDocument && m[dataciteDocument] != "":
		if fields, err := dataciteFields(m[dataciteDocument]); err == nil {
			return fields
		}
	case profile == crossrefDocument && m[crossrefDocument] != "":
		return crossrefFields(m[crossrefDocument])
	}
	return nil
}

// checkDocument says what is wrong with a document.
func checkDocument(profile, name, value string) error {
	if name != dataciteDocument || value == "" {
		return nil
	}
	if len(value) > stele.MaxProse { // the work to read it grows faster than its length
		return stele.Messagef("value.too-long", "has {size} bytes; {most} are the most", len(value), stele.MaxProse)
	}
	_, err := dataciteFields(value)
	return err
}

// ercFields reads the four questions of an ERC in ANVL. A text that is not one gives nothing.
func ercFields(text string) map[string]string {
	elements, err := anvl.Parse(text)
	if err != nil {
		return nil
	}
	fields := make(map[string]string)
	for _, e := range elements {
		if key := profiles["erc"]["erc."+strings.TrimSpace(e.Label)]; key != "" && e.Value != "" {
			fields[key] = strings.TrimSpace(e.Value)
		}
	}
	return fields
}

// dataciteFields reads DataCite's metadata in XML: creators, the first title, publisher, year and type. It reads no entities
// but those of XML itself, and no other file.
func dataciteFields(text string) (map[string]string, error) {
	dec := xml.NewDecoder(strings.NewReader(text))
	dec.CharsetReader = func(charset string, in io.Reader) (io.Reader, error) {
		if strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "us-ascii") {
			return in, nil
		}
		return nil, stele.Messagef("ezid.xml-charset", `the document is in "{charset}"; write it in UTF-8`, charset)
	}
	fields := make(map[string]string)
	var path []string
	var within strings.Builder
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) && fields[rootSeen] != "" {
			delete(fields, rootSeen)
			return fields, nil
		}
		if err != nil {
			return nil, stele.Messagef("ezid.xml-malformed", "the document is not well-formed XML: {cause}", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if len(path) == maxDepth {
				return nil, stele.Messagef("ezid.xml-too-deep", "elements of the document are more than {most} deep", maxDepth)
			}
			if len(path) == 0 && (token.Name.Local != "resource" || fields[rootSeen] != "") {
				return nil, stele.Messagef("ezid.xml-not-datacite", "the document is not one of DataCite; its outermost element is resource")
			}
			fields[rootSeen] = "yes"
			path = append(path, token.Name.Local)
			within.Reset()
			if strings.Join(path, "/") == "resource/resourceType" {
				for _, a := range token.Attr {
					if a.Name.Local == "resourceTypeGeneral" {
						fields["type"] = plain(a.Value)
					}
				}
			}
		case xml.CharData:
			if len(path) > 0 {
				within.Write(token)
			}
		case xml.EndElement:
			keepField(fields, strings.Join(path, "/"), plain(within.String()))
			path = path[:len(path)-1]
			within.Reset()
		case xml.Directive:
			return nil, stele.Messagef("ezid.xml-directive", "the document has a document type or entities of its own; leave them out")
		}
	}
}

// rootSeen marks that the outermost element was read. It can't name a field.
const rootSeen = " "

// keepField keeps what an element of DataCite's XML says.
func keepField(fields map[string]string, path, value string) {
	if value == "" {
		return
	}
	switch path {
	case "resource/creators/creator/creatorName":
		if fields[stele.Who] != "" {
			value = fields[stele.Who] + "; " + value
		}
		fields[stele.Who] = value
	case "resource/titles/title":
		if fields[stele.What] == "" {
			fields[stele.What] = value
		}
	case "resource/publisher":
		fields["publisher"] = value
	case "resource/publicationYear":
		fields[stele.When] = value
	case "resource/resourceType":
		if general := fields["type"]; general != "" && general != value {
			value = general + "/" + value
		}
		fields["type"] = value
	}
}

// plain returns a text with single spaces.
func plain(text string) string { return strings.Join(strings.Fields(text), " ") }
