package deposit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/transparency"
)

// Job is a deposit to be made.
type Job struct {
	Bundle *bundle.Job
	To     Destination
	Now    time.Time

	piece int64 // in tests; 0: pieceBytes
}

// Made is what became of a deposit.
type Made struct {
	List  *List
	Same  bool  // the last deposit at the place is of the same bundle: no other was made
	Sent  int   // objects that were not at the place
	Bytes int64 // of them, at the place
}

// Sizes of objects. Tiles of the log are small and many, and a full one never changes: those of a group are kept together.
const (
	groupTiles = 64
	pieceBytes = 4 << 20 // of a file other than one of records
	uploads    = 4       // at once
)

// Make makes a deposit of the registry as it is now. Conflict if the place has deposits of another registry, or of other names: the
// last one should be what the place is for.
func (j *Job) Make(ctx context.Context) (*Made, error) {
	last, err := lastReadable(ctx, j.To)
	if err != nil {
		return nil, err
	}
	m := &maker{job: j, made: &Made{}, stored: map[objectKey]int64{}, said: map[objectKey]int64{}}
	if err := m.fits(last); err != nil {
		return nil, err
	}
	if err := m.isOurs(ctx, last); err != nil {
		return nil, err
	}
	if err := m.look(ctx, last); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m.ctx, m.fail, m.slots = ctx, cancel, make(chan struct{}, uploads)
	done, err := j.Bundle.Files(ctx, m.file)
	if err == nil {
		err = m.endGroup()
	}
	m.wg.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err != nil {
		return nil, err
	}
	return m.end(ctx, done, last)
}

// objectKey names an object at the place.
type objectKey struct {
	sum  [sha256.Size]byte
	gzip bool
}

// maker is a deposit under way.
type maker struct {
	job  *Job
	made *Made
	ctx  context.Context
	fail context.CancelCauseFunc

	stored map[objectKey]int64 // objects at the place, with their bytes there
	said   map[objectKey]int64 // objects of the last deposit, with the bytes that they had

	objects []*Object
	data    []byte // of the file under way
	about   string // its name
	group   []byte // tiles that are kept together
	tiles   []File
	which   groupKey

	slots chan struct{}
	wg    sync.WaitGroup
	mu    sync.Mutex // of made
}

type groupKey struct {
	level string
	n     uint64
}

// look finds out which objects the place has.
func (m *maker) look(ctx context.Context, last *List) error {
	err := m.job.To.List(ctx, objectsFolder, func(name string, size int64) error {
		if key, ok := parseObjectName(name); ok {
			m.stored[key] = size
		}
		return nil
	})
	if last != nil {
		for i := range last.Objects {
			o := &last.Objects[i]
			m.said[o.key()] = o.Stored
		}
	}
	return err
}

func (o *Object) key() (k objectKey) {
	_, _ = hex.Decode(k.sum[:], []byte(o.Sum)) // it was read or made as a digest
	k.gzip = o.Gzip
	return k
}

// parseObjectName reads the name of an object; false if it is not one.
func parseObjectName(name string) (k objectKey, ok bool) {
	name, k.gzip = strings.CutSuffix(name, ".gz")
	o := Object{Sum: name[strings.LastIndexByte(name, '/')+1:]}
	if !isSum(o.Sum) || o.name() != name {
		return k, false
	}
	gz := k.gzip
	k = o.key()
	k.gzip = gz
	return k, true
}

// fits makes sure that the deposit belongs at the place.
func (m *maker) fits(last *List) error {
	if last == nil {
		return nil
	}
	from := m.job.Bundle
	switch {
	case transparency.BaseOrigin(last.Bundle.Origin) != from.Keys.Origin: // each restore gives the log another origin
		return failf(stele.Conflict, "deposit.place-of-other-registry", `the place has deposits of the registry "{origin}"; choose another folder for this one`, last.Bundle.Origin)
	case (len(last.Bundle.Prefixes) == 0) != from.From.All():
		return errOtherNames
	}
	if from.From.All() {
		return nil
	}
	var keys []stele.NamespaceKey
	for _, p := range last.Bundle.Prefixes {
		keys = append(keys, p.Key())
	}
	if !slices.Equal(keys, from.From.Prefixes()) {
		return errOtherNames
	}
	return nil
}

// isOurs makes sure that the last deposit is of this registry itself, and not of a copy of it that was restored elsewhere and goes on under the same name.
func (m *maker) isOurs(ctx context.Context, last *List) error {
	if last == nil {
		return nil
	}
	status, err := m.job.Bundle.Log.Status(ctx)
	if err != nil {
		return err
	}
	known := func(e transparency.Era) bool { return e.Generation.String() == last.Bundle.Generation }
	if !slices.ContainsFunc(status.Eras, known) {
		return failf(stele.Conflict, "deposit.place-of-copy", "{list}, the last deposit at the place, is of the generation {generation} of {origin}, which this registry never was in: a copy of the registry makes deposits there, or this one was restored from an older backup; turn deposits off in the copy, or choose another folder for this one", last.Name, last.Bundle.Generation, last.Bundle.Origin)
	}
	return nil
}

var errOtherNames = failf(stele.Conflict, "deposit.place-of-other-names", "the place has deposits of other prefixes; choose another folder for these")

