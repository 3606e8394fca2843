package api

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
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

// TestUsageSettings checks that a change leaves what it does not have as it is, and that a client may send back what it was told.
func TestUsageSettings(t *testing.T) {
	s := newSite(t)
	const path = Root + "/usagesettings/ark:12345"
	var u apijson.UsageSettings
	for _, c := range []struct {
		body             string
		countAll, public bool
	}{
		{`{"public":true}`, false, true},
		{`{"countAll":true}`, true, true},
		{`{}`, true, true},
		{`{"public":false}`, true, false},
		{`{"countAll":false,"by":"ann","changed":"2026-11-17T12:00:00Z"}`, false, false},
	} {
		s.ask(theAdmin, "PUT", path, c.body).want(t, 200)
		s.ask(theAdmin, "GET", path, "").want(t, 200).read(t, &u)
		if u.CountAll != c.countAll || u.Public != c.public || u.By == "ann" {
			t.Errorf("after %s: %+v", c.body, u)
		}
		u = apijson.UsageSettings{}
	}
}

// TestUsageLogs sends a log file in pieces, and has it counted.
func TestUsageLogs(t *testing.T) {
	s := newSite(t)
	at := s.now().Add(-24 * time.Hour)
	line := "192.0.2.1 - - [" + at.Format("02/Jan/2006:15:04:05 -0700") + "] \"GET /ark:12345/x1 HTTP/1.1\" 302 0 \"-\" \"curl/8.14.1\"\n"
	begin := func() string {
		t.Helper()
		var log apijson.UsageLog
		s.ask(theAdmin, "POST", Root+"/usagelogs", "").want(t, 201).read(t, &log)
		return Root + "/usagelogs/" + log.ID
	}
	add := func(path, piece string, at, status int) {
		t.Helper()
		s.ask(theAdmin, "PUT", path+"?at="+strconv.Itoa(at), piece, "Content-Type", bytesType).want(t, status)
	}
	path := begin()
	add(path, line[:30], 0, 200)
	add(path, line[:30], 0, 200)
	add(path, line[40:], 40, 409)
	add(path, line[30:], 30, 200)
	options := func(size int) string { return fmt.Sprintf(`{"name":"access.log","size":%d}`, size) }
	if a := s.ask(theAdmin, "POST", path, options(len(line))).want(t, 200); !strings.Contains(a.body, `"done":true`) || !strings.Contains(a.body, `"counted":1`) {
		t.Errorf("%s", a.body)
	}
	add(path, line, 0, 404)
	path = begin()
	add(path, line, 0, 200)
	if a := s.ask(theAdmin, "POST", path, options(len(line))).want(t, 200); !strings.Contains(a.body, `"lines":0`) {
		t.Errorf("it was counted before: %s", a.body)
	}
	path = begin()
	s.ask(theAdmin, "POST", path, options(5)).want(t, 409)
	path = begin()
	s.ask(theAdmin, "POST", path, `{"name":"access.log","size":0,"format":"other"}`).want(t, 400)
	s.ask(theAdmin, "DELETE", path, "").want(t, 204)
	s.ask(theAdmin, "DELETE", path, "").want(t, 404)
	s.ask(theOwner, "POST", Root+"/usagelogs", "").want(t, 403)
	if a := s.ask(theAdmin, "GET", Root+"/statistics?prefix=ark:12345/x1&format=csv", "").want(t, 200); !strings.Contains(a.body, ",0,0,1,1,0,0,0,0\n") {
		t.Errorf("%s", a.body)
	}
}
