// Package terminal makes texts of others safe to show on a terminal.
package terminal

import (
	"strconv"
	"strings"
)

// Printable returns s with everything that a terminal would act on, or not show,
// written as an escape.
func Printable(s string) string {
	quoted := strconv.Quote(s)
	quoted = strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
	return strings.ReplaceAll(quoted, `\\`, `\`)
}
