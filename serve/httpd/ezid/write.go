package ezid

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/anvl"
	"github.com/stele-id/stele/document/ezidrecord"
	"github.com/stele-id/stele/registrar/minting"
)

const (
	maxBody      = 1 << 20     // bytes, as in the API
	mintPatience = time.Minute // how long a request waits for a name
	maxTries     = 50          // how often a change is tried while others change the same record
)

// placeholder stands in a target for the identifier that is minted.
const placeholder = "${identifier}"

// readChange reads the body.
func (c *call) readChange() (ezidrecord.Change, error) {
	text, err := c.readBody()
	if err != nil {
		return ezidrecord.Change{}, err
	}
	elements, err := anvl.Parse(text)
	if err != nil {
		return ezidrecord.Change{}, badf(http.StatusBadRequest, "ezid.body-malformed", "ANVL parse error ({reason})", stele.Reason(err).Error())
	}
	return ezidrecord.ReadChange(elements)
}

// readBody reads the bytes of the body, within their limit.
func (c *call) readBody() (string, error) {
	if c.drained {
		return "", nil
	}
	for _, coding := range c.r.Header.Values("Content-Encoding") {
		if coding != "identity" {
			return "", badf(http.StatusUnsupportedMediaType, "request.body-encoded", `the body is encoded as "{encoding}"; send it as it is`, coding)
		}
	}
	given := c.r.Header.Values("Content-Type")
	if len(given) > 0 {
		media, params, err := mime.ParseMediaType(given[0])
		if charset, ok := params["charset"]; err != nil || len(given) > 1 || media != "text/plain" || ok && !strings.EqualFold(charset, "utf-8") {
			return "", badf(http.StatusBadRequest, "ezid.content-type", "If specified, Content-Type must be text/plain and encoding must be UTF-8")
		}
	}
	if c.r.ContentLength > maxBody {
		return "", errTooLarge()
	}
	data, err := io.ReadAll(io.LimitReader(c.r.Body, maxBody+1))
	switch {
	case len(data) > maxBody:
		return "", errTooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "", badf(http.StatusRequestTimeout, "request.body-too-slow", "the body did not arrive in time; send it again")
	case err != nil:
		return "", badf(http.StatusBadRequest, "ezid.body-cut-off", "malformed or incomplete request body; send it again")
	}
	c.drained = true
	return string(data), nil
}

func errTooLarge() error {
	return badf(http.StatusRequestEntityTooLarge, "ezid.body-too-large", "the body has more than {limit} bytes, which are the most; send less", maxBody)
}

// problem returns an error about one element.
func problem(name, code, text string, args ...any) error {
	return &stele.Error{Kind: stele.Invalid, Err: stele.Problems{{Path: name, Err: stele.Messagef(code, text, args...)}}}
}

func errStatusChange() error {
	return problem(ezidrecord.Status, "ezid.status-change", "invalid identifier status change; reserved becomes public, public becomes unavailable, and unavailable becomes public")
}

// mayOwn refuses another owner than the one that identifiers have, by their namespace. It tells no users apart that are there
// from those that are not.
func (c *call) mayOwn(id stele.ID, change *ezidrecord.Change) error {
	if change.Owner == nil || *change.Owner == "" {
		return nil
	}
	owner, _, err := c.owner(c.ctx, id)
	if err != nil || owner == *change.Owner {
		return err
	}
	if owner == "" { // the client, such as one that may only mint, can't see it
		if owner, _, err = c.owner(auth.With(c.ctx, auth.Local()), id); err != nil || owner == *change.Owner {
			return err // the registrar judges the client later
		}
		// A client that may do nothing here gets the same answer whether the owner is right or wrong.
		return stele.Errorf(c.operation, id, stele.Forbidden, "ezid.owner-unseen", "the owner of the namespace is another one, or can't be seen by the client; leave _owner out")
	}
	return problem("_owner", "ezid.owner-change", "ownership change prohibited; an identifier belongs to the owner of its namespace")
}

// begin gives a new record what a client sends. The record has an identifier, which may stand for one that is to be minted.
func (c *call) begin(rec *stele.Record, change *ezidrecord.Change) error {
	switch change.State {
	case stele.Withdrawn:
		return errStatusChange()
	case "":
		rec.State = stele.Active
	default:
		rec.State = change.State
	}
	if err := c.mayOwn(rec.ID, change); err != nil {
		return err
	}
	c.withoutOwnPage(rec.ID, change)
	return change.Apply(c.h.o.Schemes, rec)
}

// withoutOwnPage takes a target for none that is the identifier's address here: a client sends back what it has read.
func (c *call) withoutOwnPage(id stele.ID, change *ezidrecord.Change) {
	if change.Target != nil && *change.Target != "" && *change.Target == c.ownPage(id) {
		none := ""
		change.Target = &none
	}
}

