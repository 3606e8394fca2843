package describe

import "encoding/json"

// context is where links begin, and the links by relation (RFC 9264, section 4.2).
type context struct {
	anchor string
	rels   []relation
}

type relation struct {
	name  string
	links []Link
}

// appendLinkset writes all links from the identifier and to it.
func appendLinkset(b []byte, f *facts) (_ []byte, err error) {
	b = append(b, `{"linkset":[`...)
	for i, c := range contexts(f.self, f.links(), f.others(), f.backlinks()) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"anchor":`...)
		if b, err = appendString(b, c.anchor); err != nil {
			return b, err
		}
		for _, r := range c.rels {
			b = append(b, ',')
			if b, err = appendRelation(b, r); err != nil {
				return b, err
			}
		}
		b = append(b, '}')
	}
	return append(b, "]}\n"...), nil
}

// contexts sorts links by where they begin and by their relation, in the order in
// which these first occur.
func contexts(self string, lists ...[]Link) (all []context) {
	at := make(map[string]int)
	for _, links := range lists {
		for _, l := range links {
			if l.Anchor == "" {
				l.Anchor = self
			}
			i, ok := at[l.Anchor]
			if !ok {
				i = len(all)
				at[l.Anchor] = i
				all = append(all, context{anchor: l.Anchor})
			}
			all[i].add(l)
		}
	}
	return all
}

// add adds a link to those of its relation, of which there are few.
func (c *context) add(l Link) {
	for i := range c.rels {
		if c.rels[i].name == l.Rel {
			c.rels[i].links = append(c.rels[i].links, l)
			return
		}
	}
	c.rels = append(c.rels, relation{l.Rel, []Link{l}})
}

// target is a link's end as linksets in JSON write it (section 4.2.3).
type target struct {
	URL       string   `json:"href"`
	Type      string   `json:"type,omitempty"`
	Languages []string `json:"hreflang,omitempty"`
}

func appendRelation(b []byte, r relation) ([]byte, error) {
	targets := make([]target, len(r.links))
	for i, l := range r.links {
		targets[i] = target{URL: l.URL, Type: l.Type}
		if l.Language != "" {
			targets[i].Languages = []string{l.Language}
		}
	}
	enc, err := json.Marshal(targets)
	b = append(b, '"')
	b = append(b, r.name...) // one of our own words
	b = append(b, '"', ':')
	return append(b, enc...), err
}
