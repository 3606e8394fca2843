package mail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/secret"
	"github.com/stele-id/stele/store/mem"
)

// office is a registry with queues, and a mail server that is a function.
type office struct {
	*testing.T
	store stele.Store
	r     *registrar.Registrar
	now   time.Time

	mu     sync.Mutex
	sent   []Letter
	answer func(l *Letter) error
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{T: t, now: time.Date(2026, 11, 17, 9, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return o.now }
	store := mem.New(clock)
	schemes, err := all.New(all.Config{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	o.store = store
	o.r = registrar.New(store, schemes, registrar.Options{Now: clock, Secrets: secret.NewRing(secret.Text{Keep: "stele-secret-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", Name: "the test"})})
	return o
}

func (o *office) queue() *Queue {
	return NewQueue(Options{Registrar: o.r, From: "Archive <ids@example.org>", Now: func() time.Time { return o.now }, Send: func(_ context.Context, l *Letter) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.answer != nil {
			if err := o.answer(l); err != nil {
				return err
			}
		}
		o.sent = append(o.sent, *l)
		return nil
	}})
}

func (o *office) add(q *Queue, to string) {
	o.Helper()
	if err := q.Add(o.Context(), ConfirmKind, "ann", &Letter{To: to, Subject: "s", Text: "stele-link_secret", HTML: "<p>h</p>"}); err != nil {
		o.Fatal(err)
	}
}

func (o *office) list(q *Queue) []Note {
	o.Helper()
	list, err := q.List(auth.With(o.Context(), auth.Local()))
	if err != nil {
		o.Fatal(err)
	}
	return list
}

func (o *office) due(q *Queue) {
	o.Helper()
	if err := q.SendDue(o.Context()); err != nil {
		o.Fatal(err)
	}
}

// TestQueue: a letter is kept encrypted, survives a restart, and is sent once.
func TestQueue(t *testing.T) {
	o := newOffice(t)
	o.add(o.queue(), "ann@example.org")
	for c, err := range o.store.Cells(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(c.Value), "stele-link_secret") {
			t.Errorf("the cell %s has the text of a letter", c.Name)
		}
	}
	q := o.queue() // after a restart
	if list := o.list(q); len(list) != 1 || list[0].State != Waiting || list[0].By != "ann" {
		t.Fatalf("the queue has %+v", list)
	}
	if _, err := q.List(t.Context()); !errors.Is(err, stele.Forbidden) {
		t.Errorf("the public sees the queue: %v", err)
	}
	o.due(q)
	o.due(q)
	if len(o.sent) != 1 || o.sent[0].Text != "stele-link_secret" || !strings.HasSuffix(o.sent[0].ID, "@example.org") || len(o.list(q)) != 0 {
		t.Errorf("sent %+v, left %+v", o.sent, o.list(q))
	}
	for c := range o.store.Cells(t.Context(), textCells, "") {
		t.Errorf("%s is left", c.Name)
	}
	o.now = o.now.Add(2 * time.Hour)
	if err := q.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	for c := range o.store.Cells(t.Context(), noteCells, "") {
		t.Errorf("%s is left", c.Name)
	}
}

// TestTwoSenders: two servers on one store send each letter once.
func TestTwoSenders(t *testing.T) {
	o := newOffice(t)
	first, second := o.queue(), o.queue()
	for i := range 50 {
		o.add(first, "ann"+string(rune('a'+i%26))+"@example.org")
	}
	var both sync.WaitGroup
	for _, q := range []*Queue{first, second, o.queue()} {
		both.Go(func() {
			if err := q.SendDue(o.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	ids := make(map[string]bool)
	for _, l := range o.sent {
		if ids[l.ID] {
			t.Errorf("%s was sent twice", l.ID)
		}
		ids[l.ID] = true
	}
	if len(ids) != 50 {
		t.Errorf("%d letters were sent", len(ids))
	}
}

// TestCutOff: a server that dies after the mail server has accepted a letter makes the next one send it again,
// with the same Message-ID, when the lease has ended and not before.
func TestCutOff(t *testing.T) {
	o := newOffice(t)
	q := o.queue()
	o.add(q, "ann@example.org")
	ctx, die := context.WithCancel(t.Context())
	o.answer = func(*Letter) error { die(); return context.Canceled }
	if err := q.SendDue(ctx); err != nil { // it stops in an orderly way
		t.Fatal(err)
	}
	if list := o.list(q); list[0].Holder != "" || list[0].Tries != 0 {
		t.Errorf("after a stop: %+v", list)
	}
	dead := o.queue()
	n, held, err := dead.read(t.Context(), o.list(q)[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	n.Holder, n.Until = "dead", o.now.Add(leaseLife)
	if _, err := dead.keep(t.Context(), &n, held); err != nil {
		t.Fatal(err)
	}
	o.answer = nil
	o.due(q)
	if len(o.sent) != 0 {
		t.Error("the letter of another server was sent")
	}
	o.now = o.now.Add(leaseLife)
	o.due(q)
	if len(o.sent) != 1 || !strings.HasPrefix(o.sent[0].ID, n.ID) {
		t.Errorf("sent %+v", o.sent)
	}
}

// TestRetries: pauses grow, and an end comes after 5 days, or at once if the server says so.
func TestRetries(t *testing.T) {
	o := newOffice(t)
	q := o.queue()
	o.add(q, "ann@example.org")
	o.answer = func(*Letter) error {
		return refuse(stele.Unavailable, "mail.server-refused", "the mail server {server} did not take the mail: {reason}", "x", "later")
	}
	begin, last, tries := o.now, time.Duration(0), 0
	for {
		o.due(q)
		n := o.list(q)[0]
		tries++
		if n.State == GivenUp {
			if n.Problem == nil || !strings.Contains(n.Problem.Err().Error(), "later") {
				t.Errorf("given up for %+v", n.Problem)
			}
			break
		}
		wait := n.Next.Sub(o.now)
		if n.Tries != tries || wait < last && n.Next.Sub(begin) < GiveUpAfter || wait > longestPause {
			t.Fatalf("attempt %d: %+v", tries, n)
		}
		last, o.now = wait, n.Next
	}
	if took := o.now.Sub(begin); took != GiveUpAfter || tries < 10 || tries > 40 {
		t.Errorf("given up after %v and %d attempts", took, tries)
	}
	o.answer = func(*Letter) error { return &finalError{errors.New("no such person")} }
	o.add(q, "eve@example.org")
	o.due(q)
	if n := o.list(q)[1]; n.State != GivenUp || n.Tries != 1 {
		t.Errorf("a final refusal: %+v", n)
	}
}

func TestLimits(t *testing.T) {
	o := newOffice(t)
	q := o.queue()
	add := func(to, by string) error {
		return q.Add(t.Context(), LinkKind, by, &Letter{To: to, Subject: "s", Text: "t"})
	}
	// What users ask for does not use up what administrators may send.
	for _, by := range []string{"eve", "eva", "evi", "evo"} {
		for n := 1; ; n++ {
			err := q.Add(t.Context(), ConfirmKind, by, &Letter{To: "ann@example.org", Subject: "s", Text: "t"})
			if errors.Is(err, stele.Exhausted) != (n > hourConfirm) {
				t.Fatalf("%d: %v", n, err)
			}
			if err != nil {
				break
			}
		}
	}
	for range HourAddress {
		if err := add("ann@example.org", "ann"); err != nil {
			t.Fatal(err)
		}
	}
	if err := add("ANN@example.org", "eve"); !errors.Is(err, stele.Exhausted) {
		t.Errorf("one too many to an address: %v", err)
	}
	for i := range HourUser - HourAddress {
		if err := add("x"+strings.Repeat("y", i%60)+"@example"+string(rune('a'+i%26))+".org", "ann"); err != nil {
			t.Fatal(err)
		}
	}
	if err := add("other@example.org", "ann"); !errors.Is(err, stele.Exhausted) {
		t.Errorf("one too many by a user: %v", err)
	}
	o.now = o.now.Add(time.Hour)
	if err := add("ann@example.org", "ann"); err != nil {
		t.Errorf("an hour later: %v", err)
	}
	for _, to := range []string{"", "ann", "ann@example.org\r\nBcc: x@example.org", "Ann <ann@example.org>", "a b@example.org", `"a"@example.org`, "ann@localhost", "ann@example.org,eve@example.org", "añn@example.org", strings.Repeat("a", 250) + "@example.org"} {
		if err := add(to, "eve"); !errors.Is(err, stele.Invalid) {
			t.Errorf("%q: %v", to, err)
		}
	}
}

// TestQueueGoesOn: a note that can't be read and a letter that can't be tried stop no others; a letter
// whose link has expired is given up; what was sent is kept although the store fails for a moment, and although the
// letter was encrypted anew meanwhile.
func TestQueueGoesOn(t *testing.T) {
	o := newOffice(t)
	q := o.queue()
	if err := o.r.KeepWork(auth.With(t.Context(), auth.Local()), stele.CellChange{Name: noteCells + "0", After: []byte("{")}); err != nil {
		t.Fatal(err)
	}
	late := &Letter{To: "ann@example.org", Subject: "s", Text: "t", Expires: o.now.Add(time.Hour)}
	if err := q.Add(t.Context(), LinkKind, "ann", late); err != nil {
		t.Fatal(err)
	}
	o.now = o.now.Add(time.Hour)
	o.add(q, "eve@example.org")
	o.answer = func(l *Letter) error { // while it is sent, its key changes
		for c := range o.store.Cells(t.Context(), textCells, "") {
			if err := o.store.Apply(t.Context(), &stele.Commit{Cells: []stele.CellChange{{Name: c.Name, Before: c.Value, After: append(c.Value, ' ')}}}); err != nil {
				return err
			}
		}
		return nil
	}
	o.due(q)
	list := o.list(q)
	if len(o.sent) != 1 || o.sent[0].To != "eve@example.org" || len(list) != 1 || list[0].State != GivenUp || list[0].Problem == nil || list[0].Problem.Code != "mail.link-expired" {
		t.Errorf("sent %+v, left %+v", o.sent, list)
	}
	for c := range o.store.Cells(t.Context(), textCells, "") {
		t.Errorf("%s is left", c.Name)
	}
	if err := q.Tidy(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestFewGivenUp: however many letters are given up, the newest notes of them are kept.
func TestFewGivenUp(t *testing.T) {
	o := newOffice(t)
	q := o.queue()
	for i := range maxGivenUp + 20 {
		n := Note{ID: fmt.Sprintf("x%04d", (i*7)%(maxGivenUp+20)), State: GivenUp, Ended: o.now.Add(time.Duration(i) * time.Second)}
		value, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.store.Apply(t.Context(), &stele.Commit{Cells: []stele.CellChange{{Name: noteCells + n.ID, After: value}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	list := o.list(q)
	if len(list) != maxGivenUp {
		t.Errorf("%d notes are left", len(list))
	}
	for _, n := range list {
		if n.Ended.Before(o.now.Add(20 * time.Second)) {
			t.Errorf("a note of %s is left", n.Ended)
		}
	}
}

// TestExplainHides: what a mail server repeats of a letter is neither logged nor shown.
func TestExplainHides(t *testing.T) {
	transport := &Transport{}
	err := transport.explain(&textproto.Error{Code: 554, Msg: "5.1.1 <ann@example.org>: spam https://id.example.org/.desk/link/stele-link_a_b found"}, "ann@example.org")
	if text := err.Error(); strings.Contains(text, "ann@") || strings.Contains(text, "stele-link") || !strings.Contains(text, "5.1.1 <...>: spam https://id.example.org/.desk/link/... found") {
		t.Error(text)
	}
}
