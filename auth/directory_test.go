package auth

import (
	"context"
	"crypto/rand"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/mem"
)

var begins = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// testDirectory is a directory over a store in memory, with a clock that can be set.
type testDirectory struct {
	*Directory
	t     testing.TB
	store stele.Store
	clock atomic.Int64 // nanoseconds since begins
}

func newTestDirectory(t testing.TB) *testDirectory {
	o := &testDirectory{t: t}
	o.store = mem.New(o.time)
	o.Directory = NewDirectory(o.store, o.time)
	return o
}

func (o *testDirectory) time() time.Time      { return begins.Add(time.Duration(o.clock.Load())) }
func (o *testDirectory) pass(d time.Duration) { o.clock.Add(int64(d)) }

// put writes a cell, whatever it had.
func (o *testDirectory) put(cell stele.Cell, err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
	before, err := o.store.Cell(o.t.Context(), cell.Name)
	if err == nil {
		err = o.store.Apply(o.t.Context(), &stele.Commit{Cells: []stele.CellChange{{Name: cell.Name, Before: before, After: cell.Value}}})
	}
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *testDirectory) user(u User) {
	o.t.Helper()
	o.put(u.Cell())
	o.Forget()
}

// issue makes a token for a user, and returns its credential.
func (o *testDirectory) issue(user string, change ...func(*Token)) (string, Token) {
	o.t.Helper()
	c, err := NewCredential(rand.Reader)
	if err != nil {
		o.t.Fatal(err)
	}
	t := Token{ID: c.ID(), User: user, Hash: c.Hash(), Created: o.time(), Expires: o.time().Add(time.Hour)}
	for _, f := range change {
		f(&t)
	}
	o.put(t.Cell())
	o.Forget()
	return c.Reveal(), t
}

// refused fails unless a credential is refused with these words.
func (o *testDirectory) refused(credential, words string) {
	o.t.Helper()
	p, err := o.Authenticate(o.t.Context(), credential)
	if p.IsKnown() || p.Admin || stele.KindOf(err) != stele.Unauthenticated || !strings.Contains(err.Error(), words) {
		o.t.Errorf("got %+v, %v; want a refusal with %q", p, err, words)
	}
	if c, ok := parseCredential(TokenCredential, credential); ok && err != nil && strings.Contains(err.Error(), c.Reveal()[len(TokenCredential)+idSize+1+secretLength-20:]) {
		o.t.Errorf("the secret is in %v", err)
	}
}

func (o *testDirectory) accepted(credential string) Principal {
	o.t.Helper()
	p, err := o.Authenticate(o.t.Context(), credential)
	if err != nil || !p.IsKnown() {
		o.t.Fatalf("got %+v, %v", p, err)
	}
	return p
}

