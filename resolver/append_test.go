package resolver

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stele-id/stele/internal/urltext"

	"github.com/stele-id/stele"
	"pgregory.net/rapid"
)

func TestAppend(t *testing.T) {
	for _, tt := range []struct{ target, text, want string }{
		{"https://example.org/a", "", "https://example.org/a"},
		{"https://example.org/a", "b", "https://example.org/ab"},
		{"https://example.org/a", "/b?c=d#e", "https://example.org/a/b?c=d#e"},
		{"https://example.org/a", "?b=c?d#e#f", "https://example.org/a?b=c?d#e%23f"},
		{"https://example.org/a", "#b?c", "https://example.org/a#b?c"},
		{"https://example.org/a?b=c", "&d=e", "https://example.org/a?b=c&d=e"},
		{"https://example.org/a?b=c", "/../d#e", "https://example.org/a?b=c/../d#e"},
		{"https://example.org/a#b", "c?d#e", "https://example.org/a#bc?d%23e"},
		{"https://example.org/a", "/%2F %zz\r\n<>", "https://example.org/a/%2F%20%25zz%0D%0A%3C%3E"},
		{"https://example.org", "b", "https://example.org/b"},
		{"https://example.org", ".evil.example.org/", "https://example.org/.evil.example.org/"},
		{"https://example.org", "@evil.example.org/", "https://example.org/@evil.example.org/"},
		{"https://example.org", ":81/", "https://example.org/:81/"},
		{"https://example.org", "?b", "https://example.org?b"},
		{"https://example.org:8080/a/", "//evil.example.org", "https://example.org:8080/a///evil.example.org"},
		{"https://example.org/a", "/../..", ""},
		{"https://example.org/a/", "%2e%2e/b", ""},
		{"https://example.org/a", strings.Repeat("x", urltext.MaxQuery+1), ""},
		{"mailto:a@example.org", "?subject=x", ""},
	} {
		got, err := Append(tt.target, tt.text)
		if err != nil {
			got = ""
		}
		if got != tt.want {
			t.Errorf("Append(%q, %.40q) = %q, %v; want %q", tt.target, tt.text, got, err, tt.want)
		}
	}
}

// Whatever is appended to a URL, it leads to the same host, below the same path.
func TestAppendKeepsHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target := rapid.SampledFrom([]string{"https://example.org", "https://example.org:81/a", "http://example.org/a?b=c", "http://example.org/#x"}).Draw(t, "target")
		text := rapid.StringMatching(`[a-z./?#@:%\\ &=\r\n-]{0,12}`).Draw(t, "text")
		got, err := Append(target, text)
		if err != nil {
			return
		}
		before, _ := url.Parse(target)
		after, err := url.Parse(got)
		if err != nil || after.Scheme != before.Scheme || after.Host != before.Host || after.User != nil || !strings.HasPrefix(got, target) || strings.ContainsAny(got, " \r\n") {
			t.Fatalf("Append(%q, %q) = %q, %v", target, text, got, err)
		}
	})
}

func TestNamespace(t *testing.T) {
	r := newRegistry(t, Options{})
	r.namespace(stele.Namespace{Scheme: "hdl", Prefix: "20.500/"})
	for name, want := range map[string]string{"20.500/x": "20.500/", "20.501/x": "", "ark:12345/x1": ""} {
		ns, err := r.Namespace(t.Context(), r.id(name))
		if err != nil || (ns != nil) != (want != "") || ns != nil && ns.Prefix != want {
			t.Errorf("%s: %v, %v", name, ns, err)
		}
	}
}
