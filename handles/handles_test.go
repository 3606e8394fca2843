package handles

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/secret"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/wire/hdl"
)

// fixture is a registry with the prefix 20.500.1, whose record names administrators.
type fixture struct {
	*Service
	t        *testing.T
	store    *counted
	r        *registrar.Registrar
	resolver *resolver.Resolver
	admin    context.Context
}

func newFixture(t *testing.T, change ...func(*Options)) *fixture {
	t.Helper()
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	store := &counted{Store: mem.New(time.Now)}
	f := &fixture{t: t, store: store, admin: auth.With(t.Context(), auth.Local()), resolver: resolver.New(store, schemes, resolver.Options{Now: time.Now})}
	key, err := secret.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	f.r = registrar.New(store, schemes, registrar.Options{Now: time.Now, OnCommit: f.resolver.Invalidate, OnNamespaces: f.resolver.InvalidateNamespaces,
		Secrets: secret.NewRing(secret.Text{Keep: key.Text(), Name: "the test's key"})})
	o := Options{Registrar: f.r, Resolver: f.resolver, Schemes: schemes, Now: time.Now, UUID: func() (string, error) { return "1-2-3", nil }}
	for _, c := range change {
		c(&o)
	}
	f.Service = New(o)
	f.space("20.500.1/", func(*stele.Namespace) {})
	return f
}

func (f *fixture) space(prefix string, change func(*stele.Namespace)) {
	f.t.Helper()
	key, err := f.r.ParsePrefix(prefix)
	if err != nil {
		f.t.Fatal(err)
	}
	ns := &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}
	change(ns)
	if _, err := f.r.AddNamespace(f.admin, ns); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) id(name string) stele.ID {
	f.t.Helper()
	id, err := f.Parse(name)
	if err != nil {
		f.t.Fatal(err)
	}
	return id
}

// register makes a handle.
func (f *fixture) register(name string, values ...stele.HandleValue) {
	f.t.Helper()
	if _, err := f.r.Register(f.admin, &stele.Record{ID: f.id(name), Values: values}); err != nil {
		f.t.Fatal(err)
	}
}

func text(index uint32, kind, data string) stele.HandleValue {
	return stele.HandleValue{Index: index, Type: kind, Data: []byte(data), TTL: 60, Permissions: stele.DefaultPermissions}
}

func admin(index uint32, bits hdl.AdminPermissions, who string) stele.HandleValue {
	n, handle, _ := strings.Cut(who, ":")
	at := map[string]uint32{"300": 300, "301": 301, "200": 200, "0": 0}[n]
	a := hdl.Admin{Permissions: bits, Identity: hdl.Reference{Handle: handle, Index: at}}
	return text(index, "HS_ADMIN", string(a.Append(nil)))
}

func list(index uint32, refs ...hdl.Reference) stele.HandleValue {
	return text(index, "HS_VLIST", string(hdl.AppendReferences(nil, refs)))
}

// do makes a change as an identity whose proof is not asked for.
func (f *fixture) do(who string, c *Change) hdl.ResponseCode {
	f.t.Helper()
	identity, err := f.ParseIdentity(who)
	if err != nil {
		f.t.Fatal(err)
	}
	err = f.Begin(f.t.Context(), c)
	if err == nil {
		err = c.Authorise(f.t.Context(), identity)
	}
	if err == nil {
		err = c.Commit(f.t.Context(), identity)
	}
	if err == nil {
		return hdl.Success
	}
	return CodeOf(err)
}

func (f *fixture) want(what string, got, want hdl.ResponseCode) {
	f.t.Helper()
	if got != want {
		f.t.Errorf("%s: code %d, want %d", what, got, want)
	}
}

const ann = "300:20.500.1/ANN"

