// Package transparency is the log over the change feed: each change of the registry is a leaf of a
// Merkle tree (RFC 6962, section 2.1), and the root of the tree, signed by the registry, fixes
// everything that the registry has ever said. Who keeps an old root can tell whether history was
// rewritten; who keeps a proof can show, without the registry, what a name stood for.
//
// Change n of the feed is leaf n-1 of the log. A leaf has the name, or a blinded name, the version,
// the time of the commit, and two salted digests: of the document that the public may see and of the
// full one. The log follows the feed. No write waits for it, and what a crash interrupts is
// taken up where it was. All of the log stands in cells of the registry: it is in backups, and
// several servers over one database write one log.
//
// The forms are published ones: tlog-tiles, tlog-checkpoint, signed-note, tlog-cosignature,
// tlog-witness and tlog-proof of C2SP. Decision 74 says what was chosen, and why.
package transparency
