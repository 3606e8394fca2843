package access

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/proof"
)

// newSigningKey makes a key that may sign.
func newSigningKey(t *testing.T) stele.SigningKey {
	t.Helper()
	key, err := proof.Generate("ed25519", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	k, err := proof.PublicKey(key, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return k
}
