package bundle

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/transparency"
)

func wrong(code, text string, args ...any) error { return stele.Messagef(code, text, args...) }

func (r *reader) readBagit(in io.Reader) error {
	text, err := whole(in)
	if err == nil && string(text) != bagit {
		return wrong("bundle.not-a-bag", "this is not a bag of the version 1.0 (RFC 8493)")
	}
	return err
}

func (r *reader) readHead(in io.Reader) error {
	text, err := whole(in)
	if err != nil {
		return err
	}
	h := &r.report.Head
	if err := parseJSON(text, h); err != nil {
		return err
	}
	if h.Form != Form {
		return wrong("bundle.form-unknown", "the form of the bundle is {form}; this program reads {known}", h.Form, Form)
	}
	if _, err := stele.ParseGenerationID(h.Generation); err != nil {
		return err
	}
	for i, p := range h.Prefixes {
		if r.o.Schemes.Lookup(p.Scheme) == nil || i > 0 && comparePrefixes(h.Prefixes[i-1], p) >= 0 || i > 0 && h.Prefixes[i-1].has(p.Scheme, p.Prefix) {
			return wrong("bundle.prefixes-wrong", `the prefix "{prefix}" is of an unknown scheme, or not in its order`, p.Prefix)
		}
	}
	if r.tar.mtime != tarTime(h.At) || r.tar.folder != folderName(h.Origin) {
		return wrong("bundle.archive-of-other", "the archive has another folder or another time than the bundle says")
	}
	if h.UsageUntil != "" && !isMonth(h.UsageUntil) {
		return wrong("bundle.month-malformed", `"{month}" is not a month, such as 2031-05`, h.UsageUntil)
	}
	if err := r.learnHosts(h.Hosts); err != nil {
		return err
	}
	return visit(r.o.Visit.Head, h)
}

func (r *reader) learnHosts(hosts []string) error {
	for s := range r.o.Schemes.All() {
		if hosted, ok := s.(stele.HostScheme); ok && len(hosts) > 0 {
			if err := hosted.AddHosts(hosts...); err != nil {
				return err
			}
		}
	}
	return nil
}

// tarTime returns the time of files: that of the last change, as far as a header can say it.
func tarTime(t time.Time) int64 { return min(max(t.Unix(), 0), maxTarTime) }

func comparePrefixes(a, b Prefix) int {
	if c := strings.Compare(a.Scheme, b.Scheme); c != 0 {
		return c
	}
	return strings.Compare(a.Prefix, b.Prefix)
}

// has reports whether a name begins with the prefix.
func (p Prefix) has(scheme, name string) bool {
	return p.Scheme == scheme && strings.HasPrefix(name, p.Prefix)
}

// has reports whether the bundle is of a name.
func (h *Head) has(scheme, name string) bool {
	return len(h.Prefixes) == 0 || slices.ContainsFunc(h.Prefixes, func(p Prefix) bool { return p.has(scheme, name) })
}

// eachLine calls do with each line of a file, its end included.
func (r *reader) eachLine(in io.Reader, do func(text []byte) error) error {
	buf := bufio.NewReaderSize(in, 256<<10)
	var long []byte
	for n := 1; ; n++ {
		if n%1024 == 0 && r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		text, err := buf.ReadSlice('\n')
		for long = long[:0]; errors.Is(err, bufio.ErrBufferFull); text, err = buf.ReadSlice('\n') {
			if long = append(long, text...); len(long) > maxLine {
				return &fault{r.now, n, wrong("bundle.line-too-long", "the line has more than {most} bytes", maxLine)}
			}
		}
		if len(long) > 0 {
			long = append(long, text...)
			text = long
		}
		switch {
		case errors.Is(err, io.EOF) && len(text) == 0:
			return nil
		case errors.Is(err, io.EOF):
			return &fault{r.now, n, wrong("bundle.line-unfinished", "the last line has no end")}
		case err != nil:
			return err
		}
		if err := do(text); err != nil {
			if _, own := errors.AsType[visitError](err); own || r.ctx.Err() != nil {
				return err
			}
			if f, placed := errors.AsType[*fault](err); placed {
				return f // of a line before this one
			}
			return &fault{r.now, n, err}
		}
	}
}

