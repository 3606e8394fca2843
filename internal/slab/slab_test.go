package slab

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// table is a map of numbers to contents on a Slab: an entry has the number, the length of
// the content, and the content.
type table struct{ *Slab }

func (t table) seek(p *Part, key uint32, hash uint64) (entry []byte, slot int) {
	for entry, slot = p.Seek(hash, 0); entry != nil; entry, slot = p.Seek(hash, slot+1) {
		if binary.LittleEndian.Uint32(entry) == key {
			return entry, slot
		}
	}
	return nil, -1
}

func (t table) get(key uint32, hash uint64) []byte {
	p := t.Part(hash)
	p.RLock()
	defer p.RUnlock()
	e, _ := t.seek(p, key, hash)
	if e == nil {
		return nil
	}
	return bytes.Clone(e[8 : 8+binary.LittleEndian.Uint32(e[4:])])
}

func (t table) put(key uint32, hash uint64, content []byte) bool {
	p := t.Part(hash)
	p.Lock()
	defer p.Unlock()
	e, slot := t.seek(p, key, hash)
	if e != nil && !p.overwrite {
		p.Remove(hash, slot)
		slot = -1
	}
	e = p.Add(hash, slot, 8+len(content))
	if e == nil {
		return false
	}
	binary.LittleEndian.PutUint32(e, key)
	binary.LittleEndian.PutUint32(e[4:], uint32(len(content)))
	copy(e[8:], content)
	return true
}

func (t table) remove(key uint32, hash uint64) {
	p := t.Part(hash)
	p.Lock()
	defer p.Unlock()
	if e, slot := t.seek(p, key, hash); e != nil {
		p.Remove(hash, slot)
	}
}

// TestTellsTheTruth puts and removes at random, with hashes that many keys share and
// without: an entry may be gone, but an entry that is found is the one that was put last.
func TestTellsTheTruth(t *testing.T) {
	for _, overwrite := range []bool{false, true} {
		t.Run(fmt.Sprintf("overwrite %v", overwrite), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := table{New(Options{
					Bytes:      rapid.SampledFrom([]uint64{1, 2 << 10, 8 << 10, 64 << 10}).Draw(t, "size"),
					EntryBytes: rapid.SampledFrom([]int{16, 64}).Draw(t, "entry bytes"),
					MaxEntry:   100, MinParts: rapid.SampledFrom([]int{1, 8}).Draw(t, "parts"), Overwrite: overwrite,
				})}
				defer s.Close()
				hashes := rapid.SampledFrom([]uint64{1, 3, 1 << 40}).Draw(t, "hashes")
				hash := func(key uint32) uint64 { return uint64(key) % hashes * 0x9e3779b97f4a7c15 }
				want := map[uint32][]byte{}
				for range rapid.IntRange(1, 1000).Draw(t, "steps") {
					key := rapid.Uint32Range(0, 60).Draw(t, "key")
					switch rapid.IntRange(0, 9).Draw(t, "do") {
					case 0:
						s.remove(key, hash(key))
						if got := s.get(key, hash(key)); got != nil {
							t.Fatalf("%d is removed, and is %q", key, got)
						}
						delete(want, key)
					case 1, 2, 3, 4:
						content := bytes.Repeat([]byte{byte(key), byte(rapid.Uint32().Draw(t, "content"))}, rapid.IntRange(0, 45).Draw(t, "length"))
						if s.put(key, hash(key), content) {
							want[key] = content
							if got := s.get(key, hash(key)); !bytes.Equal(got, content) || got == nil {
								t.Fatalf("%d is %q, want %q", key, got, content)
							}
						} else if overwrite {
							t.Fatalf("%d bytes are refused", len(content))
						} else {
							delete(want, key)
						}
					default:
						if got := s.get(key, hash(key)); got != nil && (want[key] == nil || !bytes.Equal(got, want[key])) {
							t.Fatalf("%d is %q, want %q", key, got, want[key])
						}
					}
				}
			})
		})
	}
}

