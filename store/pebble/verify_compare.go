package pebble

import (
	"bytes"
)

// compareSlowly looks up all that sums say does not agree, and names it.
func (c *checker) compareSlowly() error {
	for _, part := range []func() error{c.lookUpNames, c.lookUpPlaces, c.lookUpMarks, c.lookUpFeed} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// lookUp returns what is kept under a key, nil if nothing is or it can't be read, which
// was reported before.
func (c *checker) lookUp(key []byte) []byte {
	if !c.v.begin() {
		return nil
	}
	defer c.v.end()
	f, err := newFinder(c.v.snap)
	if err != nil {
		return nil
	}
	defer f.close()
	value, err := f.find(key)
	if err != nil {
		return nil
	}
	return bytes.Clone(value)
}

// lookUpNames looks up what each name needs.
func (c *checker) lookUpNames() error {
	return c.walk([]byte{familyName}, []byte{familyName + 1}, func(key, value []byte) {
		if len(value) > 0 && value[0] == isAlias {
			c.alias(key, value)
			return
		}
		r, err := decodeNamed(key, value)
		if err != nil {
			return // reported before
		}
		for _, alias := range r.Aliases {
			if !bytes.Equal(c.lookUp(nameKey(alias)), aliasValue(key)) {
				c.problem("verify.alias-not-leading-to-record", `the alias "{alias}" of "{id}" does not lead to it.`, alias, r.ID)
			}
		}
		var e encoder
		for _, place := range e.locate(r) {
			if c.lookUp(place) == nil {
				c.problem("verify.record-not-found-by-key", `the record "{id}" can't be found by {key}.`, r.ID, describeKey(place))
			}
		}
	})
}

// alias checks that an alias is one of its record.
func (c *checker) alias(key, value []byte) {
	owner := bytes.Clone(value)
	owner[0] = familyName
	r, err := decodeNamed(owner, c.lookUp(owner))
	if err != nil {
		c.problem("verify.alias-of-missing-record", "{key} is an alias of a record that is not there.", describeKey(key))
		return
	}
	for _, alias := range r.Aliases {
		if bytes.Equal(nameKey(alias), key) {
			return
		}
	}
	c.problem("verify.alias-not-of-record", `{key} is an alias of "{id}", which does not have it.`, describeKey(key), r.ID)
}

// lookUpPlaces looks up the record of each reverse look-up.
func (c *checker) lookUpPlaces() error {
	return c.walk([]byte{familyURL}, []byte{familyHost + 1}, func(key, _ []byte) {
		id, err := cutID(cutEnded(key[1:]))
		if err != nil {
			c.problem("verify.key-unreadable", "{key} can't be read: {cause}.", describeKey(key), err)
			return
		}
		r, err := decodeNamed(nameKey(id), c.lookUp(nameKey(id)))
		if err != nil {
			c.problem("verify.target-key-of-missing-record", "{key} leads to a record that is not there.", describeKey(key))
			return
		}
		var e encoder
		for _, place := range e.locate(r) {
			if bytes.Equal(place, key) {
				return
			}
		}
		c.problem("verify.target-key-not-of-record", `{key} leads to "{id}", which has no target there.`, describeKey(key), r.ID)
	})
}

// lookUpMarks looks up the mark of each version and record that needs one, and the other
// way round.
func (c *checker) lookUpMarks() error {
	err := c.walk([]byte{familyHistory}, []byte{familyHistory + 1}, func(key, value []byte) {
		if r, err := decodeRecord(key, value); err == nil && c.lookUp(timeKey(r.ID, r.Modified, r.Version)) == nil {
			c.problem("verify.version-not-found-by-time", `version {version} of "{id}" can't be found by its time.`, r.Version, r.ID)
		}
	})
	if err != nil {
		return err
	}
	err = c.walk([]byte{familyName}, []byte{familyName + 1}, func(key, value []byte) {
		if r, err := decodeNamed(key, value); err == nil && !r.Withheld.IsZero() && c.lookUp(withheldKey(r.ID)) == nil {
			c.problem("verify.withholding-mark-missing", `the record "{id}" withholds earlier versions, and has no mark that says so.`, r.ID)
		}
	})
	if err != nil {
		return err
	}
	return c.walk([]byte{familyMark}, []byte{familyMark + 1}, func(key, _ []byte) {
		if !c.isMarkNeeded(key) {
			c.problem("verify.mark-of-nothing", "{key} is of nothing that there is.", describeKey(key))
		}
	})
}

// isMarkNeeded reports whether what a mark says is true.
func (c *checker) isMarkNeeded(key []byte) bool {
	if len(key) < 2 {
		return false
	}
	if key[1] == markWithheld {
		id, err := cutID(key[2:])
		if err != nil {
			return false
		}
		r, err := decodeNamed(nameKey(id), c.lookUp(nameKey(id)))
		return err == nil && !r.Withheld.IsZero()
	}
	if len(key) < 2+12+8 || key[1] != markTime {
		return false
	}
	// scheme 00 [text] is what the key in history has before its version too.
	under := append([]byte{familyHistory}, key[2:len(key)-20]...)
	under = append(under, key[len(key)-8:]...)
	r, err := decodeRecord(under, c.lookUp(under))
	return err == nil && bytes.Equal(key, timeKey(r.ID, r.Modified, r.Version))
}

// lookUpFeed compares versions with the change feed. It keeps all changes in memory,
// which is the cost of naming what is wrong.
func (c *checker) lookUpFeed() error {
	seen := make(map[string]uint64) // by version item: the number of the change
	err := c.walk([]byte{familyChange}, []byte{familyChange + 1}, func(key, value []byte) {
		entries, err := parseChunk(key, value)
		if err != nil {
			return // reported before
		}
		for _, e := range entries {
			item := string(versionItem(e.key(), e.Version))
			if before, ok := seen[item]; ok {
				c.problem("verify.version-twice-in-feed", "changes {change} and {other-change} are the same version {version} of {key}.", before, e.Seq, e.Version, describeKey(e.key()))
			}
			seen[item] = e.Seq
		}
	})
	if err != nil {
		return err
	}
	missing := func(key []byte, versions uint64) {
		for version := range min(versions, c.v.seq) {
			item := string(versionItem(key, version+1))
			if _, ok := seen[item]; !ok {
				c.problem("verify.version-not-in-feed", "version {version} of {key} is not in the change feed.", version+1, describeKey(key))
			}
			delete(seen, item)
		}
	}
	err = c.walk([]byte{familyName}, []byte{familyName + 1}, func(key, value []byte) {
		if r, err := decodeNamed(key, value); err == nil {
			missing(key, r.Version)
		}
	})
	if err != nil {
		return err
	}
	err = c.walk([]byte{familyNamespace}, []byte{familyNamespace + 1}, func(key, value []byte) {
		if n, err := decodeNamespace(value); err == nil {
			missing(key, n.Version)
		}
	})
	for item, seq := range seen {
		c.problem("verify.change-of-missing-version", "change {change} is of a version that is not there, of {key}.", seq, describeKey([]byte(item)[:len(item)-9]))
	}
	return err
}
