package oai

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The codes of faults (OAI-PMH 2.0, 3.6).
const (
	badVerb                 = "badVerb"
	badArgument             = "badArgument"
	badResumptionToken      = "badResumptionToken"
	cannotDisseminateFormat = "cannotDisseminateFormat"
	idDoesNotExist          = "idDoesNotExist"
	noRecordsMatch          = "noRecordsMatch"
	noSetHierarchy          = "noSetHierarchy"
)

// fault is what is wrong with a request. It is a part of the answer.
type fault struct{ code, text string }

func (f *fault) Error() string { return f.code + ": " + f.text }

func faultf(code, format string, args ...any) *fault {
	return &fault{code, fmt.Sprintf(format, args...)}
}

// arguments are those of a request: each once.
type arguments struct {
	verb   string
	values map[string]string
}

func (a *arguments) has(name string) bool   { _, ok := a.values[name]; return ok }
func (a *arguments) get(name string) string { return a.values[name] }

// verbs has the arguments of each verb: those that it needs, and those that it may have.
var verbs = map[string]struct{ needs, may []string }{
	"Identify":            {},
	"ListMetadataFormats": {may: []string{"identifier"}},
	"ListSets":            {may: []string{"resumptionToken"}},
	"GetRecord":           {needs: []string{"identifier", "metadataPrefix"}},
	"ListIdentifiers":     {needs: []string{"metadataPrefix"}, may: []string{"from", "until", "set"}},
	"ListRecords":         {needs: []string{"metadataPrefix"}, may: []string{"from", "until", "set"}},
}

// isList reports whether a verb lists records.
func isList(verb string) bool { return verb == "ListRecords" || verb == "ListIdentifiers" }

// maxQuery is how many bytes of arguments are read.
const maxQuery = 8 << 10

// parseArguments reads the query, or the body of a POST.
func parseArguments(query string) (a arguments, _ *fault) {
	a.values = make(map[string]string)
	if len(query) > maxQuery {
		return a, faultf(badArgument, "the arguments have more than %d bytes", maxQuery)
	}
	var bad *fault
	for part := range strings.SplitSeq(query, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		name, err := url.QueryUnescape(name)
		value, err2 := url.QueryUnescape(value)
		_, twice := a.values[name]
		switch {
		case err != nil || err2 != nil:
			bad = faultf(badArgument, "after %% come two hexadecimal digits")
		case twice && name == "verb":
			return a, faultf(badVerb, "there are two verbs")
		case twice:
			bad = faultf(badArgument, "an argument is given twice: %q", name)
		}
		a.values[name] = value
	}
	a.verb = a.values["verb"]
	delete(a.values, "verb")
	rule, ok := verbs[a.verb]
	switch {
	case a.verb == "":
		return a, faultf(badVerb, "the verb is missing")
	case !ok:
		return a, faultf(badVerb, "there is no such verb; verbs are Identify, ListMetadataFormats, ListSets, ListIdentifiers, ListRecords and GetRecord")
	case bad != nil:
		return a, bad
	}
	if isList(a.verb) && a.has("resumptionToken") { // it is exclusive (3.5)
		if len(a.values) > 1 {
			return a, faultf(badArgument, "a resumption token stands alone; leave the other arguments out")
		}
		return a, nil
	}
	for name := range a.values {
		if !slices.Contains(rule.needs, name) && !slices.Contains(rule.may, name) {
			return a, faultf(badArgument, "%s has no argument %q", a.verb, name)
		}
	}
	for _, name := range rule.needs {
		if !a.has(name) {
			return a, faultf(badArgument, "%s needs the argument %s", a.verb, name)
		}
	}
	return a, nil
}

// Forms of dates (3.3.1).
const (
	dayForm    = "2006-01-02"
	secondForm = "2006-01-02T15:04:05Z"
)

// stamp writes a date.
func stamp(t time.Time) string { return t.UTC().Format(secondForm) }

// parseDate reads a date in one of the forms, and nothing else.
func parseDate(text string) (at time.Time, day bool, ok bool) {
	for _, form := range [...]string{dayForm, secondForm} {
		if at, err := time.Parse(form, text); err == nil && at.Format(form) == text {
			return at, form == dayForm, true
		}
	}
	return at, false, false
}

// parseDates reads the arguments from and until: the first second that counts, and the last one. A zero time sets no limit.
func parseDates(from, until string) (first, last time.Time, _ *fault) {
	var fromDay, untilDay, ok bool
	if from != "" {
		if first, fromDay, ok = parseDate(from); !ok {
			return first, last, faultf(badArgument, "from is not a date such as 2026-06-01 or 2026-06-01T12:00:00Z")
		}
	}
	if until != "" {
		if last, untilDay, ok = parseDate(until); !ok {
			return first, last, faultf(badArgument, "until is not a date such as 2026-06-01 or 2026-06-01T12:00:00Z")
		}
		if untilDay {
			last = last.AddDate(0, 0, 1).Add(-time.Second)
		}
	}
	switch {
	case from != "" && until != "" && fromDay != untilDay:
		return first, last, faultf(badArgument, "from and until have different granularities; write both as days, or both with seconds")
	case from != "" && until != "" && first.After(last):
		return first, last, faultf(badArgument, "from is later than until")
	}
	return first, last, nil
}
