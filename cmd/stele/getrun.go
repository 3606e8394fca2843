package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/client/dnssec"
	"github.com/stele-id/stele/client/fetch"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/outbound"
)

// getting is one run of get.
type getting struct {
	*program
	f       *getFlags
	q       client.Request
	id      stele.ID
	schemes *stele.Schemes
	ways    ways

	anywhere, public *fetch.Fetcher // the second reaches the public Internet only
}

// Values of --private-addresses.
const privateAllow, privateRefuse = "allow", "refuse"

// isPublic reports whether an address is of the public Internet.
func isPublic(at netip.Addr) bool { return outbound.Rule{}.May(at) }

// permitPublic allows resolvers that rules in the DNS name at public addresses only.
func permitPublic(at netip.AddrPort) error {
	if isPublic(at.Addr()) {
		return nil
	}
	return fmt.Errorf("%w; --private-addresses allow reaches it all the same", fetch.ErrAddress)
}

// fetcher returns the Fetcher for a location that was found in that way.
func (g *getting) fetcher(via client.Via) *fetch.Fetcher {
	if g.f.private == privateRefuse || g.f.private == "" && via == client.ViaDNS {
		return g.public
	}
	return g.anywhere
}

// get is the verb.
func (p *program) get(f *getFlags, q client.Request) error {
	g := &getting{program: p, f: f, q: q}
	var err error
	if g.schemes, err = p.schemes(f.cmd); err != nil {
		return err
	}
	if g.id, err = p.parseName(f.cmd, g.schemes, f.server, q.Name); err != nil {
		return err
	}
	roots, err := p.remote.roots()
	if err != nil {
		return err
	}
	if g.ways, err = p.ways(&f.resolveFlags, g.schemes, g.id); err != nil {
		return err
	}
	defer g.ways.close()
	o := fetch.Options{RootCAs: roots, Now: p.now, Idle: f.stall}
	g.anywhere = fetch.New(o)
	defer g.anywhere.Close()
	o.May = isPublic
	g.public = fetch.New(o)
	defer g.public.Close()
	ctx, stop := signal.NotifyContext(f.cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return g.hint(g.run(ctx))
}

// hint adds to an error which flag helps; its kind stays.
func (g *getting) hint(err error) error {
	if errors.Is(err, fetch.ErrUntrusted) && g.remote.authority == "" {
		return fmt.Errorf("%w; name the certificate of its authority with --ca FILE", err)
	}
	if errors.Is(err, fetch.ErrAddress) && stele.KindOf(err) == stele.Forbidden {
		return fmt.Errorf("%w; if the name is of your own network, fetch it with --private-addresses allow", err)
	}
	return err
}

// hintProof is hint for errors of the DNS.
func (g *getting) hintProof(err error) error {
	if (errors.Is(err, dnssec.ErrBogus) || errors.Is(err, stele.Unavailable)) && g.impliesProof() {
		return fmt.Errorf("%w; answers of the DNS must prove themselves here: if the name server passes on no signatures name another with --dns, or keys to trust with --anchors, or do without with --dnssec=off", err)
	}
	return err
}

// impliesProof reports whether DNS answers must be validated although the user did not ask
// for it.
func (g *getting) impliesProof() bool {
	changed := g.f.cmd.Flags().Changed
	return g.f.verify && !changed("dnssec") && !changed("anchors") && slices.ContainsFunc(g.ways, func(w namedWay) bool { return w.via == client.ViaDNS })
}

// run resolves, finds what to verify by, fetches, verifies and puts in place, in this
// order.
func (g *getting) run(ctx context.Context) error {
	res, err := g.resolve(ctx)
	if err != nil {
		return err
	}
	var v *client.Verifier
	if g.f.verify {
		if v, err = g.verifier(ctx, res.Via); err != nil {
			return err
		}
		if types := g.typesSigned(v, res.Type); types != nil {
			g.q.Accept = types
			if res, err = g.resolve(ctx); err != nil {
				return err
			}
		}
	}
	locations := fetchable(&res)
	if len(locations) == 0 {
		return g.elsewhere(&res)
	}
	if locations[0] != res.Location {
		fmt.Fprintf(g.stderr, "stele: %s is not fetched from; this is from another location\n", printable(res.Location))
	}
	return g.save(ctx, &res, v, locations)
}

func (g *getting) resolve(ctx context.Context) (client.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, g.f.timeout)
	defer cancel()
	var list []client.Way
	for _, w := range g.ways {
		list = append(list, w.way)
	}
	res, err := client.First(ctx, g.q, list...)
	switch {
	case err != nil:
		return res, g.hintProof(err)
	case res.Found != client.FoundLocation:
		return res, &stele.Error{Op: "get", ID: g.id, Kind: stele.NotFound, Err: fmt.Errorf("the name leads to the resolver %.200q and no further: %s", res.Location, res.Note)}
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

// elsewhere prints a location that stele can't fetch from.
func (g *getting) elsewhere(res *client.Result) error {
	if g.f.verify {
		return &stele.Error{Op: "verify", ID: g.id, Kind: stele.Conflict, Err: fmt.Errorf("it is at %.200q, which is not fetched from, so nothing was verified", res.Location)}
	}
	if g.json {
		return g.printObject(gotDocument{ID: g.id, Location: res.Location, Via: res.Via, DNSSEC: res.DNSSEC})
	}
	fmt.Fprintf(g.stderr, "stele: nothing was fetched: %s is for other programs; this is where it is\n", printable(res.Protocol))
	_, err := fmt.Fprintln(g.stdout, printable(res.Location))
	return err
}

// save fetches into the file, from the first location that has it.
func (g *getting) save(ctx context.Context, res *client.Result, v *client.Verifier, locations []string) error {
	name, err := g.f.outputPath(g.id, locations[0])
	if err != nil {
		return err
	}
	path := name
	if name == toStandardOutput {
		folder, err := os.MkdirTemp("", "stele-get-")
		if err != nil {
			return disk.FileError(err)
		}
		defer os.RemoveAll(folder)
		path = filepath.Join(folder, "whole")
	}
	part, err := fetch.OpenPart(path, g.f.force)
	if err != nil {
		return err
	}
	placed := false
	defer func() {
		if !placed {
			_ = part.Close() // the next run resumes it
		}
	}()
	got, err := g.fetch(ctx, g.fetcher(res.Via), v, part, locations)
	if err != nil {
		return err
	}
	sum := part.SHA256()
	got.ID, got.File, got.SHA256, got.Via, got.DNSSEC = g.id, name, hex.EncodeToString(sum[:]), res.Via, res.DNSSEC
	if v != nil {
		if got.Proof, err = v.Verify(sum, got.Size, got.Type); err != nil {
			placed = true
			return errors.Join(err, part.Remove()) // it can't become what it should be
		}
	}
	if name == toStandardOutput {
		if err := part.Copy(g.stdout); err != nil {
			return err
		}
		return g.tell(g.stderr, got)
	}
	if err := part.Place(g.f.force); err != nil {
		return err
	}
	placed = true
	return g.tell(g.stdout, got)
}

// fetch tries the locations in turn, until one has the file.
func (g *getting) fetch(ctx context.Context, from *fetch.Fetcher, v *client.Verifier, part *fetch.Part, locations []string) (got gotDocument, err error) {
	ctx, cancel := context.WithTimeout(ctx, g.f.maxTime)
	defer cancel()
	bar := &bar{program: g.program}
	defer bar.end()
	accept := g.q.AcceptHeader()
	if len(g.q.Accept) > 0 {
		accept += ", */*;q=0.1" // this is where it is, whatever its server calls it
	}
	for i, location := range locations {
		q := fetch.Request{Location: location, Accept: accept, MaxSize: g.f.most, Progress: bar.move}
		if v != nil {
			q.Sizes = v.Sizes()
		}
		var info fetch.Info
		if info, err = from.File(ctx, q, part); err == nil {
			return newGot(location, &info), nil
		}
		if v != nil && errors.Is(err, fetch.ErrSize) {
			err = v.Changed(err)
		}
		if ctx.Err() != nil || i+1 == len(locations) {
			break
		}
		bar.end()
		fmt.Fprintf(g.stderr, "stele: %s; trying another location\n", printable(err.Error()))
	}
	return gotDocument{}, err
}
