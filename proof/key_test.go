package proof

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

func TestPrivateKeys(t *testing.T) {
	for algorithm, key := range made() {
		text, err := MarshalPrivate(key)
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParsePrivate(text)
		if err != nil {
			t.Fatalf("%s: %v", algorithm, err)
		}
		if a, b := public(t, key), public(t, back); a.ID != b.ID || a.Algorithm != algorithm {
			t.Errorf("%s became %+v", algorithm, b)
		}
		if _, err := ParsePublic(text, noon); err == nil || !strings.Contains(err.Error(), "it is a private key") {
			t.Errorf("%s, the private key as a public one: %v", algorithm, err)
		}
		if _, err := ParsePrivate(append(bytes.Clone(text), text...)); err == nil || !strings.Contains(err.Error(), "more than one") {
			t.Errorf("%s, twice: %v", algorithm, err)
		}
	}
	if _, err := Generate("dsa", rand.Reader); !errors.Is(err, stele.Invalid) {
		t.Errorf("DSA: %v", err)
	}
}

// The thumbprint of RFC 8037's key (appendix A.3).
func TestThumbprint(t *testing.T) {
	x, err := decodeURL("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
	if err != nil {
		t.Fatal(err)
	}
	der := append([]byte{0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0}, x...)
	k, err := ParsePublic(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), noon)
	if err != nil || k.ID != "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k" {
		t.Errorf("%+v, %v", k, err)
	}
}

func TestKeysRefused(t *testing.T) {
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	small := &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 1023, 1), E: 65537}
	large := &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 4096, 1), E: 65537}
	odd := &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 2047, 1), E: 3}
	for name, key := range map[string]crypto.PublicKey{"P-384": p384, "1024 bits": small, "4097 bits": large, "exponent 3": odd, "nothing": nil} {
		if _, err := PublicKey(key, noon); !errors.Is(err, stele.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	private, err := x509.MarshalPKCS8PrivateKey(p384)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"nothing":    "",
		"no PEM":     "secret",
		"too much":   strings.Repeat("x", maxPEM+1),
		"no key":     "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
		"another":    "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
		"P-384":      string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
		"a password": "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
		"large":      string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: make([]byte, maxDER+1)})),
	} {
		if _, err := ParsePrivate([]byte(text)); !errors.Is(err, stele.Invalid) {
			t.Errorf("%s: %v", name, err)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error tells the key: %v", name, err)
		}
	}
}

