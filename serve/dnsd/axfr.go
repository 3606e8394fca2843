package dnsd

import (
	"context"
	"runtime"
	"sync"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/naptr"
	"github.com/stele-id/stele/publish/nsec3"
	"github.com/stele-id/stele/publish/zonesign"
)

// parcelSize is how many names are packed together by one processor.
const parcelSize = 128

// parcel is names of a zone that are packed together, and the messages that were made
// of them.
type parcel struct {
	owners  []*publish.OwnerRecords
	records []registeredName
	links   []nsec3.Link

	done     chan struct{} // closed when the rest is there
	messages [][]byte
	names    []linkName
	err      error
}

// registeredName is an identifier with its record, before it is known what stands at
// its owner name.
type registeredName struct {
	id     stele.ID
	record *stele.Record
}

// linkName is a name of a signed zone, for its chain.
type linkName struct {
	name  string
	types []uint16
}

// sending is a zone that is sent: one goroutine reads it, some make messages of it, and
// one writes those in order. What is under way between them is bounded.
type sending struct {
	zone  *publish.Zone
	out   *outgoing
	links *nsec3.Chain // of names sent so far, if the zone is signed
	spare sync.Pool    // of messages that were written

	open  chan *parcel // to be packed, if workers do that
	own   *packer      // packs them in the reading goroutine; nil if workers do
	order chan *parcel // to be written
	next  *parcel      // that is filled
}

// sendWhole sends a zone as it is now: its SOA record, all others, and the SOA record
// again (RFC 5936, section 2.2). Whatever is committed meanwhile is not in it.
func sendWhole(ctx context.Context, z *publish.Zones, out *outgoing, name string) error {
	one, err := z.Snapshot(ctx, name)
	if err != nil {
		return err
	}
	s := &sending{zone: one.Zone, out: out}
	if one.Signer() != nil {
		s.links = nsec3.New()
	}
	if err := s.run(ctx, s.read); err != nil {
		return err
	}
	if s.links != nil {
		if err := s.run(ctx, s.readLinks); err != nil {
			return err
		}
	}
	// The last record completes the zone, so all that was read must be of one state.
	if err := one.CatchUp(ctx); err != nil {
		return err
	}
	soa, _ := one.Apex()
	return out.records([]dns.RR{soa})
}

// run sends what read passes on.
func (s *sending) run(ctx context.Context, read func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workers := s.workers()
	s.open, s.order, s.next = make(chan *parcel, 2*workers), make(chan *parcel, 4*max(1, workers)), newParcel()
	var all sync.WaitGroup
	defer all.Wait()
	for range workers {
		all.Go(func() { s.newPacker().packAll(ctx) })
	}
	if s.own = nil; workers == 0 {
		s.own = s.newPacker()
	}
	all.Go(func() {
		defer close(s.order)
		defer close(s.open)
		err := read(ctx)
		if err == nil {
			err = s.pass(ctx, parcelSize)
		}
		if err != nil {
			cancel(err)
		}
	})
	if err := s.write(ctx); err != nil {
		cancel(err)
	}
	return context.Cause(ctx)
}

// workers returns how many goroutines pack beside the one that reads. Signing uses all
// processors. Without it, reading and packing take about as long, and together less than
// the secondary takes to load the zone: of two processors, one is left to the secondary or
// to other work.
func (s *sending) workers() int {
	n := runtime.GOMAXPROCS(0)
	switch {
	case s.links != nil:
		return n
	case n <= 2:
		return 0
	}
	return n / 2
}

func newParcel() *parcel {
	return &parcel{done: make(chan struct{}), records: make([]registeredName, 0, parcelSize)}
}

// read reads the zone.
func (s *sending) read(ctx context.Context) error {
	z := s.zone
	err := z.EachStaticOwner(ctx, func(p *publish.OwnerRecords) error {
		s.next.owners = append(s.next.owners, p)
		return s.pass(ctx, len(s.next.owners))
	})
	if err != nil {
		return err
	}
	if err := s.pass(ctx, parcelSize); err != nil {
		return err
	}
	return z.EachIdentifier(ctx, func(id stele.ID, r *stele.Record) error {
		s.next.records = append(s.next.records, registeredName{id, r})
		return s.pass(ctx, len(s.next.records))
	})
}

