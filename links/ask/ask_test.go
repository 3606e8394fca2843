package ask

import (
	"bytes"
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele/internal/certtest"
	"github.com/stele-id/stele/internal/servertest"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/outbound"
)

const agent = "Stele/1.2 (+https://id.example.org/.well-known/stele)"

// asker asks this machine, with names that a name server of the test has.
func asker(t *testing.T, change ...func(*Options)) *Asker {
	t.Helper()
	rule, err := outbound.ParseRule([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Rule: rule, Agent: agent, Now: time.Now, Pause: time.Millisecond, Timeout: 20 * time.Second, Rules: rules(t)}
	for _, f := range change {
		f(&o)
	}
	return New(o)
}

func rules(t *testing.T) *links.Rules {
	t.Helper()
	r, err := links.UsualRules()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func judge(t *testing.T, a *links.Answer) links.Evidence {
	t.Helper()
	return rules(t).Judge(a)
}

const sites = `
server {
	listen {plain};
	server_name site.test;
	root {folder}/www;
	location = /robots.txt { default_type text/plain; return 200 "User-agent: *\nDisallow: /private\nAllow: /private/open\nCrawl-delay: 0.5\n"; }
	location = /moved { return 301 /page.html; }
	location = /moved-twice { return 308 /moved; }
	location = /found { return 302 /page.html; }
	location = /see-other { return 303 /page.html; }
	location = /for-now { return 307 /page.html; }
	location = /moved-for-now { return 301 /found; }
	location = /deep/home { return 301 /; }
	location = /was { return 302 /error/notfound.html; }
	location /error/ { return 200 "<title>Oh</title>nothing here"; }
	location = /members { return 302 /login; }
	location = /login { return 200 "<form><input type='password' name='p'></form>"; }
	location = /loop { return 302 /loop2; }
	location = /loop2 { return 302 /loop; }
	location ~ ^/far/(.*)$ { return 302 /far/x$1; }
	location = /needs { return 401; }
	location = /pay { return 402; }
	location = /proxy { return 407; }
	location = /bad { return 400; }
	location = /law { return 451; }
	location = /tea { return 418; }
	location = /typed { return 406; }
	location = /forbidden { return 403; }
	location = /gone { return 410; }
	location = /broken { return 500; }
	location = /busy { add_header Retry-After 120 always; return 429; }
	location = /off { add_header Retry-After 3600 always; return 503; }
	location = /down { return 503; }
	location = /reset { return 444; }
	location = /inside { return 302 http://169.254.169.254/latest/meta-data; }
	location = /by-name { return 302 http://inside.test/; }
	location = /to-mail { return 302 http://site.test:25/; }
	location = /to-file { return 302 file:///etc/passwd; }
	location = /with-user { return 302 http://me:secret@site.test:{port}/page.html; }
	location = /cookie { if ($cookie_seen = "") { add_header Set-Cookie "seen=1; Path=/"; return 302 /cookie; } return 200 "<title>Welcome</title>with a cookie"; }
	location = /slow { limit_rate 50; alias {folder}/www/page.html; }
	location = /bin { default_type application/octet-stream; alias {folder}/www/large; }
	location = /head-refused { if ($request_method = HEAD) { return 405; } return 200 "<title>x</title>"; }
	location = /wall-cloudflare { add_header cf-mitigated challenge always; return 403 "<title>Just a moment...</title><script>window._cf_chl_opt={cvId:'3'}</script>"; }
	location = /wall-anubis { return 200 "<title>Making sure you're not a bot!</title><script id='anubis_challenge' type='application/json'>{}</script>"; }
	location = /wall-imperva { add_header x-iinfo 14-1 always; return 200 "<html><iframe src='/_Incapsula_Resource?CWUDNSAI=1'>Request unsuccessful.</iframe></html>"; }
	location = /wall-datadome { add_header Set-Cookie "datadome=abc; Path=/" always; add_header x-datadome protected always; return 403 "<p>Please enable JS</p>"; }
	location = /wall-vercel { add_header x-vercel-mitigated challenge always; return 429 ""; }
	location = /wall-aws { add_header x-amzn-waf-action captcha always; return 405 ""; }
	location = /wall-akamai { add_header Set-Cookie "_abck=1~0; Path=/" always; return 403 "Access Denied"; }
	location = /wall-linkedin { return 999 ""; }
	location = /wall-turnstile { return 403 "<div class='cf-turnstile' data-sitekey='x'></div>"; }
	location = /wall-hcaptcha { return 403 "<script src='https://js.hcaptcha.com/1/api.js'></script>"; }
	location = /wall-recaptcha { return 503 "<div class='g-recaptcha' data-sitekey='x'></div>"; }
	location = /wall-recaptcha-429 { add_header Retry-After 60 always; return 429 "<div class='g-recaptcha' data-sitekey='x'></div>"; }
	location = /wall-406 { add_header Set-Cookie "_abck=1~0; Path=/" always; return 406 ""; }
	location = /wall-418 { add_header Set-Cookie "_abck=1~0; Path=/" always; return 418 ""; }
	location = /wall-451 { add_header cf-mitigated challenge always; return 451 ""; }
	location = /cdn { add_header x-iinfo 14-1 always; return 200 "<title>A map</title><p>Rivers and islands of the delta, and how they moved."; }
	location = /title-en { return 200 "<title>404 Not Found</title>"; }
	location = /title-es { return 200 "<title>Página no encontrada - Biblioteca</title>"; }
	location = /title-fr { return 200 "<title>Page introuvable | Musée</title>"; }
	location = /title-de { return 200 "<title>Seite nicht gefunden</title>"; }
	location = /title-of-a-work { return 200 "<title>Lost and not found: a history of missing ships</title><p>Chapter one tells of harbours."; }
}
server { # it says 200 to all
	listen {plain};
	server_name soft.test;
	location = / { return 200 "<title>Archive</title><p>The home page with the news of the week, and nothing about a single work.</p>"; }
	location = /robots.txt { return 404; }
	location / { return 200 "<title>Archive</title><p>We are sorry. What you look for can't be shown. Try the catalogue, or write to the librarian on duty.</p>"; }
}
server { # scripts show what is asked for
	listen {plain};
	server_name app.test;
	location / { return 200 "<title>App</title><div id='app'>Loading the application</div>"; }
}
server {
	listen {plain};
	server_name titled.test;
	location / { return 200 "<title>Página não encontrada | Museu</title><p>Ops</p>"; }
}
server { # its robots.txt can't be read
	listen {plain};
	server_name unread.test;
	location = /robots.txt { return 500; }
	location / { return 200 "<title>x</title>"; }
}
server { listen {secure} ssl; server_name good.test; ssl_certificate {folder}/good.crt; ssl_certificate_key {folder}/good.key; root {folder}/www; }
server { listen {expired} ssl; ssl_certificate {folder}/expired.crt; ssl_certificate_key {folder}/expired.key; root {folder}/www; }
server { listen {unknown} ssl; ssl_certificate {folder}/unknown.crt; ssl_certificate_key {folder}/unknown.key; root {folder}/www; }
server { listen {wrong} ssl; ssl_certificate {folder}/wrong.crt; ssl_certificate_key {folder}/wrong.key; root {folder}/www; }
`

// TestSites asks real servers: nginx, vsftpd and NSD play each row of the table of evidence. The rows, and the tests that play them:
//
//	2xx                                  page, home page of it, single-page site, cdn, title of a work
//	301/308 to 2xx                       permanent redirect, two of them
//	302/303/307 to 2xx                   temporary redirect, 303, 307, permanent and temporary
//	deep URL to /, login, error page     to the home page, to an error page, to a login page
//	same text as a neighbour, titles     200 to all, title, and title in five languages
//	401, 402, 407, login page            401, 402, 407, to a login page
//	statuses with a sign of a wall       Cloudflare to LinkedIn, 406, 418, 429, 451 and 503 with a sign
//	403 without a sign                   403
//	429, 503 with Retry-After            429 and wait, 503 and wait
//	robots.txt forbids, can't be read    robots.txt forbids, allows, unreadable
//	404                                  404, ftp, no file, 404 with a bad one
//	410                                  410: gone at the second time
//	other 4xx, 5xx                       400, 406, 418, 451, 500, 503
//	NXDOMAIN, two resolvers              no such host; TestOneResolver; over days in links.TestBroken
//	refused, reset, time-out, SERVFAIL   refused, connection broken, no answer, robots.txt never comes, SERVFAIL
//	certificates                         expired certificate, of another host, of an unknown authority
//	redirect loop, more than 10          loop, too many redirects, a cookie ends the loop
//	body cut, head 200                   body cut, slow body, endless body, large file
//	ftp: file there                      ftp
//	private addresses, at every hop      into a private network, there by redirect and DNS, there by DNS, ftp, private
//	a host that comes back               TestComesBack; over days in links/check.TestHost
func TestSites(t *testing.T) {
	folder := t.TempDir()
	www := filepath.Join(folder, "www")
	if err := os.Mkdir(www, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(www, "page.html"), "<title>A map of Pará</title><p>"+strings.Repeat("Rivers and islands of the delta, drawn in 1899. ", 40))
	writeFile(t, filepath.Join(www, "index.html"), "<title>Home</title>")
	large, err := os.Create(filepath.Join(www, "large"))
	if err == nil {
		err = large.Truncate(1 << 30)
	}
	if err != nil {
		t.Fatal(err)
	}
	large.Close()
	writeFile(t, filepath.Join(www, "endless.html"), "<title>Long</title>"+strings.Repeat("all of it and more ", 100_000))
	ca := certtest.New(t, time.Now)
	for name, ends := range map[string]time.Duration{"good": time.Hour, "expired": -time.Minute, "wrong": time.Hour, "unknown": time.Hour} {
		names, ca := []string{name + ".test"}, ca
		if name == "unknown" {
			ca = certtest.New(t, time.Now)
		}
		if name == "wrong" {
			names = []string{"other.test"}
		}
		sub := t.TempDir()
		cert, key := ca.Issue(t, sub, ends, 2, names...)
		for _, f := range [][2]string{{cert, ".crt"}, {key, ".key"}} {
			if err := os.Rename(f[0], filepath.Join(folder, name+f[1])); err != nil {
				t.Fatal(err)
			}
		}
	}
	plain, secure, expired, wrong, unknown := servertest.FreePort(t), servertest.FreePort(t), servertest.FreePort(t), servertest.FreePort(t), servertest.FreePort(t)
	config := strings.NewReplacer("{plain}", "127.0.0.1:"+plain, "{secure}", "127.0.0.1:"+secure, "{expired}", "127.0.0.1:"+expired, "{wrong}", "127.0.0.1:"+wrong, "{unknown}", "127.0.0.1:"+unknown, "{port}", plain).Replace(sites)
	servertest.Nginx(t, "127.0.0.1:"+plain, folder, config)
	ftpAt := servertest.FTP(t, www)
	dns := startNSD(t, "site A 127.0.0.1\nsoft A 127.0.0.1\napp A 127.0.0.1\ntitled A 127.0.0.1\nunread A 127.0.0.1\ngood A 127.0.0.1\nexpired A 127.0.0.1\nwrong A 127.0.0.1\nunknown A 127.0.0.1\ninside A 10.0.0.1\n")
	resolver := outbound.NewResolver(dns, 20*time.Second)
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/cut" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Length", "100000")
		_, _ = w.Write(bytes.Repeat([]byte("the beginning of a long text "), 100))
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(cut.Close)
	quiet, mute, closed := silent(t, true), silent(t, false), unused(t).port
	settings := func(o *Options) {
		o.Resolver, o.Second, o.Roots = resolver, outbound.NewResolver(dns, 20*time.Second), ca.Pool
		o.Own = func(host string) bool { return host == "own.test" }
	}
	a := asker(t, settings)
	hasty := asker(t, settings, func(o *Options) { o.Timeout = 10 * time.Second })
	site := "http://site.test:" + plain
	for name, test := range map[string]struct {
		url   string
		state links.State
		cause links.Cause
	}{
		"page":                      {site + "/page.html", links.OK, links.Answered},
		"permanent redirect":        {site + "/moved", links.Moved, links.Redirected},
		"two of them":               {site + "/moved-twice", links.Moved, links.Redirected},
		"temporary redirect":        {site + "/found", links.OK, links.Answered},
		"303":                       {site + "/see-other", links.OK, links.Answered},
		"307":                       {site + "/for-now", links.OK, links.Answered},
		"permanent and temporary":   {site + "/moved-for-now", links.OK, links.Answered},
		"402":                       {site + "/pay", links.Blocked, links.NeedsAccess},
		"407":                       {site + "/proxy", links.Blocked, links.NeedsAccess},
		"400":                       {site + "/bad", links.Failing, links.BadStatus},
		"406":                       {site + "/typed", links.Failing, links.BadStatus},
		"418":                       {site + "/tea", links.Failing, links.BadStatus},
		"451":                       {site + "/law", links.Failing, links.BadStatus},
		"Turnstile":                 {site + "/wall-turnstile", links.Blocked, links.Wall},
		"hCaptcha":                  {site + "/wall-hcaptcha", links.Blocked, links.Wall},
		"503 with a sign":           {site + "/wall-recaptcha", links.Blocked, links.Wall},
		"429 with a sign":           {site + "/wall-recaptcha-429", links.Blocked, links.Wall},
		"406 with a sign":           {site + "/wall-406", links.Blocked, links.Wall},
		"418 with a sign":           {site + "/wall-418", links.Blocked, links.Wall},
		"451 with a sign":           {site + "/wall-451", links.Blocked, links.Wall},
		"cdn":                       {site + "/cdn", links.OK, links.Answered},
		"title in English":          {site + "/title-en", links.Failing, links.SaysNotFound},
		"title in Spanish":          {site + "/title-es", links.Failing, links.SaysNotFound},
		"title in French":           {site + "/title-fr", links.Failing, links.SaysNotFound},
		"title in German":           {site + "/title-de", links.Failing, links.SaysNotFound},
		"title of a work":           {site + "/title-of-a-work", links.OK, links.Answered},
		"body cut":                  {cut.URL + "/cut", links.OK, links.Answered},
		"of an unknown authority":   {"https://unknown.test:" + unknown + "/page.html", links.Unsure, links.BadCertificate},
		"to the home page":          {site + "/deep/home", links.Unsure, links.HomePage},
		"to an error page":          {site + "/was", links.Unsure, links.ErrorPage},
		"to a login page":           {site + "/members", links.Blocked, links.NeedsAccess},
		"a cookie ends the loop":    {site + "/cookie", links.OK, links.Answered},
		"200 to all":                {"http://soft.test:" + plain + "/works/17", links.Failing, links.SameAsOther},
		"home page of it":           {"http://soft.test:" + plain + "/", links.OK, links.Answered},
		"single-page site":          {"http://app.test:" + plain + "/works/17", links.OK, links.Answered},
		"title":                     {"http://titled.test:" + plain + "/works/17", links.Failing, links.SaysNotFound},
		"401":                       {site + "/needs", links.Blocked, links.NeedsAccess},
		"403":                       {site + "/forbidden", links.Blocked, links.Forbidden},
		"404":                       {site + "/none", links.Failing, links.NotFound},
		"410":                       {site + "/gone", links.Failing, links.SaysGone},
		"500":                       {site + "/broken", links.Failing, links.BadStatus},
		"503":                       {site + "/down", links.Failing, links.BadStatus},
		"429 and wait":              {site + "/busy", links.Unchecked, links.AskedToWait},
		"503 and wait":              {site + "/off", links.Unchecked, links.AskedToWait},
		"Cloudflare":                {site + "/wall-cloudflare", links.Blocked, links.Wall},
		"Anubis":                    {site + "/wall-anubis", links.Blocked, links.Wall},
		"Imperva":                   {site + "/wall-imperva", links.Blocked, links.Wall},
		"DataDome":                  {site + "/wall-datadome", links.Blocked, links.Wall},
		"Vercel":                    {site + "/wall-vercel", links.Blocked, links.Wall},
		"AWS":                       {site + "/wall-aws", links.Blocked, links.Wall},
		"Akamai":                    {site + "/wall-akamai", links.Blocked, links.Wall},
		"LinkedIn":                  {site + "/wall-linkedin", links.Blocked, links.Wall},
		"robots.txt forbids":        {site + "/private/x", links.Blocked, links.RobotsForbid},
		"robots.txt allows":         {site + "/private/open/x", links.Failing, links.NotFound},
		"robots.txt unreadable":     {"http://unread.test:" + plain + "/x", links.Blocked, links.RobotsUnread},
		"loop":                      {site + "/loop", links.Failing, links.Loop},
		"too many redirects":        {site + "/far/x", links.Failing, links.Loop},
		"slow body":                 {site + "/slow", links.OK, links.Answered},
		"endless body":              {site + "/endless.html", links.OK, links.Answered},
		"large file":                {site + "/bin", links.OK, links.Answered},
		"connection broken":         {site + "/reset", links.Failing, links.Reset},
		"refused":                   {"http://site.test:" + closed + "/", links.Failing, links.Refused},
		"no answer":                 {"http://site.test:" + quiet + "/", links.Failing, links.TimedOut},
		"robots.txt never comes":    {"http://site.test:" + mute + "/", links.Failing, links.TimedOut},
		"no such host":              {"http://nothing.test/x", links.Failing, links.NoName},
		"SERVFAIL":                  {"http://x.damaged.test/x", links.Failing, links.DNSFailed},
		"good certificate":          {"https://good.test:" + secure + "/page.html", links.OK, links.Answered},
		"expired certificate":       {"https://expired.test:" + expired + "/page.html", links.Unsure, links.BadCertificate},
		"of another host":           {"https://wrong.test:" + wrong + "/page.html", links.Unsure, links.BadCertificate},
		"404 with a bad one":        {"https://expired.test:" + expired + "/none", links.Failing, links.NotFound},
		"into a private network":    {site + "/inside", links.Excluded, links.PrivateAddress},
		"there by redirect and DNS": {site + "/by-name", links.Excluded, links.PrivateAddress},
		"there by DNS":              {"http://inside.test/", links.Excluded, links.PrivateAddress},
		"to a port of mail":         {site + "/to-mail", links.Excluded, links.NotAskable},
		"to a file":                 {site + "/to-file", links.Excluded, links.NotAskable},
		"to one with a password":    {site + "/with-user", links.Excluded, links.NotAskable},
		"this server":               {"http://own.test/x", links.Excluded, links.NotAskable},
		"ftp":                       {"ftp://" + ftpAt + "/page.html", links.OK, links.Answered},
		"ftp, no file":              {"ftp://" + ftpAt + "/none", links.Failing, links.NotFound},
		"ftp, private":              {"ftp://10.0.0.1/x", links.Excluded, links.PrivateAddress},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asker := a
			switch name {
			case "no answer", "robots.txt never comes", "slow body": // these take as long as is waited for them
				asker = hasty
			}
			answer, report := asker.Check(t.Context(), test.url, Known{})
			e := judge(t, answer)
			var s links.Status
			s.Add(&e, links.Target{}, time.Time{}, time.Now())
			if s.State != test.state || s.Cause != test.cause {
				t.Errorf("%s (%s), want %s (%s): status %d, failure %d, at %s", s.State, s.Cause, test.state, test.cause, answer.Status, answer.Failure, answer.Final)
			}
			if len(answer.Body) > maxBody || answer.Distrust && answer.Body != nil {
				t.Errorf("%d bytes of the body are kept", len(answer.Body))
			}
			switch name {
			case "page":
				if report.CrawlDelay != time.Second/2 || report.Address != "127.0.0.1" || e.Print.Tag == "" || !e.Print.Modified.IsZero() { // one of both is kept
					t.Errorf("the report is %+v, %+v", report, e.Print)
				}
			case "429 and wait":
				if e.Wait != 2*time.Minute {
					t.Errorf("it waits %s", e.Wait)
				}
			case "410":
				if s.Add(&e, links.Target{}, time.Time{}, time.Now()); s.State != links.Gone {
					t.Errorf("the second time it is %s", s.State)
				}
			case "body cut":
				if !answer.Cut || len(answer.Body) == 0 {
					t.Errorf("cut %t, %d bytes", answer.Cut, len(answer.Body))
				}
			case "large file", "endless body", "slow body":
				if !answer.Cut || IsLarge(answer) != (name == "large file") {
					t.Errorf("cut %t, large %t", answer.Cut, IsLarge(answer))
				}
			}
		})
	}
}

