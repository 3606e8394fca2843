package hdl

import (
	"crypto/md5"
	"crypto/pbkdf2"
	"crypto/sha1"
)

// The methods by which a file of a private key is encrypted.
const (
	keyFileDESECB = 0 // first 8 octets of MD5(passphrase)
	keyFileClear  = 1
	keyFileDESCBC = 2
	keyFile3DES   = 3 // PBKDF2
	keyFileAES    = 4 // PBKDF2
)

// MaxFileIterations bounds the rounds of PBKDF2 of a key file: 100 times what the reference writes, and
// less than a second.
const MaxFileIterations = 1_000_000

// KeyFileEncrypted reports whether a key file needs a passphrase.
func KeyFileEncrypted(b []byte) bool {
	r := newReader("key file", InvalidValue, b)
	return r.u32("method") != keyFileClear && r.err == nil
}

// ParseKeyFile reads the file of a private key. A file in clear needs no passphrase.
func ParseKeyFile(b, passphrase []byte) (PrivateKey, error) {
	clear, err := OpenKeyFile(b, passphrase)
	if err != nil {
		return PrivateKey{}, err
	}
	return ParsePrivateKey(clear)
}

// AppendKeyFile appends the file of a private key, in clear.
func AppendKeyFile(dst []byte, k *PrivateKey) []byte {
	return k.Append(appendU32(dst, keyFileClear))
}

// OpenKeyFile returns the clear text of a key file.
func OpenKeyFile(b, passphrase []byte) ([]byte, error) {
	r := newReader("key file", InvalidValue, b)
	method := r.u32("method")
	if r.err != nil {
		return nil, r.err
	}
	var out []byte
	var err *Error
	sum := md5.Sum(passphrase)
	switch method {
	case keyFileClear:
		return r.rest(), nil
	case keyFileDESECB:
		out, err = decryptECB(DES, sum[:8], r.rest())
	case keyFileDESCBC:
		out, err = decryptCBC(DES, sum[:8], r.rest())
	case keyFile3DES:
		out, err = openDerived(&r, TripleDES, 192, passphrase)
	case keyFileAES:
		out, err = openDerived(&r, AES, 128, passphrase)
	default:
		return nil, errorf(InvalidValue, "hdl.key-file-method", "the key file is encrypted by method {method}; 0 to 4 are known", method)
	}
	if r.err != nil {
		return nil, r.err
	}
	if err != nil {
		return nil, errorf(InvalidValue, "hdl.key-file-passphrase", "the key file cannot be decrypted; check the passphrase")
	}
	return out, nil
}

// openDerived decrypts what follows the method where the key is derived by PBKDF2: salt, iterations, bits
// of the key, initial vector, cipher text.
func openDerived(r *reader, a Algorithm, bits uint32, passphrase []byte) ([]byte, *Error) {
	salt, iterations, said := r.limited("salt", maxSalt, InvalidValue), r.u32("iterations"), r.u32("key bits")
	iv, text := r.limited("initial vector", 16, InvalidValue), r.str("cipher text")
	if err := r.end(); err != nil {
		return nil, r.err
	}
	if iterations == 0 || iterations > MaxFileIterations || said != bits {
		r.fail(InvalidValue, "hdl.key-file-derivation", "the key file says {iterations} iterations and a key of {bits} bits; up to {most} and {expected} are allowed", iterations, said, MaxFileIterations, bits)
		return nil, r.err
	}
	key, err := pbkdf2.Key(sha1.New, string(passphrase), salt, int(iterations), int(bits/8))
	if err != nil {
		return nil, errorf(InvalidValue, "", "{cause}", err)
	}
	return decryptCBC(a, key, append(iv[:len(iv):len(iv)], text...))
}

// fileIterations is what the reference writes.
const fileIterations = 10_000

// SealKeyFile returns a key file, encrypted by method 4: AES, and a key that PBKDF2 derives. random is 32
// octets that are used once: salt and initial vector.
func SealKeyFile(clear, passphrase []byte, random [32]byte) ([]byte, error) {
	salt, iv := random[:16], random[16:]
	key, err := pbkdf2.Key(sha1.New, string(passphrase), salt, fileIterations, 16)
	if err != nil {
		return nil, errorf(InvalidValue, "", "{cause}", err)
	}
	text, failed := encryptCBC(AES, key, iv, clear)
	if failed != nil {
		return nil, failed
	}
	dst := appendStr(appendU32(nil, keyFileAES), salt)
	dst = appendU32(appendU32(dst, fileIterations), 128)
	dst = appendStr(dst, iv)
	return appendStr(dst, text[len(iv):]), nil
}
