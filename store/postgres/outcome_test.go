package postgres

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

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
}

// What an armed proxy does with a COMMIT.
const (
	disarmed  = iota
	cutBefore // the server does not get it
	cutAfter  // the server does, and its answer is lost
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
			switch p.armed.Swap(disarmed) {
			case cutBefore:
				p.cuts.Add(1)
				return
			case cutAfter:
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
		errs, err := s.Ingest(t.Context(), many[:len(many)/2], nil, nil)
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

// TestUnknown: where nobody can say what became of a commit, that is what is said.
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
