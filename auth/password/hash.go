package password

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/limit"
)

// Cost is what argon2id needs for one hash (RFC 9106, section 3.1).
type Cost struct {
	Memory uint32 // in KiB
	Passes uint32
	Lanes  uint8
}

// Usual is the cost of new hashes: 19 MiB, 2 passes and 1 lane, as OWASP recommends where memory is short.
func Usual() Cost { return Cost{Memory: 19 << 10, Passes: 2, Lanes: 1} }

// Bounds of stored hashes: a store that was tampered with can't make a server use all its memory.
const (
	maxMemory = 256 << 10
	maxPasses = 16
	maxLanes  = 16
	saltSize  = 16
	hashSize  = 32
)

// Bounds of waiting for a hash.
const (
	maxWaiting = 32
	maxWait    = 5 * time.Second
)

// Hasher hashes passwords, a few at a time: each takes a core and 19 MiB for a while, and a crowd of sign-ins must
// not take those of the resolver. It is used by many goroutines at once.
type Hasher struct {
	cost  Cost
	turns *limit.Turns
	rand  io.Reader
}

// NewHasher returns a Hasher that computes so many hashes at the same time, with salts from a
// source of random bits.
func NewHasher(most int, cost Cost, random io.Reader) *Hasher {
	return &Hasher{cost: cost, turns: limit.NewTurns(most, maxWaiting, maxWait), rand: random}
}

// Hash returns the hash of a password that was prepared, with salt and cost, as a PHC string.
// The error has Kind Unavailable if too many callers wait.
func (h *Hasher) Hash(ctx context.Context, prepared string) (string, error) {
	p := phc{cost: h.cost, salt: make([]byte, saltSize)}
	if _, err := io.ReadFull(h.rand, p.salt); err != nil {
		return "", refuse(stele.Unavailable, "token.no-random-bits", "no random bits: {cause}", err)
	}
	var err error
	p.hash, err = h.compute(ctx, prepared, p)
	return p.String(), err
}

// Verify reports whether a password is the one of a hash, and whether the hash should be made anew, since its cost is
// not the present one. A hash that can't be read, such as that of a user who is not there, takes as long
// as another.
func (h *Hasher) Verify(ctx context.Context, prepared, hash string) (ok, outdated bool, err error) {
	p, known := parsePHC(hash)
	if !known {
		p = phc{cost: h.cost, salt: make([]byte, saltSize), hash: make([]byte, hashSize)}
	}
	sum, err := h.compute(ctx, prepared, p)
	if err != nil {
		return false, false, err
	}
	same := subtle.ConstantTimeCompare(sum, p.hash) == 1
	return same && known, p.cost != h.cost, nil
}

// compute computes a hash when it is the caller's turn.
func (h *Hasher) compute(ctx context.Context, prepared string, p phc) ([]byte, error) {
	leave, err := h.turns.Enter(ctx)
	if refusal, ok := errors.AsType[*limit.Refusal](err); ok {
		return nil, &stele.Error{Op: op, Kind: stele.Unavailable, Err: &limit.Refusal{Kind: refusal.Kind, After: refusal.After,
			Message: stele.Messagef("password.busy", "too many users sign in by a password at this moment; try again in a few seconds")}}
	} else if err != nil {
		return nil, stele.AsError(op, err)
	}
	defer leave()
	return argon2.IDKey([]byte(prepared), p.salt, p.cost.Passes, p.cost.Memory, p.cost.Lanes, hashSize), nil
}

// phc is a hash with its salt and cost, in the string format of the Password Hashing Competition.
type phc struct {
	cost       Cost
	salt, hash []byte
}

func (p phc) String() string {
	b := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, p.cost.Memory, p.cost.Passes, p.cost.Lanes, b.EncodeToString(p.salt), b.EncodeToString(p.hash))
}

// parsePHC reads a hash; ok is false if it is not one that this program could have written.
func parsePHC(text string) (p phc, ok bool) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != "v="+strconv.Itoa(argon2.Version) {
		return phc{}, false
	}
	costs := strings.Split(parts[3], ",")
	if len(costs) != 3 {
		return phc{}, false
	}
	var numbers [3]uint64
	for i, bound := range []struct {
		mark string
		most uint64
	}{{"m=", maxMemory}, {"t=", maxPasses}, {"p=", maxLanes}} {
		digits, marked := strings.CutPrefix(costs[i], bound.mark)
		n, err := strconv.ParseUint(digits, 10, 32)
		if !marked || err != nil || n == 0 || n > bound.most {
			return phc{}, false
		}
		numbers[i] = n
	}
	p.cost = Cost{Memory: uint32(numbers[0]), Passes: uint32(numbers[1]), Lanes: uint8(numbers[2])}
	var err error
	if p.salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil || len(p.salt) != saltSize {
		return phc{}, false
	}
	if p.hash, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil || len(p.hash) != hashSize {
		return phc{}, false
	}
	return p, true
}

const op = "check password"

func refuse(kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: op, Kind: kind, Err: stele.Messagef(code, text, args...)}
}
