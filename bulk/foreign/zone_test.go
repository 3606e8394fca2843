package foreign_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele/bulk/foreign"
)

// TestZoneParadisec reads the zone that the publisher writes of PARADISEC's names: each name comes back with its targets.
func TestZoneParadisec(t *testing.T) {
	text, err := os.ReadFile("../../publish/testdata/paradisec.zone")
	if err != nil {
		t.Fatal(err)
	}
	rows, report, err := readDOIs(t, "zone", foreign.Options{}, text)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`{"id":"urn:paradisec:ab1:001:a","targets":[{"url":"http://catalog.example.org/repository/AB1/001/A","type":"text/html"},{"url":"http://catalog.example.org/repository/AB1/001/A.wav","type":"audio/wav","preference":20},` +
		`{"url":"ftp://ftp.example.org/AB1-001-A.mp3","type":"audio/mpeg","preference":30},{"service":"N2C","url":"http://catalog.example.org/repository/AB1/001/A.json","type":"application/ld+json","preference":40},` +
		`{"service":"N2S","url":"http://catalog.example.org/repository/AB1/001/A.sig","preference":50},{"service":"N2P","url":"http://catalog.example.org/repository/AB1/001/A/persistence","preference":60}],` +
		`"persistence":{"level":"unchanging","until":"2060-01-01","statement":"Kept byte for byte."}}`}
	if diff := cmp.Diff(want, lines(rows)); diff != "" {
		t.Error(diff)
	}
	if len(report.Notes) != 1 || !strings.HasSuffix(report.Notes[0].Error(), ": A 1, AAAA 1, NAPTR 3, NS 2, SOA 1, SRV 1") {
		t.Error(report.Notes)
	}
	// Where rules do not have the identifier, the rule at the beginning of the zone says how to make it of the owner name.
	short := strings.ReplaceAll(string(text), "!^urn:paradisec:ab1:001:a$!", "!.*!")
	if rows, _, err = readDOIs(t, "zone", foreign.Options{}, []byte(short)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, lines(rows)); diff != "" {
		t.Error(diff)
	}
}

