package registrar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/auth/password"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/registrar/minting"
)

// NameDater is a [namespaces.DateNamer] that also finds the date of a name.
type NameDater interface {
	// NameDate returns the date of which a name was made; ok is false if it was made
	// of none.
	NameDate(id stele.ID) (d mint.Date, ok bool)
}

// Verify checks what a store can't know: that records, namespaces, users and tokens
// are what this program would accept, that the prefixes of minters belong to their namespaces, and
// that minters are ahead of every date that they issued. It calls report for each
// thing that is wrong, and its error says that it could not finish.
//
// Rules that a namespace may change, such as the hosts that it allows, are not
// checked: they hold for what is written, not for what is there. Only an
// administrator may ask.
func (r *Registrar) Verify(ctx context.Context, report func(problem *stele.Message)) error {
	return r.VerifyAll(ctx, Verification{Problem: report})
}

// Verification has the functions that Verify calls with what it finds. Only Problem
// must be given.
type Verification struct {
	// Problem is called for each thing that is wrong.
	Problem func(problem *stele.Message)

	// Note is called for each name that is stored as it was written, and that this
	// program would not accept today, since its rules or its settings have changed.
	// Nothing is damaged there.
	Note func(note *stele.Message)

	// Record is called for each record that was looked at.
	Record func()
}

// VerifyAll is Verify with more callbacks.
func (r *Registrar) VerifyAll(ctx context.Context, o Verification) error {
	if o.Note == nil {
		o.Note = func(*stele.Message) {}
	}
	if o.Record == nil {
		o.Record = func() {}
	}
	if err := administrateBy(ctx, "verify", stele.ID{}, auth.ScopeBackup); err != nil {
		return err
	}
	v := &audit{Registrar: r, report: o.Problem, note: o.Note, last: make(map[stele.NamespaceKey]mint.Date)}
	if err := r.Reload(ctx); err != nil {
		return err
	}
	var err error
	if v.namespaceTree, err = r.view(ctx); err != nil {
		return err
	}
	if err := v.minters(ctx); err != nil {
		return err
	}
	if err := v.namespaces(ctx); err != nil {
		return err
	}
	if err := v.access(ctx); err != nil {
		return err
	}
	if err := v.proposals(ctx); err != nil {
		return err
	}
	if err := v.besideRecords(ctx); err != nil {
		return err
	}
	for scheme := range r.schemes.All() {
		for rec, err := range r.store.Scan(ctx, scheme.Name(), "", "") {
			if err != nil {
				return tell("verify", err)
			}
			v.record(rec)
			o.Record()
		}
	}
	return nil
}

// audit is a Verify under way.
type audit struct {
	*Registrar
	namespaceTree *namespaceTree
	report        func(*stele.Message)
	note          func(*stele.Message)
	last          map[stele.NamespaceKey]mint.Date // by namespace: how far its dates are taken
}

func (v *audit) problem(code, text string, args ...any) {
	v.report(stele.Messagef(code, text, args...))
}

// minters checks that what is kept of minters can be read, and belongs to namespaces
// that are there.
func (v *audit) minters(ctx context.Context) error {
	for m, err := range v.store.MinterStates(ctx) {
		if err != nil {
			return tell("verify", err)
		}
		if minting.IsBookmark(m.Name) {
			continue
		}
		state, err := minting.ReadState(m.Name, m.After)
		if err != nil {
			v.problem("", "{cause}.", stele.Reason(err))
			continue
		}
		scheme, prefix, _ := strings.Cut(m.Name, " ")
		key := stele.NamespaceKey{Scheme: scheme, Prefix: prefix}
		if d := state.Dates; d != nil && d.Holder != "" {
			holder := stele.NamespaceKey{Scheme: scheme, Prefix: d.Holder}
			if n := v.namespaceTree.Get(holder); n == nil || !slices.Contains(n.Claims(), prefix) {
				v.problem("verify.dates-of-idle-minter", "The dates of {prefix} belong to the namespace {namespace}, whose minter makes no names there.", key, holder)
			}
			if have, ok := v.last[holder]; d.Issued && (!ok || have.Compare(d.Last) < 0) {
				v.last[holder] = d.Last
			}
		}
		v.templates(key, state.Templates)
	}
	return nil
}

