// Package fault makes errors of panics: work that others wait for, or that a server does for one client among many, ends with an error, and
// the process goes on. It logs nothing.
package fault

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/stele-id/stele"
)

// Error makes an error of what recover returned. It has the kind Internal. A deferred function calls it.
func Error(op string, panicked any) error {
	return stele.Errorf(op, stele.ID{}, stele.Internal, "server.fault-at", "a fault in the program: {cause}, at {place}; please report it", fmt.Sprint(panicked), Place())
}

// Place returns the file and line of the function that panicked, for a deferred function that has recovered.
func Place() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	panicking := false
	for {
		frame, more := frames.Next()
		if ours := !strings.HasPrefix(frame.Function, "runtime."); ours && panicking {
			return fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
		} else if !ours {
			panicking = true
		}
		if !more {
			return "unknown"
		}
	}
}
