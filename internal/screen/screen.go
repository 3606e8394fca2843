// Package screen is the part of a terminal that a live view needs: its size, and keys without
// waiting for a line. It never draws.
package screen

// What a terminal has of which the size is not known.
const usualWidth, usualHeight = 80, 24
