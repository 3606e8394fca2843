package bulk

import (
	"strings"
	"testing"
)

// FuzzLook: whatever is sent, finding out what it is ends, and the fields that it guesses make a
// header that can be used, none of them twice.
func FuzzLook(f *testing.F) {
	for _, seed := range []string{
		"", "\n\n", "url\nhttps://example.org/1\n", "https://example.org/1\nhttps://example.org/2", "sep=;\r\nPID;Link;Título;\r\n;https://example.org/1;\"a;\"\"b\";\r\n",
		"\ufeffid,url,title,title,Shelf mark,,\na,b,c\n", "\xff\xfeu\x00r\x00l\x00\n\x00", "\xfe\xff\x00u\x00r\x00l\x00\n", "url;title\nhttps://example.org/1;Par\xe1\n",
		"\"unfinished", "url,\"un\nfinished\n", "[1]", "{\"url\":\"https://example.org/1\"}\n", "#remark\nurl\tname\nx\ty\n", "sep=", "a" + strings.Repeat(",", 300), "meta.x,meta.who,who\n",
	} {
		f.Add([]byte(seed), byte(0))
	}
	f.Fuzz(func(t *testing.T, text []byte, e byte) {
		file, err := NewFile("it", strings.NewReader(string(text)))
		if err != nil {
			return // it looked compressed
		}
		encoding := Encodings()[int(e)%len(Encodings())]
		s, err := Look(file, encoding, func(text string) bool { return strings.HasPrefix(text, "ark:") })
		if err != nil || s.JSON {
			return
		}
		again, err := NewFile("it", strings.NewReader(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		r := NewReader(again)
		r.Lone = true
		p, err := NewParser(nil, r, "it", Format{Encoding: encoding, Columns: HeaderOptions{Fields: s.Fields(), Headless: s.Headless}})
		if err != nil {
			t.Fatalf("%q: the guess %q is not a header: %v", text, s.Fields(), err)
		}
		if len(p.Header) != len(s.Columns) || p.Delimiter != s.Delimiter {
			t.Errorf("%q: %v and %v", text, p, s)
		}
	})
}
