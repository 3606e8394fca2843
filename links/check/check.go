// Package check checks where names lead, in the background: it keeps what is known of each target in cells of the
// registry, chooses what is asked next, and reports what was found.
//
// One server of a registry does so at a time: it holds a lease, and each of its commits needs it. What is known
// survives restarts, and is not in the history of records. Package links judges, package links/ask asks.
package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/links/ask"
	"github.com/stele-id/stele/registrar"
)

// What the names of cells begin with.
const (
	blockCells  = registrar.CheckCells + "b "     // what is known of some targets; see lastBlock
	stateCells  = registrar.CheckCells + "s "     // of earlier versions: what is known of a target; by its turn, then by its key
	dueCells    = registrar.CheckCells + "d "     // targets that are due at another time than their turn; by time, then by key
	waitCells   = registrar.CheckCells + "w "     // targets that were never asked; by key
	foundCells  = registrar.CheckCells + "f "     // what is told about a target; by its key
	hostCells   = registrar.CheckCells + "h "     // hosts that do not answer, or of which only a sample is asked
	domainCells = registrar.CheckCells + "n "     // the name servers of domains
	copiedCells = registrar.CheckCells + "c "     // targets that were replaced by an archived copy; by the key of the name and a hash of the address
	quotaCells  = registrar.CheckCells + "q "     // what is spent of the quotas of namespaces
	outageCell  = registrar.CheckCells + "outage" // since when the server has reached no host at all
	leaseCell   = registrar.CheckCells + "lease"
	placeCell   = registrar.CheckCells + "place" // how far the feed was read, and the turn of targets
)

// maxTargets is how many targets of a record are checked.
const maxTargets = 8

// Store is what is read of a registry.
type Store interface {
	Record(ctx context.Context, name stele.ID) (*stele.Record, error)
	Scan(ctx context.Context, scheme, prefix, after string) iter.Seq2[*stele.Record, error]
	Changes(ctx context.Context, after uint64) iter.Seq2[stele.Change, error]
	Position(ctx context.Context) (stele.Position, error)
	Pointing(ctx context.Context, at stele.Location, after stele.ID) iter.Seq2[stele.ID, error]
}

// Options are what a Checker needs. All must be set, except Log, Lease, Own, Archive and Servers.
type Options struct {
	Registrar *registrar.Registrar
	Store     Store
	Rules     links.Judge
	Ask       func(ctx context.Context, url string, k ask.Known) (*links.Answer, links.Report)
	Now       func() time.Time
	Rand      io.Reader
	Log       *slog.Logger
	Lease     time.Duration // how long a server that has died keeps the lease; 0: DefaultLease

	// Own are hosts that may be asked, with those below them, as often as the owners of namespaces want. The operator names them: an owner may name
	// the host of a stranger.
	Own []string

	// Archive returns the archived copy of a page that is nearest to a time; nil: no archive is asked.
	Archive func(ctx context.Context, url string, near time.Time) (links.Copy, error)

	// Servers returns the name servers of a domain; nil: it is not noticed when a domain is sold.
	Servers func(ctx context.Context, domain string) ([]string, error)
}

// DefaultLease is how long a server that has died keeps the lease.
const DefaultLease = 20 * time.Second

// Checker checks targets. It is used by many goroutines at once.
type Checker struct {
	o    Options
	wake chan struct{}

	askedOnly bool // see RunAsked
	tally     tally
}

// New makes a Checker.
func New(o Options) *Checker {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Lease == 0 {
		o.Lease = DefaultLease
	}
	return &Checker{o: o, wake: make(chan struct{}, 1)}
}

func (c *Checker) now() time.Time { return c.o.Now().UTC().Round(0) }

// asServer returns a context in which cells can be kept. The functions that use it have made sure that the caller
// may see what they show.
func asServer(ctx context.Context) context.Context { return auth.With(ctx, auth.Local()) }

// key names a target: the scheme and the text of an identifier, and the number of the target.
type key string

func keyOf(id stele.ID, n int) key {
	return key(id.Scheme() + "\t" + id.String() + "\t" + strconv.Itoa(n))
}

