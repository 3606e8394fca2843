package publish

import (
	"context"
	"io"
	"runtime"
	"sync"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/nsec3"
	"github.com/stele-id/stele/publish/zonesign"
)

// signedBatch is how many sets of records are signed at once.
const signedBatch = 256

// signedSets calls do with everything that a zone in the mode transfer is made of, set
// by set with the signatures of each, in an order that is the same whenever the
// registry is: the SOA record first, then name by name, then the chain. The same
// registry gives the same bytes on every server.
func (z *Zone) signedSets(ctx context.Context, told func(n int), do func(set []dns.RR) error) error {
	s := z.signer
	if s == nil && z.trouble != nil {
		return &stele.Error{Op: "sign", Kind: stele.Conflict, Err: z.trouble}
	}
	if s == nil || s.Mode != zonesign.Transfer {
		return &stele.Error{Op: "sign", Kind: stele.Conflict, Err: stele.Messagef(
			"zone.not-signed-for-transfer", "{zone} is not signed for others; 'stele zone sign {zone} --mode transfer' makes it so", z.Name)}
	}
	batch, links := &signedSets{signer: s, do: do}, nsec3.New()
	err := z.eachOwner(ctx, told, func(p *OwnerRecords) error {
		if !p.Glue {
			links.Set(p.Name, z.Name, nsec3.Types(zonesign.TypesAt(p.Records)))
		}
		return batch.addOwner(p)
	})
	if err != nil {
		return err
	}
	soa, _ := z.Apex()
	err = links.Each(func(p *nsec3.Link) error {
		return batch.add([]dns.RR{p.Record(z.Name, zonesign.NegativeTTL(soa))}, true)
	})
	if err != nil {
		return err
	}
	return batch.flush()
}

// signedSets are sets of records that are signed together, by all processors.
type signedSets struct {
	signer *zonesign.Signer
	do     func(set []dns.RR) error
	sets   [][]dns.RR
	signed []bool // whether each is to be
}

// addOwner adds all sets at a name. At a cut the records are another zone's, except the
// digests of its keys; what stands below it is unsigned (RFC 4035, section 2.2).
func (b *signedSets) addOwner(p *OwnerRecords) error {
	sets := zonesign.RRsets(p.Records)
	for _, set := range sets {
		mine := !p.Glue && (!p.Delegated || set[0].Header().Rrtype == dns.TypeDS)
		if err := b.add(set, mine); err != nil {
			return err
		}
	}
	return nil
}

func (b *signedSets) add(set []dns.RR, signed bool) error {
	b.sets, b.signed = append(b.sets, zonesign.EvenTTL(set)), append(b.signed, signed)
	if len(b.sets) < signedBatch {
		return nil
	}
	return b.flush()
}

// flush signs what there is and passes it on.
func (b *signedSets) flush() error {
	signatures, errs := make([][]dns.RR, len(b.sets)), make([]error, len(b.sets))
	var all sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		all.Go(func() {
			for i := w; i < len(b.sets); i += workers {
				if b.signed[i] {
					signatures[i], errs[i] = b.signer.Sign(b.sets[i])
				}
			}
		})
	}
	all.Wait()
	for i, set := range b.sets {
		if errs[i] != nil {
			return errs[i]
		}
		if err := b.do(append(set[:len(set):len(set)], signatures[i]...)); err != nil {
			return err
		}
	}
	b.sets, b.signed = b.sets[:0], b.signed[:0]
	return nil
}

// ExportSigned is Export for a zone that is signed in the mode transfer, with all
// signatures and the chain of names.
func (z *Zones) ExportSigned(ctx context.Context, w io.Writer, name string, told func(n int)) error {
	one, err := z.zoneNamed(ctx, name)
	if err != nil {
		return err
	}
	still, err := z.Snapshot(ctx, one.Name)
	if err != nil {
		return err
	}
	if one.signer == nil || one.signer.Mode != zonesign.Transfer {
		return one.signedSets(ctx, nil, nil) // which says why not
	}
	one = still.Zone
	f := &zoneFile{w: w, zone: one}
	f.printf("; %s: %s, signed\n$ORIGIN %s\n$TTL %d\n", one.Name, one.purpose(), one.Name, one.zones.ttl)
	err = one.signedSets(ctx, told, func(set []dns.RR) error {
		for _, rr := range set {
			f.write(rr)
		}
		return f.err
	})
	if err != nil {
		return err
	}
	return still.store.catchUp(ctx)
}
