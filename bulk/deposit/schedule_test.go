package deposit

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/internal/lease"
	"github.com/stele-id/stele/registrar"
)

// runner returns what makes deposits of a registry in a folder, on a server.
func (h *house) runner(server, path string) *Runner {
	h.Helper()
	place, err := ParsePlace("file://" + path)
	h.must(err)
	return &Runner{
		Schedule: h.r, Entries: []Entry{{Name: "vault", Place: place, Every: time.Hour, Access: Access{Wait: noWait}}},
		State: func(ctx context.Context) (string, uint64, error) {
			s, err := h.log.Status(ctx)
			if err != nil || len(s.Eras) == 0 {
				return "", 0, err
			}
			return s.Eras[len(s.Eras)-1].Generation.String(), s.Changes, nil
		},
		Job:     func(context.Context, []string) (*bundle.Job, error) { return h.job(), nil },
		Options: func(context.Context) (bundle.Options, error) { return h.options(), nil },
		Now:     h.clock, Log: slog.New(slog.DiscardHandler), Server: server, Lease: time.Minute,
	}
}

func (h *house) state() registrar.ScheduledDeposit {
	h.Helper()
	list, err := h.r.Deposits(h.ctx)
	h.must(err)
	if len(list) != 1 {
		h.Fatalf("%d states", len(list))
	}
	return list[0]
}

func TestSchedule(t *testing.T) {
	h := newHouse(t)
	h.fill(20)
	path := filepath.Join(t.TempDir(), "vault")
	r := h.runner("one", path)
	deposits := func() int {
		list, err := filepath.Glob(filepath.Join(path, "deposits", "*"))
		h.must(err)
		return len(list)
	}
	r.Look(h.ctx)
	first := h.state()
	if deposits() != 1 || first.Deposit == "" || first.Change != 22 || first.Records != 20 || first.Sent == 0 || first.Checked.IsZero() || first.Server != "" || first.Failures != 0 || first.Said != "" {
		t.Errorf("the state is %+v", first)
	}
	// Not due, then due without a change, then with one.
	h.put("ark:12345/x1")
	r.Look(h.ctx)
	if deposits() != 1 {
		t.Error("it is made before its time")
	}
	h.now = h.now.Add(time.Hour)
	r.Look(h.ctx)
	second := h.state()
	if deposits() != 2 || second.Change != 23 || !second.Checked.Equal(first.Checked) {
		t.Errorf("the state is %+v", second)
	}
	h.now = h.now.Add(time.Hour)
	r.Look(h.ctx)
	if third := h.state(); deposits() != 2 || !third.Ended.After(second.Ended) || third.Deposit != second.Deposit {
		t.Errorf("without a change: %+v", third)
	}
	// After a week all of it is read again, also if nothing has changed.
	h.now = h.now.Add(checkEvery)
	r.Look(h.ctx)
	if s := h.state(); deposits() != 2 || !s.Checked.After(first.Checked) {
		t.Errorf("after a week: %+v", s)
	}
	// The disk is not mounted.
	h.must(os.Rename(path, path+"-away"))
	h.must(os.Mkdir(path, 0o700))
	h.put("ark:12345/x2")
	h.now = h.now.Add(time.Hour)
	r.Look(h.ctx)
	failed := h.state()
	if failed.Failures != 1 || !strings.Contains(failed.Said, "is the disk mounted?") || failed.Deposit != second.Deposit || len(filesIn(t, path)) != 0 {
		t.Errorf("without its disk: %+v", failed)
	}
	if wait := failed.Next.Sub(failed.Ended); wait < lease.RetryAfter(1)-time.Second || wait > lease.RetryAfter(1)+time.Second {
		t.Errorf("it is tried again after %s", wait)
	}
	h.must(os.Remove(path))
	h.must(os.Rename(path+"-away", path))
	h.now = failed.Next
	r.Look(h.ctx)
	if s := h.state(); deposits() != 3 || s.Failures != 0 || s.Said != "" {
		t.Errorf("with its disk: %+v", s)
	}
	// What is damaged is found by the check after a week.
	for name := range filesIn(t, path) {
		if strings.HasPrefix(name, "objects/") {
			h.must(os.Truncate(filepath.Join(path, name), 3))
		}
	}
	h.now = h.now.Add(checkEvery)
	r.Look(h.ctx)
	if s := h.state(); s.Failures != 1 || !strings.Contains(s.Said, "objects/") {
		t.Errorf("damaged: %+v", s)
	}
	// Another place begins anew.
	r = h.runner("one", path+"-other")
	r.Look(h.ctx)
	if s := h.state(); s.Failures != 0 || s.Change != 24 || !strings.HasSuffix(s.Place, "-other") {
		t.Errorf("at another place: %+v", s)
	}
	// The audit trail has what was done.
	var made, checked, fails int
	for item, err := range h.r.Audit(h.ctx, registrar.AuditQuery{}) {
		h.must(err)
		if e := item.Entry; e.Object == "deposits:vault" {
			made += strings.Count(e.Details, "made deposits/")
			checked += strings.Count(e.Details, "checked deposits/")
			fails += strings.Count(e.Details, "failed: ")
		}
	}
	if made != 4 || checked != 3 || fails != 2 {
		t.Errorf("the audit trail has %d deposits, %d checks and %d failures", made, checked, fails)
	}
}

