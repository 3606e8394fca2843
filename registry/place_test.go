package registry

import (
	"strings"
	"testing"
)

func TestParsePlace(t *testing.T) {
	for _, tt := range []struct{ text, kind, err string }{
		{"stele-data", "folder", ""},
		{"/var/lib/stele", "folder", ""},
		{"postgres:data", "folder", ""},
		{"", "", "belongs here"},
		{"postgres://db/stele", "PostgreSQL", ""},
		{"postgresql://a:1,b:2/stele?target_session_attrs=read-write", "PostgreSQL", ""},
		{"mysql://u:secret@db/stele", "", "the URL of a database belongs here"},
		{"postgres://u:secret@db", "", "names no database"},
		{"postgres://u:secret@db/", "", "names no database"},
		{"postgres://u:secret%@db/stele", "", "this is not a URL"},
		{"POSTGRES://u:secret@db/stele", "", "the URL of a database belongs here"},
	} {
		got, err := ParsePlace(tt.text)
		switch {
		case tt.err == "" && (err != nil || got.Kind() != tt.kind):
			t.Errorf("ParsePlace(%q) = %v, %v", tt.text, got, err)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "secret")):
			t.Errorf("ParsePlace(%q): %v, want %q", tt.text, err, tt.err)
		}
	}
}
