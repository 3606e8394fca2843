// Package client finds where an identifier leads, from outside of the registry that
// has it: over the DNS, by the rules of the DDDS and the EDDDS, by the HTTP
// interface of a resolver, or by the Handle protocol.
//
// [DNS], [HTTP] and [Handle] are ways to resolve a name, each a [Way]; [First] tries several.
// The DNS ends with a location, or with a resolver that knows more. Where that one
// speaks THTTP (RFC 2169) it is asked too, and otherwise the [Result] says which
// server to ask. A [Trace] tells every step: questions and answers, rules, servers,
// requests. Name servers are asked in clear, or by TLS or HTTPS and then never in clear;
// answers are accepted as they are, or validated ([DNSSEC], and package dnssec).
//
// [DNS.Keys] and [JWKS] find the keys with which what names stand for is signed, and tell
// what vouches for them; [Signatures] finds the signatures. A [Verifier] puts them together.
//
// Package remote is another matter: it is the client of the HTTP API of a registry.
//
// The package never fetches what a name leads to (package fetch does, into a file), and
// follows no redirects except to signatures and keys. Servers may be malicious: sizes, times
// and numbers of steps are bounded, and the package ignores answers that do not match their
// question. The package has no state beside its values, no clock, and no randomness except
// what the caller passes in.
package client