// templates checks that no more names were given than there are.
func (v *audit) templates(key stele.NamespaceKey, state minting.TemplateStates) {
	for _, e := range state {
		t, err := mint.ParseTemplate(e.Template)
		if err != nil {
			v.problem("verify.template-unreadable", `The template "{template}" of {namespace} can't be read: {cause}.`, e.Template, key, stele.Reason(err))
			continue
		}
		if e.Order != stele.OwnOrder {
			if _, err := e.Subcounters(); err != nil {
				v.problem("verify.subcounters-damaged", `The counters of the template "{template}" of {namespace} are damaged: {cause}.`, e.Template, key, stele.Reason(err))
			}
			continue
		}
		if total, bounded := t.Total(); bounded && e.Given > total {
			v.problem("verify.counter-past-template", "The counter of {namespace} is at {count}, and its template {template} has {total} names.", key, e.Given, e.Template, total)
		}
	}
}

// namespaces checks that namespaces are what this program would accept, and have the
// prefixes of their minters.
func (v *audit) namespaces(ctx context.Context) error {
	for ns, err := range v.Namespaces(ctx) {
		if err != nil {
			return err
		}
		key := ns.Key()
		if ns.Version == 0 {
			continue
		}
		if err := v.judgeNamespace("verify", ns); err != nil {
			v.problem("verify.namespace-invalid", "The namespace {namespace} is not valid: {cause}.", key, stele.Reason(err))
			continue
		}
		keys, err := minting.DatePrefixes(v.schemes, ns)
		if err != nil {
			return err
		}
		for _, prefix := range keys {
			state, err := v.Registrar.minters.State(ctx, prefix)
			if err != nil && !errors.Is(err, stele.Internal) {
				return err
			}
			if err == nil && (state.Dates == nil || state.Dates.Holder != key.Prefix) {
				v.problem("verify.minter-prefix-not-held", "The namespace {namespace} makes names below {prefix}, and does not hold that prefix.", key, prefix)
			}
		}
	}
	return nil
}

// access checks that users, tokens, sessions, one-time links, passkeys and passwords can be read, that each
// has a user, and that there is an administrator if there are users at all.
func (v *audit) access(ctx context.Context) error {
	users, administrators := make(map[string]bool), 0
	for cell, err := range v.store.Cells(ctx, auth.UserCells, "") {
		if err != nil {
			return tell("verify", err)
		}
		u, err := auth.ReadUser(cell)
		if err != nil {
			v.problem("verify.user-unreadable", "A user can't be read: {cause}.", stele.Reason(err))
			continue
		}
		if users[u.Name] = true; administers(u) {
			administrators++
		}
	}
	if len(users) > 0 && administrators == 0 {
		v.problem("verify.no-administrator", "There are {count} users, and no administrator among them; make one with stele user set.", len(users))
	}
	for cell, err := range v.store.Cells(ctx, auth.TokenCells, "") {
		if err != nil {
			return tell("verify", err)
		}
		t, err := auth.ReadToken(cell)
		switch {
		case err != nil:
			v.problem("verify.token-unreadable", "A token can't be read: {cause}.", stele.Reason(err))
		case !users[t.User]:
			v.problem("verify.token-of-missing-user", `The token {token} belongs to the user "{user}", who is not there.`, t.ID, t.User)
		}
	}
	for cells, owner := range map[string]func(stele.Cell) (string, error){
		auth.SessionCells:  func(c stele.Cell) (string, error) { s, err := auth.ReadSession(c); return s.User, err },
		auth.MailboxCells:  func(c stele.Cell) (string, error) { m, err := auth.ReadMailbox(c); return m.User, err },
		auth.LinkCells:     func(c stele.Cell) (string, error) { l, err := auth.ReadLink(c); return l.User, err },
		auth.PasskeyCells:  func(c stele.Cell) (string, error) { p, err := auth.ReadPasskey(c); return p.User, err },
		password.Cells:     func(c stele.Cell) (string, error) { p, err := password.Read(c); return p.User, err },
		auth.IdentityCells: func(c stele.Cell) (string, error) { i, err := auth.ReadIdentity(c); return i.User, err },
	} {
		if err := v.owned(ctx, cells, users, owner); err != nil {
			return err
		}
	}
	return nil
}

// owned checks that sessions, one-time links, passkeys or passwords can be read, and that each has a user.
func (v *audit) owned(ctx context.Context, cells string, users map[string]bool, owner func(stele.Cell) (string, error)) error {
	for cell, err := range v.store.Cells(ctx, cells, "") {
		if err != nil {
			return tell("verify", err)
		}
		user, err := owner(cell)
		switch {
		case err != nil:
			v.problem("verify.credential-unreadable", "A session, a one-time link, a passkey, a linked account or a password can't be read: {cause}.", stele.Reason(err))
		case !users[user]:
			v.problem("verify.credential-of-missing-user", `The cell "{cell}" belongs to the user "{user}", who is not there.`, cell.Name, user)
		}
	}
	return nil
}

