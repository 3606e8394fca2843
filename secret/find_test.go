package secret

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
)

// TestFind: the file that is named comes first, then the environment, then systemd, then the
// file beside the data folder. None is made for a database.
func TestFind(t *testing.T) {
	folder := t.TempDir()
	credential := filepath.Join(folder, credentialName)
	if err := os.WriteFile(credential, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	variable, systemd := map[string]string{secretVariable: "k", credentialFolder: folder}, map[string]string{credentialFolder: folder}
	for _, tt := range []struct {
		name    string
		environ map[string]string
		o       FindOptions
		path    string // of the file; "" if it is none
		makes   bool
	}{
		{"a file that is named", variable, FindOptions{File: "a.key"}, "a.key", true},
		{"a file that is named, for a database", nil, FindOptions{File: "a.key", Shared: true}, "a.key", false},
		{"the environment", variable, FindOptions{Data: "data"}, "", false},
		{"systemd", systemd, FindOptions{Data: "data"}, credential, false},
		{"systemd without it", map[string]string{credentialFolder: t.TempDir()}, FindOptions{Data: filepath.Join(folder, "data/")}, filepath.Join(folder, "data.key"), true},
		{"nothing", nil, FindOptions{Data: filepath.Join(folder, "data")}, filepath.Join(folder, "data.key"), true},
		{"nothing, for a database", nil, FindOptions{Shared: true}, "", false},
	} {
		tt.o.Random = rand.Reader
		source := Find(func(name string) string { return tt.environ[name] }, tt.o)
		file, ok := source.(*File)
		if ok != (tt.path != "") || ok && (file.Path != tt.path || (file.Random != nil) != tt.makes) {
			t.Errorf("%s: %#v", tt.name, source)
		}
	}
	if s, ok := Find(func(name string) string { return variable[name] }, FindOptions{}).(Text); !ok || s.Keep != "k" {
		t.Errorf("%#v", s)
	}
	if _, ok := Find(func(string) string { return "" }, FindOptions{Shared: true}).(None); !ok {
		t.Error("a database without a key has one")
	}
}
