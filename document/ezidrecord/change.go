package ezidrecord

import (
	"maps"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/anvl"
)

// Change is what a client of EZID wants of a record.
type Change struct {
	Set     map[string]string // elements that describe the thing; an empty value takes one away
	Target  *string           // "": none; nil: it stays
	Profile *string           // "": the default; nil: it stays
	Export  *bool             // nil: it stays
	State   stele.State       // "": it stays
	Reason  string            // why it is unavailable
	Owner   *string           // nil: it stays; the caller judges it
}

// ReadChange reads what a client sends. Names and values lose white space around them, as at EZID; line ends become line feeds. The
// error names all elements that are wrong, as problems whose paths are their names.
func ReadChange(elements []anvl.Element) (c Change, err error) {
	c.Set = make(map[string]string)
	var f stele.Report
	given := make(map[string]bool, len(elements))
	for _, e := range elements {
		name, value := strings.TrimSpace(e.Label), strings.TrimSpace(lineFeeds(e.Value))
		switch {
		case name == "":
			f.Addf("", "ezid.label-empty", "empty label; give the element a name")
		case given[name]:
			f.Addf(name, "ezid.label-repeated", "repeated label; give the element once")
		case isStatusWord(name):
			f.Addf(name, "ezid.label-reserved", "the label is that of the first line of an answer; give the element another name")
		case strings.HasPrefix(name, "_"):
			c.internal(&f, name, value)
		default:
			c.Set[name] = value
		}
		given[name] = true
	}
	return c, f.Err("read elements", stele.ID{})
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// lineFeeds returns a value whose lines end with line feeds. Almost none has another line end.
func lineFeeds(value string) string {
	if strings.IndexByte(value, '\r') < 0 {
		return value
	}
	return lineEnds.Replace(value)
}

// internal reads an element that EZID itself has.
func (c *Change) internal(f *stele.Report, name, value string) {
	switch name {
	case Target:
		c.Target = &value
	case Profile:
		if c.Profile = &value; value != "" && !isProfile(value) {
			f.Addf(name, "ezid.profile-malformed", "invalid profile name; use up to 32 of a-z, 0-9, dot, hyphen and underscore, such as erc, dc or datacite")
		}
	case Export:
		yes := strings.EqualFold(value, "yes")
		if c.Export = &yes; !yes && !strings.EqualFold(value, "no") {
			f.Addf(name, "ezid.export-malformed", "value must be 'yes' or 'no'")
		}
	case Status:
		var ok bool
		if c.State, c.Reason, ok = ParseStatus(value); !ok {
			f.Addf(name, "ezid.status-unknown", "invalid identifier status; use reserved, public, or unavailable | and a reason")
		}
	case "_owner":
		c.Owner = &value
	default:
		f.Addf(name, "ezid.element-not-settable", "field is not settable; leave it out")
	}
}

// isProfile reports whether a text can name a profile.
func isProfile(text string) bool {
	for i := range len(text) {
		c := text[i]
		if !isPlain(c) && c != '-' || i == 0 && (c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return text != "" && len(text) <= 32
}

// Apply changes what a record says. It does not change its state. The error names all elements that can't be kept, as that of
// [ReadChange] does. A record that was changed always says its profile, so that none looks as if it was deleted; see [IsBlank].
func (c *Change) Apply(schemes *stele.Schemes, rec *stele.Record) error {
	var f stele.Report
	before := ProfileOf(schemes, rec)
	was := derived(before, rec.Metadata)
	next := maps.Clone(rec.Metadata)
	if next == nil {
		next = make(stele.Metadata)
	}
	profile := before
	if c.Profile != nil {
		if profile = *c.Profile; profile == "" {
			profile = DefaultProfile(schemes, rec.ID)
		}
	}
	next[keptProfile] = profile
	if c.Export != nil {
		if delete(next, keptExport); !*c.Export {
			next[keptExport] = "no"
		}
	}
	set := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(c.Set)) {
		key, value := field(profile, name), c.Set[name]
		switch {
		case key == "":
			f.Addf(name, "ezid.name-too-long", "the name of the element is too long to be kept; shorten it")
			continue
		case value == "":
			delete(next, key)
		default:
			next[key] = value
		}
		set[key] = true
		if err := checkDocument(profile, name, value); err != nil {
			f.Add(name, err)
		}
	}
	// A document, such as DataCite's XML, gives the fields that are not given alone.
	now := derived(profile, next)
	for key, value := range was {
		if !set[key] && next[key] == value {
			delete(next, key)
		}
	}
	for key, value := range now {
		if next[key] == "" {
			next[key] = value
		}
	}
	rec.Metadata = next
	if c.Target != nil {
		SetTarget(rec, *c.Target)
	}
	return f.Err("read elements", rec.ID)
}

// ElementAt returns the element that a problem of a record is about, by the problem's path; "" if it is about none.
func ElementAt(profile, path string) string {
	switch {
	case strings.HasPrefix(path, "targets"):
		return Target
	case strings.HasPrefix(path, "tombstone"), path == "state":
		return Status
	case strings.HasPrefix(path, "metadata."):
		return elementOf(profile, path[len("metadata."):])
	}
	return ""
}
