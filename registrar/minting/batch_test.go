package minting_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registrar/minting"
	"github.com/stele-id/stele/store/storetest"
)

// ids lets cmp look into identifiers.
var ids = cmp.AllowUnexported(stele.ID{})

func idempotencyKey(key, body string) *minting.IdempotencyKey {
	return &minting.IdempotencyKey{Key: key, Digest: sha256.Sum256([]byte(body))}
}

func TestMintBatch(t *testing.T) {
	f := newFixture(t)
	key := f.space("sid.inpe.br/mtc-m18", owner("ann"), minter(ibi("1us")))
	pool := []stele.NamespaceKey{key}
	ann := as("ann")
	rec := f.record("", "https://example.org/1")

	for _, tt := range []struct {
		name           string
		idempotencyKey *minting.IdempotencyKey
		n              int
		record         *stele.Record
	}{
		{"a name", idempotencyKey("a", "1"), 1, nil},
		{"names", idempotencyKey("b", "2"), 1000, nil},
		{"a record", idempotencyKey("c", "3"), 1, rec},
		{"records", idempotencyKey("d", "4"), 100, rec},
		{"the key of somebody else's", idempotencyKey(strings.Repeat("k", 255), "5"), 2, rec},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := must(f.store.LastChange(ann))(t)
			made := must(f.MintBatch(ann, tt.idempotencyKey, pool, tt.n, tt.record))(t)
			after := must(f.store.LastChange(ann))(t)
			if made.Replayed || len(made.Labels) != tt.n || tt.record != nil && (len(made.Records) != tt.n || after != before+uint64(tt.n)) {
				t.Fatalf("%d names, %d records, %d changes, replayed: %t", len(made.Labels), len(made.Records), after-before, made.Replayed)
			}
			for i, rec := range made.Records {
				if have := must(f.Get(ann, rec.ID))(t); !cmp.Equal(have, rec, ids) || have.By != "ann" || have.ID != made.Labels[i].ID {
					t.Errorf("registered is %+v, answered was %+v", have, rec)
				}
			}
			// Records change, processes begin anew: the answer stays.
			if tt.record != nil {
				must(f.Withdraw(ann, made.Records[0].ID, 0, "it is gone", stele.ID{}))(t)
			}
			f.start()
			again := must(f.MintBatch(ann, tt.idempotencyKey, pool, tt.n, tt.record))(t)
			if made.Replayed = true; !cmp.Equal(again, made, ids) {
				t.Errorf("answered was %+v, and then %+v", made, again)
			}
			_, err := f.MintBatch(ann, idempotencyKey(tt.idempotencyKey.Key, "other"), pool, tt.n, tt.record)
			want(t, err, stele.Conflict, "new key")
			if !errors.Is(err, minting.ErrKeyReused) {
				t.Errorf("%v is not minting.ErrKeyReused", err)
			}
			other := must(f.MintBatch(f.admin, tt.idempotencyKey, pool, tt.n, tt.record))(t)
			if other.Replayed || other.Labels[0].ID == made.Labels[0].ID {
				t.Error("somebody else got the same answer")
			}
		})
	}
}

