package desk

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar/minting"
	"github.com/stele-id/stele/serve/httpd/describe"
	"github.com/stele-id/stele/web/deskpage"
)

// identifier reads the name in the field id.
func (c *call) identifier(values url.Values) (stele.ID, error) {
	return c.h.o.Schemes.Parse(values.Get("id"))
}

// showNew shows the form for a new name.
func (c *call) showNew() error {
	values := c.r.URL.Query()
	f := &form{namespace: values.Get("namespace"), wrong: make(map[string]string)}
	if text := values.Get("like"); text != "" {
		id, err := c.h.o.Schemes.Parse(text)
		if err != nil {
			return err
		}
		rec, err := c.h.o.Registrar.Get(c.ctx, id)
		if err != nil {
			return err
		}
		f = formOf(rec)
		f.version = 0
		if ns, err := c.h.o.Registrar.FindNamespace(c.ctx, rec.ID); err == nil {
			f.namespace = ns.Key().String()
		}
	}
	return c.newPage(http.StatusOK, f)
}

// newPage shows the form for a new name as it is filled in.
func (c *call) newPage(status int, f *form) error {
	choice, err := c.choices(f.namespace, true)
	if err != nil {
		return err
	}
	v := &deskpage.Edit{Frame: c.frame("make.title", "names"), New: true, Action: Root + "new", MayWrite: true, MaySave: true, Choice: choice}
	if len(choice.Options) == 0 {
		return stele.Errorf("make name", stele.ID{}, stele.Forbidden, "desk.no-namespace-to-write", "there is no namespace in which you may make names; ask an administrator for one")
	}
	if f.namespace == "" {
		f.namespace = choice.Options[0].Value
	}
	if key, err := c.h.o.Registrar.ParsePrefix(f.namespace); err == nil {
		if ns, err := c.h.o.Registrar.Namespace(c.ctx, key); err == nil {
			v.MayMint = ns.Minter.Kind != stele.NoMinter
			v.Sample = c.sample(ns)
		}
		if v.MayPropose, err = c.mayOnlyPropose(key); err != nil {
			return err
		}
	}
	if f.once == "" {
		f.once = rand.Text()
	}
	f.fill(c, v)
	v.Same = c.sameNew(f)
	return c.show(status, "edit", v)
}

// sample returns the next name of a template; "" if names are not made of one.
func (c *call) sample(ns *stele.Namespace) string {
	if ns.Minter.Template == "" {
		return ""
	}
	status, err := c.h.o.Registrar.MinterStatus(c.ctx, ns.Key())
	if err != nil || status.Shut {
		return ""
	}
	name, err := minting.Sample(c.h.o.Schemes, ns, status.Given)
	if err != nil {
		return ""
	}
	return name
}

// makeNew registers a new name, or changes the form.
func (c *call) makeNew() error {
	if err := c.readForm(); err != nil {
		return err
	}
	f := parseForm(c.r.PostForm)
	do := c.r.PostForm.Get("do")
	if f.edit(do) {
		return c.newPage(http.StatusOK, f)
	}
	rec := &stele.Record{State: stele.Active}
	if f.reserve {
		rec.State = stele.Reserved
	}
	err := f.apply(c, rec)
	if err == nil && do == "propose" {
		p, err := c.proposeNew(f, rec)
		if err == nil {
			c.redirect(proposalURL(p.ID) + "&done=proposed")
			return nil
		}
		if err := f.judge(c, asInvalid(err)); err != nil {
			return err
		}
		return c.newPage(http.StatusUnprocessableEntity, f)
	}
	if err == nil {
		rec, err = c.register(f, rec)
	}
	if err != nil {
		if err := f.judge(c, asInvalid(err)); err != nil {
			return err
		}
		return c.newPage(http.StatusUnprocessableEntity, f)
	}
	if do == "save-another" {
		c.redirect(Root + "new?like=" + url.QueryEscape(rec.ID.String()) + "&done=made")
		return nil
	}
	c.redirect(recordURL(rec.ID) + "&done=made")
	return nil
}