// TestZone reads what stands in master files: directives, names that are not absolute or left out, records over several lines.
func TestZone(t *testing.T) {
	text := `; a remark
$ORIGIN example.org.
$TTL 1h
@ IN SOA ns1 host ( 1 3600 ; serial
   600 1209600
   300 )
@ NS ns1
ns1 A 192.0.2.1
a.b	7200 IN NAPTR 100 10 "u" "http+N2L+N2R" "!^.*$!https://example.org/a;1!" .
	IN TXT "some words" "and; others"
www CNAME a.b
A.B URI 20 1 "https://example.org/other"
$ORIGIN sub.example.org.
c IN URI 10 1 "https://example.org/c"
d NAPTR 100 10 "RES:https" "N2L:text/html+N2C:text/turtle" "!^urn:example:d[.]x$!https://example.org/d!i" .
d NAPTR 100 50 "" "E2U+sip" "!^.*$!sip:d@example.org!" .
e NAPTR 100 10 "u" "http+N2L" "!^urn:example:e$!https://example.org/e!" .
e NAPTR 100 20 "u" "http+N2L" "!^urn:example:E2$!https://example.org/e!" .
f NAPTR 100 10 "u"
g TXT "unclosed
$INCLUDE other.zone
$GENERATE 1-9 h$ A 192.0.2.$
i.other.example. URI 10 1 "https://example.org/i"
`
	rows, report, err := readDOIs(t, "zone", foreign.Options{Prefix: "urn:example:"}, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"20: import: a quotation mark or a parenthesis has no counterpart",
		"21: import: the file that $INCLUDE names is not read; import it too, with its $ORIGIN at its beginning",
		"22: import: $GENERATE can't be followed; write out what it stands for",
		`{"id":"urn:example:b:a","targets":[{"url":"https://example.org/a;1","ttl":7200},{"url":"https://example.org/other","preference":20}],"metadata":{"zone.txt":"some words and; others"}}`,
		`{"id":"urn:example:sub:c","targets":[{"url":"https://example.org/c"}]}`,
		`{"id":"urn:example:d.x","targets":[{"url":"https://example.org/d","type":"text/html"},{"service":"N2C","url":"https://example.org/d","type":"text/turtle"}],"metadata":{"zone.naptr":"100 50 \"\" \"E2U+sip\" \"!^.*$!sip:d@example.org!\" ."}}`,
		"17: import: the rules at e.sub.example.org. are for urn:example:e and for urn:example:E2; one record can't be both. Give each a file of its own",
		"19: import: a record of f.sub.example.org. can't be read",
		"23: import: i.other.example. is not below the zone example.org.",
		`{"id":"urn:example:www","metadata":{"zone.cname":"a.b.example.org."}}`,
	}
	got := lines(rows)
	if len(got) != len(want) {
		t.Fatalf("%d rows: %s", len(got), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("row %d: %s, want %s", i, got[i], want[i])
		}
	}
	if len(report.Notes) != 1 || !strings.HasSuffix(report.Notes[0].Error(), ": A 1, NS 1, SOA 1") {
		t.Error(report.Notes)
	}
	// What is rejected can stand in a file of its own.
	again, _, err := readDOIs(t, "zone", foreign.Options{Prefix: "urn:example:"}, append([]byte("# line 17: wrong\n"), rows[6].Later()...))
	if err != nil || len(again) != 1 || !strings.Contains(again[0].Err.Error(), "one record can't be both") {
		t.Errorf("%v: %q", err, lines(again))
	}
	// Without a prefix a name that no rule has is rejected.
	rows, _, err = readDOIs(t, "zone", foreign.Options{}, []byte("$ORIGIN example.org.\n@ SOA a b 1 2 3 4 5\na URI 10 1 \"https://example.org/\"\n"))
	if err != nil || len(rows) != 1 || rows[0].Err == nil || !strings.Contains(rows[0].Err.Error(), "--prefix") {
		t.Errorf("%v: %q", err, lines(rows))
	}
	if _, _, err := readDOIs(t, "zone", foreign.Options{}, []byte("$ORIGIN example.org.\n@ SOA (\n1")); err == nil || !strings.Contains(err.Error(), "ends within the record that begins at line 2") {
		t.Error(err)
	}
}

// TestZoneTexts: TXT records add to each other, and what has no place in a record is kept.
func TestZoneTexts(t *testing.T) {
	long := "reason=" + strings.Repeat("x", 248)
	short := "statement=" + strings.Repeat("y", 243) // 253 bytes: a character of three bytes does not fit
	text := "$ORIGIN example.org.\n@ SOA a b 1 2 3 4 5\n" +
		`a TXT "persistence=unchanging" "v=spf1 -all"` + "\n" +
		`b TXT "reason=moved" "replacement=urn:example:c"` + "\n" +
		`c TXT "persistence=unchanging"` + "\n" + `c TXT "until=2060-01-01"` + "\n" + `c TXT "until=2070-01-01" "reason=none"` + "\n" +
		`d TXT "withdrawn=2020-01-02T03:04:05Z" "` + long + `" "replacement" "replacement=urn:example:e"` + "\n" + `d TXT "withdrawn=2021-01-02T03:04:05Z"` + "\n" +
		`e TXT "` + short + `" "` + "\u20ac" + `" "z"` + "\n" +
		`f TXT "withdrawn=once"` + "\n"
	rows, _, err := readDOIs(t, "zone", foreign.Options{Prefix: "urn:example:"}, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		`{"id":"urn:example:a","metadata":{"zone.txt":"v=spf1 -all"},"persistence":{"level":"unchanging"}}`,
		`{"id":"urn:example:b","metadata":{"zone.txt":"reason=moved replacement=urn:example:c"}}`,
		`{"id":"urn:example:c","metadata":{"zone.txt":"until=2070-01-01 reason=none"},"persistence":{"level":"unchanging","until":"2060-01-01"}}`,
		`{"id":"urn:example:d","state":"withdrawn","tombstone":{"reason":"` + long[7:] + `replacement","at":"2020-01-02T03:04:05Z"},"metadata":{"zone.replacement":"urn:example:e","zone.txt":"withdrawn=2021-01-02T03:04:05Z"}}`,
		`{"id":"urn:example:e","metadata":{"zone.txt":"z"},"persistence":{"statement":"` + short[10:] + "\u20ac" + `"}}`,
		`{"id":"urn:example:f","state":"withdrawn","tombstone":{"reason":"withdrawn; the zone gives no reason"},"metadata":{"zone.txt":"withdrawn=once"}}`,
	}, lines(rows)); diff != "" {
		t.Error(diff)
	}
}

