package foreign_test

import (
	"strings"
	"testing"

	"github.com/stele-id/stele/bulk/foreign"
)

// Many names that give no row, one after the other, do not end an import.
func TestLongGap(t *testing.T) {
	const gone = 8000
	var batch, dump strings.Builder
	dump.WriteString("VERSION=3\nformat=bytevalue\nHEADER=END\n")
	for i := range gone {
		batch.WriteString("CREATE " + name(i) + "\n1 X 1 1110 UTF8 y\n\nDELETE " + name(i) + "\n\n")
		dump.WriteString(" " + hexed("0.NA/20.500.99999."+digits(i)) + "\n \n")
	}
	batch.WriteString("CREATE " + name(gone) + "\n1 X 1 1110 UTF8 y\n")
	dump.WriteString(" " + hexed(name(gone)) + "\n 00000000\nDATA=END\n")
	for form, text := range map[string]string{"batch": batch.String(), "dump": dump.String()} {
		records, _ := good(t, foreign.Options{Has: func(string) bool { return true }}, []byte(text))
		if len(records) != 1 || records[0].ID.String() != name(gone) {
			t.Errorf("%s: read %v, want %s", form, records, name(gone))
		}
	}
}

// A record of escapes is read in linear time: with quadratic work this takes longer than a test may.
func TestEscapes(t *testing.T) {
	text := `{"handleRecords":{"20.500.1/A":{"values":[],"x":"` + strings.Repeat(`\\a`, 8<<20) + `"}}}`
	if _, _, err := read(t, foreign.Options{}, []byte(text)); err != nil {
		t.Error(err)
	}
}

// Names that are not UTF-8 are not taken for one another.
func TestNamesNotUTF8(t *testing.T) {
	rows, _, err := read(t, foreign.Options{}, []byte("CREATE 20.500.1/a\xff\n1 X 1 1110 UTF8 y\n\nCREATE 20.500.1/a\xfe\n1 X 1 1110 UTF8 y\n"))
	if err != nil || len(rows) != 2 {
		t.Fatalf("%v, %v", rows, err)
	}
	for _, row := range rows {
		if row.Err == nil || !strings.Contains(row.Err.Error(), "is not UTF-8") {
			t.Errorf("line %d: %v", row.Line, row.Err)
		}
	}
}

// A record of which a part can't be read is refused as a whole, unless a later part says all of it.
func TestIncompleteRecords(t *testing.T) {
	entry := func(action byte, name, data string) string {
		size := func(s string) string { return string([]byte{0, 0, byte(len(s) >> 8), byte(len(s))}) + s }
		return "n" + string([]byte{action}) + "\x00\x00\x00\x00\x00\x00\x00\x00" + size(name) + size(data)
	}
	const empty, bad = "\x00\x00\x00\x00", "\x00\x00\x00\x01"
	insert := func(rows ...string) string { return "INSERT INTO handles VALUES " + strings.Join(rows, ",") + ";" }
	const good, wrong, short = "('20.500.1/A',1,'X','y',0,1,1,NULL,true,true,true,false)", "('20.500.1/A',2,'X','y',0,1,1,'7',true,true,true,false)", "('20.500.1/A',2,'X')"
	long := "20.500.1/A\t2\tX\t" + strings.Repeat("x", 17<<20) + "\n"
	for what, tt := range map[string]struct {
		text    string
		records int
		faults  int
	}{
		"a log that ends with a fault":    {entry(0, "20.500.1/A", empty) + entry(0, "20.500.1/A", bad), 0, 2},
		"a log that sets it later":        {entry(0, "20.500.1/A", bad) + entry(0, "20.500.1/A", empty), 1, 1},
		"a log that deletes it later":     {entry(0, "20.500.1/A", bad) + entry(1, "20.500.1/A", ""), 0, 1},
		"a row of SQL with a bad value":   {insert(good, wrong), 0, 2},
		"a row of SQL that is too short":  {insert(short, good), 0, 2},
		"a line of COPY that is too long": {"COPY handles (handle, idx, type, data) FROM stdin;\n20.500.1/A\t1\tX\ty\n" + long + "\\.\n", 0, 2},
		"a batch that adds nonsense":      {"CREATE 20.500.1/A\n1 X 1 1110 UTF8 y\n\nADD 20.500.1/A\n2 X\n", 0, 2},
		"a batch that creates it again":   {"CREATE 20.500.1/A\n1 X\n\nDELETE 20.500.1/A\n\nCREATE 20.500.1/A\n1 X 1 1110 UTF8 y\n", 1, 1},
		"many faults":                     {insert(good, strings.Repeat(wrong+",", 300)+wrong), 0, 102},
	} {
		rows, _, err := read(t, foreign.Options{}, []byte(tt.text))
		records, faults, more := 0, 0, false
		for _, row := range rows {
			if row.Err == nil {
				records++
				continue
			}
			faults++
			more = more || strings.Contains(row.Err.Error(), "201 more things")
		}
		if err != nil || records != tt.records || faults != tt.faults || more != (faults > 100) {
			t.Errorf("%s: %d records, %d faults, %t, %v", what, records, faults, more, err)
		}
	}
}

// What a dump is of is known by what it does, not by what it mentions.
func TestDialects(t *testing.T) {
	const row = `('20.500.1/A',1,'X','a\nb',0,1,1,NULL,true,true,true,false);`
	for text, want := range map[string]string{
		"-- PostgreSQL database dump\n-- moved from MySQL\nINSERT INTO handles VALUES " + row:                         `a\nb`,
		"-- from MySQL\nCREATE TABLE other (x bytea);\nINSERT INTO handles VALUES " + row:                             `a\nb`,
		"-- from MySQL\nCOPY public.other (x) FROM stdin;\n`\n\\.\nINSERT INTO handles VALUES " + row:                 `a\nb`,
		"-- see `handles`\nINSERT INTO other VALUES ('`');\nINSERT INTO handles VALUES " + row:                        `a\nb`,
		"-- MySQL dump 10.13\nINSERT INTO handles VALUES " + row:                                                      "a\nb",
		"/*M!999999\\- enable the sandbox mode */\n-- MariaDB dump 10.19\nINSERT INTO `handles` VALUES " + row:        "a\nb",
		"-- a dump\nINSERT INTO `handles` VALUES " + row:                                                              "a\nb",
		"-- a dump\nINSERT INTO `handles` VALUES ('20.500.1/A',1,'X','PostgreSQL database dump',0,1,1,'',1,1,1,0);\n": "PostgreSQL database dump",
	} {
		records, _ := good(t, foreign.Options{}, []byte(text))
		if len(records) != 1 || string(records[0].Values[0].Data) != want {
			t.Errorf("%s: read %v, want %q", text, records, want)
		}
	}
}
