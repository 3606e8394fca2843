package publish

import (
	"context"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/naptr"
)

// Previewed is how a name would be found if its namespace were published as it says.
type Previewed struct {
	Rule    Entry          // the first rule of the zone, which leads from the name to its owner name
	Owner   string         // "" if the name has no owner name
	Reason  *stele.Message // why it has none
	Records []Entry        // what would stand at the owner name
}

// Preview returns how a record would be found in the DNS if its namespace were published as ns says.
// The namespace need not be in the registry, and neither need the record. The error says why it can't
// be published so; see [Zones.Judge].
func (z *Zones) Preview(ctx context.Context, ns *stele.Namespace, rec *stele.Record) (*Previewed, error) {
	if err := z.Judge(ctx, ns); err != nil {
		return nil, err
	}
	set := newZoneSet(z, []*stele.Namespace{ns})
	one := set.zones[ns.Publication.Zone]
	if one == nil {
		return &Previewed{}, nil
	}
	p := &Previewed{Owner: one.Name}
	var k keyRules
	set.addNamespaceRules(&k, newScope(set.schemes, ns, 0))
	if len(k.list) > 0 {
		p.Rule = Entry{one.Name, naptr.Text(naptr.NewNAPTR(one.Name, one.ttl, k.list[0]))}
	}
	if one.mapping != nil {
		if p.Owner, p.Reason = one.mapping.Owner(rec.ID.String()); p.Reason != nil {
			return p, nil
		}
	}
	out := one.compiler().Compile([]naptr.Named{{ID: rec.ID, Record: rec, Namespace: ns}})
	p.Records = entries(out.Records(p.Owner))
	return p, nil
}
