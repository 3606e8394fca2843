package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/client/dnssec"
	"github.com/stele-id/stele/cmd/stele/card"
)

// outcome is what one way says.
type outcome struct {
	via client.Via
	res client.Result
	err error
}

// outcomeDocument is what one way says, as programs see it.
type outcomeDocument struct {
	Via      client.Via    `json:"via"`
	Location string        `json:"location,omitempty"`
	Found    client.Found  `json:"found,omitempty"`
	Type     string        `json:"type,omitempty"`
	TTL      uint32        `json:"ttl,omitempty"`
	DNSSEC   dnssec.Status `json:"dnssec,omitempty"`
	Error    string        `json:"error,omitempty"`
	Kind     string        `json:"kind,omitempty"`
	Trace    *client.Trace `json:"trace,omitempty"`
}

// comparison is what all ways say, as programs see it.
type comparison struct {
	ID    stele.ID          `json:"id"`
	Agree bool              `json:"agree"`
	Ways  []outcomeDocument `json:"ways"`
}

// compare tries all ways and tells whether they agree. If one of them does not answer,
// that is unknown.
func (p *program) compare(ctx context.Context, schemes *stele.Schemes, id stele.ID, q client.Request, list ways) error {
	var outcomes []outcome
	var unanswered error
	for _, w := range list {
		res, err := w.way.Resolve(ctx, q)
		if err != nil && stele.KindOf(err) == stele.Unavailable {
			unanswered = &stele.Error{Op: "compare", ID: id, Kind: stele.Unavailable, Err: fmt.Errorf("%s does not answer: %w", w.via, err)}
		}
		outcomes = append(outcomes, outcome{w.via, res, err})
	}
	agree := true
	for i := range outcomes[1:] {
		agree = agree && outcomes[0].agrees(schemes, &outcomes[i+1])
	}
	if err := p.printComparison(id, outcomes, agree, unanswered != nil); err != nil {
		return err
	}
	switch {
	case unanswered != nil:
		return unanswered
	case !agree:
		return &stele.Error{Op: "compare", ID: id, Kind: stele.Conflict, Err: errors.New("the ways do not agree; --trace tells how each came to its answer")}
	}
	return nil
}

// agrees reports whether two ways say the same: one location, or two that are equally
// good, or that there is none for the same reason.
func (o *outcome) agrees(schemes *stele.Schemes, other *outcome) bool {
	if o.err != nil || other.err != nil {
		return o.err != nil && other.err != nil && stele.KindOf(o.err) == stele.KindOf(other.err)
	}
	a, b := &o.res, &other.res
	return a.Found == b.Found && (a.Location == b.Location || sameQuestion(schemes, a.Location, b.Location) || slices.Contains(a.Equals, b.Location) || slices.Contains(b.Equals, a.Location))
}

// sameQuestion reports whether two URLs ask one resolver the same: what follows the question
// mark is one name, perhaps in two spellings. A rule in the DNS has the canonical one, and the
// client asks over HTTP in that of the user.
func sameQuestion(schemes *stele.Schemes, a, b string) bool {
	here, name, ok := strings.Cut(a, "?")
	there, other, ok2 := strings.Cut(b, "?")
	if !ok || !ok2 || here != there {
		return false
	}
	same, err := schemes.Equivalent(name, other)
	return same && err == nil
}

func (p *program) printComparison(id stele.ID, outcomes []outcome, agree, unanswered bool) error {
	if p.json {
		c := comparison{ID: id, Agree: agree}
		for i := range outcomes {
			c.Ways = append(c.Ways, outcomes[i].document())
		}
		return p.printObject(c)
	}
	var b strings.Builder
	for i := range outcomes {
		if t := outcomes[i].res.Trace; t != nil {
			fmt.Fprintf(&b, "%s: %s\n", outcomes[i].via, t)
		}
	}
	fmt.Fprintln(&b, printable(id.String()))
	for i := range outcomes {
		o := &outcomes[i]
		switch {
		case o.err != nil:
			card.Row(&b, string(o.via), "("+stele.KindOf(o.err).String()+") "+printable(o.err.Error()))
		case o.res.Found == client.FoundServer:
			card.Row(&b, string(o.via), printable(o.res.Location)+"  (a resolver)")
		default:
			card.Row(&b, string(o.via), printable(o.res.Location))
		}
	}
	verdict := "they agree"
	switch {
	case unanswered:
		verdict = "not known: a way does not answer"
	case !agree:
		verdict = "they do not agree"
	}
	card.Row(&b, "result", verdict)
	_, err := fmt.Fprint(p.stdout, b.String())
	return err
}

func (o *outcome) document() outcomeDocument {
	d := outcomeDocument{Via: o.via, Trace: o.res.Trace}
	if o.err != nil {
		d.Error, d.Kind = o.err.Error(), stele.KindOf(o.err).String()
		return d
	}
	d.Location, d.Found, d.Type, d.TTL, d.DNSSEC = o.res.Location, o.res.Found, o.res.Type, o.res.TTL, o.res.DNSSEC
	return d
}
