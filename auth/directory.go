package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
)

// Store is the part of a [stele.Store] that a Directory needs: it reads users and tokens,
// and commits when tokens were used last.
type Store interface {
	stele.Cells
	stele.Writer
}

// Directory knows all users and tokens. It reads them from the store at first use
// and keeps them in memory. It is used by many goroutines at once.
type Directory struct {
	// Age is how old the users and tokens in memory may become; 0: any age. It is for a store
	// that other processes write to. It is not changed after the first use.
	Age time.Duration

	// Grace is how much older it may become while the store can't be read, so that
	// authenticated users stay so: a server that is cut off from the store can't learn of a
	// token that was revoked. The directory waits for a slow store. Grace is not changed
	// after the first use.
	Grace time.Duration

	store Store
	now   func() time.Time

	roll    atomic.Pointer[roll]
	tried   atomic.Int64  // when the store was away last, Unix nanoseconds; 0: it is not
	epoch   atomic.Uint64 // grows with each Forget
	reading chan struct{} // holds one value while a goroutine reads

	sessions Parsed[Session]

	mu   sync.Mutex
	uses map[string]*use // by token
}

// NewDirectory returns a directory of the users and tokens in the store.
func NewDirectory(store Store, now func() time.Time) *Directory {
	return &Directory{
		store:   store,
		now:     now,
		reading: make(chan struct{}, 1),
		uses:    make(map[string]*use),
	}
}

// Forget has users and tokens read again. What was committed before Forget was called holds
// for every call after it returned.
func (d *Directory) Forget() { d.epoch.Add(1) }

// roll is all users and tokens at one time. It never changes: a new roll replaces it.
type roll struct {
	epoch  uint64
	at     time.Time
	tokens map[string]*entry
	users  map[string]*User
}

// entry is a token with its principal.
type entry struct {
	hash      [sha256.Size]byte
	refused   error // why it is not valid, whatever the time
	principal Principal
	use       *use
}

const op = "authenticate"

// Authenticate returns the principal of a credential. Unauthenticated if the credential is
// unknown, revoked or expired. Nothing tells an unknown token from a wrong secret, neither
// the text nor the time that it takes; only a caller with the token's secret learns what is
// wrong with it.
func (d *Directory) Authenticate(ctx context.Context, credential string) (Principal, error) {
	now := d.now()
	r, err := d.current(ctx, now)
	if err != nil {
		return Principal{}, err
	}
	c, wellFormed := parseCredential(TokenCredential, credential)
	e := r.tokens[c.id]
	known := e != nil
	if !known {
		e = &entry{} // no secret is known to have its hash
	}
	sum := sha256.Sum256(c.secret[:])
	same := subtle.ConstantTimeCompare(sum[:], e.hash[:]) == 1
	switch {
	case !wellFormed:
		return Principal{}, &stele.Error{Op: op, Kind: stele.Unauthenticated, Err: errNoCredential}
	case !known, !same:
		return Principal{}, errUnknownToken()
	}
	return e.admit(now)
}

// admit returns the principal of a token that its owner has proved to have. Unauthenticated if the token was revoked or has
// expired.
func (e *entry) admit(now time.Time) (Principal, error) {
	switch {
	case e.refused != nil:
		return Principal{}, e.refused
	case !e.principal.Expires.IsZero() && !now.Before(e.principal.Expires):
		return Principal{}, refuse(stele.Unauthenticated, "token.expired", "the token expired on {date}; ask for a new one", day(e.principal.Expires))
	}
	e.use.touch(now)
	return e.principal, nil
}

// AuthenticateHeader returns the principal of the values of an Authorization header: the
// public if there is none. See [Bearer].
func (d *Directory) AuthenticateHeader(ctx context.Context, values []string) (Principal, error) {
	if len(values) == 0 {
		return Principal{}, nil
	}
	credential, err := Bearer(values)
	if err != nil {
		return Principal{}, err
	}
	return d.Authenticate(ctx, credential)
}

// ErrInClear refuses credentials that could be read on their way; see [IsInClear].
var ErrInClear error = &stele.Error{Op: "authenticate", Kind: stele.Forbidden,
	Err: stele.Messagef("ezid.in-clear", "credentials are accepted over https only; use the https address of this server, and revoke a token that was sent in clear")}

// IsInClear reports whether what a client sends could be read on its way: the connection comes from another machine (see
// [IsLocal]) and is not encrypted, and the public address, base, does not say that a proxy in front encrypts it. Protocols of a
// time before https ask that where they accept passwords.
func IsInClear(encrypted bool, base string, client netip.Addr, head map[string][]string) bool {
	return !encrypted && !strings.HasPrefix(base, "https://") && !IsLocal(client, head)
}

// IsLocal reports whether a request was made by a program on this machine. A proxy on this machine has the same address, and passes on
// what others send. It can be told by the headers that proxies add, whether or not the server trusts it. A proxy that adds none
// can't be told.
func IsLocal(client netip.Addr, head map[string][]string) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Server", "X-Real-Ip", "Via"} {
		if len(head[name]) > 0 {
			return false
		}
	}
	return client.IsLoopback()
}

// Bearer returns the credential in the values of an Authorization header (RFC 6750,
// section 2.1). Unauthenticated if there is none.
func Bearer(values []string) (credential string, err error) {
	if len(values) != 1 {
		return "", refuse(stele.Unauthenticated, "token.several-authorization-headers", "there are {count} Authorization headers; send one", len(values))
	}
	scheme, credential, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", refuse(stele.Unauthenticated, "token.not-bearer", "tokens are sent as Authorization: Bearer, and in no other way")
	}
	return strings.Trim(credential, " "), nil
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

func refuse(kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: op, Kind: kind, Err: stele.Messagef(code, text, args...)}
}

// tell makes sure that an error of the store is a [stele.Error].
func tell(err error) error {
	if _, ok := errors.AsType[*stele.Error](err); ok {
		return err
	}
	kind := stele.Internal
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		kind = stele.Unavailable
	}
	return &stele.Error{Op: op, Kind: kind, Err: err}
}
