package remote

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
)

// The sessions of TestIsARegistrar.

func playRecords(s *script) {
	rec, err := s.Register(s.ctx, s.record(`{"id":"ark:/12345/x1","aliases":["10.5072/One"],"targets":[{"url":"https://example.org/1?a=b&c","type":"text/html","ttl":60},{"service":"N2C","url":"https://example.org/1.xml"}],"metadata":{"what":"Two\nlines, \"é\"","who":"Lima, A."},"persistence":{"level":"stable"},"readers":["user:carl"]}`))
	s.see("register", rec, err)
	_, err = s.Register(s.ctx, s.record(`{"id":"ark:12345/x1","url":"https://example.org/other"}`))
	s.see("register again", stele.KindOf(err), nil) // a store has words of its own
	_, err = s.Register(s.ctx, s.record(`{"id":"10.5072/one","url":"https://example.org/other"}`))
	s.see("register an alias", stele.KindOf(err), nil)
	for _, name := range []string{"ark:12345/x1", "10.5072/ONE", "ark:12345/none", "https://purl.org/a//b"} {
		rec, err = s.Get(s.ctx, s.id(name))
		s.see("get "+name, rec, err)
	}
	for _, name := range []string{"10.5072/a%b?c#d", "10.5072/../é /..//x", "10.5072//.", "https://purl.org/a//b", "urn:x1:a//b/c;d=e&f"} {
		rec, err = s.Register(s.ctx, &stele.Record{ID: s.id(name)})
		s.see("register "+name, rec, err)
		rec, err = s.Get(s.ctx, s.id(name))
		s.see("get "+name, rec, err)
	}
	for i, change := range []func(*stele.Record) error{
		func(r *stele.Record) error { r.Targets = r.Targets[:1]; r.Metadata["note"] = "x"; return nil },
		func(r *stele.Record) error { return nil },
		func(r *stele.Record) error {
			r.Readers = nil
			r.Aliases = append(r.Aliases, s.id("urn:x1:a"))
			return nil
		},
		func(r *stele.Record) error { r.ID = s.id("ark:12345/x2"); return nil },
		func(r *stele.Record) error { r.Aliases = nil; return nil },
		func(r *stele.Record) error {
			r.Targets[0].URL = "javascript:alert"
			r.Persistence.Level = "often"
			return nil
		},
		func(r *stele.Record) error { r.State = stele.Withdrawn; return nil },
		func(r *stele.Record) error { r.State = stele.Reserved; return nil },
		func(*stele.Record) error { return errors.New("no such change") },
	} {
		rec, err = s.Update(s.ctx, s.id("10.5072/one"), 0, change)
		s.see(fmt.Sprintf("update %d", i), rec, err)
	}
	title := func(r *stele.Record) error { r.Metadata["what"] = "Another"; return nil }
	rec, err = s.Update(s.ctx, s.id("ark:12345/x1"), 1, title)
	s.see("update an old version", rec, err)
	rec, err = s.Update(s.ctx, s.id("ark:12345/x1"), 3, title)
	s.see("update this version", rec, err)
	rec, err = s.Update(s.ctx, s.id("ark:12345/none"), 0, title)
	s.see("update nothing", rec, err)
	seeAll(s, "history", s.History(s.ctx, s.id("urn:x1:a")))
	seeAll(s, "history of nothing", s.History(s.ctx, s.id("urn:x1:none")))
	rec, err = s.At(s.ctx, s.id("urn:x1:a"), time.Now().Add(time.Hour))
	s.see("at", rec, err)
	rec, err = s.At(s.ctx, s.id("urn:x1:a"), time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC))
	s.see("at another time", rec, err)
}

