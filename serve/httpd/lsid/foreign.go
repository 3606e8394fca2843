package lsid

import (
	"bytes"
	"context"
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/serve/httpd/describe"
)

// Foreign stores which other authorities know of records: a [registrar.Registrar]. The principal is in the context.
type Foreign interface {
	ForeignAuthorities(ctx context.Context, id stele.ID) ([]registrar.ForeignAuthority, error)
	AddForeignAuthority(ctx context.Context, name stele.ID, authority string) error
	RemoveForeignAuthority(ctx context.Context, name stele.ID, authority string) error
}

// notice answers notifyForeignAuthority and revokeNotificationForeignAuthority. The protocol has no authentication
// (section 6), and what is stored appears in metadata that others trust. So a notice is accepted only from a user who
// may change the record.
func (c *call) notice(add bool) error {
	if c.o.Frozen != nil {
		return failf(notImplemented, "%v", stele.Reason(c.o.Frozen))
	}
	if c.o.Foreign == nil {
		return failf(notImplemented, "this authority does not take notice of other authorities; its operator can turn that on with the setting lsid-foreign-authorities")
	}
	if c.r.Method == http.MethodHead {
		return failf(noMethod, "a notice changes something; send it with GET or as a message")
	}
	done, err := c.site.Charge(costAssign)
	if err != nil {
		return err
	}
	defer done()
	if err := c.authenticate(); err != nil {
		return err
	}
	f, err := c.find()
	if err != nil {
		return err
	}
	name, ok := c.arguments.get("authorityName")
	switch {
	case !ok || name == "":
		return failf(badCall, "the argument authorityName is missing")
	case add:
		err = c.o.Foreign.AddForeignAuthority(c.r.Context(), f.id, name)
	default:
		err = c.o.Foreign.RemoveForeignAuthority(c.r.Context(), f.id, name)
	}
	if err != nil {
		return err
	}
	c.w.Header()["Cache-Control"] = []string{"no-store"}
	if c.soap {
		c.sendResult(func(*bytes.Buffer) {})
		return nil
	}
	c.site.Send(http.StatusOK, "text/plain; charset=utf-8", nil)
	return nil
}

// foreign returns what metadata say of other authorities.
func (c *call) foreign(f *found) (list []describe.Statement, err error) {
	if c.o.Foreign == nil {
		return nil, nil
	}
	known, err := c.o.Foreign.ForeignAuthorities(c.server(), f.res.Record.ID)
	for _, one := range known {
		list = append(list, describe.Statement{Prefix: "foreign", Vocabulary: foreignVocabulary, Term: foreignTerm, Text: one.Name})
	}
	return list, err
}
