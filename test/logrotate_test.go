package test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestLogrotate lets the real logrotate rename the log of a running server, twice.
// No line is lost.
func TestLogrotate(t *testing.T) {
	folder := t.TempDir()
	log, state, config := filepath.Join(folder, "stele.log"), filepath.Join(folder, "state"), filepath.Join(folder, "conf")
	address := "127.0.0.1:" + strconv.Itoa(freePort(t))
	cmd := exec.Command(stele(t), "serve", "--data", filepath.Join(folder, "data"), "--http", address, "--log-file", log, "--log-requests")
	cmd.Env = []string{"HOME=" + folder}
	said, _, err := runBeside(t, cmd)
	if err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	group, err := user.LookupGroupId(me.Gid)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, config, deployed(t, "stele.logrotate", "/var/log/stele/stele.log", log, "su stele stele", "su "+me.Username+" "+group.Name,
		"/bin/systemctl kill --kill-who=main --signal=HUP stele.service", "kill -HUP "+strconv.Itoa(cmd.Process.Pid)), 0o600)
	asked := 0
	for _, want := range []string{"msg=ready", "msg=reloaded", "msg=reloaded"} {
		awaitText(t, log, want, said)
		for range 10 {
			res, err := http.Get("http://" + address + "/healthz?" + strconv.Itoa(asked))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			asked++
		}
		if asked < 30 {
			if out, err := exec.Command(serverProgram("logrotate"), "--force", "--state", state, config).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
	}
	files, err := filepath.Glob(log + "*")
	if err != nil || len(files) != 3 {
		t.Errorf("there are %q, %v", files, err)
	}
	all := ""
	for _, file := range files {
		read := exec.Command("zcat", "-f", file)
		text, err := read.Output()
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
	}
	for i := range asked {
		if !strings.Contains(all, fmt.Sprintf("/healthz?%d\"", i)) && !strings.Contains(all, fmt.Sprintf("/healthz?%d ", i)) {
			t.Errorf("request %d is in no log:\n%s", i, all)
		}
	}
}

// awaitText returns when a file has a text.
func awaitText(t *testing.T, file, want string, said fmt.Stringer) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(text), want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s has no %q: %v\n%s\n%s", file, want, err, text, said)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
