package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/client/dnssec"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/resolver"
)

// verifier finds signatures and keys of what was resolved, and checks these before
// anything is fetched: what can't be proven need not come.
func (g *getting) verifier(ctx context.Context, via client.Via) (*client.Verifier, error) {
	ctx, cancel := context.WithTimeout(ctx, g.f.timeout)
	defer cancel()
	list, keys, err := g.signed(ctx, via)
	if err != nil {
		return nil, g.hintProof(err)
	}
	return client.NewVerifier(g.id, list, keys, g.now())
}

func (g *getting) signed(ctx context.Context, via client.Via) (list []stele.Signature, keys client.Keys, err error) {
	if via == client.ViaLocal {
		return g.signedHere(ctx)
	}
	q := g.q
	q.Service, q.Accept, q.Protocols, q.OnlyProtocols = stele.N2S, nil, nil, false
	res, err := client.First(ctx, q, g.distant()...)
	if err == nil && res.Found != client.FoundLocation {
		err = refuse("verify", stele.NotFound, "%s", res.Note)
	}
	at := res.Location
	if err == nil {
		list, at, err = g.signatures(ctx, &res)
	}
	if err != nil {
		return nil, keys, unsigned(g.id, err)
	}
	keys, err = g.keys(ctx, at)
	return list, keys, err
}

// maxSignatures is at how many places signatures are looked for.
const maxSignatures = 4

// signatures fetches the signatures, and tells from where. Beside those that can be
// checked there may be others, for other programs.
func (g *getting) signatures(ctx context.Context, res *client.Result) (list []stele.Signature, at string, failed error) {
	places := append([]string{res.Location}, res.Others...)
	for _, at := range places[:min(len(places), maxSignatures)] {
		list, err := client.Signatures(ctx, g.fetcher, g.schemes, at, g.id)
		if err == nil {
			return list, at, nil
		}
		if failed == nil {
			failed = err
		}
	}
	return nil, "", failed
}

// unsigned makes of the error that there is no signature one that does not say that
// there is no such name: it was found.
func unsigned(id stele.ID, err error) error {
	if stele.KindOf(err) != stele.NotFound {
		return err
	}
	return &stele.Error{Op: "verify", ID: id, Kind: stele.Conflict, Err: errors.New("it has no signature, so nothing can be proven; without --verify it is fetched all the same")}
}

// keys finds the keys: in the DNS, and where nobody vouches for these, at the resolver.
func (g *getting) keys(ctx context.Context, signatures string) (client.Keys, error) {
	keys := client.Keys{By: client.ByNobody}
	var failed error
	for _, w := range g.ways {
		way, ok := w.way.(*client.DNS)
		if !ok || !inDNS(g.id) {
			continue
		}
		if keys, failed = way.Keys(ctx, g.q.Name); errors.Is(failed, dnssec.ErrBogus) {
			return client.Keys{}, failed
		}
		if failed == nil && keys.By == client.ByDNSSEC {
			return keys, nil
		}
	}
	server := g.f.server
	if server == "" {
		server = signatures
	}
	others, err := client.JWKS(ctx, g.fetcher, g.schemes, server, g.id)
	switch {
	case err == nil && (others.By != client.ByNobody || len(keys.List) == 0):
		return others, nil
	case len(keys.List) > 0:
		return keys, nil
	case failed != nil && stele.KindOf(err) == stele.NotFound:
		err = failed
	}
	if stele.KindOf(err) == stele.NotFound {
		return keys, &stele.Error{Op: "verify", ID: g.id, Kind: stele.Conflict, Err: fmt.Errorf("it is signed, but there is no key to check that with: %w", errors.Unwrap(err))}
	}
	return keys, err
}

// distant returns the ways but for the registry at hand.
func (g *getting) distant() (list []client.Way) {
	for _, w := range g.ways {
		if w.via != client.ViaLocal {
			list = append(list, w.way)
		}
	}
	return list
}

// signedHere looks into the registry in the data folder.
func (g *getting) signedHere(ctx context.Context) (list []stele.Signature, keys client.Keys, err error) {
	g.brief = true
	r, err := g.openRegistry(ctx, g.schemes, slog.New(slog.DiscardHandler), resolver.Options{})
	if err != nil {
		return nil, keys, err
	}
	defer func() { err = errors.Join(err, g.closeRegistry(r)) }()
	record, err := r.store.Record(ctx, g.id)
	if err != nil {
		return nil, keys, err
	}
	if len(record.Signatures) == 0 {
		return nil, keys, unsigned(g.id, refuse("verify", stele.NotFound, "it has none"))
	}
	if record.ID != g.id {
		return nil, keys, &stele.Error{Op: "verify", ID: g.id, Kind: stele.Conflict, Err: fmt.Errorf("the signatures are for %s, another name of the same thing; get it by that name", record.ID)}
	}
	keys = client.Keys{From: "the registry in " + g.data, By: client.ByRegistry}
	keys.List, err = r.resolver.SigningKeys(ctx, g.id)
	return record.Signatures, keys, err
}

// typesSigned returns the media types that were signed, to ask for: what is of another
// one was not signed. None if it may be any, or the user asks for some.
func (g *getting) typesSigned(v *client.Verifier, found string) (list []ddds.Preference) {
	types := v.Types()
	if len(g.q.Accept) > 0 || slices.Contains(types, found) {
		return nil
	}
	for _, one := range types {
		list = append(list, ddds.Preference{Range: one, Q: 1000})
	}
	return list
}
