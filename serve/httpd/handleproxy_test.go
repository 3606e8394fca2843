package httpd

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

func TestHandleProxy(t *testing.T) {
	f := newHandleFixture(t, nil)
	f.fill()
	f.values("20.500.99999/LOC-1", text(1, "10320/loc", `<locations>
		<location id="0" href="https://a.example.org/x" country="au" weight="1"/>
		<location id="1" href="https://b.example.org/x" http_sc="301" weight="2"/>
		<location id="2" href="javascript:alert(1)" weight="99"/>
		<location id="3" href="https://d.example.org/&#13;&#10;Set-Cookie: a=b" weight="99"/></locations>`),
		text(2, "URL", "https://spare.example.org/"))
	f.values("20.500.99999/LOC-BAD", text(1, "10320/loc", "<locations"), text(2, "URL.X", "https://sub.example.org/"), text(3, "url", "https://main.example.org/"))
	closed := text(1, "URL", "https://secret.example.org/")
	closed.Permissions = stele.AdminRead
	f.values("20.500.99999/CLOSED", closed)
	f.values("20.500.99999/TO-WITHDRAWN", text(1, "HS_ALIAS", "20.500.99999/W-1"))
	f.values("20.500.99999/TO-ELSEWHERE", text(1, "HS_ALIAS", "20.500.88888/X"))
	f.values("20.500.99999/TO-NOTHING", text(1, "HS_ALIAS", "20.500.99999/NOPE"))

	const table = "200 Handle Values for: "
	for _, tt := range []struct{ target, want string }{
		{"/20.500.99999/ABC-1", "302 https://example.org/1"},
		{"/hdl:20.500.99999/abc-1", "302 https://example.org/1"},
		{"/20.500.99999/ABC-1?auth", "302 https://example.org/1"},
		{"/20.500.99999/T-1?auth=true", "302 https://example.org/t"},

		{"/20.500.99999/ABC-1?type=URL", "302 https://example.org/1"},
		{"/20.500.99999/ABC-1?type=EMAIL", table + "20.500.99999/ABC-1\nIndex\tType\tTimestamp\tData\n2\tEMAIL\t2023-11-14T22:13:20Z\ta@example.org\n"},
		{"/20.500.99999/ABC-1?index=3", table + "20.500.99999/ABC-1\nIndex\tType\tTimestamp\tData\n3\tDESC\t2023-11-14T22:13:20Z\théllo 世界\n"},
		{"/20.500.99999/ABC-1?type=NOPE", table + "20.500.99999/ABC-1\nIndex\tType\tTimestamp\tData\n"},
		{"/20.500.99999/ABC-1?noredirect&index=100", table + "20.500.99999/ABC-1\nIndex\tType\tTimestamp\tData\n" +
			`100	HS_ADMIN	2023-11-14T22:13:20Z	{"handle":"0.NA/20.500.99999","index":300,"permissions":"111111111111"}` + "\n"},
		{"/20.500.99999/P1?index=7", "302 http://y/"},
		{"/20.500.99999/T-1?index=2", "302 https://second.example.org/t?x=1"},
		{"/20.500.99999/T-1?noredirect;index=1", table + "20.500.99999/T-1\nIndex\tType\tTimestamp\tData\n1\tURL\t2026-06-01T12:00:00Z\thttps://example.org/t\n"},

		{"/20.500.99999/T-1?urlappend=/a%3Fb=c%23d", "302 https://example.org/t/a?b=c#d"},
		{"/20.500.99999/T-1?urlappend=%3Fa=b+c", "302 https://example.org/t?a=b+c"},
		{"/20.500.99999/T-1?index=2&urlappend=%26y=2", "302 https://second.example.org/t?x=1&y=2"},
		{"/20.500.99999/T-1?urlappend=@evil.example.org", "302 https://example.org/t@evil.example.org"},
		{"/20.500.99999/T-1?urlappend=%0d%0aSet-Cookie:%20a=b", "302 https://example.org/t%0D%0ASet-Cookie:%20a=b"},
		{"/20.500.99999/P1?urlappend=//evil.example.org/", "302 http://x///evil.example.org/"},
		{"/20.500.99999/T-1?urlappend=/../../x", "400 400 Bad Request\nidentifier: 20.500.99999/T-1\ndetail: what follows the registered name climbs out of the target by dot segments; it is not passed on\ncode: resolve.suffix-climbs-out\n"},

		{"/20.500.99999/ALIAS", "302 https://example.org/t"},
		{"/20.500.99999/ALIAS?type=HS_ALIAS", table + "20.500.99999/T-1\nIndex\tType\tTimestamp\tData\n"}, // it is followed all the same
		{"/20.500.99999/ALIAS?ignore_aliases", table + "20.500.99999/ALIAS\nIndex\tType\tTimestamp\tData\n1\tHS_ALIAS\t2023-11-14T22:13:20Z\t20.500.99999/t-1\n"},
		{"/20.500.99999/ALIAS?urlappend=/a", "302 https://example.org/t/a"},
		{"/20.500.99999/CHAIN-5", "302 https://example.org/end"},
		{"/20.500.99999/TO-ELSEWHERE", "302 https://hdl.example.net/20.500.88888/X"},
		{"/20.500.88888/X?noredirect", "302 https://hdl.example.net/20.500.88888/X?noredirect"},

		{"/20.500.99999/LOC-1", "302 https://a.example.org/x"},
		{"/20.500.99999/LOC-1?locatt=id:1", "301 https://b.example.org/x"},
		{"/20.500.99999/LOC-1?locatt=id:1&urlappend=%2Fy", "301 https://b.example.org/x/y"},
		{"/20.500.99999/LOC-1?locatt=id:2", "302 https://a.example.org/x"}, // no client is sent there
		{"/20.500.99999/LOC-1?locatt=country:au", "302 https://a.example.org/x"},
		{"/20.500.99999/LOC-1?locatt=x%0d%0a:y", "302 https://a.example.org/x"},
		{"/20.500.99999/LOC-1?type=URL", "302 https://spare.example.org/"},
		{"/20.500.99999/LOC-BAD", "302 https://main.example.org/"},
		{"/20.500.99999/LOC-BAD?type=URL.X", "302 https://sub.example.org/"},
		{"/20.500.99999/T-1?locatt=id:1", "302 https://example.org/t"}, // it has no list of locations

		{"/20.500.99999/CLOSED?noredirect", table + "20.500.99999/CLOSED\nIndex\tType\tTimestamp\tData\n"},
		{"/20.500.99999/CLOSED?type=URL", table + "20.500.99999/CLOSED\nIndex\tType\tTimestamp\tData\n"},
	} {
		if got := told(f.ask("GET", tt.target)); got != tt.want {
			t.Errorf("GET %s:\ngot  %s\nwant %s", tt.target, got, tt.want)
		}
	}
	for target, want := range map[string]int{
		"/20.500.99999/nope":                     http.StatusNotFound,
		"/20.500.99999/nope?noredirect":          http.StatusNotFound,
		"/20.500.99999/LOOP-A":                   http.StatusLoopDetected,
		"/20.500.99999/LOOP-A?noredirect":        http.StatusLoopDetected,
		"/20.500.99999/LOOP-A?ignore_aliases":    http.StatusOK,
		"/20.500.99999/CHAIN-0":                  http.StatusLoopDetected,
		"/20.500.99999/CHAIN-0?type=HS_ALIAS":    http.StatusLoopDetected,
		"/20.500.99999/W-1?noredirect":           http.StatusGone,
		"/20.500.99999/TO-WITHDRAWN?noredirect":  http.StatusGone,
		"/20.500.99999/TO-NOTHING?noredirect":    http.StatusNotFound,
		"/20.500.99999/R-1?noredirect":           http.StatusNotFound,
		"/20.500.99999/H-1?noredirect":           http.StatusNotFound,
		"/20.500.99999/BAD?type=URL":             http.StatusOK,
		"/20.500.99999/ABC-1?noredirect&index=x": http.StatusOK,
	} {
		if res, body := f.ask("GET", target); res.StatusCode != want || res.Header.Get("Location") != "" {
			t.Errorf("GET %s: got %d %s; want %d", target, res.StatusCode, body, want)
		}
	}
}

