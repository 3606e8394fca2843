package foreign_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
	"github.com/stele-id/stele/internal/recordtest"
	"github.com/stele-id/stele/scheme/all"
)

func schemes() *stele.Schemes {
	s, err := all.New(all.Config{Now: func() time.Time { return time.Unix(1_800_000_000, 0) }})
	if err != nil {
		panic(err)
	}
	return s
}

var known = schemes()

// opened opens files of testdata, or texts.
func opened(t testing.TB, texts ...any) (files []*bulk.File) {
	t.Helper()
	for _, text := range texts {
		var f *bulk.File
		var err error
		switch text := text.(type) {
		case string:
			f, err = bulk.OpenFile(filepath.Join("testdata", text))
		case []byte:
			f, err = bulk.NewFile("it", bytes.NewReader(text))
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		files = append(files, f)
	}
	return files
}

// read reads all rows.
func read(t testing.TB, o foreign.Options, texts ...any) ([]bulk.Row, foreign.Report, error) {
	t.Helper()
	o.Schemes, o.System = known, "handle"
	s, err := foreign.Open(opened(t, texts...), o)
	if err != nil {
		return nil, foreign.Report{}, err
	}
	defer s.Close()
	var rows []bulk.Row
	for {
		b, err := s.Next()
		if err == io.EOF {
			return rows, s.Report(), nil
		}
		if err != nil {
			return rows, s.Report(), err
		}
		s.Parse(b)
		rows = append(rows, b.Rows...)
	}
}

// good reads all rows, and fails if one is refused.
func good(t testing.TB, o foreign.Options, texts ...any) (records []*stele.Record, namespaces []string) {
	t.Helper()
	rows, _, err := read(t, o, texts...)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		switch {
		case row.Err != nil:
			t.Errorf("line %d: %v", row.Line, row.Err)
		case row.Namespace != nil:
			namespaces = append(namespaces, row.Namespace.Prefix)
		default:
			records = append(records, row.Record)
		}
	}
	return records, namespaces
}

// The data set of the reference implementation gives the same records in each form.
func TestForms(t *testing.T) {
	at := time.Unix(1_700_000_000, 0).UTC()
	id, err := known.Parse("hdl:20.500.99999/ABC-1")
	if err != nil {
		t.Fatal(err)
	}
	want := &stele.Record{
		ID: id, State: stele.Active, Created: at, Modified: at,
		Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/1", Order: 100, Preference: 10, TTL: 86400}},
		Values: []stele.HandleValue{
			{Index: 1, Type: "URL", Data: []byte("https://example.org/1"), TTL: 86400, Timestamp: 1_700_000_000, Permissions: stele.DefaultPermissions},
			{Index: 2, Type: "EMAIL", Data: []byte("a@example.org"), TTL: 86400, Timestamp: 1_700_000_000, Permissions: stele.DefaultPermissions,
				References: []stele.HandleReference{{Handle: "20.500.99999/X\tY%é", Index: 7}}},
		},
	}
	handles, nas := jdbFiles(t)
	for name, files := range map[string][]any{
		"JDB": {handles, nas}, "log over JDB": {"dbtxns.log", nas, handles}, "hdl-dblist": {[]byte(listing), "nas.dump"}, "CSV": {[]byte(prefixesCSV), []byte(tableCSV)},
		"json": {"export.json"}, "dumps": {"handles.dump", "nas.dump"}, "log": {"dbtxns.log"}, "log over dumps": {"dbtxns.log", "nas.dump", "handles.dump"},
		"COPY": {"pgcopy.sql"}, "INSERT": {"pginsert.sql"}, "MySQL": {"mysql.sql"}, "MySQL with --hex-blob": {"mysqlhex.sql"}, "batch": {"batch.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, memory := range []int{0, 1} { // in memory, and in temporary files
				records, namespaces := good(t, foreign.Options{Namespaces: true, Memory: memory, TempDir: t.TempDir()}, files...)
				want := *want
				if name == "batch" { // which has neither timestamps nor references
					want.Created, want.Modified = time.Time{}, time.Time{}
					want.Values = []stele.HandleValue{want.Values[0], want.Values[1]}
					want.Values[0].Timestamp, want.Values[1].Timestamp, want.Values[1].References = 0, 0, nil
				}
				if diff := cmp.Diff([]*stele.Record{&want}, records, recordtest.Same); diff != "" {
					t.Errorf("the records differ: %s", diff)
				}
				if diff := cmp.Diff([]string{"20.500.99999/"}, namespaces); diff != "" {
					t.Errorf("the namespaces differ: %s", diff)
				}
			}
		})
	}
}

