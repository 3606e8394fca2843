package destination

import (
	"bytes"
	"encoding/xml"
	"io"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
)

// Limits of a value of type 10320/loc. Beyond them it is not a list of locations.
const (
	MaxLocations     = 1000
	maxLocationDepth = 8
	maxLocationAtts  = 32
)

// Locations is a value of type 10320/loc, or of 10320/links: places, and how one of
// them is chosen.
//
//	<locations choose_by="locatt,country,weighted">
//	  <location href="https://example.org/1" country="au" weight="1"/>
//	</locations>
type Locations struct {
	chooseBy string
	status   int // of redirects; 0: not said
	List     []Location
}

// Location is one place. It is known by its attributes, of which the owner may
// invent more.
type Location struct {
	atts   []attribute
	weight int // in thousandths
	status int
}

type attribute struct{ name, value string }

// Get returns the value of an attribute; "" if there is none of that name.
func (l *Location) Get(name string) string {
	for _, a := range l.atts {
		if a.name == name {
			return a.value
		}
	}
	return ""
}

// has reports whether the location has an attribute, with this value if asked.
func (l *Location) has(name, value string, anyValue bool) bool {
	for _, a := range l.atts {
		if a.name == name {
			return anyValue || a.value == value
		}
	}
	return false
}

// Spare returns a location that is chosen only if all others weigh nothing too.
func Spare(href string) Location { return Location{atts: []attribute{{"href", href}}} }

// Merge adds the locations of another value that are fit for a redirect. A setting of the
// first value wins over that of the other.
func (l *Locations) Merge(other *Locations, handle string) {
	if l.chooseBy == "" {
		l.chooseBy = other.chooseBy
	}
	if l.status == 0 {
		l.status = other.status
	}
	for _, one := range other.List {
		if _, ok := one.Href(handle); ok {
			l.List = append(l.List, one)
		}
	}
}

// ParseLocations reads the XML of a value. It refuses document types and entities, and
// limits depth and length.
func ParseLocations(data []byte) (*Locations, error) {
	if len(data) > stele.MaxData {
		return nil, stele.Messagef("locations.too-large", "the list of locations has {bytes} bytes; {limit} are the most", len(data), stele.MaxData)
	}
	var l Locations
	d := xml.NewDecoder(bytes.NewReader(data))
	for depth, roots := 0, 0; ; {
		token, err := d.Token()
		switch {
		case err == io.EOF && roots == 1:
			return &l, nil
		case err == io.EOF:
			return nil, stele.Messagef("locations.not-one-element", "the list of locations is not one element")
		case err != nil:
			return nil, stele.Messagef("locations.not-xml", "the list of locations is not XML: {cause}", err)
		}
		switch token := token.(type) {
		case xml.Directive:
			return nil, stele.Messagef("locations.document-type-present", "the list of locations has a document type; remove it")
		case xml.StartElement:
			if depth++; depth == 1 {
				roots++
			}
			if err := l.add(token, depth); err != nil {
				return nil, err
			}
		case xml.EndElement:
			depth--
		}
	}
}

// add reads an element: the list itself, or one of its locations. It ignores elements of
// other names, with all that is in them.
func (l *Locations) add(e xml.StartElement, depth int) error {
	switch {
	case depth > maxLocationDepth:
		return stele.Messagef("locations.too-deep", "the list of locations is more than {limit} elements deep", maxLocationDepth)
	case len(e.Attr) > maxLocationAtts:
		return stele.Messagef("locations.attributes-too-many", "a location has more than {limit} attributes", maxLocationAtts)
	}
	one := Location{weight: 1000}
	for _, a := range e.Attr {
		one.atts = append(one.atts, attribute{a.Name.Local, a.Value})
		switch a.Name.Local {
		case "weight":
			one.weight = parseWeight(a.Value)
		case "http_sc":
			one.status = parseStatus(a.Value)
		}
	}
	switch {
	case depth == 1:
		l.status = one.status
		if l.chooseBy = one.Get("choose_by"); l.chooseBy == "" {
			l.chooseBy = one.Get("chooseby")
		}
	case depth == 2 && (strings.EqualFold(e.Name.Local, "location") || strings.EqualFold(e.Name.Local, "loc_template")):
		if len(l.List) == MaxLocations {
			return stele.Messagef("locations.too-many", "there are more than {limit} locations", MaxLocations)
		}
		l.List = append(l.List, one)
	}
	return nil
}

// parseWeight reads a weight, a decimal fraction, in thousandths. An invalid or negative
// one is 0: such a location is not chosen by its weight.
func parseWeight(text string) int {
	const most = 1e6
	weight, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(weight > 0) {
		return 0
	}
	return max(1, int(min(weight, most)*1000))
}

// parseStatus reads the status of a redirect; 0 if it is not one.
func parseStatus(text string) int {
	switch text {
	case "301", "302", "303", "307", "308":
		status, _ := strconv.Atoi(text)
		return status
	}
	return 0
}

// Href returns where the location of a handle is, as it may stand in a header;
// false if it is not fit for a redirect. A template has places for the handle.
func (l *Location) Href(handle string) (string, bool) {
	href := l.Get("href")
	if href == "" {
		href = strings.ReplaceAll(l.Get("href_template"), "{hdl}", strings.ReplaceAll(Escape(handle), "/", "%2F"))
		href = strings.ReplaceAll(href, "{hdl:path}", Escape(handle))
	}
	href = strings.TrimSpace(href)
	if len(href) > stele.MaxURL {
		return "", false
	}
	return Safe(href)
}

// Choose returns the location for a request: it keeps those that match the attributes, and
// draws one of them by weight. The attributes are as the parameter locatt has them:
// name:value, or a name alone. The client's country and address are not known here, and
// Choose ignores choices by them.
func (l *Locations) Choose(wanted []string, random func(n int) int) (*Location, bool) {
	list := make([]*Location, len(l.List))
	for i := range l.List {
		list[i] = &l.List[i]
	}
	chooseBy := l.chooseBy
	if strings.TrimSpace(chooseBy) == "" {
		chooseBy = "locatt,weighted"
	}
	for step := range strings.SplitSeq(chooseBy, ",") {
		switch strings.ToLower(strings.TrimSpace(step)) {
		case "locatt":
			for _, att := range wanted[:min(len(wanted), maxLocationAtts)] {
				list = withAttribute(list, att)
			}
		case "weighted":
			return draw(list, random)
		}
	}
	return draw(list, random)
}

// withAttribute returns the locations that have an attribute, or all of them if
// none has.
func withAttribute(list []*Location, att string) []*Location {
	name, value, exact := strings.Cut(att, ":")
	var some []*Location
	for _, l := range list {
		if l.has(strings.TrimSpace(name), value, !exact) {
			some = append(some, l)
		}
	}
	if some == nil {
		return list
	}
	return some
}

// draw draws a location by weight. If all weigh nothing, each is equally likely.
func draw(list []*Location, random func(n int) int) (*Location, bool) {
	if len(list) == 0 {
		return nil, false
	}
	if len(list) == 1 {
		return list[0], true
	}
	total := 0
	for _, l := range list {
		total += l.weight
	}
	if total == 0 {
		return list[random(len(list))], true
	}
	at := random(total)
	for _, l := range list {
		if at -= l.weight; at < 0 {
			return l, true
		}
	}
	return list[0], true // unreachable, if random keeps to its limit
}

// RedirectStatus returns the status for a location.
func (l *Locations) RedirectStatus(one *Location) int {
	switch {
	case one.status != 0:
		return one.status
	case l.status != 0:
		return l.status
	}
	return 302
}
