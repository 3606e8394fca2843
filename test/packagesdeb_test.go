package test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// rootBlocks returns the blocks of commands for root in a page, in order.
func rootBlocks(t *testing.T, name string) (blocks [][]string) {
	t.Helper()
	p, err := parsePage(name, readRoot(t, name))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range p.fences {
		if f.tag == "root" {
			blocks = append(blocks, f.body)
		}
	}
	return blocks
}

// trialConfig is the configuration that an administrator writes: this machine has no name that a CA could check.
const trialConfig = `data = "/var/lib/stele/registry"
http = "127.0.0.1:8080"
base = "https://id.example.org"
# written by an administrator
`

// checkInstallation follows the page about packages on an empty machine. Where the page upgrades, the version
// before is installed first.
func checkInstallation(t *testing.T, dist, before, version string) {
	blocks := rootBlocks(t, packagesPage)
	if len(blocks) != 5 {
		t.Fatalf("%s has %d blocks for root; the steps here are for 5", packagesPage, len(blocks))
	}
	const home = "/srv/ana"
	deb := fmt.Sprintf("stele_%s-1_%s.deb", version[1:], runtime.GOARCH)
	m := newMachineWith(t, home, func(folder string) {
		for _, from := range []string{filepath.Join(dist, deb), filepath.Join(dist, "SHA256SUMS"), before} {
			text, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(folder, home, filepath.Base(from)), string(text), 0o644)
		}
	})
	m.export("DEBIAN_FRONTEND", "noninteractive")
	shown := func(i int, replace ...string) string {
		t.Helper()
		commands := make([]string, len(blocks[i]))
		for j, line := range blocks[i] {
			line = strings.NewReplacer(append(replace, "_amd64.deb", "_"+runtime.GOARCH+".deb")...).Replace(line)
			commands[j] = "{ " + line + "; } 2>&1"
		}
		return m.must(t, commands...)
	}
	has := func(what, out string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s: no %q in\n%s", what, w, out)
			}
		}
	}

	has("checksums", shown(0), deb+": OK")
	old := filepath.Base(before)
	has("installation", shown(1, deb, old, fmt.Sprintf("stele_%s-1_amd64.deb", version[1:]), old), "the server is not started yet")
	has("what it made", m.must(t, "dpkg --verify stele && stat -c '%U %a' /var/lib/stele /var/backups/stele && getent passwd stele && systemctl is-active stele; systemctl is-enabled stele; true"),
		"stele 700\nstele 700\nstele:", "inactive", "disabled")
	m.must(t, "cat > /etc/stele/stele.toml <<'END'\n"+trialConfig+"END\n")
	shown(2, "STELE_SERVER=https://id.example.org", "STELE_SERVER=http://127.0.0.1:8080") // no name leads to this machine
	m.must(t, "systemctl start stele-backup.service && systemctl start stele-drill.service && test -e /var/backups/stele/2*/MANIFEST* && stat -c '%U %a' /etc/stele/backup.token | grep '^stele 400$'")
	m.must(t, "systemctl stop stele && sudo -u stele stele register urn:example:1 --to https://example.org/1 --data /var/lib/stele/registry && systemctl start stele")
	const ask = "curl --silent --header 'X-Forwarded-Proto: https' --output /dev/null --write-out '%{http_code} %{redirect_url}\\n' http://127.0.0.1:8080/urn:example:1"
	has("the server", m.must(t, ask), "302 https://example.org/1")
	const state = "md5sum /etc/stele/stele.toml /etc/stele/secret.key && sudo -u stele ls /var/lib/stele"
	kept, process := m.must(t, state), m.must(t, "systemctl show --property MainPID stele")

	has("upgrade", shown(3), "stele version "+version)
	if now := m.must(t, "systemctl is-active stele && systemctl show --property MainPID stele"); strings.Contains(now, process) {
		t.Errorf("an upgrade does not restart the server: %s", now)
	}
	same := func(when string) {
		t.Helper()
		if now := m.must(t, state); now != kept {
			t.Errorf("%s something has changed:\n%s\nwas\n%s", when, now, kept)
		}
	}
	same("after an upgrade")
	has("the server", m.must(t, ask), "302 https://example.org/1")

	m.must(t, blocks[4][0])
	same("after the package was removed")
	has("what is removed", m.must(t, "systemctl is-active stele; ls /usr/bin/stele /lib/systemd/system/stele.service 2>&1; true"), "inactive", "cannot access '/usr/bin/stele'", "cannot access '/lib/systemd")
	m.must(t, "dpkg --install "+deb, "systemctl start stele")
	same("after the package was installed again")
	has("the server", m.must(t, ask), "302 https://example.org/1")

	m.must(t, blocks[4][0])
	has("purge", m.must(t, blocks[4][1]+" 2>&1"), "/var/lib/stele is kept", "/etc/stele is kept")
	has("what a purge leaves", m.must(t, "ls -A /etc/stele; ls /var/lib/stele/registry | head -n 1; getent passwd stele; ls /etc/systemd/system/multi-user.target.wants/"), "secret.key", "stele:")
	if out := m.must(t, "ls /etc/stele /etc/logrotate.d /etc/systemd/system/multi-user.target.wants/; dpkg-query --show stele 2>&1; true"); strings.Contains(out, "stele.toml") || strings.Contains(out, "stele.service") || !strings.Contains(out, "no packages found") {
		t.Errorf("a purge leaves\n%s", out)
	}
	if out := m.must(t, "ls -d /var/cache/stele-drill 2>&1; true"); !strings.Contains(out, "cannot access") {
		t.Errorf("a purge leaves what drills wrote: %s", out)
	}
	// The registry outlives the package.
	m.must(t, "dpkg --install "+deb)
	has("the registry", m.must(t, "sudo -u stele stele show urn:example:1 --data /var/lib/stele/registry"), "https://example.org/1")
}
