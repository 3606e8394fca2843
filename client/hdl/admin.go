package hdlclient

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/wire/hdl"
)

// Identity is by what an administrator is known in the Handle System: a value of a handle with a key or a secret.
type Identity struct {
	hdl.Reference
	Key    *hdl.PrivateKey // for a value of type HS_PUBKEY; else
	Secret []byte          // for one of type HS_SECKEY
}

// AdministratorOptions are how an administrator works.
type AdministratorOptions struct {
	// NoSession says that the administrator proves who they are for each operation, and that nothing is encrypted. Then
	// values that are not for the public are not written, and what is read of them travels in clear.
	NoSession bool

	Trace func(Step) // is told every step; may be nil
}

// Administrator changes handles. It sets up a session with each server that it works with, and proves there who it is.
// It is used by many goroutines at once.
type Administrator struct {
	c   *Client
	who Identity
	o   AdministratorOptions

	mu       sync.Mutex
	sessions map[string]*opened // by server
	sites    map[string]*server // that was asked for its site, by name
}

// opened is a session that is being set up, or is.
type opened struct {
	once    chan struct{} // has one element while no goroutine works on it
	session *session
	server  *server
}

// As returns an administrator.
func (c *Client) As(who Identity, o AdministratorOptions) (*Administrator, error) {
	if err := checkHandle(who.Handle); err != nil {
		return nil, err
	}
	if (who.Key == nil) == (len(who.Secret) == 0) {
		return nil, refuse(stele.Invalid, "hdlclient.identity-without-key", "an administrator has either a private key or a secret")
	}
	return &Administrator{c: c, who: who, o: o, sessions: make(map[string]*opened), sites: make(map[string]*server)}, nil
}

// CreateOptions are how a handle is created.
type CreateOptions struct {
	Overwrite bool // a handle that is there is replaced
	Mint      bool // the server appends a new suffix to the name
}

// Create creates a handle, and returns its name.
func (a *Administrator) Create(ctx context.Context, handle string, values []hdl.Value, o CreateOptions) (string, error) {
	r := &request{operation: hdl.CreateHandle, handle: handle, write: true, body: &hdl.ValuesBody{Handle: []byte(handle), Values: values}, seal: restricted(values)}
	if o.Overwrite {
		r.flags |= hdl.Overwrite
	}
	if o.Mint {
		r.flags |= hdl.MintSuffix
	}
	got, err := a.do(ctx, handle, r)
	if err != nil {
		return "", err
	}
	if body, ok := got.body.(*hdl.HandleBody); ok {
		return string(body.Handle), nil
	}
	return handle, nil // servers of version 7 do not say the name
}

// Add adds values to a handle. With overwrite, it replaces values that have the same index.
func (a *Administrator) Add(ctx context.Context, handle string, values []hdl.Value, overwrite bool) error {
	r := &request{operation: hdl.AddValue, handle: handle, write: true, body: &hdl.ValuesBody{Handle: []byte(handle), Values: values}, seal: restricted(values)}
	if overwrite {
		r.flags |= hdl.Overwrite
	}
	_, err := a.do(ctx, handle, r)
	return err
}

// Modify replaces values of a handle, by their indexes.
func (a *Administrator) Modify(ctx context.Context, handle string, values []hdl.Value) error {
	_, err := a.do(ctx, handle, &request{operation: hdl.ModifyValue, handle: handle, write: true,
		body: &hdl.ValuesBody{Handle: []byte(handle), Values: values}, seal: restricted(values)})
	return err
}

// Remove removes values of a handle.
func (a *Administrator) Remove(ctx context.Context, handle string, indexes ...uint32) error {
	_, err := a.do(ctx, handle, &request{operation: hdl.RemoveValue, handle: handle, write: true, body: &hdl.RemoveRequest{Handle: []byte(handle), Indexes: indexes}})
	return err
}

// Delete deletes a handle.
func (a *Administrator) Delete(ctx context.Context, handle string) error {
	_, err := a.do(ctx, handle, &request{operation: hdl.DeleteHandle, handle: handle, write: true, body: &hdl.HandleBody{Handle: []byte(handle)}})
	return err
}

