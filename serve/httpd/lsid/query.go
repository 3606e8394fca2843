package lsid

import (
	"net/url"
	"strconv"
	"strings"
)

// argument is a value that a client sent. In a query it is as it was sent; in a SOAP message it needs no decoding.
type argument struct {
	name, value string
	raw         bool
}

// arguments are what an operation is called with.
type arguments []argument

// known are the arguments of the operations. Others are ignored, as IBM's server does.
const known = " lsid acceptedFormats start length authorityName "

// readQuery reads the query of a GET request. A plus sign stands for itself: clients do not encode the names that they
// send (section 3), and names have plus signs. One that is repeated is an error, since programs along the way may
// differ in which one counts.
func readQuery(query string) (list arguments, err error) {
	for part := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(part, "=")
		if name == "" || !strings.Contains(known, " "+name+" ") {
			if part != "" && list == nil {
				list = arguments{} // it asks for something
			}
			continue
		}
		for _, a := range list {
			if a.name == name {
				return list, failf(badCall, "the query has %s twice; send it once", name)
			}
		}
		list = append(list, argument{name, value, true})
	}
	return list, nil
}

// get returns the value of an argument, decoded, and whether it is there.
func (l arguments) get(name string) (string, bool) {
	for _, a := range l {
		if a.name != name {
			continue
		}
		if !a.raw {
			return a.value, true
		}
		if decoded, err := url.PathUnescape(a.value); err == nil {
			return decoded, true
		}
		return a.value, true
	}
	return "", false
}

// names returns the texts that the argument lsid may mean, the likeliest first: in a query as it is, as IBM's client
// sends it, or decoded, as lsid-perl's.
func (l arguments) names() ([]string, error) {
	for _, a := range l {
		switch {
		case a.name != "lsid" || a.value == "":
		case !a.raw:
			return []string{strings.TrimSpace(a.value)}, nil
		default:
			decoded, err := url.PathUnescape(a.value)
			if err != nil || decoded == a.value {
				return []string{a.value}, nil
			}
			return []string{a.value, decoded}, nil
		}
	}
	return nil, failf(badCall, "the argument lsid is missing")
}

// number returns an argument that is a number; -1 if it is not there.
func (l arguments) number(name string) (int64, error) {
	text, ok := l.get(name)
	if text = strings.TrimSpace(text); !ok || text == "" {
		return -1, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return 0, failf(badCall, "%s is %q, and must be a number", name, brief(text))
	case n < 0:
		return 0, failf(badRange, "%s is %d, and must not be negative", name, n)
	}
	return n, nil
}

// within returns the part of data that the arguments start and length ask for; lsid-perl leaves out a start of 0
// (section 4).
func (l arguments) within(data []byte) ([]byte, error) {
	start, err := l.number("start")
	if err != nil {
		return nil, err
	}
	length, err := l.number("length")
	if err != nil {
		return nil, err
	}
	size := int64(len(data))
	start = max(start, 0)
	if start <= size && length < 0 {
		return data[start:], nil
	}
	if start > size && length < 0 {
		return nil, failf(badRange, "the data have %d bytes, and those from byte %d on are asked for", size, start)
	}
	if start > size || length > size-start {
		return nil, failf(badRange, "the data have %d bytes, and %d from byte %d on are asked for", size, length, start)
	}
	return data[start : start+length], nil
}
