package bundle

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/transparency"
)

const opWrite = "bundle"

// Job is a bundle to be written.
type Job struct {
	From *registrar.Bundling
	Log  *transparency.Log
	Keys *transparency.Keys // that sign; the log has been set up
	Gzip bool
	Now  time.Time

	// Usage yields the figures of names that begin with a prefix, by name and month, up to a month that belongs to it; nil: there are
	// none.
	Usage func(ctx context.Context, prefix stele.NamespaceKey, until string) iter.Seq2[Usage, error]

	// Temp makes a file for what memory does not hold; nil: memory holds all.
	Temp func() (Temp, error)

	// Fixed is called once with the number of the change that the bundle is of; nil: is not.
	Fixed func(change uint64)

	Progress func(records int) // is called by another goroutine, with records whose lines are made; nil: is not

	begun *begun // the state that it is of; nil: the present one

	fileLines int // of a file of records, in tests; 0: maxFileLines
	fileBytes int // in tests; 0: usualFileBytes
	held      int // bytes of figures in memory, in tests; 0: maxSpool
}

// Written is what was written.
type Written struct {
	Head     Head
	Counts   Counts
	Manifest [sha256.Size]byte
	Bytes    int64 // of the file
}

// Note notes in the registry that the bundle was made. It does not fail; see [registrar.Bundling.NoteMade].
func (w *Written) Note(ctx context.Context, from *registrar.Bundling) {
	from.NoteMade(ctx, registrar.MadeBundle{Manifest: w.Manifest, Change: w.Head.Changes, Records: w.Counts.Records, Versions: w.Counts.Versions})
}

// Write writes a bundle of the registry as it is when it begins: the log catches up, and signs a checkpoint. Changes after that are
// not in it.
func (j *Job) Write(ctx context.Context, out io.Writer) (*Written, error) {
	w := &writer{job: j, out: &outCounter{w: out}}
	if b := j.begun; b != nil {
		w.head, w.note, w.cosigned = b.Head, b.Note, b.Cosigned
	} else if err := w.fix(ctx); err != nil {
		return nil, err
	}
	return w.all(ctx, nil)
}

// outCounter counts what is written.
type outCounter struct {
	w io.Writer
	n int64
}

