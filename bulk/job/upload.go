package job

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
	"github.com/stele-id/stele/registrar/minting"
)

// Upload is a file that a user sent, or several that are read together, or a text that they pasted.
type Upload struct {
	ID      string    `json:"id"`
	User    string    `json:"user"`
	Name    string    `json:"name"` // of the file, or of all files; may be empty
	Size    int       `json:"size"`
	Pieces  int       `json:"pieces"`
	Created time.Time `json:"created"`

	Files []UploadFile `json:"files,omitempty"` // nil if there is one
	Tree  *Tree        `json:"tree,omitempty"`  // of a folder; nil for other files
	Settings
}

// Settings say how an upload is read.
type Settings struct {
	Encoding  bulk.Encoding `json:"encoding"`
	Fields    []string      `json:"fields,omitempty"`    // of the columns; nil: as they seem to be
	Headless  *bool         `json:"headless,omitempty"`  // the first row is not a header; nil: as it seems to be
	Namespace string        `json:"namespace,omitempty"` // in which rows without names get them; "": each row needs a name
	Update    bool          `json:"update,omitempty"`    // rows may change names that exist
	System    string        `json:"system,omitempty"`    // that the file comes from, or foreign.Auto; "": it is a sheet, or lines of JSON
	Root      string        `json:"root,omitempty"`      // the folder in a tree after which names begin
	Spaces    bool          `json:"spaces,omitempty"`    // namespaces are made that the rules of a tree need
	Prefix    string        `json:"prefix,omitempty"`    // stands before names that are not identifiers in the file of a system
}

// Mark returns a text that differs if the file or one of its settings differs. A page that shows what would become of an upload keeps it,
// so that rows are written only as they were shown.
func (u *Upload) Mark() string {
	text, err := json.Marshal(u)
	if err != nil {
		panic(err) // unreachable: it was read as JSON
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// MaxFileName is how many bytes of the name of a file are kept.
const MaxFileName = 200

// mayUpload makes sure that there is room for another upload, and removes old ones.
func (b *Board) mayUpload(ctx context.Context, user string) error {
	own, all := 0, 0
	var old []stele.Cell
	for c, err := range b.o.Registrar.WorkList(asServer(ctx), uploadCells, "") {
		var u Upload
		if err == nil {
			err = decode(c.Name, c.Value, &u)
		}
		switch {
		case err != nil:
			return err
		case b.now().Sub(u.Created) > UploadLife:
			old = append(old, c)
			continue
		case u.User == user:
			own++
		}
		all++
	}
	if err := b.removeOld(ctx, old); err != nil {
		return err
	}
	switch {
	case own >= MaxUploads:
		return refuse(stele.Exhausted, "upload.too-many", "you have {count} files here that are not used; use them or throw them away", own)
	case all >= maxAllUploads:
		return refuse(stele.Exhausted, "upload.too-many-of-all", "other users have sent too many files at the moment; try again later")
	}
	return nil
}

// errCutOff says that the browser or the network has stopped.
func errCutOff() error {
	return refuse(stele.Invalid, "upload.cut-off", "the file did not arrive whole; send it again")
}

// keepPieces keeps the bytes of a file of an upload, after its beginning was judged.
func (b *Board) keepPieces(ctx context.Context, u *Upload, in io.Reader, judge func(head []byte) error) error {
	for begins := true; ; begins = false {
		piece := make([]byte, pieceBytes)
		n, err := io.ReadFull(in, piece)
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		switch {
		case err != nil && !end:
			return errCutOff()
		case u.Size+n > MaxUpload:
			return refuse(stele.Invalid, "upload.too-large", "the file has more than {most} bytes; divide it, or import it with 'stele import'", MaxUpload)
		case begins:
			if err := judge(piece[:n]); err != nil {
				return err
			}
		}
		if n > 0 {
			c := stele.CellChange{Name: pieceName(u.ID, u.Pieces), After: piece[:n]}
			if err := b.o.Registrar.KeepWork(asServer(ctx), c); err != nil {
				return err
			}
			u.Size, u.Pieces = u.Size+n, u.Pieces+1
		}
		if end {
			return nil
		}
	}
}

func pieceName(id string, n int) string { return fmt.Sprintf("%s%s %04d", pieceCells, id, n) }

// refusePacked refuses files that are not text.
func refusePacked(head []byte) error {
	for _, mark := range []string{"PK\x03\x04", "\xd0\xcf\x11\xe0"} {
		if bytes.HasPrefix(head, []byte(mark)) {
			return refuse(stele.Invalid, "upload.is-workbook", "this is a workbook, or another packed file; save the sheet as CSV and send that")
		}
	}
	for _, mark := range []string{"\x1f\x8b", "\x28\xb5\x2f\xfd", "BZh", "\xfd7zXZ"} {
		if bytes.HasPrefix(head, []byte(mark)) {
			return refuse(stele.Invalid, "upload.is-compressed", "the file is compressed; decompress it and send that")
		}
	}
	return nil
}

// shortName returns the name of a file without its folder and without control characters.
func shortName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c == utf8.RuneError {
			return -1
		}
		return c
	}, name)
	return strings.ToValidUTF8(name[:min(len(name), MaxFileName)], "")
}

