package test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestHouseModules: `make needs` fetches the modules of all programs that tests build, so that tests themselves need no network.
func TestHouseModules(t *testing.T) {
	files, err := filepath.Glob("*/go.mod")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	out, err := runIn(root, "make", "--no-print-directory", "-n", "needs")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, fetched, _ := strings.Cut(string(out), "for module in ")
	fetched, _, ok := strings.Cut(fetched, "do go mod download")
	for _, file := range files {
		if !ok || !strings.Contains(fetched, "test/"+filepath.ToSlash(file)) {
			t.Errorf("make needs does not fetch the modules of test/%s:\n%s", filepath.ToSlash(file), out)
		}
	}
}
