package logverifier

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
)

// The vectors of the reference implementation of Certificate Transparency, as
// https://github.com/transparency-dev/merkle (proof/verify_test.go) and https://github.com/google/certificate-transparency have them.
var (
	vectorLeaves = []string{"", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"}
	vectorRoots  = []string{
		"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
		"fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
		"aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
		"d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
		"4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
		"76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
		"ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
		"5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
	}
	vectorPaths = []struct {
		leaf, size uint64
		path       []string
	}{
		{0, 1, nil},
		{0, 8, []string{"96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7", "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e", "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"}},
		{5, 8, []string{"bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b", "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0", "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"}},
		{2, 3, []string{"fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"}},
		{1, 5, []string{"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d", "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e", "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"}},
	}
	vectorGrowth = []struct {
		first, second uint64
		proof         []string
	}{
		{1, 1, nil},
		{1, 8, []string{"96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7", "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e", "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"}},
		{6, 8, []string{"0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a", "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0", "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"}},
		{2, 5, []string{"5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e", "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"}},
		{6, 7, []string{"0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a", "b08693ec2e721597130641e8211e7eedccb4c26413963eee6c1e2ed16ffb1a5f", "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"}},
	}
)

func fromHex(t *testing.T, list ...string) (out []Hash) {
	t.Helper()
	for _, text := range list {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, Hash(b))
	}
	return out
}

func vectorHashes(t *testing.T) (leaves, roots []Hash) {
	t.Helper()
	for _, text := range vectorLeaves {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, LeafHash(b))
	}
	return leaves, fromHex(t, vectorRoots...)
}

func TestTreeVectors(t *testing.T) {
	leaves, roots := vectorHashes(t)
	if empty := Root(nil); hex.EncodeToString(empty[:]) != "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" {
		t.Errorf("the root of nothing is %x", empty)
	}
	for i, want := range roots {
		if got := Root(leaves[:i+1]); got != want {
			t.Errorf("root of %d leaves: %x, want %x", i+1, got, want)
		}
	}
	for _, v := range vectorPaths {
		path := fromHex(t, v.path...)
		if got := Path(int(v.leaf), leaves[:v.size]); !slices.Equal(got, path) {
			t.Errorf("path of leaf %d of %d: %x", v.leaf, v.size, got)
		}
		check := func(leaf, size uint64, path []Hash) error {
			return CheckInclusion(leaf, size, leaves[v.leaf], path, roots[v.size-1])
		}
		if err := check(v.leaf, v.size, path); err != nil {
			t.Errorf("leaf %d of %d: %v", v.leaf, v.size, err)
		}
		for name, err := range map[string]error{
			"another leaf":      check(v.leaf+1, v.size, path),
			"another size":      check(v.leaf, v.size*2, path),
			"no such leaf":      check(v.size, v.size, path),
			"one hash too many": check(v.leaf, v.size, append(slices.Clone(path), leaves[0])),
		} {
			if err == nil {
				t.Errorf("leaf %d of %d: %s is accepted", v.leaf, v.size, name)
			}
		}
		for i := range path {
			other := slices.Clone(path)
			other[i][7] ^= 1
			if check(v.leaf, v.size, other) == nil || check(v.leaf, v.size, slices.Delete(slices.Clone(path), i, i+1)) == nil {
				t.Errorf("leaf %d of %d: another path is accepted", v.leaf, v.size)
			}
		}
	}
}

func TestGrowthVectors(t *testing.T) {
	leaves, roots := vectorHashes(t)
	for _, v := range vectorGrowth {
		proof := fromHex(t, v.proof...)
		if got := Growth(int(v.first), leaves[:v.second]); !slices.Equal(got, proof) {
			t.Errorf("from %d to %d: %x", v.first, v.second, got)
		}
		before, after := roots[v.first-1], roots[v.second-1]
		if err := CheckGrowth(v.first, v.second, proof, before, after); err != nil {
			t.Errorf("from %d to %d: %v", v.first, v.second, err)
		}
		if CheckGrowth(v.first, v.second, append(slices.Clone(proof), before), before, after) == nil || v.first != v.second && CheckGrowth(v.first, v.second, proof, after, before) == nil {
			t.Errorf("from %d to %d: another proof is accepted", v.first, v.second)
		}
		for i := range proof {
			other := slices.Clone(proof)
			other[i][7] ^= 1
			if CheckGrowth(v.first, v.second, other, before, after) == nil || CheckGrowth(v.first, v.second, slices.Delete(slices.Clone(proof), i, i+1), before, after) == nil {
				t.Errorf("from %d to %d: another proof is accepted", v.first, v.second)
			}
		}
	}
}

// The note and the key of the documentation of golang.org/x/mod/sumdb/note.
func TestNoteVector(t *testing.T) {
	key, err := ParseKey("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
	if err != nil {
		t.Fatal(err)
	}
	const text = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
	sig, err := base64.StdEncoding.DecodeString("x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=")
	if err != nil {
		t.Fatal(err)
	}
	if id := key.id(key.Name); string(id[:]) != string(sig[:4]) {
		t.Errorf("the key has the ID %x", id)
	}
	if _, ok := key.verify(text, sig[4:]); !ok {
		t.Error("the signature is refused")
	}
	if _, ok := key.verify(strings.ToUpper(text), sig[4:]); ok {
		t.Error("another text is accepted")
	}
}

// A co-signature over the checkpoint of the examples of C2SP (tlog-witness), made with the signer of
// github.com/transparency-dev/formats v0.1.1.
func TestCosignatureVector(t *testing.T) {
	key, err := ParseKey("PeterNeumann+18b9780b+BBpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
	if err != nil {
		t.Fatal(err)
	}
	const text = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
	sig, err := base64.StdEncoding.DecodeString("GLl4CwAAAABq/RlGcBxdP3Sql3ssJ404d3otT4xjXmTuoWLXZxzlRXn7jLLZKlFX7lNRxI4piy1/KK93hX4ipEjUte0jdgOw3ktYBA==")
	if err != nil {
		t.Fatal(err)
	}
	if seconds, ok := key.verify(text, sig[4:]); !ok || seconds != 0x6afd1946 {
		t.Errorf("the co-signature is refused, or of %d", seconds)
	}
	sig[11]++
	if _, ok := key.verify(text, sig[4:]); ok {
		t.Error("another time is accepted")
	}
	if c, err := ParseCheckpoint(text); err != nil || c.Size != 20852163 {
		t.Errorf("%+v (%v)", c, err)
	}
}
