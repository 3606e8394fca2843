package test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// exposure is what systemd may say of our unit at most, of 100. From 50 on it calls a
// unit exposed.
const exposure = "20"

// deployed returns a file of deploy/, with some texts in place of others, each of
// which must be there.
func deployed(t *testing.T, name string, replace ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	out := string(text)
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(out, replace[i]) {
			t.Fatalf("%s has no %q", name, replace[i])
		}
		out = strings.ReplaceAll(out, replace[i], replace[i+1])
	}
	return out
}

// verify has systemd check units, and returns what it says of ours.
func verify(t *testing.T, stele string, spoil ...string) (string, error) {
	t.Helper()
	folder := t.TempDir()
	args := []string{"verify", "--man=no"}
	for _, name := range []string{"stele.service", "stele-backup.service", "stele-backup.timer", "stele-drill.service", "stele-drill.timer", "stele-monitor.service", "stele-monitor.timer"} {
		text := deployed(t, name)
		if strings.HasSuffix(name, ".service") {
			text = deployed(t, name, append([]string{"/usr/local/bin/stele", stele}, spoil...)...)
		}
		writeFile(t, filepath.Join(folder, name), text, 0o644)
		args = append(args, filepath.Join(folder, name))
	}
	out, err := exec.Command("systemd-analyze", args...).CombinedOutput()
	var ours strings.Builder
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "stele") { // messages about other units on the machine do not count
			ours.WriteString(line)
		}
	}
	return ours.String(), err
}

