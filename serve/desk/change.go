package desk

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/web"
	"github.com/stele-id/stele/web/deskpage"
)

// historyRows is how many versions a page of the history shows.
const historyRows = 20

// history shows all versions of a record.
func (c *call) history() error {
	values := c.r.URL.Query()
	rec, err := c.record(values)
	if err != nil {
		return err
	}
	role, propose, err := c.rightsAt(rec.ID)
	if err != nil {
		return err
	}
	before, _ := strconv.ParseUint(values.Get("before"), 10, 64) // else from the newest on
	v := &deskpage.History{Frame: c.frame("history.title", "names"), ID: rec.ID.String(), URL: recordURL(rec.ID), Current: rec.Version,
		MayWrite: !propose && role.Includes(stele.RoleEditor)}
	list, next, err := c.versions(rec.ID, before, historyRows)
	if err != nil {
		return err
	}
	for i := range list {
		list[i].MayRevert = v.MayWrite && list[i].Number != rec.Version
		list[i].MayDisavow = role == stele.RoleOwner && list[i].Number != rec.Version && list[i].Disavowed == ""
	}
	v.Versions = list
	if next > 0 {
		v.Next = Root + "history?id=" + url.QueryEscape(rec.ID.String()) + "&before=" + strconv.FormatUint(next, 10)
	}
	v.Same = []deskpage.Same{c.sameCommand("history", rec.ID.String())}
	if v.MayWrite && rec.Version > 1 { // as the buttons of the versions do
		v.Same = append(v.Same, c.sameCommand("revert", rec.ID.String(), "--to", strconv.FormatUint(rec.Version-1, 10)),
			c.samePost("revert", rec.ID, map[string]uint64{"to": rec.Version - 1}))
	}
	return c.show(http.StatusOK, "history", v)
}

// numbered reads a number of a form; 0 if it is damaged, which no version has.
func (c *call) numbered(name string) uint64 {
	n, _ := strconv.ParseUint(c.r.PostForm.Get(name), 10, 64)
	return n
}

// sent reads a form about a record.
func (c *call) sent() (stele.ID, error) {
	if err := c.readForm(); err != nil {
		return stele.ID{}, err
	}
	return c.identifier(c.r.PostForm)
}

// revert makes a new version that says what an old one said.
func (c *call) revert() error {
	id, err := c.sent()
	if err != nil {
		return err
	}
	if _, err := c.h.o.Registrar.Revert(c.ctx, id, max(c.numbered("version"), 1), c.numbered("to")); err != nil {
		return err
	}
	c.redirect(recordURL(id) + "&done=reverted")
	return nil
}

// reinstate takes a withdrawal back.
func (c *call) reinstate() error {
	id, err := c.sent()
	if err != nil {
		return err
	}
	if _, err := c.h.o.Registrar.Reinstate(c.ctx, id, max(c.numbered("version"), 1)); err != nil {
		return err
	}
	c.redirect(recordURL(id) + "&done=reinstated")
	return nil
}

// showWithdraw shows the form that withdraws a record.
func (c *call) showWithdraw() error {
	rec, err := c.record(c.r.URL.Query())
	if err != nil {
		return err
	}
	v, err := c.withdrawPage(rec)
	if err != nil {
		return err
	}
	if t := rec.Tombstone; t != nil {
		v.Reason.Value = t.Reason
		if t.Replacement.IsValid() {
			v.Replacement.Value = t.Replacement.String()
		}
	}
	v.Same = c.sameWithdraw(rec, v)
	return c.show(http.StatusOK, "withdraw", v)
}

// sameWithdraw returns what withdraws a record as the form is filled in. A withdrawal can be proposed here only.
func (c *call) sameWithdraw(rec *stele.Record, v *deskpage.Withdraw) []deskpage.Same {
	if v.MayPropose {
		return nil
	}
	said := apijson.Withdrawal{Reason: cmp.Or(v.Reason.Value, someReason), Replacement: v.Replacement.Value}
	words := []string{"withdraw", rec.ID.String(), "--reason", said.Reason}
	if said.Replacement != "" {
		words = append(words, "--replacement", said.Replacement)
	}
	return []deskpage.Same{c.sameCommand(words...), c.samePost("withdraw", rec.ID, said)}
}

func (c *call) withdrawPage(rec *stele.Record) (*deskpage.Withdraw, error) {
	_, propose, err := c.rightsAt(rec.ID)
	return &deskpage.Withdraw{MayPropose: propose,
		Frame: c.frame("withdraw.title", "names"), ID: rec.ID.String(), URL: recordURL(rec.ID), Version: rec.Version,
		Reason: deskpage.Field{ID: "reason", Name: "reason"}, Replacement: deskpage.Field{ID: "replacement", Name: "replacement"},
		Reasons: []string{c.language.Text("reason.mistake"), c.language.Text("reason.duplicate"), c.language.Text("reason.lost"), c.language.Text("reason.owner")},
	}, err
}

