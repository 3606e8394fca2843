package giver

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/transparency"
)

const (
	giverName  = "giver.example.org/.log"
	controlURL = "https://control.example.net/"
)

// heir is a registry that watches a giver, with a clock that the test sets.
type heir struct {
	*registrar.Registrar
	t     *testing.T
	now   time.Time
	store stele.Store
	admin context.Context
	giver *log
	*Watcher
}

func (h *heir) clock() time.Time { return h.now }

// restart begins anew on the same store, as a process does that was stopped.
func (h *heir) restart() {
	schemes, err := all.New(all.Config{Now: h.clock, PURLHosts: []string{"purl.org"}})
	if err != nil {
		h.t.Fatal(err)
	}
	h.Registrar = registrar.New(h.store, schemes, registrar.Options{Now: h.clock})
	h.Watcher = h.watcher("one")
}

func (h *heir) watcher(server string) *Watcher {
	return &Watcher{Watches: h.Registrar, HTTP: h.giver, Agent: "Stele", Now: h.clock, Server: server, Controls: []string{controlURL}, Wait: func(context.Context, time.Duration) error { return nil }}
}

func newHeir(t *testing.T) *heir {
	t.Helper()
	h := &heir{t: t, now: time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC), admin: auth.With(t.Context(), auth.Local()), giver: newLog(giverName, 1)}
	h.store = mem.New(h.clock)
	t.Cleanup(func() { h.store.Close() })
	h.restart()
	w := registrar.WatchedGiver{Origin: giverName, URL: "https://giver.example.org/", Keys: []string{h.giver.key()}}
	if err := h.Check(&w); err != nil {
		t.Fatal(err)
	}
	if err := h.AddWatch(h.admin, w); err != nil {
		t.Fatal(err)
	}
	return h
}

// pass lets a time pass in which the server looks every hour.
func (h *heir) pass(d time.Duration) {
	h.t.Helper()
	for end := h.now.Add(d); h.now.Before(end); h.now = h.now.Add(time.Hour) {
		if err := h.Look(h.admin); err != nil {
			h.t.Fatal(err)
		}
	}
}

const day = 24 * time.Hour

func (h *heir) state() registrar.WatchedGiver {
	h.t.Helper()
	list, err := h.Registrar.Watches(h.admin)
	if err != nil || len(list) != 1 {
		h.t.Fatalf("%d registries are watched, %v", len(list), err)
	}
	return list[0]
}

func (h *heir) silent(want int) {
	h.t.Helper()
	if w := h.state(); w.Silent != want {
		h.t.Errorf("at %s it is silent for %d days, want %d: %+v", h.now.Format(time.DateTime), w.Silent, want, w)
	}
}

// log is the log of a giver, and answers requests for its checkpoint.
type log struct {
	name   string
	url    string // of its checkpoint; "": that of the giver
	secret ed25519.PrivateKey
	origin string // of its checkpoints
	size   int
	root   byte
	fails  error
	body   string // instead of a checkpoint
	status int
	frozen string // what its header says
	asked  int
	during func() // is called with each request

	offline bool // no control is reached either
}

func newLog(name string, seed byte) *log {
	return &log{name: name, origin: name, secret: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize)), size: 7}
}

func (l *log) key() string {
	return transparency.PublicKey{Name: l.name, Key: l.secret.Public().(ed25519.PublicKey)}.String()
}

// checkpoint returns the signed checkpoint of the log.
func (l *log) checkpoint() string {
	text := (&transparency.Checkpoint{Origin: l.origin, Size: uint64(l.size), Root: sha256.Sum256([]byte{l.root})}).String()
	hash, _ := hex.DecodeString(strings.Split(transparency.PublicKey{Name: l.origin, Key: l.secret.Public().(ed25519.PublicKey)}.String(), "+")[1])
	return text + "\n\u2014 " + l.origin + " " + base64.StdEncoding.EncodeToString(append(hash, ed25519.Sign(l.secret, []byte(text))...)) + "\n"
}

