package hdlclient

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/wire/hdl"
)

// value returns a value as clients write it.
func value(index uint32, kind, data string) hdl.Value {
	return hdl.Value{Index: index, Type: []byte(kind), Data: []byte(data), TTL: 86400, Permissions: hdl.AdminRead | hdl.AdminWrite | hdl.PublicRead}
}

// admins is a value that makes the administrators of the prefix those of a handle.
func admins() hdl.Value {
	a := hdl.Admin{Permissions: 0xfff, Identity: hdl.Reference{Handle: "0.NA/" + prefix, Index: 200}}
	v := value(100, "HS_ADMIN", "")
	v.Data = a.Append(nil)
	return v
}

// texts returns the values as "index type data", without those of administrators.
func texts(values []hdl.Value) string {
	var list []string
	for i := range values {
		if v := &values[i]; string(v.Type) != "HS_ADMIN" {
			list = append(list, fmt.Sprintf("%d %s %s", v.Index, v.Type, v.Data))
		}
	}
	return strings.Join(list, ", ")
}

// lifecycle creates a handle, changes it in all ways, reads it and deletes it.
func lifecycle(t *testing.T, w *world, c *Client, a *Administrator, handle string) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(text string) {
		t.Helper()
		got, err := c.Resolve(ctx, Query{Handle: handle})
		if err != nil || texts(got.Values) != text {
			t.Fatalf("%s, %v; want %s", texts(got.Values), err, text)
		}
	}
	name, err := a.Create(ctx, handle, []hdl.Value{value(1, "URL", "https://a.example/"), admins()}, CreateOptions{})
	if must(err); name != handle {
		t.Fatalf("created %s", name)
	}
	want("1 URL https://a.example/")
	if _, err := a.Create(ctx, handle, []hdl.Value{value(1, "URL", "https://a.example/"), admins()}, CreateOptions{}); codeOf(err) != hdl.HandleExists || stele.KindOf(err) != stele.Conflict {
		t.Fatalf("it exists: %v", err)
	}
	must(a.Add(ctx, handle, []hdl.Value{value(2, "EMAIL", "a@example.org")}, false))
	if err := a.Add(ctx, handle, []hdl.Value{value(2, "EMAIL", "b@example.org")}, false); codeOf(err) != hdl.ValueExists {
		t.Fatalf("the value exists: %v", err)
	}
	must(a.Add(ctx, handle, []hdl.Value{value(2, "EMAIL", "c@example.org")}, true))
	must(a.Modify(ctx, handle, []hdl.Value{value(1, "URL", "https://b.example/")}))
	if err := a.Modify(ctx, handle, []hdl.Value{value(9, "URL", "https://b.example/")}); codeOf(err) != hdl.ValuesNotFound {
		t.Fatalf("no such value: %v", err)
	}
	want("1 URL https://b.example/, 2 EMAIL c@example.org")
	must(a.Remove(ctx, handle, 2))
	want("1 URL https://b.example/")
	_, err = a.Create(ctx, handle, []hdl.Value{value(3, "URL", "https://c.example/"), admins()}, CreateOptions{Overwrite: true})
	must(err)
	want("3 URL https://c.example/")
	must(a.Delete(ctx, handle))
	if _, err := c.Resolve(ctx, Query{Handle: handle}); codeOf(err) != hdl.HandleNotFound {
		t.Fatalf("after its end: %v", err)
	}
	_, err = a.Create(ctx, handle, []hdl.Value{value(1, "URL", "https://again.example/"), admins()}, CreateOptions{})
	must(err)
	want("1 URL https://again.example/")
	must(a.Delete(ctx, handle))
}

