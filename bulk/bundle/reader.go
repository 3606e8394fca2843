package bundle

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/transparency"
)

// Options are how a bundle is read.
type Options struct {
	// Schemes read the names in the bundle. The hosts that the bundle names are added to them.
	Schemes *stele.Schemes

	// Keys are the keys of logs that the caller trusts, and of witnesses. If there is none of a log, the bundle is checked with the
	// key that it has itself: it is whole then, but any registry may have made it.
	Keys []transparency.PublicKey

	// Visit is called with what the bundle has, while it is read. What comes before the end is not proved yet: a caller
	// that acts on it reads the bundle once before, without visiting.
	Visit Visitor

	Now      time.Time            // to judge the keys of namespaces
	Progress func(versions int)   // is called now and then with how many versions were read since; nil: is not
	Temp     func() (Temp, error) // makes a file for hashes that memory does not hold; nil: memory holds all
}

// Visitor is called with what a bundle has, in the order of the file. A nil function is not called; an error ends the reading, and is
// returned.
type Visitor struct {
	Head      func(*Head) error
	Key       func(*Key) error
	Tile      func(id transparency.TileID, hashes []byte) error
	Namespace func(*NamespaceVersion) error
	Statement func(*Statement) error
	Minter    func(*Minter) error
	Record    func(*RecordVersion) error
	Usage     func(*Usage) error
	Fixed     func(*Fixed) error
}

// Report is what is known of a bundle that is whole.
type Report struct {
	Head       Head
	Counts     Counts
	Eras       []Era
	Checkpoint *transparency.Checkpoint
	Manifest   [sha256.Size]byte // SHA-256 of manifest-sha256.txt, which names the bundle

	// Trusted says that a key that the caller trusts has signed it, not only the key that the bundle itself has.
	Trusted bool

	Note     string // the checkpoint as it was signed
	Cosigned string // the lines of witnesses, which belong to it; "": there are none

	Cosignatures []transparency.Cosignature // of the witnesses that the caller knows
	Signatures   []Signature                // of namespaces, which are valid

	// Outside are aliases that do not begin with a prefix of the bundle, the first of them.
	Outside      []Outside
	OutsideCount uint64

	spaces   []*stele.Namespace // in their last version
	manifest uint64             // bytes of the manifest
	tail     int64              // where in the file the signatures of namespaces begin, or would
	tags     []file             // before that
	payload  []file             // all files below data/
	gzip     bool
}

// Outside is an alias that the bundle has, and that is not one of the names that it is of.
type Outside struct{ ID, Alias stele.ID }

// maxOutside is how many aliases a report names.
const maxOutside = 1000

// Read reads a bundle, checks all of it, and calls the visitor with what is in it. Invalid if something is wrong: the error says in which
// file of the bundle, and in which line or at which byte. It does not close in.
func Read(ctx context.Context, in io.Reader, o Options) (*Report, error) {
	plain, err := decompress(in)
	if err != nil {
		return nil, err
	}
	r := &reader{ctx: ctx, o: o, tar: tarReader{in: plain}, report: new(Report), lastRank: -1}
	r.packed, r.report.gzip = plain.(*gunzip)
	r.hashes.temp = o.Temp
	defer r.hashes.close()
	if err := r.all(); err != nil {
		return nil, err
	}
	return r.report, nil
}

// file is a file of the bundle that was read.
type file struct {
	name string
	sum  [sha256.Size]byte
}

// reader is a bundle that is read.
type reader struct {
	ctx      context.Context
	o        Options
	tar      tarReader
	packed   *gunzip // nil if the archive is not compressed
	report   *Report
	lastRank int

	payload []file // files below data/, in their order
	tags    []file // other files before the last one
	bytes   int64  // of the payload
	wrong   *fault // the first problem in the payload
	now     string // the file under way
	sum     hash.Hash
	keys    []transparency.PublicKey // that check signatures

	tiles    *transparency.TileCheck
	above    []transparency.TileID // tiles above the leaves that are still to come
	lastTile uint64                // number of the last tile of leaves, and 1
	hashes   spool
	history  history
	usage    Usage // the last line
	fixed    Fixed // the last line
	keyLines []Key
}