// TestUnits lets systemd check our units: that they are right, and how much of the
// machine they leave open.
func TestUnits(t *testing.T) {
	if said, err := verify(t, stele(t)); said != "" {
		t.Errorf("%v\n%s", err, said)
	}
	// Faults in units are found; otherwise the test above proves nothing.
	if said, err := verify(t, "/nowhere/stele", "ProtectSystem=strict", "ProtectSystem=somehow"); err == nil || strings.Count(said, "protect system") != 4 || !strings.Contains(said, "/nowhere/stele") {
		t.Errorf("broken units are verified: %v\n%s", err, said)
	}
	for _, name := range []string{"stele.service", "stele-backup.service", "stele-drill.service", "stele-monitor.service"} {
		out, err := exec.Command("systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold="+exposure, filepath.Join(root, "deploy", name)).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestBackupUnits: the units name no server of an example, and without the setting they say what is missing.
func TestBackupUnits(t *testing.T) {
	for _, name := range []string{"stele-backup.service", "stele-drill.service"} {
		unit := deployed(t, name)
		if strings.Contains(unit, "example.org") || !strings.Contains(unit, "\nEnvironmentFile=-/etc/stele/backup.env\n") {
			t.Errorf("%s does not take the server from backup.env:\n%s", name, unit)
		}
		line := regexp.MustCompile(`(?m)^ExecStart=/bin/sh -c '(.*)'$`).FindStringSubmatch(unit)
		if line == nil {
			t.Fatalf("%s runs no shell", name)
		}
		// As systemd writes it.
		command := strings.NewReplacer("$$", "$", "%%", "%", "/usr/local/bin/stele", "echo", "exec ", "").Replace(line[1])
		run := func(env ...string) (string, error) {
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", command)
			cmd.Env = append(env, "PATH="+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		if out, err := run(); err == nil || !strings.Contains(out, "STELE_SERVER: is not set; write STELE_SERVER=") {
			t.Errorf("%s without a server: %v, %s", name, err, out)
		}
		if out, err := run("STELE_SERVER=https://names.example.net"); err != nil || !strings.Contains(out, "--server https://names.example.net --token-file /etc/stele/backup.token") {
			t.Errorf("%s: %v, %s", name, err, out)
		}
	}
}

// TestDrillUnit: the drill takes the last backup that was completed, and removes first what a drill that was killed has left, and
// nothing else.
func TestDrillUnit(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"backups/2026-05-02T101112.345", "backups/2026-05-03T101112.345", "backups/2026-05-04T101112.345.part", "backups/2026-by-hand", "cache/stele-drill-1/registry/x", "cache/kept"} {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	unit := deployed(t, "stele-drill.service", "/usr/local/bin/stele", "echo", "/var/backups/stele", filepath.Join(folder, "backups"), "/var/cache/stele-drill", filepath.Join(folder, "cache"))
	var out []byte
	for _, line := range regexp.MustCompile(`(?m)^ExecStart(?:Pre)?=/bin/sh -c '(.*)'$`).FindAllStringSubmatch(unit, -1) {
		// As systemd writes it; exec knows no builtin command.
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", strings.NewReplacer("$$", "$", "%%", "%", "exec ", "").Replace(line[1]))
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "STELE_SERVER=https://names.example.net"}
		var err error
		if out, err = cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line[1], err, out)
		}
	}
	if !strings.HasSuffix(string(out), "/backups/2026-05-03T101112.345\n") {
		t.Errorf("the drill restores %s", out)
	}
	if left, err := filepath.Glob(filepath.Join(folder, "cache/*")); err != nil || len(left) != 1 || filepath.Base(left[0]) != "kept" {
		t.Errorf("the folder of drills has %q, %v", left, err)
	}
	// The backups have the names that the drill looks for.
	name, err := exec.CommandContext(t.Context(), "date", "-u", "+%FT%H%M%S.%3N").Output()
	if backup := deployed(t, "stele-backup.service"); err != nil || !strings.Contains(backup, "date -u +%%FT%%H%%M%%S.%%3N") || !regexp.MustCompile(`^2.*\.\d{3}\n$`).Match(name) {
		t.Errorf("a backup is called %s, %v", name, err)
	}
}

// TestRemovedPackages: when the package is purged, or its last version removed, the copy of a drill that was killed goes, and the registry stays.
func TestRemovedPackages(t *testing.T) {
	for _, tt := range []struct {
		script, arg string
		goes        bool
	}{
		{"deb.postrm", "purge", true}, {"deb.postrm", "remove", false}, {"deb.postrm", "upgrade", false}, {"rpm.postrm", "0", true}, {"rpm.postrm", "1", false},
	} {
		folder := t.TempDir()
		for _, name := range []string{"var/lib/stele/registry", "var/backups/stele/b", "var/cache/stele-drill/stele-drill-1", "var/cache/other"} {
			if err := os.MkdirAll(filepath.Join(folder, name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		// Nothing of this machine is touched.
		script := strings.NewReplacer("/var/", folder+"/var/", "/etc/", folder+"/etc/", "/run/", folder+"/run/").Replace(deployed(t, "packages/"+tt.script))
		if out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, tt.script, tt.arg).CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v\n%s", tt.script, tt.arg, err, out)
		}
		for name, stays := range map[string]bool{"var/lib/stele/registry": true, "var/backups/stele/b": true, "var/cache/other": true, "var/cache/stele-drill/stele-drill-1": !tt.goes} {
			if _, err := os.Stat(filepath.Join(folder, name)); (err == nil) != stays {
				t.Errorf("after %s %s, %s: %v", tt.script, tt.arg, name, err)
			}
		}
	}
}

// shownUnits writes the units and their parts that a page shows to a folder.
func shownUnits(t *testing.T, name, folder string) {
	t.Helper()
	p, err := parsePage(name, readRoot(t, name))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range p.fences {
		if f.tag != "ini" {
			continue
		}
		name, ok := strings.CutPrefix(f.body[0], "# /etc/systemd/system/")
		if !ok {
			t.Fatalf("a block does not begin with the name of its file: %s", f.body[0])
		}
		writeFile(t, filepath.Join(folder, name), strings.Join(f.body, "\n")+"\n", 0o644)
	}
}

// verifyIn has systemd check units of a folder, and returns what it says of ours.
func verifyIn(t *testing.T, folder string, units ...string) (ours string, err error) {
	t.Helper()
	args := []string{"verify", "--man=no"}
	for _, name := range units {
		args = append(args, filepath.Join(folder, name))
	}
	cmd := exec.CommandContext(t.Context(), "systemd-analyze", args...)
	cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+folder+":")
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "stele") {
			ours += line
		}
	}
	return ours, err
}

// TestFailureUnits: what docs/watching.md shows, to be told when a unit fails, is right for systemd.
func TestFailureUnits(t *testing.T) {
	folder := t.TempDir()
	shownUnits(t, "docs/watching.md", folder)
	writeFile(t, filepath.Join(folder, "stele-backup.service"), deployed(t, "stele-backup.service", "/usr/local/bin/stele", stele(t)), 0o644)
	if said, err := verifyIn(t, folder, "stele-backup.service", "stele-failed@x.service"); said != "" {
		t.Errorf("%v\n%s", err, said)
	}
	text, err := os.ReadFile(filepath.Join(folder, "stele-backup.service.d/failed.conf"))
	if err != nil || !strings.Contains(string(text), "OnFailure=stele-failed@%n") {
		t.Errorf("%v\n%s", err, text)
	}
	if err := os.Remove(filepath.Join(folder, "stele-failed@.service")); err != nil {
		t.Fatal(err)
	}
	if said, _ := verifyIn(t, folder, "stele-backup.service", "stele-failed@x.service"); !strings.Contains(said, "stele-failed@") {
		t.Errorf("a unit that is missing is not found, so that this test proves nothing: %s", said)
	}
}

