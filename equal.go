package stele

import (
	"bytes"
	"maps"
	"slices"
)

// Equal reports whether two records are the same in every field. An empty list is the same as
// none, and times are the same if they are the same instant. A nil record equals only nil.
func (r *Record) Equal(other *Record) bool {
	if r == nil || other == nil {
		return r == other
	}
	return r.ID == other.ID && r.Spelling == other.Spelling && slices.Equal(r.Aliases, other.Aliases) &&
		r.State == other.State && r.Tombstone.equal(other.Tombstone) &&
		slices.Equal(r.Targets, other.Targets) && maps.Equal(r.Metadata, other.Metadata) && r.Persistence == other.Persistence &&
		slices.EqualFunc(r.Values, other.Values, HandleValue.equal) && slices.Equal(r.Readers, other.Readers) &&
		slices.EqualFunc(r.Signatures, other.Signatures, Signature.equal) &&
		r.Version == other.Version && r.Created.Equal(other.Created) && r.Modified.Equal(other.Modified) && r.By == other.By &&
		r.Redacted == other.Redacted && r.Import == other.Import &&
		r.Withheld.Redacted == other.Withheld.Redacted && r.Withheld.Erased == other.Withheld.Erased &&
		slices.EqualFunc(r.Withheld.Disavowed, other.Withheld.Disavowed, func(a, b Disavowal) bool { return a.Equal(b) })
}

func (t *Tombstone) equal(other *Tombstone) bool {
	if t == nil || other == nil {
		return t == other
	}
	return t.Reason == other.Reason && t.At.Equal(other.At) && t.Replacement == other.Replacement
}

func (v HandleValue) equal(other HandleValue) bool {
	return v.Index == other.Index && v.Type == other.Type && bytes.Equal(v.Data, other.Data) &&
		v.TTL == other.TTL && v.TTLAbsolute == other.TTLAbsolute && v.Timestamp == other.Timestamp &&
		v.Permissions == other.Permissions && slices.Equal(v.References, other.References)
}

func (s Signature) equal(other Signature) bool {
	return s.SHA256 == other.SHA256 && s.Size == other.Size && s.Type == other.Type && s.Date.Equal(other.Date) &&
		s.Key == other.Key && s.JWS == other.JWS
}

// Equal reports whether two namespaces are the same in every field, as [Record.Equal] does.
func (n *Namespace) Equal(other *Namespace) bool {
	if n == nil || other == nil {
		return n == other
	}
	return n.Scheme == other.Scheme && n.Prefix == other.Prefix && n.Owner == other.Owner && n.Title == other.Title &&
		n.Minter == other.Minter && n.TTL == other.TTL && n.Status == other.Status && n.Persistence == other.Persistence &&
		slices.Equal(n.Hosts, other.Hosts) && slices.Equal(n.Protocols, other.Protocols) && n.Delegate == other.Delegate &&
		n.Checked == other.Checked && n.Passthrough == other.Passthrough && n.Reviewed == other.Reviewed && n.Listed == other.Listed && n.Handles == other.Handles && slices.EqualFunc(n.Rules, other.Rules, Rule.Equal) && n.Quota == other.Quota &&
		n.Publication.equal(&other.Publication) && slices.Equal(n.Grants, other.Grants) &&
		slices.EqualFunc(n.Keys, other.Keys, SigningKey.equal) && n.SameHeirs(other) && n.SameHandOver(other) &&
		n.Version == other.Version && n.Created.Equal(other.Created) && n.Modified.Equal(other.Modified) && n.By == other.By
}

func (k SigningKey) equal(other SigningKey) bool {
	return k.ID == other.ID && k.Algorithm == other.Algorithm && bytes.Equal(k.Public, other.Public) &&
		k.Created.Equal(other.Created) && k.Expires.Equal(other.Expires) && k.Revoked.Equal(other.Revoked) && k.Note == other.Note
}

func (p *Publication) equal(other *Publication) bool {
	return p.Zone == other.Zone && p.Layout == other.Layout && p.Separator == other.Separator && p.Parts == other.Parts && p.Exact == other.Exact &&
		slices.EqualFunc(p.Servers, other.Servers, func(a, b NameServer) bool {
			return a.Name == b.Name && slices.Equal(a.Addresses, b.Addresses)
		}) &&
		p.Mailbox == other.Mailbox && p.Resolver == other.Resolver && p.Signing == other.Signing &&
		slices.EqualFunc(p.Secondaries, other.Secondaries, func(a, b Secondary) bool {
			return a.Network == b.Network && a.Key == b.Key && slices.Equal(a.Notify, b.Notify)
		}) &&
		slices.Equal(p.Records, other.Records) && p.Catalog == other.Catalog && slices.Equal(p.Elsewhere, other.Elsewhere)
}

// Equal reports whether two entries of an audit trail are the same. A nil entry equals only nil.
func (e *AuditEntry) Equal(other *AuditEntry) bool {
	if e == nil || other == nil {
		return e == other
	}
	same := *e
	same.At = other.At
	return same == *other && e.At.Equal(other.At)
}
