// Package bundle is the form in which a registry, or a part of it, is handed over whole: records with their history, namespaces,
// public keys, statements, minters, and the proofs of the transparency log that all of it is what the registry once said. A bundle
// is one tar file, which is a bag after RFC 8493 (BagIt), of plain files that a stranger can read. docs/bundle.md describes
// it.
//
// The same state of a registry gives the same bytes, apart from signatures that are added later. [Read] checks a bundle and
// needs no registry for that: it reads the file once, from its beginning to its end, trusts nothing in it, and never writes a file
// under a name that the bundle says. Secrets are never in a bundle.
package bundle