// parse returns what a key names.
func (k key) parse() (id stele.ID, n int, err error) {
	scheme, rest, _ := strings.Cut(string(k), "\t")
	cut := strings.LastIndexByte(rest, '\t')
	if cut < 0 {
		return id, 0, damaged(string(k))
	}
	if n, err = strconv.Atoi(rest[cut+1:]); err == nil {
		id, err = stele.NewID(scheme, rest[:cut])
	}
	if err != nil {
		return id, 0, damaged(string(k))
	}
	return id, n, nil
}

func damaged(name string) error {
	return stele.Errorf("check links", stele.ID{}, stele.Internal, "links.cell-damaged", `the cell "{cell}" of the link checks is damaged`, name)
}

// slots is how many parts a turn has. The state of a target stands where its turn comes, so that the next ones are found
// by reading on.
const slots = 1 << 16

// hash returns what spreads the targets of names over time: all targets of a name have the same.
func (k key) hash() uint64 { return links.Hash(string(k[:strings.LastIndexByte(string(k), '\t')+1])) }

// slotOf returns the part of the turn in which a time is.
func slotOf(at time.Time) int {
	turn := int64(links.Turn / time.Second)
	return int(at.Unix() % turn * slots / turn)
}

// turn returns the second of a turn at which a target is due.
func (k key) turn() int64 {
	return links.Slot(k.hash(), time.Unix(0, 0)).Unix() % int64(links.Turn/time.Second)
}

// state returns the name of the cell in which earlier versions kept what is known of a target.
func (k key) state() string { return stateCells + k.place() }

// parseState returns the key that the name of such a cell has.
func parseState(name string) key {
	name = strings.TrimPrefix(name, stateCells)
	return key(name[min(4, len(name)):])
}

func (k key) due(at time.Time) string {
	return fmt.Sprintf("%s%010x %s", dueCells, max(at.Unix(), 0), k)
}

func (k key) found() string { return foundCells + string(k) }
func (k key) waits() string { return waitCells + string(k) }

// When targets are due that users wait for, and those that were never checked: before all others.
var askedNow, neverChecked = time.Unix(0, 0), time.Unix(1, 0)

// parseDue returns when a cell says that a target is due, and which.
func parseDue(name string) (at time.Time, k key, err error) {
	hex, rest, ok := strings.Cut(strings.TrimPrefix(name, dueCells), " ")
	n, err := strconv.ParseInt(hex, 16, 64)
	if !ok || err != nil {
		return at, "", damaged(name)
	}
	if _, _, err := key(rest).parse(); err != nil {
		return at, "", err
	}
	return time.Unix(n, 0).UTC(), key(rest), nil
}

// Finding is what is told about a target.
type Finding = apijson.LinkFinding

// finding makes what is told of a status.
func finding(k key, url string, s *links.Status, e *links.Evidence) Finding {
	id, n, _ := k.parse()
	f := Finding{ID: id.String(), Scheme: id.Scheme(), Target: n, URL: url, Host: stele.Target{URL: url}.Host(), State: s.State.String(), Cause: s.Cause.String(), Status: int(s.Code),
		Since: s.Since, First: s.Row.First, Fails: int(s.Row.Fails), Checked: s.Checked, Good: s.Good, Next: s.Next}
	if s.Drift.IsTold() {
		f.Drift, f.Drifted = s.Drift.String(), s.DriftSince
	}
	if e != nil {
		f.Wall, f.Title = e.Sign, e.Title
		if e.Final != url {
			f.Final = e.Final
		}
	}
	return f
}

// isTold reports whether there is something to tell.
func isTold(s *links.Status) bool {
	return s.State > links.OK || s.Drift.IsTold()
}

// target is a target of a record as it is now.
type target struct {
	key        key
	url        string
	unchanging bool
	signed     []links.Signed
}

