// Package servertest runs servers of the system for tests: nginx, vsftpd, NSD and others.
package servertest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// FreePort returns a port for a server that is about to start. It is below those that the system gives to others (32768 and above
// by default), so that none of them takes it before.
func FreePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(10_000 + rand.IntN(22_000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

// Start runs a server of the system until the test ends, and returns when it answers at an address. The
// program is copied: some systems (AppArmor) let the installed one read its own folders only.
func Start(t testing.TB, at, program string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(program)
	if errors.Is(err, exec.ErrNotFound) {
		path = "/usr/sbin/" + program // which is not in every user's path
	}
	folder := t.TempDir()
	text, err := os.ReadFile(path)
	if err == nil {
		path = filepath.Join(folder, program)
		err = os.WriteFile(path, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	said, err := os.Create(filepath.Join(folder, "said"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it has children, which end with it
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
		_ = said.Close()
	})
	for deadline := time.Now().Add(2 * time.Minute); ; {
		conn, err := net.Dial("tcp", at)
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case err := <-ended:
			ended <- err
			text, _ := os.ReadFile(said.Name())
			t.Fatalf("%s ended: %v\n%s", program, err, text)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not answer: %v", program, err)
		}
	}
}

// Nginx runs nginx with servers, in which {folder} is the folder of its files, and returns when it answers at an
// address.
func Nginx(t testing.TB, at, folder, servers string) {
	t.Helper()
	user := ""
	if os.Getuid() == 0 {
		user = "user root;" // only the test's user can read its folders
	}
	config := filepath.Join(folder, "nginx.conf")
	writeFile(t, config, strings.ReplaceAll(fmt.Sprintf(`daemon off;
%s
pid {folder}/pid;
error_log stderr;
worker_processes 1;
events {}
http {
	access_log off;
	default_type text/html;
	client_body_temp_path {folder}/body;
	proxy_temp_path {folder}/proxy;
	fastcgi_temp_path {folder}/fastcgi;
	uwsgi_temp_path {folder}/uwsgi;
	scgi_temp_path {folder}/scgi;
%s
}
`, user, servers), "{folder}", folder))
	Start(t, at, "nginx", "-p", folder, "-c", config)
}

// NSD runs a name server for zones, given by their records without the SOA, and returns its address. A zone without records is one whose file
// it can't read.
func NSD(t testing.TB, zones map[string]string) (at string) {
	t.Helper()
	folder, err := os.MkdirTemp("", "nsd") // paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	port := FreePort(t)
	config := fmt.Sprintf(`server:
  ip-address: 127.0.0.1@%s
  do-ip6: no
  server-count: 1
  username: ""
  zonesdir: "%[2]s"
  database: ""
  pidfile: ""
  xfrdfile: "%[2]s/xfrd"
  xfrdir: "%[2]s"
  zonelistfile: "%[2]s/list"
  rrl-ratelimit: 0
remote-control:
  control-enable: no
`, port, folder)
	for zone, records := range zones {
		if records != "" {
			writeFile(t, filepath.Join(folder, zone+".zone"), "$ORIGIN "+zone+".\n$TTL 1\n@ SOA ns admin 1 60 60 60 1\n"+records)
		}
		config += fmt.Sprintf("zone:\n  name: %q\n  zonefile: %q\n", zone, zone+".zone")
	}
	writeFile(t, filepath.Join(folder, "conf"), config)
	at = net.JoinHostPort("127.0.0.1", port)
	Start(t, at, "nsd", "-d", "-c", filepath.Join(folder, "conf"))
	return at
}

// FTP runs vsftpd for a folder. It runs as the user of the test, without chroot: all users of this machine can read
// its files.
func FTP(t testing.TB, folder string) (at string) {
	t.Helper()
	port := FreePort(t)
	config := filepath.Join(t.TempDir(), "vsftpd.conf")
	writeFile(t, config, fmt.Sprintf(`listen=YES
listen_address=127.0.0.1
listen_port=%s
background=NO
anonymous_enable=YES
local_enable=NO
run_as_launching_user=YES
anon_root=%s
secure_chroot_dir=%s
seccomp_sandbox=NO
xferlog_enable=NO
`, port, folder, t.TempDir()))
	at = "127.0.0.1:" + port
	Start(t, at, "vsftpd", config)
	return at
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