// TestDetect: the beginning of a file says what it is; CREATE begins a batch file and a dump.
func TestDetect(t *testing.T) {
	for text, want := range map[string]foreign.Format{
		"CREATE 20.500.1/A\n1 URL 60 1110 UTF8 https://example.org/\n": foreign.Batch,
		"create table.1/A\n1 URL 60 1110 UTF8 https://example.org/\n":  foreign.Batch,
		"CREATE TABLE nas (na text);\n":                                foreign.SQL,
		"create temporary table handles (handle text);\n":              foreign.SQL,
		"CREATE TABLE\n  nas (na text);\n":                             foreign.SQL,
		"CREATE DATABASE hs;\nUSE hs;\n":                               foreign.SQL,
	} {
		s, err := foreign.Open(opened(t, []byte(text)), foreign.Options{System: "handle", Schemes: schemes()})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Kinds()[0]; got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// TestHomed: a prefix that is homed and unhomed many times is homed as the last one says, and is one namespace.
func TestHomed(t *testing.T) {
	var b strings.Builder
	for range 1000 {
		b.WriteString("HOME 192.0.2.1:2641:TCP\n0.NA/20.500.1\n0.na/20.500.2\n\nUNHOME 192.0.2.1:2641:TCP\n0.NA/20.500.2\n\nHOME 192.0.2.1:2641:TCP\n0.NA/20.500.3\n\n")
	}
	if _, namespaces := good(t, foreign.Options{Namespaces: true}, []byte(b.String())); !slices.Equal(namespaces, []string{"20.500.1/", "20.500.3/"}) {
		t.Errorf("the namespaces are %q", namespaces)
	}
}

// An import that was interrupted continues after what it has, in each form.
func TestResume(t *testing.T) {
	dump := func(n int) []byte {
		var b bytes.Buffer
		b.WriteString("VERSION=3\nformat=bytevalue\ntype=btree\ndupsort=0\nHEADER=END\n")
		whole, err := os.ReadFile("testdata/handles.dump")
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(whole), "\n")
		for i := range n {
			b.WriteString(" " + hexed(name(i)) + "\n" + lines[6] + "\n")
		}
		b.WriteString("DATA=END\n")
		return b.Bytes()
	}
	export := func(n int) []byte {
		var b bytes.Buffer
		b.WriteString(`{"homedPrefixes":["0.NA/20.500.99999"],"handleRecords":{`)
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString("\n\"" + name(i) + `": {"handle":"` + name(i) + `","values":[{"index":1,"type":"URL","data":"https://example.org/` + strings.Repeat("x", 200) + `"}]}`)
		}
		b.WriteString("}, \"later\": [1,{\"a\":\"}\"}]}\n")
		return b.Bytes()
	}
	batch := func(n int) []byte {
		var b bytes.Buffer
		for i := range n {
			b.WriteString("CREATE " + name(i) + "\n1 DESC 86400 1110 UTF8 " + strings.Repeat("x", 200) + "\n\n")
		}
		return b.Bytes()
	}
	jdb := func(n int) []byte {
		keys, data := make([]string, n), make([]string, n)
		for i := range keys {
			keys[i], data[i] = name(i), storedValues(t)
		}
		return jdbFile(5000, keys, data)
	}
	dblist := func(n int) []byte {
		var b bytes.Buffer
		for i := range n {
			b.WriteString(strings.Replace(listing, "20.500.99999/ABC-1", name(i), 1))
		}
		return b.Bytes()
	}
	for form, text := range map[string][]byte{"jdb": jdb(4000), "dblist": dblist(4000), "dump": dump(4000), "json": export(4000), "batch": batch(4000)} {
		t.Run(form, func(t *testing.T) {
			whole, _ := good(t, foreign.Options{}, text)
			if len(whole) != 4000 {
				t.Fatalf("%d records", len(whole))
			}
			var got []*stele.Record
			end, line := int64(0), 0
			for {
				s, err := foreign.Open(opened(t, text), foreign.Options{System: "handle", Schemes: known})
				if err != nil {
					t.Fatal(err)
				}
				if end > 0 {
					if err := s.SkipTo(end, line); err != nil {
						t.Fatal(err)
					}
				}
				b, err := s.Next()
				if err == io.EOF {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				s.Parse(b)
				for _, row := range b.Rows {
					if row.Err != nil {
						t.Fatal(row.Err)
					}
					got = append(got, row.Record)
				}
				end, line = b.End, b.Next
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if len(got) != len(whole) {
				t.Fatalf("%d records, want %d", len(got), len(whole))
			}
			for i := range got {
				if !cmp.Equal(got[i], whole[i], recordtest.Same) {
					t.Fatalf("record %d differs", i)
				}
			}
		})
	}
}

func name(i int) string { return "20.500.99999/N" + strings.Repeat("0", 6-len(digits(i))) + digits(i) }

func digits(i int) string {
	if i < 10 {
		return string(rune('0' + i))
	}
	return digits(i/10) + digits(i%10)
}

func hexed(text string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	for _, c := range []byte(text) {
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}

// Rights and secrets are left out and counted, unless they are asked for.
func TestLeftOut(t *testing.T) {
	seeds, err := os.ReadFile("../../document/handlejson/testdata/seed-records.json")
	if err != nil {
		t.Fatal(err)
	}
	count := func(rows []bulk.Row, kind string) (n int) {
		for _, row := range rows {
			if row.Record == nil {
				t.Errorf("line %d: %v", row.Line, row.Err)
				continue
			}
			for _, v := range row.Record.Values {
				if v.Type == kind {
					n++
				}
			}
			if text := row.Later(); bytes.Contains(text, []byte("s3cret")) || !bytes.Contains(text, []byte(`{"handle":`)) {
				t.Errorf("the text of a row is %s", text)
			}
		}
		return n
	}
	for _, tt := range []struct {
		o              foreign.Options
		admins, secret int64
	}{
		{foreign.Options{}, 10, 2}, {foreign.Options{Admins: true}, 0, 2}, {foreign.Options{Secrets: true}, 10, 0}, {foreign.Options{Admins: true, Secrets: true}, 0, 0},
	} {
		rows, report, err := read(t, tt.o, seeds)
		if err != nil {
			t.Fatal(err)
		}
		if report.Admins != tt.admins || report.Secrets != tt.secret || len(report.Missing) != 3 {
			t.Errorf("%+v: left out %+v", tt.o, report)
		}
		if got := count(rows, "HS_SECKEY"); int64(got)+tt.secret != 2 {
			t.Errorf("%+v: %d secrets", tt.o, got)
		}
		if got := count(rows, "HS_ADMIN") + count(rows, "HS_VLIST") + count(rows, "HS_PUBKEY"); int64(got)+tt.admins != 10 {
			t.Errorf("%+v: %d values with rights", tt.o, got)
		}
	}
}

// What can't be done with a record is told for that record, and the others are read.
func TestRefusedRows(t *testing.T) {
	long := strings.Repeat("x", stele.MaxData+1)
	for _, tt := range []struct{ text, want string }{
		{`{"handleRecords":{"20.500.1/A":{"handle":"20.500.1/B","values":[]},"20.500.1/C":{"values":[]}}}`, "stands under the name 20.500.1/A"},
		{`{"handleRecords":{"20.500.1/A":{"values":[{"index":1,"type":"X","data":"` + long + `"}]},"20.500.1/C":{"values":[]}}}`, "values[0].data: has 65537 bytes"},
		{`{"handleRecords":{"A":{"values":[]},"20.500.1/C":{"values":[]}}}`, `there is no "/"`},
		{`{"handleRecords":{"20.500.1/A":{"values":[{"index":1,"type":"X","data":{"format":"x","value":[1,"}"]}}]},"20.500.1/C":{"values":[]}}}`, `the unknown format "x"`},
		{"{\"handle\":\"20.500.1/C\",\"values\":[]}\n# line 7: wrong\n{\"values\":[]}\n", "has no name"},
		{"CREATE 20.500.1/A\n1 URL 86400 1110 FILE /etc/passwd\n\nCREATE 20.500.1/C\n1 X 1 1110 UTF8 y\n", "/etc/passwd, which is not read"},
		{"CREATE 20.500.1/A\n1 URL 86400\n2 X 1 1110 UTF8 y\n\nCREATE 20.500.1/C\n1 X 1 1110 UTF8 y\n", "line 2: the permissions of the value 1"},
		{"CREATE 20.500.1/C\n1 X 1 1110 UTF8 y\n\nADD 20.500.1/A\n1 X 1 1110 UTF8 y\n", "ADD 20.500.1/A: this file does not create that handle"},
		{"CREATE 20.500.1/C\n1 X 1 1110 UTF8 y\n\nADD 20.500.1/C\n1 X 1 1110 UTF8 y\n", "has a value 1 already"},
		{"CREATE 20.500.1/C\n1 X 1 1110 UTF8 y\n\nREMOVE 7:20.500.1/C\n", "REMOVE 20.500.1/C: the handle has no value 7"},
		{"CREATE 20.500.1/C\n1 X 1 1110 UTF8 y\n\nCREATE 20.500.1/C\n1 X 1 1110 UTF8 z\n", "is there already"},
		{"VERSION=3\nformat=bytevalue\nHEADER=END\n " + hexed("20.500.1/A") + "\n 00000001\n " + hexed("20.500.1/C") + "\n 00000000\nDATA=END\n", `the values of "20.500.1/A" can't be read`},
		{"VERSION=3\nformat=bytevalue\nHEADER=END\n xyz\n 00000001\n " + hexed("20.500.1/C") + "\n 00000000\nDATA=END\n", "hexadecimal"},
		{"INSERT INTO handles VALUES ('20.500.1/A',1,'X','y',0,1,1,'7',true,true,true,false),('20.500.1/C',1,'X','y',0,1,1,NULL,true,true,true,false);", "refs is not a list"},
		{"INSERT INTO handles VALUES ('20.500.1/A',1,'X','y'),('20.500.1/C',1,'X','y',0,1,1,NULL,true,true,true,false);", "4 values for 12 columns"},
	} {
		rows, _, err := read(t, foreign.Options{}, []byte(tt.text))
		if err != nil {
			t.Errorf("%.80s: %v", tt.text, err)
			continue
		}
		bad, records := "", ""
		for _, row := range rows {
			if row.Err != nil {
				bad += row.Err.Error() + "\n"
			} else {
				records += row.Record.ID.String() + " "
			}
		}
		if !strings.Contains(bad, tt.want) || records != "20.500.1/C " {
			t.Errorf("%.100s:\ngot  %s, %s\nwant %s", tt.text, records, bad, tt.want)
		}
	}
}

// A file that is not whole is refused, after what could be read of it.
func TestRefusedFiles(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"<html>", "name its format with --format"},
		{`{"handleRecords":{"20.500.1/A":{"values":[]}`, "a comma or }"},
		{`{"handleRecords":{"20.500.1/A":{"values":[`, "ends within line 1"},
		{`{"handleRecords":[]}`, "an object should stand here"},
		{"{\"handle\":\"20.500.1/A\",\"values\":[]}\x00{}", "a record in braces should stand here"},
		{"{\"handleRecords\":{}}\x00", "the end of the file should stand here"},
		{`{"homedPrefixes":{}}`, "not a list of strings"},
		{`{"handleRecords":{}} x`, "the end of the file should stand here"},
		{"VERSION=3\nformat=print\nHEADER=END\n", "only bytevalue is known"},
		{"VERSION=3\nformat=bytevalue\nHEADER=END\n 00\n", "before DATA=END"},
		{"VERSION=2\nHEADER=END\n", "only version 3 is known"},
		{"n\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff", "is not a log of transactions at its entry 1"},
		{"CREATE 20.500.1/A\n\nFROB x\n", `"FROB" is not a command`},
		{"INSERT INTO handles VALUES ('x", "a string begins at line 1"},
		{"COPY handles (handle, idx) FROM stdin;\n", "type is not among them"},
		{"COPY nas (na) FROM stdin;\nx\n", "within the rows of nas"},
		{"/* x", "a comment begins at line 1"},
		{"INSERT INTO handles VALUES ('20.500.1/A',1,'X','y',0,1,1,NULL,true,true,true,false)", "is cut off"},
		{"INSERT INTO handles VALUES ('20.500.1/A',1,'X','y',0,1,1,NULL,true,true,true,false),", "is cut off"},
		{"INSERT INTO handles", "is cut off"},
		{"INSERT IGNORE", "is cut off"},
		{"--\nCREATE TABLE handles (handle bytea, idx", "is cut off"},
		{"--\nCREATE TABLE handles (handle bytea)", "is cut off"},
		{"COPY handles (handle, idx, type, data) FROM stdin", "is cut off"},
		{"SET x = 1", "is cut off"},
		{"SELECT $$ x;", "is cut off"},
	} {
		_, _, err := read(t, foreign.Options{}, []byte(tt.text))
		if err == nil || stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q:\ngot  %v\nwant %s", tt.text, err, tt.want)
		}
	}
	if _, _, err := read(t, foreign.Options{}, "dbtxns.log", "export.json"); err == nil {
		t.Error("an export is read with a log")
	}
}

