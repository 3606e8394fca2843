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
	for _, name := range []string{"stele.service", "stele-backup.service", "stele-backup.timer", "stele-monitor.service", "stele-monitor.timer"} {
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
	if said, err := verify(t, "/nowhere/stele", "ProtectSystem=strict", "ProtectSystem=somehow"); err == nil || strings.Count(said, "protect system") != 3 || !strings.Contains(said, "/nowhere/stele") {
		t.Errorf("broken units are verified: %v\n%s", err, said)
	}
	for _, name := range []string{"stele.service", "stele-backup.service", "stele-monitor.service"} {
		out, err := exec.Command("systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold="+exposure, filepath.Join(root, "deploy", name)).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
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
