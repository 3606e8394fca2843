package httpd

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

// The URL of an identifier at this server is read as that identifier, whatever is
// in it, by the server's own name and by others.
func TestSelf(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Base, o.OwnName = "", named("id.example.org", "purl.org") })
	begins := rapid.SampledFrom([]string{"20.500.12345/", "hdl:0.NA/", "10.1000/", "urn:example:", "urn:lsid:a.b:c:", "ark:12345/", "https://id.example.org/", "https://purl.org/"})
	texts := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("ab/%25?#:. +&=@\\\"<>é~"))), rapid.StringMatching(`[a-z0-9%/.:]{1,20}`))
	hosts := rapid.SampledFrom([]string{"id.example.org", "127.0.0.1:8080", "localhost", "purl.org"})
	names := rapid.Custom(func(t *rapid.T) stele.ID {
		id, _ := s.schemes.Parse(begins.Draw(t, "begin") + texts.Draw(t, "text"))
		return id
	}).Filter(stele.ID.IsValid)
	rapid.Check(t, func(t *rapid.T) {
		id := names.Draw(t, "id")
		r := reached(&http.Request{Host: hosts.Draw(t, "host")}, "127.0.0.1:8080")
		self := s.handler.self(r, id)
		if u, err := url.Parse(self); err != nil || u.Host != r.Host || u.RawQuery != "" || u.Fragment != "" {
			t.Fatalf("%q has the URL %q at %s (%v)", id, self, r.Host, err)
		}
		path := strings.TrimPrefix(self, "http://"+r.Host+"/")
		if !isPlain(strings.ReplaceAll(path, "%", "")) {
			t.Fatalf("%q has the path %q", id, path)
		}
		if !s.handler.reads(r, path, id) {
			t.Fatalf("%q has the URL %q at %s, which is read otherwise", id, self, r.Host)
		}
	})
}
