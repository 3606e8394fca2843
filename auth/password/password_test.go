package password

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/secret"
)

// TestHOTP has the values of RFC 4226, appendix D.
func TestHOTP(t *testing.T) {
	for counter, want := range []string{"755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489"} {
		if got := hotp([]byte("12345678901234567890"), uint64(counter), 6); got != want {
			t.Errorf("%d: %s, want %s", counter, got, want)
		}
	}
}

// TestTOTP has the values of RFC 6238, appendix B, for SHA-1.
func TestTOTP(t *testing.T) {
	key := []byte("12345678901234567890")
	for at, want := range map[int64]string{59: "94287082", 1111111109: "07081804", 1111111111: "14050471", 1234567890: "89005924", 2000000000: "69279037", 20000000000: "65353130"} {
		step := Step(time.Unix(at, 0))
		if got := hotp(key, uint64(step), 8); got != want {
			t.Errorf("%d: %s, want %s", at, got, want)
		}
		if got := Code(key, step); got != want[2:] {
			t.Errorf("%d: %s, want %s", at, got, want[2:])
		}
	}
	now := time.Unix(1111111109, 0)
	step := Step(now)
	for typed, want := range map[string]int64{
		Code(key, step): step, Code(key, step-1): step - 1, Code(key, step+1): step + 1, " " + Code(key, step)[:3] + " " + Code(key, step)[3:]: step,
		Code(key, step-2): 0, Code(key, step+2): 0, "": 0, "081804 1": 0, "81804": 0,
	} {
		if got, ok := Match(key, typed, now, 0); got != want || ok != (want != 0) {
			t.Errorf("%q: %d %v, want %d", typed, got, ok, want)
		}
	}
	if _, ok := Match(key, Code(key, step), now, step); ok {
		t.Error("a code was accepted twice")
	}
	if _, ok := Match(key, Code(key, step-1), now, step); ok {
		t.Error("a code from before the last one was accepted")
	}
}

func TestKeyURI(t *testing.T) {
	const want = "otpauth://totp/Maps%20of%20Par%C3%A1:ann?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Maps%20of%20Par%C3%A1&algorithm=SHA1&digits=6&period=30"
	if got := KeyURI("Maps of Pará", "ann", []byte("12345678901234567890")); got != want {
		t.Errorf("%s", got)
	}
}

func TestCheck(t *testing.T) {
	context := []string{"ann.miller", "Museu Goeldi", "id.example.org"}
	for text, code := range map[string]string{
		"":                                 "password.missing-text",
		"short":                            "password.too-short",
		"fourteen chars":                   "password.too-short",
		"éééééééééééééé":                   "password.too-short", // 28 bytes
		"tab\tin a long password":          "password.characters",
		"zero\x00in a long password":       "password.characters",
		"invalid \xff UTF-8 in here":       "password.characters",
		strings.Repeat("x y", 400):         "value.too-long",
		"aaaaaaaaaaaaaaaaaa":               "password.common",
		"...............":                  "password.common",
		"abcabcabcabcabcabc":               "password.common",
		"12341234123412341234":             "password.common",
		"0123456789012345":                 "password.common",
		"qwertyuiopasdfghjkl":              "password.common",
		"1q2w3e4r5t6y7u8i9o":               "password.common",
		"Password12345678":                 "password.common",
		"P@ssw0rd P@ssw0rd":                "password.common",
		"senha-muito-segura":               "",
		"minha senha secreta 2026!":        "password.common",
		"correct horse battery staple":     "password.common",
		"annmiller19870412":                "password.common",
		"museu-goeldi-2026!":               "password.common",
		"example.org password":             "password.common",
		"mint tractor violet cello":        "",
		"o rio corre devagar hoje":         "",
		"kX8-vb2_Qz7.Lm4":                  "",
		"837261940582716":                  "",
		"ein Kännchen Tee mit Zitrone":     "",
		"火車在下午三點離開月台前往南方":                  "",
		strings.Repeat("wanderlust! ", 80): "",
	} {
		got, _ := stele.CodeOf(Check(text, context...))
		if got != code {
			t.Errorf("%q: %q, want %q", text, got, code)
		}
	}
}

// TestPrepare: the same password typed on another keyboard is the same.
func TestPrepare(t *testing.T) {
	want, err := Prepare("café com leite quente")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"cafe\u0301 com leite quente", "café\u00a0com\u2003leite quente"} {
		if got, err := Prepare(text); got != want || err != nil {
			t.Errorf("%q: %q %v", text, got, err)
		}
	}
	for _, text := range []string{"Café com leite quente", "café com leite quente ", "cafe com leite quente"} {
		if got, err := Prepare(text); got == want || err != nil {
			t.Errorf("%q: %q %v", text, got, err)
		}
	}
}

