package main

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele/config"
)

// TestSettingFlags: each setting has a flag, which takes its example.
func TestSettingFlags(t *testing.T) {
	for _, s := range config.All() {
		cmd := &cobra.Command{}
		settingFlags(cmd)
		if err := cmd.Flags().Set(s.Name, s.Example); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		want, err := s.Read(s.Example)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Read(givenSettings(cmd.Flags())[s.Name])
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the flag gives %v, %v; want %v", s.Name, got, err, want)
		}
	}
}

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stele.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
