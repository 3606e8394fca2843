package foreign_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/mint"
)

// readNOID reads all rows of files of Noid.
func readNOID(t testing.TB, o foreign.Options, texts ...any) ([]bulk.Row, foreign.Report, error) {
	t.Helper()
	o.Schemes, o.System = known, "noid"
	s, err := foreign.Open(opened(t, texts...), o)
	if err != nil {
		return nil, foreign.Report{}, err
	}
	return rowsOf(t, s)
}

// rowsOf reads all rows of a source.
func rowsOf(t testing.TB, s *foreign.Source) (rows []bulk.Row, r foreign.Report, err error) {
	t.Helper()
	defer s.Close()
	for {
		b, err := s.Next()
		if err != nil {
			if err.Error() == "EOF" {
				err = nil
			}
			return rows, s.Report(), err
		}
		s.Parse(b)
		rows = append(rows, b.Rows...)
	}
}

// lines returns rows as an export would write them, or why they are refused.
func lines(rows []bulk.Row) (list []string) {
	for _, row := range rows {
		switch {
		case row.Err != nil:
			list = append(list, fmt.Sprintf("%d: %v", row.Line, row.Err))
		case row.Namespace != nil:
			list = append(list, fmt.Sprintf("%s at %d", document.AppendNamespace(nil, row.Namespace), row.Progress.Given))
		default:
			list = append(list, string(document.AppendRecord(nil, row.Record)))
		}
	}
	return list
}

// noidMinter is a minter of Noid in Perl, from the description of its database, with Perl's own
// generator. It issues names by a random mask, prints its database for `db_load -T`, and the names that
// it would issue next to the file descriptor 3.
const noidMinter = `
my ($issue, $more, $naan, $prefix, $mask) = @ARGV;
my %db = (":/naan" => $naan, ":/naa" => "cdlib.org", ":/subnaa" => "dir/a", ":/template" => "$prefix.$mask", ":/prefix" => $prefix, ":/mask" => $mask,
	":/firstpart" => "$naan/$prefix", ":/genonly" => 1, ":/longterm" => 1, ":/wrap" => "", ":/addcheckchar" => 1, ":/generator_type" => "random",
	":/siclist" => "", ":/version" => "0.424", ":/:/colour" => "a\\b\nc", ":/erc" => "# Creation record\nerc:\nwho: jak\n");
my $xdig = "0123456789bcdfghjkmnpqrstvwxz";
my $total = 1;
$total *= $_ eq "d" ? 10 : 29 for grep { /[de]/ } split //, substr($mask, 1);
my $size = int($total / 293 + 1);
($db{":/total"}, $db{":/oatop"}, $db{":/percounter"}, $db{":/oacounter"}) = ($total, $total, $size, 0);
my ($n, $left) = (0, $total);
for (; $left > 0; $n++, $left -= $size) {
	($db{":/c$n/top"}, $db{":/c$n/value"}) = ($left >= $size ? $size : $left, 0);
	$db{":/saclist"} .= "c$n ";
}
sub mint {
	srand($db{":/oacounter"});
	my @active = split / /, $db{":/saclist"};
	my $c = $active[int(rand(scalar @active))];
	my $value = ++$db{":/$c/value"};
	$db{":/oacounter"}++;
	if ($value >= $db{":/$c/top"}) {
		$db{":/saclist"} = join "", map { "$_ " } grep { $_ ne $c } @active;
		$db{":/siclist"} .= " $c";
	}
	my ($number, $id) = ($value + substr($c, 1) * $size, "");
	for (reverse grep { /[de]/ } split //, substr($mask, 1)) {
		my $base = $_ eq "d" ? 10 : 29;
		$id = substr($xdig, $number % $base, 1) . $id;
		$number = int($number / $base);
	}
	$id = "$naan/$prefix$id";
	my ($at, $sum) = (1, 0);
	for (split //, $id) {
		my $v = index($xdig, $_);
		$sum += $at++ * ($v < 0 ? 0 : $v);
	}
	return $id . substr($xdig, $sum % 29, 1);
}
for my $i (1 .. $issue) {
	my $id = mint();
	$db{"$id\t:/c"} = sprintf("i|20200102%06d|jak|%d", $i % 60, $db{":/oacounter"});
	$db{"$id\t:/h"} = 1;
	$db{"$id\tgoto"} = "https://example.org/$i" if $i % 3;
}
for my $key (sort keys %db) {
	for ($key, $db{$key}) {
		s/([\\\n\t])/sprintf("\\%02x", ord($1))/eg;
		print "$_\n";
	}
}
open(my $next, ">&=", 3) or die;
print $next mint(), "\n" for 1 .. $more;
`

