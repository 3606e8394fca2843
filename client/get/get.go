// Package get fetches what a name stands for into a file: it resolves the name, finds by what to
// verify it, fetches from the first location that has it, verifies what came, and only then
// puts it in place. Package client finds and judges, client/fetch transfers; this package
// has the order of the steps, and decides which addresses and keys are believed.
//
// It prints nothing.
package get

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/client/dnssec"
	"github.com/stele-id/stele/client/fetch"
	"github.com/stele-id/stele/client/ways"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/outbound"
)

// PrivateAddresses says whether things are fetched from this machine and private networks.
type PrivateAddresses string

// Values of PrivateAddresses.
const (
	PrivateByWay  PrivateAddresses = "" // not if the name was resolved in the DNS
	PrivateAllow  PrivateAddresses = "allow"
	PrivateRefuse PrivateAddresses = "refuse"
)

// isPublic reports whether an address is of the public Internet.
func isPublic(at netip.Addr) bool { return outbound.Rule{}.May(at) }

// PermitPublic allows resolvers that rules in the DNS name, and servers that records of the Handle System name, at public
// addresses only.
func PermitPublic(at netip.AddrPort) error {
	if isPublic(at.Addr()) {
		return nil
	}
	return stele.Messagef("get.address-private", "{cause}; --private-addresses allow reaches it all the same", fetch.ErrAddress)
}

// Options are what is fetched, how, and where it goes.
type Options struct {
	ID      stele.ID
	Request client.Request // by which the name is resolved
	Schemes *stele.Schemes
	Ways    ways.List
	Local   *ways.Local // the registry on this machine, which is one of the ways or not used
	Now     func() time.Time
	Timeout time.Duration // of resolving, all in all

	Fetch   fetch.Options    // without May and Now
	Private PrivateAddresses // where to fetch from
	MaxSize int64            // in bytes; 0: any
	MaxTime time.Duration    // of fetching, all in all

	Output string    // a file, a folder, [StandardOutput], or "": a file named after the identifier
	Force  bool      // overwrite what is there
	Stdout io.Writer // for [StandardOutput]

	Verify    bool   // it must be what was signed
	AnyKey    bool   // verify by unauthenticated keys, too
	Server    string // a resolver that may speak for the namespace; "": none
	Validated bool   // answers of the DNS are validated

	// Note is called with what the user should know while it goes on, and Progress with how
	// many bytes are there of how many.
	Note     func(text string)
	Progress func(done, total int64)

	// Advise adds advice to an error of looking a name up; nil: none is added.
	Advise func(error) error
}

// Result is what was fetched. There is no file if the location is one that can't be
// fetched from.
type Result struct {
	File     string
	Location string
	Protocol string // of the location
	Info     fetch.Info
	SHA256   string
	Via      client.Via
	DNSSEC   dnssec.Status // of the location
	Proof    *client.Proof // nil if nothing was verified
}

// getting is one run.
type getting struct {
	Options
	anywhere, public *fetch.Fetcher // the second reaches the public Internet only
}

// Run resolves the name, finds what to verify by, fetches, verifies and puts in place, in this
// order.
func Run(ctx context.Context, o Options) (Result, error) {
	g := &getting{Options: o}
	if g.Advise == nil {
		g.Advise = func(err error) error { return err }
	}
	g.Fetch.Now = o.Now
	g.anywhere = fetch.New(g.Fetch)
	defer g.anywhere.Close()
	g.Fetch.May = isPublic
	g.public = fetch.New(g.Fetch)
	defer g.public.Close()
	return g.run(ctx)
}

func (g *getting) run(ctx context.Context) (Result, error) {
	res, err := g.resolve(ctx)
	if err != nil {
		return Result{}, err
	}
	var v *client.Verifier
	if g.Verify {
		if v, err = g.verifier(ctx, res.Via); err != nil {
			return Result{}, err
		}
		if types := g.typesSigned(v, res.Type); types != nil {
			g.Request.Accept = types
			if res, err = g.resolve(ctx); err != nil {
				return Result{}, err
			}
		}
	}
	locations := fetchable(&res)
	if len(locations) == 0 {
		return g.elsewhere(&res)
	}
	if locations[0] != res.Location {
		g.Note(res.Location + " is not fetched from; this is from another location")
	}
	return g.save(ctx, &res, v, locations)
}

