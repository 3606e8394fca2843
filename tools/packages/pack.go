package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

const (
	maintainer = "The Stele maintainers <stele-id@users.noreply.github.com>"
	homepage   = "https://github.com/stele-id/stele"
	summary    = "server and tools for persistent identifiers"
	about      = `Stele mints persistent identifiers, stores what they stand for, and resolves
them over HTTP, the DNS and the Handle protocol: IBI, URN, ARK, handles and
DOIs, PURL and LSID. It never issues a name twice, and deletes nothing.

The server is not started by the installation: it needs a name and a
certificate first. See /usr/share/doc/stele/README.packages.`
)

// revision counts packages of the same version.
const revision = "1"

// pack makes a package for Debian or for RPM systems.
func (r *release) pack(kind string, p platform) error {
	list, err := r.installed(kind, p)
	if err != nil {
		return err
	}
	info := &nfpm.Info{
		Name: "stele", Arch: p.arch, Platform: "linux", Version: r.version, Release: revision,
		Section: "net", Priority: "optional", Maintainer: maintainer, Vendor: "Stele", Homepage: homepage, License: "Apache-2.0",
		Description: summary + "\n" + about,
		MTime:       r.time, DisableGlobbing: true,
	}
	info.Umask = 0o022
	scripts := func(name string) string { return filepath.Join(r.root, "deploy/packages", kind+"."+name) }
	info.Scripts = nfpm.Scripts{PostInstall: scripts("postinst"), PreRemove: scripts("prerm"), PostRemove: scripts("postrm")}
	if info.Contents, err = r.contents(kind, list); err != nil {
		return err
	}
	info.Deb.Compression, info.RPM.Compression = "gzip:6", "gzip:6"
	info.RPM.BuildHost, info.RPM.Summary, info.RPM.Group = "localhost", summary, "System Environment/Daemons"
	info.RPM.Packager = maintainer

	var packager nfpm.Packager
	switch kind {
	case "deb":
		packager = deb.Default
		info.Depends = []string{"systemd (>= 252)", "passwd"}
		info.Recommends = []string{"ca-certificates"}
	default:
		packager = rpm.DefaultRPM
		info.Depends = []string{"systemd >= 252", "shadow-utils"}
		info.Recommends = []string{"ca-certificates"}
		info.Description = about
	}
	info = nfpm.WithDefaults(info)
	return r.create(packager.ConventionalFileName(info), func(w io.Writer) error { return packager.Package(info, w) })
}

// installed returns the files of a package.
func (r *release) installed(kind string, p platform) ([]file, error) {
	list := slices.Concat([]file{{path: "/usr/bin/stele", mode: 0o755, from: r.programs[p]}}, r.manual)
	for i, f := range list {
		if kind == "deb" {
			list[i].path = strings.Replace(f.path, "/zsh/site-functions/", "/zsh/vendor-completions/", 1)
		}
	}
	add := func(path string, config bool, text []byte) {
		list = append(list, file{path: path, mode: 0o644, text: text, config: config})
	}
	units := "/usr/lib/systemd/system/"
	if kind == "deb" {
		units = "/lib/systemd/system/" // where Debian 12 looks for them
	}
	for _, f := range []struct {
		from, path string
		config     bool
	}{
		{"deploy/stele.toml", "/etc/stele/stele.toml", true},
		{"deploy/stele.logrotate", "/etc/logrotate.d/stele", true},
		{"deploy/packages/stele.sysusers", "/usr/lib/sysusers.d/stele.conf", false},
		{"deploy/packages/README", "/usr/share/doc/stele/README.packages", false},
	} {
		text, err := os.ReadFile(filepath.Join(r.root, f.from))
		if err != nil {
			return nil, err
		}
		add(f.path, f.config, text)
	}
	deployed, err := r.deployed()
	if err != nil {
		return nil, err
	}
	for _, f := range deployed {
		text, err := f.read()
		if err != nil {
			return nil, err
		}
		switch name := filepath.Base(f.path); filepath.Ext(name) {
		case ".service":
			text = bytes.ReplaceAll(text, []byte("/usr/local/bin/stele"), []byte("/usr/bin/stele"))
			add(units+name, false, text)
		case ".timer":
			add(units+name, false, text)
		case ".toml", ".logrotate": // configuration, see above
		default:
			add("/usr/share/doc/stele/examples/"+name, false, text)
		}
	}
	changes, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	long := map[string][]byte{"licenses.gz": licenseTexts(r.modules[p]), "changelog.gz": changes}
	if kind == "deb" {
		long["changelog.Debian.gz"] = r.debianChanges()
		add("/usr/share/doc/stele/copyright", false, r.copyright(p))
		overrides, err := os.ReadFile(filepath.Join(r.root, "deploy/packages/deb.lintian"))
		if err != nil {
			return nil, err
		}
		add("/usr/share/lintian/overrides/stele", false, overrides)
	} else {
		license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
		if err != nil {
			return nil, err
		}
		add("/usr/share/licenses/stele/LICENSE", false, license)
	}
	for name, text := range long {
		if text, err = compress(text); err != nil {
			return nil, err
		}
		add("/usr/share/doc/stele/"+name, false, text)
	}
	slices.SortFunc(list, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return list, nil
}

// contents puts files where nfpm reads them.
func (r *release) contents(kind string, list []file) (files.Contents, error) {
	var all files.Contents
	for i, f := range list {
		from := f.from
		if from == "" {
			from = filepath.Join(r.work, kind, fmt.Sprint(i))
			if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
				return nil, err
			}
			if err := os.WriteFile(from, f.text, 0o644); err != nil {
				return nil, err
			}
		}
		c := &files.Content{Source: from, Destination: f.path, Type: files.TypeFile,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: f.mode, MTime: r.time}}
		if f.config {
			c.Type = files.TypeConfigNoReplace
		}
		all = append(all, c)
	}
	return all, nil
}

// debianChanges is the change log in Debian's form, which is about the package: it points to that of Stele.
func (r *release) debianChanges() []byte {
	return fmt.Appendf(nil, "stele (%s-%s) unstable; urgency=medium\n\n  * Version %s; /usr/share/doc/stele/changelog.gz says what changed.\n\n -- %s  %s\n",
		debianVersion(r.version), revision, r.version, maintainer, r.time.Format("Mon, 02 Jan 2006 15:04:05 -0700"))
}

// debianVersion writes a version as nfpm does: what comes before a release has a tilde.
func debianVersion(version string) string {
	return regexp.MustCompile(`^(\d+\.\d+\.\d+)-`).ReplaceAllString(version, "$1~")
}

// copyright is Debian's file of that name, in the form that programs read.
func (r *release) copyright(p platform) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Stele
Source: %s

Files: *
Copyright: 2026 The Stele authors
License: Apache-2.0
 Licensed under the Apache License, Version 2.0; you may not use these files
 except in compliance with the License.
 .
 On Debian systems, the complete text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
Comment: The program is linked with these modules. The texts of their licences
 are in /usr/share/doc/stele/licenses.gz.
 .
`, homepage)
	for _, m := range r.modules[p] {
		fmt.Fprintf(&b, " %s %s: %s\n", m.path, m.version, strings.Join(m.licenses, ", "))
	}
	return []byte(b.String())
}
