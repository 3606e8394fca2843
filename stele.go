// Package stele is the vocabulary of a system of persistent identifiers: names
// that outlive their addresses.
//
// Everything else in this module speaks in these words. An [ID] is the name of
// one thing, in its one canonical form. A [Scheme] is a grammar that turns what
// people write into IDs, and [Schemes] is the list of those a program knows. A
// [Prefix] is the beginning of names that one authority controls. An [Error]
// says what was tried, on what, and of which [Kind] the failure is.
//
// The package holds no grammar of any scheme, opens nothing, keeps no state and
// imports the standard library only.
package stele