// register registers a record under the name that the user gave, or under the next one.
func (c *call) register(f *form, rec *stele.Record) (*stele.Record, error) {
	if f.own != "" {
		id, err := c.h.o.Schemes.Parse(f.own)
		if err != nil {
			f.note("own", c.language.Problem(reason(err)))
			return nil, errWrongForm
		}
		rec.ID = id
		if text := f.own; text != id.String() {
			rec.Spelling = text
		}
		return c.h.o.Registrar.Register(c.ctx, rec)
	}
	key, err := c.h.o.Registrar.ParsePrefix(f.namespace)
	if err != nil {
		f.note("namespace", c.language.Problem(reason(err)))
		return nil, errWrongForm
	}
	// A browser may send the form twice; only one name is made. A form that was changed after it
	// made a name can be sent again under a new key.
	made, err := c.h.o.Registrar.MintBatch(c.ctx, &minting.IdempotencyKey{Key: cmp.Or(f.once, rand.Text()), Digest: sha256.Sum256([]byte(c.r.PostForm.Encode()))}, []stele.NamespaceKey{key}, 1, rec)
	if err != nil {
		if errors.Is(err, minting.ErrKeyReused) {
			f.once = ""
			err = stele.Errorf("make name", stele.ID{}, stele.Conflict, "desk.form-sent-before", "this form has made a name already, with other content; look at the last changes, and send the form again if you want another name")
		}
		return nil, err
	}
	return made.Records[0], nil
}

// asInvalid makes sure that an error about the form has a Kind.
func asInvalid(err error) error {
	if errors.Is(err, errWrongForm) {
		return &stele.Error{Op: "read form", Kind: stele.Invalid, Err: errWrongForm}
	}
	return err
}

// showRecord shows a record and its form.
func (c *call) showRecord() error {
	rec, err := c.record(c.r.URL.Query())
	if err != nil {
		return err
	}
	f := formOf(rec)
	if f.filledIn, err = c.fillIn(rec, f); err != nil {
		return err
	}
	return c.recordPage(http.StatusOK, rec, f, nil)
}

// record reads the record that the field id names.
func (c *call) record(values url.Values) (*stele.Record, error) {
	id, err := c.identifier(values)
	if err != nil {
		return nil, err
	}
	return c.h.o.Registrar.Get(c.ctx, id)
}

// shortHistory is how many versions the page of a record shows.
const shortHistory = 5

// overtaking is what another user changed while a form was filled in: in words, and the fields with what they said before.
type overtaking struct {
	words  []string
	fields []deskpage.FieldChange
}

// recordPage shows a record with the form as it is filled in, and what another user changed meanwhile, nil if none did.
func (c *call) recordPage(status int, rec *stele.Record, f *form, theirs *overtaking) error {
	role, propose, err := c.rightsAt(rec.ID)
	if err != nil {
		return err
	}
	subject, err := c.subject(rec)
	if err != nil {
		return err
	}
	text := spelled(rec)
	v := &deskpage.Edit{
		Frame: c.frame(cmp.Or(rec.Metadata["what"], text), "names"), ID: rec.ID.String(), Scheme: rec.ID.Scheme(), State: rec.State, By: rec.By, Changed: rec.Modified,
		Action: Root + "record", QR: qrURL(rec.ID), Labels: Root + "labels?id=" + url.QueryEscape(rec.ID.String()),
		MayWrite: !propose && role.Includes(stele.RoleEditor), MayPropose: propose, TheirVersion: rec.Version,
	}
	f.fill(c, v)
	if f.filledIn != "" {
		v.Notice = c.language.Text(f.filledIn)
	}
	v.MaySave = (v.MayWrite || v.MayPropose) && rec.State != stele.Withdrawn
	if theirs != nil {
		v.Version, v.Theirs, v.TheirFields = rec.Version, theirs.words, theirs.fields
	}
	v.Public, v.Info = subject.Self, subject.Info()
	if v.Citations, err = citations(subject); err != nil {
		return err
	}
	for _, alias := range rec.Aliases {
		v.Aliases = append(v.Aliases, alias.String())
	}
	if v.History, _, err = c.versions(rec.ID, 0, shortHistory); err != nil {
		return err
	}
	if err := c.linkCard(rec, v, c.r.Method == http.MethodPost || f.filledIn != ""); err != nil {
		return err
	}
	if v.Use, err = c.useCard(ofRecord, rec.ID.String(), usageURL("usage", url.Values{"id": {rec.ID.String()}})); err != nil {
		return err
	}
	v.Same = c.sameRecord(rec, propose)
	return c.show(status, "edit", v)
}

// subject returns what descriptions of a record are made of.
func (c *call) subject(rec *stele.Record) (describe.Subject, error) {
	ns, err := c.h.o.Registrar.FindNamespace(c.ctx, rec.ID)
	if err != nil && !errors.Is(err, stele.NotFound) {
		return describe.Subject{}, err
	}
	return c.h.o.Subject(c.r, rec, ns), nil
}

