//go:build !linux

package screen

import "os"

// Size returns the usual size: this system is not asked.
func Size(*os.File) (width, height int) { return usualWidth, usualHeight }

// Keys does nothing: keys come when the line is ended.
func Keys(*os.File) (restore func(), err error) { return func() {}, nil }