// TestRing writes a ring many times over: it always has about as many of the latest entries
// as fit, and none twice.
func TestRing(t *testing.T) {
	s := table{New(Options{Bytes: 64 << 10, EntryBytes: 32, MaxEntry: 200, Overwrite: true})}
	defer s.Close()
	const each = 100
	hash := func(key uint32) uint64 { return uint64(key) * 0x9e3779b97f4a7c15 }
	room := uint32(len(s.parts[0].text) / (headBytes + 8 + each + 2))
	for key := range 20 * room {
		if !s.put(key, hash(key), bytes.Repeat([]byte{byte(key)}, each)) {
			t.Fatalf("%d is refused", key)
		}
		if key%room != room/2 || key < room {
			continue
		}
		if p := &s.parts[0]; !p.Full() {
			t.Fatal("it is not full")
		}
		found := uint32(0)
		for old := range key + 1 {
			if got := s.get(old, hash(old)); got != nil {
				found++
				if len(got) != each || got[0] != byte(old) || old+room+2 < key {
					t.Fatalf("%d is %x after %d", old, got, key)
				}
			}
		}
		if found < room*9/10 {
			t.Fatalf("%d of %d are found after %d", found, room, key)
		}
	}
}

// TestLimits tries what is too large, and what has all the room there is.
func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		overwrite bool
		size      int // of the part
		max       func(text int) int
	}{
		{false, 16 << 10, func(text int) int { return text - headBytes }},
		{true, 16 << 10, func(text int) int { return text/largest&^(unit-1) - headBytes }},
		{false, 4 << 20, func(int) int { return maxRoom - headBytes }},
		{true, 4 << 20, func(int) int { return maxRoom - headBytes }},
	} {
		s := New(Options{Bytes: uint64(tt.size), EntryBytes: 64, MaxEntry: 512, Overwrite: tt.overwrite})
		p := s.Part(0)
		if most := tt.max(len(p.text)); p.Add(0, -1, most+1) != nil || len(p.Add(0, -1, most)) < most {
			t.Errorf("%+v: %d bytes are not the most", tt, most)
		}
		s.Close()
	}
	for _, size := range []uint64{0, 1, 1000, 1 << 20, 10 << 20, 100 << 20} {
		for _, parts := range []int{0, 1, 64} {
			for _, entry := range []int{16, 32, 64} {
				s := New(Options{Bytes: size, EntryBytes: entry, MaxEntry: 1 << 10, MinParts: parts})
				if taken := uint64(len(s.memory)); taken > size+size/4+4<<10 || size > 64<<10 && taken < size*3/4 {
					t.Errorf("%d bytes of %d are taken", taken, size)
				}
				if p := s.Part(1); p.Add(1, -1, 1<<10) == nil {
					t.Errorf("the largest entry has no room in %d bytes", size)
				}
				s.Close()
			}
		}
	}
}

// TestClose closes a Slab that is in use, and clears.
func TestClose(t *testing.T) {
	s := table{New(Options{Bytes: 1 << 20, EntryBytes: 32, MaxEntry: 100, MinParts: 4, Overwrite: true})}
	hash := func(key uint32) uint64 { return uint64(key) * 0x9e3779b97f4a7c15 }
	s.put(1, hash(1), []byte("one"))
	s.Clear()
	if got := s.get(1, hash(1)); got != nil {
		t.Errorf("%q is found after Clear", got)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for key := range uint32(5000) {
				s.put(key, hash(key), []byte("content"))
				if got := s.get(key, hash(key)); got != nil && string(got) != "content" {
					t.Errorf("%d is %q", key, got)
				}
			}
		})
	}
	s.Close()
	all.Wait()
	if s.put(1, hash(1), nil) || s.get(1, hash(1)) != nil {
		t.Error("something is kept after Close")
	}
	s.Close()
}
