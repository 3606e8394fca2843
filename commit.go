package stele

import (
	"slices"
	"strings"
)

// Check returns an error of kind Invalid if the commit breaks a rule that holds
// whatever a store has: something can't be kept, or is there twice. Every store calls
// it first, so that all of them refuse the same.
func (c *Commit) Check() error {
	for _, r := range c.Records {
		if err := r.checkVersion(); err != nil {
			return err
		}
	}
	for _, n := range c.Namespaces {
		if err := n.checkVersion(); err != nil {
			return err
		}
	}
	for i := range c.Minters {
		if err := c.Minters[i].Check(); err != nil {
			return err
		}
	}
	for i := range c.Cells {
		if err := c.Cells[i].check(); err != nil {
			return err
		}
	}
	if err := c.checkSeen(); err != nil {
		return err
	}
	if err := c.checkZones(); err != nil {
		return err
	}
	if err := c.checkOnce(); err != nil {
		return err
	}
	if err := c.checkAudit(); err != nil {
		return err
	}
	return c.checkReplay()
}

// unfit makes an error about what can't be committed.
func unfit(id ID, code, text string, args ...any) error {
	return &Error{Op: "commit", ID: id, Kind: Invalid, Err: Messagef(code, text, args...)}
}

// checkOnce makes sure that a commit has nothing twice.
func (c *Commit) checkOnce() error {
	if r := repeated(c.Records, func(r *Record) ID { return r.ID }); r != nil {
		if err := c.checkRuns(); err != nil {
			return err
		}
	}
	if n := repeated(c.Namespaces, (*Namespace).Key); n != nil {
		return unfit(ID{}, "commit.namespace-twice", `namespace "{namespace}" is in the commit twice; commit one version after the other`, (*n).Key())
	}
	if m := repeated(c.Minters, func(m MinterState) string { return m.Name }); m != nil {
		return unfit(ID{}, "commit.minter-twice", `minter "{minter}" is in the commit twice; commit its last state`, m.Name)
	}
	if cell := repeatedCell(c.Cells); cell != nil {
		return unfit(ID{}, "commit.cell-twice", `cell "{cell}" is in the commit twice; commit its last value`, cell.Name)
	}
	return nil
}

// checkRuns makes sure that each record that is in the commit several times is a new one with
// its history: all its versions from the first on, one after the other. None of them withholds
// another one: to erase versions, a store reads what it has committed.
func (c *Commit) checkRuns() error {
	seen := make(map[ID]bool, len(c.Records))
	run := uint64(0) // the version of the record before in its run; 0 if that is not a run
	for i, r := range c.Records {
		if i > 0 && c.Records[i-1].ID == r.ID && run > 0 && r.Version == run+1 && r.Withheld.IsZero() {
			run++
			continue
		}
		if seen[r.ID] {
			return unfit(r.ID, "commit.record-twice", "the record is in the commit twice, and not as a new one with its versions in order, of which none withholds another; commit one version after the other")
		}
		seen[r.ID] = true
		if run = 0; r.Version == 1 {
			run = 1
		}
	}
	return nil
}

// repeatedCell is repeated for cells. Many are changed at once in the order of their names, and then need no map.
func repeatedCell(list []CellChange) *CellChange {
	for i := 1; i < len(list); i++ {
		if list[i-1].Name >= list[i].Name {
			return repeated(list, func(c CellChange) string { return c.Name })
		}
	}
	return nil
}

// repeated returns the first in a list whose key another one before it has; nil if there
// is none. Most lists are short, and need no map.
func repeated[T any, K comparable](list []T, key func(T) K) *T {
	const short = 16
	if len(list) <= short {
		for i := range list {
			for j := range i {
				if key(list[i]) == key(list[j]) {
					return &list[i]
				}
			}
		}
		return nil
	}
	seen := make(map[K]bool, len(list))
	for i := range list {
		k := key(list[i])
		if seen[k] {
			return &list[i]
		}
		seen[k] = true
	}
	return nil
}

// checkSeen refuses conditions that can't hold, and those on records that the commit writes, which have one of their own.
func (c *Commit) checkSeen() error {
	for _, seen := range c.Seen {
		if !seen.ID.IsValid() || seen.Version == 0 {
			return unfit(seen.ID, "commit.seen-incomplete", "a record that was seen has no identifier or no version; give both")
		}
		if slices.ContainsFunc(c.Records, func(r *Record) bool { return r.ID == seen.ID }) {
			return unfit(seen.ID, "commit.seen-written", "the commit writes the record that was seen; its version is the condition")
		}
	}
	if twice := repeated(c.Seen, func(seen SeenRecord) ID { return seen.ID }); twice != nil {
		return unfit(twice.ID, "commit.seen-twice", "the record was seen twice in the commit; leave one out")
	}
	return nil
}

// CheckFirst returns an error of kind Invalid if the record can't be a first version,
// which is what Ingest takes.
func (r *Record) CheckFirst() error {
	if r != nil && r.Version > 1 {
		return &Error{Op: "ingest", ID: r.ID, Kind: Invalid, Err: Messagef("ingest.record-not-new", "version {version}; only new records, of version 1, are ingested", r.Version)}
	}
	return r.checkVersion()
}

