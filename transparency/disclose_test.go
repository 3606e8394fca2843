package transparency

import (
	"crypto/ed25519"
	"crypto/rand"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/stele-id/stele"
)

// Each leaf of a log is made again from what is disclosed of it, by a reader without the registry.
func TestTileCheck(t *testing.T) {
	for _, size := range []uint64{1, 255, 256, 257, 65535, 65536, 65537, 70000} {
		hashes := make([]byte, 0, size*tlog.HashSize)
		for i := range size {
			h := tlog.RecordHash([]byte{byte(i), byte(i >> 8), byte(i >> 16)})
			hashes = append(hashes, h[:]...)
		}
		levels := [][]byte{hashes}
		for len(levels[len(levels)-1]) >= tileWidth*tlog.HashSize {
			var above []byte
			for part := range slices.Chunk(levels[len(levels)-1], tileWidth*tlog.HashSize) {
				if len(part) == tileWidth*tlog.HashSize {
					root := rootOf(part)
					above = append(above, root[:]...)
				}
			}
			levels = append(levels, above)
		}
		var stored []tlog.Hash
		for i := range size {
			list, err := tlog.StoredHashesForRecordHash(int64(i), tlog.Hash(hashes[i*tlog.HashSize:][:tlog.HashSize]), tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
				out := make([]tlog.Hash, len(indexes))
				for k, x := range indexes {
					out[k] = stored[x]
				}
				return out, nil
			}))
			if err != nil {
				t.Fatal(err)
			}
			stored = append(stored, list...)
		}
		root, err := tlog.TreeHash(int64(size), tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
			out := make([]tlog.Hash, len(indexes))
			for k, x := range indexes {
				out[k] = stored[x]
			}
			return out, nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		check := func(spoil func(id TileID, data []byte)) error {
			c, err := NewTileCheck(&Checkpoint{Origin: "x", Size: size, Root: root})
			if err != nil {
				t.Fatal(err)
			}
			ids := slices.Collect(TilesAbove(size))
			for leaf := uint64(0); leaf < size; leaf += tileWidth {
				ids = append(ids, TileOf(leaf, size))
			}
			for _, id := range ids {
				data := slices.Clone(levels[id.Level][id.N*tileWidth*tlog.HashSize:][:id.Width*tlog.HashSize])
				spoil(id, data)
				if err := c.Add(id, data); err != nil {
					return err
				}
			}
			return c.End()
		}
		if err := check(func(TileID, []byte) {}); err != nil {
			t.Errorf("size %d: %v", size, err)
		}
		for level := range levels {
			last := uint64(0)
			err := check(func(id TileID, data []byte) {
				if id.Level == level && id.N == last {
					data[len(data)-1] ^= 1
				}
			})
			if stele.KindOf(err) != stele.Invalid && len(levels[level]) > 0 {
				t.Errorf("size %d: a changed hash of level %d is taken: %v", size, level, err)
			}
		}
	}
}

func TestTilePath(t *testing.T) {
	for want, id := range map[string]TileID{
		"tile/0/000":                 {0, 0, 256},
		"tile/0/x001/234.p/17":       {0, 1234, 17},
		"tile/2/x001/x234/067":       {2, 1234067, 256},
		"tile/1/x001/x000/000.p/1":   {1, 1000000, 1},
		"tile/1/x012/x345/678.p/255": {1, 12345678, 255},
	} {
		if got := id.Path(); got != want {
			t.Errorf("%+v: %s, want %s", id, got, want)
		}
	}
}

func TestCosignatures(t *testing.T) {
	h := newHouse(t, nil)
	h.catchUp()
	shown, err := h.log.Sign(h.ctx, h.keys)
	h.must(err)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	h.must(err)
	witness := PublicKey{Name: "witness.example", Key: public, Cosign: true}
	c, _, err := OpenCheckpoint([]byte(shown.Note), h.keys.Public())
	h.must(err)
	signed, err := note.Sign(&note.Note{Text: c.String()}, signer{c.Origin, h.keys.List[0].Private}, cosigner{"witness.example", private, h.now})
	h.must(err)
	own, lines := SplitCheckpoint(string(signed), h.keys.Public())
	if own != shown.Note || !strings.HasPrefix(lines, "— witness.example ") {
		t.Errorf("own %q, others %q", own, lines)
	}
	list, err := Cosignatures(c, []byte(lines), []PublicKey{witness})
	h.must(err)
	if len(list) != 1 || list[0].Witness != "witness.example" || list[0].At.Unix() != h.now.Unix() {
		t.Errorf("co-signatures %+v", list)
	}
	if list, err := Cosignatures(c, []byte(lines), nil); err != nil || len(list) != 0 {
		t.Errorf("an unknown witness: %+v, %v", list, err)
	}
	c.Size++
	if _, err := Cosignatures(c, []byte(lines), []PublicKey{witness}); stele.KindOf(err) != stele.Invalid {
		t.Errorf("of another checkpoint: %v", err)
	}
}

func TestSignText(t *testing.T) {
	h := newHouse(t, nil)
	origin := h.keys.Origin + "/g3-20310502T100000Z"
	signed, err := h.keys.SignText(origin+"\nline\n", h.now)
	h.must(err)
	text, err := OpenText([]byte(signed), h.keys.Public())
	h.must(err)
	if text != origin+"\nline\n" {
		t.Errorf("text %q", text)
	}
	if _, err := OpenText([]byte(strings.Replace(signed, "line", "lime", 1)), h.keys.Public()); stele.KindOf(err) != stele.Invalid {
		t.Errorf("a changed text: %v", err)
	}
	h.keys.List[0].Retired = h.now
	if _, err := h.keys.SignText(origin+"\nline\n", h.now); stele.KindOf(err) != stele.Conflict {
		t.Errorf("a retired key signs: %v", err)
	}
}
