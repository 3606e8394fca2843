package hdl

import (
	"crypto/dsa" //lint:ignore SA1019 administrators of handles have DSA keys, and no other package reads them
	"crypto/rsa"
	"math/big"
)

// Bounds of keys. Octets are counted before a number is made of them. A key below the least size is read,
// so that it can be shown and replaced, and is refused where it would prove something.
const (
	MinRSABits = 1024 // crypto/rsa refuses less
	MaxRSABits = 8192
	MinDSABits = 1024
	MaxDSABits = 3072
	MinDHBits  = 1024 // what all clients in use offer
	MaxDHBits  = 2048 // no client in use offers more, and anyone may ask the server for an exchange
)

// The names of keys in their encodings.
const (
	rsaPublicName  = "RSA_PUB_KEY"
	dsaPublicName  = "DSA_PUB_KEY"
	dhPublicName   = "DH_PUB_KEY"
	rsaPrivateName = "RSA_PRIVCRT_KEY"
	dsaPrivateName = "DSA_PRIV_KEY"
)

// PublicKey is the data of an HS_PUBKEY value: one of RSA, DSA and DH is there.
type PublicKey struct {
	RSA   *rsa.PublicKey
	DSA   *dsa.PublicKey
	DH    *DHKey
	Flags uint16 // 0

	bare bool // an RSA key without the four zero octets that the reference appends
}

// DHKey is a public number of Diffie and Hellman's method, and its group.
type DHKey struct{ Y, P, G *big.Int }

// number reads an integer of at most bits bits. The encoding is two's complement, so that a zero octet
// stands before a number whose top bit is set; numbers without it are read as positive.
func (r *reader) number(field string, bits int) *big.Int {
	b := r.limited(field, uint32(bits/8+1), r.code)
	n := new(big.Int).SetBytes(b)
	if r.err == nil && n.BitLen() > bits {
		r.fail(r.code, "hdl.number-too-long", "{what}: {field} has {bits} bits, and at most {most} are allowed", r.what, field, n.BitLen(), bits)
	}
	if r.err == nil && n.Sign() == 0 {
		r.fail(r.code, "hdl.number-zero", "{what}: {field} is zero", r.what, field)
	}
	return n
}

// appendNumber appends an integer with its length.
func appendNumber(dst []byte, n *big.Int) []byte {
	b := n.Bytes()
	if len(b) == 0 || b[0]&0x80 != 0 {
		dst = appendU32(dst, uint32(len(b)+1))
		return append(append(dst, 0), b...)
	}
	return appendStr(dst, b)
}

// ParsePublicKey reads the data of an HS_PUBKEY value, or the key of a session request or response.
func ParsePublicKey(b []byte) (PublicKey, error) {
	r := newReader("HS_PUBKEY", InvalidValue, b)
	name := string(r.limited("type of the key", 64, InvalidValue))
	k := PublicKey{Flags: r.u16("flags")}
	switch name {
	case rsaPublicName:
		e := r.number("exponent", 31) // crypto/rsa has no larger ones
		k.RSA = &rsa.PublicKey{N: r.number("modulus", MaxRSABits), E: int(e.Int64())}
		if k.bare = r.left() == 0; !k.bare && len(r.b)-r.at == 4 && zeros(r.b[r.at:]) {
			r.at = len(r.b)
		}
	case dsaPublicName:
		k.DSA = &dsa.PublicKey{}
		k.DSA.Q = r.number("q", 256)
		k.DSA.P = r.number("p", MaxDSABits)
		k.DSA.G = r.number("g", MaxDSABits)
		k.DSA.Y = r.number("y", MaxDSABits)
	case dhPublicName:
		k.DH = &DHKey{Y: r.number("y", MaxDHBits), P: r.number("p", MaxDHBits), G: r.number("g", MaxDHBits)}
	default:
		r.fail(InvalidValue, "hdl.key-type", "HS_PUBKEY has a key of type {type}; RSA_PUB_KEY, DSA_PUB_KEY and DH_PUB_KEY are known", quoted(name))
	}
	if err := r.end(); err != nil {
		return PublicKey{}, err
	}
	return k, nil
}

// Append appends the data.
func (k *PublicKey) Append(dst []byte) []byte {
	switch {
	case k.RSA != nil:
		dst = appendU16(appendStr(dst, rsaPublicName), k.Flags)
		dst = appendNumber(dst, big.NewInt(int64(k.RSA.E)))
		if dst = appendNumber(dst, k.RSA.N); !k.bare {
			dst = append(dst, 0, 0, 0, 0)
		}
	case k.DSA != nil:
		dst = appendU16(appendStr(dst, dsaPublicName), k.Flags)
		dst = appendNumber(dst, k.DSA.Q)
		dst = appendNumber(dst, k.DSA.P)
		dst = appendNumber(dst, k.DSA.G)
		dst = appendNumber(dst, k.DSA.Y)
	case k.DH != nil:
		dst = appendU16(appendStr(dst, dhPublicName), k.Flags)
		dst = appendNumber(dst, k.DH.Y)
		dst = appendNumber(dst, k.DH.P)
		dst = appendNumber(dst, k.DH.G)
	}
	return dst
}

