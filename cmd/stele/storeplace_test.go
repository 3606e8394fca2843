package main

import (
	"strings"
	"testing"

	"github.com/stele-id/stele/config"
)

func TestRedactURL(t *testing.T) {
	for text, want := range map[string]string{
		"postgres://db/stele":                                   "postgres://db/stele",
		"postgres://stele@db:5432/stele":                        "postgres://stele@db:5432/stele",
		"postgres://stele:secret@db/stele":                      "postgres://stele:xxxxx@db/stele",
		"postgresql://stele:secret@a:1,b:2,c:3/stele?x=y":       "postgresql://stele:xxxxx@a:1,b:2,c:3/stele?x=y",
		"postgres://stele:se%2Fcret@db/stele":                   "postgres://stele:xxxxx@db/stele",
		"postgres://:secret@db/stele":                           "postgres://:xxxxx@db/stele",
		"postgres://db/stele?password=secret&user=stele":        "postgres://db/stele?password=xxxxx&user=stele",
		"postgres://db/stele?sslkey=a&sslpassword=secret":       "postgres://db/stele?sslkey=a&sslpassword=xxxxx",
		"postgres://stele:sec/ret@db/stele":                     "postgres://xxxxx",
		"postgres://stele:sec?ret@db/stele":                     "postgres://xxxxx",
		"postgres://stele:sec#ret@db/stele":                     "postgres://xxxxx",
		"postgres://stele:sec%ret@db/stele":                     "postgres://xxxxx",
		"postgres://stele:secret@[::1/stele":                    "postgres://xxxxx",
		"postgres://db/stele?password=sec;ret&password=secrets": "postgres://xxxxx",
		"postgres://stele:1?2@db/stele":                         "postgres://xxxxx",
		"host=db password=secret":                               "postgres://xxxxx",
	} {
		if got := config.RedactURL(text); got != want {
			t.Errorf("config.RedactURL(%q) = %q, want %q", text, got, want)
		}
	}
}

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
		{"postgres://u:secret%@db/stele", "", "this is no URL"},
		{"POSTGRES://u:secret@db/stele", "", "the URL of a database belongs here"},
	} {
		got, err := parsePlace(tt.text)
		switch {
		case tt.err == "" && (err != nil || got.kind() != tt.kind):
			t.Errorf("parsePlace(%q) = %v, %v", tt.text, got, err)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "secret")):
			t.Errorf("parsePlace(%q): %v, want %q", tt.text, err, tt.err)
		}
	}
}
