// Package test holds the tests of the whole: that the repository keeps its rules
// (which package may import which, the rules of the code), and that what the
// documents show is what the program does. It exports nothing, and no other
// package imports it.
package test
