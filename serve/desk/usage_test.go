package desk

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/usage"
)

// newCountedSite returns a site whose use is counted.
func newCountedSite(t *testing.T) *site {
	t.Helper()
	return newSite(t, func(o *Options) { o.Usage = &usage.Book{Registrar: o.Registrar, Schemes: o.Schemes} })
}

// User agents of readers.
const (
	firefox   = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	googlebot = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
)

// reader returns the address of one of many readers.
func reader(number int) netip.Addr {
	return netip.AddrFrom4([4]byte{192, 0, byte(number >> 8), byte(number)})
}

// counted has readers use names at a time, and writes the figures.
func (s *site) counted(at time.Time, use func(c *usage.Counter)) {
	s.t.Helper()
	agents := must(usage.NewAgents(nil))(s.t)
	counter := usage.New(usage.Options{Store: s.r, Agents: agents, Schemes: s.names, Now: func() time.Time { return at }, Space: func(ctx context.Context, id stele.ID) stele.NamespaceKey {
		ns, err := s.r.FindNamespace(s.admin, id)
		if err != nil {
			return stele.NamespaceKey{}
		}
		return ns.Key()
	}})
	use(counter)
	ended, end := context.WithCancel(s.admin)
	end()
	counter.Run(ended) // it writes what it has, and ends
	if lost := counter.Stats().Waiting; lost > 0 {
		s.t.Fatalf("%d figures are not written", lost)
	}
}

func (s *site) id(text string) stele.ID {
	s.t.Helper()
	return must(s.names.Parse(text))(s.t)
}

// TestUsageOfName: the page of a name has its figures as a chart and a table, and as a file; robots are apart.
func TestUsageOfName(t *testing.T) {
	s := newCountedSite(t)
	b := s.as("ruth")
	path := s.as("ed").make(url.Values{"target.0.url": {"https://example.org/1"}, "what": {"An atlas of rivers"}})
	id := must(url.Parse(path))(t).Query().Get("id")
	at := "/.desk/usage?id=" + url.QueryEscape(id)
	b.get(path).has(200, "Nothing was counted yet.", at)
	b.get(at).has(200, "Nothing was counted yet.", "What is counted, and what is not")

	s.counted(s.now.AddDate(0, -2, 0), func(c *usage.Counter) {
		for n := range 1234 {
			c.Redirected(s.id(id), reader(n), firefox, "")
		}
	})
	s.counted(s.now, func(c *usage.Counter) {
		c.Redirected(s.id(id), reader(1), "curl/8.14.1", "")
		c.Redirected(s.id(id), reader(2), googlebot, "")
		c.Described(s.id(id), reader(3), firefox)
	})
	b.get(path).has(200, "1,235 resolutions in 13 months", "<svg role=\"img\"")
	p := b.get(at).has(200, "An atlas of rivers", "<b>1,235</b> <span>resolutions", "September 2026: 1,234 by people, 0 by programs", "October 2026", "November 2026", "so far",
		"Counted since 16 September 2026", "stele usage "+id, "/api/v1/statistics?prefix=", `aria-current="true">13 months`, "<b>1</b> <span>by robots")
	if strings.Contains(p.text, "Visitors") || strings.Contains(p.text, "August 2026</th>") || strings.Contains(p.text, "style=") {
		t.Errorf("the page of a name has what it should not have\n%s", p.main())
	}
	b.lang = "pt-BR"
	b.get(at).has(200, "1.235", "setembro de 2026: 1.234 por pessoas", "Contado desde 16/09/2026")
	b.lang = ""

	// Another period, by address.
	b.get(at+"&from=2026-11-01&by=day").has(200, "16 November 2026", `value="2026-11-01"`, `<option value="day" selected="selected">`, "--from 2026-11-01 --by day")
	b.get(at+"&from=2020-01&until=2020-12").has(200, "<b>0</b>")
	b.get(at+"&from=soon&until=2026-11").has(400, `href="#from"`, `id="from-problem"`, `value="soon"`)
	b.get(at+"&from=2026-12&until=2026-11").has(400, `href="#from"`)
	b.get(at+"&until=never").has(400, `href="#until"`)
	b.get(at+"&from=1970-01-01&until=9999-12-31&by=day").has(200, "16 September 2026")

	file := b.get("/.desk/usage.csv?id="+url.QueryEscape(id)).has(200, "period,regular,regular_unique,machine,machine_unique,descriptions,robots,failures,visitors\n2026-09,1234,1234,0,0,0,0,0,0\n2026-11,0,0,1,1,1,1,0,0\n")
	if kind := file.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/csv") {
		t.Errorf("the file is %s", kind)
	}
	b.get("/.desk/usage.csv?id="+url.QueryEscape(id)+"&from=soon").has(400, "soon")
	b.get("/.desk/usage?id=ark:12345/x5nothing").has(404)
	b.get("/.desk/usage?namespace=ark:99999").has(404)
}

