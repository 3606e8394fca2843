package digest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk/job"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/internal/certtest"
	"github.com/stele-id/stele/mail"
	"github.com/stele-id/stele/mail/mailtest"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/secret"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/store/postgres"
	"github.com/stele-id/stele/store/postgres/postgrestest"
	"github.com/stele-id/stele/web/webtest"
)

// monday is when digests are due: at 07:00 on this day.
var monday = time.Date(2026, 11, 16, 7, 0, 0, 0, time.UTC)

const day, week = 24 * time.Hour, 7 * 24 * time.Hour

// desktop is a registry in which olga owns ark:12345/x5, whose changes are reviewed, and ed edits it. Both, and sam who has no
// role, have confirmed addresses.
type desktop struct {
	*testing.T
	store   stele.Store
	schemes *stele.Schemes
	admin   context.Context

	mu   sync.Mutex
	now  time.Time
	sent []mail.Letter
	fail error // of the mail server
	bad  error // of a source

	links apijson.LinkOverview // what was found out about links
}

// Overview is that of a checker of links.
func (d *desktop) Overview(context.Context, stele.NamespaceKey, int, int) (*apijson.LinkOverview, error) {
	return &d.links, nil
}

func newDesktop(t *testing.T, open func(clock func() time.Time) stele.Store) *desktop {
	t.Helper()
	d := &desktop{T: t, now: monday.Add(-3 * day), admin: auth.With(t.Context(), auth.Local())}
	d.store = open(d.clock)
	d.schemes = must(all.New(all.Config{Now: d.clock}))(t)
	r, _ := d.registrar()
	for _, name := range []string{"olga", "ed", "sam"} {
		must(r.AddUser(d.admin, auth.User{Name: name}))(t)
		var credential string
		must(r.AskAddress(d.as(name), name+"@example.org", "", func(c string, _ time.Time) ([]stele.CellChange, error) { credential = c; return nil, nil }))(t)
		must(r.ConfirmAddress(d.admin, name, credential))(t)
	}
	must(r.AddNamespace(d.admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x5", Owner: "olga", Reviewed: true, Grants: []stele.Grant{{To: "user:ed", Role: stele.RoleEditor}}}))(t)
	return d
}

func inMemory(clock func() time.Time) stele.Store { return mem.New(clock) }

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (d *desktop) clock() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

func (d *desktop) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = t
}

func (d *desktop) registrar() (*registrar.Registrar, *auth.Directory) {
	users := auth.NewDirectory(d.store, d.clock)
	return registrar.New(d.store, d.schemes, registrar.Options{Now: d.clock, OnAccess: users.Forget, Secrets: secret.NewRing(secret.Text{Keep: "stele-secret-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", Name: "the test"})}), users
}

func (d *desktop) as(user string) context.Context {
	d.Helper()
	return auth.With(d.Context(), must(auth.NewDirectory(d.store, d.clock).Principal(d.Context(), user))(d))
}

// server is one of the servers of a registry.
type server struct {
	*desktop
	r      *registrar.Registrar
	queue  *mail.Queue
	sender *Sender
}

func (d *desktop) server() *server {
	d.Helper()
	s := &server{desktop: d}
	var users *auth.Directory
	s.r, users = d.registrar()
	s.queue = mail.NewQueue(mail.Options{Registrar: s.r, From: "ids@example.org", Now: d.clock,
		Renew: func(ctx context.Context, l *mail.Letter) (bool, error) { return s.sender.Renew(ctx, l) },
		Send: func(_ context.Context, l *mail.Letter) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.fail == nil {
				d.sent = append(d.sent, *l)
			}
			return d.fail
		}})
	keys := func(context.Context, stele.NamespaceKey, time.Duration) (*zonekey.Status, error) {
		return &zonekey.Status{Steps: []zonekey.Step{{Key: "4711", To: zonekey.Active, From: monday.Add(-day)}}}, nil
	}
	bad := func(context.Context, *Reader) (Section, error) { return Section{}, d.bad }
	s.sender = New(Options{Registrar: s.r, Directory: users, Queue: s.queue, Writer: must(mail.NewWriter("Mapas", "https://id.example.org"))(d), Languages: webtest.Languages(d),
		Schedule: mail.Schedule{Day: time.Monday, Hour: 7}, Base: "https://id.example.org", Now: d.clock,
		Sources: []Source{Proposals(s.r), Decisions(s.r, d.schemes), Jobs(job.NewBoard(job.Options{Registrar: s.r, Schemes: d.schemes, Now: d.clock})), Zones(s.r, keys, d.clock), Links(s.r, d), Changes(s.r), bad}})
	return s
}