// random is a source of bits for tests.
func random() *rand.ChaCha8 { return rand.NewChaCha8([32]byte{7}) }

func TestHash(t *testing.T) {
	h := NewHasher(2, Usual(), random())
	made, err := h.Hash(t.Context(), "mint tractor violet cello")
	if err != nil || !strings.HasPrefix(made, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Fatal(made, err)
	}
	if again, err := h.Hash(t.Context(), "mint tractor violet cello"); again == made || err != nil {
		t.Error("two hashes have one salt", err)
	}
	cheap := NewHasher(2, Cost{64, 1, 1}, random())
	for _, tt := range []struct {
		h            *Hasher
		text, hash   string
		ok, outdated bool
	}{
		{h, "mint tractor violet cello", made, true, false},
		{h, "mint tractor violet Cello", made, false, false},
		{h, "", made, false, false},
		{cheap, "mint tractor violet cello", made, true, true},
		{h, "mint tractor violet cello", "", false, false},
		{cheap, "password", "$argon2id$v=19$m=128,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", false, true},
	} {
		ok, outdated, err := tt.h.Verify(t.Context(), tt.text, tt.hash)
		if ok != tt.ok || outdated != tt.outdated || err != nil {
			t.Errorf("%q %s: %v %v %v", tt.text, tt.hash, ok, outdated, err)
		}
	}
}

// TestParsePHC: a stored hash that was tampered with does not make the server work for long.
func TestParsePHC(t *testing.T) {
	const good = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	if p, ok := parsePHC(good); !ok || p.String() != good || p.cost != Usual() {
		t.Error(p, ok)
	}
	for _, change := range [][2]string{{"argon2id", "argon2i"}, {"v=19", "v=16"}, {"m=19456", "m=4000000000"}, {"m=19456", "m=0"}, {"t=2", "t=4294967295"}, {"p=1", "p=256"}, {"p=1", "p=0"},
		{"m=19456,t=2", "t=2,m=19456"}, {",p=1", ""}, {"$AAAAAAAAAAAAAAAAAAAAAA$", "$AAAA$"}, {"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "AAAA"}, {"$argon2id", "x$argon2id"}} {
		if text := strings.Replace(good, change[0], change[1], 1); text == good {
			t.Error(change)
		} else if p, ok := parsePHC(text); ok {
			t.Errorf("%s is read as %+v", text, p)
		}
	}
}

// TestBounds: so many hashes are computed at once, so many callers wait, and the others are told when to try again.
func TestBounds(t *testing.T) {
	h := NewHasher(1, Cost{64, 1, 1}, random())
	leave, err := h.turns.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	for range maxWaiting + 1 {
		go func() { _, _, err := h.Verify(ctx, "x", ""); done <- err }()
	}
	err = <-done // one is too many, and the others wait
	refusal, ok := errors.AsType[*limit.Refusal](err)
	if code, _ := stele.CodeOf(err); !ok || refusal.After <= 0 || stele.KindOf(err) != stele.Unavailable || code != "password.busy" {
		t.Errorf("the caller beyond the bound: %v", err)
	}
	leave()
	for range maxWaiting {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	leave, err = h.turns.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	cancel()
	if _, err := h.Hash(ctx, "x"); stele.KindOf(err) != stele.Unavailable {
		t.Errorf("a caller that has left: %v", err)
	}
}

// TestStored: a password is stored with its secret encrypted only, and for its user only.
func TestStored(t *testing.T) {
	s := Stored{User: "ann", Hash: "x", Key: secret.NewValue([]byte("12345678901234567890"))}
	if _, err := s.Cell(); err == nil {
		t.Error("the secret was written in clear")
	}
	key, err := secret.NewRing(secret.Text{Keep: "stele-secret-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", Name: "the test"}).Keys()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Key.Seal(key[0], s.Place()); err != nil {
		t.Fatal(err)
	}
	cell, err := s.Cell()
	if err != nil || strings.Contains(string(cell.Value), KeyText([]byte("12345678901234567890"))) {
		t.Fatal(err, string(cell.Value))
	}
	if got, err := Read(cell); err != nil || got.User != "ann" || got.Key.Clear() != nil {
		t.Error(got, err)
	}
	for _, wrong := range []stele.Cell{{Name: Cells + "bob", Value: cell.Value}, {Name: cell.Name, Value: []byte("{")}, {Name: cell.Name, Value: must(json.Marshal(map[string]string{"user": "ann"}))}} {
		if _, err := Read(wrong); err == nil {
			t.Errorf("%s %s was read", wrong.Name, wrong.Value)
		}
	}
}

func must(value []byte, _ error) []byte { return value }
