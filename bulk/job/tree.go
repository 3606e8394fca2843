package job

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/foreign"
)

// MaxTreeForm is how many bytes a browser may send of a folder, also of files that are left out.
const MaxTreeForm = 64 << 20

// treeWork bounds how long it takes to find out what the folders of a tree answer: some seconds. What takes longer is refused, and is
// for the command.
const treeWork = 20_000_000

// Tree is what a folder was when it was sent. It is kept as one archive.
type Tree struct {
	Files    int      `json:"files"`              // that are read
	LeftOut  int      `json:"left-out,omitempty"` // that are not of the system
	Examples []string `json:"examples,omitempty"` // some of these
	Links    int      `json:"links,omitempty"`    // entries that are not files, and are not followed
}

// isTree reports whether an upload is a folder, by its system and its first file, and returns a reader of that file. What was pasted has
// no name.
func isTree(u *Upload, name string, in io.Reader) (io.Reader, bool) {
	if name == "" || u.System == "" {
		return in, false
	}
	if foreign.IsTree(u.System) {
		return in, true
	}
	text := bufio.NewReader(in)
	head, _ := text.Peek(4)
	return text, u.System == string(foreign.Auto) && foreign.LooksLikeTree(name, head)
}

// keepTree keeps a folder, of which the first file is here.
func (b *Board) keepTree(ctx context.Context, u *Upload, name string, in io.Reader, next func() (string, io.Reader, error)) error {
	first := name
	packer := foreign.NewPacker(u.System, u.Prefix, MaxUpload)
	for {
		err := packer.Add(name, in)
		if _, told := errors.AsType[*stele.Error](err); err != nil && !told {
			return errCutOff()
		}
		if err != nil {
			return err
		}
		name, in, err = next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errCutOff()
		}
	}
	sent, err := packer.End()
	if err != nil {
		return err
	}
	top, _, _ := strings.Cut(first, "/")
	u.Name, u.Root = shortName(cmp.Or(sent.Root, top)), sent.Root
	if !strings.Contains(first, "/") {
		u.Name = shortName(first)
	}
	u.Tree = &Tree{Files: sent.Files, LeftOut: sent.LeftOut, Examples: sent.Examples, Links: sent.Links}
	return b.keepPieces(ctx, u, bytes.NewReader(sent.Archive), func([]byte) error { return nil })
}

// notes tells what of the folder is not in the archive.
func (t *Tree) notes() (list []error) {
	if t == nil {
		return nil
	}
	if t.LeftOut > 0 {
		if names := strings.Join(t.Examples, ", "); names != "" {
			list = append(list, stele.Messagef("upload.tree-left-out", "{count} files of the folder are not of this system and were left out, such as {names}", t.LeftOut, names))
		} else {
			list = append(list, stele.Messagef("upload.tree-left-out-git", "{count} files of Git in the folder were left out", t.LeftOut))
		}
	}
	if t.Links > 0 {
		list = append(list, stele.Messagef("upload.tree-links", "{count} links in the folder are not followed", t.Links))
	}
	return list
}

// told returns what else is to be told after all rows were read: what is not in them, and which tests that the files bring along fail.
func (r *rowsOf) told() ([]error, error) {
	list := append(r.tree.notes(), r.notes()...)
	if r.source == nil {
		return list, nil
	}
	checks, err := r.source.Checks()
	if err != nil || len(checks) == 0 {
		return list, err
	}
	failed := 0
	for i := range checks {
		if why := checks[i].Failed(r.source.Foresee(checks[i].Name)); why != nil {
			if failed++; failed <= maxFailed {
				list = append(list, why)
			}
		}
	}
	if failed > maxFailed {
		list = append(list, stele.Messagef("upload.checks-more", "{count} more tests of the files fail; 'stele import --dry-run' names all", failed-maxFailed))
	}
	return append(list, stele.Messagef("upload.checks", "{passed} of {all} tests of the files pass, held against what the files say", len(checks)-failed, len(checks))), nil
}

// maxFailed is how many tests that fail are named.
const maxFailed = 30
