package foreign_test

import (
	"strings"
	"testing"

	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
)

// rejected returns what the file of rejected rows has of a row.
func rejected(row *bulk.Row) string {
	text := row.Text
	if row.Later != nil {
		text = row.Later()
	}
	return row.Err.Error() + "\n" + string(text)
}

// A row that is rejected never shows a secret, wherever it is rejected and however its type is written.
func TestRejectedSecrets(t *testing.T) {
	const secret = `{"index":300,"type":"HS_SECKEY","data":"open sesame"}`
	const url = `{"index":1,"type":"URL","data":"https://example.org/"}`
	for _, tt := range []struct{ text, want string }{
		{`{"values":[` + url + `,` + secret + `]}`, "https://example.org/"},
		{`{"handleRecords":{"20.500.1/A":{"handle":"20.500.1/B","values":[` + url + `,` + secret + `]}}}`, "https://example.org/"},
		{`{"handleRecords":{"20.500.1/A":{"values":[{"index":"x"},` + secret + `]}}}`, "index"},
		{`{"handleRecords":{"20.500.1/A":{"values":[{"index":"x"},` + strings.Replace(secret, "K", `\u004b`, 1) + `]}}}`, "index"},
		{`{"handleRecords":{"20.500.1/A":{"values":[{"index":"x"},` + strings.Replace(secret, "K", `\u212a`, 1) + `]}}}`, "index"},
		{`{"handleRecords":{"20.500.1/A":{"values":[{"index":01,"index":2},` + strings.Replace(secret, "K", `\u004b`, 1) + `]}}}`, "number"},
		{`{"handleRecords":{"20.500.1/A":{"values":[{"index":"x"},` + url + `]}}}`, "https://example.org/"},
	} {
		for _, o := range []foreign.Options{{}, {Admins: true, Secrets: true}} {
			rows, _, err := read(t, o, []byte(tt.text))
			if err != nil || len(rows) != 1 || rows[0].Err == nil {
				t.Errorf("%s: %v, %v", tt.text, rows, err)
				continue
			}
			if got := rejected(&rows[0]); strings.Contains(got, "sesame") || !strings.Contains(got, tt.want) {
				t.Errorf("%s is rejected as\n%s", tt.text, got)
			}
		}
	}
}

// What is wrong with a secret is told without the secret.
func TestSecretsNotQuoted(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"CREATE 20.500.1/A\n300 HS_SECKEY 86400 1100 sesame\n", "the value 300 is a secret that can't be read"},
		{"CREATE 20.500.1/A\n300 hs_seckey 86400 1100 FILE sesame\n", "the value 300 is a secret that can't be read"},
		{"INSERT INTO handles VALUES ('20.500.1/A',300,'HS_SECKEY' 'sesame');", "a comma should stand here, not a string"},
		{"INSERT INTO handles VALUES ('20.500.1/A',300,'HS_SECKEY' X'736573616d65');", "a comma should stand here, not a string"},
		{"INSERT INTO handles VALUES ('20.500.1/A',300,'HS_SECKEY', X'sesame');", "octets are not written as hexadecimal digits"},
		{"INSERT INTO handles VALUES ('20.500.1/A','sesame',300,'HS_SECKEY',0,1,1,NULL,1,1,1,1);", "idx is not a number of 32 bits"},
		{"INSERT INTO handles VALUES ('20.500.1/A',300,'HS_SECKEY','x',0,1,1,NULL,'sesame',1,1,1);", "admin_read is not true or false"},
		{"INSERT INTO handles VALUES ('20.500.1/A',300,'HS_SECKEY','x',0,1,1,'sesame',1,1,1,1);", "refs is not a list of references"},
	} {
		rows, _, err := read(t, foreign.Options{Secrets: true}, []byte(tt.text))
		got := ""
		if err != nil {
			got = err.Error()
		}
		for i := range rows {
			if rows[i].Err != nil {
				got += rejected(&rows[i])
			}
		}
		if strings.Contains(strings.ToLower(got), "sesame") || !strings.Contains(got, tt.want) {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.text, got, tt.want)
		}
	}
}
