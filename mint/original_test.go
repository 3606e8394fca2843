package mint

import (
	"bufio"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

func original(t testing.TB, template string, seed uint64, expand int) *Subcounters {
	t.Helper()
	s, err := mustTemplate(t, template).Subcounters(seed, expand)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Subcounters) name(t testing.TB, authority string) string {
	t.Helper()
	step, err := s.Next()
	if err != nil {
		t.Fatal(err)
	}
	return s.Template(step.Growth).Write(authority, step.Number)
}

// TestOriginalOrder: the first names of the noid program's manual.
func TestOriginalOrder(t *testing.T) {
	s := original(t, "f5.reedeedk", 0, 0)
	for i, want := range []string{"f54x54g11", "f5154dn7k", "f5wd3q12m"} {
		if got := s.name(t, "13030"); got != want {
			t.Errorf("name %d is %s, want %s", i, got, want)
		}
	}
}

// noidInPerl is the algorithm of the original program in Perl, from its description, with Perl's own
// srand and rand: arguments are the count of names, the seed, how much the mask grows, and the mask.
const noidInPerl = `
my ($most, $germ, $expand, $mask) = @ARGV;
my $alphabet = "0123456789bcdfghjkmnpqrstvwxz";
my ($total, $size, $count, @value, @top, @active);
sub begin {
	$total = 1;
	$total *= $_ eq "d" ? 10 : 29 for split //, $mask;
	$size = int($total / 293 + 1);
	($count, @value, @top, @active) = (0);
	for (my ($i, $left) = (0, $total); $left > 0; $i++, $left -= $size) {
		push @value, 0;
		push @top, $left >= $size ? $size : $left;
		push @active, $i;
	}
}
begin();
while ($most-- > 0) {
	if ($count >= $total) {
		last unless $expand;
		my $n = length($mask) < $expand ? 1 : $expand;
		$mask = substr($mask, 0, $n) . $mask;
		begin();
	}
	srand($germ ? $germ * ($count + 1) % 65536 : $count);
	my $at = int(rand(scalar @active));
	my $i = $active[$at];
	$count++;
	splice(@active, $at, 1) if ++$value[$i] >= $top[$i];
	my ($number, $name) = ($value[$i] + $i * $size, "");
	for (reverse split //, $mask) {
		my $base = $_ eq "d" ? 10 : 29;
		$name = substr($alphabet, $number % $base, 1) . $name;
		$number = int($number / $base);
	}
	print "$name\n";
}
`

// TestOriginalOrderIsPerls compares with Perl's own generator, over whole templates and the beginning
// of large ones.
func TestOriginalOrderIsPerls(t *testing.T) {
	for _, tt := range []struct {
		digits string
		most   int
		germ   uint64
		expand int
	}{
		{"d", 20, 0, 0},
		{"ed", 300, 0, 0},
		{"eed", 8410, 0, 0},
		{"eed", 30_000, 0, 3}, // grows to eedeed
		{"d", 2000, 0, 1},     // grows three times
		{"dd", 1500, 0, 3},    // too short for 3
		{"eed", 8410, 7, 0},
		{"de", 1000, 65536, 2},
		{"eedeed", 20_000, 0, 0},
		{"eedeedeedeed", 5000, 0, 0},
	} {
		name := fmt.Sprintf("%s germ %d expand %d", tt.digits, tt.germ, tt.expand)
		cmd := exec.Command("perl", "-e", noidInPerl, "--", strconv.Itoa(tt.most), fmt.Sprint(tt.germ), strconv.Itoa(tt.expand), tt.digits)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("perl: %v", err)
		}
		s, n := original(t, ".r"+tt.digits, tt.germ, tt.expand), 0
		for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); n++ {
			if got := s.name(t, ""); got != lines.Text() {
				t.Fatalf("%s: name %d is %s, and Perl says %s", name, n, got, lines.Text())
			}
		}
		if n < min(tt.most, 10) {
			t.Errorf("%s: Perl made %d names", name, n)
		}
		if _, err := s.Next(); tt.expand == 0 && n < tt.most && stele.KindOf(err) != stele.Exhausted {
			t.Errorf("%s: Perl has no more names, and here: %v", name, err)
		}
	}
}

