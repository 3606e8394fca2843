package secret

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func newTestKey(t testing.TB) Key {
	t.Helper()
	k, err := NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// What is encrypted opens again at its place under its key, and nowhere else.
func TestSeal(t *testing.T) {
	one, two := newTestKey(t), newTestKey(t)
	rapid.Check(t, func(t *rapid.T) {
		clear := rapid.SliceOfN(rapid.Byte(), 0, 5000).Draw(t, "clear")
		place := rapid.String().Draw(t, "place")
		s, err := one.Seal(place, clear)
		if err != nil {
			t.Fatal(err)
		}
		if len(clear) >= 8 && bytes.Contains(s.Data, clear) {
			t.Fatal("the secret is in what should hide it")
		}
		back, err := one.Open(place, s)
		if err != nil || !bytes.Equal(back, clear) {
			t.Fatalf("%q came back as %q, %v", clear, back, err)
		}
		if _, err := one.Open(place+"x", s); err == nil {
			t.Fatal("it opens at another place")
		}
		if _, err := two.Open(place, s); err == nil {
			t.Fatal("it opens under another key")
		}
		changed := &Sealed{Key: s.Key, Data: bytes.Clone(s.Data)}
		changed.Data[rapid.IntRange(0, len(s.Data)-1).Draw(t, "at")] ^= 1
		if _, err := one.Open(place, changed); err == nil {
			t.Fatal("it opens though it was changed")
		}
		again, err := one.Seal(place, clear)
		if err != nil || bytes.Equal(again.Data, s.Data) {
			t.Fatalf("twice the same: %v", err)
		}
	})
}

// The identifier of a key and the format are fixed: later versions read what was written once.
func TestKnownKey(t *testing.T) {
	k, err := ParseKey("stele-secret-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8")
	if err != nil || k.ID() != "4c906b442047" {
		t.Errorf("the key is %v, %v", k, err)
	}
	var v Value
	const kept = `{"key":"4c906b442047","data":"dblz8oqsyDWQmjEn4HCkTd/eCugiFcXgx4w15E1ogQ/dJWQ="}`
	if err := json.Unmarshal([]byte(kept), &v); err != nil {
		t.Fatal(err)
	}
	ring := NewRing(Text{Keep: k.Text(), Name: "test"})
	if err := v.Open(ring, "tsig a.example."); err != nil || string(v.Clear()) != "seven.." {
		t.Errorf("%q, %v", v.Clear(), err)
	}
}

func TestParseKeys(t *testing.T) {
	a, b := newTestKey(t), newTestKey(t)
	keys, err := ParseKeys("# a comment\n\n  " + a.Text() + "\r\n" + b.Text())
	if err != nil || len(keys) != 2 || keys[0] != a || keys[1] != b {
		t.Errorf("%v, %v", keys, err)
	}
	for text, want := range map[string]string{
		"":                                "no secret key in it",
		"# nothing\n":                     "no secret key in it",
		"hello":                           "line 1: this is not a secret key",
		a.Text() + "\n" + keyMark:         "line 2: this secret key is damaged",
		a.Text()[:30]:                     "damaged",
		a.Text() + "A":                    "damaged",
		strings.Repeat(a.Text()+" ", 101): "more than 100 keys",
	} {
		_, err := ParseKeys(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), a.material) {
			t.Errorf("the error shows the key: %v", err)
		}
	}
}

func FuzzParseKeys(f *testing.F) {
	f.Add("stele-secret-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\n# x\n")
	f.Add("stele-secret-key-1:")
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := ParseKeys(text)
		if (err == nil) != (len(keys) > 0) {
			t.Errorf("%d keys, %v", len(keys), err)
		}
		for _, k := range keys {
			if again, err := ParseKey(k.Text()); err != nil || again != k {
				t.Errorf("%v came back as %v, %v", k, again, err)
			}
		}
	})
}

// Neither keys nor secrets are printed by mistake.
func TestHidden(t *testing.T) {
	k := newTestKey(t)
	v := NewValue([]byte("a secret of somebody"))
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		text := fmt.Sprintf(format, k) + fmt.Sprintf(format, v) + fmt.Sprintf(format, struct {
			K Key
			V Value
		}{k, v})
		if strings.Contains(text, k.material) || strings.Contains(text, k.Text()) || strings.Contains(text, "a secret of") {
			t.Errorf("%s shows %s", format, text)
		}
	}
	if k.LogValue().String() != k.ID() {
		t.Errorf("logged as %s", k.LogValue())
	}
}