// citations returns how a record is cited, in all styles that the resolver gives.
func citations(subject describe.Subject) (list []deskpage.Citation, err error) {
	format, _ := describe.Named("citation")
	for _, style := range describe.Styles() {
		styled, _ := format.In(string(style))
		text, err := styled.Append(nil, subject)
		if err != nil {
			return nil, err
		}
		list = append(list, deskpage.Citation{Style: styleNames[style], Text: strings.TrimSpace(string(text))})
	}
	return list, nil
}

// styleNames are the names of styles of citations, which are the same in all languages.
var styleNames = map[describe.Style]string{describe.APA: "APA", describe.IEEE: "IEEE", describe.DataCite: "DataCite", describe.BibTeX: "BibTeX", describe.RIS: "RIS"}

// escaped returns an identifier as a path.
func escaped(id stele.ID) string {
	return strings.ReplaceAll(strings.ReplaceAll(url.PathEscape(id.String()), "%2F", "/"), "%3A", ":")
}

// saveRecord changes a record, or the form.
func (c *call) saveRecord() error {
	if err := c.readForm(); err != nil {
		return err
	}
	rec, err := c.record(c.r.PostForm)
	if err != nil {
		return err
	}
	f := parseForm(c.r.PostForm)
	do := c.r.PostForm.Get("do")
	if f.edit(do) {
		return c.recordPage(http.StatusOK, rec, f, nil)
	}
	if do == "propose" {
		return c.proposeChange(rec, f)
	}
	next, err := c.h.o.Registrar.Update(c.ctx, rec.ID, max(f.version, 1), func(r *stele.Record) error {
		if do == "publish" {
			r.State = stele.Active
		}
		return asInvalid(f.apply(c, r))
	})
	if err == nil {
		if next.Version == rec.Version {
			c.redirect(recordURL(rec.ID) + "&done=unchanged")
			return nil
		}
		c.redirect(recordURL(rec.ID) + "&done=saved")
		return nil
	}
	if code, _ := stele.CodeOf(err); code == "record.version-not-expected" {
		return c.overtaken(rec.ID, f)
	}
	if err := f.judge(c, err); err != nil {
		return err
	}
	return c.recordPage(http.StatusUnprocessableEntity, rec, f, nil)
}

// overtaken shows both versions after another user was faster: what they changed, and the form as
// it was filled in, which may be saved over theirs.
func (c *call) overtaken(id stele.ID, f *form) error {
	rec, err := c.h.o.Registrar.Get(c.ctx, id)
	if err != nil {
		return err
	}
	seen, err := c.h.o.Registrar.Version(c.ctx, id, f.version)
	if err != nil && !errors.Is(err, stele.NotFound) {
		return err
	}
	return c.recordPage(http.StatusConflict, rec, f, &overtaking{c.changes(seen, rec), c.fieldChanges(seen, rec)})
}

// versions returns versions of a record before one, 0 for the newest first, and the number
// before which the next page goes on, 0 if none does.
func (c *call) versions(id stele.ID, before uint64, most int) (list []deskpage.Version, next uint64, err error) {
	var later *stele.Record
	proofs := c.h.o.Proofs != nil && c.h.o.Proofs(c.ctx)
	add := func(rec, earlier *stele.Record) {
		v := deskpage.Version{Number: rec.Version, At: rec.Modified, By: rec.By, Import: rec.Import, What: c.changes(earlier, rec), URL: "/.info/" + escaped(id) + "?version=" + strconv.FormatUint(rec.Version, 10)}
		if by := rec.Withheld.Disavowal(rec.Version); by != nil {
			v.Disavowed = cmp.Or(by.Reason, "-")
		}
		if proofs && rec.State != stele.Reserved && rec.IsPublic() {
			v.Proof = "/api/v1/proof/" + escaped(id) + "?version=" + strconv.FormatUint(rec.Version, 10)
		}
		list = append(list, v)
	}
	all := c.h.o.Registrar.History(c.ctx, id)
	if before > 0 {
		all = c.h.o.Registrar.HistoryBefore(c.ctx, id, before)
	}
	for rec, err := range all {
		if err != nil {
			return nil, 0, err
		}
		if later != nil {
			add(later, rec)
		}
		if later = rec; len(list) == most {
			return list, rec.Version + 1, nil
		}
	}
	if later != nil {
		add(later, nil)
	}
	return list, 0, nil
}