func (c *outCounter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// writer is a bundle under way.
type writer struct {
	job  *Job
	out  *outCounter
	z    *gzip.Writer
	mark func(*marked) error // is called after each file; nil: is not

	each func(name string, size int64, in io.Reader) error // takes the files; nil: they are written as an archive

	head     Head
	note     string // the signed checkpoint
	cosigned string
	counts   Counts
	payload  []file
	tags     []file
	bytes    int64 // of the payload
	log      *transparency.Disclosing

	number int   // of files of records
	next   place // after the last line of records
}

// place is how far the records are: the version after which it goes on.
type place struct {
	Scheme  string `json:"scheme"`
	ID      string `json:"id"`
	Version uint64 `json:"version"`
	Current bool   `json:"current"` // that was the last version of the record
}

// fix decides of which state the bundle is: that of a checkpoint, which is signed now.
func (w *writer) fix(ctx context.Context) error {
	j := w.job
	err := j.Log.CatchUp(ctx, nil)
	var shown transparency.Published
	if err == nil {
		shown, err = j.Log.Sign(ctx, j.Keys)
	}
	if errors.Is(err, stele.ErrSealed) { // what was signed before is all that there is, if the log had caught up
		shown, err = j.Log.Published(ctx)
	}
	if err != nil {
		return err
	}
	c, err := transparency.ParseCheckpoint(shown.Note)
	if err != nil {
		return &stele.Error{Op: opWrite, Kind: stele.Conflict, Err: stele.Messagef("bundle.no-checkpoint", "the registry is sealed, and its log was not signed before; remove the seal, make the bundle, and seal it again")}
	}
	if c.Size == 0 {
		return &stele.Error{Op: opWrite, Kind: stele.NotFound, Err: stele.Messagef("bundle.registry-empty", "the registry is empty: there is nothing to make a bundle of")}
	}
	w.note, w.cosigned = transparency.SplitCheckpoint(shown.Note, j.Keys.Public())
	status, err := j.Log.Status(ctx)
	if err != nil {
		return err
	}
	last, err := j.From.Change(ctx, c.Size)
	if err != nil {
		return err
	}
	w.head = Head{
		Form: Form, Origin: c.Origin, Generation: status.Eras[len(status.Eras)-1].Generation.String(), Changes: c.Size,
		At: last.At.UTC().Truncate(time.Microsecond), Hosts: j.From.Hosts(),
	}
	if j.Usage != nil {
		w.head.UsageUntil = usageUntil(j.Now)
	}
	if !j.From.All() {
		for _, key := range j.From.Prefixes() {
			w.head.Prefixes = append(w.head.Prefixes, Prefix{key.Scheme, key.Prefix})
		}
	}
	return nil
}

// all writes the bundle, or the rest of one that was interrupted after a file of records.
func (w *writer) all(ctx context.Context, resumed *place) (*Written, error) {
	if w.job.Fixed != nil {
		w.job.Fixed(w.head.Changes)
	}
	var err error
	if w.log, err = w.job.Log.Disclose(ctx, w.head.Changes, w.job.From.Has); err != nil {
		return nil, err
	}
	if resumed == nil {
		if err := w.front(ctx); err != nil {
			return nil, err
		}
		resumed = new(place)
	}
	if err := w.records(ctx, *resumed); err != nil {
		return nil, err
	}
	return w.back(ctx)
}

// put writes a file.
func (w *writer) put(name string, data []byte) error {
	if len(w.head.Origin) > 0 && len(folderName(w.head.Origin))+1+len(name) > maxTarName {
		return &stele.Error{Op: opWrite, Kind: stele.Internal, Err: stele.Messagef("bundle.name-too-long", `the name "{file}" is too long for an archive`, name)}
	}
	if p := rank(name); p >= 0 && int64(len(data)) > parts[p].most {
		return &stele.Error{Op: opWrite, Kind: stele.Exhausted, Err: stele.Messagef("bundle.file-would-be-too-long", "{file} would have {size} bytes, which is more than a bundle may have in it; make bundles of several prefixes", name, len(data))}
	}
	mtime := tarTime(w.head.At)
	h := tarHeader(folderName(w.head.Origin)+"/"+name, int64(len(data)), mtime)
	var zero [blockSize]byte
	if w.each != nil {
		if err := w.each(name, int64(len(data)), bytes.NewReader(data)); err != nil {
			return err
		}
	}
	if err := w.piece(h[:], data, zero[:padding(int64(len(data)))]); err != nil {
		return err
	}
	return w.noted(file{name: name, sum: sha256.Sum256(data)}, int64(len(data)))
}

// noted notes a file that was written.
func (w *writer) noted(f file, size int64) error {
	if strings.HasPrefix(f.name, "data/") {
		w.payload = append(w.payload, f)
		w.bytes += size
	} else {
		w.tags = append(w.tags, f)
	}
	if w.mark == nil {
		return nil
	}
	return w.mark(&marked{Name: f.name, Sum: fmt.Sprintf("%x", f.sum), Size: size, End: w.out.n, Next: w.next, Counts: w.counts})
}

// piece writes bytes after which writing can be taken up again: a member of gzip, if the bundle is compressed.
func (w *writer) piece(parts ...[]byte) error {
	list := make([]io.Reader, len(parts))
	for i, p := range parts {
		list[i] = bytes.NewReader(p)
	}
	return w.pieceFrom(list...)
}

func (w *writer) pieceFrom(parts ...io.Reader) error {
	var out io.Writer = w.out
	if w.job.Gzip {
		if w.z == nil {
			w.z, _ = gzip.NewWriterLevel(w.out, gzip.DefaultCompression) // the level is one
		} else {
			w.z.Reset(w.out)
		}
		out = w.z
	}
	for _, p := range parts {
		if _, err := io.Copy(out, p); err != nil {
			return err
		}
	}
	if w.job.Gzip {
		return w.z.Close()
	}
	return nil
}

func (w *writer) putJSON(name string, v any) error {
	text, err := appendJSON(nil, v)
	if err != nil {
		return err
	}
	return w.put(name, text)
}

// front writes what comes before the records.
func (w *writer) front(ctx context.Context) error {
	if err := w.put(fileBagit, []byte(bagit)); err != nil {
		return err
	}
	if err := w.put(fileReadme, []byte(readme)); err != nil {
		return err
	}
	if err := w.putJSON(fileHead, &w.head); err != nil {
		return err
	}
	spaces, err := w.job.From.Namespaces(ctx)
	if err != nil {
		return err
	}
	lines, current, err := w.namespaceLines(ctx, spaces)
	if err == nil { // one may be sealed since the job was made
		err = w.job.From.Carries(ctx, current)
	}
	if err != nil {
		return err
	}
	if err := w.putKeys(current); err != nil {
		return err
	}
	if err := w.putLog(ctx); err != nil {
		return err
	}
	if err := w.put(fileNamespaces, lines); err != nil {
		return err
	}
	if err := w.putStatements(current); err != nil {
		return err
	}
	return w.putMinters(ctx, current)
}

// namespaceLines returns the lines of the namespaces, as far as they are in the log, and each namespace in its last version.
func (w *writer) namespaceLines(ctx context.Context, spaces [][]*stele.Namespace) (lines []byte, current []*stele.Namespace, err error) {
	for _, versions := range spaces {
		var list []NamespaceVersion
		for _, n := range versions {
			d, ok, err := w.log.Namespace(ctx, n)
			if err != nil {
				return nil, nil, err
			}
			if ok {
				list = append(list, NamespaceVersion{Namespace: n, Log: d})
			}
		}
		if len(list) == 0 {
			continue
		}
		list[len(list)-1].Current = true
		current = append(current, list[len(list)-1].Namespace)
		for i := range list {
			lines = appendNamespaceLine(lines, &list[i])
		}
		w.counts.Namespaces++
		w.counts.Kept += uint64(len(list))
	}
	return lines, current, nil
}

func (w *writer) putKeys(spaces []*stele.Namespace) error {
	var list []Key
	for i, k := range w.job.Keys.Public() {
		key := &w.job.Keys.List[i]
		list = append(list, Key{Log: k.String(), Created: key.Created.UTC(), Retired: key.Retired.UTC()})
	}
	list = append(list, namespaceKeys(spaces)...)
	w.counts.Keys = uint64(len(list))
	return putLines(w, fileKeys, list)
}

// putLines writes a file of lines.
func putLines[T any](w *writer, name string, list []T) error {
	var text []byte
	for i := range list {
		var err error
		if text, err = appendJSON(text, &list[i]); err != nil {
			return err
		}
	}
	return w.put(name, text)
}

func (w *writer) putStatements(spaces []*stele.Namespace) error {
	list := make([]Statement, len(spaces))
	for i, n := range spaces {
		list[i] = statementOf(n)
	}
	w.counts.Statements = uint64(len(list))
	return putLines(w, fileStatements, list)
}

func (w *writer) putMinters(ctx context.Context, spaces []*stele.Namespace) error {
	states, err := w.job.From.Minters(ctx, spaces)
	if err != nil {
		return err
	}
	list := make([]Minter, len(states))
	for i, s := range states {
		list[i] = Minter{Name: s.Name, State: s.After}
	}
	w.counts.Minters = uint64(len(list))
	return putLines(w, fileMinters, list)
}

// putLog writes the checkpoint, the eras and the tiles.
func (w *writer) putLog(ctx context.Context) error {
	if err := w.put(fileCheckpoint, []byte(w.note)); err != nil {
		return err
	}
	status, err := w.job.Log.Status(ctx)
	if err != nil {
		return err
	}
	var eras struct {
		Eras []Era `json:"eras"`
	}
	for _, e := range status.Eras {
		eras.Eras = append(eras.Eras, Era{Generation: e.Generation.String(), Number: e.Number, Size: e.Size, Began: e.Began.UTC()})
	}
	if err := w.putJSON(fileEras, &eras); err != nil {
		return err
	}
	for id := range transparency.TilesAbove(w.head.Changes) {
		if err := w.putTile(ctx, id); err != nil {
			return err
		}
	}
	for id := range w.log.Tiles() {
		if err := w.putTile(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) putTile(ctx context.Context, id transparency.TileID) error {
	data, err := w.job.Log.Tile(ctx, id.Level, id.N, id.Width)
	if err != nil {
		return err
	}
	w.counts.Tiles++
	return w.put(fileLog+id.Path(), data)
}

// back writes what comes after the records.
func (w *writer) back(ctx context.Context) (*Written, error) {
	if err := w.putUsage(ctx); err != nil {
		return nil, err
	}
	if err := w.putFixed(ctx); err != nil {
		return nil, err
	}
	if err := w.putJSON(fileCounts, &w.counts); err != nil {
		return nil, err
	}
	var manifest []byte
	for i := range w.payload {
		manifest = append(manifest, w.payload[i].manifestLine()...)
	}
	sum := sha256.Sum256(manifest)
	signed, err := w.job.Keys.SignText(noteText(w.head.Origin, sum[:]), w.job.Now)
	if err != nil {
		return nil, err
	}
	w.mark = nil // from here on it is done anew
	if err := w.put(fileManifest, manifest); err != nil {
		return nil, err
	}
	if err := w.put(fileInfo, []byte(infoText(&w.head, w.bytes, len(w.payload)))); err != nil {
		return nil, err
	}
	if err := w.put(fileRegistry, []byte(signed)); err != nil {
		return nil, err
	}
	if w.cosigned != "" {
		if err := w.put(fileCosigned, []byte(w.cosigned)); err != nil {
			return nil, err
		}
	}
	if err := w.finish(); err != nil {
		return nil, err
	}
	return &Written{Head: w.head, Counts: w.counts, Manifest: sum, Bytes: w.out.n}, nil
}

// finish writes the manifest of the other files, and the end of the archive.
func (w *writer) finish() error {
	var manifest []byte
	for i := range w.tags {
		manifest = append(manifest, w.tags[i].manifestLine()...)
	}
	if err := w.put(fileTagManifest, manifest); err != nil {
		return err
	}
	var zero [2 * blockSize]byte
	return w.piece(zero[:])
}
