package registrar

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/registrar/minting"
)

// Proposal is a record, or a change of one, that an editor proposes where changes are reviewed
// ([stele.Namespace.Reviewed]). It is kept beside the record and is not a version of it: the
// public sees nothing of it, and nothing of it remains in the history if it is declined.
type Proposal struct {
	ID        string
	Namespace stele.NamespaceKey
	Record    *stele.Record // as it would be; without an identifier if the minter is to make one
	Base      uint64        // the version that it changes; 0: the record is new
	By        string
	At        time.Time
	Note      string // why, in the editor's words

	Declined time.Time // zero while it is open
	Decliner string
	Reason   string // of the decliner
}

// IsOpen reports whether an owner has not decided about the proposal yet.
func (p *Proposal) IsOpen() bool { return p.Declined.IsZero() }

// Limits on proposals, and how long one that was declined is kept for its editor to read why.
const (
	MaxProposals     = 5_000
	MaxUserProposals = 200
	declinedLife     = 90 * 24 * time.Hour
)

const opApprove = "approve proposal"

// proposalCells begins the names of the cells of proposals.
const proposalCells = "proposal "

// storedProposal is a proposal in its cell.
type storedProposal struct {
	ID       string          `json:"id"`
	Scheme   string          `json:"scheme"`
	Prefix   string          `json:"prefix"`
	Record   json.RawMessage `json:"record"`
	Mint     bool            `json:"mint,omitempty"` // the identifier is none of the record's, only one that can be read
	Base     uint64          `json:"base,omitempty"`
	By       string          `json:"by"`
	At       time.Time       `json:"at"`
	Note     string          `json:"note,omitempty"`
	Declined time.Time       `json:"declined,omitzero"`
	Decliner string          `json:"decliner,omitempty"`
	Reason   string          `json:"reason,omitempty"`
}

// proposalCell returns a proposal as it is kept.
func (s *namespaceTree) proposalCell(p *Proposal) (stele.Cell, error) {
	rec, mint := p.Record, !p.Record.ID.IsValid()
	if mint {
		rec = clone(rec)
		if sp := s.Get(p.Namespace); sp != nil {
			rec.ID = sp.Below()
		}
	}
	value, err := json.Marshal(storedProposal{p.ID, p.Namespace.Scheme, p.Namespace.Prefix, document.AppendRecord(nil, rec), mint, p.Base, p.By, p.At, p.Note, p.Declined, p.Decliner, p.Reason})
	return stele.Cell{Name: proposalCells + p.ID, Value: value}, err
}

// readProposal reads a proposal from its cell.
func (r *Registrar) readProposal(c stele.Cell) (*Proposal, error) {
	return r.readProposalIf(c, func(*Proposal) bool { return true })
}

// readProposalIf reads a proposal, and its record only if it is wanted: a record may have a
// megabyte. It returns nil if it is not.
func (r *Registrar) readProposalIf(c stele.Cell, wanted func(*Proposal) bool) (*Proposal, error) {
	var k storedProposal
	if err := json.Unmarshal(c.Value, &k); err != nil {
		return nil, damagedProposal(c, err)
	}
	p := &Proposal{k.ID, stele.NamespaceKey{Scheme: k.Scheme, Prefix: k.Prefix}, nil, k.Base, k.By, k.At, k.Note, k.Declined, k.Decliner, k.Reason}
	if !wanted(p) {
		return nil, nil
	}
	var err error
	if p.Record, err = document.DecodeStored(r.schemes, k.Record); err != nil {
		return nil, damagedProposal(c, err)
	}
	if k.Mint {
		p.Record.ID = stele.ID{}
	}
	return p, nil
}

func damagedProposal(c stele.Cell, err error) error {
	return refuse("read proposal", stele.ID{}, stele.Internal, "proposal.damaged", "the proposal {cell} is damaged: {cause}", c.Name, err)
}

