package mint

import (
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// parseDate reads Unix seconds with a decimal fraction.
func parseDate(t interface{ Fatalf(string, ...any) }, text string) Date {
	whole, fraction, _ := strings.Cut(text, ".")
	fraction += strings.Repeat("0", MaxFraction-len(fraction))
	sec, errSec := strconv.ParseInt(whole, 10, 64)
	atto, errAtto := strconv.ParseUint(fraction, 10, 64)
	if err := errors.Join(errSec, errAtto); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	d, err := NewDate(sec, atto)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return d
}

// Table 6.2 of the report: requests in order of arrival, at one second. Items g
// and f wait; a caller that waits asks again when the time has come.
func TestTable62(t *testing.T) {
	raw, err := os.ReadFile("../testdata/ibi.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Table struct{ Rows [][4]string } `json:"table_6_2"`
	}
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	rows := vectors.Table.Rows
	var state Distributor
	for _, row := range rows {
		now := parseDate(t, row[1])
		issued, next, wait := state.Next(now, Second)
		if waits := row[0] == "g" || row[0] == "f"; waits != (wait > 0) {
			t.Fatalf("item %s: wait %v", row[0], wait)
		}
		if wait > 0 {
			now, err = DateOf(now.Time().Add(wait))
			if err != nil {
				t.Fatal(err)
			}
			issued, next, wait = state.Next(now, Second)
		}
		if wait != 0 || issued != parseDate(t, row[2]) {
			t.Fatalf("item %s: issued %v, wait %v; want %s", row[0], issued, wait, row[2])
		}
		state = next
	}
	if len(rows) != 7 {
		t.Fatalf("the table has %d rows", len(rows))
	}
}

// rat is d as a rational number of seconds.
func (d Date) rat() *big.Rat {
	r := new(big.Rat).SetFrac(new(big.Int).SetUint64(d.atto), big.NewInt(second))
	return r.Add(r, new(big.Rat).SetInt64(d.sec))
}

// rat is r as a rational number of seconds.
func (r Granularity) rat() *big.Rat {
	if r == Minute {
		return big.NewRat(60, 1)
	}
	return new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(r)), nil))
}

// algorithm4 is the report's pseudo-code, line by line, in rational numbers. It
// returns no date where the report waits.
func algorithm4(last *big.Rat, now, r *big.Rat) *big.Rat {
	round := func(x, s *big.Rat) *big.Rat { // s * int(x/s)
		q := new(big.Rat).Quo(x, s)
		n := new(big.Int).Div(q.Num(), q.Denom())
		return new(big.Rat).Mul(s, new(big.Rat).SetInt(n))
	}
	rounded := round(now, r) // line 1
	if last == nil {
		last = new(big.Rat).Sub(rounded, r) // 3
	}
	last = round(last, r)                 // 4
	creation := new(big.Rat).Add(last, r) // 5
	if rounded.Cmp(creation) > 0 {
		creation = rounded
	}
	if creation.Cmp(now) > 0 { // 7
		return nil
	}
	short, s, t := creation, r, creation // 8, 9
	for last.Cmp(short) < 0 {            // 10
		s = new(big.Rat).Mul(s, big.NewRat(10, 1)) // 11
		if s.Cmp(big.NewRat(10, 1)) == 0 {         // 12
			s = big.NewRat(60, 1)
		}
		t = short                         // 13
		if s.Cmp(big.NewRat(60, 1)) > 0 { // 14
			break
		}
		short = round(creation, s) // 15
	}
	return t // 16
}

func genDate() *rapid.Generator[Date] {
	return rapid.Custom(func(t *rapid.T) Date {
		sec := rapid.Int64Range(0, endUnix-1).Draw(t, "sec")
		atto := rapid.Uint64Range(0, second-1).Draw(t, "atto")
		round := Granularity(rapid.IntRange(-1, 18).Draw(t, "rounded to"))
		return round.floor(Date{sec, atto})
	})
}

func genGranularity() *rapid.Generator[Granularity] {
	return rapid.Map(rapid.IntRange(-1, 18), func(i int) Granularity { return Granularity(i) })
}

// The state machine is the report's algorithm, whatever r is from step to
// step; and the dates that it issues increase strictly, are never in the future, and lie
// on the grid.
func TestDistributorIsAlgorithm4(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := genDate().Draw(t, "begin")
		var state Distributor
		if rapid.Bool().Draw(t, "resumed") {
			state = Resume(genDate().Draw(t, "last"))
		}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			r := genGranularity().Draw(t, "r")
			var lastRat *big.Rat
			last, started := state.Last()
			if started {
				lastRat = last.rat()
			}
			want := algorithm4(lastRat, now.rat(), r.rat())
			issued, next, wait := state.Next(now, r)
			if (wait > 0) != (want == nil) {
				t.Fatalf("last %v, now %v, r %v: wait %v, but the report issues %v", last, now, r, wait, want)
			}
			if wait > 0 {
				if next != state {
					t.Fatalf("waiting changed the state from %v to %v", state, next)
				}
				now = advance(t, now, wait)
				continue
			}
			if issued.rat().Cmp(want) != 0 {
				t.Fatalf("last %v, now %v, r %v: %v, want %v", last, now, r, issued, want.FloatString(18))
			}
			if started && issued.Compare(last) <= 0 || issued.Compare(now) > 0 || r.floor(issued) != issued {
				t.Fatalf("last %v, now %v, r %v: issued %v", last, now, r, issued)
			}
			checkShortest(t, issued, last, started, r, now)
			state = next
			now = advance(t, now, time.Duration(rapid.Int64Range(0, int64(2*time.Minute)).Draw(t, "pause")))
		}
	})
}

