package hdl_test

import (
	"bytes"
	"crypto/dsa" //lint:ignore SA1019 administrators of handles have DSA keys, and no other package reads them
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/stele-id/stele/wire/hdl"
)

// signed makes a message of a header and a body that are given together.
func signed(t testing.TB, e hdl.Envelope, headerBody []byte) hdl.Message {
	t.Helper()
	e.Length = uint32(len(headerBody) + 4)
	m, err := hdl.Parse(append(append(e.Append(nil), headerBody...), 0, 0, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func privateKey(t testing.TB, name string) *hdl.PrivateKey {
	t.Helper()
	k, err := hdl.ParseKeyFile(vectors(t, "encodings.txt")[name], nil)
	if err != nil {
		t.Fatal(err)
	}
	return &k
}

func publicKey(t testing.TB, name string) *hdl.PublicKey {
	t.Helper()
	k, err := hdl.ParsePublicKey(vectors(t, "encodings.txt")[name])
	if err != nil {
		t.Fatal(err)
	}
	return &k
}

// code returns the code of an Error, and "" for nil.
func code(err error) string {
	var e *hdl.Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

var (
	v20  = hdl.Version{Major: 2, Minor: 0}
	v25  = hdl.Version{Major: 2, Minor: 5}
	v27  = hdl.Version{Major: 2, Minor: 7}
	v211 = hdl.Version{Major: 2, Minor: 11}
)

// TestAnswers compares digests and answers with those of the reference library.
func TestAnswers(t *testing.T) {
	v := vectors(t, "auth.txt")
	request := signed(t, hdl.Envelope{Version: v211}, v["request"])
	for code, name := range map[hdl.DigestCode]string{hdl.MD5: "md5", hdl.SHA1: "sha1", hdl.SHA256: "sha256"} {
		if got := hdl.RequestDigest(code, &request); !bytes.Equal(got.Sum, v["request_digest_"+name]) || len(got.Sum) == 0 || !request.MatchesDigest(got) {
			t.Errorf("digest %s: %x", name, got.Sum)
		}
	}
	nonce, secret, digest := v["nonce"], v["secret"], hdl.RequestDigest(hdl.SHA256, &request)
	for _, name := range []string{"01", "02", "03", "12", "13", "22_salt_a0.._10000_160"} {
		answer := v["seckey_answer_code_"+name]
		if err := hdl.VerifySecretAnswer(v211, answer, secret, nonce, digest.Sum); err != nil || len(answer) == 0 {
			t.Errorf("answer %s: %v", name, err)
		}
		for what, err := range map[string]error{
			"another secret": hdl.VerifySecretAnswer(v211, answer, []byte("another"), nonce, digest.Sum),
			"another nonce":  hdl.VerifySecretAnswer(v211, answer, secret, nonce[1:], digest.Sum),
			"cut":            hdl.VerifySecretAnswer(v211, answer[:len(answer)-1], secret, nonce, digest.Sum),
			"code only":      hdl.VerifySecretAnswer(v211, answer[:1], secret, nonce, digest.Sum),
			"nothing":        hdl.VerifySecretAnswer(v211, nil, secret, nonce, digest.Sum),
			"unknown code":   hdl.VerifySecretAnswer(v211, []byte{0x77, 1}, secret, nonce, digest.Sum),
		} {
			if err == nil {
				t.Errorf("answer %s: %s is accepted", name, what)
			}
		}
	}
	salt := unhex(t, "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf")
	for version, name := range map[hdl.Version]string{v211: "seckey_answer_code_22_salt_a0.._10000_160", v25: "seckey_answer_code_02"} {
		if got, err := hdl.AnswerBySecret(version, secret, nonce, digest, salt); err != nil || !bytes.Equal(got, v[name]) {
			t.Errorf("%v: %x, %v", version, got, err)
		}
	}
	old := hdl.RequestDigest(hdl.MD5, &request)
	if got, err := hdl.AnswerBySecret(v20, secret, nonce, old, nil); err != nil || !bytes.Equal(got, v["seckey_answer_2.0"]) || hdl.VerifySecretAnswer(v20, got, secret, nonce, old.Sum) != nil {
		t.Errorf("2.0: %x, %v", got, err)
	}
	if err := hdl.VerifySecretAnswer(v211, v["seckey_answer_2.0"], secret, nonce, old.Sum); err == nil {
		t.Error("a 2.11 client answers with the MD5 of 2.0")
	}
	if got := hdl.HashedSecret(secret); !bytes.Equal(got, v["hashed_secret"]) {
		t.Errorf("hashed secret %s", got)
	}
}

// TestKeyAnswers compares answers by keys: RSA exactly, DSA by verifying.
func TestKeyAnswers(t *testing.T) {
	v := vectors(t, "auth.txt")
	request := signed(t, hdl.Envelope{Version: v211}, v["request"])
	// An answer with SHA-1 is to a challenge that has a digest with SHA-1.
	nonce, digest := v["nonce"], hdl.RequestDigest(hdl.SHA256, &request)
	digests := map[bool]hdl.Digest{true: hdl.RequestDigest(hdl.SHA1, &request), false: digest}
	admin := privateKey(t, "privkey_file_rsa")
	for version, name := range map[hdl.Version]string{v25: "pubkey_answer_SHA1withRSA", v211: "pubkey_answer_SHA256withRSA"} {
		if got, err := hdl.AnswerByKey(version, admin, nonce, digests[version == v25], nil); err != nil || !bytes.Equal(got, v[name]) {
			t.Errorf("%s: %x, %v", name, got, err)
		}
	}
	rsaKey, dsaKey := publicKey(t, "hs_pubkey_rsa"), publicKey(t, "hs_pubkey_dsa")
	for name, key := range map[string]*hdl.PublicKey{"SHA1withRSA": rsaKey, "SHA256withRSA": rsaKey, "SHA1withDSA": dsaKey, "SHA256withDSA": dsaKey} {
		answer, digest := v["pubkey_answer_"+name], digests[strings.HasPrefix(name, "SHA1")]
		if err := hdl.VerifyKeyAnswer(key, answer, nonce, digest.Sum); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := hdl.VerifyKeyAnswer(key, answer, nonce[1:], digest.Sum); code(err) != "hdl.signature-wrong" {
			t.Errorf("%s with another nonce: %v", name, err)
		}
		for n := range answer {
			if hdl.VerifyKeyAnswer(key, answer[:n], nonce, digest.Sum) == nil {
				t.Errorf("%s: %d octets are accepted", name, n)
			}
		}
	}
	private := privateKey(t, "privkey_file_dsa")
	for _, version := range []hdl.Version{v25, v27, v211} {
		answer, err := hdl.AnswerByKey(version, private, nonce, digest, rand.Reader)
		if err != nil || hdl.VerifyKeyAnswer(dsaKey, answer, nonce, digest.Sum) != nil {
			t.Errorf("DSA in %v: %x, %v", version, answer, err)
		}
		if sha1 := bytes.Contains(answer[:8], []byte("SHA1")); sha1 != version.Before(11) {
			t.Errorf("DSA in %v: %q", version, answer[:11])
		}
	}
	message := signed(t, hdl.Envelope{Version: v211}, v["verify_challenge_request_header_and_body"])
	body, err := hdl.ParseRequest(&message)
	q, ok := body.(*hdl.VerifyRequest)
	if err != nil || !ok || q.Identity != (hdl.Reference{Handle: "20.500.99999/USER01", Index: 300}) ||
		hdl.VerifySecretAnswer(v211, q.Answer, v["secret"], q.Nonce, q.Digest) != nil {
		t.Errorf("VERIFY: %+v, %v", body, err)
	}
}

// TestAnswerBounds: an answer does not make the server work for long.
func TestAnswerBounds(t *testing.T) {
	ask := func(iterations, bits uint32) error {
		b := append([]byte{0x22}, 0, 0, 0, 1, 's')
		for _, n := range []uint32{iterations, bits, 1} {
			b = append(b, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
		}
		return hdl.VerifySecretAnswer(v211, append(b, 'x'), []byte("secret"), nil, nil)
	}
	for _, c := range []struct {
		iterations, bits uint32
		want             string
	}{
		{hdl.MaxAnswerRounds, 160, "hdl.answer-wrong"},
		{hdl.MaxAnswerRounds + 1, 160, "hdl.answer-derivation"},
		{hdl.MaxAnswerRounds / 2, 320, "hdl.answer-wrong"},
		{hdl.MaxAnswerRounds, 168, "hdl.answer-derivation"},
		{1 << 31, 160, "hdl.answer-derivation"}, {1<<32 - 1, 1<<32 - 1, "hdl.answer-derivation"},
		{0, 160, "hdl.answer-derivation"}, {1, 0, "hdl.answer-derivation"}, {1, 1 << 31, "hdl.answer-derivation"}, {1, 7, "hdl.answer-derivation"},
	} {
		if got := code(ask(c.iterations, c.bits)); got != c.want {
			t.Errorf("%d iterations, %d bits: %s", c.iterations, c.bits, got)
		}
	}
}

// TestKeys reads keys of the reference library and writes them again.
func TestKeys(t *testing.T) {
	v := vectors(t, "encodings.txt")
	for _, name := range []string{"hs_pubkey_rsa", "hs_pubkey_dsa", "srv_pubkey"} {
		if got := publicKey(t, name).Append(nil); !bytes.Equal(got, v[name]) {
			t.Errorf("%s: %x", name, got)
		}
	}
	for private, public := range map[string]string{"privkey_file_rsa": "hs_pubkey_rsa", "privkey_file_dsa": "hs_pubkey_dsa", "srv_privkey_file": "srv_pubkey"} {
		k := privateKey(t, private)
		if got := hdl.AppendKeyFile(nil, k); !bytes.Equal(got, v[private]) {
			t.Errorf("%s: %x", private, got)
		}
		p := k.Public()
		if got := p.Append(nil); !bytes.Equal(got, v[public]) {
			t.Errorf("the public key of %s is %x", private, got)
		}
	}
	sessions := vectors(t, "sessions.txt")
	for _, name := range []string{"client_dh_pub_key", "server_dh_pub_key"} {
		k, err := hdl.ParsePublicKey(sessions[name])
		if err != nil || !bytes.Equal(k.Append(nil), sessions[name]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKeyFiles decrypts files of all methods.
func TestKeyFiles(t *testing.T) {
	v := vectors(t, "encodings.txt")
	clear := v["enc_method4_clear"]
	for _, name := range []string{"enc_method0", "enc_method2", "enc_method3", "enc_method4"} {
		if !hdl.KeyFileEncrypted(v[name]) {
			t.Errorf("%s is not encrypted", name)
		}
		if got, err := hdl.OpenKeyFile(v[name], []byte("passphrase")); err != nil || !bytes.Equal(got, clear) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if got, err := hdl.OpenKeyFile(v[name], []byte("another")); err == nil && bytes.Equal(got, clear) {
			t.Errorf("%s opens with another passphrase", name)
		}
		for n := range v[name] {
			if got, err := hdl.OpenKeyFile(v[name][:n], []byte("passphrase")); err == nil && bytes.Equal(got, clear) {
				t.Errorf("%s: %d octets are enough", name, n)
			}
		}
	}
	key := privateKey(t, "privkey_file_rsa")
	file, err := hdl.SealKeyFile(key.Append(nil), []byte("passphrase"), [32]byte{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := hdl.ParseKeyFile(file, []byte("passphrase")); err != nil || got.RSA.D.Cmp(key.RSA.D) != 0 {
		t.Errorf("a sealed file: %v", err)
	}
	slow := bytes.Clone(v["enc_method4"])
	copy(slow[24:], []byte{0x7f, 0xff, 0xff, 0xff})
	if _, err := hdl.OpenKeyFile(slow, []byte("passphrase")); code(err) != "hdl.key-file-derivation" {
		t.Errorf("2^31 iterations: %v", err)
	}
	for name, b := range map[string][]byte{"no octets": nil, "unknown method": {0, 0, 0, 9, 1}, "no key": {0, 0, 0, 1}} {
		if _, err := hdl.ParseKeyFile(b, nil); err == nil {
			t.Errorf("%s is a key file", name)
		}
	}
	lie := bytes.Clone(v["privkey_file_rsa"])
	lie[len(lie)-1] ^= 1
	if _, err := hdl.ParseKeyFile(lie, nil); code(err) != "hdl.private-key-numbers" {
		t.Errorf("a wrong qi: %v", err)
	}
}

// TestWeakKeys: keys that are read, and prove nothing.
func TestWeakKeys(t *testing.T) {
	good := publicKey(t, "hs_pubkey_dsa").DSA
	change := func(f func(*dsa.PublicKey)) hdl.PublicKey {
		k := *good
		f(&k)
		return hdl.PublicKey{DSA: &k}
	}
	one := big.NewInt(1)
	odd := func(bits uint) *big.Int { return new(big.Int).SetBit(one, int(bits)-1, 1) }
	dh, _ := hdl.ParsePublicKey(vectors(t, "sessions.txt")["client_dh_pub_key"])
	for name, c := range map[string]struct {
		key  hdl.PublicKey
		want string
	}{
		"RSA of 512 bits":    {hdl.PublicKey{RSA: &rsa.PublicKey{N: odd(512), E: 3}}, "hdl.rsa-size"},
		"RSA of 16384 bits":  {hdl.PublicKey{RSA: &rsa.PublicKey{N: odd(16384), E: 3}}, "hdl.rsa-size"},
		"an even modulus":    {hdl.PublicKey{RSA: &rsa.PublicKey{N: new(big.Int).Lsh(one, 1023), E: 3}}, "hdl.rsa-numbers"},
		"exponent 1":         {hdl.PublicKey{RSA: &rsa.PublicKey{N: odd(1024), E: 1}}, "hdl.rsa-numbers"},
		"DSA with g 1":       {change(func(k *dsa.PublicKey) { k.G = one }), "hdl.dsa-numbers"},
		"DSA with y 1":       {change(func(k *dsa.PublicKey) { k.Y = one }), "hdl.dsa-numbers"},
		"DSA with another q": {change(func(k *dsa.PublicKey) { k.Q = new(big.Int).Add(k.Q, big.NewInt(2)) }), "hdl.dsa-numbers"},
		"DSA of 512 bits":    {change(func(k *dsa.PublicKey) { k.P = odd(512) }), "hdl.dsa-size"},
		"a DH key":           {dh, "hdl.key-cannot-sign"},
		"no key":             {hdl.PublicKey{}, "hdl.key-cannot-sign"},
	} {
		answer := append([]byte{0, 0, 0, 4}, "SHA1\x00\x00\x00\x01x"...)
		if got := code(hdl.VerifyKeyAnswer(&c.key, answer, nil, nil)); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
	large := append([]byte{0, 0, 0, 11}, "RSA_PUB_KEY\x00\x00\x00\x00\x00\x01\x03\x00\x10\x00\x00"...)
	if _, err := hdl.ParsePublicKey(append(large, make([]byte, 1<<20)...)); code(err) != "hdl.string-too-long" {
		t.Errorf("a modulus of 1 MiB: %v", err)
	}
	if _, err := hdl.ParsePublicKey([]byte("\x00\x00\x00\x03FOO\x00\x00")); code(err) != "hdl.key-type" || !strings.Contains(err.Error(), `"FOO"`) {
		t.Errorf("an unknown type: %v", err)
	}
}
