package foreign_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
)

// notesOf returns what is told beside rows.
func notesOf(r foreign.Report) string {
	if err := errors.Join(r.Notes...); err != nil {
		return err.Error()
	}
	return ""
}

// TestCutOff checks that a record is not made of a line that may be cut off: it is rejected where the system ends each line, and told
// where editors leave the last line end out. With the line end nothing is told.
func TestCutOff(t *testing.T) {
	const told = `it does not end with a line end; check its last row`
	for _, tt := range []struct {
		system, prefix, text string
		refused              string // why the last row is, if it is
	}{
		{"ezid", "", ":: ark:/99999/fk4a\n_target: https://example.org/1\n\n:: ark:/99999/fk4b\n_target: https://example.org/22\n", "may be cut off"},
		{"handle", "", "CREATE 20.500.1/A\n1 URL 86400 1110 UTF8 https://example.org/1\n\nCREATE 20.500.1/B\n1 URL 86400 1110 UTF8 https://example.org/22\n", "may be cut off"},
		{"handle", "", "CREATE 20.500.1/A\n1 URL 86400 1110 UTF8 https://example.org/1\n\nDELETE 20.500.1/A\n", "may be cut off"},
		{"noid", "ark:99999/", ":/mask: zek\n99999/fk4\tgoto: https://example.org/22\n", "may be cut off"},
		{"arklet", "", "ark,naan,url\n12345/a,12345,https://example.org/1\n12345/b,12345,https://example.org/22\n", ""},
		{"shlink", "ark:12345/", "Short code,Long URL,Domain\nab,https://example.org/1,\ncd,https://example.org/22,\n", ""},
		{"ezid", "", "_id,_target\nark:/99999/fk4a,https://example.org/1\nark:/99999/fk4b,https://example.org/22\n", ""},
		{"handle", "", "handle,idx,type,data\n20.500.1/A,1,URL,https://example.org/22\n", ""},
	} {
		whole, report, err := readFrom(t, tt.system, tt.prefix, []byte(tt.text))
		if err != nil || strings.Contains(strings.Join(whole, "\n")+notesOf(report), "line end") {
			t.Errorf("%s, whole: %q, %s, %v", tt.system, whole, notesOf(report), err)
		}
		short, report, err := readFrom(t, tt.system, tt.prefix, []byte(strings.TrimSuffix(tt.text, "\n")))
		switch {
		case err != nil:
			t.Errorf("%s: %v", tt.system, err)
		case tt.refused != "" && !strings.Contains(strings.Join(short, "\n"), tt.refused):
			t.Errorf("%s: %q, want %q", tt.system, short, tt.refused)
		case tt.refused == "" && (!strings.Contains(notesOf(report), told) || len(short) != len(whole)):
			t.Errorf("%s: %q, %s", tt.system, short, notesOf(report))
		}
	}
}

// TestCutOffTree checks the same of the files of folders, of which a few are named.
func TestCutOffTree(t *testing.T) {
	s := newW3ID(t)
	files := map[string]string{"whole/.htaccess": "RewriteEngine on\nRewriteRule ^a$ https://example.org/22 [L]\n", "whole/README.md": "no end"}
	s.load("w3id", files, foreign.Options{}, bulk.FileOptions{})
	if got := s.told(); strings.Contains(got, "line end") {
		t.Error(got)
	}
	for c := range 12 {
		files[string(rune('a'+c))+"/.htaccess"] = "RewriteEngine on\nRewriteRule ^a$ https://example.org/22 [L]"
	}
	s.load("w3id", files, foreign.Options{}, bulk.FileOptions{})
	if got := s.told(); strings.Count(got, "/.htaccess does not end with a line end; check its last row") != 10 || !strings.Contains(got, "2 more files do not end with a line end, such as k/.htaccess") {
		t.Error(got)
	}
}

// TestEncodingTold checks that a guessed encoding of another system's table is told, and that a batch of handles is never guessed.
func TestEncodingTold(t *testing.T) {
	rows, report, err := readFrom(t, "shlink", "ark:12345/", []byte("Short code,Long URL,Domain,Title\nab,https://example.org/1,,Par\xe1\n"))
	if err != nil || len(rows) != 1 || !strings.Contains(rows[0], "Pará") || !strings.Contains(notesOf(report), "it was read as Latin-1 (ISO 8859-1); 1 lines have characters outside ASCII") {
		t.Errorf("%q, %s, %v", rows, notesOf(report), err)
	}
	rows, _, err = readFrom(t, "handle", "", []byte("CREATE 20.500.1/A\n1 URL 86400 1110 UTF8 https://example.org/1\n2 DESC 86400 1110 UTF8 Par\xe1\n\nCREATE 20.500.1/B\n1 DESC 86400 1110 UTF8 x\n"))
	if err != nil || len(rows) != 2 || !strings.Contains(rows[0], "the text is not UTF-8; convert the file to UTF-8") {
		t.Errorf("%q, %v", rows, err)
	}
}

// TestSQLLeftOut checks that tables and columns that mean nothing to a Handle server are told, and that a table has a number of columns
// at most.
func TestSQLLeftOut(t *testing.T) {
	_, report, err := readFrom(t, "handle", "", []byte(`INSERT INTO pids (a) VALUES ('1');
INSERT INTO pids (a) VALUES ('2');
INSERT INTO handles (handle, idx, type, data, owner, "weird") VALUES ('20.500.1/A', 1, 'URL', 'https://example.org/', 'ann', 'x');
`))
	if got := notesOf(report); err != nil || strings.Count(got, `the table "pids" is not one of a Handle server`) != 1 || !strings.Contains(got, `2 columns of the table handles mean nothing to a Handle server, and are left out: "owner", "weird"`) {
		t.Errorf("%s, %v", got, err)
	}
	_, report, err = readFrom(t, "handle", "", []byte("handle,idx,type,data,colour\n20.500.1/A,1,URL,https://example.org/,red\n"))
	if got := notesOf(report); err != nil || !strings.Contains(got, `1 columns of the table handles mean nothing to a Handle server, and are left out: "colour"`) {
		t.Errorf("%s, %v", got, err)
	}
	many := "handle,idx,type,data" + strings.Repeat(",x", 1000)
	for _, text := range []string{many + "\n", "INSERT INTO handles (" + many + ") VALUES (1);\n"} {
		if _, _, err := readFrom(t, "handle", "", []byte(text)); err == nil || !strings.Contains(err.Error(), "has more than 1000 columns") {
			t.Errorf("%.40s: %v", text, err)
		}
	}
}
