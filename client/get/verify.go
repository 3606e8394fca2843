package get

import (
	"context"
	"errors"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/client/ways"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/internal/terminal"
)

// AnyKeyFlag is the flag that asks for [Options.AnyKey]. It is long, so that users think
// before they write it.
const AnyKeyFlag = "allow-unauthenticated-key"

// verifier finds signatures and keys of what was resolved, and checks these before
// anything is fetched: what can't be proven is not fetched.
func (g *getting) verifier(ctx context.Context, via client.Via) (*client.Verifier, error) {
	ctx, cancel := context.WithTimeout(ctx, g.Timeout)
	defer cancel()
	list, keys, err := g.signed(ctx, via)
	if err != nil {
		return nil, g.Advise(err)
	}
	v, err := client.NewVerifier(g.ID, list, keys, g.Now())
	if err == nil && !keys.By.IsKnown() && !g.AnyKey {
		err = &stele.Error{Op: "verify", ID: g.ID, Kind: stele.Conflict, Err: stele.Messagef("get.key-not-authenticated", "it is signed, but the key of {source} is not authenticated ({reason}): it could be forged, so nothing was fetched; name the keys of signed zones with --anchors, or a resolver that you trust with --server https://HOST, or take any key with --{flag}", terminal.Printable(keys.From), terminal.Printable(keys.Note), AnyKeyFlag)}
	}
	return v, err
}

func (g *getting) signed(ctx context.Context, via client.Via) (list []stele.Signature, keys client.Keys, err error) {
	if via == client.ViaLocal {
		list, keys, err = g.Local.Signed(ctx, g.ID)
		if errors.Is(err, ways.ErrUnsigned) {
			err = unsigned(g.ID)
		}
		return list, keys, err
	}
	q := g.Request
	q.Service, q.Accept, q.Protocols, q.OnlyProtocols = stele.N2S, nil, nil, false
	res, err := client.First(ctx, q, g.Ways.Ways(client.ViaLocal)...)
	if err == nil && res.Found != client.FoundLocation {
		err = stele.Errorf("verify", stele.ID{}, stele.NotFound, "", "{note}", res.Note)
	}
	if err == nil {
		list, err = g.signatures(ctx, &res)
	}
	if err != nil && stele.KindOf(err) == stele.NotFound {
		err = unsigned(g.ID)
	}
	if err != nil {
		return nil, keys, err
	}
	keys, err = g.keys(ctx)
	return list, keys, err
}

// maxSignatures is at how many places signatures are looked for.
const maxSignatures = 4

// signatures fetches the signatures. There may be others that this program can't check.
func (g *getting) signatures(ctx context.Context, res *client.Result) (list []stele.Signature, failed error) {
	places := append([]string{res.Location}, res.Others...)
	for _, at := range places[:min(len(places), maxSignatures)] {
		list, err := client.Signatures(ctx, g.fetcher(res.Via), g.Schemes, at, g.ID)
		if err == nil {
			return list, nil
		}
		if failed == nil {
			failed = err
		}
	}
	return nil, failed
}

// unsigned is the error that there is no signature. It does not say that there is no such
// name: it was found.
func unsigned(id stele.ID) error {
	return &stele.Error{Op: "verify", ID: id, Kind: stele.Conflict, Err: stele.Messagef("get.signature-missing", "it has no signature, so nothing can be proven; without --verify it is fetched all the same")}
}

// keys finds the keys: in the DNS, and where these are unauthenticated, at a resolver that
// may speak for the namespace.
func (g *getting) keys(ctx context.Context) (client.Keys, error) {
	keys := client.Keys{By: client.NotAuthenticated}
	var missing error
	way := g.inDNS()
	if way != nil {
		keys, missing = way.Keys(ctx, g.Request.Name)
		if missing == nil && keys.By == client.ByDNSSEC {
			return keys, nil
		}
		// An attacker on the network path who withholds the keys of a signed zone must not gain
		// by it: the keys are there, or it is proven that there are none.
		if missing != nil && stele.KindOf(missing) != stele.NotFound && g.Validated {
			return keys, missing
		}
	}
	others, err := g.serverKeys(ctx, way)
	switch {
	case err == nil && (others.By.IsKnown() || len(keys.List) == 0):
		return others, nil
	case len(keys.List) > 0:
		return keys, nil
	case missing != nil && stele.KindOf(err) == stele.NotFound:
		err = missing
	}
	if stele.KindOf(err) == stele.NotFound {
		return keys, &stele.Error{Op: "verify", ID: g.ID, Kind: stele.Conflict, Err: stele.Messagef("get.key-missing", "it is signed, but there is no key to check that with: {cause}; if a resolver has it, name that with --server", errors.Unwrap(err))}
	}
	return keys, err
}

// serverKeys asks for the keys the resolver that the user named, or else the one that
// validated rules name. Unvalidated rules may name an attacker's resolver.
func (g *getting) serverKeys(ctx context.Context, way *client.DNS) (client.Keys, error) {
	server, fetcher := g.Server, g.anywhere // a resolver that the user names may have any address
	if server == "" && way == nil {
		return client.Keys{}, stele.Errorf("verify", stele.ID{}, stele.NotFound, "get.key-resolver-missing", "there is no resolver to ask for it")
	}
	if server == "" {
		var err error
		if server, err = way.KeyServer(ctx, g.Request.Name); err != nil {
			return client.Keys{}, err
		}
		fetcher = g.fetcher(client.ViaDNS)
	}
	return client.JWKS(ctx, fetcher, g.Schemes, server, g.ID)
}

// inDNS returns the way over the DNS, nil if the name can't be found there.
func (g *getting) inDNS() *client.DNS {
	for _, w := range g.Ways {
		if way, ok := w.Way.(*client.DNS); ok && client.Knows(g.ID.Scheme()) {
			return way
		}
	}
	return nil
}

// typesSigned returns the media types that were signed, to ask for: a representation of
// another type was not signed. None if it may be any, or the user asks for some.
func (g *getting) typesSigned(v *client.Verifier, found string) (list []ddds.Preference) {
	types := v.Types()
	if len(g.Request.Accept) > 0 || slices.Contains(types, found) {
		return nil
	}
	for _, one := range types {
		list = append(list, ddds.Preference{Range: one, Q: 1000})
	}
	return list
}
