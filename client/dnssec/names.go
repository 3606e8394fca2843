package dnssec

import (
	"bytes"
	"slices"

	"github.com/miekg/dns"
)

// ancestor returns the name of the last n labels of a name.
func ancestor(name string, n int) string {
	at := dns.Split(name)
	switch {
	case n <= 0:
		return "."
	case n >= len(at):
		return name
	}
	return name[at[len(at)-n]:]
}

// isBelow reports whether a name is properly below another one.
func isBelow(above, name string) bool { return name != above && dns.IsSubDomain(above, name) }

// wireLabels returns the labels of a name, the last first, as they are on the wire and
// in lower case; nil if it is not a name.
func wireLabels(name string) (list [][]byte) {
	var buf [255]byte
	n, err := dns.PackDomainName(name, buf[:], 0, nil, false)
	if err != nil {
		return nil
	}
	wire := bytes.Clone(buf[:n])
	for i, c := range wire { // lengths of labels are below any letter
		if 'A' <= c && c <= 'Z' {
			wire[i] = c + 'a' - 'A'
		}
	}
	for off := 0; off < len(wire) && wire[off] != 0; off += 1 + int(wire[off]) {
		list = append(list, wire[off+1:off+1+int(wire[off])])
	}
	slices.Reverse(list)
	return list
}

// compareNames puts names in canonical order (RFC 4034, section 6.1).
func compareNames(a, b string) int {
	left, right := wireLabels(a), wireLabels(b)
	for i := range min(len(left), len(right)) {
		if c := bytes.Compare(left[i], right[i]); c != 0 {
			return c
		}
	}
	return len(left) - len(right)
}
