package hdl

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/subtle"
)

// block returns the cipher with a key. An AES key of a session has 32 octets, of which the cipher uses 16.
func (a Algorithm) block(key []byte) (cipher.Block, *Error) {
	var b cipher.Block
	var err error
	switch {
	case a == DES && len(key) == 8:
		b, err = des.NewCipher(key)
	case a == TripleDES && len(key) == 24:
		b, err = des.NewTripleDESCipher(key)
	case a == AES && len(key) >= 16:
		b, err = aes.NewCipher(key[:16])
	default:
		return nil, errorf(SessionFailed, "hdl.cipher-key", "the cipher {algorithm} does not take a key of {octets} octets", uint32(a), len(key))
	}
	if err != nil {
		return nil, errorf(SessionFailed, "", "{cause}", err)
	}
	return b, nil
}

// errCipher is the one error of all cipher texts that do not decrypt: which octet was wrong would help to
// decrypt others.
func errCipher() *Error {
	return errorf(SessionFailed, "hdl.cipher-text", "the octets cannot be decrypted with this key")
}

// pad appends padding (PKCS #5).
func pad(b []byte, size int) []byte {
	n := size - len(b)%size
	for range n {
		b = append(b, byte(n))
	}
	return b
}

// unpad returns b without its padding. The time it takes does not depend on where the padding is wrong.
func unpad(b []byte, size int) ([]byte, *Error) {
	if len(b) == 0 || len(b)%size != 0 {
		return nil, errCipher()
	}
	n := int(b[len(b)-1])
	good := subtle.ConstantTimeLessOrEq(1, n) & subtle.ConstantTimeLessOrEq(n, size)
	for i := range size {
		within := subtle.ConstantTimeLessOrEq(i+1, n)
		same := subtle.ConstantTimeByteEq(b[len(b)-1-i], byte(n))
		good &= subtle.ConstantTimeSelect(within, same, 1)
	}
	if good != 1 {
		return nil, errCipher()
	}
	return b[:len(b)-n], nil
}

// encryptCBC returns iv and the cipher text.
func encryptCBC(a Algorithm, key, iv, clear []byte) ([]byte, *Error) {
	b, err := a.block(key)
	if err != nil {
		return nil, err
	}
	if len(iv) != b.BlockSize() {
		return nil, errorf(SessionFailed, "hdl.cipher-iv", "the initial vector has {octets} octets; the cipher needs {expected}", len(iv), b.BlockSize())
	}
	size := len(iv)
	out := make([]byte, size, size+len(clear)+size)
	copy(out, iv)
	out = pad(append(out, clear...), size) // iv is one block, so padding is not changed by it
	cipher.NewCBCEncrypter(b, iv).CryptBlocks(out[size:], out[size:])
	return out, nil
}

// decryptCBC decrypts iv and cipher text.
func decryptCBC(a Algorithm, key, b []byte) ([]byte, *Error) {
	c, err := a.block(key)
	if err != nil {
		return nil, err
	}
	size := c.BlockSize()
	if len(b) < 2*size || len(b)%size != 0 {
		return nil, errCipher()
	}
	out := make([]byte, len(b)-size)
	cipher.NewCBCDecrypter(c, b[:size]).CryptBlocks(out, b[size:])
	return unpad(out, size)
}

// encryptECB encrypts block by block, as messages before 2.4 are and the oldest key files. It hides little.
func encryptECB(a Algorithm, key, clear []byte) ([]byte, *Error) {
	c, err := a.block(key)
	if err != nil {
		return nil, err
	}
	size := c.BlockSize()
	out := pad(append(make([]byte, 0, len(clear)+size), clear...), size)
	for at := 0; at < len(out); at += size {
		c.Encrypt(out[at:], out[at:])
	}
	return out, nil
}

func decryptECB(a Algorithm, key, b []byte) ([]byte, *Error) {
	c, err := a.block(key)
	if err != nil {
		return nil, err
	}
	size := c.BlockSize()
	if len(b) == 0 || len(b)%size != 0 {
		return nil, errCipher()
	}
	out := make([]byte, len(b))
	for at := 0; at < len(b); at += size {
		c.Decrypt(out[at:], b[at:])
	}
	return unpad(out, size)
}
