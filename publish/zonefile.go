package publish

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/naptr"
	"github.com/stele-id/stele/publish/zonesign"
)

// maxExported is how many aliases an export keeps in memory: records are written in
// the order in which the store has them, but aliases are found in any.
const maxExported = 5_000_000

// Export writes a zone as a master file (RFC 1035, section 5), for stock name
// servers. The same registry gives the same file. told is called with the number of
// records read since it was called last; it may be nil.
func (z *Zones) Export(ctx context.Context, w io.Writer, name string, told func(n int)) error {
	one, err := z.zoneNamed(ctx, name)
	if err != nil {
		return err
	}
	if len(one.ns.Publication.Servers) == 0 {
		return &stele.Error{Op: "export", Kind: stele.Conflict, Err: stele.Messagef(
			"zone.name-servers-missing", "the zone {zone} has no name servers, and no name server loads such a file; name them with 'stele zone add {argument} --ns NAME=ADDRESS'", one.Name, one.argument())}
	}
	still, err := z.Snapshot(ctx, one.Name) // what is committed meanwhile is not in it
	if err != nil {
		return err
	}
	f := &zoneFile{w: w, zone: still.Zone, told: told, compiler: still.compiler()}
	f.compiler.KeepHeads()
	f.head(one.signer)
	f.fixed(ctx)
	if still.mapping != nil {
		f.records(ctx)
	}
	if f.err != nil {
		return f.err
	}
	return still.store.catchUp(ctx)
}

// zoneNamed returns a zone by its name, in any case and with or without its last dot.
func (z *Zones) zoneNamed(ctx context.Context, name string) (*Zone, error) {
	set, err := z.current(ctx)
	if err != nil {
		return nil, err
	}
	if one := set.zones[strings.TrimSuffix(strings.ToLower(name), ".")+"."]; one != nil {
		return one, nil
	}
	return nil, &stele.Error{Op: "find zone", Kind: stele.NotFound, Err: stele.Messagef(
		"zone.unknown", `there is no zone "{zone}" here; 'stele zone ls' lists them`, name)}
}

// argument is how the zone's namespace is named on the command line.
func (z *Zone) argument() string {
	if z.ns.Publication.Layout == stele.LayoutRoot {
		return "--root " + z.Name
	}
	return z.ns.Prefix
}

// zoneFile is an export under way. After an error it does nothing any more.
type zoneFile struct {
	w    io.Writer
	zone *Zone
	told func(n int)
	err  error

	compiler *naptr.Compiler // and memory that is used again and again
	list     [1]naptr.Named
	made     naptr.Compiled
	text     []byte
}

func (f *zoneFile) printf(format string, args ...any) {
	if f.err == nil {
		_, f.err = fmt.Fprintf(f.w, format, args...)
	}
}

// head writes what a zone begins with. A file of a zone that is signed says that it has no
// signatures.
func (f *zoneFile) head(by *zonesign.Signer) {
	z := f.zone
	soa, ns := z.Apex()
	f.printf("; %s: %s\n", z.Name, z.purpose())
	if by != nil {
		f.printf("; The zone is signed, and this file has no signatures: validating resolvers refuse what is served from it.\n")
	}
	f.printf("$ORIGIN %s\n$TTL %d\n", z.Name, z.zones.ttl)
	f.write(soa)
	for _, rr := range ns {
		f.write(rr)
	}
}

// purpose says what a zone is for.
func (z *Zone) purpose() string {
	if z.ns.Publication.Layout == stele.LayoutRoot {
		return "the root of " + z.ns.Scheme + " names"
	}
	if z.isCatalog() {
		return "a catalog of zones for secondaries (RFC 9432)"
	}
	return "names that begin with " + z.ns.Prefix
}