// Tables and columns of other names are read with a map.
func TestMap(t *testing.T) {
	o := foreign.Options{Map: map[string]string{"pids": "handles", "name": "handle", "payload": "data"}}
	records, _ := good(t, o, []byte("COPY public.pids (name, idx, type, payload) FROM stdin;\n20.500.1/A\t1\tURL\thttps://example.org/\n\\.\n"))
	if len(records) != 1 || string(records[0].Values[0].Data) != "https://example.org/" {
		t.Errorf("read %v", records)
	}
}

func fuzz(f *testing.F, format foreign.Format, seeds ...string) {
	var texts [][]byte
	for _, seed := range seeds {
		text, err := os.ReadFile(filepath.Join("testdata", seed))
		if err != nil {
			f.Fatal(err)
		}
		texts = append(texts, text)
	}
	fuzzTexts(f, format, texts...)
}

func fuzzTexts(f *testing.F, format foreign.Format, seeds ...[]byte) {
	for _, text := range seeds {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		rows, _, err := read(t, foreign.Options{Format: format, Admins: true, Secrets: true, Namespaces: true, TempDir: t.TempDir()}, text)
		if err != nil {
			if _, ok := errors.AsType[*stele.Error](err); !ok {
				t.Errorf("an error of another kind: %v", err)
			}
		}
		for _, row := range rows {
			if row.Err == nil && row.Namespace == nil && row.Record.Validate() != nil {
				t.Errorf("a record that is not valid: %+v", row.Record)
			}
		}
	})
}

func FuzzJSON(f *testing.F) { fuzz(f, foreign.JSON, "export.json") }
func FuzzDump(f *testing.F) { fuzz(f, foreign.Dump, "handles.dump", "nas.dump") }
func FuzzLog(f *testing.F)  { fuzz(f, foreign.Log, "dbtxns.log") }
func FuzzSQL(f *testing.F) {
	fuzz(f, foreign.SQL, "pgcopy.sql", "pginsert.sql", "mysql.sql", "mysqlhex.sql")
}
func FuzzBatch(f *testing.F) { fuzz(f, foreign.Batch, "batch.txt") }