// The server redirects no client where no target may point, whatever the values say.
func TestHandleProxyRefuses(t *testing.T) {
	f := newHandleFixture(t, nil)
	f.fill()
	for _, url := range []string{"javascript:alert(1)", "data:text/html,x", "https://x/\r\nA: b", "file:///etc/passwd", "//x/", "https://", "https://a b/", ""} {
		name := "20.500.99999/V" + strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return r
			}
			return '-'
		}, url)
		f.values(name, text(1, "URL", url), text(2, "10320/loc", `<locations><location href="`+strings.ReplaceAll(url, "\r\n", "&#13;&#10;")+`"/></locations>`))
		for _, query := range []string{"", "?type=URL", "?locatt=href", "?urlappend=https://evil.example.org/"} {
			if res, body := f.ask("GET", "/"+name+query); res.Header.Get("Location") != "" || res.StatusCode != http.StatusOK {
				t.Errorf("%q%s: %d %q %s", url, query, res.StatusCode, res.Header.Get("Location"), body)
			}
		}
	}
}

// What leads back to this server, and to the same handle, is not followed.
func TestHandleProxyOwnLoop(t *testing.T) {
	f := newHandleFixture(t, nil)
	f.values("20.500.99999/SELF", text(1, "URL", "http://id.example.org/20.500.99999/SELF?type=URL"))
	for _, query := range []string{"", "?type=URL", "?urlappend=a"} {
		if res, body := f.ask("GET", "/20.500.99999/SELF"+query); res.StatusCode != http.StatusLoopDetected {
			t.Errorf("%s: %d %s", query, res.StatusCode, body)
		}
	}
}

