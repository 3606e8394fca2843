package registrar

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// token makes a token.
func (f *fixture) token(user string, life time.Duration) (string, auth.Token) {
	f.t.Helper()
	credential, t, err := f.CreateToken(f.admin, auth.TokenRequest{User: user, Expires: f.clock().Add(life)})
	if err != nil {
		f.t.Fatal(err)
	}
	return credential, t
}

func TestTokens(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	f.user("bob", admin)
	expires := f.clock().Add(time.Hour)
	credential, made, err := f.CreateToken(as("ann"), auth.TokenRequest{User: "ann", Label: "laptop", Expires: expires})
	if err != nil {
		t.Fatal(err)
	}
	if made.User != "ann" || made.Label != "laptop" || !made.Expires.Equal(expires) || made.By != "ann" || made.Hash != nil || !strings.Contains(credential, made.ID) {
		t.Errorf("got %+v", made)
	}
	other, byAdmin, err := f.CreateToken(asAdmin("bob"), auth.TokenRequest{User: "ann", Never: true})
	if err != nil || byAdmin.By != "bob" || other == credential {
		t.Errorf("got %+v, %v", byAdmin, err)
	}
	f.token("bob", time.Hour)

	// The secret is nowhere in the store.
	for cell, err := range f.store.Cells(f.admin, "", "") {
		if err != nil || strings.Contains(string(cell.Value), credential[len(credential)-43:]) {
			t.Errorf("%s: %s, %v", cell.Name, cell.Value, err)
		}
	}
	directory := auth.NewDirectory(f.store, f.clock)
	p := must(directory.Authenticate(f.admin, credential))(t)
	if p.Name != "ann" || p.Admin {
		t.Errorf("got %+v", p)
	}
	if err := directory.Flush(f.admin); err != nil {
		t.Fatal(err)
	}
	for who, want := range map[string]int{"ann": 2, "bob": 1, "": 3, "nobody": 0} {
		list := must(each(f.Tokens(f.admin, who)))(t)
		if len(list) != want {
			t.Errorf("%q has %d tokens, want %d", who, len(list), want)
		}
		for _, x := range list {
			if x.Hash != nil || x.LastUse.IsZero() == (x.ID == made.ID) {
				t.Errorf("got %+v", x)
			}
		}
	}
	f.jump(time.Minute)
	revoked := must(f.RevokeToken(as("ann"), made.ID))(t)
	f.jump(time.Minute)
	again := must(f.RevokeToken(f.admin, credential))(t) // the whole text will do
	if revoked.Revoked.IsZero() || !again.Revoked.Equal(revoked.Revoked) || revoked.Hash != nil || again.Hash != nil || again.LastUse.IsZero() {
		t.Errorf("got %+v, %+v", revoked, again)
	}
	directory.Forget()
	_, err = directory.Authenticate(f.admin, credential)
	want(t, err, stele.Unauthenticated, "revoked")
}

