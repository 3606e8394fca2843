package client

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
)

// walk follows the rules from a key, and goes on where they lead. If rules expire
// meanwhile it begins again, once (RFC 3402, section 3.3, note 2).
func (s *session) walk(ctx context.Context, key string) (Result, error) {
	res, err := s.walkOnce(ctx, key)
	if err != nil && errors.Is(err, errStale) && ctx.Err() == nil {
		s.tracer.note("%v", errStale)
		res, err = s.walkOnce(ctx, key)
	}
	return res, err
}

func (s *session) walkOnce(ctx context.Context, key string) (Result, error) {
	s.last, s.visits = "", nil
	w := &ddds.Walker{Database: s, Random: s.dns.o.Random, Now: s.dns.o.Now}
	found, err := w.Walk(ctx, ddds.Request{
		Name: s.name, Start: key, Service: s.query.Service, Accept: s.query.Accept,
		Protocols: s.query.Protocols, OnlyProtocols: s.query.OnlyProtocols, Flags: s.query.Flags, Trace: s.tracer != nil,
	})
	s.tell(found.Trace)
	if err != nil {
		if stele.KindOf(err) == stele.NotFound && !errors.Is(err, ddds.ErrNoSuchName) {
			err = s.withdrawn(ctx, err)
		}
		return Result{}, err
	}
	return s.finishCandidates(ctx, found.Candidates)
}

// tell adds to the trace the questions that were asked and how the rules were applied.
// A walk has a step for each key that it asks for.
func (s *session) tell(t *ddds.Trace) {
	if t == nil {
		return
	}
	for i := range t.Steps {
		if i < len(s.visits) {
			s.tracer.join(s.visits[i])
		}
		s.tracer.add(Step{Rules: &t.Steps[i]})
	}
}

// NAPTR is the database of a walk.
func (s *session) NAPTR(ctx context.Context, name string) (ddds.RuleSet, error) {
	t := s.tracer.fork()
	if t != nil {
		s.visits = append(s.visits, t)
	}
	first := s.last == ""
	s.last = name
	a, err := s.lookup(ctx, t, name, dns.TypeNAPTR)
	if err != nil {
		return ddds.RuleSet{}, err
	}
	if first {
		s.firstSet = a.records
	}
	set := ddds.RuleSet{Rules: a.rules, TTL: a.ttl}
	if a.owner != name {
		set.Note = "an alias of " + a.owner
	}
	return set, nil
}

// readRules reads the rules of an answer, in the dialect of its zone.
func (d *DNS) readRules(a *answer) []ddds.Rule {
	dialect := ddds.Standard
	for _, zone := range d.o.ThesisZones {
		if dns.IsSubDomain(zone, a.owner) {
			dialect = ddds.Thesis
		}
	}
	return ddds.ParseRules(naptrFields(a.records, dialect == ddds.Thesis), dialect)
}

// naptrFields returns the fields of NAPTR records. The library keeps texts as zone
// files have them, and names too: to unescape a name with a backslash (a dot inside of a
// label, say) would make it another name, so it stays escaped, and then is not a valid key.
// The thesis's replacements are not names; they are read as texts.
func naptrFields(set []dns.RR, texts bool) (list []ddds.Fields) {
	for _, r := range set[:min(len(set), ddds.MaxRules+1)] {
		n, ok := r.(*dns.NAPTR)
		if !ok {
			continue
		}
		f := ddds.Fields{Order: n.Order, Preference: n.Preference, Replacement: n.Replacement}
		var bad [4]error
		f.Flags, bad[0] = ddds.Unescape(n.Flags)
		f.Service, bad[1] = ddds.Unescape(n.Service)
		f.Regexp, bad[2] = ddds.Unescape(n.Regexp)
		if texts {
			f.Replacement, bad[3] = ddds.Unescape(n.Replacement)
		}
		if errors.Join(bad[:]...) == nil { // what the library made can be read
			list = append(list, f)
		}
	}
	return list
}

func sortFields(list []ddds.Fields) {
	slices.SortStableFunc(list, func(a, b ddds.Fields) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Preference, b.Preference))
	})
}

// withdrawn asks whether the name that was found, without what was asked for, was
// withdrawn: a TXT record says so.
func (s *session) withdrawn(ctx context.Context, err error) error {
	a, failed := s.lookup(ctx, s.tracer, s.last, dns.TypeTXT)
	switch {
	case isBogus(failed):
		return failed
	case failed != nil:
		return err
	}
	for _, r := range a.records {
		txt, ok := r.(*dns.TXT)
		if !ok {
			continue
		}
		if reason, ok := readTombstone(txt.Txt, s.id.String()); ok {
			return &stele.Error{Op: "resolve", Kind: stele.Gone, Err: stele.Messagef("record.withdrawn-in-dns", "{reason}", reason)}
		}
	}
	return err
}

// readTombstone reads the strings of a TXT record: "withdrawn=date", "reason=why",
// "replacement=name", and "id=name" if several names share an owner name.
func readTombstone(list []string, id string) (reason string, ok bool) {
	fields := make(map[string]string)
	last := ""
	for _, text := range list {
		text, err := ddds.Unescape(text)
		if err != nil {
			return "", false
		}
		key, value, isField := strings.Cut(text, "=")
		switch {
		case isField && slices.Contains([]string{"id", "withdrawn", "reason", "replacement"}, key) && fields[key] == "":
			fields[key], last = value, key
		case last != "": // a long text goes on in the next string
			fields[last] += text
		}
	}
	if fields["withdrawn"] == "" || fields["id"] != "" && fields["id"] != id {
		return "", false
	}
	reason = "it was withdrawn on " + brief(fields["withdrawn"])
	if why := fields["reason"]; why != "" {
		reason += ": " + brief(why)
	}
	if other := fields["replacement"]; other != "" {
		reason += "; use " + brief(other)
	}
	return reason, true
}

// brief returns a text from another server in a form that is safe in a message.
func brief(text string) string {
	const most = 300
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return visible(text)
}
