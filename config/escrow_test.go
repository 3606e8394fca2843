package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestEscrow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stele.toml")
	write := func(text string) *Config {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Load(file, nil, nil)
	}
	c := write("escrow-allow = [\"10.0.0.0/8\"]\n[escrow]\nvault = \"sftp://stele@vault.example.org/srv/stele\"\nbucket = \"s3://b/x?endpoint=https://s3.example.org&region=eu-1\"\n" +
		"[escrow-prefixes]\nvault = \"ark:12345,urn:example\"\n[escrow-every]\nvault = \"6h\"\n[escrow-credentials]\nvault = \"/etc/stele/vault.key\"\n")
	if len(c.Problems) > 0 {
		t.Fatalf("problems: %v", c.Problems)
	}
	list, err := c.Deposits()
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	bucket, vault := list[0], list[1]
	if bucket.Name != "bucket" || bucket.Every != 24*time.Hour || len(bucket.Prefixes) != 0 || bucket.Place.String() != "s3://b/x?endpoint=https://s3.example.org&region=eu-1" {
		t.Errorf("bucket: %+v", bucket)
	}
	if vault.Name != "vault" || vault.Every != 6*time.Hour || len(vault.Prefixes) != 2 || vault.Access.Credentials != "/etc/stele/vault.key" {
		t.Errorf("vault: %+v", vault)
	}
	for text, want := range map[string]string{
		"[escrow]\nvault = \"https://example.org/\"":                                "stele.toml:2: escrow.vault: this is not a place",
		"[escrow]\nVault = \"file:///x\"":                                           "can't be the name of deposits",
		"[escrow]\nvault = \"\"":                                                    "a value for the deposits belongs here",
		"[escrow]\nvault = \"sftp://a@b/x\"":                                        "set escrow-credentials.vault",
		"[escrow]\nvault = \"sftp://a:secret@b/x\"":                                 "a password does not belong into a URL",
		"[escrow]\na = \"file:///x\"\nb = \"file:///x\"":                            "named twice",
		"handover-control = [\"http://www.example.org/\"]":                          "is not the URL of a control",
		"[escrow-every]\nvault = \"6h\"":                                            "set escrow.vault",
		"[escrow]\nvault = \"file:///x\"\n[escrow-every]\nvault = \"59m\"":          "is not a time after which deposits are made again",
		"[escrow]\nvault = \"file:///x\"\n[escrow-prefixes]\nother = \"ark:12345\"": "set escrow.other",
	} {
		c := write(text)
		if len(c.Problems) == 0 || !strings.Contains(c.Problems[0].String(), want) || strings.Contains(c.Problems[0].String(), "secret@") {
			t.Errorf("%s: %v", text, c.Problems)
		}
	}
}