// fixed writes what does not depend on records, the rules layout, and the cuts to
// zones inside this one.
func (f *zoneFile) fixed(ctx context.Context) {
	z := f.zone
	n, err := z.Lookup(ctx, z.Name)
	if err != nil {
		f.err = cmp.Or(f.err, err)
		return
	}
	for _, rr := range n.Records {
		f.write(rr)
	}
	for _, name := range z.staticNames() {
		if z.set.find(name) != z {
			continue
		}
		records, err := z.fixedAt(ctx, name)
		if err != nil {
			f.err = cmp.Or(f.err, err)
			return
		}
		for _, rr := range records {
			f.write(rr)
		}
	}
	for _, name := range z.set.order {
		if inner := z.set.zones[name]; inner != z && z.contains(name) && z.set.outer(inner) == z {
			for _, rr := range inner.delegation() {
				f.write(rr)
			}
		}
	}
}

// delegation is what the zone above has of a zone: its name servers, the digests of its
// keys, and the addresses that resolvers find nowhere else (glue).
func (z *Zone) delegation() []dns.RR {
	_, list := z.Apex()
	if z.signer != nil {
		list = append(list, z.signer.Parent...)
	}
	for _, s := range z.ns.Publication.Servers {
		if z.contains(s.Name) {
			list = append(list, addressRecords(s, z.zones.ttl)...)
		}
	}
	return list
}

// records writes all that is registered: identifiers in order, then aliases in order.
func (f *zoneFile) records(ctx context.Context) {
	if f.err != nil {
		return
	}
	f.err = f.zone.eachRegistered(ctx, f.told, func(id stele.ID, r *stele.Record) error {
		f.identifier(ctx, id, r)
		return f.err
	})
}

// EachIdentifier calls do with all public identifiers that have owner names in the zone: the
// identifiers of records in order, and then aliases in order.
func (z *Zone) EachIdentifier(ctx context.Context, do func(stele.ID, *stele.Record) error) error {
	if z.mapping == nil {
		return nil
	}
	return z.eachRegistered(ctx, nil, do)
}

// eachRegistered calls do with all identifiers of the zone that are public, in order, and
// then with all aliases in order.
func (z *Zone) eachRegistered(ctx context.Context, told func(n int), do func(stele.ID, *stele.Record) error) error {
	aliases := aliasList{in: z}
	for r, err := range z.zones.store.Scan(ctx, z.ns.Scheme, z.ns.Prefix, "") {
		if err != nil {
			return err
		}
		if told != nil {
			told(1)
		}
		if err := aliases.add(r); err != nil {
			return err
		}
		if isVisible(r) && aliases.in.has(r.ID) {
			if err := do(r.ID, r); err != nil {
				return err
			}
		}
	}
	if err := z.addAliases(ctx, &aliases, told); err != nil {
		return err
	}
	slices.SortFunc(aliases.ids, stele.ID.Compare)
	for _, id := range aliases.ids {
		r, err := z.zones.store.Record(ctx, id)
		if err != nil {
			return err
		}
		if !isVisible(r) {
			continue // since it was listed
		}
		if err := do(id, r); err != nil {
			return err
		}
	}
	return nil
}

// aliasList is aliases that are published in a zone.
type aliasList struct {
	in  *Zone
	ids []stele.ID
}

// add adds the aliases of a record that are.
func (l *aliasList) add(r *stele.Record) error {
	for _, id := range r.Aliases {
		if isVisible(r) && l.in.has(id) {
			l.ids = append(l.ids, id)
		}
	}
	if len(l.ids) > maxExported {
		return &stele.Error{Op: "export", Kind: stele.Exhausted, Err: stele.Messagef("zone.aliases-too-many", "more than {limit} aliases are published in {zone}", maxExported, l.in.Name)}
	}
	return nil
}