// TestUsageRights: readers of a namespace see its figures, and other users see none.
func TestUsageRights(t *testing.T) {
	s := newCountedSite(t)
	path := s.as("ed").make(url.Values{"target.0.url": {"https://example.org/1"}})
	id := must(url.Parse(path))(t).Query().Get("id")
	s.counted(s.now, func(c *usage.Counter) { c.Redirected(s.id(id), reader(1), firefox, "") })
	for user, may := range map[string]bool{"admin": true, "olga": true, "ed": true, "ruth": true, "sam": false} {
		b := s.as(user)
		for _, at := range []string{"usage?", "usage.csv?"} {
			for _, of := range []string{"id=" + url.QueryEscape(id), "namespace=ark:12345/x5"} {
				p := b.get("/.desk/" + at + of)
				if (p.StatusCode == http.StatusOK) != may {
					t.Errorf("%s, %s%s: %s", user, at, of, p.Status)
				}
			}
		}
		if p := b.get(path); p.StatusCode != http.StatusOK || strings.Contains(p.text, "/.desk/usage") != may {
			t.Errorf("%s: the page of the name is %s\n%s", user, p.Status, p.main())
		}
	}
	// The settings are for owners.
	for user, may := range map[string]bool{"admin": true, "olga": true, "ed": false, "ruth": false, "sam": false} {
		b := s.as(user)
		p := b.post("/.desk/usage", url.Values{"namespace": {"ark:12345/x5"}, "count-all": {"yes"}})
		if done := p.StatusCode == http.StatusSeeOther; done != may {
			t.Errorf("%s sets how use is counted: %s", user, p.Status)
		}
		if may {
			b.follow(p).has(200, "Saved.", `checked="checked"`)
			b.follow(b.post("/.desk/usage", url.Values{"namespace": {"ark:12345/x5"}})).has(200, "Saved.", `value="yes" aria-describedby`)
		}
	}
	s.as("ruth").get("/.desk/usage?namespace=ark:12345/x5").has(200, "The uses that the server sees are counted.")
	olga := s.as("olga")
	olga.follow(olga.post("/.desk/usage", url.Values{"namespace": {"ark:12345/x5"}, "public": {"yes"}})).has(200, "Saved.", `href="/.usage/ark:12345/x5?of=namespace"`)
	s.as("ruth").get("/.desk/usage?namespace=ark:12345/x5").has(200, "The figures of months are public.", `href="/.usage/ark:12345/x5?of=namespace"`)
	s.browser().get("/.desk/usage?namespace=ark:12345/x5").leads("/.desk/sign-in")
	newSite(t).as("olga").get("/.desk/usage?namespace=ark:12345/x5").has(404, "no figures of use")
}

