package handles

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/wire/hdl"
)

// Change is an operation that changes a handle. A server calls its methods in this order: [Service.Begin],
// which finds what is wrong for every client; [Change.Claim] with the identity that the client claims;
// then, once that is proved, [Change.Authorise] and [Change.Commit]. It is the order of the reference server, whose clients
// see from it whether to ask for a key at all.
type Change struct {
	Operation hdl.Operation // CreateHandle, DeleteHandle, AddValue, ModifyValue or RemoveValue
	Handle    string        // as the client wrote it
	Values    []stele.HandleValue
	Indexes   []uint32 // of values to remove
	Overwrite bool     // a handle or values that are there are replaced
	Mint      bool     // the handle gets a suffix

	// Replaced says, after Commit, that Overwrite replaced something.
	Replaced bool

	s      *Service
	id     stele.ID
	record *stele.Record // as it was read last, in whatever state it is; nil: none
	before *stele.Record // the same as clients see it; nil: none that the protocol finds

	acting *auth.Principal // who writes; nil until Commit
}

// maxRetries is how often a change is judged anew because another writer was faster.
const maxRetries = 5

// Begin finds what is wrong with a change for every client.
func (s *Service) Begin(ctx context.Context, c *Change) error {
	c.s = s
	if err := c.name(ctx); err != nil {
		return err
	}
	if err := c.checkValues(); err != nil {
		return err
	}
	if err := c.read(ctx); err != nil || c.isUnknown() {
		return err
	}
	switch c.Operation {
	case hdl.CreateHandle:
		if !c.Overwrite {
			return refuse(hdl.HandleExists, "")
		}
	case hdl.ModifyValue:
		for i := range c.Values {
			if at(c.before.Values, c.Values[i].Index) < 0 {
				return refuse(hdl.ValuesNotFound, "")
			}
		}
	}
	return nil
}

// name reads the handle, and mints a suffix if that is asked for.
func (c *Change) name(ctx context.Context) (err error) {
	if c.Mint && c.Operation == hdl.CreateHandle {
		suffix, err := c.s.o.UUID()
		if err != nil {
			return &Refusal{Code: hdl.ServerBusy, Err: err}
		}
		c.Handle, c.Mint = c.Handle+suffix, false // Begin may be called again
	}
	c.id, err = c.s.parse(ctx, c.Handle)
	return err
}

// checkValues judges the indexes of the values, which must be positive in the reference's arithmetic,
// and different.
func (c *Change) checkValues() error {
	seen := make(map[uint32]bool, len(c.Values))
	for i := range c.Values {
		index := c.Values[i].Index
		switch {
		case index == 0 || index > 1<<31-1:
			return refuse(hdl.InvalidValue, "Value indexes must be positive")
		case seen[index]:
			return refuse(hdl.ValueExists, fmt.Sprintf("Index conflict for %d", index))
		}
		seen[index] = true
	}
	return nil
}

// read finds the record as it is now.
func (c *Change) read(ctx context.Context) (err error) {
	rec, err := c.s.record(ctx, c.id)
	if c.record, c.before = rec, nil; rec == nil || rec.State != stele.Active {
		return err
	}
	seen := *rec // with the values that clients see, which they may change
	seen.Values = Values(rec, rec.Targets)
	c.before = &seen
	return nil
}

// isUnknown reports whether the change is about a record that the public does not know of: there is none, or it is for some
// readers only. The two must look the same until a client has proved who it is.
func (c *Change) isUnknown() bool { return c.before == nil || !c.before.IsPublic() }

// ID returns the handle that the change is about.
func (c *Change) ID() stele.ID { return c.id }

// Claim makes sure that an identity which a client claims, and has not proved, may make the change: the reference answers with that
// before it verifies the proof (section 7). Of a record that the public does not know of it says what it says where there is none.
func (c *Change) Claim(ctx context.Context, who Identity) error {
	if err := c.read(ctx); err != nil {
		return err
	}
	if !c.isUnknown() {
		return c.judge(ctx, who)
	}
	if c.Operation != hdl.CreateHandle {
		return nil
	}
	makes, bit, err := c.mayMake(ctx, who)
	if err != nil {
		return err
	}
	return makes.need(bit)
}

// Authorise makes sure that an identity may make the change, as the record is now.
func (c *Change) Authorise(ctx context.Context, who Identity) error {
	if err := c.read(ctx); err != nil {
		return err
	}
	return c.judge(ctx, who)
}