func TestAuthenticate(t *testing.T) {
	o := newTestDirectory(t)
	o.user(User{Name: "ann", Groups: []string{"press", "staff"}})
	o.user(User{Name: "root", Admin: true})
	ann, _ := o.issue("ann")
	root, _ := o.issue("root", func(t *Token) { t.Expires = time.Time{} })
	if p := o.accepted(ann); p.Name != "ann" || p.Admin || !slices.Equal(p.Groups, []string{"press", "staff"}) {
		t.Errorf("got %+v", p)
	}
	if p := o.accepted(root); p.Name != "root" || !p.Admin || len(p.Groups) > 0 {
		t.Errorf("got %+v", p)
	}
	const unknown = "the token is not known"
	other, err := NewCredential(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	o.refused(other.Reveal(), unknown)
	o.refused(ann[:18]+other.Reveal()[18:], unknown) // a token of one, the secret of another
	o.refused(ann[:18]+root[18:], unknown)
	o.refused("", "all of it was copied")
	o.refused(ann+" ", "all of it was copied")
	o.refused("stele_000000000000_"+strings.Repeat("A", 43), unknown)
	// A token without its owner authenticates no user.
	lost, _ := o.issue("nobody")
	o.refused(lost, unknown)
	o.pass(1000 * time.Hour)
	o.accepted(root)
	o.refused(ann, "expired on 2026-03-01")
}

// A token is good until the moment that it expires, and not at it.
func TestExpiry(t *testing.T) {
	o := newTestDirectory(t)
	o.user(User{Name: "ann"})
	credential, _ := o.issue("ann")
	o.pass(time.Hour - time.Nanosecond)
	o.accepted(credential)
	o.pass(time.Nanosecond)
	o.refused(credential, "expired on 2026-03-01; ask for a new one")
	o.pass(-time.Hour) // the clock stepped back
	o.accepted(credential)
}

// A change by an administrator holds from the next request on.
func TestChangesHoldAtOnce(t *testing.T) {
	o := newTestDirectory(t)
	o.user(User{Name: "ann", Groups: []string{"staff"}, Admin: true})
	credential, made := o.issue("ann")
	o.accepted(credential)

	o.user(User{Name: "ann"})
	if p := o.accepted(credential); p.Admin || len(p.Groups) > 0 {
		t.Errorf("still has rights: %+v", p)
	}
	o.user(User{Name: "ann", Disabled: true})
	o.refused(credential, `the user "ann" is disabled`)
	o.user(User{Name: "ann"})
	o.accepted(credential)
	made.Revoked = o.time()
	o.put(made.Cell())
	o.accepted(credential) // Forget was not called yet
	o.Forget()
	o.refused(credential, "revoked on 2026-03-01")
	// A caller without the secret does not learn that the token was revoked.
	o.refused(credential[:len(credential)-8]+"AAAAAAAA", "the token is not known")
}

// A directory of a store that other processes write to reads again when what it has is old.
func TestAge(t *testing.T) {
	o := newTestDirectory(t)
	o.Age = time.Minute
	o.user(User{Name: "ann"})
	credential, made := o.issue("ann")
	o.accepted(credential)
	made.Revoked = o.time()
	o.put(made.Cell())
	o.pass(time.Minute - 1)
	o.accepted(credential)
	o.pass(1)
	o.refused(credential, "revoked")
}

// Cells that can't be read authenticate no caller, and lock no other user out.
func TestDamagedCells(t *testing.T) {
	o := newTestDirectory(t)
	o.user(User{Name: "ann"})
	ann, made := o.issue("ann")
	bob, other := o.issue("bob")
	o.put(stele.Cell{Name: UserCells + "bob", Value: []byte(`{"name":"ann"}`)}, nil)
	o.refused(bob, "not known")
	o.put(stele.Cell{Name: UserCells + "bob", Value: []byte(`{"name":"bob","only":["10.0.0.0/8"]}`)}, nil)
	o.Forget()
	o.refused(bob, "not known")
	o.user(User{Name: "bob"})
	o.accepted(bob)
	other.Hash = nil
	o.put(other.Cell())
	o.put(stele.Cell{Name: TokenCells + "x", Value: []byte(`{`)}, nil)
	o.Forget()
	o.refused(bob, "not known")
	o.accepted(ann)
	if cell, err := made.Cell(); err != nil || strings.Contains(string(cell.Value), ann[19:40]) {
		t.Errorf("what is kept has the secret: %s, %v", cell.Value, err)
	}
	for _, cell := range []stele.Cell{
		{Name: TokenCells + "000000000000", Value: []byte(`{"id":"000000000001"}`)},
		{Name: TokenCells + "00000000000", Value: []byte(`{"id":"00000000000"}`)},
		{Name: TokenCells + "000000000000", Value: []byte(`{"id":"000000000000","scope":1}`)},
	} {
		if _, err := ReadToken(cell); stele.KindOf(err) != stele.Internal || err == nil {
			t.Errorf("%s: %v", cell.Value, err)
		}
	}
}

func TestAuthenticateHeader(t *testing.T) {
	o := newTestDirectory(t)
	o.user(User{Name: "ann"})
	credential, _ := o.issue("ann")
	for _, tt := range []struct {
		values []string
		name   string
		known  bool
	}{
		{nil, "", true},
		{[]string{"Bearer " + credential}, "ann", true},
		{[]string{"bearer   " + credential + " "}, "ann", true},
		{[]string{"Bearer " + credential, "Bearer " + credential}, "", false},
		{[]string{credential}, "", false},
		{[]string{""}, "", false},
		{[]string{"Basic YW5uOng="}, "", false},
		{[]string{"Bearer"}, "", false},
		{[]string{"Bearer\t" + credential}, "", false},
		{[]string{"Bearer " + credential + ", Bearer " + credential}, "", false},
	} {
		p, err := o.AuthenticateHeader(t.Context(), tt.values)
		if p.Name != tt.name || (err == nil) != tt.known || err != nil && stele.KindOf(err) != stele.Unauthenticated {
			t.Errorf("%.30q: %+v, %v", tt.values, p, err)
		}
	}
}

// Nothing is decided before the one comparison, so that its result alone tells an
// unknown token from a wrong secret, and both cost the same.
func TestOneComparison(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "directory.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var before, compares, returns int
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != "Authenticate" {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "ConstantTimeCompare" {
					compares, before = compares+1, returns
				}
			case *ast.ReturnStmt:
				returns++
			}
			return true
		})
	}
	if compares != 1 || before != 1 { // the one return is that of a store that fails
		t.Errorf("%d comparisons, %d returns before the last one", compares, before)
	}

	o := newTestDirectory(t)
	o.user(User{Name: "ann"})
	known, _ := o.issue("ann")
	wrong := known[:len(known)-8] + "AAAAAAAA"
	unknown := "stele_000000000000_" + wrong[19:]
	if a, b := o.refusal(wrong), o.refusal(unknown); a != b {
		t.Errorf("%q, %q", a, b)
	}
	ctx := t.Context()
	cost := func(credential string) float64 {
		return testing.AllocsPerRun(100, func() { _, _ = o.Authenticate(ctx, credential) })
	}
	if a, b := cost(wrong), cost(unknown); a != b {
		t.Errorf("a wrong secret takes %v allocations, an unknown token %v", a, b)
	}
}

