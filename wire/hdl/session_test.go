package hdl_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/stele-id/stele/wire/hdl"
)

// TestSessionKeys compares an exchange with fixed private numbers.
func TestSessionKeys(t *testing.T) {
	v := vectors(t, "sessions.txt")
	p, g := hdl.OakleyGroup()
	side := func(name string) *hdl.DHPrivate {
		k, err := hdl.NewDH(p, g, bytes.NewReader(v[name]))
		if err != nil {
			t.Fatal(name, err)
		}
		return k
	}
	client, server := side("xa"), side("xb")
	for name, k := range map[string]*hdl.DHPrivate{"client_dh_pub_key": client, "server_dh_pub_key": server} {
		public := hdl.PublicKey{DH: &k.Public}
		if got := public.Append(nil); !bytes.Equal(got, v[name]) {
			t.Errorf("%s: %x", name, got)
		}
	}
	for _, c := range []struct {
		peer         *hdl.DHPrivate
		secret, keys [4]string
	}{
		{server, [4]string{"shared_secret_full_width"}, [4]string{1: "key_alg1_DES_8_octets_parity", 2: "key_alg2_DESede_24_octets_parity", 3: "key_alg3_AES_32_octets_(MAC_uses_32,_cipher_first_16)"}},
		{side("xc"), [4]string{"shared_secret_xc"}, [4]string{1: "key_alg1_xc", 2: "key_alg2_xc", 3: "key_alg3_xc"}},
	} {
		secret, err := client.Shared(&c.peer.Public)
		back, err2 := c.peer.Shared(&client.Public)
		if err != nil || err2 != nil || !bytes.Equal(secret, v[c.secret[0]]) || !bytes.Equal(back, secret) {
			t.Errorf("%s: %x, %v, %v", c.secret[0], secret, err, err2)
		}
		for a := hdl.DES; a <= hdl.AES; a++ {
			if key, err := a.SessionKey(secret); err != nil || !bytes.Equal(key, v[c.keys[a]]) || len(key) == 0 {
				t.Errorf("%s: %x, %v", c.keys[a], key, err)
			}
		}
	}
	m := signed(t, hdl.Envelope{Version: v211}, v["session_setup_request"])
	body, err := hdl.ParseRequest(&m)
	q, ok := body.(*hdl.SessionRequest)
	if err != nil || !ok || q.Mode != hdl.KeyExchangeDH || q.Timeout != 86400 || q.Identity != (hdl.Reference{Handle: "0.NA/20.500.99999", Index: 300}) ||
		!bytes.Equal(q.Key, v["client_dh_pub_key"]) || !bytes.Equal(q.Append(nil, v211), m.Body) {
		t.Errorf("%+v, %v", body, err)
	}
	if _, err := hdl.AES.SessionKey(make([]byte, 128)); code(err) != "hdl.session-secret" {
		t.Errorf("a secret of zeros: %v", err)
	}
	if _, err := hdl.Algorithm(4).SessionKey(v["shared_secret_xc"]); code(err) != "hdl.session-secret" {
		t.Errorf("an unknown cipher: %v", err)
	}
}

