package desk

import (
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/web/deskpage"
)

// moved returns the targets of names in a namespace that have moved away from a host, and whether there are more.
func (c *call) moved(key stele.NamespaceKey, host string) ([]bulk.Move, bool, error) {
	return bulk.FirstMoves(host, func(after string) iter.Seq2[apijson.LinkFinding, error] {
		return c.h.o.Links.FindingsOf(c.ctx, key, bulk.MovedAt(host), after)
	})
}

// acceptHost returns the host of the page.
func acceptHost(values url.Values) string {
	return strings.ToLower(strings.TrimSpace(values.Get("host")))
}

// showAccept shows what accepting the new addresses of a host would do.
func (c *call) showAccept() error {
	values := c.r.URL.Query()
	ns, _, err := c.linkSpace(values)
	if err != nil {
		return err
	}
	return c.acceptPage(http.StatusOK, ns, acceptHost(values))
}

func (c *call) acceptPage(status int, ns *stele.Namespace, host string, problems ...deskpage.Problem) error {
	key := ns.Key()
	moves, more, err := c.moved(key, host)
	if err != nil {
		return err
	}
	found, err := c.h.o.Jobs.PreviewAccept(c.ctx, moves)
	if err != nil {
		return err
	}
	v := &deskpage.Accept{Replace: deskpage.Replace{Frame: c.frame("accept.title", "namespaces"), Typed: deskpage.Field{ID: "number", Name: "number"}},
		Key: key.String(), Called: ns.Title, Back: linksPath(key, "links"), Host: host, Digest: bulk.Digest(moves), More: more}
	v.Problems = problems
	if v.Once, err = c.h.o.Jobs.NewID(); err != nil {
		return err
	}
	c.showFound(&v.Replace, found)
	command := "stele links accept " + shellWord(key.String()) + " " + shellWord(host)
	if v.Far = more && len(moves) == 0; v.Far { // the command reads on
		v.Same = []deskpage.Same{{Label: c.language.Text("same.command"), Text: command + " --dry-run"}}
		return c.show(status, "accept", v)
	}
	body, err := json.Marshal(apijson.LinkAcceptance{Prefix: key.String(), Host: host, Digest: v.Digest})
	if err != nil {
		return err
	}
	v.Same = []deskpage.Same{
		{Label: c.language.Text("same.command"), Text: command + " --dry-run\n" + command + " --digest " + v.Digest},
		{Label: c.language.Text("same.api"), Text: `curl -H "Authorization: Bearer $STELE_TOKEN" -H "Content-Type: application/json" -d ` + shellWord(string(body)) + " " + c.base() + "/api/v1/acceptmoved"},
	}
	return c.show(status, "accept", v)
}

// accept starts the job that gives targets the addresses to which they moved.
func (c *call) accept() error {
	if err := c.readForm(); err != nil {
		return err
	}
	form := c.r.PostForm
	once := form.Get("once")
	if c.wasStarted(once) {
		return nil
	}
	ns, _, err := c.linkSpace(form)
	if err != nil {
		return err
	}
	host := acceptHost(form)
	moves, _, err := c.moved(ns.Key(), host)
	if err != nil {
		return err
	}
	again := func(status int, field, text string) error {
		return c.acceptPage(status, ns, host, deskpage.Problem{Field: field, Text: text})
	}
	if bulk.Digest(moves) != form.Get("digest") {
		return again(http.StatusConflict, "", c.language.Text("accept.changed"))
	}
	found, err := c.h.o.Jobs.PreviewAccept(c.ctx, moves)
	if err != nil {
		return err
	}
	good := found.Count - found.Refused
	switch {
	case good == 0:
		return again(http.StatusConflict, "", c.language.Text("many.nothing-to-do"))
	case good > great && !isTyped(form.Get("number"), good):
		return again(http.StatusUnprocessableEntity, "number", c.language.Text("many.type-number", "number", good))
	case good > great:
		if err := c.fresh(); err != nil {
			return err
		}
	}
	made, err := c.h.o.Jobs.StartAccept(c.ctx, once, host, moves, found.Count)
	if errors.Is(err, stele.Conflict) && c.wasStarted(once) {
		return nil
	} else if err != nil {
		return err
	}
	c.redirect(jobURL(made.ID) + "?done=job-started")
	return nil
}