// seen is what a server was asked.
type seen struct {
	mu   sync.Mutex
	list []*http.Request
}

func (s *seen) serve(t *testing.T, h http.HandlerFunc) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/robots.txt" {
			s.mu.Lock()
			s.list = append(s.list, r)
			s.mu.Unlock()
		}
		h(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestRequests looks at what is sent.
func TestRequests(t *testing.T) {
	var s seen
	robots := 0
	at := s.serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/robots.txt":
			robots++
			http.NotFound(w, r)
		case r.Header.Get("If-None-Match") == `"1"`:
			w.WriteHeader(http.StatusNotModified)
		case r.Method == http.MethodHead && r.URL.Path == "/refused":
			w.WriteHeader(http.StatusMethodNotAllowed)
		default:
			w.Header().Set("Content-Type", "application/pdf")
			w.Header().Set("ETag", `"1"`)
		}
	})
	a := asker(t)
	first, _ := a.Check(t.Context(), at+"/x#part", Known{})
	e := judge(t, first)
	if r := s.list[0]; r.Method != "GET" || r.Header.Get("User-Agent") != agent || r.Header.Get("Accept") != "text/html, */*;q=0.8" || r.Header.Get("Range") != "" || r.Header.Get("Referer") != "" || r.URL.Fragment != "" {
		t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
	}
	second, _ := a.Check(t.Context(), at+"/x", Known{Print: e.Print})
	if second.Status != http.StatusNotModified || judge(t, second).Weight != links.Good {
		t.Errorf("a conditional request gives %d", second.Status)
	}
	s.list = nil
	a.Check(t.Context(), at+"/x", Known{Large: IsLarge(first)})
	if len(s.list) != 1 || s.list[0].Method != "HEAD" {
		t.Errorf("something that is not text is asked by %s, %d times", s.list[0].Method, len(s.list))
	}
	s.list = nil
	if got, _ := a.Check(t.Context(), at+"/refused", Known{Large: true}); got.Status != 200 || len(s.list) != 2 || s.list[1].Method != "GET" {
		t.Errorf("after a refused HEAD: %d, %d requests", got.Status, len(s.list))
	}
	if robots != 1 {
		t.Errorf("robots.txt was read %d times", robots)
	}
}

