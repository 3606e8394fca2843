package transparency

import (
	"context"
	"crypto/sha256"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
)

// maker makes leaves, in memory that it uses again. One goroutine uses it.
type maker struct {
	form         document.Canonical
	full, public []byte // salted documents
	text         []byte // of a leaf, as it is hashed
	at           time.Time
	atText       []byte // of that time: many changes have the same
}

// make makes the leaf of an entry: what is kept of it, and where it is found.
func (m *maker) make(e *entry) {
	kind, name := subject(&e.change)
	e.place = place{placeHash(kind, name, e.change.Version), e.change.Seq - 1}
	leaf := Leaf{Kind: kind, Name: name, Version: e.change.Version, At: e.change.At}
	if e.listed {
		e.kept.flags |= flagListed
	} else {
		leaf.Name, leaf.Blind = "", Blind(e.key, kind, name)
	}
	// There are none if the version was not kept, or was erased, or has a text that is not UTF-8, which an earlier program may have
	// let in.
	if (e.record != nil || e.space != nil) && m.digest(&leaf, e) == nil {
		e.kept.flags |= flagNoted
	}
	if !m.at.Equal(leaf.At) || m.atText == nil {
		m.at, m.atText = leaf.At, appendTime(m.atText[:0], leaf.At)
	}
	m.text = leaf.appendAt(append(m.text[:0], leafPrefix), m.atText)
	e.kept.seed, e.kept.hash = e.seed, sha256.Sum256(m.text)
}

// What is hashed begins with a byte that says whether it is a leaf or a node (RFC 6962, section 2.1).
const (
	leafPrefix = 0
	nodePrefix = 1
)

// hashNode is [tlog.NodeHash] without allocations.
func hashNode(left, right *tlog.Hash) tlog.Hash {
	var b [1 + 2*tlog.HashSize]byte
	b[0] = nodePrefix
	copy(b[1:], left[:])
	copy(b[1+tlog.HashSize:], right[:])
	return sha256.Sum256(b[:])
}

// digest fills in the digests of the documents of an entry, which has a record or a namespace. Invalid if it has a text that is not
// UTF-8.
func (m *maker) digest(l *Leaf, e *entry) error {
	if err := m.documents(e); err != nil {
		return err
	}
	l.Form, l.Public, l.Full = leafForm, sha256.Sum256(m.public), sha256.Sum256(m.full)
	return nil
}

// documents writes the two documents of the version, each after its salt.
func (m *maker) documents(e *entry) error {
	public, full := e.seed.salts()
	m.public, m.full = append(m.public[:0], public[:]...), append(m.full[:0], full[:]...)
	var err error
	switch {
	case e.space != nil:
		if m.full, err = m.form.AppendNamespace(m.full, e.space); err == nil {
			m.public, err = m.form.AppendNamespace(m.public, PublicNamespace(e.space))
		}
	case isOpen(e.record):
		m.full, m.public, err = m.form.AppendBoth(m.full, m.public, e.record)
	default:
		if m.full, err = m.form.AppendRecord(m.full, e.record); err != nil {
			break
		}
		if p := PublicRecord(e.record); p != nil {
			m.public, err = m.form.AppendRecord(m.public, p)
		} else {
			m.public = append(m.public, noDocument...)
		}
	}
	return err
}

// isOpen reports whether [PublicRecord] differs from a record only by By, Import and Readers.
func isOpen(r *stele.Record) bool {
	return r.State != stele.Reserved && r.State != stele.Withdrawn && r.IsPublic() && !r.Redacted &&
		len(r.Withheld.Disavowed) == 0 && !slices.ContainsFunc(r.Values, isPrivate)
}

const (
	// readFirst is how many versions a worker reads at first, and readMost at most: as many as fit into readBytes if they are as large
	// as those before. A record may have a megabyte.
	readFirst = 32
	readMost  = 512
	readBytes = 2 << 20
)

// makeAll reads what the entries are about, unless it is there, and makes their leaves, by several goroutines. conceal is called with each
// entry when its content is known.
func (l *Log) makeAll(ctx context.Context, list []entry, conceal func(*entry) error) error {
	workers := min(runtime.GOMAXPROCS(0), 8, (len(list)+readFirst-1)/readFirst)
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var work sync.WaitGroup
	for range workers {
		work.Go(func() {
			m := l.makers.Get().(*maker)
			defer l.makers.Put(m)
			for size := readFirst; failed.Load() == nil; {
				from := int(next.Add(int64(size))) - size
				if from >= len(list) {
					return
				}
				part := list[from:min(from+size, len(list))]
				bytes, err := l.makePart(ctx, m, part, conceal)
				if err != nil {
					failed.CompareAndSwap(nil, &err)
					return
				}
				size = max(1, min(size*4, readBytes/(bytes/len(part)+1), readMost))
			}
		})
	}
	work.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// makePart reads and makes some entries, and returns the size of what it read.
func (l *Log) makePart(ctx context.Context, m *maker, part []entry, conceal func(*entry) error) (bytes int, err error) {
	if err := l.content(ctx, part); err != nil {
		return 0, err
	}
	for i := range part {
		e := &part[i]
		if e.record != nil && !e.offered {
			bytes += e.record.StoredSize()
		}
		if err := conceal(e); err != nil {
			return 0, err
		}
		m.make(e)
		e.record, e.space = nil, nil // they need not wait until the batch is committed
	}
	return bytes, nil
}
