package stele_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/recordtest"
	"pgregory.net/rapid"
)

// targetURLs are good and bad URLs, and of the bad ones a part of the reason.
var targetURLs = map[string]string{
	"https://example.org":                                 "",
	"https://example.org/":                                "",
	"HTTP://EXAMPLE.ORG/%7Ea?b=c&d[]=e#f":                 "",
	"http://example.org:8080/a//b/../c;d=e/@f:g":          "",
	"ftp://ftp.example.org/pub/a.zip":                     "",
	"ftps://example.org/":                                 "",
	"sftp://example.org/":                                 "",
	"rsync://example.org/module":                          "",
	"rtsp://example.org/film":                             "",
	"https://localhost/":                                  "",
	"https://192.0.2.1/":                                  "",
	"https://[2001:db8::1]/":                              "",
	"https://[2001:DB8::1]:443":                           "",
	"https://xn--bcher-kva.example/":                      "",
	"https://a_b.example.org?q":                           "",
	"https://example.org#f":                               "",
	"https://3com.example.0xg/":                           "",
	"https://example.org/" + strings.Repeat("x", 2000-20): "",

	"":                                     "is missing",
	"example.org/1":                        "does not begin with a protocol that is allowed",
	"//example.org/1":                      "does not begin with a protocol",
	"/1":                                   "does not begin with a protocol",
	"https":                                "does not begin with a protocol",
	"://example.org":                       "does not begin with a protocol",
	" https://example.org":                 "does not begin with a protocol",
	"\thttps://example.org":                "does not begin with a protocol",
	"javascript:alert(1)":                  "does not begin with a protocol",
	"JavaScript://%0aalert()":              "does not begin with a protocol",
	"java\nscript:alert(1)":                "does not begin with a protocol",
	"vbscript:x":                           "does not begin with a protocol",
	"data:text/html,<b>":                   "does not begin with a protocol",
	"file:///etc/passwd":                   "does not begin with a protocol",
	"mailto:ana@example.org":               "does not begin with a protocol",
	"magnet:?xt=urn:btih:a":                "does not begin with a protocol",
	"blob:https://h/":                      "does not begin with a protocol",
	"view-source:https://h/":               "does not begin with a protocol",
	"ssh://-oProxyCommand=x/":              "does not begin with a protocol",
	"http:example.org":                     "is not absolute; write http:// and the host",
	"https:/example.org":                   "is not absolute",
	`https:\\example.org`:                  "is not absolute",
	"https://":                             "has no host",
	"https:///etc/passwd":                  "has no host",
	"https://?q":                           "has no host",
	"https://:80/":                         "has no host",
	"https://user@example.org/":            "has a user's name or password",
	"https://user:secret@example.org/":     "has a user's name or password",
	"https://example.org@evil.example/":    "has a user's name or password",
	"https://example.org:/":                "is not a port",
	"https://example.org:0/":               "is not a port",
	"https://example.org:080/":             "is not a port",
	"https://example.org:65536/":           "is not a port",
	"https://example.org:http/":            "is not a port",
	"https://example.org:80:80/":           `has ':' in its host`,
	`https://example.org\@evil.example/`:   "has a user's name",
	`https://example.org\evil.example/`:    `has '\\' in its host`,
	"https://exa mple.org/":                "has ' ' in its host",
	"https://example%2eorg/":               "has '%' in its host",
	"https://büro.example/":                "write the host in its ASCII form, which begins with xn--",
	"https://example.org./":                "is not a host; between its dots are 1 to 63 characters",
	"https://.example.org/":                "is not a host",
	"https://a..b/":                        "is not a host",
	"https://-a.example.org/":              "is not a host",
	"https://" + strings.Repeat("a", 64):   "is not a host",
	"https://" + strings.Repeat("a.", 127): "more than 253 bytes",
	"https://1.2.3/":                       "ends in a number and is not an IPv4 address",
	"https://0x7f.1/":                      "ends in a number",
	"https://127.0.0.0x1/":                 "ends in a number",
	"https://2130706433/":                  "ends in a number",
	"https://1.2.3.04/":                    "ends in a number",
	"https://256.1.1.1/":                   "ends in a number",
	"https://[::1/":                        "is not an IPv6 address in brackets",
	"https://[::1]a/":                      "is not an IPv6 address in brackets",
	"https://[]/":                          "is not an IPv6 address in brackets",
	"https://[1.2.3.4]/":                   "is not an IPv6 address in brackets",
	"https://[fe80::1%25eth0]/":            "is not an IPv6 address in brackets",
	"https://::1/":                         `in its host`,
	"https://example.org/a b":              "at byte 21: ' ' can't stand in a URL; write %20",
	"https://example.org/\n":               `at byte 20: '\n' can't stand in a URL; write %0A`,
	"https://example.org/é":                "at byte 20: 'é' (U+00E9) can't stand in a URL; write %C3%A9",
	"https://example.org/\xff":             "write %FF",
	"https://example.org/{id}":             "write %7B",
	"https://example.org/\"><b>":           "write %22",
	`https://example.org/a\b`:              "write %5C",
	"https://example.org/%":                "after % come two hexadecimal digits; write %25",
	"https://example.org/%4":               "after % come two hexadecimal digits",
	"https://example.org/%g0":              "after % come two hexadecimal digits",
	"https://example.org/#a#b":             "a second #; write %23",
	"https://example.org/" + strings.Repeat("x", 2000-19): "has 2001 bytes; 2000 are the most",
}

