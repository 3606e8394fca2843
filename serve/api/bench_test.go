package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stele-id/stele/document/apijson"
)

// nowhere is a ResponseWriter that keeps nothing.
type nowhere struct{ head http.Header }

func (w nowhere) Header() http.Header         { return w.head }
func (w nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (w nowhere) WriteHeader(int)             {}

// BenchmarkGet shows what it costs to authenticate a caller and to find what it may see.
func BenchmarkGet(b *testing.B) {
	s := newSite(b, func(o *Options) { o.Rate, o.Burst = 1_000_000_000, 1_000_000_000 })
	for _, who := range []string{"", theOutsider, theReader, theAdmin} {
		b.Run("as "+who, func(b *testing.B) {
			r := httptest.NewRequest("GET", "http://id.example.org"+records+"ark:12345/x1", nil)
			r.RequestURI = records + "ark:12345/x1"
			if who != "" {
				r.Header.Set("Authorization", "Bearer "+s.tokens[who])
			}
			b.ReportAllocs()
			for b.Loop() {
				s.handler.ServeHTTP(nowhere{make(http.Header)}, r)
			}
		})
	}
}

// BenchmarkPut registers records, one a request.
func BenchmarkPut(b *testing.B) {
	s := newSite(b)
	const body = `{"targets":[{"url":"https://example.org/1","type":"text/html"}],"metadata":{"who":"Lima, A.","what":"A map of rivers"}}`
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		target := records + "ark:12345/n" + strings.Repeat("x", 1+n%3) + itoa(n)
		r := httptest.NewRequest("PUT", "http://id.example.org/", nil)
		r.RequestURI, r.Body, r.ContentLength = target, io.NopCloser(strings.NewReader(body)), int64(len(body))
		r.Header = http.Header{"Content-Type": {apijson.JSON}, "Authorization": {"Bearer " + s.tokens[theEditor]}, "If-None-Match": {"*"}}
		s.handler.ServeHTTP(nowhere{make(http.Header)}, r)
	}
}

// itoa writes a number in letters that are all consonants, so that it is not a word.
func itoa(n int) string {
	b := []byte{}
	for ; n > 0 || len(b) == 0; n /= 19 {
		b = append(b, "bcdfghjkmnpqrstvwxz"[n%19])
	}
	return string(b)
}
