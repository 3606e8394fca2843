package proof

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/all"
)

func TestDigest(t *testing.T) {
	text := strings.Repeat("0123456789", 300_000)
	var s stele.Signature
	read := 0
	if err := Digest(t.Context(), strings.NewReader(text), &s, func(n int) { read += n }); err != nil || s.Size != uint64(len(text)) || read != len(text) || s.SHA256 != sha256.Sum256([]byte(text)) {
		t.Errorf("%+v, read %d, %v", s, read, err)
	}
	broken := errors.New("broken")
	if err := Digest(t.Context(), io.MultiReader(strings.NewReader("a"), iotest.ErrReader(broken)), &s, func(int) {}); err != broken {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := Digest(ctx, strings.NewReader(text), &s, func(int) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestAddSignature(t *testing.T) {
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	id, err := schemes.Parse("ark:12345/x1")
	if err != nil {
		t.Fatal(err)
	}
	key, k, err := NewKey("ed25519", rand.Reader, time.Now())
	if err != nil || strings.HasPrefix(k.ID, "-") {
		t.Fatal(k.ID, err)
	}
	now := time.Now().UTC().Truncate(time.Second)
	rec := &stele.Record{ID: id}
	sign := func(media, text string, at time.Time, replace bool) (stele.Signature, bool, error) {
		return AddSignature(rec, key, stele.Signature{Type: media, Size: uint64(len(text)), SHA256: sha256.Sum256([]byte(text)), Date: at}, replace)
	}
	first, before, err := sign("text/plain", "a", now, false)
	if err != nil || before || len(rec.Signatures) != 1 || first.Key != k.ID {
		t.Fatalf("%+v, %t, %v", first, before, err)
	}
	if again, before, err := sign("text/plain", "a", now.Add(time.Hour), false); err != nil || !before || !again.Date.Equal(now) || len(rec.Signatures) != 1 {
		t.Errorf("the same again: %+v, %t, %v", again, before, err)
	}
	if again, before, err := sign("text/plain", "a", now.Add(time.Hour), true); err != nil || before || again.Date.Equal(now) || len(rec.Signatures) != 1 {
		t.Errorf("the same again, replaced: %+v, %t, %v", again, before, err)
	}
	for i := range stele.MaxSignatures - 1 {
		if _, _, err := sign("text/html", string(bytes.Repeat([]byte("x"), i+1)), now, false); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := sign("text/html", "one more", now, false); !errors.Is(err, stele.Conflict) || len(rec.Signatures) != stele.MaxSignatures {
		t.Errorf("%d signatures, %v", len(rec.Signatures), err)
	}
	if _, _, err := sign("text/html", "all of it", now, true); err != nil || len(rec.Signatures) != 2 {
		t.Errorf("%d signatures, %v", len(rec.Signatures), err)
	}
}