// GetUpload returns an upload of the caller. NotFound if there is none, or if its time is over.
func (b *Board) GetUpload(ctx context.Context, id string) (Upload, error) {
	u, _, err := b.getUpload(ctx, id)
	return u, err
}

func (b *Board) getUpload(ctx context.Context, id string) (u Upload, value []byte, err error) {
	who, err := identify(ctx)
	if err != nil {
		return u, nil, err
	}
	ok := false
	if isID(id) {
		if value, ok, err = b.read(ctx, uploadCells+id, &u); err != nil {
			return u, nil, err
		}
	}
	if !ok || u.User != who.Name || b.now().Sub(u.Created) > UploadLife {
		return Upload{}, nil, refuse(stele.NotFound, "upload.missing", "this file is not here any more; send it again")
	}
	return u, value, nil
}

// Uploads returns the uploads of the caller that no job has taken, the oldest first.
func (b *Board) Uploads(ctx context.Context) (list []Upload, err error) {
	who, err := identify(ctx)
	if err != nil {
		return nil, err
	}
	for c, err := range b.o.Registrar.WorkList(asServer(ctx), uploadCells, "") {
		var u Upload
		if err == nil {
			err = decode(c.Name, c.Value, &u)
		}
		if err != nil {
			return nil, err
		}
		if u.User == who.Name && b.now().Sub(u.Created) <= UploadLife {
			list = append(list, u)
		}
	}
	return list, nil
}

// SetUpload changes how an upload of the caller is read.
func (b *Board) SetUpload(ctx context.Context, id string, s Settings) error {
	u, before, err := b.getUpload(ctx, id)
	if err != nil {
		return err
	}
	if u.Tree != nil && s.System != string(foreign.Auto) && !foreign.IsTree(s.System) {
		return refuse(stele.Invalid, "upload.tree-is-not-a-sheet", "a folder was sent, which is read as one of w3id.org or of the OBO Foundry; choose one of them, or send the files one by one")
	}
	if u.Files != nil && s.System == "" {
		return &stele.Error{Op: "bulk change", Kind: stele.Invalid, Err: errSheets}
	}
	u.Settings = s
	c, err := change(uploadCells+id, before, &u)
	if err != nil {
		return err
	}
	return b.o.Registrar.KeepWork(asServer(ctx), c)
}

// Discard removes an upload of the caller.
func (b *Board) Discard(ctx context.Context, id string) error {
	_, before, err := b.getUpload(ctx, id)
	if err != nil {
		return err
	}
	err = b.removeUpload(ctx, id, before)
	if errors.Is(err, stele.Conflict) {
		return refuse(stele.Conflict, "upload.changed-meanwhile", "this file was used or changed at the same time; look again")
	}
	return err
}

// removeUpload removes an upload that no job has taken; Conflict if one has taken it since, or if it
// was changed. Its pieces belong to the job then, so they go last.
func (b *Board) removeUpload(ctx context.Context, id string, before []byte) error {
	if err := b.o.Registrar.KeepWork(asServer(ctx), stele.CellChange{Name: uploadCells + id, Before: before}); err != nil {
		return err
	}
	return b.remove(ctx, pieceCells+id)
}

// removeOld removes uploads whose time is over, except those that were used at the last moment.
func (b *Board) removeOld(ctx context.Context, old []stele.Cell) error {
	for _, c := range old {
		err := b.removeUpload(ctx, strings.TrimPrefix(c.Name, uploadCells), c.Value)
		if err != nil && !errors.Is(err, stele.Conflict) {
			return err
		}
	}
	return nil
}

// Look returns what an upload seems to be.
func (b *Board) Look(ctx context.Context, u *Upload) (bulk.Survey, error) {
	files, err := b.files(ctx, u)
	if err != nil {
		return bulk.Survey{}, err
	}
	if u.System != "" {
		source, err := b.open(ctx, u, files)
		if err != nil {
			return bulk.Survey{}, err
		}
		return bulk.Survey{System: source.System().Name, Encoding: bulk.UTF8}, source.Close()
	}
	s, err := bulk.Look(files[0], u.Encoding, func(text string) bool {
		_, err := b.o.Schemes.Parse(text)
		return err == nil
	})
	if err == nil && u.Headless != nil && !s.JSON {
		s.SetHeadless(*u.Headless)
	}
	return s, err
}

