package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// conditions are what a request says of the version that it supposes (RFC 9110,
// section 13.1).
type conditions struct {
	match, noneMatch *tags // nil: the request has no such header

	tagOf func(version uint64) string
}

// tags is a list of entity tags.
type tags struct {
	any          bool // "*"
	strong, weak []string
}

// conditions reads the headers If-Match and If-None-Match.
func (c *call) conditions() (on conditions, err error) {
	on.tagOf = c.h.tagOf
	if value, ok := c.header(ifMatch.name); ok {
		if on.match, err = readTags(ifMatch.name, value); err != nil {
			return on, err
		}
	}
	if value, ok := c.header(ifNoneMatch.name); ok {
		if on.noneMatch, err = readTags(ifNoneMatch.name, value); err != nil {
			return on, err
		}
	}
	return on, nil
}

// readTags reads a list of entity tags (RFC 9110, section 8.8.3). A comma may stand
// inside one.
func readTags(header, value string) (*tags, error) {
	t := &tags{any: strings.Trim(value, " \t") == "*"}
	for rest := value; !t.any; {
		rest = strings.TrimLeft(rest, " \t,")
		if rest == "" {
			break
		}
		after, weak := strings.CutPrefix(rest, "W/")
		inside, ok := strings.CutPrefix(after, `"`)
		end := strings.IndexByte(inside, '"')
		if !ok || end < 0 || strings.ContainsAny(inside[:end], " \t") {
			return nil, invalidf("precondition.tags-unquoted", `{header} is not a list of entity tags; write them in quotation marks, as in {header}: "v3", or write *`, header)
		}
		tag := `"` + inside[:end] + `"`
		if weak {
			t.weak = append(t.weak, tag)
		} else {
			t.strong = append(t.strong, tag)
		}
		rest = strings.TrimLeft(inside[end+1:], " \t")
		if rest != "" && rest[0] != ',' {
			return nil, invalidf("precondition.tags-not-separated", "{header} is not a list of entity tags; separate them with commas", header)
		}
	}
	return t, nil
}

// isSaid reports whether there are conditions.
func (on conditions) isSaid() bool { return on.match != nil || on.noneMatch != nil }

// hold returns an error if something that has this version is not what the conditions
// suppose.
func (on conditions) hold(op string, id stele.ID, version uint64) error {
	if err := on.holdMatch(op, id, version); err != nil {
		return err
	}
	if on.isKnown(version) {
		return failed(op, id, "precondition.if-none-match-fails", "it has version {version}, and If-None-Match says that it should not; look at it again", version)
	}
	return nil
}

// holdMatch is hold for If-Match alone, which counts first: a read that fails it is 412, though
// If-None-Match would make it 304 (RFC 9110, section 13.2.2). Weak tags match for
// If-None-Match alone (section 8.8.3.2).
func (on conditions) holdMatch(op string, id stele.ID, version uint64) error {
	if on.match != nil && !on.match.any && !slices.Contains(on.match.strong, on.tagOf(version)) {
		return failed(op, id, "precondition.if-match-differs", "it has version {version}, and If-Match names another; look at it again", version)
	}
	return nil
}

// isKnown reports whether If-None-Match names this version.
func (on conditions) isKnown(version uint64) bool { return on.noneMatch.has(on.tagOf(version)) }

// has reports whether a tag is in the list, compared weakly.
func (t *tags) has(tag string) bool {
	return t != nil && (t.any || slices.Contains(t.strong, tag) || slices.Contains(t.weak, tag))
}

// holdNothing is hold for a record or namespace that does not exist.
func (on conditions) holdNothing(op string, id stele.ID) error {
	if on.match != nil {
		return failed(op, id, "precondition.if-match-without-version", "there is none, and If-Match supposes one; leave If-Match out to make it")
	}
	return nil
}

// failed says that a condition does not hold. It passes through the registrar as one
// of its errors.
func failed(op string, id stele.ID, code, text string, args ...any) error {
	return &stele.Error{Op: op, ID: id, Kind: stele.Conflict, Err: refusef(http.StatusPreconditionFailed, code, text, args...)}
}

// unconditional says that conditions are missing.
func (on conditions) unconditional(op string, id stele.ID, version uint64) error {
	return &stele.Error{Op: op, ID: id, Kind: stele.Conflict, Err: refusef(http.StatusPreconditionRequired,
		"precondition.missing", "it is there already, with version {version}; send If-Match: {tag} to replace that, or If-None-Match: * to make one only if there is none", version, on.tagOf(version))}
}
