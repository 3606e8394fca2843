package test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// packagesPage shows how packages are installed. TestPackages follows it on an empty machine.
const packagesPage = "docs/packages.md"

var buildPackager = sync.OnceValues(func() (string, error) {
	path := filepath.Join(binDir, "packages")
	if out, err := runIn(filepath.Join(root, "tools"), "go", "build", "-o", path, "./packages"); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

// commitTime is the time of the commit that tests build packages of.
const commitTime = "1795000000"

// makePackages makes packages of a source, as `make packages` does, and returns their folder.
func makePackages(t *testing.T, source, version string, args ...string) string {
	t.Helper()
	packager, err := buildPackager()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "dist")
	words := append([]string{"-root", source, "-out", out, "-version", version, "-commit", "0123456789ab", "-time", commitTime, "-pgo", "off",
		"-platforms", "linux/" + runtime.GOARCH}, args...)
	cmd := exec.CommandContext(t.Context(), packager, words...)
	cmd.Env = append(environ(), "TZ=Asia/Tokyo", "LC_ALL=C")
	cmd.Dir = t.TempDir()
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return out
}

// TestPackages builds what a release consists of for this machine, and tries it. It takes the steps one after another: they
// are most of all work for the processor.
func TestPackages(t *testing.T) {
	version := sourceVersion(t)
	dist := makePackages(t, root, version)
	deb := fmt.Sprintf("stele_%s-1_%s.deb", version[1:], runtime.GOARCH)
	before := makePackages(t, root, "v0.9.0", "-kinds", "deb", "-program", stele(t))
	t.Run("same octets", func(t *testing.T) { checkSameOctets(t, dist, version) })
	t.Run("checksums", func(t *testing.T) { checkSums(t, dist, version) })
	t.Run("archive", func(t *testing.T) { checkProgram(t, dist, version) })
	t.Run("lintian", func(t *testing.T) {
		out, err := exec.CommandContext(t.Context(), "lintian", "--allow-root", "--fail-on", "error", "--tag-display-limit", "0", filepath.Join(dist, deb)).CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("deb", func(t *testing.T) { checkDeb(t, filepath.Join(dist, deb)) })
	t.Run("rpm", func(t *testing.T) { checkRPM(t, dist, version) })
	t.Run("materials", func(t *testing.T) { checkMaterials(t, dist, version) })
	t.Run("image", func(t *testing.T) { checkImage(t, dist, version) })
	t.Run("machine", func(t *testing.T) {
		checkInstallation(t, dist, filepath.Join(before, fmt.Sprintf("stele_0.9.0-1_%s.deb", runtime.GOARCH)), version)
	})
}

// checkSameOctets builds once more, in another folder, whose files have other times and modes.
func checkSameOctets(t *testing.T, dist, version string) {
	other := filepath.Join(t.TempDir(), "another folder")
	for name := range repositoryFiles(t) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(other, name), string(text), 0o600)
	}
	want, got := readSums(t, dist), readSums(t, makePackages(t, other, version))
	if len(want) < 5 {
		t.Fatalf("only %d files", len(want))
	}
	for name, sum := range want {
		if got[name] != sum {
			t.Errorf("%s is another one in the second build", name)
		}
	}
	if len(got) != len(want) {
		t.Errorf("the second build has %d files, the first %d", len(got), len(want))
	}
}

// readSums reads SHA256SUMS.
func readSums(t *testing.T, dist string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("SHA256SUMS has %q", line)
		}
		all[name] = sum
	}
	return all
}

// checkSums lets sha256sum check the files, and compares their list with that of the page.
func checkSums(t *testing.T, dist, version string) {
	if out, err := runIn(dist, "sha256sum", "--check", "--strict", "SHA256SUMS"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	text := readRoot(t, packagesPage)
	for name := range readSums(t, dist) {
		name = strings.NewReplacer("arm64", "amd64", "aarch64", "x86_64").Replace(name)
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("%s does not list %s", packagesPage, name)
		}
	}
}

