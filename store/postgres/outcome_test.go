package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stele-id/stele"
)

// databaseOf is the database that a URL names.
func databaseOf(t testing.TB, url string) string {
	t.Helper()
	c, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return c.Database
}

// proxy stands between the store and the server. When it is armed it ends the next
// connection on which COMMIT is sent.
type proxy struct {
	l     net.Listener
	to    string
	armed atomic.Int32
	cuts  atomic.Int32
	shut  atomic.Bool // takes no connections

	recovering atomic.Bool // tells each client that connects that it is starting up
}

// What an armed proxy does with a COMMIT.
const (
	disarmed  = iota
	cutBefore // the server does not get it
	cutAfter  // the server does, and its answer is lost
	dieAfter  // the same, and from then on the server recovers
)

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p := &proxy{l: l, to: to}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	if p.shut.Load() {
		return
	}
	if p.recovering.Load() {
		sayStarting(c)
		return
	}
	s, err := net.Dial("tcp4", p.to)
	if err != nil {
		return
	}
	defer s.Close()
	var silent atomic.Bool
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, err := s.Read(buf)
			if silent.Load() || err != nil {
				c.Close()
				return
			}
			if _, err := c.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 1<<16)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		if bytes.Contains(buf[:n], []byte("COMMIT\x00")) {
			switch todo := p.armed.Swap(disarmed); todo {
			case cutBefore:
				p.cuts.Add(1)
				return
			case cutAfter, dieAfter:
				p.recovering.Store(todo == dieAfter)
				p.cuts.Add(1)
				silent.Store(true)
				_, _ = s.Write(buf[:n])
				_, _ = io.Copy(io.Discard, c)
				return
			}
		}
		if _, err := s.Write(buf[:n]); err != nil {
			return
		}
	}
}

// through returns the URL by way of the proxy.
func (p *proxy) through(t testing.TB, text string) string {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = p.l.Addr().String()
	return u.String()
}

// TestOutcome: what became of a commit whose answer was lost is found out, and it is made
// once.
func TestOutcome(t *testing.T) {
	url := migrated(t, server)
	p := newProxy(t, server.Addr())
	s := opened(t, p.through(t, url), Options{Wait: 2 * time.Second})
	var list []stele.ID
	for i, how := range []int32{cutBefore, cutAfter, cutAfter, cutBefore} {
		r := record1(t, strings.Repeat("x", i+1))
		p.armed.Store(how)
		if err := s.Apply(t.Context(), commitOf(r)); err != nil {
			t.Errorf("a commit whose connection was cut (%d): %v", how, err)
		}
		if n := p.cuts.Load(); n != int32(i)+1 {
			t.Errorf("%d connections were cut, want %d", n, i+1)
		}
		list = append(list, r.ID)
		if last := s.Applied(); last != uint64(len(list)) {
			t.Errorf("this process applied up to %d, want %d", last, len(list))
		}
	}
	many := []*stele.Record{}
	for i := range 2 * copyRows {
		many = append(many, record1(t, "many"+strings.Repeat("y", i)))
	}
	for _, how := range []int32{cutAfter, cutBefore} {
		p.armed.Store(how)
		errs, err := s.Ingest(t.Context(), many[:len(many)/2], nil, nil, nil)
		if err != nil {
			t.Fatalf("an ingest whose connection was cut (%d): %v", how, err)
		}
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range many[:len(many)/2] {
			list = append(list, r.ID)
		}
		many = many[len(many)/2:]
	}
	n := 0
	for c, err := range s.Changes(t.Context(), 0) {
		if err != nil || n >= len(list) || c.ID != list[n] {
			t.Fatalf("change %d is %v, %v", n+1, c, err)
		}
		n++
	}
	if n != len(list) {
		t.Errorf("%d changes were made, want %d", n, len(list))
	}
	wantSound(t, s)
}

// TestUnknown: if the outcome of a commit can't be found out, the error says so.
func TestUnknown(t *testing.T) {
	url := migrated(t, server)
	p := newProxy(t, server.Addr())
	s := opened(t, p.through(t, url), Options{Wait: 300 * time.Millisecond})
	for i, how := range []int32{cutBefore, cutAfter} {
		r := record1(t, strings.Repeat("x", i+1))
		if err := s.Apply(t.Context(), commitOf(record1(t, strings.Repeat("warm", i+1)))); err != nil {
			t.Fatal(err)
		}
		p.armed.Store(how)
		p.shut.Store(true)
		if err := s.Apply(t.Context(), commitOf(r)); stele.KindOf(err) != stele.Unavailable || !errors.Is(err, errUnknown) {
			t.Errorf("a commit of which nobody can say what became of it (%d): %v", how, err)
		}
		p.shut.Store(false)
		waitFor(t, "the database to be back", func() bool { _, yes := s.Lagging(); return !yes })
		if _, err := s.Record(t.Context(), r.ID); (err == nil) != (how == cutAfter) {
			t.Errorf("the commit whose connection was cut (%d): %v", how, err)
		}
	}
	wantSound(t, s)
}

