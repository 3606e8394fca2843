package stele

// VersionHeader is the header of HTTP that has a version token: a [Position], the number
// of a change in a generation. An answer to a write has it, and says that all that was
// written has that number at most. A request that has it is answered only from a state
// with all changes up to that one, by whichever of several servers. A token from before a
// restore is refused; see [Generations.Judge].
const VersionHeader = "Stele-Version"

// ParseVersionHeader reads the values of a request's [VersionHeader]; the zero Position if
// there is none. A number alone, which programs before generations gave, is of the first
// generation. Invalid if it is something else, or there are several.
func ParseVersionHeader(values []string) (Position, error) {
	switch len(values) {
	case 0:
		return Position{}, nil
	case 1:
		p, err := ParsePosition(values[0])
		if err == nil {
			return p, nil
		}
		return Position{}, &Error{Op: "read request", Kind: Invalid, Err: Messagef("version-header.malformed", `{header} should be what an answer had there, not "{value}"; send that, or leave it out`, VersionHeader, values[0])}
	}
	return Position{}, &Error{Op: "read request", Kind: Invalid, Err: Messagef("version-header.repeated", "{header} is given {count} times; keep the last one that an answer had", VersionHeader, len(values))}
}