func TestCheck(t *testing.T) {
	good := public(t, made()[stele.KeyECDSA])
	if err := Check(good); err != nil {
		t.Fatal(err)
	}
	ed := public(t, made()[stele.KeyED25519])
	for name, change := range map[string]func(*stele.SigningKey){
		"another's ID":       func(k *stele.SigningKey) { k.ID = ed.ID },
		"another's bytes":    func(k *stele.SigningKey) { k.Public = ed.Public },
		"another algorithm":  func(k *stele.SigningKey) { k.Algorithm = stele.KeyRSA },
		"something behind":   func(k *stele.SigningKey) { k.Public = append(bytes.Clone(k.Public), 0) },
		"nothing":            func(k *stele.SigningKey) { k.Public = nil },
		"a point off it all": func(k *stele.SigningKey) { k.Public = bytes.Clone(k.Public); k.Public[80] ^= 1 },
	} {
		k := good
		change(&k)
		if err := Check(k); !errors.Is(err, stele.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// run runs OpenSSL in a folder.
func run(t *testing.T, folder string, args ...string) string {
	t.Helper()
	cmd := exec.Command("openssl", args...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("openssl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// OpenSSL makes keys that this package accepts, and verifies what they sign here.
func TestOpenSSL(t *testing.T) {
	id := newID(t, "urn:example:a")
	for name, tt := range map[string]struct{ make, verify []string }{
		"ed25519": {
			[]string{"genpkey", "-algorithm", "ed25519", "-out", "key.pem"},
			[]string{"pkeyutl", "-verify", "-pubin", "-inkey", "public.pem", "-rawin", "-in", "input", "-sigfile", "signature"},
		},
		"ecdsa": {
			[]string{"genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", "key.pem"},
			[]string{"dgst", "-sha256", "-verify", "public.pem", "-signature", "signature", "input"},
		},
		"ecdsa in the older form": {
			[]string{"ecparam", "-name", "prime256v1", "-genkey", "-out", "key.pem"},
			[]string{"dgst", "-sha256", "-verify", "public.pem", "-signature", "signature", "input"},
		},
		"rsa": {
			[]string{"genrsa", "-out", "key.pem", "2048"},
			[]string{"dgst", "-sha256", "-verify", "public.pem", "-signature", "signature", "input"},
		},
		"rsa in the older form": {
			[]string{"genrsa", "-traditional", "-out", "key.pem", "2048"},
			[]string{"dgst", "-sha256", "-verify", "public.pem", "-signature", "signature", "input"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			read := func(file string) []byte {
				b, err := os.ReadFile(filepath.Join(folder, file))
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			write := func(file string, b []byte) {
				if err := os.WriteFile(filepath.Join(folder, file), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			run(t, folder, tt.make...)
			run(t, folder, "pkey", "-in", "key.pem", "-pubout", "-out", "public.pem")
			key, err := ParsePrivate(read("key.pem"))
			if err != nil {
				t.Fatal(err)
			}
			k, err := ParsePublic(read("public.pem"), noon)
			if err != nil {
				t.Fatal(err)
			}
			s := sign(t, key, id, statement())
			if _, err := Verify([]stele.SigningKey{k}, id, s, noon); err != nil {
				t.Error(err)
			}
			header, tail, _ := strings.Cut(s.JWS, "..")
			write("input", []byte(header+"."+base64.RawURLEncoding.EncodeToString(Payload(id, s))))
			write("signature", forOpenSSL(t, k, tail))
			run(t, folder, tt.verify...)
			// OpenSSL accepts a key of this package too.
			text, err := MarshalPrivate(key)
			if err != nil {
				t.Fatal(err)
			}
			write("ours.pem", text)
			if got, want := run(t, folder, "pkey", "-in", "ours.pem", "-pubout"), string(read("public.pem")); got != want {
				t.Errorf("the public part of ours is\n%s\nwant\n%s", got, want)
			}
		})
	}
	folder := t.TempDir()
	run(t, folder, "genpkey", "-algorithm", "ed25519", "-aes256", "-pass", "pass:x", "-out", "key.pem")
	text, err := os.ReadFile(filepath.Join(folder, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParsePrivate(text); err == nil || !strings.Contains(err.Error(), "password") {
		t.Errorf("a key with a password: %v", err)
	}
}

// forOpenSSL returns the bytes of a signature: OpenSSL has that of ECDSA as two numbers
// in DER, JWS one after the other (RFC 7518, 3.4).
func forOpenSSL(t *testing.T, k stele.SigningKey, tail string) []byte {
	t.Helper()
	raw, err := decodeURL(tail)
	if err != nil {
		t.Fatal(err)
	}
	if k.Algorithm != stele.KeyECDSA {
		return raw
	}
	der, err := asn1.Marshal(struct{ R, S *big.Int }{new(big.Int).SetBytes(raw[:32]), new(big.Int).SetBytes(raw[32:])})
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func FuzzParsePrivate(f *testing.F) {
	for _, key := range made() {
		text, err := MarshalPrivate(key)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("-----BEGIN EC PRIVATE KEY-----\nMHc=\n-----END EC PRIVATE KEY-----\n"))
	f.Add([]byte("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n"))
	f.Add([]byte("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		key, err := ParsePrivate(text)
		if err != nil {
			if !errors.Is(err, stele.Invalid) {
				t.Fatalf("of another kind: %v", err)
			}
			return
		}
		k, err := PublicKey(key, time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(k); err != nil {
			t.Fatal(err)
		}
	})
}

func TestKeyState(t *testing.T) {
	now := time.Date(2031, 5, 2, 12, 0, 0, 0, time.UTC)
	before, after := now.Add(-time.Hour), now.Add(time.Hour)
	for _, tt := range []struct {
		key   stele.SigningKey
		state string
		since time.Time
	}{
		{stele.SigningKey{Created: before}, "signs", before},
		{stele.SigningKey{Created: before, Expires: after}, "signs", before},
		{stele.SigningKey{Created: before, Expires: now}, "retired", now},
		{stele.SigningKey{Created: before, Expires: before, Revoked: now}, "revoked", now},
		{stele.SigningKey{Created: before, Revoked: after}, "signs", before},
		{stele.SigningKey{Created: after}, "waiting", after},
	} {
		if state, since := KeyState(&tt.key, now); state != tt.state || !since.Equal(tt.since) {
			t.Errorf("%+v: %s since %s, want %s since %s", tt.key, state, since, tt.state, tt.since)
		}
	}
}
