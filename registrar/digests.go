package registrar

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// DigestReader is a user who gets digests by mail.
type DigestReader struct {
	User, Address string
	Language      string // BCP 47; may be empty
	Rate          auth.DigestRate
}

// DigestReaders returns the users who have confirmed an address and have not ended digests. A user
// may be disabled. Only a server may ask.
func (r *Registrar) DigestReaders(ctx context.Context) (list []DigestReader, err error) {
	const op = "list readers of digests"
	if err := serverOnly(ctx, op); err != nil {
		return nil, err
	}
	chosen := make(map[string]auth.Preferences)
	for c, err := range r.store.Cells(ctx, auth.PreferenceCells, "") {
		if err != nil {
			return nil, tell(op, err)
		}
		p, err := auth.ReadPreferences(c)
		if err != nil { // the user may have ended digests, so none is sent
			r.o.Log.WarnContext(ctx, "the preferences of a user can't be read", "cell", c.Name, "error", err.Error())
			p = auth.Preferences{User: strings.TrimPrefix(c.Name, auth.PreferenceCells), Digest: auth.DigestOff}
		}
		chosen[p.User] = p
	}
	for c, err := range r.store.Cells(ctx, auth.MailboxCells, "") {
		if err != nil {
			return nil, tell(op, err)
		}
		m, err := auth.ReadMailbox(c)
		if err != nil {
			r.o.Log.WarnContext(ctx, "the mail address of a user can't be read", "cell", c.Name, "error", err.Error())
			continue
		}
		p := chosen[m.User]
		one := DigestReader{User: m.User, Address: m.Address, Language: cmp.Or(p.Language, m.Language), Rate: cmp.Or(p.Digest, auth.DigestWeekly)}
		if one.Address != "" && one.Rate != auth.DigestOff {
			list = append(list, one)
		}
	}
	return list, nil
}

// digestKey returns the key of the links that end digests. It is made when it is needed first.
func (r *Registrar) digestKey(ctx context.Context) (auth.DigestKey, error) {
	const op = opDigestKey
	for attempt := 1; ; attempt++ {
		value, err := r.store.Cell(ctx, auth.DigestKeyCell)
		if err != nil {
			return nil, tell(op, err)
		}
		if k := auth.DigestKey(value); k.IsValid() {
			return k, nil
		}
		k, err := auth.NewDigestKey(r.o.Rand)
		if err != nil {
			return nil, err
		}
		err = r.apply(ctx, op, &stele.Commit{Cells: []stele.CellChange{{Name: auth.DigestKeyCell, Before: value, After: k}}})
		if err == nil {
			return k, nil
		}
		if !r.again(ctx, err, attempt) {
			return nil, err
		}
	}
}

// DigestCredential returns the credential with which a user, or the user's mail program, ends digests
// without signing in. It does nothing else, and stays valid. Only a server may ask.
func (r *Registrar) DigestCredential(ctx context.Context, user string) (string, error) {
	if err := serverOnly(ctx, opDigestKey); err != nil {
		return "", err
	}
	k, err := r.digestKey(ctx)
	if err != nil {
		return "", err
	}
	c, err := k.Credential(user)
	return c.Reveal(), err
}

// CheckDigestCredential makes sure that a credential ends the digests of a user. The caller is a server.
func (r *Registrar) CheckDigestCredential(ctx context.Context, user, credential string) error {
	const op = "end digests"
	if err := serverOnly(ctx, op); err != nil {
		return err
	}
	value, err := r.store.Cell(ctx, auth.DigestKeyCell)
	if err != nil {
		return tell(op, err)
	}
	if k := auth.DigestKey(value); !k.IsValid() || !auth.IsName(user) || !k.Proves(user, credential) {
		return refuse(op, stele.ID{}, stele.Unauthenticated, "mail.digest-link-invalid", "this link is not valid; open the whole link from the mail, or sign in and choose in your settings")
	}
	return nil
}

// EndDigests ends the digests of a user. The caller is a server to which a browser or a mail program has
// sent the credential; the user need not be signed in there.
func (r *Registrar) EndDigests(ctx context.Context, user, credential string) error {
	if err := r.CheckDigestCredential(ctx, user, credential); err != nil {
		return err
	}
	_, err := r.SetPreferences(auth.With(ctx, auth.Principal{Name: user}), func(p *auth.Preferences) { p.Digest = auth.DigestOff })
	return err
}

// Activity is what users did to records in a time.
type Activity struct {
	Changes   []NamespaceChanges // by namespace, in order
	Approvals []Approval         // in order of time
}

// NamespaceChanges is how many records of a namespace users changed.
type NamespaceChanges struct {
	Namespace stele.NamespaceKey
	By        map[string]uint64 // users
}

// Approval is a proposal that an owner approved.
type Approval struct {
	Proposal  string
	Namespace stele.NamespaceKey
	Of, By    string // the editor and the owner
	At        time.Time
	Record    string // identifier; "" if it is not known
}

// maxApprovals is how many approvals an activity has.
const maxApprovals = 10_000

// Activity returns what users did to records from a time to another, as the audit trail has it. The
// caller is a server, and decides who sees what of it.
func (r *Registrar) Activity(ctx context.Context, from, to time.Time) (*Activity, error) {
	const op = "read audit trail"
	if err := serverOnly(ctx, op); err != nil {
		return nil, err
	}
	a, counts := new(Activity), make(map[stele.NamespaceKey]map[string]uint64)
	var record *stele.AuditEntry // that was approved by the same commit
	for item, err := range r.Audit(ctx, AuditQuery{Since: from, Until: to, Outcome: stele.AuditDone}) {
		if err != nil {
			return nil, err
		}
		e := item.Entry
		if e == nil {
			continue
		}
		if id, ok := strings.CutPrefix(e.Object, "proposal:"); ok {
			if of, ok := strings.CutPrefix(e.Details, "of user:"); ok && e.Operation == opApprove && len(a.Approvals) < maxApprovals {
				one := Approval{Proposal: id, Namespace: e.Namespace, Of: of, By: e.By, At: e.At}
				if record != nil && record.Number+1 == e.Number && record.By == e.By {
					one.Record = record.Object
				}
				a.Approvals = append(a.Approvals, one)
			}
			continue
		}
		if record = nil; e.Operation == opApprove {
			record = e
		}
		if e.Count == 0 || e.Operation == opMint || e.Namespace.Prefix == "" { // minted names have no records yet
			continue
		}
		if counts[e.Namespace] == nil {
			counts[e.Namespace] = make(map[string]uint64)
		}
		counts[e.Namespace][e.By] += e.Count
	}
	for key, by := range counts {
		a.Changes = append(a.Changes, NamespaceChanges{key, by})
	}
	slices.SortFunc(a.Changes, func(a, b NamespaceChanges) int { return compareKeys(a.Namespace, b.Namespace) })
	return a, nil
}
