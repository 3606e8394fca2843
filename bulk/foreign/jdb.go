package foreign

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"io"
	"os"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/wire/hdl"
)

// jdbMark begins a file handles.jdb or nas.jdb (specification, section 6).
const jdbMark = "\x00\x0cJDBHash v0.1"

const (
	jdbBlock     = 1024
	jdbStart     = 1             // begins the first block of a record, and
	jdbGoesOn    = 2             // one that continues it
	jdbHead      = 1 + 4 + 4 + 8 // kind, length of the key, length of the data, the next record of the chain
	jdbMoreHead  = 1 + 4         // kind, how much remains
	jdbOffset    = 8             // of the block that continues, if one does
	maxJDBTable  = 1 << 20       // entries
	maxJDBMemory = 1 << 30       // bytes of a file that can't be read at any place, because it is compressed
	maxJDBData   = maxLine       // of a record
	jdbTableAt   = len(jdbMark) + 4
)

// jdbPart reads the hash table of an old server: chains of blocks, each of which begins at an entry of the table. A deleted
// record is in no chain, so that the file can't be read from its beginning to its end.
type jdbPart struct {
	s    *Source
	file *bulk.File
	w    *window

	in     io.ReaderAt // nil until it is begun
	closer io.Closer
	size   int64
	table  []byte
	at     int   // entry of the table that is read next
	follow int64 // block of the chain that is read next; 0: none
	blocks int64 // that were read: each belongs to one record, so there are not more than the file has
	count  int   // records that were read
}

func (p *jdbPart) close() error {
	if p.closer == nil {
		return nil
	}
	err := p.closer.Close()
	p.closer = nil
	return err
}

// open makes the file one that can be read at any place, and reads the table.
func (p *jdbPart) open() error {
	if p.file.Path != "" && p.file.CanSeek() {
		file, err := os.Open(p.file.Path)
		if err != nil {
			return disk.FileError(err)
		}
		p.in, p.size, p.closer = file, p.file.Size, file
	} else {
		for p.w.fill() {
			if len(p.w.buf) > maxJDBMemory {
				return failf(stele.Exhausted, "import.foreign-jdb-large", "{file} is compressed or a pipe, and has more than {most} bytes; decompress it into a file, and import that", p.w.name, maxJDBMemory)
			}
		}
		if err := p.w.failure(); err != nil {
			return err
		}
		p.in, p.size = bytes.NewReader(p.w.buf), int64(len(p.w.buf))
	}
	head := make([]byte, jdbTableAt)
	if err := p.read(head, 0); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[len(jdbMark):])
	if !bytes.HasPrefix(head, []byte(jdbMark)) || n == 0 || n > maxJDBTable || int64(jdbTableAt)+8*int64(n) > p.size {
		return p.broken(int64(len(jdbMark)))
	}
	p.table = make([]byte, 8*n)
	return p.read(p.table, int64(jdbTableAt))
}

func (p *jdbPart) read(b []byte, at int64) error {
	n, err := p.in.ReadAt(b, at)
	p.file.Read.Add(int64(n))
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return p.broken(at)
	}
	return p.file.ReadError(err)
}

// broken refuses the file: what else a chain has can't be found any more.
func (p *jdbPart) broken(at int64) error {
	return failf(stele.Invalid, "import.foreign-jdb-broken", "{file} is not a whole file of JDB: what is at byte {offset}, or leads there, is damaged; stop the server before you copy the file", p.w.name, at)
}

// block reads a block. The last one of a file may be shorter.
func (p *jdbPart) block(at int64) ([]byte, error) {
	if p.blocks++; at < int64(jdbTableAt+len(p.table)) || at >= p.size || p.blocks > p.size/jdbBlock+1 {
		return nil, p.broken(at)
	}
	b := make([]byte, min(jdbBlock, p.size-at))
	return b, p.read(b, at)
}