// targets returns what is checked of a record.
func targets(rec *stele.Record) (list []target) {
	if rec.State != stele.Active {
		return nil
	}
	for i, t := range rec.Targets {
		switch t.Protocol() {
		case "http", "https", "ftp":
		default:
			continue
		}
		k := keyOf(rec.ID, i)
		if len(list) < maxTargets && len(k) < stele.MaxCellName-64 {
			list = append(list, target{key: k, url: t.URL, unchanging: rec.Persistence.Level == stele.Unchanging, signed: signed(rec, &t)})
		}
	}
	return list
}

// signed returns what is signed of what a target leads to. A signature is about what is named, and not about its
// description.
func signed(rec *stele.Record, t *stele.Target) (list []links.Signed) {
	if rec.Persistence.Level != stele.Unchanging || t.Service != stele.N2L {
		return nil
	}
	for _, s := range rec.Signatures {
		if s.Type == "" || t.Type == "" || s.Type == t.Type {
			list = append(list, links.Signed{Type: s.Type, Digest: [16]byte(s.SHA256[:16])})
		}
	}
	return list
}

// target reads the target that a key names; false if it is not there any more.
func (c *Checker) target(ctx context.Context, k key) (target, bool, error) {
	id, n, err := k.parse()
	if err != nil {
		return target{}, false, err
	}
	rec, err := c.o.Store.Record(ctx, id)
	if errors.Is(err, stele.NotFound) {
		return target{}, false, nil
	} else if err != nil {
		return target{}, false, err
	}
	if rec.ID == id {
		if rec.Persistence.Level == stele.Unchanging && len(rec.Signatures) > 0 {
			promised := *rec
			if promised.Signatures, err = c.o.Registrar.CheckedSignatures(asServer(ctx), rec); err != nil {
				return target{}, false, err
			}
			rec = &promised
		}
		for _, t := range targets(rec) {
			if t.key == keyOf(id, n) {
				return t, true, nil
			}
		}
	}
	return target{}, false, nil
}

// status reads what is known of a target, and its stored form. What is damaged is as what is not there: the target is checked anew.
func (c *Checker) status(ctx context.Context, k key) (s links.Status, value []byte, err error) {
	bl, err := c.locate(ctx, k.place())
	if err != nil {
		return s, nil, err
	}
	if i, ok := bl.find(k.place()); ok {
		value = bl.states[i].value
	} else if value, err = c.o.Registrar.CheckCell(asServer(ctx), k.state()); err != nil {
		return s, nil, err
	}
	s, ok := c.readStatus(k, value)
	if !ok {
		value = nil
	}
	return s, value, nil
}

// readStatus reads the stored form of what is known of a target; false if there is none, or if it is damaged.
func (c *Checker) readStatus(k key, value []byte) (links.Status, bool) {
	if value == nil {
		return links.Status{}, false
	}
	s, err := links.ReadStatus(value)
	if err != nil {
		c.logDamaged(string(k))
		return links.Status{}, false
	}
	return s, true
}

func (c *Checker) logDamaged(name string) {
	c.o.Log.Error("a cell of the link checks is damaged, and treated as if it were not there", "cell", name)
}

// decode reads the value of a cell into v. It reports false, and leaves v as it is, if there is none or if it is damaged:
// one such cell must not keep others from being checked.
func decode[T any](c *Checker, name string, value []byte, v *T) bool {
	if value == nil {
		return false
	}
	var read T
	if err := json.Unmarshal(value, &read); err != nil {
		c.logDamaged(name)
		return false
	}
	*v = read
	return true
}

// spaces are the namespaces that have settings of checks.
type spaces []registrar.LinkChecks

// space returns the settings for a name: those of the nearest of its namespaces that has some. It returns nil if the targets of the
// name are not checked.
func (w *worker) space(ctx context.Context, id stele.ID) (*registrar.LinkChecks, error) {
	above, err := w.o.Registrar.CheckedAbove(asServer(ctx), id)
	if err != nil {
		return nil, err
	}
	for _, key := range above {
		for i := range w.spaces {
			if l := &w.spaces[i]; l.Key() == key {
				if !l.On {
					return nil, nil
				}
				return l, nil
			}
		}
	}
	return nil, nil
}