// send makes the digests that are due, sends them, and returns them by user.
func (s *server) send() map[string]mail.Letter {
	s.Helper()
	if err := s.sender.SendDue(s.Context()); err != nil {
		s.Fatal(err)
	}
	return s.deliver()
}

// deliver sends what is due in the queue.
func (s *server) deliver() map[string]mail.Letter {
	s.Helper()
	if err := s.queue.SendDue(s.Context()); err != nil {
		s.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make(map[string]mail.Letter)
	for _, l := range s.sent {
		user, _, _ := strings.Cut(l.To, "@")
		if _, twice := list[user]; twice {
			s.Errorf("%s got two letters", user)
		}
		list[user] = l
	}
	s.sent = nil
	return list
}

func (s *server) id(text string) stele.ID { s.Helper(); return must(s.schemes.Parse(text))(s) }

func targets() []stele.Target {
	return []stele.Target{{Service: stele.N2L, URL: "https://example.org/", Order: 100, Preference: 10}}
}

// propose proposes a record as ed.
func (s *server) propose(name, what string) *registrar.Proposal {
	s.Helper()
	return must(s.r.Propose(s.as("ed"), registrar.Proposal{Record: &stele.Record{ID: s.id(name), Metadata: map[string]string{"what": what}, Targets: targets()}}))(s)
}

// register registers a record as olga.
func (s *server) register(name string) {
	s.Helper()
	must(s.r.Register(s.as("olga"), &stele.Record{ID: s.id(name), Targets: targets()}))(s)
}

func (s *server) prefer(user string, change func(*auth.Preferences)) {
	s.Helper()
	must(s.r.SetPreferences(s.as(user), change))(s)
}

// has fails unless the letter has all texts.
func has(t testing.TB, l mail.Letter, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(l.Text, text) {
			t.Errorf("there is no %q in the letter to %s:\n%s", text, l.To, l.Text)
		}
	}
}