// TestZoneTypes: types of records are words of the file, and a file may have any number of them.
func TestZoneTypes(t *testing.T) {
	var b strings.Builder
	b.WriteString("$ORIGIN example.org.\n@ SOA a b 1 2 3 4 5\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "n TYPE%d x\nn TYPE1 x\n", i)
	}
	_, report, err := readDOIs(t, "zone", foreign.Options{Prefix: "urn:example:"}, []byte(b.String()))
	if err != nil || len(report.Notes) != 1 {
		t.Fatal(report.Notes, err)
	}
	note := report.Notes[0].Error()
	if strings.Count(note, "TYPE") != 49 || !strings.Contains(note, "TYPE1 1001,") || !strings.HasSuffix(note, ", other 951") {
		t.Error(note)
	}
}

// TestZoneOrigins: origins that are relative to each other do not grow without bound, since each record is kept with its origin.
func TestZoneOrigins(t *testing.T) {
	var b strings.Builder
	b.WriteString("$ORIGIN example.org.\n@ SOA a b 1 2 3 4 5\n")
	for range 1000 {
		b.WriteString("$ORIGIN " + strings.Repeat("a", 50) + "\nn TXT x\n")
	}
	b.WriteString(strings.Repeat("b.", 600) + " TXT x\n")
	rows, _, err := readDOIs(t, "zone", foreign.Options{Prefix: "urn:example:"}, []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, row := range rows {
		if row.Err != nil && strings.Contains(row.Err.Error(), "longer than a domain name can be") {
			refused++
		} else if len(row.Text) > 1<<21 {
			t.Errorf("a row has %d bytes", len(row.Text))
		}
	}
	if refused < 980 {
		t.Errorf("%d of %d rows are refused", refused, len(rows))
	}
}

func TestZoneResumes(t *testing.T) {
	var b strings.Builder
	b.WriteString("$ORIGIN example.org.\n$TTL 300\n@ SOA a b 1 2 3 4 5\n")
	for i := range 2000 {
		fmt.Fprintf(&b, "n%d NAPTR 100 10 \"u\" \"http+N2L\" \"!^urn:example:n%d$!https://example.org/%s/%d!\" .\n", i, i, strings.Repeat("x", 180), i)
	}
	continues(t, "zone", foreign.Options{}, []byte(b.String()))
}

func FuzzZone(f *testing.F) {
	for _, text := range []string{"$ORIGIN a.\n@ SOA a b 1 2 3 4 5\nx URI 1 1 \"https://example.org/\"\n", "x.a. NAPTR 1 1 \"u\" \"http+N2L\" \"!^urn:a:x$!https://b.example/!\" .", "$TTL 1h1\n( a", "a. TXT \"\\\"\n", "$ORIGIN .\na NAPTR 1 1 \"\" \"\" \"!^urn:a:([-_a-z0-9]{1,38})$!\\\\1.a.!i\" .", "_a._b.c. NAPTR 1 1 \"\" \"\" \"!.{9999999}([-_!\\\\1.!i\" ."} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rows, _, _ := readDOIs(t, "zone", foreign.Options{Format: foreign.ZoneFile, Prefix: "urn:example:"}, []byte(text))
		for _, row := range rows {
			if (row.Record == nil) == (row.Err == nil) {
				t.Fatalf("a row without record and error: %+v", row)
			}
		}
	})
}
