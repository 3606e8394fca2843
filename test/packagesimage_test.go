package test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// readImage has skopeo, which is not ours, read an image, and returns its configuration and its layer.
func readImage(t *testing.T, transport, name string) (config, layer []byte) {
	t.Helper()
	to := t.TempDir()
	if out, err := runIn(to, "skopeo", "--insecure-policy", "copy", "--quiet", transport+":"+name, "dir:"+to); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	blob := func(digest string) []byte {
		text, err := os.ReadFile(filepath.Join(to, strings.TrimPrefix(digest, "sha256:")))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		if "sha256:"+hex.EncodeToString(sum[:]) != digest {
			t.Errorf("%s is not the digest", digest)
		}
		return text
	}
	var manifest struct {
		Config struct{ Digest string }
		Layers []struct{ Digest string }
	}
	text, err := os.ReadFile(filepath.Join(to, "manifest.json"))
	if err == nil {
		err = json.Unmarshal(text, &manifest)
	}
	if err != nil || len(manifest.Layers) != 1 {
		t.Fatalf("%v\n%s", err, text)
	}
	return blob(manifest.Config.Digest), blob(manifest.Layers[0].Digest)
}

// tryImage runs the server of an image in namespaces of its own, where its port is free, as the user of the image,
// until the health check of the image succeeds. Then it ends the server.
const tryImage = `
set -eu
root=$1; shift
chroot=$(PATH=$PATH:/usr/sbin command -v chroot) # the environment of the image has another path
ip link set lo up
mkdir -p "$root/proc" "$root/dev"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
run() { exec env -i "${environment[@]}" "$chroot" --userspec="$user" "$root" "$@"; }
(run "${command[@]}") >"$root/../log" 2>&1 & server=$!
healthy=
for i in $(seq 300); do
	if (run "${health[@]}") >"$root/../health" 2>&1; then healthy=yes; break; fi
	kill -0 $server || break
	sleep 0.2
done
if [ -z "$healthy" ]; then cat "$root/../health" "$root/../log"; exit 1; fi
curl --silent --fail --output /dev/null http://127.0.0.1:8080/readyz
ps -o uid= -p "$(pgrep -f '^/usr/bin/stele serve')"
kill -TERM $server
wait $server
if (run "${health[@]}") >/dev/null 2>&1; then echo 'healthy after its end'; exit 1; fi
`

// checkImage reads the image and runs what is in it, as a container would.
func checkImage(t *testing.T, dist, version string) {
	name := filepath.Join(dist, fmt.Sprintf("stele-%s-linux-%s.oci.tar", version[1:], runtime.GOARCH))
	text, layer := readImage(t, "oci-archive", name)
	if other, _ := readImage(t, "docker-archive", name); !strings.Contains(string(other), `"diff_ids"`) {
		t.Errorf("docker load would not know it: %s", other)
	}
	var image struct {
		Architecture, OS string
		Config           struct {
			User                 string
			Env, Entrypoint, Cmd []string
			Volumes              map[string]struct{}
			Healthcheck          struct{ Test []string }
		}
	}
	if err := json.Unmarshal(text, &image); err != nil {
		t.Fatal(err)
	}
	c := image.Config
	if image.Architecture != runtime.GOARCH || image.OS != "linux" || c.User != "65532:65532" || len(c.Healthcheck.Test) < 2 || c.Healthcheck.Test[0] != "CMD" {
		t.Fatalf("%s", text)
	}
	place := t.TempDir()
	below := filepath.Join(place, "root")
	for name, f := range parseTar(t, layer) {
		to := filepath.Join(below, name)
		if f.FileInfo().IsDir() {
			if err := os.MkdirAll(to, 0o755); err != nil {
				t.Fatal(err)
			}
		} else {
			writeFile(t, to, string(f.text), 0o644)
		}
		if f.Mode&0o6000 != 0 {
			t.Errorf("%s is set-user-ID", name)
		}
		if err := os.Chmod(to, f.FileInfo().Mode()); err != nil {
			t.Fatal(err)
		}
		if err := os.Lchown(to, f.Uid, f.Gid); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(below, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir := below; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) { // the user must reach it
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	list := func(name string, words []string) string {
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = quote(w)
		}
		return name + "=(" + strings.Join(quoted, " ") + ")\n"
	}
	script := "user=" + c.User + "\n" + list("environment", c.Env) + list("command", slices.Concat(c.Entrypoint, c.Cmd)) + list("health", c.Healthcheck.Test[1:]) + tryImage
	out, err := exec.CommandContext(t.Context(), "unshare", "--net", "--mount", "--pid", "--ipc", "--uts", "--mount-proc", "--fork", "--kill-child",
		"bash", "-c", script, "bash", below).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "65532" {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(below, "var/lib/stele/registry")); err != nil {
		t.Errorf("the registry is not in the volume: %v", err)
	}
	if _, ok := c.Volumes["/var/lib/stele"]; !ok {
		t.Error("the registry is in no volume")
	}
}