func playStates(s *script) {
	id := s.id("ark:12345/x1")
	rec, err := s.Register(s.ctx, s.record(`{"id":"ark:12345/x1","url":"https://example.org/1","aliases":["urn:x1:a"]}`))
	s.see("register", rec, err)
	rec, err = s.Reinstate(s.ctx, id, 0)
	s.see("reinstate", rec, err)
	rec, err = s.Withdraw(s.ctx, id, 2, "Gone.", stele.ID{})
	s.see("withdraw another version", rec, err)
	rec, err = s.Withdraw(s.ctx, id, 1, "Gone.", s.id("ark:12345/x2"))
	s.see("withdraw", rec, err)
	rec, err = s.Withdraw(s.ctx, id, 0, "Gone.", s.id("urn:x1:a"))
	s.see("withdraw for itself", rec, err)
	rec, err = s.Withdraw(s.ctx, id, 0, " ", stele.ID{})
	s.see("withdraw without a reason", rec, err)
	rec, err = s.Update(s.ctx, id, 0, func(*stele.Record) error { return errors.New("not called") })
	s.see("update", rec, err)
	rec, err = s.Reinstate(s.ctx, id, 0)
	s.see("reinstate", rec, err)
	rec, err = s.Withdraw(s.ctx, id, 0, "Gone again.", stele.ID{})
	s.see("withdraw again", rec, err)
	rec, err = s.Redact(s.ctx, id, 9, "An order.")
	s.see("redact another version", rec, err)
	rec, err = s.Redact(s.ctx, id, 0, "An order.")
	s.see("redact", rec, err)
	seeAll(s, "history", s.History(s.ctx, id))
	rec, err = s.Withdraw(s.ctx, s.id("ark:12345/none"), 0, "Gone.", stele.ID{})
	s.see("withdraw nothing", rec, err)
	rec, err = s.Register(s.ctx, s.record(`{"id":"urn:x1:draft","state":"reserved"}`))
	s.see("reserve", rec, err)
	rec, err = s.Withdraw(s.ctx, s.id("urn:x1:draft"), 0, "Gone.", stele.ID{})
	s.see("withdraw what is reserved", rec, err)
}

func playWrong(s *script) {
	for _, text := range []string{
		`{"id":"ark:12345/x6","targets":[{"url":"javascript:alert(1)","type":"html","language":"?","status":200,"ttl":99999999}],"persistence":{"level":"forever","until":"soon"},"readers":["ana"]}`,
		`{"id":"ark:12345/x6","aliases":["ark:12345/x6"]}`,
		`{"id":"ark:12345/x6","state":"withdrawn","tombstone":{"reason":"x"}}`,
	} {
		rec := s.record(text)
		rec.Metadata = stele.Metadata{"Bad Key": "1", "what": "\x00"}
		rec, err := s.Register(s.ctx, rec)
		s.see("register", rec, err)
	}
	for _, change := range []func(*stele.Namespace){
		func(n *stele.Namespace) { n.TTL, n.Status, n.Hosts = 99999999, 200, []string{"no host"} },
		func(n *stele.Namespace) { n.Minter = stele.Minter{Kind: stele.MinterNOID, Template: "reed"} },
		func(n *stele.Namespace) { n.Minter = stele.Minter{Kind: stele.MinterIBI, Host: "localhost"} },
		func(n *stele.Namespace) { n.Prefix = "" },
	} {
		ns := &stele.Namespace{Scheme: "urn", Prefix: "urn:x2"}
		change(ns)
		ns, err := s.AddNamespace(s.ctx, ns)
		s.see("add", ns, err)
	}
}

