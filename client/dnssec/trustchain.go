package dnssec

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// zone is a zone as far as it is trusted.
type zone struct {
	name string
	keys []zoneKey // none if it is insecure
	why  string    // it is insecure
}

// zoneKey is a key that may sign, and its tag, which takes a while to compute.
type zoneKey struct {
	key *dns.DNSKEY
	tag uint16
}

func (z *zone) isSecure() bool { return z.why == "" }

// cut is what is known of a name: that a zone begins there, or that none does.
type cut struct {
	zone  *zone // nil: none does
	until time.Time
}

// maxCuts is how many names are remembered.
const maxCuts = 1024

// Times for which cuts are remembered, whatever records say.
const (
	maxTTL = 24 * 60 * 60
	minTTL = 1 // so that the answers to one question fit together
)

func (v *Validator) find(in map[string]cut, name string) (cut, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c, ok := in[name]
	if ok && (!v.now().Before(c.until) || c.until.Sub(v.now()) > maxTTL*time.Second) { // it has expired, or the clock was put back
		delete(in, name)
		return cut{}, false
	}
	return c, ok
}

func (v *Validator) keep(in map[string]cut, name string, z *zone, ttl uint32) cut {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(in) >= maxCuts {
		clear(in)
	}
	ttl = max(min(ttl, maxTTL), minTTL)
	c := cut{z, v.now().Add(time.Duration(ttl) * time.Second)}
	in[name] = c
	return c
}

// enclosing returns the zone that a name is in: it goes down from the anchor, and at
// each label asks whether a zone begins there. What is below an insecure zone is in it.
func (c *Check) enclosing(ctx context.Context, name string) (*zone, error) {
	top, ok := c.v.anchors.above(name)
	if !ok {
		return &zone{why: "no trust anchor is above " + name}, nil
	}
	c.budget.trustChain.Lock()
	defer c.budget.trustChain.Unlock()
	z, err := c.anchored(ctx, top)
	if err != nil {
		return nil, err
	}
	for n := dns.CountLabel(top) + 1; n <= dns.CountLabel(name) && z.isSecure(); n++ {
		next, err := c.cut(ctx, z, ancestor(name, n))
		if err != nil {
			return nil, err
		}
		if next.zone != nil {
			z = next.zone
		}
	}
	return z, nil
}

// anchored returns a zone that has trust anchors.
func (c *Check) anchored(ctx context.Context, name string) (*zone, error) {
	if known, ok := c.v.find(c.v.tops, name); ok {
		return known.zone, nil
	}
	z, ttl, err := c.keys(ctx, name, c.v.anchors.zones[name], "trust anchor")
	if err != nil {
		return nil, err
	}
	return c.v.keep(c.v.tops, name, z, ttl).zone, nil
}

// cut returns what is known of a name in a secure zone.
func (c *Check) cut(ctx context.Context, parent *zone, name string) (cut, error) {
	if known, ok := c.v.find(c.v.cuts, name); ok {
		return known, nil
	}
	var d delegation
	err := c.question(ctx, name, dns.TypeDS, func(reply *dns.Msg) (err error) {
		d, err = c.Reply(reply).delegation(parent, name)
		return err
	})
	switch {
	case err != nil:
		return cut{}, err
	case d.why != "":
		return c.v.keep(c.v.cuts, name, &zone{name: name, why: d.why}, d.ttl), nil
	case len(d.ds) == 0:
		return c.v.keep(c.v.cuts, name, nil, d.ttl), nil
	}
	z, ttl, err := c.keys(ctx, name, &anchor{ds: d.ds}, "DS record above the zone")
	if err != nil {
		return cut{}, err
	}
	return c.v.keep(c.v.cuts, name, z, min(ttl, d.ttl)), nil
}

// question asks for a link of the chain.
func (c *Check) question(ctx context.Context, name string, kind uint16, judge func(*dns.Msg) error) error {
	if !take(&c.budget.questions, 1, maxQuestions) {
		return bogus(name, kind, TooMuchWork, "dnssec.key-questions-too-many", "more than {limit} questions for keys", maxQuestions)
	}
	return c.ask(ctx, name, kind, judge)
}

// delegation is what a zone says of a name in it. Without DS records and why, no zone
// begins there.
type delegation struct {
	ds  []*dns.DS // that can be checked
	why string    // the zone that begins there is insecure
	ttl uint32
}