// checkShortest looks for a date on a coarser grid, the same or before, that
// would have been possible.
func checkShortest(t *rapid.T, issued, last Date, started bool, r Granularity, now Date) {
	if !started {
		last = r.before(r.floor(now))
	}
	for s := r - 1; s >= Minute; s-- {
		if c := s.floor(now); c.Compare(last) > 0 && c != issued && c.Compare(issued) < 0 {
			t.Fatalf("issued %v at %v after %v; %v is shorter", issued, now, last, c)
		}
	}
}

func advance(t *rapid.T, now Date, by time.Duration) Date {
	sec, atto := now.sec+int64(by/time.Second), now.atto+uint64(by%time.Second)*nano
	if atto >= second {
		sec, atto = sec+1, atto-second
	}
	d, err := NewDate(sec, atto)
	if err != nil {
		t.SkipNow() // the end of time
	}
	return d
}

// Waiting exactly as long as Next says is enough, and a nanosecond less is not.
func TestWaitIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		last := genDate().Draw(t, "last")
		r := genGranularity().Draw(t, "r")
		now := last
		_, _, wait := Resume(last).Next(now, r)
		if wait <= 0 || wait > time.Minute {
			t.Fatalf("at the last date itself, r %v: wait %v", r, wait)
		}
		if _, _, more := Resume(last).Next(advance(t, now, wait), r); more != 0 {
			t.Fatalf("after waiting %v another %v", wait, more)
		}
		if _, _, more := Resume(last).Next(advance(t, now, wait-1), r); more == 0 {
			t.Fatalf("waiting %v would have done", wait-1)
		}
	})
}

// At a nanosecond, every nanosecond is issued, each in its turn.
func TestExactAtOneNanosecond(t *testing.T) {
	now, err := DateOf(time.Date(2026, 2, 3, 4, 5, 6, 999_999_000, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	state := Resume(now)
	for i := range 3000 {
		var err error
		if now, err = DateOf(now.Time().Add(1)); err != nil {
			t.Fatal(err)
		}
		issued, next, wait := state.NextExact(now, Nanosecond)
		if wait != 0 || issued != now {
			t.Fatalf("step %d: issued %v, wait %v, want %v", i, issued, wait, now)
		}
		if _, _, wait := next.Next(now, Nanosecond); wait != 1 {
			t.Fatalf("a second date at %v: wait %v, want 1ns", now, wait)
		}
		state = next
	}
}

// If the clock steps back, Next issues no date, and says how far back the clock is.
func TestClockStepsBack(t *testing.T) {
	last := parseDate(t, "1287588115.5")
	now := parseDate(t, "1287584515.5") // an hour before
	for _, next := range []func(Date, Granularity) (Date, Distributor, time.Duration){
		Resume(last).Next, Resume(last).NextExact,
	} {
		issued, state, wait := next(now, Millisecond)
		if issued != (Date{}) || state != Resume(last) || wait != time.Hour+time.Millisecond {
			t.Errorf("issued %v, state %v, wait %v", issued, state, wait)
		}
	}
	far := Resume(Date{endUnix - 1, 0})
	if _, _, wait := far.Next(Date{}, Second); wait != 1<<63-1 {
		t.Errorf("wait for the year 10000: %v, want the longest duration", wait)
	}
}

// Without shortening, the date is the request's own.
func TestNextExactDoesNotShorten(t *testing.T) {
	state := Resume(parseDate(t, "1287587646"))
	now := parseDate(t, "1287588012.2930")
	if issued, _, _ := state.NextExact(now, Millisecond); issued != now {
		t.Errorf("issued %v, want %v", issued, now)
	}
	if issued, _, _ := state.Next(now, Millisecond); issued != parseDate(t, "1287588000") {
		t.Errorf("shortened to %v", issued)
	}
}

func TestFirstDates(t *testing.T) {
	for r := Minute; r <= finest; r++ {
		issued, next, wait := Distributor{}.Next(Date{}, r)
		if last, ok := next.Last(); issued != (Date{}) || wait != 0 || !ok || last != issued {
			t.Errorf("r %v at 1970: %v, %v, %v", r, issued, next, wait)
		}
	}
	if _, ok := (Distributor{}).Last(); ok {
		t.Error("the zero Distributor has a last date")
	}
}

func BenchmarkNext(b *testing.B) {
	for _, r := range []Granularity{Minute, Second, Millisecond, Microsecond, Nanosecond} {
		b.Run(r.String(), func(b *testing.B) {
			now := Date{1_800_000_000, 0}
			var state Distributor
			b.ReportAllocs()
			for b.Loop() {
				_, next, wait := state.Next(now, r)
				if wait > 0 {
					b.Fatal("the clock stands still")
				}
				state, now = next, r.after(now)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}
