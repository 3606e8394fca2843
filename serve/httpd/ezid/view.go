package ezid

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/ezidrecord"
)

// view answers with all that is known of an identifier.
func (c *call) view() error {
	given, err := c.options(map[string][]string{"prefix_match": yesNo})
	if err != nil {
		return err
	}
	id, err := c.identifier()
	if err != nil {
		return err
	}
	name := ezidrecord.Name(c.h.o.Schemes, id)
	rec, err := c.find(id)
	if given["prefix_match"] == "yes" && errors.Is(err, stele.NotFound) {
		var at stele.ID
		if rec, at, err = c.longest(id); err == nil {
			name = ezidrecord.Name(c.h.o.Schemes, at) + " in_lieu_of " + name
		}
	}
	if err != nil {
		return err
	}
	elements, err := c.elements(rec)
	if err != nil {
		return err
	}
	return c.success(http.StatusOK, name, elements)
}

// errNoIdentifier says that there is nothing for the client.
func (c *call) errNoIdentifier(id stele.ID) error {
	return stele.Errorf(c.operation, id, stele.NotFound, "ezid.identifier-missing", "no such identifier")
}

// find returns the record of an identifier, if the client may see it. One that was deleted here, blank and reserved, is not
// there for clients of EZID.
func (c *call) find(id stele.ID) (*stele.Record, error) {
	rec, err := c.h.o.Registrar.Get(c.ctx, id)
	if err != nil {
		if errors.Is(err, stele.NotFound) {
			err = c.errNoIdentifier(id)
		}
		return nil, err
	}
	if isDeleted(rec) {
		return nil, c.errNoIdentifier(id)
	}
	return rec, nil
}

// isDeleted reports whether a record is one that was deleted here. Another way in may register a blank one as reserved, such as the
// assigning service of LSIDs; what is deleted had something to say before.
func isDeleted(rec *stele.Record) bool {
	return rec.Version > 1 && rec.State == stele.Reserved && ezidrecord.IsBlank(rec)
}

// maxHidden is how many records that the client may not see are passed over on the way to a shorter name.
const maxHidden = 20

// longest returns the record with the longest name that an identifier begins with, among those that the client may see, and that
// name.
func (c *call) longest(id stele.ID) (*stele.Record, stele.ID, error) {
	schemes, end := c.h.o.Schemes, len(id.String())
	for range maxHidden {
		_, at, err := c.h.o.Store.Longest(c.ctx, id, func(n int) bool { return n < end && schemes.Cuts(id, n) })
		if err != nil {
			if errors.Is(err, stele.NotFound) {
				err = c.errNoIdentifier(id)
			}
			return nil, id, err
		}
		name, err := schemes.Parse(at.String())
		if err != nil || at.String() == "" {
			break
		}
		rec, err := c.find(name)
		if !errors.Is(err, stele.NotFound) {
			return rec, name, err
		}
		end = len(at.String())
	}
	return nil, id, c.errNoIdentifier(id)
}

// elements returns what the client may see of a record.
func (c *call) elements(rec *stele.Record) (map[string]string, error) {
	role := stele.NoRole
	if c.who.IsKnown() {
		var err error
		if role, err = c.h.o.Registrar.RoleIn(c.ctx, stele.NamespaceKey{Scheme: rec.ID.Scheme(), Prefix: rec.ID.String()}); err != nil {
			return nil, err
		}
	}
	inside := role.Includes(stele.RoleReader)
	if !inside && (rec.State == stele.Withdrawn || rec.Redacted) {
		public := *rec
		if public.Targets = nil; rec.Redacted {
			public.Metadata = nil
		}
		rec = &public
	}
	all := ezidrecord.Elements(c.h.o.Schemes, rec)
	delete(all, "_owner")
	delete(all, "_ownergroup")
	if own := c.ownPage(rec.ID); all[ezidrecord.Target] == "" && own != "" {
		all[ezidrecord.Target] = own
	}
	if !inside {
		return all, nil
	}
	owner, group, err := c.owner(c.ctx, rec.ID)
	if err != nil {
		return nil, err
	}
	if owner != "" {
		all["_owner"] = owner
	}
	if group != "" {
		all["_ownergroup"] = group
	}
	return all, nil
}

// ownPage returns the target of an identifier that has none: its address here, as at EZID. It is "" if the server does not know its
// own address.
func (c *call) ownPage(id stele.ID) string {
	base := c.h.o.Base
	if base == "" {
		if c.h.o.OwnHost == nil || !c.h.o.OwnHost(c.r) {
			return ""
		}
		base = "http://" + c.r.Host
		if c.r.TLS != nil {
			base = "https://" + c.r.Host
		}
	}
	parts := strings.Split(ezidrecord.Name(c.h.o.Schemes, id), "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return base + Root + "/id/" + strings.Join(parts, "/")
}

// owner returns the user and the group that own the namespace of an identifier, or what is above it: an identifier has no owner
// of its own.
func (c *call) owner(ctx context.Context, id stele.ID) (user, group string, err error) {
	ns, err := c.h.o.Registrar.FindNamespace(ctx, id)
	for ; err == nil; ns, err = c.h.o.Registrar.ParentNamespace(ctx, ns.Key()) {
		if user == "" {
			user = ns.Owner
		}
		for _, g := range ns.Grants {
			name, ok := strings.CutPrefix(g.To, "group:")
			switch {
			case !ok || !g.Role.Includes(stele.RoleOwner):
			case user == "" && group == "":
				group, user = name, name
			case group == "":
				group = name
			}
		}
		if user != "" && group != "" {
			break
		}
	}
	if errors.Is(err, stele.NotFound) {
		err = nil
	}
	return user, group, err
}
