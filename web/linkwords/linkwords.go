// Package linkwords says in a reader's language what was found out about where names lead: on pages, in mail and in feeds.
//
// It decides nothing: the findings are those of the link checker.
package linkwords

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/web/language"
)

// Kinds are what findings can be about, the most urgent first.
func Kinds() []string {
	return []string{"broken", "gone", "moved", apijson.LinkDrifted, "unsure", "failing", "blocked", "excluded"}
}

// Kind returns the word for what a finding is about.
func Kind(l *language.Language, kind string) string { return l.Text("linkkind." + kind) }

// Form returns the path of the form of a record at the desk, at the target of a finding, with what the finding proposes filled in: the new
// address of a target that moved, or the archived copy of one that leads nowhere. Nothing changes before a user saves the form.
func Form(f *apijson.LinkFinding) string {
	number := strconv.Itoa(f.Target)
	path := "/.desk/record?id=" + url.QueryEscape(f.ID)
	switch kind := f.Kind(); {
	case f.State == "moved" && f.Final != "":
		path += "&take=" + number
	case (kind == "broken" || kind == "gone") && f.Copy != "":
		path += "&copy=" + number
	}
	return path + "#target-" + number + "-url"
}

// Seen says what was seen at a target.
func Seen(l *language.Language, f *apijson.LinkFinding) string {
	if f.Drift != "" && f.State != "broken" && f.State != "gone" {
		return said(l, "linkdrift."+f.Drift, f.Drift)
	}
	text := said(l, "linkseen."+f.Cause, f.Cause, "status", strconv.Itoa(f.Status))
	if f.Wall != "" {
		text += " " + l.Text("linkfact.wall", "wall", f.Wall)
	}
	return text
}

// Cause says what was seen at a host.
func Cause(l *language.Language, cause string) string {
	return said(l, "linkseen."+cause, cause, "status", "0")
}

// said returns a text; what a later checker tells that has no text yet is told as it is.
func said(l *language.Language, key, otherwise string, args ...any) string {
	if !l.Has(key) {
		return otherwise
	}
	return l.Text(key, args...)
}

// Facts says since when, how often, and when it worked last.
func Facts(l *language.Language, f *apijson.LinkFinding) (list []string) {
	if since := f.Told(); !since.IsZero() {
		if !f.First.IsZero() && f.First.Before(since) {
			since = f.First
		}
		list = append(list, l.Text("linkfact.since", "day", since))
	}
	if f.Fails > 0 {
		list = append(list, l.Text("linkfact.fails", "count", f.Fails))
	}
	if !f.Good.IsZero() && f.State != "moved" && f.Drift == "" {
		list = append(list, l.Text("linkfact.good", "day", f.Good))
	}
	return list
}

// Sentence says all that is known of a finding on one line.
func Sentence(l *language.Language, f *apijson.LinkFinding) string {
	return strings.Join(append([]string{Seen(l, f)}, Facts(l, f)...), " · ")
}