func (r *reader) readKeys(in io.Reader) error {
	err := r.eachLine(in, func(text []byte) error {
		var k Key
		if err := parseJSON(text, &k); err != nil {
			return err
		}
		r.report.Counts.Keys++
		if k.Log == "" {
			r.keyLines = append(r.keyLines, k)
			return visit(r.o.Visit.Key, &k)
		}
		public, err := transparency.ParsePublicKey(k.Log)
		if err != nil {
			return err
		}
		if public.Cosign || len(r.keyLines) > 0 {
			return wrong("bundle.key-out-of-place", "the keys of the log stand first, and are not those of witnesses")
		}
		r.keys = append(r.keys, public)
		return visit(r.o.Visit.Key, &k)
	})
	if err != nil {
		return err
	}
	return r.trust()
}

// trust decides which keys check the signatures of the registry.
func (r *reader) trust() error {
	r.report.Trusted = slices.ContainsFunc(r.o.Keys, func(k transparency.PublicKey) bool { return !k.Cosign })
	if r.report.Trusted {
		r.keys = r.o.Keys
		return nil
	}
	r.keys = append(r.keys, r.o.Keys...)
	return nil
}

func (r *reader) readCheckpoint(in io.Reader) error {
	text, err := whole(in)
	if err != nil {
		return err
	}
	c, _, err := transparency.OpenCheckpoint(text, r.keys)
	if err != nil {
		return err
	}
	h := &r.report.Head
	if c.Origin != h.Origin || c.Size != h.Changes {
		return wrong("bundle.checkpoint-of-other", "the checkpoint is of another log, or of another size, than bundle.json says")
	}
	r.report.Checkpoint, r.report.Note = c, string(text)
	if r.tiles, err = transparency.NewTileCheck(c); err != nil {
		return err // the size may be any number: the list of its tiles is not made before
	}
	for t := range transparency.TilesAbove(c.Size) {
		r.above = append(r.above, t)
	}
	return nil
}

func (r *reader) readEras(in io.Reader) error {
	text, err := whole(in)
	if err != nil {
		return err
	}
	var eras struct {
		Eras []Era `json:"eras"`
	}
	if err := parseJSON(text, &eras); err != nil {
		return err
	}
	if n := len(eras.Eras); n == 0 || eras.Eras[n-1].Generation != r.report.Head.Generation {
		return wrong("bundle.eras-wrong", "the last generation of the log is another one than bundle.json says")
	}
	r.report.Eras = eras.Eras
	return nil
}

// readTile reads a tile. Which one it is follows from the order, for those above the leaves, or from its name.
func (r *reader) readTile(in io.Reader) error {
	data, err := whole(in)
	if err != nil {
		return err
	}
	id, ok := r.tileNow()
	if !ok || r.now != fileLog+id.Path() {
		return wrong("bundle.tile-out-of-order", "this is not the tile that stands here")
	}
	if err := r.tiles.Add(id, data); err != nil {
		return err
	}
	if err := visit2(r.o.Visit.Tile, id, data); err != nil {
		return err
	}
	r.report.Counts.Tiles++
	if id.Level == 0 {
		r.lastTile = id.N + 1
		return r.hashes.add(id.N, data)
	}
	r.above = r.above[1:]
	return nil
}

// tileNow returns the tile that the file under way has to be.
func (r *reader) tileNow() (transparency.TileID, bool) {
	if len(r.above) > 0 {
		return r.above[0], true
	}
	path, ok := strings.CutPrefix(r.now, fileLog+"tile/0/")
	number, _, _ := strings.Cut(path, ".p/")
	n, err := strconv.ParseUint(strings.NewReplacer("x", "", "/", "").Replace(number), 10, 40)
	size := r.report.Checkpoint.Size
	if !ok || err != nil || n < r.lastTile || n*transparency.TileWidth >= size {
		return transparency.TileID{}, false
	}
	return transparency.TileOf(n*transparency.TileWidth, size), true
}

func (r *reader) endTiles() error {
	if len(r.above) > 0 {
		r.now = fileLog + r.above[0].Path()
		return wrong("bundle.tile-missing", "it is missing")
	}
	return r.tiles.End()
}