// TestDigest: users get what is new for them once, in their language, and nothing if nothing is.
func TestDigest(t *testing.T) {
	s := newDesktop(t, inMemory).server()
	if got := s.send(); len(got) != 0 {
		t.Fatalf("before a digest is due: %v", got)
	}
	s.prefer("ed", func(p *auth.Preferences) { p.Language = "pt-BR" })
	open, declined := s.propose("ark:12345/x5a", "An atlas"), s.propose("ark:12345/x5b", "Wrong")
	approved := s.propose("ark:12345/x5c", "Rivers")
	if err := s.r.Decline(s.as("olga"), declined.ID, "It is a copy.\nSee x5a."); err != nil {
		t.Fatal(err)
	}
	must(s.r.Approve(s.as("olga"), approved.ID))(t)
	s.register("ark:12345/x5d")
	s.set(monday.Add(-time.Second))
	if got := s.send(); len(got) != 0 {
		t.Fatalf("a second too early: %v", got)
	}
	s.set(monday.Add(time.Minute))
	got := s.send()
	if len(got) != 2 {
		t.Fatalf("got %v", got)
	}
	olga, ed := got["olga"], got["ed"]
	has(t, olga, "Hello olga,", "Proposals that wait for your decision", "An atlas (ark:12345/x5a)", "by ed in ark:12345/x5", "https://id.example.org/.desk/proposal?id="+open.ID, "once a week",
		"Get no more of these mails: "+olga.Unsubscribe, "https://id.example.org/.desk/settings")
	if strings.Contains(olga.Text, "Changes by other users") || strings.Contains(olga.Text, "Wrong") {
		t.Errorf("olga is told of her own changes:\n%s", olga.Text)
	}
	has(t, ed, "Olá, ed,", "Decisões sobre as suas propostas", "recusada por olga: It is a copy. See x5a.", "Rivers (ark:12345/x5c)", "aprovada por olga", "/.desk/record?id=ark%3A12345%2Fx5c",
		"2 mudanças em ark:12345/x5\n  por olga\n  https://id.example.org/.desk/names?namespace=ark%3A12345%2Fx5&since=2026-11-09")
	if strings.Contains(ed.Text, "esperam pela sua") || ed.Language != "pt-BR" || ed.Subject != "Novidades em Mapas, 16/11/2026" {
		t.Errorf("ed gets %q, %s", ed.Subject, ed.Text)
	}
	if !strings.Contains(ed.HTML, "<h2>Decisões") || !strings.Contains(ed.HTML, `href="`+strings.ReplaceAll(ed.Unsubscribe, "&", "&amp;")) {
		t.Errorf("ed gets\n%s", ed.HTML)
	}
	if got := s.server().send(); len(got) != 0 { // after a restart
		t.Errorf("again: %v", got)
	}
	// The proposal still waits, and nothing is new. Later it is told again beside what is.
	s.set(monday.Add(week))
	if got := s.send(); len(got) != 0 {
		t.Errorf("nothing is new: %v", got)
	}
	s.propose("ark:12345/x5e", "Lakes")
	s.set(monday.Add(2 * week))
	got = s.send()
	if has(t, got["olga"], "An atlas", "Lakes"); len(got) != 1 {
		t.Errorf("got %v", got)
	}
	// After a year only the last week is told.
	s.register("ark:12345/x5f")
	s.set(monday.Add(52 * week))
	if got := s.send(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// TestRates: a user chooses how often digests come. One who chooses them again is told of what happens from then on.
func TestRates(t *testing.T) {
	s := newDesktop(t, inMemory).server()
	rate := func(rate auth.DigestRate) {
		t.Helper()
		s.prefer("ed", func(p *auth.Preferences) { p.Digest = rate })
		if got := s.send(); len(got) != 0 {
			t.Errorf("the choice of %s sends %v", rate, got)
		}
	}
	if _, err := s.r.SetPreferences(s.as("ed"), func(p *auth.Preferences) { p.Digest = "hourly" }); !errors.Is(err, stele.Invalid) {
		t.Errorf("hourly: %v", err)
	}
	s.send()
	rate(auth.DigestDaily)
	for i := range 3 { // Saturday, Sunday, Monday
		s.register(fmt.Sprint("ark:12345/x5", i))
		s.set(monday.Add(time.Duration(i-2) * day))
		if got := s.send(); len(got) != 1 || !strings.Contains(got["ed"].Text, "One change in ark:12345/x5") || !strings.Contains(got["ed"].Text, "once a day") {
			t.Errorf("day %d: %v", i, got)
		}
	}
	s.register("ark:12345/x53")
	rate(auth.DigestOff)
	s.set(monday.Add(day))
	if got := s.send(); len(got) != 0 {
		t.Errorf("off: %v", got)
	}
	s.set(monday.Add(3 * week).Add(time.Hour))
	rate(auth.DigestWeekly)
	s.register("ark:12345/x54")
	s.set(monday.Add(4 * week))
	if got := s.send(); len(got) != 1 || !strings.Contains(got["ed"].Text, "One change in") {
		t.Errorf("weekly again: %v", got)
	}
	// From weekly to daily nothing is lost.
	s.register("ark:12345/x55")
	s.set(monday.Add(4*week + 3*day - time.Hour))
	s.prefer("ed", func(p *auth.Preferences) { p.Digest = auth.DigestDaily })
	if got := s.send(); len(got) != 1 || !strings.Contains(got["ed"].Text, "One change in") {
		t.Errorf("daily again: %v", got)
	}
	if err := s.r.RemoveAddress(s.as("ed")); err != nil {
		t.Fatal(err)
	}
	s.register("ark:12345/x56")
	s.set(monday.Add(5 * week))
	if got := s.send(); len(got) != 0 {
		t.Errorf("without an address: %v", got)
	}
	for c := range s.store.Cells(t.Context(), toldCells+"ed", "") {
		t.Errorf("%s is left", c.Name)
	}
}

// TestRights: a digest has what the user may see when it is sent, also if the mail server was down meanwhile.
func TestRights(t *testing.T) {
	take := func(s *server) {
		s.Helper()
		must(s.r.SetNamespace(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, 0, func(ns *stele.Namespace) error { ns.Owner, ns.Grants = "sam", nil; return nil }))(s)
	}
	begin := func() *server {
		s := newDesktop(t, inMemory).server()
		s.send()
		p := s.propose("ark:12345/x5a", "Secret")
		must(s.r.Approve(s.as("olga"), p.ID))(t)
		s.propose("ark:12345/x5b", "Waits")
		return s
	}
	s := begin()
	take(s)
	s.set(monday)
	got := s.send()
	if has(t, got["sam"], "Waits", "One change in", "by olga"); len(got) != 2 { // ed's approved record is public
		t.Errorf("got %v", got)
	}
	if has(t, got["ed"], "approved by olga"); strings.Contains(got["ed"].Text, "Changes by other") {
		t.Errorf("ed, who edits nothing any more, gets\n%s", got["ed"].Text)
	}

	s = begin()
	s.fail = errors.New("the mail server is down")
	s.set(monday)
	if got := s.send(); len(got) != 0 {
		t.Fatalf("got %v", got)
	}
	take(s)
	if _, err := s.r.SetUser(s.admin, "ed", func(u *auth.User) error { u.Disabled = true; return nil }); err != nil {
		t.Fatal(err)
	}
	s.fail = nil
	s.set(monday.Add(time.Hour))
	if got := s.deliver(); len(got) != 0 {
		t.Errorf("after the rights ended: %v", got)
	}
	if list := must(s.queue.List(s.admin))(t); len(list) != 0 {
		t.Errorf("left %v", list)
	}
}

// TestSeveralServers: several servers of a database send each digest once.
func TestSeveralServers(t *testing.T) {
	for name, open := range map[string]func(func() time.Time) stele.Store{"memory": inMemory, "PostgreSQL": func(clock func() time.Time) stele.Store {
		url, o := postgrestest.Start(t, postgrestest.Options{NoSync: true}).Database(t), postgres.Options{Now: clock}
		if err := postgres.Migrate(t.Context(), url, o, func(string) {}); err != nil {
			t.Fatal(err)
		}
		store := must(postgres.Open(t.Context(), url, o))(t)
		t.Cleanup(func() { store.Close() })
		return store
	}} {
		t.Run(name, func(t *testing.T) {
			d := newDesktop(t, open)
			servers := []*server{d.server(), d.server(), d.server()}
			servers[0].send()
			for i := range 3 {
				servers[i].register(fmt.Sprint("ark:12345/x5", i))
				d.set(monday.Add(time.Duration(i) * week))
				var all sync.WaitGroup
				for _, s := range servers {
					all.Go(func() {
						if err := s.sender.SendDue(t.Context()); err != nil {
							t.Error(err)
						}
						if err := s.queue.SendDue(t.Context()); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				if got := servers[0].deliver(); len(got) != 1 || !strings.Contains(got["ed"].Text, "One change in") {
					t.Errorf("week %d: %v", i, got)
				}
			}
		})
	}
}

// TestRestore: a restored registry sends no digest again, and the next one.
func TestRestore(t *testing.T) {
	s := newDesktop(t, inMemory).server()
	s.send()
	s.register("ark:12345/x5a")
	s.set(monday.Add(time.Hour))
	if err := s.r.AfterRestore(s.admin); err != nil { // of a backup of before the digest
		t.Fatal(err)
	}
	if got := s.send(); len(got) != 0 {
		t.Errorf("after the restore: %v", got)
	}
	s.register("ark:12345/x5b")
	s.set(monday.Add(week))
	if got := s.send(); len(got) != 1 || !strings.Contains(got["ed"].Text, "One change in") {
		t.Errorf("a week later: %v", got)
	}
}

// TestSourceFails: a digest waits for a source that fails, and comes without it after an hour. It has few lines, however much is new.
func TestSourceFails(t *testing.T) {
	s := newDesktop(t, inMemory).server()
	s.send()
	for i := range maxItems + 5 {
		s.propose(fmt.Sprint("ark:12345/x5", i), strings.Repeat("Ação ", 200))
	}
	s.bad = errors.New("the disk is slow")
	s.set(monday)
	if err := s.sender.SendDue(t.Context()); err == nil || len(s.deliver()) != 0 {
		t.Errorf("got %v", err)
	}
	s.set(monday.Add(patience))
	l := s.send()["olga"]
	if has(t, l, "and 5 more", "…"); strings.Count(l.Text, "\n- ") != maxItems+1 || len(l.Text) > 10_000 {
		t.Errorf("got %d bytes\n%s", len(l.Text), l.Text)
	}
}

// TestZones: owners are told of zones that need a step, once.
func TestZones(t *testing.T) {
	s := newDesktop(t, inMemory).server()
	must(s.r.AddNamespace(s.admin, &stele.Namespace{Scheme: "urn", Prefix: "urn:maps", Owner: "olga", Publication: stele.Publication{Zone: "maps.example.org.", Layout: stele.LayoutNames, Separator: ":", Parts: 1, Mailbox: "hostmaster@example.org"}}))(t)
	s.send()
	s.set(monday)
	got := s.send()
	if has(t, got["olga"], "Zones that need a step", "maps.example.org. has no name servers", "/.desk/zone/keys?namespace=urn%3Amaps"); len(got) != 1 {
		t.Errorf("got %v", got)
	}
	s.set(monday.Add(week))
	if got := s.send(); len(got) != 0 {
		t.Errorf("again: %v", got)
	}
}

// TestUnsubscribe: the link of a letter ends digests of its user, and of no other.
func TestUnsubscribe(t *testing.T) {
	s := newDesktop(t, inMemory).server()
	s.send()
	s.register("ark:12345/x5a")
	s.set(monday)
	l := s.send()["ed"]
	credential := l.Unsubscribe[strings.LastIndex(l.Unsubscribe, "/")+1:]
	for _, wrong := range [][2]string{{"olga", credential}, {"ed", credential[:len(credential)-3] + "AAA"}, {"ed", ""}, {"", credential}} {
		if err := s.r.EndDigests(s.admin, wrong[0], wrong[1]); !errors.Is(err, stele.Unauthenticated) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if err := s.r.EndDigests(s.as("ed"), "ed", credential); !errors.Is(err, stele.Forbidden) {
		t.Errorf("a caller that is not a server: %v", err)
	}
	if err := s.r.EndDigests(s.admin, "ed", credential); err != nil {
		t.Fatal(err)
	}
	s.register("ark:12345/x5b")
	s.set(monday.Add(week))
	if got := s.send(); len(got) != 0 {
		t.Errorf("after the end: %v", got)
	}
}

// TestExim sends a digest through a real mail server.
func TestExim(t *testing.T) {
	s := newDesktop(t, inMemory).server()
	ca := certtest.New(t, time.Now)
	cert, key := ca.Issue(t, t.TempDir(), day, 7, "localhost", "127.0.0.1")
	exim := mailtest.Start(t, cert, key)
	transport := must(mail.NewTransport(mail.Settings{Server: exim.Addr, Security: mail.StartTLS, User: mailtest.User, Password: mailtest.Password, From: "ids@example.org", Roots: ca.Pool}))(t)
	s.send()
	s.prefer("ed", func(p *auth.Preferences) { p.Language = "pt-BR" })
	s.propose("ark:12345/x5a", "Açaí & <b>maps</b>\nBcc: eve@example.org")
	s.register("ark:12345/x5b")
	s.set(monday)
	for _, l := range s.send() {
		if err := transport.Send(t.Context(), &l); err != nil {
			t.Fatal(err, exim.Log())
		}
	}
	for _, m := range exim.Await(t, 2) {
		want := "Açaí & <b>maps</b> Bcc: eve@example.org (ark:12345/x5a)"
		if m.Header.Get("To") == "<ed@example.org>" {
			want = "Uma mudança em ark:12345/x5"
		}
		if !strings.Contains(m.Text, want) || m.Header.Get("Bcc") != "" || strings.Contains(m.HTML, "<b>") {
			t.Errorf("there is no %q in\n%s", want, m.Raw)
		}
		link := strings.Trim(m.Header.Get("List-Unsubscribe"), "<>")
		if !strings.HasPrefix(link, "https://id.example.org/.desk/digest/") || m.Header.Get("List-Unsubscribe-Post") != "List-Unsubscribe=One-Click" || m.Link(t, "https://id.example.org/.desk/digest/") != link {
			t.Errorf("the headers are %v", m.Header)
		}
	}
}

// TestManyItems: items beyond those of which is kept that the user was told are not new in each digest.
func TestManyItems(t *testing.T) {
	to := &Reader{Language: webtest.Languages(t).English()}
	items := func(from, until int) (list []Item) {
		for n := from; n < until; n++ {
			list = append(list, Item{Text: "proposal", Key: fmt.Sprint("proposal ", n)})
		}
		return list
	}
	var first, second, third made
	first.add(to, Section{Items: items(1, maxTold+201)}, nil)
	second.add(to, Section{Items: items(1, maxTold+201)}, first.keys)
	third.add(to, Section{Items: items(0, maxTold+201)}, second.keys)
	if !first.fresh || second.fresh || !third.fresh || len(first.keys) != maxTold {
		t.Errorf("new are %t, %t, %t, with %d keys", first.fresh, second.fresh, third.fresh, len(first.keys))
	}
}

// TestPreview: what would be sent now can be looked at, and is sent all the same when it is due.
func TestPreview(t *testing.T) {
	s := newDesktop(t, inMemory).server()
	s.send()
	if got := must(s.sender.Preview(t.Context(), ""))(t); len(got) != 0 {
		t.Errorf("nothing happened: %v", got)
	}
	s.propose("ark:12345/x5a", "An atlas")
	got := must(s.sender.Preview(t.Context(), ""))(t)
	if len(got) != 1 || got[0].To != "olga@example.org" {
		t.Fatalf("got %v", got)
	}
	has(t, *got[0], "Hello olga,", "An atlas (ark:12345/x5a)", "Get no more of these mails: https://id.example.org/.desk/digest/olga/...")
	if got := must(s.sender.Preview(t.Context(), "ed"))(t); len(got) != 0 {
		t.Errorf("to ed: %v", got)
	}
	s.set(monday)
	has(t, s.send()["olga"], "An atlas (ark:12345/x5a)")
	if got := must(s.sender.Preview(t.Context(), ""))(t); len(got) != 0 {
		t.Errorf("after it was sent: %v", got)
	}
}
