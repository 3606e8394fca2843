package minting

import (
	"context"
	"encoding/hex"
	"strings"
	"sync"
	"time"

	"github.com/stele-id/stele"
)

// IdempotencyKey marks a request that its sender may repeat, since the answer can get lost:
// with the same key the same principal gets the same answer.
type IdempotencyKey struct {
	Key    string   // of the caller's choice: 1 to 255 visible characters of ASCII
	Digest [32]byte // of the whole request, so that a key which is used for another request is noticed
}

// ErrKeyReused says that the idempotency key of a request was used for another request, which
// was answered.
var ErrKeyReused = stele.Messagef("mint.request-key-reused", "the key was used for another request; use a new key for a new request")

// maxRequests is how many requests of a principal are kept at a time. It bounds
// what a principal that never repeats a key can make the registry keep.
const maxRequests = 100_000

// requestMark begins the names of the cells that keep requests; the principal and
// the key follow. The principal ends with a byte that no name has, so that the keys of
// two principals never meet.
const requestMark = "once "

func requestName(principal, key string) string { return requestMark + principal + "\x00" + key }

// IsRequest reports whether a cell keeps the answer to a request with an idempotency key.
func IsRequest(cell stele.Cell) bool { return strings.HasPrefix(cell.Name, requestMark) }

// validate makes sure that the key has the form of one.
func (k *IdempotencyKey) validate() error {
	ok := k.Key != "" && len(k.Key) <= 255
	for _, c := range []byte(k.Key) {
		ok = ok && c > ' ' && c < 0x7f
	}
	if !ok {
		return stele.Errorf("mint", stele.ID{}, stele.Invalid, "mint.request-key-malformed", `"{key}" can't be the key of a request; use 1 to 255 visible characters of ASCII, such as those of a UUID`, k.Key)
	}
	return nil
}

// request is what is kept of a request: when it was answered, and with which names. It
// is text, so that a person can read a damaged store ("once" is the earlier name of the key):
//
//	once 2031-05-02T10:00:00.25Z 9f86d081... 3f0e1d2c...
//	                                           when, the digest of what was asked for, and in
//	                                           which generation; without it, in the first
//	ibi sid.inpe.br/mtc-m18/2031/05.02.10.00   a name: scheme and text
//	+ibi 8JMKD3MGP8W/3A2                       an alias of the name before it
type request struct {
	digest [32]byte
	at     time.Time
	labels []Label

	generation stele.GenerationID // zero: the first one
}

func (q request) bytes() []byte {
	b := append([]byte(requestMark), q.at.Format(time.RFC3339Nano)...)
	b = append(b, ' ')
	b = hex.AppendEncode(b, q.digest[:])
	if !q.generation.IsZero() {
		b = append(b, " "+q.generation.String()...)
	}
	for _, label := range q.labels {
		mark := "\n"
		for name := range label.names {
			b = append(b, mark+name.Scheme()+" "+name.String()...)
			mark = "\n+"
		}
	}
	return b
}

var errRequest = stele.Messagef("mint.kept-request-damaged", "what is kept of a request is damaged")

// readRequest reads what is kept. An error means damage.
func readRequest(data []byte) (q request, err error) {
	head, rest, more := strings.Cut(string(data), "\n")
	if q.digest, q.at, q.generation, err = readRequestHead(head); err != nil {
		return q, err
	}
	for line := ""; more; {
		line, rest, more = strings.Cut(rest, "\n")
		line, alias := strings.CutPrefix(line, "+")
		scheme, text, _ := strings.Cut(line, " ")
		id, err := stele.NewID(scheme, text)
		if err != nil || alias && len(q.labels) == 0 {
			return q, stele.Errorf("mint", stele.ID{}, stele.Internal, "", `{cause}: "{line}"`, errRequest, line)
		}
		if alias {
			last := &q.labels[len(q.labels)-1]
			last.Aliases = append(last.Aliases, id)
		} else {
			q.labels = append(q.labels, Label{ID: id})
		}
	}
	return q, nil
}

// readRequestHead reads the first line of what is kept.
func readRequestHead(line string) (digest [32]byte, at time.Time, generation stele.GenerationID, err error) {
	fields := strings.Fields(line)
	var gerr error
	if len(fields) == 4 {
		generation, gerr = stele.ParseGenerationID(fields[3])
		fields = fields[:3]
	}
	if gerr == nil && len(fields) == 3 && fields[0]+" " == requestMark && len(fields[2]) == 2*len(digest) {
		var derr, terr error
		at, terr = time.Parse(time.RFC3339Nano, fields[1])
		_, derr = hex.Decode(digest[:], []byte(fields[2]))
		if terr == nil && derr == nil {
			return digest, at, generation, nil
		}
	}
	return digest, at, generation, stele.Errorf("mint", stele.ID{}, stele.Internal, "", `{cause}: "{line}"`, errRequest, line)
}

