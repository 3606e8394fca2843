// Package elsewhere asks other servers of the Handle System about identities that are not in this registry: for keys and lists of
// administrators, and whether a proof by a secret is right. It begins at the root that the operator names.
//
// It believes only what is certified, from the keys of the root on. What it sends is bounded: by a rule of addresses, which the
// caller gives its client; in time; in number, for each client that asks and for all; and by a cache.
package elsewhere

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/stele-id/stele"
	hdlclient "github.com/stele-id/stele/client/hdl"
	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/wire/hdl"
)

const (
	patience   = 5 * time.Second  // for one question
	keepGood   = 10 * time.Minute // at most: then a key that was replaced at home counts no more
	keepNone   = time.Minute      // that there is no such value
	maxKept    = 1000             // answers
	maxValues  = 16               // of one answer
	maxOctets  = 16 << 10         // of an answer that is kept
	clientRate = 1                // questions a second of one client
	burst      = 20
	atOnce     = 8 // questions of all clients
	waiting    = 64
)

// Client asks servers: an [hdlclient.Client].
type Client interface {
	Resolve(ctx context.Context, q hdlclient.Query) (hdlclient.Answer, error)
	VerifyAnswer(ctx context.Context, q hdl.VerifyRequest) (right, certified bool, err error)
}

// Options are what an [Asker] works with.
type Options struct {
	Client Client // begins at the root, and does not ask addresses that it may not
	Now    func() time.Time
	Rand   io.Reader
	Log    *slog.Logger
}

// Asker implements [handles.Elsewhere]. It is used by many goroutines at once.
type Asker struct {
	o     Options
	rate  *limit.Rate
	turns *limit.Turns

	mu   sync.Mutex
	kept map[string]kept
}

// kept is an answer, until when it counts.
type kept struct {
	values []stele.HandleValue
	until  time.Time
}

// New returns an Asker.
func New(o Options) *Asker {
	return &Asker{o: o, rate: limit.NewRate(clientRate, burst), turns: limit.NewTurns(atOnce, waiting, patience), kept: make(map[string]kept)}
}

// Values implements [handles.Elsewhere].
func (a *Asker) Values(ctx context.Context, handle string, index uint32, kind string) ([]stele.HandleValue, error) {
	key := strconv.FormatUint(uint64(index), 10) + ":" + handle + " " + kind
	if values, ok := a.find(key); ok {
		return values, nil
	}
	var values []stele.HandleValue
	life := keepNone
	err := a.ask(ctx, func(ctx context.Context) error {
		q := hdlclient.Query{Handle: handle, Types: []string{kind}}
		if index != 0 {
			q = hdlclient.Query{Handle: handle, Indexes: []uint32{index}}
		}
		answer, err := a.o.Client.Resolve(ctx, q)
		if err != nil {
			return err
		}
		if !answer.Certified {
			a.o.Log.WarnContext(ctx, "a handle of another registry is not certified, and so it proves nothing", slog.String("handle", handle), slog.String("server", answer.Server))
			return nil
		}
		life = keepGood
		for i := range answer.Values {
			if v := &answer.Values[i]; len(values) < maxValues {
				if v.TTLType == hdl.TTLRelative {
					life = min(life, time.Duration(v.TTL)*time.Second)
				}
				values = append(values, handles.ReadValues([]hdl.Value{*v})...)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if octets(values) <= maxOctets {
		a.keep(key, values, life)
	}
	return values, nil
}

func octets(values []stele.HandleValue) (n int) {
	for i := range values {
		n += len(values[i].Data) + len(values[i].Type)
	}
	return n
}

// Verify implements [handles.Elsewhere].
func (a *Asker) Verify(ctx context.Context, who handles.Identity, p *handles.Proof) (right bool, err error) {
	q := hdl.VerifyRequest{Identity: hdl.Reference{Handle: who.Handle, Index: who.Index}, Nonce: p.Nonce, Digest: p.Digest, Answer: p.Answer}
	err = a.ask(ctx, func(ctx context.Context) error {
		said, certified, err := a.o.Client.VerifyAnswer(ctx, q)
		right = said && certified
		return err
	})
	return right, err
}

// VerifySecret implements [handles.Elsewhere]. The secret itself is not sent: it proves itself over a challenge that is made
// for it.
func (a *Asker) VerifySecret(ctx context.Context, who handles.Identity, secret []byte) (bool, error) {
	random := make([]byte, 16+32+hdl.SaltSize)
	if _, err := io.ReadFull(a.o.Rand, random); err != nil {
		return false, &stele.Error{Op: "verify", Kind: stele.Unavailable, Err: err}
	}
	nonce, sum, salt := random[:16], random[16:48], random[48:]
	answer, err := hdl.AnswerBySecret(hdl.Latest(), secret, nonce, hdl.Digest{Code: hdl.SHA256, Sum: sum}, salt)
	if err != nil {
		return false, nil
	}
	return a.Verify(ctx, who, &handles.Proof{Nonce: nonce, Digest: sum, Answer: answer})
}

// ask asks a question, if the client may. That there is no such handle is not an error, nor that a server refuses to tell.
func (a *Asker) ask(ctx context.Context, question func(context.Context) error) error {
	if err := a.rate.Take(handles.ClientOf(ctx), 1, a.o.Now()); err != nil {
		return busy(err)
	}
	leave, err := a.turns.Enter(ctx)
	if err != nil {
		return busy(err)
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = question(ctx)
	switch stele.KindOf(err) {
	case stele.Unavailable, stele.Internal, stele.Exhausted:
		if err != nil {
			a.o.Log.WarnContext(ctx, "an identity of another registry can't be verified now", slog.Any("err", err))
			return busy(err)
		}
	case stele.NotFound:
	default:
		a.o.Log.WarnContext(ctx, "an identity of another registry was not verified", slog.Any("err", err))
	}
	return nil
}

// busy says that there is no answer now.
func busy(err error) error { return &stele.Error{Op: "verify", Kind: stele.Unavailable, Err: err} }

func (a *Asker) find(key string) ([]stele.HandleValue, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, ok := a.kept[key]
	return k.values, ok && a.o.Now().Before(k.until)
}

// keep remembers an answer. If there are too many, it forgets those that are over and, if that is not enough, all.
func (a *Asker) keep(key string, values []stele.HandleValue, life time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.o.Now()
	if len(a.kept) >= maxKept {
		for name, k := range a.kept {
			if !now.Before(k.until) {
				delete(a.kept, name)
			}
		}
		if len(a.kept) >= maxKept {
			clear(a.kept)
		}
	}
	a.kept[key] = kept{values, now.Add(life)}
}