// What is computed in integers is what Perl computes in floating point.
func TestOriginalOrderIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, n := rapid.Uint32().Draw(t, "seed"), rapid.IntRange(1, maxSubcounters).Draw(t, "n")
		x := ((uint64(seed)<<16|0x330E)*0x5DEECE66D + 0xB) & (1<<48 - 1)
		if got, want := pick(seed, n), int(float64(n)*math.Ldexp(float64(x), -48)); got != want {
			t.Fatalf("%d of %d: %d, want %d", seed, n, got, want)
		}
		total := rapid.Uint64Range(1, maxOriginal).Draw(t, "total")
		if near := total / maxSubcounters * maxSubcounters; near > 0 {
			total = near - 1 // where rounding is most likely to matter
		}
		if got, want := total/maxSubcounters+1, uint64(float64(total)/maxSubcounters+1); got != want {
			t.Fatalf("%d names: ranges of %d, want %d", total, got, want)
		}
	})
}

// TestOriginalOrderOfEZID: the state of a real minter, 77913/r7 of EZID, before the last name of its
// first mask (CDLUC3/ezid: tests/test_docs/77913_r7_last_before_template_extend.json). Its subcounters
// became exhausted in the order that its siclist tells, and what is left is c251.
func TestOriginalOrderOfEZID(t *testing.T) {
	s := original(t, ".reed", 0, 3)
	var exhausted []int
	for s.Given() < 8409 {
		before := slices.Clone(s.active[:s.n])
		if _, err := s.Next(); err != nil {
			t.Fatal(err)
		}
		if s.n < len(before) {
			for i, c := range before {
				if i == s.n || s.active[i] != c {
					exhausted = append(exhausted, int(c))
					break
				}
			}
		}
	}
	// The beginning and the end of siclist.
	if got, want := exhausted[:10], []int{217, 168, 130, 120, 82, 225, 186, 148, 252, 204}; !slices.Equal(got, want) {
		t.Errorf("first exhausted are %v, want %v", got, want)
	}
	if got, want := exhausted[len(exhausted)-10:], []int{9, 269, 223, 170, 136, 98, 125, 61, 209}; !slices.Equal(got[1:], want) {
		t.Errorf("last exhausted are %v, want %v", got[1:], want)
	}
	if s.n != 1 || s.active[0] != 251 || s.values[251] != 28 || s.size != 29 || s.ranges() != 290 {
		t.Errorf("left are %v; c251 is at %d, of %d in %d ranges", s.active[:s.n], s.values[251], s.size, s.ranges())
	}
	// The state of the same minter after 2191 names (77913_r7.json): some of its subcounters.
	s = original(t, ".reed", 0, 3)
	for s.Given() < 2191 {
		s.Next()
	}
	for i, want := range map[int]uint64{0: 9, 1: 7, 2: 8, 10: 8, 39: 9, 75: 9, 113: 9, 188: 9, 263: 9, 289: 7} {
		if s.values[i] != want {
			t.Errorf("after 2191 names c%d is at %d, want %d", i, s.values[i], want)
		}
	}
}

// Each name of a space comes once, is one of the template, and is known as issued from then on; and a
// state that is written and read at any point continues in the same way.
func TestOriginalOrderIsWhole(t *testing.T) {
	for _, tt := range []struct {
		template string
		expand   int
	}{{".rd", 0}, {".rdk", 0}, {"x5.redk", 0}, {".reedk", 0}, {".rddd", 0}, {".rd", 2}, {".redk", 1}} {
		s := original(t, tt.template, 0, tt.expand)
		total := min(s.Total(), 20_000)
		seen := make(map[string]bool)
		for n := range total {
			if s.Given() != n {
				t.Fatalf("%s: %d given, want %d", tt.template, s.Given(), n)
			}
			if n%997 == 0 || n < 12 || n > total-12 {
				again := original(t, tt.template, 0, tt.expand)
				if err := again.Resume(n, s.AppendText(nil)); err != nil {
					t.Fatalf("%s after %d: %v", tt.template, n, err)
				}
				if n > 0 {
					s = again
				}
			}
			before := s.Clone()
			name := s.name(t, "12345")
			step, ok := s.Find("12345", name)
			if !ok || seen[name] || before.Issued(step) || !s.Issued(step) {
				t.Fatalf("%s: name %d, %s: found %v as %v, seen %v, issued before %v, then %v", tt.template, n, name, ok, step, seen[name], before.Issued(step), s.Issued(step))
			}
			if strings.HasSuffix(tt.template, "k") && !Checked("12345/"+name) {
				t.Fatalf("%s: %s has a wrong check character", tt.template, name)
			}
			seen[name] = true
		}
		if _, err := s.Next(); total == s.Total() && stele.KindOf(err) != stele.Exhausted {
			t.Errorf("%s: after all names: %v", tt.template, err)
		}
	}
}