func playNamespaces(s *script) {
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}
	ns, err := s.AddNamespace(s.ctx, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Title: "Reports", Minter: stele.Minter{Kind: stele.MinterNOID, Template: ".zd"}, Quota: 5,
		Grants: []stele.Grant{{To: "group:staff", Role: stele.RoleEditor}}})
	s.see("add", ns, err)
	ns, err = s.AddNamespace(s.ctx, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix})
	s.see("add again", ns, err)
	ns, err = s.Namespace(s.ctx, key)
	s.see("show", ns, err)
	ns, err = s.Namespace(s.ctx, stele.NamespaceKey{Scheme: "urn", Prefix: "urn:x9"})
	s.see("show nothing", ns, err)
	ns, err = s.ParentNamespace(s.ctx, key)
	s.see("parent", ns, err)
	ns, err = s.ParentNamespace(s.ctx, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"})
	s.see("root", ns, err)
	ns, err = s.ParentNamespace(s.ctx, stele.NamespaceKey{Scheme: "ark"})
	s.see("above the root", ns, err)
	title := func(n *stele.Namespace) error { n.Title = "Papers"; return nil }
	for _, version := range []uint64{0, 0, 1, 2} {
		ns, err = s.SetNamespace(s.ctx, key, version, title)
		s.see("set", ns, err)
	}
	ns, err = s.SetNamespace(s.ctx, stele.NamespaceKey{Scheme: "urn"}, 0, func(n *stele.Namespace) error { n.TTL = 60; return nil })
	s.see("set root", ns, err)
	ns, err = s.SetNamespace(s.ctx, stele.NamespaceKey{Scheme: "urn", Prefix: "urn:x9"}, 0, title)
	s.see("set nothing", ns, err)
	ns, err = s.SetNamespace(s.ctx, key, 0, func(n *stele.Namespace) error { n.Prefix = "ark:12345/x6"; return nil })
	s.see("move", ns, err)
	seeAll(s, "all", s.Namespaces(s.ctx))
	status, err := s.MinterStatus(s.ctx, key)
	s.see("status", status, err)
	s.see("skip", nil, s.SkipCounter(s.ctx, key, 7))
	s.see("skip back", nil, s.SkipCounter(s.ctx, key, 3))
	s.see("skip nothing", nil, s.SkipCounter(s.ctx, stele.NamespaceKey{Scheme: "urn", Prefix: "urn:x9"}, 3))
	status, err = s.MinterStatus(s.ctx, key)
	s.see("status", status, err)
}

func playMint(s *script) {
	key := stele.NamespaceKey{Scheme: "urn", Prefix: "urn:x1"}
	_, err := s.AddNamespace(s.ctx, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Minter: stele.Minter{Kind: stele.MinterNOID, Template: ".sdd"}})
	s.see("add", nil, err)
	labels, err := s.Mint(s.ctx, key, 3)
	s.see("mint", labels, err)
	rec, err := s.MintAndRegister(s.ctx, s.record(`{"url":"https://example.org/1","metadata":{"what":"A thing"},"aliases":["10.5072/a"]}`), key)
	s.see("register", rec, err)
	rec, err = s.MintAndRegister(s.ctx, s.record(`{"url":"https://example.org/1","aliases":["10.5072/a"]}`), key)
	s.see("register a name that is taken", rec, err)
	rec, err = s.MintAndRegister(s.ctx, s.record(`{"targets":[{"url":"nowhere"}],"persistence":{"level":"often"}}`), key)
	s.see("register nonsense", rec, err)
	for _, pool := range [][]stele.NamespaceKey{{{Scheme: "urn", Prefix: "urn:x9"}}, {{Scheme: "ark", Prefix: "ark:12345"}}, nil} {
		labels, err = s.MintPool(s.ctx, pool, 1)
		s.see("mint elsewhere", labels, err)
	}
}