func TestMintBatchRefuses(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345/x5", owner("ann"), minter(noid(".sddddd")), func(ns *stele.Namespace) {
		ns.Hosts, ns.Quota = []string{"example.org"}, 10
	})
	f.space("ark:12345", owner("ann"))
	pool := []stele.NamespaceKey{key}
	good := f.record("", "https://example.org/1")
	aliased := f.record("", "https://example.org/1")
	aliased.Aliases = []stele.ID{f.id("ark:12345/a")}
	large := f.record("", "https://example.org/1")
	large.Metadata = map[string]string{"what": strings.Repeat("x", 60<<10)}
	for _, tt := range []struct {
		who            context.Context
		idempotencyKey *minting.IdempotencyKey
		n              int
		record         *stele.Record
		kind           stele.Kind
		words          string
	}{
		{context.Background(), idempotencyKey("k", ""), 1, nil, stele.Unauthenticated, "who you are"},
		{as("bob"), idempotencyKey("k", ""), 1, nil, stele.Forbidden, "bob"},
		{as("ann"), idempotencyKey("", ""), 1, nil, stele.Invalid, "key"},
		{as("ann"), idempotencyKey("a b", ""), 1, nil, stele.Invalid, "key"},
		{as("ann"), idempotencyKey("a\x00b", ""), 1, nil, stele.Invalid, "key"},
		{as("ann"), idempotencyKey("é", ""), 1, nil, stele.Invalid, "key"},
		{as("ann"), idempotencyKey(strings.Repeat("k", 256), ""), 1, nil, stele.Invalid, "key"},
		{as("ann"), idempotencyKey("k", ""), 0, nil, stele.Invalid, "1 to 1000"},
		{as("ann"), nil, -1, nil, stele.Invalid, "1 to 1000"},
		{as("ann"), nil, 1001, nil, stele.Invalid, "1 to 1000"},
		{as("ann"), nil, 1, f.record("ark:12345/x5b", "https://example.org/1"), stele.Invalid, "leave the identifier out"},
		{as("ann"), nil, 2, aliased, stele.Invalid, "can't all have the alias"},
		{as("ann"), nil, 1, f.record("", "https://example.com/"), stele.Invalid, "targets[0].url"},
		{as("ann"), idempotencyKey("k", ""), 5, f.record("", "https://example.com/"), stele.Invalid, "targets[0].url"},
		{as("ann"), nil, 1000, large, stele.Invalid, "fewer"},
		{as("ann"), idempotencyKey("k", ""), 11, good, stele.Exhausted, ""},
	} {
		_, err := f.MintBatch(tt.who, tt.idempotencyKey, pool, tt.n, tt.record)
		want(t, err, tt.kind, tt.words)
	}
	// None of the refused requests is remembered.
	if made := must(f.MintBatch(as("ann"), idempotencyKey("k", ""), pool, 5, good))(t); made.Replayed || len(made.Records) != 5 {
		t.Errorf("got %+v", made)
	}
	made := must(f.MintBatch(as("ann"), idempotencyKey("l", ""), pool, 1, aliased))(t)
	if got := must(f.Get(f.admin, aliased.Aliases[0]))(t); got.ID != made.Records[0].ID {
		t.Errorf("the alias leads to %s", got.ID)
	}
	_, err := f.MintBatch(as("ann"), idempotencyKey("m", ""), pool, 1, aliased)
	want(t, err, stele.Conflict, "ark:12345/a")
	if errors.Is(err, minting.ErrKeyReused) {
		t.Errorf("got %v", err)
	}
}

