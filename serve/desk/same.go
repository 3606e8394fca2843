package desk

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/search"
	"github.com/stele-id/stele/web/deskpage"
)

// someReason stands in commands and requests where the user has not said why yet.
const someReason = "..."

// sameCommand is a command that does what a page does. The words are quoted for a shell.
func (c *call) sameCommand(words ...string) deskpage.Same {
	for i := range words {
		words[i] = shellWord(words[i])
	}
	return deskpage.Same{Label: c.language.Text("same.command"), Text: "stele " + strings.Join(words, " ")}
}

// sameRequest is a request to the API that does what a page does; the body may be nil.
func (c *call) sameRequest(method, path, mediaType string, body any, headers ...string) deskpage.Same {
	text := "curl"
	if method != http.MethodGet {
		text += " -X " + method
	}
	text += ` -H "Authorization: Bearer $STELE_TOKEN"`
	for _, h := range headers {
		text += " -H " + shellWord(h)
	}
	if body != nil {
		sent, err := json.Marshal(body)
		if err != nil { // texts and numbers are always JSON
			sent = nil
		}
		text += " -H 'Content-Type: " + mediaType + "' -d " + shellWord(string(sent))
	}
	return deskpage.Same{Label: c.language.Text("same.api"), Text: text + " " + shellWord(c.base()+"/api/v1/"+path)}
}

// sameRead is a request to the API that reads what a page shows.
func (c *call) sameRead(path string, query url.Values) deskpage.Same {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return c.sameRequest(http.MethodGet, path, "", nil)
}

// ifMatch is the header with which a request changes a record only if it is as the page shows it.
func (c *call) ifMatch(version uint64) string {
	var list stele.Generations
	if c.h.o.Generations != nil {
		list = c.h.o.Generations()
	}
	return "If-Match: " + apijson.EntityTag(list, version)
}

// sameNames returns what finds the same names.
func (c *call) sameNames(q *search.Query) []deskpage.Same {
	words, query := []string{"find"}, url.Values{}
	add := func(flag, parameter, value string) {
		if value != "" {
			words = append(words, "--"+flag, value)
			query.Set(parameter, value)
		}
	}
	if q.Namespace != (stele.NamespaceKey{}) {
		add("namespace", "namespace", q.Namespace.String())
	}
	add("state", "state", string(q.State))
	add("host", "host", q.Host)
	add("by", "by", q.By)
	if !q.ModifiedFrom.IsZero() {
		add("since", "after", q.ModifiedFrom.UTC().Format(time.RFC3339))
	}
	if !q.ModifiedBefore.IsZero() {
		add("until", "before", q.ModifiedBefore.UTC().Format(time.RFC3339))
	}
	if q.Text != "" {
		if query.Set("q", q.Text); strings.HasPrefix(q.Text, "-") {
			words = append(words, "--")
		}
		words = append(words, q.Text)
	}
	return []deskpage.Same{c.sameCommand(words...), c.sameRead("search", query)}
}

// sameProposal returns what does the same as the buttons of a proposal.
func (c *call) sameProposal(v *deskpage.Proposal) []deskpage.Same {
	list := []deskpage.Same{c.sameCommand("proposal", "show", v.Number)}
	decline := func(body any, words ...string) {
		list = append(list, c.sameCommand(append([]string{"proposal", "decline", v.Number}, words...)...),
			c.sameRequest(http.MethodPost, "decline/"+v.Number, apijson.JSON, body))
	}
	switch {
	case v.MayDecide:
		if !v.Overtaken {
			list = append(list, c.sameCommand("proposal", "approve", v.Number), c.sameRequest(http.MethodPost, "approve/"+v.Number, apijson.JSON, nil))
		}
		why := cmp.Or(v.Answer.Value, someReason)
		decline(apijson.Declining{Reason: why}, "--reason", why)
	case v.MayTakeBack:
		decline(apijson.Declining{})
	}
	return list
}

// samePost is sameRequest for an action on a record.
func (c *call) samePost(action string, id stele.ID, body any) deskpage.Same {
	return c.sameRequest(http.MethodPost, action+"/"+escaped(id), apijson.JSON, body)
}

// sameRecord returns what does the same as the page of a record: the change of its form, its publication if it is reserved, its return if it is withdrawn.
func (c *call) sameRecord(rec *stele.Record, propose bool) []deskpage.Same {
	const merge = "application/merge-patch+json"
	id, path, seen := rec.ID.String(), "records/"+escaped(rec.ID), strconv.FormatUint(rec.Version, 10)
	switch {
	case propose:
		return []deskpage.Same{c.sameCommand("proposal", "add", id, "--to", "https://example.org/1", "--note", someReason)}
	case rec.State == stele.Withdrawn:
		return []deskpage.Same{c.sameCommand("reinstate", id), c.samePost("reinstate", rec.ID, nil)}
	case rec.State == stele.Reserved:
		return []deskpage.Same{c.sameCommand("update", id, "--activate", "--if-version", seen), c.sameRequest(http.MethodPatch, path, merge, map[string]string{"state": string(stele.Active)}, c.ifMatch(rec.Version))}
	}
	return []deskpage.Same{c.sameCommand("update", id, "--to", "https://example.org/1", "--if-version", seen),
		c.sameRequest(http.MethodPatch, path, merge, map[string]map[string]string{"metadata": {stele.What: someReason}}, c.ifMatch(rec.Version))}
}

// sameNew returns what makes a name: the user's own, or the next one.
func (c *call) sameNew(f *form) (list []deskpage.Same) {
	target := "https://example.org/1"
	if len(f.targets) > 0 && f.targets[0].url != "" {
		target = f.targets[0].url
	}
	record := map[string]string{"url": target}
	if f.reserve {
		record["state"] = string(stele.Reserved)
	}
	if f.own == "" {
		if key, err := c.h.o.Registrar.ParsePrefix(f.namespace); err == nil { // how the namespace is named is the matter of each scheme
			list = append(list, c.sameCommand("mint", key.Scheme, "--help"))
		}
		return append(list, c.sameRequest(http.MethodPost, "mint", apijson.JSON, map[string]any{"namespace": f.namespace, "record": record}))
	}
	words := []string{"register", f.own, "--to", target}
	if f.what != "" {
		words = append(words, "--title", f.what)
	}
	if f.reserve {
		words = append(words, "--reserve")
	}
	return append(list, c.sameCommand(words...))
}
