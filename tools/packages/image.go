package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the number of the user of an image. It has no name on most machines, and no rights.
const user = 65532

// Types of the OCI image specification 1.1.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// descriptor points to a blob by its digest.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *imagePlatform    `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type imagePlatform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type imageIndex struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type imageManifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Config        descriptor        `json:"config"`
	Layers        []descriptor      `json:"layers"`
	Annotations   map[string]string `json:"annotations"`
}

type imageConfig struct {
	Created      string `json:"created"`
	Author       string `json:"author"`
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Config       struct {
		User         string
		ExposedPorts map[string]struct{}
		Env          []string
		Entrypoint   []string
		Cmd          []string
		Volumes      map[string]struct{}
		WorkingDir   string
		Labels       map[string]string
		StopSignal   string
		Healthcheck  healthcheck
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
	History []imageHistory `json:"history"`
}

type imageHistory struct {
	Created   string `json:"created"`
	CreatedBy string `json:"created_by"`
}

// healthcheck is an extension of Docker's, which Podman reads too. The specification has none.
type healthcheck struct {
	Test                           []string
	Interval, Timeout, StartPeriod time.Duration
	Retries                        int
}

// imageFiles are the files of an image: the program, and what it needs of a system.
func (r *release) imageFiles(p platform) []file {
	folder := func(path string, mode os.FileMode, owner int) file {
		return file{path: path, mode: mode, folder: true, owner: owner}
	}
	return []file{
		folder("etc", 0o755, 0),
		{path: "etc/group", mode: 0o644, text: fmt.Appendf(nil, "root:x:0:\nstele:x:%d:\n", user)},
		{path: "etc/passwd", mode: 0o644, text: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nstele:x:%d:%d:Stele:/var/lib/stele:/sbin/nologin\n", user, user)},
		folder("etc/ssl", 0o755, 0),
		folder("etc/ssl/certs", 0o755, 0),
		{path: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, text: authorities()},
		folder("etc/stele", 0o755, 0),
		folder("tmp", 0o777|os.ModeSticky, 0),
		folder("usr", 0o755, 0),
		folder("usr/bin", 0o755, 0),
		{path: "usr/bin/stele", mode: 0o755, from: r.programs[p]},
		folder("usr/share", 0o755, 0),
		folder("usr/share/doc", 0o755, 0),
		folder("usr/share/doc/stele", 0o755, 0),
		{path: "usr/share/doc/stele/LICENSE", mode: 0o644, from: filepath.Join(r.root, "LICENSE")},
		{path: "usr/share/doc/stele/licenses.txt", mode: 0o644, text: licenseTexts(r.modules[p])},
		folder("var", 0o755, 0),
		folder("var/lib", 0o755, 0),
		folder("var/lib/stele", 0o700, user),
	}
}

// authorities are the certificates of the CAs that Mozilla trusts, as the version of the module in
// tools/go.mod has them. Those that are trusted under conditions only are left out: a file
// of certificates can't say which.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return b.Bytes()
}

// configure returns the configuration of an image, without its layers.
func (r *release) configure(p platform) imageConfig {
	created := r.time.Format(time.RFC3339)
	c := imageConfig{Created: created, Author: maintainer, Architecture: p.arch, OS: p.os}
	c.Config.User = fmt.Sprintf("%d:%d", user, user)
	c.Config.ExposedPorts = map[string]struct{}{"8080/tcp": {}}
	c.Config.Env = []string{
		"PATH=/usr/bin", "HOME=/var/lib/stele", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
		"STELE_DATA=/var/lib/stele/registry", "STELE_HTTP=:8080",
	}
	c.Config.Entrypoint, c.Config.Cmd = []string{"/usr/bin/stele"}, []string{"serve"}
	c.Config.Volumes = map[string]struct{}{"/var/lib/stele": {}}
	c.Config.WorkingDir, c.Config.StopSignal = "/var/lib/stele", "SIGTERM"
	c.Config.Labels = r.labels()
	c.Config.Healthcheck = healthcheck{
		Test:     []string{"CMD", "/usr/bin/stele", "doctor", "--server", "http://127.0.0.1:8080"},
		Interval: 30 * time.Second, Timeout: 10 * time.Second, StartPeriod: 2 * time.Minute, Retries: 3,
	}
	c.RootFS.Type = "layers"
	c.History = []imageHistory{{Created: created, CreatedBy: "make packages"}}
	return c
}

// labels are the annotations of the specification.
func (r *release) labels() map[string]string {
	labels := map[string]string{
		"org.opencontainers.image.title":       "Stele",
		"org.opencontainers.image.description": summary,
		"org.opencontainers.image.version":     r.version,
		"org.opencontainers.image.created":     r.time.Format(time.RFC3339),
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.source":      homepage,
		"org.opencontainers.image.url":         homepage,
	}
	if r.commit != "" {
		labels["org.opencontainers.image.revision"] = r.commit
	}
	return labels
}

// blobs are the files of an image by digest.
type blobs []file

// add adds a blob, and returns a pointer to it.
func (b *blobs) add(kind string, text []byte) descriptor {
	sum := sha256.Sum256(text)
	digest := hex.EncodeToString(sum[:])
	*b = append(*b, file{path: "blobs/sha256/" + digest, mode: 0o644, text: text})
	return descriptor{MediaType: kind, Digest: "sha256:" + digest, Size: len(text)}
}

// addJSON adds a blob that is a document.
func (b *blobs) addJSON(kind string, v any) (descriptor, error) {
	text, err := json.Marshal(v)
	return b.add(kind, text), err
}

// image writes an image: an OCI layout in a tar. A list in Docker's older form is with it, for `docker
// load` of versions that know no OCI layouts.
func (r *release) image(p platform) error {
	var all blobs
	config, manifest := r.configure(p), imageManifest{SchemaVersion: 2, MediaType: typeManifest, Annotations: r.labels()}
	layer, content, err := layerOf(r.imageFiles(p), r.time)
	if err != nil {
		return err
	}
	config.RootFS.DiffIDs = []string{content}
	manifest.Layers = []descriptor{all.add(typeLayer, layer)}
	if manifest.Config, err = all.addJSON(typeConfig, config); err != nil {
		return err
	}
	pointer, err := all.addJSON(typeManifest, manifest)
	if err != nil {
		return err
	}
	pointer.Platform = &imagePlatform{p.arch, p.os}
	pointer.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.version, "io.containerd.image.name": "stele:" + r.version}
	index, err := json.Marshal(imageIndex{2, typeIndex, []descriptor{pointer}})
	if err != nil {
		return err
	}
	docker, err := json.Marshal([]map[string]any{{
		"Config": all[1].path, "RepoTags": []string{"stele:" + r.version}, "Layers": []string{all[0].path},
	}})
	if err != nil {
		return err
	}
	list := append([]file{
		{path: "oci-layout", mode: 0o644, text: []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{path: "index.json", mode: 0o644, text: index},
		{path: "manifest.json", mode: 0o644, text: docker},
		{path: "blobs", mode: 0o755, folder: true},
		{path: "blobs/sha256", mode: 0o755, folder: true},
	}, all...)
	return r.create(fmt.Sprintf("stele-%s-%s-%s.oci.tar", r.version, p.os, p.arch), func(w io.Writer) error { return writeTar(w, list, r.time) })
}

// layerOf returns a layer, and the digest of its content before it is compressed.
func layerOf(list []file, when time.Time) (layer []byte, content string, err error) {
	var b bytes.Buffer
	sum := sha256.New()
	z := gzip.NewWriter(&b)
	if err := writeTar(io.MultiWriter(z, sum), list, when); err != nil {
		return nil, "", err
	}
	if err := z.Close(); err != nil {
		return nil, "", err
	}
	return b.Bytes(), "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}
