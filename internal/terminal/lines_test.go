package terminal

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestLines(t *testing.T) {
	const most = 20
	long := strings.Repeat("x", 100)
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"a\nb", "a 1;b 1;"},
		{" \t a b \t\r\n\n  # a remark\n#\nc\n", "a b 3;c 1;"},
		{long + "\nb\n", strings.Repeat("x", most+16) + " 100;b 1;"},
		{strings.Repeat(" ", 100) + "a" + strings.Repeat(" ", 100) + "\nb", "a 1;b 1;"},
		{"a" + strings.Repeat(" ", 100) + "b", "a" + strings.Repeat(" ", most+15) + " 102;"},
	} {
		for name, in := range map[string]io.Reader{"at once": strings.NewReader(tt.in), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.in))} {
			var got strings.Builder
			err := Lines(in, most, func(text string, size int) error {
				fmt.Fprintf(&got, "%s %d;", text, size)
				return nil
			}, func() error { return nil })
			if err != nil || got.String() != tt.want {
				t.Errorf("%.30q %s: %q, %v; want %q", tt.in, name, got.String(), err, tt.want)
			}
		}
	}
}

// What was made of a line is there before Lines waits for the next.
func TestLinesIdle(t *testing.T) {
	in, out := io.Pipe()
	answered := make(chan bool)
	go func() {
		for range 3 {
			io.WriteString(out, "a\n")
			<-answered
		}
		out.CloseWithError(errors.New("broken"))
	}()
	n := 0
	err := Lines(in, 20, func(string, int) error { n++; return nil }, func() error { answered <- true; return nil })
	if n != 3 || err == nil || err.Error() != "standard input: broken" {
		t.Errorf("%d lines, %v", n, err)
	}
	stop := errors.New("stop")
	if err := Lines(strings.NewReader("a\nb"), 20, func(string, int) error { return stop }, nil); err != stop {
		t.Error(err)
	}
}

func TestEscapeUnseen(t *testing.T) {
	for in, want := range map[string]string{
		"\"a\"\n": "\"a\"\n", "é": "é", "\x7f": `\u007f`, "\u0085": `\u0085`, "\u202e": `\u202e`, "\U000e0001": `\udb40\udc01`, "\U0001f600": "\U0001f600",
	} {
		if got := string(EscapeUnseen([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
