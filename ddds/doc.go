// Package ddds is the rule algorithm by which a name finds its resource in the
// DNS: the Dynamic Delegation Discovery System (RFC 3401 to 3404) and its
// extension, the EDDDS, which goes on inside the DNS until the location of the
// resource is known.
//
// A [Rule] is what a NAPTR record says. A [Walker] begins at the key that the
// [FirstKey] function makes of a name, asks a [Database] for the rules at that
// key, applies them to the name (always to the name as it was given, never to
// what another rule made of it), and goes on with the key they give until a rule
// is terminal. The [Result] is what the last rule gave, what else would have done,
// and the [Trace] of every step.
//
// The other direction is here too: a Rule that was put together gives its
// [Fields], within the limits of RFC 3403 and in a form that name servers load.
//
// The package is pure. It opens no sockets and reads no files, it has no clock and
// no random numbers of its own, it keeps nothing between calls, and it never
// follows what a terminal rule points at.
package ddds