// prove compares the hash of a leaf with the log. The error is that with which the leaf was made.
func (r *reader) prove(index uint64, leaf [sha256.Size]byte, err error) error {
	if err != nil {
		return err
	}
	h, err := r.hashes.hash(index)
	if err != nil {
		return err
	}
	if h == ([sha256.Size]byte{}) || leaf != h {
		return wrong("bundle.leaf-differs", "this is not what the log has at its index {index}: it was changed, or another document was logged", index)
	}
	return nil
}

func (r *reader) readNamespaces(in io.Reader) error {
	var last *NamespaceVersion
	err := r.eachLine(in, func(text []byte) error {
		v, err := parseNamespaceLine(r.o.Schemes, text)
		if err != nil {
			return err
		}
		if err := r.namespaceFollows(last, v); err != nil {
			return err
		}
		leaf, err := v.Log.NamespaceLeaf(v.Namespace)
		if err != nil {
			return err
		}
		if err := r.prove(v.Log.Index, leaf.Hash(), nil); err != nil {
			return err
		}
		last = v
		r.report.Counts.Kept++
		if v.Current {
			r.report.Counts.Namespaces++
			r.report.spaces = append(r.report.spaces, v.Namespace)
		}
		return visit(r.o.Visit.Namespace, v)
	})
	if err == nil && last != nil && !last.Current {
		err = errCutHistory
	}
	if err != nil {
		return err
	}
	return r.compareKeys()
}

var errCutHistory = wrong("bundle.history-cut", "the history ends without the current version")

func (r *reader) namespaceFollows(last, v *NamespaceVersion) error {
	n := v.Namespace
	if !r.report.Head.has(n.Scheme, n.Prefix) {
		return wrong("bundle.namespace-outside", "{namespace} is not one that the bundle is of", n.Key())
	}
	if last == nil || last.Current {
		if last != nil && comparePrefixes(Prefix{last.Namespace.Scheme, last.Namespace.Prefix}, Prefix{n.Scheme, n.Prefix}) >= 0 {
			return errOrder
		}
		return nil
	}
	if last.Namespace.Key() != n.Key() || n.Version != last.Namespace.Version+1 || v.Log.Index <= last.Log.Index {
		return errHistory
	}
	return nil
}

var (
	errOrder   = wrong("bundle.order-wrong", "this does not follow what stands before it")
	errHistory = wrong("bundle.history-not-whole", "the history is not whole: this is not the version after the one before it")
)

// compareKeys makes sure that data/keys.jsonl has the keys of the namespaces.
func (r *reader) compareKeys() error {
	want := namespaceKeys(r.report.spaces)
	if !slices.EqualFunc(want, r.keyLines, Key.equal) {
		return &fault{fileKeys, 0, wrong("bundle.keys-differ", "it has not the keys that the namespaces have")}
	}
	return nil
}

func (k Key) equal(other Key) bool {
	a, _ := appendJSON(nil, k)
	b, _ := appendJSON(nil, other)
	return bytes.Equal(a, b)
}

// namespaceKeys returns the lines of the keys that sign for namespaces.
func namespaceKeys(spaces []*stele.Namespace) (list []Key) {
	for _, n := range spaces {
		for _, k := range n.Keys {
			list = append(list, Key{Namespace: n.Key().String(), ID: k.ID, Algorithm: k.Algorithm, Public: k.Public, Created: k.Created, Expires: k.Expires, Revoked: k.Revoked, Note: k.Note})
		}
	}
	return list
}

// statementOf returns the line of what a namespace promises.
func statementOf(n *stele.Namespace) Statement {
	p := n.Persistence
	return Statement{Namespace: n.Key().String(), Title: n.Title, Owner: n.Owner, Level: string(p.Level), Until: p.Until, Statement: p.Statement}
}

func (r *reader) readStatements(in io.Reader) error {
	at := 0
	err := r.eachLine(in, func(text []byte) error {
		var s Statement
		if err := parseJSON(text, &s); err != nil {
			return err
		}
		if at >= len(r.report.spaces) || s != statementOf(r.report.spaces[at]) {
			return wrong("bundle.statement-differs", "this is not what the namespace says")
		}
		at++
		r.report.Counts.Statements++
		return visit(r.o.Visit.Statement, &s)
	})
	if err == nil && at != len(r.report.spaces) {
		return wrong("bundle.statements-missing", "statements of namespaces are missing")
	}
	return err
}