// proposals checks that proposals can be read, that each is in the cell of its ID, and that its
// namespace and the record that it changes are there.
func (v *audit) proposals(ctx context.Context) error {
	for cell, err := range v.store.Cells(ctx, proposalCells, "") {
		if err != nil {
			return tell("verify", err)
		}
		p, err := v.readProposal(cell)
		if err != nil {
			v.problem("verify.proposal-unreadable", "A proposal can't be read: {cause}.", stele.Reason(err))
			continue
		}
		if cell.Name != proposalCells+p.ID {
			v.problem("verify.proposal-of-other-cell", `The cell "{cell}" has the proposal {proposal}.`, cell.Name, p.ID)
		}
		if p.Namespace.Prefix != "" && v.namespaceTree.Get(p.Namespace) == nil { // a record may be in none
			v.problem("verify.proposal-of-missing-namespace", "The proposal {proposal} is one of the namespace {namespace}, which is not there.", p.ID, p.Namespace)
		}
		if p.Base == 0 {
			continue
		}
		rec, err := v.store.Record(ctx, p.Record.ID)
		switch {
		case errors.Is(err, stele.NotFound), err == nil && rec.Version < p.Base:
			v.problem("verify.proposal-of-missing-version", "The proposal {proposal} changes version {version} of {id}, which is not there.", p.ID, p.Base, p.Record.ID)
		case err != nil:
			return tell("verify", err)
		}
	}
	return nil
}

// record checks one record.
func (v *audit) record(rec *stele.Record) {
	problems, err := problemsOf(rec.Validate())
	if err != nil {
		v.problem("verify.record-invalid", "The record {id} is not valid: {cause}.", rec.ID, stele.Reason(err))
		return
	}
	j := judge{v.Registrar, v.namespaceTree.lookup(), problems}
	for i, name := range rec.Names() {
		path := "id"
		if i > 0 {
			path = fmt.Sprintf("aliases[%d]", i-1)
		}
		if again, err := v.schemes.Parse(name.String()); err != nil || again.Scheme() != name.Scheme() {
			v.outdated(rec, name, err)
			continue
		}
		j.canonical(path, name)
	}
	if len(j.problems) > 0 {
		v.problem("verify.record-invalid", "The record {id} is not valid: {cause}.", rec.ID, j.problems)
		return
	}
	v.signatures(rec)
	if rec.Redacted && !isBlank(rec) {
		v.problem("verify.redacted-record-has-content", "The record {id} is redacted, and has content.", rec.ID)
	}
	if w := rec.Withheld; w.Redacted > 1 && w.Erased < w.Redacted-1 {
		v.note(stele.Messagef("verify.redaction-incomplete", "The record {id} was redacted by an earlier program, which hid its old versions and kept their content: 'stele redact {id} --reason TEXT' erases it.", rec.ID))
	}
	for _, name := range rec.Names() {
		v.date(rec, name)
	}
}

// outdated tells of a name that this program would read otherwise, or not at all.
func (v *audit) outdated(rec *stele.Record, name stele.ID, err error) {
	why := error(stele.Messagef("verify.name-of-another-scheme", "it is read as a name of another scheme"))
	if err != nil {
		why = stele.Reason(err)
	}
	if name != rec.ID {
		v.note(stele.Messagef("verify.alias-outdated", "The name {alias}, an alias of {id}, is kept, and would not be accepted today: {cause}.", name, rec.ID, why))
		return
	}
	v.note(stele.Messagef("verify.name-outdated", "The name {id} is kept, and would not be accepted today: {cause}.", name, why))
}

// date checks that the distributor of a name is not at an earlier date than the name. A
// name of a later time than its record was not issued but made by hand; the distributor
// will pass over it.
func (v *audit) date(rec *stele.Record, name stele.ID) {
	sp := v.namespaceTree.Of(name)
	if sp == nil || sp.Minter.Kind != stele.MinterIBI && sp.Minter.Kind != stele.MinterPILIN {
		return
	}
	dater, ok := v.schemes.Lookup(name.Scheme()).(NameDater)
	if !ok {
		return
	}
	at, ok := dater.NameDate(name)
	if !ok || at.Time().After(rec.Created.Add(time.Second)) || !at.Time().After(v.now()) {
		return
	}
	if last, issued := v.last[sp.Key()]; !issued || last.Compare(at) < 0 {
		v.problem("verify.minter-behind-issued-name", "{name} was issued at {time}, and the minter of {namespace} is behind that; set the clock, and don't make names there until then.",
			name, at, sp.Key())
	}
}
