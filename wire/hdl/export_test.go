package hdl

// Cipher is the form of cipher texts: CBC with an initial vector before them, or ECB.
type Cipher bool

const (
	CBC Cipher = true
	ECB Cipher = false
)

func (c Cipher) Encrypt(a Algorithm, key, iv, clear []byte) ([]byte, error) {
	out, err := encryptECB(a, key, clear)
	if c == CBC {
		out, err = encryptCBC(a, key, iv, clear)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (c Cipher) Decrypt(a Algorithm, key, b []byte) ([]byte, error) {
	out, err := decryptECB(a, key, b)
	if c == CBC {
		out, err = decryptCBC(a, key, b)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}
