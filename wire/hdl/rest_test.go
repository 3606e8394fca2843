package hdl

import "testing"

// Proofs of the REST interface have algorithms by name, and no code octets.
func TestSecretAnswerNames(t *testing.T) {
	for name, code := range map[string]byte{"MD5": 1, "SHA1": 2, "SHA-1": 2, "SHA256": 3, "SHA-256": 3, "HMAC-SHA1": 0x12, "HMAC-SHA256": 0x13, "PBKDF2-HMAC-SHA1": 0x22} {
		if b, err := SecretAnswer(name, []byte("x"), Derivation{}); err != nil || b[0] != code {
			t.Errorf("%s: %x, %v", name, b, err)
		}
	}
	for _, name := range []string{"", "\x01", "\x02", "sha1", "SHA3", "HMAC"} {
		if b, err := SecretAnswer(name, []byte("x"), Derivation{}); err == nil {
			t.Errorf("%q: %x", name, b)
		}
	}
	d := Derivation{Iterations: 1 << 31, Bits: 1 << 31}
	if n := AnswerRounds("PBKDF2-HMAC-SHA1", d); n != MaxAnswerRounds {
		t.Errorf("%d rounds", n)
	}
	if n := AnswerRounds("SHA1", d); n != 0 {
		t.Errorf("%d rounds of SHA1", n)
	}
}
