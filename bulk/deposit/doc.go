// Package deposit keeps bundles of a registry at another place, again and again, and brings only what is new there: a folder, a server
// that speaks SFTP, or a store that speaks S3. docs/escrow.md describes it.
//
// A place has objects, which are named by their SHA-256 and hold the content of files of bundles, and lists, one for each deposit, which
// name the objects in the order of the bundle. A list is written last, so that an interrupted deposit is never taken for one. From a list
// and its objects the bundle is made again, byte for byte. Nothing at a place is ever overwritten or deleted, and nothing that a place
// answers is trusted.
package deposit