// fault is a problem of a file of the bundle.
type fault struct {
	file string
	line int // 0: the file as a whole
	err  error
}

func (f *fault) Error() string { return f.err.Error() }

// told returns the problem with its place.
func (f *fault) told() error {
	if f.line == 0 {
		return &stele.Error{Op: opRead, Kind: stele.Invalid, Err: stele.Messagef("", "{file}: {cause}", f.file, cause(f.err))}
	}
	return &stele.Error{Op: opRead, Kind: stele.Invalid, Err: stele.Messagef("bundle.line-wrong", "line {line} of {file}: {cause}", f.line, f.file, cause(f.err))}
}

// cause returns an error without its operation, which the place says.
func cause(err error) error {
	if e, ok := errors.AsType[*stele.Error](err); ok && e.Err != nil {
		return e.Err
	}
	return err
}

// visitError is an error of the caller's own function.
type visitError struct{ error }

func (v visitError) Unwrap() error { return v.error }

// all reads all files.
func (r *reader) all() error {
	for {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		name, size, err := r.tar.next()
		if err != nil {
			return r.orFault(err)
		}
		if name == "" {
			break
		}
		if err := r.file(name, size); err != nil {
			return err
		}
	}
	if err := r.order(len(parts)); err != nil {
		return err
	}
	if r.wrong != nil {
		return r.wrong.told()
	}
	r.report.payload = r.payload
	return nil
}

// orFault returns the problem that was found before the archive turned out to be damaged: both have one cause, most often.
func (r *reader) orFault(err error) error {
	if r.wrong != nil && stele.KindOf(err) == stele.Invalid {
		return r.wrong.told()
	}
	return err
}

// part is a kind of files. Bundles have them in this order.
type part struct {
	name     string // ending with a slash: all below it
	most     int64  // bytes of a file
	optional bool
	many     bool
	read     func(*reader, io.Reader) error
	end      func(*reader) error // is called after the last file of the part; nil: nothing
}

var parts = []part{
	{name: fileBagit, most: maxSmall, read: (*reader).readBagit},
	{name: fileReadme, most: maxSmall, read: discard},
	{name: fileHead, most: maxSmall, read: (*reader).readHead},
	{name: fileKeys, most: maxHeld, read: (*reader).readKeys},
	{name: fileCheckpoint, most: maxSmall, read: (*reader).readCheckpoint},
	{name: fileEras, most: maxSmall, read: (*reader).readEras},
	{name: fileLog + "tile/", most: transparency.TileWidth * sha256.Size, optional: true, many: true, read: (*reader).readTile, end: (*reader).endTiles},
	{name: fileNamespaces, most: maxHeld, read: (*reader).readNamespaces},
	{name: fileStatements, most: maxHeld, read: (*reader).readStatements},
	{name: fileMinters, most: maxFile, read: (*reader).readMinters},
	{name: "data/records-", most: maxFileBytes + maxLine, optional: true, many: true, read: (*reader).readRecords, end: (*reader).endRecords},
	{name: fileUsage, most: maxFile, read: (*reader).readUsage},
	{name: fileFixed, most: maxHeld, optional: true, read: (*reader).readFixed},
	{name: fileCounts, most: maxSmall, read: (*reader).readCounts},
	{name: fileManifest, most: maxFile, read: (*reader).readManifest},
	{name: fileInfo, most: maxSmall, read: (*reader).readInfo},
	{name: fileRegistry, most: maxSmall, read: (*reader).readRegistryNote},
	{name: fileCosigned, most: maxSmall, optional: true, read: (*reader).readCosignatures},
	{name: "signatures/namespace-", most: maxSmall, optional: true, many: true, read: (*reader).readSignature},
	{name: fileTagManifest, most: maxFile, read: (*reader).readTagManifest},
}

// tailRank is the first part that is written again when a signature is added.
var tailRank = rank("signatures/namespace-")