// format returns how the rows of an upload are read, and whether rows may lack a name.
func (b *Board) format(ctx context.Context, u *Upload, s *bulk.Survey) (f bulk.Format, pool []stele.NamespaceKey, err error) {
	f = bulk.Format{Encoding: u.Encoding, Rows: bulk.RowOptions{Merges: u.Update}}
	if !s.JSON {
		f.Columns = bulk.HeaderOptions{Fields: u.Fields, Headless: s.Headless}
		if f.Columns.Fields == nil || len(f.Columns.Fields) != len(s.Columns) {
			f.Columns.Fields = s.Fields()
		}
	}
	if u.Namespace == "" {
		f.Columns.Need = []string{"id"}
		return f, nil, nil
	}
	ns, err := b.namespace(ctx, u.Namespace)
	if err != nil {
		return f, nil, err
	}
	f.Placeholder = func(line int) (string, error) {
		id, err := minting.Placeholder(b.o.Schemes, ns, line)
		return id.String(), err
	}
	return f, []stele.NamespaceKey{ns.Key()}, nil
}

// namespace returns the namespace with a key as a text.
func (b *Board) namespace(ctx context.Context, key string) (*stele.Namespace, error) {
	p, _, err := b.o.Schemes.ParsePrefix(key)
	if err != nil {
		return nil, err
	}
	return b.o.Registrar.Namespace(ctx, stele.NamespaceKey{Scheme: p.Scheme(), Prefix: p.String()})
}

// asUser returns a context with the rights that a user has now.
func asUser(ctx context.Context, directory *auth.Directory, user string) (context.Context, error) {
	who, err := directory.Principal(ctx, user)
	return auth.With(ctx, who), err
}

// tidyUploads removes uploads whose time is over, and pieces that belong to no upload and no job.
func (b *Board) tidyUploads(ctx context.Context) error {
	known := make(map[string]bool)
	var old []stele.Cell
	for c, err := range b.o.Registrar.WorkList(asServer(ctx), uploadCells, "") {
		var u Upload
		if err == nil {
			err = decode(c.Name, c.Value, &u)
		}
		if err != nil {
			return err
		}
		if known[u.ID] = true; b.now().Sub(u.Created) > UploadLife {
			old = append(old, c)
		}
	}
	jobs, err := b.jobs(ctx)
	if err != nil {
		return err
	}
	for i := range jobs {
		if u := jobs[i].Upload; u != nil {
			known[u.ID] = true
		}
	}
	orphans, err := b.orphans(ctx, known)
	if err != nil {
		return err
	}
	if err := b.removeOld(ctx, old); err != nil {
		return err
	}
	for _, id := range orphans {
		if err := b.remove(ctx, pieceCells+id); err != nil {
			return err
		}
	}
	return nil
}

// orphans returns the IDs of uploads that have pieces and are not known now, nor were when this was
// called last: an upload is known when it has arrived whole.
func (b *Board) orphans(ctx context.Context, known map[string]bool) (again []string, err error) {
	found := make(map[string]bool)
	after := ""
	for {
		id := ""
		for c, err := range b.o.Registrar.WorkList(asServer(ctx), pieceCells, after) {
			if err != nil {
				return nil, err
			}
			id = strings.TrimPrefix(c.Name, pieceCells)
			break
		}
		if id, _, _ = strings.Cut(id, " "); id == "" {
			break
		}
		if !known[id] {
			found[id] = true
		}
		after = pieceCells + id + "!" // the first text after all pieces of this upload
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range found {
		if b.orphaned[id] {
			again = append(again, id)
		}
	}
	b.orphaned = found
	return again, nil
}

// Texts returns the rows of the upload of a job as they stand there, in the order of its outcomes: files of another
// system may have several rows in a line, and several files have lines of the same number. The caller got the job
// from Get.
func (b *Board) Texts(ctx context.Context, j *Job) (texts [][]byte, survey bulk.Survey, err error) {
	if survey, err = b.Look(ctx, j.Upload); err != nil {
		return nil, survey, err
	}
	rows, err := b.rows(ctx, j.Upload, &survey)
	if err != nil {
		return nil, survey, err
	}
	for row, err := range rows.all {
		if err != nil {
			return nil, survey, errors.Join(rows.explain(err), rows.close())
		}
		texts = append(texts, textOf(row))
	}
	return texts, survey, rows.close()
}