func (l *log) Do(r *http.Request) (*http.Response, error) {
	if r.URL.String() == controlURL {
		if l.offline {
			return nil, errDown
		}
		return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody}, nil
	}
	l.asked++
	if l.during != nil {
		l.during()
	}
	if l.fails != nil {
		return nil, l.fails
	}
	status, body := l.status, l.body
	if status == 0 {
		status = http.StatusOK
	}
	if body == "" {
		body = l.checkpoint()
	}
	if r.URL.String() != cmp.Or(l.url, "https://giver.example.org/.log/checkpoint") {
		status = http.StatusNotFound
	}
	head := http.Header{}
	if l.frozen != "" {
		head.Set(transparency.FrozenHeader, l.frozen)
	}
	return &http.Response{StatusCode: status, Header: head, Body: io.NopCloser(strings.NewReader(body))}, nil
}

var errDown = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// Each day of silence counts once. A restart keeps the count, days without a question do not count, and a checkpoint sets it back.
func TestSilence(t *testing.T) {
	h := newHeir(t)
	h.pass(3 * day)
	h.silent(0)
	if w := h.state(); w.Size != 7 || w.Seen.IsZero() || h.giver.asked != 3 {
		t.Errorf("after 3 days it was asked %d times: %+v", h.giver.asked, w)
	}
	h.giver.fails = errDown
	h.pass(100 * day)
	h.silent(100)
	h.restart()
	h.silent(100)
	h.now = h.now.Add(30 * day) // no server ran
	h.silent(100)
	h.pass(79 * day)
	h.silent(179)
	h.giver.fails = nil
	h.pass(day)
	h.silent(0)
	h.giver.fails = errDown
	h.pass(180 * day)
	if w := h.state(); w.Silent != 180 {
		t.Errorf("after 180 days more: %+v", w)
	}
	h.pass(day)
	s, err := h.ConfirmSilence(h.admin, giverName)
	if err != nil || s.Days < 180 || s.Size != 7 || s.Seen.IsZero() {
		t.Errorf("%+v, %v", s, err)
	}
	h.giver.fails, h.giver.size = nil, 8
	if _, err := h.ConfirmSilence(h.admin, giverName); stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), "is not silent") {
		t.Errorf("of a giver that answers: %v", err)
	}
	if err := h.ConfirmEnd(h.admin, giverName, nil); stele.KindOf(err) != stele.Conflict {
		t.Errorf("of a giver that answers: %v", err)
	}
	h.silent(0)
	h.giver.fails = errDown
	if err := h.ConfirmEnd(h.admin, giverName, nil); err != nil {
		t.Errorf("of a giver that is silent: %v", err)
	}
}

// What is not a sign of life, and may not be silence either, changes nothing.
func TestDoubt(t *testing.T) {
	h := newHeir(t)
	h.pass(2 * day)
	h.giver.fails = errDown
	h.pass(5 * day)
	h.silent(5)
	stranger := newLog(giverName, 2)
	for what, change := range map[string]func(l *log){
		"another key":       func(l *log) { l.body = stranger.checkpoint() },
		"a log that shrank": func(l *log) { l.size-- },
		"another log":       func(l *log) { l.root++ },
		"not allowed":       func(l *log) { l.fails = &stele.Error{Kind: stele.Forbidden, Err: errors.New("not public")} },
		"no name server":    func(l *log) { l.fails = &net.DNSError{Err: "timeout", IsTimeout: true} },
		"no network":        func(l *log) { l.fails = &net.OpError{Op: "dial", Err: syscall.ENETUNREACH} },
		"no route": func(l *log) {
			l.fails = &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}
		},
		"its own firewall":  func(l *log) { l.fails = &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EPERM)} },
		"unknown authority": func(l *log) { l.fails = &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}} },
		"expired":           func(l *log) { l.fails = x509.CertificateInvalidError{Reason: x509.Expired} },
		"of another host": func(l *log) {
			l.fails = x509.HostnameError{Certificate: &x509.Certificate{}, Host: "giver.example.org"}
		},
		"offline":             func(l *log) { l.fails, l.offline = errDown, true },
		"a frozen archive":    func(l *log) { l.frozen = "2030-12-31T00:00:00Z" },
		"interrupted by hand": nil,
	} {
		h.giver.fails = nil
		before := *h.giver
		ctx, cancel := context.WithCancel(h.admin)
		if change == nil {
			h.giver.fails = errDown
			h.giver.during = cancel
			_, _ = h.Ask(ctx, giverName)
		} else {
			change(h.giver)
			h.pass(2 * day)
			if _, err := h.ConfirmSilence(h.admin, giverName); stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), "can't be known") {
				t.Errorf("%s: %v", what, err)
			}
		}
		cancel()
		if w := h.state(); w.Silent != 5 {
			t.Errorf("%s: it is silent for %d days", what, w.Silent)
		}
		asked := h.giver.asked
		*h.giver = before
		h.giver.asked = asked
	}
}