// TestRights: HS_ADMIN grants what its bits say, to the identity that it names, directly, with any index or by lists.
func TestRights(t *testing.T) {
	f := newFixture(t)
	url := text(1, "URL", "https://example.org/1")
	for name, c := range map[string]struct {
		admin stele.HandleValue
		who   string
		want  hdl.ResponseCode
	}{
		"exactly":           {admin(100, hdl.MayModifyValue, ann), ann, hdl.Success},
		"letters":           {admin(100, hdl.MayModifyValue, "300:20.500.1/ann"), ann, hdl.Success},
		"another right":     {admin(100, hdl.MayAddValue, ann), ann, hdl.NotPermitted},
		"no right":          {admin(100, 0, ann), ann, hdl.NotPermitted},
		"another index":     {admin(100, hdl.MayModifyValue, ann), "301:20.500.1/ANN", hdl.NotAdministrator},
		"another handle":    {admin(100, hdl.MayModifyValue, ann), "300:20.500.1/BOB", hdl.NotAdministrator},
		"any index":         {admin(100, hdl.MayModifyValue, "0:20.500.1/ANN"), "301:20.500.1/ANN", hdl.Success},
		"by a list":         {admin(100, hdl.MayModifyValue, "200:20.500.1/LISTS"), ann, hdl.Success},
		"not in the list":   {admin(100, hdl.MayModifyValue, "200:20.500.1/LISTS"), "300:20.500.1/EVE", hdl.NotAdministrator},
		"the list itself":   {admin(100, hdl.MayModifyValue, "200:20.500.1/LISTS"), "200:20.500.1/LISTS", hdl.Success},
		"octets of nothing": {text(100, "HS_ADMIN", "\x00"), ann, hdl.NotAdministrator},
	} {
		if f.find("20.500.1/LISTS") == nil {
			// Lists name each other, which must end.
			f.register("20.500.1/LISTS", list(200, hdl.Reference{Handle: "20.500.1/MORE", Index: 200}), list(201))
			f.register("20.500.1/MORE", list(200, hdl.Reference{Handle: "20.500.1/LISTS", Index: 200}, hdl.Reference{Handle: "20.500.1/Ann", Index: 300}))
		}
		handle := "20.500.1/" + strings.ReplaceAll(name, " ", "-")
		f.register(handle, url, c.admin)
		f.want(name, f.do(c.who, &Change{Operation: hdl.ModifyValue, Handle: handle, Values: []stele.HandleValue{text(1, "URL", "https://example.org/2")}}), c.want)
	}
}

func (f *fixture) find(name string) *stele.Record {
	rec, err := f.r.Get(f.admin, f.id(name))
	if err != nil {
		return nil
	}
	return rec
}

// TestNeeds: each operation takes its own right, and values of type HS_ADMIN take others.
func TestNeeds(t *testing.T) {
	f := newFixture(t)
	readOnly := text(5, "NOTE", "fixed")
	readOnly.Permissions = stele.AdminRead | stele.PublicRead
	values := func(bits hdl.AdminPermissions) []stele.HandleValue {
		return []stele.HandleValue{text(1, "URL", "https://example.org/1"), admin(100, bits, ann), admin(101, 0, "300:20.500.1/BOB"), readOnly}
	}
	n := 0
	for name, c := range map[string]struct {
		change Change
		need   hdl.AdminPermissions
	}{
		"add a value":            {Change{Operation: hdl.AddValue, Values: []stele.HandleValue{text(2, "NOTE", "x")}}, hdl.MayAddValue},
		"add an administrator":   {Change{Operation: hdl.AddValue, Values: []stele.HandleValue{admin(102, 0, ann)}}, hdl.MayAddAdmin},
		"modify a value":         {Change{Operation: hdl.ModifyValue, Values: []stele.HandleValue{text(1, "NOTE", "x")}}, hdl.MayModifyValue},
		"modify administrators":  {Change{Operation: hdl.ModifyValue, Values: []stele.HandleValue{admin(101, hdl.MayRead, ann)}}, hdl.MayModifyAdmin},
		"value to administrator": {Change{Operation: hdl.ModifyValue, Values: []stele.HandleValue{admin(1, 0, ann)}}, hdl.MayModifyValue | hdl.MayAddAdmin},
		"administrator to value": {Change{Operation: hdl.ModifyValue, Values: []stele.HandleValue{text(101, "NOTE", "x")}}, hdl.MayRemoveAdmin | hdl.MayModifyValue},
		"remove a value":         {Change{Operation: hdl.RemoveValue, Indexes: []uint32{1}}, hdl.MayRemoveValue},
		"remove administrators":  {Change{Operation: hdl.RemoveValue, Indexes: []uint32{101}}, hdl.MayRemoveAdmin},
		"delete":                 {Change{Operation: hdl.DeleteHandle}, hdl.MayDeleteHandle},
	} {
		for bits, want := range map[hdl.AdminPermissions]hdl.ResponseCode{c.need: hdl.Success, allRights &^ c.need: hdl.NotPermitted} {
			n++
			handle := "20.500.1/N" + string(rune('A'+n))
			f.register(handle, values(bits)...)
			change := c.change
			change.Handle = handle
			f.want(name, f.do(ann, &change), want)
		}
	}
	f.register("20.500.1/FIXED", values(allRights)...)
	f.want("modify what is fixed", f.do(ann, &Change{Operation: hdl.ModifyValue, Handle: "20.500.1/FIXED", Values: []stele.HandleValue{text(5, "NOTE", "x")}}), hdl.NotPermitted)
	f.want("remove what is fixed", f.do(ann, &Change{Operation: hdl.RemoveValue, Handle: "20.500.1/FIXED", Indexes: []uint32{5}}), hdl.NotPermitted)
}

