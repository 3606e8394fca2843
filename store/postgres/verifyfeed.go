package postgres

import (
	"bytes"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
)

const sqlPast = `SELECT key, version, body, at FROM history WHERE (key, version) > ($1, $2) ORDER BY key, version LIMIT $3`

// history decodes all superseded versions.
func (c *checker) history() error {
	var key []byte
	var version int64
	if err := c.long(sqlLostHistory, []any{&key, &version}, func() {
		c.problem("verify.history-version-not-superseded", `the history has version {version} of "{id}", which was never superseded`, version, key)
	}); err != nil {
		return err
	}
	for last := (record{key: []byte{}}); ; {
		n := 0
		var row record
		var at []byte
		err := c.each(sqlPast, []any{last.key, last.version, verifyPage}, []any{&row.key, &row.version, &row.body, &at}, func() {
			n++
			if r, ok := c.decode("the history of", row); ok {
				c.past(row, r, at)
			}
			last = record{key: row.key, version: row.version}
			row = record{}
		})
		if err != nil || n == 0 {
			return err
		}
	}
}

// past checks a superseded version: that it is found by its time, and that nothing but an
// entry is left if it was erased.
func (c *checker) past(row record, r *stele.Record, at []byte) {
	if !bytes.Equal(at, stele.AppendTimeKey(nil, r.Modified)) {
		c.problem("verify.version-not-found-by-time-in-table", `version {version} of "{id}" is not found by its time`, row.version, row.key)
	}
	if erased, ok := c.withholding[string(row.key)]; ok && r.Version <= erased {
		if entry, err := binary.MarshalRecord(r.Entry()); err != nil || !bytes.Equal(entry, row.body) {
			c.problem("verify.erased-version-has-content-in-table", `version {version} of "{id}" was erased, and has content`, row.version, row.key)
		}
	}
}

// withheld checks that the records that withhold something are listed, and no others.
func (c *checker) withheld() error {
	var key []byte
	listed := make(map[string]bool)
	err := c.long(`SELECT key FROM withheld`, []any{&key}, func() {
		listed[string(key)] = true
		if _, ok := c.withholding[string(key)]; !ok {
			c.problem("verify.withholding-listed-wrongly", `the record "{id}" is listed as one that withholds something, and does not`, key)
		}
	})
	for key := range sorted(c.withholding) {
		if err == nil && !listed[key] {
			c.problem("verify.withholding-not-listed", `the record "{id}" withholds something, and is not listed`, key)
		}
	}
	return err
}

// namespaceHistory decodes the superseded versions of namespaces. From the first that is kept
// none is missing.
func (c *checker) namespaceHistory() error {
	var under, body []byte
	var version, want int64
	last := ""
	return c.long(`SELECT key, version, body FROM spacehistory ORDER BY key, version DESC`, []any{&under, &version, &body}, func() {
		if last != string(under) {
			last, want = string(under), c.namespaceVersions[string(under)]-1
		}
		var n stele.Namespace
		if err := binary.UnmarshalNamespace(body, &n); err != nil {
			c.problem("verify.namespace-version-damaged", `version {version} of the namespace "{namespace}" is damaged: {cause}`, version, under, err)
		} else if !bytes.Equal(key(namespaceName(n.Key())), under) || n.Version != uint64(version) {
			c.problem("verify.namespace-version-has-other-content", `version {version} of the namespace "{namespace}" has the content of "{content-namespace}", version {content-version}`, version, under, n.Key(), n.Version)
		}
		if version != want {
			c.problem("verify.namespace-history-gap-in-table", `the history of the namespace "{namespace}" has version {version} where {expected} should be`, under, version, want)
		}
		want = version - 1
	})
}

// namespaces decodes all namespaces.
func (c *checker) namespaces() error {
	var under, long, body []byte
	var version int64
	return c.long(`SELECT key, "full", version, body FROM namespaces`, []any{&under, &long, &version, &body}, func() {
		var n stele.Namespace
		if err := binary.UnmarshalNamespace(body, &n); err != nil {
			c.problem("verify.namespace-damaged", `the namespace "{namespace}" is damaged: {cause}`, under, err)
		} else if name := namespaceName(n.Key()); !bytes.Equal(key(name), under) || !same(full(name), long) || n.Version != uint64(version) {
			c.problem("verify.namespace-has-other-content", `the namespace "{namespace}", version {version}, has the content of "{content-namespace}", version {content-version}`, under, version, n.Key(), n.Version)
		} else {
			c.exist(name, true, version)
			c.namespaceVersions[string(under)] = version
		}
		long = nil
	})
}