// A value is written only when it is encrypted; what an older program wrote is read.
func TestValue(t *testing.T) {
	k := newTestKey(t)
	type cell struct {
		Secret Value `json:"secret,omitzero"`
	}
	var old cell
	if err := json.Unmarshal([]byte(`{"secret":"aGVsbG8="}`), &old); err != nil || string(old.Secret.Clear()) != "hello" || old.Secret.Key() != "" {
		t.Fatalf("%v, %v", old, err)
	}
	if text, err := json.Marshal(old); err == nil {
		t.Errorf("it was written in clear: %s", text)
	}
	if changed, err := old.Secret.Seal(k, "p"); err != nil || !changed {
		t.Fatal(changed, err)
	}
	if changed, err := old.Secret.Seal(k, "p"); err != nil || changed {
		t.Fatal(changed, err)
	}
	text, err := json.Marshal(old)
	if err != nil || bytes.Contains(text, []byte("aGVsbG8")) || bytes.Contains(text, []byte("hello")) {
		t.Fatalf("%s, %v", text, err)
	}
	var back cell
	if err := json.Unmarshal(text, &back); err != nil || back.Secret.Key() != k.ID() || back.Secret.Clear() != nil {
		t.Fatalf("%v, %v", back, err)
	}
	other := newTestKey(t)
	if _, err := back.Secret.Seal(other, "p"); err == nil {
		t.Error("what was not opened was encrypted anew")
	}
	err = back.Secret.Open(NewRing(Text{Keep: other.Text(), Name: "the other place"}), "p")
	if missing, ok := errors.AsType[*MissingError](err); !ok || missing.Key != k.ID() || !strings.Contains(err.Error(), "the other place") {
		t.Errorf("with the wrong key: %v", err)
	}
	if err := back.Secret.Open(NewRing(Text{Keep: other.Text() + " " + k.Text()}), "p"); err != nil || string(back.Secret.Clear()) != "hello" {
		t.Errorf("%q, %v", back.Secret.Clear(), err)
	}
	if again, err := json.Marshal(back); err != nil || !bytes.Equal(again, text) {
		t.Errorf("opened, it is written as %s, %v", again, err)
	}
	if text, err := json.Marshal(cell{}); err != nil || string(text) != "{}" {
		t.Errorf("nothing is written as %s, %v", text, err)
	}
	for _, wrong := range []string{`{}`, `{"key":"x"}`, `7`, `"!"`, `{"key":1,"data":""}`} {
		if err := new(Value).UnmarshalJSON([]byte(wrong)); err == nil {
			t.Errorf("%s was read", wrong)
		}
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.key")
	f := &File{Path: path, Optional: true, Random: rand.Reader}
	ring := NewRing(f)
	if _, err := ring.Keys(); !errors.Is(err, ErrNoKey) {
		t.Fatalf("without a file: %v", err)
	}
	if _, err := (&File{Path: path}).Keys(); err == nil || errors.Is(err, ErrNoKey) {
		t.Errorf("a file that was named and is not there: %v", err)
	}
	one, err := ring.Make()
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	// Another process adds a key, which this one finds when it needs it.
	two, err := (&File{Path: path, Random: rand.Reader}).Make()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ring.Key(two.ID()); err != nil || got != two {
		t.Errorf("%v, %v", got, err)
	}
	if keys, err := ring.Keys(); err != nil || len(keys) != 2 || keys[0] != one {
		t.Errorf("%v, %v", keys, err)
	}
	// If the file is removed, the ring keeps the keys that it has.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := ring.Key("000000000000"); err == nil {
		t.Error("a key that nobody has was found")
	}
	if got, err := ring.Key(one.ID()); err != nil || got != one {
		t.Errorf("%v, %v", got, err)
	}
}

// A file that other users may read is refused, unless a service manager made it so.
func TestFileMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.key")
	if err := os.WriteFile(path, []byte(newTestKey(t).Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, good := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o440: true, 0o644: false, 0o620: false, 0o604: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := (&File{Path: path}).Keys()
		if (err == nil) != good || err != nil && !strings.Contains(err.Error(), "chmod 600 "+path) {
			t.Errorf("mode %04o: %v", mode, err)
		}
		if _, err := (&File{Path: path, Credential: true}).Keys(); err != nil {
			t.Errorf("a credential with mode %04o: %v", mode, err)
		}
	}
}

// The nil ring has no keys.
func TestNilRing(t *testing.T) {
	var r *Ring
	if _, err := r.Keys(); !errors.Is(err, ErrNoKey) {
		t.Error(err)
	}
	if _, err := r.Open("p", &Sealed{Key: "abc", Data: []byte("x")}); err == nil || !strings.Contains(err.Error(), "abc") {
		t.Error(err)
	}
	if _, err := r.Make(); !errors.Is(err, ErrNoKey) {
		t.Error(err)
	}
}