func TestOriginalOrderRefuses(t *testing.T) {
	for _, tt := range []struct {
		template string
		seed     uint64
		want     string
	}{
		{".sdd", 0, "come in order"},
		{".zdd", 0, "come in order"},
		{".reeeeeeeeeeeee", 0, "fewer digits"},
		{".reed", 65537, "at most 65536"},
	} {
		_, err := mustTemplate(t, tt.template).Subcounters(tt.seed, 0)
		if stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s, %d: %v", tt.template, tt.seed, err)
		}
	}
	if _, err := (Template{}).Subcounters(0, 0); stele.KindOf(err) != stele.Invalid {
		t.Errorf("the zero template: %v", err)
	}
	for _, tt := range []struct {
		given uint64
		text  string
	}{
		{0, ""}, {1, "1"}, {10, "1,1,1,1,1,1,1,1,1,1,1"}, {2, "2,0,0,0,0,0,0,0,0,0"}, {2, "1,0,0,0,0,0,0,0,0,0"},
		{1, "1,0,0,0,0,0,0,0,0,x"}, {1, "1,0,0,0,0,0,0,0,0,"}, {1, "1,0,0,0,0,0,0,0,0,-0"}, {11, "1,1,1,1,1,1,1,1,1,1"},
	} {
		if err := original(t, ".rd", 0, 0).Resume(tt.given, []byte(tt.text)); stele.KindOf(err) != stele.Invalid {
			t.Errorf("%d, %q: %v", tt.given, tt.text, err)
		}
	}
}

// Any text of counters is refused, or is what is written again.
func FuzzResume(f *testing.F) {
	f.Add(uint64(3), "1,0,1,0,0,0,0,0,1,0", 0)
	f.Add(uint64(10), "1,1,1,1,1,1,1,1,1,1", 1)
	f.Add(uint64(12), strings.Repeat("0,", 98)+"1,1", 1)
	f.Add(uint64(1<<63), "18446744073709551615", 2)
	f.Fuzz(func(t *testing.T, given uint64, text string, expand int) {
		s, err := mustTemplate(t, ".rd").Subcounters(0, expand)
		if err != nil {
			t.Fatal(err)
		}
		if s.Resume(given, []byte(text)) != nil {
			return
		}
		again, err := mustTemplate(t, ".rd").Subcounters(0, expand)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Resume(s.Given(), s.AppendText(nil)); err != nil || fmt.Sprint(*again) != fmt.Sprint(*s) {
			t.Fatalf("%d, %q: %v", given, text, err)
		}
		s.Next()
	})
}

// What is left of a name when its number is written is the number again.
func TestWriteRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tmpl, err := ParseTemplate(rapid.SampledFrom([]string{".rdd", "x5.reedk", ".sed", "b.zdek"}).Draw(t, "template"))
		if err != nil {
			t.Fatal(err)
		}
		n := rapid.Uint64().Draw(t, "number")
		if total, bounded := tmpl.Total(); bounded {
			n %= total
		}
		if back, ok := tmpl.Read("12345", tmpl.Write("12345", n)); !ok || back != n {
			t.Fatalf("%s: %d is written %s, and read %d, %v", tmpl, n, tmpl.Write("12345", n), back, ok)
		}
	})
}

func BenchmarkOrders(b *testing.B) {
	tmpl := mustTemplate(b, "f5.reedeedk")
	total, _ := tmpl.Total()
	b.Run("own", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, err := tmpl.Name("13030", uint64(i)%total, 7); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("original", func(b *testing.B) {
		b.ReportAllocs()
		s := original(b, "f5.reedeedk", 0, 0)
		for b.Loop() {
			step, err := s.Next()
			if err != nil {
				s = original(b, "f5.reedeedk", 0, 0)
				continue
			}
			s.Template(step.Growth).Write("13030", step.Number)
		}
	})
	b.Run("step", func(b *testing.B) {
		b.ReportAllocs()
		s := original(b, "f5.reedeedk", 0, 0)
		for b.Loop() {
			if _, err := s.Next(); err != nil {
				s = original(b, "f5.reedeedk", 0, 0)
			}
		}
	})
}