func playImport(s *script) {
	o := registrar.ImportOptions{Keep: true, Name: "records.jsonl 1234", Bookmark: []byte(`{"offset":17}`)}
	mark, err := s.Bookmark(s.ctx, o.Name)
	s.see("bookmark", string(mark), err)
	records := func() []*stele.Record {
		return []*stele.Record{
			s.record(`{"id":"ark:12345/x1","url":"https://example.org/1","created":"2001-02-03T04:05:06Z","by":"ann"}`),
			s.record(`{"id":"ark:12345/x2","state":"withdrawn","tombstone":{"reason":"Gone.","at":"2020-01-02T03:04:05Z"}}`),
			s.record(`{"id":"ark:12345/x3","url":"https://example.org/3","aliases":["ark:12345/x1"]}`),
			s.record(`{"id":"ark:12345/x1","url":"https://example.org/other"}`),
		}
	}
	errs, err := s.Ingest(s.ctx, records(), o)
	s.see("import", errs, err)
	errs, err = s.Ingest(s.ctx, records(), o)
	s.see("import again", errs, err)
	o.DryRun, o.Update = true, true
	list := records()
	errs, err = s.Ingest(s.ctx, list, o)
	s.see("rehearse", errs, err)
	o.DryRun = false
	errs, err = s.Ingest(s.ctx, list[3:], o)
	s.see("update", errs, err)
	s.see("version", list[3].Version, nil)
	fresh := []*stele.Record{s.record(`{"id":"ark:12345/x1","url":"https://example.org/2"}`), s.record(`{"id":"ark:12345/x5","url":"https://example.org/2"}`)}
	errs, err = s.Ingest(s.ctx, fresh, registrar.ImportOptions{Update: true, Versions: []uint64{registrar.MustBeNew, registrar.MustBeNew}})
	s.see("must be new", errs, err)
	s.see("version", fresh[1].Version, nil)
	o.Bookmark = []byte(`{"done":true}`)
	errs, err = s.Ingest(s.ctx, nil, o)
	s.see("mark", errs, err)
	mark, err = s.Bookmark(s.ctx, o.Name)
	s.see("bookmark", string(mark), err)
	ns := &stele.Namespace{Scheme: "urn", Prefix: "urn:x1", Title: "Things", Minter: stele.Minter{Kind: stele.MinterNOID, Template: ".zd"}}
	s.see("namespace", nil, s.IngestNamespace(s.ctx, ns, registrar.ImportOptions{}))
	s.see("namespace again", nil, s.IngestNamespace(s.ctx, ns, registrar.ImportOptions{}))
	ns.Title = "Others"
	s.see("another namespace", nil, s.IngestNamespace(s.ctx, ns, registrar.ImportOptions{}))
	s.see("update", nil, s.IngestNamespace(s.ctx, ns, registrar.ImportOptions{Update: true}))
	labels, err := s.Mint(s.ctx, ns.Key(), 1)
	s.see("mint", labels, err)
	s.see("prefix", nil, s.IngestNamespace(s.ctx, &stele.Namespace{Scheme: "hdl", Prefix: "20.500.1/"}, registrar.ImportOptions{}))
	errs, err = s.Ingest(s.ctx, []*stele.Record{s.record(`{"id":"20.500.1/A","values":[{"index":1,"type":"A","data":"eA=="},{"index":100,"type":"HS_ADMIN","data":"eA=="}]}`)}, registrar.ImportOptions{})
	s.see("import rights", errs, err)
	list = []*stele.Record{s.record(`{"id":"20.500.1/A","values":[{"index":1,"type":"A","data":"eA=="}]}`)}
	errs, err = s.Ingest(s.ctx, list, registrar.ImportOptions{Update: true, KeepTypes: []string{"HS_VLIST", "HS_ADMIN"}})
	s.see("keep rights", errs, err)
	s.see("version", list[0].Version, nil)
}

