package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// run runs a command in the repository, and returns what it prints.
func (r *release) run(environment []string, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), environment...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, complaints.Bytes())
	}
	return out, nil
}

// environment is that of the go command for a platform. GOAMD64 and GOARM64 are set to what all machines
// can, whatever this machine's owner prefers.
func environment(p platform) []string {
	return []string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off"}
}

// compile builds the program for a platform, as `make build` does.
func (r *release) compile(p platform) error {
	if r.programs[p] != "" {
		return nil
	}
	path := filepath.Join(r.work, p.os+"-"+p.arch, "stele")
	if p.os == "windows" {
		path += ".exe"
	}
	profile := r.profile
	if profile != "off" {
		profile = filepath.Join(r.root, profile)
	}
	_, err := r.run(environment(p), "go", "build", "-trimpath", "-buildvcs=false", "-pgo="+profile,
		"-ldflags=-s -w -X main.linkedVersion=v"+r.version+" -X main.linkedCommit="+r.commit, "-o", path, "./cmd/stele")
	r.programs[p] = path
	return err
}

// file is a file of an archive, a package or an image.
type file struct {
	path string // where it goes, from the root of the file system
	mode os.FileMode

	// One of these is what it has.
	text []byte
	from string

	config bool // administrators change it, and an upgrade leaves it as it is
	folder bool
	owner  int // of images: user and group
}

// writeManual lets the program write its manual pages and completions. The program must run here, so
// that it is built once more on a machine that is none of the platforms.
func (r *release) writeManual() error {
	here := host()
	if err := r.compile(here); err != nil {
		return err
	}
	folder := filepath.Join(r.work, "man")
	if _, err := r.run(nil, r.programs[here], "man", folder); err != nil {
		return err
	}
	pages, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(folder, page.Name()))
		if err != nil {
			return err
		}
		text, err = compress(text)
		if err != nil {
			return err
		}
		r.manual = append(r.manual, file{path: "/usr/share/man/man1/" + page.Name() + ".gz", mode: 0o644, text: text})
	}
	for _, shell := range []struct{ name, path string }{
		{"bash", "/usr/share/bash-completion/completions/stele"},
		{"zsh", "/usr/share/zsh/site-functions/_stele"},
		{"fish", "/usr/share/fish/vendor_completions.d/stele.fish"},
	} {
		text, err := r.run(nil, r.programs[here], "completion", shell.name)
		if err != nil {
			return err
		}
		r.manual = append(r.manual, file{path: shell.path, mode: 0o644, text: text})
	}
	return nil
}

// compress returns a text in the form of gzip, without a name and a time.
func compress(text []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
