package bundle

import (
	"cmp"
	"crypto/sha256"
	"io"
	"sort"

	"github.com/stele-id/stele/transparency"
)

// Temp is a file without a name for hashes that memory does not hold.
type Temp interface {
	io.Writer
	io.ReaderAt
	io.Closer
}

// maxSpool is how many bytes of hashes memory holds: those of two million leaves.
const maxSpool = 64 << 20

const tileBytes = transparency.TileWidth * sha256.Size

// spool keeps the hashes of leaves: full tiles, and last perhaps one that is not. The tile at a number in the list of numbers begins at
// that many times tileBytes.
type spool struct {
	most    int // bytes in memory; 0: maxSpool
	temp    func() (Temp, error)
	numbers []uint64
	memory  []byte
	file    Temp
	width   int // of the last tile of all
}

// add adds the next tile.
func (s *spool) add(n uint64, hashes []byte) error {
	s.numbers = append(s.numbers, n)
	s.width = len(hashes)
	if s.file == nil {
		if s.memory = append(s.memory, hashes...); len(s.memory) < cmp.Or(s.most, maxSpool) || s.temp == nil {
			return nil
		}
		var err error
		if s.file, err = s.temp(); err != nil {
			return err
		}
		hashes, s.memory = s.memory, nil
	}
	_, err := s.file.Write(hashes)
	return err
}

// hash returns the hash of a leaf; zero if its tile is not there.
func (s *spool) hash(leaf uint64) (h [sha256.Size]byte, err error) {
	n := leaf / transparency.TileWidth
	i := sort.Search(len(s.numbers), func(i int) bool { return s.numbers[i] >= n })
	if i == len(s.numbers) || s.numbers[i] != n {
		return h, nil
	}
	within := int(leaf%transparency.TileWidth) * sha256.Size
	if i == len(s.numbers)-1 && within >= s.width {
		return h, nil
	}
	if s.file == nil {
		copy(h[:], s.memory[i*tileBytes+within:])
		return h, nil
	}
	_, err = s.file.ReadAt(h[:], int64(i)*tileBytes+int64(within))
	return h, err
}

func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close() // nothing in it is needed any more
	}
}
