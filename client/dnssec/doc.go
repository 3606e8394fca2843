// Package dnssec judges answers of the DNS: whether signatures lead from them to a key
// that is trusted (RFC 4033 to 4035, 5155, 6840, 9824).
//
// A [Validator] has the trust anchors and remembers the keys of zones. A [Check] is its
// work on one name; it asks for DS and DNSKEY records on the way, from the anchor down,
// by a function that it is given. What it finds is Secure, or Insecure, if it is proven
// that a zone on the way is not signed, or a [Bogus], an error that names the link that
// is broken.
//
// The package opens no socket and has no clock of its own. Servers may be
// malicious: the numbers of signatures, hashes and questions are bounded for each
// answer and in total (CVE-2023-50387 and CVE-2023-50868 are what happens otherwise).
// SHA-1, DSA and whatever the library can't verify are not supported: zones that are
// signed with nothing else count as not signed (RFC 4035, section 5.2).
package dnssec