// TestMintBatchAtOnce: many concurrent requests with one key, in two processes, all get
// one answer, and each record belongs to an answer.
func TestMintBatchAtOnce(t *testing.T) {
	for _, register := range []bool{false, true} {
		f := newFixture(t)
		key := f.space("ark:12345/x5", minter(noid(".zeedk")))
		processes := []*registrar.Registrar{f.Registrar, f.another()}
		var record *stele.Record
		if register {
			record = f.record("", "https://example.org/1")
		}
		made := make([]minting.Batch, 100)
		var wg sync.WaitGroup
		for i := range made {
			wg.Go(func() {
				var err error
				if made[i], err = processes[i%2].MintBatch(f.admin, idempotencyKey("k", "b"), []stele.NamespaceKey{key}, 3, record); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		first := 0
		for _, m := range made {
			if !cmp.Equal(m.Labels, made[0].Labels, ids) || !cmp.Equal(m.Records, made[0].Records, ids) {
				t.Fatalf("two answers: %+v and %+v", m, made[0])
			}
			if !m.Replayed {
				first++
			}
		}
		if first != 1 {
			t.Errorf("%d requests were the first", first)
		}
		if register {
			if n := must(f.store.Count(f.admin, key))(t); n != 3 {
				t.Errorf("%d records", n)
			}
		}
	}
}

// TestMintBatchWaits: a request that waits for another one's answer may be cancelled.
func TestMintBatchWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		pool := []stele.NamespaceKey{f.space("example.org/a", minter(rep("a.example.org", "1s")))}
		var wg sync.WaitGroup
		var made minting.Batch
		wg.Go(func() { made = must(f.MintBatch(f.admin, idempotencyKey("k", "b"), pool, 10, nil))(t) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(f.admin, time.Second)
		defer cancel()
		_, err := f.MintBatch(ctx, idempotencyKey("k", "b"), pool, 10, nil)
		want(t, err, stele.Unavailable)
		wg.Wait()
		again := must(f.MintBatch(f.admin, idempotencyKey("k", "b"), pool, 10, nil))(t)
		if !slices.Equal(texts(again.Labels), texts(made.Labels)) {
			t.Errorf("got %v, and then %v", made.Labels, again.Labels)
		}
	})
}

// TestMintBatchTaken: a name that another caller registers between its minting and the
// commit is replaced, and the others are used.
func TestMintBatchTaken(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345/x5", minter(noid(".sdd")))
	taken := false
	f.Registrar = registrar.New(&storetest.Faulty{Store: f.store, Fault: func(c *stele.Commit) (bool, error) {
		if len(c.Records) > 0 && !taken {
			taken = true
			rec := *c.Records[1]
			rec.By = "bob"
			if err := f.store.Apply(f.admin, &stele.Commit{Records: []*stele.Record{&rec}}); err != nil {
				t.Error(err)
			}
		}
		return true, nil
	}}, f.schemes, f.options)
	made := must(f.MintBatch(f.admin, idempotencyKey("k", ""), []stele.NamespaceKey{key}, 3, f.record("", "https://example.org/1")))(t)
	if got := strings.Join(texts(made.Labels), " "); got != "ark:12345/x500 ark:12345/x502 ark:12345/x503" || !taken {
		t.Errorf("got %s", got)
	}
	for _, rec := range made.Records {
		if have := must(f.Get(f.admin, rec.ID))(t); have.By != rec.By {
			t.Errorf("%s is %s's", have.ID, have.By)
		}
	}
}

// TestMintBatchAllOrNothing: a request for more names than there are uses up none.
func TestMintBatchAllOrNothing(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345/x5", minter(noid(".sd")))
	pool := []stele.NamespaceKey{key}
	for _, n := range []int{11, 1000} {
		_, err := f.MintBatch(f.admin, idempotencyKey("k", ""), pool, n, nil)
		want(t, err, stele.Exhausted, "has 10 left")
	}
	if made := must(f.MintBatch(f.admin, idempotencyKey("k", ""), pool, 7, nil))(t); len(made.Labels) != 7 {
		t.Errorf("got %v", made.Labels)
	}
	_, err := f.MintBatch(f.admin, nil, pool, 4, f.record("", "https://example.org/1"))
	want(t, err, stele.Exhausted, "has 3 left")
	must(f.MintBatch(f.admin, nil, pool, 3, nil))(t)
	_, err = f.MintBatch(f.admin, nil, pool, 1, nil)
	want(t, err, stele.Exhausted)
}

func TestExpireKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		pool := []stele.NamespaceKey{f.space("urn:uuid", owner("ann"), minter(stele.Minter{Kind: stele.MinterUUID}))}
		for i := range 1300 {
			must(f.MintBatch(as("ann"), idempotencyKey(fmt.Sprint("old", i), ""), pool, 1, nil))(t)
		}
		time.Sleep(24 * time.Hour)
		made := must(f.MintBatch(as("ann"), idempotencyKey("new", ""), pool, 1, nil))(t)
		before := time.Now().Add(-time.Hour)
		for _, n := range []int{700, 600, 0} {
			if got := must(f.ExpireIdempotencyKeys(t.Context(), before, 700))(t); got != n {
				t.Errorf("%d expired, want %d", got, n)
			}
		}
		if again := must(f.MintBatch(as("ann"), idempotencyKey("new", ""), pool, 1, nil))(t); again.Labels[0].ID != made.Labels[0].ID {
			t.Error("it was not old enough to expire")
		}
		if again := must(f.MintBatch(as("ann"), idempotencyKey("old7", ""), pool, 1, nil))(t); again.Replayed {
			t.Error("it did not expire")
		}
		_, err := f.MintBatch(as("ann"), idempotencyKey("one more", ""), pool, 1, nil)
		want(t, err, stele.Invalid) // a space is not a visible character
	})
}