// fetcher returns the Fetcher for a location that was found in that way.
func (g *getting) fetcher(via client.Via) *fetch.Fetcher {
	if g.Private == PrivateRefuse || g.Private == PrivateByWay && (via == client.ViaDNS || via == client.ViaHandle) {
		return g.public
	}
	return g.anywhere
}

func (g *getting) resolve(ctx context.Context) (client.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, g.Timeout)
	defer cancel()
	res, err := client.First(ctx, g.Request, g.Ways.Ways()...)
	switch {
	case err != nil:
		return res, g.Advise(err)
	case res.Found != client.FoundLocation:
		return res, stele.Errorf("get", g.ID, stele.NotFound, "get.ends-at-resolver", `the name leads to the resolver "{location}" and no further: {note}`, res.Location, res.Note)
	}
	return res, nil
}

// fetchable returns the locations to try: the one that was found and those that are as
// good, or else the first of all that can be fetched from.
func fetchable(res *client.Result) (list []string) {
	for _, one := range append([]string{res.Location}, res.Equals...) {
		if fetch.Fetches(one) {
			list = append(list, one)
		}
	}
	if i := slices.IndexFunc(res.Others, fetch.Fetches); len(list) == 0 && i >= 0 {
		list = append(list, res.Others[i])
	}
	return list
}

// elsewhere returns a location that can't be fetched from.
func (g *getting) elsewhere(res *client.Result) (Result, error) {
	if g.Verify {
		return Result{}, stele.Errorf("verify", g.ID, stele.Conflict, "get.location-not-fetchable", `it is at "{location}", which is not fetched from, so nothing was verified`, res.Location)
	}
	return Result{Location: res.Location, Protocol: res.Protocol, Via: res.Via, DNSSEC: res.DNSSEC}, nil
}

// save fetches into the file, from the first location that has it.
func (g *getting) save(ctx context.Context, res *client.Result, v *client.Verifier, locations []string) (Result, error) {
	name, err := outputPath(g.Output, g.ID, locations[0], g.Force)
	if err != nil {
		return Result{}, err
	}
	path := name
	if name == StandardOutput {
		folder, err := os.MkdirTemp("", "stele-get-")
		if err != nil {
			return Result{}, disk.FileError(err)
		}
		defer os.RemoveAll(folder)
		path = filepath.Join(folder, "whole")
	}
	part, err := fetch.OpenPart(path, g.Force)
	if err != nil {
		return Result{}, err
	}
	placed := false
	defer func() {
		if !placed {
			_ = part.Close() // the next run resumes it
		}
	}()
	got, err := g.fetch(ctx, g.fetcher(res.Via), v, part, locations)
	if err != nil {
		return Result{}, err
	}
	sum := part.SHA256()
	got.File, got.SHA256, got.Via, got.DNSSEC = name, hex.EncodeToString(sum[:]), res.Via, res.DNSSEC
	if v != nil {
		if got.Proof, err = v.Verify(sum, got.Info.Size, got.Info.Type); err != nil {
			placed = true
			return Result{}, errors.Join(err, part.Remove()) // it can't become what it should be
		}
	}
	if name == StandardOutput {
		return got, part.Copy(g.Stdout)
	}
	if err := part.Place(g.Force); err != nil {
		return Result{}, err
	}
	placed = true
	return got, nil
}

// fetch tries the locations in turn, until one has the file.
func (g *getting) fetch(ctx context.Context, from *fetch.Fetcher, v *client.Verifier, part *fetch.Part, locations []string) (got Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, g.MaxTime)
	defer cancel()
	accept := g.Request.AcceptHeader()
	if len(g.Request.Accept) > 0 {
		accept += ", */*;q=0.1" // this is where it is, whatever its server calls it
	}
	for i, location := range locations {
		q := fetch.Request{Location: location, Accept: accept, MaxSize: g.MaxSize, Progress: g.Progress}
		if v != nil {
			q.Sizes = v.Sizes()
		}
		var info fetch.Info
		if info, err = from.File(ctx, q, part); err == nil {
			return Result{Location: location, Info: info}, nil
		}
		if v != nil && errors.Is(err, fetch.ErrSize) {
			err = v.Changed(err)
		}
		if ctx.Err() != nil || i+1 == len(locations) {
			break
		}
		g.Note(err.Error() + "; trying another location")
	}
	return Result{}, err
}