// inProfile adds the profile of a record to an error about it.
func (c *call) inProfile(rec *stele.Record, err error) error {
	if err == nil {
		return nil
	}
	return &inProfile{err, ezidrecord.ProfileOf(c.h.o.Schemes, rec)}
}

// mint makes an identifier in a namespace, which EZID calls a shoulder.
func (c *call) mint() error {
	if _, err := c.options(nil); err != nil {
		return err
	}
	key, err := c.h.o.Registrar.ParsePrefix(c.rest)
	if err != nil || key.Prefix == "" {
		return badf(http.StatusBadRequest, "ezid.shoulder-missing", "no such shoulder")
	}
	change, err := c.readChange()
	if err != nil {
		return err
	}
	below, err := minting.NameBelow(c.h.o.Schemes, key)
	if err != nil {
		return badf(http.StatusBadRequest, "ezid.shoulder-missing", "no such shoulder")
	}
	rec := &stele.Record{ID: below}
	template := ""
	if change.Target != nil && strings.Contains(*change.Target, placeholder) {
		template, change.Target = *change.Target, nil
	}
	if err := c.begin(rec, &change); err != nil {
		return c.inProfile(rec, err)
	}
	rec.ID = stele.ID{}
	made, err := c.mintRecord(key, rec, template)
	if err != nil {
		return c.inProfile(rec, asShoulder(err))
	}
	return c.success(http.StatusCreated, ezidrecord.Name(c.h.o.Schemes, made.ID), nil)
}

// asShoulder says in EZID's words why no name was minted.
func asShoulder(err error) error {
	m, _ := errors.AsType[*stele.Message](err)
	switch {
	case m == nil:
	case m.Code == "namespace.missing":
		return badf(http.StatusBadRequest, "ezid.shoulder-missing", "no such shoulder")
	case m.Code == "namespace.no-minter":
		return badf(http.StatusBadRequest, "ezid.shoulder-without-minter", "shoulder does not support minting")
	}
	return err
}

// mintRecord mints a name and registers the record under it, in one commit. If the target has the name in it, the name is minted first:
// it is lost if the record can't be registered, and never given twice.
func (c *call) mintRecord(key stele.NamespaceKey, rec *stele.Record, template string) (*stele.Record, error) {
	rc := http.NewResponseController(c.w)
	// A connection without a deadline, in a test, needs no more time.
	_ = rc.SetWriteDeadline(c.h.o.Now().Add(mintPatience + c.h.o.Patience))
	ctx, cancel := context.WithTimeout(c.ctx, mintPatience)
	defer cancel()
	if template == "" {
		return c.h.o.Registrar.MintAndRegister(ctx, rec, key)
	}
	labels, err := c.h.o.Registrar.Mint(ctx, key, 1)
	if err != nil {
		return nil, err
	}
	rec.ID, rec.Aliases = labels[0].ID, labels[0].Aliases
	ezidrecord.SetTarget(rec, strings.ReplaceAll(template, placeholder, ezidrecord.Name(c.h.o.Schemes, rec.ID)))
	return c.h.o.Registrar.Register(auth.With(ctx, c.who.Minting()), rec)
}

// create registers an identifier that the client names, or changes it if it is there and the client says so.
func (c *call) create() error {
	given, err := c.options(map[string][]string{"update_if_exists": yesNo})
	if err != nil {
		return err
	}
	id, err := c.identifier()
	if err != nil {
		return err
	}
	change, err := c.readChange()
	if err != nil {
		return err
	}
	name := ezidrecord.Name(c.h.o.Schemes, id)
	for range maxTries {
		have, err := c.h.o.Registrar.Get(c.ctx, id)
		switch {
		case err != nil && !errors.Is(err, stele.NotFound):
			return err
		case err == nil && !isDeleted(have) && given["update_if_exists"] == "yes":
			return c.revise(id, change)
		case err == nil && !isDeleted(have):
			return c.errExists(id)
		case err == nil:
			err = c.fill(have, change)
		default:
			rec := &stele.Record{ID: id}
			if err := c.begin(rec, &change); err != nil {
				return c.inProfile(rec, err)
			}
			_, err = c.h.o.Registrar.Register(c.ctx, rec)
			err = c.inProfile(rec, err)
		}
		switch {
		case err == nil:
			return c.success(http.StatusCreated, name, nil)
		case !isConflict(err):
			return err
		}
		// Another client may have registered it meanwhile; or it can't be registered here.
		if now, nerr := c.h.o.Registrar.Get(c.ctx, id); nerr != nil || have != nil && now.Version == have.Version {
			if m, ok := errors.AsType[*stele.Message](err); ok && m.Code == "record.namespace-delegated" {
				return err
			}
			return c.errExists(id)
		}
	}
	return errBusy()
}

func (c *call) errExists(id stele.ID) error {
	return stele.Errorf(c.operation, id, stele.Conflict, "ezid.identifier-exists", "identifier already exists")
}

