package links

import (
	"strings"
	"testing"
	"time"
)

func rules(t testing.TB) *Rules {
	t.Helper()
	r, err := UsualRules()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// prose is a page with a title and enough words to compare.
func prose(title, topic string) string {
	return "<html><head><title>" + title + "</title><script>var x = 'not read'</script></head><body><p>" +
		strings.Repeat("All about "+topic+" and what was found there in the archive of "+topic+". ", 20) + "</p></body></html>"
}

func webPage(status int, body string) Answer {
	return Answer{URL: "https://a.example/x/1", Final: "https://a.example/x/1", Status: status, Header: Header{"content-type": {"text/html; charset=utf-8"}}, Body: []byte(body), Length: -1}
}

func with(a Answer, change func(*Answer)) Answer {
	change(&a)
	return a
}

func redirected(final string, statuses ...int) func(*Answer) {
	return func(a *Answer) {
		a.Final = final
		for _, s := range statuses {
			a.Hops = append(a.Hops, Hop{a.URL, s})
		}
	}
}

// TestJudge plays each row of the table of evidence.
func TestJudge(t *testing.T) {
	page := prose("A map of Pará", "maps")
	header := func(status int, name, value string) Answer {
		return with(webPage(status, "<p>no</p>"), func(a *Answer) { a.Header[name] = []string{value} })
	}
	soft := func(home string) Answer {
		return with(webPage(200, page), func(a *Answer) { a.Neighbour, a.Home = See(200, []byte(page)), See(200, []byte(home)) })
	}
	for name, test := range map[string]struct {
		a      Answer
		weight Weight
		state  State
		cause  Cause
	}{
		"good":                       {webPage(200, page), Good, OK, Answered},
		"not modified":               {Answer{Status: 304}, Good, OK, Answered},
		"301 all the way":            {with(webPage(200, page), redirected("https://b.example/x/1", 301, 308)), Good, Moved, Redirected},
		"302":                        {with(webPage(200, page), redirected("https://b.example/x/1", 302)), Good, OK, Answered},
		"301 and 302":                {with(webPage(200, page), redirected("https://b.example/x/1", 301, 302)), Good, OK, Answered},
		"to the home page":           {with(webPage(200, page), redirected("https://a.example/", 301)), Weak, Unsure, HomePage},
		"to an error page":           {with(webPage(200, page), redirected("https://a.example/errors/NotFound.aspx", 302)), Weak, Unsure, ErrorPage},
		"to login, no form":          {with(webPage(200, page), redirected("https://a.example/login", 302)), Weak, Unsure, ErrorPage},
		"to a login page":            {with(webPage(200, "<form><input name=p type=password></form>"), redirected("https://a.example/login", 302)), Nothing, Blocked, NeedsAccess},
		"title en":                   {webPage(200, prose("404 | Page not found - My site", "x")), Bad, Failing, SaysNotFound},
		"title pt":                   {webPage(200, prose("Página não encontrada", "x")), Bad, Failing, SaysNotFound},
		"title es":                   {webPage(200, prose("Página no encontrada | Museo", "x")), Bad, Failing, SaysNotFound},
		"title fr":                   {webPage(200, prose("Page introuvable", "x")), Bad, Failing, SaysNotFound},
		"title de":                   {webPage(200, prose("Seite nicht gefunden", "x")), Bad, Failing, SaysNotFound},
		"a work with such a title":   {webPage(200, prose("Paradise not found: letters of a traveller", "x")), Good, OK, Answered},
		"a year 404":                 {webPage(200, prose("The year 404 in Ravenna", "x")), Good, OK, Answered},
		"same as a neighbour":        {soft(prose("Home", "the whole archive of another kind")), Bad, Failing, SameAsOther},
		"a single-page site":         {soft(page), Good, OK, Answered},
		"neighbour answers 404":      {with(webPage(200, page), func(a *Answer) { a.Neighbour = See(404, []byte(page)) }), Good, OK, Answered},
		"401":                        {webPage(401, ""), Nothing, Blocked, NeedsAccess},
		"402":                        {webPage(402, ""), Nothing, Blocked, NeedsAccess},
		"407":                        {webPage(407, ""), Nothing, Blocked, NeedsAccess},
		"403":                        {webPage(403, ""), Nothing, Blocked, Forbidden},
		"Cloudflare's header":        {header(403, "cf-mitigated", "challenge"), Nothing, Blocked, Wall},
		"Cloudflare's page":          {webPage(503, "<script>window._cf_chl_opt={}</script>"), Nothing, Blocked, Wall},
		"Cloudflare's page with 200": {webPage(200, "<script>window._cf_chl_opt={}</script>"), Nothing, Blocked, Wall},
		"Turnstile":                  {webPage(403, `<div class="cf-turnstile">`), Nothing, Blocked, Wall},
		"a form with Turnstile":      {webPage(200, page+`<div class="cf-turnstile">`), Good, OK, Answered},
		"Vercel":                     {header(429, "x-vercel-mitigated", "challenge"), Nothing, Blocked, Wall},
		"AWS":                        {header(405, "x-amzn-waf-action", "captcha"), Nothing, Blocked, Wall},
		"DataDome":                   {header(403, "x-datadome", "protected"), Nothing, Blocked, Wall},
		"DataDome lets pass":         {with(webPage(200, page), func(a *Answer) { a.Header["x-datadome"] = []string{"protected"} }), Good, OK, Answered},
		"DataDome's cookie":          {header(403, "set-cookie", "datadome=abc; Path=/"), Nothing, Blocked, Wall},
		"Akamai's cookie":            {header(403, "set-cookie", "_abck=0; Path=/"), Nothing, Blocked, Wall},
		"Akamai lets pass":           {with(webPage(200, page), func(a *Answer) { a.Header["set-cookie"] = []string{"_abck=0"} }), Good, OK, Answered},
		"Anubis":                     {webPage(200, `<script id="anubis_challenge">{}</script>`), Nothing, Blocked, Wall},
		"Imperva":                    {webPage(200, `<iframe src="/_Incapsula_Resource?x=1"></iframe>`), Nothing, Blocked, Wall},
		"Imperva lets pass":          {webPage(200, page+`<script src="/_Incapsula_Resource?x=1"></script>`), Good, OK, Answered},
		"Imperva's header":           {with(webPage(200, page), func(a *Answer) { a.Header["x-iinfo"] = []string{"1-2"} }), Good, OK, Answered},
		"hCaptcha":                   {webPage(429, `<div class="hcaptcha">`), Nothing, Blocked, Wall},
		"reCAPTCHA":                  {webPage(503, `<div class="g-recaptcha">`), Nothing, Blocked, Wall},
		"LinkedIn":                   {webPage(999, ""), Nothing, Blocked, Wall},
		"429 and wait":               {with(webPage(429, ""), func(a *Answer) { a.Wait = time.Minute }), Nothing, Unchecked, AskedToWait},
		"429":                        {webPage(429, ""), Nothing, Unchecked, AskedToWait},
		"503 and wait":               {with(webPage(503, ""), func(a *Answer) { a.Wait = time.Minute }), Nothing, Unchecked, AskedToWait},
		"503":                        {webPage(503, ""), Bad, Unchecked, BadStatus},
		"404":                        {webPage(404, page), Bad, Unchecked, NotFound},
		"404 of a site with a wall":  {header(404, "x-datadome", "protected"), Bad, Unchecked, NotFound},
		"410":                        {webPage(410, ""), Bad, Unchecked, SaysGone},
		"400":                        {webPage(400, ""), Bad, Unchecked, BadStatus},
		"500":                        {webPage(500, ""), Bad, Unchecked, BadStatus},
		"robots forbid":              {Answer{Failure: FailRobots}, Nothing, Blocked, RobotsForbid},
		"robots can't be read":       {Answer{Failure: FailRobotsUnread}, Nothing, Blocked, RobotsUnread},
		"no such host":               {Answer{Failure: FailNoName}, Bad, Unchecked, NoName},
		"SERVFAIL":                   {Answer{Failure: FailDNS}, Bad, Unchecked, DNSFailed},
		"refused":                    {Answer{Failure: FailRefused}, Bad, Unchecked, Refused},
		"reset":                      {Answer{Failure: FailReset}, Bad, Unchecked, Reset},
		"time-out":                   {Answer{Failure: FailTimeout}, Bad, Unchecked, TimedOut},
		"loop":                       {Answer{Failure: FailLoop}, Bad, Unchecked, Loop},
		"certificate":                {with(webPage(200, ""), func(a *Answer) { a.Distrust, a.Body = true, nil }), Weak, Unsure, BadCertificate},
		"404 and a bad certificate":  {with(webPage(404, ""), func(a *Answer) { a.Distrust = true }), Bad, Unchecked, NotFound},
		"body cut":                   {with(webPage(200, page), func(a *Answer) { a.Cut = true }), Good, OK, Answered},
		"ftp, no file":               {Answer{Failure: FailNoFile}, Bad, Unchecked, NotFound},
		"private address":            {Answer{Failure: FailPrivate}, Nothing, Excluded, PrivateAddress},
	} {
		t.Run(name, func(t *testing.T) {
			e := rules(t).Judge(&test.a)
			if e.Weight != test.weight || e.State != test.state || e.Cause != test.cause {
				t.Errorf("weight %d, %s, %s; want %d, %s, %s", e.Weight, e.State, e.Cause, test.weight, test.state, test.cause)
			}
		})
	}
}

func TestRulesAreData(t *testing.T) {
	r, err := ParseRules([]byte(`{"version":"x","walls":[{"name":"Ours","header":"X-Our-Wall"}],"titles":{"en":["lost"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	a := with(webPage(403, ""), func(a *Answer) { a.Header["x-our-wall"] = []string{"yes"} })
	if e := r.Judge(&a); e.Sign != "Ours" {
		t.Errorf("the sign is %q", e.Sign)
	}
	for _, bad := range []string{"", "{", `{"wals":[]}`, `{"walls":[{"name":"x"}]}`, `{"walls":[{"body":"x"}]}`, strings.Repeat(" ", maxRules+1)} {
		if _, err := ParseRules([]byte(bad)); err == nil {
			t.Errorf("%.20q is read", bad)
		}
	}
}

func TestNeighbour(t *testing.T) {
	for target, want := range map[string]string{
		"https://a.example/x/1":        "https://a.example/x/zz",
		"https://a.example/x/":         "https://a.example/zz",
		"https://a.example/x?q=1":      "https://a.example/zz",
		"https://a.example:8443/a/b/c": "https://a.example:8443/a/b/zz",
	} {
		if got, _, _ := Neighbour(target, "zz"); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
}

func FuzzRules(f *testing.F) {
	f.Add([]byte(prose("Not found", "x")), 200)
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		a := webPage(status, string(body))
		rules(t).Judge(&a)
	})
}
