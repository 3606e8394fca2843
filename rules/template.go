package rules

import (
	"net/url"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/urltext"
)

// maxURL is the size in bytes of the longest URL that is made of a template, without the
// query of a request.
const maxURL = 8 << 10

var errTooLong = stele.Messagef("resolve.rule-url-too-long", "the URL that the namespace's rule makes of the name has more than {most} bytes", maxURL)

// Template is a URL with places for what captures matched. It does not change.
type Template struct {
	pieces []piece
	start  string // what stands before the first place; it has the host
	body   int    // how many pieces stand before the fragment
}

// piece is a part of a template: text, or a place.
type piece struct {
	text   string
	source int // the number of a capture, or one of those below
	place  urltext.Place
	change change
}

// change is what is done with the letters of a capture.
type change uint8

const (
	unchanged change = iota
	toLower
	toUpper
)

// What a piece stands for, beside captures.
const (
	ownText = -1 - iota
	wholeID
	wholeRest
)

// ParseTemplate reads a template for names of the pattern: {capture}, {capture:lower} and
// {capture:upper}; {id} is the identifier and {rest} what follows the namespace's prefix.
// Errors are of Kind Invalid.
func (p *Pattern) ParseTemplate(text string) (*Template, error) {
	if len(text) > stele.MaxURL {
		return nil, invalid(stele.MaxURL, "rule.template-too-long", "the URL has {bytes} bytes; {most} are the most", len(text), stele.MaxURL)
	}
	t := &Template{body: -1}
	var sample strings.Builder // the URL with a letter in each place
	add := func(literal string) {
		if hash := strings.IndexByte(literal, '#'); hash >= 0 && t.body < 0 {
			if hash > 0 {
				t.pieces = append(t.pieces, piece{text: literal[:hash], source: ownText})
			}
			t.body = len(t.pieces)
			literal = literal[hash:]
		}
		if literal != "" {
			t.pieces = append(t.pieces, piece{text: literal, source: ownText})
		}
	}
	for done := 0; ; {
		i := strings.IndexByte(text[done:], '{')
		if i < 0 {
			add(text[done:])
			sample.WriteString(text[done:])
			break
		}
		i += done
		end := strings.IndexByte(text[i:], '}')
		if end < 0 {
			return nil, invalid(i, "rule.template-brace-unclosed", "this brace is not closed")
		}
		if t.start == "" {
			t.start = text[:i]
		}
		if !hasHost(text[:i]) {
			return nil, invalid(i, "rule.template-decides-host", "a capture must not stand in the protocol, host or port: the name would decide where to go; write it after the host and a slash")
		}
		add(text[done:i])
		sample.WriteString(text[done:i] + "x")
		place, err := p.place(text[i+1:i+end], i+1)
		if err != nil {
			return nil, err
		}
		place.place = urltext.PlaceAfter(text[:i])
		t.pieces = append(t.pieces, place)
		done = i + end + 1
	}
	if t.start == "" {
		t.start = text
	}
	if t.body < 0 {
		t.body = len(t.pieces)
	}
	if err := stele.CheckURL(sample.String()); err != nil {
		return nil, &stele.Error{Kind: stele.Invalid, Err: err}
	}
	return t, nil
}

// hasHost reports whether the beginning of a URL has the whole authority in it: what
// follows stands after a slash, a question mark or a number sign that ends the host.
func hasHost(start string) bool {
	_, rest, ok := strings.Cut(start, "://")
	return ok && strings.IndexAny(rest, "/?#") > 0
}

