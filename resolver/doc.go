// Package resolver is the read path: an identifier and what is wanted of it go
// in, a [Resolution] comes out.
//
// A name is looked for in this order, and the first find answers: the record that
// has the name; the first rule of the name's namespace whose pattern it has; the longest
// registered beginning of the name that passes on what follows it; the namespace's
// delegation to another resolver. Among the targets of a record or rule the one is chosen
// that fits the request best.
//
// The package never writes, never fetches what a target points at, and knows
// neither a concrete store nor a concrete scheme. It keeps records in memory, and
// never serves one that is older than the last write of this process: see
// [Resolver.Invalidate].
package resolver