// TestDepositUnit: what docs/deposits.md shows lets the server write to the folder that the page names.
func TestDepositUnit(t *testing.T) {
	folder := t.TempDir()
	shownUnits(t, "docs/deposits.md", folder)
	writeFile(t, filepath.Join(folder, "stele.service"), deployed(t, "stele.service", "/usr/local/bin/stele", stele(t)), 0o644)
	if said, err := verifyIn(t, folder, "stele.service"); said != "" {
		t.Errorf("%v\n%s", err, said)
	}
	part := filepath.Join(folder, "stele.service.d/vault.conf")
	text, err := os.ReadFile(part)
	if err != nil || !strings.Contains(string(text), "[Service]\nReadWritePaths=/srv/vault\n") || !strings.Contains(readRoot(t, "docs/deposits.md"), `vault = "file:///srv/vault"`) {
		t.Errorf("%v\n%s", err, text)
	}
	writeFile(t, part, strings.ReplaceAll(string(text), "/srv/", "srv/"), 0o644)
	if said, _ := verifyIn(t, folder, "stele.service"); !strings.Contains(said, "vault") {
		t.Errorf("a folder that is no path is not found, so that this test proves nothing: %s", said)
	}
}

// TestUnitAgrees: the unit, the configuration and the rotation name the same places.
func TestUnitAgrees(t *testing.T) {
	unit, config, rotation := deployed(t, "stele.service"), deployed(t, "stele.toml"), deployed(t, "stele.logrotate")
	for _, want := range []string{"serve --config /etc/stele/stele.toml", "StateDirectory=stele", "LogsDirectory=stele", "User=stele", "Type=notify", "ExecReload=/bin/kill -HUP"} {
		if !strings.Contains(unit, want) {
			t.Errorf("the unit has no %q", want)
		}
	}
	if !strings.Contains(config, `data = "/var/lib/stele/`) || !strings.Contains(config, `log-file = "/var/log/stele/stele.log"`) || !strings.Contains(rotation, "/var/log/stele/stele.log {") {
		t.Error("they speak of different places")
	}
}

// TestDeployedConfiguration: the example is right, and so is each line of it that
// an operator may turn on.
func TestDeployedConfiguration(t *testing.T) {
	out, err := runStele(t, "config", "check", filepath.Join(root, "deploy", "stele.toml"))
	if err != nil || !strings.Contains(out, "nothing is wrong") {
		t.Errorf("%v\n%s", err, out)
	}
	lines := regexp.MustCompile(`(?m)^#([a-z-]+ = .*)$`).FindAllStringSubmatch(deployed(t, "stele.toml"), -1)
	if len(lines) < 8 {
		t.Fatalf("only %d lines can be turned on", len(lines))
	}
	for _, m := range lines {
		file := filepath.Join(t.TempDir(), "stele.toml")
		writeFile(t, file, m[1]+"\n", 0o600)
		out, _ := runStele(t, "config", "check", "--json", file)
		for line := range strings.Lines(out) {
			var problem struct{ Key, Problem, Nearest string }
			if json.Unmarshal([]byte(line), &problem) != nil {
				continue
			}
			// Without the others it may be of no use, but it is a setting.
			if problem.Nearest != "" || !strings.HasPrefix(problem.Key, "tls-") {
				t.Errorf("%s: %s", m[1], line)
			}
		}
	}
	// With a proxy in front.
	file := filepath.Join(t.TempDir(), "stele.toml")
	writeFile(t, file, commented(t, "nginx-stele.conf"), 0o600)
	if out, err := runStele(t, "config", "check", file); err != nil {
		t.Errorf("what nginx-stele.conf asks for: %v\n%s", err, out)
	}
}

// commented returns the settings that the comments of a file ask for.
func commented(t *testing.T, name string) string {
	t.Helper()
	var b bytes.Buffer
	for _, m := range regexp.MustCompile(`(?m)^#\t([a-z-]+ = .*)$`).FindAllStringSubmatch(deployed(t, name), -1) {
		b.WriteString(m[1] + "\n")
	}
	if b.Len() == 0 {
		t.Fatalf("%s asks for nothing", name)
	}
	return b.String()
}
