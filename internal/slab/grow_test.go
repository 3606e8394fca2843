package slab

import (
	"encoding/binary"
	"testing"
)

// TestGrows fills parts from empty to full: nearly every entry is found whatever the size of the
// index was when it was added, and the index has only as many slots as the entries need.
func TestGrows(t *testing.T) {
	for _, overwrite := range []bool{false, true} {
		s := table{New(Options{Bytes: 16 << 20, EntryBytes: 16, MaxEntry: 512, Overwrite: overwrite})}
		hash := func(key uint32) uint64 { return (uint64(key) + 1) * 0x9e3779b97f4a7c15 }
		content := make([]byte, 40)
		refused := 0
		for n := uint32(1); n <= 100_000; n++ {
			binary.LittleEndian.PutUint32(content, n)
			if !s.put(n, hash(n), content) {
				refused++
			}
			if n&(n-1) != 0 && n != 100_000 {
				continue
			}
			found := 0
			for key := uint32(1); key <= n; key++ {
				if got := s.get(key, hash(key)); got != nil {
					found++
					if binary.LittleEndian.Uint32(got) != key {
						t.Fatalf("%d is %x", key, got)
					}
				}
			}
			if found < int(n)*98/100 || !overwrite && found+refused != int(n) {
				t.Errorf("overwrite %t: of %d entries %d are found, and %d were refused", overwrite, n, found, refused)
			}
			used := 0
			for i := range s.parts {
				used += len(s.parts[i].slots)
			}
			if most := len(s.parts)*firstIndex + int(n)*2*slotBytes*8/growAt; used > most {
				t.Errorf("overwrite %t: the index of %d entries has %d bytes, more than %d", overwrite, n, used, most)
			}
		}
		s.Close()
	}
}
