package stele

import (
	"fmt"
	"strconv"
)

// VersionHeader is the header of HTTP that has a version token: the number of a change.
// An answer to a write has it, and says that all that was written has that number at
// most. A request that has it is answered only from a state with all changes up to that
// one, by whichever of several servers.
const VersionHeader = "Stele-Version"

// ParseVersionHeader reads the values of a request's [VersionHeader]; 0 if there is none.
// Invalid if it is no number, or there are several.
func ParseVersionHeader(values []string) (uint64, error) {
	switch len(values) {
	case 0:
		return 0, nil
	case 1:
		n, err := strconv.ParseUint(values[0], 10, 64)
		if err == nil && values[0][0] != '+' && len(values[0]) <= 20 {
			return n, nil
		}
		return 0, &Error{Op: "read request", Kind: Invalid, Err: fmt.Errorf("%s should be the number that an answer had there, not %.60q; send that, or leave it out", VersionHeader, values[0])}
	}
	return 0, &Error{Op: "read request", Kind: Invalid, Err: fmt.Errorf("%s is given %d times; keep the greatest", VersionHeader, len(values))}
}
