package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// library is a module that a program consists of, with its licence.
type library struct {
	path, version, sum string
	licenses           []string // identifiers of SPDX, sorted
	texts              []licenseText
}

// licenseText is a file of a module about its licence.
type licenseText struct {
	name string
	text []byte
}

// standard is the name of Go's own library, among modules.
const standard = "std"

// aboutLicense matches names of files that a distributor has to hand on.
var aboutLicense = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|patents|unlicense)([-._].*)?$`)

// licensed returns the modules that the program for a platform consists of, as the linker noted them,
// with the texts of their licences. A module without one is an error.
func (r *release) licensed(p platform) ([]library, error) {
	info, err := buildinfo.ReadFile(r.programs[p])
	if err != nil {
		return nil, err
	}
	folders, err := r.folders(p)
	if err != nil {
		return nil, err
	}
	goroot, err := r.run(nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	all := []library{{path: standard, version: info.GoVersion}}
	folders[standard] = []string{strings.TrimSpace(string(goroot))}
	for _, d := range info.Deps {
		if d.Replace != nil {
			return nil, fmt.Errorf("the module %s is replaced", d.Path)
		}
		all = append(all, library{path: d.Path, version: d.Version, sum: d.Sum})
	}
	for i := range all {
		if err := all[i].readLicenses(folders[all[i].path]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// folders returns, for each module, its folder and those of its packages that the program has: parts that were
// taken over from others have licences of their own there.
func (r *release) folders(p platform) (map[string][]string, error) {
	out, err := r.run(environment(p), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}\t{{.Dir}}\t{{$.Dir}}{{end}}", "./cmd/stele")
	if err != nil {
		return nil, err
	}
	all := make(map[string][]string)
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 3 {
			continue
		}
		for folder := fields[2]; strings.HasPrefix(folder, fields[1]); folder = filepath.Dir(folder) {
			if !slices.Contains(all[fields[0]], folder) {
				all[fields[0]] = append(all[fields[0]], folder)
			}
		}
	}
	for _, list := range all {
		slices.Sort(list) // the module's own folder is the shortest
	}
	return all, nil
}

// readLicenses finds the licences of a module in its folders.
func (m *library) readLicenses(folders []string) error {
	for _, folder := range folders {
		list, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		for _, entry := range list {
			if entry.IsDir() || !aboutLicense.MatchString(entry.Name()) || filepath.Ext(entry.Name()) == ".go" {
				continue
			}
			text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
			if err != nil {
				return err
			}
			name, err := filepath.Rel(folders[0], filepath.Join(folder, entry.Name()))
			if err != nil {
				return err
			}
			m.texts = append(m.texts, licenseText{filepath.ToSlash(name), text})
			for _, match := range licensecheck.Scan(text).Match {
				if !match.IsURL && !slices.Contains(m.licenses, match.ID) {
					m.licenses = append(m.licenses, match.ID)
				}
			}
		}
	}
	slices.Sort(m.licenses)
	if len(m.texts) == 0 || len(m.licenses) == 0 {
		return fmt.Errorf("the module %s has no licence that is known (looked at %d files); it can't be handed on", m.path, len(m.texts))
	}
	return nil
}

// licenseTexts is a file with the licences of all modules.
func licenseTexts(modules []library) []byte {
	var b bytes.Buffer
	b.WriteString("Stele is under the Apache License 2.0. The program contains the modules below, under their own licences.\n")
	for _, m := range modules {
		fmt.Fprintf(&b, "\n%s\n%s %s\n%s\n", strings.Repeat("=", 80), m.path, m.version, strings.Join(m.licenses, ", "))
		for _, t := range m.texts {
			fmt.Fprintf(&b, "%s\n%s:\n\n%s\n", strings.Repeat("-", 80), t.name, bytes.TrimRight(bytes.ReplaceAll(t.text, []byte("\r\n"), []byte("\n")), "\n"))
		}
	}
	return b.Bytes()
}
