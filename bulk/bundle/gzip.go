package bundle

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"

	"github.com/stele-id/stele"
)

// A compressed bundle has a member of gzip (RFC 1952) for each piece with which writing can be taken up again. Their headers say
// nothing.
var gzipHead = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}

// maxRatio is how many times longer a bundle may be than its compressed form: hashes, seeds and digests can't be compressed, so
// that one which is longer is made to fill disks or time.
const (
	maxRatio  = 100
	freeBytes = 64 << 20
)

// decompress returns the archive, if it is compressed.
func decompress(in io.Reader) (io.Reader, error) {
	buf := bufio.NewReaderSize(in, 256<<10)
	if start, _ := buf.Peek(2); !bytes.Equal(start, gzipHead[:2]) {
		return buf, nil
	}
	z := &gunzip{raw: &counter{in: buf}}
	z.in = bufio.NewReaderSize(z.raw, 64<<10)
	return z, z.next()
}

// gunzip reads members of gzip one by one.
type gunzip struct {
	in    *bufio.Reader
	raw   *counter
	out   int64 // bytes of the archive
	begin int64 // where the member under way begins
	z     *gzip.Reader
	done  bool
}

// next begins the next member.
func (g *gunzip) next() error {
	g.begin = g.raw.n - int64(g.in.Buffered())
	head, err := g.in.Peek(len(gzipHead))
	if errors.Is(err, io.EOF) && len(head) == 0 {
		g.done = true
		return nil
	}
	if err != nil || !bytes.Equal(head, gzipHead) {
		return notGzip(g.out)
	}
	if g.z == nil {
		g.z, err = gzip.NewReader(g.in)
	} else {
		err = g.z.Reset(g.in)
	}
	if err != nil {
		return notGzip(g.out)
	}
	g.z.Multistream(false)
	return nil
}

func (g *gunzip) Read(p []byte) (int, error) {
	for {
		if g.done {
			return 0, io.EOF
		}
		n, err := g.z.Read(p)
		g.out += int64(n)
		switch {
		case g.out > freeBytes && g.out > maxRatio*g.raw.n:
			return 0, &stele.Error{Op: opRead, Kind: stele.Invalid, Err: stele.Messagef("bundle.too-compressed", "the archive is more than {most} times as long as the file: this is not a bundle", maxRatio)}
		case n > 0:
			return n, nil
		case errors.Is(err, io.EOF):
			if err := g.next(); err != nil {
				return 0, err
			}
		case err != nil:
			return 0, notGzip(g.out)
		}
	}
}

func notGzip(at int64) error {
	return &stele.Error{Op: opRead, Kind: stele.Invalid, Err: stele.Messagef("bundle.compression-damaged", "the compressed archive is damaged, or was not made by 'stele bundle': after byte {offset} of the archive", at)}
}
