package desk

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/job"
	"github.com/stele-id/stele/web/deskpage"
)

// showReplace shows the form that replaces a host, or another beginning of targets, and what it
// would do. Its address is the query, so that looking changes nothing.
func (c *call) showReplace() error {
	return c.replacePage(http.StatusOK, c.r.URL.Query())
}

// replacePage shows the form as it was filled in, and what it would do.
func (c *call) replacePage(status int, values url.Values, problems ...deskpage.Problem) error {
	choice, err := c.choices(values.Get("namespace"), true)
	if err != nil {
		return err
	}
	v := &deskpage.Replace{Frame: c.frame("replace.title", "many"), Choice: choice, From: deskpage.Field{ID: "from", Name: "from", Value: values.Get("from")},
		To: deskpage.Field{ID: "to", Name: "to", Value: values.Get("to")}, Typed: deskpage.Field{ID: "number", Name: "number"}}
	v.Problems = problems
	r, err := replacement(values)
	if values.Has("from") {
		var found job.ReplacePreview
		if err == nil {
			found, err = c.h.o.Jobs.PreviewReplace(c.ctx, r)
		}
		switch kind := stele.KindOf(err); {
		case err == nil:
			if v.Once, err = c.h.o.Jobs.NewID(); err != nil {
				return err
			}
			c.showFound(v, found)
			v.Same = c.sameReplace(&r, v.Good)
		case kind == stele.Invalid || kind == stele.NotFound:
			status = http.StatusUnprocessableEntity
			c.wrongReplace(v, err)
		default:
			return err
		}
	}
	return c.show(status, "replace", v)
}

// sameReplace returns the command and the request that replace so many records.
func (c *call) sameReplace(r *bulk.Replacement, records int) []deskpage.Same {
	command := "stele replace " + shellWord(r.From) + " " + shellWord(r.To)
	if r.Namespace != "" {
		command += " --namespace " + shellWord(r.Namespace)
	}
	body, err := json.Marshal(struct {
		*bulk.Replacement
		Expect int `json:"expect"`
	}{r, records})
	if err != nil { // texts and a number are always JSON
		return nil
	}
	return []deskpage.Same{
		{Label: c.language.Text("same.command"), Text: command + " --dry-run\n" + command + " --expect " + strconv.Itoa(records)},
		{Label: c.language.Text("same.api"), Text: `curl -H "Authorization: Bearer $STELE_TOKEN" -H "Content-Type: application/json" -d ` + shellWord(string(body)) + " " + c.base() + "/api/v1/replace"},
	}
}

// replacement reads the form.
func replacement(values url.Values) (bulk.Replacement, error) {
	return bulk.NewReplacement(values.Get("from"), values.Get("to"), values.Get("namespace"))
}

// wrongReplace shows what is wrong with the form.
func (c *call) wrongReplace(v *deskpage.Replace, err error) {
	problems, ok := errors.AsType[stele.Problems](err)
	if !ok {
		v.Problems = append(v.Problems, deskpage.Problem{Text: c.language.Problem(reason(err))})
		return
	}
	for _, p := range problems {
		text := c.language.Problem(p.Err)
		field := &v.To
		if p.Path == "from" {
			field = &v.From
		}
		field.Problem = text
		v.Problems = append(v.Problems, deskpage.Problem{Field: field.ID, Text: text})
	}
}

// showFound shows what a replacement would do.
func (c *call) showFound(v *deskpage.Replace, found job.ReplacePreview) {
	v.Judged, v.Count, v.Refused, v.Good = true, found.Count, found.Refused, found.Count-found.Refused
	v.Confirm = v.Good > great
	for _, s := range found.Samples {
		row := deskpage.ReplaceSample{ID: s.ID.String(), Title: s.Title, URL: recordURL(s.ID), Old: s.Old, New: s.New}
		if s.Err != nil {
			row.Problems = c.sentences(s.Err)
		}
		v.Samples = append(v.Samples, row)
	}
}

// replace starts the job that replaces.
func (c *call) replace() error {
	if err := c.readForm(); err != nil {
		return err
	}
	form := c.r.PostForm
	once := form.Get("once")
	if c.wasStarted(once) {
		return nil
	}
	r, err := replacement(form)
	if err != nil {
		return c.replacePage(http.StatusUnprocessableEntity, form)
	}
	found, err := c.h.o.Jobs.PreviewReplace(c.ctx, r)
	if err != nil {
		return err
	}
	good := found.Count - found.Refused
	switch {
	case good == 0:
		return c.replacePage(http.StatusConflict, form, deskpage.Problem{Text: c.language.Text("many.nothing-to-do")})
	case good > great && !isTyped(form.Get("number"), good):
		return c.replacePage(http.StatusUnprocessableEntity, form, deskpage.Problem{Field: "number", Text: c.language.Text("many.type-number", "number", good)})
	case good > great:
		if err := c.fresh(); err != nil {
			return err
		}
	}
	made, err := c.h.o.Jobs.StartReplace(c.ctx, once, r, found.Count)
	if errors.Is(err, stele.Conflict) && c.wasStarted(once) {
		return nil
	} else if err != nil {
		return err
	}
	c.redirect(jobURL(made.ID) + "?done=job-started")
	return nil
}

// wasStarted reports whether a form was sent before, and leads to the job that it started then: a
// beginning that is replaced twice may lead to wrong addresses.
func (c *call) wasStarted(once string) bool {
	j, err := c.h.o.Jobs.Get(c.ctx, once)
	if err != nil {
		return false // the form is new, or what follows says what is wrong
	}
	c.redirect(jobURL(j.ID) + "?done=job-started")
	return true
}