// requests is what this process knows of requests with idempotency keys.
type requests struct {
	mu   sync.Mutex
	open map[string]chan struct{} // by cell: closed when the request is answered
	kept map[string]keptCount     // by principal: about how many are kept
}

// keptCount is how many requests are kept, as far as this process knows: other processes add
// and expire some meanwhile.
type keptCount struct {
	n  int
	at time.Time // when they were counted
}

// A count is valid for an hour; one that would refuse a request, for a minute.
const (
	countLife  = time.Hour
	countAgain = time.Minute
)

// enter makes the caller the only one that answers a request; done ends that.
func (q *requests) enter(ctx context.Context, cell string) (done func(), err error) {
	for {
		q.mu.Lock()
		other := q.open[cell]
		if other == nil {
			if q.open == nil {
				q.open = make(map[string]chan struct{})
			}
			mine := make(chan struct{})
			q.open[cell] = mine
			q.mu.Unlock()
			return func() {
				q.mu.Lock()
				delete(q.open, cell)
				q.mu.Unlock()
				close(mine)
			}, nil
		}
		q.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, stele.AsError("mint", ctx.Err())
		}
	}
}

// add counts requests of a principal, if they are counted.
func (q *requests) add(principal string, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if have, ok := q.kept[principal]; ok {
		q.kept[principal] = keptCount{max(0, have.n+n), have.at}
	}
}

// mayUseKey makes sure that not too many requests of the principal are kept.
// They are counted now and then, so that it does not see what other processes add meanwhile.
func (ms *Minters) mayUseKey(ctx context.Context, principal string) error {
	now := ms.o.Now()
	ms.requests.mu.Lock()
	have, counted := ms.requests.kept[principal]
	ms.requests.mu.Unlock()
	life := countLife
	if have.n >= maxRequests {
		life = countAgain
	}
	if !counted || now.Sub(have.at).Abs() >= life {
		var err error
		if have, err = ms.countRequests(ctx, principal, now); err != nil {
			return err
		}
	}
	if have.n >= maxRequests {
		return stele.Errorf("mint", stele.ID{}, stele.Exhausted,
			"mint.too-many-request-keys", `"{user}" has used {count} keys for requests that may come again; try again when some are a day old, or ask for more names at a time`, principal, have.n)
	}
	return nil
}

// countRequests counts the requests of a principal that are kept.
func (ms *Minters) countRequests(ctx context.Context, principal string, now time.Time) (keptCount, error) {
	have := keptCount{at: now}
	for _, err := range ms.store.Cells(ctx, requestName(principal, ""), "") {
		if err != nil {
			return have, stele.AsError("mint", err)
		}
		have.n++
	}
	ms.requests.mu.Lock()
	defer ms.requests.mu.Unlock()
	if ms.requests.kept == nil {
		ms.requests.kept = make(map[string]keptCount)
	}
	ms.requests.kept[principal] = have
	return have, nil
}

// ExpireKeys removes the answers to requests with idempotency keys before that time, at most
// so many, and returns how many it removed: a request that is repeated after that gets new
// names.
func (ms *Minters) ExpireKeys(ctx context.Context, before time.Time, most int) (int, error) {
	const together, size = 500, 16 << 20
	forgotten, after := 0, ""
	for forgotten < most {
		var old []stele.CellChange
		end, have := true, 0
		for cell, err := range ms.store.Cells(ctx, requestMark, after) {
			if err != nil {
				return forgotten, stele.AsError("forget requests", err)
			}
			after = cell.Name
			head, _, _ := strings.Cut(string(cell.Value[:min(len(cell.Value), 200)]), "\n")
			switch _, at, _, err := readRequestHead(head); {
			case err != nil: // it can't be replayed, but its key gets no second answer either
				ms.o.Log.ErrorContext(ctx, "a request can't be read", "err", err)
			case at.Before(before):
				old = append(old, stele.CellChange{Name: cell.Name, Before: cell.Value})
				have += len(cell.Value)
			}
			if len(old) == min(together, most-forgotten) || have > size {
				end = false
				break
			}
		}
		n, err := ms.expire(ctx, old)
		forgotten += n
		if err != nil || end {
			return forgotten, err
		}
	}
	return forgotten, nil
}

// expire removes cells. If another process was faster, it tries each one alone.
func (ms *Minters) expire(ctx context.Context, old []stele.CellChange) (n int, err error) {
	if len(old) == 0 {
		return 0, nil
	}
	err = ms.registry.Apply(ctx, "forget requests", &stele.Commit{Cells: old})
	switch {
	case err == nil:
		for _, c := range old {
			principal, _, _ := strings.Cut(strings.TrimPrefix(c.Name, requestMark), "\x00")
			ms.requests.add(principal, -1)
		}
		return len(old), nil
	case stele.KindOf(err) != stele.Conflict:
		return 0, err
	case len(old) == 1:
		return 0, nil
	}
	for i := range old {
		one, err := ms.expire(ctx, old[i:i+1])
		n += one
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
