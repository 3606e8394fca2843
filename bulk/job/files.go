package job

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
)

// MaxFiles is how many files an upload may have.
const MaxFiles = 16

// UploadFile is one of several files of an upload. Their bytes follow each other in its pieces.
type UploadFile struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

// Upload keeps a file of the caller. It reads no more than MaxUpload bytes.
func (b *Board) Upload(ctx context.Context, name string, s Settings, in io.Reader) (Upload, error) {
	return b.UploadFiles(ctx, s, func() (string, io.Reader, error) {
		if in == nil {
			return "", nil, io.EOF
		}
		only := in
		in = nil
		return name, only, nil
	})
}

// UploadFiles keeps files of the caller as one upload. The function next returns them one after the other, and
// [io.EOF] after the last; a file is read before next is called again. Several files must come from another system.
// UploadFiles reads no more than MaxUpload bytes of all files together.
func (b *Board) UploadFiles(ctx context.Context, s Settings, next func() (name string, in io.Reader, err error)) (Upload, error) {
	who, err := identify(ctx)
	if err != nil {
		return Upload{}, err
	}
	if err := b.mayUpload(ctx, who.Name); err != nil {
		return Upload{}, err
	}
	u := Upload{User: who.Name, Created: b.now(), Settings: s}
	if u.ID, err = b.NewID(); err != nil {
		return Upload{}, err
	}
	if err := b.keepFiles(ctx, &u, next); err != nil {
		return Upload{}, errors.Join(err, b.remove(ctx, pieceCells+u.ID))
	}
	c, err := change(uploadCells+u.ID, nil, &u)
	if err != nil {
		return Upload{}, err
	}
	return u, b.o.Registrar.KeepWork(asServer(ctx), c)
}

// keepFiles keeps the files of an upload.
func (b *Board) keepFiles(ctx context.Context, u *Upload, next func() (string, io.Reader, error)) error {
	var files []UploadFile
	for {
		name, in, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errCutOff()
		}
		if len(files) == 0 {
			var tree bool
			if in, tree = isTree(u, name, in); tree {
				return b.keepTree(ctx, u, name, in, next)
			}
		}
		name = shortName(name)
		if len(files) > 0 {
			name = cmp.Or(name, strconv.Itoa(len(files)+1))
		}
		if err := mayAdd(u, files, name); err != nil {
			return err
		}
		before := u.Size
		if err := b.keepPieces(ctx, u, in, refusePacked); err != nil {
			return err
		}
		files = append(files, UploadFile{Name: name, Size: u.Size - before})
	}
	if u.Size == 0 {
		return refuse(stele.Invalid, "upload.empty", "there is nothing in it; choose a file, or paste some rows")
	}
	u.Name = files[0].Name
	if len(files) == 1 {
		return nil
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.Name
	}
	u.Files, u.Name = files, shortName(strings.Join(names, ", "))
	return nil
}

var errSheets = stele.Messagef("upload.files-are-sheets", "several files are read together only if they come from another system; choose the system, or send one file at a time")

// mayAdd makes sure that an upload may have another file.
func mayAdd(u *Upload, files []UploadFile, name string) error {
	switch {
	case len(files) == 0:
		return nil
	case u.System == "":
		return &stele.Error{Op: "bulk change", Kind: stele.Invalid, Err: errSheets}
	case len(files) >= MaxFiles:
		return refuse(stele.Invalid, "upload.files-too-many", "there are more than {most} files; import them with 'stele import'", MaxFiles)
	case slices.ContainsFunc(files, func(f UploadFile) bool { return f.Name == name }):
		return refuse(stele.Invalid, "upload.files-same-name", "two files are called {name}; rename one of them, and send all again", name)
	}
	return nil
}

// files returns the files of an upload. The caller has made sure who may see it.
func (b *Board) files(ctx context.Context, u *Upload) (list []*bulk.File, err error) {
	text := make([]byte, 0, u.Size)
	for c, err := range b.o.Registrar.WorkList(asServer(ctx), pieceCells+u.ID, "") {
		if err != nil {
			return nil, err
		}
		text = append(text, c.Value...)
	}
	if len(text) != u.Size {
		return nil, refuse(stele.NotFound, "upload.missing", "this file is not here any more; send it again")
	}
	parts := u.Files
	if parts == nil {
		name := u.Name
		if name == "" {
			name = "the text"
			if len(text) > 0 && text[len(text)-1] != '\n' {
				text = append(text, '\n') // what was pasted is whole
			}
		}
		parts = []UploadFile{{Name: name, Size: len(text)}}
	}
	for _, part := range parts {
		f, err := bulk.NewFile(part.Name, bytes.NewReader(text[:part.Size]))
		if err != nil {
			return nil, err
		}
		list, text = append(list, f), text[part.Size:]
	}
	return list, nil
}
