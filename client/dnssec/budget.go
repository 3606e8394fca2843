package dnssec

import (
	"sync"
	"sync/atomic"
)

// Bounds on the work that answers may cause. What honest zones need is a fraction of
// them: one or two signatures for a set of records, one key of a tag, three records of
// a denial.
const (
	maxSignatures = 8  // that are looked at, of one set of records
	maxSameTag    = 4  // keys that have a signature's tag
	maxDenials    = 8  // sets of NSEC and NSEC3 records that are looked at, in an answer
	maxKeys       = 64 // of a zone
	maxDS         = 16 // of a zone

	maxChecksAnswer = 24    // signatures that are checked, in one answer
	maxChecks       = 256   // and for one name, all in all
	maxQuestions    = 128   // for keys, for one name
	maxRounds       = 16384 // of hashing for NSEC3 records, for one name
	maxIterations   = 100   // of one such record; RFC 9276, section 3.2
)

// Budget bounds the work for one name, however many answers lead to it. The zero value
// is ready; it may be used by several goroutines at once.
type Budget struct {
	checks    atomic.Int64
	questions atomic.Int64
	rounds    atomic.Int64

	// trustChain is held while keys are asked for: the second caller finds them in the cache.
	trustChain sync.Mutex
}

// take adds n to spent unless the sum exceeds most, and reports whether it did.
// Two concurrent callers may both get the last.
func take(spent *atomic.Int64, n, most int) bool {
	if spent.Load()+int64(n) > int64(most) {
		return false
	}
	spent.Add(int64(n))
	return true
}
