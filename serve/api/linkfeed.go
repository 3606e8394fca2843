package api

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/web/language"
	"github.com/stele-id/stele/web/linkwords"
)

// atomType is the media type of a feed (RFC 4287).
const atomType = "application/atom+xml"

// Limits of a feed.
const (
	feedEntries = 100
	feedOfKind  = 100
)

func (h *Handler) linkFeedOperations() []operation {
	const group = "Link checks"
	return []operation{{
		name: "getLinkOverview", method: http.MethodGet, path: "linkoverview", group: group,
		summary: "Count targets that do not work as they should",
		asks:    reader, scope: auth.ScopeRead,
		query:   []parameter{{name: "prefix", required: true, about: "What the names begin with", example: "ark:12345"}},
		answers: []answer{{status: 200, about: "The numbers.", value: apijson.LinkOverview{}}},
		serve: func(c *call) error {
			key, err := h.o.Registrar.ParsePrefix(c.text("prefix"))
			if err != nil {
				return amiss(c, "prefix", err)
			}
			o, err := h.o.Links.Overview(c.ctx, key, 0, 0)
			if err != nil {
				return err
			}
			return c.reply(http.StatusOK, o)
		},
	}, {
		name: "getLinkFeed", method: http.MethodGet, path: "linkfeed", group: group,
		summary: "Read what is new about targets, as an Atom feed",
		about:   "Hosts that do not answer, and targets that are broken, gone, moved, or show something else, the newest first, in the language of Accept-Language.",
		asks:    reader, scope: auth.ScopeRead, headers: []parameter{ifNoneMatch},
		query: []parameter{{name: "prefix", required: true, about: "What the names begin with", example: "ark:12345"}},
		answers: []answer{
			{status: 200, about: "The feed.", media: atomType, headers: []parameter{entityTag}},
			{status: 304, about: "It has one of the tags in If-None-Match.", headers: []parameter{entityTag}},
		},
		serve: h.getLinkFeed,
	}}
}

// feed is an Atom feed (RFC 4287).
type feed struct {
	XMLName  xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	Language string      `xml:"xml:lang,attr"`
	ID       string      `xml:"id"`
	Title    string      `xml:"title"`
	Updated  string      `xml:"updated"`
	Author   string      `xml:"author>name"`
	Links    []feedLink  `xml:"link"`
	Entries  []feedEntry `xml:"entry"`
}

type feedLink struct {
	Rel  string `xml:"rel,attr"`
	Type string `xml:"type,attr,omitempty"`
	Href string `xml:"href,attr"`
}

type feedEntry struct {
	ID       string        `xml:"id"`
	Title    string        `xml:"title"`
	Updated  string        `xml:"updated"`
	Link     feedLink      `xml:"link"`
	Category *feedCategory `xml:"category"`
	Summary  string        `xml:"summary"`

	at time.Time
}

type feedCategory struct {
	Term  string `xml:"term,attr"`
	Label string `xml:"label,attr"`
}

// entryID returns a name for what a finding is about, which stays the same as long as the finding does: a UUID of RFC 9562, version 8.
func entryID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	u := sum[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

func (h *Handler) getLinkFeed(c *call) error {
	key, err := h.o.Registrar.ParsePrefix(c.text("prefix"))
	if err != nil {
		return amiss(c, "prefix", err)
	}
	on, err := c.conditions()
	if err != nil {
		return err
	}
	o, err := h.o.Links.Overview(c.ctx, key, feedOfKind, 0)
	if err != nil {
		return err
	}
	l := h.o.Pages.Language(c.r)
	body, last, err := linkFeed(l, c.base(), key, o)
	if err != nil {
		return &stele.Error{Op: c.op.name, Kind: stele.Internal, Err: err}
	}
	sum := sha256.Sum256(body)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	head := c.w.Header()
	head.Set("ETag", tag)
	head.Set("Last-Modified", last.UTC().Format(http.TimeFormat))
	head.Set("Content-Language", l.Tag)
	head.Add("Vary", "Accept-Language")
	if on.noneMatch.has(tag) {
		c.replyEmpty(http.StatusNotModified)
		return nil
	}
	c.write(http.StatusOK, atomType, body)
	return nil
}

// linkFeed writes the feed of what was found out, and returns when the last of it was.
func linkFeed(l *language.Language, base string, key stele.NamespaceKey, o *apijson.LinkOverview) (body []byte, last time.Time, err error) {
	query := url.QueryEscape(key.String())
	self := base + Root + "/linkfeed?prefix=" + query
	page := base + "/.desk/links?namespace=" + query
	f := feed{Language: l.Tag, ID: self, Title: l.Text("links.feed-title", "namespace", key.String()), Author: "Stele",
		Links: []feedLink{{Rel: "self", Type: atomType, Href: self}, {Rel: "alternate", Type: "text/html", Href: page}}}
	for _, host := range o.Hosts {
		if host.Down.IsZero() {
			continue
		}
		f.Entries = append(f.Entries, feedEntry{ID: entryID("host", key.String(), host.Host, host.Down.UTC().Format(time.RFC3339)), at: host.Down,
			Title: l.Text("links.feed-host", "host", host.Host), Link: feedLink{Rel: "alternate", Href: page + "&host=" + url.QueryEscape(host.Host)},
			Category: &feedCategory{"host", l.Text("links.dead")},
			Summary:  linkwords.Cause(l, host.Cause) + " · " + l.Text("links.names-there", "count", host.Count)})
	}
	for _, kind := range []string{"broken", "gone", "moved", apijson.LinkDrifted} {
		for i := range o.First[kind] {
			one := &o.First[kind][i]
			summary := linkwords.Seen(l, one) + " · " + one.URL
			if one.State == "moved" && one.Final != "" {
				summary += " → " + one.Final
			}
			f.Entries = append(f.Entries, feedEntry{ID: entryID(kind, one.Scheme, one.ID, fmt.Sprint(one.Target), one.URL, one.Told().UTC().Format(time.RFC3339), one.Drift), at: one.Told(),
				Title: one.ID + ": " + linkwords.Kind(l, kind), Link: feedLink{Rel: "alternate", Href: base + linkwords.Form(one)},
				Category: &feedCategory{kind, linkwords.Kind(l, kind)}, Summary: summary})
		}
	}
	slices.SortStableFunc(f.Entries, func(a, b feedEntry) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.ID, b.ID)) })
	f.Entries = f.Entries[:min(len(f.Entries), feedEntries)]
	last = time.Unix(0, 0)
	for i := range f.Entries {
		e := &f.Entries[i]
		e.Updated = e.at.UTC().Format(time.RFC3339)
		if e.at.After(last) {
			last = e.at
		}
	}
	f.Updated = last.UTC().Format(time.RFC3339)
	var b bytes.Buffer
	b.WriteString(xml.Header)
	enc := xml.NewEncoder(&b)
	enc.Indent("", " ")
	err = enc.Encode(&f)
	return b.Bytes(), last, err
}