// checkProgram: the archive has the program, which runs, and the licences of all that it consists of.
func checkProgram(t *testing.T, dist, version string) {
	files := readTar(t, filepath.Join(dist, fmt.Sprintf("stele-%s-linux-%s.tar.gz", version[1:], runtime.GOARCH)))
	folder := fmt.Sprintf("stele-%s-linux-%s/", version[1:], runtime.GOARCH)
	program := filepath.Join(t.TempDir(), "stele")
	writeFile(t, program, string(files[folder+"stele"].text), 0o755)
	out, err := exec.CommandContext(t.Context(), program, "version", "--json").Output()
	if want := fmt.Sprintf(`{"version":%q,"commit":"0123456789ab","go":%q,"platform":"linux/%s"}`, version, runtime.Version(), runtime.GOARCH); err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("%s, %v, want %s", out, err, want)
	}
	if said, err := exec.CommandContext(t.Context(), "ldd", program).CombinedOutput(); err == nil {
		t.Errorf("the program is not static:\n%s", said)
	}
	checkLicenses(t, "the archive", program, files[folder+"licenses.txt"].text)
	checkArchiveReadme(t, files, folder)
	for _, name := range []string{"LICENSE", "CHANGELOG.md", "man/man1/stele.1.gz", "man/man1/stele-ns-add.1.gz", "bash-completion/completions/stele", "deploy/stele.service"} {
		if len(files[folder+name].text) == 0 {
			t.Errorf("the archive has no %s", name)
		}
	}
}

// checkLicenses: a file, compressed or not, has the licences of all modules that the program consists of.
func checkLicenses(t *testing.T, of, program string, text []byte) {
	t.Helper()
	if z, err := gzip.NewReader(bytes.NewReader(text)); err == nil {
		if text, err = io.ReadAll(z); err != nil {
			t.Errorf("the licences in %s: %v", of, err)
		}
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Deps) == 0 {
		t.Fatalf("%s has no modules", program)
	}
	for _, m := range info.Deps {
		if !strings.Contains(string(text), "\n"+m.Path+" "+m.Version+"\n") {
			t.Errorf("the licence of %s is missing in %s", m.Path, of)
		}
	}
}

// checkDeb: the package has the licences, and says in its copyright whose they are.
func checkDeb(t *testing.T, deb string) {
	text, err := exec.CommandContext(t.Context(), "dpkg-deb", "--fsys-tarfile", deb).Output()
	if err != nil {
		t.Fatal(err)
	}
	files := parseTar(t, text)
	program := filepath.Join(t.TempDir(), "stele")
	writeFile(t, program, string(files["./usr/bin/stele"].text), 0o755)
	checkLicenses(t, "the deb", program, files["./usr/share/doc/stele/licenses.gz"].text)
	if copyright := string(files["./usr/share/doc/stele/copyright"].text); !strings.Contains(copyright, "licenses.gz") || !strings.Contains(copyright, "github.com/miekg/dns v") {
		t.Errorf("the copyright file:\n%s", copyright)
	}
}

// checkArchiveReadme: the README of an archive names nothing that only the source has, and its commands exist.
func checkArchiveReadme(t *testing.T, files map[string]tarFile, folder string) {
	text := string(files[folder+"README.md"].text)
	p, err := parsePage("README.md", text)
	if err != nil || len(p.links()) > 0 || strings.Contains(text, "bin/stele") || regexp.MustCompile(`make (build|demo|test)`).MatchString(text) {
		t.Errorf("the README of the archive is not about the archive: %v, %v\n%s", err, p.links(), text)
	}
	for _, m := range regexp.MustCompile(`(?m)^\t\./stele (\w+)`).FindAllStringSubmatch(text, -1) {
		if out, err := runStele(t, m[1], "--help"); err != nil {
			t.Errorf("%s: %v\n%s", m[0], err, out)
		}
	}
	for _, m := range regexp.MustCompile(`\b([a-z-]+)/[ ,]`).FindAllStringSubmatch(text, -1) {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(name string) bool { return strings.HasPrefix(name, folder+m[1]+"/") }) {
			t.Errorf("the README of the archive names the folder %s/, which is not there", m[1])
		}
	}
}

// member of a tar.
type tarFile struct {
	tar.Header
	text []byte
}

// readTar reads a tar, compressed or not.
func readTar(t *testing.T, name string) map[string]tarFile {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return parseTar(t, text)
}

func parseTar(t *testing.T, text []byte) map[string]tarFile {
	t.Helper()
	var from io.Reader = bytes.NewReader(text)
	if z, err := gzip.NewReader(bytes.NewReader(text)); err == nil {
		from = z
	}
	all := make(map[string]tarFile)
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = tarFile{*h, content}
	}
}