// Propose keeps a record, or a change of one, for an owner to approve. The caller gives Record,
// Base, Note, and Namespace if the record has no identifier. It is judged as if it were written
// now. Forbidden if the caller may not propose there; Conflict if nothing would change, or the
// record has another version than Base.
func (r *Registrar) Propose(ctx context.Context, p Proposal) (*Proposal, error) {
	const op = "propose"
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	p.Record = clone(p.Record)
	ancestors, err := r.proposed(ctx, op, s, &p)
	if err != nil {
		return nil, err
	}
	if ancestors[0].IsSealed() { // it could never be approved
		return nil, sealed(op, p.Record.ID, ancestors[0])
	}
	if len(p.Note) > stele.MaxName || stele.CheckText("", strings.ReplaceAll(p.Note, "\n", " ")) != nil && p.Note != "" {
		return nil, refuse(op, p.Record.ID, stele.Invalid, "proposal.note-wrong", "the note has more than {most} bytes, or characters that can't be shown; shorten it", stele.MaxName)
	}
	id := make([]byte, 10)
	if _, err := io.ReadFull(r.o.Rand, id); err != nil {
		return nil, tell(op, err)
	}
	p.ID, p.Namespace, p.By, p.At = hex.EncodeToString(id), ancestors[0].Key(), auth.From(ctx).Name, r.now()
	p.Declined, p.Decliner, p.Reason = time.Time{}, "", ""
	cells, all, mine, err := r.oldProposals(ctx, op, p.By)
	switch {
	case err != nil:
		return nil, err
	case mine >= MaxUserProposals:
		return nil, refuse(op, p.Record.ID, stele.Exhausted, "proposal.too-many-of-user", `"{user}" has {count} proposals; wait until owners decide, or take some back`, p.By, mine)
	case all >= MaxProposals:
		return nil, refuse(op, p.Record.ID, stele.Exhausted, "proposal.too-many", "the registry has {count} proposals; wait until owners decide about some", all)
	}
	cell, err := s.proposalCell(&p)
	if err != nil {
		return nil, tell(op, err)
	}
	if err := r.apply(ctx, op, &stele.Commit{Cells: append(cells, stele.CellChange{Name: cell.Name, After: cell.Value})}); err != nil {
		return nil, err
	}
	if p.Base == 0 {
		return &p, nil
	}
	// A redaction that was committed meanwhile has not seen the proposal.
	now, err := r.store.Record(ctx, p.Record.ID)
	if err != nil {
		return nil, tell(op, err)
	}
	if now.Redacted {
		if err := r.endProposals(ctx, now.ID); err != nil {
			return nil, err
		}
		return nil, refuse(op, now.ID, stele.Forbidden, "record.redacted-needs-administrator", "its content was removed by a legal order; only an administrator may change it")
	}
	return &p, nil
}

