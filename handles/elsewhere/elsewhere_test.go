package elsewhere

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/stele-id/stele"
	hdlclient "github.com/stele-id/stele/client/hdl"
	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/wire/hdl"
)

// fake answers as other servers would, and counts.
type fake struct {
	asked     int
	certified bool
	err       error
	secret    []byte
	size      int // of the data of values, if it is not 3
}

func (f *fake) Resolve(_ context.Context, q hdlclient.Query) (hdlclient.Answer, error) {
	f.asked++
	return hdlclient.Answer{Handle: q.Handle, Certified: f.certified, Values: []hdl.Value{{Index: 300, Type: []byte("HS_PUBKEY"), Data: append([]byte("key"), make([]byte, f.size)...), TTL: 60, Permissions: 14}}}, f.err
}

func (f *fake) VerifyAnswer(_ context.Context, q hdl.VerifyRequest) (right, certified bool, err error) {
	f.asked++
	right = hdl.VerifySecretAnswer(hdl.Latest(), q.Answer, f.secret, q.Nonce, q.Digest) == nil
	return right, f.certified, f.err
}

// TestValues: only what is certified counts; answers are kept as long as they are good, and what can't be asked now is not kept.
func TestValues(t *testing.T) {
	now := time.Unix(0, 0)
	f := &fake{certified: true}
	a := New(Options{Client: f, Now: func() time.Time { return now }, Rand: rand.Reader, Log: slog.New(slog.DiscardHandler)})
	look := func(handle string, values, asked int, fails bool) {
		t.Helper()
		got, err := a.Values(t.Context(), handle, 300, "HS_PUBKEY")
		if len(got) != values || f.asked != asked || (err != nil) != fails || fails && stele.KindOf(err) != stele.Unavailable {
			t.Errorf("%d values after %d questions, %v; want %d, %d and %t", len(got), f.asked, err, values, asked, fails)
		}
	}
	f.size = maxOctets // too much to keep
	look("20.500.1/LONG", 1, 1, false)
	look("20.500.1/LONG", 1, 2, false)
	f.size, f.asked = 0, 0
	look("20.500.1/A", 1, 1, false)
	look("20.500.1/A", 1, 1, false)
	now = now.Add(time.Minute)
	look("20.500.1/A", 1, 2, false)
	f.certified = false
	look("20.500.1/B", 0, 3, false)
	look("20.500.1/B", 0, 3, false)
	f.certified, f.err = true, &stele.Error{Kind: stele.Unavailable, Err: errors.New("no answer")}
	look("20.500.1/C", 0, 4, true)
	look("20.500.1/C", 0, 5, true)
	f.err = &stele.Error{Kind: stele.NotFound, Err: errors.New("none")}
	look("20.500.1/C", 0, 6, false)
	f.err = &stele.Error{Kind: stele.Forbidden, Err: errors.New("a private network")}
	look("20.500.1/D", 0, 7, false)
}

// TestLimits: a client may not cause many questions, and what is kept is bounded.
func TestLimits(t *testing.T) {
	now := time.Unix(0, 0)
	f := &fake{certified: true}
	a := New(Options{Client: f, Now: func() time.Time { return now }, Rand: rand.Reader, Log: slog.New(slog.DiscardHandler)})
	one := handles.WithClient(t.Context(), "192.0.2.1")
	for i := range 2 * burst {
		_, err := a.Values(one, "20.500.1/"+strconv.Itoa(i), 1, "HS_VLIST")
		if (err == nil) != (i < burst) || err != nil && stele.KindOf(err) != stele.Unavailable {
			t.Fatalf("question %d: %v", i, err)
		}
	}
	if _, err := a.Values(handles.WithClient(t.Context(), "192.0.2.2"), "20.500.1/X", 1, "HS_VLIST"); err != nil {
		t.Errorf("another client is refused too: %v", err)
	}
	for i := range 3 * maxKept {
		a.keep(strconv.Itoa(i), nil, time.Hour)
		if len(a.kept) > maxKept {
			t.Fatalf("%d answers are kept", len(a.kept))
		}
	}
}

// TestVerifySecret: a password is verified by a proof that the home server judges, and the password is not sent.
func TestVerifySecret(t *testing.T) {
	f := &fake{certified: true, secret: []byte("sesame")}
	a := New(Options{Client: f, Now: time.Now, Rand: rand.Reader, Log: slog.New(slog.DiscardHandler)})
	who := handles.Identity{Handle: "20.500.1/ANN", Index: 300}
	for secret, want := range map[string]bool{"sesame": true, "barley": false, "": false} {
		if right, err := a.VerifySecret(t.Context(), who, []byte(secret)); right != want || err != nil {
			t.Errorf("%q: %t, %v", secret, right, err)
		}
	}
	f.certified = false
	if right, err := a.VerifySecret(t.Context(), who, []byte("sesame")); right || err != nil {
		t.Errorf("an answer that is not certified: %t, %v", right, err)
	}
}
