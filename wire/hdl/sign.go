package hdl

import (
	"crypto"
	"crypto/dsa" //lint:ignore SA1019 administrators of handles have DSA keys, and no other package reads them
	"crypto/rsa"
	"encoding/asn1"
	"io"
	"math/big"
)

// hashName returns the name of a hash function as the reference writes it.
func hashName(c DigestCode) string {
	return [...]string{MD5: "MD5", SHA1: "SHA1", SHA256: "SHA-256"}[c]
}

// hashNamed returns the hash function of a name, in all spellings that clients use, or a code octet. 0: unknown.
func hashNamed(name []byte) DigestCode {
	switch string(name) {
	case "MD5", "\x01":
		return MD5
	case "SHA1", "SHA-1", "\x02":
		return SHA1
	case "SHA256", "SHA-256", "\x03":
		return SHA256
	}
	return 0
}

// signatureHash returns the hash function of signatures in version v.
func signatureHash(v Version, isDSA bool) DigestCode {
	if v.Before(7) || isDSA && v.Before(11) {
		return SHA1
	}
	return SHA256
}

var cryptoHashes = [...]crypto.Hash{MD5: crypto.MD5, SHA1: crypto.SHA1, SHA256: crypto.SHA256}

// sum hashes parts.
func (c DigestCode) sum(parts [][]byte) []byte {
	h := c.hash()()
	for _, b := range parts {
		_, _ = h.Write(b)
	}
	return h.Sum(nil)
}

// dsaSignature is the form of DSA signatures.
type dsaSignature struct{ R, S *big.Int }

// sign returns the signature of the parts.
func (k *PrivateKey) sign(code DigestCode, random io.Reader, parts ...[]byte) ([]byte, error) {
	public := k.Public()
	if err := public.check(); err != nil {
		return nil, err
	}
	sum := code.sum(parts)
	if k.RSA != nil {
		// No random octets: signatures of PKCS #1 v1.5 need none.
		signature, err := rsa.SignPKCS1v15(nil, k.RSA, cryptoHashes[code], sum)
		if err != nil {
			return nil, errorf(ServerError, "", "{cause}", err)
		}
		return signature, nil
	}
	r, s, err := dsa.Sign(random, k.DSA, truncated(sum, k.DSA.Q))
	if err != nil {
		return nil, errorf(ServerError, "", "{cause}", err)
	}
	signature, err := asn1.Marshal(dsaSignature{r, s})
	if err != nil {
		return nil, errorf(ServerError, "", "{cause}", err)
	}
	return signature, nil
}

// truncated cuts a hash to the size of a DSA key's subgroup, which crypto/dsa leaves to its callers.
func truncated(sum []byte, q *big.Int) []byte { return sum[:min(len(sum), q.BitLen()/8)] }

// maxSignature bounds signatures: that of the largest RSA key.
const maxSignature = MaxRSABits / 8

// verify checks a signature of the parts. Sizes are judged before any arithmetic.
func (k *PublicKey) verify(code DigestCode, signature []byte, parts ...[]byte) *Error {
	if err := k.check(); err != nil {
		return err
	}
	valid := false
	if len(signature) <= maxSignature {
		sum := code.sum(parts)
		if k.RSA != nil {
			valid = rsa.VerifyPKCS1v15(k.RSA, cryptoHashes[code], sum, signature) == nil
		} else {
			var s dsaSignature
			rest, err := asn1.Unmarshal(signature, &s)
			valid = err == nil && len(rest) == 0 && s.R.Sign() > 0 && s.S.Sign() > 0 && dsa.Verify(k.DSA, truncated(sum, k.DSA.Q), s.R, s.S)
		}
	}
	if !valid {
		return errorf(NotAuthenticated, "hdl.signature-wrong", "the signature is not one of this key over these octets")
	}
	return nil
}