// A giver that was never seen is not silent: its URL may be wrong.
func TestNeverSeen(t *testing.T) {
	h := newHeir(t)
	h.giver.fails = errDown
	h.pass(400 * day)
	h.silent(0)
	if _, err := h.ConfirmSilence(h.admin, giverName); stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), "never showed a checkpoint") {
		t.Errorf("of a giver that was never seen: %v", err)
	}
}

// Without a control, a day counts if another registry that is watched was reached.
func TestOtherWatched(t *testing.T) {
	h := newHeir(t)
	h.Controls = nil
	h.pass(day)
	h.giver.fails = errDown
	h.pass(5 * day)
	h.silent(0)
	if w := h.state(); !strings.Contains(w.Said, "handover-control") {
		t.Errorf("it says %q", w.Said)
	}
	other := newLog("other.example.org/.log", 3)
	h.HTTP = both{"giver.example.org": h.giver, "other.example.org": other}
	other.url = "https://other.example.org/.log/checkpoint"
	w := registrar.WatchedGiver{Origin: other.name, URL: "https://other.example.org/.log", Keys: []string{other.key()}}
	if err := h.AddWatch(h.admin, w); err != nil {
		t.Fatal(err)
	}
	silent := func() int {
		t.Helper()
		list, err := h.Registrar.Watches(h.admin)
		if err != nil || len(list) != 2 || list[0].Origin != giverName {
			t.Fatalf("%+v, %v", list, err)
		}
		return list[0].Silent
	}
	h.pass(5 * day)
	if n := silent(); n != 5 {
		t.Errorf("it is silent for %d days", n)
	}
	other.fails = errDown
	h.pass(5 * day)
	if n := silent(); n > 6 { // the other one was seen on the first of these days
		t.Errorf("while nothing is reached it is silent for %d days", n)
	}
}

// both asks one of several servers.
type both map[string]*log

func (b both) Do(r *http.Request) (*http.Response, error) { return b[r.URL.Host].Do(r) }

// What a clock wrote that was far ahead does not keep days from counting.
func TestClockWasAhead(t *testing.T) {
	h := newHeir(t)
	h.pass(day)
	h.now = h.now.Add(3000 * day)
	if _, err := h.Ask(h.admin, giverName); err != nil { // a sign of life in the future
		t.Fatal(err)
	}
	h.now = h.now.Add(-3000 * day)
	h.giver.fails = errDown
	h.pass(10 * day)
	h.silent(10)
	h.now = h.now.Add(3100 * day)
	if _, err := h.Ask(h.admin, giverName); err != nil { // a silent day in the future
		t.Fatal(err)
	}
	h.silent(11)
	h.now = h.now.Add(-3100 * day)
	h.pass(10 * day)
	if n := h.state().Silent; n < 19 {
		t.Errorf("after 10 days more it is silent for %d days", n)
	}
}