// sayStarting answers as a server does that was killed and is recovering: no to TLS, and
// then 57P03 to the start of a session (PostgreSQL's documentation, 55.7).
func sayStarting(c net.Conn) {
	head := make([]byte, 8)
	for {
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(head))-8); err != nil {
			return
		}
		const wantsTLS, wantsGSS = 80877103, 80877104
		if code := binary.BigEndian.Uint32(head[4:]); code != wantsTLS && code != wantsGSS {
			break
		}
		if _, err := c.Write([]byte{'N'}); err != nil {
			return
		}
	}
	body := []byte("SFATAL\x00VFATAL\x00C57P03\x00Mthe database system is starting up\x00\x00")
	_, _ = c.Write(append(binary.BigEndian.AppendUint32([]byte{'E'}, uint32(len(body)+4)), body...))
}

// TestRecovery: a server dies while it commits, and takes longer to recover than any
// caller waits. What was committed is never tried again, since it would be refused then as
// taken.
func TestRecovery(t *testing.T) {
	const wait = time.Second
	for _, ingest := range []bool{false, true} {
		url := migrated(t, server)
		p := newProxy(t, server.Addr())
		s := opened(t, p.through(t, url), Options{Wait: wait})
		if err := s.Apply(t.Context(), commitOf(record1(t, "warm"))); err != nil {
			t.Fatal(err)
		}
		var many []*stele.Record
		for i := range 300 {
			many = append(many, record1(t, fmt.Sprintf("many%d", i)))
		}
		p.armed.Store(dieAfter)
		var err error
		if ingest {
			_, err = s.Ingest(t.Context(), many, nil, nil, nil)
		} else {
			err = s.Apply(t.Context(), commitOf(many[0]))
		}
		p.recovering.Store(false) // the caller has waited as long as it does
		if stele.KindOf(err) != stele.Unavailable || !errors.Is(err, errUnknown) {
			t.Errorf("ingest %v: committed, and the answer is %v", ingest, err)
		}
		waitFor(t, "the server to recover", func() bool {
			_, err := s.Record(t.Context(), many[0].ID)
			return err == nil
		})
	}
}

// TestDoubt: a cancelled wait for the standby is noticed in any language of the server.
func TestDoubt(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), migrated(t, server))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	noteDoubt(conn.PgConn(), &pgconn.Notice{Severity: "WARNUNG", Message: "Abbruch", Routine: "exec_simple_query"})
	if takeDoubt(conn) {
		t.Error("another warning raises doubt")
	}
	noteDoubt(conn.PgConn(), &pgconn.Notice{Severity: "WARNUNG", Message: "Warten auf synchrone Replikation wird abgebrochen", Routine: "SyncRepWaitForLSN"})
	if !takeDoubt(conn) || takeDoubt(conn) {
		t.Error("it was not noticed, or more than once")
	}
}

// TestManyFirsts: among names that do not begin with each other, and are not asked for one
// by one, it is the first all the same.
func TestManyFirsts(t *testing.T) {
	s := opened(t, migrated(t, server), Options{})
	const n = 1000
	text := func(i int) string { return record1(t, fmt.Sprintf("z%04d", i)).ID.String() }
	for _, there := range []int{n, n - 1, 500, 33, 32, 31, 1, 0} {
		if there < n {
			if err := s.Apply(t.Context(), commitOf(record1(t, fmt.Sprintf("z%04d", there)))); err != nil {
				t.Fatal(err)
			}
		}
		_, found, err := s.First(t.Context(), func(yield func(stele.Prefix) bool) {
			for i := range n {
				if !yield(newID(t, "ark", text(i)+"x").Prefix(len(text(i)))) {
					return
				}
			}
		})
		if there == n && stele.KindOf(err) != stele.NotFound || there < n && (err != nil || found.String() != text(there)) {
			t.Errorf("%d is there: %q, %v", there, found, err)
		}
	}
}
