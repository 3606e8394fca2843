package main

import (
	"net/http"
	"net/http/httptest"

	"github.com/stele-id/stele/doctor"

	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stele-id/stele/internal/certtest"
)

// clinic is an installation with everything that doctor looks at.
type clinic struct {
	t         *testing.T
	authority *certtest.Authority
	folder    string
	data      string
	config    string
	backups   string
	http      string // address
	https     string
}

func newClinic(t *testing.T) *clinic {
	t.Helper()
	c := &clinic{t: t, authority: certtest.New(t, time.Now), folder: t.TempDir(), http: freeAddress(t), https: freeAddress(t)}
	c.data, c.config, c.backups = filepath.Join(c.folder, "registry"), filepath.Join(c.folder, "stele.toml"), filepath.Join(c.folder, "backups")
	c.write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.authority.Cert.Raw})))
	c.authority.Issue(t, c.folder, 90*24*time.Hour, 1, "localhost")
	_, port, _ := net.SplitHostPort(c.https)
	c.write("stele.toml", fmt.Sprintf("data = %q\nhttp = %q\nhttps = %q\nbase = \"https://localhost:%s\"\ntls-cert = %q\ntls-key = %q\nredirect-https = true\nmax-connections = 500\n",
		c.data, c.http, c.https, port, filepath.Join(c.folder, "cert.pem"), filepath.Join(c.folder, "key.pem")))
	c.stele("register", "ark:12345/x1", "--to", "https://example.org/x1")
	c.stele("user", "add", "admin", "--admin")
	c.write("token", c.stele("token", "create", "admin"))
	c.stele("backup", filepath.Join(c.backups, "first"))
	if err := os.Chmod(c.data, 0o750); err != nil {
		t.Fatal(err)
	}
	return c
}

// freeAddress returns an unused address of this machine.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (c *clinic) write(name, text string) {
	c.t.Helper()
	if err := os.MkdirAll(c.backups, 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.folder, name), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// stele runs the program on the folder, and returns what it prints.
func (c *clinic) stele(args ...string) string {
	c.t.Helper()
	cmd := steleCommand(c.t, append(args, "--data", c.data)...)
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("stele %q: %v", args, err)
	}
	return string(out)
}

func (c *clinic) serve() *process {
	c.t.Helper()
	return startServe(c.t, "--config", c.config)
}

// args are those of doctor for this installation.
func (c *clinic) args() []string {
	return []string{"--config", c.config, "--ca", filepath.Join(c.folder, "ca.pem"), "--token-file", filepath.Join(c.folder, "token"), "--backup", c.backups}
}

// doctor runs doctor with some arguments and returns what it finds.
func (c *clinic) doctor(args ...string) (found []doctor.Finding, code int) {
	c.t.Helper()
	out, err := steleCommand(c.t, append([]string{"doctor", "--json"}, args...)...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		c.t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		var f doctor.Finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			c.t.Fatalf("%q: %v", line, err)
		}
		found = append(found, f)
	}
	return found, code
}

// has reports whether something of a kind was found.
func has(found []doctor.Finding, check string, g doctor.Grade, text string) bool {
	return slices.ContainsFunc(found, func(f doctor.Finding) bool {
		return f.Check == check && f.Grade == g && strings.Contains(f.What+"; "+f.Do, text)
	})
}

// show writes findings down.
func show(found []doctor.Finding) string {
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "%s %s: %s; %s\n", f.Grade, f.Check, f.What, f.Do)
	}
	return b.String()
}

// TestDoctor: doctor finds no problem in a healthy installation, with the server and
// without.
func TestDoctor(t *testing.T) {
	c := newClinic(t)
	p := c.serve()
	found, code := c.doctor(c.args()...)
	for check, text := range map[string]string{
		"configuration": "nothing is wrong in " + c.config, "folder": fmt.Sprintf("open in process %d", p.cmd.Process.Pid), "descriptors": "files open",
		"server": "answers after", "registry": "it can be written", "certificate": "localhost expires in 89 days", "redirect": "leads to https", "tokens": "1 in use", "backup": "the newest, first",
	} {
		if !has(found, check, doctor.OK, text) {
			t.Errorf("%s: no %q", check, text)
		}
	}
	for _, f := range found { // the disk and the clock of the machine may have problems
		if f.Grade != doctor.OK && f.Check != "disk" && f.Check != "clock" || f.Grade == doctor.Problem {
			t.Errorf("%s %s: %s", f.Grade, f.Check, f.What)
		}
	}
	if code != exitOK {
		t.Errorf("it exits with %d\n%s", code, show(found))
	}
	// From elsewhere.
	_, port, _ := net.SplitHostPort(c.https)
	found, code = c.doctor("--server", "https://localhost:"+port, "--ca", filepath.Join(c.folder, "ca.pem"), "--token-file", filepath.Join(c.folder, "token"))
	if code != exitOK || !has(found, "certificate", doctor.OK, "89 days") || !has(found, "clock", doctor.OK, "agree") || !has(found, "registry", doctor.OK, "it can be written") || has(found, "folder", doctor.OK, "") || has(found, "configuration", doctor.OK, "") {
		t.Errorf("from elsewhere it exits with %d\n%s", code, show(found))
	}
	if code := p.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("the server ends with %d", code)
	}
	found, code = c.doctor(c.args()...)
	if code != exitFailed || !has(found, "server", doctor.Problem, "no server answers at http://"+c.http) || !has(found, "registry", doctor.OK, "no server has it") || !has(found, "folder", doctor.OK, "not in use") || !has(found, "tokens", doctor.OK, "1 in use") {
		t.Errorf("without the server it exits with %d\n%s", code, show(found))
	}
}

