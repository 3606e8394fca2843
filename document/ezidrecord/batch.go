package ezidrecord

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/anvl"
)

// Elements of a batch download of EZID that a client can't set.
const (
	Shadow = "_shadowedby" // the ARK under which EZID keeps a DOI
)

// mappedFields are the fields of columns that EZID makes.
var mappedFields = map[string]string{
	"_mappedCreator": stele.Who, "_mappedTitle": stele.What, "_mappedDate": stele.When, "_mappedPublisher": "publisher", "_mappedType": "type",
}

// FromBatch makes a record of what a batch download of EZID says of an identifier. Its view by [Elements] is what EZID would show,
// without what an import must not take over: owners grant nothing here, and are kept in the metadata. Elements without a value say
// nothing. The error is as that of [ReadChange].
func FromBatch(schemes *stele.Schemes, id stele.ID, elements []anvl.Element) (*stele.Record, error) {
	var f stele.Report
	c := Change{Set: make(map[string]string, len(elements))}
	rec := &stele.Record{ID: id, State: stele.Active}
	var others []anvl.Element
	for _, e := range elements {
		name, value := strings.TrimSpace(e.Label), strings.TrimSpace(lineFeeds(e.Value))
		switch {
		case value == "":
		case name == Target && isOwnPage(schemes, id, value):
		case name == Target, name == Profile, name == Export, name == Status:
			c.internal(&f, name, value)
		case name == Created, name == Updated:
			at, ok := parseTime(value)
			switch {
			case !ok:
				f.Addf(name, "ezid.time-malformed", "not a time; it is seconds since 1970, or as 2024-01-02T03:04:05Z")
			case name == Created:
				rec.Created = at
			default:
				rec.Modified = at
			}
		case name == Shadow:
			alias, err := ParseName(schemes, value)
			if err != nil {
				f.Add(name, err)
			} else if alias != id {
				rec.Aliases = []stele.ID{alias}
			} else {
				f.Addf(name, "ezid.shadowed-by-itself", "the identifier is its own alias; leave the element out")
			}
		case strings.HasPrefix(name, "_"):
			others = append(others, anvl.Element{Label: name, Value: value})
		default:
			c.Set[name] = value
		}
	}
	if rec.Created.IsZero() {
		rec.Created = rec.Modified
	}
	if rec.Modified.Before(rec.Created) {
		rec.Modified = rec.Created
	}
	if c.State != "" {
		rec.State = c.State
	}
	if rec.State == stele.Withdrawn {
		rec.Tombstone = &stele.Tombstone{Reason: c.Reason, At: rec.Modified}
	}
	if err := f.Err("read elements", id); err != nil {
		return nil, err
	}
	if err := c.Apply(schemes, rec); err != nil {
		return nil, err
	}
	for _, e := range others {
		keepOther(rec, e)
	}
	return rec, nil
}

// keepOther keeps an element of EZID's own. A column that EZID made from the description gives a field that the description does not give.
func keepOther(rec *stele.Record, e anvl.Element) {
	if key := mappedFields[e.Label]; key != "" {
		if rec.Metadata[key] == "" {
			rec.Metadata[key] = e.Value
		}
		if rec.Metadata[key] == e.Value {
			return
		}
	}
	if key := kept + escape(e.Label); stele.IsField(key) {
		rec.Metadata[key] = e.Value
	}
}

// parseTime reads a time as batch downloads have it.
func parseTime(text string) (time.Time, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(n, 0).UTC(), n > 0 && n < 1<<34
	}
	at, err := time.Parse(time.RFC3339, text)
	return at.UTC().Truncate(time.Second), err == nil && at.Unix() > 0
}

// ParseName reads an identifier as EZID writes it. A UUID has the label uuid there.
func ParseName(schemes *stele.Schemes, text string) (stele.ID, error) {
	if label := "uuid:"; len(text) > len(label) && strings.EqualFold(text[:len(label)], label) {
		text = "urn:" + text
	}
	return schemes.Parse(text)
}

// isOwnPage reports whether a target is EZID's own page of the identifier, which it gives to one that has no target.
func isOwnPage(schemes *stele.Schemes, id stele.ID, target string) bool {
	u, err := url.Parse(target)
	if err != nil || !strings.HasPrefix(strings.ToLower(u.Hostname()), "ezid") {
		return false
	}
	name, ok := strings.CutPrefix(strings.TrimPrefix(u.Path, "/tombstone"), "/id/")
	if !ok {
		return false
	}
	of, err := ParseName(schemes, name)
	return err == nil && of == id
}