// TestDegenerateGroups: groups and numbers that fix the secret, or cost too much, are refused.
func TestDegenerateGroups(t *testing.T) {
	p, g := hdl.OakleyGroup()
	one, two := big.NewInt(1), big.NewInt(2)
	less := new(big.Int).Sub(p, one)
	small, _ := new(big.Int).SetString(strings.Repeat("f", 128), 16)
	for name, c := range map[string]struct {
		key  hdl.DHKey
		want string
	}{
		"good":       {hdl.DHKey{Y: big.NewInt(4), P: p, G: g}, ""},
		"y 0":        {hdl.DHKey{Y: new(big.Int), P: p, G: g}, "hdl.dh-degenerate"},
		"y 1":        {hdl.DHKey{Y: one, P: p, G: g}, "hdl.dh-degenerate"},
		"y p-1":      {hdl.DHKey{Y: less, P: p, G: g}, "hdl.dh-degenerate"},
		"y p":        {hdl.DHKey{Y: p, P: p, G: g}, "hdl.dh-degenerate"},
		"y above p":  {hdl.DHKey{Y: new(big.Int).Add(p, two), P: p, G: g}, "hdl.dh-degenerate"},
		"g 1":        {hdl.DHKey{Y: two, P: p, G: one}, "hdl.dh-degenerate"},
		"g p-1":      {hdl.DHKey{Y: two, P: p, G: less}, "hdl.dh-degenerate"},
		"even":       {hdl.DHKey{Y: two, P: less, G: g}, "hdl.dh-even"},
		"512 bits":   {hdl.DHKey{Y: two, P: small, G: g}, "hdl.dh-size"},
		"2056 bits":  {hdl.DHKey{Y: two, P: new(big.Int).SetBit(one, 2055, 1), G: g}, "hdl.dh-size"},
		"p is 1":     {hdl.DHKey{Y: two, P: one, G: g}, "hdl.dh-size"},
		"all is one": {hdl.DHKey{Y: one, P: one, G: one}, "hdl.dh-size"},
	} {
		if got := code(c.key.Check()); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	k, err := hdl.NewDH(p, g, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other := new(big.Int).Add(p, two)
	if _, err := k.Shared(&hdl.DHKey{Y: two, P: other, G: g}); code(err) != "hdl.dh-group" {
		t.Errorf("another group: %v", err)
	}
	if k, err := hdl.NewDH(p, g, bytes.NewReader(make([]byte, 64))); code(err) != "hdl.dh-degenerate" {
		t.Errorf("the private number 0 gives %v, %v", k, err)
	}
	// With the composite modulus m^2, (1+m)^m is 1: the secret can be 1 though no number that was sent is.
	square, root := new(big.Int).Mul(small, small), new(big.Int).Add(small, one)
	side, err := hdl.NewDH(square, two, bytes.NewReader(small.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if secret, err := side.Shared(&hdl.DHKey{Y: root, P: square, G: two}); code(err) != "hdl.dh-secret" {
		t.Errorf("the secret %x, %v", secret, err)
	}
	large := new(big.Int).SetBit(one, 2047, 1)
	if _, err := hdl.NewDH(large, two, rand.Reader); err != nil {
		t.Errorf("2048 bits: %v", err)
	}
}

// TestMACs compares codes of all versions.
func TestMACs(t *testing.T) {
	v := vectors(t, "sessions.txt")
	key := v["key_alg3_AES_32_octets_(MAC_uses_32,_cipher_first_16)"]
	srv, public := privateKey(t, "srv_privkey_file"), publicKey(t, "srv_pubkey")
	make := func(minor string) hdl.Message {
		n, err := strconv.Atoi(minor)
		if err != nil {
			t.Fatal(err)
		}
		return signed(t, hdl.Envelope{Version: hdl.Version{Major: 2, Minor: uint8(n)}, Suggested: v211, Session: 5, Request: 0x01020304}, v["create_header_and_body"])
	}
	seen := 0
	for name, want := range v {
		minor, isMAC := strings.CutPrefix(name, "mac_credential_2.")
		if !isMAC {
			continue
		}
		seen++
		m := make(minor)
		m.AddMAC(key, 3)
		if got := credential(&m); !bytes.Equal(got, want) {
			t.Errorf("%s: %x, want %x", name, got, want)
		}
		if err := m.VerifyMAC(key); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := m.VerifyMAC(key[1:]); code(err) != "hdl.mac-wrong" {
			t.Errorf("%s with another key: %v", name, err)
		}
		m.Body = append(m.Body[:len(m.Body):len(m.Body)], 0)
		if err := m.VerifyMAC(key); code(err) != "hdl.mac-wrong" {
			t.Errorf("%s with another body: %v", name, err)
		}
		if err := m.VerifySignature(public); code(err) != "hdl.signature-missing" {
			t.Errorf("%s as a signature: %v", name, err)
		}
	}
	for name, want := range v {
		minor, isSignature := strings.CutPrefix(name, "signed_credential_2.")
		if !isSignature {
			continue
		}
		seen++
		m := make(minor)
		if err := m.Sign(srv, 3, nil); err != nil || !bytes.Equal(credential(&m), want) {
			t.Errorf("%s: %x, %v", name, credential(&m), err)
		}
		if err := m.VerifySignature(public); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := m.VerifyMAC(key); code(err) != "hdl.mac-missing" {
			t.Errorf("%s as a code: %v", name, err)
		}
		m.Header.Expiration++
		if err := m.VerifySignature(public); code(err) != "hdl.signature-wrong" {
			t.Errorf("%s, changed: %v", name, err)
		}
	}
	if seen != 13 {
		t.Errorf("%d credentials", seen)
	}
	// A message does not choose a weaker algorithm than its version has.
	old, now := make("4"), make("11")
	old.AddMAC(key, 3)
	now.Credential = old.Credential
	if err := now.VerifyMAC(key); code(err) != "hdl.mac-algorithm" {
		t.Errorf("the code of 2.4 in 2.11: %v", err)
	}
	if err := old.Sign(srv, 3, nil); err != nil {
		t.Fatal(err)
	}
	now.Credential = old.Credential
	if err := now.VerifySignature(public); code(err) != "hdl.signature-hash" {
		t.Errorf("the signature of 2.4 in 2.11: %v", err)
	}
	// DSA signs too, with SHA-1 until 2.11.
	for _, minor := range []string{"5", "6", "10", "11"} {
		m := make(minor)
		if err := m.Sign(privateKey(t, "privkey_file_dsa"), 0, rand.Reader); err != nil || m.VerifySignature(publicKey(t, "hs_pubkey_dsa")) != nil {
			t.Errorf("DSA in 2.%s: %v", minor, err)
		}
		if got := string(m.Credential.Algorithm); (got == "SHA-256") != (minor == "11") {
			t.Errorf("DSA in 2.%s uses %s", minor, got)
		}
	}
	none := make("11")
	if code(none.VerifyMAC(key)) != "hdl.mac-missing" || code(none.VerifySignature(public)) != "hdl.signature-missing" {
		t.Error("a message without a credential is verified")
	}
}

// credential returns the octets of a message's credential, without its length.
func credential(m *hdl.Message) []byte {
	b := m.AppendClear(nil)
	return b[hdl.HeaderSize+len(m.Body)+4:]
}

// TestCiphers compares cipher texts of both forms.
func TestCiphers(t *testing.T) {
	v := vectors(t, "sessions.txt")
	keys := map[hdl.Algorithm][]byte{
		hdl.DES: v["key_alg1_DES_8_octets_parity"], hdl.TripleDES: v["key_alg2_DESede_24_octets_parity"], hdl.AES: v["key_alg3_AES_32_octets_(MAC_uses_32,_cipher_first_16)"],
	}
	for a, key := range keys {
		for _, version := range []string{"2.11", "2.3"} {
			text := v[fmt.Sprintf("encrypted_alg%d_%s", a, version)]
			iv, form := text[:a.BlockSize()], hdl.CBC
			if version == "2.3" {
				iv, form = nil, hdl.ECB
			}
			clear, err := form.Decrypt(a, key, text)
			if err != nil || string(clear) != "the quick brown fox" {
				t.Errorf("%d in %s: %q, %v", a, version, clear, err)
			}
			if got, err := form.Encrypt(a, key, iv, clear); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d in %s: %x, %v; want %x", a, version, got, err, text)
			}
			for n := range text {
				if got, err := form.Decrypt(a, key, text[:n]); err == nil && bytes.Equal(got, clear) {
					t.Errorf("%d in %s: %d octets are enough", a, version, n)
				}
			}
			if _, err := form.Decrypt(a, key[:7], text); code(err) != "hdl.cipher-key" {
				t.Errorf("a key of 7 octets: %v", err)
			}
		}
	}
}

// TestRecordedSessions checks every code, signature and cipher text of the recordings whose keys are known, and every
// digest of a request.
func TestRecordedSessions(t *testing.T) {
	_, keys := recordings(t)
	public := publicKey(t, "srv_pubkey")
	var macs, signatures, opened, digests int
	requests := make(map[string]hdl.Message)
	for _, rec := range whole(t) {
		m, err := hdl.Parse(rec.octets)
		if err != nil {
			continue // TestRecordedMessages looks at it
		}
		place := fmt.Sprintf("%s:%d (%s)", rec.file, rec.line, rec.title)
		key := keys[fmt.Sprintf("%s %d", rec.file, m.Envelope.Session)]
		if m.Sealed != nil {
			if err := m.Open(hdl.AES, key); err != nil {
				t.Errorf("%s: %v", place, err)
				continue
			}
			if got := m.AppendClear(nil); !bytes.Equal(got, rec.decrypted) {
				t.Errorf("%s: %x, want %x", place, got, rec.decrypted)
			}
			again := m
			if err := again.Seal(hdl.AES, key, m.Sealed[:16]); err != nil || !bytes.Equal(again.Append(nil), rec.octets) {
				t.Errorf("%s: encrypted again it differs, %v", place, err)
			}
			if body, err := recode(&m); err != nil || !bytes.Equal(body, m.Body) {
				t.Errorf("%s: %v", place, err)
			}
			opened++
		}
		if rec.request {
			requests[fmt.Sprint(rec.file, m.Envelope.Request)] = m
		} else if request, ok := requests[fmt.Sprint(rec.file, m.Envelope.Request)]; ok && m.Header.Response != 0 && request.Header.Operation == m.Header.Operation {
			digest, _, err := hdl.ParseResponse(&m)
			if m.Header.Response == hdl.Challenged {
				_, digest, err = hdl.ChallengeOf(&m)
			}
			if err != nil || digest.Code != 0 && !request.MatchesDigest(digest) {
				t.Errorf("%s: the digest is of another request, %v", place, err)
			}
			if digest.Code != 0 {
				if want := hdl.DigestFor(m.Envelope.Version); digest.Code != want {
					t.Errorf("%s: digest %d, want %d", place, digest.Code, want)
				}
				digests++
			}
		}
		switch c := m.Credential; {
		case c == nil:
		case string(c.Type) == hdl.TypeMAC && key != nil:
			if err := m.VerifyMAC(key); err != nil {
				t.Errorf("%s: %v", place, err)
			}
			macs++
		case string(c.Type) == hdl.TypeSigned && strings.HasPrefix(rec.file, "wire-"):
			if err := m.VerifySignature(public); err != nil {
				t.Errorf("%s: %v", place, err)
			}
			signatures++
		}
	}
	t.Logf("%d codes, %d signatures, %d opened, %d digests", macs, signatures, opened, digests)
	if macs < 14 || signatures < 10 || opened < 8 || digests < 40 {
		t.Errorf("%d codes, %d signatures, %d opened, %d digests: the recordings have more", macs, signatures, opened, digests)
	}
}
