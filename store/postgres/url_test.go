package postgres

import "testing"

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
		if got := RedactURL(text); got != want {
			t.Errorf("RedactURL(%q) = %q, want %q", text, got, want)
		}
	}
}
