package ddds

import "strings"

// gradeParams tells how exact a range of the same type and subtype is: the more
// of its parameters the type has, the more. One that it does not name
// can't be held against it, but makes the range less exact than one without; -1
// if it has another value.
func gradeParams(have, want string) int {
	exact := 3
	for want != "" {
		var name, value string
		name, value, want = cutParam(want)
		switch got, ok := findParam(have, name); {
		case !ok:
			return 2
		case !strings.EqualFold(got, value):
			return -1
		}
		exact++
	}
	return exact
}

// findParam returns the value of a parameter.
func findParam(params, name string) (value string, ok bool) {
	for params != "" {
		var n string
		if n, value, params = cutParam(params); strings.EqualFold(n, name) {
			return value, true
		}
	}
	return "", false
}

// cutParams cuts a media type or range from its parameters.
func cutParams(media string) (name, params string) {
	name, params, _ = strings.Cut(media, ";")
	return strings.TrimSpace(name), params
}

// cutParam cuts the first of some parameters from the rest. Quotation marks
// around its value are removed.
func cutParam(params string) (name, value, rest string) {
	quoted, end := false, len(params)
	for i := 0; i < len(params) && end == len(params); i++ {
		switch c := params[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == ';' && !quoted:
			end = i
		}
	}
	if end < len(params) {
		rest = params[end+1:]
	}
	name, value, _ = strings.Cut(strings.TrimSpace(params[:end]), "=")
	if n := len(value); n > 1 && value[0] == '"' && value[n-1] == '"' {
		value = value[1 : n-1]
	}
	return name, value, rest
}
