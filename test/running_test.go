package test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// machinePages are the pages that are followed on an empty machine, in this order: readers
// try things before the machine has a registry of its own, and an administrator reads the bad
// day after the first.
var machinePages = []string{"README.md", "docs/tour.md", "docs/dns.md", "docs/postgres.md", "docs/running.md", "docs/bad-day.md"}

// preparations are what the pages ask for in words, or what another machine would have:
// commands that are run before the shown one that begins with the key.
var preparations = map[string][]string{
	// "From files" of the section about TLS: a CA can't reach this machine.
	"systemctl daemon-reload": {
		"install -d -m 755 /etc/stele/tls",
		"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=id.example.org " +
			"-addext subjectAltName=DNS:id.example.org -keyout /etc/stele/tls/privkey.pem -out /etc/stele/tls/fullchain.pem",
		"chown stele:stele /etc/stele/tls/privkey.pem",
		"cp /etc/stele/tls/fullchain.pem /usr/local/share/ca-certificates/id.crt",
		"update-ca-certificates",
		"sed -i -e '/^acme-/d' -e 's/^#tls-/tls-/' /etc/stele/stele.toml",
	},
	// The other machine is this one, under another name.
	"rsync -a /var/backups/stele/ ": {
		"ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519",
		"cp ~/.ssh/id_ed25519.pub ~/.ssh/authorized_keys",
		"systemctl start ssh",
		"ssh-keyscan -t ed25519 backup.example.org > ~/.ssh/known_hosts",
		"mkdir -p /srv/backups",
	},
	// The page shows a backup of some day, and a file with an administrator's token.
	"sudo -u stele stele restore /var/backups/stele/2026-05-02T000000 ": {
		"cp -a \"$(ls -d /var/backups/stele/20* | tail -n 1)\" /var/backups/stele/2026-05-02T000000",
		"printf '%s\\n' \"$STELE_TOKEN\" > admin.token",
		"chown stele admin.token && chmod 400 admin.token",
	},
	// "stop the old server", in the list above the commands.
	"sudo -u stele stele backup /var/backups/stele/last ": {"systemctl stop stele"},
}

// instead has shown commands that are run otherwise, or not at all ("").
var instead = map[string]string{
	"journalctl -u stele -f": "timeout 3 journalctl -u stele -f; [ $? -eq 124 ]", // it goes on until it is interrupted
	// A container has the clock of its host.
	"timedatectl set-ntp true":    "",
	"timedatectl timesync-status": "",
}

// TestMachine follows the pages literally, as root on an empty machine: every command of
// their blocks, in order. Console blocks print what the pages show.
func TestMachine(t *testing.T) {
	t.Parallel()
	for name := range repositoryFiles(t) {
		if filepath.Ext(name) != ".md" || slices.Contains(machinePages, name) || name == packagesPage {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "```root") {
			t.Errorf("%s has commands for root; name it among machinePages", name)
		}
	}
	m := newMachine(t, readerHome)
	m.must(t,
		"cp -a "+readerHome+" /srv/clone",
		"echo '127.0.0.1 id.example.org backup.example.org db.example.org' >> /etc/hosts",
		// The database has an administrator of its own, who made the user.
		"sed -i 's/^host .*127.*/host all all 127.0.0.1\\/32 trust/' /etc/postgresql/*/main/pg_hba.conf",
		"systemctl restart postgresql",
		"sudo -u postgres createuser --createdb stele",
		// `make demo`, on a terminal.
		"(setsid bin/stele serve --demo < /dev/null > /tmp/demo.log 2>&1 &)",
	)
	demo := await(t, "the demo", func() (string, bool) {
		results, err := m.sh.run(t.Context(), "cat /tmp/demo.log")
		if err != nil || len(results) == 0 {
			return "", false
		}
		token := shownToken.FindString(results[0].out)
		return token, token != ""
	})
	for _, name := range machinePages {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(root, name))
			if err != nil {
				t.Fatal(err)
			}
			p, err := parsePage(name, string(text))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), "```root") {
				m.export("STELE_TOKEN", demo)
			}
			m.must(t, "cd / && rm -rf "+readerHome+" && cp -a /srv/clone "+readerHome)
			d := &sandbox{sh: m.sh, timeout: 2 * time.Minute, life: t.Context(), literal: true}
			for _, f := range p.fences {
				d.sh = m.sh
				var complaints []string
				switch f.tag {
				case "console":
					_, complaints = d.console(t.Context(), p, f)
				case "sh":
					complaints = d.script(t.Context(), p, f)
				case "root":
					for i, line := range f.body {
						if complaint := m.tryRoot(t, line); complaint != "" {
							complaints = append(complaints, p.at(f.first+i, "%q: %s", line, complaint))
						}
					}
				}
				for _, c := range complaints {
					t.Error(c)
				}
			}
		})
	}
	if !t.Failed() {
		if out := m.must(t, "systemctl is-failed --quiet 'stele*' && systemctl --failed || true"); strings.Contains(out, "stele") {
			t.Errorf("units have failed:\n%s", out)
		}
	}
}

// shownToken is a token, as programs show it.
var shownToken = regexp.MustCompile(`stele_[A-Za-z0-9]+_[A-Za-z0-9_-]+`)

// tryRoot runs a command as root, and returns what is wrong with it.
func (m *debian) tryRoot(t *testing.T, line string) string {
	t.Helper()
	command := line
	for prefix, commands := range preparations {
		if strings.HasPrefix(line, prefix) {
			m.must(t, commands...)
		}
	}
	if other, ok := instead[line]; ok {
		if other == "" {
			return ""
		}
		command = other
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	results, err := m.sh.run(ctx, command)
	if err != nil {
		return err.Error()
	}
	out := results[0].out
	if strings.Contains(line, " stele token create admin ") {
		m.export("STELE_TOKEN", shownToken.FindString(out))
	}
	if strings.Contains(line, " stele doctor ") {
		return m.judgeDoctor(out)
	}
	if results[0].code != 0 {
		return out + m.journal(t)
	}
	return ""
}

// journal returns the last lines of the server's log.
func (m *debian) journal(t *testing.T) string {
	results, err := m.sh.run(t.Context(), "journalctl --no-pager -n 20 -u stele -u stele-backup")
	if err != nil || len(results) == 0 {
		return ""
	}
	return "\nthe journal:\n" + results[0].out
}

// judgeDoctor returns the problems that the doctor has found and should not have. The zone
// above has no delegation, and the name servers that the pages show do not exist.
func (m *debian) judgeDoctor(out string) string {
	if !strings.Contains(out, "ok       configuration: ") {
		return out
	}
	var wrong []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "problem ") && !strings.HasPrefix(line, "problem  delegation: ") {
			wrong = append(wrong, line)
		}
	}
	return strings.Join(wrong, "")
}
