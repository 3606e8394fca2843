package auth

import (
	"bytes"
	"crypto/rand"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

func TestChallenge(t *testing.T) {
	now := time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC)
	key, err := NewChallengeKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := NewChallengeKey(rand.Reader)
	c, err := key.Challenge(rand.Reader, "get", now)
	if err != nil {
		t.Fatal(err)
	}
	a, err := key.Check(c, "get", now.Add(ChallengeLife-time.Second))
	if err != nil || AnsweredLong(a.Cell(), now) || !AnsweredLong(a.Cell(), now.Add(ChallengeLife)) {
		t.Errorf("got %+v, %v", a, err)
	}
	for name, check := range map[string]func() error{
		"expired": func() error { _, err := key.Check(c, "get", now.Add(ChallengeLife)); return err },
		"purpose": func() error { _, err := key.Check(c, "create ann", now); return err },
		"key":     func() error { _, err := other.Check(c, "get", now); return err },
		"no key":  func() error { _, err := ChallengeKey(nil).Check(c, "get", now); return err },
		"short":   func() error { _, err := key.Check(c[:20], "get", now); return err },
		"later": func() error {
			forged := bytes.Clone(c)
			forged[challengeNonce+7]++
			_, err := key.Check(forged, "get", now)
			return err
		},
	} {
		if err := check(); err == nil || stele.KindOf(err) != stele.Unauthenticated {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzChallenge: only what the key made is taken.
func FuzzChallenge(f *testing.F) {
	key := ChallengeKey(bytes.Repeat([]byte{1}, challengeKeySize))
	now := time.Unix(1_800_000_000, 0)
	good, err := key.Challenge(bytes.NewReader(make([]byte, challengeNonce)), "get", now)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte{})
	f.Add(good[:challengeSize-1])
	f.Fuzz(func(t *testing.T, c []byte) {
		if _, err := key.Check(c, "get", now); (err == nil) != bytes.Equal(c, good) {
			t.Errorf("%x: %v", c, err)
		}
	})
}
