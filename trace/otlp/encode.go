// Package otlp sends spans to a collector of OpenTelemetry: the binary form of OTLP over
// HTTP. Decision 80 says why it does without the SDK. It never slows down what is traced: spans wait in
// the queue of their tracer, which is bounded.
package otlp

import (
	"encoding/binary"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stele-id/stele/trace"
)

// Service is the program that the spans are of.
type Service struct {
	Name, Version string
	Instance      string // tells servers apart; may be empty
}

// appendRequest appends an ExportTraceServiceRequest. Field numbers are those of
// opentelemetry-proto 1.x, in the order of its messages.
func appendRequest(dst []byte, of Service, spans []*trace.Span) []byte {
	var resource, all []byte
	for _, a := range []trace.Attribute{{Key: "service.name", Text: of.Name}, {Key: "service.version", Text: of.Version}, {Key: "service.instance.id", Text: of.Instance}} {
		if a.Text != "" {
			resource = appendBytes(resource, 1, appendAttribute(nil, a))
		}
	}
	scope := appendText(appendText(nil, 1, "github.com/stele-id/stele/trace"), 2, of.Version)
	all = appendBytes(all, 1, scope)
	for _, s := range spans {
		all = appendBytes(all, 2, appendSpan(nil, s))
	}
	return appendBytes(dst, 1, appendBytes(appendBytes(nil, 1, resource), 2, all))
}

// statusError is the code of a span that failed.
const statusError = 2

func appendSpan(dst []byte, s *trace.Span) []byte {
	dst = appendBytes(dst, 1, s.Trace[:])
	dst = appendBytes(dst, 2, s.ID[:])
	if s.Parent != (trace.SpanID{}) {
		dst = appendBytes(dst, 4, s.Parent[:])
	}
	dst = appendText(dst, 5, s.Name)
	dst = appendNumber(dst, 6, uint64(s.Kind))
	dst = appendTime(dst, 7, s.Began)
	dst = appendTime(dst, 8, s.Ended)
	for _, a := range s.Attributes {
		dst = appendBytes(dst, 9, appendAttribute(nil, a))
	}
	if s.Failed {
		dst = appendBytes(dst, 15, appendNumber(nil, 3, statusError))
	}
	return dst
}

// appendAttribute appends a KeyValue.
func appendAttribute(dst []byte, a trace.Attribute) []byte {
	dst = appendText(dst, 1, a.Key)
	if a.Text != "" {
		return appendBytes(dst, 2, appendText(nil, 1, a.Text))
	}
	return appendBytes(dst, 2, appendNumber(nil, 3, uint64(a.Number)))
}

// maxText is how many bytes a text has at most. What a client sends may be long.
const maxText = 1024

// appendText appends a text. It is UTF-8 (a collector refuses the whole request otherwise), and cut if it is too long.
func appendText(dst []byte, field int, s string) []byte {
	s = strings.ToValidUTF8(s[:min(len(s), 2*maxText)], "\ufffd")
	if len(s) > maxText {
		n := maxText
		for !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return appendBytes(dst, field, []byte(s))
}

// Fields of protocol buffers, of the three kinds that spans have.

func appendNumber(dst []byte, field int, n uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(field)<<3), n)
}

func appendTime(dst []byte, field int, t time.Time) []byte {
	return binary.LittleEndian.AppendUint64(binary.AppendUvarint(dst, uint64(field)<<3|1), uint64(max(0, t.UnixNano())))
}

func appendBytes(dst []byte, field int, b []byte) []byte {
	return append(binary.AppendUvarint(binary.AppendUvarint(dst, uint64(field)<<3|2), uint64(len(b))), b...)
}