// Resolve returns the values of a handle, with those that are for administrators only.
func (a *Administrator) Resolve(ctx context.Context, q Query) (Answer, error) {
	r := &request{operation: hdl.Resolve, handle: q.Handle, body: &hdl.ResolveRequest{Handle: []byte(q.Handle), Indexes: q.Indexes, Types: octets(q.Types)}}
	if !a.o.NoSession {
		r.flags |= hdl.Encrypt
	}
	w := a.walk(q.Trace)
	got, err := a.doIn(ctx, w, q.Handle, r)
	if err != nil {
		return Answer{}, err
	}
	return w.answer(q.Handle, got)
}

// Home makes the primary site of a prefix serve the prefix.
func (a *Administrator) Home(ctx context.Context, prefix string) error {
	return a.prefix(ctx, hdl.HomePrefix, prefix)
}

// Unhome ends that.
func (a *Administrator) Unhome(ctx context.Context, prefix string) error {
	return a.prefix(ctx, hdl.UnhomePrefix, prefix)
}

func (a *Administrator) prefix(ctx context.Context, op hdl.Operation, prefix string) error {
	name := prefixHandle(prefix)
	if err := checkHandle(name); err != nil {
		return err
	}
	w := a.walk(nil)
	return a.everywhere(ctx, w, inPrefix(prefix), func(s *server) (*reply, error) {
		return a.at(ctx, w, s, &request{operation: op, handle: name, admin: true, write: true, body: &hdl.HandleBody{Handle: []byte(name)}})
	})
}

