package registrar

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/auth/password"
)

// Every commit of the registrar goes through [Registrar.commit] or [intake.add], and both
// append entries to the audit trail in the same transaction: so an operation that is added
// later has its entries without asking for them, and nothing is written if they can't be.
// unaudited is the list of those that have none.

// unaudited reports whether the commits of an operation leave no entry. These are not what
// a user did to the registry, but how it works:
//
//   - mint: a commit reserves names, for all callers. Names that are given are
//     counted by user, namespace and minute; see tally.
//   - forget requests: the server forgets the answers to old requests.
//   - note audit export: how far the trail was sent to another program.
//   - note session: when a session was used last.
//   - keep work: how far a bulk change is; its changes of records have their own entries.
//   - keep usage: figures of use, which a server adds to every half minute.
//   - keep link checks: what is known of where names lead.
//   - keep log: the transparency log, which follows the changes of records and namespaces.
//   - ask registry: what is known of registries that are watched; adding and ending a watch is in the trail.
//   - make challenge key: what seals the challenges of passkeys.
//   - make digest key: what the links that end digests are made of.
func unaudited(op string) bool {
	switch op {
	case opMint, "forget requests", opSent, opNoteSession, opChallengeKey, opDigestKey, opWork, opUsage, opChecks, opLog, opAskWatched:
		return true
	}
	return false
}

const opMint = "mint"

// entry returns an entry about what the caller in the context did.
func entry(ctx context.Context, op, object string) *stele.AuditEntry {
	who, from := auth.From(ctx), auth.OriginOf(ctx)
	if from.Caller.IsKnown() {
		who = from.Caller
	}
	if from.Via == "" {
		from.Via = "server"
	}
	return &stele.AuditEntry{
		By: who.Name, Token: who.Token, System: from.System, Via: from.Via, Address: from.Address,
		Operation: op, Object: object, Outcome: stele.AuditDone,
	}
}

// entries returns the entries of a commit: one for each namespace in which records
// change, one for each namespace that changes itself, and one for all else.
func (r *Registrar) entries(ctx context.Context, op string, c *stele.Commit) ([]*stele.AuditEntry, error) {
	if unaudited(op) {
		return nil, nil
	}
	list, err := r.recordEntries(ctx, op, c)
	if err != nil {
		return nil, err
	}
	for _, ns := range c.Namespaces {
		e := entry(ctx, op, "namespace:"+ns.Key().String())
		e.Namespace, e.Details = ns.Key(), rolesOf(ns)
		list = append(list, e)
	}
	for i := range c.Cells {
		if e := cellEntry(ctx, op, &c.Cells[i]); e != nil {
			list = append(list, e)
		}
	}
	if len(list) == 0 && op != opImport { // an import that writes nothing keeps its bookmark only
		var names []string
		for _, m := range c.Minters {
			names = append(names, "minter:"+m.Name)
		}
		list = append(list, entry(ctx, op, strings.Join(names, " ")))
	}
	for _, e := range list {
		e.Bound()
	}
	return list, nil
}

// recordEntries returns an entry for each namespace in which there are some of the
// records, in the order in which they come.
func (r *Registrar) recordEntries(ctx context.Context, op string, c *stele.Commit) (list []*stele.AuditEntry, err error) {
	records, counter := c.Records, c.Counter
	if len(records) == 0 {
		return nil, nil
	}
	if counter == nil { // the committing code did not look for their namespaces
		s, err := r.view(ctx)
		if err != nil {
			return nil, err
		}
		counter = s.counter
	}
	if len(records) == 1 { // as most commits have
		e := entry(ctx, op, records[0].ID.String())
		e.Namespace, _ = counter(records[0].ID)
		e.Count = 1
		return []*stele.AuditEntry{e}, nil
	}
	byKey := make(map[stele.NamespaceKey]*stele.AuditEntry)
	for i, rec := range records {
		if i > 0 && records[i-1].ID == rec.ID {
			continue // another version of a record that comes with its history
		}
		key, _ := counter(rec.ID)
		e := byKey[key]
		if e == nil {
			e = entry(ctx, op, rec.ID.String())
			e.Namespace = key
			byKey[key] = e
			list = append(list, e)
		} else if e.Count == 1 {
			e.Object += " ..."
		}
		e.Count++
	}
	return list, nil
}