// judge makes sure that an identity may make the change, as the record was when it was read last.
func (c *Change) judge(ctx context.Context, who Identity) error {
	if who == Public() {
		public, err := c.IsPublic(ctx)
		if err == nil && !public {
			err = refuse(hdl.NotPermitted, "")
		}
		if err == nil {
			c.keepSettings()
		}
		return err
	}
	if c.Operation == hdl.CreateHandle {
		return c.authoriseCreate(ctx, who)
	}
	if c.before == nil {
		return refuse(hdl.HandleNotFound, "")
	}
	has, err := c.rights(ctx, who, c.before.ID, c.before)
	if err != nil {
		return err
	}
	if c.isUnknown() && !has.known {
		return refuse(hdl.HandleNotFound, "")
	}
	if c.Operation == hdl.DeleteHandle {
		return has.need(hdl.MayDeleteHandle)
	}
	need, err := c.needs()
	if err != nil {
		return err
	}
	return has.need(need)
}

// Everybody together may change a handle so often: 10 times at once, and then every 30 seconds. Each change is a version that is
// kept for ever, and clients have more addresses than a limit for each of them knows.
const (
	publicRate  = 1
	publicCost  = 30
	publicBurst = 10 * publicCost
)

// Public is the identity of everybody, by which values are changed that everybody may change. No client can prove it.
func Public() Identity { return Identity{Handle: "public"} }

// IsPublic reports whether everybody may make the change: values are modified that say so, in a namespace that lets them
// say so. Such a change never makes an administrator, and never takes the permission from others.
func (c *Change) IsPublic(ctx context.Context) (bool, error) {
	if c.Operation != hdl.ModifyValue || c.before == nil || len(c.Values) == 0 {
		return false, nil
	}
	ns, err := c.s.Namespace(ctx, c.before.ID)
	if err != nil || ns == nil || !ns.Handles.PublicWrite || !c.before.IsPublic() {
		return false, err
	}
	for i := range c.Values {
		next := &c.Values[i]
		have := c.find(next.Index)
		if have == nil || have.Permissions&stele.PublicWrite == 0 || next.Permissions != have.Permissions || next.Type != have.Type || isSystem(have) {
			return false, nil
		}
	}
	return true, nil
}

// keepSettings leaves of the values that everybody changes what the owner has set: for how long others keep them, and to which
// handles they refer. A client that modifies a value sends a TTL in any case, so another one is not refused.
func (c *Change) keepSettings() {
	values := slices.Clone(c.Values) // the caller has the ones before
	for i := range values {
		if have := c.find(values[i].Index); have != nil {
			values[i].TTL, values[i].TTLAbsolute, values[i].References = have.TTL, have.TTLAbsolute, have.References
		}
	}
	c.Values = values
}

// isSystem reports whether a value says something to the Handle System itself: who administers a handle, by which key, where it
// is served.
func isSystem(v *stele.HandleValue) bool {
	const mark = "HS_"
	return len(v.Type) >= len(mark) && strings.EqualFold(v.Type[:len(mark)], mark)
}

// authoriseCreate asks the record of the prefix, or where a handle is replaced the record itself.
func (c *Change) authoriseCreate(ctx context.Context, who Identity) error {
	makes, bit, err := c.mayMake(ctx, who)
	if err != nil {
		return err
	}
	if c.before == nil {
		return makes.need(bit)
	}
	has, err := c.rights(ctx, who, c.before.ID, c.before)
	if err != nil {
		return err
	}
	if c.isUnknown() && !has.known && !makes.allows(bit) {
		return makes.need(bit)
	}
	if !c.Overwrite || c.isUnknown() && !has.known { // another client was faster, or the name is taken
		return refuse(hdl.HandleExists, "")
	}
	if has.allows(hdl.MayAddAdmin) || has.allows(hdl.MayDeleteHandle) && makes.allows(bit) {
		return nil
	}
	need, err := c.difference()
	if err != nil {
		return err
	}
	return has.need(need)
}

// mayMake returns what an identity may do below the record of the prefix, and the right that it takes there to make a handle.
func (c *Change) mayMake(ctx context.Context, who Identity) (has rights, need hdl.AdminPermissions, err error) {
	parent, need, err := c.s.parentOf(c.id)
	if err != nil {
		return rights{}, 0, refusalOf(err)
	}
	if c.s.administers(who) {
		return rights{known: true, all: true}, need, nil
	}
	above, err := c.s.present(ctx, parent)
	if err != nil {
		return rights{}, 0, err
	}
	has, err = c.rights(ctx, who, c.id, above)
	return has, need, err
}

// rights is [Service.rightsIn], which Commit need not ask who acts for the identity.
func (c *Change) rights(ctx context.Context, who Identity, id stele.ID, rec *stele.Record) (rights, error) {
	if c.acting != nil {
		return c.s.rightsAs(ctx, who, *c.acting, id, rec)
	}
	return c.s.rightsIn(ctx, who, id, rec)
}