func playUsers(s *script) {
	u, err := s.AddUser(s.ctx, auth.User{Name: "bia", Groups: []string{"staff", "a"}})
	s.see("add", u, err)
	u, err = s.AddUser(s.ctx, auth.User{Name: "bia"})
	s.see("add again", u, err)
	u, err = s.AddUser(s.ctx, auth.User{Name: "Bia Lima"})
	s.see("add nonsense", u, err)
	for _, change := range []func(*auth.User){
		func(u *auth.User) { u.Groups = append(u.Groups, "b") },
		func(u *auth.User) { u.Groups = nil },
		func(u *auth.User) { u.Admin, u.Disabled = true, true },
		func(u *auth.User) {},
		func(u *auth.User) { u.Name = "bob" },
	} {
		u, err = s.SetUser(s.ctx, "bia", func(u *auth.User) error { change(u); return nil })
		s.see("set", u, err)
	}
	u, err = s.SetUser(s.ctx, "root", func(u *auth.User) error { u.Admin = false; return nil })
	s.see("no administrator", u, err)
	u, err = s.User(s.ctx, "nobody")
	s.see("show nobody", u, err)
	seeAll(s, "users", s.Users(s.ctx))
	_, token, err := s.CreateToken(s.ctx, auth.TokenRequest{User: "ann", Label: "laptop", Expires: time.Now().Add(time.Hour)})
	token.Parent = "" // there is one where there is a token
	s.see("token", token, err)
	_, never, err := s.CreateToken(s.ctx, auth.TokenRequest{User: "ann", Label: "for ever", Never: true})
	s.see("token", never.Expires, err)
	_, _, err = s.CreateToken(s.ctx, auth.TokenRequest{User: "bia", Label: "laptop", Expires: time.Now().Add(time.Hour)})
	s.see("token of a disabled one", nil, err)
	_, _, err = s.CreateToken(s.ctx, auth.TokenRequest{User: "ann", Label: strings.Repeat("x", 201)})
	s.see("long label", nil, err)
	_, limited, err := s.CreateToken(s.ctx, auth.TokenRequest{User: "ann", Scopes: []auth.Scope{auth.ScopeRead}, Namespaces: []string{"ark:/12345"}})
	s.see("limited", fmt.Sprint(limited.Scopes, limited.Namespaces), err)
	_, _, err = s.CreateToken(s.ctx, auth.TokenRequest{User: "ann", Scopes: []auth.Scope{"root"}})
	s.see("no such scope", nil, err)
	_, _, err = s.CreateToken(s.ctx, auth.TokenRequest{User: "ann", Namespaces: []string{"ark:77777"}})
	s.see("no such namespace", nil, err)
	token, err = s.RevokeToken(s.ctx, token.ID)
	token.Parent = ""
	s.see("revoke", token, err)
	_, err = s.RevokeToken(s.ctx, "nothing")
	s.see("revoke nothing", nil, err)
	n := 0
	for _, err := range s.Tokens(s.ctx, "ann") {
		s.see("tokens", n, err)
		n++
	}
}

func playAccess(s *script) {
	for _, in := range []registrar.Invitation{
		{User: auth.User{Name: "bia", Groups: []string{"staff"}}, Namespace: stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}, Role: stele.RoleEditor, Life: time.Hour},
		{User: auth.User{Name: "bia"}, Life: time.Hour},
		{User: auth.User{Name: "Bia Lima"}, Life: time.Hour},
		{User: auth.User{Name: "rui"}, Namespace: stele.NamespaceKey{Scheme: "ark", Prefix: "ark:77777"}, Role: stele.RoleEditor, Life: time.Hour},
		{User: auth.User{Name: "rui"}, Namespace: stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}, Role: "boss", Life: time.Hour},
		{User: auth.User{Name: "rui"}, Life: time.Minute},
	} {
		made, err := s.Invite(s.ctx, in)
		s.see("invite", made.User, err)
		s.see("link", fmt.Sprint(made.Link.User, strings.HasPrefix(made.Credential, "stele-link_")), nil)
	}
	for _, user := range []string{"bia", "ann", ""} {
		var ids []string
		for l, err := range s.Links(s.ctx, user) {
			s.see("links of "+user, fmt.Sprint(l.User, l.By, l.Created.IsZero()), err)
			ids = append(ids, l.ID)
		}
		for _, id := range ids {
			s.see("end", nil, s.EndLink(s.ctx, id))
		}
	}
	s.see("end nothing", nil, s.EndLink(s.ctx, "nothing"))
	for i, err := range s.Identities(s.ctx, "ann") {
		i.Created = time.Time{}
		s.see("account", fmt.Sprintf("%s %+v", i.ID(), i), err)
		s.see("of another", nil, s.EndIdentity(s.ctx, "bia", i.ID()))
		s.see("unlink", nil, s.EndIdentity(s.ctx, "ann", i.ID()))
		s.see("unlink again", nil, s.EndIdentity(s.ctx, "ann", i.ID()))
	}
	seeAll(s, "accounts", s.Identities(s.ctx, "ann"))
	seeAll(s, "passkeys", s.Passkeys(s.ctx, "ann"))
	s.see("rename nothing", nil, s.RenamePasskey(s.ctx, "nothing", "x"))
	s.see("remove nothing", nil, s.RemovePasskey(s.ctx, "nothing"))
}