// check says whether the key may prove something: its size, and that its numbers can be those of a key.
func (k *PublicKey) check() *Error {
	switch {
	case k.RSA != nil:
		if bits := k.RSA.N.BitLen(); bits < MinRSABits || bits > MaxRSABits {
			return errorf(NotAuthenticated, "hdl.rsa-size", "the RSA key has {bits} bits; it must have from {least} to {most}", bits, MinRSABits, MaxRSABits)
		}
		if k.RSA.N.Bit(0) == 0 || k.RSA.E < 3 || k.RSA.E&1 == 0 {
			return errorf(NotAuthenticated, "hdl.rsa-numbers", "the numbers of the RSA key are not those of a key")
		}
	case k.DSA != nil:
		p, q := k.DSA.P, k.DSA.Q
		if bits := p.BitLen(); bits < MinDSABits || bits > MaxDSABits || q.BitLen() != 160 && q.BitLen() != 224 && q.BitLen() != 256 {
			return errorf(NotAuthenticated, "hdl.dsa-size", "the DSA key has {bits} bits and a subgroup of {subgroup}; it must have from {least} to {most}, and 160, 224 or 256", bits, q.BitLen(), MinDSABits, MaxDSABits)
		}
		one := big.NewInt(1)
		rest := new(big.Int).Mod(new(big.Int).Sub(p, one), q)
		if rest.Sign() != 0 || !between(k.DSA.G, p) || !between(k.DSA.Y, p) {
			return errorf(NotAuthenticated, "hdl.dsa-numbers", "the numbers of the DSA key are not those of a key")
		}
	default:
		return errorf(NotAuthenticated, "hdl.key-cannot-sign", "the key is not an RSA or DSA key, and signs nothing")
	}
	return nil
}

// between reports whether n is from 2 to p-2.
func between(n, p *big.Int) bool {
	one := big.NewInt(1)
	return n.Cmp(one) > 0 && n.Cmp(new(big.Int).Sub(p, one)) < 0
}

// PrivateKey is a key of an administrator or of a server: one of RSA and DSA is there.
type PrivateKey struct {
	RSA *rsa.PrivateKey
	DSA *dsa.PrivateKey
}

// Public returns the public key.
func (k *PrivateKey) Public() PublicKey {
	switch {
	case k.RSA != nil:
		return PublicKey{RSA: &k.RSA.PublicKey}
	case k.DSA != nil:
		return PublicKey{DSA: &k.DSA.PublicKey}
	}
	return PublicKey{}
}

// ParsePrivateKey reads a private key in clear: a key file without its method (OpenKeyFile).
func ParsePrivateKey(b []byte) (PrivateKey, error) {
	r := newReader("private key", InvalidValue, b)
	switch name := string(r.limited("type of the key", 64, InvalidValue)); name {
	case rsaPrivateName:
		return parseRSAPrivate(&r)
	case dsaPrivateName:
		k := &dsa.PrivateKey{X: r.number("x", 256)}
		k.P, k.Q, k.G = r.number("p", MaxDSABits), r.number("q", 256), r.number("g", MaxDSABits)
		if err := r.end(); err != nil {
			return PrivateKey{}, err
		}
		if k.P.Bit(0) == 0 || k.X.Cmp(k.Q) >= 0 || !between(k.G, k.P) {
			return PrivateKey{}, errorf(InvalidValue, "hdl.private-key-numbers", "the numbers of the private key do not belong together")
		}
		k.Y = new(big.Int).Exp(k.G, k.X, k.P)
		key := PrivateKey{DSA: k}
		public := key.Public()
		if err := public.check(); err != nil {
			return PrivateKey{}, err
		}
		return key, nil
	default:
		r.fail(InvalidValue, "hdl.private-key-type", "the private key is of type {type}; RSA_PRIVCRT_KEY and DSA_PRIV_KEY are known", quoted(name))
		return PrivateKey{}, r.end()
	}
}

func parseRSAPrivate(r *reader) (PrivateKey, error) {
	n, e, d := r.number("modulus", MaxRSABits), r.number("exponent", 31), r.number("private exponent", MaxRSABits)
	p, q := r.number("p", MaxRSABits), r.number("q", MaxRSABits)
	dp, dq, qi := r.number("dp", MaxRSABits), r.number("dq", MaxRSABits), r.number("qi", MaxRSABits)
	if err := r.end(); err != nil {
		return PrivateKey{}, err
	}
	k := &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: n, E: int(e.Int64())}, D: d, Primes: []*big.Int{p, q}}
	key := PrivateKey{RSA: k}
	public := key.Public()
	if err := public.check(); err != nil {
		return PrivateKey{}, err
	}
	// Cheap checks before those of crypto/rsa, which assume that sizes are sane.
	if new(big.Int).Mul(p, q).Cmp(n) != 0 || d.Cmp(n) >= 0 || p.Bit(0) == 0 || q.Bit(0) == 0 || p.BitLen() < 2 || q.BitLen() < 2 {
		return PrivateKey{}, errorf(InvalidValue, "hdl.private-key-numbers", "the numbers of the private key do not belong together")
	}
	k.Precompute()
	pre := &k.Precomputed
	if k.Validate() != nil || pre.Dp == nil || pre.Dp.Cmp(dp) != 0 || pre.Dq.Cmp(dq) != 0 || pre.Qinv.Cmp(qi) != 0 {
		return PrivateKey{}, errorf(InvalidValue, "hdl.private-key-numbers", "the numbers of the private key do not belong together")
	}
	return key, nil
}

// Append appends the private key in clear, without a method.
func (k *PrivateKey) Append(dst []byte) []byte {
	switch {
	case k.RSA != nil:
		k.RSA.Precompute()
		pre := &k.RSA.Precomputed
		dst = appendStr(dst, rsaPrivateName)
		for _, n := range []*big.Int{k.RSA.N, big.NewInt(int64(k.RSA.E)), k.RSA.D, k.RSA.Primes[0], k.RSA.Primes[1], pre.Dp, pre.Dq, pre.Qinv} {
			dst = appendNumber(dst, n)
		}
	case k.DSA != nil:
		dst = appendStr(dst, dsaPrivateName)
		for _, n := range []*big.Int{k.DSA.X, k.DSA.P, k.DSA.Q, k.DSA.G} {
			dst = appendNumber(dst, n)
		}
	}
	return dst
}
