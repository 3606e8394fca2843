// Package fetch brings what a URL leads to into a file: over HTTP, HTTPS and FTP, and
// goes on where an earlier attempt ended, if it is still the same.
//
// A [Fetcher] asks, a [Part] is the file while it is not whole. It follows redirects to
// these protocols only, up to a limit. It sends nothing that identifies the user: no
// cookies, and no passwords, not even those of a URL. Servers may be malicious: sizes,
// times, numbers of attempts and steps are bounded, and what ends too early is an error.
//
// The package does not choose names of files, nor judge what it brings: it tells its
// digest. The caller says which addresses may be reached; if it does not, those of this
// machine and its network are reached like others. The only clock is the one that the
// caller passes in, by which certificates are judged.
package fetch