// TestDoctorSick breaks one thing after the other.
func TestDoctorSick(t *testing.T) {
	c := newClinic(t)
	c.serve()
	good, err := os.ReadFile(c.config)
	if err != nil {
		t.Fatal(err)
	}
	age := func(d time.Duration) func() {
		return func() {
			then := time.Now().Add(-d)
			if err := os.Chtimes(filepath.Join(c.backups, "first"), then, then); err != nil {
				t.Fatal(err)
			}
		}
	}
	mode := func(file string, m os.FileMode) func() {
		return func() {
			if err := os.Chmod(file, m); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		name  string
		spoil func()
		args  []string // beside the usual
		check string
		grade doctor.Grade
		text  string
	}{
		{"a setting", func() { c.write("stele.toml", string(good)+"htpp = ':80'\n") }, nil, "configuration", doctor.Problem, "did you mean http?"},
		{"a file that all may write", mode(c.config, 0o666), nil, "configuration", doctor.Problem, "chmod 0644 " + c.config},
		{"a key that all may read", mode(filepath.Join(c.folder, "key.pem"), 0o644), nil, "configuration", doctor.Problem, "others may read the private key"},
		{"a key of another certificate", func() { replaceIn(t, c.config, "key.pem", "cert.pem") }, nil, "configuration", doctor.Problem, "are not a certificate and its key"},
		{"no certificate", func() { replaceIn(t, c.config, "cert.pem", "none.pem") }, nil, "configuration", doctor.Problem, "none.pem can't be read"},
		{"a folder that all may write", mode(c.data, 0o777), nil, "folder", doctor.Problem, "others may change the registry"},
		{"a folder that all may read", mode(c.data, 0o755), nil, "folder", doctor.Warning, "chmod o-rwx"},
		{"no folder", func() {}, []string{"--data", filepath.Join(c.folder, "none")}, "folder", doctor.Problem, "there is no registry"},
		{"a file for a folder", func() {}, []string{"--data", c.config}, "folder", doctor.Problem, "is not a folder"},
		{"many connections", func() { replaceIn(t, c.config, "= 500", "= 2000000000") }, nil, "descriptors", doctor.Warning, "set LimitNOFILE="},
		{"another program", func() { replaceIn(t, c.config, "http = \""+c.http, "http = \""+strangeServer(t)) }, nil, "server", doctor.Problem, "another program"},
		{"no server", func() { replaceIn(t, c.config, "http = \""+c.http, "http = \""+freeAddress(t)) }, nil, "server", doctor.Problem, "no server answers"},
		{"any port", func() { replaceIn(t, c.config, "http = \""+c.http, "http = \"127.0.0.1:0") }, nil, "server", doctor.Warning, "name the server with --server"},
		{"no token", func() { c.write("token", "") }, nil, "registry", doctor.Problem, "has no token in it"},
		{"a wrong token", func() { c.write("token", "stele_"+strings.Repeat("a", 12)+"_"+strings.Repeat("A", 43)) }, nil, "registry", doctor.Problem, "it takes the token of an administrator"},
		{"an unknown CA", func() {}, []string{"--ca", filepath.Join(c.folder, "other.pem")}, "certificate", doctor.Problem, "--ca names the root"},
		{"nobody at the public address", func() { replaceIn(t, c.config, "base = \"https://localhost", "base = \"https://localhost:1\" # ") }, nil, "certificate", doctor.Problem, "no certificate is shown"},
		{"no backup", func() {}, []string{"--backup", t.TempDir()}, "backup", doctor.Problem, "there is no backup"},
		{"no folder of backups", func() {}, []string{"--backup", "none"}, "backup", doctor.Problem, "stele backup FOLDER makes one"},
		{"an old backup", age(3 * 24 * time.Hour), nil, "backup", doctor.Warning, "is 3 days old"},
		{"a very old backup", age(30 * 24 * time.Hour), nil, "backup", doctor.Problem, "is 30 days old"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			token, err := os.ReadFile(filepath.Join(c.folder, "token"))
			if err != nil {
				t.Fatal(err)
			}
			other := certtest.New(t, time.Now)
			c.write("other.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Cert.Raw})))
			defer func() {
				c.write("stele.toml", string(good))
				c.write("token", string(token))
				for file, m := range map[string]os.FileMode{c.config: 0o600, filepath.Join(c.folder, "key.pem"): 0o600, c.data: 0o750} {
					mode(file, m)()
				}
				age(0)()
			}()
			tt.spoil()
			found, code := c.doctor(append(c.args(), tt.args...)...)
			if !has(found, tt.check, tt.grade, tt.text) || (code == exitFailed) != slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Grade == doctor.Problem }) {
				t.Errorf("it exits with %d, and finds no %q:\n%s", code, tt.text, show(found))
			}
		})
	}
}

func replaceIn(t *testing.T, file, old, new string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), old) {
		t.Fatalf("%s has no %q: %v", file, old, err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), old, new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// strangeServer is a web server of another program. It returns its address.
func strangeServer(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// TestDoctorDescriptors: doctor reports a server that may open few files.
func TestDoctorDescriptors(t *testing.T) {
	data := newRegistry(t)
	cmd := steleCommand(t)
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `ulimit -n 512; exec stele serve --json --http 127.0.0.1:0 --data "$1"`, "sh", data}
	p := startCommand(t, cmd)
	look := steleCommand(t, "doctor", "--data", data)
	look.Env = append(look.Env, "STELE_MAX_CONNECTIONS=10000")
	out, _ := look.Output() // it has problems: no server answers at the default address
	if !strings.Contains(string(out), "may have 512 files open, and max-connections is 10000; set LimitNOFILE=12048") {
		t.Errorf("it is not told:\n%s", out)
	}
	p.end(t, syscall.SIGTERM)
}
