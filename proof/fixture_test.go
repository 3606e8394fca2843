package proof

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// noon is when everything happens.
var noon = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// made are keys, one of each algorithm: RSA takes its time.
var made = sync.OnceValue(func() map[string]crypto.Signer {
	keys := make(map[string]crypto.Signer)
	for _, algorithm := range []string{stele.KeyED25519, stele.KeyECDSA, stele.KeyRSA} {
		key, err := Generate(strings.ToLower(algorithm), rand.Reader)
		if err != nil {
			panic(err)
		}
		keys[algorithm] = key
	}
	return keys
})

func newID(t testing.TB, text string) stele.ID {
	t.Helper()
	scheme, _, _ := strings.Cut(text, ":")
	id, err := stele.NewID(scheme, text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func public(t testing.TB, key crypto.Signer) stele.SigningKey {
	t.Helper()
	k, err := PublicKey(key, noon.Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// statement is about "hello".
func statement() stele.Signature {
	return stele.Signature{SHA256: sha256.Sum256([]byte("hello")), Size: 5, Type: "text/plain; charset=utf-8", Date: noon}
}

func sign(t testing.TB, key crypto.Signer, id stele.ID, s stele.Signature) stele.Signature {
	t.Helper()
	s, err := Sign(key, id, s)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
