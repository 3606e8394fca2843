package lsid

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/plainxml"
)

// typesNamespace is that of the items of lists in the assigning service (section 7).
const typesNamespace = omg + "Standard/Assigning/WSDL/SchemaTypes"

// Limits of the assigning service.
const (
	maxSuggested  = 100 // names that a client suggests
	maxRevisions  = 100 // that are tried
	maxNamespaces = 1000
)

// Names assigns names: a [registrar.Registrar]. The principal is in the context.
type Names interface {
	// Namespaces yields the namespaces in which the caller has a role.
	Namespaces(ctx context.Context) iter.Seq2[*stele.Namespace, error]
	// ParsePrefix reads the prefix of a namespace.
	ParsePrefix(text string) (stele.NamespaceKey, error)
	// Get returns the record that has a name, if the caller may see it.
	Get(ctx context.Context, name stele.ID) (*stele.Record, error)
	// MintAndRegister makes a new name in a namespace, and registers the record under it.
	MintAndRegister(ctx context.Context, record *stele.Record, pool ...stele.NamespaceKey) (*stele.Record, error)
	// Register registers a record. Conflict if its name is taken.
	Register(ctx context.Context, record *stele.Record) (*stele.Record, error)
	// NoteFailure leaves an audit entry about a request that was refused.
	NoteFailure(ctx context.Context, op, object string, cause error)
}

// properties are the names of properties that a client may give to a new name: they become metadata of its record.
var properties = []string{stele.Who, stele.What, stele.When, stele.Where, "type", "description", "publisher", "contributor", "language", "license", "rights", "subject", "version"}

// assign answers the assigning service (section 7), for users with a token. A name that it assigns is registered in the
// state reserved: the public knows nothing of it until its owner makes it active.
func (c *call) assign(m *message) {
	if err := c.assigned(m); err != nil {
		// The server notes tokens that are wrong.
		if errors.Is(err, stele.Forbidden) && auth.From(c.r.Context()).IsKnown() {
			c.o.Names.NoteFailure(c.r.Context(), c.operation, "", err)
		}
		c.fail(err)
	}
}

func (c *call) assigned(m *message) error {
	if c.o.Frozen != nil {
		return failf(notImplemented, "%v", stele.Reason(c.o.Frozen))
	}
	if c.o.Names == nil {
		return failf(notImplemented, "this authority has no assigning service")
	}
	done, err := c.site.Charge(costAssign)
	if err != nil {
		return err
	}
	defer done()
	if err := c.authenticate(); err != nil {
		return err
	}
	c.w.Header()["Cache-Control"] = []string{"no-store"}
	switch m.operation.Local {
	case "assignLSID":
		return c.assignNew(m)
	case "assignLSIDFromList":
		return c.assignSuggested(m)
	case "assignLSIDForNewRevision":
		return c.assignRevision(m)
	case "getAllowedPropertyNames":
		c.sendResult(func(b *bytes.Buffer) {
			b.WriteString(`<propertyNames xmlns:t="` + typesNamespace + `">`)
			for _, name := range properties {
				element(b, "t:propertyName", name)
			}
			b.WriteString("</propertyNames>")
		})
		return nil
	case "getAuthoritiesAndNamespaces":
		return c.listNamespaces()
	case "getLSIDPattern", "getLSIDPatternFromList":
		return failf(notImplemented, "names are assigned one by one here, so that none is assigned twice; call assignLSID")
	}
	return failf(noMethod, `"%s" is not an operation of the assigning service`, brief(m.operation.Local))
}

// authenticate makes the request one of the user whose token it has. The audit trail says how it came in.
func (c *call) authenticate() error {
	who, err := c.site.Authenticate()
	if err != nil {
		return err
	}
	from := auth.Origin{Via: "lsid", Caller: who}
	if c.o.Address != nil {
		from.Address = c.o.Address(c.r)
	}
	c.r = c.r.WithContext(auth.WithOrigin(auth.With(c.r.Context(), who), from))
	return nil
}

// textOf returns the text of an argument.
func textOf(e *plainxml.Element, name string) string {
	if c := e.Child(name); c != nil {
		return strings.TrimSpace(c.Text)
	}
	return ""
}

// record returns the record of a new name, with the properties that the client gives.
func (m *message) record() (*stele.Record, error) {
	rec := &stele.Record{State: stele.Reserved, Metadata: stele.Metadata{}}
	list := m.body.Child("propertyList")
	if list == nil {
		return rec, nil
	}
	for _, p := range list.Children {
		name, value := textOf(p, "name"), textOf(p, "value")
		switch _, twice := rec.Metadata[name]; {
		case !slices.Contains(properties, name):
			return nil, failf(badCall, "%q is not a property here; getAllowedPropertyNames lists them", brief(name))
		case twice:
			return nil, failf(badCall, "the property %s is given twice", name)
		}
		rec.Metadata[name] = value
	}
	return rec, nil
}