// delegation judges the answer to a question for DS records (RFC 4035, section 5.2).
// They are of the zone above the name, and so must the proof be that there are none.
func (r *Reply) delegation(parent *zone, name string) (delegation, error) {
	for _, kind := range []uint16{dns.TypeDS, dns.TypeCNAME} {
		s := setOf(r.msg.Answer, name, kind)
		if len(s.records) == 0 {
			continue
		}
		if kind == dns.TypeCNAME {
			s = r.orSource(s)
		}
		by, err := r.verify(s, parent)
		if err != nil {
			return delegation{}, err
		}
		if _, wild := s.wildcard(by); wild {
			if kind == dns.TypeDS {
				return delegation{}, badSignature(by, name, WrongSignature, "dnssec.wildcard-delegates", "the signature is of a wildcard, which can't delegate")
			}
			if _, err := r.nothingCloser(s, parent, int(by.Labels)); err != nil {
				return delegation{}, err
			}
		}
		d := delegation{ttl: lasts(by, s.ttl(), r.v.now())}
		if kind == dns.TypeDS { // an alias is not a beginning of a zone (RFC 1034, section 3.6.2)
			d.ds, d.why = usable(s.records, name)
		}
		return d, nil
	}
	found, err := r.denied(parent, name, dns.TypeDS)
	if err != nil {
		return delegation{}, err
	}
	d := delegation{ttl: found.ttl}
	switch {
	case found.heavy:
		d.why = found.tooHeavy(parent.name)
	case found.delegates:
		d.why = fmt.Sprintf("%s is not signed (%s proves that it has no DS record)", name, parent.name)
	case found.optOut:
		d.why = fmt.Sprintf("%s may be not signed (%s leaves such zones out of its proofs)", name, parent.name)
	}
	return d, nil
}

// usable returns the DS records that can be checked. If there are none the zone counts
// as not signed (RFC 4035, section 5.2).
func usable(records []dns.RR, name string) (list []*dns.DS, why string) {
	var others []string
	for _, record := range records[:min(len(records), maxDS)] {
		ds, ok := record.(*dns.DS)
		switch {
		case !ok:
		case isUsable(ds):
			list = append(list, ds)
		default:
			others = append(others, fmt.Sprintf("%s with digest %s", algorithmName(ds.Algorithm), digestName(ds.DigestType)))
		}
	}
	if len(list) == 0 {
		slices.Sort(others)
		return nil, fmt.Sprintf("%s is signed in ways that can't be checked (%s)", name, strings.Join(slices.Compact(others), ", "))
	}
	return list, ""
}

// keys asks for the keys of a zone, of which known has some; by says how they are known.
func (c *Check) keys(ctx context.Context, name string, known *anchor, by string) (z *zone, ttl uint32, err error) {
	err = c.question(ctx, name, dns.TypeDNSKEY, func(reply *dns.Msg) (err error) {
		z, ttl, err = c.Reply(reply).keys(name, known, by)
		return err
	})
	return z, ttl, err
}

// keys judges the keys of a zone: one of them that is known must have signed all (RFC
// 4035, section 5.2).
func (r *Reply) keys(name string, known *anchor, by string) (*zone, uint32, error) {
	s := setOf(r.msg.Answer, name, dns.TypeDNSKEY)
	if len(s.records) > maxKeys {
		return nil, 0, bogus(name, dns.TypeDNSKEY, TooMuchWork, "dnssec.keys-too-many", "there are more than {limit} keys", maxKeys)
	}
	all := &zone{name: name}
	for _, record := range s.records {
		if key, ok := record.(*dns.DNSKEY); ok && isZoneKey(key) {
			all.keys = append(all.keys, zoneKey{key, key.KeyTag()})
		}
	}
	trusted := &zone{name: name}
	for _, k := range all.keys {
		if slices.ContainsFunc(known.ds, k.has) || slices.ContainsFunc(known.keys, k.is) {
			trusted.keys = append(trusted.keys, k)
		}
	}
	if len(trusted.keys) == 0 {
		return nil, 0, known.without(name, len(s.records), by)
	}
	sig, err := r.verify(s, trusted)
	if err != nil {
		return nil, 0, err
	}
	if _, wild := s.wildcard(sig); wild {
		return nil, 0, badSignature(sig, name, WrongSignature, "dnssec.wildcard-signs-keys", "the signature is of a wildcard, which has no keys")
	}
	return all, lasts(sig, s.ttl(), r.v.now()), nil
}

// without is the error for n keys of which none is known.
func (a *anchor) without(name string, n int, by string) *Bogus {
	var e *Bogus
	if n == 0 {
		e = bogus(name, dns.TypeDNSKEY, NoKey, "dnssec.zone-without-keys", "it has no keys, but there is a {evidence}", by)
	} else {
		e = bogus(name, dns.TypeDNSKEY, NoKey, "dnssec.no-key-fits", "none of its {keys} keys fits the {evidence}", n, by)
	}
	e.Signer = name
	if len(a.ds) > 0 {
		e.KeyTag = a.ds[0].KeyTag
	} else {
		e.KeyTag = a.keys[0].KeyTag()
	}
	return e
}

// has reports whether a DS record is of this key.
func (k *zoneKey) has(ds *dns.DS) bool {
	if k.tag != ds.KeyTag || k.key.Algorithm != ds.Algorithm {
		return false
	}
	made := k.key.ToDS(ds.DigestType)
	return made != nil && strings.EqualFold(made.Digest, ds.Digest)
}

// is reports whether an anchor is this key.
func (k *zoneKey) is(anchor *dns.DNSKEY) bool {
	return k.key.Flags == anchor.Flags && k.key.Algorithm == anchor.Algorithm && k.key.PublicKey == anchor.PublicKey
}

func algorithmName(algorithm uint8) string {
	if name, ok := dns.AlgorithmToString[algorithm]; ok {
		return name
	}
	return strconv.Itoa(int(algorithm))
}

func digestName(digest uint8) string {
	if name, ok := dns.HashToString[digest]; ok {
		return name
	}
	return strconv.Itoa(int(digest))
}
