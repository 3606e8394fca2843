package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
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

// TestConfigurationPage: docs/configuration.md has the list of settings as the
// program has it, and the example as it is in its file.
func TestConfigurationPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../../docs/examples/stele.toml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```toml\n"+string(example)+"```\n") {
		t.Error("docs/configuration.md has another example than docs/examples/stele.toml")
	}
	var table strings.Builder
	if err := listMarkdown(&table); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), table.String()) {
		t.Errorf("docs/configuration.md has not the table that 'stele config list --markdown' prints:\n%s", table.String())
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