func (o *testDirectory) refusal(credential string) string {
	_, err := o.Authenticate(o.t.Context(), credential)
	if err == nil {
		o.t.Fatal("accepted")
	}
	return err.Error()
}

// slowStore holds up readers of users until the test releases them.
type slowStore struct {
	stele.Store
	entered, release chan struct{}
	slow             atomic.Bool
	fails            atomic.Bool
}

func (s *slowStore) Cells(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error] {
	if s.fails.Load() {
		return func(yield func(stele.Cell, error) bool) { yield(stele.Cell{}, errors.New("the disk is gone")) }
	}
	seq := s.Store.Cells(ctx, prefix, after)
	return func(yield func(stele.Cell, error) bool) {
		for c, err := range seq {
			if s.slow.Load() {
				s.entered <- struct{}{}
				<-s.release
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// A roll that is forgotten while it is read is read again.
func TestForgetWhileReading(t *testing.T) {
	o := newTestDirectory(t)
	o.user(User{Name: "ann"})
	credential, made := o.issue("ann")
	s := &slowStore{Store: o.store, entered: make(chan struct{}, 10), release: make(chan struct{})}
	o.Directory.store = s
	s.slow.Store(true)
	done := make(chan error)
	go func() {
		_, err := o.Authenticate(context.Background(), credential)
		done <- err
	}()
	<-s.entered // users are read, tokens are not: mem's iterator has its own state of each
	<-func() chan struct{} { s.release <- struct{}{}; return s.entered }()
	made.Revoked = o.time()
	o.put(made.Cell())
	s.slow.Store(false)
	o.Forget()
	close(s.release)
	if err := <-done; err != nil {
		t.Errorf("it began before the token was revoked: %v", err)
	}
	o.refused(credential, "revoked")
}

// A store that fails is reported as such, and never as a wrong token.
func TestDirectoryWithoutStore(t *testing.T) {
	o := newTestDirectory(t)
	o.user(User{Name: "ann"})
	credential, _ := o.issue("ann")
	s := &slowStore{Store: o.store}
	o.Directory.store = s
	s.fails.Store(true)
	if _, err := o.Authenticate(t.Context(), credential); stele.KindOf(err) != stele.Internal {
		t.Errorf("got %v", err)
	}
	s.fails.Store(false)
	o.accepted(credential)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o.Forget()
	o.reading <- struct{}{} // another goroutine reads
	if _, err := o.Authenticate(ctx, credential); stele.KindOf(err) != stele.Unavailable {
		t.Errorf("got %v", err)
	}
	<-o.reading
}

func TestDirectoryConcurrently(t *testing.T) {
	o := newTestDirectory(t)
	o.user(User{Name: "ann"})
	credential, _ := o.issue("ann")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if _, err := o.Authenticate(context.Background(), credential); err != nil {
					t.Error(err)
				}
				o.pass(time.Second)
				o.Forget()
			}
		})
		wg.Go(func() {
			for range 20 {
				if err := o.Flush(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkAuthenticate(b *testing.B) {
	o := newTestDirectory(b)
	o.user(User{Name: "ann", Groups: []string{"staff"}})
	credential, _ := o.issue("ann")
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := o.Authenticate(ctx, credential); err != nil {
			b.Fatal(err)
		}
	}
}

// failing is a store that does not answer while it is away.
type failing struct {
	stele.Store
	away atomic.Bool
	asks atomic.Int64
}

func (f *failing) Cells(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error] {
	f.asks.Add(1)
	if f.away.Load() {
		return func(yield func(stele.Cell, error) bool) {
			yield(stele.Cell{}, &stele.Error{Op: "read", Kind: stele.Unavailable, Err: errors.New("away")})
		}
	}
	return f.Store.Cells(ctx, prefix, after)
}

// Authenticated users stay so while the store is away, for a while and no longer, and not
// every request asks the store.
func TestGrace(t *testing.T) {
	o := newTestDirectory(t)
	store := &failing{Store: o.store}
	o.Directory = NewDirectory(store, o.time)
	o.Age, o.Grace = time.Second, time.Minute
	o.user(User{Name: "ann"})
	credential, made := o.issue("ann")
	o.accepted(credential)
	store.away.Store(true)
	o.pass(time.Second)
	asks := store.asks.Load()
	for range 100 {
		o.accepted(credential)
	}
	if n := store.asks.Load() - asks; n != 1 {
		t.Errorf("the store was asked %d times", n)
	}
	o.pass(59*time.Second - 1)
	o.accepted(credential)
	o.pass(2 * time.Second)
	if _, err := o.Authenticate(t.Context(), credential); stele.KindOf(err) != stele.Unavailable {
		t.Errorf("after the grace: %v", err)
	}
	store.away.Store(false)
	o.accepted(credential)
	made.Revoked = o.time()
	o.put(made.Cell())
	o.pass(time.Second)
	o.refused(credential, "revoked")
	// The directory never answers from a state before this process's own writes.
	store.away.Store(true)
	o.Forget()
	if _, err := o.Authenticate(t.Context(), credential); stele.KindOf(err) != stele.Unavailable {
		t.Errorf("after Forget: %v", err)
	}
}