// feed goes through the change feed.
func (c *checker) feed() error {
	f := &feed{}
	next := uint64(1)
	for {
		items, more, err := page(c.ctx, c.v.query, f, lastPage)
		for _, change := range items {
			if change.Seq != next {
				c.problem("verify.feed-gap-in-table", "the change feed has {change} where {expected} should be", change.Seq, next)
			}
			next = change.Seq + 1
			if change.ID.IsValid() {
				c.balance -= c.version(nameOf(change.ID), false, change.Version)
			} else {
				c.balance -= c.version(namespaceName(change.Namespace), true, change.Version)
			}
			if change.Counted != (stele.NamespaceKey{}) {
				if !change.ID.IsValid() || change.Version != 1 {
					c.problem("verify.change-counts-wrongly", `change {change} counts for "{namespace}", and is not of a new record`, change.Seq, change.Counted)
				}
				c.counts[string(key(namespaceName(change.Counted)))]++
			}
			for _, space := range change.CountedAliases {
				c.counts[string(key(namespaceName(space)))]++
			}
		}
		if _, own := asOwn(err); own && stele.KindOf(err) == stele.Internal {
			c.problem("verify.feed-unreadable-after", "the change feed after {change}: {cause}", f.after, err)
			return nil
		}
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	if next != uint64(c.last)+1 {
		c.problem("verify.feed-end-differs-in-table", "the last change has the number {change}, and the registry says {last}", next-1, c.last)
	}
	return nil
}

// What is wrong if the sums differ. Each statement reads whole tables.
const (
	sqlTwice    = `SELECT name, version FROM changes GROUP BY name, space, version HAVING count(*) > 1`
	sqlNoRecord = `SELECT c.name, c.version FROM changes AS c
		LEFT JOIN names AS n ON coalesce(n."full", n.key) = c.name AND n.record IS NULL
		WHERE NOT c.space AND (n.key IS NULL OR c.version > n.version OR c.version < 1)`
	sqlNoNamespace = `SELECT c.name, c.version FROM changes AS c LEFT JOIN namespaces AS n ON coalesce(n."full", n.key) = c.name
		WHERE c.space AND (n.key IS NULL OR c.version > n.version OR c.version < 1)`
	sqlRecordLacks = `SELECT n.key, n.version FROM names AS n
		LEFT JOIN (SELECT name, count(*) AS k FROM changes WHERE NOT space GROUP BY name) AS c ON c.name = coalesce(n."full", n.key)
		WHERE n.record IS NULL AND n.version IS DISTINCT FROM c.k`
	sqlNamespaceLacks = `SELECT n.key, n.version FROM namespaces AS n
		LEFT JOIN (SELECT name, count(*) AS k FROM changes WHERE space GROUP BY name) AS c ON c.name = coalesce(n."full", n.key)
		WHERE n.version IS DISTINCT FROM c.k`
)

// feedVersions checks that the feed has each version of the records and namespaces once.
func (c *checker) feedVersions() error {
	if c.balance == 0 {
		return nil
	}
	c.problem("verify.feed-versions-not-once", "the change feed has not each version of each record and namespace once")
	var name []byte
	var number int64
	for _, q := range []struct {
		sql  string
		says func() *stele.Message
	}{
		{sqlTwice, func() *stele.Message {
			return stele.Messagef("verify.feed-entry-twice", `the change feed has "{name}" twice, version {version}`, name, number)
		}},
		{sqlNoRecord, func() *stele.Message {
			return stele.Messagef("verify.feed-record-missing", `the change feed has a version of the record "{name}" that is not there, {version}`, name, number)
		}},
		{sqlNoNamespace, func() *stele.Message {
			return stele.Messagef("verify.feed-namespace-missing", `the change feed has a version of the namespace "{name}" that is not there, {version}`, name, number)
		}},
		{sqlRecordLacks, func() *stele.Message {
			return stele.Messagef("verify.feed-lacks-record", `the change feed has not each version of the record "{name}", up to {version}`, name, number)
		}},
		{sqlNamespaceLacks, func() *stele.Message {
			return stele.Messagef("verify.feed-lacks-namespace", `the change feed has not each version of the namespace "{name}", up to {version}`, name, number)
		}},
	} {
		if err := c.long(q.sql, []any{&name, &number}, func() { c.report(q.says()) }); err != nil {
			return err
		}
	}
	return nil
}

// tallies compares the counts with the feed.
func (c *checker) tallies() error {
	var under []byte
	var n int64
	err := c.long(`SELECT key, n FROM counts`, []any{&under, &n}, func() {
		if want := c.counts[string(under)]; n != want {
			c.problem("verify.count-differs-in-table", `{count} names count for the namespace "{namespace}", and the change feed has {expected}`, n, under, want)
		}
		delete(c.counts, string(under))
	})
	for under, n := range sorted(c.counts) {
		c.problem("verify.count-missing-in-table", `no record counts for the namespace "{namespace}", and the change feed has {expected}`, under, n)
	}
	return err
}

// kept looks at minters and cells.
func (c *checker) kept() error {
	var under, long []byte
	var size int64
	err := c.long(`SELECT key, "full", length(state) FROM minters`, []any{&under, &long, &size}, func() {
		name := under
		if long != nil {
			name = long
		}
		if !bytes.Equal(key(name), under) || !same(full(name), long) || len(name) > stele.MaxKeptName || size > stele.MaxKept {
			c.problem("verify.minter-wrong-in-table", `the minter "{minter}", with a state of {size} bytes, is not what a minter can be`, name, size)
		}
		long = nil
	})
	if err != nil {
		return err
	}
	return c.long(`SELECT name, length(value) FROM cells`, []any{&under, &size}, func() {
		if len(under) == 0 || len(under) > stele.MaxCellName || size > stele.MaxCell {
			c.problem("verify.cell-wrong-in-table", `the cell "{cell}", with a value of {size} bytes, is not what a cell can be`, under, size)
		}
	})
}
