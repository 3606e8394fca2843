package api

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/usage"
)

// TestUsageTables asks for figures in JSON and CSV.
func TestUsageTables(t *testing.T) {
	s := newSite(t)
	agents, err := usage.NewAgents(nil)
	if err != nil {
		t.Fatal(err)
	}
	counter := usage.New(usage.Options{Store: s.registry, Agents: agents, Schemes: s.schemes, Now: s.now, Space: func(context.Context, stele.ID) stele.NamespaceKey {
		return stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}
	}})
	counter.Redirected(stele.StoredID("ark", "ark:12345/x1"), netip.MustParseAddr("192.0.2.1"), "curl/8.14.1", "https://www.example.net/")
	ended, stop := context.WithCancel(t.Context())
	stop()
	counter.Run(ended) // it writes what is there
	for target, want := range map[string]string{
		"/statistics?prefix=ark:12345&by=name&format=csv":          "name,regular,regular_unique,machine,machine_unique,descriptions,robots,failures,visitors\nark:12345/x1,0,0,1,1,0,0,0,0\n",
		"/usagebreakdown?prefix=ark:12345&by=referrer&format=csv":  "referrer,count\nexample.net,1\n",
		"/usagebreakdown?prefix=ark:12345&by=country&format=csv":   "country,count\n",
		"/unusednames?prefix=ark:12345/x1&format=csv":              "name,created\n",
		"/usagebreakdown?prefix=ark:12345&by=referrer&format=json": `"rows":[{"text":"example.net","count":1}],"total":1`,
		"/usagereport?prefix=ark:12345":                            `"metric-type":"total-resolutions","access-method":"machine","count":1`,
	} {
		a := s.ask(theAdmin, "GET", Root+target, "").want(t, 200)
		if !strings.Contains(a.body, want) || strings.Contains(target, "csv") && a.body != want {
			t.Errorf("%s: %s", target, a.body)
		}
	}

	// Without a token there is nothing, until the owner wants it.
	s.ask("", "GET", Root+"/statistics?prefix=ark:12345", "").want(t, 401)
	s.ask(theAdmin, "PUT", Root+"/usagesettings/ark:12345", `{"public":true}`).want(t, 200)
	for target, status := range map[string]int{
		"/statistics?prefix=ark:12345":                 200,
		"/statistics?prefix=ark:12345&format=csv":      200,
		"/statistics?prefix=ark:12345&by=name":         401,
		"/statistics?prefix=ark:12345&by=day":          401,
		"/statistics?prefix=ark:12345/x":               401,
		"/usagebreakdown?prefix=ark:12345&by=referrer": 401,
		"/unusednames?prefix=ark:12345":                401,
		"/usagereport?prefix=ark:12345":                401,
		"/usagesettings/ark:12345":                     401,
	} {
		a := s.ask("", "GET", Root+target, "").want(t, status)
		if status == 200 && a.get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %v", target, a.Header)
		}
	}
}