// TestCreate: who may add handles by the record of the prefix creates them; history names the identity; deleting withdraws, and
// only what a client deleted comes back.
func TestCreate(t *testing.T) {
	f := newFixture(t)
	create := func() *Change {
		return &Change{Operation: hdl.CreateHandle, Handle: "20.500.1/new", Values: []stele.HandleValue{text(1, "URL", "https://example.org/1"), admin(100, allRights, ann)}}
	}
	f.want("without a record of the prefix", f.do(ann, create()), hdl.NotAdministrator)
	f.register("0.NA/20.500.1", admin(100, hdl.MayAddHandle, ann))
	f.want("create", f.do(ann, create()), hdl.Success)
	f.want("create again", f.do(ann, create()), hdl.HandleExists)
	rec := f.find("20.500.1/NEW")
	if rec == nil || rec.By != ann || rec.Spelling != "20.500.1/new" || len(rec.Targets) != 1 || rec.Targets[0].URL != "https://example.org/1" || rec.Values[0].Timestamp == 0 {
		t.Fatalf("the record is %+v", rec)
	}
	f.want("delete", f.do(ann, &Change{Operation: hdl.DeleteHandle, Handle: "20.500.1/NEW"}), hdl.Success)
	f.want("delete again", f.do(ann, &Change{Operation: hdl.DeleteHandle, Handle: "20.500.1/NEW"}), hdl.HandleNotFound)
	if rec = f.find("20.500.1/NEW"); rec.State != stele.Withdrawn || rec.By != ann {
		t.Errorf("after delete it is %s by %s", rec.State, rec.By)
	}
	if _, err := f.Resolve(t.Context(), Asked{Handle: "20.500.1/NEW", PublicOnly: true}); CodeOf(err) != hdl.HandleNotFound {
		t.Errorf("it is found: %v", err)
	}
	f.want("create after delete", f.do(ann, create()), hdl.Success)
	if rec = f.find("20.500.1/NEW"); rec.State != stele.Active || rec.Version != 3 || rec.Tombstone != nil {
		t.Errorf("it is %s, version %d", rec.State, rec.Version)
	}
	// A batch file of the Handle System deletes as a client does.
	if _, err := f.r.Withdraw(f.admin, rec.ID, 0, destination.DeletedByBatch, stele.ID{}); err != nil {
		t.Fatal(err)
	}
	f.want("create after a batch file deleted it", f.do(ann, create()), hdl.Success)
	if _, err := f.r.Withdraw(f.admin, rec.ID, 0, "the archive says so", stele.ID{}); err != nil {
		t.Fatal(err)
	}
	f.want("create after a withdrawal", f.do(ann, create()), hdl.HandleExists)
	mint := create()
	mint.Handle, mint.Mint = "20.500.1/M-", true
	if f.want("mint", f.do(ann, mint), hdl.Success); mint.Handle != "20.500.1/M-1-2-3" {
		t.Errorf("the name is %q", mint.Handle)
	}
	over := create()
	over.Handle, over.Overwrite, over.Values = "20.500.1/M-1-2-3", true, over.Values[:1]
	if f.want("overwrite", f.do(ann, over), hdl.Success); !over.Replaced || len(f.find(over.Handle).Values) != 1 {
		t.Errorf("replaced: %t, %+v", over.Replaced, f.find(over.Handle).Values)
	}
}

