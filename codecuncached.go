package stele

import "encoding/binary"

// Handle values were stored with a TTL of 0 where their owner gave none, until a missing
// TTL became [DefaultHandleTTL]. Since then a TTL of 0 that the owner gave is marked: a
// record has, after all else, the places of the values with such a TTL. A TTL of 0 that is
// not marked is one that the owner did not give.

// isUncached reports whether a value is not to be cached.
func isUncached(v HandleValue) bool { return v.TTL == 0 && !v.TTLAbsolute }

// appendUncached appends the places of the values that are not to be cached.
func appendUncached(b []byte, values []HandleValue) []byte {
	var places []uint64
	for i, v := range values {
		if isUncached(v) {
			places = append(places, uint64(i))
		}
	}
	return appendList(b, places, binary.AppendUvarint)
}

// uncached reads what appendUncached wrote.
func (d *decoder) uncached(values []HandleValue) []uint64 {
	places := list(d, d.uvarint)
	for i, at := range places {
		if at >= uint64(len(values)) || !isUncached(values[at]) || i > 0 && at <= places[i-1] {
			d.fail(errOdd)
			return nil
		}
	}
	return places
}

// giveTTL gives the usual TTL to the values whose owner gave none. Those at the places given, in
// their order, are not to be cached.
func giveTTL(values []HandleValue, uncached []uint64) {
	for i := range values {
		switch {
		case len(uncached) > 0 && uncached[0] == uint64(i):
			uncached = uncached[1:]
		case isUncached(values[i]):
			values[i].TTL = DefaultHandleTTL
		}
	}
}
