package foreign_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
)

// refusedAndRead returns why rows are refused, with their lines, and the names of the records of the others.
func refusedAndRead(t *testing.T, system, prefix, text string) (refused, names []string) {
	t.Helper()
	s, err := foreign.Open(opened(t, []byte(text)), foreign.Options{System: system, Prefix: prefix, Schemes: web(t), TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	rows, _, err := rowsOf(t, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		switch {
		case row.Err != nil:
			refused = append(refused, fmt.Sprintf("%d: %v", row.Line, stele.Reason(row.Err)))
		case row.Record != nil:
			names = append(names, row.Record.ID.String())
		}
	}
	return refused, names
}

// TestTooManyValues checks that a handle with more values than a record can have is refused with one reason, and that what else the
// files do with its values is not followed. What says all of it again counts.
func TestTooManyValues(t *testing.T) {
	table := func(b *strings.Builder, values int) {
		b.WriteString("handle,idx,type,data\n")
		for i := range values {
			fmt.Fprintf(b, "20.500.1/A,%d,X,y\n", i+1)
		}
		b.WriteString("20.500.1/B,1,URL,https://example.org/\n")
	}
	batch := func(b *strings.Builder, adds int) {
		b.WriteString("CREATE 20.500.1/A\n1 X 86400 1110 UTF8 y\n\n")
		for i := range adds {
			fmt.Fprintf(b, "ADD 20.500.1/A\n%d X 86400 1110 UTF8 y\n\n", i+2)
		}
	}
	const other = "CREATE 20.500.1/B\n1 URL 86400 1110 UTF8 https://example.org/\n"
	for _, tt := range []struct {
		name    string
		write   func(b *strings.Builder)
		refused string
		names   int
	}{
		{"as many as can be", func(b *strings.Builder) { table(b, stele.MaxValues) }, "", 2},
		{"one more", func(b *strings.Builder) { table(b, stele.MaxValues+1) }, `2: "20.500.1/A" is left out, because it would have more than 1000 values`, 1},
		{"very many", func(b *strings.Builder) { table(b, 50_000) }, `2: "20.500.1/A" is left out, because it would have more than 1000 values`, 1},
		{"added", func(b *strings.Builder) { batch(b, 50_000); b.WriteString(other) }, `1: "20.500.1/A" is left out, because it would have more than 1000 values`, 1},
		{"added and deleted", func(b *strings.Builder) { batch(b, 2000); b.WriteString("DELETE 20.500.1/A\n\n" + other) }, "", 1},
		{"created again", func(b *strings.Builder) {
			batch(b, 2000)
			b.WriteString("DELETE 20.500.1/A\n\nCREATE 20.500.1/A\n1 X 86400 1110 UTF8 y\n\nADD 20.500.1/A\n2 X 86400 1110 UTF8 y\n\n" + other)
		}, "", 2},
	} {
		var b strings.Builder
		tt.write(&b)
		refused, names := refusedAndRead(t, "handle", "", b.String())
		if got := strings.Join(refused, "\n"); got != tt.refused || len(names) != tt.names {
			t.Errorf("%s: %q, %q", tt.name, refused, names)
		}
	}
}

// TestTooManyChanges checks that a record that is in too many places of the files is refused by itself, with its line, and that the
// records before and after it are read.
func TestTooManyChanges(t *testing.T) {
	const many = 100_001
	for _, tt := range []struct {
		system, prefix, head, row, tail string
		line                            string
		names                           int
	}{
		{"handle", "", "handle,idx,type,data\n20.500.1/A,1,URL,https://example.org/a\n", "20.500.1/B,7,X,y\n", "20.500.1/C,1,URL,https://example.org/c\n", "3: ", 2},
		{"noid", "ark:99999/", "99999/fk4a\tgoto: https://example.org/a\n", "99999/fk4b\tx: y\n", "99999/fk4c\tgoto: https://example.org/c\n", "2: ", 2},
		{"zone", "", "$ORIGIN 1.12345.ark.arpa.\n$TTL 60\n@ SOA . . 1 1 1 1 1\na TXT x\n", "b TXT y\n", "c TXT z\n", "5: ", 0},
		{"purl.org", "", `{"purls":[{"name":"/x/a","type":"302","target":"https://example.org/a"}`, "\n" + `,{"name":"/x/b","type":"302","target":"https://example.org/b"}`,
			`,{"name":"/x/c","type":"302","target":"https://example.org/c"},{"name":"/x/d","type":"clone","target":"/x/a"}]}`, "2: ", 3},
	} {
		refused, names := refusedAndRead(t, tt.system, tt.prefix, tt.head+strings.Repeat(tt.row, many)+tt.tail)
		told := 0
		for _, reason := range refused {
			if strings.Contains(reason, "more than 100000 times, or by more than 268435456 bytes") && strings.HasPrefix(reason, tt.line) {
				told++
			}
		}
		if told != 1 || tt.names > 0 && (len(refused) != 1 || len(names) != tt.names) {
			t.Errorf("%s: %q, %q", tt.system, refused, names)
		}
	}
}

// TestNotesCounted checks that notes beyond those that are listed are counted.
func TestNotesCounted(t *testing.T) {
	text := "INSERT INTO handles (handle, idx, type, data) VALUES ('20.500.1/A', 1, 'URL', 'https://example.org/');\n"
	for i := range 130 {
		text += fmt.Sprintf("INSERT INTO t%d (a) VALUES (1);\n", i)
	}
	_, report, err := readFrom(t, "handle", "", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got := errors.Join(report.Notes...).Error()
	if len(report.Notes) != 101 || !strings.HasSuffix(got, "\n30 more notes like these are not listed; import the files in smaller parts to see all") {
		t.Errorf("%d notes, %s", len(report.Notes), got)
	}
}

// TestNeverAnswersCounted checks the same of directives that never answer.
func TestNeverAnswersCounted(t *testing.T) {
	s := newW3ID(t)
	s.load("w3id", map[string]string{"x/.htaccess": "RewriteEngine on\n" + strings.Repeat("RewriteRule ^a$ https://example.org/a [L]\n", 151)}, foreign.Options{}, bulk.FileOptions{})
	if got := s.told(); strings.Count(got, "never answers, because") != 100 || !strings.Contains(got, "50 more notes like these are not listed") {
		t.Error(got)
	}
}

// TestLongComments checks that a long block of comments is put together once, and kept.
func TestLongComments(t *testing.T) {
	s := newOBO(t)
	text := "idspace: TREE\nbase_url: /obo/tree\nproducts:\n- tree.owl: https://example.org/t\n" + strings.Repeat("#a\n", 30_000)
	var before, after runtime.MemStats
	source := openOBO(t, s, map[string]string{"tree.yml": text}, foreign.Options{Namespaces: true})
	runtime.ReadMemStats(&before)
	b, err := source.Next()
	runtime.ReadMemStats(&after)
	if err != nil || len(b.Rows) != 1 || b.Rows[0].Err != nil {
		t.Fatalf("%v, %+v", err, b)
	}
	kept := 0
	for name, text := range b.Rows[0].Record.Metadata {
		if strings.HasPrefix(name, "obo.comment") {
			kept += strings.Count(text, "a")
		}
	}
	if kept != 30_000 {
		t.Errorf("%d lines of comments are kept", kept)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 200<<20 {
		t.Errorf("%d bytes of memory were taken for a file of %d", took, len(text))
	}
}
