package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
	"github.com/stele-id/stele/internal/disk"
)

// openTree opens folders and files that a system reads together: all of them as one archive, in which their names stand. The
// path of a file in a folder is what follows the folder; that of a file which is named itself is as it is given.
func (p *program) openTree(s *foreign.System, paths []string) (*bulk.File, error) {
	var b bytes.Buffer
	links := 0
	err := foreign.PackTree(&b, func(add func(name string, text []byte) error) error {
		for _, path := range paths {
			info, err := os.Stat(path)
			if err != nil {
				return disk.FileError(err)
			}
			name := filepath.ToSlash(filepath.Clean(path))
			switch {
			case info.IsDir():
				n, err := packFolder(s, path, add)
				if links += n; err != nil {
					return err
				}
				continue
			case s.Loose:
			case strings.HasPrefix(name, "/") || name == ".." || strings.HasPrefix(name, "../"):
				return refuse("import", stele.Invalid, "import.tree-path", "the folders in the path of {file} are a part of its names; give the folder that stands for the beginning of all names, or a path below the working directory", path)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return disk.FileError(err)
			}
			if err := add(name, text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if links > 0 {
		fmt.Fprintf(p.stderr, "stele: %s symbolic links in the folders are not followed\n", grouped(int64(links)))
	}
	sum := sha256.Sum256(b.Bytes())
	f, err := bulk.NewFile(paths[0], bytes.NewReader(b.Bytes()))
	if err == nil {
		f.Size, f.Key = int64(b.Len()), fmt.Sprintf("%s %x", strings.Join(paths, " "), sum[:16])
	}
	return f, err
}

// packFolder adds the files of a folder, and of those in it, in the order of their names. It returns how many symbolic links there are.
func packFolder(s *foreign.System, folder string, add func(name string, text []byte) error) (links int, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return disk.FileError(err)
		case d.IsDir() && d.Name() == ".git":
			return filepath.SkipDir
		case d.Type()&fs.ModeSymlink != 0:
			links++
			return nil
		case !d.Type().IsRegular() || !s.Tree(d.Name()):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return disk.FileError(err)
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		return add(filepath.ToSlash(name), text)
	})
	return links, err
}

// isTree reports whether files are read as a folder: a system reads them together, and no file is an archive already.
func isTree(s *foreign.System, paths []string) bool {
	if s == nil || s.Tree == nil {
		return false
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if path == "-" || err == nil && !info.IsDir() && !s.Tree(filepath.Base(path)) {
			return false
		}
	}
	return true
}

// berkeleyFile is the name of a file in which Berkeley DB, Java Edition, keeps a database.
var berkeleyFile = regexp.MustCompile(`^[0-9a-f]{8}\.jdb$`)

// isBerkeley reports whether a path is the database of a Handle server from version 7 on: one of its files, the folder that has them, or
// that of the server.
func isBerkeley(path string) bool {
	if berkeleyFile.MatchString(filepath.Base(path)) {
		return true
	}
	for _, folder := range []string{path, filepath.Join(path, "bdbje")} {
		list, err := os.ReadDir(folder)
		if err == nil && slices.ContainsFunc(list, func(e os.DirEntry) bool { return berkeleyFile.MatchString(e.Name()) }) {
			return true
		}
	}
	return false
}
