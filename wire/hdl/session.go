package hdl

// Algorithm is the cipher of a session.
type Algorithm uint32

// The ciphers.
const (
	DES       Algorithm = 1
	TripleDES Algorithm = 2
	AES       Algorithm = 3
)