// proposed judges what is proposed, and returns its namespaces.
func (r *Registrar) proposed(ctx context.Context, op string, s *namespaceTree, p *Proposal) (ancestors []*stele.Namespace, err error) {
	may := func(ancestors []*stele.Namespace) error {
		if who := auth.From(ctx); !auth.MayPropose(who, ancestors...) {
			return forbid(op, p.Record.ID, who, ancestors[0])
		}
		return nil
	}
	// A user may propose other names only where they may propose records.
	mayAliases := func(before *stele.Record) error {
		for _, alias := range p.Record.Aliases {
			if before != nil && slices.Contains(before.Aliases, alias) {
				continue
			}
			if err := may(s.ancestorsOf(alias)); err != nil {
				return err
			}
		}
		return nil
	}
	if hasClearSecret(p.Record) {
		return nil, refuse(op, p.Record.ID, stele.Invalid, "proposal.with-secret", "a handle value of type HS_SECKEY can't be proposed: the proposal would keep the secret in clear; ask an owner to write it")
	}
	at, next := s.lookup(), p.Record
	if p.Base == 0 {
		if next, err = r.begin(ctx, op, next); err != nil {
			return nil, err
		}
	}
	switch {
	case p.Base != 0:
		var before *stele.Record
		if before, ancestors, err = r.find(ctx, op, at, next.ID); err != nil {
			return nil, err
		}
		if err := may(ancestors); err != nil {
			return nil, err
		}
		if before.Version != p.Base {
			return nil, refuse(op, before.ID, stele.Conflict, "record.version-not-expected", "it has version {version}, not {expected}; look at it again", before.Version, p.Base)
		}
		next.Withheld = before.Withheld.Clone()
		if next.ID != before.ID || before.Redacted {
			return nil, refuse(op, before.ID, stele.Invalid, "proposal.of-other-record", "the change is not one of this record; open the record again")
		}
		if err := mayAliases(before); err != nil {
			return nil, err
		}
		if err := mayBecome(op, before, next); err != nil {
			return nil, err
		}
		r.stamp(ctx, before, next)
		if sameRecord(before, next) {
			return nil, refuse(op, before.ID, stele.Conflict, "proposal.changes-nothing", "nothing would change")
		}
		return ancestors, r.judge(op, at, before, next, false)
	case next.ID.IsValid():
		if ancestors = s.ancestorsOf(next.ID); may(ancestors) != nil {
			return nil, may(ancestors)
		}
		if err := mayAliases(nil); err != nil {
			return nil, err
		}
		if err := r.judge(op, at, nil, next, false); err != nil {
			return nil, err
		}
		if _, err := r.store.Record(ctx, next.ID); err == nil {
			return nil, refuse(op, next.ID, stele.Conflict, "proposal.name-taken", "the name is taken; choose another")
		}
		return ancestors, nil
	}
	sp := s.Get(p.Namespace)
	if sp == nil {
		return nil, refuse(op, stele.ID{}, stele.NotFound, "namespace.missing", "there is no namespace {namespace}; add it first", p.Namespace)
	}
	if ancestors = s.Ancestors(sp); may(ancestors) != nil {
		return nil, may(ancestors)
	}
	if err := mayAliases(nil); err != nil {
		return nil, err
	}
	return ancestors, (&registration{r: r, op: op, pool: []stele.NamespaceKey{p.Namespace}, first: next}).Check(ctx)
}

// mayBecome makes sure that the state of a record may change as proposed: as updates and withdrawals
// may change it.
func mayBecome(op string, before, next *stele.Record) error {
	switch was, is := before.State, next.State; {
	case was == stele.Withdrawn:
		return refuse(op, next.ID, stele.Gone, "record.withdrawn", "it is withdrawn; reinstate it first")
	case was == stele.Reserved && is == stele.Withdrawn:
		return refuse(op, next.ID, stele.Conflict, "record.reserved-not-withdrawable", "it is reserved, so the public knows nothing of it that could be withdrawn; leave it so, or make it active first")
	case is != was && is != stele.Active && is != stele.Withdrawn:
		return refuse(op, next.ID, stele.Invalid, "record.state-change-not-allowed", `a record that is {state} does not become "{new-state}"`, was, is)
	case is == stele.Withdrawn:
		// A withdrawal changes nothing else.
		t, kept := next.Tombstone, clone(before)
		*next = *kept
		next.State, next.Tombstone = stele.Withdrawn, t
	}
	return nil
}

// oldProposals returns changes that remove proposals which were declined long ago, and how many
// others there are, of all and of a user.
func (r *Registrar) oldProposals(ctx context.Context, op, user string) (cells []stele.CellChange, all, mine int, err error) {
	now := r.now()
	for c, err := range r.store.Cells(ctx, proposalCells, "") {
		if err != nil {
			return nil, 0, 0, tell(op, err)
		}
		var k storedProposal
		if json.Unmarshal(c.Value, &k) == nil && !k.Declined.IsZero() && now.Sub(k.Declined) > declinedLife && len(cells) < maxEnded {
			cells = append(cells, stele.CellChange{Name: c.Name, Before: c.Value})
			continue
		}
		if all++; k.By == user {
			mine++
		}
	}
	return cells, all, mine, nil
}

// Proposals yields the proposals that concern the caller: those that they may decide about, and
// their own, which may be declined.
func (r *Registrar) Proposals(ctx context.Context) iter.Seq2[*Proposal, error] {
	return r.ProposalsAfter(ctx, "")
}

