package registrar

import (
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// TestFreshProof: what gives rights away needs a fresh proof of a user who acts by a session, and
// none of a token or of a process on the data folder.
func TestFreshProof(t *testing.T) {
	f := newFixture(t)
	must(f.AddUser(f.admin, auth.User{Name: "root", Admin: true}))(t)
	f.user("ann")
	credential, _ := f.enter("root")
	_, p, err := auth.NewDirectory(f.store, f.clock).Session(f.admin, credential)
	if err != nil {
		t.Fatal(err)
	}
	ctx := auth.With(t.Context(), p)
	f.space("ark:12345/x5")
	rec := f.registered("ark:12345/x5proof")
	steps := map[string]func() error{
		"create token": func() error {
			_, _, err := f.CreateToken(ctx, auth.TokenRequest{User: "root"})
			return err
		},
		"create link": func() error { _, _, err := f.CreateLink(ctx, "ann", 0); return err },
		"add user": func() error {
			_, err := f.AddUser(ctx, auth.User{Name: "bob" + f.clock().Format("150405")})
			return err
		},
		"set user": func() error {
			_, err := f.SetUser(ctx, "ann", func(u *auth.User) error { u.Groups = append(u.Groups, "g"+f.clock().Format("150405")); return nil })
			return err
		},
		"set namespace": func() error {
			_, err := f.SetNamespace(ctx, f.key("ark:12345/x5"), 0, func(ns *stele.Namespace) error { ns.Owner = "ann"; return nil })
			return err
		},
		"set handle site": func() error {
			_, err := f.SetHandleSite(ctx, func(site *HandleSite) error { site.Octets = []byte(f.clock().String()); return nil })
			return err
		},
		"redact": func() error { _, err := f.Redact(ctx, rec.ID, 0, "It was personal."); return err },
	}
	f.jump(auth.FreshProof)
	for name, step := range steps {
		if err := step(); !auth.IsOldProof(err) || stele.KindOf(err) != stele.Forbidden {
			t.Errorf("%s: %v", name, err)
		}
	}
	f.jump(-time.Minute)
	for name, step := range steps {
		if err := step(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