// TestNamespaceRules: what a namespace forbids its editors, it forbids administrators of handles too.
func TestNamespaceRules(t *testing.T) {
	f := newFixture(t)
	f.space("20.500.2/", func(ns *stele.Namespace) { ns.Hosts = []string{"good.example"} })
	f.space("20.500.3/", func(ns *stele.Namespace) { ns.Reviewed = true })
	f.space("20.500.4/", func(ns *stele.Namespace) { ns.Quota = 1 })
	f.space("20.500.5/", func(ns *stele.Namespace) { ns.Handles.Off = true })
	create := func(handle, url string) hdl.ResponseCode {
		return f.do(ann, &Change{Operation: hdl.CreateHandle, Handle: handle, Values: []stele.HandleValue{text(1, "URL", url)}})
	}
	for _, prefix := range []string{"20.500.2", "20.500.3", "20.500.4"} {
		f.register("0.NA/"+prefix, admin(100, allRights, ann))
	}
	f.want("an allowed host", create("20.500.2/A", "https://good.example/"), hdl.Success)
	f.want("another host", create("20.500.2/B", "https://evil.example/"), hdl.InvalidValue)
	f.want("reviewed", create("20.500.3/A", "https://good.example/"), hdl.NotPermitted)
	f.want("beyond the quota", create("20.500.4/A", "https://good.example/"), hdl.NotPermitted)
	f.want("not served", create("20.500.5/A", "https://good.example/"), hdl.NotResponsible)
	f.want("not here", create("20.500.6/A", "https://good.example/"), hdl.NotResponsible)
}

