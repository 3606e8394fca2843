package auth

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stele-id/stele"
)

const sample = "stele_4k2m9x0q7rbc_" + "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

func TestCredential(t *testing.T) {
	c, err := ParseCredential(sample)
	if err != nil {
		t.Fatal(err)
	}
	secret := make([]byte, 32)
	for i := range secret {
		secret[i] = byte(i)
	}
	if sum := sha256.Sum256(secret); c.ID() != "4k2m9x0q7rbc" || c.Reveal() != sample || !bytes.Equal(c.Hash(), sum[:]) {
		t.Errorf("%s, %q, %x", c.ID(), c.Reveal(), c.Hash())
	}
	seen := map[string]bool{}
	for range 1000 {
		c, err := NewCredential(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseCredential(c.Reveal())
		if err != nil || again != c || seen[c.ID()] {
			t.Fatalf("%s: %v", c, err)
		}
		seen[c.ID()] = true
	}
	if _, err := NewCredential(iotest.ErrReader(errors.New("none left"))); stele.KindOf(err) != stele.Unavailable {
		t.Errorf("without random bits: %v", err)
	}
	if _, err := NewCredential(bytes.NewReader(make([]byte, 20))); stele.KindOf(err) != stele.Unavailable {
		t.Errorf("with too few random bits: %v", err)
	}
}

// All 256 bits are random, and all characters of IDs come up.
func TestCredentialIsRandom(t *testing.T) {
	var ones, zeros [secretSize]byte
	letters := map[byte]bool{}
	for range 300 {
		c, err := NewCredential(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range c.secret {
			ones[i] |= b
			zeros[i] |= ^b
		}
		for i := range len(c.id) {
			letters[c.id[i]] = true
		}
	}
	for i := range ones {
		if ones[i] != 0xff || zeros[i] != 0xff {
			t.Errorf("byte %d has bits that never change", i)
		}
	}
	if len(letters) != len(idLetters) {
		t.Errorf("IDs have %d of %d characters", len(letters), len(idLetters))
	}
}

func TestParseCredentialRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                  "",
		"the mark alone":           "stele_",
		"another mark":             "steel" + sample[5:],
		"capitals":                 strings.ToUpper(sample[:18]) + sample[18:],
		"a look-alike in the ID":   strings.Replace(sample, "4k2m", "4k2l", 1),
		"a missing character":      sample[:len(sample)-1],
		"a character too many":     sample + "A",
		"a line break behind it":   sample + "\n",
		"a line break in it":       sample[:30] + "\n" + sample[31:],
		"a space before it":        " " + sample[:len(sample)-1],
		"standard base 64":         sample[:40] + "+" + sample[41:],
		"padding":                  sample[:len(sample)-1] + "=",
		"bits behind the last":     sample[:len(sample)-1] + "9",
		"no second underscore":     strings.Replace(sample, "c_A", "cAA", 1),
		"a control character":      sample[:20] + "\x00" + sample[21:],
		"a character of two bytes": sample[:20] + "é" + sample[22:],
		"a megabyte":               strings.Repeat("stele_", 1<<18),
	} {
		c, err := ParseCredential(text)
		if stele.KindOf(err) != stele.Unauthenticated || c != (Credential{}) {
			t.Errorf("%s: %v, %v", name, c, err)
		} else if len(err.Error()) > 300 || len(text) > 10 && strings.Contains(err.Error(), text[:10]) {
			t.Errorf("%s: the error repeats it: %v", name, err)
		}
	}
}

// A credential prints without its secret, except by Reveal.
func TestCredentialPrintsNoSecret(t *testing.T) {
	c, err := ParseCredential(sample)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&b, nil))
	log.Info("x", "credential", c, "pointer", &c, "group", slog.GroupValue(slog.Any("c", c)))
	log = slog.New(slog.NewTextHandler(&b, nil))
	log.Info("x", "credential", c)
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		fmt.Fprintf(&b, format+"\n", c)
	}
	fmt.Fprintf(&b, "%v %+v %#v\n", struct{ C Credential }{c}, []Credential{c}, map[string]Credential{"x": c})
	for _, secret := range []string{sample[19:29], fmt.Sprintf("%x", c.secret[4:9]), "[0 1 2 3", "0x0, 0x1, 0x2", base64.StdEncoding.EncodeToString(c.secret[:9])} {
		if strings.Contains(b.String(), secret) {
			t.Errorf("%q is in\n%s", secret, b.String())
		}
	}
}

func FuzzParseCredential(f *testing.F) {
	f.Add(sample)
	f.Add("")
	f.Add("stele_")
	f.Add(sample[:len(sample)-1] + "9")
	f.Add(sample[:30] + "\r\n" + sample[32:])
	f.Add("stele_000000000000_" + strings.Repeat("_", 43))
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCredential(text)
		if err != nil {
			if stele.KindOf(err) != stele.Unauthenticated || c != (Credential{}) {
				t.Fatalf("%v, %v", c, err)
			}
			return
		}
		// What is read is written the same: a credential has one text.
		if c.Reveal() != text || !isID(c.ID()) {
			t.Fatalf("%q is read as %q", text, c.Reveal())
		}
	})
}
