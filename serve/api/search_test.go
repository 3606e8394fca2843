package api

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestSearch searches by everything that the API offers, right after the writes.
func TestSearch(t *testing.T) {
	s := newSite(t)
	s.add(
		`{"id":"ark:12345/r1","url":"https://rivers.example.org/Par%C3%A1","metadata":{"what":"On the rivers of Pará","who":"Castro, Maria"}}`,
		`{"id":"ark:12345/r2","url":"https://example.org/2","metadata":{"what":"On the river Tapajós"}}`,
		`{"id":"ark:99999/r3","url":"https://example.org/3","metadata":{"what":"Rivers, restricted"},"readers":["user:carl"]}`,
	)
	for _, tt := range []struct{ user, query, want string }{
		{theAdmin, "q=rivers", "ark:99999/r3 ark:12345/r1"},
		{theReader, "q=rivers", "ark:12345/r1"},
		{theStranger, "q=rivers", "ark:99999/r3"},
		{theOutsider, "q=rivers", ""},
		{theReader, "q=PARA+castro", "ark:12345/r1"},
		{theReader, "q=riv*&limit=1", "ark:12345/r2 ark:12345/r1"},
		{theReader, "q=%22the+river%22", "ark:12345/r2"},
		{theReader, "q=rivers.example.org", "ark:12345/r1"},
		{theReader, "q=" + url.QueryEscape("https://rivers.example.org/Pará"), "ark:12345/r1"},
		{theReader, "host=RIVERS.example.org", "ark:12345/r1"},
		{theReader, "q=ark:/12345/r-1", "ark:12345/r1"},                                 // a name in another spelling
		{theReader, "q=URN:EXAMPLE:x1", "ark:12345/x1"},                                 // an alias
		{theReader, "q=ark:/12345/hidden", "ark:12345/hidden"},                          // reserved
		{theOutsider, "q=ark:/12345/hidden", ""},                                        //
		{theOutsider, "q=ark:/12345/secret", ""},                                        //
		{theOutsider, "q=hidden", ""},                                                   //
		{theStranger, "q=hidden", ""},                                                   //
		{theOutsider, "q=ark:/12345/r1", "ark:12345/r1"},                                // public: who knows the name may read it
		{theOutsider, "q=ark:/12345/r1&state=withdrawn", ""},                            //
		{theReader, "q=example&namespace=ark:12345&state=reserved", "ark:12345/hidden"}, //
		{theReader, "visibility=restricted", "ark:12345/secret"},
		{theReader, "state=withdrawn&by=local", "ark:12345/gone"},
		{theReader, "q=rivers&by=nemo", ""},
		{theAdmin, "q=rivers&namespace=ark:", "ark:99999/r3 ark:12345/r1"},
		{theReader, "q=rivers&before=2020-01-01T00:00:00Z", ""},
		{theReader, "q=rivers&after=2020-01-01T00:00:00Z&registeredAfter=2020-01-01T00:00:00Z", "ark:12345/r1"},
		{theReader, "q=rivers&registeredBefore=2020-01-01T00:00:00Z", ""},
	} {
		if got := strings.Join(s.all(tt.user, "/search?"+tt.query), " "); got != tt.want {
			t.Errorf("%s as %s: got %q, want %q", tt.query, tt.user, got, tt.want)
		}
	}
	for target, want := range map[string]int{
		"/search?q=" + strings.Repeat("a+", 40): 400, "/search?q=" + strings.Repeat("a", 1001): 400, "/search?cursor=x": 400, "/search?cursor=" + s.handler.cursor("abc"): 400,
		"/search?namespace=ark:99999": 403, "/search?namespace=%25": 400, "/search?state=gone": 400, "/search?after=yesterday": 400, "/search?words=x": 400,
	} {
		if got := s.ask(theReader, "GET", Root+target, ""); got.StatusCode != want {
			t.Errorf("%s: %d %s", target, got.StatusCode, got.body)
		}
	}
	if a := s.ask("", "GET", Root+"/search?q=rivers", ""); a.StatusCode != 401 {
		t.Errorf("the public: %d", a.StatusCode)
	}
}

// TestSearchPages: the pages of a search have every record once, also if they end early because
// records are large, and while others are added.
func TestSearchPages(t *testing.T) {
	s := newSite(t)
	var want []string
	large := strings.Repeat("x ", 4900)
	for i := range 30 {
		name := fmt.Sprintf("ark:12345/p%02d", i)
		s.add(fmt.Sprintf(`{"id":%[1]q,"url":"https://example.org/p","metadata":{"what":"pages","a":%[2]q,"b":%[2]q,"c":%[2]q,"d":%[2]q,"e":%[2]q}}`, name, large))
		want = append(want, name)
	}
	slices.Reverse(want)
	var found []string
	pages := 0
	for cursor := ""; ; pages++ {
		var page struct {
			Items []struct{ ID string }
			Next  string
		}
		s.ask(theReader, "GET", Root+"/search?q=pages&limit=1000"+cursor, "").want(t, 200).read(t, &page)
		for _, item := range page.Items {
			found = append(found, item.ID)
		}
		if page.Next == "" {
			break
		}
		cursor = "&cursor=" + page.Next
		s.add(fmt.Sprintf(`{"id":"ark:12345/q%d","url":"https://example.org/p","metadata":{"what":"pages"}}`, pages))
	}
	if !slices.Equal(found, want) || pages == 0 {
		t.Errorf("%d pages\ngot  %q\nwant %q", pages+1, found, want)
	}
}