// TestUser: an identity that is the credential of a user has their roles, and administrators of the server may do everything.
func TestUser(t *testing.T) {
	f := newFixture(t, func(o *Options) {
		o.User = func(_ context.Context, who Identity) (auth.Principal, bool, error) {
			return auth.Principal{Name: "eva"}, who.Handle == "20.500.1/EVA", nil
		}
		o.Administrators = []Identity{{Handle: "20.500.1/ROOT", Index: 300}}
	})
	key, _ := f.r.ParsePrefix("20.500.1/")
	if _, err := f.r.AddUser(f.admin, auth.User{Name: "eva"}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.r.Grant(f.admin, key, "user:eva", stele.RoleEditor); err != nil {
		t.Fatal(err)
	}
	create := func(who, handle string) hdl.ResponseCode {
		return f.do(who, &Change{Operation: hdl.CreateHandle, Handle: handle, Values: []stele.HandleValue{text(1, "URL", "https://example.org/")}})
	}
	f.want("a user", create("300:20.500.1/EVA", "20.500.1/A"), hdl.Success)
	f.want("an administrator of the server", create("300:20.500.1/ROOT", "20.500.1/B"), hdl.Success)
	f.want("another index of theirs", create("301:20.500.1/ROOT", "20.500.1/C"), hdl.NotAdministrator)
	if rec := f.find("20.500.1/A"); rec.By != "300:20.500.1/EVA" {
		t.Errorf("it is by %s", rec.By)
	}
}

// TestRestricted: values that are not for the public are for administrators who may read, and nowhere else.
func TestRestricted(t *testing.T) {
	f := newFixture(t)
	closed, hidden := text(2, "NOTE", "secret"), text(3, "NOTE", "nobody's")
	closed.Permissions, hidden.Permissions = stele.AdminRead|stele.AdminWrite, stele.AdminWrite
	f.register("20.500.1/R", text(1, "URL", "https://example.org/"), closed, hidden, admin(100, hdl.MayRead, ann), admin(101, hdl.MayAddValue, "300:20.500.1/BOB"))
	public, err := f.Resolve(t.Context(), Asked{Handle: "20.500.1/r", PublicOnly: true})
	if err != nil || public.Restricted || len(public.Values) != 3 {
		t.Fatalf("the public finds %+v (%v)", public, err)
	}
	if _, err := f.Resolve(t.Context(), Asked{Handle: "20.500.1/R", PublicOnly: true, Wanted: Selection{Indexes: []uint32{2}}}); CodeOf(err) != hdl.ValuesNotFound {
		t.Errorf("the closed value alone: %v", err)
	}
	found, err := f.Resolve(t.Context(), Asked{Handle: "20.500.1/R"})
	if err != nil || !found.Restricted {
		t.Fatalf("it is not restricted: %v", err)
	}
	values, err := f.MayReadValues(t.Context(), Identity{Handle: "20.500.1/ANN", Index: 300}, found)
	if err != nil || len(values) != 4 {
		t.Errorf("the administrator reads %d values (%v)", len(values), err)
	}
	for who, want := range map[string]hdl.ResponseCode{"20.500.1/BOB": hdl.NotPermitted, "20.500.1/EVE": hdl.NotAdministrator} {
		if _, err := f.MayReadValues(t.Context(), Identity{Handle: who, Index: 300}, found); CodeOf(err) != want {
			t.Errorf("%s: %v", who, err)
		}
	}
}

// TestHome: homing adds a namespace, unhoming ends the service and keeps the names.
func TestHome(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Administrators = []Identity{{Handle: "20.500.1/ROOT", Index: 300}} })
	root := f.o.Administrators[0]
	ask := func(op hdl.Operation, who Identity) error {
		p := &Prefix{Operation: op, Handle: "0.NA/20.500.8"}
		if err := f.BeginPrefix(t.Context(), p); err != nil {
			return err
		}
		if err := p.Authorise(t.Context(), who); err != nil {
			return err
		}
		if op == hdl.HomePrefix {
			return p.Home(t.Context(), who)
		}
		return p.Unhome(t.Context(), who)
	}
	if err := ask(hdl.HomePrefix, Identity{Handle: "20.500.1/EVE", Index: 300}); CodeOf(err) != hdl.NotAdministrator {
		t.Errorf("anybody homes: %v", err)
	}
	if err := ask(hdl.HomePrefix, root); err != nil {
		t.Fatal(err)
	}
	f.register("20.500.8/A", text(1, "URL", "https://example.org/"))
	if err := ask(hdl.UnhomePrefix, root); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Resolve(t.Context(), Asked{Handle: "20.500.8/A", PublicOnly: true}); CodeOf(err) != hdl.NotResponsible {
		t.Errorf("it is answered: %v", err)
	}
	if f.find("20.500.8/A") == nil {
		t.Error("the record is gone")
	}
	if err := ask(hdl.HomePrefix, root); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Resolve(t.Context(), Asked{Handle: "20.500.8/A", PublicOnly: true}); err != nil {
		t.Errorf("it is not answered: %v", err)
	}
}