// isConflict reports whether a change clashes with what is stored, or with that of another client. A sealed registry refuses every
// change, which says nothing of the identifier.
func isConflict(err error) bool {
	return errors.Is(err, stele.Conflict) && !errors.Is(err, stele.ErrSealed)
}

// errBusy says that others changed the record again and again.
func errBusy() error {
	return stele.Errorf("modify identifier", stele.ID{}, stele.Unavailable, "ezid.changed-meanwhile", "others change the same identifier; try again")
}

// fill registers anew what was deleted: the name was reserved all the time.
func (c *call) fill(have *stele.Record, change ezidrecord.Change) error {
	next, err := c.h.o.Registrar.Update(c.ctx, have.ID, have.Version, func(next *stele.Record) error {
		return c.begin(next, &change)
	})
	if next == nil {
		next = have
	}
	return c.inProfile(next, err)
}

// modify changes an identifier.
func (c *call) modify() error {
	if _, err := c.options(nil); err != nil {
		return err
	}
	id, err := c.identifier()
	if err != nil {
		return err
	}
	change, err := c.readChange()
	if err != nil {
		return err
	}
	return c.revise(id, change)
}

// revise makes a change, element by element: what another client changes at the same time stays, if it is another element.
func (c *call) revise(id stele.ID, change ezidrecord.Change) error {
	for range maxTries {
		have, err := c.find(id)
		if err != nil {
			return err
		}
		if err := c.mayOwn(have.ID, &change); err != nil {
			return err
		}
		c.withoutOwnPage(have.ID, &change)
		if err = c.change(have, change); err == nil {
			return c.success(http.StatusOK, ezidrecord.Name(c.h.o.Schemes, id), nil)
		}
		now, nerr := c.h.o.Registrar.Get(c.ctx, id)
		if !isConflict(err) || nerr != nil || now.Version == have.Version {
			return c.inProfile(c.profiled(have, change), err)
		}
	}
	return errBusy()
}

// profiled returns a record with the profile that a change gives it.
func (c *call) profiled(have *stele.Record, change ezidrecord.Change) *stele.Record {
	rec := &stele.Record{ID: have.ID, Metadata: have.Metadata}
	only := ezidrecord.Change{Profile: change.Profile}
	_ = only.Apply(c.h.o.Schemes, rec) // a profile can always be set
	return rec
}

// change makes a change of the version of a record that the client's elements are compared with.
func (c *call) change(have *stele.Record, change ezidrecord.Change) error {
	state := change.State
	if state == "" {
		state = have.State
	}
	apply := func(next *stele.Record) error {
		err := change.Apply(c.h.o.Schemes, next)
		if have.Redacted { // the mark of a legal order stays until the record says something about the thing
			ezidrecord.DropProfile(next)
		}
		return err
	}
	var err error
	switch {
	case have.State == stele.Reserved && state == stele.Withdrawn, have.State != stele.Reserved && state == stele.Reserved:
		return errStatusChange()
	case state == stele.Withdrawn:
		reason := change.Reason
		if change.State == "" && have.Tombstone != nil {
			reason = have.Tombstone.Reason
		}
		_, err = c.h.o.Registrar.WithdrawWith(c.ctx, have.ID, have.Version, reason, apply)
	case have.State == stele.Withdrawn:
		_, err = c.h.o.Registrar.Revive(c.ctx, have.ID, have.Version, apply)
	default:
		_, err = c.h.o.Registrar.Update(c.ctx, have.ID, have.Version, func(next *stele.Record) error {
			next.State = state
			return apply(next)
		})
	}
	return err
}

// delete takes away all that is known of an identifier that is reserved. The name stays reserved, and its history stays.
func (c *call) delete() error {
	if _, err := c.options(nil); err != nil {
		return err
	}
	id, err := c.identifier()
	if err != nil {
		return err
	}
	for range maxTries {
		have, err := c.find(id)
		if err != nil {
			return err
		}
		_, err = c.h.o.Registrar.Update(c.ctx, have.ID, have.Version, func(next *stele.Record) error {
			if next.State != stele.Reserved || ezidrecord.IsBlank(next) { // nothing would change, and the client would find it again
				return errNotDeletable()
			}
			ezidrecord.Blank(next)
			return nil
		})
		switch {
		case err == nil:
			return c.success(http.StatusOK, ezidrecord.Name(c.h.o.Schemes, id), nil)
		case errors.Is(err, stele.Gone):
			return errNotDeletable()
		case !isConflict(err):
			return err
		}
		if now, nerr := c.h.o.Registrar.Get(c.ctx, id); nerr != nil || now.Version == have.Version { // it is not another client that is in the way
			return err
		}
	}
	return errBusy()
}

func errNotDeletable() error {
	return stele.Errorf("delete identifier", stele.ID{}, stele.Invalid, "ezid.status-not-deletable", "identifier status does not support deletion")
}
