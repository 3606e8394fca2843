package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/miekg/dns"
)

// signedNames is how many names a signed zone has at most: each is signed for the peer
// beforehand.
const signedNames = 100_000

// signedAnswers is answers for a zone that is signed with ECDSA P-256, for clients that ask
// for signatures: ours makes them when they are asked for first, and Knot has them in the
// file of the zone.
func (d *dnsBench) signedAnswers(ctx context.Context, w *tabwriter.Writer) (err error) {
	cores, err := twoCores()
	if err != nil {
		return err
	}
	s := &dnsBench{registryBench: d.registryBench, names: min(d.names, signedNames), label: "-signed"}
	if err := s.sign(ctx); err != nil {
		return err
	}
	l := &dnsLoad{core: cores[1], questions: s.questions, more: []string{"-D"}}
	bare, err := bareSignature()
	if err != nil {
		return err
	}
	progress("%d signed names, first answers", s.names)
	us, err := l.first(ctx, time.Hour, func() (*contender, error) { return s.startUs(ctx, cores[0]) })
	if err != nil {
		return err
	}
	ours := us.server
	defer func() { err = errors.Join(err, ours.stop()) }()
	again, err := bareSignature()
	if err != nil {
		return err
	}
	bare = (bare + again) / 2 // before and after
	peer := peers[0]
	them, err := s.startPeer(ctx, peer, cores[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, them.server.stop()) }()
	if err := s.bothSign(ctx, ours, them.server); err != nil {
		return err
	}
	for _, one := range []*nameServer{ours, them.server} { // a part of the first answers is not kept
		if _, err := l.run(ctx, one, 1, time.Hour); err != nil {
			return err
		}
	}
	each, ratio, err := s.rounds(ctx, l, ours, them.server)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "signed answers of the DNS among %d names (ECDSA P-256), signed before : %s with a signed file; CPU time each\t%.2f us\t%.2f us\t%.2f\t\tat most 2\n",
		s.names, them.server.version, each[0], each[1], ratio)
	fmt.Fprintf(w, "  the first time, with one signature made, of %d starts : a bare signature with the same curve\t%.2f us\t%.2f us\t%.2f\t\tat most 1.3\n", dnsStarts, us.cold, bare, us.cold/bare)
	return nil
}

// bareSignatures is how many signatures tell what one costs.
const bareSignatures = 20_000

// bareSignature returns what a signature with ECDSA P-256 costs that is always the same for the same
// text, as those of zones are (RFC 6979), in microseconds of CPU time.
func bareSignature() (float64, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return 0, err
	}
	digest := sha256.Sum256([]byte(benchZone))
	before := cpu()
	for i := range bareSignatures {
		digest[0], digest[1] = byte(i), byte(i>>8)
		if _, err := key.Sign(nil, digest[:], crypto.SHA256); err != nil {
			return 0, err
		}
	}
	return (cpu() - before).Seconds() * 1e6 / bareSignatures, nil
}

// sign makes a registry whose zone is signed when it is asked, and a file with the same
// zone signed beforehand.
func (d *dnsBench) sign(ctx context.Context) error {
	if err := d.publish(ctx); err != nil {
		return err
	}
	progress("%d names are signed for the file", d.names)
	d.zone = filepath.Join(d.work, "zone"+d.label)
	for _, args := range [][]string{
		{"zone", "sign", benchZone, "--mode", "transfer"},
		{"zone", "export", benchZone, "--signed", "-o", d.zone},
		{"zone", "sign", benchZone, "--mode", "online"},
	} {
		if err := command(ctx, d.stele, append(args, "--data", d.published)...); err != nil {
			return err
		}
	}
	return nil
}

// bothSign makes sure that both servers give the same rules, and a signature of them.
func (d *dnsBench) bothSign(ctx context.Context, ours, peer *nameServer) error {
	if err := d.sameAnswers(ctx, ours, peer); err != nil {
		return err
	}
	owner := ownerOf(mathrand.IntN(d.names))
	client := &dns.Client{Timeout: time.Second}
	for _, at := range []string{ours.at, peer.at} {
		m, _, err := client.ExchangeContext(ctx, new(dns.Msg).SetQuestion(owner, dns.TypeNAPTR).SetEdns0(1232, true), at)
		if err != nil {
			return err
		}
		signatures := 0
		for _, rr := range m.Answer {
			if sig, ok := rr.(*dns.RRSIG); ok && sig.Algorithm == dns.ECDSAP256SHA256 {
				signatures++
			}
		}
		if signatures != 1 || m.Truncated {
			return fmt.Errorf("%s at %s has %d signatures: %v", owner, at, signatures, m)
		}
	}
	return nil
}

// rounds compares what an answer of each costs, in alternating rounds.
func (d *dnsBench) rounds(ctx context.Context, l *dnsLoad, ours, peer *nameServer) (each [2]float64, ratio float64, err error) {
	turns := max(1, askAtLeast/d.names)
	var seen [2][]float64
	var ratios []float64
	for i := range dnsPairs {
		var one [2]dnsAnswers
		for j, s := range []*nameServer{ours, peer} {
			if one[j], err = l.run(ctx, s, turns, firstAtMost); err != nil {
				return each, 0, err
			}
			seen[j] = append(seen[j], one[j].each())
		}
		ratios = append(ratios, one[0].each()/one[1].each())
		progress("signed answers, round %d of %d: %.2f us of CPU each, and the peer's %.2f us", i+1, dnsPairs, one[0].each(), one[1].each())
	}
	return [2]float64{median(seen[0]), median(seen[1])}, median(ratios), nil
}