// everywhere does something at each server of the primary site of a prefix: handles are shared out among them. An answer
// that is not success ends it with an error.
func (a *Administrator) everywhere(ctx context.Context, w *walk, where string, do func(*server) (*reply, error)) error {
	sv, err := w.serviceFor(ctx, where)
	if err != nil {
		return err
	}
	list, err := a.c.primary(ctx, sv, where)
	if err != nil {
		return err
	}
	for _, s := range list {
		got, err := do(s)
		if err == nil && got.code() != hdl.Success {
			err = got.failure()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// List yields the handles of a prefix. The server sends them in any order. An error ends it.
func (a *Administrator) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	name := prefixHandle(prefix)
	return a.names(ctx, inPrefix(prefix), hdl.ListHandles, name)
}

// Prefixes yields the prefixes that the server serves, as handles: 0.NA/20.500.99999. Only an administrator of the server may ask.
func (a *Administrator) Prefixes(ctx context.Context) iter.Seq2[string, error] {
	return a.names(ctx, prefixMark, hdl.ListPrefixes, "/")
}

// prefixHandle returns the handle that describes a prefix.
func prefixHandle(prefix string) string {
	if prefix = strings.TrimSuffix(prefix, "/"); len(prefix) > len(prefixMark) && strings.EqualFold(prefix[:len(prefixMark)], prefixMark) {
		return prefix
	}
	return prefixMark + prefix
}

// inPrefix returns a name in a prefix, by which its service is found.
func inPrefix(prefix string) string { return prefixHandle(prefix)[len(prefixMark):] + "/" }

// names yields the names of a listing. Listings go without a session, as those of the reference's client do, so
// that the messages of a long one need no codes.
func (a *Administrator) names(ctx context.Context, where string, op hdl.Operation, name string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		give := func(got *reply) error {
			if got.code() != hdl.Success {
				return got.failure()
			}
			body, ok := got.body.(*hdl.NamesBody)
			if !ok {
				return got.odd()
			}
			for _, n := range body.Names {
				if !yield(string(n), nil) {
					return errEnough
				}
			}
			return nil
		}
		err := checkHandle(name)
		if err == nil {
			w := a.walk(nil)
			err = a.everywhere(ctx, w, where, func(s *server) (*reply, error) {
				r := &request{operation: op, handle: name, body: &hdl.HandleBody{Handle: []byte(name)}, admin: true, streamed: true, each: give}
				got, err := a.challenged(ctx, w, a.seen(s), nil, r)
				if err == nil {
					err = give(got)
				}
				return got, err
			})
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield("", err)
		}
	}
}

// walk returns the work for one request.
func (a *Administrator) walk(trace func(Step)) *walk {
	if trace == nil {
		trace = a.o.Trace
	}
	return a.c.newWalk(trace)
}

// do does what an administrator asks for. An answer that is not success is an error.
func (a *Administrator) do(ctx context.Context, where string, r *request) (*reply, error) {
	return a.doIn(ctx, a.walk(nil), where, r)
}

func (a *Administrator) doIn(ctx context.Context, w *walk, where string, r *request) (*reply, error) {
	if err := checkHandle(r.handle); err != nil {
		return nil, err
	}
	if a.o.NoSession && r.seal {
		return nil, refuse(stele.Invalid, "hdlclient.secret-without-session", "values that are not for the public would be sent in clear; work with a session")
	}
	r.admin = r.operation != hdl.Resolve
	got, err := w.run(ctx, where, true, func(ctx context.Context, s *server) (*reply, error) { return a.at(ctx, w, s, r) })
	if err != nil {
		return nil, err
	}
	if got.code() != hdl.Success {
		return nil, got.failure()
	}
	return got, nil
}

// at does something at one server: in its session, if there should be one. A session that has ended is set up again, once.
func (a *Administrator) at(ctx context.Context, w *walk, s *server, r *request) (*reply, error) {
	if a.o.NoSession {
		return a.challenged(ctx, w, a.seen(s), nil, r)
	}
	for try := 0; ; try++ {
		n, s, err := a.session(ctx, w, s)
		if err != nil {
			return nil, err
		}
		got, err := a.challenged(ctx, w, s, n, r)
		if err == nil && got.code() == hdl.SessionExpired && try == 0 {
			a.forget(s, n)
			continue
		}
		return got, err
	}
}

// challenged sends a request, and answers the challenge if the server asks who it is.
func (a *Administrator) challenged(ctx context.Context, w *walk, s *server, n *session, r *request) (*reply, error) {
	first := *r
	first.session = n
	if n == nil {
		first.seal = false
	}
	leave, err := n.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	got, err := a.c.ask(ctx, w, s, &first)
	if err != nil || got.code() != hdl.Challenged {
		return got, err
	}
	answer, err := a.answer(got)
	if err != nil {
		return nil, err
	}
	second := request{operation: hdl.AnswerChallenge, handle: r.handle, flags: r.flags &^ (hdl.Overwrite | hdl.MintSuffix), body: answer, admin: r.admin, write: r.write,
		streamed: r.streamed, each: r.each, answers: r.operation, session: n, uncoded: true, pending: got.m.Envelope.Session}
	got, err = a.c.ask(ctx, w, s, &second)
	if err == nil && n != nil {
		// Servers judge the rights of who a client says it is before the proof of that, so that other codes do not tell. The
		// proof for a reading does not hold for the rest of the session at all servers.
		n.proved.CompareAndSwap(false, r.write && got.code() == hdl.Success)
	}
	return got, err
}

// nonceSize is how many octets the nonce of a challenge has (section 7 of the specification).
const nonceSize = 16

// answer answers a challenge. That the challenge has the digest of our request was verified: otherwise the answer could serve
// an attacker for a request of their own.
func (a *Administrator) answer(got *reply) (*hdl.AnswerRequest, error) {
	v := got.m.Envelope.Version
	nonce, digest, err := hdl.ChallengeOf(&got.m)
	if err != nil {
		return nil, refuse(stele.Conflict, "hdlclient.challenge-unreadable", "the challenge of {server} cannot be answered: {cause}", got.from, err)
	}
	switch {
	case (v.Before(1) || digest.Code == hdl.MD5) && !a.c.o.Version.Before(1):
		return nil, refuse(stele.Conflict, "hdlclient.challenge-too-old", "{server} asks for a proof by MD5, which proves nothing anymore", got.from)
	case len(nonce) != nonceSize:
		// The answer signs the nonce and the digest one after the other, and REST sessions are proved by both nonces: with a fixed size, and
		// a digest longer than the nonces there, no answer is also a proof of the other kind.
		return nil, refuse(stele.Conflict, "hdlclient.challenge-nonce", "the challenge of {server} has a nonce of {octets} octets, and servers of the Handle System send {expected}; it was not answered", got.from, len(nonce), nonceSize)
	case !got.sent.MatchesDigest(digest):
		return nil, refuse(stele.Conflict, "hdlclient.challenge-of-another", "the challenge of {server} is for another request; it was not answered", got.from)
	}
	q := &hdl.AnswerRequest{Identity: a.who.Reference, Type: []byte(hdl.TypePublicKey)}
	if a.who.Key != nil {
		q.Answer, err = hdl.AnswerByKey(v, a.who.Key, nonce, digest, a.c.o.Rand)
	} else {
		salt := make([]byte, hdl.SaltSize)
		if _, err = io.ReadFull(a.c.o.Rand, salt); err == nil {
			q.Type = []byte(hdl.TypeSecretKey)
			q.Answer, err = hdl.AnswerBySecret(v, a.who.Secret, nonce, digest, salt)
		}
	}
	if err != nil {
		return nil, refuse(stele.Invalid, "hdlclient.key-unusable", "the key of the administrator cannot answer a challenge: {cause}", err)
	}
	return q, nil
}

// session returns the session with a server, and what is known of the server with it. It is set up once, however many
// goroutines ask for it.
func (a *Administrator) session(ctx context.Context, w *walk, s *server) (*session, *server, error) {
	s, err := a.identify(ctx, w, s)
	if err != nil {
		return nil, nil, err
	}
	a.mu.Lock()
	o := a.sessions[s.name]
	if o == nil {
		o = &opened{once: make(chan struct{}, 1)}
		o.once <- struct{}{}
		a.sessions[s.name] = o
	}
	a.mu.Unlock()
	select {
	case <-o.once:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	defer func() { o.once <- struct{}{} }()
	if o.session == nil {
		if o.session, err = a.c.setUp(ctx, w, s, a.who.Reference); err != nil {
			return nil, nil, err
		}
		o.server = s
	}
	return o.session, s, nil
}

// forget forgets a session that has ended.
func (a *Administrator) forget(s *server, n *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o := a.sessions[s.name]; o != nil {
		select {
		case <-o.once:
			if o.session == n {
				o.session = nil
			}
			o.once <- struct{}{}
		default: // another goroutine sets it up
		}
	}
}

// seen returns what is known of a server.
func (a *Administrator) seen(s *server) *server {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.sites[s.name]; known != nil {
		return known
	}
	return s
}

// identify asks a server that the user named without its site for the site, to learn its key. Nothing vouches for the key:
// who must be sure gives the client the site.
func (a *Administrator) identify(ctx context.Context, w *walk, s *server) (*server, error) {
	if known := a.seen(s); known.key != nil || !s.given {
		return known, nil
	}
	got, err := a.c.askSite(ctx, w, s)
	if err != nil {
		return nil, err
	}
	parsed, err := got.site()
	if err != nil {
		return nil, err
	}
	next := *s
	next.serial = parsed.Serial
	if !parsed.Version.Before(1) { // otherwise answers would need no digest, and only the user may say that
		next.version = parsed.Version
	}
	next.key = keyAt(&parsed, s)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sites[s.name] = &next
	return &next, nil
}

// keyAt returns the key of the server of a site that is at the addresses of s, or else of the only server that the site has.
func keyAt(parsed *hdl.Site, s *server) *hdl.PublicKey {
	for i := range parsed.Servers {
		one := &parsed.Servers[i]
		if len(parsed.Servers) > 1 && !slices.Contains(s.addrs, one.Addr()) {
			continue
		}
		if key, err := hdl.ParsePublicKey(one.Key); err == nil && key.DH == nil {
			return &key
		}
	}
	return nil
}

// Close ends the sessions, so that the servers can forget them.
func (a *Administrator) Close(ctx context.Context) error {
	a.mu.Lock()
	list := a.sessions
	a.sessions = make(map[string]*opened)
	a.mu.Unlock()
	var failed error
	for _, o := range list {
		select {
		case <-o.once:
		case <-ctx.Done():
			return ctx.Err()
		}
		if o.session == nil {
			continue
		}
		_, err := a.c.ask(ctx, a.walk(nil), o.server, &request{operation: hdl.EndSession, handle: "/", admin: true, session: o.session, body: &hdl.HandleBody{Handle: []byte("/")}})
		failed = errors.Join(failed, err)
	}
	return failed
}

// restricted reports whether one of the values is not for the public.
func restricted(values []hdl.Value) bool {
	return slices.ContainsFunc(values, func(v hdl.Value) bool {
		return v.Permissions&hdl.PublicRead == 0 || strings.EqualFold(string(v.Type), hdl.TypeSecretKey)
	})
}
