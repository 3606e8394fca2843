package main

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// read returns what a file has.
func (f file) read() ([]byte, error) {
	if f.from == "" {
		return f.text, nil
	}
	return os.ReadFile(f.from)
}

// archive makes an archive with the program for those who unpack it by hand: a tar, and a zip for Windows.
func (r *release) archive(p platform) error {
	name := fmt.Sprintf("stele-%s-%s-%s", r.version, p.os, p.arch)
	list := []file{
		{path: path.Base(filepath.ToSlash(r.programs[p])), mode: 0o755, from: r.programs[p]},
		{path: "LICENSE", mode: 0o644, from: filepath.Join(r.root, "LICENSE")},
		{path: "README.md", mode: 0o644, from: filepath.Join(r.root, "deploy/packages/README.archive")},
		{path: "CHANGELOG.md", mode: 0o644, from: filepath.Join(r.root, "CHANGELOG.md")},
		{path: "licenses.txt", mode: 0o644, text: licenseTexts(r.modules[p])},
	}
	if p.os == "windows" {
		list[0].path = "stele.exe"
		return r.create(name+".zip", func(w io.Writer) error { return writeZip(w, name, list, r.time) })
	}
	list[0].path = "stele"
	for _, f := range r.manual {
		kind, rest, _ := strings.Cut(strings.TrimPrefix(f.path, "/usr/share/"), "/")
		f.path = kind + "/" + rest
		list = append(list, f)
	}
	if p.os == "linux" {
		deploy, err := r.deployed()
		if err != nil {
			return err
		}
		list = append(list, deploy...)
	}
	for i := range list {
		list[i].path = name + "/" + list[i].path
	}
	return r.create(name+".tar.gz", func(w io.Writer) error {
		z := gzip.NewWriter(w)
		return errors.Join(writeTar(z, list, r.time), z.Close())
	})
}

// deployed returns the files of deploy/ that are not for packages.
func (r *release) deployed() (list []file, err error) {
	entries, err := os.ReadDir(filepath.Join(r.root, "deploy"))
	for _, e := range entries {
		if e.Type().IsRegular() {
			list = append(list, file{path: "deploy/" + e.Name(), mode: 0o644, from: filepath.Join(r.root, "deploy", e.Name())})
		}
	}
	return list, err
}

// writeTar writes files with one time and without names of users.
func writeTar(w io.Writer, list []file, when time.Time) error {
	t := tar.NewWriter(w)
	for _, f := range list {
		text, err := f.read()
		if err != nil {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.path, Mode: int64(f.mode.Perm()), Size: int64(len(text)), ModTime: when, Uid: f.owner, Gid: f.owner, Format: tar.FormatUSTAR}
		if f.mode&os.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		if f.folder {
			h.Typeflag, h.Name = tar.TypeDir, strings.TrimSuffix(f.path, "/")+"/"
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(text); err != nil {
			return err
		}
	}
	return t.Close()
}

func writeZip(w io.Writer, folder string, list []file, when time.Time) error {
	z := zip.NewWriter(w)
	for _, f := range list {
		text, err := f.read()
		if err != nil {
			return err
		}
		h := &zip.FileHeader{Name: folder + "/" + f.path, Method: zip.Deflate, Modified: when}
		h.SetMode(cmp.Or(f.mode, 0o644))
		to, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := to.Write(text); err != nil {
			return err
		}
	}
	return z.Close()
}
