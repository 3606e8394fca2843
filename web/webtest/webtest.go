// Package webtest judges pages in tests.
package webtest

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// words are English function words that are not words of Portuguese. One of them in a page in
// Portuguese is a text that was not translated.
var words = strings.Fields(`the and of with this that these not is are was were to from has have had be been can't cannot could should
	will would it its an at on or but by which there you your they their what when where if than then more here only every each must may does give leave`)

// quoted is what a text says that a user wrote.
var quoted = regexp.MustCompile(`"[^"]*"|'stele [^']*'`)

// english returns the first English word of a text, or "".
func english(text string) string {
	for _, word := range strings.FieldsFunc(quoted.ReplaceAllString(text, ""), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' }) {
		if slices.Contains(words, strings.ToLower(strings.Trim(word, "'"))) {
			return word
		}
	}
	return ""
}

// unread are the elements whose texts are not judged: they are data, code, or in another language.
var unread = []string{"code", "pre", "bdi", "kbd", "samp", "var", "script", "style", "textarea"}

// English returns what is English in a page that is in Portuguese; nothing for pages in other
// languages. Elements that have a language of their own are left out, and so are the data that a
// test has put into records: allowed are the texts in which English may be.
func English(page string, allowed ...string) (found []string) {
	if !strings.Contains(page, `<html lang="pt`) {
		return nil
	}
	judge := func(at, text string) {
		text = strings.Join(strings.Fields(text), " ")
		left := text
		for _, a := range allowed {
			left = strings.ReplaceAll(left, a, "")
		}
		if word := english(left); word != "" {
			found = append(found, fmt.Sprintf("%q in %s: %q", word, at, text))
		}
	}
	dec := xml.NewDecoder(strings.NewReader(strings.TrimPrefix(page, "<!DOCTYPE html>")))
	dec.Entity = xml.HTMLEntity
	var open []string // names of elements
	quiet := 0        // how many of them are not judged
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			return append(found, err.Error())
		}
		switch token := token.(type) {
		case xml.StartElement:
			name := token.Name.Local
			other := slices.ContainsFunc(token.Attr, func(a xml.Attr) bool { return a.Name.Local == "lang" && !strings.HasPrefix(a.Value, "pt") })
			open = append(open, name)
			if quiet > 0 || other || slices.Contains(unread, name) {
				quiet++
			}
			for _, a := range token.Attr {
				switch a.Name.Local {
				case "title", "alt", "aria-label", "placeholder", "data-asked", "data-failed", "data-there", "data-copy", "data-copied":
					if quiet == 0 {
						judge(name+" "+a.Name.Local, a.Value)
					}
				}
			}
		case xml.EndElement:
			open = open[:len(open)-1]
			quiet = max(quiet-1, 0)
		case xml.CharData:
			if quiet == 0 && len(open) > 0 {
				judge(strings.Join(open[max(len(open)-2, 0):], " "), string(token))
			}
		}
	}
}