// A control is another server, whose answer can't be forged by the network.
func TestCheckControl(t *testing.T) {
	for text, want := range map[string]stele.Kind{"https://www.example.org/": 0, "https://192.0.2.1": 0, "http://www.example.org/": stele.Invalid, "www.example.org": stele.Invalid, "https://a@b/": stele.Invalid, "": stele.Invalid} {
		err := CheckControl(text)
		if want == 0 && err != nil || want != 0 && stele.KindOf(err) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Everything else that is not a checkpoint of the log is silence.
func TestNone(t *testing.T) {
	h := newHeir(t)
	h.pass(day)
	for i, change := range []func(l *log){
		func(l *log) { l.fails = errDown },
		func(l *log) { l.fails = &net.DNSError{Err: "no such host", IsNotFound: true} },
		func(l *log) { l.status = http.StatusNotFound },
		func(l *log) { l.status = http.StatusBadGateway },
		func(l *log) { l.body = "<html>This domain is for sale" },
		func(l *log) { l.body = newLog("other.example.org/.log", 3).checkpoint() },
		func(l *log) { l.body = strings.Repeat("a", 1<<20) },
	} {
		before := *h.giver
		change(h.giver)
		h.pass(day)
		h.silent(i + 1)
		*h.giver = before
	}
}

// A giver that was restored from a backup has a log of a new era, which may be smaller.
func TestEra(t *testing.T) {
	h := newHeir(t)
	h.pass(day)
	h.giver.fails = errDown
	h.pass(2 * day)
	h.giver.fails, h.giver.origin, h.giver.size = nil, giverName+"/g2", 3
	if !transparency.IsOfLog(h.giver.origin, giverName) {
		t.Fatalf("%s is not an era of %s", h.giver.origin, giverName)
	}
	h.pass(day)
	h.silent(0)
	if w := h.state(); w.Size != 3 {
		t.Errorf("%+v", w)
	}
}

// A clock that is set back counts no day twice, and one that jumps ahead counts one day.
func TestClock(t *testing.T) {
	h := newHeir(t)
	h.pass(day)
	h.giver.fails = errDown
	h.pass(3 * day)
	h.silent(3)
	h.now = h.now.Add(-5 * day)
	h.pass(5 * day)
	h.silent(3)
	h.now = h.now.Add(365 * day)
	if _, err := h.Ask(h.admin, giverName); err != nil {
		t.Fatal(err)
	}
	h.silent(4)
	h.now = h.now.Add(-365 * day) // it was wrong, and is asked again all the same
	asked := h.giver.asked
	h.pass(day)
	if h.giver.asked == asked {
		t.Error("it is not asked any more")
	}
}

// Of two servers one asks, and one that has died is waited for no longer than its lease.
func TestLease(t *testing.T) {
	h := newHeir(t)
	second := h.watcher("two")
	h.giver.during = func() {
		h.giver.during = nil
		if err := second.Look(h.admin); err != nil {
			t.Error(err)
		}
		if _, err := second.Ask(h.admin, giverName); !errors.Is(err, errTaken) {
			t.Errorf("a second question at the same time: %v", err)
		}
	}
	h.pass(time.Hour)
	if h.giver.asked != 1 {
		t.Errorf("it was asked %d times", h.giver.asked)
	}
	// A server takes the lease, and dies.
	if err := h.NoteWatch(h.admin, giverName, func(w *registrar.WatchedGiver) (*registrar.WatchedGiver, error) {
		next := *w
		next.Server, next.Until, next.Next = "dead", h.now.Add(life), time.Time{}
		return &next, nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := h.Look(h.admin); err != nil || h.giver.asked != 1 {
		t.Errorf("within the lease it was asked %d times, %v", h.giver.asked, err)
	}
	h.now = h.now.Add(life)
	if err := h.Look(h.admin); err != nil || h.giver.asked != 2 {
		t.Errorf("after the lease it was asked %d times, %v", h.giver.asked, err)
	}
}

// A watch that was replaced while a question was under way does not get its answer.
func TestReplaced(t *testing.T) {
	h := newHeir(t)
	h.pass(day)
	h.giver.fails = errDown
	h.pass(4 * day)
	h.silent(4)
	h.giver.during = func() {
		h.giver.during = nil
		if err := h.AddWatch(h.admin, registrar.WatchedGiver{Origin: giverName, URL: "https://giver.example.org/.log", Keys: []string{h.giver.key()}}); err != nil {
			t.Error(err)
		}
	}
	if _, err := h.Ask(h.admin, giverName); !errors.Is(err, errTaken) {
		t.Errorf("the question says %v", err)
	}
	if w := h.state(); w.Silent != 0 || w.Size != 7 {
		t.Errorf("%+v", w)
	}
	if err := h.RemoveWatch(h.admin, giverName); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Ask(h.admin, giverName); stele.KindOf(err) != stele.NotFound {
		t.Errorf("a registry that is not watched: %v", err)
	}
	if err := h.RemoveWatch(h.admin, giverName); stele.KindOf(err) != stele.NotFound {
		t.Errorf("removed twice: %v", err)
	}
}

// After a restore of this registry the days count anew: the backup does not know of signs of life that came after it.
func TestRestored(t *testing.T) {
	h := newHeir(t)
	h.pass(day)
	h.giver.fails = errDown
	h.pass(50 * day)
	h.silent(50)
	list, err := h.store.Generations(h.admin)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.store.SetGenerations(h.admin, list.Last().ID, list.Next(h.now, 1, nil, 0)); err != nil {
		t.Fatal(err)
	}
	h.silent(0)
	h.pass(3 * day)
	h.silent(3)
}

// Only administrators watch registries, and what is not one is not watched.
func TestWatchRefused(t *testing.T) {
	h := newHeir(t)
	ana := auth.With(t.Context(), auth.Principal{Name: "ana"})
	good := registrar.WatchedGiver{Origin: giverName, URL: "https://giver.example.org", Keys: []string{h.giver.key()}}
	if err := h.AddWatch(ana, good); stele.KindOf(err) != stele.Forbidden {
		t.Errorf("as a user: %v", err)
	}
	if _, err := h.Registrar.Watches(ana); stele.KindOf(err) != stele.Forbidden {
		t.Errorf("as a user: %v", err)
	}
	if _, err := h.Ask(ana, giverName); stele.KindOf(err) != stele.Forbidden {
		t.Errorf("as a user: %v", err)
	}
	for what, change := range map[string]func(w *registrar.WatchedGiver){
		"URL":  func(w *registrar.WatchedGiver) { w.URL = "giver.example.org" },
		"key":  func(w *registrar.WatchedGiver) { w.Keys = []string{"x"} },
		"keys": func(w *registrar.WatchedGiver) { w.Keys = []string{newLog("other.example.org/.log", 3).key()} },
	} {
		w := good
		change(&w)
		if err := h.Check(&w); stele.KindOf(err) != stele.Invalid {
			t.Errorf("%s: %v", what, err)
		}
	}
	w := good
	w.Origin = "a b"
	if err := h.AddWatch(h.admin, w); stele.KindOf(err) != stele.Invalid {
		t.Errorf("the origin: %v", err)
	}
	if _, err := h.SetLogKeys(h.admin, func(k *registrar.LogKeys) error { k.Origin = giverName; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := h.AddWatch(h.admin, good); stele.KindOf(err) != stele.Invalid {
		t.Errorf("this registry itself: %v", err)
	}
}

// FuzzJudge judges any answer without a fault, and takes none for good that the key has not signed.
func FuzzJudge(f *testing.F) {
	l := newLog(giverName, 1)
	f.Add([]byte(l.checkpoint()))
	f.Add([]byte(newLog(giverName, 2).checkpoint()))
	f.Add([]byte("<html>"))
	f.Add([]byte(giverName + "\n9\n\n"))
	key, err := transparency.ParsePublicKey(l.key())
	if err != nil {
		f.Fatal(err)
	}
	g := &registrar.WatchedGiver{Origin: giverName, Era: giverName, Size: 7}
	f.Fuzz(func(t *testing.T, text []byte) {
		a := judge(g, []transparency.PublicKey{key}, text)
		if a.kind == good && !bytes.HasPrefix(text, []byte(giverName)) {
			t.Errorf("%q is good", text)
		}
		if (a.kind == good) != (a.checkpoint != nil) || a.said == "" {
			t.Errorf("%+v", a)
		}
	})
}
