package stele

import (
	"sync/atomic"
	"time"
)

// Measured is a Store that counts what it does, for the operator. It is optional.
type Measured interface {
	// Measure returns the present numbers. It does not wait for a database, and works after
	// Close, too.
	Measure() StoreMeasure
}

// StoreMeasure is what a store has counted since it was opened, and how it is at present. A
// number that a store does not have is 0.
type StoreMeasure struct {
	Commits  uint64        // commits that were kept, an ingest being one
	Refused  uint64        // commits that were refused because a rule or a condition does not hold
	Failed   uint64        // commits that could not be written, or whose outcome is not known
	Groups   uint64        // writes to the disk, or transactions, by which commits were kept
	Writing  time.Duration // how long those took
	Waiting  int           // commits that wait for their turn
	MayWait  int           // how many may; further callers wait to get in
	Bytes    uint64        // of the store's files
	Unmerged uint64        // of the tables that have yet to be merged, about
	Free     uint64        // of the disk that processes may use
	Reserve  uint64        // of the disk that the store does not use: with less space it only reads
	Hits     uint64        // blocks of files that were in the store's memory
	Misses   uint64        // blocks that were read from the disk

	Connections    int // to the database that are in use
	MaxConnections int // that may be open
}

// CommitTally counts commits for [StoreMeasure]. It is used by many goroutines at once.
type CommitTally struct {
	kept, refused, failed, groups atomic.Uint64
	writing                       atomic.Int64
}

// Group notes that a group of commits was written, or was tried to be.
func (t *CommitTally) Group(took time.Duration) {
	t.groups.Add(1)
	t.writing.Add(int64(max(took, 0)))
}

// Commit notes the outcome of a commit.
func (t *CommitTally) Commit(err error) {
	if err == nil {
		t.kept.Add(1)
		return
	}
	switch KindOf(err) {
	case Unavailable, Internal:
		t.failed.Add(1)
	default:
		t.refused.Add(1)
	}
}

// Fill sets what was counted.
func (t *CommitTally) Fill(m *StoreMeasure) {
	m.Commits, m.Refused, m.Failed = t.kept.Load(), t.refused.Load(), t.failed.Load()
	m.Groups, m.Writing = t.groups.Load(), time.Duration(t.writing.Load())
}