// place reads what stands between braces.
func (p *Pattern) place(text string, at int) (piece, error) {
	name, change, changes := strings.Cut(text, ":")
	x := piece{}
	switch name {
	case "id":
		x.source = wholeID
	case "rest":
		x.source = wholeRest
	default:
		if x.source = slices.Index(p.names, name); x.source < 0 {
			return x, invalid(at, "rule.template-capture-unknown", `the pattern has no capture "{name}"; it has {captures}, and there are {id-mark} and {rest-mark}`, name, strings.Join(p.names, ", "), "{id}", "{rest}")
		}
	}
	switch {
	case !changes:
	case change == "lower":
		x.change = toLower
	case change == "upper":
		x.change = toUpper
	default:
		return x, invalid(at, "rule.template-change-unknown", `"{change}" can't be done with a capture; write lower or upper after the colon`, change)
	}
	return x, nil
}

// upper returns text with its ASCII letters in upper case.
func upper(text string) string {
	b := []byte(text)
	for i, c := range b {
		if isLower(c) {
			b[i] = c &^ 0x20
		}
	}
	return string(b)
}

// values are what fills the places of a template.
type values struct {
	id, rest string
	at       *spans
	literal  bool // a percent sign is one, and begins no encoded byte
}

func (v *values) of(source int) string {
	switch source {
	case wholeID:
		return v.id
	case wholeRest:
		return v.rest
	}
	return v.rest[v.at[source].from:v.at[source].to]
}

// url fills the places, each as its part of the URL needs it, and appends the query. Scheme,
// host and port are the template's, and the path stays below what stands before the first
// place.
func (t *Template) url(v *values, query string) (string, error) {
	var room [512]byte
	b := room[:0]
	var begins [MaxCaptures + 2]int // where captures begin in the path
	paths := 0
	for i := range t.pieces {
		if i == t.body {
			var err error
			if b, err = urltext.AppendQuery(b, query); err != nil {
				return "", err
			}
		}
		x := &t.pieces[i]
		if x.source == ownText {
			b = append(b, x.text...)
			continue
		}
		if x.place == urltext.InPath && paths < len(begins) {
			begins[paths] = len(b)
			paths++
		}
		text := v.of(x.source)
		switch x.change {
		case toLower:
			text = lower(text)
		case toUpper:
			text = upper(text)
		}
		b = urltext.Append(b, text, x.place, v.literal)
		if len(b) > maxURL+len(query) {
			return "", errTooLong
		}
	}
	if t.body == len(t.pieces) {
		var err error
		if b, err = urltext.AppendQuery(b, query); err != nil {
			return "", err
		}
	}
	whole := string(b)
	if query != "" || urltext.MayClimb(whole) {
		if err := urltext.Verify(t.start, whole); err != nil {
			return "", err
		}
		// Nor does a later capture climb over the template's own text before it.
		for _, n := range begins[:paths] {
			if err := urltext.Verify(whole[:n], whole); err != nil {
				return "", err
			}
		}
	}
	return whole, nil
}

// hostile are texts that would change where a URL leads, if they were not encoded.
var hostile = []string{"", "x", "//evil.example/", "@evil.example/", ":80@evil.example", "evil.example", ".evil.example", "javascript:alert(1)",
	"\r\nLocation: https://evil.example/", `\\evil.example`, "?#&=/", "%2f%2fevil.example", "https://evil.example/", "\x00\u00e9\u202e"}

// verify makes sure that no capture changes scheme, user, host or port. The parts are those
// that a URL's parser sees, so that it does not rest on how the template was read.
func (t *Template) verify() error {
	want, err := url.Parse(t.start)
	if err != nil || want.Host == "" {
		return errHost
	}
	for _, text := range hostile {
		v := values{id: text, rest: text, at: new(spans)}
		for i := range v.at {
			v.at[i].to = uint16(len(text))
		}
		made, err := t.url(&v, "")
		if err != nil {
			continue // it is refused when it is made, too
		}
		got, err := url.Parse(made)
		if err != nil || got.Scheme != want.Scheme || got.Host != want.Host || got.User.String() != want.User.String() {
			return errHost
		}
	}
	return nil
}

var errHost = stele.Messagef("rule.template-host-varies", "the name would decide the protocol, host or port; write captures after the host and a slash")