// ProposalsAfter is Proposals for those whose ID is greater than after.
func (r *Registrar) ProposalsAfter(ctx context.Context, after string) iter.Seq2[*Proposal, error] {
	const op = "list proposals"
	return func(yield func(*Proposal, error) bool) {
		s, err := r.view(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		from := ""
		if after != "" {
			from = proposalCells + after
		}
		for c, err := range r.store.Cells(ctx, proposalCells, from) {
			if err != nil {
				yield(nil, tell(op, err))
				return
			}
			p, err := r.readProposalIf(c, func(p *Proposal) bool { return mayReadProposal(ctx, s, p) })
			if err != nil { // one that is damaged must not hide the others
				r.o.Log.WarnContext(ctx, "a proposal can't be read", "cell", c.Name, "error", err.Error())
				continue
			}
			if p != nil && !yield(p, nil) {
				return
			}
		}
	}
}

// mayDecide reports whether the caller may approve a proposal.
func mayDecide(ctx context.Context, s *namespaceTree, p *Proposal) bool {
	return auth.MayWrite(auth.From(ctx), s.ancestorsAt(p.Namespace)...)
}

// mayReadProposal reports whether the caller may read a proposal.
func mayReadProposal(ctx context.Context, s *namespaceTree, p *Proposal) bool {
	who := auth.From(ctx)
	if p.By == who.Name && who.IsKnown() && who.Has(auth.ScopeRead) && who.IsWithin(s.ancestorsAt(p.Namespace)...) {
		return true
	}
	return p.IsOpen() && mayDecide(ctx, s, p)
}

// Proposal returns a proposal that concerns the caller, and whether the caller may decide about it.
func (r *Registrar) Proposal(ctx context.Context, id string) (p *Proposal, decide bool, err error) {
	p, s, _, err := r.proposal(ctx, "read proposal", id)
	if err != nil {
		return nil, false, err
	}
	return p, p.IsOpen() && mayDecide(ctx, s, p), nil
}

// proposal reads a proposal and its cell.
func (r *Registrar) proposal(ctx context.Context, op, id string) (*Proposal, *namespaceTree, stele.Cell, error) {
	missing := refuse(op, stele.ID{}, stele.NotFound, "proposal.missing", "there is no such proposal; it may have been approved or taken back")
	if id == "" || len(id) > 64 || strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return nil, nil, stele.Cell{}, missing
	}
	value, err := r.store.Cell(ctx, proposalCells+id)
	if err != nil {
		return nil, nil, stele.Cell{}, tell(op, err)
	}
	if value == nil {
		return nil, nil, stele.Cell{}, missing
	}
	cell := stele.Cell{Name: proposalCells + id, Value: value}
	p, err := r.readProposal(cell)
	if err != nil {
		return nil, nil, stele.Cell{}, err
	}
	s, err := r.view(ctx)
	if err != nil {
		return nil, nil, stele.Cell{}, err
	}
	if !mayReadProposal(ctx, s, p) {
		return nil, nil, stele.Cell{}, missing
	}
	return p, s, cell, nil
}

// Approve writes what a proposal says, as the caller, who must be allowed to write it. The
// proposal is removed in the same commit, so it is written once. Conflict if the record has
// changed since.
func (r *Registrar) Approve(ctx context.Context, id string) (*stele.Record, error) {
	const op = opApprove
	p, s, cell, err := r.proposal(ctx, op, id)
	if err != nil {
		return nil, err
	}
	if !p.IsOpen() || !mayDecide(ctx, s, p) {
		return nil, refuse(op, p.Record.ID, stele.Forbidden, "proposal.not-yours-to-approve", "only an owner of {namespace} may approve this, while it is open", p.Namespace)
	}
	gone := stele.CellChange{Name: cell.Name, Before: cell.Value}
	switch {
	case p.Base != 0:
		return r.reviseWith(ctx, op, p.Record.ID, p.Base, func(next *stele.Record) error {
			kept, before := next.Withheld, next.State
			*next = *clone(p.Record)
			next.Withheld, next.Redacted = kept, false
			if next.State == stele.Withdrawn && before != stele.Withdrawn {
				next.Tombstone.At = r.now()
			}
			return nil
		}, gone)
	case p.Record.ID.IsValid():
		next, err := r.begin(ctx, op, p.Record)
		if err != nil {
			return nil, err
		}
		at := s.lookup()
		if err := r.admit(ctx, op, at, nil, next); err != nil {
			return nil, err
		}
		if err := r.apply(ctx, op, &stele.Commit{Records: []*stele.Record{next}, Cells: []stele.CellChange{gone}, Counter: at.counter}); err != nil {
			return nil, err
		}
		return clone(next), nil
	}
	made, err := r.mintWith(ctx, minting.Request{Op: op, Pool: []stele.NamespaceKey{p.Namespace}, Count: 1, Time: r.now(), Principal: auth.From(ctx).Name}, p.Record, gone)
	if err != nil {
		return nil, err
	}
	return made.Records[0], nil
}

