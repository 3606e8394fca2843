package registrar

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document"
)

// MaxMint is how many names [Registrar.MintOnce] makes at a time.
const MaxMint = 1000

// maxMinted is how many bytes records may have together that are registered at a time.
const maxMinted = 8 << 20

// Once marks a request that may come again, since its answer can get lost: with the
// same key the same principal gets the same answer.
type Once struct {
	Key    string   // of the caller's choice: 1 to 255 visible characters of ASCII
	Digest [32]byte // of all that is asked for, so that a key that means something else is noticed
}

// ErrReused says that the key of a request was used for another one, which was
// answered: to this one there is no answer.
var ErrReused = errors.New("the key was used for another request; use a new key for a new request")

// Minted is what MintOnce made.
type Minted struct {
	Labels   []Label
	Records  []*stele.Record // registered under the labels, in their order; nil if none was asked for
	Replayed bool            // they were made for an earlier request with the same key
}

// MintOnce makes n new names as [Registrar.MintPool] does, and registers a record like
// the given one under each, unless that is nil. It makes all or nothing: the records
// are committed together, and with them what is answered to a request that comes again.
// So a crash leaves all of it or none, and no key has two answers, however many ask
// with it at a time: the others wait, or get what the first one got. Without once each
// request is a new one.
//
// Conflict, as [ErrReused], if the key was used for another request; Exhausted if whoever
// acts has too many of them. An answer is kept until [Registrar.ForgetRequests].
func (r *Registrar) MintOnce(ctx context.Context, once *Once, pool []stele.NamespaceKey, n int, record *stele.Record) (Minted, error) {
	m := &minting{Registrar: r, pool: pool, n: n, op: "mint", at: r.now()}
	if err := m.judge(ctx, record); err != nil {
		return Minted{}, err
	}
	if once == nil {
		return m.run(ctx)
	}
	if err := once.validate(); err != nil {
		return Minted{}, err
	}
	m.once, m.cell = once, requestName(auth.From(ctx).Name, once.Key)
	done, err := r.requests.enter(ctx, m.cell)
	if err != nil {
		return Minted{}, err
	}
	defer done()
	if found, err := m.recall(ctx); found != nil || err != nil {
		return found.or(err)
	}
	if err := r.mayAsk(ctx); err != nil {
		return Minted{}, err
	}
	made, err := m.run(ctx)
	switch {
	case err == nil:
		r.requests.add(auth.From(ctx).Name, 1)
	case stele.KindOf(err) == stele.Conflict: // another process was faster, perhaps
		if found, rerr := m.recall(ctx); found != nil || rerr != nil {
			return found.or(rerr)
		}
	}
	return made, err
}

// or returns what m points to, or else the error.
func (m *Minted) or(err error) (Minted, error) {
	if m == nil {
		return Minted{}, err
	}
	return *m, err
}

// minting is a MintOnce under way.
type minting struct {
	*Registrar
	op    string
	pool  []stele.NamespaceKey
	n     int
	first *stele.Record // what is to be registered, without a name; nil if nothing is
	at    time.Time
	once  *Once  // nil if the request does not come again
	cell  string // where its answer is kept
}

// judge makes sure that the request can be right, and that whoever acts may make it.
func (m *minting) judge(ctx context.Context, record *stele.Record) error {
	if m.n < 1 || m.n > MaxMint {
		return refuse(m.op, stele.ID{}, stele.Invalid, "%d names are asked for; ask for 1 to %d at a time", m.n, MaxMint)
	}
	if err := m.mayMint(ctx, m.pool); err != nil {
		return err
	}
	if record == nil {
		return nil
	}
	m.op = "mint and register"
	switch {
	case record.ID.IsValid():
		return refuse(m.op, record.ID, stele.Invalid, "the record has an identifier; register it, or leave the identifier out")
	case m.n > 1 && len(record.Aliases) > 0:
		return refuse(m.op, stele.ID{}, stele.Invalid, "%d records can't all have the alias %s; leave it out, or ask for one record", m.n, record.Aliases[0])
	}
	var err error
	if m.first, err = m.begin(ctx, m.op, record); err != nil {
		return err
	}
	m.at = m.first.Created
	if size := len(document.AppendRecord(nil, record)); size*m.n > maxMinted {
		return refuse(m.op, stele.ID{}, stele.Invalid, "%d records of %d bytes are more than %d bytes; ask for fewer at a time", m.n, size, maxMinted)
	}
	return nil
}

// run makes names, and commits what is to be registered under them and what is kept of
// the request. A name that somebody registers meanwhile is replaced by another one.
func (m *minting) run(ctx context.Context) (Minted, error) {
	if m.first != nil {
		if err := m.rehearse(ctx, m.op, m.pool, m.first); err != nil {
			return Minted{}, err
		}
		if m.once == nil && m.n == 1 { // one commit where this takes two
			rec, err := m.MintAndRegister(ctx, m.first, m.pool...)
			if err != nil {
				return Minted{}, err
			}
			own := len(rec.Aliases) - len(m.first.Aliases)
			return Minted{Labels: []Label{{rec.ID, rec.Aliases[:own:own]}}, Records: []*stele.Record{rec}}, nil
		}
	}
	if err := m.enough(ctx); err != nil {
		return Minted{}, err
	}
	var labels []Label
	for attempt := 1; ; attempt++ {
		more, err := m.mintPool(ctx, m.pool, m.n-len(labels))
		if err != nil {
			return Minted{}, err
		}
		made := Minted{Labels: append(labels, more...)}
		if err = m.commit(ctx, &made); err == nil && m.first == nil {
			m.minted(ctx, m.pool, len(made.Labels))
		}
		if err == nil || stele.KindOf(err) != stele.Conflict || attempt == maxAttempts {
			return made, err
		}
		have := len(made.Labels)
		var kerr error
		if labels, kerr = m.free(ctx, made.Labels); kerr != nil {
			return Minted{}, kerr
		}
		if len(labels) == have { // it was something else
			return Minted{}, err
		}
	}
}

