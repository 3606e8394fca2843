package api

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/serve/api/openapi"
)

// readQuery reads the query: declared parameters only, each once. A name that is
// mistyped must not go by unseen: ?dryrun=true would write.
func (c *call) readQuery(query string) error {
	c.fields = make(map[string]string)
	for part := range strings.SplitSeq(query, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		name, err1 := url.QueryUnescape(name)
		value, err2 := url.QueryUnescape(value)
		if err1 != nil || err2 != nil {
			return invalidf("request.query-escape-wrong", "the query has a % without two hexadecimal digits after it; write %25 for the sign itself")
		}
		i := slices.IndexFunc(c.op.query, func(p parameter) bool { return p.name == name })
		if i < 0 {
			return invalidf("request.parameter-unknown", `there is no parameter "{parameter}" here; {known}`, name, c.op.parameters())
		}
		if _, twice := c.fields[name]; twice {
			return invalidf("request.parameter-twice", "the parameter {parameter} is given twice; keep one", name)
		}
		if err := c.op.query[i].check(value); err != nil {
			return err
		}
		c.fields[name] = value
	}
	for _, p := range c.op.query {
		if _, ok := c.fields[p.name]; p.required && !ok {
			return invalidf("request.parameter-missing", "the parameter {parameter} is missing; {description}", p.name, p.about)
		}
	}
	return nil
}

// parameters lists the parameters of the operation, in words.
func (o *operation) parameters() string {
	if len(o.query) == 0 {
		return "there is none at all"
	}
	var names []string
	for _, p := range o.query {
		names = append(names, p.name)
	}
	return "there are " + strings.Join(names, ", ")
}

// readHead reads the headers that the operation knows.
func (c *call) readHead() error {
	c.heads = make(map[string]string)
	for _, p := range c.op.headers {
		values := c.r.Header.Values(p.name)
		switch {
		case len(values) == 0 && p.required:
			return invalidf("request.header-missing", "the header {header} is missing; {description}", p.name, p.about)
		case len(values) == 0:
			continue
		case len(values) > 1 && !p.list:
			return invalidf("request.header-repeated", "the header {header} is given {times} times; keep one", p.name, len(values))
		}
		value := strings.Join(values, ", ")
		if err := p.check(value); err != nil {
			return err
		}
		c.heads[p.name] = value
	}
	return nil
}

// check says what is wrong with a value.
func (p *parameter) check(value string) error {
	switch p.kind {
	case numberKind:
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil || strings.HasPrefix(value, "+") || n < p.min || p.max > 0 && n > p.max {
			if p.max == 0 {
				return invalidf("request.parameter-below-least", `{parameter} should be a whole number from {least} on, not "{value}"`, p.name, p.min, value)
			}
			return invalidf("request.parameter-out-of-range", `{parameter} should be a whole number from {least} to {most}, not "{value}"`, p.name, p.min, p.max, value)
		}
	case flagKind:
		if value != "true" && value != "false" {
			return invalidf("request.parameter-not-a-boolean", `{parameter} should be true or false, not "{value}"`, p.name, value)
		}
	case momentKind:
		if _, err := time.Parse(time.RFC3339Nano, value); err != nil {
			return invalidf("request.parameter-not-a-time", `{parameter} should be a time such as 2024-05-17T10:00:00Z, not "{value}"`, p.name, value)
		}
	default:
		return p.checkText(value)
	}
	return nil
}

func (p *parameter) checkText(value string) error {
	most := cmp.Or(p.max, openapi.MaxText)
	switch {
	case len(p.choices) > 0 && !slices.Contains(p.choices, value):
		return invalidf("request.parameter-not-a-choice", `{parameter} should be one of {choices}, not "{value}"`, p.name, strings.Join(p.choices, ", "), value)
	case uint64(len(value)) > most:
		return invalidf("request.parameter-too-long", "{parameter} has {bytes} bytes; {limit} are the most", p.name, len(value), most)
	case uint64(len(value)) < p.min:
		return invalidf("request.parameter-too-short", "{parameter} has {bytes} bytes; it should have {least} or more", p.name, len(value), p.min)
	case apijson.Legible(value) != value:
		return invalidf("request.parameter-not-text", "{parameter} has characters that are not text; leave them out", p.name)
	}
	return nil
}

// text returns a parameter of the query, or what is usual.
func (c *call) text(name string) string {
	if value, ok := c.fields[name]; ok {
		return value
	}
	for _, p := range c.op.query {
		if p.name == name {
			return p.usual
		}
	}
	return ""
}

// number is text for a whole number; 0 if there is none. It has been checked.
func (c *call) number(name string) uint64 {
	n, _ := strconv.ParseUint(c.text(name), 10, 64)
	return n
}

// flag is text for true or false.
func (c *call) flag(name string) bool { return c.text(name) == "true" }

// moment is text for a time; zero if there is none. It has been checked.
func (c *call) moment(name string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, c.text(name))
	return t.UTC()
}

// header returns a declared header; several lines of it are joined by commas.
func (c *call) header(name string) (value string, ok bool) {
	value, ok = c.heads[name]
	return value, ok
}

// Parameters that several operations have.
var (
	limitParameter  = parameter{name: "limit", kind: numberKind, min: 1, max: maxLimit, usual: strconv.Itoa(usualLimit), about: "how many items there are at most", example: "10"}
	cursorParameter = parameter{name: "cursor", about: "where to go on: next of the page before"}
	ifMatch         = parameter{name: "If-Match", list: true, about: "only if it has one of these entity tags now", example: `"v3"`}
	ifNoneMatch     = parameter{name: "If-None-Match", list: true, about: "only if it has none of these entity tags now; * : only if there is none yet", example: "*"}
	entityTag       = parameter{name: "ETag", about: "The version, for If-Match", example: `"v3"`}
	location        = parameter{name: "Location", about: "Where it is now", example: Root + "/records/ark:12345/x1"}
)

// isRead reports whether the request only reads.
func (c *call) isRead() bool { return c.r.Method == http.MethodGet || c.r.Method == http.MethodHead }
