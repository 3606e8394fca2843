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