// TestSetUp: a prefix is set up with a key of its own, which proves its administrator; the key of the site is replaced in the
// records of all prefixes.
func TestSetUp(t *testing.T) {
	f := newFixture(t)
	private, public, err := NewAdminKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	o := Setup{Prefix: "20.500.1", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.7")}, Mirrors: []netip.Addr{netip.MustParseAddr("2001:db8::7")},
		HTTPPort: 8000, About: "test", Random: rand.Reader, AdminKey: public}
	made, err := f.SetUp(f.admin, o)
	if err != nil {
		t.Fatal(err)
	}
	key, err := hdl.ParseKeyFile(private, nil)
	if err != nil {
		t.Fatal(err)
	}
	nonce, digest := []byte("nonce of sixteen"), hdl.Digest{Code: hdl.SHA256, Sum: make([]byte, 32)}
	answer, err := hdl.AnswerByKey(hdl.Latest(), &key, nonce, digest, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	proof := &Proof{Version: hdl.Latest(), Type: TypePublicKey, Nonce: nonce, Digest: digest.Sum, Answer: answer}
	if who, err := f.Verify(t.Context(), made.Admin, proof); err != nil || who != made.Admin {
		t.Errorf("the key proves %v (%v)", who, err)
	}
	if who, err := f.Verify(t.Context(), Identity{Handle: made.Admin.Handle}, proof); err != nil || who != made.Admin {
		t.Errorf("without an index it proves %v (%v)", who, err)
	}
	proof.Answer[len(answer)-1] ^= 1
	if _, err := f.Verify(t.Context(), made.Admin, proof); CodeOf(err) != hdl.NotAuthenticated {
		t.Errorf("a wrong answer: %v", err)
	}
	f.want("the administrator creates", f.do(made.Admin.String(), &Change{Operation: hdl.CreateHandle, Handle: "20.500.1/A", Values: []stele.HandleValue{text(1, "URL", "https://example.org/")}}), hdl.Success)
	before := f.find("0.NA/20.500.1")
	site, err := f.RollSite(f.admin, rand.Reader)
	if err != nil || site.Serial != 2 {
		t.Fatalf("the site is %+v (%v)", site, err)
	}
	after := f.find("0.NA/20.500.1")
	if string(after.Values[0].Data) != string(site.Append(nil)) || string(before.Values[0].Data) == string(after.Values[0].Data) {
		t.Error("the record has the former site")
	}
	kept, err := f.r.HandleSite(f.admin)
	if err != nil || kept.FormerSerial != 1 || kept.Former == nil {
		t.Errorf("of the former key %v, %v is kept", kept.FormerSerial, err)
	}
	if string(made.Key) != string(public) {
		t.Error("another key is said to be the administrator's")
	}
	// A prefix that has a record keeps its administrator, and needs no key.
	o.AdminKey = nil
	if made, err := f.SetUp(f.admin, o); err != nil || string(made.Key) != string(public) {
		t.Errorf("again: %v", err)
	}
}

// TestSetUpRefused: what is wrong is found before anything is written.
func TestSetUpRefused(t *testing.T) {
	f := newFixture(t)
	_, public, err := NewAdminKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	at := []netip.Addr{netip.MustParseAddr("192.0.2.7")}
	for code, o := range map[string]Setup{
		NeedsAdminKey:                {Addresses: at},
		"handle.admin-key-invalid":   {Addresses: at, AdminKey: []byte("key")},
		"handle.address-missing":     {AdminKey: public},
		"handle.too-many-servers":    {Addresses: at, Mirrors: slices.Repeat(at, maxServers), AdminKey: public},
		"handle.setup-text-too-long": {Addresses: at, AdminKey: public, Contact: strings.Repeat("x", maxSetupText+1)},
	} {
		o.Prefix, o.Random = "20.500.1", rand.Reader
		_, err := f.SetUp(f.admin, o)
		if got, _ := stele.CodeOf(err); got != code {
			t.Errorf("%s: %v", code, err)
		}
	}
	_, err = f.SetUp(t.Context(), Setup{Prefix: "20.500.1", Addresses: at, AdminKey: public, Random: rand.Reader})
	if kind := stele.KindOf(err); kind != stele.Unauthenticated && kind != stele.NotFound {
		t.Errorf("by the public: %v", err)
	}
	if site, err := f.r.HandleSite(f.admin); err != nil || site.Octets != nil || f.find("0.NA/20.500.1") != nil {
		t.Errorf("something was written (%v)", err)
	}
}

// TestPublicWrite: a value that everybody may write is changed by everybody only where the namespace lets it be, and only
// its data.
func TestPublicWrite(t *testing.T) {
	f := newFixture(t)
	f.space("20.500.2/", func(ns *stele.Namespace) { ns.Handles.PublicWrite = true })
	open := text(1, "NOTE", "first")
	open.Permissions |= stele.PublicWrite
	try := func(handle string, v stele.HandleValue) bool {
		t.Helper()
		c := &Change{Operation: hdl.ModifyValue, Handle: handle, Values: []stele.HandleValue{v}}
		if err := f.Begin(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		public, err := c.IsPublic(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Commit(t.Context(), Public()); public != (err == nil) {
			t.Errorf("public: %t, but %v", public, err)
		}
		return public
	}
	next := open
	next.Data = []byte("second")
	for _, prefix := range []string{"20.500.1", "20.500.2"} {
		f.register(prefix+"/OPEN", open, text(2, "NOTE", "closed"))
	}
	closed, other := text(2, "NOTE", "x"), next
	other.Permissions = stele.DefaultPermissions
	switch {
	case try("20.500.1/OPEN", next):
		t.Error("everybody writes, though the namespace does not say so")
	case !try("20.500.2/OPEN", next):
		t.Error("nobody writes, though the namespace lets them")
	case try("20.500.2/OPEN", closed):
		t.Error("everybody writes a value that does not say so")
	case try("20.500.2/OPEN", other):
		t.Error("everybody changes the permissions")
	}
	if rec := f.find("20.500.2/OPEN"); string(rec.Values[0].Data) != "second" || rec.By != "0:public" {
		t.Errorf("the value is %q, by %s", rec.Values[0].Data, rec.By)
	}
	// What the owner has set beside the data stays.
	greedy := next
	greedy.Data, greedy.TTL, greedy.TTLAbsolute = []byte("third"), 1<<31-1, true
	greedy.References = []stele.HandleReference{{Handle: "20.500.2/ELSEWHERE", Index: 1}}
	if !try("20.500.2/OPEN", greedy) {
		t.Error("a value with another TTL is refused")
	}
	if v := f.find("20.500.2/OPEN").Values[0]; string(v.Data) != "third" || v.TTL != open.TTL || v.TTLAbsolute || len(v.References) > 0 {
		t.Errorf("the value is %+v", v)
	}
	// Each change is kept for ever, so there are not too many of them, from all clients together.
	refused := 0
	for i := range 20 {
		next.Data = fmt.Appendf(nil, "%d", i)
		c := &Change{Operation: hdl.ModifyValue, Handle: "20.500.2/open", Values: []stele.HandleValue{next}}
		if err := f.Begin(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		switch err := c.Commit(t.Context(), Public()); {
		case err == nil:
		case CodeOf(err) == hdl.ServerBusy:
			refused++
		default:
			t.Fatal(err)
		}
	}
	if refused < 10 {
		t.Errorf("of 20 changes %d were refused", refused)
	}
}

// TestByRule: a handle for which a rule of its namespace answers has values of type URL. A registered one comes first.
func TestByRule(t *testing.T) {
	f := newFixture(t)
	f.space("20.500.2/", func(ns *stele.Namespace) {
		ns.Rules = []stele.Rule{{
			Pattern: "{n:alnum}",
			Targets: []stele.Target{
				{Service: stele.N2L, URL: "https://example.org/{n:lower}", TTL: 60, Order: 100, Preference: 10},
				{Service: stele.N2L, URL: "https://example.org/{n:lower}.ttl", Type: "text/turtle", Order: 100, Preference: 20},
			},
			Examples: []stele.RuleExample{{Name: "20.500.2/AB", Want: "https://example.org/ab"}},
		}}
	})
	f.register("20.500.2/KNOWN", text(1, "URL", "https://example.org/registered"))
	for handle, want := range map[string]string{
		"20.500.2/abc":   "1 URL https://example.org/abc, 2 URL https://example.org/abc.ttl",
		"20.500.2/known": "1 URL https://example.org/registered",
		"20.500.2/a-b":   "refused",
		"20.500.9/abc":   "refused",
	} {
		got := "refused"
		if found, err := f.Resolve(t.Context(), Asked{Handle: handle}); err == nil {
			var list []string
			for _, v := range found.Values {
				list = append(list, fmt.Sprintf("%d %s %s", v.Index, v.Type, v.Data))
			}
			got = strings.Join(list, ", ")
		}
		if got != want {
			t.Errorf("%s: %s, want %s", handle, got, want)
		}
	}
	if _, err := f.Resolve(t.Context(), Asked{Handle: "20.500.2/abc", Wanted: Selection{Types: []string{"EMAIL"}}}); err == nil {
		t.Error("it has values of another type")
	}
}