// TestOneAnswer lets processes die at random commits while many ask with the same and
// with other keys, for names and for records, and ask again. No key ever has two
// answers, no name is in the answers to two keys, and what was answered is registered.
func TestOneAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(o *registrar.Options) { o.BlockSize = 7 })
		keys := []stele.NamespaceKey{
			f.space("sid.inpe.br/mtc-m18", minter(ibi("1ms"))),
			f.space("ark:12345/x5", minter(noid(".reeddk"))),
			f.space("urn:uuid", minter(stele.Minter{Kind: stele.MinterUUID})),
		}
		l := answers{byKey: make(map[string]minting.Batch), byName: make(map[stele.ID]string)}
		for range 120 {
			f.Registrar = registrar.New(&storetest.Faulty{Store: f.store, Fault: storetest.Dying(1 + rand.Int64N(60))}, f.schemes, f.options)
			var wg sync.WaitGroup
			for range 12 {
				wg.Go(func() {
					for range 15 {
						f.askAgain(t, &l, keys, rand.N(400))
					}
				})
			}
			wg.Wait()
			time.Sleep(time.Duration(rand.Int64N(int64(time.Second))))
		}
		// Whatever had no answer gets one now.
		f.start()
		for i := range 400 {
			f.askAgain(t, &l, keys, i)
		}
		if len(l.byKey) != 400 || l.replayed < 400 {
			t.Errorf("%d keys, %d answers came again: too few to say anything", len(l.byKey), l.replayed)
		}
		registered, answered := 0, 0
		for _, key := range keys {
			registered += int(must(f.store.Count(f.admin, key))(t))
		}
		for _, m := range l.byKey {
			for _, rec := range m.Records {
				answered += len(rec.Names())
			}
		}
		if registered != answered || answered < l.records {
			t.Errorf("%d names are registered, %d were answered, with %d records", registered, answered, l.records)
		}
		for _, m := range l.byKey {
			for _, rec := range m.Records {
				if have, err := f.store.Record(f.admin, rec.ID); err != nil || !cmp.Equal(have, rec, ids) {
					t.Errorf("%s was acknowledged: %v", rec.ID, err)
				}
			}
		}
	})
}

// answers is all that was answered.
type answers struct {
	mu       sync.Mutex
	byKey    map[string]minting.Batch
	byName   map[stele.ID]string
	replayed int
	records  int
}

// askAgain asks with the key of that number, for what always goes with it.
func (f *fixture) askAgain(t *testing.T, l *answers, keys []stele.NamespaceKey, i int) {
	key := fmt.Sprint("k", i)
	var record *stele.Record
	if i%2 == 0 {
		record = f.record("", "https://example.org/"+key)
	}
	made, err := f.MintBatch(f.admin, idempotencyKey(key, key), keys[i%3:i%3+1], 1+i%5, record)
	if err != nil {
		if k := stele.KindOf(err); k != stele.Unavailable {
			t.Errorf("%s: %v", key, err)
		}
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if before, ok := l.byKey[key]; ok {
		l.replayed++
		if !cmp.Equal(before.Labels, made.Labels, ids) || !cmp.Equal(before.Records, made.Records, ids) {
			t.Errorf("%s: answered was %v, and then %v", key, before.Labels, made.Labels)
		}
		return
	}
	l.byKey[key], l.records = made, l.records+len(made.Records)
	for _, label := range made.Labels {
		for _, name := range names(label) {
			if other := l.byName[name]; other != "" {
				t.Errorf("%s was answered to %s and to %s", name, other, key)
			}
			l.byName[name] = key
		}
	}
}