// Of two servers one makes the deposit; when it has died another one goes on after its lease.
func TestScheduleLease(t *testing.T) {
	h := newHouse(t)
	h.fill(5)
	path := filepath.Join(t.TempDir(), "vault")
	one, two := h.runner("one", path), h.runner("two", path)
	died := errors.New("died")
	one.Job = func(context.Context, []string) (*bundle.Job, error) {
		two.Look(h.ctx) // while the first one works
		return nil, died
	}
	two.Job = func(context.Context, []string) (*bundle.Job, error) {
		t.Error("both work on it")
		return nil, died
	}
	one.Look(h.ctx)
	if s := h.state(); s.Said != "died" || s.Server != "" {
		t.Errorf("the state is %+v", s)
	}
	// A server that dies keeps its lease until it ends.
	h.must(h.r.ChangeDeposit(h.ctx, "vault", func(now *registrar.ScheduledDeposit) (*registrar.ScheduledDeposit, error) {
		next := *now
		next.Server, next.Until, next.Next = "dead", h.now.Add(time.Minute), time.Time{}
		return &next, nil
	}))
	two.Look(h.ctx)
	two.Job = func(context.Context, []string) (*bundle.Job, error) { return h.job(), nil }
	h.now = h.now.Add(2 * time.Minute)
	two.Look(h.ctx)
	if s := h.state(); s.Deposit == "" || s.Server != "" || s.Failures != 0 {
		t.Errorf("the state is %+v", s)
	}
	if _, err := h.r.Deposits(t.Context()); stele.KindOf(err) != stele.Unauthenticated {
		t.Errorf("a stranger: %v", err)
	}
}

// away is a registry that can't be written any more after the first change.
type away struct {
	Schedule
	changes atomic.Int32
}

func (a *away) ChangeDeposit(ctx context.Context, name string, change func(before *registrar.ScheduledDeposit) (*registrar.ScheduledDeposit, error)) error {
	if a.changes.Add(1) > 1 {
		return stele.Unavailable
	}
	return a.Schedule.ChangeDeposit(ctx, name, change)
}

// A server that can't renew its lease ends its work when the lease ends, as another one may take it then.
func TestScheduleUnrenewed(t *testing.T) {
	h := newHouse(t)
	h.fill(1)
	r := h.runner("one", filepath.Join(t.TempDir(), "vault"))
	kept := r.Schedule
	r.Job = func(ctx context.Context, _ []string) (*bundle.Job, error) {
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Minute):
			t.Error("it goes on without a lease")
		}
		return nil, errors.New("interrupted")
	}
	for lease := 150 * time.Millisecond; ; lease *= 4 { // a machine that has more to do may get to it when a short one has ended
		schedule := &away{Schedule: kept}
		r.Schedule, r.Lease = schedule, lease
		r.Look(h.ctx)
		n := schedule.changes.Load()
		if n > 1 {
			break
		}
		if lease > time.Minute {
			t.Fatalf("%d changes: nothing was renewed", n)
		}
		h.now = h.now.Add(time.Hour)
	}
	if s := h.state(); s.Server != "one" || s.Failures != 0 {
		t.Errorf("the state is %+v", s)
	}
}