// Decline ends a proposal without writing it. An owner gives the reason, which its editor reads;
// the editor takes the proposal back, or removes one that was declined.
func (r *Registrar) Decline(ctx context.Context, id, reason string) error {
	const op = "decline proposal"
	p, s, cell, err := r.proposal(ctx, op, id)
	if err != nil {
		return err
	}
	who := auth.From(ctx)
	if p.By == who.Name {
		return r.apply(ctx, "take proposal back", &stele.Commit{Cells: []stele.CellChange{{Name: cell.Name, Before: cell.Value}}})
	}
	reason = strings.TrimSpace(reason)
	if reason == "" || len(reason) > stele.MaxName || stele.CheckText("", strings.ReplaceAll(reason, "\n", " ")) != nil {
		return refuse(op, p.Record.ID, stele.Invalid, "proposal.reason-missing", "say why in 1 to {most} bytes of text; its editor reads that", stele.MaxName)
	}
	p.Declined, p.Decliner, p.Reason = r.now(), who.Name, reason
	next, err := s.proposalCell(p)
	if err != nil {
		return tell(op, err)
	}
	return r.apply(ctx, op, &stele.Commit{Cells: []stele.CellChange{{Name: cell.Name, Before: cell.Value, After: next.Value}}})
}

// IsReviewed reports whether an owner approves what editors propose at a name.
func (r *Registrar) IsReviewed(ctx context.Context, key stele.NamespaceKey) (bool, error) {
	s, err := r.view(ctx)
	if err != nil {
		return false, err
	}
	return auth.IsReviewed(s.ancestorsAt(key)...), nil
}

// endedProposals returns changes that remove the proposals about a record, whose content must go.
func (r *Registrar) endedProposals(ctx context.Context, op string, id stele.ID) (cells []stele.CellChange, err error) {
	for c, err := range r.store.Cells(ctx, proposalCells, "") {
		if err != nil {
			return nil, tell(op, err)
		}
		var k storedProposal
		var rec struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(c.Value, &k) == nil && json.Unmarshal(k.Record, &rec) == nil && !k.Mint && rec.ID == id.String() {
			cells = append(cells, stele.CellChange{Name: c.Name, Before: c.Value})
		}
	}
	return cells, nil
}

// endProposals removes the proposals about a record that was redacted.
func (r *Registrar) endProposals(ctx context.Context, id stele.ID) error {
	const op = "redact"
	cells, err := r.endedProposals(ctx, op, id)
	if err != nil || len(cells) == 0 {
		return err
	}
	return r.apply(ctx, op, &stele.Commit{Cells: cells})
}

// proposalEntry returns the entry of a change of proposals; nil if the cell has none.
func proposalEntry(ctx context.Context, op string, c *stele.CellChange) *stele.AuditEntry {
	name, ok := strings.CutPrefix(c.Name, proposalCells)
	if !ok {
		return nil
	}
	e := entry(ctx, op, "proposal:"+name)
	var k storedProposal
	value := c.After
	if value == nil {
		value = c.Before
	}
	if json.Unmarshal(value, &k) == nil {
		e.Namespace = stele.NamespaceKey{Scheme: k.Scheme, Prefix: k.Prefix}
		if e.Details = "of user:" + k.By; k.Reason != "" {
			e.Details += ": " + k.Reason
		}
	}
	return e
}