// file takes a file of the bundle.
func (m *maker) file(name string, size int64, in io.Reader) error {
	if err := m.ctx.Err(); err != nil {
		return err
	}
	m.about = name
	level, n, isTile := bundle.TileOf(name)
	most := cmp.Or(m.job.piece, pieceBytes)
	if isTile || strings.HasPrefix(name, "data/records-") {
		most = bundle.MaxRecordsFile
	}
	data := slices.Grow(m.data[:0], int(min(most, size)))[:min(most, size)]
	m.data = data
	if _, err := io.ReadFull(in, data); err != nil {
		return err
	}
	if isTile {
		which := groupKey{level, n / groupTiles}
		if which != m.which {
			if err := m.endGroup(); err != nil {
				return err
			}
		}
		m.which, m.group, m.tiles = which, append(m.group, data...), append(m.tiles, File{name, int64(len(data))})
		return nil
	}
	if err := m.endGroup(); err != nil {
		return err
	}
	files := []File{{name, size}}
	for {
		if err := m.object(data, files, true); err != nil {
			return err
		}
		if size -= int64(len(data)); size == 0 {
			return nil
		}
		data, files = data[:min(most, size)], nil
		if _, err := io.ReadFull(in, data); err != nil {
			return err
		}
	}
}

// endGroup makes an object of the tiles that wait. Hashes can't be compressed.
func (m *maker) endGroup() error {
	if len(m.tiles) == 0 {
		return nil
	}
	err := m.object(m.group, m.tiles, false)
	m.group, m.tiles = m.group[:0], nil
	return err
}

// onItsWay stands for the bytes of an object that is being sent: the same content is not sent twice.
const onItsWay = -1

// object adds an object, and brings it to the place if it is not there. One that is there, and that no list says the size of, is read and checked.
func (m *maker) object(data []byte, files []File, packed bool) error {
	key := objectKey{sha256.Sum256(data), packed}
	o := &Object{Sum: hex.EncodeToString(key.sum[:]), Gzip: packed, Size: int64(len(data)), Files: files, about: m.about}
	if len(files) > 0 {
		o.about = files[0].Name
	}
	m.objects = append(m.objects, o)
	stored, there := m.stored[key]
	said, known := m.said[key]
	if there {
		if stored != onItsWay && (known && said != stored || !packed && stored != o.Size) {
			if !known {
				said = o.Size
			}
			return failf(stele.Conflict, "deposit.object-damaged-there", "{object} has {size} bytes at the place, and had {said}: it is damaged; remove it there, and make the deposit again", o.name(), stored, said)
		}
		if o.Stored = stored; stored == onItsWay || known {
			return nil
		}
	}
	m.stored[key] = onItsWay
	if !there {
		data = bytes.Clone(data)
	}
	select {
	case m.slots <- struct{}{}:
	case <-m.ctx.Done():
		return m.ctx.Err()
	}
	m.wg.Go(func() {
		defer func() { <-m.slots }()
		var err error
		if there { // no deposit of which the list was read had it: perhaps one that was interrupted, which wrote anything
			_, err = o.read(m.ctx, m.job.To)
		} else {
			err = m.send(o, data)
		}
		if err != nil {
			m.fail(err)
		}
	})
	return nil
}

// send brings an object to the place.
func (m *maker) send(o *Object, data []byte) error {
	if o.Gzip {
		var buf bytes.Buffer
		z := gzip.NewWriter(&buf)
		_, err := z.Write(data)
		if err = errors.Join(err, z.Close()); err != nil {
			return err
		}
		data = buf.Bytes()
	}
	if err := m.job.To.Put(m.ctx, o.name(), data); err != nil {
		return err
	}
	o.Stored = int64(len(data))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made.Sent++
	m.made.Bytes += o.Stored
	return nil
}

// isStored reports whether the place has the objects of a list with the lengths that it says. One that was brought again may be compressed otherwise.
func (m *maker) isStored(l *List) bool {
	sent := map[objectKey]int64{}
	for _, o := range m.objects {
		if o.Stored > 0 {
			sent[o.key()] = o.Stored
		}
	}
	return !slices.ContainsFunc(l.Objects, func(o Object) bool {
		stored, ok := sent[o.key()]
		return ok && stored != o.Stored
	})
}

// end writes the list, which makes the objects a deposit.
func (m *maker) end(ctx context.Context, done *bundle.Written, last *List) (*Made, error) {
	l := &List{Head: Head{Form: Form, At: m.job.Now.UTC().Truncate(time.Second), Bundle: done.Head, Manifest: hex.EncodeToString(done.Manifest[:]),
		Records: done.Counts.Records, Versions: done.Counts.Versions, Bytes: done.Bytes}}
	if last != nil && last.Manifest == l.Manifest && m.isStored(last) {
		m.made.List, m.made.Same = last, true
		return m.made, nil
	}
	if last != nil && !l.At.After(last.At) { // a clock that was ahead: the newest one is the last by name
		l.At = last.At.Add(time.Second)
	}
	sizes := map[objectKey]int64{}
	for _, o := range m.objects {
		if o.Stored > 0 {
			sizes[o.key()] = o.Stored
		}
	}
	for _, o := range m.objects {
		if o.Stored == onItsWay { // the same content as that of another object
			o.Stored = sizes[o.key()]
		}
		l.Objects = append(l.Objects, *o)
	}
	text, err := l.encode()
	if err != nil {
		return nil, err
	}
	if err := m.job.To.Put(ctx, l.Name, text); err != nil {
		return nil, err
	}
	m.made.List = l
	return m.made, nil
}
