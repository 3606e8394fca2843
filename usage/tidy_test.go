package usage

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// failedNames returns the names that lead nowhere that are kept.
func (h *house) failedNames() (list []string) {
	h.Helper()
	for c, err := range h.r.UsageList(asServer(h.Context()), failedCells, "") {
		if err != nil {
			h.Fatal(err)
		}
		texts, err := parseTexts(c.Value)
		if err != nil {
			h.Fatal(err)
		}
		for _, t := range texts {
			list = append(list, t.Text)
		}
	}
	return list
}

// TestTypedNames checks that names that lead nowhere stay if they were typed several times in a day, in a namespace, and for a week.
func TestTypedNames(t *testing.T) {
	h := newHouse(t)
	space := h.counter.tally.space
	h.counter.tally.space = func(id stele.ID) stele.NamespaceKey {
		if strings.HasPrefix(id.String(), "ark:99999") {
			return stele.NamespaceKey{Scheme: "ark"}
		}
		return space(id)
	}
	for range 2 {
		h.counter.Failed(h.id("ark:12345/twice"), h.ann, firefox)
		h.counter.Failed(h.id("ark:99999/nowhere"), h.ann, firefox)
		h.flush()
	}
	h.counter.Failed(h.id("ark:12345/once"), h.ann, firefox)
	h.counter.Failed(h.id("ark:54321/once"), h.ann, firefox)
	for _, c := range []struct {
		after time.Duration
		want  []string
	}{
		{0, []string{"ark:12345/twice", "ark:12345/once", "ark:54321/once"}},
		{12 * time.Hour, []string{"ark:12345/twice"}},
		{8 * 24 * time.Hour, []string{"ark:12345/twice"}},
		{9 * 24 * time.Hour, nil},
	} {
		h.at(c.after).flush()
		h.counter.keeper.tidy(t.Context(), h.now)
		if have := h.failedNames(); !slices.Equal(have, c.want) {
			t.Errorf("after %s there are %q, want %q", c.after, have, c.want)
		}
	}
}

// TestManyTypedNames checks that all are removed, however many there are, although another server removes some of them, by a server
// that does not count.
func TestManyTypedNames(t *testing.T) {
	h := newHouse(t)
	server := asServer(t.Context())
	for n := range cellsAtOnce + 200 {
		key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:" + strconv.Itoa(10000+n)}
		if err := h.r.KeepUsage(server, stele.CellChange{Name: failedCell(key, dayOf(noon.Unix())), After: appendTexts(nil, []Tally{{key.Prefix + "/x", 2}})}); err != nil {
			t.Fatal(err)
		}
	}
	commits := 0
	store := &busy{Store: h.r, before: func() {
		if commits++; commits > 1 {
			return
		}
		for c := range h.r.UsageList(server, failedCells, "") {
			if err := h.r.KeepUsage(server, stele.CellChange{Name: c.Name, Before: c.Value}); err != nil {
				t.Error(err)
			}
			break
		}
	}}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		Tidy(ctx, store, func() time.Time { return noon.AddDate(0, 0, 20) }, slog.New(slog.DiscardHandler))
		close(done)
	}()
	for len(h.failedNames()) > 0 {
		time.Sleep(time.Millisecond)
	}
	stop()
	<-done
}

// TestDamagedCells checks that cells that can't be read do not stop the others, and are told to the operator.
func TestDamagedCells(t *testing.T) {
	h := newHouse(t)
	var log bytes.Buffer
	h.counter.keeper.log = slog.New(slog.NewTextHandler(&log, nil))
	server, month := asServer(t.Context()), DateOf(noon).number()
	for _, cell := range []string{recordCell(h.id("ark:12345/a"), month), failedCell(stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}, dayOf(noon.Unix()))} {
		if err := h.r.KeepUsage(server, stele.CellChange{Name: cell, After: []byte{200}}); err != nil {
			t.Fatal(err)
		}
	}
	h.counter.Redirected(h.id("ark:12345/a"), h.ann, firefox, "")
	h.visit(h.ann, firefox)
	h.want(1, 1)
	if s := h.counter.Stats(); s.Waiting != 0 || s.Failed != 0 || s.Dropped != 1 || !strings.Contains(log.String(), "ark:12345/a") {
		t.Errorf("%+v, and the log has %s", s, log.String())
	}
	h.at(12 * time.Hour)
	h.counter.keeper.tidy(t.Context(), h.now)
	h.at(420 * 24 * time.Hour)
	h.counter.keeper.tidy(t.Context(), h.now)
	value, err := h.r.UsageCell(server, recordCell(h.id("ark:12345/x1"), month))
	if m, fault := parseMonth(value); err != nil || fault != nil || len(m.Days) != 1 || m.Days[0].Day != 0 {
		t.Errorf("%v, %v, %v", m, err, fault)
	}
}

// TestTidyFails checks that a failure is not repeated every half minute.
func TestTidyFails(t *testing.T) {
	h := newHouse(t)
	h.counter.Failed(h.id("ark:12345/x"), h.ann, firefox)
	h.flush()
	k := newKeeper(h.r, slog.New(slog.DiscardHandler))
	ended, stop := context.WithCancel(t.Context())
	stop()
	at := noon.AddDate(0, 0, 20)
	for range 3 {
		k.tidy(ended, at)
		at = at.Add(30 * time.Second)
	}
	if len(h.failedNames()) != 1 {
		t.Fatal("the store takes commits of a context that ended")
	}
	k.tidy(t.Context(), at)
	if len(h.failedNames()) != 1 {
		t.Error("it was tried again after a minute")
	}
	k.tidy(t.Context(), at.Add(time.Hour))
	if len(h.failedNames()) != 0 {
		t.Error("it was not tried again after an hour")
	}
}