// checkRPM lets rpm check the package, and install it below a folder.
func checkRPM(t *testing.T, dist, version string) {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	name := filepath.Join(dist, fmt.Sprintf("stele-%s-1.%s.rpm", version[1:], arch))
	folder := t.TempDir()
	home := []string{"env", "HOME=" + folder, "rpm"}
	rpm := func(args ...string) string {
		t.Helper()
		out, err := runIn(folder, home[0], append(slices.Clone(home[1:]), args...)...)
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return string(out)
	}
	rpm("--checksig", "--nosignature", name)
	if got := rpm("-qp", "--nosignature", "--queryformat", "%{NAME} %{VERSION}-%{RELEASE} %{ARCH} %{LICENSE} %{BUILDTIME} %{BUILDHOST}", name); got != fmt.Sprintf("stele %s-1 %s Apache-2.0 %s localhost", version[1:], arch, commitTime) {
		t.Errorf("rpm reads %q", got)
	}
	if got := rpm("-qpc", "--nosignature", name); got != "/etc/logrotate.d/stele\n/etc/stele/stele.toml\n" {
		t.Errorf("configuration files: %q", got)
	}
	if got := rpm("-qp", "--nosignature", "--scripts", name); !strings.Contains(got, "systemd-sysusers stele.conf") || !strings.Contains(got, "disable --now") || !strings.Contains(got, "try-restart") {
		t.Errorf("scripts:\n%s", got)
	}
	below := filepath.Join(folder, "root")
	rpm("--root", below, "--dbpath", "/rpmdb", "--nodeps", "--noscripts", "--nosignature", "-i", name)
	for _, f := range []string{"usr/bin/stele", "usr/lib/systemd/system/stele.service", "usr/share/man/man1/stele.1.gz", "usr/share/zsh/site-functions/_stele", "usr/share/licenses/stele/LICENSE", "usr/share/doc/stele/licenses.gz"} {
		if info, err := os.Stat(filepath.Join(below, f)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", f, err)
		}
	}
	text, err := os.ReadFile(filepath.Join(below, "usr/share/doc/stele/licenses.gz"))
	if err != nil {
		t.Fatal(err)
	}
	checkLicenses(t, "the rpm", filepath.Join(below, "usr/bin/stele"), text)
	for name := range repositoryFiles(t) {
		unit, ok := strings.CutPrefix(name, "deploy/")
		if !ok || filepath.Ext(unit) != ".service" && filepath.Ext(unit) != ".timer" {
			continue
		}
		if _, err := os.Stat(filepath.Join(below, "usr/lib/systemd/system", unit)); err != nil {
			t.Error(err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(below, "usr/lib/systemd/system/stele.service")); err != nil || !strings.Contains(string(text), "ExecStart=/usr/bin/stele serve") {
		t.Errorf("the unit: %v\n%s", err, text)
	}
}

// checkMaterials: the bill of materials has what the linker noted in the program, and nothing else.
func checkMaterials(t *testing.T, dist, version string) {
	text, err := os.ReadFile(filepath.Join(dist, fmt.Sprintf("stele-%s-linux-%s.cdx.json", version[1:], runtime.GOARCH)))
	if err != nil {
		t.Fatal(err)
	}
	var bom struct {
		BOMFormat, SpecVersion, SerialNumber string
		Metadata                             struct {
			Timestamp string
			Component struct{ Name, Version, Purl string }
		}
		Components []struct {
			Name, Version, Purl string
			Licenses            []struct{ License struct{ ID string } }
		}
	}
	if err := json.Unmarshal(text, &bom); err != nil {
		t.Fatal(err)
	}
	if bom.BOMFormat != "CycloneDX" || bom.Metadata.Component.Version != version || bom.Metadata.Timestamp != "2026-11-18T11:06:40Z" || !strings.HasPrefix(bom.SerialNumber, "urn:uuid:") {
		t.Errorf("%+v", bom.Metadata)
	}
	info, err := buildinfo.ReadFile(stele(t)) // the same source
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"std " + info.GoVersion}
	for _, m := range info.Deps {
		want = append(want, m.Path+" "+m.Version)
	}
	var got []string
	for _, c := range bom.Components {
		got = append(got, c.Name+" "+c.Version)
		if len(c.Licenses) == 0 || c.Licenses[0].License.ID == "" || c.Purl == "" {
			t.Errorf("%s has no licence or no address", c.Name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("it has\n%q\nand the program\n%q", got, want)
	}
}