// Without a second resolver it is never sure that a host does not exist.
func TestOneResolver(t *testing.T) {
	dns := startNSD(t, "")
	a := asker(t, func(o *Options) { o.Resolver = outbound.NewResolver(dns, 20*time.Second) })
	if got, _ := a.Check(t.Context(), "http://nothing.test/", Known{}); got.Failure != links.FailDNS {
		t.Errorf("the failure is %d", got.Failure)
	}
}

// A whole body is read only for what is promised not to change.
func TestWhole(t *testing.T) {
	body := bytes.Repeat([]byte("x"), maxBody+5)
	var s seen
	at := s.serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(body) })
	a := asker(t)
	if got, _ := a.Check(t.Context(), at+"/x", Known{}); !got.Cut || got.Digest != [32]byte{} {
		t.Error("the body is not cut")
	}
	if got, _ := a.Check(t.Context(), at+"/x", Known{Whole: true}); got.Cut || got.Digest == [32]byte{} || got.Length != int64(len(body)) || len(got.Body) != maxBody {
		t.Errorf("cut %t, length %d, kept %d", got.Cut, got.Length, len(got.Body))
	}
}

// The digest of what is promised is that of the content as it is signed: of its type, and not compressed.
func TestWholeAsSigned(t *testing.T) {
	var heads []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		heads = append(heads, r.Header.Get("Accept-Encoding")+"|"+r.Header.Get("Accept"))
		w.Header().Set("Content-Type", "application/pdf")
		if r.URL.Path == "/packed" {
			w.Header().Set("Content-Encoding", "gzip")
		}
		_, _ = w.Write([]byte("content"))
	}))
	defer server.Close()
	a := asker(t)
	k := Known{Whole: true, Types: []string{"application/pdf"}}
	if got, _ := a.Check(t.Context(), server.URL+"/x", k); got.Digest != sha256.Sum256([]byte("content")) || heads[0] != "identity|application/pdf, */*;q=0.1" {
		t.Errorf("%x, asked with %q", got.Digest, heads)
	}
	if got, _ := a.Check(t.Context(), server.URL+"/packed", k); got.Digest != [32]byte{} {
		t.Errorf("the digest %x is that of what is compressed", got.Digest)
	}
}