// record reads the next record. ok is false at the end. A [rowError] is of one record, after which the next can be read.
func (p *jdbPart) record() (key, data []byte, ok bool, err error) {
	if p.in == nil {
		if err := p.open(); err != nil {
			return nil, nil, false, err
		}
	}
	for p.follow == 0 {
		if 8*p.at == len(p.table) {
			return nil, nil, false, nil
		}
		p.follow = int64(binary.BigEndian.Uint64(p.table[8*p.at:]))
		p.at++
	}
	p.count++
	at := p.follow
	b, err := p.block(at)
	if err != nil {
		return nil, nil, false, err
	}
	if len(b) < jdbHead || b[0] != jdbStart {
		return nil, nil, false, p.broken(at)
	}
	keySize, dataSize := int64(binary.BigEndian.Uint32(b[1:])), int64(binary.BigEndian.Uint32(b[5:]))
	p.follow = int64(binary.BigEndian.Uint64(b[9:]))
	if keySize > hdl.MaxHandle || dataSize > maxJDBData {
		return nil, nil, true, &rowError{tooLong(int(min(keySize+dataSize, 1<<31-1)), maxJDBData)}
	}
	all, err := p.whole(b[jdbHead:], keySize+dataSize, at)
	if err != nil {
		return nil, nil, false, err
	}
	if key, data = all[:keySize], all[keySize:]; p.entry(key) != p.at-1 {
		return nil, nil, true, &rowError{failf(stele.Invalid, "import.foreign-jdb-misplaced", "the record {name} is in the chain of another one, so that it is damaged", stele.Quote(string(key)))}
	}
	return key, data, true, nil
}

// whole returns so many octets: those of the first block, and of those that continue it.
func (p *jdbPart) whole(b []byte, size, at int64) ([]byte, error) {
	all := make([]byte, 0, min(size, jdbBlock))
	remains, capacity := size, int64(jdbBlock-jdbHead)
	for {
		if remains <= capacity {
			if int64(len(b)) < remains {
				return nil, p.broken(at)
			}
			return append(all, b[:remains]...), nil
		}
		n := capacity - jdbOffset
		if int64(len(b)) < capacity {
			return nil, p.broken(at)
		}
		at = int64(binary.BigEndian.Uint64(b))
		all = append(all, b[jdbOffset:capacity]...)
		remains -= n
		var err error
		if b, err = p.block(at); err != nil {
			return nil, err
		}
		if len(b) < jdbMoreHead || b[0] != jdbGoesOn || int64(binary.BigEndian.Uint32(b[1:])) != remains {
			return nil, p.broken(at)
		}
		b, capacity = b[jdbMoreHead:], jdbBlock-jdbMoreHead
	}
}

// entry returns the entry of the table at which the chain of a key begins.
func (p *jdbPart) entry(key []byte) int {
	sum := md5.Sum(key)
	return int(binary.BigEndian.Uint32(sum[len(sum)-4:])&^(1<<31)) % (len(p.table) / 8)
}

// next implements part.
func (p *jdbPart) next() (*bulk.Block, error) {
	b := &bulk.Block{Line: p.count + 1}
	// Prefixes that have a namespace give no rows: a block without rows would end the import.
	for len(b.Rows) == 0 || b.Size < windowBytes {
		key, data, ok, err := p.record()
		bad, is := err.(*rowError)
		switch {
		case is:
			b.Rows = append(b.Rows, bulk.Row{Line: p.count, Err: bad.err})
		case err != nil && len(b.Rows) > 0 && p.s.err == nil: // what came before it is imported
			p.s.err = err
		case err != nil:
			return nil, err
		case ok && len(data) == 0:
			b.Rows = append(b.Rows, p.s.prefix(string(key), p.count)...)
		case ok:
			b.Rows = append(b.Rows, bulk.Row{Line: p.count, Text: data, Record: &stele.Record{Spelling: string(key)}})
		}
		if len(b.Rows) > 0 {
			b.Size += len(key) + len(data) + 64
		}
		if !is && (!ok || err != nil) {
			break
		}
	}
	if len(b.Rows) == 0 {
		return nil, io.EOF
	}
	b.Next, b.End = p.count+1, int64(p.count)
	return b, nil
}

// skip implements part. Records are counted: a chain can be followed only from its beginning.
func (p *jdbPart) skip(end int64, _ int) error {
	for int64(p.count) < end {
		_, _, ok, err := p.record()
		if _, is := err.(*rowError); err != nil && !is {
			return err
		}
		if !ok {
			return nil
		}
	}
	return nil
}

// parse implements part.
func (p *jdbPart) parse(row *bulk.Row) { p.s.parseStored(row) }

// readJDB reads a file over which a log is replayed.
func (f *folded) readJDB(w *window, file *bulk.File) (err error) {
	p := &jdbPart{s: f.s, w: w, file: file}
	defer func() { err = errors.Join(err, p.close()) }()
	for {
		key, data, ok, err := p.record()
		if bad, is := err.(*rowError); is {
			if err := f.head(bulk.Row{Line: p.count, Err: bad.err}); err != nil {
				return err
			}
			continue
		}
		if err != nil || !ok {
			return err
		}
		if err := f.stored(string(key), data, p.count); err != nil {
			return err
		}
	}
}
