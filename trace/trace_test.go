package trace

import (
	"net/http"
	"strings"
	"testing"
)

func TestIsRequest(t *testing.T) {
	for text, want := range map[string]bool{
		"4bf92f3577b34da6": true, "A-b_c.9": true, strings.Repeat("x", 64): true,
		"": false, strings.Repeat("x", 65): false, "a b": false, "a\nlevel=ERROR": false, "a\r": false, `a"b`: false, "é": false, "a=b": false, "<b>": false, "a\x00": false,
	} {
		if got := IsRequest(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// TestIDs: ids are well-formed, and no two are alike.
func TestIDs(t *testing.T) {
	ids, seen := NewIDs([32]byte{1}), map[string]bool{}
	for range 1000 {
		id := ids.Request()
		if len(id) != 16 || !IsRequest(id) || seen[id] {
			t.Fatalf("%q", id)
		}
		seen[id] = true
	}
	if NewIDs([32]byte{2}).Request() == NewIDs([32]byte{1}).Request() {
		t.Error("another seed gives the same ids")
	}
}

func TestTell(t *testing.T) {
	header := http.Header{}
	if id := Tell(t.Context(), header); id != "" || len(header) != 0 {
		t.Errorf("without an id: %q, %v", id, header)
	}
	if id := Tell(WithRequest(t.Context(), "abc"), header); id != "abc" || header.Get("x-request-id") != "abc" {
		t.Errorf("%q, %v", id, header)
	}
}

const (
	aTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	aSpan   = "00f067aa0ba902b7"
	aParent = "00-" + aTrace + "-" + aSpan + "-01"
)

func TestParseParent(t *testing.T) {
	for text, sampled := range map[string]bool{
		aParent:                                                           true,
		"00-" + aTrace + "-" + aSpan + "-00":                              false,
		"00-" + aTrace + "-" + aSpan + "-02":                              false, // another flag
		"cc-" + aTrace + "-" + aSpan + "-03":                              true,  // a later version
		"cc-" + aTrace + "-" + aSpan + "-01-":                             true,
		"cc-" + aTrace + "-" + aSpan + "-01-what-the-future-will-be-like": true,
	} {
		p, ok := ParseParent(text)
		if !ok || p.Trace.String() != aTrace || p.Span != (SpanID{0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7}) || p.Sampled != sampled {
			t.Errorf("%q: %v %t", text, p, ok)
		}
	}
	for _, text := range []string{
		"", "00", aParent + "-", aParent + "x", aParent[:54], strings.ToUpper(aParent), "ff" + aParent[2:], "0x" + aParent[2:],
		"00-" + strings.Repeat("0", 32) + "-" + aSpan + "-01", "00-" + aTrace + "-" + strings.Repeat("0", 16) + "-01",
		"00_" + aTrace + "-" + aSpan + "-01", "00-" + aTrace + "-" + aSpan + "-zz", "cc" + aParent[2:] + ".x", "cc" + aParent[2:] + strings.Repeat("-", 600),
		" " + aParent, "00-" + aTrace[:31] + "\n-" + aSpan + "-01",
	} {
		if p, ok := ParseParent(text); ok || p != (Parent{}) {
			t.Errorf("%q is read as %v", text, p)
		}
	}
}

// FuzzParseParent: what is read is what was written.
func FuzzParseParent(f *testing.F) {
	for _, text := range []string{aParent, "00-" + aTrace + "-" + aSpan + "-00", "cc-" + aTrace + "-" + aSpan + "-01-x", "ff" + aParent[2:], ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := ParseParent(text)
		if !ok {
			if p != (Parent{}) {
				t.Errorf("%q is not read, and gives %v", text, p)
			}
			return
		}
		if p.Trace == (TraceID{}) || p.Span == (SpanID{}) || !strings.HasPrefix(text[2:], "-"+p.Trace.String()+"-") || !IsRequest(p.Trace.String()) {
			t.Errorf("%q is read as %v", text, p)
		}
	})
}
