package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"runtime/pprof"
	"testing"
)

// TestWithoutPlaces checks that the compiler gets the names of functions, and no folder of
// this machine.
func TestWithoutPlaces(t *testing.T) {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 0); err != nil {
		t.Fatal(err)
	}
	whole := profile.Bytes()
	out, err := withoutPlaces(whole)
	if err != nil {
		t.Fatal(err)
	}
	before, after := unzipped(t, whole), unzipped(t, out)
	place := []byte("profile_test.go") // of this very function
	if !bytes.Contains(before, place) || bytes.Contains(after, place) {
		t.Error("the file of a function is there, or was not there before")
	}
	if name := []byte("TestWithoutPlaces"); !bytes.Contains(after, name) {
		t.Error("the function is not there")
	}
	if again, err := withoutPlaces(out); err != nil || !bytes.Equal(unzipped(t, again), after) {
		t.Errorf("the second time something is changed: %v", err)
	}
	for n := range len(before) {
		for rest := before[:n]; len(rest) > 0; {
			if _, _, rest, err = cutField(rest); err != nil {
				break
			}
		}
	}
}

func unzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
