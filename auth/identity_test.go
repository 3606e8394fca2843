package auth

import (
	"strings"
	"testing"
)

// TestNewName: names of users that are made are names, and have the issuer's name in them.
func TestNewName(t *testing.T) {
	for _, tt := range []struct {
		wanted string
		number int
		want   string
	}{
		{"Ann.Lee@example.org", 1, "ann.lee@campus"}, {"ann lee", 2, "ann-lee-2@campus"}, {"", 1, "user@campus"}, {"日本", 1, "user@campus"}, {"..x", 1, "x@campus"},
		{"João", 1, "joo@campus"}, {strings.Repeat("x", 100), 12, strings.Repeat("x", 54) + "-12@campus"},
	} {
		if got := NewName(tt.wanted, "campus", tt.number); got != tt.want || !IsName(got) {
			t.Errorf("%q, %d: %q, want %q", tt.wanted, tt.number, got, tt.want)
		}
	}
}