func (r *reader) readMinters(in io.Reader) error {
	last := ""
	return r.eachLine(in, func(text []byte) error {
		var m Minter
		if err := parseJSON(text, &m); err != nil {
			return err
		}
		if m.Name <= last {
			return errOrder
		}
		last = m.Name
		r.report.Counts.Minters++
		return visit(r.o.Visit.Minter, &m)
	})
}

func (r *reader) readCounts(in io.Reader) error {
	text, err := whole(in)
	if err != nil {
		return err
	}
	var c Counts
	if err := parseJSON(text, &c); err != nil {
		return err
	}
	if c != r.report.Counts {
		return wrong("bundle.counts-differ", "the bundle has not as many records, versions, namespaces or keys as this says")
	}
	return nil
}

// manifestLine returns a line of a manifest.
func (f *file) manifestLine() string { return hex.EncodeToString(f.sum[:]) + "  " + f.name + "\n" }

// compareManifest compares a manifest with the files that were read.
func compareManifest(in io.Reader, files []file, each func(f *file, line int, text string) error) error {
	buf := bufio.NewReaderSize(in, 64<<10)
	for i := range files {
		want := files[i].manifestLine()
		got := make([]byte, len(want))
		n, err := io.ReadFull(buf, got)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		if string(got[:n]) != want {
			if err := each(&files[i], i+1, string(got[:n])); err != nil {
				return err
			}
		}
	}
	if _, err := buf.ReadByte(); err == nil {
		return &fault{line: len(files) + 1, err: wrong("bundle.manifest-too-long", "the manifest lists files that are not there")}
	}
	return nil
}

// readManifest compares the manifest with the payload. If something was wrong with the payload, it tells which file was
// changed.
func (r *reader) readManifest(in io.Reader) error {
	counted := &counter{in: in}
	var first *fault
	changed := false // the file with the problem
	err := compareManifest(counted, r.payload, func(f *file, line int, text string) error {
		if len(text) != len(f.manifestLine()) || text[2*sha256.Size:] != f.manifestLine()[2*sha256.Size:] {
			return &fault{line: line, err: wrong("bundle.manifest-line-differs", "here {file} has to stand, with its SHA-256", f.name)}
		}
		if first == nil {
			first = &fault{f.name, 0, wrong("bundle.digest-differs", "its SHA-256 is {digest}, and line {line} of manifest-sha256.txt says {said}", hex.EncodeToString(f.sum[:]), line, printable(text[:2*sha256.Size]))}
		}
		changed = changed || r.wrong != nil && r.wrong.file == f.name
		return nil
	})
	if err != nil {
		return r.inFile(err)
	}
	if first != nil && !changed {
		r.wrong = first
	}
	if r.wrong != nil {
		return r.wrong
	}
	if _, err := io.Copy(io.Discard, counted); err != nil {
		return err
	}
	r.report.manifest = uint64(counted.n)
	r.sum.Sum(r.report.Manifest[:0])
	return nil
}

// inFile gives a problem the name of the file under way.
func (r *reader) inFile(err error) error {
	if f, ok := errors.AsType[*fault](err); ok && f.file == "" {
		f.file = r.now
	}
	return err
}

// counter counts what is read.
type counter struct {
	in io.Reader
	n  int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += int64(n)
	return n, err
}

// infoText returns bag-info.txt.
func infoText(h *Head, bytes int64, files int) string {
	return fmt.Sprintf("Bag-Software-Agent: stele\nBagging-Date: %s\nExternal-Identifier: %s change %d\nExternal-Description: Persistent identifiers with their history, and proofs of it; see data/README.txt\nPayload-Oxum: %d.%d\n",
		h.At.UTC().Format(time.DateOnly), h.Origin, h.Changes, bytes, files)
}

func (r *reader) readInfo(in io.Reader) error {
	text, err := whole(in)
	if err == nil && string(text) != infoText(&r.report.Head, r.bytes, len(r.payload)) {
		return wrong("bundle.info-differs", "it says other things than the payload: its bytes and files, its origin or its time")
	}
	return err
}

func (r *reader) readTagManifest(in io.Reader) error {
	err := compareManifest(in, r.tags, func(f *file, line int, text string) error {
		return &fault{line: line, err: wrong("bundle.tag-file-differs", "here {file} has to stand, with its SHA-256, {digest}", f.name, hex.EncodeToString(f.sum[:]))}
	})
	return r.inFile(err)
}
