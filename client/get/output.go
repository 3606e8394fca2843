package get

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/disk"
)

// StandardOutput is the name that means standard output.
const StandardOutput = "-"

// outputPath returns the file to write to: the one that was named, or in the folder that
// was named, or here, one with a name made of the identifier. A file that exists is an
// error unless it may be overwritten; that is checked before anything is fetched.
func outputPath(name string, id stele.ID, location string, force bool) (string, error) {
	if name == StandardOutput {
		return name, nil
	}
	if info, err := os.Stat(name); name == "" || err == nil && info.IsDir() {
		name = filepath.Join(name, fileName(id, location))
	}
	switch info, err := os.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
		return name, nil
	case err != nil:
		return "", disk.FileError(err)
	case info.IsDir():
		return "", stele.Errorf("get", stele.ID{}, stele.Conflict, "get.output-is-folder", `"{file}" is a folder; name a file with -o`, name)
	case !force:
		return "", stele.Errorf("get", stele.ID{}, stele.Conflict, "get.output-exists", `"{file}" is there already; overwrite it with --force, or name another file with -o`, name)
	}
	return name, nil
}

// maxFileName leaves room for what follows the name while the file is not whole.
const maxFileName = 150

// fileName makes a file's name of an identifier: letters, digits, hyphens, underscores and
// dots, never a path or hidden. The ending is that of the location, if it has one that
// looks like one.
func fileName(id stele.ID, location string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, id.String())
	name = strings.TrimLeft(name, ".-")
	ending := endingOf(location)
	if strings.HasSuffix(strings.ToLower(name), strings.ToLower(ending)) {
		ending = ""
	}
	if len(name)+len(ending) > maxFileName {
		// Two long identifiers that begin alike are two files.
		name = fmt.Sprintf("%s-%x", name[:maxFileName-20], sha256.Sum256([]byte(id.String())))[:maxFileName-10]
	}
	return name + ending
}

// endingOf returns the ending of a location's path: a dot and up to 8 letters or digits.
func endingOf(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return ""
	}
	ending := path.Ext(u.Path)
	if len(ending) < 2 || len(ending) > 9 {
		return ""
	}
	for _, r := range ending[1:] {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') {
			return ""
		}
	}
	return ending
}