// TestUsageOfNamespace: the page of a namespace has the names that were used most, where readers come from, and names that lead
// nowhere or were not used; each as a page and a file.
func TestUsageOfNamespace(t *testing.T) {
	s := newCountedSite(t)
	ed, b := s.as("ed"), s.as("ruth")
	var ids []string
	for n := range 12 {
		path := ed.make(url.Values{"target.0.url": {"https://example.org/1"}, "what": {"Mapa " + strings.Repeat("I", n+1)}})
		ids = append(ids, must(url.Parse(path))(t).Query().Get("id"))
	}
	const at = "/.desk/usage?namespace=ark:12345/x5"
	s.counted(s.now.AddDate(0, -1, 0), func(c *usage.Counter) {
		for i, id := range ids[:11] {
			for n := range i + 1 {
				c.Redirected(s.id(id), reader(n), firefox, "https://www.example.org/list")
			}
		}
		c.Redirected(s.id(ids[0]), reader(50), firefox, "https://other.example.com/")
	})
	s.counted(s.now, func(c *usage.Counter) {
		for n := range 3 {
			c.Failed(s.id("ark:12345/x5n0thing"), reader(n), firefox)
		}
	})
	p := b.get(at).has(200, "Most used names", "Mapa IIIIIIIIIII<", "The 100 most used", "Where readers come from", "example.org", "example.com", "ark:12345/x5n0thing", "Names that were not used", `<rect width="100%"`)
	if strings.Contains(p.text, "Countries") || strings.Contains(p.text, "Answers of the DNS") || strings.Contains(p.text, "style=") {
		t.Errorf("the page has what it should not have\n%s", p.main())
	}
	b.get(at+"&show=names").has(200, "Mapa I<", "Mapa IIIIIIIIIII<", "13 months", "All figures of the namespace")
	b.get(at+"&show=names&from=2026-11").has(200, "None in this period.")
	b.get(at+"&show=referrers").has(200, "example.org", "Only the domain", "66")
	b.get(at+"&show=failed").has(200, "ark:12345/x5n0thing")
	b.get(at+"&show=countries").has(200, "None in this period.")
	b.get(at+"&show=unused").has(200, "Mapa IIIIIIIIIIII<", "made 16 November 2026", "Counting began on 16 October 2026")
	if p := b.get(at + "&show=unused"); strings.Contains(p.text, ids[0]) {
		t.Error("a name that was used is among the others")
	}
	b.get(at+"&show=unused&after="+url.QueryEscape(ids[11])).has(200, "All names were used.")
	file := strings.Replace(at, "usage?", "usage.csv?", 1)
	b.get(file).has(200, "period,regular", "2026-10,67,67,")
	b.get(file+"&show=names").has(200, "name,regular,", ids[10]+",11,11,0,0,0,0,0,0\n")
	b.get(file+"&show=referrers").has(200, "referrer,count\nexample.org,66\nexample.com,1\n")
	b.get(file+"&show=countries").has(200, "country,count\n")
	b.get(file+"&show=failed").has(200, "failure,count\nark:12345/x5n0thing,3\n")
	b.get(file+"&show=unused").has(200, "name,created\n"+ids[11]+",2026-11-16T")
	for _, show := range []string{"names", "referrers", "countries", "failed", "unused", "dns"} {
		s.as("sam").get(at + "&show=" + show).has(404)
		s.as("sam").get(file + "&show=" + show).has(404)
	}
}

// manyNames is a store that says that namespaces are large.
type manyNames struct{}

func (manyNames) Count(context.Context, stele.NamespaceKey) (uint64, error) {
	return largeSpace + 1, nil
}

// TestUsageOfLargeNamespace: the page does not look through all names of a large namespace.
func TestUsageOfLargeNamespace(t *testing.T) {
	s := newSite(t, func(o *Options) {
		o.Usage, o.Store = &usage.Book{Registrar: o.Registrar, Schemes: o.Schemes}, manyNames{}
	})
	path := s.as("ed").make(url.Values{"target.0.url": {"https://example.org/1"}, "what": {"Mapa"}})
	id := must(url.Parse(path))(t).Query().Get("id")
	s.counted(s.now, func(c *usage.Counter) { c.Redirected(s.id(id), reader(1), firefox, "") })
	b := s.as("ruth")
	if p := b.get("/.desk/usage?namespace=ark:12345/x5").has(200, "takes a while", "show=names"); strings.Contains(p.text, "Mapa") {
		t.Error("the page has names")
	}
	b.get("/.desk/usage?namespace=ark:12345/x5&show=names").has(200, "Mapa")
}