// Names that are minted and not registered are not in the change feed. A deposit has how far the minters are, all the same.
func TestScheduleMinting(t *testing.T) {
	h := newHouse(t)
	h.fill(5)
	ns, err := h.r.AddNamespace(h.ctx, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/m5", Minter: stele.Minter{Kind: stele.MinterNOID, Template: ".sdddd"}})
	h.must(err)
	path := filepath.Join(t.TempDir(), "vault")
	r := h.runner("one", path)
	r.Look(h.ctx)
	first := h.state()
	_, err = h.r.Mint(h.ctx, ns.Key(), 100)
	h.must(err)
	h.now = h.now.Add(time.Hour)
	r.Look(h.ctx)
	second := h.state()
	if second.Deposit == first.Deposit || second.Change != first.Change || second.Failures != 0 {
		t.Fatalf("after 100 names were minted: %+v, and before %+v", second, first)
	}
	h.must(h.check(&folder{path}))
	given := ""
	o := h.options()
	o.Visit.Minter = func(m *bundle.Minter) error {
		if m.Name == "ark ark:12345/m5" {
			given = string(m.State)
		}
		return nil
	}
	_, err = (&Rebuild{From: &folder{path}, List: h.last(&folder{path})}).Check(h.ctx, o)
	h.must(err)
	if !strings.Contains(given, "\n100 ") {
		t.Errorf("the minter of the deposit is %q", given)
	}
	h.now = h.now.Add(time.Hour)
	r.Look(h.ctx)
	if third := h.state(); third.Deposit != second.Deposit {
		t.Errorf("without a change: %+v", third)
	}
}

// What is lost at the place is brought again, also if nothing has changed; of what is changed there the error says what to remove.
func TestScheduleRepairs(t *testing.T) {
	h := newHouse(t)
	h.fill(20)
	path := filepath.Join(t.TempDir(), "vault")
	r := h.runner("one", path)
	r.Look(h.ctx)
	first := h.state()
	for i, what := range []string{"lost", "shorter", "changed"} {
		l := h.last(&folder{path})
		file := filepath.Join(path, l.Objects[i].name())
		text, err := os.ReadFile(file)
		h.must(err)
		h.must(os.Chmod(file, 0o600))
		switch what {
		case "lost":
			h.must(os.Remove(file))
		case "shorter":
			h.must(os.Truncate(file, 5))
		case "changed":
			text[len(text)/2] ^= 4
			h.must(os.WriteFile(file, text, 0o600))
		}
		h.now = h.now.Add(checkEvery)
		r.Look(h.ctx)
		s := h.state()
		if what != "lost" {
			if s.Failures != 1 || !strings.Contains(s.Said, l.Objects[i].name()) || !strings.Contains(s.Said, "remove") {
				t.Errorf("%s: %+v", what, s)
			}
			h.must(os.Remove(file))
			h.now = s.Next
			r.Look(h.ctx)
			s = h.state()
		}
		if s.Failures != 0 || s.Said != "" || s.Deposit != first.Deposit || !s.Checked.Equal(s.Ended) && h.now.Sub(s.Checked) > time.Minute {
			t.Errorf("%s: %+v", what, s)
		}
		h.must(h.check(&folder{path}))
	}
}

// What a clock noted that was ahead does not keep deposits and their checks from being made when it is right again.
func TestScheduleClockAhead(t *testing.T) {
	h := newHouse(t)
	h.fill(3)
	r := h.runner("one", filepath.Join(t.TempDir(), "vault"))
	right := h.now
	h.now = right.AddDate(1, 0, 0)
	r.Look(h.ctx)
	ahead := h.state()
	if ahead.Deposit == "" || !ahead.Checked.After(right.AddDate(1, 0, 0)) {
		t.Fatalf("the state is %+v", ahead)
	}
	h.now = right.Add(time.Hour)
	h.put("ark:12345/later")
	r.Look(h.ctx)
	s := h.state()
	if s.Failures != 0 || s.Change != ahead.Change+1 || s.Deposit == ahead.Deposit {
		t.Errorf("the deposit waits for the wrong time: %+v", s)
	}
	if s.Checked.After(h.now) || s.Next.After(h.now.Add(2*time.Hour)) {
		t.Errorf("it is not checked, or waits: %+v", s)
	}
	h.put("ark:12345/later-still")
	r.Look(h.ctx)
	if again := h.state(); again.Deposit != s.Deposit {
		t.Errorf("it is made before its time: %+v", again)
	}
}
