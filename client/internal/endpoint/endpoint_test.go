package endpoint

import "testing"

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"http://a.example": "http://a.example/x", "https://A.example/": "https://a.example/x", "http://a.example:8080/base/": "http://a.example:8080/base/x",
		"https://a.example:443": "https://a.example/x", "http://[::1]:80/": "http://[::1]/x", "http://[::1]:81": "http://[::1]:81/x", "http://127.0.0.1": "http://127.0.0.1/x",
		"https://a.example:8443?q#f": "https://a.example:8443/x",
		"":                           "", "ftp://a.example": "", "a.example": "", "http://": "", "http://user:secret@a.example": "", "http://a.example:0": "", "http://a b": "", "http://ä.example": "", "javascript:alert(1)": "",
	} {
		p, err := Parse(text)
		if got := p.URL("/x"); want == "" && err == nil || want != "" && (err != nil || got != want) {
			t.Errorf("%q: %s, %v; want %q", text, got, err, want)
		}
	}
}