// TestUsageOfZone: a namespace that is in the DNS has its answers by hour.
func TestUsageOfZone(t *testing.T) {
	s := newCountedSite(t)
	must(s.r.SetNamespace(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, 0, func(ns *stele.Namespace) error {
		ns.Publication = stele.Publication{Zone: "maps.example.", Layout: stele.LayoutNames, Separator: "/", Parts: 2, Servers: []stele.NameServer{{Name: "ns1.example.net."}}, Mailbox: "hostmaster@example.net"}
		return nil
	}))(t)
	answers := map[string]uint64{}
	counter := usage.New(usage.Options{Store: s.r, Agents: must(usage.NewAgents(nil))(t), Schemes: s.names, Now: func() time.Time { return s.now }, Zones: func() map[string]uint64 { return answers }})
	answers["maps.example."] = 1500
	ended, end := context.WithCancel(s.admin)
	end()
	counter.Run(ended)
	b := s.as("ruth")
	b.get("/.desk/usage?namespace=ark:12345/x5").has(200, "Answers of the DNS by hour", "1,500 answers for the zone maps.example", "16 November 2026, 12:00 UTC: 1,500 answers")
	b.get("/.desk/usage?namespace=ark:12345/x5&show=dns").has(200, "1,500 answers")
	b.get("/.desk/usage.csv?namespace=ark:12345/x5&show=dns").has(200, "hour,count\n2026-11-16T12:00:00Z,1500\n")
}

// TestUsageOfBoth: a record that has the prefix of a namespace as its name has its own figures, and the namespace those of all its names.
func TestUsageOfBoth(t *testing.T) {
	s := newCountedSite(t)
	name := "ark:12345/x5both"
	if _, err := s.r.AddNamespace(s.admin, &stele.Namespace{Scheme: "ark", Prefix: name}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{name, name + "/1"} {
		if _, err := s.r.Register(s.admin, &stele.Record{ID: s.id(id), Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/"}}}); err != nil {
			t.Fatal(err)
		}
	}
	s.counted(s.now, func(c *usage.Counter) {
		c.Redirected(s.id(name), reader(1), firefox, "")
		c.Redirected(s.id(name+"/1"), reader(2), firefox, "")
	})
	b := s.as("admin")
	b.get("/.desk/usage?id="+url.QueryEscape(name)).has(200, "<b>1</b> <span>resolution", "--of record", "of=record")
	b.get("/.desk/usage?namespace="+url.QueryEscape(name)).has(200, "<b>2</b> <span>resolutions", "visitors")
}

// TestUsageOfOldDays: of a month whose days were added up there is one line, and none for its days.
func TestUsageOfOldDays(t *testing.T) {
	s := newCountedSite(t)
	path := s.as("ed").make(url.Values{"target.0.url": {"https://example.org/1"}})
	id := must(url.Parse(path))(t).Query().Get("id")
	old := s.now.AddDate(-2, 0, 0)
	var log strings.Builder
	for n := range 7 {
		log.WriteString("192.0.2." + strconv.Itoa(n) + " - - [" + old.Format("02/Jan/2006:15:04:05 -0700") + "] \"GET /" + id + " HTTP/1.1\" 302 0\n")
	}
	im := usage.LogImporter{
		Store: s.r, Schemes: s.names, Agents: must(usage.NewAgents(nil))(t), Now: func() time.Time { return s.now },
		Space: func(context.Context, stele.ID) (stele.NamespaceKey, error) { return stele.NamespaceKey{}, nil },
		Find:  func(_ context.Context, id stele.ID) (stele.ID, bool, error) { return id, true, nil },
	}
	if _, err := im.Import(t.Context(), "access.log", func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(log.String())), nil }); err != nil {
		t.Fatal(err)
	}
	month := old.Format("2006-01")
	p := s.as("ruth").get("/.desk/usage?id="+url.QueryEscape(id)+"&by=day&from="+month+"&until="+month).has(200, old.Format("January 2006")+": 7 by people", old.Format("January 2006")+"</th>")
	if day := old.Format("2 January 2006") + "</th>"; strings.Contains(p.text, day) {
		t.Errorf("there is a line for %s\n%s", day, p.main())
	}
}
