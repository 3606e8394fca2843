package handles

import (
	"context"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/wire/hdl"
)

// distant is another registry, which is asked before a turn to compute is taken.
type distant struct {
	t     *testing.T
	turns *int
	asked int
}

func (d *distant) ask() {
	d.asked++
	if *d.turns != 0 {
		d.t.Error("a turn to compute is held while another server is asked")
	}
}

func (d *distant) Values(context.Context, string, uint32, string) ([]stele.HandleValue, error) {
	d.ask()
	return []stele.HandleValue{text(300, TypePublicKey, "not a key")}, nil
}

func (d *distant) Verify(context.Context, Identity, *Proof) (bool, error) {
	d.ask()
	return false, nil
}

func (d *distant) VerifySecret(context.Context, Identity, []byte) (bool, error) { return false, nil }

// TestTurns: a proof takes a turn to compute when the key is here, and not while another server is asked for it.
func TestTurns(t *testing.T) {
	held, taken := 0, 0
	d := &distant{t: t, turns: &held}
	f := newFixture(t, func(o *Options) { o.Elsewhere = d })
	f.register("20.500.1/ANN", text(300, TypePublicKey, "not a key"))
	enter := func(context.Context) (func(), error) {
		held++
		taken++
		return func() { held-- }, nil
	}
	for _, who := range []string{"300:20.500.1/ANN", "300:20.500.7/AWAY"} {
		for _, kind := range []string{TypePublicKey, TypeSecretKey} {
			identity, err := f.ParseIdentity(who)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Verify(t.Context(), identity, &Proof{Version: hdl.Latest(), Type: kind, Enter: enter}); CodeOf(err) != hdl.NotAuthenticated {
				t.Errorf("%s by %s: %v", who, kind, err)
			}
		}
	}
	if d.asked != 2 || taken != 2 || held != 0 {
		t.Errorf("%d questions, %d turns, of which %d are held", d.asked, taken, held)
	}
}
