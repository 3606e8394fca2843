package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/client/dnssec"
)

// DNSSEC says how answers of the DNS are authenticated.
type DNSSEC string

const (
	// Validate has the client check signatures, from trust anchors down.
	Validate DNSSEC = "validate"
	// TrustAD believes what the name servers say of their own checks (the AD bit, RFC
	// 4035, section 3.2.3). They must be asked by TLS or HTTPS: otherwise an attacker on
	// the network path could set it.
	TrustAD DNSSEC = "trust-ad"
)

// checkDNSSEC refuses options that are wrong, and fills in defaults.
func (o *DNSOptions) checkDNSSEC() error {
	switch o.DNSSEC {
	case "":
	case Validate:
		if o.Now == nil {
			return invalid("dnssec.clock-missing", "signatures have their time, and there is no clock to judge them by")
		}
		if o.Anchors == nil {
			anchors, err := dnssec.RootAnchors()
			if err != nil {
				return err
			}
			o.Anchors = anchors
		}
	case TrustAD:
		for _, s := range o.Servers {
			if !s.isPrivate() {
				return invalid("dns.server-checks-forgeable", "what {server} says of its own checks can be forged on the way: it is asked in clear; name servers with tls:// or https://, or have the client validate", s)
			}
		}
	default:
		return invalid("dnssec.check-mode-unknown", `"{mode}" is not a way to check answers; there are validate and trust-ad`, string(o.DNSSEC))
	}
	return nil
}

// judge returns the function that validates the answers to a question.
func (d *DNS) judge(ctx context.Context, t *tracer, budget *dnssec.Budget, q question) judgement {
	switch {
	case d.o.DNSSEC == TrustAD:
		return believe
	case d.validator == nil:
		return func(*dns.Msg, *answer) error { return nil }
	}
	check := d.validator.Check(budget, func(ctx context.Context, name string, kind uint16, judge func(*dns.Msg) error) error {
		_, err := d.ask(ctx, t, question{name, kind}, func(reply *dns.Msg, _ *answer) error { return judge(reply) })
		return err
	})
	return func(reply *dns.Msg, a *answer) error { return a.prove(ctx, check.Reply(reply), q.kind) }
}

// believe trusts the server's AD bit.
func believe(reply *dns.Msg, a *answer) error {
	a.verdict = dnssec.Verdict{Status: dnssec.Insecure, Why: "the name server does not say that it checked the answer, or the zone is not signed"}
	if reply.AuthenticatedData {
		a.verdict = dnssec.Verdict{Status: dnssec.Secure, TTL: a.ttl}
	}
	return nil
}

// prove judges every part of an answer: the aliases that were followed, and the records
// at their end or that there are none.
func (a *answer) prove(ctx context.Context, reply *dnssec.Reply, kind uint16) error {
	whole := dnssec.Verdict{Status: dnssec.Secure, TTL: maxTTL}
	add := func(v dnssec.Verdict, err error) error {
		whole = whole.Weaker(v)
		return err
	}
	for _, alias := range a.path {
		if err := add(reply.Records(ctx, alias, dns.TypeCNAME)); err != nil {
			return err
		}
	}
	switch {
	case a.missing != 0:
		denial, err := reply.Nothing(ctx, a.owner, kind)
		if err := add(denial, err); err != nil {
			return err
		}
		// Nothing signs that the SOA record in the answer is the one of the name's zone: it
		// may be of a zone above, or be made up. The proof is the zone's own.
		if denial.Status == dnssec.Secure {
			a.zone = denial.Zone
		}
	case !a.elsewhere:
		if err := add(reply.Records(ctx, a.owner, kind)); err != nil {
			return err
		}
	}
	if a.missing != 0 && whole.NoName {
		a.missing = noSuchName
	}
	if whole.Status == dnssec.Secure {
		a.ttl = min(a.ttl, whole.TTL)
	}
	a.verdict = whole
	return nil
}

// orBogus returns the error that a resolver found an answer bogus, if it says so (RFC
// 8914, section 4), or else the error there is.
func orBogus(err error, mode DNSSEC, reply *dns.Msg, q question) error {
	opt := reply.IsEdns0()
	if mode != TrustAD || reply.Rcode != dns.RcodeServerFailure || opt == nil {
		return err
	}
	for _, option := range opt.Option {
		e, ok := option.(*dns.EDNS0_EDE)
		if !ok || e.InfoCode < dns.ExtendedErrorCodeDNSSECIndeterminate || e.InfoCode > dns.ExtendedErrorCodeNSECMissing {
			continue
		}
		detail := "the name server says: " + dns.ExtendedErrorCodeToString[e.InfoCode]
		if e.ExtraText != "" {
			detail += ": " + brief(e.ExtraText)
		}
		return &dnssec.Bogus{Name: q.name, Type: dns.TypeToString[q.kind], Reason: dnssec.Reported, Detail: detail}
	}
	return err
}

// trust is the status of all answers for one name: the weakest counts.
type trust struct {
	budget dnssec.Budget

	mu     sync.Mutex
	status dnssec.Status // Unchecked: there was nothing to check yet
	why    string
}

// add adds a look-up's verdict, of which the name says what it is about.
func (t *trust) add(v dnssec.Verdict, about string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if v.Status == dnssec.Unchecked || t.status != dnssec.Unchecked && v.Status >= t.status {
		return
	}
	t.status, t.why = v.Status, ""
	if v.Why != "" {
		t.why = about + ": " + v.Why
	}
}

func (t *trust) sum() (status dnssec.Status, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status, t.why
}

// lookup is the look-up of something for the session's name.
func (s *session) lookup(ctx context.Context, t *tracer, name string, kind uint16) (*answer, error) {
	a, err := s.dns.lookup(ctx, t, &s.trust.budget, name, kind)
	if a != nil {
		s.trust.add(a.verdict, fmt.Sprintf("%s %s", name, dns.TypeToString[kind]))
	}
	return a, err
}

// isBogus reports whether an answer is forged or broken: nothing else is tried then.
func isBogus(err error) bool { return errors.Is(err, dnssec.ErrBogus) }
