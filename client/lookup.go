package client

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

// maxAliases is how many CNAME records are followed for one question.
const maxAliases = 8

// lookup returns the records of a kind at a name. Its error is of Kind NotFound if
// there are none, Unavailable if nobody could say, Exhausted if aliases have no end.
func (d *DNS) lookup(ctx context.Context, t *tracer, name string, kind uint16) (*answer, error) {
	asked := question{dns.CanonicalName(name), kind}
	if a := d.cache.find(asked); a != nil {
		t.add(Step{Query: a.told(asked)})
		return a, a.err
	}
	whole := &answer{owner: asked.name, ttl: maxTTL}
	for followed := 0; ; {
		part, err := d.ask(ctx, t, question{whole.owner, kind})
		if err != nil {
			return nil, err
		}
		followed += part.aliases
		whole.take(part)
		if !part.elsewhere {
			break
		}
		if followed >= maxAliases {
			return nil, &stele.Error{Op: "look up", Kind: stele.Exhausted, Err: fmt.Errorf("%s: more than %d aliases follow each other", name, maxAliases)}
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
type refusal struct{ reason string }

func (e refusal) Error() string { return e.reason }

// ask asks the servers in turn, until one knows.
func (d *DNS) ask(ctx context.Context, t *tracer, q question) (*answer, error) {
	servers := d.o.Servers
	var failed error
	for range d.o.Tries {
		var again []netip.AddrPort
		for _, server := range servers {
			a, err := d.askServer(ctx, t, server, q)
			if err == nil {
				return a, nil
			}
			if e, ok := errors.AsType[*stele.Error](err); ok {
				return nil, e
			}
			if ctx.Err() != nil {
				return nil, tryAgain(q.name, ctx.Err())
			}
			failed = err
			if _, ok := errors.AsType[refusal](err); !ok {
				again = append(again, server)
			}
		}
		if servers = again; len(servers) == 0 {
			break
		}
	}
	return nil, tryAgain(q.String(), failed)
}

// askServer asks one server: over UDP, and where that is not enough over TCP.
func (d *DNS) askServer(ctx context.Context, t *tracer, server netip.AddrPort, q question) (*answer, error) {
	network, edns := "udp", true
	for {
		m := q.message(edns, network == "udp")
		reply, err := d.exchange(ctx, network, server, m)
		told := &Query{Name: q.name, Type: dns.TypeToString[q.kind], Server: server.String(), Transport: network}
		t.add(Step{Query: told})
		if reply != nil {
			told.Rcode = rcodeName(reply.Rcode)
		}
		switch {
		case network == "udp" && (errors.Is(err, errCase) || errors.Is(err, errStrays)):
			told.Error = err.Error() + "; asking again over TCP"
			network = "tcp"
			continue
		case err != nil:
			told.Error = err.Error()
			return nil, fmt.Errorf("%s: %w", server, err)
		case reply.Truncated && network == "udp":
			told.Error = "it does not fit; asking again over TCP"
			network = "tcp"
			continue
		case edns && (reply.Rcode == dns.RcodeFormatError || reply.Rcode == dns.RcodeNotImplemented || reply.Rcode == dns.RcodeBadVers):
			told.Error = "it may not know EDNS; asking again without"
			edns = false
			continue
		}
		a, err := readAnswer(reply, q)
		if err != nil {
			told.Error = err.Error()
			return nil, about(server, err)
		}
		told.Answers, told.TTL = len(a.records), a.ttl
		return a, nil
	}
}

// about adds a server to an error, and leaves its type.
func about(server netip.AddrPort, err error) error {
	if _, ok := errors.AsType[*stele.Error](err); ok {
		return err
	}
	return fmt.Errorf("%s: %w", server, err)
}