// enough makes sure that a template has so many names left, so that none is used up for
// a request that can't have all.
func (m *minting) enough(ctx context.Context) error {
	if len(m.pool) > 1 {
		return nil // another namespace may have more
	}
	left, bounded, err := m.desk(m.pool[0]).left(ctx)
	// That none is left at all is told by who makes names.
	if err != nil || !bounded || left == 0 || uint64(m.n) <= left {
		return err
	}
	return refuse(m.op, stele.ID{}, stele.Exhausted, "%d names are asked for, and the template of %s has %d left; ask for fewer, or set another template", m.n, m.pool[0], left)
}

// commit commits all that was made.
func (m *minting) commit(ctx context.Context, made *Minted) error {
	c := &stele.Commit{}
	if m.first != nil {
		s, err := m.view(ctx)
		if err != nil {
			return err
		}
		c.Counter, c.Records = s.counter, m.records(made.Labels)
		for _, rec := range c.Records {
			if err := m.admit(whileMinting(ctx), m.op, s.lookup(), nil, rec); err != nil {
				return err
			}
		}
	}
	if m.once != nil {
		now, err := m.store.Position(ctx)
		if err != nil {
			return tell(m.op, err)
		}
		kept := request{m.once.Digest, m.at, made.Labels, now.Generation}.bytes()
		if len(kept) > stele.MaxCell {
			return refuse(m.op, stele.ID{}, stele.Invalid, "the names have %d bytes, more than can be kept of a request; ask for fewer at a time", len(kept))
		}
		c.Cells = []stele.CellChange{{Name: m.cell, After: kept}}
	}
	if c.Records == nil && c.Cells == nil {
		return nil
	}
	if err := m.apply(ctx, m.op, c); err != nil {
		return err
	}
	made.Records = c.Records
	for i, rec := range made.Records { // others may keep what was committed
		made.Records[i] = clone(rec)
	}
	return nil
}

// records returns the records of labels, as they are registered.
func (m *minting) records(labels []Label) []*stele.Record {
	list := make([]*stele.Record, len(labels))
	for i, label := range labels {
		rec := clone(m.first)
		rec.ID = label.ID
		rec.Aliases = append(slices.Clip(label.Aliases), rec.Aliases...)
		rec.Created, rec.Modified = m.at, m.at
		list[i] = rec
	}
	return list
}

// free returns the labels of which no name is registered.
func (m *minting) free(ctx context.Context, labels []Label) (free []Label, err error) {
	for _, label := range labels {
		taken, err := m.desk(m.pool[0]).taken(ctx, label)
		if err != nil {
			return nil, err
		}
		if !taken {
			free = append(free, label)
		}
	}
	return free, nil
}

// recall returns what was answered to an earlier request with the same key; nil if
// there was none. Its records are told as they were then: the request says what they
// said, and the answer their names and when.
func (m *minting) recall(ctx context.Context) (*Minted, error) {
	data, err := m.store.Cell(ctx, m.cell)
	if err != nil {
		return nil, tell(m.op, err)
	}
	if data == nil {
		return nil, nil
	}
	kept, err := readRequest(data)
	if err != nil {
		return nil, err
	}
	if kept.digest != m.once.Digest {
		return nil, refuse(m.op, stele.ID{}, stele.Conflict, "%.255q: %w", m.once.Key, ErrReused)
	}
	generations, err := m.store.Generations(ctx)
	if err != nil {
		return nil, tell(m.op, err)
	}
	if err := generations.Judge("the idempotency key", stele.Position{Generation: kept.generation, Change: 1}); err != nil {
		return nil, tell(m.op, err)
	}
	m.at = kept.at
	found := &Minted{Labels: kept.labels, Replayed: true}
	if m.first != nil {
		found.Records = m.records(kept.labels)
	}
	return found, nil
}

// left returns how many names the desk's template has, if they have an end. Some of
// them may be registered already.
func (d *desk) left(ctx context.Context) (n uint64, bounded bool, err error) {
	p, err := d.room.join(false)
	if err != nil {
		return 0, false, err
	}
	if err := p.wait(ctx); err != nil {
		return 0, false, err
	}
	defer d.room.leave()
	s, err := d.view(ctx)
	if err != nil {
		return 0, false, err
	}
	src, err := d.open(ctx, s)
	c, ok := src.(*counter)
	if !ok || err != nil { // what is wrong is told by who makes names
		return 0, false, nil
	}
	total, bounded := c.series.plain.Total()
	return total - min(total, c.count), bounded, nil
}