func TestTokenRights(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	f.user("bob")
	f.user("off", disabled)
	_, anns := f.token("ann", time.Hour)
	at := func(d time.Duration) time.Time { return f.clock().Add(d) }
	for _, tt := range []struct {
		name    string
		ctx     context.Context
		user    string
		label   string
		expires time.Time
		kind    stele.Kind
		words   string
	}{
		{"the public", context.Background(), "ann", "", at(time.Hour), stele.Unauthenticated, "say who you are"},
		{"another's", as("bob"), "ann", "", at(time.Hour), stele.Forbidden, "themselves only"},
		{"of nobody", as("bob"), "nobody", "", at(time.Hour), stele.Forbidden, "themselves only"},
		{"for ever", as("ann"), "ann", "", time.Time{}, stele.Forbidden, "never expires"},
		{"for more than a year", as("ann"), "ann", "", at(auth.MaxTokenLife + time.Minute), stele.Forbidden, "more than a year"},
		{"of the past", as("ann"), "ann", "", at(-time.Second), stele.Invalid, "time to come"},
		{"of the past, by an administrator", f.admin, "ann", "", at(-time.Second), stele.Invalid, "time to come"},
		{"a wrong label", f.admin, "ann", "a\x1b[31m", at(time.Hour), stele.Invalid, "label"},
		{"of nobody, by an administrator", f.admin, "nobody", "", at(time.Hour), stele.NotFound, "nobody"},
		{"of a disabled user", f.admin, "off", "", at(time.Hour), stele.Conflict, "disabled"},
	} {
		credential, made, err := f.CreateToken(tt.ctx, auth.TokenRequest{User: tt.user, Label: tt.label, Expires: tt.expires, Never: tt.expires.IsZero()})
		if credential != "" || made.ID != "" {
			t.Errorf("%s: got %s, %+v", tt.name, credential, made)
		}
		want(t, err, tt.kind, tt.words)
	}
	for _, life := range []time.Duration{auth.TokenLife, auth.MaxTokenLife - time.Minute} {
		if _, _, err := f.CreateToken(as("ann"), auth.TokenRequest{User: "ann", Expires: at(life)}); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := f.CreateToken(f.admin, auth.TokenRequest{User: "ann", Expires: at(100 * auth.TokenLife)}); err != nil {
		t.Error(err)
	}

	_, err := each(f.Tokens(context.Background(), "ann"))
	want(t, err, stele.Unauthenticated)
	_, err = each(f.Tokens(as("bob"), "ann"))
	want(t, err, stele.Forbidden)
	_, err = each(f.Tokens(as("bob"), ""))
	want(t, err, stele.Forbidden)
	if list := must(each(f.Tokens(as("bob"), "bob")))(t); len(list) != 0 {
		t.Errorf("got %+v", list)
	}

	_, err = f.RevokeToken(context.Background(), anns.ID)
	want(t, err, stele.Unauthenticated)
	_, hidden := f.RevokeToken(as("bob"), anns.ID)
	want(t, hidden, stele.NotFound)
	_, none := f.RevokeToken(as("bob"), "000000000000")
	want(t, none, stele.NotFound)
	if strings.ReplaceAll(hidden.Error(), anns.ID, "000000000000") != none.Error() {
		t.Errorf("another's token can be told from none: %v, %v", hidden, none)
	}
	if list := must(each(f.Tokens(f.admin, "ann")))(t); !list[0].Revoked.IsZero() {
		t.Error("it is revoked")
	}
}

// An error message does not repeat what may be a part of a secret.
func TestRevokeTellsNoSecret(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	credential, _ := f.token("ann", time.Hour)
	secret := credential[len(credential)-43:]
	for _, text := range []string{credential[:len(credential)-1], credential + "x", "stele_000000000000_" + secret, secret + secret} {
		_, err := f.RevokeToken(f.admin, text)
		if err == nil || strings.Contains(err.Error(), secret[:10]) {
			t.Errorf("got %v", err)
		}
	}
	_, err := f.RevokeToken(f.admin, "a\nb")
	want(t, err, stele.NotFound, `a\nb`)
}

// A user who is disabled at the moment gets no token: the commit of the one comes just
// before that of the other.
func TestTokenMeetsDisabling(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	other := New(f.store, testSchemes(t), f.options)
	f.store = &meeting{Store: f.store, before: func() {
		must(other.SetUser(f.admin, "ann", func(u *auth.User) error { u.Disabled = true; return nil }))(t)
	}}
	f.start()
	_, _, err := f.CreateToken(f.admin, auth.TokenRequest{User: "ann", Never: true})
	want(t, err, stele.Conflict, "disabled")
	if list := must(each(f.Tokens(f.admin, "")))(t); len(list) != 0 {
		t.Errorf("got %+v", list)
	}
}

// Tokens of one user are bounded. One that is not valid any more is removed to make
// room, the first to end first.
func TestTokensAreBounded(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	f.user("bob")
	_, first := f.token("ann", time.Hour)
	_, second := f.token("ann", 2*time.Hour)
	c := &stele.Commit{}
	for i := range auth.MaxTokens - 2 {
		cell := must((&auth.Token{ID: fmt.Sprintf("%012d", i), User: "ann", Expires: f.clock().Add(100 * time.Hour)}).Cell())(t)
		c.Cells = append(c.Cells, stele.CellChange{Name: cell.Name, After: cell.Value})
	}
	if err := f.store.Apply(f.admin, c); err != nil {
		t.Fatal(err)
	}
	_, _, err := f.CreateToken(as("ann"), auth.TokenRequest{User: "ann", Expires: f.clock().Add(time.Hour)})
	want(t, err, stele.Exhausted, "revoke some")
	f.token("bob", time.Hour)
	f.jump(3 * time.Hour)
	_, third := f.token("ann", 2*time.Hour)
	has := func(id string) bool {
		for _, x := range must(each(f.Tokens(f.admin, "ann")))(t) {
			if x.ID == id {
				return true
			}
		}
		return false
	}
	if has(first.ID) || !has(second.ID) || !has(third.ID) {
		t.Errorf("first %t, second %t, third %t", has(first.ID), has(second.ID), has(third.ID))
	}
	if n := len(must(each(f.Tokens(f.admin, "ann")))(t)); n != auth.MaxTokens {
		t.Errorf("%d tokens", n)
	}
}

// Verify reports what is wrong with users and tokens.
func TestVerifyAccess(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	f.token("ann", time.Hour)
	put := func(name, value string) {
		if err := f.store.Apply(f.admin, &stele.Commit{Cells: []stele.CellChange{{Name: name, After: []byte(value)}}}); err != nil {
			t.Fatal(err)
		}
	}
	put("user bob", "{")
	put("token 000000000000", `{"id":"000000000000","user":"carl","created":"2026-01-01T00:00:00Z"}`)
	put("token 000000000001", `{}`)
	var told []string
	if err := f.Verify(f.admin, func(p *stele.Message) { told = append(told, p.Error()) }); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(told, "\n")
	for _, words := range []string{`"user bob"`, "no administrator", `"carl"`, `"token 000000000001"`} {
		if !strings.Contains(got, words) {
			t.Errorf("%q is not in\n%s", words, got)
		}
	}
	if len(told) != 4 {
		t.Errorf("got\n%s", got)
	}
	want(t, f.Verify(as("ann"), func(*stele.Message) {}), stele.Forbidden)
}