// Where a reader's right opened the way, the answer is private.
func TestHandleProxyPrivate(t *testing.T) {
	f := newHandleFixture(t, nil)
	f.fill()
	f.values("20.500.99999/OPEN", text(1, "HS_ALIAS", "20.500.99999/HIDDEN"))
	f.put("20.500.99999/HIDDEN", stele.Record{Readers: []string{"user:ann"}, Values: []stele.HandleValue{text(1, "HS_ALIAS", "20.500.99999/ABC-1")}})
	f.values("20.500.99999/OPEN-2", text(1, "HS_ALIAS", "20.500.99999/H-1"))
	for _, target := range []string{"/20.500.99999/OPEN", "/20.500.99999/OPEN?urlappend=/a", "/20.500.99999/OPEN?noredirect", "/20.500.99999/OPEN-2", "/uri-res/N2L?20.500.99999/OPEN-2", "/uri-res/N2Ls?20.500.99999/OPEN"} {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(w, r.WithContext(auth.With(r.Context(), auth.Principal{Name: "ann"})))
		if got := w.Header().Get("Cache-Control"); w.Code != http.StatusFound && w.Code != http.StatusOK || got != "private, no-store" {
			t.Errorf("%s: %d, Cache-Control %q", target, w.Code, got)
		}
		if res, body := f.ask("GET", target); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s for the public: %d %s", target, res.StatusCode, body)
		}
	}
}

// By weight, locations are drawn.
func TestHandleProxyWeights(t *testing.T) {
	f := newHandleFixture(t, nil)
	f.values("20.500.99999/LOC", text(1, "10320/loc", `<locations><location href="https://a/" weight="1"/><location href="https://b/" weight="3"/></locations>`))
	f.drawn = func(n int) int {
		if n != 4000 {
			t.Errorf("drawn from %d", n)
		}
		return 1000
	}
	if got := told(f.ask("GET", "/20.500.99999/LOC")); got != "302 https://b/" {
		t.Errorf("got %s", got)
	}
}

// The values are shown in the form that is liked.
func TestShowValues(t *testing.T) {
	f := newHandleFixture(t, nil)
	f.fill()
	f.values("20.500.99999/HTML", text(1, "NOTE", "<script>alert(1)</script>"))
	for accept, media := range map[string]string{
		"":                 textType,
		"text/html":        htmlType,
		"application/json": "application/json;charset=utf-8",
		"text/plain":       textType,
	} {
		res, body := f.ask("GET", "/20.500.99999/HTML?noredirect", "Accept", accept)
		if got := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || got != media || !strings.Contains(res.Header.Get("Vary"), "Accept") {
			t.Errorf("Accept %q: %d %q, Vary %q", accept, res.StatusCode, got, res.Header.Get("Vary"))
		}
		if strings.Contains(body, "<script>alert") == (media == htmlType) {
			t.Errorf("Accept %q: %s", accept, body)
		}
	}
	for target, want := range map[string][2]string{ // what is there, and what is not
		"/20.500.99999/ABC-1?noredirect":         {"2 EMAIL", "3 NOTE"},
		"/20.500.99999/ABC-1?noredirect&index=1": {"https://example.org/1", "EMAIL"},
		"/20.500.99999/T-1?noredirect":           {"https://second.example.org/t", "EMAIL"},
		"/.info/20.500.99999/ABC-1":              {"https://example.org/1", "no address is registered"},
	} {
		if _, body := f.ask("GET", target, "Accept", "text/html"); !strings.Contains(body, want[0]) || strings.Contains(body, want[1]) {
			t.Errorf("%s: want %q and not %q in %s", target, want[0], want[1], body)
		}
	}
	if res, body := f.ask("HEAD", "/20.500.99999/HTML?noredirect"); res.StatusCode != http.StatusOK || body != "" {
		t.Errorf("HEAD: %d %q", res.StatusCode, body)
	}
}