// A whole file is read over FTP too.
func TestWholeFile(t *testing.T) {
	folder := t.TempDir()
	text := strings.Repeat("a map ", 100_000)
	writeFile(t, filepath.Join(folder, "map.txt"), text)
	at := servertest.FTP(t, folder)
	a := asker(t)
	if got, _ := a.Check(t.Context(), "ftp://"+at+"/map.txt", Known{Whole: true}); got.Status != 226 || got.Cut || got.Digest != sha256.Sum256([]byte(text)) || got.Length != int64(len(text)) {
		t.Errorf("status %d, cut %t, length %d", got.Status, got.Cut, got.Length)
	}
	if got, _ := a.Check(t.Context(), "ftp://"+at+"/map.txt", Known{}); got.Digest != [32]byte{} || len(got.Body) > 0 {
		t.Error("the file was read")
	}
}

func TestRobots(t *testing.T) {
	for name, test := range map[string]struct {
		text    string
		yes, no []string
		delay   time.Duration
	}{
		"empty":         {"", []string{"/", "/x"}, nil, 0},
		"all":           {"User-agent: *\nDisallow: /", nil, []string{"/", "/x?y"}, 0},
		"nothing":       {"User-agent: *\nDisallow:", []string{"/"}, nil, 0},
		"another's":     {"User-agent: other\nDisallow: /\n\nUser-agent: *\nDisallow: /a", []string{"/b"}, []string{"/a"}, 0},
		"ours":          {"User-agent: *\nAllow: /\nUser-agent: Stele\nDisallow: /a\nCrawl-delay: 2.5", []string{"/b"}, []string{"/a"}, 2500 * time.Millisecond},
		"several names": {"User-agent: x\nUser-agent: *\nDisallow: /a", []string{"/b"}, []string{"/a"}, 0},
		"longest":       {"User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /a/b/c", []string{"/a/b"}, []string{"/a", "/a/b/c"}, 0},
		"signs":         {"User-agent: *\nDisallow: /*.pdf$\nDisallow: /x*y", []string{"/a.pdf?x", "/xz"}, []string{"/a.pdf", "/x1y2"}, 0},
		"comments":      {"# none\nUSER-AGENT : * # all\ndisallow: /a # not that", []string{"/b"}, []string{"/a"}, 0},
	} {
		r := parseRobots([]byte(test.text), "stele")
		for _, path := range test.yes {
			if u, _ := url.Parse("http://a.example" + path); !r.allow(u) {
				t.Errorf("%s: %s is forbidden", name, path)
			}
		}
		for _, path := range test.no {
			if u, _ := url.Parse("http://a.example" + path); r.allow(u) {
				t.Errorf("%s: %s is allowed", name, path)
			}
		}
		if r.delay != test.delay {
			t.Errorf("%s: the delay is %s", name, r.delay)
		}
	}
}

