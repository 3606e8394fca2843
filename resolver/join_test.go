package resolver

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/stele-id/stele/internal/urltext"
)

func TestJoin(t *testing.T) {
	for _, tt := range []struct{ target, rest, query, want string }{
		{"https://h/a", "", "", "https://h/a"},
		{"https://h/a", "/b", "", "https://h/a/b"},
		{"https://h/a/", "b", "", "https://h/a/b"},
		{"https://h/a/", "/b", "", "https://h/a//b"},
		{"https://h/a", "b", "", "https://h/ab"},
		{"https://h/a", "/b/../c", "", "https://h/a/b/../c"},
		{"https://h/a", "/b?c#d", "", "https://h/a/b%3Fc%23d"},
		{"https://h/a", "/b c\u00e9\r\n\x00", "", "https://h/a/b%20c%C3%A9%0D%0A%00"},
		{"https://h/a", "/%20%2f%0d%zz%", "", "https://h/a/%20%2f%0d%25zz%25"},
		{"https://h/a", `/\"<>[]{}|^` + "`", "", "https://h/a/%5C%22%3C%3E%5B%5D%7B%7D%7C%5E%60"},
		{"https://h/a", "", "b=c&d", "https://h/a?b=c&d"},
		{"https://h/a", "/x", "b=%20 c\r\nd#e", "https://h/a/x?b=%20%20c%0D%0Ad%23e"},
		{"https://h/a?b", "", "c", "https://h/a?b&c"},
		{"https://h/a?", "", "c", "https://h/a?c"},
		{"https://h/a?b&", "", "c", "https://h/a?b&c"},
		{"https://h/a?b=", "/c&d=e+f;g#?", "", "https://h/a?b=/c%26d%3De%2Bf%3Bg%23?"},
		{"https://h/a?b=", "/../c", "d", "https://h/a?b=/../c&d"},
		{"https://h/a#", "b#&c", "d", "https://h/a?d#b%23&c"},
		{"https://h/a#b", "", "d", "https://h/a?d#b"},

		// Nothing that follows becomes a part of the host.
		{"https://h", "/a", "", "https://h/a"},
		{"https://h", "a", "", "https://h/a"},
		{"https://h", ".evil.example", "", "https://h/.evil.example"},
		{"https://h", "@evil.example", "", "https://h/@evil.example"},
		{"https://h", ":80@evil.example", "", "https://h/:80@evil.example"},
		{"https://u:p@h:8080", "@evil.example/", "q", "https://u:p@h:8080/@evil.example/?q"},
		{"https://h/", "/evil.example", "", "https://h//evil.example"},
		{"https://h", "", "a", "https://h?a"},
		{"https://h?a=", "@b", "", "https://h?a=@b"},

		// Dot segments stay below the target's path, whichever program resolves them.
		{"https://h/a", "/../b", "", ""},
		{"https://h/a/", "../b", "", ""},
		{"https://h/a/", "b/../../c", "", ""},
		{"https://h/a/", "b/%2e%2E/.%2e/c", "", ""},
		{"https://h/a/", "b/..%2f..%2Fc", "", ""},
		{"https://h/a/", "b/..%5c..%5Cc", "", ""},
		{"https://h/a/", `b\..\..\c`, "", ""},
		{"https://h/a/", "b%2Fc", "", "https://h/a/b%2Fc"},
		{"https://h/a/", "..;/b", "", ""},
		{"https://h/a", "/..;x=1/b", "", ""},
		{"https://h/a/", "b/..;/..;/c", "", ""},
		{"https://h/a/", ".;/..;/c", "", ""},
		{"https://h/a/", "b;x/..;y/..;z/c", "", ""},
		{"https://h/a/", "%2e%2E;/c", "", ""},
		{"https://h/a/", "..%3b/c", "", ""},
		{"https://h/a/", "%2e.%3Bx%2fc", "", ""},
		{"https://h/a/", ".;/b", "", "https://h/a/.;/b"},
		{"https://h/a/", "b/..;/c", "", "https://h/a/b/..;/c"},
		{"https://h/a/", "b;v=1/c", "", "https://h/a/b;v=1/c"},
		{"https://h/a;v=1/", "b", "", "https://h/a;v=1/b"},
		{"https://h/a/", "b//../../c", "", ""},
		{"https://h/a/.", "./b", "", ""},
		{"https://h/a/", "../ab", "", ""},
		{"https://h/a/", "./b/..", "", "https://h/a/./b/.."},
		{"https://h/", "../../b", "", "https://h/../../b"}, // there is nothing above
		{"https://h/a/../b/", "c", "", "https://h/a/../b/c"},

		// Targets to which nothing can be added.
		{"mailto:a@h", "/b", "", ""},
		{"/a", "/b", "", ""},
		{"//h/a", "/b", "", ""},
		{"https://h\r\n/a", "/b", "", ""},
		{"https://h\\@evil.example", "/b", "", ""},
		{"https://h/a", "", strings.Repeat("q", urltext.MaxQuery+1), ""},
	} {
		got, err := join(tt.target, tt.rest, tt.query, false)
		if (err != nil) != (tt.want == "") || err == nil && got != tt.want {
			t.Errorf("%q, %q, %.20q: %q, %v; want %q", tt.target, tt.rest, tt.query, got, err, tt.want)
		}
	}
	if got, err := join("https://h/", "a%20b%", "%20", true); got != "https://h/a%2520b%25?%20" {
		t.Errorf("literal: %q, %v", got, err)
	}
}