// Links of the values stand in the head of a redirect, whatever is in them on one
// line.
func TestHandleLinks(t *testing.T) {
	f := newHandleFixture(t, nil)
	const list = `<links>
		<location rel="describedby" href="https://example.org/a&#34;b" media-type="application/json" hreflang="en" anchor="https://example.org/1"/>
		<location rel="x&#13;&#10;A: b" href="https://example.org/2"/>
		<location rel="item" href="javascript:alert(1)"/>
		<location href="https://example.org/no-relation"/></links>`
	f.values("20.500.99999/LINKS", text(1, "URL", "https://example.org/1"), text(2, "10320/links", list))
	closed := text(2, "10320/links", list)
	closed.Permissions = stele.AdminRead
	f.values("20.500.99999/CLOSED", text(1, "URL", "https://example.org/1"), closed)
	const want = `<https://example.org/a%22b>; anchor="https://example.org/1"; rel="describedby"; type="application/json"; hreflang=en`
	for _, target := range []string{"/20.500.99999/LINKS", "/20.500.99999/LINKS?urlappend=/a", "/uri-res/N2L?20.500.99999/LINKS"} {
		res, _ := f.ask("GET", target)
		if got := res.Header.Get("Link"); res.StatusCode != http.StatusFound || !strings.HasSuffix(got, ", "+want) {
			t.Errorf("%s: %d, Link: %s", target, res.StatusCode, got)
		}
	}
	if res, _ := f.ask("GET", "/20.500.99999/CLOSED"); strings.Contains(res.Header.Get("Link"), "a%22b") {
		t.Errorf("of a closed value: %s", res.Header.Get("Link"))
	}
	many := stele.Record{ID: f.id("20.500.99999/MANY"), Values: []stele.HandleValue{
		text(1, "10320/links", "<l>"+strings.Repeat(`<location rel="item" href="https://example.org/x"/>`, 100)+"</l>")}}
	if n := strings.Count(string(appendHandleLinks(nil, &many)), "rel="); n != maxHandleLinks {
		t.Errorf("there are %d links", n)
	}
}

// An answer is good for as long as the values that it was made of.
func TestHandleTTL(t *testing.T) {
	f := newHandleFixture(t, nil)
	f.fill()
	lasting := func(ttl uint32, absolute bool, kind, data string) stele.HandleValue {
		v := text(1, kind, data)
		v.TTL, v.TTLAbsolute = ttl, absolute
		return v
	}
	noon := uint32(handleNoon.Unix())
	f.values("20.500.99999/A", lasting(60, false, "URL", "https://example.org/"))
	f.values("20.500.99999/B", lasting(noon+90, true, "URL", "https://example.org/"))
	f.values("20.500.99999/C", lasting(noon-1, true, "URL", "https://example.org/"))
	f.values("20.500.99999/D", lasting(1<<32-1, false, "URL", "https://example.org/"))
	f.values("20.500.99999/E", lasting(30, false, "HS_ALIAS", "20.500.99999/A"))
	f.values("20.500.99999/F", lasting(7200, false, "HS_ALIAS", "20.500.99999/T-1"))
	for name, want := range map[string]string{
		"A": "max-age=60", "B": "max-age=90", "C": "no-cache", "D": "max-age=2592000", "E": "max-age=30", "F": "max-age=3600",
	} {
		for _, query := range []string{"", "?urlappend=/a"} {
			res, body := f.ask("GET", "/20.500.99999/"+name+query)
			if got := res.Header.Get("Cache-Control"); res.StatusCode != http.StatusFound || got != want {
				t.Errorf("%s%s: %d, Cache-Control %q, want %q; %s", name, query, res.StatusCode, got, want, body)
			}
		}
	}
}