func FuzzRobots(f *testing.F) {
	f.Add([]byte("User-agent: *\nDisallow: /a*b$\nCrawl-delay: 1"), "/axb")
	f.Fuzz(func(t *testing.T, text []byte, path string) {
		if u, err := url.Parse("http://a.example/" + path); err == nil {
			parseRobots(text, "stele").allow(u)
		}
	})
}

// A host that is away answers again when it is back.
func TestComesBack(t *testing.T) {
	away := unused(t)
	at := "http://127.0.0.1:" + away.port + "/x"
	a := asker(t)
	got, _ := a.Check(t.Context(), at, Known{})
	var h links.Host
	e := judge(t, got)
	h.Add(&e, time.Now())
	if got.Failure != links.FailRefused || h.Streak != 1 {
		t.Fatalf("failure %d, streak %d", got.Failure, h.Streak)
	}
	server := &httptest.Server{Listener: away.listen(t), Config: &http.Server{Handler: http.NotFoundHandler()}}
	server.Start()
	defer server.Close()
	got, _ = a.Check(t.Context(), at, Known{})
	e = judge(t, got)
	if h.Add(&e, time.Now()); got.Status != 404 || h.Streak != 0 {
		t.Errorf("status %d, streak %d", got.Status, h.Streak)
	}
}
