package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/dnssec"
)

// maxAliases is how many CNAME records are followed for one question.
const maxAliases = 8

// lookup returns the records of a kind at a name. Its error is of Kind NotFound if
// there are none, Unavailable if no server could answer, Exhausted if there are too many
// aliases, Conflict if the answer fails validation. The budget is that of all look-ups for
// one name.
func (d *DNS) lookup(ctx context.Context, t *tracer, budget *dnssec.Budget, name string, kind uint16) (*answer, error) {
	asked := question{dns.CanonicalName(name), kind}
	if a := d.cache.find(asked); a != nil {
		t.add(Step{Query: a.told(asked)})
		return a, a.err
	}
	whole := &answer{owner: asked.name, ttl: maxTTL, verdict: dnssec.Verdict{Status: dnssec.Secure}}
	for followed := 0; ; {
		q := question{whole.owner, kind}
		part, err := d.ask(ctx, t, q, d.judge(ctx, t, budget, q))
		if err != nil {
			return nil, err
		}
		followed += part.aliases
		whole.take(part)
		if !part.elsewhere {
			break
		}
		if followed >= maxAliases {
			return nil, &stele.Error{Op: "look up", Kind: stele.Exhausted, Err: stele.Messagef("dns.aliases-too-many", "{name}: more than {limit} aliases follow each other", name, maxAliases)}
		}
	}
	whole.name(asked)
	if kind == dns.TypeNAPTR {
		whole.rules = d.readRules(whole)
	}
	d.cache.keep(asked, whole)
	return whole, whole.err
}

// refusal is a server's answer that will be the same the next time.
type refusal struct{ reason *stele.Message }

func (e refusal) Error() string { return e.reason.Error() }

// Unwrap returns the message.
func (e refusal) Unwrap() error { return e.reason }

// judgement validates an answer before it is used, and sets its verdict. If it fails,
// another server is asked.
type judgement func(reply *dns.Msg, a *answer) error

// ask asks the servers in turn, until one knows. An answer that fails validation does not
// count: another server's may pass. If no other server answers, that failure is the error.
func (d *DNS) ask(ctx context.Context, t *tracer, q question, judge judgement) (*answer, error) {
	servers := d.upstreams
	var failed error
	for range d.o.Tries {
		var again []*upstream
		for _, server := range servers {
			a, err := d.askServer(ctx, t, server, q, judge)
			if err == nil {
				return a, nil
			}
			if e, ok := errors.AsType[*stele.Error](err); ok {
				return nil, e
			}
			if ctx.Err() != nil {
				return nil, tryAgain(q.name, ctx.Err())
			}
			if !errors.Is(failed, dnssec.ErrBogus) {
				failed = err
			}
			if _, ok := errors.AsType[refusal](err); !ok && !errors.Is(err, dnssec.ErrBogus) {
				again = append(again, server)
			}
		}
		if servers = again; len(servers) == 0 {
			break
		}
	}
	if b, ok := errors.AsType[*dnssec.Bogus](failed); ok {
		return nil, &stele.Error{Op: "look up", Kind: stele.Conflict, Err: b}
	}
	return nil, tryAgain(q.String(), failed)
}

// askServer asks one server: over UDP, and where that is not enough over TCP; or only
// by TLS or HTTPS.
func (d *DNS) askServer(ctx context.Context, t *tracer, u *upstream, q question, judge judgement) (*answer, error) {
	how := manner{transport: u.server.transport(), edns: true, proof: d.o.DNSSEC}
	for {
		m := q.message(how)
		reply, err := d.exchange(ctx, u, how.transport, m)
		told := &Query{Name: q.name, Type: dns.TypeToString[q.kind], Server: u.server.String(), Transport: how.transport}
		t.add(Step{Query: told})
		if reply != nil {
			told.Rcode = rcodeName(reply.Rcode)
		}
		switch {
		case how.transport == netUDP && (errors.Is(err, errCase) || errors.Is(err, errStrays)):
			told.Error = err.Error() + "; asking again over TCP"
			how.transport = netTCP
			continue
		case err != nil:
			told.Error = err.Error()
			return nil, fmt.Errorf("%s: %w", u.server, err)
		case reply.Truncated && how.transport == netUDP:
			told.Error = "it does not fit; asking again over TCP"
			how.transport = netTCP
			continue
		case how.mayDoWithoutEDNS() && (reply.Rcode == dns.RcodeFormatError || reply.Rcode == dns.RcodeNotImplemented || reply.Rcode == dns.RcodeBadVers):
			told.Error = "it may not know EDNS; asking again without"
			how.edns = false
			continue
		}
		a, err := d.read(reply, q, told, judge)
		if err != nil {
			told.Error = err.Error()
			return nil, about(u.server, err)
		}
		return a, nil
	}
}

// exchange asks a server, within the timeout of a try.
func (d *DNS) exchange(ctx context.Context, u *upstream, transport string, m *dns.Msg) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, d.o.TryTimeout)
	defer cancel()
	return u.exchange(ctx, transport, m)
}

// mayDoWithoutEDNS reports whether a question may be asked without EDNS: then it is not
// padded, and there are no signatures.
func (how manner) mayDoWithoutEDNS() bool {
	return how.edns && how.proof == "" && how.transport != netTLS && how.transport != netHTTPS
}

// read reads a reply, tells of it, and judges it.
func (d *DNS) read(reply *dns.Msg, q question, told *Query, judge judgement) (*answer, error) {
	a, err := readAnswer(reply, q)
	if err != nil {
		return nil, orBogus(err, d.o.DNSSEC, reply, q)
	}
	told.Answers, told.TTL = len(a.records), a.ttl
	if err := judge(reply, a); err != nil {
		if b, ok := errors.AsType[*dnssec.Bogus](err); ok {
			told.Bogus = b
		}
		return nil, err
	}
	told.DNSSEC, told.TTL = a.verdict.Status, a.ttl
	return a, nil
}

// about adds a server to an error, and leaves its type.
func about(server NameServer, err error) error {
	if _, ok := errors.AsType[*stele.Error](err); ok {
		return err
	}
	return fmt.Errorf("%s: %w", server, err)
}