// needs returns the rights that adding, modifying or removing the values takes, or why that can't be
// done at all: a value that administrators may not write.
func (c *Change) needs() (need hdl.AdminPermissions, err error) {
	for i := range c.Values {
		next := &c.Values[i]
		have := c.find(next.Index)
		switch {
		case have == nil:
			need |= choose(isAdmin(next), hdl.MayAddAdmin, hdl.MayAddValue)
		case c.Operation == hdl.AddValue && !c.Overwrite:
			need |= choose(isAdmin(next), hdl.MayAddAdmin, hdl.MayAddValue)
		default:
			bits, err := replacing(have, next)
			if err != nil {
				return 0, err
			}
			need |= bits
		}
	}
	for _, index := range c.Indexes {
		if have := c.find(index); have != nil {
			if have.Permissions&stele.AdminWrite == 0 {
				return 0, errReadOnly()
			}
			need |= choose(isAdmin(have), hdl.MayRemoveAdmin, hdl.MayRemoveValue)
		}
	}
	if need == 0 && c.Operation == hdl.RemoveValue {
		need = hdl.MayRemoveValue // nothing of it is there, which only an administrator learns
	}
	return need, nil
}

// difference returns the rights that it takes to make the values of the record those of the change.
func (c *Change) difference() (need hdl.AdminPermissions, err error) {
	for i := range c.Values {
		next := &c.Values[i]
		if have := c.find(next.Index); have == nil {
			need |= choose(isAdmin(next), hdl.MayAddAdmin, hdl.MayAddValue)
		} else if !sameValue(have, next) {
			bits, err := replacing(have, next)
			if err != nil {
				return 0, err
			}
			need |= bits
		}
	}
	for i := range c.before.Values {
		have := &c.before.Values[i]
		if at(c.Values, have.Index) >= 0 {
			continue
		}
		if have.Permissions&stele.AdminWrite == 0 {
			return 0, errReadOnly()
		}
		need |= choose(isAdmin(have), hdl.MayRemoveAdmin, hdl.MayRemoveValue)
	}
	return need, nil
}

// replacing returns the rights that it takes to replace a value by another one. Who makes a value of
// type HS_ADMIN of another one adds an administrator, and the other way round (section 7).
func replacing(have, next *stele.HandleValue) (hdl.AdminPermissions, error) {
	if have.Permissions&stele.AdminWrite == 0 {
		return 0, errReadOnly()
	}
	switch was, is := isAdmin(have), isAdmin(next); {
	case was && is:
		return hdl.MayModifyAdmin, nil
	case is:
		return hdl.MayModifyValue | hdl.MayAddAdmin, nil
	case was:
		return hdl.MayRemoveAdmin | hdl.MayModifyValue, nil
	}
	return hdl.MayModifyValue, nil
}

func errReadOnly() error { return refuse(hdl.NotPermitted, "Value is read-only") }

func choose(admin bool, yes, no hdl.AdminPermissions) hdl.AdminPermissions {
	if admin {
		return yes
	}
	return no
}

// find returns the value that the record has with this index; nil if there is none.
func (c *Change) find(index uint32) *stele.HandleValue {
	if i := at(c.before.Values, index); i >= 0 {
		return &c.before.Values[i]
	}
	return nil
}

// at returns where the value with an index is, or -1.
func at(values []stele.HandleValue, index uint32) int {
	return slices.IndexFunc(values, func(v stele.HandleValue) bool { return v.Index == index })
}

// sameValue reports whether two values are equal except for when they were written.
func sameValue(a, b *stele.HandleValue) bool {
	return a.Index == b.Index && a.Type == b.Type && string(a.Data) == string(b.Data) && a.TTL == b.TTL &&
		a.TTLAbsolute == b.TTLAbsolute && a.Permissions == b.Permissions && slices.Equal(a.References, b.References)
}

// Commit makes the change for an identity that was proved. It judges again what it writes, so that no
// right is used that was taken away meanwhile.
func (c *Change) Commit(ctx context.Context, who Identity) error {
	p, err := c.s.Principal(ctx, who)
	if err != nil {
		return err
	}
	if who == Public() {
		if err := c.s.public.Take(c.id.String(), publicCost, c.s.o.Now()); err != nil {
			return &Refusal{Code: hdl.ServerBusy, Err: err}
		}
	}
	c.acting = &p
	defer func() { c.acting = nil }()
	judge := c.judge // what was read last: the change is written to that version and no other one
	for range maxRetries {
		if err := judge(ctx, who); err != nil {
			return err
		}
		p := p.Administering(c.id)
		if c.before != nil {
			p = p.Administering(c.before.ID) // the handle may be an alias
		}
		if c.s.administers(who) {
			p.Admin = true
		}
		err = c.write(auth.With(ctx, p))
		if again := stele.KindOf(err) == stele.Conflict && c.isStale(ctx); !again {
			return c.told(err)
		}
		judge = c.Authorise // another writer was faster
	}
	return &Refusal{Code: hdl.ServerBusy, Err: err}
}