// addAliases adds those of the records whose identifiers do not begin as the zone's do.
func (z *Zone) addAliases(ctx context.Context, list *aliasList, told func(n int)) error {
	for scheme := range z.zones.schemes.All() {
		after, more := "", true
		for more {
			more = false
			for r, err := range z.zones.store.Scan(ctx, scheme.Name(), "", after) {
				if err != nil {
					return err
				}
				if scheme.Name() == z.ns.Scheme && strings.HasPrefix(r.ID.String(), z.ns.Prefix) {
					// They were read before, and stand together. No name has the byte 0xff.
					after, more = z.ns.Prefix+"\xff", z.ns.Prefix != ""
					break
				}
				if told != nil {
					told(1)
				}
				if err := list.add(r); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// identifier writes what stands at the owner name of an identifier. Where several
// share it, all of it is written with the first of them.
func (f *zoneFile) identifier(ctx context.Context, id stele.ID, r *stele.Record) {
	owner, list, err := f.zone.allAt(ctx, id, r, f.list[:])
	if err != nil {
		f.err = cmp.Or(f.err, err)
		return
	}
	if len(list) == 0 || f.err != nil {
		return
	}
	f.compiler.CompileTo(&f.made, list)
	f.text = f.made.AppendText(f.text[:0], f.shortName(owner))
	_, f.err = f.w.Write(f.text)
}

// allAt returns all identifiers that share the owner name of one; none if that has no owner
// name, or if they are written with another one of them (see firstOf). A list of one is in
// the memory of buf.
func (z *Zone) allAt(ctx context.Context, id stele.ID, r *stele.Record, buf []naptr.Named) (owner string, list []naptr.Named, err error) {
	owner, reason := z.mapping.Owner(id.String())
	if reason != nil || !z.reaches(owner) {
		return owner, nil, nil
	}
	if !z.mapping.Tells(id.String()) {
		return owner, append(buf[:0], naptr.Named{ID: id, Record: r, Namespace: z.namespaceOf(id)}), nil
	}
	if list, err = z.at(ctx, owner); err != nil || len(list) > 0 && firstOf(list) != id {
		return owner, nil, err
	}
	return owner, list, nil
}

// firstOf returns the identifier with which all others of an owner name are written:
// the first in order that is not an alias, or else the first.
func firstOf(list []naptr.Named) stele.ID {
	for _, n := range list {
		if n.Record.ID == n.ID {
			return n.ID
		}
	}
	return list[0].ID
}

// write writes a record.
func (f *zoneFile) write(rr dns.RR) {
	f.printf("%s %s\n", f.shortName(rr.Header().Name), naptr.Text(rr))
}

// shortName is how a name is written in the zone.
func (f *zoneFile) shortName(name string) string {
	if name == f.zone.Name {
		return "@"
	}
	if short, ok := strings.CutSuffix(name, f.zone.Name); ok && strings.HasSuffix(short, ".") {
		return short[:len(short)-1]
	}
	return name
}

// OwnerCompiler compiles the records at one owner name of a zone after the other, all in the
// same memory.
type OwnerCompiler struct {
	zone     *Zone
	compiler *naptr.Compiler
	out      naptr.Compiled
	list     [1]naptr.Named
}

// NewOwnerCompiler returns a compiler for the names of the zone.
func (z *Zone) NewOwnerCompiler() *OwnerCompiler {
	c := &OwnerCompiler{zone: z, compiler: z.compiler()}
	c.compiler.KeepHeads()
	return c
}

// Compile returns the owner name of a registered identifier and what is compiled for it,
// with the other identifiers that share the name. It returns nil if the identifier is not
// the first of those, or not in the zone. What it returns holds until the next call.
func (c *OwnerCompiler) Compile(ctx context.Context, id stele.ID, r *stele.Record) (owner string, out *naptr.Compiled, err error) {
	owner, list, err := c.zone.allAt(ctx, id, r, c.list[:])
	if err != nil || len(list) == 0 || c.zone.static[owner] != nil {
		return owner, nil, err
	}
	c.compiler.CompileTo(&c.out, list)
	return owner, &c.out, nil
}
