// Command packages builds what a release of Stele consists of: static programs, packages for
// Debian and for RPM systems, OCI images, bills of materials, and checksums. `make packages` runs it.
//
// Its output depends on the source, the version of Go and its flags only: it asks neither the clock
// nor the machine, so that two builds give the same octets.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// platform is a system that programs are built for, in Go's terms.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// platforms are those of a release.
var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}, {"windows", "amd64"}}

// kinds of files that are made.
var kinds = []string{"archive", "deb", "rpm", "image", "sbom"}

// release is what is built, and where.
type release struct {
	root    string    // folder of the repository
	out     string    // folder of the result
	work    string    // folder for what is needed in between
	version string    // 1.0.0
	commit  string    // "" if it is not known
	time    time.Time // of the commit: the time of all files
	profile string    // what the compiler optimises for; "off": nothing

	platforms []platform
	kinds     []string

	programs map[platform]string // paths of the programs
	modules  map[platform][]library
	manual   []file // manual pages and completions
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "packages: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	r := &release{programs: make(map[platform]string), modules: make(map[platform][]library)}
	flags := flag.NewFlagSet("packages", flag.ContinueOnError)
	flags.StringVar(&r.root, "root", "..", "`folder` of the repository")
	flags.StringVar(&r.out, "out", "", "`folder` of the result, which must be empty or missing (default: dist in the repository)")
	version := flags.String("version", "", "`version`, as v1.0.0")
	flags.StringVar(&r.commit, "commit", "", "commit that is built")
	seconds := flags.Int64("time", 0, "time of the commit, in `seconds` since 1970")
	flags.StringVar(&r.profile, "pgo", "cmd/stele/serve.pgo", "`file` with a profile for the compiler, in the repository, or off")
	wanted := flags.String("platforms", "", "comma-separated `list`, as linux/amd64 (default: all)")
	making := flags.String("kinds", "", "comma-separated `list` of what is made: "+strings.Join(kinds, ", ")+" (default: all)")
	program := flags.String("program", "", "`file` with the program for the platform, which is not built then; for tests")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := r.settle(*version, *seconds, *wanted, *making); err != nil {
		return err
	}
	if *program != "" {
		if len(r.platforms) != 1 {
			return errors.New("-program needs one platform in -platforms")
		}
		r.programs[r.platforms[0]] = *program
	}
	work, err := os.MkdirTemp("", "stele-packages-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	r.work = work
	return r.build()
}

// described is a version that git describes by the tag before it.
var described = regexp.MustCompile(`^(v\d+\.\d+\.\d+)-(\d+)-(g[0-9a-f]+)(-dirty)?$`)

// plain is the version of a package: without v, and in an order that package managers know.
func plain(version string) (string, error) {
	if m := described.FindStringSubmatch(version); m != nil {
		version = m[1] + "+" + m[2] + "." + m[3] + strings.Replace(m[4], "-", ".", 1)
	}
	version = strings.ReplaceAll(version, "-dirty", "+dirty")
	if !regexp.MustCompile(`^v\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?$`).MatchString(version) {
		return "", fmt.Errorf("-version is %q; it has the form v1.0.0", version)
	}
	return version[1:], nil
}

// settle checks the flags.
func (r *release) settle(version string, seconds int64, wanted, making string) (err error) {
	if r.version, err = plain(version); err != nil {
		return err
	}
	if seconds <= 0 {
		return errors.New("-time is missing: the time of the commit, in seconds since 1970")
	}
	r.time = time.Unix(seconds, 0).UTC()
	if r.root, err = filepath.Abs(r.root); err != nil {
		return err
	}
	if r.out == "" {
		r.out = filepath.Join(r.root, "dist")
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	for _, p := range platforms {
		if wanted == "" || slices.Contains(strings.Split(wanted, ","), p.String()) {
			r.platforms = append(r.platforms, p)
		}
	}
	for _, k := range kinds {
		if making == "" || slices.Contains(strings.Split(making, ","), k) {
			r.kinds = append(r.kinds, k)
		}
	}
	if wanted != "" && len(r.platforms) != strings.Count(wanted, ",")+1 || making != "" && len(r.kinds) != strings.Count(making, ",")+1 {
		return fmt.Errorf("-platforms or -kinds has an unknown word; they are %v and %v", platforms, kinds)
	}
	if list, err := os.ReadDir(r.out); err == nil && len(list) > 0 {
		return fmt.Errorf("%s is not empty; remove it first", r.out)
	}
	return os.MkdirAll(r.out, 0o755)
}

// build makes all files.
func (r *release) build() error {
	for _, p := range r.platforms {
		if err := r.compile(p); err != nil {
			return err
		}
		modules, err := r.licensed(p)
		if err != nil {
			return err
		}
		r.modules[p] = modules
	}
	if err := r.writeManual(); err != nil {
		return err
	}
	for _, p := range r.platforms {
		for _, kind := range r.kinds {
			if err := r.make(kind, p); err != nil {
				return fmt.Errorf("%s for %s: %w", kind, p, err)
			}
		}
	}
	return r.sum()
}

func (r *release) make(kind string, p platform) error {
	switch {
	case kind == "archive":
		return r.archive(p)
	case kind == "sbom":
		return r.sbom(p)
	case p.os != "linux":
		return nil
	case kind == "image":
		return r.image(p)
	default:
		return r.pack(kind, p)
	}
}

// host is the system that this program runs on.
func host() platform { return platform{runtime.GOOS, runtime.GOARCH} }

// create writes a file of the result.
func (r *release) create(name string, write func(io.Writer) error) error {
	f, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// sum writes the digests of all files, in the form of sha256sum.
func (r *release) sum() error {
	list, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, entry := range list { // by name
		digest, err := digestOf(filepath.Join(r.out, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", digest, entry.Name())
	}
	return r.create("SHA256SUMS", func(w io.Writer) error {
		_, err := io.WriteString(w, text.String())
		return err
	})
}

func digestOf(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