// checkVersion refuses what can't be a version of a record.
func (r *Record) checkVersion() error {
	switch {
	case r == nil:
		return unfit(ID{}, "record.nil", "a record is nil; leave it out")
	case !r.ID.IsValid():
		return unfit(ID{}, "record.identifier-missing", "a record has no identifier; give it one")
	case r.Version == 0:
		return unfit(r.ID, "record.version-zero", "the version is 0; the first is 1")
	}
	if err := checkKeptName(r.ID, r.ID); err != nil {
		return err
	}
	if err := r.checkWithheld(); err != nil {
		return err
	}
	for _, alias := range r.Aliases {
		if alias == r.ID {
			return unfit(r.ID, "alias.own-name", "its own name is among its aliases; leave it out")
		}
		if err := checkKeptName(r.ID, alias); err != nil {
			return err
		}
	}
	if alias := repeated(r.Aliases, func(id ID) ID { return id }); alias != nil {
		return unfit(r.ID, "alias.twice", `the alias "{alias}" is there twice; leave one out`, *alias)
	}
	return nil
}

// checkKeptName refuses a name that could not be read back from where it is kept.
func checkKeptName(id, name ID) error {
	if _, err := NewID(name.Scheme(), name.String()); err != nil {
		return unfit(id, "record.name-unkeepable", `the name "{name}" can't be kept: {cause}`, name, err)
	}
	return nil
}

// checkVersion refuses what can't be a version of a namespace.
func (n *Namespace) checkVersion() error {
	switch {
	case n == nil || n.Scheme == "":
		return unfit(ID{}, "namespace.scheme-missing", "a namespace has no scheme; name one")
	case n.Version == 0:
		return unfit(ID{}, "namespace.version-zero", `namespace "{namespace}" has the version 0; the first is 1`, n.Key())
	}
	return n.Key().Check()
}

// Check returns an error of kind Invalid if no namespace of this name can be kept. The
// zero key, which stands for no namespace, is valid.
func (k NamespaceKey) Check() error {
	switch {
	case strings.IndexByte(k.Scheme, 0) >= 0:
		return unfit(ID{}, "namespace.scheme-zero-byte", `the scheme "{scheme}" of a namespace has a zero byte; name one that there is`, k.Scheme)
	case len(k.Scheme)+len(k.Prefix) > MaxKeptName:
		return unfit(ID{}, "namespace.name-too-long", `the namespace "{prefix}" has a name of more than {most} bytes; shorten it`, k.Prefix, MaxKeptName)
	}
	return nil
}

// Check returns an error of kind Invalid if this can't become the state of a minter.
func (m *MinterState) Check() error {
	switch {
	case m.After == nil:
		return unfit(ID{}, "minter.state-missing", `minter "{minter}" has no new state; a state is replaced, never removed`, m.Name)
	case len(m.Name) > MaxKeptName || len(m.After) > MaxKept:
		return unfit(ID{}, "minter.too-large", `minter "{minter}" has a name of more than {most-name} bytes, or a state of more than {most-state}`, m.Name, MaxKeptName, MaxKept)
	}
	return nil
}

func (c *CellChange) check() error {
	switch {
	case c.Name == "":
		return unfit(ID{}, "cell.name-missing", "a cell has no name; give it one")
	case len(c.Name) > MaxCellName:
		return unfit(ID{}, "cell.name-too-long", `cell "{cell}" has a name of more than {most} bytes; shorten it`, c.Name, MaxCellName)
	case len(c.After) > MaxCell:
		return unfit(ID{}, "cell.too-large", `cell "{cell}" was to have {size} bytes; at most {most} are kept`, c.Name, len(c.After), MaxCell)
	}
	return nil
}

// checkReplay makes sure that the changes in Replay, if there are some, are those that
// the commit makes.
func (c *Commit) checkReplay() error {
	if c.Replay == nil {
		return nil
	}
	wrong := func(i int) error {
		return unfit(ID{}, "replay.change-differs", "change {index} to be replayed is not the one that the commit makes; leave none out, and keep their order", i)
	}
	if len(c.Replay) != len(c.Records)+len(c.Namespaces) {
		return wrong(len(c.Replay))
	}
	for i, have := range c.Replay {
		made := Change{Seq: c.Replay[0].Seq + uint64(i), Counted: have.Counted, CountedAliases: have.CountedAliases, At: have.At}
		aliases := 0
		if i < len(c.Records) {
			if r := c.Records[i]; r != nil {
				made.ID, made.Version, aliases = r.ID, r.Version, len(r.Aliases)
			}
		} else if n := c.Namespaces[i-len(c.Records)]; n != nil {
			made.Namespace, made.Version = n.Key(), n.Version
		}
		if !have.Equal(made) || have.Seq == 0 || have.Counted != (NamespaceKey{}) && (have.Version != 1 || !have.ID.IsValid()) ||
			len(have.CountedAliases) > aliases || slices.Contains(have.CountedAliases, NamespaceKey{}) {
			return wrong(i)
		}
		for _, key := range append([]NamespaceKey{have.Counted}, have.CountedAliases...) {
			if err := key.Check(); err != nil {
				return err
			}
		}
	}
	return nil
}
