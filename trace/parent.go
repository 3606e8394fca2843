package trace

import "encoding/hex"

// Parent is the span of another system, such as a proxy, that caused a request.
type Parent struct {
	Trace   TraceID
	Span    SpanID
	Sampled bool // the other system records it
}

// TraceID is the id of a trace, and SpanID that of a span of it. All zeros are none.
type (
	TraceID [16]byte
	SpanID  [8]byte
)

// String returns the id in hexadecimal digits.
func (id TraceID) String() string { return hex.EncodeToString(id[:]) }

// ParentHeader is the header of W3C Trace Context, in the form of [net/http.CanonicalHeaderKey].
const ParentHeader = "Traceparent"

// The places of traceparent, section 3.2.2 of W3C Trace Context: version-trace-span-flags.
const (
	versionEnd = 2
	traceStart = versionEnd + 1
	traceEnd   = traceStart + 2*len(TraceID{})
	spanStart  = traceEnd + 1
	spanEnd    = spanStart + 2*len(SpanID{})
	flagsStart = spanEnd + 1
	flagsEnd   = flagsStart + 2

	sampledFlag = 1
	maxParent   = 512 // characters of a later version
)

// ParseParent reads the value of a traceparent header. Of later versions than 00 it reads
// what version 00 has, as the specification asks (section 4.3); it is not ok if the value
// is malformed.
func ParseParent(text string) (p Parent, ok bool) {
	if len(text) < flagsEnd || len(text) > maxParent || text[versionEnd] != '-' || text[traceEnd] != '-' || text[spanEnd] != '-' {
		return Parent{}, false
	}
	var version, flags [1]byte
	if !readHex(version[:], text[:versionEnd]) || !readHex(p.Trace[:], text[traceStart:traceEnd]) ||
		!readHex(p.Span[:], text[spanStart:spanEnd]) || !readHex(flags[:], text[flagsStart:flagsEnd]) {
		return Parent{}, false
	}
	switch {
	case p.Trace == TraceID{}, p.Span == SpanID{}, version[0] == 0xff:
		return Parent{}, false
	case version[0] == 0 && len(text) > flagsEnd, len(text) > flagsEnd && text[flagsEnd] != '-':
		return Parent{}, false
	}
	p.Sampled = flags[0]&sampledFlag != 0
	return p, true
}

// readHex reads hexadecimal digits, which the specification wants in lower case.
func readHex(to []byte, digits string) bool {
	for i := range len(digits) {
		if 'A' <= digits[i] && digits[i] <= 'F' {
			return false
		}
	}
	_, err := hex.Decode(to, []byte(digits))
	return err == nil
}