// rolesOf lists the principals of a namespace with their roles.
func rolesOf(ns *stele.Namespace) string {
	var roles []string
	if ns.Owner != "" {
		roles = append(roles, "user:"+ns.Owner+"=owner")
	}
	for _, g := range ns.Grants {
		roles = append(roles, g.To+"="+string(g.Role))
	}
	if roles == nil {
		return ""
	}
	return "roles: " + strings.Join(roles, " ")
}

// cellEntry returns the entry of a change of users, tokens or keys; nil if the cell is
// none of these, or if the commit only asks for it to be as it is.
func cellEntry(ctx context.Context, op string, c *stele.CellChange) *stele.AuditEntry {
	if string(c.Before) == string(c.After) && (c.Before == nil) == (c.After == nil) {
		return nil
	}
	if e := proposalEntry(ctx, op, c); e != nil {
		return e
	}
	if e := fixedDataEntry(ctx, op, c); e != nil {
		return e
	}
	if e := foreignEntry(ctx, op, c); e != nil {
		return e
	}
	if strings.HasPrefix(c.Name, harvestCells) {
		return harvestEntry(ctx, op, c)
	}
	if strings.HasPrefix(c.Name, depositCells) {
		return depositEntry(ctx, op, c)
	}
	if strings.HasPrefix(c.Name, takenCells) {
		return takenEntry(ctx, op, c)
	}
	if strings.HasPrefix(c.Name, watchCells) {
		return watchEntry(ctx, op, c)
	}
	cell := stele.Cell{Name: c.Name, Value: c.After}
	for _, mark := range accessMarks {
		name, ok := strings.CutPrefix(c.Name, mark)
		if !ok || mark == auth.UsedCells {
			continue
		}
		if mark == auth.PasskeyCells && op == opSignIn {
			return copiedEntry(ctx, op, cell)
		}
		if mark == password.Cells && op == opSignIn {
			return nil // the entry of the session is enough
		}
		e := entry(ctx, op, strings.TrimSpace(mark)+":"+name)
		switch {
		case c.After == nil:
			e.Details = "removed"
		case mark == auth.UserCells:
			if u, err := auth.ReadUser(cell); err == nil {
				e.Details = userDetails(u)
			}
		case mark == auth.TokenCells:
			if t, err := auth.ReadToken(cell); err == nil {
				e.Details = tokenDetails(t)
			}
		case mark == auth.IdentityCells:
			if i, err := auth.ReadIdentity(cell); err == nil {
				e.Details = identityDetails(i)
			}
		case mark == auth.PasskeyCells:
			if p, err := auth.ReadPasskey(cell); err == nil {
				e.Details = "of user:" + p.User
			}
		}
		return e
	}
	if c.After != nil {
		return visitEntry(ctx, op, cell)
	}
	if name, ok := strings.CutPrefix(c.Name, auth.SessionCells); ok && op == opSignOut {
		return entry(ctx, op, "session:"+name)
	}
	if name, ok := strings.CutPrefix(c.Name, auth.LinkCells); ok && op == opEndLink {
		return entry(ctx, op, "link:"+name)
	}
	return nil // a session or a link that ended is removed, or the link was used
}

// copiedEntry returns the entry of a passkey that signed in though its counter went back; nil if
// the counter is right: the entry of the session is enough then.
func copiedEntry(ctx context.Context, op string, cell stele.Cell) *stele.AuditEntry {
	p, err := auth.ReadPasskey(cell)
	if err != nil || p.Copied.IsZero() || !p.Copied.Equal(p.Used) {
		return nil
	}
	e := entry(ctx, op, "passkey:"+p.ID)
	e.Details = "of user:" + p.User + "; its counter went back, so it may have been copied"
	return e
}

// visitEntry returns the entry of a session or a link that is made; nil if the cell is neither.
func visitEntry(ctx context.Context, op string, cell stele.Cell) *stele.AuditEntry {
	switch {
	case strings.HasPrefix(cell.Name, auth.SessionCells):
		s, err := auth.ReadSession(cell)
		if err != nil {
			return nil
		}
		e := entry(ctx, op, "session:"+s.ID)
		e.Details = "by " + string(s.How)
		return e
	case strings.HasPrefix(cell.Name, auth.LinkCells):
		l, err := auth.ReadLink(cell)
		if err != nil {
			return nil
		}
		e := entry(ctx, op, "link:"+l.ID)
		e.Details = "of user:" + l.User
		return e
	}
	return nil
}

