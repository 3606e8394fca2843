package giver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"slices"
	"syscall"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/transparency"
)

// kind is what an answer of a giver says.
type kind int

const (
	good     kind = iota // a checkpoint that one of the known keys has signed, of a log that did not shrink
	none                 // there is no checkpoint
	doubtful             // it can't be known: the question failed on this side, or there is a checkpoint that is not to be trusted. Neither a sign of life nor silence
)

// answer is what became of a question.
type answer struct {
	kind       kind
	checkpoint *transparency.Checkpoint
	said       string
}

// Check says what is wrong with a registry that is to be watched, and sets the URL below which its log is.
func (w *Watcher) Check(g *registrar.WatchedGiver) (err error) {
	if g.URL, err = transparency.LogURL(g.URL); err != nil {
		return err
	}
	keys, err := keysOf(g)
	if err == nil && len(keys) == 0 {
		err = &stele.Error{Op: "watch registry", Kind: stele.Invalid, Err: stele.Messagef("watch.key-missing", "none of the keys is one of the log {origin}; give the key that 'stele log key' prints there", g.Origin)}
	}
	return err
}

// keysOf returns the keys of a giver's log.
func keysOf(g *registrar.WatchedGiver) (keys []transparency.PublicKey, err error) {
	for _, text := range g.Keys {
		k, err := transparency.ParsePublicKey(text)
		if err != nil {
			return nil, err
		}
		if !k.Cosign && k.Name == g.Origin {
			keys = append(keys, k)
		}
	}
	return keys, nil
}

// question asks a giver for the checkpoint of its log.
func (w *Watcher) question(ctx context.Context, g *registrar.WatchedGiver) answer {
	ctx, cancel := context.WithTimeout(ctx, wholeTime)
	defer cancel()
	keys, err := keysOf(g)
	if err != nil {
		return answer{kind: doubtful, said: stele.Reason(err).Error()}
	}
	shown := &frozenNoter{Doer: w.HTTP}
	client := &transparency.TileClient{URL: g.URL, HTTP: shown, Agent: w.Agent, Wait: w.Wait}
	text, err := client.Checkpoint(ctx)
	switch {
	case err != nil:
		return failed(err)
	case shown.frozen != "":
		return answer{kind: doubtful, said: stele.Messagef("watch.frozen-archive", "a frozen archive answers there, with the log as it was at {time}; watch the registry at an address of its own", shown.frozen[:min(len(shown.frozen), maxFrozen)]).Error()}
	}
	return judge(g, keys, text)
}

// maxFrozen is how much is shown of what an archive says of its time.
const maxFrozen = 40

// frozenNoter notes whether the last answer is one of a frozen archive: that shows the last checkpoint for ever, and is not a sign of life.
type frozenNoter struct {
	transparency.Doer
	frozen string
}

func (f *frozenNoter) Do(r *http.Request) (*http.Response, error) {
	f.frozen = ""
	a, err := f.Doer.Do(r)
	if err == nil {
		f.frozen = a.Header.Get(transparency.FrozenHeader)
	}
	return a, err
}

// failed says what a question that got no checkpoint means.
func failed(err error) answer {
	a := answer{kind: none, said: stele.Reason(err).Error()}
	lookup, isLookup := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, stele.Forbidden): // the operator of this registry does not allow the address
		a.kind = doubtful
	case isLookup && !lookup.IsNotFound: // no name server answers, perhaps since this machine is offline
		a.kind = doubtful
	case slices.ContainsFunc(ownFaults, func(e syscall.Errno) bool { return errors.Is(err, e) }):
		a.kind = doubtful
	case isOfCertificate(err): // there is a server, or this machine lacks the roots, or has another time
		a.kind = doubtful
	}
	return a
}

// ownFaults are errors that this machine makes itself, without an answer of the other side: no route, a firewall of its own, no more files or ports.
var ownFaults = []syscall.Errno{syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.EPERM, syscall.EACCES, syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM}

// isOfCertificate reports whether the certificate of a server was refused.
func isOfCertificate(err error) bool {
	_, refused := errors.AsType[*tls.CertificateVerificationError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	_, roots := errors.AsType[x509.SystemRootsError](err)
	return refused || authority || host || invalid || roots
}

// judge says what a checkpoint that a giver shows means.
func judge(g *registrar.WatchedGiver, keys []transparency.PublicKey, text []byte) answer {
	c, _, err := transparency.OpenCheckpoint(text, keys)
	if err != nil {
		shown, perr := transparency.ParseCheckpoint(string(text))
		if perr != nil || !transparency.IsOfLog(shown.Origin, g.Origin) {
			return answer{kind: none, said: stele.Reason(err).Error()} // something else answers there
		}
		return answer{kind: doubtful, said: stele.Reason(err).Error()} // perhaps by a key that this registry does not know yet
	}
	switch {
	case c.Origin != g.Era: // the first one, or the giver was restored from a backup
	case c.Size < g.Size:
		return answer{kind: doubtful, said: stele.Messagef("watch.log-shrank", "the log has {size} entries, and had {before}", c.Size, g.Size).Error()}
	case c.Size == g.Size && c.Root.String() != g.Root:
		return answer{kind: doubtful, said: stele.Messagef("watch.log-differs", "the log has {size} entries, and they are not those that it had", c.Size).Error()}
	}
	return answer{kind: good, checkpoint: c, said: "a checkpoint"}
}

// ConfirmSilence asks a giver once more, and returns for how many days it has been silent. NotFound if it is not watched; Conflict if it answers, if it never did, or if it
// can't be known whether it does.
func (w *Watcher) ConfirmSilence(ctx context.Context, origin string) (s registrar.Silence, err error) {
	const op = "adopt"
	g, said, err := w.ask(ctx, origin, true)
	switch {
	case err != nil:
		return s, err
	case ctx.Err() != nil:
		return s, &stele.Error{Op: op, Kind: stele.Unavailable, Err: ctx.Err()}
	case said.kind == good:
		return s, &stele.Error{Op: op, Kind: stele.Conflict, Err: stele.Messagef("adopt.giver-answers", "{giver} is not silent: it showed a checkpoint of its log with {size} entries just now; ask its operator to seal the namespace, and to make a bundle then", origin, g.Size)}
	case g.Seen.IsZero():
		return s, &stele.Error{Op: op, Kind: stele.Conflict, Err: stele.Messagef("adopt.giver-never-seen", "{giver} never showed a checkpoint since it is watched, at {url}, so that its silence says nothing ({reason}); look whether the URL and the key are right, with 'stele escrow watch now'", origin, g.URL, said.said)}
	case said.kind == doubtful:
		return s, &stele.Error{Op: op, Kind: stele.Conflict, Err: stele.Messagef("adopt.silence-unknown", "it can't be known whether {giver} is silent: {reason}; find out why, and try again", origin, said.said)}
	}
	return registrar.Silence{Days: g.Silent, Seen: g.Seen, Size: g.Size}, nil
}