// told returns an error as a refusal.
func (c *Change) told(err error) error {
	if _, ok := err.(*Refusal); ok || err == nil {
		return err
	}
	return refusalOf(err)
}

// isStale reports whether the record is another version than the one that was judged.
func (c *Change) isStale(ctx context.Context) bool {
	rec, err := c.s.record(ctx, c.id)
	return err == nil && version(rec) != version(c.record)
}

func version(rec *stele.Record) uint64 {
	if rec == nil {
		return 0
	}
	return rec.Version
}

// write writes the change to the version that was judged, and to no other one.
func (c *Change) write(ctx context.Context) error {
	r := c.s.o.Registrar
	switch {
	case c.Operation == hdl.DeleteHandle:
		_, err := r.Withdraw(ctx, c.before.ID, c.before.Version, destination.DeletedByClient, stele.ID{})
		return err
	case c.Operation == hdl.CreateHandle && c.before == nil:
		return c.create(ctx, c.stamped(nil))
	case c.Operation == hdl.CreateHandle:
		c.Replaced = true
		values := c.stamped(c.before.Values)
		slices.SortStableFunc(values, byIndex) // as the reference stores what replaces a handle
		return c.update(ctx, values)
	}
	values, err := c.merged()
	if err != nil {
		return err
	}
	return c.update(ctx, values)
}

func byIndex(a, b stele.HandleValue) int { return cmp.Compare(a.Index, b.Index) }

// create registers the handle. One that a client of the protocol deleted comes back as a new version.
func (c *Change) create(ctx context.Context, values []stele.HandleValue) error {
	rec, spelling := c.record, c.spelling()
	if rec == nil {
		_, err := c.s.o.Registrar.Register(ctx, &stele.Record{ID: c.id, Spelling: spelling, State: stele.Active, Values: values})
		return err
	}
	if !destination.IsDeleted(rec) && !(rec.State == stele.Withdrawn && auth.IsHandle(rec.By)) || rec.ID != c.id {
		return refuse(hdl.HandleExists, "")
	}
	_, err := c.s.o.Registrar.Revive(ctx, c.id, rec.Version, func(next *stele.Record) error {
		before := next.Values
		next.Spelling, next.Values = spelling, values
		destination.Follow(before, values, next)
		return nil
	})
	return err
}

// spelling returns the handle as the client wrote it, if that is another text than its own and can be read.
func (c *Change) spelling() string {
	if c.Handle == Bare(c.id) {
		return ""
	}
	for _, mark := range []string{"", destination.HandleMark} {
		text := mark + c.Handle
		if id, err := c.s.o.Schemes.Parse(text); err == nil && id == c.id {
			return text
		}
	}
	return ""
}

// update gives the record other values, and the targets that follow from them.
func (c *Change) update(ctx context.Context, values []stele.HandleValue) error {
	_, err := c.s.o.Registrar.Update(ctx, c.before.ID, c.before.Version, func(next *stele.Record) error {
		next.Values = values
		destination.Follow(c.before.Values, values, next)
		return nil
	})
	return err
}

// stamped returns the values of the change with the time at which they are written. Those that are as
// before keep theirs.
func (c *Change) stamped(before []stele.HandleValue) []stele.HandleValue {
	now := uint32(min(max(c.s.o.Now().Unix(), 0), 1<<32-1))
	values := slices.Clone(c.Values)
	for i := range values {
		v := &values[i]
		v.Timestamp = now
		if k := at(before, v.Index); k >= 0 && sameValue(&before[k], v) {
			v.Timestamp = before[k].Timestamp
		}
	}
	return values
}

// merged returns the values of the record with the change made.
func (c *Change) merged() ([]stele.HandleValue, error) {
	values := slices.Clone(c.before.Values)
	if c.Operation == hdl.RemoveValue {
		gone := func(v stele.HandleValue) bool { return slices.Contains(c.Indexes, v.Index) }
		if !slices.ContainsFunc(values, gone) {
			return nil, refuse(hdl.ValuesNotFound, "")
		}
		return slices.DeleteFunc(values, gone), nil
	}
	for _, v := range c.stamped(values) {
		k := at(values, v.Index)
		switch {
		case k < 0 && c.Operation == hdl.ModifyValue:
			return nil, refuse(hdl.ValuesNotFound, "")
		case k < 0:
			values = append(values, v)
		case c.Operation == hdl.AddValue && !c.Overwrite:
			return nil, refuse(hdl.ValueExists, fmt.Sprintf("Index conflict for %d", v.Index))
		default:
			c.Replaced = c.Replaced || c.Operation == hdl.AddValue
			values[k] = v
		}
	}
	return values, nil
}