func TestTargetURL(t *testing.T) {
	for text, want := range targetURLs {
		got := stele.CheckURLReason(text)
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%.60q: %q, want %q", text, got, want)
		}
	}
}

func TestProtocols(t *testing.T) {
	list := strings.Fields(stele.Protocols)
	if len(list) != stele.MaxProtocols {
		t.Errorf("%d protocols, not %d", len(list), stele.MaxProtocols)
	}
	for _, p := range list {
		if !stele.IsProtocol(p) || stele.IsProtocol(strings.ToUpper(p)) {
			t.Error(p)
		}
	}
}

func TestTargetHost(t *testing.T) {
	for text, want := range map[string][2]string{
		"https://Example.ORG/A":        {"https", "example.org"},
		"HTTP://example.org:8080?q":    {"http", "example.org"},
		"ftp://[2001:DB8::1]:21/":      {"ftp", "2001:db8::1"},
		"https://[::1]":                {"https", "::1"},
		"https://192.0.2.1:80":         {"https", "192.0.2.1"},
		"https://example.org#a://b":    {"https", "example.org"},
		"https://example.org?u=http:/": {"https", "example.org"},
		"":                             {"", ""},
		"example.org":                  {"", ""},
		"mailto:a@b":                   {"mailto", ""},
	} {
		target := stele.Target{URL: text}
		if got := [2]string{target.Protocol(), target.Host()}; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// checkAgainstURL makes sure that what we take for a URL net/url does too, and that
// both see the same host: a reader that disagrees about it sends people elsewhere.
func checkAgainstURL(t interface{ Fatalf(string, ...any) }, text string) {
	target := stele.Target{URL: text}
	host, protocol := target.Host(), target.Protocol()
	if stele.CheckURLReason(text) != "" {
		return
	}
	u, err := url.Parse(text)
	if err != nil || !u.IsAbs() || u.User != nil || u.Opaque != "" {
		t.Fatalf("%q is taken; net/url: %v, %#v", text, err, u)
	}
	if want := strings.ToLower(u.Hostname()); host != want || host == "" || protocol != u.Scheme || !stele.IsProtocol(protocol) {
		t.Fatalf("%q points at %q by %q; net/url: %q by %q", text, host, protocol, want, u.Scheme)
	}
	if reason := stele.HostRuleReason(host); reason != "" {
		t.Fatalf("%q: no namespace can allow the host: %s", text, reason)
	}
}

func FuzzTargetURL(f *testing.F) {
	for text := range targetURLs {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { checkAgainstURL(t, text) })
}

func TestTargetURLs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := recordtest.GoodURL.Draw(t, "url")
		if reason := stele.CheckURLReason(text); reason != "" {
			t.Fatalf("%s: %s", text, reason)
		}
		checkAgainstURL(t, text)
	})
}

func TestMediaType(t *testing.T) {
	for text, want := range map[string]string{
		"text/html":                              "",
		"application/vnd.ms-excel.sheet+xml":     "",
		"text/plain; charset=utf-8":              "",
		"text/plain; charset=UTF-8; format=flow": "",
		`text/plain; a="b c"`:                    "",
		`text/plain; a="b\"\\c"; d=""`:           "",
		"text":                                   "is not a media type; write it as in text/html",
		"text/":                                  "is not a media type",
		"/html":                                  "is not a media type",
		"text/html/x":                            "is not a media type",
		"*/*":                                    "is not a media type",
		"text/*":                                 "is not a media type",
		".a/b":                                   "is not a media type",
		"text/html ":                             "is not a media type",
		"téxt/html":                              "is not a media type",
		"text/html\n":                            "is not a media type",
		"Text/HTML":                              `has capitals; write "text/html"`,
		"Text/HTML; charset=utf-8":               `has capitals; write "text/html"`,
		"text/plain;charset=utf-8":               "parameters of \"text/plain\" are not right",
		"text/plain; ":                           "are not right",
		"text/plain;":                            "are not right",
		"text/plain; charset":                    "are not right",
		"text/plain; charset=":                   "are not right",
		"text/plain; Charset=utf-8":              "are not right",
		"text/plain; a=b; a=c":                   "are not right",
		"text/plain; a=b c":                      "are not right",
		`text/plain; a="b"`:                      "are not right", // a token says it
		`text/plain; a="b c`:                     "are not right",
		`text/plain; a="b c"d`:                   "are not right",
		`text/plain; a="\a "`:                    "are not right",
		`text/plain; a=" \`:                      "are not right",
		"text/plain; a=\"\n \"":                  "are not right",
		"text/" + strings.Repeat("a", 128):       "is not a media type",
		"text/a; a=" + strings.Repeat("a", 250):  "has 260 bytes; 255 are the most",
	} {
		got := stele.CheckMediaType(text)
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%.60q: %q, want %q", text, got, want)
		}
	}
}

func TestLanguage(t *testing.T) {
	for _, tag := range []string{"en", "pt-BR", "zh-Hant-TW", "de-CH-1996", "es-419", "sl-rozaj-biske", "x-mine", "i-klingon", "EN", "mul", "de-x-a"} {
		if !stele.IsLanguage(tag) {
			t.Errorf("%s is a language tag", tag)
		}
	}
	for _, tag := range []string{"", "e", "x", "x-", "a-bc", "en-", "-en", "en--us", "pt_BR", "en us", "419", "1a", "abcdefghi", "en-abcdefghi", "é", "en\n", "en" + strings.Repeat("-a", 200)} {
		if stele.IsLanguage(tag) {
			t.Errorf("%q is not a language tag", tag)
		}
	}
}
