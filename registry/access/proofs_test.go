package access

import (
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"context"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/secret"
	"github.com/stele-id/stele/serve/api"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/transparency"
)

// A client gets proofs of a server whose log follows the registry: of what was just written too, after a moment.
func TestLogOfServer(t *testing.T) {
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	ring := secret.NewRing(secret.Text{Keep: "stele-secret-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", Name: "the test"})
	r := registry.New(mem.New(time.Now), schemes, registry.Options{Now: time.Now, Random: func(int) int { return 0 }, Secrets: ring})
	defer r.Close()
	ctx := auth.With(t.Context(), auth.Local())
	if _, err := r.Registrar.AddUser(ctx, auth.User{Name: "root", Admin: true}); err != nil {
		t.Fatal(err)
	}
	token, _, err := r.Registrar.CreateToken(ctx, auth.TokenRequest{User: "root", Never: true})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api.New(api.Options{
		Registrar: r.Registrar, Store: r.Store, Resolver: r.Resolver, Schemes: schemes, Directory: r.Directory, Now: time.Now, Transparency: r,
	}))
	defer server.Close()
	far, err := remote.New(server.URL, token, remote.Options{Schemes: schemes})
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	l := NewRemote(far, time.Now)
	if _, err := l.SetUpLog(ctx, ""); stele.KindOf(err) != stele.NotFound {
		t.Errorf("a log without keys: %v", err)
	}
	if _, err := l.RollLogKey(ctx, time.Hour); stele.KindOf(err) != stele.NotFound {
		t.Errorf("a log without keys is rolled: %v", err)
	}
	near := NewLocal(r, time.Now, "here")
	if _, err := near.SetUpLog(ctx, "names.example.org/.log"); err != nil {
		t.Fatal(err)
	}

	running, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		r.Log.Run(running, transparency.Signing{Keys: r.LogKeys, Interval: 10 * time.Millisecond})
	})
	defer work.Wait()
	defer stop()
	register(ctx, t, l, "https://example.org/1", "ark:12345/x1")
	id, err := l.Parse("ark:12345/x1")
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.Prove(ctx, id, 0, time.Time{}, true)
	if err != nil {
		t.Fatal(err)
	}
	status, err := l.RollLogKey(ctx, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	k, err := transparency.ParsePublicKey(status.Keys[0].Key)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := p.Check([]transparency.PublicKey{k})
	if err != nil || shown.Name != "ark:12345/x1" || !shown.Full {
		t.Errorf("proved %+v, %v", shown, err)
	}
	if status, err = l.RetireLogKeys(ctx); err != nil || len(status.Keys) != 2 || status.Keys[0].Retired == nil {
		t.Errorf("the keys are %+v, %v", status.Keys, err)
	}
	if _, err := l.SetUpLog(ctx, "other.example.org/.log"); stele.KindOf(err) != stele.Conflict {
		t.Errorf("another name of the log: %v", err)
	}
	if _, err := l.Prove(ctx, id, 7, time.Time{}, false); stele.KindOf(err) != stele.NotFound {
		t.Errorf("a version that is not there: %v", err)
	}
}
