package links

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// usualRules is the list that comes with the program.
//
//go:embed walls.json
var usualRules []byte

// Rules say how pages look that keep programs out, and pages that say that there is nothing. They are data,
// so that an operator can replace them without another version of the program.
type Rules struct {
	Version string              `json:"version"`
	Walls   []Sign              `json:"walls"`
	Titles  map[string][]string `json:"titles"`  // of pages that say "not found", by language
	Fillers []string            `json:"fillers"` // words that such a title has beside
	Pages   struct {
		Error []string `json:"error"` // names of pages of errors
		Login []string `json:"login"`
	} `json:"pages"`
}

// Judge says what an answer is evidence of: Rules do, and rules that are read again when they change.
type Judge interface {
	Judge(a *Answer) Evidence
}

// Sign is the sign of a wall. All that it names must be there.
type Sign struct {
	Name   string `json:"name"`
	Header string `json:"header,omitempty"` // in lower case
	Value  string `json:"value,omitempty"`  // that the header contains
	Cookie string `json:"cookie,omitempty"` // that an answer sets
	Body   string `json:"body,omitempty"`   // that the page contains
	Status []int  `json:"status,omitempty"` // one of these; none: any
	Words  int    `json:"words,omitempty"`  // the page has at most so many; 0: any number
}

// maxRules is how many bytes a list of rules may have.
const maxRules = 1 << 20

// UsualRules returns the rules that come with the program.
func UsualRules() (*Rules, error) { return ParseRules(usualRules) }

// ParseRules reads a list of rules.
func ParseRules(text []byte) (*Rules, error) {
	refuse := func(code, text string, args ...any) error {
		return stele.Errorf("read rules of links", stele.ID{}, stele.Invalid, code, text, args...)
	}
	if len(text) > maxRules {
		return nil, refuse("links.rules-too-long", "the list of walls has more than {most} bytes", maxRules)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	r := &Rules{}
	if err := d.Decode(r); err != nil {
		return nil, refuse("links.rules-unreadable", "the list of walls can't be read: {cause}", err)
	}
	for i, s := range r.Walls {
		if s.Name == "" || s.Header == "" && s.Cookie == "" && s.Body == "" && len(s.Status) == 0 {
			return nil, refuse("links.rule-empty", "the wall with number {number} in the list has no name or no sign", i+1)
		}
		r.Walls[i].Header, r.Walls[i].Body = strings.ToLower(s.Header), strings.ToLower(s.Body)
	}
	for lang, list := range r.Titles {
		for i, t := range list {
			r.Titles[lang][i] = fold(t)
		}
	}
	return r, nil
}

// fold makes texts comparable: lower case, one apostrophe, single spaces.
func fold(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(strings.ToLower(text), "’", "'")), " ")
}

// wall returns the name of the wall that an answer shows; "" if there is none.
func (r *Rules) wall(a *Answer, words int) string {
	var body []byte
	for _, s := range r.Walls {
		switch {
		case len(s.Status) > 0 && !slices.Contains(s.Status, a.Status):
		case s.Words > 0 && words > s.Words:
		case s.Header != "" && !has(a.Header[s.Header], s.Value):
		case s.Cookie != "" && !begins(a.Header["set-cookie"], s.Cookie):
		default:
			if s.Body != "" {
				if body == nil {
					body = bytes.ToLower(a.Body)
				}
				if !bytes.Contains(body, []byte(s.Body)) {
					continue
				}
			}
			return s.Name
		}
	}
	return ""
}

// has reports whether one of the values contains a text.
func has(values []string, text string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return strings.Contains(strings.ToLower(v), strings.ToLower(text)) })
}

func begins(values []string, text string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return strings.HasPrefix(strings.ToLower(strings.TrimSpace(v)), text) })
}

// saysNotFound reports whether the title of a page is that of an error: a part of it is a phrase with nothing
// beside but words that such titles have. A work may have such words in its title: then
// others stand beside them.
func (r *Rules) saysNotFound(title string) bool {
	for _, part := range strings.FieldsFunc(fold(title), func(c rune) bool { return strings.ContainsRune("|–—:·-!.,;()[]»«/", c) }) {
		part = strings.TrimSpace(part)
		if part == "404" {
			return true
		}
		for _, list := range r.Titles {
			for _, phrase := range list {
				if before, after, ok := strings.Cut(part, phrase); ok && r.isFilling(before) && r.isFilling(after) {
					return true
				}
			}
		}
	}
	return false
}

// isFilling reports whether all words are fillers.
func (r *Rules) isFilling(text string) bool {
	for _, w := range strings.Fields(text) {
		if !slices.Contains(r.Fillers, w) {
			return false
		}
	}
	return true
}
