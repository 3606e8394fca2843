package auth

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// TestParsed: a cell is parsed again if its bytes changed, and not otherwise. What is remembered is
// bounded, and errors are not.
func TestParsed(t *testing.T) {
	var p Parsed[string]
	parses := 0
	read := func(name, value string, want int) {
		t.Helper()
		parses = 0
		bytes := []byte(value)
		got, err := p.Read(stele.Cell{Name: name, Value: bytes}, func(c stele.Cell) (string, error) {
			parses++
			if strings.HasPrefix(value, "bad") {
				return "", errors.New("bad")
			}
			return string(c.Value), nil
		})
		if (err != nil) != strings.HasPrefix(value, "bad") || err == nil && got != value {
			t.Errorf("%s: %.20q, %v", name, got, err)
		}
		if parses != want {
			t.Errorf("%s %.20q: parsed %d times, want %d", name, value, parses, want)
		}
		clear(bytes) // the caller's bytes are the caller's
	}
	read("a", "one", 1)
	read("a", "one", 0)
	read("b", "one", 1)
	read("a", "two", 1)
	read("a", "one", 1)
	read("a", "one", 0)
	read("a", "bad", 1)
	read("a", "bad", 1)
	read("c", strings.Repeat("x", maxParsedSize), 1)
	read("c", strings.Repeat("x", maxParsedSize), 1)
	for i := range 3 * maxParsed {
		read(fmt.Sprintf("d%d", i), "one", 1)
	}
	if len(p.cells) > maxParsed {
		t.Errorf("%d cells are remembered", len(p.cells))
	}
}