func TestExpand(t *testing.T) {
	for _, tt := range []struct{ template, want string }{
		{"https://h/{id}", "https://h/x:a/b&c%20%C3%A9?q=1"},
		{"https://h/r{rest}/s", "https://h/r/b&c%20%C3%A9/s?q=1"},
		{"https://h/?i={id}&r={rest}", "https://h/?i=x:a/b%26c%20%C3%A9&r=/b%26c%20%C3%A9&q=1"},
		{"https://h/#{id}", "https://h/?q=1#x:a/b&c%20%C3%A9"},
		{"https://h/{rest}?{rest}#{rest}", "https://h//b&c%20%C3%A9?/b%26c%20%C3%A9&q=1#/b&c%20%C3%A9"},
		{"https://h/fixed", "https://h/fixed?q=1"},
		{"https://h/{x}{", "https://h/%7Bx}%7B?q=1"},
		{"https://h{rest}", "https://h/b&c%20%C3%A9?q=1"},
		{"https://h{id}", ""},
		{"https://{id}", ""},
		{"https://{rest}.h/", ""},
		{"{id}", ""},
		{"", ""},
	} {
		got, err := expand(tt.template, "x:a/b&c%20\u00e9", "/b&c%20\u00e9", "q=1", false)
		if (err != nil) != (tt.want == "") || err == nil && got != tt.want {
			t.Errorf("%q: %q, %v; want %q", tt.template, got, err, tt.want)
		}
	}
	if got, err := expand("https://h/x/{id}", "../y", "", "", false); !errors.Is(err, urltext.ErrClimbs) {
		t.Errorf("%q, %v", got, err)
	}
}

// checkURL checks what holds of every URL that is made of a beginning and of
// texts from elsewhere: it goes where the beginning goes.
func checkURL(t *testing.T, start, made string) {
	t.Helper()
	before, err := url.Parse(start)
	if err != nil {
		t.Fatalf("%q was added to %q, which is not a URL", made, start)
	}
	after, err := url.Parse(made)
	if err != nil {
		t.Fatalf("%q: %v", made, err)
	}
	if after.Scheme != before.Scheme || after.Hostname() != before.Hostname() || after.Port() != before.Port() || after.User.String() != before.User.String() {
		t.Fatalf("%q leads elsewhere than %q", made, start)
	}
	rest, ok := strings.CutPrefix(made, start)
	if !ok {
		t.Fatalf("%q does not begin with %q", made, start)
	}
	if before.Path == "" && before.RawQuery == "" && !before.ForceQuery && rest != "" && strings.IndexByte("/?#", rest[0]) < 0 {
		t.Fatalf("%q: the host of %q goes on", made, start)
	}
	for i := range len(rest) {
		if rest[i] <= ' ' || rest[i] >= 0x7f || strings.IndexByte("\"<>\\^`|", rest[i]) >= 0 {
			t.Fatalf("%q has the byte %#x, which stands in no URL", made, rest[i])
		}
	}
	below := removeDots(before.EscapedPath())
	if below = below[:strings.LastIndexByte(below, '/')+1]; !strings.HasPrefix(removeDots(after.EscapedPath()), below) {
		t.Fatalf("%q is not below %q", made, start)
	}
}

// removeDots does with a path what a browser does (RFC 3986, section 5.2.4, and
// encoded dots).
func removeDots(path string) string {
	var kept []string
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, s := range segments {
		dots := strings.ReplaceAll(strings.ToLower(s), "%2e", ".")
		if dots == ".." && len(kept) > 0 {
			kept = kept[:len(kept)-1]
		}
		if dots != "." && dots != ".." {
			kept = append(kept, s)
		} else if i == len(segments)-1 {
			kept = append(kept, "")
		}
	}
	return "/" + strings.Join(kept, "/")
}

func FuzzJoin(f *testing.F) {
	for _, target := range []string{"https://example.org", "https://u:p@example.org:8080/a/", "ftp://example.org/a?b=", "https://example.org/#c", "https://[::1]:80/a/./b"} {
		for _, rest := range []string{"", "/a", "@evil.example", ".evil.example/", "/../..//%2e%2e/", "\r\nSet-Cookie: a", "#\\?&\u00e9%zz"} {
			f.Add(target, rest, "q=\n&"+rest, len(rest)%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, target, rest, query string, literal bool) {
		made, err := join(target, rest, query, literal)
		if err != nil || rest == "" && query == "" {
			return
		}
		start, fragment, hasFragment := strings.Cut(target, "#")
		body, lagging, _ := strings.Cut(made, "#")
		checkURL(t, start, body)
		if _, err := url.Parse(made); err != nil || hasFragment && !strings.HasPrefix(lagging, fragment) {
			t.Fatalf("%q: %v", made, err)
		}
	})
}

func FuzzExpand(f *testing.F) {
	for _, template := range []string{"https://example.org/{id}", "https://example.org{rest}", "https://example.org?{id}#{rest}", "https://{id}.example.org", "https://example.org/{{id}}"} {
		for _, id := range []string{"ark:12345/x1", "@evil.example/", "../..", "\r\n\u00e9%zz"} {
			f.Add(template, id, len(id)/2, "q=1")
		}
	}
	f.Fuzz(func(t *testing.T, template, id string, cut int, query string) {
		rest := id[min(max(cut, 0), len(id)):]
		made, err := expand(template, id, rest, query, false)
		if err != nil {
			return
		}
		// What the template itself has after its first place is not checked.
		start, _, ok := strings.Cut(template, "{")
		if ok && !strings.Contains(start, "#") && !strings.ContainsAny(template[len(start):], "?#") && strings.Count(template, "{") == 1 && isPrintable(template) {
			checkURL(t, start, made)
		}
		if before, err := url.Parse(start); err != nil || before.Host == "" {
			t.Fatalf("%q is made of %q", made, template)
		}
	})
}

func isPrintable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"<>\\^`|", r) }) < 0
}