// withdraw shows the tombstone as readers will see it, and then withdraws the record.
func (c *call) withdraw() error {
	if err := c.readForm(); err != nil {
		return err
	}
	rec, err := c.record(c.r.PostForm)
	if err != nil {
		return err
	}
	v, err := c.withdrawPage(rec)
	if err != nil {
		return err
	}
	v.Version = c.numbered("version")
	v.Reason.Value, v.Replacement.Value = strings.TrimSpace(c.r.PostForm.Get("reason")), strings.TrimSpace(c.r.PostForm.Get("replacement"))
	wrong := func(f *deskpage.Field, text string) {
		f.Problem = text
		v.Problems = append(v.Problems, deskpage.Problem{Field: f.ID, Text: text})
	}
	if v.Reason.Value == "" {
		wrong(&v.Reason, c.language.Text("withdraw.no-reason"))
	}
	var replacement stele.ID
	if v.Replacement.Value != "" {
		if replacement, err = c.h.o.Schemes.Parse(v.Replacement.Value); err != nil {
			wrong(&v.Replacement, c.language.Problem(reason(err)))
		}
	}
	v.Same = c.sameWithdraw(rec, v)
	if len(v.Problems) > 0 {
		return c.show(http.StatusUnprocessableEntity, "withdraw", v)
	}
	if c.r.PostForm.Get("do") != "withdraw" {
		v.Preview = &deskpage.Tombstone{Reason: v.Reason.Value, Replacement: v.Replacement.Value, At: c.h.o.Now()}
		return c.show(http.StatusOK, "withdraw", v)
	}
	if v.MayPropose {
		next := *rec
		next.State, next.Tombstone = stele.Withdrawn, &stele.Tombstone{Reason: v.Reason.Value, At: c.h.o.Now(), Replacement: replacement}
		return c.propose(registrar.Proposal{Record: &next, Base: max(v.Version, 1)}, func(text string) error {
			v.Problems, v.Version = append(v.Problems, deskpage.Problem{Text: text}), rec.Version
			return c.show(http.StatusConflict, "withdraw", v)
		})
	}
	if _, err := c.h.o.Registrar.Withdraw(c.ctx, rec.ID, max(v.Version, 1), v.Reason.Value, replacement); err != nil {
		if stele.KindOf(err) != stele.Invalid && stele.KindOf(err) != stele.Conflict {
			return err
		}
		v.Problems = append(v.Problems, deskpage.Problem{Text: c.language.Problem(reason(err))})
		v.Version = rec.Version
		return c.show(http.StatusConflict, "withdraw", v)
	}
	c.redirect(recordURL(rec.ID) + "&done=withdrawn")
	return nil
}

// showDisavow shows the form that disavows a version.
func (c *call) showDisavow() error {
	values := c.r.URL.Query()
	rec, err := c.record(values)
	if err != nil {
		return err
	}
	number, _ := strconv.ParseUint(values.Get("number"), 10, 64)
	v := &deskpage.Disavow{Frame: c.frame("history.disavow", "names"), ID: rec.ID.String(), URL: recordURL(rec.ID),
		Version: rec.Version, Number: number, Reason: deskpage.Field{ID: "reason", Name: "reason"}}
	v.Same = c.sameDisavow(rec.ID, v)
	return c.show(http.StatusOK, "disavow", v)
}

// sameDisavow returns what disavows a version.
func (c *call) sameDisavow(id stele.ID, v *deskpage.Disavow) []deskpage.Same {
	why := cmp.Or(v.Reason.Value, someReason)
	return []deskpage.Same{c.sameCommand("disavow", id.String(), "--version", strconv.FormatUint(v.Number, 10), "--reason", why),
		c.samePost("disavow", id, apijson.Disavow{First: v.Number, Reason: why})}
}

// disavow stops redirects to an old version.
func (c *call) disavow() error {
	id, err := c.sent()
	if err != nil {
		return err
	}
	number := c.numbered("number")
	text := strings.TrimSpace(c.r.PostForm.Get("reason"))
	if _, err := c.h.o.Registrar.Disavow(c.ctx, id, max(c.numbered("version"), 1), number, number, text); err != nil {
		if stele.KindOf(err) != stele.Invalid {
			return err
		}
		v := &deskpage.Disavow{Frame: c.frame("history.disavow", "names"), ID: id.String(), URL: recordURL(id), Version: c.numbered("version"), Number: number,
			Reason: deskpage.Field{ID: "reason", Name: "reason", Value: text, Problem: c.language.Problem(reason(err))}}
		v.Problems, v.Same = []deskpage.Problem{{Field: "reason", Text: v.Reason.Problem}}, c.sameDisavow(id, v)
		return c.show(http.StatusUnprocessableEntity, "disavow", v)
	}
	c.redirect(Root + "history?id=" + url.QueryEscape(id.String()) + "&done=disavowed")
	return nil
}

// qrURL returns where the QR code of a name is drawn.
func qrURL(id stele.ID) string { return Root + "qr.svg?id=" + url.QueryEscape(id.String()) }

// qrSVG draws the QR code of a name's address.
func (c *call) qrSVG() error {
	address, err := c.address()
	if err != nil {
		return err
	}
	code, err := web.NewQR(address)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "image/svg+xml")
	fmt.Fprintf(c.w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[1]d"><path fill="#fff" d="M0 0h%[1]dv%[1]dH0z"/><path d="%[2]s"/></svg>`+"\n", code.Size, code.Path)
	return nil
}

// qrPNG draws the QR code as an image for programs that know no SVG.
func (c *call) qrPNG() error {
	address, err := c.address()
	if err != nil {
		return err
	}
	image, err := web.QRImage(address)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "image/png")
	_, _ = c.w.Write(image) // if it fails the client has left
	return nil
}

// address returns the address of the name that the field id names, for readers.
func (c *call) address() (string, error) {
	rec, err := c.record(c.r.URL.Query())
	if err != nil {
		return "", err
	}
	subject, err := c.subject(rec)
	if err != nil {
		return "", err
	}
	if subject.Base == "" {
		return "", errNoAddress(rec.ID)
	}
	return subject.Self, nil
}

// base returns the public address of the server; "" if it is not known.
func (c *call) base() string {
	switch {
	case c.h.o.Base != "":
		return c.h.o.Base
	case !c.h.o.OwnHost(c.r):
		return ""
	case c.isSecure():
		return "https://" + c.r.Host
	}
	return "http://" + c.r.Host
}