// readLinks reads the chain of all names that were sent.
func (s *sending) readLinks(ctx context.Context) error {
	return s.links.Each(func(p *nsec3.Link) error {
		s.next.links = append(s.next.links, *p)
		return s.pass(ctx, len(s.next.links))
	})
}

// pass passes the parcel on if it has so many names.
func (s *sending) pass(ctx context.Context, n int) error {
	if n < parcelSize {
		return nil
	}
	p := s.next
	s.next = newParcel()
	if s.own != nil {
		s.own.pack(ctx, p)
	} else {
		select {
		case s.open <- p:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	select {
	case s.order <- p:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// packer makes messages of parcels, all in the same memory.
type packer struct {
	*sending
	env      *envelopes
	compiler *publish.OwnerCompiler
}

func (s *sending) newPacker() *packer {
	w := &packer{sending: s, env: s.out.env.another(), compiler: s.zone.NewOwnerCompiler()}
	w.env.spare = &s.spare
	return w
}

// packAll packs parcels until there are no more.
func (s *packer) packAll(ctx context.Context) {
	for p := range s.open {
		s.pack(ctx, p)
	}
}

// pack packs a parcel.
func (s *packer) pack(ctx context.Context, p *parcel) {
	if p.err = context.Cause(ctx); p.err == nil {
		p.err = s.packOne(ctx, p)
	}
	s.env.close()
	p.messages = s.env.take()
	close(p.done)
}

func (s *packer) packOne(ctx context.Context, p *parcel) error {
	for _, one := range p.owners {
		own := *one
		own.Records = make([]dns.RR, len(one.Records))
		for i, rr := range one.Records {
			own.Records[i] = dns.Copy(rr) // it is shared, and packing changes it
		}
		if err := s.packOwner(p, &own); err != nil {
			return err
		}
	}
	z := s.zone
	for _, r := range p.records {
		owner, out, err := s.compiler.Compile(ctx, r.id, r.record)
		if err != nil {
			return err
		}
		if out == nil {
			continue
		}
		if err := s.packNamed(p, owner, out); err != nil {
			return err
		}
	}
	soa, _ := z.Apex()
	for i := range p.links {
		if err := s.packSet([]dns.RR{p.links[i].Record(z.Name, zonesign.NegativeTTL(soa))}, true); err != nil {
			return err
		}
	}
	return nil
}

// packNamed packs what was compiled for a name. Its records have one TTL.
func (s *packer) packNamed(p *parcel, owner string, out *naptr.Compiled) error {
	if s.links != nil {
		return s.packOwner(p, &publish.OwnerRecords{Name: owner, Records: out.Records(owner)})
	}
	return s.env.addCompiled(owner, out)
}

// packOwner packs what stands at a name.
func (s *packer) packOwner(p *parcel, one *publish.OwnerRecords) error {
	if s.links != nil && !one.Glue {
		p.names = append(p.names, linkName{one.Name, nsec3.Types(zonesign.TypesAt(one.Records))})
	}
	for _, set := range zonesign.RRsets(one.Records) {
		mine := !one.Glue && (!one.Delegated || set[0].Header().Rrtype == dns.TypeDS)
		if err := s.packSet(set, mine); err != nil {
			return err
		}
	}
	return nil
}

// packSet packs a set, with its signatures if the zone is signed and it is to be.
func (s *packer) packSet(set []dns.RR, mine bool) error {
	set = zonesign.EvenTTL(set)
	if s.links != nil && mine {
		signatures, err := s.zone.Signer().Sign(set)
		if err != nil {
			return err
		}
		set = append(set[:len(set):len(set)], signatures...)
	}
	return s.env.addAll(set)
}

// write writes parcels in order.
func (s *sending) write(ctx context.Context) error {
	for p := range s.order {
		select {
		case <-p.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if p.err != nil {
			return p.err
		}
		for _, n := range p.names {
			s.links.Set(n.name, s.zone.Name, n.types)
		}
		if err := s.out.write(p.messages); err != nil {
			return err
		}
		for _, msg := range p.messages {
			s.spare.Put(&msg)
		}
	}
	return nil
}