// assignNew makes a name in the namespace that the client names, by its minter.
func (c *call) assignNew(m *message) error {
	rec, err := m.record()
	if err != nil {
		return err
	}
	authority, namespace := textOf(m.body, "authority"), textOf(m.body, "namespace")
	if authority == "" || namespace == "" {
		return failf(badCall, "the arguments authority and namespace are needed")
	}
	key, err := c.o.Names.ParsePrefix(mark + authority + ":" + namespace)
	if err != nil || key.Scheme != scheme {
		return failf(badCall, "%q and %q are not an authority and a namespace of LSIDs", brief(authority), brief(namespace))
	}
	done, err := c.o.Names.MintAndRegister(c.r.Context(), rec, key)
	if err != nil {
		if errors.Is(err, stele.NotFound) {
			return failf(badCall, "names are not assigned in %s; getAuthoritiesAndNamespaces lists where they are", key.Prefix)
		}
		return err
	}
	c.sendName(done.ID)
	return nil
}

// sendName answers with a name. IBM's server and its client have the element in lower case.
func (c *call) sendName(id stele.ID) {
	c.sendResult(func(b *bytes.Buffer) { element(b, "lsid", id.String()) })
}

// assignSuggested assigns the first of the names that the client suggests which is free.
func (c *call) assignSuggested(m *message) error {
	rec, err := m.record()
	if err != nil {
		return err
	}
	list := m.body.Child("suggestedLSIDs")
	if list == nil || len(list.Children) == 0 || len(list.Children) > maxSuggested {
		return failf(badCall, "suggest 1 to %d names in suggestedLSIDs", maxSuggested)
	}
	for _, e := range list.Children {
		if rec.ID, err = c.parse(strings.TrimSpace(e.Text)); err != nil {
			return err
		}
		done, err := c.o.Names.Register(c.r.Context(), rec)
		if err == nil {
			c.sendName(done.ID)
			return nil
		}
		if !isConflict(err) {
			return err
		}
	}
	return failf(badCall, "all names that are suggested are taken; suggest others")
}

// assignRevision assigns the next revision of a name: a name without one is followed by the revision 2, since it is the
// first itself.
func (c *call) assignRevision(m *message) error {
	previous, err := c.parse(textOf(m.body, "previousLSID"))
	if err != nil {
		return err
	}
	if _, err := c.o.Names.Get(c.r.Context(), previous); err != nil {
		return err
	}
	parts := strings.Split(previous.String()[len(mark):], ":")
	number := uint64(1)
	if len(parts) > 3 {
		if number, err = strconv.ParseUint(parts[3], 10, 64); err != nil || number > math.MaxInt64 {
			return failf(badCall, "the revision %q is not a number, so that none follows it; suggest a name with assignLSIDFromList", brief(parts[3]))
		}
	}
	base := mark + strings.Join(parts[:3], ":") + ":"
	for i := range uint64(maxRevisions) {
		next, err := c.parse(base + strconv.FormatUint(number+1+i, 10))
		if err != nil {
			return err
		}
		done, err := c.o.Names.Register(c.r.Context(), &stele.Record{ID: next, State: stele.Reserved})
		if err == nil {
			c.sendName(done.ID)
			return nil
		}
		if !isConflict(err) {
			return err
		}
	}
	return failf(badCall, "the next %d revisions are taken; name the last one", maxRevisions)
}

// listNamespaces answers with the namespaces of LSIDs that have a minter, and in which the caller has a role.
func (c *call) listNamespaces() error {
	var list [][2]string
	for ns, err := range c.o.Names.Namespaces(c.r.Context()) {
		if err != nil {
			return err
		}
		if ns.Scheme != scheme || ns.Minter.Kind == stele.NoMinter {
			continue
		}
		parts := strings.Split(strings.TrimPrefix(ns.Prefix, mark), ":")
		if len(parts) != 2 {
			continue
		}
		if list = append(list, [2]string{parts[0], parts[1]}); len(list) == maxNamespaces {
			break
		}
	}
	c.sendResult(func(b *bytes.Buffer) {
		b.WriteString(`<authorityAndNamespaces xmlns:t="` + typesNamespace + `">`)
		for _, one := range list {
			b.WriteString("<t:authorityNamespace>")
			element(b, "t:authority", one[0])
			element(b, "t:namespace", one[1])
			b.WriteString("</t:authorityNamespace>")
		}
		b.WriteString("</authorityAndNamespaces>")
	})
	return nil
}