func userDetails(u auth.User) string {
	var said []string
	if u.Admin {
		said = append(said, "administrator")
	}
	if u.Disabled {
		said = append(said, "disabled")
	}
	if len(u.Groups) > 0 {
		said = append(said, "groups: "+strings.Join(slices.Clone(u.Groups), " "))
	}
	return strings.Join(said, "; ")
}

func tokenDetails(t auth.Token) string {
	said := "of user:" + t.User
	if !t.Revoked.IsZero() {
		said += "; revoked"
	}
	if !t.Expires.IsZero() {
		said += "; expires " + t.Expires.UTC().Format(time.DateOnly)
	}
	return said
}

// identityDetails names the issuer of an account and not its subject, which may be personal.
func identityDetails(i auth.Identity) string {
	said := "of user:" + i.User + "; at " + i.Issuer
	if !i.Ended.IsZero() {
		said += "; ended"
	}
	return said
}

// Witness appends an entry about an operation that no commit makes, such as a backup.
// It returns once the entry is durable, and an error if it can't be written: then a
// sensitive operation must not be done. A sealed store takes no entries; an operation
// that only reads it continues without one, and the log says so.
func (r *Registrar) Witness(ctx context.Context, op, object, details string) error {
	e := entry(ctx, op, object)
	e.Details = details
	return r.note(ctx, e)
}

// note appends an entry.
func (r *Registrar) note(ctx context.Context, e *stele.AuditEntry) error {
	e.Bound()
	err := r.store.Apply(ctx, &stele.Commit{Audit: []*stele.AuditEntry{e}})
	if errors.Is(err, stele.ErrSealed) {
		r.o.Log.WarnContext(ctx, "the registry is sealed, so that its audit trail takes no more entries", "operation", e.Operation, "by", e.By, "object", e.Object)
		return nil
	}
	if err != nil {
		return refuse(e.Operation, stele.ID{}, stele.KindOf(err), "audit.trail-not-written", "the audit trail can't be written, so this is not done; look whether the store can be written: {cause}", err)
	}
	return nil
}

// NoteEnd appends an entry about how an operation ended that an entry of Witness began.
// It is too late to refuse it, so that an error is logged.
func (r *Registrar) NoteEnd(ctx context.Context, op, object string, cause error) {
	e := entry(ctx, op, object)
	if e.Details = "end"; cause != nil {
		e.Outcome, e.Kind, e.Details = stele.AuditFailed, stele.KindOf(cause), cause.Error()
	}
	if err := r.note(context.WithoutCancel(ctx), e); err != nil {
		r.o.Log.ErrorContext(ctx, "the audit trail can't be written", "error", err.Error())
	}
}

// NoteFailure appends an entry about a request that was refused, or that failed, for the
// reason given. Refusals of callers that are not known, and all that one user causes beyond
// maxNoted in a minute, are counted and written later; see [Registrar.FlushAudit]. So
// a client can't fill a disk with them. Errors are logged: the request is refused all the same.
func (r *Registrar) NoteFailure(ctx context.Context, op, object string, cause error) {
	e := entry(ctx, op, object)
	e.Outcome, e.Kind = stele.AuditFailed, stele.KindOf(cause)
	if e.Kind == stele.Unauthenticated || e.Kind == stele.Forbidden {
		e.Outcome = stele.AuditRefused
	}
	if id, err := r.schemes.Parse(object); err == nil {
		if s, err := r.view(ctx); err == nil {
			e.Namespace, _ = s.counter(id)
		}
	}
	e.Bound()
	if e.By == "" || !r.tally.mayNote(e.By, r.now()) {
		e.Object, e.Details = "", ""
		r.tally.add(e, 1, r.now())
		return
	}
	e.Details = cause.Error()
	if err := r.note(context.WithoutCancel(ctx), e); err != nil {
		r.o.Log.ErrorContext(ctx, "the audit trail can't be written", "error", err.Error())
	}
}
