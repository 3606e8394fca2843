package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestServeDeposits: a server makes and checks the deposit that its settings ask for, keeps what became of it, and makes no other one
// if nothing has changed.
func TestServeDeposits(t *testing.T) {
	folder := t.TempDir()
	data, vault := filepath.Join(folder, "data"), filepath.Join(folder, "vault")
	runStele(t, "ns", "add", "ark:12345", "--data", data)
	runStele(t, "register", "ark:12345/a1", "--to", "https://example.org/1", "--data", data)
	if said := runStele(t, "escrow", "status", "--data", data); !strings.Contains(said, "no server makes deposits yet") {
		t.Error(said)
	}
	runStele(t, "user", "add", "ann", "--admin", "--data", data)
	token, err := steleCommand(t, "token", "create", "ann", "--scope", "admin", "--data", data).Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "token")
	if err := os.WriteFile(file, token, 0o600); err != nil {
		t.Fatal(err)
	}
	serve := []string{"--data", data, "--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--log-origin", "names.example.org/.log", "--escrow", "vault=file://" + vault, "--escrow-every", "vault=1h"}
	p := startServe(t, serve...)
	p.waitFor(t, "a scheduled deposit is made")
	p.waitFor(t, "a deposit was checked, and is whole")
	p.waitForMetric(t, `stele_escrow_change{escrow="vault"} 2`)
	p.waitForMetric(t, `stele_escrow_failures{escrow="vault"} 0`)
	said := runStele(t, "escrow", "status", "--server", p.http, "--token-file", file)
	for _, word := range []string{"vault\n", "place       file://" + vault, "change 2, 1 records", ", and whole", "  next  "} {
		if !strings.Contains(said, word) {
			t.Errorf("%q is missing in %s", word, said)
		}
	}
	response, _ := httpGet(t, p.http+"/api/v1/escrow")
	if response.StatusCode != 401 {
		t.Errorf("a stranger gets %s", response.Status)
	}
	if code := p.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("it ends with %d:\n%s", code, p.stderr)
	}
	if said := runStele(t, "audit", "--data", data); !strings.Contains(said, "deposits:vault") {
		t.Errorf("the audit trail: %s", said)
	}
	if said := runStele(t, "escrow", "check", "file://"+vault); !strings.Contains(said, "is whole") {
		t.Error(said)
	}
	lists, err := filepath.Glob(filepath.Join(vault, "deposits", "*"))
	if err != nil || len(lists) != 1 {
		t.Errorf("there are %d deposits: %v", len(lists), err)
	}
	// A place that can't be reached is told of.
	p = startServe(t, "--data", data, "--http", "127.0.0.1:0", "--escrow", "vault=file://"+filepath.Join(folder, "nowhere", "vault"))
	p.waitFor(t, "a scheduled deposit failed")
	p.end(t, syscall.SIGTERM)
	if said := runStele(t, "escrow", "status", "--data", data); !strings.Contains(said, "none was made yet") || !strings.Contains(said, "1 times: ") {
		t.Error(said)
	}
}
