package foreign_test

import (
	"strings"
	"testing"

	"github.com/stele-id/stele/bulk/foreign"
)

const arkletDump = `--
-- PostgreSQL database dump
--

SET statement_timeout = 0;

CREATE TABLE public.ark_ark (
    ark character varying(200) NOT NULL,
    naan_id bigint NOT NULL
);

COPY public.ark_apikey (id, key) FROM stdin;
1	COPY public.ark_ark (ark) FROM stdin;
\.

COPY public.ark_ark (ark, naan_id, shoulder, assigned_name, url, metadata, commitment, created_at, updated_at) FROM stdin;
12345/fk4abc1	12345	/fk4	abc1	https://example.org/1	a: b\nc: d	we promise	2021-02-03 04:05:06.789012+00	2022-02-03 04:05:06+01
12345/fk4abc2	12345	/fk4	abc2			\N	\N	\N
123/fk4abc3	123	/fk4	abc3	https://example.org/3			\N	\N
12345/x	12345	/fk4	abc4	=evil			\N	\N
x	1
\.

ALTER TABLE ONLY public.ark_ark ADD CONSTRAINT ark_ark_pkey PRIMARY KEY (ark);
`

func TestArklet(t *testing.T) {
	want := []string{
		`{"id":"ark:12345/fk4abc1","targets":[{"url":"https://example.org/1"}],"metadata":{"arklet.metadata":"a: b\nc: d"},"persistence":{"statement":"we promise"},"created":"2021-02-03T04:05:06Z","modified":"2022-02-03T03:05:06Z"}`,
		`{"id":"ark:12345/fk4abc2","state":"reserved"}`,
		`say what it is with --prefix, such as ark:00123/`,
		`20: import ark:12345/x:`,
		`21: import: the row has 2 values for 9 columns`,
	}
	got, _, err := readFrom(t, "arklet", "", []byte(arkletDump))
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, want)
	if strings.Contains(got[2], "metadata") {
		t.Error(got[2])
	}
	got, _, err = readFrom(t, "auto", "ark:00123/", []byte(arkletDump))
	if err != nil {
		t.Fatal(err)
	}
	want[2] = `{"id":"ark:00123/fk4abc3","targets":[{"url":"https://example.org/3"}]}`
	check(t, got, want)

	// The fork of the Frick Collection, as CSV; a name that its parts do not make keeps them.
	got, _, err = readFrom(t, "auto", "", []byte("ark,naan_id,shoulder,assigned_name,url,metadata,title,type,format\n12345/fk4abc1,12345,/x,abc1,https://example.org/1,,A title,Text,\nark:/12345/b1,,,,,,B,,\n"))
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, []string{
		`"metadata":{"what":"A title","arklet.assigned_name":"abc1","arklet.naan_id":"12345","arklet.shoulder":"/x","arklet.type":"Text"}`,
		`{"id":"ark:12345/b1","metadata":{"what":"B"}}`,
	})
}

// TestArkletRejects: the text of a rejected row of a dump is a row of CSV, with a header.
func TestArkletRejects(t *testing.T) {
	s, err := foreign.Open(opened(t, []byte(arkletDump)), foreign.Options{System: "arklet", Schemes: known})
	if err != nil {
		t.Fatal(err)
	}
	rows, _, err := rowsOf(t, s)
	if err != nil {
		t.Fatal(err)
	}
	text := string(s.Title()) + "\n# line 20: why\n" + string(rows[3].Later()) + "\n" + string(rows[2].Later()) + "\n"
	got, _, err := readFrom(t, "arklet", "ark:00123/", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, []string{"3: import ark:12345/x:", `"id":"ark:00123/fk4abc3"`})
}

func TestArkletRefused(t *testing.T) {
	const begin = "--\nCOPY public.ark_ark (ark, url) FROM stdin;\n"
	for text, want := range map[string]string{
		begin + "12345/a\thttps://example.org/\n":                              "within the rows of a table",
		"--\nCOPY x (a) FROM stdin;\n":                                         "within the rows of a table",
		"--\nSELECT 1;\n":                                                      "has no rows of the table ark_ark",
		"--\nINSERT INTO public.ark_ark (ark) VALUES ('1');\n":                 "dump the database without --inserts",
		"--\nCOPY ark_ark (ark, b) FROM stdin;\n":                              "the column url is missing",
		begin + "\\.\nCOPY public.ark_ark (url, ark) FROM stdin;\n":            "the columns of ark_ark differ",
		"--\nCOPY ark_ark (" + strings.Repeat("a,", 1100) + "b) FROM stdin;\n": "more than 1000 columns",
	} {
		if _, _, err := readFrom(t, "arklet", "", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v", text, err)
		}
	}
	got, _, err := readFrom(t, "arklet", "", []byte(begin+strings.Repeat("\t", 1_000_000)+"\nx\thttps://example.org/\n\\.\n"))
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, []string{"the row has more than 1000 values", "is not an ARK as arklet keeps it"})
}

func FuzzArklet(f *testing.F) {
	fuzzFrom(f, []string{"arklet"}, "ark:00123/", arkletDump, "ark,naan_id,url\n123/a,123,https://example.org/\n", "--\nCOPY ark_ark (ark, url) FROM stdin;\n\\N\t\\\n\\.\n")
}