func TestAdministrator(t *testing.T) {
	w := newWorld(t)
	identities := map[string]Identity{
		"RSA":    {Reference: hdl.Reference{Handle: "0.NA/" + prefix, Index: 300}, Key: w.key("privkey_file_rsa")},
		"DSA":    {Reference: hdl.Reference{Handle: "0.na/" + prefix, Index: 301}, Key: w.key("privkey_file_dsa")},
		"secret": {Reference: hdl.Reference{Handle: prefix + "/USER01", Index: 300}, Secret: []byte("s3cret pass")},
	}
	for name, who := range identities {
		for _, v := range []hdl.Version{{Major: 2, Minor: 5}, {Major: 2, Minor: 6}, {Major: 2, Minor: 7}, hdl.Latest()} {
			for _, without := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s without session %v", name, version(v), without), func(t *testing.T) {
					c := w.client(func(o *Options) { o.Version = v })
					a := w.as(c, who, AdministratorOptions{NoSession: without})
					lifecycle(t, w, c, a, fmt.Sprintf("%s/%s-%d-%v", prefix, name, v.Minor, without))
					if err := a.Close(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
	if n := w.server.Stats().Sessions; n != 12 {
		t.Errorf("%d sessions were set up, one for each client is enough", n)
	}
}

// An administrator can work over every transport, and at a server of which only the address is known.
func TestAdministratorTransports(t *testing.T) {
	w := newWorld(t)
	for _, transport := range []hdl.Transport{hdl.UDP, hdl.TCP, hdl.HTTP} {
		c := w.client(only(transport))
		lifecycle(t, w, c, w.administrator(c, AdministratorOptions{}), prefix+"/"+transports[transport])
	}
	for _, text := range []string{w.at.String(), w.web.URL} {
		p, err := ParsePlace(text)
		if err != nil {
			t.Fatal(err)
		}
		c := w.client(func(o *Options) { o.Sites, o.Server = nil, &p })
		lifecycle(t, w, c, w.administrator(c, AdministratorOptions{}), prefix+"/AT-"+strings.ToUpper(text[:4]))
	}
}

// Values that are not for the public are read by administrators only, encrypted, and written encrypted.
func TestRestricted(t *testing.T) {
	w := newWorld(t)
	for _, v := range []hdl.Version{{Major: 2, Minor: 5}, hdl.Latest()} {
		c := w.client(func(o *Options) { o.Version = v })
		a := w.administrator(c, AdministratorOptions{})
		got, err := a.Resolve(t.Context(), Query{Handle: prefix + "/SEC-1"})
		if err != nil || !slices.ContainsFunc(got.Values, func(v hdl.Value) bool { return v.Index == 2 && v.Permissions&hdl.PublicRead == 0 }) {
			t.Fatalf("%s: %s, %v", version(v), texts(got.Values), err)
		}
		hidden := value(5, "NOTE", "for us")
		hidden.Permissions = hdl.AdminRead | hdl.AdminWrite
		handle := prefix + "/HIDDEN-" + version(v)
		if _, err := a.Create(t.Context(), handle, []hdl.Value{value(1, "URL", "https://a.example/"), hidden, admins()}, CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if got, err = c.Resolve(t.Context(), Query{Handle: handle}); err != nil || texts(got.Values) != "1 URL https://a.example/" {
			t.Errorf("the public sees %s, %v", texts(got.Values), err)
		}
		if got, err = a.Resolve(t.Context(), Query{Handle: handle, Indexes: []uint32{5}}); err != nil || texts(got.Values) != "5 NOTE for us" {
			t.Errorf("the administrator sees %s, %v", texts(got.Values), err)
		}
		bare := w.administrator(c, AdministratorOptions{NoSession: true})
		if err := bare.Modify(t.Context(), handle, []hdl.Value{hidden}); stele.KindOf(err) != stele.Invalid {
			t.Errorf("a secret without a session: %v", err)
		}
		if got, err = bare.Resolve(t.Context(), Query{Handle: handle, Indexes: []uint32{5}}); err != nil || texts(got.Values) != "5 NOTE for us" {
			t.Errorf("without a session the administrator sees %s, %v", texts(got.Values), err)
		}
		if got, err = a.Resolve(t.Context(), Query{Handle: prefix + "/ABC-1"}); err != nil || len(got.Values) != 4 {
			t.Errorf("a public handle: %s, %v", texts(got.Values), err)
		}
	}
}

func TestList(t *testing.T) {
	w := newWorld(t)
	for i := range 120 {
		w.put(fmt.Sprintf("%s/LIST-%03d", prefix, i), text(1, "URL", "https://l.example/"))
	}
	for _, transport := range []hdl.Transport{hdl.TCP, hdl.HTTP} {
		a := w.administrator(w.client(only(transport)), AdministratorOptions{})
		names := 0
		for name, err := range a.List(t.Context(), prefix) {
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(strings.ToUpper(name), prefix+"/LIST-") {
				names++
			}
		}
		if names != 120 {
			t.Errorf("%s: %d names", transports[transport], names)
		}
		for range a.List(t.Context(), "0.NA/"+prefix+"/") {
			break // it may end early
		}
	}
	stranger := w.as(w.client(), Identity{Reference: hdl.Reference{Handle: prefix + "/ABC-1", Index: 1}, Secret: []byte("x")}, AdministratorOptions{})
	for name, err := range stranger.List(t.Context(), prefix) {
		if codeOf(err) != hdl.NotAdministrator || stele.KindOf(err) != stele.Forbidden {
			t.Errorf("a stranger lists %s, %v", name, err)
		}
	}
}

func TestPrefixes(t *testing.T) {
	w := newWorld(t)
	a := w.administrator(w.client(), AdministratorOptions{})
	has := func(prefix string) (found bool) {
		t.Helper()
		for name, err := range a.Prefixes(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.EqualFold(name, "0.NA/"+prefix)
		}
		return found
	}
	if !has(prefix) || has("20.600") {
		t.Fatal("the prefixes are not those of the server")
	}
	if err := a.Home(t.Context(), "20.600"); err != nil {
		t.Fatal(err)
	}
	if !has("20.600") {
		t.Error("the prefix was not homed")
	}
	if err := a.Unhome(t.Context(), "20.600"); err != nil {
		t.Fatal(err)
	}
	if has("20.600") {
		t.Error("the prefix is still homed")
	}
	name, err := a.Create(t.Context(), prefix+"/m-", []hdl.Value{value(1, "URL", "https://m.example/"), admins()}, CreateOptions{Mint: true})
	if err != nil || !strings.HasPrefix(name, prefix+"/m-") || len(name) < len(prefix)+30 {
		t.Errorf("minted %s, %v", name, err)
	}
}

func TestWrongProof(t *testing.T) {
	w := newWorld(t)
	for name, who := range map[string]Identity{
		"the key of another":        {Reference: hdl.Reference{Handle: "0.NA/" + prefix, Index: 300}, Key: w.key("srv_privkey_file")},
		"another kind of key":       {Reference: hdl.Reference{Handle: "0.NA/" + prefix, Index: 301}, Key: w.key("privkey_file_rsa")},
		"another secret":            {Reference: hdl.Reference{Handle: prefix + "/USER01", Index: 300}, Secret: []byte("guess")},
		"a secret instead of a key": {Reference: hdl.Reference{Handle: "0.NA/" + prefix, Index: 300}, Secret: []byte("guess")},
	} {
		for _, without := range []bool{false, true} {
			a := w.as(w.client(), who, AdministratorOptions{NoSession: without})
			_, err := a.Create(t.Context(), prefix+"/NEVER", []hdl.Value{value(1, "URL", "https://a.example/")}, CreateOptions{})
			if codeOf(err) != hdl.NotAuthenticated || stele.KindOf(err) != stele.Unauthenticated {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := w.client().As(Identity{Reference: hdl.Reference{Handle: "0.NA/1", Index: 300}}, AdministratorOptions{}); stele.KindOf(err) != stele.Invalid {
		t.Errorf("no key: %v", err)
	}
	if _, err := w.client().Resolve(t.Context(), Query{Handle: prefix + "/NEVER"}); codeOf(err) != hdl.HandleNotFound {
		t.Errorf("it was created: %v", err)
	}
}

// Many goroutines share the one session of an administrator, and a session that the server has forgotten is set up again.
func TestSharedSession(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	a := w.administrator(c, AdministratorOptions{})
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			if _, err := a.Create(t.Context(), fmt.Sprintf("%s/SHARED-%d", prefix, i), []hdl.Value{value(1, "URL", "https://s.example/"), admins()}, CreateOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if n := w.server.Stats().Sessions; n != 1 {
		t.Errorf("%d sessions", n)
	}
	for _, o := range a.sessions {
		o.session.id++ // the server does not know it
	}
	if err := a.Delete(t.Context(), prefix+"/SHARED-1"); err != nil {
		t.Error(err)
	}
	if n := w.server.Stats().Sessions; n != 2 {
		t.Errorf("%d sessions, after one was forgotten", n)
	}
}

// Without the key of the site there is no session.
func TestSessionWithoutKey(t *testing.T) {
	w := newWorld(t)
	site := w.site
	site.Servers = slices.Clone(site.Servers)
	site.Servers[0].Key = nil
	a := w.administrator(w.client(func(o *Options) { o.Sites = []hdl.Site{site} }), AdministratorOptions{})
	// The site is one that the user named, so the server may tell its key.
	if _, err := a.Create(t.Context(), prefix+"/KEYLESS", []hdl.Value{value(1, "URL", "https://k.example/")}, CreateOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := w.client().setUp(t.Context(), w.client().newWalk(nil), &server{name: "x"}, hdl.Reference{}); stele.KindOf(err) != stele.Unavailable {
		t.Errorf("no key at all: %v", err)
	}
}

// TestReadTogether: many goroutines read what is not for the public in one session, more often than an address may guess. The server
// asks each time for a proof.
func TestReadTogether(t *testing.T) {
	w := newWorld(t)
	a := w.administrator(w.client(), AdministratorOptions{})
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for range 40 {
				answer, err := a.Resolve(t.Context(), Query{Handle: prefix + "/SEC-1"})
				if err != nil || len(answer.Values) != 3 {
					t.Errorf("%d values, %v", len(answer.Values), err)
					return
				}
			}
		})
	}
	work.Wait()
}