// madeByPerl returns a database of Noid in Berkeley DB, after some names, and the names that come next.
func madeByPerl(t testing.TB, issue int, naan, prefix, mask string) (database string, next []string) {
	t.Helper()
	dir := t.TempDir()
	database = filepath.Join(dir, "noid.bdb")
	names, err := os.Create(filepath.Join(dir, "next"))
	if err != nil {
		t.Fatal(err)
	}
	defer names.Close()
	perl := exec.Command("perl", "-e", noidMinter, "--", fmt.Sprint(issue), "40", naan, prefix, mask)
	perl.ExtraFiles, perl.Stderr = []*os.File{names}, os.Stderr
	pairs, err := perl.Output()
	if err != nil {
		t.Fatal(err)
	}
	load := exec.Command("db_load", "-T", "-t", "btree", database)
	load.Stdin = bytes.NewReader(pairs)
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("db_load: %v\n%s", err, out)
	}
	text, err := os.ReadFile(names.Name())
	if err != nil {
		t.Fatal(err)
	}
	return database, strings.Fields(string(text))
}

func dumped(t testing.TB, args ...string) []byte {
	t.Helper()
	out, err := exec.Command("db_dump", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNOIDMinter reads real dumps of a minter in Berkeley DB: it continues with the names that Perl
// says.
func TestNOIDMinter(t *testing.T) {
	for _, tt := range []struct {
		issue int
		mask  string
	}{{0, "reedeedk"}, {3, "reedeedk"}, {2191, "reedk"}, {8400, "reedk"}, {8410, "reedk"}, {95, "rddk"}} {
		database, next := madeByPerl(t, tt.issue, "13030", "f5", tt.mask)
		for _, args := range [][]string{{"-p", database}, {database}} {
			rows, report, err := readNOID(t, foreign.Options{Namespaces: true}, dumped(t, args...))
			if err != nil {
				t.Fatal(err)
			}
			if len(rows) != tt.issue+1 {
				t.Fatalf("%s after %d: %d rows", tt.mask, tt.issue, len(rows))
			}
			for _, row := range rows {
				if row.Err != nil {
					t.Fatal(row.Err)
				}
			}
			ns, at := rows[0].Namespace, rows[0].Progress
			if want := fmt.Sprintf(`{"scheme":"ark","prefix":"ark:13030/f5","title":"cdlib.org / dir/a","minter":{"kind":"noid","template":".%s","order":"noid"}}`, tt.mask); string(document.AppendNamespace(nil, ns)) != want || at.Given != uint64(tt.issue) {
				t.Errorf("%s at %+v, want %s", document.AppendNamespace(nil, ns), at, want)
			}
			template, err := mint.ParseTemplate("f5" + ns.Minter.Template)
			if err != nil {
				t.Fatal(err)
			}
			s, err := template.Subcounters(0, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Resume(at.Given, []byte(at.Counters)); err != nil {
				t.Fatal(err)
			}
			for i, want := range next {
				step, err := s.Next()
				if err != nil {
					if total, _ := template.Total(); tt.issue+i != int(total) {
						t.Fatalf("%s: name %d: %v", tt.mask, tt.issue+i, err)
					}
					break
				}
				if got := "13030/" + template.Write("13030", step.Number); got != want {
					t.Fatalf("%s: name %d is %s, and Perl says %s", tt.mask, tt.issue+i, got, want)
				}
			}
			notes := errors.Join(report.Notes...).Error()
			for _, want := range []string{`the minter's value :/colour has no place here: "a\\b\nc"`, "value erc", fmt.Sprintf("open this one with 'stele ns skip ark:13030/f5 %d'", tt.issue)} {
				if !strings.Contains(notes, want) {
					t.Errorf("the notes lack %q:\n%s", want, notes)
				}
			}
		}
	}
}

const noidInfo = `13030/f5154dn7k	:/c: i|20200102030405|jak|2
13030/f5154dn7k	:/h: 1
13030/f54x54g11	:/c: i|20200102030404|jak|1
13030/f54x54g11	:/h: 1
13030/f54x54g11	dc:Title: A: report
 in two lines
13030/f54x54g11	goto: https://example.org/1
13030/f54x54g11	_t: https://example.org/1
13030/f54x54g11	who: Lima, A.
13030/f54x54g11	erc.who: Lima, Ana
13030/f5held000	:/h: 1
13030/f5queued0	:/c: qi|20200102030406|jak|2
:/idmap/goto	^13030/: https://example.org/
:/q/20301231235959/000001/00000000f5queued0: 13030/f5queued0
:/template: .zd
:/genonly: 0
:/oacounter: 0
13030/x y	goto: https://example.org/blank
13030/x2	goto: nowhere
`

func TestNOIDRecords(t *testing.T) {
	rows, report, err := readNOID(t, foreign.Options{}, []byte(noidInfo))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"id":"ark:13030/f5154dn7k","state":"reserved","metadata":{"noid.circulation":"i|20200102030405|jak|2","noid.hold":"1"},"created":"2020-01-02T03:04:05Z","modified":"2020-01-02T03:04:05Z"}`,
		`{"id":"ark:13030/f54x54g11","targets":[{"url":"https://example.org/1"}],"metadata":{"who":"Lima, A.","noid.circulation":"i|20200102030404|jak|1","noid.dc-title":"A: report\n in two lines","noid.erc.who":"Lima, Ana","noid.hold":"1","noid.names":"noid.dc-title = \"dc:Title\""},"created":"2020-01-02T03:04:04Z","modified":"2020-01-02T03:04:04Z"}`,
		`{"id":"ark:13030/f5held000","state":"reserved","metadata":{"noid.hold":"1"}}`,
		`{"id":"ark:13030/f5queued0","state":"reserved","metadata":{"noid.circulation":"qi|20200102030406|jak|2","noid.queue":"20301231235959/000001/00000000f5queued0"},"created":"2020-01-02T03:04:06Z","modified":"2020-01-02T03:04:06Z"}`,
	}
	if len(rows) != 6 {
		t.Fatalf("%q", lines(rows))
	}
	if got := lines(rows[:1])[0]; !strings.HasPrefix(got, "18: ") || !strings.Contains(got, "' ' can't stand in an ARK") {
		t.Errorf("the name with a blank: %s", got)
	}
	rows = rows[1:]
	got := lines(rows)
	if diff := cmp.Diff(want, got[:4]); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(got[4], `ark:13030/x2: targets[0].url: "nowhere"`) || rows[4].Line != 19 {
		t.Errorf("the last row: %q", got[4])
	} else if text := string(rows[4].Later()); text != "13030/x2\tgoto: nowhere" {
		t.Errorf("its text: %q", text)
	}
	notes := errors.Join(report.Notes...).Error()
	for _, want := range []string{"1 names are queued", "1 rules (:idmap)"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
	// Rejected rows can be read again, in their file.
	again, _, err := readNOID(t, foreign.Options{}, append([]byte("# line 20: wrong\n"), rows[4].Later()...))
	if err != nil || len(again) != 1 || again[0].Err == nil {
		t.Errorf("%v, %v", lines(again), err)
	}
	// Names without a NAAN are those of a prefix.
	rows, _, err = readNOID(t, foreign.Options{Prefix: "hdl:10765/"}, []byte("b100\tgoto: https://example.org/1\n"))
	if err != nil || len(rows) != 1 || lines(rows)[0] != `{"id":"10765/B100","targets":[{"url":"https://example.org/1"}]}` {
		t.Errorf("%v, %v", lines(rows), err)
	}
	rows, _, _ = readNOID(t, foreign.Options{}, []byte("b100\tgoto: https://example.org/1\n"))
	if len(rows) != 1 || rows[0].Err == nil || !strings.Contains(rows[0].Err.Error(), "--prefix") {
		t.Errorf("%v", lines(rows))
	}
}

const eggDump = `VERSION=3
format=print
type=btree
duplicates=1
db_pagesize=4096
HEADER=END
 :/bindings_count
 7
 ark:/13030/c7^7ca|_t
 https://example.org/bar
 ark:/13030/c7a|__mc
 1491753207
 ark:/13030/c7a|__mp
 p:&P/2|public|60
 ark:/13030/c7a|_t
 https://example.org/c\61f
 ark:/13030/c7a|dc.title
 one
 ark:/13030/c7a|dc.title
 caf\c3\a9 \\ three
 nonsense
 x
 ark:/13030/c7b|_t
no blank
 doi:10.5072/FK2|erc.what
 A DOI
DATA=END
`

func TestEgg(t *testing.T) {
	rows, report, err := readNOID(t, foreign.Options{}, []byte(eggDump))
	if err != nil {
		t.Fatal(err)
	}
	got := lines(rows)
	want := []string{
		"21: import: \"nonsense\" is not a key of Noid or egg: it has neither a tab nor a vertical bar after a name",
		"23: import: the line, or the one after it, is not a blank and what db_dump writes after it",
		`{"id":"10.5072/FK2","metadata":{"what":"A DOI"}}`,
		`{"id":"ark:13030/c7a","targets":[{"url":"https://example.org/caf"}],"metadata":{"egg.dc.title":"one\ncafé \\ three"},"created":"2017-04-09T15:53:27Z","modified":"2017-04-09T15:53:27Z"}`,
	}
	for i, text := range got {
		if strings.Contains(text, "'|' can't stand in an ARK") {
			got = append(got[:i], got[i+1:]...) // ^7c was resolved
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if report.Admins != 1 {
		t.Errorf("%d permissions were left out", report.Admins)
	}
	rows, _, err = readNOID(t, foreign.Options{Admins: true}, []byte(eggDump))
	if err != nil || !strings.Contains(strings.Join(lines(rows), "\n"), `"egg.__mp":"p:\u0026P/2|public|60"`) && !strings.Contains(strings.Join(lines(rows), "\n"), `"egg.__mp":"p:&P/2|public|60"`) {
		t.Errorf("%v, %v", lines(rows), err)
	}
	// The same names as egg dumps them one by one.
	ids := "# id: ark:/13030/c7a\n# hexid: 61726b3a2f31333033302f633761\n5f2e6563: 31343931373533323037\n5f74: 68747470733a2f2f6578616d706c652e6f72672f31\n# elements bound under ark:/13030/c7a: 2\n\n" +
		"# id: ark:/13030/gone\n# hexid: 61726b3a2f31333033302f676f6e65\n# elements bound under ark:/13030/gone: 0\n\n" +
		"# id: ark:/13030/c7b\nxyz\n# elements bound under ark:/13030/c7b: 3\n\n"
	rows, _, err = readNOID(t, foreign.Options{}, []byte(ids))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"12: import: the line is not one that 'egg iddump' prints there",
		`11: import: "ark:/13030/c7b" has 0 elements in the file, and should have "3"`,
		`{"id":"ark:13030/c7a","targets":[{"url":"https://example.org/1"}],"created":"2017-04-09T15:53:27Z","modified":"2017-04-09T15:53:27Z"}`,
	}, lines(rows)); diff != "" {
		t.Error(diff)
	}
}

// nogState is the state of a minter of Nog after some names, as EZID keeps it.
func nogState(t testing.TB, given uint64, changes ...string) []byte {
	t.Helper()
	template, err := mint.ParseTemplate(".reedk")
	if err != nil {
		t.Fatal(err)
	}
	s, err := template.Subcounters(0, 3)
	if err != nil {
		t.Fatal(err)
	}
	for s.Given() < given {
		if _, err := s.Next(); err != nil {
			t.Fatal(err)
		}
	}
	mask, base := "eedk", uint64(0)
	if given > 8410 {
		mask, base = "eedeedk", 8410
	}
	values := map[string]string{
		"template": "77913/r7{" + mask + "}", "mask": mask, "origmask": "eedk", "shoulder": "77913/r7", "type": "rand", "atlast": "add3", "germ": "0", "oklz": "1",
		"oacounter": fmt.Sprint(given - base), "basecount": fmt.Sprint(base), "saclist": "",
	}
	size, ranges := s.RangeSize()
	values["percounter"] = fmt.Sprint(size)
	total := uint64(8410)
	if base > 0 {
		total *= 8410
	}
	for i, value := range strings.Split(string(s.AppendText(nil)), ",") {
		top := min(size, total-uint64(i)*size)
		values[fmt.Sprintf("c%d/value", i)], values[fmt.Sprintf("c%d/top", i)] = value, fmt.Sprint(top)
		if value != fmt.Sprint(top) {
			values["saclist"] += fmt.Sprintf("c%d ", i)
		}
	}
	if ranges == 0 {
		t.Fatal("no ranges")
	}
	for _, c := range changes {
		name, value, _ := strings.Cut(c, "=")
		values[name] = value
	}
	var b bytes.Buffer
	b.WriteString("{")
	for name, value := range values {
		if b.Len() > 1 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q: %q", name, value)
	}
	b.WriteString("}\n")
	return b.Bytes()
}

// TestNogMinter: minters of Nog continue, also after their mask has grown; what can't be continued is refused
// with the reason.
func TestNogMinter(t *testing.T) {
	o := foreign.Options{System: "noid", Namespaces: true}
	for _, given := range []uint64{0, 2191, 8409, 8410, 8411, 12_000} {
		rows, _, err := readNOID(t, o, nogState(t, given))
		if err != nil || len(rows) != 1 || rows[0].Err != nil {
			t.Fatalf("%d: %v, %v", given, lines(rows), err)
		}
		if got, want := lines(rows)[0], fmt.Sprintf(`{"scheme":"ark","prefix":"ark:77913/r7","minter":{"kind":"noid","template":".reedk","order":"noid","expand":3}} at %d`, given); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for changes, want := range map[string]string{
		"oacounter=2192":        "do not agree",
		"oacounter=many":        "not a number",
		"c7/value=30":           "do not agree",
		"percounter=30":         "should be 29",
		"saclist=c1 c0":         "in order",
		"germ=-1":               "at random",
		"oklz=0":                "leading zero",
		"origmask=efdk":         "letters only",
		"origmask=exdk":         "'x'",
		"atlast=addx":           "a number",
		"type=dice":             "only rand and seq",
		"shoulder=no prefix":    "--prefix",
		"type=seq\natlast=add3": "one digit",
		"type=seq\natlast=stop\norigmask=d\noacounter=12": "fewer names",
	} {
		rows, _, err := readNOID(t, o, nogState(t, 2191, strings.Split(changes, "\n")...))
		if err != nil || len(rows) != 1 || stele.KindOf(rows[0].Err) != stele.Invalid || !strings.Contains(rows[0].Err.Error(), want) {
			t.Errorf("%q: %v, %v; want %q", changes, lines(rows), err, want)
		}
	}
	for changes, want := range map[string]string{
		"type=seq\natlast=add1\noklz=0\norigmask=d\nmask=ddd\noacounter=205": `"template":".zd"}} at 205`,
		"type=seq\natlast=add1\noklz=0\norigmask=d\nmask=dd\noacounter=4":    `"template":".zd"}} at 10`,
		"type=seq\natlast=stop\noklz=1\norigmask=ddk\noacounter=4":           `"template":".sddk"}} at 4`,
		"type=seq\natlast=wrap\noklz=0\norigmask=dd\noacounter=4":            `"template":".sdd"}} at 10`,
	} {
		rows, _, err := readNOID(t, o, nogState(t, 2191, strings.Split(changes, "\n")...))
		if err != nil || len(rows) != 1 || !strings.HasSuffix(lines(rows)[0], want) {
			t.Errorf("%q: %v, %v; want %s", changes, lines(rows), err, want)
		}
	}
	// Without the word no namespace is made; one that is there keeps its settings.
	rows, report, err := readNOID(t, foreign.Options{}, nogState(t, 5))
	if err != nil || len(rows) != 0 || !strings.Contains(errors.Join(report.Notes...).Error(), "--create-namespaces") {
		t.Errorf("%v, %q, %v", lines(rows), report.Notes, err)
	}
	rows, _, err = readNOID(t, foreign.Options{Find: func(key stele.NamespaceKey) *stele.Namespace {
		return &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Title: "Ours", Owner: "ana"}
	}}, nogState(t, 5))
	if err != nil || len(rows) != 1 || !strings.Contains(lines(rows)[0], `"owner":"ana","title":"Ours","minter"`) {
		t.Errorf("%v, %v", lines(rows), err)
	}
}

// TestNOIDResumes: what was imported before an interruption is passed over, and nothing else.
func TestNOIDResumes(t *testing.T) {
	var text bytes.Buffer
	for i := range 20_000 {
		fmt.Fprintf(&text, "13030/n%05d\tgoto: https://example.org/%d\n", i, i)
	}
	whole, _, err := readNOID(t, foreign.Options{}, text.Bytes())
	if err != nil || len(whole) != 20_000 {
		t.Fatal(len(whole), err)
	}
	o := foreign.Options{System: "noid", Schemes: known, Memory: 100_000, TempDir: t.TempDir()}
	first, err := foreign.Open(opened(t, text.Bytes()), o)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	b, err := first.Next()
	if err != nil {
		t.Fatal(err)
	}
	second, err := foreign.Open(opened(t, text.Bytes()), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.SkipTo(b.End, b.Next); err != nil {
		t.Fatal(err)
	}
	rest, _, err := rowsOf(t, second)
	if err != nil || len(b.Rows)+len(rest) != 20_000 || len(rest) == 0 || rest[0].Record.ID != whole[len(b.Rows)].Record.ID {
		t.Errorf("%d and %d rows, %v", len(b.Rows), len(rest), err)
	}
}

// TestNOIDRefuses: files that can't be read say why.
func TestNOIDRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"hello\n":                                   "does not begin as",
		"VERSION=3\nformat=print\n":                 "ends before HEADER=END",
		"VERSION=2\nHEADER=END\n":                   "only version 3",
		"VERSION=3\nformat=print\nHEADER=END\n a\n": "before DATA=END",
		"VERSION=3\nHEADER=END\n 61\n 62\n":         "before DATA=END",
		"# id: a\n# hexid: 61\n61: 62\n":            "within",
		"{\"template\":":                            "not the state of a minter",
		"{} {}":                                     "more than the state",
	} {
		if rows, _, err := readNOID(t, foreign.Options{}, []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %q", text, lines(rows), err, want)
		}
	}
}

// Any bytes are rows or an error, and no row is both.
func FuzzNOID(f *testing.F) {
	for _, seed := range []string{noidInfo, eggDump, "# id: a\n# hexid: 61\n61: 62\n# elements bound under a: 1\n\n", "VERSION=3\nHEADER=END\n 3a2f74656d706c617465\n 2e7a64\nDATA=END\n"} {
		f.Add([]byte(seed))
	}
	f.Add(nogState(f, 17))
	f.Fuzz(func(t *testing.T, text []byte) {
		rows, _, err := readNOID(t, foreign.Options{Namespaces: true, Admins: true}, text)
		for _, row := range rows {
			if (row.Err == nil) == (row.Record == nil && row.Namespace == nil) {
				t.Fatalf("%+v, %v", row, err)
			}
		}
	})
}

func BenchmarkNOID(b *testing.B) {
	const records = 5000
	var text bytes.Buffer
	for i := range records {
		fmt.Fprintf(&text, "13030/n%05d\t:/c: i|20200102030405|jak|%d\n13030/n%05d\tgoto: https://example.org/objects/%d\n13030/n%05d\ttitle: A report\n", i, i, i, i, i)
	}
	b.ReportAllocs()
	for done := 0; done < b.N; done += records {
		if rows, _, err := readNOID(b, foreign.Options{}, text.Bytes()); err != nil || len(rows) != records {
			b.Fatal(len(rows), err)
		}
	}
}
