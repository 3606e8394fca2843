package minting

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
)

// TestUUIDLayout takes the example of RFC 9562, appendix A.6.
func TestUUIDLayout(t *testing.T) {
	got := newUUID(0x017F22E279B0<<12|0xCC3, [8]byte{0x98, 0xC4, 0xDC, 0x0C, 0x0C, 0x07, 0x39, 0x8F}).String()
	if want := "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestArrivalInTheFuture: the clock stepped back after a caller arrived, and is not earlier
// than the last date. The present time counts.
func TestArrivalInTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		schemes, err := all.New(all.Config{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		ns := &stele.Namespace{Scheme: "ibi", Prefix: "sid.inpe.br/mtc-m18", Minter: stele.Minter{
			Kind: stele.MinterIBI, Host: "mtc-m18.sid.inpe.br", Port: 80, Granularity: "1s"}}
		store := mem.New(time.Now)
		last, err := mint.DateOf(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		state := stele.MinterState{Name: StateName(ns.Key()), After: DateState{last, true, ns.Prefix}.Bytes()}
		if err := store.Apply(t.Context(), &stele.Commit{Minters: []stele.MinterState{state}}); err != nil {
			t.Fatal(err)
		}
		src, err := newDates(&Minters{store: store, schemes: schemes, o: Options{Now: time.Now, Ahead: DefaultAhead}}, ns, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := src.load(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		x, reserve, wait, err := src.next(time.Now().Add(10 * time.Minute))
		if err != nil || wait != 0 || reserve == nil || x.date.Time().After(time.Now()) {
			t.Errorf("%s at %s: wait %v, %v", x.date, time.Now(), wait, err)
		}
	})
}

// TestStates reads and writes states of minters.
func TestStates(t *testing.T) {
	d, err := mint.NewDate(1287588000, 50_000_000_000_000_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, text string }{
		{"dates", string(DateState{d, true, "a b/c"}.Bytes())},
		{"no dates", string(DateState{Holder: "a"}.Bytes())},
		{"free", string(DateState{Last: d, Issued: true}.Bytes())},
		{"templates", string(TemplateStates{{Template: ".reedk", Seed: 7, Given: 1000}, {Template: "b.zd", Given: 5, Shut: true}}.Bytes())},
		{"original order", string(TemplateStates{{Template: ".rd", Given: 2, Order: stele.OrderNOID, Counters: "1,0,1,0,0,0,0,0,0,0"}, {Template: ".red", Shut: true, Order: stele.OrderNOID, Expand: 2}}.Bytes())},
		{"no templates", string(TemplateStates{}.Bytes())},
	} {
		s, err := ReadState("x", []byte(tt.text))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		again := s.Templates.Bytes()
		if s.Dates != nil {
			again = s.Dates.Bytes()
		}
		if string(again) != tt.text {
			t.Errorf("%s: %q became %q", tt.name, tt.text, again)
		}
	}
	for _, text := range []string{"", "date", "date 1", "date 1 2", "date x 2 a", "date -1 0 a", "date 1 9999999999999999999 a",
		"noid\n", "noid\n1 2", "noid\nx 2 .zd", "noid\n1 x .zd", "noid\n1 2 .zd open", "noid\n1 2 .zd shut x", "noid\n1 2 .rd noid 1", "noid\n1 2 .rd noid+x 1", "noid\n1 2 .rd noid+1", "noid\n1 2 .rd nog+1 1", "noid\n1 2 .rd noid+256 1", "noid\n1 2 .rd noid+1 1 open", "uuid", "\xff"} {
		if _, err := ReadState("x", []byte(text)); stele.KindOf(err) != stele.Internal {
			t.Errorf("%q: %v", text, err)
		}
	}
}
