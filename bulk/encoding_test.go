package bulk_test

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/stele-id/stele/bulk"
)

func TestDecoder(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for _, tt := range []struct {
		in    string
		as    bulk.Encoding
		want  string
		found bulk.Encoding
		lines int
	}{
		{"", bulk.Auto, "", bulk.UTF8, 0},
		{"plain\n", bulk.Auto, "plain\n", bulk.UTF8, 0},
		{"Pará\n", bulk.Auto, "Pará\n", bulk.UTF8, 0},
		{"Par\xe1\nx\nJos\xe9 \xe9\n", bulk.Auto, "Pará\nx\nJosé é\n", bulk.Latin1, 2},
		{"\x93x\x94 \x80", bulk.Auto, "“x” €", bulk.CP1252, 1},
		{long + "\xe9", bulk.Auto, long + "é", bulk.Latin1, 1},
		{long + "é" + long + "\xe9", bulk.Auto, long + "é" + long + "\xe9", bulk.UTF8, 0}, // for the row's reader to refuse
		{"\xe9 é é é", bulk.Auto, "\xe9 é é é", bulk.UTF8, 0},
		{"é", bulk.CP1252, "Ã©", bulk.Latin1, 1},
		{"\xff\xfea\x00\xe9\x00\n\x00", bulk.Auto, "aé\n", bulk.UTF16, 1},
		{"\xfe\xff\x00a\xd8\x3d\xde\x00", bulk.Auto, "a😀", bulk.UTF16, 1},
		{"\xff\xfea\x00b", bulk.Auto, "a\ufffd", bulk.UTF16, 0},
	} {
		for name, in := range map[string]io.Reader{"at once": strings.NewReader(tt.in), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.in))} {
			d := bulk.NewDecoder(in, tt.as)
			got, err := io.ReadAll(d)
			found, lines := d.Found()
			if err != nil || string(got) != tt.want || found != tt.found || lines != tt.lines {
				t.Errorf("%.40q %s: %.40q, %v, as %s in %d lines; want %.40q, as %s in %d", tt.in, name, got, err, found, lines, tt.want, tt.found, tt.lines)
			}
		}
	}
}

// UTF-8 stays as it is and UTF-16 says the same, however they are read; and whatever the
// bytes are, the decoder comes to their end.
func TestDecoderProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		wide := []byte("\xff\xfe")
		for _, u := range utf16.Encode([]rune(text)) {
			wide = append(wide, byte(u), byte(u>>8))
		}
		for _, in := range []string{text, string(wide)} {
			if got, err := io.ReadAll(bulk.NewDecoder(iotest.HalfReader(strings.NewReader(in)), bulk.Auto)); err != nil || string(got) != text {
				t.Fatalf("%q is read as %q, %v; want %q", in, got, err, text)
			}
		}
		any := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		for _, e := range bulk.Encodings() {
			got, err := io.ReadAll(bulk.NewDecoder(strings.NewReader(string(any)), e))
			if err != nil || (e == bulk.CP1252 || e == bulk.UTF16) && !utf8.Valid(got) {
				t.Fatalf("%q as %s: %q, %v", any, e, got, err)
			}
		}
	})
}

func TestHeader(t *testing.T) {
	for _, tt := range []struct{ header, m, want string }{
		{"id,url", "", "id url"},
		{"PID,Link,Title,Author,Date", "", "id url what who when"},
		{"ARK,web_address,publication-year", "", "id url when"},
		{"id,url,,meta.X", "", "id url - meta.x"},
		{"Nr,url", "Nr=id", "id url"},
		{"id,url,Farbe (neu)", "*=meta", "id url meta.farbe-neu"},
		{"id,url,Farbe", "*=-", "id url -"},
		{"id,url,doi", "doi=aliases", "id url aliases"},
		{"id,url,a,b", "", `"a", "b" are not known: say what each means with --map, as in --map a=meta.a; --map a=- passes a column over`},
		{"id,doi,url", "", `the columns "id" and "doi" both mean id`},
		{"url,what", "", "the column id is missing"},
		{"id,url", "x=what", `--map: there is no column "x"`},
	} {
		var maps []string
		if tt.m != "" {
			maps = []string{tt.m}
		}
		m, err := bulk.ParseMap(maps)
		if err != nil {
			t.Fatal(err)
		}
		h, err := bulk.NewHeader(strings.Split(tt.header, ","), bulk.HeaderOptions{Map: m, Need: []string{"id", "url"}})
		got := strings.Join(h, " ")
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s with %q: %s, want %s", tt.header, tt.m, got, tt.want)
		}
	}
}

func TestSeparator(t *testing.T) {
	for line, want := range map[string]byte{"sep=;": ';', "SEP=,\r": ',', "sep=\t": '\t', `"sep=;"`: ';', "sep=x": 0, "id;url": 0} {
		if got := bulk.Separator([]byte(line)); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	for line, want := range map[string]byte{"id,url\n;;;": ',', "id;url": ';', `id;"a,b,c";url`: ';', "id\turl": '\t', "id": 0} {
		if got := bulk.Delimiter([]byte(line)); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
