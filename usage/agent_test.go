package usage

import (
	"fmt"
	"strings"
	"testing"
)

func TestAgents(t *testing.T) {
	agents, err := NewAgents(nil)
	if err != nil {
		t.Fatal(err)
	}
	for agent, want := range map[string]Class{
		firefox: Regular, safari: Regular,
		"Stele/1.2 (+https://id.example.org/.well-known/stele)": Ignored, "Stele/1.2": Machine,
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0":                  Regular,
		"Mozilla/5.0 (Linux; Android 13; CUBOT P80) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Mobile Safari/537.36":                        Regular,
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 DuckDuckGo/7 Safari": Regular,
		"Lynx/2.9.2 libwww-FM/2.14 SSL-MM/1.4.1": Regular,
		curl:                                     Machine,
		"Wget/1.25.0":                            Machine,
		"python-requests/2.32.4":                 Machine,
		"Python-urllib/3.13":                     Machine,
		"Java/21.0.7":                            Machine,
		"libwww-perl/6.78":                       Machine,
		"okhttp/4.12.0":                          Machine,
		"axios/1.9.0":                            Machine,
		"node-fetch/1.0 (+https://github.com/bitinn/node-fetch)": Machine,
		"Apache-HttpClient/4.5.14 (Java/17.0.15)":                Machine,
		"Go-http-client/2.0":                                     Machine,
		"libcurl/8.5.0 r-curl/6.2.3 httr/1.4.7":                  Machine,
		"Zotero/7.0.15":                                          Machine,
		googlebot:                                                Robot,
		"Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)":    Robot,
		"meta-externalagent/1.1 (+https://developers.facebook.com/docs/sharing/bot)": Robot,
		"http.rb/5.3.1 (Mastodon/4.3.8; +https://mastodon.example/)":                 Robot,
		"facebookexternalhit/1.1":                                                Robot,
		"Mozilla/5.0 (compatible; Baiduspider/2.0)":                              Robot,
		"Mozilla/5.0 (X11; Linux x86_64) HeadlessChrome/142.0.0.0 Safari/537.36": Robot,
		"":                              Robot,
		"Mozilla/5.0":                   Robot,
		strings.Repeat("Mozilla ", 999): Regular,
	} {
		if have := agents.Class(agent); have != want {
			t.Errorf("%q is %d, want %d", agent, have, want)
		}
	}
	for _, rule := range agents.list {
		if rule.reason == "" || rule.since.IsZero() {
			t.Errorf("%s has no reason or no date", rule.match)
		}
	}
}

// TestRobotsOfCounter checks that the list of COUNTER adds robots, and takes no tools off.
func TestRobotsOfCounter(t *testing.T) {
	agents, err := NewAgents(strings.NewReader(`[{"pattern": "curl\\/", "last_changed": "2017-08-08"}, {"pattern": "^oddity"}, {"pattern": "Firefox/1\\b"}]`))
	if err != nil {
		t.Fatal(err)
	}
	for agent, want := range map[string]Class{curl: Machine, "Oddity/2": Robot, firefox: Regular} {
		if have := agents.Class(agent); have != want {
			t.Errorf("%q is %d, want %d", agent, have, want)
		}
	}
	for _, bad := range []string{"", "{}", `[{}]`, `[{"pattern": "(?=x)"}]`, `[{"pattern": "("}]`} {
		if _, err := NewAgents(strings.NewReader(bad)); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

func FuzzAgents(f *testing.F) {
	f.Add("robot\t2026-11-17\tbot\\b\treason\n", "[]")
	f.Add("# nothing\n", `[{"pattern": "bot"}]`)
	f.Add("machine\t2026-13-17\t(\t\n", `{"pattern": 1}`)
	f.Fuzz(func(t *testing.T, own, counter string) {
		if list, err := parseAgents(own); err == nil {
			for _, rule := range list {
				if rule.match == nil || rule.class == unclassified || rule.reason == "" {
					t.Fatal("a rule is incomplete")
				}
			}
		}
		if list, err := parseRobots(strings.NewReader(counter)); err == nil {
			for _, match := range list {
				match.MatchString("x")
			}
		}
	})
}

func TestRefererHost(t *testing.T) {
	for referrer, want := range map[string]string{
		"https://www.example.co.uk/a?b#c": "example.co.uk", "http://user:pw@Sub.Example.ORG:8080/": "example.org", "android-app://com.example/": "",
		"": "", "https://": "", "https://localhost/": "", "http://[2001:db8::1]/": "", "http://192.0.2.1/": "", "https://a_b.example.org?x": "example.org", "https://ex\x00ample.org": "",
		"http://anns-macbook.local/": "", "http://wiki.intranet:8080/": "", "https://ann.github.io/": "ann.github.io",
	} {
		if have := registrable(refererHost(referrer)); have != want {
			t.Errorf("%q is of %q, want %q", referrer, have, want)
		}
	}
}

// TestClassesTogether: of 500 agents that are used by turns, as many as a server sees in a minute, none replaces another.
func TestClassesTogether(t *testing.T) {
	c := newClasses()
	for _, keep := range []bool{true, false} {
		for n := range 500 {
			hash := c.hash(fmt.Sprint("Mozilla/5.0 Firefox/140.", n))
			if keep {
				c.keep(hash, Machine)
			} else if class := c.find(hash); class != Machine {
				t.Errorf("the class of %d is forgotten", n)
			}
		}
	}
}