// beginTail notes where the files begin that are written again when a signature is added: at the header that was just read.
func (r *reader) beginTail() {
	r.report.tail, r.report.tags = r.tar.offset-blockSize, slices.Clone(r.tags)
	if r.packed != nil {
		r.report.tail = r.packed.begin
	}
}

// rank returns which part a file belongs to; -1 for none.
func rank(name string) int {
	return slices.IndexFunc(parts, func(p part) bool { return p.name == name || p.many && strings.HasPrefix(name, p.name) })
}

// order makes sure that a file of a part may come now, and ends the parts before it.
func (r *reader) order(next int) error {
	for i := max(r.lastRank, 0); i < next; i++ {
		if i > r.lastRank && !parts[i].optional {
			return (&fault{parts[i].name, 0, stele.Messagef("bundle.file-missing", "it is missing, or stands at another place of the archive")}).told()
		}
		if end := parts[i].end; end != nil && r.wrong == nil {
			if err := end(r); err != nil {
				r.note(0, err)
			}
		}
	}
	return nil
}

// note keeps the first problem of the payload. The manifest tells later which file was changed.
func (r *reader) note(line int, err error) {
	if r.wrong == nil {
		r.wrong = &fault{r.now, line, err}
	}
}

// file reads one file.
func (r *reader) file(name string, size int64) error {
	p := rank(name)
	switch {
	case p < 0 || strings.ContainsRune(name, '\\'):
		return (&fault{printable(name), 0, stele.Messagef("bundle.file-unknown", "bundles have no such file")}).told()
	case p < r.lastRank || p == r.lastRank && !parts[p].many:
		return (&fault{name, 0, stele.Messagef("bundle.file-out-of-order", "it is there twice, or stands at another place of the archive")}).told()
	case size > parts[p].most || len(r.payload)+len(r.tags) >= maxFiles:
		return (&fault{name, 0, stele.Messagef("bundle.file-too-long", "it has {size} bytes, which is more than such a file may have", size)}).told()
	}
	if err := r.order(p); err != nil {
		return err
	}
	if p >= tailRank && r.lastRank < tailRank {
		r.beginTail()
	}
	r.lastRank, r.now, r.sum = p, name, sha256.New()
	in := io.TeeReader(&r.tar, r.sum)
	isPayload := strings.HasPrefix(name, "data/")
	if r.wrong == nil || !isPayload {
		if err := parts[p].read(r, in); err != nil {
			if err := r.judge(err, isPayload); err != nil {
				return err
			}
		}
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return r.orFault(err)
	}
	f := file{name: name}
	r.sum.Sum(f.sum[:0])
	if isPayload {
		r.payload = append(r.payload, f)
		r.bytes += size
	} else {
		r.tags = append(r.tags, f)
	}
	return nil
}

// judge tells a problem of the bundle from an error of the caller or of the disk. It returns what ends the reading.
func (r *reader) judge(err error, isPayload bool) error {
	if own, ok := errors.AsType[visitError](err); ok {
		return own.error
	}
	switch {
	case r.tar.broken != nil:
		return r.orFault(r.tar.broken)
	case r.ctx.Err() != nil:
		return err
	}
	f, ok := errors.AsType[*fault](err)
	if !ok {
		f = &fault{r.now, 0, err}
	}
	if !isPayload {
		if r.wrong != nil {
			return r.wrong.told()
		}
		return f.told()
	}
	if r.wrong == nil {
		r.wrong = f
	}
	return nil
}

func discard(*reader, io.Reader) error { return nil }

// whole reads a small file.
func whole(in io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(in, maxSmall+1)) }

func printable(name string) string { return strings.Trim(fmt.Sprintf("%q", name), `"`) }

// visit2 is visit for a function of two values.
func visit2[A, B any](f func(A, B) error, a A, b B) error {
	if f == nil {
		return nil
	}
	return visit(func(a A) error { return f(a, b) }, a)
}

// visit calls a function of the caller.
func visit[T any](f func(T) error, v T) error {
	if f == nil {
		return nil
	}
	if err := f(v); err != nil {
		return visitError{err}
	}
	return nil
}
